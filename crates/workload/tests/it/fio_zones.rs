//! `zonemode`: the requests that fio 3.33 sends to a file of 16 MiB, and jobs on drives that have zones.

use ssdlab_base::command_sets::zoned::{RESET, ZoneShape};
use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_workload::fio::FioJob;
use ssdlab_workload::{Next, Workload, WorkloadError};

const KIB: u64 = 1024;

/// All requests of a workload whose requests complete at once.
fn requests(workload: &mut dyn Workload) -> Result<Vec<Request>, WorkloadError> {
    let mut sent = Vec::new();
    loop {
        match workload.next(Nanos::ZERO)? {
            Next::Request(request) => {
                workload.completed(Nanos::ZERO, request.tag);
                sent.push(request);
            }
            Next::Done => return Ok(sent),
            other => panic!("{other:?}"),
        }
        assert!(sent.len() < 1_000_000, "it ends");
    }
}

/// Offsets in KiB of what a line sends to a drive of 16 MiB without zones.
fn offsets(line: &str) -> Vec<u64> {
    let mut workload = FioJob::parse_line(line).and_then(|job| job.generator(16 << 20, 1)).expect(line);
    let sent = requests(&mut workload).expect(line);
    sent.iter().map(|request| request.sector * SECTOR_BYTES / KIB).collect()
}

/// Offsets that begin at each of `zones`, in steps of `block`, `blocks` each.
fn in_zones(zones: &[u64], block: u64, blocks: u64) -> Vec<u64> {
    zones.iter().flat_map(|zone| (0..blocks).map(move |index| zone + index * block)).collect()
}

#[test]
fn strided_zones_are_those_of_fio() {
    // fio --ioengine=psync --size=16m --write_iolog=..., version 3.33.
    let all: Vec<u64> = (0..32).map(|zone| zone * 512).collect();
    let found = offsets("rw=read,bs=64k,zonemode=strided,zonesize=128k,zonerange=256k,zoneskip=256k");
    assert_eq!(found.len(), 256);
    assert_eq!(found[..64], in_zones(&all, 64, 2));
    assert_eq!(found[64..68], [0, 64, 512, 576], "round and round, to the size in all");
    // More to transfer than a zone has: the zone again.
    let found = offsets("rw=read,bs=64k,zonesize=384k,zonerange=256k,zoneskip=512k");
    assert_eq!(found[..12], [0, 64, 128, 192, 0, 64, 768, 832, 896, 960, 768, 832]);
    assert_eq!(found.len(), 256);
    // The last zone is cut short by the end of the region.
    let found = offsets("rw=read,bs=512k,zonemode=strided,zonesize=4m,zoneskip=1m,io_size=40m");
    let round = [in_zones(&[0, 5120, 10_240], 512, 8), in_zones(&[15_360], 512, 2)].concat();
    assert_eq!(found.len(), 80);
    assert_eq!(found[..52], [&round[..], &round].concat());
}

#[test]
fn a_write_goes_where_the_trim_before_it_went_also_at_the_end_of_a_strided_zone() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let found = offsets(&format!("rw={rw},bs=64k,zonemode=strided,zonesize=64k,zonerange=256k"));
        assert!(found.len() > 64, "{rw}: {found:?}");
        assert!(found.chunks_exact(2).all(|pair| pair[0] == pair[1]), "{rw}: {found:?}");
        assert_eq!(found[2] / 256, 1, "{rw}: the next pair is in the next zone: {found:?}");
    }
}

#[test]
fn zones_with_write_pointers_are_written_as_fio_writes_them() {
    let found = offsets("rw=write,bs=64k,zonemode=zbd,zonesize=1m,zonecapacity=768k,size=4m,io_size=5m");
    assert_eq!(found[..60], in_zones(&[0, 1024, 2048, 3072, 0], 64, 12));
    assert_eq!(found.len(), 80);
    let found = offsets("rw=write,bs=256k,zonemode=zbd,zonesize=1m,zoneskip=1m,size=16m");
    let round = in_zones(&[0, 2048, 4096, 6144, 8192, 10_240, 12_288, 14_336], 256, 4);
    assert_eq!(found, [&round[..], &round].concat());
    // Sizes by randomness: those of reads, since all is sequential.
    let found = offsets("rw=rw,rwmixread=0,bs=4k,128k,zonemode=zbd,zonesize=128k,bs_is_seq_rand=1,number_ios=3");
    assert_eq!(found, [0, 4, 8]);
    // A block that does not divide the zone: the next offset is in the same zone, which is full and is reset.
    let found = offsets("rw=write,bs=384k,zonemode=zbd,zonesize=1m,size=3m,io_size=4m");
    assert_eq!(found, [0, 384, 0, 384, 0, 384, 0, 384, 0, 384, 0]);
    assert_eq!(offsets("rw=trim,bs=1m,zonemode=zbd,zonesize=1m,size=4m"), [0, 1024, 2048, 3072]);
    // Writes of 4 KiB that a random map of 1 KiB blocks cuts short.
    let line = "rw=randrw,bs=1k,4k,zonemode=zbd,zonesize=128k,size=1m,read_beyond_wp=1";
    let mut cut = FioJob::parse_line(line).and_then(|job| job.generator(16 << 20, 1)).expect(line);
    let sent = requests(&mut cut).expect(line);
    assert!(sent.iter().any(|request| request.op == Op::Write && request.sectors < 8), "some are cut");
    assert!(sent.iter().all(|request| request.sectors > 0), "none is cut to nothing");
    let line = "rw=read,bs=256k,zonemode=zbd,zonesize=1m,size=4m";
    let mut empty = FioJob::parse_line(line).and_then(|job| job.generator(16 << 20, 1)).expect(line);
    let error = requests(&mut empty).expect_err("there is nothing to read").to_string();
    assert!(error.contains("no zone of the job's region has data"), "{error}");
}

/// A drive of 8 zones of 64 sectors with a capacity of 48; its limits are held, resets come before rewrites, and no
/// request breaks a rule: a model of a few lines checks each.
#[test]
fn requests_for_a_zoned_drive_break_no_rule() {
    let shape = ZoneShape { size: 64, capacity: 48, count: 8, write_unit: 8, max_open: 3, max_active: 4 };
    for line in [
        "rw=randwrite,bs=4k,iodepth=8,zonemode=zbd,io_size=4m",
        "rw=write,bs=8k,iodepth=4,numjobs=3,zonemode=zbd,io_size=1m",
        "rw=randrw,bssplit=4k/50:12k/50,iodepth=4,zonemode=zbd,io_size=2m,max_open_zones=2",
        "rw=randwrite,bs=4k,zonemode=zbd,io_size=2m,job_max_open_zones=1,numjobs=2",
        "rw=randrw,bs=4k,zonemode=zbd,offset=2z,size=3z,io_size=8z,zone_reset_threshold=0.1,zone_reset_frequency=0.05",
        "rw=randtrim,bs=32k,zonemode=zbd,io_size=512k",
        "rw=randread,bs=8k,zonemode=zbd,io_size=512k",
    ] {
        for begun in [[0_u64; 8], [48, 8, 0, 48, 16, 48, 0, 8]] {
            let job = FioJob::parse_line(line).expect(line);
            let mut workload = job.generator_on(8 * 64 * SECTOR_BYTES, Some(shape), 1).expect(line);
            let mut written = begun;
            let mut told = begun.iter().map(|sectors| (sectors * SECTOR_BYTES, *sectors > 0 && *sectors < 48));
            workload.begin_zones(&mut told);
            assert_eq!(workload.command_set(), Some("zoned"));
            let has_reads_alone = line.starts_with("rw=randread,") || line.starts_with("rw=randtrim,");
            if has_reads_alone && begun == [0; 8] {
                assert!(requests(&mut workload).is_err(), "{line}: nothing is written");
                continue;
            }
            let mut resets = 0;
            let sent = match requests(&mut workload) {
                Ok(sent) => sent,
                // Random trims end when every zone is empty.
                Err(error) => {
                    assert!(line.starts_with("rw=randtrim,"), "{line}: {error}");
                    continue;
                }
            };
            for request in sent {
                let (zone, within) = ((request.sector / 64) as usize, request.sector % 64);
                assert!(within + request.sectors <= 48 || request.opcode == RESET, "{line}: {request:?}");
                match request.op {
                    Op::Write => {
                        assert_eq!(within, written[zone], "{line}: {request:?}");
                        written[zone] += request.sectors;
                    }
                    Op::Read => assert!(within + request.sectors <= written[zone], "{line}: {request:?}"),
                    Op::Trim => {
                        assert_eq!((request.opcode, within, request.sectors), (RESET, 0, 64), "{line}");
                        written[zone] = 0;
                        resets += 1;
                    }
                    _ => panic!("{line}: {request:?}"),
                }
                let active = written.iter().filter(|sectors| **sectors > 0 && **sectors < 48).count();
                let was_active = begun.iter().filter(|sectors| **sectors > 0 && **sectors < 48).count();
                assert!(active <= was_active.max(3), "{line}: {written:?}");
            }
            assert_eq!(resets > 0, !line.contains("randread,"), "{line}");
        }
    }
    let refused = |line: &str| {
        let job = FioJob::parse_line(line).expect(line);
        job.generator_on(8 * 64 * SECTOR_BYTES, Some(shape), 1).err().expect(line).to_string()
    };
    for (line, part) in [
        ("rw=randwrite,bs=4k", "use zonemode=zbd"),
        ("rw=randwrite,bs=4k,zonemode=zbd,zonesize=64k", "the drive's 32768 bytes"),
        ("rw=randwrite,bs=4k,zonemode=zbd,zonecapacity=32k", "the drive's 24576 bytes"),
        ("rw=randwrite,bs=2k,zonemode=zbd", "the drive's write unit, 4096 bytes"),
        ("rw=randwrite,bs=4k,zonemode=zbd,max_open_zones=5", "at most 3 open or active zones"),
    ] {
        assert!(refused(line).contains(part), "{line}: {}", refused(line));
    }
}

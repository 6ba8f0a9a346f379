//! Runs on a drive of zones: fio's `zonemode=zbd`, traces with commands of the set, preconditioning; verified by sector.

use ssdlab_device::{Allocation, DriveConfig, Settings};
use ssdlab_lab::{Experiment, Preconditioning, ReplayOptions, TextSource};

use crate::common::{assert_checks_hold, drive, duts, experiment, run};

/// Ten zones with a capacity of three quarters of their size, at most four of them open.
fn zoned() -> DriveConfig {
    let mut config = drive("zoned");
    let geometry = &mut config.flash.geometry;
    (geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip, geometry.planes_per_die) = (3, 2, 1, 1);
    (geometry.blocks_per_plane, geometry.pages_per_block, geometry.page_bytes) = (16, 32, 4096);
    config.ftl.design = "aftl-zoned".to_string();
    config.ftl.mapping_unit = 4096;
    config.ftl.allocation = Allocation::Dynamic;
    config.ftl.own = Settings::default().with("max_open_zones", 4_u64).with("max_active_zones", 6_u64);
    config.buffer.policy = "none".to_string();
    config.user_bytes = 10 * 6 * 32 * 4096;
    config
}

fn text(workload: &str) -> TextSource {
    TextSource::open(workload, ReplayOptions::default(), 1).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn jobs_in_zones_are_verified_and_write_each_byte_once() {
    let drives = duts(&[zoned()]);
    for line in [
        "rw=randwrite,bs=16k,iodepth=32,zonemode=zbd,io_size=40m",
        "rw=randrw,bssplit=4k/50:32k/50,iodepth=8,numjobs=3,zonemode=zbd,io_size=10m,fsync=32",
        "rw=write,bs=64k,iodepth=4,zonemode=zbd,io_size=30m,zone_reset_threshold=0.3,zone_reset_frequency=0.1",
        "rw=randtrim,bs=1m,number_ios=5,zonemode=zbd",
    ] {
        for preconditioning in [Preconditioning::None, Preconditioning::Fill] {
            if line.starts_with("rw=randtrim") && matches!(preconditioning, Preconditioning::None) {
                continue;
            }
            let workload = text(line);
            let result = run(&Experiment { verify: true, ..experiment(&drives, &workload, preconditioning) });
            assert_checks_hold(&result);
            let device = &result.devices[0];
            let programs = |cause: &str| device.flash.programs.by_cause.get(cause).copied().unwrap_or(0);
            assert_eq!(programs("host"), device.bytes.write / 4096, "{line}");
            assert_eq!(programs("gc"), 0, "{line}");
            assert_eq!(device.capacity.user_bytes, drives[0].config.user_bytes, "the zones' capacities, without holes");
            let commands = device.commands.as_ref().expect("the drive has a set");
            let reset = &commands.by_name["reset"];
            assert!(reset.completed > 0 || line.contains("10m"), "{line}: {reset:?}");
            assert_eq!((reset.refused, reset.failed), (0, 0), "{line}");
        }
    }
}

#[test]
fn a_trace_appends_and_its_places_are_verified() {
    let size = 1_u64 << 20;
    let mut trace = "time_us,op,offset_bytes,length_bytes\n".to_string();
    for round in 0..20_u64 {
        for zone in 0..3 {
            trace += &format!("{}.000,zoned:append,{},{}\n", round * 50, zone * size, 4096 * (1 + round % 3));
        }
    }
    trace += &format!("2000.000,zoned:finish,0,{size}\n2000.000,zoned:reset,{size},{}\n", 2 * size);
    trace += &format!("9000.000,R,0,786432\n9000.000,zoned:append,{size},8192\n9500.000,R,{size},8192\n");
    let path = std::env::temp_dir().join(format!("ssdlab-zones-{}.csv", std::process::id()));
    std::fs::write(&path, trace).expect("the temporary folder is writable");
    let workload = text(&path.display().to_string());
    let drives = duts(&[zoned()]);
    let result = run(&Experiment { verify: true, ..experiment(&drives, &workload, Preconditioning::None) });
    std::fs::remove_file(&path).expect("it was written");
    assert_checks_hold(&result);
    let device = &result.devices[0];
    let commands = device.commands.as_ref().expect("the drive has a set");
    assert!(commands.by_name.values().all(|count| count.failed == 0), "{:?}", commands.by_name);
    let pages: u64 = (0..20).map(|round| 1 + round % 3).sum();
    let programs = |cause: &str| device.flash.programs.by_cause.get(cause).copied().unwrap_or(0);
    assert_eq!(programs("host"), 3 * pages + 2);
    // The finished zone is filled; the resets are in no record, since nothing was flushed.
    assert_eq!(programs("metadata"), 192 - pages);
}

/// `--verify` gives commands tags of its own, which can equal tags of the trace. An append that completed together with a report
/// was expected where the first word of the report's answer said, because that answer had its tag of the trace already.
#[test]
fn an_append_that_completes_together_with_a_report_is_verified_at_its_own_place() {
    let size = 1_u64 << 20;
    let mut config = zoned();
    config.timed = false;
    let mut trace = "time_us,op,offset_bytes,length_bytes\n".to_string();
    // The first command is alone, so from then on the two kinds of tags differ by one.
    trace += &format!("0.000,zoned:finish,0,{size}\n");
    trace += &format!("1.000,zoned:report,0,0,0 10\n1.000,zoned:append,{},16384\n", 5 * size);
    let path = std::env::temp_dir().join(format!("ssdlab-reports-{}.csv", std::process::id()));
    std::fs::write(&path, trace).expect("the temporary folder is writable");
    let workload = text(&path.display().to_string());
    let drives = duts(&[config]);
    let result = run(&Experiment { verify: true, ..experiment(&drives, &workload, Preconditioning::None) });
    std::fs::remove_file(&path).expect("it was written");
    assert_checks_hold(&result);
}

/// Plain writes at the write pointers need no other command of the set; the first write elsewhere is named.
#[test]
fn a_trace_of_plain_writes_at_the_write_pointers_runs() {
    let size = 1_u64 << 20;
    let mut trace = "time_us,op,offset_bytes,length_bytes\n".to_string();
    for round in 0..20_u64 {
        for zone in [0, 3, 7] {
            trace += &format!("{}.000,W,{},8192\n", round * 50, zone * size + round * 8192);
        }
    }
    trace += &format!("9000.000,R,0,163840\n9000.000,R,{},163840\n", 7 * size);
    let path = std::env::temp_dir().join(format!("ssdlab-plain-{}.csv", std::process::id()));
    std::fs::write(&path, &trace).expect("the temporary folder is writable");
    let workload = text(&path.display().to_string());
    let drives = duts(&[zoned()]);
    let result = run(&Experiment { verify: true, ..experiment(&drives, &workload, Preconditioning::None) });
    assert_checks_hold(&result);
    let device = &result.devices[0];
    assert_eq!(device.host.failed_requests, 0);
    assert_eq!(device.flash.programs.by_cause["host"], 3 * 20 * 2);

    let refused = |more: &str| {
        std::fs::write(&path, format!("{trace}{more}")).expect("the temporary folder is writable");
        let workload = text(&path.display().to_string());
        let stop = std::sync::atomic::AtomicBool::new(false);
        let control = ssdlab_lab::Control::new(&stop, &ssdlab_lab::NoProgress);
        ssdlab_lab::run(&experiment(&drives, &workload, Preconditioning::None), None, &control)
            .expect_err("refused")
            .to_string()
    };
    let gap = refused(&format!("9001.000,W,{},4096\n", 3 * size + 167_936));
    let told = "request 63 writes at byte 3313664, and the write pointer of its zone is at 3309568";
    assert!(gap.contains(told), "{gap}");
    let beyond = refused(&format!("9001.000,W,{size},1048576\n"));
    assert!(beyond.contains("request 63 writes from byte 1048576 beyond the capacity of its zone"), "{beyond}");
    std::fs::remove_file(&path).expect("it was written");
}

#[test]
fn what_does_not_go_with_zones_is_refused() {
    let drives = duts(&[zoned()]);
    let refused = |line: &str, preconditioning: Preconditioning<'_>| {
        let workload = text(line);
        let progress = ssdlab_lab::NoProgress;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let control = ssdlab_lab::Control::new(&stop, &progress);
        ssdlab_lab::run(&experiment(&drives, &workload, preconditioning), None, &control).expect_err(line).to_string()
    };
    for (line, preconditioning, part) in [
        (
            "rw=randwrite,bs=4k",
            Preconditioning::None,
            "the drive has zones, and accepts writes only at their write pointers",
        ),
        ("model:msnfs,requests=100", Preconditioning::None, "only at the write pointers of its zones"),
        ("rw=randread,bs=4k,zonemode=zbd", Preconditioning::None, "no zone of the job's region has data"),
        ("rw=randwrite,bs=4k,zonemode=zbd", Preconditioning::Steady, "--precondition none or fill"),
        ("rw=randwrite,bs=4k,zonemode=zbd", Preconditioning::Footprint, "--precondition none or fill"),
        ("rw=randwrite,bs=4k,zonemode=zbd,max_open_zones=5", Preconditioning::None, "at most 4 open or active zones"),
    ] {
        let message = refused(line, preconditioning);
        assert!(message.contains(part), "{line}: {message}");
    }
}

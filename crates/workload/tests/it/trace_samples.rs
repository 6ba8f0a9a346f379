//! Every sample of the formats folder is recognised, and read as its README says.

use ssdlab_base::{Op, Request};
use ssdlab_workload::trace::Trace;

use crate::shared::shared;

fn read_all(trace: &mut Trace) -> Vec<Request> {
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace.read(&mut batch).expect("the sample is sound") > 0 {
        all.extend_from_slice(&batch);
    }
    all
}

/// A file, its format, reads writes trims flushes, the first request's sector and sectors, the last time in ns, FUA
/// writes, devices.
type Sample = (&'static str, &'static str, [usize; 4], (u64, u64), u64, usize, usize);

const SAMPLES: [Sample; 27] = [
    ("alibaba_block_2020.csv", "alibaba", [1, 4, 0, 0], (247_468_088, 8), 527_000, 0, 5),
    ("blkparse_dbbench_discard.txt", "blkparse", [2, 281, 10, 0], (4_194_352, 8), 931_241_400, 10, 1),
    ("blkparse_default_hadoop.txt", "blkparse", [25, 1, 0, 0], (1_444_645_666, 256), 2_600_276_248, 0, 1),
    ("blkparse_nvme_java.txt", "blkparse", [35, 0, 0, 0], (282_624, 8), 337_166_606, 0, 1),
    ("blkparse_ycsb_ext4.txt", "blkparse", [100, 0, 0, 0], (4_938_888, 256), 256_103_002, 0, 1),
    ("cloudphysics_400.csv", "vscsi-csv", [0, 400, 0, 0], (42_932_745, 1), 111_000_000_000, 0, 0),
    ("cloudphysics_400.vscsi", "vscsi", [0, 400, 0, 0], (42_932_745, 1), 111_611_520_000, 0, 0),
    ("disksim_iozone.trace", "disksim", [0, 300, 0, 0], (6_357_144, 8), 4_445_124_000, 0, 1),
    ("disksim_pages_financial1.trace", "disksim-pages", [48, 252, 0, 0], (303_574, 8), 9_161_933_000, 0, 1),
    ("fio_iolog_v2.log", "fio-v2", [0, 297, 0, 0], (126_480, 8), 0, 0, 1),
    ("fio_iolog_v3.log", "fio-v3", [0, 10, 10, 0], (0, 4_194_304), 73_000, 0, 1),
    ("fiu_iodedup_cheetah.blkparse", "fiu", [283, 17, 0, 0], (508_516_672, 8), 1_743_768_229, 0, 1),
    ("linnos_replay_msr.trace", "linnos", [10, 290, 0, 0], (391_848, 8), 13_001_474_000, 0, 1),
    ("linnos_result_tencent.trace", "flashnet", [214, 86, 0, 0], (9_616, 8), 1_002_732_000, 0, 0),
    ("mqsim_tpcc.trace", "ssdsim", [204, 196, 0, 0], (1_728_006_842, 16), 12_031_000, 0, 16),
    ("mqsim_websearch1.trace", "ssdsim", [300, 0, 0, 0], (657_728, 16), 768_863_000, 0, 4),
    ("ms_etw_msnfs_sample.csv", "ms-etw", [759, 167, 0, 1], (0, 0), 1_542_347_000, 0, 4),
    ("msr_cambridge_hm_0.csv", "msr", [4, 296, 0, 0], (17_687_528, 4), 55_984_123_300, 0, 1),
    ("msr_cambridge_web_3.csv", "msr", [6, 294, 0, 0], (63, 16), 293_837_278_300, 0, 1),
    ("spc_umass_financial1.spc", "spc", [101, 299, 0, 0], (303_567, 7), 12_104_498_000, 0, 13),
    ("ssdsim_financial1.ascii", "ssdsim", [101, 299, 0, 0], (303_567, 7), 12_104_498_046, 0, 13),
    ("systor17.csv", "systor17", [277, 22, 0, 0], (8_312_597_631, 240), 738_701_000, 0, 1),
    ("systor17_additional.csv", "systor17", [205, 94, 0, 0], (397_399_216, 64), 346_074_000, 0, 1),
    ("tencent_cbs.csv", "tencent", [189, 211, 0, 0], (18_144_432, 128), 1_000_000_000, 0, 91),
    ("tracetracker_msrc_hm_1.txt", "tracetracker", [158, 42, 0, 0], (1_572_960, 8), 38_355_100, 0, 1),
    ("ucare_ms_msnfs.trace", "disksim", [299, 1, 0, 0], (174_224_064, 16), 163_297_000, 0, 1),
    ("wiscsee_events.txt", "wiscsee", [4, 145, 1, 0], (584, 8), 526_802_630, 0, 0),
];

#[test]
fn every_sample_is_recognised_and_read() {
    let Some(folder) = shared("traces/formats") else { return };
    for (file, format, counts, first, last_ns, fua, devices) in SAMPLES {
        let path = folder.join(file);
        let mut trace = Trace::open(path.to_str().expect("a plain path")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(trace.format().name(), format, "{file}");
        let all = read_all(&mut trace);
        let count = |op| all.iter().filter(|request| request.op == op).count();
        assert_eq!([count(Op::Read), count(Op::Write), count(Op::Trim), count(Op::Flush)], counts, "{file}");
        assert_eq!((all[0].sector, all[0].sectors), first, "{file}");
        assert_eq!(all[0].at.0, 0, "{file}");
        assert_eq!(all[all.len() - 1].at.0, last_ns, "{file}");
        assert_eq!(all.iter().filter(|request| request.fua).count(), fua, "{file}");
        assert_eq!(trace.devices().len(), devices, "{file}");
        assert_eq!(trace.counts().bad, 0, "{file}");
    }
    let there = std::fs::read_dir(folder).expect("readable").count();
    assert_eq!(there, SAMPLES.len(), "every file of the folder is in the table");
}

#[test]
fn the_same_trace_in_two_formats_is_the_same_trace() {
    let Some(folder) = shared("traces/formats") else { return };
    let open = |file: &str| {
        let mut trace = Trace::open(folder.join(file).to_str().expect("a plain path")).expect("opens");
        read_all(&mut trace)
    };
    // SSDSim's stamps were floats once, and its writer rounded lengths up to sectors.
    let (spc, ssdsim) = (open("spc_umass_financial1.spc"), open("ssdsim_financial1.ascii"));
    assert_eq!(spc.len(), ssdsim.len());
    for (left, right) in spc.iter().zip(&ssdsim) {
        assert_eq!((left.op, left.sector, left.sectors), (right.op, right.sector, right.sectors));
        assert!(left.at.0.abs_diff(right.at.0) < 1_000, "{left:?} {right:?}");
    }
    let (binary, text) = (open("cloudphysics_400.vscsi"), open("cloudphysics_400.csv"));
    for (left, right) in binary.iter().zip(&text) {
        assert_eq!((left.op, left.sector, left.sectors), (right.op, right.sector, right.sectors));
    }
}

#[test]
fn the_converted_traces_begin_as_their_sources_do() {
    let Some(folder) = shared("traces") else { return };
    for (converted, source) in [
        ("msr_web_3_31k.csv.zst", "msr_cambridge_web_3.csv"),
        ("msr_hm_0_head_1k.csv.zst", "msr_cambridge_hm_0.csv"),
        ("cloudphysics_vscsi_114k.csv.zst", "cloudphysics_400.vscsi"),
        ("iozone_100k.csv.zst", "disksim_iozone.trace"),
        ("msps_msnfs_disk5_150k.csv.zst", "ucare_ms_msnfs.trace"),
        ("msr_cut_rw20_80_10k.csv.zst", "linnos_replay_msr.trace"),
        ("fiu_mail_cheetah_10k.csv.zst", "fiu_iodedup_cheetah.blkparse"),
    ] {
        let mut ours = Trace::open(folder.join("formats").join(source).to_str().expect("plain")).expect("opens");
        let ours = read_all(&mut ours);
        let mut theirs = Trace::open(folder.join(converted).to_str().expect("plain")).expect("opens");
        let theirs = read_all(&mut theirs);
        let mut same = 0;
        for (left, right) in ours.iter().zip(&theirs) {
            assert_eq!((left.op, left.sector, left.sectors), (right.op, right.sector, right.sectors), "{source}");
            assert!(left.at.0.abs_diff(right.at.0) <= 1_000, "{source}: {left:?} {right:?}");
            same += 1;
        }
        assert!(same >= 200, "{source}");
    }
}

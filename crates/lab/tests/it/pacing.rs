//! Collection that keeps pace with the host (`gc.pacing`): in steady state the host's rate stays level, and write
//! amplification is what it is without pacing.

use std::path::Path;

use ssdlab_device::{Description, DriveConfig, Superblock};
use ssdlab_lab::{DeviceResult, Preconditioning, TextSource};

use crate::common::{Random, assert_checks_hold, duts, experiment, run};

/// A demonstration drive with blocks of a quarter of their pages, so that it is soon in steady state.
fn drive(name: &str, pacing: &str) -> DriveConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices").join(format!("{name}.toml"));
    let mut description = Description::load(&path).unwrap_or_else(|error| panic!("{error}"));
    let pages = description.resolve().expect("it ships").flash.geometry.pages_per_block / 4;
    for setting in [format!("flash.pages_per_block={pages}"), "capacity.user=2g".into(), format!("gc.pacing={pacing}")]
    {
        description.set(&setting).unwrap_or_else(|error| panic!("{error}"));
    }
    description.resolve().unwrap_or_else(|error| panic!("{error}"))
}

/// One drive in steady state under writes, or under 70 % of reads.
fn steady(config: DriveConfig, read_percent: u32, requests: u64) -> DeviceResult {
    let drives = duts(&[config]);
    let workload = Random { read_percent, ..Random::writes(requests) };
    let mut result = run(&experiment(&drives, &workload, Preconditioning::Steady));
    assert_checks_hold(&result);
    result.devices.remove(0)
}

/// Standard deviation over mean of the requests of 100 ms intervals.
fn variation(device: &DeviceResult) -> f64 {
    let variation = device.rate_variation;
    assert!(variation.interval_ns == 100_000_000 && variation.intervals >= 30, "{variation:?}");
    variation.cv.expect("intervals")
}

#[test]
fn paced_collection_keeps_the_rate_level_and_write_amplification_as_it_was() {
    for name in ["demo-slc", "demo-tlc", "demo-qlc"] {
        let [off, on] = ["off", "proportional"].map(|pacing| steady(drive(name, pacing), 0, 150_000));
        let [off_wa, on_wa] = [&off, &on].map(|device| device.write_amplification.as_ref().expect("it wrote").total);
        assert!((on_wa / off_wa - 1.0).abs() < 0.01, "{name}: {on_wa} with pacing, {off_wa} without");
        let [off, on] = [&off, &on].map(variation);
        println!("{name}: {on_wa:.3} of {off_wa:.3}, {on:.3} of {off:.3}");
        assert!(on < 0.1, "{name}: the rate varies by {on} with pacing");
        assert!(off > 2.0 * on, "{name}: the rate varies by {off} without pacing, {on} with it");
    }
}

#[test]
fn reads_beside_paced_collection_wait_less() {
    let [off, on] = ["off", "proportional"].map(|pacing| {
        let device = steady(drive("demo-tlc", pacing), 70, 300_000);
        device.latency_ns.read.expect("it read").p999
    });
    println!("{on} of {off}");
    assert!(on * 4 < off * 3, "p99.9 of reads is {on} ns with pacing, {off} ns without");
}

/// A flush brings more pages at once than collection may lag behind: on a drive with free blocks it waits for programs alone.
#[test]
fn a_drive_that_collects_nothing_stalls_nobody() {
    for superblock in [Superblock::None, Superblock::Die, Superblock::Drive] {
        let [off, on] = ["off", "proportional"].map(|pacing| {
            let mut config = drive("demo-slc", pacing);
            config.ftl.superblock = superblock;
            let line = "rw=randwrite,bs=8k,size=100%,iodepth=16,fsync=128,number_ios=20000";
            let workload = TextSource::open(line, Default::default(), 1).unwrap_or_else(|error| panic!("{error}"));
            let drives = duts(&[config]);
            let mut result = run(&experiment(&drives, &workload, Preconditioning::None));
            assert_checks_hold(&result);
            result.devices.remove(0)
        });
        assert_eq!((on.gc.victims(), on.gc.stalled_commands, on.gc.stall_ns), (0, 0, 0), "{superblock:?}");
        assert_eq!(off.latency_ns.flush, on.latency_ns.flush, "{superblock:?}: flushes wait for their programs alone");
    }
}

//! Disks of a few lines, and hosts that keep a number of commands in them.

use std::path::{Path, PathBuf};

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Completion, Data};
use ssdlab_disk::{Disk, DiskConfig};
use ssdlab_flash::Contents;

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The disk that ships.
pub(crate) fn shipped(sets: &[&str]) -> DiskConfig {
    let path = repository().join("devices/wd1502faex.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_string()).collect();
    DiskConfig::parse(&text, "wd1502faex.toml", &sets).unwrap_or_else(|error| panic!("{error}"))
}

/// 10 ms a rotation, 100 us a sector, two heads, 50 cylinders; no time on the link or in the controller, no reading ahead.
pub(crate) const ROUND: &str = r#"
name = "round"
[disk]
rpm = 6000
heads = 2
zones = [{ cylinders = 50, sectors = 100 }]
head_switch = "300us"
head_skew = "400us"
cylinder_skew = "2ms"
[disk.seek]
settle = "1ms"
knee_cylinders = 49
knee = "8ms"
full_stroke = "8ms"
[disk.interface]
bandwidth = 0
[disk.read_cache]
ahead = 0
"#;

/// [`ROUND`] with overrides.
pub(crate) fn round(sets: &[&str]) -> DiskConfig {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_string()).collect();
    DiskConfig::parse(ROUND, "round.toml", &sets).unwrap_or_else(|error| panic!("{error}"))
}

/// A disk that keeps nothing of its contents.
pub(crate) fn disk(config: &DiskConfig) -> Disk {
    Disk::new(config, Contents::Nothing)
}

/// One command to its end.
pub(crate) fn one(disk: &mut Disk, request: Request) -> Completion {
    disk.submit(&Request { at: disk.now(), ..request }, Data::Nothing);
    assert!(disk.run_to_completion(Nanos::HORIZON), "a command ends");
    let completions = std::mem::take(disk.completions());
    assert_eq!(completions.len(), 1);
    completions[0]
}

/// Keeps `depth` commands in the disk until `count` have ended, and says how long that took.
pub(crate) fn closed_loop(disk: &mut Disk, depth: usize, count: usize, mut next: impl FnMut() -> Request) -> Nanos {
    let begin = disk.now();
    let (mut sent, mut ended) = (0, 0);
    while ended < count {
        while sent < count && sent - ended < depth {
            disk.submit(&Request { at: disk.now(), ..next() }, Data::Nothing);
            sent += 1;
        }
        assert!(disk.run_to_completion(Nanos::HORIZON), "a command ends");
        ended += disk.completions().len();
        disk.completions().clear();
    }
    disk.now() - begin
}

/// A read of `sectors` sectors.
pub(crate) fn read(sector: u64, sectors: u64) -> Request {
    Request::new(Op::Read, sector, sectors)
}

/// A write of `sectors` sectors.
pub(crate) fn write(sector: u64, sectors: u64) -> Request {
    Request::new(Op::Write, sector, sectors)
}

/// Asserts that a number is within a share of what is expected.
pub(crate) fn within(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found / expected - 1.0).abs() <= share, "{what}: found {found}, expected {expected}");
}

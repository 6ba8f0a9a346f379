//! What a drive is said to take in the simulator is held against what it takes: what the allocator handed out at the most,
//! and the arrays beside it.
#![allow(unsafe_code, reason = "an allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Description, Drive, DriveConfig, Options};
use ssdlab_flash::{Contents, mapped_bytes};

/// Bytes handed out now, and the most since the peak was set.
static HEAP: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator as it is; counting beside it touches no memory that it gives.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = HEAP.fetch_add(layout.size() as u64, Ordering::Relaxed) + layout.size() as u64;
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HEAP.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counted while `work` runs: what is taken then and was not before. The arrays that are there at its end count whole.
fn taken<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let (heap, mapped) = (HEAP.load(Ordering::Relaxed), mapped_bytes());
    PEAK.store(heap, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed) - heap + mapped_bytes() - mapped, result)
}

fn shipped(name: &str, set: &[&str]) -> DriveConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices").join(format!("{name}.toml"));
    let mut description = Description::load(&path).expect("it ships");
    for assignment in set {
        description.set(assignment).unwrap_or_else(|error| panic!("{error}"));
    }
    description.resolve().unwrap_or_else(|error| panic!("{error}"))
}

/// Writes the drive full, and then `count` requests of up to `sectors` sectors at random.
fn use_it(drive: &mut Drive, count: u64, sectors: u64) {
    let user = drive.user_sectors();
    let mut random = rng(7, "memory");
    drive.set_timed(false);
    for first in (0..user).step_by(2048) {
        write(drive, first, 2048.min(user - first));
    }
    drive.set_timed(true);
    for _ in 0..count {
        let length = random.random_range(1..=sectors);
        write(drive, random.random_range(0..=user - length), length);
    }
}

fn write(drive: &mut Drive, sector: u64, sectors: u64) {
    let request = Request { at: drive.now(), ..Request::new(Op::Write, sector, sectors) };
    drive.submit_with(&request, Data::Nothing);
    while drive.outstanding() > 0 && drive.run_to_completion(Nanos::MAX) {}
    drive.completions().clear();
}

/// Drives, what they keep, requests after the fill and their sectors, and how much of what is said is taken at least.
type Case = (&'static str, &'static [&'static str], Contents, u64, u64, f64);

const CASES: [Case; 16] = [
    ("bench-32g", &[], Contents::Nothing, 0, 8, 0.85),
    ("demo-slc", &[], Contents::Nothing, 30_000, 8, 0.85),
    ("demo-tlc", &["capacity.user=1g", "flash.blocks_per_plane=32"], Contents::Stamps, 30_000, 8, 0.85),
    ("demo-tlc", &["buffer.policy=none", "buffer.size=0"], Contents::Nothing, 0, 8, 0.85),
    ("demo-qlc", &["buffer.policy=lirs"], Contents::Nothing, 30_000, 8, 0.8),
    ("demo-slc", &["flash.blocks_per_plane=64", "capacity.user=448m"], Contents::Bytes, 3_000, 8, 0.85),
    ("waflash-256g-4k", ONE_DIE_LRU, Contents::Nothing, 30_000, 8, 0.8),
    ("waflash-256g-16k", ONE_DIE, Contents::Stamps, 20_000, 32, 0.85),
    ("waflash-256g-16k", MV, Contents::Nothing, 40_000, 8, 0.5),
    ("waflash-256g-16k", MV_COMPACTED, Contents::Nothing, 40_000, 8, 0.5),
    ("waflash-256g-16k", MV_COMPACTED, Contents::Stamps, 20_000, 8, 0.8),
    ("waflash-256g-16k", MV_DIRECT, Contents::Stamps, 5_000, 8, 0.85),
    ("demo-slc", BAST, Contents::Nothing, 20_000, 8, 0.6),
    ("demo-slc", FAST, Contents::Stamps, 5_000, 8, 0.6),
    ("demo-slc", AFTL, Contents::Nothing, 0, 8, 0.85),
    ("demo-slc", AFTL_SMALL, Contents::Stamps, 0, 8, 0.75),
];

const BAST: &[&str] = &[
    "ftl.design=bast",
    "ftl.superblock=none",
    "ftl.allocation=dynamic",
    "gc.pacing=off",
    "flash.blocks_per_plane=64",
    "capacity.user=384m",
];
const FAST: &[&str] = &["ftl.design=fast", BAST[1], BAST[2], BAST[3], BAST[4], BAST[5]];
const AFTL: &[&str] = &["ftl.design=aftl", BAST[1], BAST[2], BAST[3], "buffer.policy=none"];
const AFTL_SMALL: &[&str] = &[AFTL[0], AFTL[1], AFTL[2], AFTL[3], AFTL[4], BAST[4], BAST[5]];
const ONE_DIE: &[&str] = &["flash.channels=1", "flash.chips_per_channel=1", "flash.dies_per_chip=1", "buffer.size=4m"];
const ONE_DIE_LRU: &[&str] = &["flash.channels=1", "flash.chips_per_channel=1", "buffer.policy=pc-lru"];
const MV: &[&str] = &[ONE_DIE[0], ONE_DIE[1], ONE_DIE[2], ONE_DIE[3], "ftl.design=mvftl"];
const MV_COMPACTED: &[&str] = &[MV[0], MV[1], MV[2], MV[3], MV[4], "ftl.compaction=true"];
const MV_DIRECT: &[&str] = &[MV[0], MV[1], MV[2], MV[3], MV[4], "ftl.version_index=direct"];

#[test]
fn a_drive_takes_what_it_is_said_to_take() {
    for (name, set, contents, count, sectors, share) in CASES {
        let config = shipped(name, set);
        let said = Drive::simulator_bytes(&config, contents).expect("a known design");
        let (taken, _drive) = taken(|| {
            let mut drive = Drive::new(&config, Options { seed: 1, contents }).expect("an accepted drive");
            use_it(&mut drive, count, sectors);
            drive
        });
        let which = format!("{name} {set:?} {contents:?}: {said} bytes said, {taken} taken");
        println!("{which} ({:.3})", taken as f64 / said as f64);
        assert!(taken <= said, "{which}");
        assert!(taken as f64 >= said as f64 * share, "{which}");
    }
}

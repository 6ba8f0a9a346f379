//! Memory that an experiment is said to take is held against what it takes: preconditioning, verification and snapshots
//! included, drives one after the other.
#![allow(unsafe_code, reason = "an allocator that counts can only be written so")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Random, drive, entrants, experiment};
use ssdlab_flash::mapped_bytes;
use ssdlab_lab::memory::BESIDES;
use ssdlab_lab::{Age, Control, Experiment, Quiet, SnapshotCache};

/// Bytes handed out now.
static HEAP: AtomicU64 = AtomicU64::new(0);
/// The most of them and of the arrays beside them, looked at whenever something is handed out.
static PEAK: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator as it is; counting beside it touches no memory that it gives.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = HEAP.fetch_add(layout.size() as u64, Ordering::Relaxed) + layout.size() as u64;
        PEAK.fetch_max(now + mapped_bytes(), Ordering::Relaxed);
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

/// The most that a run takes, in bytes.
fn peak(experiment: &Experiment<'_>) -> u64 {
    let before = HEAP.load(Ordering::Relaxed) + mapped_bytes();
    PEAK.store(before, Ordering::Relaxed);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &Quiet);
    let result = ssdlab_lab::run(experiment, None, &control).expect("the experiment is sound");
    assert_eq!(result.devices.len(), experiment.drives.len());
    PEAK.load(Ordering::Relaxed) - before
}

#[test]
fn a_run_takes_what_it_is_said_to_take() {
    let large = |name: &str, blocks_per_plane: u32| {
        let mut config = drive(name);
        config.flash.geometry.blocks_per_plane = blocks_per_plane;
        config.user_bytes = config.flash.geometry.bytes() / 4096 * 10 / 12 * 4096;
        config
    };
    let drives = entrants(&[large("first", 4096), large("second", 2048), large("third", 4096)]);
    let folder = tempfile::tempdir().expect("a folder");
    let cache = SnapshotCache::at(folder.path()).worth_keeping(Duration::ZERO);
    let workload = Random::mixed(20_000);
    for (what, run) in [
        ("verified", Experiment { verify: true, ..experiment(&drives, &workload, Age::Fill) }),
        ("kept", Experiment { snapshots: Some(&cache), ..experiment(&drives, &workload, Age::Fill) }),
        ("found", Experiment { snapshots: Some(&cache), ..experiment(&drives, &workload, Age::Fill) }),
    ] {
        let each = run.memory().expect("known designs");
        let largest = each.iter().map(ssdlab_lab::Memory::total).max().expect("three drives");
        let taken = peak(&run);
        println!("{what}: {largest} bytes said beside {BESIDES}, {taken} taken");
        assert!(taken <= largest + BESIDES, "{what}: {taken} of {largest}");
        assert!(taken as f64 >= largest as f64 * 0.8, "{what}: {taken} of {largest}");
    }
}

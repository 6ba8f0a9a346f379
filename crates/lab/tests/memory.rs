//! Memory that an experiment is said to take is held against what it takes: preconditioning, verification and snapshots
//! included, drives one after the other and side by side.
#![allow(unsafe_code, reason = "an allocator that counts can only be written so")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Random, drive, entrants, experiment};
use ssdlab_flash::mapped_bytes;
use ssdlab_lab::memory::BESIDES;
use ssdlab_lab::{Age, Control, Experiment, Memory, Quiet, SnapshotCache};

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
    let cache = SnapshotCache::at(folder.path()).worth_keeping(Duration::ZERO).checkpoint_every(Duration::ZERO);
    let workload = Random::mixed(20_000);
    let alone = || experiment(&drives, &workload, Age::Fill);
    let each = alone().memory().expect("known designs");
    let verified = Experiment { verify: true, ..alone() }.memory().expect("known designs");
    let largest = |each: &[Memory], count: usize| {
        let mut bytes: Vec<u64> = each.iter().map(|memory| memory.total() + BESIDES).collect();
        bytes.sort_unstable();
        bytes.iter().rev().take(count).sum::<u64>()
    };
    let scarce = largest(&verified, 2) - 1;
    let plenty = u64::MAX;
    for (what, said, run) in [
        ("verified", largest(&verified, 1), Experiment { verify: true, ..alone() }),
        ("kept", largest(&each, 1), Experiment { snapshots: Some(&cache), ..alone() }),
        ("found", largest(&each, 1), Experiment { snapshots: Some(&cache), ..alone() }),
        ("two at a time", largest(&each, 2), Experiment { jobs: 2, memory_bytes: plenty, ..alone() }),
        ("two verified", largest(&verified, 2), Experiment { jobs: 2, verify: true, memory_bytes: plenty, ..alone() }),
        ("as many as fit", scarce, Experiment { jobs: 3, verify: true, memory_bytes: scarce, ..alone() }),
    ] {
        let taken = peak(&run);
        println!("{what}: {said} bytes said, {taken} taken");
        assert!(taken <= said, "{what}: {taken} of {said}");
        // Side by side the peaks need not fall together, and what is said BESIDES is for what is larger than here.
        let least = if run.jobs == 1 { (said - BESIDES) as f64 * 0.8 } else { 0.0 };
        assert!(taken as f64 >= least, "{what}: {taken} of {said}");
    }
}

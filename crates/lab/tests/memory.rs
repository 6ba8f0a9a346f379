//! Memory that an experiment is said to take is held against what it takes: preconditioning, verification and snapshots
//! included, drives one after the other and side by side.
#![allow(unsafe_code, reason = "an allocator that counts can only be written so")]

#[allow(dead_code, reason = "tests of the other program need the rest")]
#[path = "it/common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::{Random, drive, duts, experiment};
use rand::RngExt as _;
use ssdlab_base::{Nanos, rng};
use ssdlab_device::Description;
use ssdlab_flash::mapped_bytes;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{MakeOptions, Options};
use ssdlab_lab::files::{FilesRun, FilesWork, HostTime, run_files};
use ssdlab_lab::memory::{BESIDES, Part};
use ssdlab_lab::{
    Breakdown, Control, DeviceUnderTest, Experiment, Memory, NoProgress, Preconditioning, ReplayOptions, SnapshotCache,
    TextSource,
};
use ssdlab_workload::files::Personality;

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

/// The most that something takes, in bytes.
fn peak_of(run: impl FnOnce(&Control<'_>)) -> u64 {
    let before = HEAP.load(Ordering::Relaxed) + mapped_bytes();
    PEAK.store(before, Ordering::Relaxed);
    let stop = AtomicBool::new(false);
    run(&Control::new(&stop, &NoProgress));
    PEAK.load(Ordering::Relaxed) - before
}

/// The most that a run takes, in bytes.
fn peak(experiment: &Experiment<'_>) -> u64 {
    peak_of(|control| {
        let result = ssdlab_lab::run(experiment, None, control).expect("the experiment is sound");
        assert_eq!(result.devices.len(), experiment.drives.len());
    })
}

/// One test at a time: bytes are counted in one place.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_run_takes_what_it_is_said_to_take() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let large = |name: &str, blocks_per_plane: u32| {
        let mut config = drive(name);
        config.flash.geometry.blocks_per_plane = blocks_per_plane;
        config.user_bytes = config.flash.geometry.bytes() / 4096 * 10 / 12 * 4096;
        config
    };
    let drives = duts(&[large("first", 4096), large("second", 2048), large("third", 4096)]);
    let folder = tempfile::tempdir().expect("a folder");
    let cache = SnapshotCache::at(folder.path()).worth_keeping(Duration::ZERO).checkpoint_every(Duration::ZERO);
    let workload = Random::mixed(20_000);
    let alone = || experiment(&drives, &workload, Preconditioning::Fill);
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

/// Workloads with many requests in flight or large random maps, runs that list slow requests or have a timeline of their
/// own: none of what is drawn takes more than it was said to, and each of them would without its part of the estimate.
#[test]
fn drawn_settings_take_no_more_than_they_are_said_to() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut large = drive("large");
    large.flash.geometry.blocks_per_plane = 1024;
    large.user_bytes = large.flash.geometry.bytes() / 4096 * 10 / 12 * 4096;
    let drives = duts(&[large]);
    let mut drawn = [0; 5];
    for seed in 0..6 {
        let mut random = rng(seed, "settings that take memory");
        let mut draw = |of: &[u64]| of[random.random_range(0..of.len())];
        let spec = match seed % 3 {
            // Reads of what was never written are quick.
            0 => format!("rw=randread,bs=4k,iodepth=1000,numjobs={},number_ios=1000", draw(&[110, 130])),
            1 => format!("rw=randwrite,bsrange=512-16k,numjobs={},number_ios=2", draw(&[600, 900])),
            _ => {
                let mode = ["randwrite", "randread", "randrw", "write", "randtrim"][draw(&[0, 1, 2, 3, 4]) as usize];
                let size = ["bs=4k", "bs=16k", "bsrange=512-16k"][draw(&[0, 1, 2]) as usize];
                format!("rw={mode},{size},iodepth={},number_ios=6000", draw(&[1, 32, 1000]))
            }
        };
        let workload = TextSource::open(&spec, ReplayOptions::default(), seed).expect("a workload");
        // Of what is in flight in great number, paths are kept: that is more than what is said for the rest of a run.
        let least = if seed % 3 == 0 { 1 } else { 0 };
        let slowest = [None, Some(0), Some(5_000)][draw(&[least, 1, 2]) as usize];
        let interval = [None, Some(Nanos::from_us(1))][draw(&[0, 0, 1]) as usize];
        let run = Experiment {
            verify: draw(&[0, 0, 1]) == 1,
            breakdown: slowest.map(|slowest| Breakdown { slowest }),
            timeline_interval: interval,
            ..experiment(&drives, &workload, Preconditioning::None)
        };
        let memory = run.memory().expect("known designs").remove(0);
        let (said, taken) = (memory.total() + BESIDES, peak(&run));
        println!(
            "{spec}, slowest {slowest:?}, interval {interval:?}, verify {}: {said} said, {taken} taken: {:?}",
            run.verify, memory.parts
        );
        assert!(taken <= said, "{spec}: {taken} of {said}, {:?}", memory.parts);
        for (part, _) in &memory.parts {
            let place = match part {
                Part::InFlight(_) => 0,
                Part::RandomMaps => 1,
                Part::Workload => 2,
                Part::Slowest(_) => 3,
                Part::Timeline => 4,
                Part::Cache | Part::Metadata | Part::Check | Part::Layers => panic!("{part:?} of a run of a drive"),
            };
            drawn[place] += 1;
        }
    }
    for (place, draws) in drawn.iter().enumerate() {
        assert!(*draws > 0, "part {place} was never drawn");
    }
}

/// A file run with a small cache or a large one, verified or not, with many small files or few large ones.
#[test]
fn file_runs_take_no_more_than_they_are_said_to() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = "name = \"segments\"\n[flash]\nchannels = 4\nchips_per_channel = 4\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 520\npages_per_block = 64\npage_size = \"4k\"\n\
                timing = { read = \"75us\", program = \"478us\", erase = \"3.8ms\", transfer = \"33.3us\" }\n\
                [capacity]\nuser = \"2g\"\n[ftl]\ndesign = \"aftl\"\nallocation = \"dynamic\"\nsegment_levels = \"ways\"\n";
    let config = Description::parse(text, "segments").and_then(|text| text.resolve()).expect("a description");
    let dut = DeviceUnderTest { label: config.name.clone(), config };
    for (settings, cache, verify) in [
        (["files=40000", "mean_size=8k"], 1 << 20, false),
        (["files=40000", "mean_size=8k"], 1 << 30, true),
        (["files=60", "mean_size=16m"], 1 << 30, false),
        (["files=60", "mean_size=16m"], 8 << 20, true),
    ] {
        let mut personality = Personality::open("fileserver").expect("it ships");
        settings.iter().for_each(|setting| personality.set(setting).expect(setting));
        let run = FilesRun {
            dut: &dut,
            host: None,
            kind: FileSystemKind::of_name("alfs").expect("it is one"),
            make: MakeOptions::default(),
            options: Options { cache, ..Options::default() },
            host_time: HostTime::read(&[], "--host-time").expect("defaults"),
            work: FilesWork::Personality(&personality),
            until: None,
            operations: Some(3000),
            seed: 1,
            is_cold: false,
            verify,
            check: true,
            command: Vec::new(),
        };
        let memory = run.memory().expect("a known design");
        let said = memory.total() + BESIDES;
        let taken = peak_of(|control| drop(run_files(&run, control).expect("a sound run")));
        println!("{settings:?}, cache {cache}, verify {verify}: {said} said, {taken} taken: {memory:?}");
        assert!(taken <= said, "{settings:?}, cache {cache}, verify {verify}: {taken} of {said}: {memory:?}");
    }
}

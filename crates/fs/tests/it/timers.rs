//! Periods much shorter than what a drive takes: no timer goes off again and again while nothing happens.

use ssdlab_base::Nanos;
use ssdlab_flash::Contents;
use ssdlab_fs::call::WriteMode;
use ssdlab_fs::config::Fsync;
use ssdlab_fs::kinds::KINDS;
use ssdlab_fs::{Call, Content, FileSystem, MakeOptions, Options, ROOT};
use ssdlab_host::Device;
use ssdlab_torture::files::{small_block_drive, small_drive};

use crate::drive::{cache, call, create, drive};

/// Bytes of a write call.
const PART: u64 = 200 * 4096;

/// Options with all periods so short.
fn short(period: u64) -> Options {
    let period = Nanos(period);
    Options {
        dirty_limit: 100,
        dirty_background: 100,
        dirty_expiry: period,
        dirty_period: period,
        checkpoint_period: period,
        cleaning_period: period,
        ..cache(6000)
    }
}

/// Makes a file system of each kind on a drive that two files of two parts fill.
fn each(options: &Options, run: impl Fn(&'static str, FileSystem)) {
    for kind in KINDS {
        // Groups of blocks need room for a journal.
        let segment = if kind.overwrites { 1 << 20 } else { 128 << 10 };
        let make = MakeOptions { kind, segment, journal: 1 << 20, over_provisioning: 50, ..MakeOptions::default() };
        let device: Box<dyn Device> = match kind.name {
            "alfs" => drive(72, Contents::Bytes),
            _ => small_block_drive(2400, Contents::Bytes),
        };
        run(kind.name, FileSystem::make(device, &make, options).expect("a file system"));
    }
}

/// Runs until no event comes, or up to a number of events; how many there were.
fn events(fs: &mut FileSystem, most: u64) -> u64 {
    let mut events = 0;
    while events < most
        && let Some(at) = fs.next_event()
    {
        fs.run_until(at);
        events += 1;
    }
    events
}

/// Blocks that were written or read, and segments that were trimmed: commands have at least one.
fn written(fs: &FileSystem) -> u64 {
    let metrics = fs.metrics();
    metrics.all_blocks() + metrics.loaded_blocks + metrics.trimmed_segments
}

/// Old dirty pages for which there is no room wait until something makes room. A command of the drive may take any number of periods.
#[test]
fn old_pages_without_room_are_not_looked_for_before_something_happens() {
    for (period, fsync) in [(1, Fsync::RollForward), (273, Fsync::Checkpoint)] {
        let options = Options { fsync, ..short(period) };
        each(&options, |kind, mut fs| {
            let files = ["a", "b"].map(|name| create(&mut fs, ROOT, name).expect("a file"));
            call(&mut fs, Call::Sync).expect("a sync");
            for round in 0..4_u8 {
                fs.reset_metrics();
                for file in files {
                    for offset in [0, PART] {
                        let (length, content) = (PART as u32, Content::Bytes(vec![round; PART as usize]));
                        fs.submit(Call::Write { file, offset, length, content, mode: WriteMode::default() }, 0);
                    }
                }
                // A write command has some blocks. Its end is an event, and one look may follow.
                let count = events(&mut fs, 10_000);
                let (blocks, levels) = (written(&fs), fs.levels());
                assert!(count < 2 * blocks, "{kind}: {count} events for {blocks} blocks, {levels:?}");
                assert_eq!(levels.dirty_blocks, 0, "{kind}");
                assert_eq!(fs.answers().drain(..).filter(|answer| answer.result.is_ok()).count(), 4, "{kind}");
            }
        });
    }
}

/// Cleaning in each period, with check-points between, ends, also where overwrites fill one block of a write unit of four.
#[test]
fn cleaning_in_each_period_comes_to_rest() {
    for (page, pages, segments) in [("16k", 1, 120), ("16k", 2, 72)] {
        let make = MakeOptions { over_provisioning: 20, ..MakeOptions::default() };
        let device = small_drive(segments, Contents::Bytes, page, pages);
        let mut fs = FileSystem::make(device, &make, &short(1)).expect("a file system");
        let files: Vec<_> = (0..20).map(|at| create(&mut fs, ROOT, &format!("f{at}")).expect("a file")).collect();
        let mode = WriteMode { is_direct: true, ..WriteMode::default() };
        let mut word = 7_u64;
        for step in 0..600_u64 {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
            let (file, offset) = (files[(word >> 33) as usize % 20], (word >> 43) % 20 * 4096);
            let content = Content::Bytes(vec![step as u8; 4096]);
            fs.submit(Call::Write { file, offset, length: 4096, content, mode }, 0);
            if step % 3 == 0 {
                events(&mut fs, 300);
            }
        }
        assert!(fs.metrics().cleaned_segments > 50, "{:?}", fs.metrics());
        let count = events(&mut fs, 1000);
        assert!(count < 1000, "{page}: {:?}", fs.metrics());
    }
}

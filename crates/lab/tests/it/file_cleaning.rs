//! What cleaning of a log-structured file system copies, against theory.

use rand::RngExt;
use ssdlab_base::{Nanos, rng};
use ssdlab_flash::Contents;
use ssdlab_fs::call::{BLOCK_BYTES, WriteMode};
use ssdlab_fs::{Call, Content, FileId, FileSystem, MakeOptions, Options, ROOT, Reply};
use ssdlab_lab::theory;
use ssdlab_torture::files::small_drive;

/// Segments of the drive, and blocks of each: two of them on each of two channels.
const SEGMENTS: u32 = 640;
const BLOCKS: u32 = 64;
/// Calls in flight.
const DEPTH: usize = 16;

/// Makes calls, so many in flight, and waits for all.
fn run(fs: &mut FileSystem, calls: impl Iterator<Item = Call>) {
    let wait = |fs: &mut FileSystem, left: usize| {
        while fs.outstanding() > left && fs.run_to_completion(Nanos::MAX) {
            fs.answers().drain(..).for_each(|answer| assert_eq!(answer.result, Ok(Reply::Done)));
        }
    };
    for call in calls {
        fs.submit(call, 0);
        wait(fs, DEPTH - 1);
    }
    wait(fs, 0);
}

fn write(file: FileId, block: u64) -> Call {
    let (offset, length) = (block * BLOCK_BYTES, BLOCK_BYTES as u32);
    let mode = WriteMode { is_direct: true, ..WriteMode::default() };
    Call::Write { file, offset, length, content: Content::Nothing, mode }
}

/// Direct overwrites of single blocks, uniformly, with one log for data: what is copied is what greedy cleaning of as many segments as
/// have data copies in theory.
#[test]
fn copies_under_uniform_overwrites_are_those_of_greedy_cleaning() {
    let make = MakeOptions { logs: 2, ..MakeOptions::default() };
    let mount =
        Options { cache: 64 << 20, checkpoint_period: Nanos::ZERO, cleaning_period: Nanos::ZERO, ..Options::default() };
    for full in [70, 85] {
        let mut fs = FileSystem::make(small_drive(SEGMENTS, Contents::Nothing, "4k", BLOCKS / 4), &make, &mount)
            .expect("a file system");
        fs.submit(Call::Create { directory: ROOT, name: b"file".to_vec() }, 0);
        fs.run_to_completion(Nanos::MAX);
        let Some(Ok(Reply::Found(found))) = fs.answers().pop().map(|answer| answer.result) else { panic!("a file") };
        let file = found.file;
        let blocks = u64::from(SEGMENTS * BLOCKS) * full / 100;
        run(&mut fs, (0..blocks).map(|block| write(file, block)));
        let mut rng = rng(full, "file cleaning");
        let mut overwrite = |_| write(file, rng.random_range(0..blocks));
        run(&mut fs, (0..4 * blocks).map(&mut overwrite));
        fs.reset_metrics();
        let (mut space, mut samples) = (0.0, 0.0);
        for _ in 0..blocks / 100 {
            run(&mut fs, (0..250).map(&mut overwrite));
            // Half of the open segment is not written yet.
            space += f64::from(fs.levels().log_segments[0]) - 0.5;
            samples += 1.0;
        }
        let metrics = fs.metrics();
        let data = fs.shape().data_blocks as f64;
        let spare = space / samples * data / blocks as f64;
        let found = 1.0 + metrics.moved_blocks as f64 / metrics.data_blocks as f64;
        let expected = theory::greedy(spare, data as u32).expect("more space than data");
        assert!(
            (found / expected - 1.0).abs() < 0.02,
            "{full} % full, {spare:.4} times the space: found {found:.4}, expected {expected:.4} ({metrics:?})"
        );
    }
}

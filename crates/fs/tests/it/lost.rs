//! Media that lose blocks: what cleaning cannot read is marked as lost, and nothing else is.

use ssdlab_base::Nanos;
use ssdlab_flash::{Contents, FaultKind};
use ssdlab_fs::call::WriteMode;
use ssdlab_fs::check::check;
use ssdlab_fs::{Call, Content, Errno, FileId, FileSystem, Job, MakeOptions, Options, ROOT, Reply};

use crate::drive::{cache, call, create, drive, read};

/// Failures of reads that are asked for: more than one command with all its repetitions takes.
const FAILURES: u32 = 24;

fn write_past_the_cache(file: FileId, block: u64, value: u8) -> Call {
    let mode = WriteMode { is_direct: true, ..WriteMode::default() };
    Call::Write { file, offset: block * 4096, length: 4096, content: Content::Bytes(vec![value; 4096]), mode }
}

/// Runs a call to its end. Reads fail as soon as cleaning has asked for blocks of data; true if that was so.
fn run(fs: &mut FileSystem, one: Call) -> bool {
    fs.submit(one, 1);
    let mut asked = None;
    while fs.answers().is_empty() {
        let is_cleaning = fs.jobs().contains(&Job::Cleaning);
        let loaded = fs.metrics().loaded_blocks;
        match asked {
            None if is_cleaning => asked = Some(loaded),
            // The summary of the segment comes first.
            Some(before) if is_cleaning && loaded >= before + 2 => {
                for _ in 0..FAILURES {
                    fs.device_mut().drives_mut()[0].device.fail_next(FaultKind::Read, None);
                }
                while fs.answers().is_empty() {
                    let at = fs.next_event().expect("the call ends");
                    fs.run_until(at);
                }
                assert_eq!(fs.answers().pop().map(|answer| answer.result), Some(Ok(Reply::Done)));
                return true;
            }
            _ => {}
        }
        let at = fs.next_event().expect("the call ends");
        fs.run_until(at);
    }
    assert_eq!(fs.answers().pop().map(|answer| answer.result), Some(Ok(Reply::Done)));
    false
}

/// Blocks whose reads fail. All others are as they were written.
fn lost(fs: &mut FileSystem, file: FileId, values: &[u8]) -> Vec<u64> {
    let mut lost = Vec::new();
    for (block, value) in (0..).zip(values) {
        match read(fs, file, block * 4096, 4096) {
            Ok(found) => assert!(found.iter().all(|byte| byte == value), "block {block}"),
            Err(errno) => {
                assert_eq!(errno, Errno::Io, "block {block}");
                lost.push(block);
            }
        }
    }
    lost
}

#[test]
fn a_block_that_cleaning_cannot_read_is_lost_and_nothing_else() {
    let mut device = drive(64, Contents::Bytes);
    device.drives_mut()[0].device.expect_faults();
    let options = Options { checkpoint_period: Nanos::ZERO, cleaning_period: Nanos::ZERO, ..cache(4000) };
    let mut fs = FileSystem::make(device, &MakeOptions::default(), &options).expect("a file system");
    let file = create(&mut fs, ROOT, "a").expect("a file");
    let mut values = Vec::new();
    while call(&mut fs, write_past_the_cache(file, values.len() as u64, 1)).is_ok() {
        values.push(1);
    }
    call(&mut fs, Call::Sync).expect("a sync");
    let mut at = 1_u64;
    let mut has_failed = false;
    for _ in 0..6_000 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = (at >> 33) as usize % values.len();
        values[block] = (at >> 50) as u8 | 1;
        if run(&mut fs, write_past_the_cache(file, block as u64, values[block])) {
            has_failed = true;
            break;
        }
    }
    assert!(has_failed, "cleaning reads data: {:?}", fs.metrics());
    // What was asked for and not met by then fails reads of no file any more.
    let until = Nanos(fs.now().0 + 100_000_000);
    fs.run_until(until);
    assert_eq!(fs.read_only_reason(), None);
    let count = fs.metrics().lost_blocks;
    assert!(count > 0, "{:?}", fs.metrics());
    for _ in 0..FAILURES {
        let _ = read(&mut fs, file, 0, 4096);
        fs.drop_caches();
    }
    let gone = lost(&mut fs, file, &values);
    assert_eq!(gone.len() as u64, count, "{gone:?}");
    // A mount finds the same, and the check finds nothing against it.
    let (device, found) = check(fs.unmount().map_err(|(reason, _)| reason).expect("an unmount"));
    assert_eq!(found.expect("a file system").problems, []);
    let mut fs = FileSystem::mount(device, &options).expect("a mount");
    assert_eq!(lost(&mut fs, file, &values), gone);
    // A part of a lost block cannot be written, the whole can.
    let (first, content) = (gone[0], Content::Bytes(vec![9; 100]));
    let part = Call::Write { file, offset: first * 4096 + 10, length: 100, content, mode: WriteMode::default() };
    assert_eq!(call(&mut fs, part), Err(Errno::Io));
    assert_eq!(call(&mut fs, write_past_the_cache(file, first, 9)), Ok(Reply::Done));
    values[first as usize] = 9;
    assert_eq!(lost(&mut fs, file, &values), gone[1..]);
}

//! In-place updates of LFS: what an overwritten page costs, when a policy acts, and what is there after a crash.

use ssdlab_base::Nanos;
use ssdlab_fs::call::{Sync, WriteMode};
use ssdlab_fs::config::{Fsync, InPlace};
use ssdlab_fs::{Call, Content, FileId, FileSystem, Metrics, Options, ROOT};
use ssdlab_host::Device;

use crate::drive::{call, create, read, write};
use crate::lfs::{fsync, made, sound, still};

fn with(in_place: InPlace) -> Options {
    Options { in_place, ..still() }
}

/// A file of so many blocks, which a check-point has.
fn synced(fs: &mut FileSystem, name: &str, blocks: u64) -> FileId {
    let file = create(fs, ROOT, name).expect("a file");
    (0..blocks).for_each(|block| {
        write(fs, file, block * 4096, &[1; 4096]).expect("room");
    });
    call(fs, Call::Sync).expect("a sync");
    file
}

fn metadata_blocks(metrics: &Metrics) -> u64 {
    metrics.node_blocks
        + metrics.directory_blocks
        + metrics.map_blocks
        + metrics.usage_blocks
        + metrics.checkpoint_blocks
}

/// Pages of a synced file are written again, some of them through an index block. In place, an fsync writes the data alone, and a mount finds
/// it through the nodes that were there before. In logs, the inode and the index block follow.
#[test]
fn an_fsync_of_pages_that_were_written_in_place_writes_their_data_alone() {
    for in_place in [InPlace::Always, InPlace::Off] {
        let options = with(in_place);
        let mut fs = made(6000, &options);
        let file = synced(&mut fs, "a", 1000);
        let blocks: Vec<u64> = (0..1000).step_by(11).collect();
        let count = blocks.len() as u64;
        for round in 1..4_u64 {
            fs.reset_metrics();
            for block in &blocks {
                write(&mut fs, file, block * 4096, &[round as u8 + 1; 4096]).expect("room");
            }
            fsync(&mut fs, file);
            let metrics = fs.metrics();
            assert_eq!((metrics.data_blocks, metrics.checkpoints), (count, 0), "round {round}: {metrics:?}");
            if in_place == InPlace::Always {
                assert_eq!((metrics.in_place_blocks, metadata_blocks(&metrics), metrics.rolled_fsyncs), (count, 0, 0));
            } else {
                assert_eq!((metrics.in_place_blocks, metrics.node_blocks, metrics.rolled_fsyncs), (0, 2, 1));
            }
            // Nothing is dirty that an fsync writes: the next one adds nothing.
            let before = fs.metrics();
            fsync(&mut fs, file);
            assert_eq!(fs.metrics(), before);
        }
        let mut fs = FileSystem::mount(sound(fs.into_device()), &options).expect("a mount");
        for block in 0..1000 {
            let found = read(&mut fs, file, block * 4096, 4096).expect("it is there");
            let expected = if block % 11 == 0 { 4 } else { 1 };
            assert!(found.iter().all(|byte| *byte == expected), "block {block} has {}", found[0]);
        }
    }
}

/// What changes a node is written as ever: blocks behind the end, holes, and the size within the last block.
#[test]
fn what_has_no_place_and_what_makes_a_file_longer_changes_nodes() {
    let mut fs = made(6000, &with(InPlace::Always));
    let file = create(&mut fs, ROOT, "a").expect("a file");
    write(&mut fs, file, 8 * 4096, &[1; 100]).expect("room");
    call(&mut fs, Call::Sync).expect("a sync");
    // Offset, bytes; data blocks in place, and nodes.
    for (offset, bytes, in_place, nodes) in
        [(8 * 4096, 50, 1, 0), (8 * 4096 + 90, 20, 1, 1), (4096, 4096, 0, 1), (4096, 4096, 1, 0), (9 * 4096, 10, 0, 1)]
    {
        fs.reset_metrics();
        write(&mut fs, file, offset, &vec![2; bytes]).expect("room");
        fsync(&mut fs, file);
        let metrics = fs.metrics();
        let found = (metrics.in_place_blocks, metrics.node_blocks);
        // The end of the file was cleared behind its last byte, in its place, when the last write made it longer.
        let cleared = u64::from(offset == 9 * 4096);
        assert_eq!(found, (in_place + cleared, nodes), "{bytes} bytes at {offset}: {metrics:?}");
        assert_eq!(metrics.data_blocks, 1 + cleared);
    }
    fs = FileSystem::mount(sound(fs.into_device()), &with(InPlace::Always)).expect("a mount");
    assert_eq!(read(&mut fs, file, 8 * 4096 + 48, 4), Ok(vec![2, 2, 1, 1]));
    assert_eq!(read(&mut fs, file, 8 * 4096 + 108, 4), Ok(vec![2, 2, 0, 0]));
    assert_eq!(read(&mut fs, file, 9 * 4096, 100), Ok(vec![2; 10]));
}

/// Where each fsync is a check-point, it still is one.
#[test]
fn an_fsync_that_is_a_check_point_makes_all_durable() {
    let options = Options { fsync: Fsync::Checkpoint, ..with(InPlace::Always) };
    let mut fs = made(6000, &options);
    let file = synced(&mut fs, "a", 10);
    fs.reset_metrics();
    let other = create(&mut fs, ROOT, "b").expect("a file");
    write(&mut fs, file, 0, &[2; 8192]).expect("room");
    fsync(&mut fs, file);
    assert_eq!((fs.metrics().in_place_blocks, fs.metrics().data_blocks, fs.metrics().checkpoints), (2, 2, 1));
    let mut fs = FileSystem::mount(sound(fs.into_device()), &options).expect("a mount");
    assert_eq!(read(&mut fs, file, 0, 2), Ok(vec![2, 2]));
    assert_eq!(read(&mut fs, other, 0, 2), Ok(Vec::new()));
}

/// A file grows, and pages of it are written again at random. Each policy writes one in place only where its condition holds, and then nearly
/// always: not where a log is about to write the segment again.
#[test]
fn each_policy_acts_only_where_its_condition_holds() {
    for in_place in [InPlace::Short, InPlace::Full, InPlace::ShortAndFull, InPlace::Off] {
        let mut fs = made(4000, &with(in_place));
        let shape = fs.shape();
        let levels = fs.levels();
        let main = levels.free_segments + levels.log_segments.iter().map(|count| u64::from(*count)).sum::<u64>();
        let kept = main - shape.user_blocks / shape.segment_blocks;
        let file = create(&mut fs, ROOT, "a").expect("a file");
        let (mut blocks, mut word, mut seen) = (0_u64, 7_u64, [[0; 2]; 2]);
        for step in 0..6000_u64 {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
            if step % 2 == 0 && fs.levels().valid_blocks * 100 < shape.user_blocks * 90 {
                write(&mut fs, file, blocks * 4096, &[1; 4096]).expect("room");
                blocks += 1;
                fsync(&mut fs, file);
                continue;
            }
            let levels = fs.levels();
            let is_short = levels.free_segments < kept;
            let is_full = levels.valid_blocks * 100 > shape.user_blocks * 70;
            let holds = match in_place {
                InPlace::Off => false,
                InPlace::Always => true,
                InPlace::Short => is_short,
                InPlace::Full => is_full,
                InPlace::ShortAndFull => is_short && is_full,
            };
            let before = fs.metrics().in_place_blocks;
            write(&mut fs, file, (word >> 33) % blocks * 4096, &[2; 4096]).expect("room");
            fsync(&mut fs, file);
            let is_in_place = fs.metrics().in_place_blocks > before;
            assert!(holds || !is_in_place, "{in_place:?} in step {step}: {levels:?}, {kept} segments are kept");
            seen[usize::from(holds)][usize::from(is_in_place)] += 1;
        }
        let [[logged, _], [refused, placed]] = seen;
        println!("{in_place:?}: {logged} went to logs, {placed} were written in place, {refused} could not be");
        assert!(
            logged > 500 && (in_place == InPlace::Off || placed > 500 && refused * 20 < placed),
            "{in_place:?}: {seen:?}"
        );
        sound(fs.into_device());
    }
}

/// A page is changed while it is being written in place. The second write could overtake the first: it goes to the log.
#[test]
fn writes_of_a_page_do_not_overtake_each_other() {
    let options = with(InPlace::Always);
    let mut fs = made(6000, &options);
    let file = synced(&mut fs, "a", 4);
    fs.reset_metrics();
    let mode = WriteMode { is_direct: true, sync: Sync::No };
    for round in 2..5_u8 {
        let content = Content::Bytes(vec![round; 4096]);
        fs.submit(Call::Write { file, offset: 4096, length: 4096, content, mode }, round.into());
    }
    while fs.answers().len() < 3 {
        let at = fs.next_event().expect("a write ends");
        fs.run_until(at);
    }
    fs.answers().clear();
    assert_eq!((fs.metrics().in_place_blocks, fs.metrics().data_blocks), (1, 3));
    fsync(&mut fs, file);
    let mut fs = FileSystem::mount(sound(fs.into_device()), &options).expect("a mount");
    assert_eq!(read(&mut fs, file, 4095, 3), Ok(vec![1, 4, 4]));
}

/// Segments are cleaned, or written again by logs, while pages in them are overwritten; over crashes of the host, what is there stays right.
#[test]
fn cleaning_goes_on_beside_writes_in_place() {
    for threaded_logging in [true, false] {
        let options = Options { threaded_logging, ..with(InPlace::Always) };
        let mut fs = made(4000, &options);
        let files = ["a", "b"].map(|name| create(&mut fs, ROOT, name).expect("a file"));
        let (blocks, mut word) = (1100_u64, 7_u64);
        let mut contents = vec![0_u8; blocks as usize];
        // Blocks of both lie one beside the other.
        for block in 0..blocks {
            for file in files {
                write(&mut fs, file, block * 4096, &[0; 4096]).expect("room");
                if block % 16 == 0 {
                    fsync(&mut fs, file);
                }
            }
        }
        call(&mut fs, Call::Sync).expect("a sync");
        fs.reset_metrics();
        let mut name = b"b".to_vec();
        for step in 0..4000_u64 {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
            let block = (word >> 33) % blocks;
            contents[block as usize] = step as u8;
            write(&mut fs, files[0], block * 4096, &[step as u8; 4096]).expect("room");
            if step % 50 == 49 {
                fsync(&mut fs, files[0]);
            }
            // Another file takes the place of the second one by and by, four times.
            if step % 1000 == 100 {
                call(&mut fs, Call::Unlink { directory: ROOT, name: name.clone() }).expect("it was there");
                name = format!("n{step}").into_bytes();
                let file = create(&mut fs, ROOT, &format!("n{step}")).expect("a file");
                for block in 0..blocks {
                    write(&mut fs, file, block * 4096, &[9; 4096]).expect("room");
                }
                fsync(&mut fs, file);
            }
            if step == 2999 {
                fs = FileSystem::mount(sound(fs.into_device()), &options).expect("a mount");
            }
        }
        fsync(&mut fs, files[0]);
        let metrics = fs.metrics();
        assert!(metrics.in_place_blocks > 900, "{metrics:?}");
        assert!(metrics.threaded_segments + metrics.cleaned_segments > 0, "{metrics:?}");
        let mut fs = FileSystem::mount(sound(fs.into_device()), &options).expect("a mount");
        for (block, content) in (0_u64..).zip(&contents) {
            assert_eq!(read(&mut fs, files[0], block * 4096, 1), Ok(vec![*content]), "block {block}");
        }
    }
}

/// The drive after a power cut.
fn without_power(mut fs: FileSystem) -> Box<dyn Device> {
    fs.cut(0, &mut |_| None);
    fs.settle();
    let mut device = fs.into_device();
    while device.run_to_completion(Nanos::MAX) {
        device.completions().clear();
    }
    device
}

/// The drive has a write cache. What an fsync covers is not lost with it, also where the fsync found nothing to write: write-out had done it.
#[test]
fn an_fsync_flushes_what_was_written_in_place() {
    let options = with(InPlace::Always);
    for is_direct in [false, true] {
        let mut fs = made(6000, &options);
        let file = synced(&mut fs, "a", 8);
        let flushes = |fs: &FileSystem| fs.device().taken().requests[3];
        let before = flushes(&fs);
        let content = Content::Bytes(vec![2; 4 * 4096]);
        let mode = WriteMode { is_direct, sync: Sync::No };
        call(&mut fs, Call::Write { file, offset: 0, length: 4 * 4096, content, mode }).expect("room");
        assert_eq!(flushes(&fs), before);
        fsync(&mut fs, file);
        assert_eq!((fs.metrics().in_place_blocks, flushes(&fs)), (4, before + 1));
        fsync(&mut fs, file);
        assert_eq!(flushes(&fs), before + 1, "nothing is left to flush");
        let device = without_power(fs);
        let mut fs = FileSystem::mount(sound(device), &options).expect("a mount");
        assert_eq!(read(&mut fs, file, 4 * 4096 - 1, 2), Ok(vec![2, 1]));
    }
}

/// The host crashes while the drive has writes in its cache alone. A mount shows them, since the nodes lead to their places: a power cut behind it
/// must not take them back.
#[test]
fn what_a_mount_shows_is_not_lost_with_the_power() {
    let options = with(InPlace::Always);
    let mut fs = made(6000, &options);
    let file = synced(&mut fs, "a", 8);
    let content = Content::Bytes(vec![2; 4 * 4096]);
    let mode = WriteMode { is_direct: true, sync: Sync::No };
    call(&mut fs, Call::Write { file, offset: 0, length: 4 * 4096, content, mode }).expect("room");
    for _ in 0..2 {
        fs = FileSystem::mount(fs.into_device(), &options).expect("a mount");
        assert_eq!(read(&mut fs, file, 4 * 4096 - 1, 2), Ok(vec![2, 1]));
    }
    let mut fs = FileSystem::mount(sound(without_power(fs)), &options).expect("a mount");
    assert_eq!(read(&mut fs, file, 4 * 4096 - 1, 2), Ok(vec![2, 1]));
}

/// A file is made shorter and written, and the host crashes before its node is. Its size is the old one then: behind the new end are
/// zeroes, as if it had become longer again, and not what was there before the truncation.
#[test]
fn a_page_with_the_end_of_its_file_is_written_with_zeroes_behind_it() {
    let options = Options { dirty_expiry: Nanos(1_000_000), dirty_period: Nanos(1_000_000), ..with(InPlace::Always) };
    let mut fs = made(6000, &options);
    let file = synced(&mut fs, "a", 1);
    call(&mut fs, Call::Truncate { file, size: 3365 }).expect("a truncation");
    write(&mut fs, file, 0, &[2; 3326]).expect("room");
    let until = Nanos(fs.now().0 + 10_000_000);
    fs.run_until(until);
    assert_eq!((fs.metrics().in_place_blocks, fs.levels().dirty_blocks), (1, 0));
    let mut fs = FileSystem::mount(sound(fs.into_device()), &options).expect("a mount");
    let expected: Vec<u8> =
        [(2, 3326), (1, 39), (0, 731)].iter().flat_map(|(byte, count)| vec![*byte; *count]).collect();
    assert!(read(&mut fs, file, 0, 8192) == Ok(expected));
}

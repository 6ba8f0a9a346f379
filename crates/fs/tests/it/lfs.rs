//! LFS: what a check-point writes, what a mount finds, and when segments are written again.

use std::collections::BTreeSet;

use ssdlab_base::Nanos;
use ssdlab_flash::Contents;
use ssdlab_fs::check::check;
use ssdlab_fs::config::Fsync;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, FileId, FileSystem, MakeError, MakeOptions, Options, ROOT};
use ssdlab_host::{BlockDevice as _, Device, Host};
use ssdlab_torture::files::{small_block_drive, small_drive};

use crate::drive::{cache, call, create, names, read, remount, write};

/// Blocks of a segment.
const SEGMENT: u32 = 32;

fn make_options() -> MakeOptions {
    let kind = FileSystemKind::of_name("lfs").expect("it is one");
    MakeOptions { kind, segment: u64::from(SEGMENT) * 4096, ..MakeOptions::default() }
}

pub(crate) fn still() -> Options {
    Options { checkpoint_period: Nanos::ZERO, cleaning_period: Nanos::ZERO, ..cache(4000) }
}

/// A new file system on a drive of so many blocks.
pub(crate) fn made(blocks: u32, options: &Options) -> FileSystem {
    let drive = small_block_drive(blocks, Contents::Bytes);
    FileSystem::make(drive, &make_options(), options).expect("a file system")
}

pub(crate) fn sound(device: Box<dyn Device>) -> Box<dyn Device> {
    let (device, found) = check(device);
    assert_eq!(found.expect("a file system").problems, []);
    device
}

pub(crate) fn fsync(fs: &mut FileSystem, file: FileId) {
    call(fs, Call::Fsync { file }).expect("an fsync");
}

/// Journals of 38 nodes and 6 segments (F2FS of Linux 3.13): entries go to a block where those of the journal and those that have changed do
/// not fit, and then all of them.
#[test]
fn each_check_point_of_a_new_file_writes_exactly_what_leads_to_it() {
    let options = Options { fsync: Fsync::Checkpoint, ..still() };
    let mut fs = made(6000, &options);
    call(&mut fs, Call::Sync).expect("a sync");
    fs = remount(fs, &options);
    fs.reset_metrics();
    // The root is number 1, and in the journal since it was made; so are the segments of its logs.
    let (mut nodes, mut maps) = (BTreeSet::from([1]), 0);
    for number in 0..100_u64 {
        let file = create(&mut fs, ROOT, &format!("f{number:02}")).expect("a file");
        write(&mut fs, file, 0, &[1; 4096]).expect("room");
        fsync(&mut fs, file);
        let changed = BTreeSet::from([1, file.number]);
        if nodes.len() + changed.len() <= 38 {
            nodes.extend(changed);
        } else {
            nodes.clear();
            maps += 1;
        }
        let (metrics, count) = (fs.metrics(), number + 1);
        assert_eq!((metrics.checkpoints, metrics.map_blocks, metrics.table_blocks), (count, maps, 0), "file {number}");
        assert_eq!((metrics.data_blocks, metrics.directory_blocks), (count, count));
        assert_eq!(metrics.node_blocks, 2 * count);
    }
    assert_eq!(maps, 2, "the map is written with the 37th file, and with the 37th or 38th behind it");
    // Four logs write: their segments are journaled by one check-point, and do not fit with the next.
    let usage = fs.metrics().usage_blocks;
    assert!((40..=75).contains(&usage), "{usage} blocks of the usage table");
    let device = sound(fs.into_device());
    let mut fs = FileSystem::mount(device, &options).expect("a mount");
    assert_eq!(names(&mut fs, ROOT, 200).len(), 100);
}

/// An fsync of an appended file writes its data and what leads to it, and nothing else; it flushes before the nodes.
#[test]
fn an_fsync_rolls_forward_over_many_segments_of_its_log() {
    let mut fs = made(6000, &still());
    let files: Vec<FileId> = (0..10).map(|at| create(&mut fs, ROOT, &format!("f{at}")).expect("a file")).collect();
    call(&mut fs, Call::Sync).expect("a sync");
    fs.reset_metrics();
    for round in 0..30_u8 {
        for file in &files {
            write(&mut fs, *file, u64::from(round % 3) * 4096, &[round; 4096]).expect("room");
            fsync(&mut fs, *file);
        }
    }
    let metrics = fs.metrics();
    assert_eq!((metrics.checkpoints, metrics.rolled_fsyncs), (0, 300));
    assert_eq!((metrics.data_blocks, metrics.node_blocks), (300, 300));
    assert_eq!((metrics.map_blocks, metrics.usage_blocks, metrics.directory_blocks), (0, 0, 0));
    for _ in 0..3 {
        let device = sound(fs.into_device());
        fs = FileSystem::mount(device, &still()).expect("a mount");
        assert_eq!((fs.metrics().rolled_files, fs.metrics().checkpoints), (10, 0));
        for file in &files {
            let bytes = read(&mut fs, *file, 0, 12_288).expect("it is there");
            assert_eq!([bytes[0], bytes[4096], bytes[8192]], [27, 28, 29]);
        }
    }
    // The first fsync behind a mount is a check-point: nodes of this version may lie behind the one that it found.
    fs.reset_metrics();
    for at in 0..2 {
        write(&mut fs, files[0], 0, &[99 + at; 4096]).expect("room");
        fsync(&mut fs, files[0]);
    }
    assert_eq!((fs.metrics().checkpoints, fs.metrics().rolled_fsyncs), (1, 1));
    let mut fs = FileSystem::mount(sound(fs.into_device()), &still()).expect("a mount");
    assert_eq!(read(&mut fs, files[0], 0, 2), Ok(vec![100, 100]));
}

/// Files in most of the space are written again at random: logs write segments again, and what is there stays right over crashes.
#[test]
fn logs_write_segments_again_where_free_ones_are_short() {
    let options = Options { fsync: Fsync::Checkpoint, ..still() };
    for threaded_logging in [true, false] {
        let options = Options { threaded_logging, ..options };
        let mut fs = made(4000, &options);
        let file = create(&mut fs, ROOT, "a").expect("a file");
        let blocks = 2200_u64;
        let mut contents = vec![0_u8; blocks as usize];
        let mut word = 7_u64;
        for step in 0..6000_u64 {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
            let block = if step < blocks { step } else { (word >> 33) % blocks };
            contents[block as usize] = step as u8;
            write(&mut fs, file, block * 4096, &[step as u8; 4096]).expect("room");
            if step % 500 == 499 {
                fsync(&mut fs, file);
            }
            if step == 4999 {
                let device = sound(fs.into_device());
                fs = FileSystem::mount(device, &options).expect("a mount");
                assert_eq!(fs.read_only_reason(), None);
            }
        }
        fsync(&mut fs, file);
        let metrics = fs.metrics();
        assert_eq!(metrics.threaded_segments > 0, threaded_logging, "{metrics:?}");
        assert!(threaded_logging || metrics.cleaned_segments > 0, "{metrics:?}");
        let mut fs = FileSystem::mount(sound(fs.into_device()), &options).expect("a mount");
        for (block, content) in (0_u64..).zip(&contents) {
            assert_eq!(read(&mut fs, file, block * 4096, 1), Ok(vec![*content]), "block {block}");
        }
    }
}

/// Pages that are written out together need several segments with few free blocks each. The log took a free segment while the next
/// of them was got ready, so that cleaning had to make room: a third of what was written.
#[test]
fn pages_wait_for_the_segment_that_their_log_writes_again() {
    let options = still();
    let mut fs = made(4000, &options);
    let file = create(&mut fs, ROOT, "a").expect("a file");
    let blocks = 2600_u64;
    let mut word = 7_u64;
    for step in 0..blocks + 1800 {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
        let block = if step < blocks { step } else { (word >> 33) % blocks };
        write(&mut fs, file, block * 4096, &[step as u8; 4096]).expect("room");
        if step >= blocks && step % 50 == 0 {
            call(&mut fs, Call::Sync).expect("a sync");
        }
    }
    call(&mut fs, Call::Sync).expect("a sync");
    fs.reset_metrics();
    for block in 0..blocks / 4 {
        write(&mut fs, file, block * 4096, &[9; 4096]).expect("room");
    }
    call(&mut fs, Call::Sync).expect("a sync");
    let metrics = fs.metrics();
    assert_eq!((metrics.data_blocks, metrics.cleaned_segments), (blocks / 4, 0), "{metrics:?}");
    assert!(metrics.threaded_segments > 20, "{metrics:?}");
    sound(fs.into_device());
}

/// No timer is set for cleaning that nothing would begin: a segment that a log is about to write again is not cleaned.
#[test]
fn a_full_file_system_comes_to_rest_when_no_call_comes() {
    let mut fs = made(2000, &cache(2000));
    let file = create(&mut fs, ROOT, "a").expect("a file");
    let mut word = 7_u64;
    for step in 0..2500_u64 {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
        let block = if step < 900 { step } else { (word >> 33) % 900 };
        write(&mut fs, file, block * 4096, &[step as u8; 4096]).expect("room");
        if step % 100 == 99 {
            call(&mut fs, Call::Sync).expect("a sync");
        }
    }
    assert!(fs.metrics().threaded_segments > 0, "{:?}", fs.metrics());
    assert!(!fs.run_to_completion(Nanos::MAX), "no call is outstanding");
    sound(fs.into_device());
}

/// The copy of the superblock serves where the first is lost.
#[test]
fn a_lost_superblock_has_a_copy() {
    let mut fs = made(2000, &cache(100));
    create(&mut fs, ROOT, "a").expect("a file");
    call(&mut fs, Call::Sync).expect("a sync");
    let mut device = fs.into_device();
    let zeroes = vec![0; 4096];
    let request = ssdlab_base::Request::new(ssdlab_base::Op::Write, 0, 8);
    let request = ssdlab_base::Request { at: device.now(), ..request };
    device.submit(&request, ssdlab_device::Data::Bytes(&zeroes));
    device.run_to_completion(Nanos::MAX);
    device.completions().clear();
    let mut fs = FileSystem::mount(sound(device), &cache(100)).expect("a mount");
    assert_eq!(names(&mut fs, ROOT, 5).len(), 1);
}

#[test]
fn what_is_no_place_for_it_is_refused() {
    let segments = small_drive(64, Contents::Bytes, "4k", 8);
    let refused = FileSystem::make(segments, &make_options(), &cache(100)).err();
    let Some(MakeError::NoOverwrites { found }) = &refused else { panic!("{refused:?}") };
    assert!(found.contains("aftl"), "{found}");
    let small = small_block_drive(500, Contents::Bytes);
    assert!(matches!(
        FileSystem::make(small, &make_options(), &cache(100)),
        Err(MakeError::TooSmall { found: 15, .. })
    ));
    let kind = FileSystemKind::of_name("lfs").expect("it is one");
    let error = kind.read("map_factor = 4\n", "keys").expect_err("a key of alfs").to_string();
    assert!(error.contains("map_factor"), "{error}");
    let alfs = FileSystemKind::of_name("alfs").expect("it is one");
    let error = alfs.read("threaded_logging = true\n", "keys").expect_err("a key of lfs").to_string();
    assert!(error.contains("threaded_logging"), "{error}");
    let error = alfs.read("in_place = \"always\"\n", "keys").expect_err("a key of lfs").to_string();
    assert!(error.contains("in_place"), "{error}");
    let error = kind.read("in_place = \"often\"\n", "keys").expect_err("no such word").to_string();
    assert!(error.contains("in_place") && error.contains("short-and-full"), "{error}");
}

/// A page cache above a drive goes on when the drive alone loses its power: it does the flush of a check-point after it, and what it had
/// written back before is lost. The check-point must not become durable.
#[test]
fn a_check_point_ends_when_the_device_has_forgotten_what_it_names() {
    let host =
        Host::parse("[[layer]]\nkind = \"page-cache\"\nram = \"1m\"\nwrite_size = \"4k\"\nwrites = 1\n", "host.toml");
    let host = host.expect("a host");
    let mut ended = 0;
    for events in 0..60 {
        let stack = host.above(vec![small_block_drive(6000, Contents::Bytes)]).expect("a stack");
        let mut fs = FileSystem::make(stack, &make_options(), &still()).expect("a file system");
        let kept = create(&mut fs, ROOT, "kept").expect("a file");
        write(&mut fs, kept, 0, &[1; 4096]).expect("room");
        call(&mut fs, Call::Sync).expect("a sync");
        for number in 0..8 {
            let file = create(&mut fs, ROOT, &format!("new {number}")).expect("a file");
            write(&mut fs, file, 0, &[2; 8192]).expect("room");
        }
        fs.submit(Call::Sync, 1);
        for _ in 0..events {
            let at = fs.next_event().expect("the sync has not ended or timers wait");
            fs.run_until(at);
            if !fs.answers().is_empty() {
                ended += 1;
                break;
            }
        }
        fs.cut(0, &mut |_| None);
        fs.settle();
        let mut members = fs.into_device().into_members();
        members.iter_mut().for_each(|member| {
            while member.run_to_completion(Nanos::MAX) {
                member.completions().clear();
            }
        });
        let device = sound(host.build(members).expect("a stack"));
        let mut fs = FileSystem::mount(device, &still()).expect("a mount");
        assert_eq!(read(&mut fs, kept, 0, 4096), Ok(vec![1; 4096]), "{events} events");
    }
    assert!((1..30).contains(&ended), "{ended} of 60 were cut behind the sync");
}

//! The journaling kind: what commits write, what a mount finds, and a full file system, by the rules of ext3 and ext4.

use std::collections::BTreeSet;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Data;
use ssdlab_flash::Contents;
use ssdlab_fs::check::check;
use ssdlab_fs::journaling::Rules;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{Call, Content, Errno, FileId, FileSystem, MakeError, MakeOptions, Options, ROOT, Reply};
use ssdlab_host::Device;
use ssdlab_torture::files::{small_block_drive, small_drive};

use crate::drive::{cache, call, create, mkdir, names, read, remount, write};

const BOTH: [Rules; 2] = [Rules::Ext3, Rules::Ext4];

fn make_options(rules: Rules) -> MakeOptions {
    let kind = FileSystemKind::of_name("journaling").expect("it is one");
    MakeOptions { kind, segment: 1 << 20, journal: 2 << 20, rules, ..MakeOptions::default() }
}

/// Nothing is committed unless a call wants it.
fn still() -> Options {
    Options { checkpoint_period: Nanos::ZERO, ..cache(4000) }
}

fn made(blocks: u32, rules: Rules, options: &Options) -> FileSystem {
    let drive = small_block_drive(blocks, Contents::Bytes);
    FileSystem::make(drive, &make_options(rules), options).expect("a file system")
}

fn sound(device: Box<dyn Device>) -> Box<dyn Device> {
    let (device, found) = check(device);
    assert_eq!(found.expect("a file system").problems, []);
    device
}

/// The host crashes, the check finds nothing, and the file system is mounted again.
fn crash(fs: FileSystem, options: &Options) -> FileSystem {
    FileSystem::mount(sound(fs.into_device()), options).expect("a mount")
}

fn fsync(fs: &mut FileSystem, file: FileId) {
    call(fs, Call::Fsync { file }).expect("an fsync");
}

#[test]
fn what_is_synced_survives_and_what_is_not_is_as_before() {
    for rules in BOTH {
        let options = still();
        let mut fs = made(3000, rules, &options);
        let directory = mkdir(&mut fs, ROOT, "d").expect("a directory");
        let file = create(&mut fs, directory, "a").expect("a file");
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        write(&mut fs, file, 3, &bytes).expect("room");
        write(&mut fs, file, 5_000_000_000, b"far").expect("a sparse file");
        fsync(&mut fs, file);
        create(&mut fs, directory, "lost").expect("a file");
        let mut fs = crash(fs, &options);
        assert_eq!(read(&mut fs, file, 3, 300_000).as_ref(), Ok(&bytes));
        assert_eq!(read(&mut fs, file, 5_000_000_000, 10), Ok(b"far".to_vec()));
        assert_eq!(read(&mut fs, file, 1_000_000, 2), Ok(vec![0, 0]));
        assert_eq!(names(&mut fs, directory, 1).len(), 1);
        let mut fs = remount(fs, &options);
        call(&mut fs, Call::Unlink { directory, name: b"a".to_vec() }).expect("unlinked");
        assert_eq!(call(&mut fs, Call::Stat { file }), Err(Errno::Stale));
        sound(fs.unmount().map_err(|(reason, _)| reason).expect("an unmount"));
    }
}

/// A commit has a descriptor, the blocks that have changed, and a commit block: of an appended block those are the inode's, the bitmap's and
/// the descriptors' of its group, of an overwritten one the inode's alone. The thirteenth block of a file brings an indirect block by the
/// rules of ext3.
#[test]
fn an_fsync_of_an_appended_file_writes_exactly_what_leads_to_it() {
    for rules in BOTH {
        let mut fs = made(3000, rules, &still());
        let file = create(&mut fs, ROOT, "a").expect("a file");
        write(&mut fs, file, 0, &[1; 4096]).expect("room");
        fsync(&mut fs, file);
        for block in 1..20_u64 {
            fs.reset_metrics();
            write(&mut fs, file, block * 4096, &[2; 4096]).expect("room");
            fsync(&mut fs, file);
            let metrics = fs.metrics();
            let indirect = u64::from(rules == Rules::Ext3 && block >= 12);
            assert_eq!(metrics.checkpoints, 1);
            assert_eq!((metrics.data_blocks, metrics.journal_blocks), (1, 5 + indirect), "block {block}, {rules:?}");
        }
        fs.reset_metrics();
        write(&mut fs, file, 4096, &[3; 4096]).expect("room");
        fsync(&mut fs, file);
        assert_eq!((fs.metrics().data_blocks, fs.metrics().journal_blocks), (1, 3));
        fs.reset_metrics();
        fsync(&mut fs, file);
        assert_eq!((fs.metrics().checkpoints, fs.metrics().journal_blocks), (0, 0), "nothing has changed");
    }
}

/// Journal traffic of counted sequences: so many new files in one directory and a sync are one commit. Its blocks are a descriptor, the
/// directory's blocks, each block of the inode tables that has a new inode or the directory's, the bitmap of inodes of each group that has
/// a new one, the bitmap of blocks where the directory grew, the descriptors of groups, and the commit block. The journal's superblock is
/// written where the journal was empty.
#[test]
fn a_commit_of_new_files_writes_exactly_what_leads_to_them() {
    const INODES_OF_BLOCK: u32 = 16;
    const INODES_OF_GROUP: u32 = 64;
    for (rules, files) in BOTH.into_iter().flat_map(|rules| [1_u32, 15, 16, 17, 60, 200].map(|files| (rules, files))) {
        let mut fs = made(6000, rules, &still());
        create(&mut fs, ROOT, "before").expect("a file");
        let options = still();
        fs = remount(fs, &options);
        fs.reset_metrics();
        let create = |at: u32| create(&mut fs, ROOT, &format!("f{at:03}")).expect("a file").number;
        let new: Vec<u32> = (0..files).map(create).collect();
        call(&mut fs, Call::Sync).expect("a sync");
        let of =
            |inodes: &[u32], each: u32| inodes.iter().map(|inode| (inode - 1) / each).collect::<BTreeSet<_>>().len();
        let tables = of(&[&new[..], &[ROOT.number]].concat(), INODES_OF_BLOCK);
        let Ok(Reply::Found(root)) = call(&mut fs, Call::Stat { file: ROOT }) else { panic!("the root is there") };
        let leads = root.blocks as usize + usize::from(root.blocks > 1) + tables + of(&new, INODES_OF_GROUP) + 1;
        let metrics = fs.metrics();
        assert_eq!(metrics.checkpoints, 1);
        assert_eq!(metrics.journal_blocks, 1 + leads as u64 + 1 + 1, "{files} files, {rules:?}: {new:?}");
        assert_eq!(metrics.data_blocks, 0);
    }
}

/// Those that come while a commit is at work share the next one.
#[test]
fn fsyncs_that_meet_share_a_commit() {
    let mut fs = made(3000, Rules::Ext4, &still());
    let files: Vec<FileId> = (0..20).map(|at| create(&mut fs, ROOT, &format!("f{at}")).expect("a file")).collect();
    call(&mut fs, Call::Sync).expect("a sync");
    fs.reset_metrics();
    for (tag, file) in (0..).zip(&files) {
        let content = Content::Bytes(vec![7; 4096]);
        fs.submit(Call::Write { file: *file, offset: 0, length: 4096, content, mode: Default::default() }, 100);
        fs.submit(Call::Fsync { file: *file }, tag);
    }
    fs.settle();
    assert_eq!(fs.answers().iter().filter(|answer| answer.result.is_ok()).count(), 40);
    assert!(fs.metrics().checkpoints <= 3, "{:?}", fs.metrics());
}

/// A file that is unlinked and open lives until its last close, and no longer than the host.
#[test]
fn orphans_are_freed_by_the_next_mount() {
    for rules in BOTH {
        let mut fs = made(3000, rules, &still());
        let Ok(Reply::Space(empty)) = call(&mut fs, Call::StatFs) else { panic!("space") };
        let files: Vec<FileId> = (0..3).map(|at| create(&mut fs, ROOT, &format!("f{at}")).expect("a file")).collect();
        for file in &files {
            write(&mut fs, *file, 0, &vec![9; 400_000]).expect("room");
            call(&mut fs, Call::Open { file: *file }).expect("open");
        }
        for at in 0..3 {
            call(&mut fs, Call::Unlink { directory: ROOT, name: format!("f{at}").into_bytes() }).expect("unlinked");
        }
        call(&mut fs, Call::Close { file: files[1] }).expect("closed");
        call(&mut fs, Call::Sync).expect("a sync");
        assert_eq!(read(&mut fs, files[0], 0, 1), Ok(vec![9]));
        let (device, found) = check(fs.into_device());
        let found = found.expect("a file system");
        assert_eq!((found.problems, found.orphans), (Vec::new(), 2));
        let mut fs = FileSystem::mount(device, &still()).expect("a mount");
        call(&mut fs, Call::Sync).expect("a sync");
        fs.settle();
        let Ok(Reply::Space(space)) = call(&mut fs, Call::StatFs) else { panic!("space") };
        // The directory keeps its block.
        assert_eq!(space.blocks_free, empty.blocks_free - 1, "{rules:?}");
        assert_eq!(space.nodes_free, empty.nodes_free);
        sound(fs.into_device());
    }
}

#[test]
fn a_file_system_is_filled_to_the_last_block_and_emptied_again_and_again() {
    for rules in BOTH {
        let options = cache(200);
        let mut fs = made(1400, rules, &options);
        let Ok(Reply::Space(empty)) = call(&mut fs, Call::StatFs) else { panic!("space") };
        for round in 0..4_u64 {
            let mut files = Vec::new();
            'fill: loop {
                let name = format!("file-{}", files.len());
                let Ok(file) = create(&mut fs, ROOT, &name) else { break };
                files.push(name);
                for part in 0..if round.is_multiple_of(2) { 3 } else { 40 } {
                    match write(&mut fs, file, part * 4096, &[round as u8 + 1; 4096]) {
                        Ok(_) => {}
                        Err(Errno::NoSpace) => break 'fill,
                        Err(errno) => panic!("{errno}: {:?}", fs.read_only_reason()),
                    }
                }
            }
            let Ok(Reply::Space(space)) = call(&mut fs, Call::StatFs) else { panic!("space") };
            assert!(space.blocks_free <= 8 || space.nodes_free == 0, "{rules:?}, round {round}: {space:?}");
            call(&mut fs, Call::Sync).expect("a full file system can commit");
            fs = remount(fs, &options);
            for name in files {
                call(&mut fs, Call::Unlink { directory: ROOT, name: name.into_bytes() }).expect("a name to remove");
            }
            call(&mut fs, Call::Sync).expect("an empty one, too");
            fs.settle();
            let Ok(Reply::Space(space)) = call(&mut fs, Call::StatFs) else { panic!("space") };
            assert!(space.blocks_free + 40 >= empty.blocks_free, "{space:?}");
            assert_eq!(space.nodes_free, empty.nodes_free);
        }
        sound(fs.unmount().map_err(|(reason, _)| reason).expect("an unmount"));
    }
}

/// Extents in many places make a tree; it shrinks with the file, and nothing is left.
#[test]
fn fragmented_files_have_trees_that_come_and_go() {
    for rules in BOTH {
        let options = still();
        let mut fs = made(6000, rules, &options);
        let file = create(&mut fs, ROOT, "a").expect("a file");
        for block in 0..1500_u64 {
            // Every other block, from the end.
            write(&mut fs, file, (1500 - block) * 8192, &[block as u8; 4096]).expect("room");
            if block % 100 == 99 {
                fsync(&mut fs, file);
            }
        }
        let mut fs = crash(fs, &options);
        for block in (0..1500_u64).step_by(37) {
            assert_eq!(read(&mut fs, file, (1500 - block) * 8192, 1), Ok(vec![block as u8]));
            assert_eq!(read(&mut fs, file, (1500 - block) * 8192 + 4096, 1).map(|read| read.iter().sum()), Ok(0_u8));
        }
        for size in [9_000_000, 3_000_000, 40_000, 0] {
            call(&mut fs, Call::Truncate { file, size }).expect("a truncation");
            call(&mut fs, Call::Sync).expect("a sync");
            fs = crash(fs, &options);
        }
        let Ok(Reply::Found(found)) = call(&mut fs, Call::Stat { file }) else { panic!("it is there") };
        assert_eq!((found.blocks, found.size), (0, 0));
    }
}

/// Plays the same calls, and gives what the drive took, what the file system did, and the time.
fn play(contents: Contents, rules: Rules) -> (String, ssdlab_fs::Metrics, u64) {
    let options = cache(100);
    let device = small_block_drive(4000, contents);
    let mut fs = FileSystem::make(device, &make_options(rules), &options).expect("a file system");
    let directory = mkdir(&mut fs, ROOT, "d").expect("a directory");
    let mut at = 1_u64;
    for round in 0..600_u64 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round | 1);
        let name = format!("f{}", (at >> 40) % 40);
        let file = create(&mut fs, directory, &name).ok().or_else(|| {
            let lookup = Call::Lookup { directory, name: name.clone().into_bytes() };
            match call(&mut fs, lookup) {
                Ok(Reply::Found(found)) => Some(found.file),
                _ => None,
            }
        });
        let Some(file) = file else { continue };
        let (offset, length) = ((at >> 20) % 100_000, ((at >> 33) % 9000) as u32);
        let content = match contents {
            Contents::Bytes => Content::Bytes(vec![round as u8; length as usize]),
            Contents::Stamps => Content::Stamp(round + 1),
            Contents::Nothing => Content::Nothing,
        };
        call(&mut fs, Call::Write { file, offset, length, content, mode: Default::default() }).expect("room");
        match round % 17 {
            3 => drop(call(&mut fs, Call::Fsync { file })),
            5 => drop(call(&mut fs, Call::Truncate { file, size: offset / 2 })),
            7 => drop(call(&mut fs, Call::Unlink { directory, name: name.into_bytes() })),
            9 => drop(call(&mut fs, Call::Fsync { file: directory })),
            11 => drop(call(&mut fs, Call::Read { file, offset: 0, length: 50_000, is_direct: false })),
            _ => {}
        }
    }
    let (metrics, now) = (fs.metrics(), fs.now().0);
    let device = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
    let traffic = format!("{:?}", device.taken());
    let mut fs = FileSystem::mount(sound(device), &options).expect("a mount");
    assert!(names(&mut fs, directory, 7).len() > 10);
    (traffic, metrics, now)
}

#[test]
fn the_requests_do_not_depend_on_what_the_drive_keeps() {
    for rules in BOTH {
        let bytes = play(Contents::Bytes, rules);
        assert_eq!(play(Contents::Stamps, rules), bytes);
        assert_eq!(play(Contents::Nothing, rules), bytes);
        assert!(bytes.1.checkpoints > 50, "{:?}", bytes.1);
    }
}

#[test]
fn a_lost_superblock_has_a_copy() {
    let mut fs = made(3000, Rules::Ext4, &still());
    create(&mut fs, ROOT, "a").expect("a file");
    let mut device = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
    let request = Request { at: device.now(), ..Request::new(Op::Write, 0, 8) };
    device.submit(&request, Data::Bytes(&[0; 4096]));
    device.run_to_completion(Nanos::MAX);
    device.completions().clear();
    let mut fs = FileSystem::mount(device, &still()).expect("a mount");
    assert_eq!(names(&mut fs, ROOT, 5).len(), 1);
}

#[test]
fn what_is_no_place_for_it_is_refused() {
    let segments = small_drive(64, Contents::Bytes, "4k", 8);
    let refused = FileSystem::make(segments, &make_options(Rules::Ext4), &still()).err();
    let Some(MakeError::NoOverwrites { found }) = &refused else { panic!("{refused:?}") };
    assert!(found.contains("aftl"), "{found}");
    let small = FileSystem::make(small_block_drive(500, Contents::Bytes), &make_options(Rules::Ext4), &still());
    let text = small.err().expect("too small").to_string();
    assert!(text.starts_with("found 1 block groups of 256 blocks, expected at least "), "{text}");
    let kind = FileSystemKind::of_name("journaling").expect("it is one");
    let error = kind.read("logs = 4\n", "keys").expect_err("a key of lfs").to_string();
    assert!(error.contains("logs"), "{error}");
    let (make, options) = kind.read("rules = \"ext3\"\ncommit_period = \"1s\"\n", "keys").expect("keys");
    assert_eq!((make.rules, make.segment, make.journal), (Rules::Ext3, 128 << 20, 0));
    assert_eq!((options.checkpoint_period, options.discard), (Nanos(1_000_000_000), true));
}

/// Write-out looks at the bitmaps of several groups for a run of blocks, and the cache has room for less than is dirty: what it has read stays
/// until it gets on.
#[test]
fn write_out_ends_where_the_cache_is_full_of_dirty_pages() {
    for rules in BOTH {
        let make = MakeOptions { segment: 256 << 10, ..make_options(rules) };
        let drive = small_block_drive(3000, Contents::Bytes);
        let mut fs = FileSystem::make(drive, &make, &cache(4000)).expect("a file system");
        // No run of free blocks is longer than three, but for the last groups.
        for number in 0..700 {
            let file = create(&mut fs, ROOT, &format!("f{number}")).expect("a file");
            write(&mut fs, file, 0, &[1; 3 * 4096]).expect("room");
            fsync(&mut fs, file);
        }
        for number in (0..700).step_by(2) {
            let name = format!("f{number}").into_bytes();
            call(&mut fs, Call::Unlink { directory: ROOT, name }).expect("unlinked");
        }
        let options = Options { dirty_limit: 100, dirty_background: 1, ..cache(16) };
        let mut fs = remount(fs, &options);
        for number in 0..8 {
            let file = create(&mut fs, ROOT, &format!("g{number}")).expect("a file");
            write(&mut fs, file, 0, &[2; 16 * 4096]).expect("room");
        }
        sound(fs.unmount().map_err(|(reason, _)| reason).expect("an unmount"));
    }
}

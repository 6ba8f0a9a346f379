//! fsyncs that write nodes in place of a check-point: what each writes, what a mount finds behind a crash, and when a check-point is needed.

use ssdlab_base::Nanos;
use ssdlab_fs::{Call, FileId, FileSystem, Metrics, Options, ROOT};

use crate::drive::{cache, call, create, made, mkdir, names, read, write};

/// Blocks that an inode addresses, and an index block.
const DIRECT: u64 = 920;
const FAN: u64 = 1008;

fn options() -> Options {
    Options { checkpoint_period: Nanos::ZERO, cleaning_period: Nanos::ZERO, ..cache(4000) }
}

/// A new file system, with a directory, behind a check-point.
fn begun(segments: u32) -> (FileSystem, FileId) {
    let mut fs = made(segments, &options());
    let directory = mkdir(&mut fs, ROOT, "d").expect("a directory");
    call(&mut fs, Call::Sync).expect("a sync");
    fs.reset_metrics();
    (fs, directory)
}

fn fsync(fs: &mut FileSystem, file: FileId) {
    call(fs, Call::Fsync { file }).expect("an fsync");
}

/// The host crashes, and another one mounts.
fn crashed(fs: FileSystem) -> FileSystem {
    let device = fs.into_device();
    let (device, found) = ssdlab_fs::check::check(device);
    assert_eq!(found.expect("a file system").problems, []);
    FileSystem::mount(device, &options()).expect("a mount")
}

/// Check-points, and fsyncs without one.
fn counts(metrics: Metrics) -> (u64, u64) {
    (metrics.checkpoints, metrics.rolled_fsyncs)
}

/// What an fsync writes of an appended file: its data, its inode, and each index block that leads to new data.
#[test]
fn an_fsync_of_an_appended_file_writes_its_data_and_what_leads_to_it() {
    let (mut fs, directory) = begun(400);
    let file = create(&mut fs, directory, "a").expect("a file");
    let mut blocks = 0;
    // In the inode; behind its end, where an index block is new; in that; at the first of the second; and all that a level above needs.
    for (to, nodes) in [
        (1, 1),
        (2, 1),
        (DIRECT, 1),
        (DIRECT + 1, 2),
        (DIRECT + 2, 2),
        (DIRECT + FAN + 1, 3),
        (DIRECT + 2 * FAN + 1, 4),
    ] {
        let before = fs.metrics();
        for block in blocks..to {
            write(&mut fs, file, block * 4096, &[block as u8; 4096]).expect("room");
        }
        fsync(&mut fs, file);
        let after = fs.metrics();
        assert_eq!(after.data_blocks - before.data_blocks, to - blocks, "data up to block {to}");
        assert_eq!(after.node_blocks - before.node_blocks, nodes, "nodes up to block {to}");
        blocks = to;
    }
    let metrics = fs.metrics();
    assert_eq!(counts(metrics), (0, 7));
    assert_eq!((metrics.directory_blocks, metrics.map_blocks, metrics.usage_blocks), (0, 0, 0));
    // An fsync of what is durable writes nothing.
    fsync(&mut fs, file);
    assert_eq!(fs.metrics(), metrics);

    let mut fs = crashed(fs);
    assert_eq!(fs.metrics().rolled_files, 1);
    assert_eq!(names(&mut fs, directory, 5), [("a".to_string(), file.number)]);
    for block in [0, 1, DIRECT - 1, DIRECT, DIRECT + FAN, DIRECT + 2 * FAN] {
        assert_eq!(read(&mut fs, file, block * 4096, 4096), Ok(vec![block as u8; 4096]), "block {block}");
    }
    assert_eq!(read(&mut fs, file, blocks * 4096, 1), Ok(vec![]));
}

/// Fsyncs fill many segments of their log; a mount follows all of them, again after a second crash, and a check-point ends it.
#[test]
fn a_mount_follows_the_log_of_fsyncs_over_segments() {
    let (mut fs, directory) = begun(200);
    let files: Vec<FileId> =
        (0..10).map(|number| create(&mut fs, directory, &format!("f{number}")).expect("a file")).collect();
    for round in 0..30_u8 {
        for file in &files {
            write(&mut fs, *file, u64::from(round % 3) * 4096, &[round; 4096]).expect("room");
            fsync(&mut fs, *file);
        }
    }
    assert_eq!(counts(fs.metrics()), (0, 300));
    for _ in 0..3 {
        fs = crashed(fs);
        assert_eq!((fs.metrics().rolled_files, fs.metrics().checkpoints), (10, 0));
        for file in &files {
            let bytes = read(&mut fs, *file, 0, 12_288).expect("it is there");
            assert_eq!([bytes[0], bytes[4096], bytes[8192]], [27, 28, 29]);
        }
    }
    // The first fsync behind a crash is a check-point, the next is none.
    fs.reset_metrics();
    for _ in 0..2 {
        write(&mut fs, files[0], 0, &[99; 4096]).expect("room");
        fsync(&mut fs, files[0]);
    }
    assert_eq!(counts(fs.metrics()), (1, 1));
    let mut fs = crashed(fs);
    assert_eq!(fs.metrics().rolled_files, 1);
    assert_eq!(read(&mut fs, files[0], 0, 2), Ok(vec![99, 99]));
    let device = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
    let (device, found) = ssdlab_fs::check::check(device);
    assert_eq!(found.expect("a file system").problems, []);
    // Behind an unmount the log goes on where it was.
    let mut fs = FileSystem::mount(device, &options()).expect("a mount");
    write(&mut fs, files[1], 0, &[98; 4096]).expect("room");
    fsync(&mut fs, files[1]);
    assert_eq!(counts(fs.metrics()), (0, 1));
    let mut fs = crashed(fs);
    assert_eq!(read(&mut fs, files[1], 0, 2), Ok(vec![98, 98]));
}

/// A name that another file had in the check-point, and one that two new files had.
#[test]
fn the_newest_file_of_a_name_has_it() {
    let (mut fs, directory) = begun(100);
    let unlink = |fs: &mut FileSystem, name: &str| {
        call(fs, Call::Unlink { directory, name: name.into() }).expect("it was there");
    };
    let old = create(&mut fs, directory, "a").expect("a file");
    write(&mut fs, old, 0, b"old").expect("room");
    call(&mut fs, Call::Sync).expect("a sync");
    fs.reset_metrics();
    let mut last = old;
    for round in 0..3_u8 {
        unlink(&mut fs, "a");
        last = create(&mut fs, directory, "a").expect("a file");
        write(&mut fs, last, 0, &[round; 10]).expect("room");
        fsync(&mut fs, last);
    }
    assert_eq!(counts(fs.metrics()), (0, 3));
    assert_ne!(last.number, old.number, "a number that the check-point knows is not used again");
    let mut fs = crashed(fs);
    assert_eq!(names(&mut fs, directory, 5), [("a".to_string(), last.number)]);
    assert_eq!(read(&mut fs, last, 0, 20), Ok(vec![2; 10]));
    let space = |fs: &mut FileSystem| match call(fs, Call::StatFs) {
        Ok(ssdlab_fs::Reply::Space(space)) => (space.blocks - space.blocks_free, space.nodes - space.nodes_free),
        other => panic!("{other:?}"),
    };
    fs.settle();
    // The root, the directory, the file; their blocks, and one of data.
    assert_eq!(space(&mut fs), (6, 3));
}

/// What an fsync of nodes would not do.
#[test]
fn an_fsync_is_a_check_point_where_nodes_would_not_be_all() {
    let (mut fs, directory) = begun(100);
    let kept = create(&mut fs, directory, "kept").expect("a file");
    write(&mut fs, kept, 0, &vec![1; 1 << 20]).expect("room");
    (1..4).for_each(|part| drop(write(&mut fs, kept, part << 20, &vec![1; 1 << 20])));
    mkdir(&mut fs, directory, "empty").expect("a directory");
    call(&mut fs, Call::Sync).expect("a sync");
    let rename = |fs: &mut FileSystem, from: &str, to: &str| {
        let (from, to) = (from.into(), to.into());
        let (from_directory, to_directory) = (directory, directory);
        call(fs, Call::Rename { from_directory, from, to_directory, to, no_replace: false }).expect("it is there");
    };
    let expect = |fs: &mut FileSystem, file: FileId, expected: (u64, u64), what: &str| {
        fs.reset_metrics();
        fsync(fs, file);
        assert_eq!(counts(fs.metrics()), expected, "{what}");
    };
    write(&mut fs, kept, 0, b"x").expect("room");
    expect(&mut fs, kept, (0, 1), "a file as it is");
    expect(&mut fs, directory, (0, 0), "a directory that has not changed");
    let new = create(&mut fs, directory, "new").expect("a file");
    expect(&mut fs, directory, (1, 0), "a directory");
    rename(&mut fs, "kept", "moved");
    expect(&mut fs, new, (0, 0), "a file that the check-point has");
    expect(&mut fs, kept, (1, 0), "a file that was renamed");
    rename(&mut fs, "moved", "again");
    let beside = create(&mut fs, directory, "beside").expect("a file");
    expect(&mut fs, beside, (1, 0), "a new file where a name was moved");
    call(&mut fs, Call::Rmdir { directory, name: b"empty".to_vec() }).expect("it is empty");
    let empty = create(&mut fs, directory, "empty").expect("a file");
    expect(&mut fs, empty, (1, 0), "a new file where a directory was");
    let inner = mkdir(&mut fs, directory, "inner").expect("a directory");
    let deep = create(&mut fs, inner, "deep").expect("a file");
    expect(&mut fs, deep, (1, 0), "a new file in a new directory");
    call(&mut fs, Call::Truncate { file: kept, size: 4096 }).expect("it becomes shorter");
    fs.settle();
    expect(&mut fs, kept, (1, 0), "a file that lost an index block");
    call(&mut fs, Call::Truncate { file: kept, size: 100 }).expect("it becomes shorter");
    expect(&mut fs, kept, (0, 1), "a file that lost blocks of its inode");
    call(&mut fs, Call::Open { file: kept }).expect("it is there");
    call(&mut fs, Call::Unlink { directory, name: b"again".to_vec() }).expect("it is there");
    expect(&mut fs, kept, (1, 0), "a file without a name");
    let mut fs = crashed(fs);
    let all: Vec<String> = names(&mut fs, directory, 10).into_iter().map(|(name, _)| name).collect();
    assert_eq!(all.len(), 4, "{all:?}");
}

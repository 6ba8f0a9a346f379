//! Closed forms of what a counted sequence writes, what fsyncs share, and what errors leave.

use ssdlab_base::Nanos;
use ssdlab_flash::Contents;
use ssdlab_fs::config::Fsync;
use ssdlab_fs::{Call, Content, Errno, FileSystem, MakeOptions, Options, ROOT, Reply};

use crate::drive::{answer, cache, call, create, drive, made, names, read, write};

/// With `fsync = "check-point"`, each fsync of a new file of one block: its data, its inode, the root's block and inode, a block of the inode map, a TIMB block,
/// the block of the usage table, and a check-point of one block.
#[test]
fn each_check_point_of_a_new_file_writes_exactly_what_leads_to_it() {
    let options = Options { checkpoint_period: Nanos::ZERO, fsync: Fsync::Checkpoint, ..cache(1000) };
    let mut fs = made(80, &options);
    fs.reset_metrics();
    for number in 0..50_u64 {
        let file = create(&mut fs, ROOT, &format!("f{number:02}")).expect("a file");
        write(&mut fs, file, 0, &[1; 4096]).expect("room");
        call(&mut fs, Call::Fsync { file }).expect("a sync");
        let metrics = fs.metrics();
        let count = number + 1;
        assert_eq!((metrics.checkpoints, metrics.checkpoint_blocks), (count, count));
        assert_eq!((metrics.map_blocks, metrics.table_blocks), (count, count));
        assert_eq!((metrics.data_blocks, metrics.node_blocks, metrics.directory_blocks), (count, 2 * count, count));
    }
    assert_eq!(fs.metrics().moved_map_blocks, 0);
    // An fsync of what is durable writes nothing.
    let before = fs.metrics();
    call(&mut fs, Call::Fsync { file: ROOT }).expect("a sync");
    assert_eq!(fs.metrics(), before);
}

#[test]
fn fsyncs_that_meet_share_a_check_point() {
    let mut fs = made(64, &Options { fsync: Fsync::Checkpoint, ..cache(1000) });
    let mut files = Vec::new();
    for number in 0..20 {
        let file = create(&mut fs, ROOT, &format!("f{number}")).expect("a file");
        write(&mut fs, file, 0, b"data").expect("room");
        files.push(file);
    }
    fs.reset_metrics();
    (0..).zip(&files).for_each(|(tag, file)| fs.submit(Call::Fsync { file: *file }, tag));
    while fs.answers().len() < files.len() {
        let until = Nanos(fs.now().0 + 1_000_000);
        fs.run_until(until);
    }
    assert!(fs.metrics().checkpoints <= 3, "{:?}", fs.metrics());
}

#[test]
fn a_drive_that_loses_its_power_under_the_host_ends_the_changes_and_not_the_reads() {
    let mut fs = made(64, &cache(1000));
    let file = create(&mut fs, ROOT, "a").expect("a file");
    write(&mut fs, file, 0, b"kept").expect("room");
    call(&mut fs, Call::Fsync { file }).expect("a sync");
    let content = Content::Bytes(vec![2; 40_960]);
    fs.submit(Call::Write { file, offset: 0, length: 40_960, content, mode: Default::default() }, 1);
    fs.submit(Call::Fsync { file }, 2);
    fs.cut(0, &mut |_| None);
    let until = Nanos(fs.now().0 + 10_000_000);
    fs.run_until(until);
    let results: Vec<_> = fs.answers().drain(..).map(|answer| answer.result).collect();
    assert_eq!(results, [Ok(Reply::Done), Err(Errno::ReadOnly)]);
    let reason = fs.read_only_reason().expect("it is read-only").to_string();
    assert!(reason.contains("Aborted"), "{reason}");
    assert_eq!(create(&mut fs, ROOT, "b"), Err(Errno::ReadOnly));
    assert_eq!(names(&mut fs, ROOT, 5).len(), 1);
    // Another host finds what was synced.
    let mut fs = FileSystem::mount(fs.into_device(), &cache(1000)).expect("a mount");
    assert_eq!(read(&mut fs, file, 0, 10).map(|bytes| bytes[..4].to_vec()), Ok(b"kept".to_vec()));
}

/// A block that cannot be read fails its reads; where it is metadata, nothing can be changed any more.
#[test]
fn what_cannot_be_read_is_told_and_does_not_spread() {
    let mut device = drive(64, Contents::Bytes);
    device.drives_mut()[0].device.expect_faults();
    let mut fs = FileSystem::make(device, &MakeOptions::default(), &cache(1000)).expect("a file system");
    let file = create(&mut fs, ROOT, "a").expect("a file");
    write(&mut fs, file, 0, &[3; 8192]).expect("room");
    call(&mut fs, Call::Sync).expect("a sync");
    fs.drop_caches();
    fs.submit(Call::Stat { file }, 1);
    fs.run_to_completion(Nanos::MAX);
    fs.answers().clear();
    for _ in 0..12 {
        fs.device_mut().drives_mut()[0].device.fail_next(ssdlab_flash::FaultKind::Read, None);
    }
    let result = call(&mut fs, Call::Read { file, offset: 0, length: 8192, is_direct: false });
    // Each failure takes one attempt: reads are repeated, so a single bad moment does no harm.
    assert!(matches!(result, Ok(_) | Err(Errno::Io)), "{result:?}");
    assert_eq!(fs.read_only_reason(), None);
    assert_eq!(read(&mut fs, file, 0, 8192), Ok(vec![3; 8192]), "the failure has passed");
}

/// Many calls are in flight at one time: cold reads take less time together than one after the other.
#[test]
fn calls_in_flight_are_served_side_by_side() {
    let make = MakeOptions::default();
    let options = Options { read_ahead: 0, ..cache(2000) };
    let mut fs = FileSystem::make(drive(72, Contents::Bytes), &make, &options).expect("one");
    let file = create(&mut fs, ROOT, "a").expect("a file");
    for block in 0..200 {
        write(&mut fs, file, block * 4096, &[5; 4096]).expect("room");
    }
    call(&mut fs, Call::Sync).expect("a sync");
    fs.drop_caches();
    let read = |block: u64| Call::Read { file, offset: block * 4096, length: 4096, is_direct: false };
    answer(&mut fs, read(0));
    let start = fs.now();
    (1..65).for_each(|block| {
        answer(&mut fs, read(block * 3));
    });
    let alone = fs.now().0 - start.0;
    fs.drop_caches();
    answer(&mut fs, read(0));
    let start = fs.now();
    (1..65).for_each(|block| fs.submit(read(block * 3), block as u32));
    while fs.answers().len() < 64 {
        let until = Nanos(fs.now().0 + 1_000);
        fs.run_until(until);
    }
    let together = fs.now().0 - start.0;
    assert!(together * 2 < alone, "{together} ns together, {alone} ns one after the other");
}

#[test]
fn a_mount_reads_its_tables_side_by_side() {
    let options = cache(2000);
    let mount = |segments: u32| {
        let fs = FileSystem::make(drive(segments, Contents::Nothing), &MakeOptions::default(), &options).expect("one");
        let device = fs.unmount().map_err(|(reason, _)| reason).expect("an unmount");
        let (start, before) = (device.now(), device.taken().bytes[0]);
        let fs = FileSystem::mount(device, &options).expect("a mount");
        (fs.now().0 - start.0, fs.device().taken().bytes[0] - before)
    };
    let (few, many) = (mount(128), mount(8192));
    let blocks = (many.1 - few.1) / 4096;
    // The usage table alone has 254 segments a block.
    assert!(blocks >= 30, "only {blocks} blocks more");
    let more = many.0 - few.0;
    // A read takes 75 us in its die and 33.3 us on the channel; there are 4 dies.
    assert!(more * 2 < blocks * 108_300, "{blocks} blocks more take {more} ns more");
}

/// Calls that find no time to pass make names faster than check-points can write them: they wait, and the cache keeps its budget.
#[test]
fn new_files_wait_for_a_check_point_where_too_much_metadata_is_dirty() {
    let options = cache(1000);
    let mut fs = made(600, &options);
    for number in 0..6000 {
        create(&mut fs, ROOT, &format!("file {number}")).expect("room");
    }
    let (memory, levels) = (fs.memory(), fs.levels());
    assert!(levels.dirty_metadata_blocks <= 200, "{levels:?}");
    assert!(memory.cached_blocks_max <= 1100, "{memory:?}");
    assert!(fs.metrics().checkpoints >= 6000 / 200, "{:?}", fs.metrics());
}

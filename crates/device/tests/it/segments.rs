//! Append-only segments on `aftl`: throughput to the nanosecond, order at any depth and number of queues, what trims and
//! recovery cost, RAM, snapshots, and descriptions that are refused.

use ssdlab_base::command_sets::segments::{Segment, SegmentState};
use ssdlab_base::{Op, Request};
use ssdlab_device::{Data, Drive, DriveConfig, Options, ReadUnwritten, Settings, Status, sector_stamp};
use ssdlab_flash::{Cause, Contents, OpKind, SchedulerKind};

use crate::timing_support::*;

/// Sectors of a page.
const PAGE: u64 = 8;
/// Pages of a block.
const PAGES: u64 = 16;

/// A drive of `segments` segments over all channels and ways, with blocks of 16 pages of 4 KiB.
fn segments(channels: u32, ways: u32, segments: u64) -> DriveConfig {
    let mut config = drive(channels, ways, 1);
    config.ftl.design = "aftl".to_string();
    config.ftl.allocation = ssdlab_device::Allocation::Dynamic;
    config.ftl.own = Settings::default().with("segment_levels", "ways");
    config.user_bytes = segments * u64::from(channels * ways) * PAGES * PAGE * 512;
    config
}

/// n open segments, each written whole by one command at the same instant: all dies work from the first to the last page.
#[test]
fn n_open_segments_are_written_as_fast_as_dies_or_channels_allow() {
    for (channels, ways, bound_by_dies) in [(1, 1, true), (4, 1, true), (1, 4, true), (2, 4, true), (2, 32, false)] {
        for open in [1, 2, 5, 10] {
            let config = segments(channels, ways, 12);
            let mut host = Host::new(&config);
            let pages = PAGES * u64::from(channels * ways);
            for segment in 0..open {
                host.send(Op::Write, segment * pages * PAGE, pages * PAGE);
            }
            host.run();
            host.assert_checks_hold();
            let ways = u64::from(ways);
            let exact = match bound_by_dies {
                true => (ways - 1) * DATA_IN + open * PAGES * PROGRAM_PAGE,
                false => open * PAGES * ways * DATA_IN + PROGRAM,
            };
            assert_eq!(host.now(), exact, "{open} segments over {channels} x {ways}");
        }
    }
}

/// Application-Managed Flash, Figure 8: sectors of segments A (0 to 7) and B (8 to 15) arrive as 0, 8, 1, 9, 2, 10... at one
/// instant, on four channels of one way, with blocks of two pages. When each is on flash.
fn figure_8(scheduler: SchedulerKind) -> Vec<(u64, u64)> {
    let mut config = segments(4, 1, 8);
    config.flash.geometry.pages_per_block = 2;
    config.flash.geometry.blocks_per_plane = 16;
    config.user_bytes = 8 * 8 * PAGE * 512;
    config.flash.scheduler = scheduler;
    let mut host = Host::new(&config);
    let arrivals = (0..8).flat_map(|page| [page, page + 8]);
    let tags: Vec<(u64, u32)> = arrivals.map(|page| (page, host.write_page(page))).collect();
    host.run();
    host.assert_checks_hold();
    tags.into_iter().map(|(page, tag)| (page, host.end(tag).expect("it completed"))).collect()
}

#[test]
fn figure_8_with_a_queue_for_each_way_keeps_four_channels_at_work() {
    // Each way has its four pages in order of arrival: A's first, B's first, A's second, B's second.
    for (page, end) in figure_8(SchedulerKind::Fifo) {
        let turn = page / 4 % 2 * 2 + page / 8 + 1;
        assert_eq!(end, turn * PROGRAM_PAGE, "sector {page}");
    }
}

#[test]
fn figure_8_with_a_single_queue_delays_sector_1_until_0_and_8_are_sent() {
    // 0 is sent in DATA_IN. 8 waits until the way is done with 0's program, and is sent. Then 1 is sent to an idle way, and 9 waits
    // for that, and so on: a pair every PROGRAM_PAGE + DATA_IN. The segments take 3.5 times as long as with a queue for each way.
    for (index, (page, end)) in (0..).zip(figure_8(SchedulerKind::SingleFifo)) {
        let (pair, second) = (index / 2, index % 2);
        let sent = DATA_IN + pair * (PROGRAM_PAGE + DATA_IN) + second * PROGRAM_PAGE;
        assert_eq!(end, sent + PROGRAM, "sector {page}");
    }
}

/// A thousand appends over 8 queues and 4 open segments at depth 128, on a drive that has no free blocks but what it erases: each
/// segment holds in the end what was appended last, in order.
#[test]
fn order_is_that_of_arrival_at_any_depth_and_past_stalls() {
    let mut config = segments(2, 2, 12);
    config.interface.queues = 8;
    config.interface.queue_depth = 16;
    config.interface.bandwidth = 300_000_000;
    let mut drive = Drive::new(&config, Options { seed: 3, contents: Contents::Stamps }).expect("an accepted drive");
    let units = 4 * PAGES;
    // All segments but four are full.
    let mut stamps = vec![vec![0_u64; units as usize]; 12];
    let mut written = [0_u64; 12];
    let mut sent = 0;
    let (mut stamp, mut pick) = (0, 7_u64);
    let send = |drive: &mut Drive, request: Request, stamp: u64| {
        drive.submit_with(&Request { at: drive.now(), ..request }, Data::Stamp(stamp));
    };
    for segment in 4..12 {
        stamp += 1;
        send(&mut drive, Request::new(Op::Write, segment * units * PAGE, units * PAGE), stamp);
        stamps[segment as usize].fill(stamp);
        written[segment as usize] = units;
    }
    let mut failed = 0;
    while sent < 1000 {
        while drive.outstanding() < 128 && sent < 1000 {
            pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let segment = (pick >> 33) % 4;
            let count = 1 + (pick >> 40) % 6;
            let queue = ((pick >> 50) % 8) as u16;
            let first = written[segment as usize];
            let at = segment * units * PAGE;
            if first == units {
                send(&mut drive, Request { queue, ..Request::new(Op::Trim, at, units * PAGE) }, 0);
                written[segment as usize] = 0;
                stamps[segment as usize].fill(0);
                continue;
            }
            let count = count.min(units - first);
            stamp += 1;
            send(&mut drive, Request { queue, ..Request::new(Op::Write, at + first * PAGE, count * PAGE) }, stamp);
            stamps[segment as usize][first as usize..(first + count) as usize].fill(stamp);
            written[segment as usize] = first + count;
            sent += 1;
        }
        let Some(at) = drive.next_event() else { break };
        drive.run_until(at);
        failed += drive.completions().drain(..).filter(|done| done.status != Status::Success).count();
    }
    while let Some(at) = drive.next_event() {
        drive.run_until(at);
    }
    failed += drive.completions().drain(..).filter(|done| done.status != Status::Success).count();
    assert_eq!((failed, drive.outstanding()), (0, 0));
    assert!(drive.counters().flash.total(OpKind::Erase) > 20, "{:?}", drive.counters().flash);
    assert!(drive.counters().gc_stalled_commands > 0, "the drive stalls");
    for (segment, stamps) in stamps.iter().enumerate() {
        let count = written[segment];
        let told = drive.segment(segment as u64).expect("there is such a segment");
        assert_eq!(told.written, count * PAGE, "segment {segment}");
        if count == 0 {
            continue;
        }
        let first = segment as u64 * units * PAGE;
        send(&mut drive, Request::new(Op::Read, first, count * PAGE), 0);
        while drive.completions().is_empty() {
            let at = drive.next_event().expect("a read completes");
            drive.run_until(at);
        }
        drive.completions().clear();
        let (_, sector_data) = drive.read_data().pop().expect("data");
        for (sector, data) in sector_data.chunks_exact(8).enumerate() {
            let expected = sector_stamp(stamps[sector / PAGE as usize], first + sector as u64);
            assert_eq!(data, expected.to_le_bytes(), "sector {sector} of segment {segment}");
        }
    }
}

fn run_all(drive: &mut Drive) {
    while let Some(at) = drive.next_event() {
        drive.run_until(at);
    }
}

fn fresh(config: &DriveConfig) -> Drive {
    Drive::new(config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive")
}

fn send(drive: &mut Drive, op: Op, sector: u64, sectors: u64) -> Status {
    let at = drive.now();
    drive.submit(&Request { at, ..Request::new(op, sector, sectors) });
    run_all(drive);
    drive.completions().pop().expect("it completes").status
}

/// A flush after trims programs one page of metadata, however many segments were trimmed; one without trims none.
#[test]
fn trims_cost_a_page_a_flush() {
    let mut drive = fresh(&segments(2, 2, 12));
    let sectors = 4 * PAGES * PAGE;
    let metadata = |drive: &Drive| drive.counters().flash.get(OpKind::Program, Cause::Metadata);
    for round in 0..40 {
        for segment in 0..12 {
            assert_eq!(send(&mut drive, Op::Write, segment * sectors, sectors), Status::Success);
        }
        assert_eq!(send(&mut drive, Op::Flush, 0, 0), Status::Success);
        let before = metadata(&drive);
        for segment in 0..1 + round % 12 {
            assert_eq!(send(&mut drive, Op::Trim, segment * sectors, sectors), Status::Success);
        }
        assert_eq!(metadata(&drive), before, "trims alone program nothing");
        assert_eq!(send(&mut drive, Op::Flush, 0, 0), Status::Success);
        assert_eq!(metadata(&drive), before + 1, "round {round}");
        assert_eq!(send(&mut drive, Op::Flush, 0, 0), Status::Success);
        assert_eq!(metadata(&drive), before + 1, "round {round}: nothing was trimmed since");
        for segment in 1 + round % 12..12 {
            assert_eq!(send(&mut drive, Op::Trim, segment * sectors, sectors), Status::Success);
        }
    }
    assert_eq!(drive.counters().flash.get(OpKind::Program, Cause::Gc), 0, "nothing is collected");
}

/// A full block costs recovery the OOB area of one page; one that is not full a search, of at most log2(pages) + 2.
#[test]
fn recovery_reads_a_page_of_each_full_block_and_searches_the_others() {
    let config = segments(2, 2, 12);
    let sectors = 4 * PAGES * PAGE;
    for (pages, blocks) in [(0, 0), (1, 1), (2, 2), (4, 4), (7, 4), (40, 4), (63, 4)] {
        let mut drive = fresh(&config);
        for segment in 0..5 {
            assert_eq!(send(&mut drive, Op::Write, segment * sectors, sectors), Status::Success);
        }
        if pages > 0 {
            assert_eq!(send(&mut drive, Op::Write, 5 * sectors, pages * PAGE), Status::Success);
        }
        let options = Options { seed: 1, contents: Contents::Nothing };
        let (drive, recovery) = Drive::recover(&config, options, drive.power_cut()).expect("an accepted drive");
        let full = 5 * 4 + (0..4).filter(|lane| (pages + 3 - lane) / 4 == PAGES).count() as u64;
        let searched = blocks - (full - 20);
        let read = recovery.pages_read;
        // The last page, a search over 15, and no more.
        let most = full + searched * 5;
        assert!((full + searched..=most).contains(&read), "{pages} pages: {read} read, at most {most}");
        assert_eq!(recovery.pages_programmed, 0);
        let told = drive.segment(5).expect("there is such a segment");
        let state = if pages == 0 { SegmentState::Free } else { SegmentState::Open };
        assert_eq!(told, Segment { state, written: pages * PAGE });
        assert_eq!(drive.segment(0), Some(Segment { state: SegmentState::Full, written: sectors }));
        assert_eq!(drive.segment(12), None);
    }
}

/// Table 2: at 512 GB in 32,768 segments of 16 MB, AFTL keeps a little more than 4 MiB, and page mapping 512 MiB.
#[test]
fn ram_is_that_of_table_2() {
    let mut config = segments(8, 4, 1);
    config.flash.geometry.pages_per_block = 128;
    config.flash.geometry.blocks_per_plane = 32_768 + 16;
    config.user_bytes = 512 << 30;
    let bytes = |config: &DriveConfig| -> u64 {
        let drive = fresh(config);
        let tables = drive.memory().into_iter().filter(|(name, _)| name.contains("map") || name.contains("segment"));
        tables.map(|(_, bytes)| bytes).sum()
    };
    let aftl = bytes(&config);
    assert_eq!(aftl, (4 << 20) + 32_768, "four bytes a block, and one a segment");
}

#[test]
fn a_saved_drive_is_restored_with_its_segments() {
    let config = segments(2, 2, 12);
    let sectors = 4 * PAGES * PAGE;
    let mut drive = fresh(&config);
    for segment in 0..9 {
        assert_eq!(send(&mut drive, Op::Write, segment * sectors, sectors), Status::Success);
    }
    assert_eq!(send(&mut drive, Op::Trim, 2 * sectors, 2 * sectors), Status::Success);
    assert_eq!(send(&mut drive, Op::Flush, 0, 0), Status::Success);
    assert_eq!(send(&mut drive, Op::Trim, 0, sectors), Status::Success);
    assert_eq!(send(&mut drive, Op::Write, 3 * sectors, 13 * PAGE), Status::Success);
    assert_eq!(send(&mut drive, Op::Write, 10 * sectors, 3 * PAGE), Status::Success);
    let mut saved = Vec::new();
    drive.save(&mut saved).expect("an idle drive is saved");
    let options = Options { seed: 1, contents: Contents::Nothing };
    let mut restored = Drive::restore(&config, options, &mut &saved[..]).expect("what was saved");
    let told = |drive: &Drive| (0..12).map(|segment| drive.segment(segment)).collect::<Vec<_>>();
    assert_eq!(told(&drive), told(&restored));
    for drive in [&mut drive, &mut restored] {
        assert_eq!(send(drive, Op::Write, 3 * sectors + 13 * PAGE, 51 * PAGE), Status::Success);
        assert_eq!(send(drive, Op::Write, 0, sectors), Status::Success);
        assert_eq!(send(drive, Op::Read, 10 * sectors, 3 * PAGE), Status::Success);
        assert!(matches!(send(drive, Op::Read, 10 * sectors, 4 * PAGE), Status::Refused(_)));
        assert!(drive.check().iter().all(|check| check.passed), "{:?}", drive.check());
    }
    assert_eq!(told(&drive), told(&restored));
}

#[test]
fn what_is_not_written_reads_zeroes_where_the_description_says_so() {
    let mut config = segments(2, 1, 4);
    config.interface.read_unwritten = ReadUnwritten::Zeroes;
    let mut drive = fresh(&config);
    assert_eq!(send(&mut drive, Op::Read, 0, 4 * 2 * PAGES * PAGE), Status::Success);
    assert_eq!(send(&mut drive, Op::WriteZeroes, 0, PAGE), Status::Unsupported);
}

#[test]
fn what_cannot_be_a_segment_drive_is_refused_with_its_key() {
    let whole = segments(2, 2, 12);
    let segment = 4 * PAGES * PAGE * 512;
    type Change = fn(&mut DriveConfig);
    let table: [(&str, &str, Change); 8] = [
        ("capacity.user", "expected whole segments, such as capacity.user = 3145728", |config| {
            config.user_bytes += 4096
        }),
        ("capacity.user", "expected at most 13 segments", |config| config.user_bytes = config.user_bytes / 12 * 14),
        ("capacity.user", "expected at most 1 segments", |config| config.gc.free_blocks = 15),
        ("buffer.policy", "has no write buffer", |config| config.buffer.policy = "lru".to_string()),
        ("ftl.mapping_unit", "writes whole pages", |config| config.ftl.mapping_unit = 2048),
        ("ftl.superblock", "use \"none\"", |config| config.ftl.superblock = ssdlab_device::Superblock::Drive),
        ("ftl.streams", "a stream for each open segment", |config| config.ftl.streams = 2),
        ("ftl.allocation", "ftl.segment_levels", |config| {
            config.ftl.allocation = ssdlab_device::Allocation::Static([
                ssdlab_device::Level::Channel,
                ssdlab_device::Level::Way,
                ssdlab_device::Level::Die,
                ssdlab_device::Level::Plane,
            ]);
        }),
    ];
    assert_eq!(whole.user_bytes, 12 * segment);
    for (key, reason, change) in table {
        let mut config = whole.clone();
        change(&mut config);
        config.buffer.bytes = config.buffer.bytes.max(4096);
        let error = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).err().expect("a refusal");
        assert_eq!(error.key, key, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
}

/// A block that fails is replaced under the host's feet: everything is where it was, and appending goes on.
#[test]
fn a_failed_program_leaves_the_segment_whole_and_in_place() {
    for seed in 0..200 {
        let mut config = segments(2, 2, 8);
        config.flash.faults.program_failure = 0.01;
        let options = Options { seed, contents: Contents::Stamps };
        let mut drive = Drive::new(&config, options).expect("an accepted drive");
        let sectors = 4 * PAGES * PAGE;
        for page in 0..3 * 4 * PAGES {
            let at = drive.now();
            drive.submit_with(&Request { at, ..Request::new(Op::Write, page * PAGE, PAGE) }, Data::Stamp(page + 1));
        }
        run_all(&mut drive);
        assert!(drive.completions().drain(..).all(|done| done.status == Status::Success), "seed {seed}");
        for segment in 0..3 {
            assert_eq!(drive.segment(segment), Some(Segment { state: SegmentState::Full, written: sectors }));
        }
        let at = drive.now();
        drive.submit(&Request { at, ..Request::new(Op::Read, 0, 3 * sectors) });
        run_all(&mut drive);
        assert_eq!(drive.completions().pop().map(|done| done.status), Some(Status::Success));
        let (_, sector_data) = drive.read_data().pop().expect("data");
        for (sector, data) in sector_data.chunks_exact(8).enumerate() {
            let expected = sector_stamp(sector as u64 / PAGE + 1, sector as u64);
            assert_eq!(data, expected.to_le_bytes(), "sector {sector}, seed {seed}");
        }
        let failed = drive.counters().grown_bad_blocks;
        let replaced = drive.design().into_iter().find(|(name, _)| name == "replaced_blocks").map(|(_, count)| count);
        assert!(replaced >= Some(failed as f64), "{failed} blocks went bad, {replaced:?} were replaced");
    }
}

/// Three segments are written once and three of the others again and again: without static wear levelling the blocks of the first
/// stay as they are, with it no free block is much more worn than one with data.
#[test]
fn static_wear_levelling_exchanges_the_most_and_the_least_worn() {
    let spread = |threshold: u32| {
        let mut config = segments(2, 1, 12);
        config.gc.static_wear_threshold = threshold;
        let mut drive = fresh(&config);
        let sectors = 2 * PAGES * PAGE;
        for segment in 0..9 {
            assert_eq!(send(&mut drive, Op::Write, segment * sectors, sectors), Status::Success);
        }
        for _ in 0..1000 {
            for segment in 9..12 {
                assert_eq!(send(&mut drive, Op::Write, segment * sectors, sectors), Status::Success);
            }
            assert_eq!(send(&mut drive, Op::Trim, 9 * sectors, 3 * sectors), Status::Success);
        }
        assert!(drive.check().iter().all(|check| check.passed), "{:?}", drive.check());
        for segment in 0..9 {
            assert_eq!(drive.segment(segment), Some(Segment { state: SegmentState::Full, written: sectors }));
            assert_eq!(send(&mut drive, Op::Read, segment * sectors, sectors), Status::Success);
        }
        let wear = drive.wear();
        (wear.max - wear.min, drive.counters().flash.get(OpKind::Program, Cause::WearLevelling))
    };
    let (without, moved) = spread(0);
    assert!(without > 300 && moved == 0, "{without} erases between blocks, {moved} pages moved");
    for threshold in [4, 20] {
        let (with, moved) = spread(threshold);
        assert!(
            with <= threshold + 40 && moved > 0,
            "threshold {threshold}: {with} erases between blocks, {moved} pages"
        );
    }
}

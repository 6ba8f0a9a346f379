//! Where a request's time goes, to the nanosecond: closed forms on small drives, and the sum on drives of every kind.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::critical_path::Path;
use ssdlab_device::{Completion, DriveConfig, InterfaceKind, Pacing};
use ssdlab_flash::{Cause, MultiPlane, OpKind, SchedulerKind};

use crate::timing_support::*;

/// A host above a drive that records.
fn recording(config: &DriveConfig) -> Host {
    let mut host = Host::new(config);
    host.drive.record_paths(true);
    host
}

/// The paths of what has completed, by tag, each held against its completion.
fn paths(host: &mut Host) -> BTreeMap<u32, Path> {
    let mut taken = Vec::new();
    host.drive.take_paths(&mut taken);
    for path in &taken {
        assert_whole(path, &host.completed[&path.request.tag]);
    }
    taken.into_iter().map(|path| (path.request.tag, path)).collect()
}

/// From submission to completion without a gap.
fn assert_whole(path: &Path, completion: &Completion) {
    let mut until = completion.submitted;
    for segment in &path.segments {
        assert_eq!(segment.from, until, "no gap in {path:?}");
        assert!(segment.to > segment.from, "no empty segment in {path:?}");
        until = segment.to;
    }
    assert_eq!(until, completion.at, "{path:?} of {completion:?}");
}

/// The path's parts in order, by key.
fn parts(path: &Path) -> Vec<(String, u64)> {
    path.segments.iter().map(|segment| (segment.key(), segment.length().0)).collect()
}

fn expected(parts: &[(&str, u64)]) -> Vec<(String, u64)> {
    parts.iter().map(|(key, time)| ((*key).to_string(), *time)).collect()
}

/// The parts of the only request that has completed since the last look.
fn only(host: &mut Host) -> Vec<(String, u64)> {
    host.run();
    let paths = paths(host);
    assert_eq!(paths.len(), 1);
    parts(paths.values().next().expect("one"))
}

fn total(path: &Path, of: impl Fn(&str) -> bool) -> u64 {
    path.segments.iter().filter(|segment| of(&segment.key())).map(|segment| segment.length().0).sum()
}

#[test]
fn a_lone_write_and_a_lone_read_are_their_service() {
    let mut host = recording(&behind_a_link(InterfaceKind::Nvme));
    host.write_page(3);
    let write =
        [("controller", OVERHEAD), ("link", link(8)), ("transfer", COMMAND + TRANSFER), ("array_program", PROGRAM)];
    assert_eq!(only(&mut host), expected(&write));
    host.read_page(3);
    let read = [
        ("controller", OVERHEAD),
        ("transfer", COMMAND),
        ("array_read", READ),
        ("transfer", TRANSFER),
        ("link", link(8)),
    ];
    assert_eq!(only(&mut host), expected(&read));
}

#[test]
fn the_second_of_two_writes_waits_for_the_link_and_for_the_die() {
    let mut host = recording(&behind_a_link(InterfaceKind::Nvme));
    host.write_page(0);
    let second = host.write_page(1);
    host.run();
    // Its data is in a link's time after the first's, whose program the die has begun by then.
    let second = parts(&paths(&mut host)[&second]);
    let wanted = [
        ("controller", OVERHEAD),
        ("link_wait", link(8)),
        ("link", link(8)),
        ("behind_program_host", PROGRAM_PAGE - link(8)),
        ("transfer", COMMAND + TRANSFER),
        ("array_program", PROGRAM),
    ];
    assert_eq!(second, expected(&wanted));
}

#[test]
fn a_command_that_the_drive_does_not_take_yet_waits_in_its_queue() {
    let mut config = drive(2, 1, 1);
    config.interface.queue_depth = 1;
    let mut host = recording(&config);
    let tags = [host.write_page(0), host.write_page(1)];
    host.run();
    let paths = paths(&mut host);
    let wanted = [("arbitration", PROGRAM_PAGE), ("transfer", COMMAND + TRANSFER), ("array_program", PROGRAM)];
    assert_eq!(parts(&paths[&tags[1]]), expected(&wanted));
}

#[test]
fn a_read_behind_a_program_waits_for_it_and_one_that_suspends_it_for_the_suspension() {
    let read = [("transfer", COMMAND), ("array_read", READ), ("transfer", TRANSFER)];
    let mut config = drive(1, 1, 1);
    let mut host = recording(&config);
    host.write_page(0);
    only(&mut host);
    let tags = [host.write_page(1), host.read_page(0)];
    host.run();
    let wanted: Vec<_> = [("behind_program_host", PROGRAM_PAGE)].into_iter().chain(read).collect();
    assert_eq!(parts(&paths(&mut host)[&tags[1]]), expected(&wanted));

    config.flash.program_suspend = true;
    let mut host = recording(&config);
    host.write_page(0);
    only(&mut host);
    let write = host.write_page(1);
    let late = 5_001;
    host.run_until(host.now() + DATA_IN + late);
    let tag = host.read_page(0);
    host.run();
    let paths = paths(&mut host);
    let wanted: Vec<_> = [("suspend", SUSPEND)].into_iter().chain(read).collect();
    assert_eq!(parts(&paths[&tag]), expected(&wanted));
    // And the program waits for the read, and for being stopped and resumed.
    let wanted = [
        ("transfer", DATA_IN),
        ("array_program", late),
        ("suspend", SUSPEND),
        ("behind_read_host", READ_PAGE),
        ("suspend", RESUME),
        ("array_program", PROGRAM - late),
    ];
    assert_eq!(parts(&paths[&write]), expected(&wanted));
}

#[test]
fn dies_of_a_channel_wait_for_it() {
    let mut host = recording(&drive(1, 2, 1));
    let tags = [host.write_page(0), host.write_page(1)];
    host.run();
    let wanted = [("channel_host", DATA_IN), ("transfer", DATA_IN), ("array_program", PROGRAM)];
    assert_eq!(parts(&paths(&mut host)[&tags[1]]), expected(&wanted));
}

#[test]
fn a_partial_write_has_the_read_that_completes_it_in_its_path() {
    let mut host = recording(&drive(1, 1, 1));
    host.write_page(0);
    only(&mut host);
    host.send(Op::Write, 0, 3);
    let wanted =
        [("transfer", COMMAND), ("array_read", READ), ("transfer", part(5) + DATA_IN), ("array_program", PROGRAM)];
    assert_eq!(only(&mut host), expected(&wanted));
}

#[test]
fn a_staged_program_waits_for_the_one_before_it_on_the_array() {
    let mut config = drive(1, 1, 1);
    config.flash.cache_program = true;
    let mut host = recording(&config);
    let tags = [host.write_page(0), host.write_page(1), host.write_page(2)];
    host.run();
    let paths = paths(&mut host);
    // Staged when the first program begins, in while it runs.
    let wanted = [
        ("behind_program_host", DATA_IN),
        ("transfer", DATA_IN),
        ("behind_program_host", PROGRAM - DATA_IN),
        ("array_program", PROGRAM),
    ];
    // The first's array is set to work when its transfer is granted, so the second asks for the channel then.
    let found = parts(&paths[&tags[1]]);
    let sums = |parts: &[(String, u64)]| {
        let mut sums = BTreeMap::new();
        parts.iter().for_each(|(key, time)| *sums.entry(key.clone()).or_insert(0) += time);
        sums
    };
    let (found, wanted) = (sums(&found), sums(&expected(&wanted)));
    let die_or_channel = |parts: &BTreeMap<String, u64>| {
        parts.get("behind_program_host").unwrap_or(&0) + parts.get("channel_host").unwrap_or(&0)
    };
    assert_eq!(die_or_channel(&found), die_or_channel(&wanted));
    assert_eq!((found["transfer"], found["array_program"]), (DATA_IN, PROGRAM));
    assert_eq!(total(&paths[&tags[2]], |_| true), 2 * PROGRAM + PROGRAM_PAGE);
}

/// A buffer of two pages before one die.
fn buffered() -> DriveConfig {
    let mut config = drive(1, 1, 1);
    config.buffer.policy = "lru".to_string();
    config.buffer.bytes = 2 * 4096;
    config.buffer.latency = Nanos(RAM);
    config
}

#[test]
fn a_write_that_finds_the_buffer_full_waits_for_the_program_that_empties_it() {
    let mut host = recording(&buffered());
    host.write_page(0);
    assert_eq!(only(&mut host), expected(&[("buffer_latency", RAM)]));
    host.write_page(1);
    only(&mut host);
    host.write_page(2);
    let wanted = [("buffer_full/transfer", DATA_IN), ("buffer_full/array_program", PROGRAM), ("buffer_latency", RAM)];
    assert_eq!(only(&mut host), expected(&wanted));
    // A flush waits for the programs of what is in the buffer as for its own.
    host.send(Op::Flush, 0, 0);
    let wanted = [("behind_program_host", PROGRAM_PAGE), ("transfer", DATA_IN), ("array_program", PROGRAM)];
    assert_eq!(only(&mut host), expected(&wanted));
    // A FUA write for its own, and reads of the buffer for its latency.
    host.send_request(Request { fua: true, ..Request::new(Op::Write, 0, 8) });
    assert_eq!(only(&mut host), expected(&[("transfer", DATA_IN), ("array_program", PROGRAM)]));
    host.write_page(5);
    only(&mut host);
    host.read_page(5);
    assert_eq!(only(&mut host), expected(&[("buffer_latency", RAM)]));
}

#[test]
fn a_request_behind_a_waiting_one_on_the_same_sectors_waits_for_the_same() {
    let mut host = recording(&buffered());
    (0..2).for_each(|page| {
        host.write_page(page);
        only(&mut host);
    });
    let tags = [host.write_page(2), host.read_page(2)];
    host.run();
    let paths = paths(&mut host);
    let wanted = [("overlap/transfer", DATA_IN), ("overlap/array_program", PROGRAM), ("buffer_latency", RAM)];
    assert_eq!(parts(&paths[&tags[1]]), expected(&wanted));
}

/// One die that collects: bursts of random overwrites, with reads between.
fn collecting(config: &DriveConfig, record: bool) -> (Host, Vec<Path>) {
    let mut host = Host::new(config);
    host.drive.record_paths(record);
    let mut taken = Vec::new();
    let mut rng = rng(11, "paths");
    let pages = host.drive.user_sectors() / 8;
    for page in 0..pages {
        host.write_page(page);
    }
    host.run();
    for _ in 0..300 {
        for _ in 0..8 {
            host.write_page(rng.random_range(0..pages));
        }
        let tag = host.read_page(rng.random_range(0..pages));
        while host.end(tag).is_none() {
            let next = host.drive.next_event().expect("the read is still to end");
            host.run_until(next.0);
        }
    }
    host.run();
    host.drive.take_paths(&mut taken);
    taken.iter().for_each(|path| assert_whole(path, &host.completed[&path.request.tag]));
    assert_eq!(taken.len(), if record { host.completed.len() } else { 0 });
    assert!(host.drive.counters().gc_stalled_commands > 0, "some writes find no free block");
    (host, taken)
}

#[test]
fn what_garbage_collection_costs_is_booked_to_it() {
    let mut config = drive(1, 1, 1);
    config.user_bytes = config.user_bytes * 5 / 4;
    let (recorded, paths) = collecting(&config, true);
    let reads = || paths.iter().filter(|path| path.request.op == Op::Read);
    let longest = |key: &str| reads().map(|path| total(path, |part| part == key)).max().unwrap_or(0);
    assert!(longest("behind_program_gc") >= PROGRAM, "a read waits for a relocation's program");
    assert!(longest("behind_erase_gc") >= ERASE / 2, "a read waits for an erase");
    assert!(longest("behind_read_gc") > 0);
    assert_eq!(longest("behind_erase_host") + longest("behind_program_rmw"), 0, "no operation has these causes");
    // A write that found no free block waited for an erase, and for what led to that.
    let stalled = |path: &&Path| total(path, |part| part.starts_with("no_free_block/")) > 0;
    let stalls: Vec<&Path> = paths.iter().filter(stalled).collect();
    assert!(!stalls.is_empty());
    for path in &stalls {
        assert_eq!(path.request.op, Op::Write);
        assert!(total(path, |part| part == "no_free_block/array_erase") > 0, "{path:?}");
        // All of it is known: nothing has to be put down to others.
        assert_eq!(total(path, |part| part == "no_free_block/other"), 0, "{path:?}");
    }
    let sum: u64 = stalls.iter().map(|path| total(path, |part| part.starts_with("no_free_block/"))).sum();
    let (plain, _) = collecting(&config, false);
    // The stalls of the paths are those that the drive counts, and recording changes nothing.
    let counters = plain.drive.counters();
    assert_eq!(sum, counters.gc_stall.0);
    // What they waited for an erase at work is part of what is counted as waiting for erases, and relocation has the rest.
    let erases: u64 = stalls.iter().map(|path| total(path, |part| part == "no_free_block/array_erase")).sum();
    assert!((erases..counters.gc_stall.0).contains(&counters.gc_stall_erase.0), "{counters:?}");
    assert_eq!(recorded.completed, plain.completed);
}

#[test]
fn waits_for_paced_collection_are_told_from_those_for_a_free_block() {
    let mut config = drive(1, 1, 1);
    config.user_bytes = config.user_bytes * 5 / 4;
    config.gc.pacing = Pacing::Proportional;
    let (paced, paths) = collecting(&config, true);
    let sum = |prefix: &str| paths.iter().map(|path| total(path, |part| part.starts_with(prefix))).sum::<u64>();
    let (waits, stalls) = (sum("gc_pace/"), sum("no_free_block/"));
    assert!(waits > 0, "the host is held back while pages are free");
    assert_eq!(waits + stalls, paced.drive.counters().gc_stall.0);
}

/// Blocks that were overwritten whole are erased, and nothing is relocated: what is left is the host's own programs, which empty
/// the next block.
#[test]
fn a_stall_behind_empty_blocks_is_mostly_of_erases() {
    let mut config = drive(1, 1, 1);
    config.user_bytes = config.user_bytes * 5 / 4;
    let mut host = Host::new(&config);
    let pages = host.drive.user_sectors() / 8;
    for page in 0..4 * pages {
        host.write_page(page % pages);
    }
    host.run();
    let counters = host.drive.counters();
    assert_eq!(counters.flash.get(OpKind::Program, Cause::Gc), 0);
    assert!(counters.gc_stall.0 > ERASE, "{counters:?}");
    let (stall, erase) = (counters.gc_stall.0, counters.gc_stall_erase.0);
    assert!(erase <= stall && 2 * erase > stall, "{counters:?}");
}

#[test]
fn reads_first_and_suspension_take_the_waiting_away() {
    let mut plain = drive(1, 1, 1);
    plain.user_bytes = plain.user_bytes * 5 / 4;
    let mut quick = plain.clone();
    quick.flash.scheduler = SchedulerKind::ReadsFirst;
    (quick.flash.program_suspend, quick.flash.erase_suspend) = (true, true);
    let behind = |config: &DriveConfig| {
        let (_, paths) = collecting(config, true);
        let reads = paths.iter().filter(|path| path.request.op == Op::Read);
        reads.map(|path| total(path, |part| part.starts_with("behind_"))).sum::<u64>()
    };
    let (plain, quick) = (behind(&plain), behind(&quick));
    assert!(quick * 10 < plain, "reads wait {quick} ns behind others, {plain} without");
}

/// Drives of every kind, drawn.
fn any_drive() -> impl Strategy<Value = DriveConfig> {
    let shape = (1..3u32, 1..3u32, 1..3u32, prop::bool::ANY, prop::bool::ANY, prop::bool::ANY);
    let buffer = prop::sample::select(vec!["none", "lru", "fifo", "mca", "pc-lru", "bplru", "lirs", "arc"]);
    let scheduler = prop::sample::select(vec![
        SchedulerKind::Fifo,
        SchedulerKind::ReadsFirst,
        SchedulerKind::HostFirst { starvation: Nanos::from_us(700) },
        SchedulerKind::SingleFifo,
        SchedulerKind::InOrder,
    ]);
    let interface = (prop::bool::ANY, 1..33u32, 1..3u32, prop::bool::ANY);
    (shape, buffer, scheduler, prop::bool::ANY, interface).prop_map(
        |(
            (channels, ways, planes, suspend, cache, small),
            buffer,
            scheduler,
            versions,
            (nvme, depth, queues, free),
        )| {
            let mut config = drive(channels, ways, planes);
            config.flash.multi_plane = if small { MultiPlane::Relaxed } else { MultiPlane::SameOffset };
            (config.flash.program_suspend, config.flash.erase_suspend) = (suspend, suspend);
            (config.flash.cache_program, config.flash.scheduler) = (cache, scheduler);
            (config.flash.copyback, config.gc.copyback) = (cache && !small, cache && !small);
            config.ftl.design = if versions { "mvftl" } else { "page" }.to_string();
            config.ftl.mapping_unit = if small && !versions { 1024 } else { 4096 };
            if buffer != "none" {
                config.buffer.policy = buffer.to_string();
                config.buffer.bytes = 24 * 4096;
                config.buffer.latency = Nanos(RAM);
            }
            config.interface.kind = if nvme { InterfaceKind::Nvme } else { InterfaceKind::Sata };
            config.interface.queue_depth = depth;
            config.interface.queues = if nvme { queues } else { 1 };
            if !free {
                (config.interface.bandwidth, config.interface.command_overhead) = (BANDWIDTH, Nanos(OVERHEAD));
                config.interface.processing = Nanos(if queues == 2 { 2_300 } else { 0 });
                (config.interface.read_overhead, config.interface.write_overhead) = (Nanos(410), Nanos(1_700));
            }
            config.gc.background_free_blocks = 5;
            config.gc.idle_after = Nanos::from_us(50);
            config
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the drive and the requests: the parts of every request add up to its latency, and nothing but the paths
    /// is different when they are recorded.
    #[test]
    fn the_parts_of_every_request_add_up(config in any_drive(), seed in 0..1000u64, depth in 1..64u64) {
        let run = |record: bool| {
            let mut host = Host::new(&config);
            host.drive.record_paths(record);
            let mut rng = rng(seed, "any requests");
            let sectors = host.drive.user_sectors();
            let mut taken = Vec::new();
            let mut completed = Vec::new();
            let mut sent = 0_u32;
            while completed.len() < 1500 {
                while host.drive.outstanding() < depth && sent < 1500 {
                    let length = rng.random_range(1..33);
                    let sector = rng.random_range(0..sectors - length);
                    let op = match rng.random_range(0..40) {
                        0 => Op::Trim,
                        1 => Op::Flush,
                        2 => Op::WriteZeroes,
                        3..12 => Op::Read,
                        _ => Op::Write,
                    };
                    let mut request = if op == Op::Flush { Request::new(op, 0, 0) } else { Request::new(op, sector, length) };
                    request.fua = rng.random_range(0..12) == 0 && op != Op::Read;
                    (request.at, request.tag, request.queue) = (host.drive.now(), sent, rng.random_range(0..3));
                    sent += 1;
                    host.drive.submit(&request);
                }
                host.drive.run_to_completion(Nanos::MAX);
                completed.append(host.drive.completions());
                host.drive.take_paths(&mut taken);
            }
            (completed, host.drive.counters(), taken)
        };
        let (completed, counters, paths) = run(true);
        let (plain, plain_counters, none) = run(false);
        prop_assert_eq!(&completed, &plain);
        prop_assert_eq!(counters, plain_counters);
        prop_assert!(none.is_empty());
        prop_assert_eq!(paths.len(), completed.len());
        let mut others = 0;
        for (path, completion) in paths.iter().zip(&completed) {
            prop_assert_eq!(path.request.tag, completion.tag);
            assert_whole(path, completion);
            others += total(path, |part| part == "other" || part.ends_with("/other"));
        }
        // What nothing explains is the rare case.
        let latencies: u64 = completed.iter().map(|completion| completion.at.since(completion.submitted).0).sum();
        prop_assert!(others * 50 <= latencies, "{} of {} ns are not explained", others, latencies);
    }
}

#[test]
fn a_drive_that_takes_no_time_has_empty_paths() {
    let mut config = drive(1, 1, 1);
    config.timed = false;
    let mut host = recording(&config);
    for page in 0..400 {
        host.write_page(page % 100);
    }
    host.run();
    assert!(paths(&mut host).values().all(|path| path.segments.is_empty()));
    assert!(host.drive.counters().flash.get(OpKind::Erase, Cause::Gc) > 0);
}

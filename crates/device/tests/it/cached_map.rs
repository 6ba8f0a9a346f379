//! A map on flash of which a part is cached, against closed forms: what a miss costs, how often there is one, and what recovery
//! reads.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::critical_path::Stage;
use ssdlab_device::{Drive, DriveConfig, MapCacheStats, MapRequests, MapUser, MapWaits, Options, Settings};
use ssdlab_flash::{Cause, Contents, FaultKind, OpKind, Resource, Span};

use crate::timing_support::*;

/// Entries of a map page of 512 bytes.
const ENTRIES: u64 = 128;

/// One die with half of its `blocks` blocks of 16 pages for the user, and so many map pages cached.
fn one_die(blocks: u32, cached: u64) -> DriveConfig {
    let mut config = drive(1, 1, 1);
    config.flash.geometry.blocks_per_plane = blocks;
    config.user_bytes = config.flash.geometry.bytes() / 2;
    config.ftl.design = "dftl".to_string();
    config.ftl.own = Settings::default().with("map_page", 512_u32).with("map_cache", 512 * cached);
    config
}

/// Reads of 512 bytes of a map page.
fn load() -> u64 {
    COMMAND + READ + part(1)
}

fn page(op: Op, lpn: u64) -> Request {
    Request::new(op, lpn * 8, 8)
}

fn stats(drive: &Drive) -> MapCacheStats {
    drive.counters().map_cache.expect("a drive that caches its map")
}

#[test]
fn a_miss_takes_the_sum_of_its_parts() {
    let mut config = one_die(64, 2);
    config.ftl.own.set("map_packing", false);
    let mut host = Host::new(&config);
    // Map pages that were never programmed are there at once.
    host.assert_takes(page(Op::Write, 0), &[PROGRAM_PAGE]);
    host.assert_takes(page(Op::Write, ENTRIES), &[PROGRAM_PAGE]);
    host.assert_takes(page(Op::Write, 1), &[PROGRAM_PAGE]);
    // Both are dirty: the one that was used longest ago is programmed.
    host.assert_takes(page(Op::Write, 2 * ENTRIES), &[PROGRAM_PAGE, PROGRAM_PAGE]);
    host.assert_takes(page(Op::Write, ENTRIES), &[PROGRAM_PAGE, load(), PROGRAM_PAGE]);
    host.assert_takes(page(Op::Read, 1), &[PROGRAM_PAGE, load(), READ_PAGE]);
    // This one is clean, and leaves at once; the other is still dirty.
    host.assert_takes(page(Op::Read, ENTRIES), &[READ_PAGE]);
    host.assert_takes(page(Op::Read, 2 * ENTRIES), &[load(), READ_PAGE]);
    host.assert_takes(page(Op::Read, 2 * ENTRIES), &[READ_PAGE]);
    host.assert_checks_hold();
    // The three that a dirty page left for, and the last one that a clean page left for, waited for that and for their loads.
    let waited = 3 * PROGRAM_PAGE + 3 * load();
    assert_eq!(stats(&host.drive).waits, MapWaits { commands: 4, time: Nanos(waited) });
    let of_host = MapRequests { hits: 3, misses: 6, loads: 3, flushes: 3 };
    assert_eq!(
        stats(&host.drive).by,
        [of_host, MapRequests::default(), MapRequests::default(), MapRequests::default()]
    );
}

#[test]
fn misses_on_one_die_end_one_read_apart() {
    let mut host = Host::new(&one_die(128, 4));
    let map_pages = 8;
    for map_page in 0..map_pages {
        host.send(Op::Write, map_page * ENTRIES * 8, 8);
        host.run();
    }
    // Reads of what holds nothing, until all that is cached is clean.
    for map_page in 0..map_pages {
        host.send(Op::Read, (map_page * ENTRIES + 1) * 8, 8);
        host.run();
    }
    let start = host.now();
    let tags: Vec<u32> = (0..4).map(|map_page| host.send(Op::Read, (map_page * ENTRIES + 1) * 8, 8)).collect();
    // Two reads of one map page share its load.
    let shared = host.send(Op::Read, 2 * 8, 8);
    host.run();
    for (index, tag) in tags.iter().enumerate() {
        assert_eq!(host.end(*tag), Some(start + (index as u64 + 1) * load()), "miss {index}");
    }
    assert_eq!(host.end(shared), Some(start + load()));
}

/// Four dies, four of eight map pages cached, and at most so many loads at a time; each map page is on flash.
fn four_dies(loads: u32, are_dirty: bool) -> Host {
    let mut config = one_die(128, 4);
    config.flash.geometry.channels = 4;
    config.user_bytes = 8 * ENTRIES * 4096;
    config.ftl.own.set("map_packing", false);
    config.ftl.own.set("map_loads", loads);
    let mut host = Host::new(&config);
    for round in 0..2 {
        for map_page in 0..8 {
            host.send(Op::Write, (map_page * ENTRIES + round) * 8, 8);
            host.run();
        }
    }
    for map_page in (0..8).filter(|_| !are_dirty) {
        host.send(Op::Read, (map_page * ENTRIES + 100) * 8, 8);
        host.run();
    }
    host
}

#[test]
fn misses_beyond_the_limit_wait_in_the_order_in_which_they_came() {
    // A load from a die of its own, with the program of the dirty page that leaves for it.
    for (are_dirty, miss) in [(false, load()), (true, PROGRAM_PAGE + load())] {
        for loads in [1, 2, 3, 4, 0] {
            let mut host = four_dies(loads, are_dirty);
            let start = host.now();
            // Reads of what holds nothing: they end with the load.
            let tags: Vec<u32> =
                [2, 0, 3, 1].map(|map_page| host.send(Op::Read, (map_page * ENTRIES + 100) * 8, 8)).to_vec();
            let shared = host.send(Op::Read, (2 * ENTRIES + 101) * 8, 8);
            host.run();
            let ends: Vec<u64> = tags.iter().map(|tag| host.end(*tag).expect("it ended") - start).collect();
            println!("dirty {are_dirty}, limit {loads}: {ends:?}");
            assert_eq!(host.end(shared), Some(start + ends[0]), "two reads of one map page share its load");
            match loads {
                1 => assert_eq!(ends, [miss, 2 * miss, 3 * miss, 4 * miss]),
                2 => assert!(ends[1] < 2 * miss && ends[2] >= 2 * miss && ends[3] >= 2 * miss, "{ends:?}"),
                _ => assert!(ends[2] < 2 * miss, "{ends:?}"),
            }
            host.assert_checks_hold();
        }
    }
}

/// A dirty page leaves for a load, and its program fails: the page is written elsewhere, for which a block may have to become
/// free first, and relocation may need a load for that.
#[test]
fn a_load_whose_page_could_not_leave_lets_the_next_one_begin_and_waits_for_its_turn() {
    let mut host = four_dies(1, true);
    host.drive.expect_faults();
    host.drive.fail_next(FaultKind::Program, None);
    let start = host.now();
    // Reads of what holds nothing: they end with the load.
    let tags = [2, 3, 1].map(|map_page| host.send(Op::Read, (map_page * ENTRIES + 100) * 8, 8));
    host.run();
    let ends = tags.map(|tag| host.end(tag).expect("it ended") - start);
    println!("{ends:?}");
    assert_eq!(host.drive.faults_struck().len(), 1, "the program of the first page that leaves fails");
    // The second begins when that is known, with the program of a page of its own, and has the chips to itself.
    assert_eq!(ends[1], 2 * PROGRAM_PAGE + load(), "{ends:?}");
    // The first was written elsewhere meanwhile: it is loaded next, and the third after it.
    assert_eq!(ends[0], ends[1] + load(), "{ends:?}");
    assert_eq!(ends[2], ends[0] + PROGRAM_PAGE + load(), "{ends:?}");
    host.assert_checks_hold();
}

#[test]
fn no_more_map_pages_are_read_at_one_time_than_the_limit_says_relocation_among_them() {
    let most_at_once = |loads: u32| {
        let mut config = one_die(32, 12);
        config.flash.geometry.channels = 4;
        // Map blocks are so large that none is collected, which would read map pages, too.
        config.flash.geometry.pages_per_block = 64;
        config.gc.victim = "fifo".to_string();
        config.user_bytes = 39 * ENTRIES * 4096;
        config.ftl.own.set("map_loads", loads);
        let mut host = Host::new(&config);
        let spans = Spans::watch(&mut host.drive);
        mixed(&mut host, 8_000);
        host.assert_checks_hold();
        let MapCacheStats { by, moved_pages, .. } = stats(&host.drive);
        println!("limit {loads}: {moved_pages} map pages moved, {by:?}");
        assert!(by[MapUser::Gc as usize].loads > 50, "{by:?}");
        assert_eq!(moved_pages, 0);
        let is_load = |span: &Span| {
            (span.kind, span.cause) == (OpKind::Read, Cause::Mapping) && matches!(span.resource, Resource::Die(_))
        };
        let mut edges: Vec<(u64, i32)> = Vec::new();
        for span in spans.taken().iter().filter(|span| is_load(span)) {
            edges.extend([(span.start.0, 1), (span.end.0, -1)]);
        }
        edges.sort_unstable();
        let at_each = edges.into_iter().scan(0, |now, (_, step)| {
            *now += step;
            Some(*now)
        });
        at_each.max().unwrap_or(0)
    };
    assert_eq!([1, 2, 3].map(most_at_once), [1, 2, 3]);
    assert!(most_at_once(0) > 3, "without a limit all dies read map pages");
}

/// Reads and programs of map pages so far.
fn of_map(host: &Host) -> (u64, u64) {
    let flash = host.drive.counters().flash;
    (flash.get(OpKind::Read, Cause::Mapping), flash.get(OpKind::Program, Cause::Mapping))
}

#[test]
fn commands_that_miss_one_map_page_cost_one_read() {
    for commands in [1, 2, 7, 31, 100] {
        let mut config = one_die(32, 4);
        // No block is full before the end, which would flush dirty pages.
        config.flash.geometry.pages_per_block = 128;
        config.user_bytes = config.flash.geometry.bytes() / 2;
        let mut host = Host::new(&config);
        let map_pages = 8;
        for map_page in 0..map_pages {
            host.send(Op::Write, map_page * ENTRIES * 8, 8);
            host.run();
        }
        // The cache is full of dirty pages: one leaves, and a command that wants another one waits for that.
        let (reads, programs) = of_map(&host);
        let tags: Vec<u32> = (0..commands)
            .map(|index| host.send(if index % 3 == 2 { Op::Write } else { Op::Read }, (1 + index) * 8, 8))
            .collect();
        host.run();
        assert_eq!(of_map(&host), (reads + 1, programs + 1), "{commands} commands want the first map page");
        assert!(tags.iter().all(|tag| host.end(*tag).is_some()), "all of {commands} commands completed");

        // Clean pages leave at once: every read of what holds nothing ends with the one load.
        for map_page in 1..map_pages {
            host.send(Op::Read, (map_page * ENTRIES + 1) * 8, 8);
            host.run();
        }
        let (start, (reads, programs)) = (host.now(), of_map(&host));
        let tags: Vec<u32> = (0..commands).map(|index| host.send(Op::Read, (127 - index % 20) * 8, 8)).collect();
        host.run();
        assert_eq!(of_map(&host), (reads + 1, programs), "{commands} commands want the first map page");
        assert!(tags.iter().all(|tag| host.end(*tag) == Some(start + load())), "{commands} commands end together");
        host.assert_checks_hold();
    }
}

/// An untimed drive of `map_pages` map pages of so many bytes.
fn untimed_of(map_page: u64, map_pages: u64, cached: u64) -> Drive {
    let mut config = one_die((map_pages * map_page / 4 * 2 / 16) as u32, cached);
    config.ftl.own = Settings::default().with("map_page", map_page).with("map_cache", map_page * cached);
    config.timed = false;
    Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive")
}

fn untimed(map_pages: u64, cached: u64) -> Drive {
    untimed_of(512, map_pages, cached)
}

fn overwrite(drive: &mut Drive, requests: u64, seed: u64) {
    let units = drive.user_sectors() / 8;
    let mut rng = rng(seed, "overwrites");
    for _ in 0..requests {
        drive.submit(&page(Op::Write, rng.random_range(0..units)));
        drive.completions().clear();
    }
}

#[test]
fn uniform_writes_miss_in_proportion_to_what_is_not_cached() {
    let sizes =
        [(512, 64, 2), (512, 64, 8), (512, 64, 32), (512, 64, 48), (1024, 40, 10), (2048, 32, 24), (4096, 16, 4)];
    for (map_page, map_pages, cached) in sizes {
        let mut drive = untimed_of(map_page, map_pages, cached);
        overwrite(&mut drive, 20_000, 7);
        drive.reset_statistics();
        overwrite(&mut drive, 200_000, 8);
        let MapRequests { hits, misses, .. } = stats(&drive).by[MapUser::Host as usize];
        let (hits, misses) = (hits as f64, misses as f64);
        // What is asked for again after a map block was erased counts as a hit.
        assert!((200_000.0..202_000.0).contains(&(hits + misses)), "{hits} hits and {misses} misses of 200,000 writes");
        let (ratio, expected) = (misses / 200_000.0, 1.0 - cached as f64 / map_pages as f64);
        println!("{cached} of {map_pages} map pages of {map_page}: {ratio:.4} misses a write, expected {expected:.4}");
        assert!((ratio / expected - 1.0).abs() < 0.01, "{ratio} misses a write, expected {expected}");
        assert!(drive.check().iter().all(|check| check.passed));
    }
}

#[test]
fn a_map_that_is_cached_as_a_whole_loads_nothing() {
    let mut drive = untimed(16, 16);
    overwrite(&mut drive, 50_000, 3);
    assert_eq!((stats(&drive).total().misses, stats(&drive).total().loads), (16, 0), "each map page is missed once");
    let counts = drive.counters();
    assert_eq!(counts.flash.get(OpKind::Program, Cause::Host), 50_000);
}

/// A span of data, with its block by the order in which blocks are first seen: map blocks take some out of the row.
type OfData = (OpKind, Cause, u32, u64, u64, u64);

/// Random reads and writes, eight at a time, on two channels; spans of data in order, and when the map was first
/// programmed.
fn stream(config: &DriveConfig) -> (Vec<OfData>, Option<u64>) {
    let mut host = Host::new(config);
    let spans = Spans::watch(&mut host.drive);
    let units = host.drive.user_sectors() / 8;
    let mut rng = rng(11, "stream");
    for _ in 0..400 {
        for _ in 0..8 {
            let op = if rng.random_bool(0.3) { Op::Read } else { Op::Write };
            host.send(op, rng.random_range(0..units) * 8, 8);
        }
        host.run();
    }
    host.assert_checks_hold();
    let (mut blocks, per_block) = (Vec::new(), config.flash.geometry.pages_per_block);
    let (of_map, of_data): (Vec<_>, Vec<_>) =
        spans.taken().into_iter().partition(|span| matches!(span.cause, Cause::Mapping | Cause::Metadata));
    let mut of_data: Vec<_> = of_data.into_iter().filter(|span| matches!(span.resource, Resource::Die(_))).collect();
    of_data.sort_by_key(|span| (span.start, span.ppn));
    let of_data = of_data.into_iter().map(|span| {
        let Resource::Die(die) = span.resource else { unreachable!("channels were left out") };
        let (block, page) = (span.ppn.0 / per_block, span.ppn.0 % per_block);
        let seen = blocks.iter().position(|other| *other == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        (span.kind, span.cause, die.0, seen as u64 * u64::from(per_block) + u64::from(page), span.start.0, span.end.0)
    });
    (of_data.collect(), of_map.iter().map(|span| span.start.0).min())
}

#[test]
fn with_all_of_the_map_cached_chips_see_what_they_see_of_page() {
    // Blocks that are large: none is full, so no map page is flushed and nothing is collected.
    let mut whole = drive(2, 1, 1);
    whole.flash.geometry.pages_per_block = 2048;
    whole.user_bytes = 4 * 128 * 16 * 4096;
    whole.ftl.design = "dftl".to_string();
    whole.ftl.own = Settings::default().with("map_page", 512_u32).with("map_cache", 1_u64 << 20);
    let page = DriveConfig {
        ftl: ssdlab_device::FtlConfig { design: "page".to_string(), own: Settings::default(), ..whole.ftl.clone() },
        ..whole.clone()
    };
    let ((of_whole, first), (of_page, _)) = (stream(&whole), stream(&page));
    assert!(of_page.len() > 2000, "{} operations", of_page.len());
    assert_eq!(first, None, "the map is on flash");
    assert!(of_whole == of_page, "the same reads and programs of data, at the same times");

    // Small blocks: equal until dirty map pages are flushed for the first time, which keeps dies busy.
    for config in [&mut whole.clone(), &mut page.clone()] {
        config.flash.geometry.pages_per_block = 64;
        config.flash.geometry.blocks_per_plane = 256;
        let (other, first) = stream(config);
        if config.ftl.design == "page" {
            assert_eq!(first, None, "page has no map on flash");
        } else {
            let mut page = page.clone();
            page.flash.geometry = config.flash.geometry;
            let before = first.expect("blocks were full");
            let (of_page, _) = stream(&page);
            let until =
                |stream: &[OfData]| stream.iter().filter(|span| span.5 < before).copied().collect::<Vec<OfData>>();
            assert!(until(&other).len() > 100, "{} operations before the map is flushed", until(&other).len());
            assert!(until(&other) == until(&of_page), "the same until the first program of the map");
        }
    }
}

#[test]
fn recovery_reads_map_blocks_active_blocks_and_a_page_of_each_other() {
    let config = |design: &str| {
        let mut config = one_die(512, 16);
        config.timed = false;
        config.flash.geometry.pages_per_block = 128;
        config.user_bytes = config.flash.geometry.bytes() / 2;
        if design != config.ftl.design {
            config.ftl.own = Settings::default();
        }
        config.ftl.design = design.to_string();
        config
    };
    let reads = |design: &str| {
        let options = Options { seed: 1, contents: Contents::Nothing };
        let mut drive = Drive::new(&config(design), options).expect("an accepted drive");
        overwrite(&mut drive, 150_000, 5);
        let held: Vec<bool> = (0..drive.user_sectors()).step_by(8).map(|at| drive.mapped_run(at, at + 8).0).collect();
        let flash = drive.power_cut();
        let (drive, recovery) = Drive::recover(&config(design), options, flash).expect("it is recovered");
        let again: Vec<bool> = (0..drive.user_sectors()).step_by(8).map(|at| drive.mapped_run(at, at + 8).0).collect();
        assert!(held == again, "what held data before holds data");
        recovery
    };
    let (all, some) = (reads("page"), reads("dftl"));
    println!("page {all:?}, dftl {some:?}");
    assert!(some.pages_read * 12 < all.pages_read, "{some:?} of {all:?}");
}

#[test]
fn a_trim_of_gigabytes_waits_for_each_map_page_once() {
    let mut config = one_die(0, 4);
    config.flash.geometry.pages_per_block = 1024;
    config.flash.geometry.blocks_per_plane = 640;
    config.user_bytes = 2 << 30;
    config.ftl.own = Settings::default().with("map_page", 4096_u32).with("map_cache", 4 * 4096_u64);
    let mut host = Host::new(&config);
    let (entries, units) = (1024, (2 << 30) / 4096);
    let map_pages = units / entries;
    for map_page in 0..map_pages {
        host.send(Op::Write, (map_page * entries + map_page % entries) * 8, 8);
    }
    host.run();
    let (reads, _) = of_map(&host);
    let trim = host.send(Op::Trim, 0, units * 8);
    host.run();
    assert!(host.end(trim).is_some(), "the trim completes");
    // The last ones are still in the cache, and leave it before their turn.
    let loads = of_map(&host).0 - reads;
    assert!((map_pages - 4..=map_pages).contains(&loads), "{loads} loads of {map_pages} map pages");
    host.send(Op::Flush, 0, 0);
    host.run();
    let nothing = host.drive.mapped_run(0, units * 8);
    assert_eq!(nothing, (false, units * 8), "nothing is mapped");
    let flash = host.drive.power_cut();
    let options = Options { seed: 1, contents: Contents::Nothing };
    let (drive, _) = Drive::recover(&config, options, flash).expect("it is recovered");
    assert_eq!(drive.mapped_run(0, units * 8), (false, units * 8), "what was trimmed and flushed stays so");
}

/// Depth 8 of reads and writes of up to 300 units, trims and flushes, while blocks are collected.
fn mixed(host: &mut Host, commands: u64) {
    let units = host.drive.user_sectors() / 8;
    let mut rng = rng(11, "mixed");
    for _ in 0..commands {
        let (op, most) = match rng.random_range(0..100) {
            0..45 => (Op::Write, 4),
            45..80 => (Op::Read, 4),
            80..90 => (Op::Read, 300),
            90..97 => (Op::Trim, 8),
            _ => (Op::Flush, 0),
        };
        let count = if op == Op::Flush { 0 } else { rng.random_range(1..=most) };
        host.send(op, rng.random_range(0..units - count) * 8, count * 8);
        if host.drive.outstanding() >= 8 {
            host.run_until(host.drive.next_event().expect("commands are outstanding").0);
        }
    }
    host.run();
}

/// A flush asks for no map page: it waits for programs of those with trims.
#[test]
fn paths_and_counters_agree_on_how_long_commands_waited_for_the_map() {
    for cached in [4, 9, 14] {
        let mut host = Host::new(&one_die(256, cached));
        host.drive.record_paths(true);
        mixed(&mut host, 6_000);
        let mut paths = Vec::new();
        host.drive.take_paths(&mut paths);
        assert_eq!(paths.len(), 6_000);
        let waited: u64 = paths
            .iter()
            .filter(|path| path.request.op != Op::Flush)
            .flat_map(|path| &path.segments)
            .filter(|segment| segment.stage == Stage::Map)
            .map(|segment| segment.length().0)
            .sum();
        let MapCacheStats { waits, by, .. } = stats(&host.drive);
        println!("{cached} cached: {waits:?}, by host, buffer, collection and log {by:?}");
        assert_eq!(Nanos(waited), waits.time, "{cached} map pages cached");
        assert!(waits.commands > 0 && by[MapUser::Gc as usize].hits > 0, "{waits:?}, {by:?}");
        host.assert_checks_hold();
    }
}

#[test]
fn what_is_flushed_is_what_is_programmed() {
    for cached in [4, 9, 14] {
        let mut config = one_die(256, cached);
        config.ftl.own.set("map_packing", false);
        let mut host = Host::new(&config);
        mixed(&mut host, 6_000);
        let stats = stats(&host.drive);
        let programs = of_map(&host).1 + host.drive.counters().flash.get(OpKind::Program, Cause::Metadata);
        // Each map page in a page of flash of its own, and a record for each change of active blocks; collection packs.
        let of_pages = stats.flushes() + stats.block_changes;
        println!("{cached} cached: {programs} programs, {stats:?}");
        assert!(stats.flushed_for_trims > 0 && stats.flushed_for_blocks > 0, "{stats:?}");
        assert!((of_pages..=of_pages + stats.moved_pages + stats.block_changes).contains(&programs), "{stats:?}");
        if stats.moved_pages == 0 {
            assert_eq!(programs, of_pages, "{stats:?}");
        }
    }
}

//! Every write buffer with every design at every page size, with requests of single sectors: what is read is what was written, what was
//! made durable survives power cuts, and nothing is left behind when the buffer drains.

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, Rng, rng};
use ssdlab_device::{Allocation, Drive, DriveConfig, Level, Options, Setting, Settings};
use ssdlab_flash::{Contents, Faults, Geometry, OpKind};
use ssdlab_torture::commands::Mix;
use ssdlab_torture::configs::{self, names, one_of};
use ssdlab_torture::crash_harness::CrashHarness;
use ssdlab_torture::driver::{alone, assert_checks, read_all, run, settle, submit};
use ssdlab_torture::seeds::{campaign, tell};

const PAGES: [u32; 3] = [4096, 8192, 16384];

/// A map: its design, whether it compacts, and the bytes of its units for pages of so many.
type Map = (&'static str, bool, fn(u32) -> u32);

/// Every design, with what changes how partial units leave the buffer.
const MAPS: [Map; 4] = [
    ("page", false, |page| page),
    ("page", false, |_| 4096),
    ("mvftl", false, |page| page),
    ("mvftl", true, |page| page),
];

/// A small drive with a buffer of a few pages, timed.
fn small_drive(rng: &mut Rng, policy: &str, page_bytes: u32, (design, compacts, unit): Map) -> DriveConfig {
    let mapping_unit = unit(page_bytes);
    let mut config = configs::handful();
    config.flash.geometry = Geometry {
        channels: one_of(rng, &[1, 2]),
        chips_per_channel: 1,
        dies_per_chip: one_of(rng, &[1, 2]),
        planes_per_die: 1,
        blocks_per_plane: 10 + rng.random_range(0..3),
        pages_per_block: 4,
        page_bytes,
        oob_bytes: 128,
    };
    config.gc.free_blocks = 3;
    config.ftl.mapping_unit = mapping_unit;
    config.ftl.allocation = match rng.random_range(0..3) {
        0 => Allocation::Static([Level::Channel, Level::Way, Level::Die, Level::Plane]),
        1 => Allocation::RoundRobin([Level::Channel, Level::Way, Level::Die, Level::Plane]),
        _ => Allocation::Dynamic,
    };
    configs::set_superblock(&mut config);
    config.buffer.policy = policy.to_string();
    config.buffer.bytes = u64::from(page_bytes) * one_of(rng, &[1, 2, 6, 12]);
    config.buffer.own = Settings::default()
        .with("mca_window", one_of(rng, &[1_u32, 4, 32]))
        .with("cflru_window_permille", one_of(rng, &[0_u32, 250, 1000]))
        .with("block_pages", one_of(rng, &[1_u32, 3, 4]))
        .with("bplru_padding", design == "page" && rng.random_bool(0.5))
        .with("lirs_hir_permille", one_of(rng, &[10_u32, 500]));
    loop {
        ssdlab_device::draw_design(&mut config, design, rng);
        if config.own("ftl.compaction") == Some(Setting::Flag(compacts)) {
            break;
        }
    }
    let units = configs::most_user_units(&config).expect("some capacity is accepted");
    config.user_bytes = ssdlab_device::draw_user_units(units, &config, rng) * u64::from(mapping_unit);
    config
}

/// Each policy with each map at each page size.
fn every_drive(seed: u64, mut each: impl FnMut(&mut Rng, &DriveConfig)) {
    for policy in names("buffer.policy") {
        for page_bytes in PAGES {
            for map in MAPS {
                let (design, compacts, unit) = map;
                let mut rng = rng(seed, &format!("{policy} {page_bytes} {} {design} {compacts}", unit(page_bytes)));
                let config = small_drive(&mut rng, policy, page_bytes, map);
                tell(&config);
                each(&mut rng, &config);
            }
        }
    }
}

/// Lets all commands end and flushes.
fn flush(drive: &mut Drive) {
    while drive.outstanding() > 0 {
        assert!(drive.run_to_completion(Nanos::MAX), "commands complete");
        drive.completions().clear();
    }
    drive.completions().clear();
    alone(drive, &Request::new(Op::Flush, 0, 0), 0);
    settle(drive);
}

#[test]
fn every_buffer_keeps_data_at_every_page_size() {
    campaign("buffers", "every_buffer_keeps_data_at_every_page_size", 12, |seed| {
        every_drive(seed, |rng, config| {
            let mut drive =
                Drive::new(config, Options { seed, contents: Contents::Stamps }).expect("an accepted drive");
            let mut mix = Mix::draw(rng, config);
            let depth = one_of(rng, &[1, 8, 32]);
            let journal = run(&mut drive, &mut mix, rng, depth, 400);
            let sector_data = journal.replay(drive.user_sectors());
            assert_checks(&drive);
            flush(&mut drive);
            let buffer = drive.counters().buffer;
            assert_eq!((buffer.pages_now, buffer.partial_pages_now), (0, 0), "a flush leaves nothing");
            let found: Vec<u64> = read_all(&mut drive).into_iter().map(|data| data.expect("no faults")).collect();
            assert_eq!(found, sector_data, "what the drive holds at the end");
            assert_eq!(buffer.evictions, buffer.full_pages + buffer.partial_pages);
        });
    });
}

#[test]
fn what_was_durable_survives_power_cuts_under_every_buffer_at_every_page_size() {
    campaign("buffers", "what_was_durable_survives_power_cuts_under_every_buffer_at_every_page_size", 6, |seed| {
        every_drive(seed, |rng, config| {
            let mut config = config.clone();
            let faulty = seed % 2 == 1;
            if faulty {
                config.flash.geometry.blocks_per_plane += 8;
                config.flash.faults = Faults {
                    program_failure: 0.02,
                    erase_failure: 0.02,
                    uncorrectable_read: 0.02,
                    ..Faults::default()
                };
            }
            let mut lives = CrashHarness::new(&config, Options { seed, contents: Contents::Stamps });
            lives.oracle.faulty = faulty;
            lives.oracle.may_end_read_only = faulty;
            let mut mix = Mix::draw(rng, &config);
            for _ in 0..rng.random_range(1..6) {
                let depth = one_of(rng, &[1, 8, 32]);
                let count = rng.random_range(20..150);
                lives.work(&mut mix, rng, depth, count);
                for _ in 0..rng.random_range(0..30) {
                    lives.step();
                }
                lives.cut(rng, 1);
            }
            lives.work(&mut mix, rng, 8, 50);
            lives.drain();
            lives.compare();
        });
    });
}

/// One channel, one die: whatever is in flight keeps the only chip busy.
fn one_chip(policy: &str) -> DriveConfig {
    let mut config = configs::handful();
    config.flash.geometry.blocks_per_plane = 32;
    config.flash.geometry.page_bytes = 4096;
    config.flash.geometry.pages_per_block = 8;
    config.ftl.mapping_unit = 4096;
    config.user_bytes = 64 * 4096;
    config.buffer.policy = policy.to_string();
    config.buffer.bytes = 8 * 4096;
    config
}

fn write_pages(drive: &mut Drive, requests: &[(u64, u64)]) {
    for (sector, sectors) in requests {
        submit(drive, &Request::new(Op::Write, *sector, *sectors), 0);
    }
}

/// Fills flash, so that every partial page needs a read, and then the buffer: two partial pages and seven full ones.
fn congested(policy: &str) -> Drive {
    let config = one_chip(policy);
    let mut drive = Drive::new(&config, Options { seed: 1, contents: Contents::Stamps }).expect("an accepted drive");
    write_pages(&mut drive, &(0..64).map(|page| (page * 8, 8)).collect::<Vec<_>>());
    flush(&mut drive);
    drive.reset_statistics();
    write_pages(&mut drive, &[(0, 4), (8, 4)]);
    write_pages(&mut drive, &(2..9).map(|page| (page * 8, 8)).collect::<Vec<_>>());
    assert_eq!(drive.counters().buffer.evictions, 0, "all of it fits");
    drive
}

/// With an idle chip the partial page at the bottom leaves (WAFLASH, Figure 4); with a congested one the full page above.
#[test]
fn partial_pages_leave_while_the_chip_is_idle_and_stay_while_it_is_congested() {
    for (policy, left) in [("lru", [0, 2]), ("pc-lru", [1, 1]), ("mca", [1, 1])] {
        let mut drive = congested(policy);
        // Four sectors leave for the first, and their read keeps the chip busy when the second asks.
        write_pages(&mut drive, &[(160, 4)]);
        write_pages(&mut drive, &[(168, 4)]);
        let buffer = drive.counters().buffer;
        assert_eq!([buffer.full_pages, buffer.partial_pages], left, "{policy}: {buffer:?}");
        assert_eq!(buffer.delayed_pages, u64::from(policy != "lru"), "{policy}");
        flush(&mut drive);
        assert_checks(&drive);
    }
}

/// Partial pages that stay are completed by the writes that follow: PC-LRU then reads nothing for them where LRU does.
#[test]
fn a_partial_page_that_stays_is_completed_and_costs_no_read() {
    let additional_reads = |policy: &str| {
        let mut config = one_chip(policy);
        config.flash.geometry.channels = 1;
        let mut drive =
            Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
        write_pages(&mut drive, &(0..64).map(|page| (page * 8, 8)).collect::<Vec<_>>());
        flush(&mut drive);
        drive.reset_statistics();
        // The first half of a page, ten full pages, its second half: too long for LRU, and always something in flight.
        for round in 0..400_u64 {
            let page = round % 16;
            let mut requests = vec![(page * 8, 4)];
            requests.extend((0..10).map(|other| ((16 + (round * 10 + other) % 48) * 8, 8)));
            requests.push((page * 8 + 4, 4));
            for request in requests {
                write_pages(&mut drive, &[request]);
                while drive.outstanding() >= 4 {
                    assert!(drive.run_to_completion(Nanos::MAX), "commands complete");
                    drive.completions().clear();
                }
            }
        }
        flush(&mut drive);
        assert_checks(&drive);
        let counters = drive.counters();
        let reads = counters.flash.get(OpKind::Read, ssdlab_flash::Cause::ReadModifyWrite);
        (reads, counters.buffer.converted_pages)
    };
    let (lru, pc_lru) = (additional_reads("lru"), additional_reads("pc-lru"));
    assert!(pc_lru.0 * 4 < lru.0, "additional reads: {} with PC-LRU, {} with LRU", pc_lru.0, lru.0);
    assert!(pc_lru.1 > lru.1, "pages made full: {} with PC-LRU, {} with LRU", pc_lru.1, lru.1);
}

/// One page of a block of four leaves: with padding the other three are read and written with it (BPLRU, 4.2).
#[test]
fn a_padded_block_is_written_whole_and_what_it_lacks_is_read() {
    for (padding, padded) in [(false, 0), (true, 3)] {
        let mut config = one_chip("bplru");
        config.buffer.own.set("block_pages", 4_u32);
        config.buffer.own.set("bplru_padding", padding);
        let mut drive =
            Drive::new(&config, Options { seed: 1, contents: Contents::Stamps }).expect("an accepted drive");
        // Whole blocks, so that nothing is padded while flash is filled.
        write_pages(&mut drive, &(0..16).map(|block| (block * 32, 32)).collect::<Vec<_>>());
        flush(&mut drive);
        drive.reset_statistics();
        // Not in order, or the blocks would go to the bottom.
        write_pages(&mut drive, &[(8, 8)]);
        write_pages(&mut drive, &(8..16).rev().map(|page| (page * 8, 8)).collect::<Vec<_>>());
        let counters = drive.counters().buffer;
        assert_eq!((counters.evictions, counters.padded_pages), (1, padded), "one page needs room");
        flush(&mut drive);
        assert_checks(&drive);
        let flash = drive.counters().flash;
        let rewritten = ssdlab_flash::Cause::ReadModifyWrite;
        assert_eq!(flash.get(OpKind::Read, rewritten), padded);
        assert_eq!(flash.get(OpKind::Program, rewritten), padded);
        assert_eq!(flash.get(OpKind::Program, ssdlab_flash::Cause::Host), 9);
    }
}

/// A page that was read stays with CFLRU: reading it again needs no flash, and writing a part of it no read.
#[test]
fn what_was_read_is_kept_clean_and_dropped_before_anything_dirty() {
    let mut drive =
        Drive::new(&one_chip("cflru"), Options { seed: 1, contents: Contents::Stamps }).expect("an accepted drive");
    write_pages(&mut drive, &(0..64).map(|page| (page * 8, 8)).collect::<Vec<_>>());
    flush(&mut drive);
    drive.reset_statistics();
    // The pages written last are gone from the buffer; the first read finds room, as nothing is dirty.
    for _ in 0..2 {
        alone(&mut drive, &Request::new(Op::Read, 0, 8), 0);
    }
    let counters = drive.counters();
    assert_eq!(counters.flash.total(OpKind::Read), 1, "the second read finds it in the buffer");
    assert_eq!((counters.buffer.read_misses, counters.buffer.read_hits), (1, 1));
    assert_eq!(counters.buffer.pages_now, 0, "a clean page has not to go to flash");
    alone(&mut drive, &Request::new(Op::Write, 2, 3), 7);
    flush(&mut drive);
    let counters = drive.counters();
    assert_eq!(counters.flash.total(OpKind::Read), 1, "nothing was to be completed");
    assert_eq!((counters.buffer.full_pages, counters.buffer.partial_pages), (1, 0));
    assert_checks(&drive);
}

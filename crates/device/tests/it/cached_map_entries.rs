//! A cache of the map by entry: what a miss costs, how often there is one, and every hit, miss and victim against a list.

use std::collections::BTreeSet;

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Drive, DriveConfig, MapRequests, MapUser, Options, Settings};
use ssdlab_flash::Contents;

use crate::timing_support::*;

const PAGE: u32 = 4096;
/// Entries of a map page of 512 bytes.
const ENTRIES: u32 = 128;
/// Bytes of a cached entry: it has the number of its unit.
const CACHED_ENTRY: u64 = 8;

/// One die with half of its `blocks` blocks of `pages` pages for the user, and so many entries cached.
fn one_die(blocks: u32, pages: u32, cached: u64) -> DriveConfig {
    let mut config = drive(1, 1, 1);
    config.flash.geometry.blocks_per_plane = blocks;
    config.flash.geometry.pages_per_block = pages;
    config.user_bytes = config.flash.geometry.bytes() / 2;
    config.ftl.design = "dftl".to_string();
    config.ftl.own = Settings::default()
        .with("map_page", 512_u32)
        .with("map_cache_by", "entry")
        .with("map_cache", CACHED_ENTRY * cached);
    config
}

/// Reads of 512 bytes of a map page.
fn load() -> u64 {
    COMMAND + READ + part(1)
}

fn page(op: Op, lpn: u32) -> Request {
    Request::new(op, u64::from(lpn) * 8, 8)
}

fn counted(drive: &Drive) -> [u64; 6] {
    let stats = drive.counters().map_cache.expect("a drive that caches its map");
    let MapRequests { hits, misses, loads, flushes } = stats.by[MapUser::Host as usize];
    [hits, misses, stats.evictions, loads, stats.update_reads, flushes]
}

#[test]
fn a_dirty_miss_reads_a_page_programs_it_and_reads_another_one() {
    let mut host = Host::new(&one_die(64, 16, 2));
    // Map pages that were never programmed are there at once, and have nothing that a program would keep.
    host.assert_takes(page(Op::Write, 0), &[PROGRAM_PAGE]);
    host.assert_takes(page(Op::Write, 1), &[PROGRAM_PAGE]);
    host.assert_takes(page(Op::Write, 0), &[PROGRAM_PAGE]);
    // Both dirty entries are of one map page: one program, and one of them is still cached.
    host.assert_takes(page(Op::Write, ENTRIES), &[PROGRAM_PAGE, PROGRAM_PAGE]);
    host.assert_takes(page(Op::Read, 0), &[READ_PAGE]);
    // The entry that was used longest ago is that of the other map page: it is programmed, and the first one read.
    host.assert_takes(page(Op::Read, 1), &[PROGRAM_PAGE, load(), READ_PAGE]);
    host.assert_takes(page(Op::Write, 1), &[PROGRAM_PAGE]);
    // A clean entry leaves at once.
    host.assert_takes(page(Op::Write, ENTRIES + 1), &[load(), PROGRAM_PAGE]);
    // A dirty one has its map page read, programmed, and the other map page read.
    host.assert_takes(page(Op::Read, ENTRIES), &[load(), PROGRAM_PAGE, load(), READ_PAGE]);
    host.assert_checks_hold();
}

/// An entry of a map page that is being read comes with it, and counts as no load of its own; behind another miss it waits.
#[test]
fn with_one_load_at_a_time_neighbours_share_it_unless_another_miss_is_between_them() {
    let mut config = one_die(64, 16, 64);
    config.ftl.own.set("map_loads", 1_u32);
    let mut host = Host::new(&config);
    for map_page in 0..4 {
        host.assert_takes(page(Op::Write, map_page * ENTRIES), &[PROGRAM_PAGE]);
    }
    // As many entries as are cached push these out, and are clean.
    host.send(Op::Read, u64::from(ENTRIES + 10) * 8, 64 * 8);
    host.run();
    host.send(Op::Read, u64::from(2 * ENTRIES + 10) * 8, 64 * 8);
    host.run();
    let start = host.now();
    let entries = [7, 8, ENTRIES + 7, 9];
    let tags = entries.map(|entry| host.send(Op::Read, u64::from(entry) * 8, 8));
    host.run();
    let ends = tags.map(|tag| host.end(tag).expect("it ended") - start);
    assert_eq!(ends, [load(), load(), 2 * load(), 3 * load()]);
    host.assert_checks_hold();
}

#[test]
fn uniform_writes_miss_in_proportion_to_what_is_not_cached() {
    // Blocks, and cached entries of the eight units of each.
    for (blocks, cached) in [(64, 64), (64, 128), (64, 256), (128, 768), (128, 1000)] {
        let mut config = one_die(blocks, 16, cached);
        config.timed = false;
        let mut drive =
            Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
        let units = (drive.user_sectors() / 8) as u32;
        let mut rng = rng(7, "overwrites");
        let mut overwrite = |drive: &mut Drive, requests: u32| {
            for _ in 0..requests {
                drive.submit(&page(Op::Write, rng.random_range(0..units)));
                drive.completions().clear();
            }
        };
        overwrite(&mut drive, 20_000);
        let before = counted(&drive);
        overwrite(&mut drive, 200_000);
        let after = counted(&drive);
        let (hits, misses) = (after[0] - before[0], after[1] - before[1]);
        assert!((200_000..202_000).contains(&(hits + misses)), "{hits} hits and {misses} misses of 200,000 writes");
        let (ratio, expected) = (misses as f64 / 200_000.0, 1.0 - cached as f64 / f64::from(units));
        println!("{cached} of {units} entries: {ratio:.4} misses a write, expected {expected:.4}");
        assert!((ratio / expected - 1.0).abs() < 0.01, "{ratio} misses a write, expected {expected}");
        assert!(drive.check().iter().all(|check| check.passed));
    }
}

/// The cache as a list. Nothing is in flight when a command comes.
struct Model {
    capacity: usize,
    /// Cached entries, the one used last at the end.
    list: Vec<u32>,
    dirty: BTreeSet<u32>,
    /// Map pages with trims that are not on flash, in order.
    trimmed: Vec<u32>,
    /// Map pages that are on flash.
    written: BTreeSet<u32>,
    mapped: Vec<bool>,
    counted: [u64; 6],
}

impl Model {
    fn program(&mut self, map_page: u32) {
        let [.., base_reads, _] = &mut self.counted;
        *base_reads += u64::from(!self.written.insert(map_page));
        self.dirty.retain(|entry| entry / ENTRIES != map_page);
        self.trimmed.retain(|other| *other != map_page);
    }

    /// Entries that are needed at the same time.
    fn need(&mut self, entries: std::ops::Range<u32>) {
        let held = entries.clone().filter(|entry| self.list.contains(entry)).count();
        let missing: Vec<u32> = entries.clone().filter(|entry| !self.list.contains(entry)).collect();
        self.counted[0] += held as u64;
        self.counted[1] += missing.len() as u64;
        for (done, entry) in missing.iter().enumerate() {
            if self.list.len() == self.capacity {
                self.make_room(&entries, missing.len() - done);
            }
            self.counted[3] += u64::from(self.written.contains(&(entry / ENTRIES)));
            self.list.push(*entry);
        }
        for entry in entries {
            self.list.retain(|other| *other != entry);
            self.list.push(entry);
        }
    }

    /// The entry that was used longest ago leaves. If it is dirty, its map page is programmed before, and those of the dirty
    /// entries behind it that must leave for the same command.
    fn make_room(&mut self, kept: &std::ops::Range<u32>, wanted: usize) {
        let leaving = self.list.iter().filter(|entry| !kept.contains(entry)).take(wanted);
        let dirty = leaving.copied().take_while(|entry| self.dirty.contains(entry));
        let mut map_pages: Vec<u32> = dirty.map(|entry| entry / ENTRIES).collect();
        let mut seen = BTreeSet::new();
        map_pages.retain(|map_page| seen.insert(*map_page));
        self.counted[5] += map_pages.len() as u64;
        map_pages.into_iter().for_each(|map_page| self.program(map_page));
        let oldest = self.list.iter().position(|entry| !kept.contains(entry)).expect("an entry that nobody needs");
        self.list.remove(oldest);
        self.counted[2] += 1;
    }

    fn run(&mut self, op: Op, first: u32, count: u32) {
        let end = first + count;
        match op {
            Op::Read => {
                let together = (self.capacity as u32 / 2).clamp(1, 256);
                for from in (first..end).step_by(together as usize) {
                    self.need(from..end.min(from + together));
                }
            }
            Op::Write => {
                self.need(first..end);
                self.dirty.extend(first..end);
                self.mapped[first as usize..end as usize].fill(true);
            }
            Op::Trim => {
                // Segments are the largest power of two that half of the cache holds.
                let segment = 1 << (self.capacity as u32 / 2).clamp(1, ENTRIES).ilog2();
                let mut from = first;
                while from < end {
                    let to = end.min((from / segment + 1) * segment);
                    self.need(from..to);
                    let units = from as usize..to as usize;
                    if self.mapped[units.clone()].contains(&true) {
                        self.mapped[units].fill(false);
                        self.dirty.extend(from..to);
                        if !self.trimmed.contains(&(from / ENTRIES)) {
                            self.trimmed.push(from / ENTRIES);
                        }
                    }
                    from = to;
                }
            }
            _ => self.trimmed.clone().into_iter().for_each(|map_page| self.program(map_page)),
        }
    }
}

/// A command, every third from where the last one was.
fn command(rng: &mut Rng, units: u32, per_page: u32, last: u32) -> (Op, u32, u32) {
    let (op, most) = match rng.random_range(0..100) {
        0..50 => (Op::Write, per_page),
        50..70 => (Op::Read, per_page),
        70..80 => (Op::Read, 100),
        80..90 => (Op::Trim, 4),
        90..95 => (Op::Trim, 150),
        _ => (Op::Flush, 1),
    };
    let count = rng.random_range(1..=most);
    let first = if rng.random_range(0..3) == 0 { last.min(units - count) } else { rng.random_range(0..=units - count) };
    (op, first, count)
}

#[test]
fn every_hit_miss_and_victim_is_that_of_a_list() {
    for (unit, cached) in [(4096, 2), (4096, 3), (4096, 40), (1024, 4), (1024, 37), (512, 8), (512, 300)] {
        let per_page = PAGE / unit;
        for seed in 1..=4 {
            // So large blocks that none is full before the test ends: nothing is collected.
            let mut config = one_die(20, 2048, cached);
            config.timed = false;
            config.ftl.mapping_unit = unit;
            let units = 6 * ENTRIES;
            config.user_bytes = u64::from(units * unit);
            let mut drive =
                Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
            let mut model = Model {
                capacity: cached as usize,
                list: Vec::new(),
                dirty: BTreeSet::new(),
                trimmed: Vec::new(),
                written: BTreeSet::new(),
                mapped: vec![false; units as usize],
                counted: [0; 6],
            };
            let mut rng = rng(seed, "map entries");
            let mut last = 0;
            for number in 0..1500 {
                let (op, first, count) = command(&mut rng, units, per_page, last);
                last = first;
                let told = format!("command {number}, {op:?} of {count} units from {first}, cached {:?}", model.list);
                model.run(op, first, count);
                let sectors = u64::from(unit / 512);
                let (from, length) = (u64::from(first) * sectors, u64::from(count) * sectors);
                drive.submit(&if op == Op::Flush { Request::new(op, 0, 0) } else { Request::new(op, from, length) });
                drive.completions().clear();
                assert_eq!(
                    counted(&drive),
                    model.counted,
                    "hits, misses, evictions, loads, reads for a program, flushes after {told}"
                );
            }
            assert!(
                model.counted.iter().all(|count| *count > 20),
                "hits, misses, evictions, loads, reads for a program, flushes are {:?}",
                model.counted
            );
            assert!(drive.check().iter().all(|check| check.passed));
        }
    }
}

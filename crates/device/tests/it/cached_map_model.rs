//! The cache of map pages against a reference model: a list in the order of use, which is searched from its end.
//!
//! The model says of each command which map pages it misses, which of them leave for that, which are programmed together, and
//! which are read. The drive is not asked: its chips tell. A map page is known by the place where the model says that it
//! was programmed last, so a page that was not the one that the model programmed is read at another place than expected.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{DriveConfig, MapRequests, MapUser, Settings};
use ssdlab_flash::{Cause, OpKind, Ppn, Resource};

use crate::timing_support::{Host, Spans, drive};

const PAGE: u32 = 4096;
const MAP_PAGE: u32 = 512;
const ENTRIES: u32 = MAP_PAGE / 4;
/// Pages of the list that are looked at for others to be programmed with one that leaves.
const LOOKED_AT: usize = 64;
/// Map pages that a read asks for together.
const READ_TOGETHER: u32 = 4;

/// Map pages of the drives.
const MAP_PAGES: u32 = 12;

/// One die whose blocks are so large that none is full before a test ends: nothing is collected, and no map page is flushed for
/// active blocks.
fn config(unit: u32, cached: u32, packing: bool, timed: bool) -> DriveConfig {
    let mut config = drive(1, 1, 1);
    config.timed = timed;
    config.flash.geometry.pages_per_block = 2048;
    config.flash.geometry.blocks_per_plane = 20;
    config.user_bytes = u64::from(MAP_PAGES * ENTRIES * unit);
    config.ftl.mapping_unit = unit;
    config.ftl.design = "dftl".to_string();
    config.ftl.own = Settings::default()
        .with("map_page", MAP_PAGE)
        .with("map_cache", u64::from(MAP_PAGE * cached))
        .with("map_packing", packing);
    config
}

/// What a command does to map pages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Effect {
    hits: u64,
    misses: u64,
    evictions: u64,
    /// Pages programmed, each with those that share its page of flash.
    programs: Vec<Vec<u32>>,
    /// Pages read, each with how many of the programs were before it.
    loads: Vec<(u32, usize)>,
}

struct Model {
    capacity: usize,
    shared: usize,
    units_per_page: u32,
    timed: bool,
    /// Cached pages, the one used last at the end.
    list: Vec<u32>,
    dirty: BTreeSet<u32>,
    /// Pages with trims that are not on flash, in order.
    trimmed: Vec<u32>,
    /// Pages that are on flash.
    written: BTreeSet<u32>,
    mapped: Vec<bool>,
}

impl Model {
    fn touch(&mut self, page: u32) {
        self.list.retain(|other| *other != page);
        self.list.push(page);
    }

    fn program(&mut self, pages: Vec<u32>, effect: &mut Effect) {
        for page in &pages {
            self.dirty.remove(page);
            self.trimmed.retain(|other| other != page);
            self.written.insert(*page);
        }
        effect.programs.push(pages);
    }

    /// Pages that are needed at the same time.
    fn need(&mut self, pages: BTreeSet<u32>, effect: &mut Effect) {
        // Programs of this command that have not ended, by the pages in them.
        let mut in_program: Vec<Vec<u32>> = Vec::new();
        let held = self.list.iter().filter(|page| pages.contains(page)).count() as u64;
        effect.hits += held;
        effect.misses += pages.len() as u64 - held;
        let mut cached = self.list.len();
        for page in pages.iter().filter(|page| !self.list.contains(page)).copied().collect::<Vec<u32>>() {
            if cached < self.capacity {
                cached += 1;
            } else {
                let victim = loop {
                    let busy = |page: &u32| in_program.iter().any(|program| program.contains(page));
                    let mut oldest = self.list.iter().filter(|page| !pages.contains(page) && !busy(page));
                    if let Some(victim) = oldest.next() {
                        break *victim;
                    }
                    // Only pages that are on their way to flash could leave: the first of them is waited for.
                    in_program.remove(0);
                };
                effect.evictions += 1;
                if self.dirty.contains(&victim) {
                    let others = self.list.iter().take(LOOKED_AT).filter(|page| {
                        **page != victim
                            && self.dirty.contains(page)
                            && !in_program.iter().any(|program| program.contains(page))
                    });
                    let program: Vec<u32> =
                        std::iter::once(victim).chain(others.take(self.shared - 1).copied()).collect();
                    if self.timed {
                        in_program.push(program.clone());
                    }
                    self.program(program, effect);
                }
                self.list.retain(|other| *other != victim);
            }
            if self.written.contains(&page) {
                effect.loads.push((page, effect.programs.len()));
            }
        }
        pages.into_iter().for_each(|page| self.touch(page));
    }

    fn pages(first: u32, end: u32) -> BTreeSet<u32> {
        (first / ENTRIES..=(end - 1) / ENTRIES).collect()
    }

    fn run(&mut self, op: Op, first: u32, count: u32) -> Effect {
        let mut effect = Effect::default();
        let end = first + count;
        match op {
            Op::Read => {
                let together = READ_TOGETHER.min(self.capacity as u32 / 2).max(1);
                let mut from = first;
                while from < end {
                    let to = end.min((from / ENTRIES + together) * ENTRIES);
                    self.need(Model::pages(from, to), &mut effect);
                    from = to;
                }
            }
            Op::Write => {
                assert!(count <= self.units_per_page, "{count} units are written to one page");
                let pages = Model::pages(first, end);
                self.need(pages.clone(), &mut effect);
                self.dirty.extend(pages);
                self.mapped[first as usize..end as usize].fill(true);
            }
            Op::Trim => {
                for page in Model::pages(first, end) {
                    self.need(BTreeSet::from([page]), &mut effect);
                    let units = first.max(page * ENTRIES) as usize..end.min((page + 1) * ENTRIES) as usize;
                    if self.mapped[units.clone()].contains(&true) {
                        self.mapped[units].fill(false);
                        self.dirty.insert(page);
                        if !self.trimmed.contains(&page) {
                            self.trimmed.push(page);
                        }
                    }
                }
            }
            _ => {
                for pages in self.trimmed.clone().chunks(self.shared) {
                    self.program(pages.to_vec(), &mut effect);
                }
            }
        }
        effect
    }
}

/// A command of whole units, and what it does to the model.
fn command(rng: &mut Rng, model: &mut Model) -> (Op, u32, u32, Effect) {
    let units = MAP_PAGES * ENTRIES;
    let (op, most) = match rng.random_range(0..100) {
        0..45 => (Op::Write, model.units_per_page),
        45..65 => (Op::Read, model.units_per_page),
        65..80 => (Op::Read, 5 * ENTRIES),
        80..90 => (Op::Trim, 4),
        90..95 => (Op::Trim, 3 * ENTRIES),
        _ => (Op::Flush, 1),
    };
    let count = rng.random_range(1..=most);
    let first = rng.random_range(0..=units - count);
    let effect = model.run(op, first, count);
    (op, first, count, effect)
}

/// Counters of the cache that the model knows, too.
fn counted(host: &Host) -> [u64; 7] {
    let stats = host.drive.counters().map_cache.expect("a drive that caches its map");
    let MapRequests { hits, misses, loads, flushes } = stats.by[MapUser::Host as usize];
    assert_eq!(stats.flushes(), flushes + stats.flushed_with_others + stats.flushed_for_trims, "no block was changed");
    [hits, misses, stats.evictions, flushes, loads, stats.flushed_with_others, stats.flushed_for_trims]
}

/// Counters, and the place of each map page that was programmed or read by the last command.
fn compare(unit: u32, cached: u32, packing: bool, timed: bool, seed: u64) {
    let mut host = Host::new(&config(unit, cached, packing, timed));
    let spans = Spans::watch(&mut host.drive);
    let units_per_page = PAGE / unit;
    let mut model = Model {
        capacity: cached as usize,
        shared: if packing { (PAGE / MAP_PAGE) as usize } else { 1 },
        units_per_page,
        timed,
        list: Vec::new(),
        dirty: BTreeSet::new(),
        trimmed: Vec::new(),
        written: BTreeSet::new(),
        mapped: vec![false; (MAP_PAGES * ENTRIES) as usize],
    };
    let mut rng = rng(seed, "map commands");
    let mut places: BTreeMap<u32, Ppn> = BTreeMap::new();
    let (mut seen, mut counters) = (0, counted(&host));
    let sectors = u64::from(unit / 512);
    let mut happened = [0; 3];
    for number in 0..1200 {
        let (op, first, count, expected) = command(&mut rng, &mut model);
        let request = Request::new(op, u64::from(first) * sectors, u64::from(count) * sectors);
        host.send_request(if op == Op::Flush { Request::new(op, 0, 0) } else { request });
        host.run();
        let told =
            format!("command {number}, {op:?} of {count} units from {first}: {expected:?}, cached {:?}", model.list);
        let (groups, pages) = (expected.programs.len() as u64, expected.programs.iter().flatten().count() as u64);
        let (dirty, others, of_trims) = if op == Op::Flush { (0, 0, pages) } else { (groups, pages - groups, 0) };
        let loads = expected.loads.len() as u64;
        let changes = [expected.hits, expected.misses, expected.evictions, dirty, loads, others, of_trims];
        let after = counted(&host);
        let found: Vec<u64> = after.iter().zip(&counters).map(|(after, before)| after - before).collect();
        assert_eq!(
            found, changes,
            "hits, misses, evictions, flushes, loads, flushes with others and for trims of {told}"
        );
        counters = after;
        for (happened, count) in happened.iter_mut().zip([expected.misses, dirty, expected.loads.len() as u64]) {
            *happened += count;
        }
        if !timed {
            continue;
        }
        let all = spans.taken();
        let of_map = |kind: OpKind| {
            let on_die =
                all[seen..].iter().filter(move |span| span.kind == kind && matches!(span.resource, Resource::Die(_)));
            let mut spans: Vec<_> =
                on_die.filter(|span| matches!(span.cause, Cause::Mapping | Cause::Metadata)).collect();
            spans.sort_by_key(|span| span.start);
            spans.into_iter().map(|span| span.ppn).collect::<Vec<Ppn>>()
        };
        let (programs, mut reads) = (of_map(OpKind::Program), of_map(OpKind::Read));
        assert_eq!(programs.len(), expected.programs.len(), "programs of {told}");
        let mut wanted: Vec<Ppn> = Vec::new();
        for (done, place) in programs.iter().map(Some).chain([None]).enumerate() {
            let loads = expected.loads.iter().filter(|(_, before)| *before == done);
            wanted.extend(loads.map(|(page, _)| places[page]));
            if let Some(place) = place {
                places.extend(expected.programs[done].iter().map(|page| (*page, *place)));
            }
        }
        reads.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(reads, wanted, "places of {told}");
        seen = all.len();
    }
    host.assert_checks_hold();
    assert!(happened.iter().all(|count| *count > 20), "misses, programs, loads: {happened:?}");
}

#[test]
fn every_hit_miss_and_victim_is_that_of_a_list() {
    for (unit, packing) in [(4096, true), (4096, false), (1024, true), (512, true), (512, false)] {
        // A command needs up to as many map pages as there are units in a page of flash.
        let least = (PAGE / unit).max(2);
        for cached in [least, least + 1, MAP_PAGES - 2] {
            for timed in [true, false] {
                for seed in 1..=3 {
                    compare(unit, cached, packing, timed, seed);
                }
            }
        }
    }
}

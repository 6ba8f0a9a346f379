//! Merges of the designs `bast` and `fast` against a reference model that knows nothing of flash: how many of each kind there are
//! for a sequence of page writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rand::RngExt;
use ssdlab_base::{Op, Request, rng};
use ssdlab_device::{Description, Drive, DriveConfig, Options};
use ssdlab_flash::Contents;
use ssdlab_workload::open_trace;

const PAGE_SECTORS: u64 = 8;

/// 64 MiB of flash in blocks of 31 pages and a header; `user` bytes of it the user's.
fn config(design: &str, percent: u32) -> DriveConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices/demo-slc.toml");
    let mut description = Description::load(&path).expect("it ships");
    let design = format!("ftl.design={design}");
    let log_blocks = format!("ftl.log_blocks={percent}%");
    let sets = [
        design.as_str(),
        log_blocks.as_str(),
        "flash.pages_per_block=32",
        "flash.blocks_per_plane=32",
        "capacity.user=40m",
        "ftl.superblock=none",
        "ftl.allocation=dynamic",
        "gc.pacing=off",
        "buffer.policy=none",
        "buffer.size=0",
        "flash.timing=none",
    ];
    for set in sets {
        description.set(set).unwrap_or_else(|error| panic!("{error}"));
    }
    description.resolve().unwrap_or_else(|error| panic!("{error}"))
}

/// A log block: the logical block that it is of, if it is of one; its pages; and when it was written last.
#[derive(Clone, Debug)]
struct Log {
    id: u64,
    logical: Option<u64>,
    pages: Vec<u64>,
    used: u64,
}

struct Model {
    fast: bool,
    /// The sequential log block is merged when its logical block is written out of order, and a new one takes the write, as
    /// in Lee et al.; the drive's stays.
    merges_out_of_order: bool,
    /// Pages of a logical block, those of the user's, and log blocks at most.
    pages: u64,
    user: u64,
    most: usize,
    /// By logical block: pages of its data block that were given out, and whether more can be.
    homes: BTreeMap<u64, (u64, bool)>,
    held: BTreeSet<u64>,
    /// Pages whose newest copy is in a log block, and in which.
    in_log: BTreeMap<u64, u64>,
    logs: Vec<Log>,
    clock: u64,
    ids: u64,
    switch: u64,
    partial: u64,
    full: u64,
}

impl Model {
    fn of(config: &DriveConfig, percent: u32) -> Model {
        let geometry = &config.flash.geometry;
        let most = (u64::from(geometry.blocks()) * u64::from(percent) / 100) as usize;
        let fast = config.ftl.design == "fast";
        Model {
            fast,
            merges_out_of_order: false,
            pages: u64::from(geometry.pages_per_block) - 1,
            user: config.user_bytes / 4096,
            most: most.max(if fast { 2 } else { 1 }),
            homes: BTreeMap::new(),
            held: BTreeSet::new(),
            in_log: BTreeMap::new(),
            logs: Vec::new(),
            clock: 0,
            ids: 0,
            switch: 0,
            partial: 0,
            full: 0,
        }
    }

    fn write(&mut self, page: u64) {
        let (logical, offset) = (page / self.pages, page % self.pages);
        let within = self.pages.min(self.user - logical * self.pages);
        let all = logical * self.pages..logical * self.pages + within;
        loop {
            if !self.held.contains(&page) && self.homes.get(&logical) == Some(&(offset, true)) {
                self.homes.insert(logical, (offset + 1, offset + 1 < self.pages));
                self.held.insert(page);
                return;
            }
            if offset == 0 && !self.homes.contains_key(&logical) && self.held.range(all.clone()).next().is_none() {
                self.homes.insert(logical, (0, true));
                continue;
            }
            let pages = self.pages as usize;
            let of_it = self.logs.iter().position(|log| log.logical == Some(logical));
            let has_room = |log: &Log| log.pages.len() < pages;
            let log = if self.fast {
                let is_next = |log: &Log| match log.pages.last() {
                    Some(last) if self.merges_out_of_order => last + 1 == page,
                    None if self.merges_out_of_order => true,
                    _ => log.pages.len() as u64 == offset,
                };
                let goes_on = |log: &Log| log.logical == Some(logical) && is_next(log) && has_room(log);
                let of_it = of_it.filter(|log| self.merges_out_of_order && !goes_on(&self.logs[*log]));
                if let Some(index) = of_it.filter(|_| offset != 0) {
                    self.merge(index);
                    self.ids += 1;
                    let (id, used) = (self.ids, self.clock);
                    self.logs.push(Log { id, logical: Some(logical), pages: Vec::new(), used });
                    continue;
                }
                let newest =
                    || self.logs.iter().rposition(|log| log.logical.is_none()).filter(|log| has_room(&self.logs[*log]));
                self.logs.iter().position(goes_on).or_else(|| if offset == 0 { None } else { newest() })
            } else {
                of_it.filter(|log| has_room(&self.logs[*log]))
            };
            if let Some(log) = log {
                self.clock += 1;
                let log = &mut self.logs[log];
                log.pages.push(page);
                log.used = self.clock;
                self.in_log.insert(page, log.id);
                self.held.insert(page);
                return;
            }
            let sequential = self.logs.iter().position(|log| log.logical.is_some());
            let oldest = match self.fast {
                true => self.logs.iter().position(|log| log.logical.is_none()).or(sequential),
                false => (0..self.logs.len()).min_by_key(|log| self.logs[*log].used),
            };
            match if self.fast { sequential.filter(|_| offset == 0) } else { of_it } {
                Some(log) => self.merge(log),
                None if self.logs.len() < self.most => {
                    self.ids += 1;
                    let logical = (!self.fast || offset == 0).then_some(logical);
                    self.logs.push(Log { id: self.ids, logical, pages: Vec::new(), used: self.clock });
                }
                None => self.merge(oldest.expect("there are log blocks")),
            }
        }
    }

    fn merge(&mut self, index: usize) {
        let log = self.logs[index].clone();
        let Some(logical) = log.logical else {
            for page in &log.pages {
                if self.in_log.get(page) == Some(&log.id) {
                    self.full += 1;
                    self.merge_whole(page / self.pages);
                }
            }
            self.logs.retain(|other| other.id != log.id);
            return;
        };
        let first = logical * self.pages;
        let within = self.pages.min(self.user - first);
        let in_order = log.pages.iter().zip(first..).all(|(page, expected)| *page == expected);
        let all_held = self.held.range(first..first + within).count() as u64 == within;
        if !in_order || !all_held || log.pages.is_empty() {
            self.full += 1;
            return self.merge_whole(logical);
        }
        if (log.pages.len() as u64) < within {
            self.partial += 1;
            // What is copied is the newest, wherever it is.
            self.in_log.retain(|page, _| !(first + log.pages.len() as u64..first + within).contains(page));
        } else {
            self.switch += 1;
        }
        self.in_log.retain(|_, id| *id != log.id);
        self.homes.insert(logical, (within, false));
        self.logs.remove(index);
    }

    fn merge_whole(&mut self, logical: u64) {
        let first = logical * self.pages;
        let end = (first + self.pages).min(self.user);
        let pages = self.held.range(first..end).next_back().map_or(0, |last| last - first + 1);
        self.in_log.retain(|page, _| !(first..end).contains(page));
        self.homes.insert(logical, (pages, pages < self.pages));
        self.logs.retain(|log| log.logical != Some(logical));
    }
}

/// Writes the pages to a drive and to the model; what the merges were.
fn compare(design: &str, percent: u32, writes: impl Iterator<Item = u64>) -> (u64, u64, u64) {
    let config = config(design, percent);
    let mut drive = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
    let mut model = Model::of(&config, percent);
    for (number, page) in writes.enumerate() {
        let page = page % model.user;
        model.write(page);
        drive.submit(&Request::new(Op::Write, page * PAGE_SECTORS, PAGE_SECTORS));
        drive.completions().clear();
        if number % 1000 == 0 {
            assert_eq!(counted(&drive), (model.switch, model.partial, model.full), "{design}, after write {number}");
        }
    }
    let merges = counted(&drive);
    assert_eq!(merges, (model.switch, model.partial, model.full), "{design}");
    for check in drive.check() {
        assert!(check.passed, "{design}: {}: {}", check.name, check.detail);
    }
    merges
}

fn counted(drive: &Drive) -> (u64, u64, u64) {
    let counts: BTreeMap<String, f64> = drive.design().into_iter().collect();
    let count = |name: &str| counts[name] as u64;
    (count("switch_merges"), count("partial_merges"), count("full_merges"))
}

/// The pages that a recording's first writes touch, whole or in part.
fn recorded(name: &str, most: usize) -> Vec<u64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recordings").join(name);
    let mut trace = open_trace(path.to_str().expect("a path in UTF-8")).expect("it ships");
    let (mut requests, mut pages) = (Vec::new(), Vec::new());
    while pages.len() < most {
        requests.clear();
        if trace.read(&mut requests).expect("it is well formed") == 0 {
            break;
        }
        let writes = requests.iter().filter(|request| request.op == Op::Write && request.sectors > 0);
        pages.extend(writes.flat_map(|request| request.sector / PAGE_SECTORS..request.end().div_ceil(PAGE_SECTORS)));
    }
    pages.truncate(most);
    pages
}

#[test]
fn merges_of_recordings_are_those_of_the_model() {
    for name in
        ["sqlite_wal_rollback_xfs.csv.zst", "mariadb_tpcc_ext4.csv.zst", "rocksdb_fillrandom_overwrite_ext4.csv.zst"]
    {
        let pages = recorded(name, 60_000);
        assert!(pages.len() > 30_000, "{name} writes {} pages", pages.len());
        for design in ["bast", "fast"] {
            let (switch, partial, full) = compare(design, 15, pages.iter().copied());
            println!("{name}, {design}: {switch} switch, {partial} partial, {full} full merges");
            assert!(switch + partial + full > 100, "{name}, {design}: few merges");
        }
    }
}

/// What `fast` would merge with the other reading of its paper. The drive keeps its sequential log block.
#[test]
fn merging_what_is_written_out_of_order_merges_more() {
    for name in
        ["sqlite_wal_rollback_xfs.csv.zst", "mariadb_tpcc_ext4.csv.zst", "rocksdb_fillrandom_overwrite_ext4.csv.zst"]
    {
        let config = config("fast", 15);
        let of = |merges_out_of_order| {
            let mut model = Model { merges_out_of_order, ..Model::of(&config, 15) };
            for page in recorded(name, 60_000) {
                model.write(page % model.user);
            }
            (model.switch, model.partial, model.full)
        };
        let (kept, merged) = (of(false), of(true));
        println!("{name}: switch, partial and full merges {kept:?} if it stays, {merged:?} if it is merged");
        assert!(merged.2 >= kept.2, "{name}: {kept:?}, {merged:?}");
    }
}

#[test]
fn merges_of_random_writes_and_runs_are_those_of_the_model() {
    for seed in 0..24 {
        let mut random = rng(seed, "log blocks");
        let span = [200, 1000, 20_000][seed as usize % 3];
        let percent = [1, 5, 15][seed as usize / 3 % 3];
        let mut run = 0..0;
        let writes: Vec<u64> = (0..15_000)
            .map(|_| {
                run.next().unwrap_or_else(|| {
                    // Runs begin at a logical block half of the time: then log blocks may be switched.
                    let length = [1, 1, 3, 31, 40][random.random_range(0..5)];
                    let first = random.random_range(0..span);
                    let first = if random.random_bool(0.5) { first / 31 * 31 } else { first };
                    run = first + 1..first + length;
                    first
                })
            })
            .collect();
        let (mut kinds, mut all) = ([0; 3], 0);
        for design in ["bast", "fast"] {
            let (switch, partial, full) = compare(design, percent, writes.iter().copied());
            kinds = [kinds[0] + switch, kinds[1] + partial, kinds[2] + full];
            all += switch + partial + full;
        }
        assert!(all > 50, "seed {seed}: {kinds:?}");
    }
}

#[test]
fn overwriting_in_order_switches_and_half_a_block_merges_in_part() {
    // 20 logical blocks written once and again: BAST keeps five log blocks (1 % of 512), FAST one for sequential writes.
    let twice = (0..2 * 20 * 31).map(|page| page % (20 * 31));
    assert_eq!(compare("bast", 1, twice.clone()), (15, 0, 0));
    assert_eq!(compare("fast", 1, twice), (19, 0, 0));
    // Then the first half of each.
    let halves = (0..20 * 31).chain((0..20).flat_map(|block| block * 31..block * 31 + 15));
    assert_eq!(compare("bast", 1, halves.clone()), (0, 15, 0));
    assert_eq!(compare("fast", 1, halves), (0, 19, 0));
}

//! A map on flash, of which a part is cached by map page: what DFTL is (Gupta et al., ASPLOS 2009), by page as in the SHRD
//! paper, section 2.
//!
//! The map is cut into *map pages* of `entries` entries, which are programmed into map blocks. Where the newest of each is, the
//! *directory* says, which is in RAM. An entry changes in a cached page alone. What is not cached equals what is on flash; so
//! the mapping beside this, which has all entries as they are, stands for the cached pages and for those on flash alike, and
//! each load and each eviction asserts that it does. With a log of what relocation changed, a page that is not cached is what is on
//! flash and the log's entries of it.
//!
//! A map page is programmed only while all that its entries name is on flash: what is *unsettled*, data in flight, keeps its
//! page in the cache. So a map page on flash never names a page that a power cut kept from being written. With its entries it has
//! the number of its program: it knows of all programs and trims before that.
//!
//! - `lru.rs`: the order of use.
//! - `jobs.rs`: who waits for which pages.
//! - `load.rs`: misses: a page leaves, another one comes.
//! - `log.rs`: changes that relocation makes in pages that are not cached.
//! - `blocks.rs`: programs of map pages, and collection of their blocks.
//! - `flush.rs`: dirty pages that are programmed while they stay: for trims, and when active blocks are full.
//! - `recovery.rs`: the map from map blocks, and from data blocks that were active.
//! - `saved.rs`: snapshots.

mod blocks;
mod flush;
mod jobs;
mod load;
mod log;
mod lru;
mod recovery;
mod saved;

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_flash::{Lpn, UnitId};

use self::blocks::{Collection, Program};
use self::flush::{Change, Flush};
use self::jobs::Jobs;
use self::log::Log;
use self::lru::Lru;
use super::Asker;
use super::page::PageFtl;
use super::page::metadata::Content;
use crate::media::{Media, Place};
use crate::slots::Slots;
use crate::{Check, DriveConfig};

pub(super) use blocks::quota;
pub(super) use log::LOG_ENTRY_BYTES;

/// Map pages of a map that is compared with flash whole at each load, and entries that are looked at in a larger one.
const WHOLE_PAGES_COMPARED: u32 = 64;
const ENTRIES_COMPARED: u32 = 16;

/// Bytes of a map entry.
const ENTRY_BYTES: u32 = 4;

/// Sizes, in the terms of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The user's mapping units.
    pub(super) user_units: u32,
    /// Bytes of a map page, and its entries.
    pub(super) page_bytes: u32,
    pub(super) entries: u32,
    /// Map pages of the whole map.
    pub(super) pages: u32,
    /// Mapping units that one takes on flash.
    pub(super) units: u32,
    /// Map pages that are programmed into one page of flash at most.
    pub(super) in_page: u32,
    /// Map pages that are cached at most.
    pub(super) capacity: u32,
    /// Entries of the log of what relocation changed; 0: there is none.
    pub(super) log_entries: u32,
    /// Superblocks opened for data until dirty map pages are flushed.
    pub(super) active: u64,
}

impl Shape {
    /// The shape of a drive's map, of which `capacity` pages of `page_bytes` are cached.
    pub(super) fn new(config: &DriveConfig, page_bytes: u32, capacity: u32, share: bool) -> Shape {
        let (unit, flash_page) = (config.ftl.mapping_unit, config.flash.geometry.page_bytes);
        let entries = page_bytes / ENTRY_BYTES;
        let units = page_bytes.div_ceil(unit);
        let groups = config.flash.geometry.planes() / config.ftl.superblock.planes(&config.flash.geometry);
        Shape {
            user_units: config.user_units(),
            page_bytes,
            entries,
            pages: config.user_units().div_ceil(entries),
            units,
            in_page: if share { (flash_page / unit / units).max(1) } else { 1 },
            capacity,
            log_entries: 0,
            active: u64::from(groups * config.frontiers()),
        }
    }

    /// Mapping units of metadata: the map pages, and the record of what is active.
    pub(super) const fn metadata_units(&self) -> u32 {
        self.pages * self.units + 1
    }

    /// The map page of a unit.
    #[inline]
    pub(super) fn page_of(&self, lpn: Lpn) -> u32 {
        lpn / self.entries
    }

    /// The units that a map page maps.
    fn mapped_by(&self, page: u32) -> Range<Lpn> {
        let first = page * self.entries;
        Lpn(first)..Lpn((first + self.entries).min(self.user_units))
    }

    /// The number under which a map page is on flash.
    fn lpn_of(&self, page: u32) -> Lpn {
        Lpn(self.user_units + page * self.units)
    }

    /// The number of the record of what is active.
    fn record_lpn(&self) -> Lpn {
        Lpn(self.user_units + self.pages * self.units)
    }

    /// The map page that is on flash under a number; `None` if it is another page's.
    fn page_at(&self, lpn: Lpn) -> Option<u32> {
        let of_map = lpn.0.checked_sub(self.user_units)?;
        (of_map < self.pages * self.units).then_some(of_map / self.units)
    }
}

/// A map page, as the controller sees it.
#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    /// Programs of data that its entries name, and that are not on flash.
    unsettled: u32,
    /// Jobs that keep it in the cache.
    pins: u16,
    /// Programs of it that are not on flash.
    in_program: u16,
    /// It differs from what is on flash.
    dirty: bool,
    /// A trim that it has is in no program yet.
    trimmed: bool,
    /// It is to be programmed while it stays in the cache.
    flush: bool,
    /// ... as soon as it is settled: what the host writes waits until then.
    held: bool,
    /// Commands wait for the program that has its trims, and none is in flight yet.
    promised: bool,
    /// It was dirty when the active blocks were full, and is in no program since.
    in_change: bool,
    /// A read of it is due or in flight.
    loading: bool,
    /// It was loaded before somebody asked for it, and counted then.
    ahead: bool,
}

/// An operation of the map in flight.
#[derive(Clone, Debug)]
enum MapOp {
    Load {
        page: u32,
    },
    /// Pages that are programmed, where they were before, and the page whose place one of them leaves free.
    Program(Program),
    /// The record of what is active.
    Record {
        before: Option<UnitId>,
    },
}

/// What the cache did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Pages asked for that were cached, and that were not: by the host, what leaves the buffer, GC, and flushes of the log.
    pub(super) hits: [u64; 4],
    pub(super) misses: [u64; 4],
    /// Pages read.
    pub(super) loads: u64,
    /// Pages that left the cache, and those of them that were dirty.
    pub(super) evictions: u64,
    pub(super) dirty_evictions: u64,
    /// Pages programmed with one that left; for trims; because active blocks were full.
    pub(super) companions: u64,
    pub(super) trim_flushes: u64,
    pub(super) change_flushes: u64,
    /// Times that active blocks became data blocks.
    pub(super) changes: u64,
    /// Pages moved out of map blocks.
    pub(super) moved: u64,
    /// Entries put into the log, and those that left it for their pages; flushes of the log.
    pub(super) logged: u64,
    pub(super) log_applied: u64,
    pub(super) log_flushes: u64,
}

/// Entries of a map page that changed since it was programmed: the simulator need not copy the others.
#[derive(Clone, Debug, Default)]
struct Changes {
    entries: Vec<u32>,
    /// There are more, or it is not known which they are.
    many: bool,
}

/// Entries that are told apart at most.
const CHANGES_KNOWN: usize = 64;

impl Changes {
    fn push(&mut self, entry: u32) {
        if self.many {
            return;
        }
        if self.entries.len() == CHANGES_KNOWN {
            return self.are_many();
        }
        self.entries.push(entry);
    }

    fn are_many(&mut self) {
        self.many = true;
        self.entries.clear();
    }

    /// The changed entries, if they are known; none are left.
    fn take(&mut self) -> Option<&mut Vec<u32>> {
        let known = !std::mem::take(&mut self.many);
        known.then_some(&mut self.entries)
    }
}

/// The cached part of a map, its directory, and map blocks.
pub(super) struct MapCache {
    pub(super) shape: Shape,
    lru: Lru,
    pages: Vec<PageState>,
    jobs: Jobs,
    /// Places of the cache that a page is about to leave, or to take.
    in_transit: u32,
    /// Pages that are kept beside the cache, of a drive that takes no more writes.
    beside: u32,
    read_only: bool,
    /// Pages that wait for a place in the cache, for one in a map block, or for a program of themselves.
    waiting: VecDeque<u32>,
    /// Pages that nobody has asked for yet, and that are loaded when no other waits.
    ahead: VecDeque<u32>,
    /// Pages that have a place, and wait for a program of themselves.
    placed: Vec<u32>,
    ops: Slots<MapOp>,
    /// Operations in flight.
    in_flight: u32,
    flush: Flush,
    change: Option<Change>,
    log: Log,
    /// Superblocks that had been opened for data when dirty pages were flushed last, and that have been by now.
    changed_at: u64,
    opened: u64,
    collections: Vec<Collection>,
    /// The group that takes the next map page.
    next_group: u32,
    /// Pages of data that became active or were changed by recovery, to be flushed.
    found_dirty: Vec<u32>,
    /// By page: entries that changed since it was programmed.
    changes: Vec<Changes>,
    /// Words of map pages that were superseded, to be used again.
    spare_words: Vec<Box<[u64]>>,
    pub(super) counters: Counters,
}

impl MapCache {
    pub(super) fn new(config: &DriveConfig, shape: Shape) -> MapCache {
        let groups = config.flash.geometry.planes() / config.ftl.superblock.planes(&config.flash.geometry);
        assert!(shape.entries.is_power_of_two(), "a map page has {} entries", shape.entries);
        assert!(shape.capacity > 0, "a cache holds a map page");
        assert!(shape.in_page > 0, "a page of flash holds a map page");
        MapCache {
            shape,
            lru: Lru::new(shape.pages),
            pages: vec![PageState::default(); shape.pages as usize],
            jobs: Jobs::default(),
            in_transit: 0,
            beside: 0,
            read_only: false,
            waiting: VecDeque::new(),
            ahead: VecDeque::new(),
            placed: Vec::new(),
            ops: Slots::default(),
            in_flight: 0,
            flush: Flush::default(),
            change: None,
            log: Log::default(),
            changed_at: 0,
            opened: 0,
            collections: vec![Collection::default(); groups as usize],
            next_group: 0,
            found_dirty: Vec::new(),
            changes: vec![Changes::default(); shape.pages as usize],
            spare_words: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// As [`super::CachedMap::request`], of map pages: distinct ones, at most as many as are cached.
    pub(super) fn request(&mut self, data: &mut PageFtl, media: &mut Media, asker: Asker, pages: &[u32]) -> bool {
        if self.jobs.is_empty() && pages.iter().all(|page| self.is_at_hand(asker, *page)) {
            self.count(asker, pages);
            self.use_all(pages);
            return true;
        }
        if let Some(job) = self.jobs.of(asker) {
            if job.pages == pages {
                if !job.granted || job.missing > 0 {
                    return false;
                }
                self.use_all(pages);
                self.let_go(media, asker);
                return true;
            }
            self.let_go(media, asker);
        }
        let (count, most) = (pages.len(), self.shape.capacity);
        assert!(count <= most as usize, "{asker:?} asks for {count} map pages of a cache for {most}");
        self.count(asker, pages);
        if pages.iter().all(|page| self.is_at_hand(asker, *page)) {
            self.use_all(pages);
            return true;
        }
        self.jobs.push(asker, pages.to_vec());
        self.grant(data, media);
        // What was never programmed comes at once, and without time all does, unless a map block has to be erased first.
        let there = self.jobs.of(asker).is_some_and(|job| job.granted && job.missing == 0);
        if there {
            media.map_is_cached.retain(|other| *other != asker);
            self.use_all(pages);
            self.let_go(media, asker);
        }
        there
    }

    /// The asker uses what it asked for now, or asks no more. Others have their turn later: until then nothing leaves.
    pub(super) fn let_go(&mut self, media: &mut Media, asker: Asker) {
        let Some(job) = self.jobs.end(asker) else { return };
        if job.granted {
            for page in job.pages {
                let pins = &mut self.pages[page as usize].pins;
                assert!(*pins > 0, "map page {page} is let go of, and nobody keeps it");
                *pins -= 1;
            }
        }
        media.map_has_room = true;
    }

    /// The same, if all that it asked for is cached.
    pub(super) fn let_go_served(&mut self, media: &mut Media, asker: Asker) {
        if self.jobs.of(asker).is_some_and(|job| job.granted && job.missing == 0) {
            self.let_go(media, asker);
        }
    }

    /// Jobs that fit are granted: what they lack is loaded.
    fn grant(&mut self, data: &mut PageFtl, media: &mut Media) {
        while let Some(job) = self.jobs.grant(self.shape.capacity) {
            let (asker, count) = (self.jobs.job(job).asker, self.jobs.job(job).pages.len());
            for index in 0..count {
                let page = self.jobs.job(job).pages[index];
                self.pages[page as usize].pins += 1;
                if self.is_at_hand(asker, page) {
                    continue;
                }
                self.jobs.wait(job, page);
                if !self.lru.contains(page) && !self.pages[page as usize].loading {
                    self.pages[page as usize].loading = true;
                    self.waiting.push_back(page);
                }
            }
            if self.jobs.job(job).missing == 0 {
                media.map_is_cached.push(asker);
            }
            self.load_waiting(data, media);
        }
    }

    /// Whether an asker can do with a page what it wants. What is held waits for data in flight, which may wait for a free
    /// block: so GC goes on.
    #[inline]
    fn is_at_hand(&self, asker: Asker, page: u32) -> bool {
        let waits = matches!(asker, Asker::Command(_) | Asker::Buffer);
        self.lru.contains(page) && !(waits && self.pages[page as usize].held)
    }

    fn use_all(&mut self, pages: &[u32]) {
        for page in pages {
            debug_assert!(self.lru.contains(*page), "map page {page} is used, and is not cached");
            self.lru.touch(*page);
        }
    }

    fn count(&mut self, asker: Asker, pages: &[u32]) {
        let by = match asker {
            Asker::Command(_) | Asker::Read(_) => 0,
            Asker::Buffer => 1,
            Asker::Gc(_) => 2,
            Asker::Log => 3,
        };
        for page in pages {
            if std::mem::take(&mut self.pages[*page as usize].ahead) {
                continue;
            }
            if self.lru.contains(*page) {
                self.counters.hits[by] += 1;
            } else {
                self.counters.misses[by] += 1;
            }
        }
    }

    /// An entry of a cached page was changed; `unsettled` if what it names is not on flash.
    #[inline]
    pub(super) fn changed(&mut self, lpn: Lpn, unsettled: bool) {
        let page = self.shape.page_of(lpn);
        debug_assert!(
            self.lru.contains(page),
            "the entry of unit {lpn} changes in map page {page}, which is not cached"
        );
        let state = &mut self.pages[page as usize];
        state.dirty = true;
        state.unsettled += u32::from(unsettled);
        self.changes[page as usize].push(lpn.0 % self.shape.entries);
    }

    /// As [`super::CachedMap::set_read_only`].
    pub(super) fn set_read_only(&mut self) {
        self.read_only = true;
    }

    /// Entries of a cached page were unmapped.
    pub(super) fn trimmed(&mut self, lpn: Lpn) {
        let page = self.shape.page_of(lpn);
        assert!(self.lru.contains(page), "unit {lpn} is trimmed in map page {page}, which is not cached");
        self.changes[page as usize].are_many();
        let state = &mut self.pages[page as usize];
        state.dirty = true;
        if !std::mem::replace(&mut state.trimmed, true) {
            self.flush.trimmed.push(page);
            self.flush.unsaved += 1;
        }
    }

    /// What a page holds is on flash, or was sent elsewhere after its program failed.
    pub(super) fn settled(&mut self, data: &mut PageFtl, media: &mut Media, place: Place) {
        let first = media.unit_at(place);
        let mut is_free = false;
        for index in 0..media.units_per_page {
            let lpn = media.flash.oob.lpn(first + index);
            if lpn.0 >= self.shape.user_units {
                continue;
            }
            let page = self.shape.page_of(lpn);
            let state = &mut self.pages[page as usize];
            assert!(state.unsettled > 0, "unit {lpn} of {place:?} is on flash, and map page {page} waits for none");
            state.unsettled -= 1;
            if state.unsettled == 0 {
                is_free = true;
                if state.held {
                    self.flush.settled.push(page);
                }
            }
        }
        if is_free && (!self.waiting.is_empty() || !self.flush.settled.is_empty()) {
            self.flush_pages(data, media);
            self.has_room(data, media);
        }
    }

    /// Somebody has used what was cached for him: others may have the places.
    pub(super) fn has_room(&mut self, data: &mut PageFtl, media: &mut Media) {
        self.grant(data, media);
        self.load_waiting(data, media);
        if !self.log.is_at_rest() {
            self.flush_log(data, media);
        }
    }

    /// What waits for a place, or for settled pages, is tried again.
    pub(super) fn go_on(&mut self, data: &mut PageFtl, media: &mut Media) {
        for group in 0..self.collections.len() as u32 {
            self.collect(data, media, group);
        }
        self.flush_pages(data, media);
        self.has_room(data, media);
    }

    /// A map page's words as changes of those that it has on flash, if these are few and known.
    fn content(&mut self, data: &PageFtl, media: &Media, page: u32) -> Content {
        let as_of = media.sequence();
        let before = data.unit_of(self.shape.lpn_of(page)).filter(|unit| media.flash.oob.can_be_put_over(*unit));
        // An image writes records down whole.
        let is_kept = media.flash.store.image().is_some();
        let known = self.changes[page as usize].take();
        let (Some(from), Some(entries), false) = (before, known, is_kept) else {
            self.changes[page as usize].entries.clear();
            return Content::Whole(self.words(data, as_of, page));
        };
        let mapped: &[u32] = bytemuck::cast_slice(data.entries(self.shape.mapped_by(page)));
        let half = |entry: u32| u64::from(mapped.get(entry as usize).copied().unwrap_or(UnitId::NONE.0));
        let word = |entry: u32| (1 + entry / 2, half(entry & !1) | half(entry | 1) << 32);
        let changes = std::iter::once((0, as_of)).chain(entries.drain(..).map(word)).collect();
        Content::Over { from, changes }
    }

    /// A map page as its words on flash: the number of its program, which it keeps where it is moved, and its entries.
    fn words(&mut self, data: &PageFtl, as_of: u64, page: u32) -> Box<[u64]> {
        let entries = data.entries(self.shape.mapped_by(page));
        let length = 1 + (self.shape.entries as usize).div_ceil(2);
        let mut words = self.spare_words.pop().unwrap_or_else(|| vec![0; length].into());
        words[0] = as_of;
        let (mapped, behind) = bytemuck::cast_slice_mut::<u64, UnitId>(&mut words[1..]).split_at_mut(entries.len());
        mapped.copy_from_slice(entries);
        behind.fill(UnitId::NONE);
        words
    }

    /// Whether a map page on flash, with what the log has of it, says what the map says; one that was never programmed maps
    /// nothing.
    fn equals_flash(&self, data: &PageFtl, media: &Media, page: u32) -> bool {
        self.equals_flash_in(data, media, page, self.shape.mapped_by(page))
    }

    /// The same as far as each load and each eviction looks: at the whole page in a debug build and where the map is small, else
    /// at a part that moves on, since all pages are compared when a run ends.
    fn seems_equal_to_flash(&self, data: &PageFtl, media: &Media, page: u32) -> bool {
        let whole = self.shape.mapped_by(page);
        if cfg!(debug_assertions) || self.shape.pages <= WHOLE_PAGES_COMPARED {
            return self.equals_flash_in(data, media, page, whole);
        }
        let turn = (self.counters.loads + self.counters.evictions) as u32;
        let first = whole.start + turn.wrapping_mul(ENTRIES_COMPARED) % self.shape.entries;
        self.equals_flash_in(data, media, page, first.min(whole.end)..(first + ENTRIES_COMPARED).min(whole.end))
    }

    fn equals_flash_in(&self, data: &PageFtl, media: &Media, page: u32, range: Range<Lpn>) -> bool {
        let entries: &[u32] = bytemuck::cast_slice(data.entries(range.clone()));
        if self.log.has_entries_of(range.clone()) {
            return self.equals_flash_and_log(data, media, page, range);
        }
        let Some(unit) = data.unit_of(self.shape.lpn_of(page)) else {
            return entries.iter().all(|entry| *entry == UnitId::NONE.0);
        };
        let words = media.flash.oob.record(unit).unwrap_or_else(|| panic!("map page {page} has no words on flash"));
        let first = range.start.index() - self.shape.mapped_by(page).start.index();
        bytemuck::cast_slice::<u64, u32>(&words[1..])[first..first + entries.len()] == *entries
    }

    /// Bytes of RAM that a real drive has for this, by name.
    pub(super) fn memory(&self) -> Vec<(&'static str, u64)> {
        let pages = u64::from(self.shape.pages);
        let cached = u64::from(self.shape.capacity);
        vec![
            ("map_cache_bytes", cached * u64::from(self.shape.page_bytes)),
            ("map_directory_bytes", pages * u64::from(ENTRY_BYTES)),
            ("map_log_bytes", u64::from(self.shape.log_entries) * u64::from(LOG_ENTRY_BYTES)),
        ]
    }

    /// Counters by name.
    pub(super) fn figures(&self) -> Vec<(String, f64)> {
        let counters = &self.counters;
        let asked = ["host", "buffer", "gc", "log"];
        let by = |name: &str, counts: [u64; 4]| asked.map(|who| format!("map_{name}_{who}")).into_iter().zip(counts);
        let single = [
            ("map_loads", counters.loads),
            ("map_evictions", counters.evictions),
            ("map_evictions_dirty", counters.dirty_evictions),
            ("map_pages_programmed_with_others", counters.companions),
            ("map_flushes_for_trims", counters.trim_flushes),
            ("map_flushes_of_active_blocks", counters.change_flushes),
            ("map_block_changes", counters.changes),
            ("map_pages_moved", counters.moved),
            ("map_log_entries", counters.logged),
            ("map_log_entries_applied", counters.log_applied),
            ("map_log_flushes", counters.log_flushes),
        ];
        let single = single.map(|(name, count)| (name.to_string(), count));
        let all = by("hits", counters.hits).chain(by("misses", counters.misses)).chain(single);
        all.map(|(name, count)| (name, count as f64)).collect()
    }

    /// The cache is no larger than it may be, and what is clean is on flash.
    pub(super) fn check(&self, data: &PageFtl, media: &Media) -> Vec<Check> {
        let cached = self.lru.len() + self.in_transit;
        let clean = (0..self.shape.pages).filter(|page| {
            let state = &self.pages[*page as usize];
            !state.dirty && state.in_program == 0
        });
        let wrong = clean.filter(|page| !self.equals_flash(data, media, *page)).count();
        let mut checks = self.check_log(data);
        checks.extend([
            Check {
                name: "map_cache_within_its_size",
                held: cached <= self.shape.capacity + self.beside,
                detail: format!("{cached} map pages cached, of {} that fit", self.shape.capacity),
            },
            Check {
                name: "clean_map_pages_equal_flash",
                held: wrong == 0,
                detail: format!("{wrong} of {} map pages differ from flash, and are not dirty", self.shape.pages),
            },
        ]);
        checks
    }
}

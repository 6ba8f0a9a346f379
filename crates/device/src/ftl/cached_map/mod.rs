//! A map on flash, partly cached in RAM: what DFTL is (Gupta et al., ASPLOS 2009), by map page as in the SHRD paper,
//! section 2, or by entry as in the original.
//!
//! The map is cut into *map pages* of `entries` entries, which are programmed into map blocks. Where the newest of each is, the
//! *directory* says, which is in RAM. The cache consists of *lines*: a line is a map page, or an entry. An entry changes in a
//! cached line alone. What is not cached equals what is on flash; so the mapping beside this, which has all entries as they
//! are, stands for the cached lines and for those on flash alike, and each load and each eviction asserts that it does. With a
//! log of what relocation changed, a page that is not cached is what is on flash and the log's entries of it.
//!
//! A map page is programmed only while all that its entries name is on flash: what is *unsettled*, data in flight, keeps its
//! page in the cache. So a map page on flash never names a page that a power cut kept from being written. With its entries it has
//! the number of its program: it knows of all programs and trims before that.
//!
//! - `geometry.rs`: sizes.
//! - `lru.rs`: the order of use.
//! - `keys.rs`: what descriptions say of it.
//! - `pending_loads.rs`: who waits for which lines.
//! - `load.rs`: misses: a line leaves, another one comes; how many at one time.
//! - `log.rs`: changes that relocation makes in pages that are not cached.
//! - `blocks.rs`: programs of map pages, and collection of their blocks.
//! - `flush.rs`: dirty pages that are programmed while they stay: for trims, when active blocks are full, and before dirty
//!   entries leave.
//! - `recovery.rs`: the map from map blocks, and from data blocks that were active.
//! - `shared.rs`: map pages that share a mapping unit.
//! - `saved.rs`: snapshots.
//! - `in_flight.rs`: what of this a power cut falls into.

mod blocks;
mod flush;
mod geometry;
mod in_flight;
pub(super) mod keys;
mod load;
mod log;
mod lru;
mod pending_loads;
mod recovery;
mod saved;
mod shared;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use rustc_hash::FxHashMap;
use ssdlab_base::saved;
use ssdlab_flash::{Lpn, UnitId};

use self::blocks::{Collection, Program};
use self::flush::{Change, Flush};
use self::geometry::ENTRY_BYTES;
use self::log::Log;
use self::lru::Lru;
use self::pending_loads::Jobs;
use self::shared::Shared;
use super::Waiter;
use super::page::PageFtl;
use super::page::metadata::Content;
use crate::media::{Media, Place};
use crate::slots::Slots;
use crate::{Check, DriveConfig, MapCacheStats, MapUser};

pub(super) use blocks::quota;
pub(super) use geometry::Shape;
pub(super) use log::LOG_ENTRY_BYTES;
pub(super) use recovery::{Found, Logged};

/// Map pages of a map that is compared with flash whole at each load and eviction. In a larger one, entries that are
/// looked at, and at which load or eviction, since a look misses the caches twice; odd, so that both have their turns.
const WHOLE_PAGES_COMPARED: u32 = 64;
const ENTRIES_COMPARED: u32 = 16;
const LOOKS_EVERY: u32 = 5;

/// Bytes of a cached line for the order of use: its number, and both neighbours.
const ORDER_BYTES: u64 = 12;

/// Bytes of a cached line for its state: programs of data that it waits for, and whether it differs from flash.
const STATE_BYTES: u64 = 5;

/// A superblock from one erase to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) superblock: u32,
    /// The number of its first program.
    opened: u64,
}

impl Life {
    /// What a superblock is in now; its first page was programmed.
    pub(super) fn of(media: &Media, superblock: u32) -> Life {
        let place = media.pool.superblocks.place(superblock, 0);
        Life { superblock, opened: media.flash.oob.sequence(place.block, place.page) }
    }

    /// Whether the superblock was not erased since.
    pub(super) fn goes_on(self, media: &Media) -> bool {
        media.pool.superblocks.is_whole(self.superblock) && Life::of(media, self.superblock) == self
    }
}

// When it was opened is on flash.
saved!(Life: superblock);

/// In the entry of a unit that holds nothing: the rest is the number of a write of the host.
const TRIMMED: u32 = 1 << 31;

/// A map page, as the controller sees it.
#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    /// Programs of data that its entries name, and that are not on flash.
    unsettled: u32,
    /// Programs of it that are not on flash.
    in_program: u16,
    /// It differs from what is on flash.
    dirty: bool,
    /// A trim that it has is in no program yet.
    trimmed: bool,
    /// For whom it is programmed so that entries may leave, where that is why.
    flushed_for: Option<MapUser>,
    /// It is to be programmed while it stays in the cache.
    flush: bool,
    /// It is to be programmed as soon as it is settled: what the host writes waits until then.
    held: bool,
    /// Commands wait for the program that has its trims, and none is in flight yet.
    promised: bool,
    /// It was dirty when the active blocks were full, and is in no program since.
    in_change: bool,
    /// A load of it is in flight.
    reading: bool,
    /// Of a cache by entry: how far its entries on flash are, which a program of the dirty ones goes with.
    base: Base,
}

/// Entries of a map page on flash, of which some are to be programmed anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Base {
    #[default]
    OnFlash,
    Reading,
    Read,
}

/// Bytes that the simulator has for a line, in the cache or not: its state, and its place in the order of use.
pub(in crate::ftl) const LINE_STATE_BYTES: u64 = (size_of::<LineState>() + lru::LINK_BYTES) as u64;

/// A line of the cache, as the controller sees it.
#[derive(Clone, Copy, Debug, Default)]
struct LineState {
    /// Jobs that keep it in the cache.
    pins: u16,
    /// A load of it is due or in flight.
    loading: bool,
    /// It was loaded before it was asked for, and counted then.
    ahead: bool,
    /// Who asked first for the load that is due or in flight.
    loaded_for: MapUser,
    /// Of a cache by entry: it differs from what is on flash.
    dirty: bool,
}

/// An operation of the map in flight.
#[derive(Clone, Debug)]
enum MapOp {
    Load {
        line: u32,
    },
    /// The entries of a page that a program of dirty ones goes with.
    Base {
        page: u32,
    },
    /// Pages that are programmed, where they were before, and the page whose place one of them leaves free.
    Program(Program),
    /// The record of what is active.
    Record {
        before: Option<UnitId>,
    },
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
    lines: Vec<LineState>,
    jobs: Jobs,
    /// Lines of the cache that a page is about to leave, or to take.
    in_transit: u32,
    /// Lines that are kept beside the cache, of a drive that takes no more writes.
    beside: u32,
    read_only: bool,
    /// Lines that wait for a place in the cache, for one in a map block, or for a program of their page.
    waiting: VecDeque<u32>,
    /// Lines that have not been asked for yet, and that are loaded when no other waits.
    ahead: VecDeque<u32>,
    /// Who needs them.
    ahead_for: MapUser,
    /// Lines that have a place, and wait for a program of their page, or for their turn after one that failed.
    placed: VecDeque<u32>,
    /// Lines whose place a page has not left yet, because its program failed.
    stuck: u32,
    /// By page: lines that come with a load in flight which another line asked for.
    joined: FxHashMap<u32, Vec<u32>>,
    /// By page: cached lines that jobs wait for while it is held.
    held_lines: FxHashMap<u32, Vec<u32>>,
    shared: Shared,
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
    /// Lines that recovery changed, to be cached or programmed.
    found_dirty: Vec<u32>,
    /// By page: entries that changed since it was programmed.
    changes: Vec<Changes>,
    /// Words of map pages that were superseded, to be used again.
    spare_words: Vec<Box<[u64]>>,
    /// Units that hold nothing, and whose entries say since which write of the host: copies of them that no map page names
    /// are older.
    trimmed_since: BTreeMap<Lpn, u32>,
    /// Superblocks of a log of which all names were final when a change began that is on flash.
    settled_logs: Vec<Life>,
    /// All such, also before, that were not erased since: to recovery they are data blocks already.
    data_on_flash: Vec<Life>,
    /// A page settled, and no waiter went on since.
    any_settled: bool,
    pub(super) counters: MapCacheStats,
}

impl MapCache {
    pub(super) fn new(config: &DriveConfig, shape: Shape) -> MapCache {
        let groups = config.flash.geometry.planes() / config.ftl.superblock.planes(&config.flash.geometry);
        assert!(shape.entries.is_power_of_two(), "a map page has {} entries", shape.entries);
        assert!(shape.capacity > 0, "a cache holds a line");
        assert!(shape.in_page > 0, "a page of flash holds a map page");
        MapCache {
            shape,
            lru: Lru::new(shape.lines()),
            pages: vec![PageState::default(); shape.pages as usize],
            lines: vec![LineState::default(); shape.lines() as usize],
            jobs: Jobs::default(),
            in_transit: 0,
            beside: 0,
            read_only: false,
            waiting: VecDeque::new(),
            ahead: VecDeque::new(),
            ahead_for: MapUser::Buffer,
            placed: VecDeque::new(),
            stuck: 0,
            joined: FxHashMap::default(),
            held_lines: FxHashMap::default(),
            shared: Shared::new(&shape),
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
            trimmed_since: BTreeMap::new(),
            settled_logs: Vec::new(),
            data_on_flash: Vec::new(),
            any_settled: false,
            counters: MapCacheStats::default(),
        }
    }

    /// Whether all `lines` are cached, for [`super::CachedMap::request`]. They stay so until the next call; if they are
    /// not, they will be. The lines are distinct, and at most as many as the cache holds.
    pub(super) fn request(&mut self, data: &mut PageFtl, media: &mut Media, waiter: Waiter, lines: &[u32]) -> bool {
        if self.jobs.is_empty() && lines.iter().all(|line| self.is_at_hand(waiter, *line)) {
            self.count(waiter, lines);
            self.use_all(lines);
            return true;
        }
        // A drive that takes no more writes programs nothing: no page is held back for that.
        if self.read_only && lines.iter().all(|line| self.lru.contains(*line)) {
            self.release_job(media, waiter);
            self.use_all(lines);
            return true;
        }
        if let Some(job) = self.jobs.of(waiter) {
            if job.lines == lines {
                if !job.granted || job.missing > 0 {
                    return false;
                }
                self.use_all(lines);
                self.release_job(media, waiter);
                return true;
            }
            self.release_job(media, waiter);
        }
        let (count, most) = (lines.len(), self.shape.capacity);
        assert!(count <= most as usize, "{waiter:?} asks for {count} lines of a cache for {most}");
        self.count(waiter, lines);
        if lines.iter().all(|line| self.is_at_hand(waiter, *line)) {
            self.use_all(lines);
            return true;
        }
        self.jobs.push(waiter, lines.to_vec());
        self.grant(data, media);
        // What was never programmed comes at once, and without time all does, unless a map block has to be erased first.
        let there = self.jobs.of(waiter).is_some_and(|job| job.granted && job.missing == 0);
        if there {
            media.wakes.map_waiters.retain(|other| *other != waiter);
            self.use_all(lines);
            self.release_job(media, waiter);
        }
        there
    }

    /// The waiter uses what it asked for now, or asks no more. Its lines lose their
    /// pins; none of them leaves the cache within this call.
    pub(super) fn release_job(&mut self, media: &mut Media, waiter: Waiter) {
        let Some(job) = self.jobs.end(waiter) else { return };
        if job.granted {
            for line in job.lines {
                let pins = &mut self.lines[line as usize].pins;
                assert!(*pins > 0, "line {line} of the map is let go of, and nobody keeps it");
                *pins -= 1;
            }
        }
        media.wakes.map_slot_free = true;
    }

    /// The waiter's job ends as in [`MapCache::release_job`], if all that it asked for is cached.
    pub(super) fn release_served_job(&mut self, media: &mut Media, waiter: Waiter) {
        if self.jobs.of(waiter).is_some_and(|job| job.granted && job.missing == 0) {
            self.release_job(media, waiter);
        }
    }

    /// Jobs that fit are granted: what they lack is loaded.
    fn grant(&mut self, data: &mut PageFtl, media: &mut Media) {
        while let Some(job) = self.jobs.grant(self.shape.capacity) {
            let (waiter, count) = (self.jobs.job(job).waiter, self.jobs.job(job).lines.len());
            for index in 0..count {
                let line = self.jobs.job(job).lines[index];
                self.lines[line as usize].pins += 1;
                if self.is_at_hand(waiter, line) {
                    continue;
                }
                self.jobs.wait(job, line);
                if self.lru.contains(line) {
                    self.held_lines.entry(self.shape.page_of_line(line)).or_default().push(line);
                } else if !std::mem::replace(&mut self.lines[line as usize].loading, true) {
                    self.lines[line as usize].loaded_for = waiter.user();
                    self.waiting.push_back(line);
                }
            }
            if self.jobs.job(job).missing == 0 {
                media.wakes.map_waiters.push(waiter);
            }
            self.load_waiting(data, media);
        }
    }

    /// Whether a waiter can do with a line what it wants. What is held waits for data in flight, which may wait for a free
    /// block: so GC goes on.
    #[inline]
    fn is_at_hand(&self, waiter: Waiter, line: u32) -> bool {
        let waits = matches!(waiter, Waiter::Command(_) | Waiter::Buffer);
        self.lru.contains(line) && !(waits && self.pages[self.shape.page_of_line(line) as usize].held)
    }

    fn use_all(&mut self, lines: &[u32]) {
        for line in lines {
            debug_assert!(self.lru.contains(*line), "line {line} of the map is used, and is not cached");
            self.lru.touch(*line);
        }
    }

    fn count(&mut self, waiter: Waiter, lines: &[u32]) {
        let counters = self.counters.of(waiter.user());
        for line in lines {
            if std::mem::take(&mut self.lines[*line as usize].ahead) {
                continue;
            }
            if self.lru.contains(*line) {
                counters.hits += 1;
            } else {
                counters.misses += 1;
            }
        }
    }

    /// An entry of a cached line was changed; `unsettled` if what it names is not on flash.
    #[inline]
    pub(super) fn changed(&mut self, lpn: Lpn, unsettled: bool) {
        let (page, line) = (self.shape.page_of(lpn), self.shape.line_of(lpn));
        debug_assert!(self.lru.contains(line), "the entry of unit {lpn} changes in map page {page}, and is not cached");
        self.lines[line as usize].dirty = true;
        let state = &mut self.pages[page as usize];
        state.dirty = true;
        state.unsettled += u32::from(unsettled);
        self.changes[page as usize].push(lpn.0 % self.shape.entries);
    }

    /// Copies of a unit that no map page names are older than a trim, of which the entry tells from now on; it is about to be
    /// told of with [`MapCache::trimmed`].
    pub(super) fn trimmed_since(&mut self, lpn: Lpn, number: u32) {
        assert!(number < TRIMMED - 1, "write {number} of the host is behind what an entry has room for");
        self.trimmed_since.insert(lpn, number);
    }

    /// A unit was written or remapped: its entry says where it is.
    #[inline]
    pub(super) fn is_mapped_again(&mut self, lpn: Lpn) {
        if !self.trimmed_since.is_empty() {
            self.trimmed_since.remove(&lpn);
        }
    }

    /// Since which write of the host a unit holds nothing, if its entry tells.
    pub(super) fn is_trimmed_since(&self, lpn: Lpn) -> Option<u32> {
        self.trimmed_since.get(&lpn).copied()
    }

    /// The entries of a range as they are on flash.
    fn entries<'a>(&self, data: &'a PageFtl, range: Range<Lpn>) -> Cow<'a, [UnitId]> {
        let entries = data.entries(range.clone());
        let mut trimmed = self.trimmed_since.range(range.clone()).peekable();
        if trimmed.peek().is_none() {
            return Cow::Borrowed(entries);
        }
        let mut entries = entries.to_vec();
        for (lpn, number) in trimmed {
            let entry = &mut entries[lpn.index() - range.start.index()];
            assert_eq!(*entry, UnitId::NONE, "unit {lpn} was trimmed, and holds data");
            *entry = UnitId(TRIMMED | number);
        }
        Cow::Owned(entries)
    }

    /// To recovery a superblock of a log is a data block, and it is still one of the log.
    pub(super) fn is_data_on_flash(&mut self, life: Life) {
        self.data_on_flash.push(life);
    }

    /// Superblocks of a log that may become data blocks: all that they hold has its final name, on flash.
    pub(super) fn take_settled_logs(&mut self) -> Vec<Life> {
        std::mem::take(&mut self.settled_logs)
    }

    /// The drive takes no more writes: lines that can never leave the cache may be kept beside it, as
    /// [`super::CachedMap::set_read_only`] says.
    pub(super) fn set_read_only(&mut self) {
        self.read_only = true;
    }

    pub(in crate::ftl) const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Entries of cached lines, of one map page, were unmapped.
    pub(super) fn trimmed(&mut self, units: Range<Lpn>) {
        let page = self.shape.page_of(units.start);
        let last = Lpn(units.end.0 - 1);
        assert_eq!(self.shape.page_of(last), page, "units {units:?} are trimmed at once, of several map pages");
        for line in self.shape.line_of(units.start)..=self.shape.line_of(last) {
            assert!(
                self.lru.contains(line),
                "units of map page {page} are trimmed in line {line}, which is not cached"
            );
            self.lines[line as usize].dirty = true;
        }
        self.has_trims(page);
    }

    /// A cached page has trims that are in no program.
    fn has_trims(&mut self, page: u32) {
        self.changes[page as usize].are_many();
        let state = &mut self.pages[page as usize];
        state.dirty = true;
        if !std::mem::replace(&mut state.trimmed, true) {
            self.flush.trimmed.push(page);
            self.flush.unsaved += 1;
        }
    }

    /// Whether a line differs from what is on flash.
    fn is_dirty(&self, line: u32) -> bool {
        if self.shape.by_entry { self.lines[line as usize].dirty } else { self.pages[line as usize].dirty }
    }

    /// A page is held no longer: jobs that wait for its cached lines go on.
    fn is_held_no_longer(&mut self, media: &mut Media, page: u32) {
        assert!(!self.pages[page as usize].held, "map page {page} is held still");
        for line in self.held_lines.remove(&page).unwrap_or_default() {
            if self.lru.contains(line) {
                self.jobs.cached(line, |waiter| media.wakes.map_waiters.push(waiter));
            }
        }
    }

    /// What a page holds is on flash, or was sent elsewhere after its program failed.
    pub(super) fn settled(&mut self, media: &Media, place: Place) {
        let first = media.unit_at(place);
        for index in 0..media.units_per_page {
            let lpn = media.flash.oob.lpn(first + index);
            if lpn.0 >= self.shape.mapped_units {
                continue;
            }
            self.unit_settled(lpn);
        }
    }

    /// A map page waits for one unit less.
    fn unit_settled(&mut self, lpn: Lpn) {
        let page = self.shape.page_of(lpn);
        let state = &mut self.pages[page as usize];
        assert!(state.unsettled > 0, "unit {lpn} is on flash, and map page {page} waits for none");
        state.unsettled -= 1;
        if state.unsettled == 0 {
            self.any_settled = true;
            if state.held {
                self.flush.settled.push(page);
            }
        }
    }

    /// Data in RAM alone got another name: the map page of that waits for it now.
    pub(super) fn unsettled_goes(&mut self, from: Lpn, to: Lpn) {
        self.pages[self.shape.page_of(to) as usize].unsettled += 1;
        self.unit_settled(from);
    }

    /// What waits for pages that have settled goes on.
    pub(super) fn resume_settled(&mut self, data: &mut PageFtl, media: &mut Media) {
        let any = std::mem::take(&mut self.any_settled);
        if any && (!self.waiting.is_empty() || !self.flush.settled.is_empty()) {
            self.flush_pages(data, media);
            self.on_slot_free(data, media);
        }
    }

    /// A waiter has used what was cached for it: others may have the places.
    pub(super) fn on_slot_free(&mut self, data: &mut PageFtl, media: &mut Media) {
        self.grant(data, media);
        self.load_waiting(data, media);
        if !self.log.is_at_rest() {
            self.flush_log(data, media);
        }
    }

    /// What waits for a place, or for settled pages, is tried again.
    pub(super) fn resume(&mut self, data: &mut PageFtl, media: &mut Media) {
        for group in 0..self.collections.len() as u32 {
            self.collect(data, media, group);
        }
        self.flush_pages(data, media);
        self.on_slot_free(data, media);
    }

    /// A map page's words as changes of those that it has on flash, if these are few and known.
    fn content(&mut self, data: &PageFtl, media: &Media, page: u32) -> Content {
        let as_of = media.sequence();
        let before = data.unit_of(self.shape.lpn_of(page)).filter(|unit| media.flash.oob.can_be_put_over(*unit));
        // An image writes records down whole.
        let is_kept = media.flash.store.image().is_some();
        let mapped = self.entries(data, self.shape.mapped_by(page));
        let known = self.changes[page as usize].take();
        let (Some(from), Some(entries), false) = (before, known, is_kept) else {
            self.changes[page as usize].entries.clear();
            return Content::Whole(self.words(data, as_of, page));
        };
        let mapped: &[u32] = bytemuck::cast_slice(&mapped);
        let half = |entry: u32| u64::from(mapped.get(entry as usize).copied().unwrap_or(UnitId::NONE.0));
        let word = |entry: u32| (1 + entry / 2, half(entry & !1) | half(entry | 1) << 32);
        let changes = std::iter::once((0, as_of)).chain(entries.drain(..).map(word)).collect();
        Content::Over { from, changes }
    }

    /// A map page as its words on flash: the number of its program, which it keeps where it is moved, and its entries.
    fn words(&mut self, data: &PageFtl, as_of: u64, page: u32) -> Box<[u64]> {
        let mut words = self.unit_words(as_of);
        self.put_entries(data, page, &mut words[1..]);
        words
    }

    /// Words for a unit, or units, with map pages, which begin with the number of its program; the others are to be filled.
    fn unit_words(&mut self, as_of: u64) -> Box<[u64]> {
        let length = self.shape.unit_words();
        let mut words = self.spare_words.pop().unwrap_or_else(|| vec![0; length].into());
        assert_eq!(words.len(), length, "words of map pages are used again for a unit of another size");
        words[0] = as_of;
        words
    }

    /// Puts the entries of a map page into `words`, two in a word.
    fn put_entries(&self, data: &PageFtl, page: u32, words: &mut [u64]) {
        let entries = self.entries(data, self.shape.mapped_by(page));
        let (mapped, behind) = bytemuck::cast_slice_mut::<u64, UnitId>(words).split_at_mut(entries.len());
        mapped.copy_from_slice(&entries);
        behind.fill(UnitId::NONE);
    }

    /// Whether a map page on flash, with what the log has of it, says what the map says, but for what is dirty; one that was
    /// never programmed maps nothing.
    fn equals_flash(&self, data: &PageFtl, media: &Media, page: u32) -> bool {
        if !self.pages[page as usize].dirty {
            return self.equals_flash_in(data, media, page, self.shape.mapped_by(page));
        }
        let clean = self.shape.lines_of(page).filter(|line| self.shape.by_entry && !self.is_dirty(*line));
        clean.map(Lpn).all(|lpn| self.equals_flash_in(data, media, page, lpn..lpn + 1))
    }

    /// Whether what is on flash of a line, with what the log has of it, says what the map says, as far as a load or an
    /// eviction looks: at a whole page in a debug build and where the map is small, else every fifth at a part that
    /// moves on, since all pages are compared when a run ends.
    fn seems_equal_to_flash(&self, data: &PageFtl, media: &Media, line: u32) -> bool {
        let page = self.shape.page_of_line(line);
        if self.shape.by_entry {
            return self.equals_flash_in(data, media, page, Lpn(line)..Lpn(line + 1));
        }
        let whole = self.shape.mapped_by(page);
        if cfg!(debug_assertions) || self.shape.pages <= WHOLE_PAGES_COMPARED {
            return self.equals_flash_in(data, media, page, whole);
        }
        let turn = (self.counters.total().loads + self.counters.evictions) as u32;
        if !turn.is_multiple_of(LOOKS_EVERY) {
            return true;
        }
        let first = whole.start + (turn / LOOKS_EVERY).wrapping_mul(ENTRIES_COMPARED) % self.shape.entries;
        self.equals_flash_in(data, media, page, first.min(whole.end)..(first + ENTRIES_COMPARED).min(whole.end))
    }

    fn equals_flash_in(&self, data: &PageFtl, media: &Media, page: u32, range: Range<Lpn>) -> bool {
        let entries = self.entries(data, range.clone());
        let entries: &[u32] = bytemuck::cast_slice(&entries);
        if self.log.has_entries_of(range.clone()) {
            return self.equals_flash_and_log(data, media, page, range);
        }
        let Some(words) = self.words_of_page(data, media, page) else {
            return entries.iter().all(|entry| *entry == UnitId::NONE.0);
        };
        let first = range.start.index() - self.shape.mapped_by(page).start.index();
        bytemuck::cast_slice::<u64, u32>(words)[first..first + entries.len()] == *entries
    }

    /// Bytes of RAM that a real drive has for this, by name.
    pub(super) fn memory(&self) -> Vec<(&'static str, u64)> {
        let pages = u64::from(self.shape.pages);
        let cached = u64::from(self.shape.capacity);
        let mut tables = vec![
            ("map_cache_bytes", cached * u64::from(self.shape.line_bytes())),
            ("map_directory_bytes", pages * u64::from(ENTRY_BYTES)),
            ("map_order_bytes", cached * ORDER_BYTES),
            ("map_state_bytes", cached * STATE_BYTES),
            ("map_log_bytes", u64::from(self.shape.log_entries) * u64::from(LOG_ENTRY_BYTES)),
            ("trim_bitmap_bytes", cached.div_ceil(64) * 8),
        ];
        if self.shape.shares_units() {
            tables.push(("map_shared_units_bytes", u64::from(self.shape.numbers())));
        }
        tables
    }

    /// What is in these tables takes no more than they have.
    fn check_memory(&self, data: &PageFtl) -> Check {
        let lines = u64::from((self.lru.len() + self.in_transit).saturating_sub(self.beside));
        let on_flash = (0..self.shape.pages).filter(|page| self.unit_of_page(data, *page).is_some()).count();
        let trimmed = self.pages.iter().filter(|state| state.trimmed).count() as u64;
        let mut used = vec![
            lines * u64::from(self.shape.line_bytes()),
            on_flash as u64 * u64::from(ENTRY_BYTES),
            lines * ORDER_BYTES,
            lines * STATE_BYTES,
            self.log.entries.len() as u64 * u64::from(LOG_ENTRY_BYTES),
            trimmed.saturating_sub(self.beside.into()).div_ceil(8),
        ];
        if self.shape.shares_units() {
            used.push(self.shared.in_use());
        }
        let tables = self.memory();
        assert_eq!(tables.len(), used.len(), "each table of the map is held against what is in it");
        let all = tables.iter().zip(&used).map(|((name, bytes), used)| format!("{name} {used} of {bytes}"));
        let detail = all.collect::<Vec<String>>().join(", ");
        Check {
            name: "map_tables_hold_what_is_in_them",
            held: tables.iter().zip(&used).all(|((_, bytes), used)| used <= bytes),
            detail,
        }
    }

    /// The cache is no larger than it may be, and what is clean is on flash.
    pub(super) fn check(&self, data: &PageFtl, media: &Media) -> Vec<Check> {
        let cached = self.lru.len() + self.in_transit;
        let on_flash = (0..self.shape.pages).filter(|page| self.pages[*page as usize].in_program == 0);
        let wrong = on_flash.filter(|page| !self.equals_flash(data, media, *page)).count();
        let mut checks = self.check_log(data);
        checks.extend(self.check_shared(data));
        checks.push(self.check_memory(data));
        checks.extend([
            Check {
                name: "map_cache_within_its_size",
                held: cached <= self.shape.capacity + self.beside,
                detail: format!("{cached} lines of the map cached, of {} that fit", self.shape.capacity),
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

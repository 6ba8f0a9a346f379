//! The log of map changes that relocation makes: the map log table (MLT) of the SHRD paper, section 4.5.
//!
//! Relocation puts the new entry of a unit here if its map page is not cached, and goes on. The entry is newer than the map page
//! on flash. A load of the page applies its entries, and they leave the log; the page is dirty then. So what is not
//! cached equals what is on flash with the log's entries in it.
//!
//! When the log is full it is flushed: the map pages of all its entries are loaded, one after the other in the order of units.
//! Until then no map page says where the copies are. So their blocks stay active (`flush.rs`), and recovery finds the copies
//! there: each is newer than the map page of its unit on flash.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ssdlab_flash::{BlockId, Lpn, UnitId};

use super::MapCache;
use super::geometry::ENTRY_BYTES;
use crate::ftl::page::PageFtl;
use crate::media::Media;
use crate::waiter::Waiter;
use crate::{Check, MapUser};

/// Bytes of an entry: the logical unit and the physical one.
pub(in crate::ftl) const LOG_ENTRY_BYTES: u32 = 8;

/// Entries that are in no map page yet.
#[derive(Default)]
pub(super) struct Log {
    /// Where units are; the map page of none of them is cached.
    pub(super) entries: BTreeMap<Lpn, UnitId>,
    /// Earlier copies that only the log had, of units whose copy in `entries` need not be on flash yet: a power cut leaves the newest
    /// of these.
    older: BTreeMap<Lpn, Vec<UnitId>>,
    /// Map pages that a flush has yet to load, the first of them last.
    flushing: Vec<u32>,
    /// Groups whose relocation waits for room, in order.
    waiting: Vec<u32>,
    /// Active blocks become data blocks after this flush.
    before_change: bool,
}

impl Log {
    /// Whether a map page has entries here.
    pub(super) fn has_entries_of(&self, units: Range<Lpn>) -> bool {
        !self.entries.is_empty() && self.entries.range(units).next().is_some()
    }

    /// Whether nothing is about to happen.
    pub(super) fn is_at_rest(&self) -> bool {
        self.flushing.is_empty() && self.waiting.is_empty()
    }
}

impl MapCache {
    /// Whether relocation does without map pages that are not cached.
    #[inline]
    pub(in crate::ftl) const fn has_log(&self) -> bool {
        self.shape.log_entries > 0
    }

    /// Whether the log has room for new entries of `lpns`, distinct units: of those whose map page is not cached, and of all if the
    /// log were empty and nothing cached.
    pub(in crate::ftl) fn log_has_room(&self, lpns: &[Lpn]) -> bool {
        let is_new = |lpn: &&Lpn| !self.lru.contains(self.shape.page_of(**lpn)) && !self.log.entries.contains_key(*lpn);
        let free = self.shape.log_entries as usize - self.log.entries.len();
        let could_fit = lpns.len() <= self.shape.log_entries as usize;
        lpns.len() <= free || could_fit && lpns.iter().filter(is_new).count() <= free
    }

    /// Whether relocation may move `lpns`, of map pages `pages`, now. If not, the log is full and being flushed, and the group is
    /// told when there is room.
    pub(in crate::ftl) fn prepare_moves(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        group: u32,
        lpns: &[Lpn],
        pages: &[u32],
    ) -> bool {
        assert!(
            lpns.len() <= self.shape.log_entries as usize,
            "{} units are moved at once, and the log has room for {}",
            lpns.len(),
            self.shape.log_entries
        );
        while !self.log_has_room(lpns) {
            self.begin_log_flush();
            self.flush_log(data, media);
            if !self.log.flushing.is_empty() {
                if !self.log.waiting.contains(&group) {
                    self.log.waiting.push(group);
                }
                return false;
            }
        }
        for page in pages {
            if self.lru.contains(*page) {
                self.counters.of(MapUser::Gc).hits += 1;
                self.lru.touch(*page);
            }
        }
        true
    }

    /// Relocation moved a unit; `unsettled` if its copy is not on flash. The entry changes in the cached map page, else in the
    /// log.
    pub(in crate::ftl) fn moved(&mut self, data: &PageFtl, lpn: Lpn, unsettled: bool) {
        let page = self.shape.page_of(lpn);
        if self.lru.contains(self.shape.line_of(lpn)) || !self.has_log() {
            return self.changed(lpn, unsettled);
        }
        let unit = data.unit_of(lpn).unwrap_or_else(|| panic!("unit {lpn} was moved, and is mapped nowhere"));
        match self.log.entries.insert(lpn, unit) {
            Some(before) if unsettled => self.log.older.entry(lpn).or_default().push(before),
            _ => {}
        }
        self.counters.log_entries += 1;
        self.pages[page as usize].unsettled += u32::from(unsettled);
        let (held, fit) = (self.log.entries.len(), self.shape.log_entries);
        assert!(held <= fit as usize, "{held} entries are in a map log for {fit}");
    }

    /// The log is to be flushed, if it is not being flushed.
    fn begin_log_flush(&mut self) {
        if !self.log.flushing.is_empty() {
            return;
        }
        let mut pages: Vec<u32> = self.log.entries.keys().map(|lpn| self.shape.page_of(*lpn)).collect();
        pages.dedup();
        pages.reverse();
        self.counters.log_flushes += u64::from(!pages.is_empty());
        self.log.flushing = pages;
    }

    /// Loads map pages of a flush of the log, one after the other, as far as that goes now.
    pub(super) fn flush_log(&mut self, data: &mut PageFtl, media: &mut Media) {
        while let Some(page) = self.log.flushing.last().copied() {
            let is_asked_for = self.jobs.of(Waiter::Log).is_some();
            if is_asked_for || self.log.has_entries_of(self.shape.mapped_by(page)) {
                if !self.request(data, media, Waiter::Log, &[page]) {
                    break;
                }
                debug_assert!(
                    !self.log.has_entries_of(self.shape.mapped_by(page)),
                    "map page {page} is cached, and has entries in the log"
                );
            }
            self.log.flushing.pop();
        }
        if self.log.flushing.is_empty() {
            self.log.before_change = false;
        }
        let free = self.shape.log_entries - self.log.entries.len() as u32;
        if self.log.flushing.is_empty() || free >= media.units_per_page {
            media.wakes.map_waiters.extend(self.log.waiting.drain(..).map(Waiter::Gc));
        }
    }

    /// A map page was loaded: its entries leave the log. Returns whether there were any.
    pub(super) fn apply_log(&mut self, data: &PageFtl, page: u32) -> bool {
        if self.log.entries.is_empty() {
            return false;
        }
        let units: Vec<(Lpn, UnitId)> =
            self.log.entries.range(self.shape.mapped_by(page)).map(|(lpn, unit)| (*lpn, *unit)).collect();
        for (lpn, unit) in &units {
            assert_eq!(data.unit_of(*lpn), Some(*unit), "the log says where unit {lpn} is, and the map says otherwise");
            self.log.entries.remove(lpn);
            self.log.older.remove(lpn);
        }
        self.counters.log_entries_applied += units.len() as u64;
        !units.is_empty()
    }

    /// Whether a range of a map page on flash, with what the log has of it in place of its own, says what the map says.
    pub(super) fn equals_flash_and_log(&self, data: &PageFtl, media: &Media, page: u32, range: Range<Lpn>) -> bool {
        let words = self.words_of_page(data, media, page);
        let first = self.shape.mapped_by(page).start.index();
        let on_flash = |lpn: Lpn| words.map(|words| bytemuck::cast_slice::<u64, UnitId>(words)[lpn.index() - first]);
        let known = |lpn: Lpn| self.log.entries.get(&lpn).copied().or_else(|| on_flash(lpn)).unwrap_or(UnitId::NONE);
        Lpn::each(range.clone()).zip(self.entries(data, range).iter()).all(|(lpn, entry)| known(lpn) == *entry)
    }

    /// The blocks of copies that no map page on flash names, which stay active. `None` if these are more than the record of what
    /// is active has room for beside others: then the log is flushed first.
    pub(super) fn logged_blocks(&mut self, media: &mut Media) -> Option<BTreeSet<BlockId>> {
        if self.log.entries.is_empty() {
            return Some(BTreeSet::new());
        }
        if self.log.before_change {
            return None;
        }
        let Log { entries, older, .. } = &mut self.log;
        older.retain(|lpn, _| !entries.get(lpn).is_some_and(|unit| media.is_on_flash(media.page_of(*unit))));
        let copies = entries.values().chain(older.values().flatten());
        let blocks: BTreeSet<BlockId> = copies.map(|unit| media.block_of(*unit)).collect();
        if blocks.len() <= (media.unit_bytes / ENTRY_BYTES / 2) as usize {
            return Some(blocks);
        }
        self.begin_log_flush();
        self.log.before_change = true;
        // It goes on when no waiter is about to use what is cached.
        media.wakes.map_slot_free = true;
        None
    }

    /// The log is no larger than it may be, and has entries of pages alone that are not cached, each as the map says.
    pub(super) fn check_log(&self, data: &PageFtl) -> Vec<Check> {
        if !self.has_log() {
            return Vec::new();
        }
        let entries = &self.log.entries;
        let cached = entries.keys().filter(|lpn| self.lru.contains(self.shape.page_of(**lpn))).count();
        let wrong = entries.iter().filter(|(lpn, unit)| data.unit_of(**lpn) != Some(**unit)).count();
        let most = self.shape.log_entries;
        vec![
            Check {
                name: "map_log_within_its_size",
                passed: entries.len() <= most as usize,
                detail: format!("{} entries in the map log, of {most} that fit", entries.len()),
            },
            Check {
                name: "map_log_equals_map",
                passed: cached == 0 && wrong == 0,
                detail: format!("{wrong} entries of the map log differ from the map, {cached} are of cached map pages"),
            },
        ]
    }
}

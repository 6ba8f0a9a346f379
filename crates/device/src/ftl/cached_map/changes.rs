//! Changes of entries: writes and trims make pages dirty, and a page is settled when all that it names is on flash.

use std::ops::Range;

use ssdlab_flash::Lpn;

use super::super::page::PageFtl;
use super::MapCache;
use super::contents::TRIMMED;
use crate::media::{Media, Place};

impl MapCache {
    /// An entry of a cached line was changed; `unsettled` if what it names is not on flash.
    #[inline]
    pub(in crate::ftl) fn changed(&mut self, lpn: Lpn, unsettled: bool) {
        let (page, line) = (self.shape.page_of(lpn), self.shape.line_of(lpn));
        debug_assert!(self.lru.contains(line), "the entry of unit {lpn} changes in map page {page}, and is not cached");
        self.lines[line as usize].dirty = true;
        let state = &mut self.pages[page as usize];
        state.dirty = true;
        state.unsettled += u32::from(unsettled);
        self.changes[page as usize].push(lpn.0 % self.shape.entries);
    }

    /// Notes the number of a trim of a unit: copies that no map page names are older. [`MapCache::trimmed`] puts it into the entry
    /// next.
    pub(in crate::ftl) fn trimmed_since(&mut self, lpn: Lpn, number: u32) {
        assert!(number < TRIMMED - 1, "write {number} of the host is behind what an entry has room for");
        self.trimmed_since.insert(lpn, number);
    }

    /// A unit was written or remapped: its entry says where it is.
    #[inline]
    pub(in crate::ftl) fn is_mapped_again(&mut self, lpn: Lpn) {
        if !self.trimmed_since.is_empty() {
            self.trimmed_since.remove(&lpn);
        }
    }

    /// Since which write of the host a unit holds nothing, if its entry tells.
    pub(in crate::ftl) fn is_trimmed_since(&self, lpn: Lpn) -> Option<u32> {
        self.trimmed_since.get(&lpn).copied()
    }

    /// Entries of cached lines, of one map page, were unmapped.
    pub(in crate::ftl) fn trimmed(&mut self, units: Range<Lpn>) {
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
    pub(super) fn has_trims(&mut self, page: u32) {
        self.changes[page as usize].are_many();
        let state = &mut self.pages[page as usize];
        state.dirty = true;
        if !std::mem::replace(&mut state.trimmed, true) {
            self.flush.trimmed.push(page);
            self.flush.unsaved += 1;
        }
    }

    /// Whether a line differs from what is on flash.
    pub(super) fn is_dirty(&self, line: u32) -> bool {
        if self.shape.by_entry { self.lines[line as usize].dirty } else { self.pages[line as usize].dirty }
    }

    /// A page is held no longer: jobs that wait for its cached lines go on.
    pub(super) fn is_held_no_longer(&mut self, media: &mut Media, page: u32) {
        assert!(!self.pages[page as usize].held, "map page {page} is held still");
        for line in self.held_lines.remove(&page).unwrap_or_default() {
            if self.lru.contains(line) {
                self.jobs.cached(line, |waiter| media.wakes.map_waiters.push(waiter));
            }
        }
    }

    /// What a page holds is on flash, or was sent elsewhere after its program failed.
    pub(in crate::ftl) fn settled(&mut self, media: &Media, place: Place) {
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
    pub(in crate::ftl) fn unsettled_goes(&mut self, from: Lpn, to: Lpn) {
        self.pages[self.shape.page_of(to) as usize].unsettled += 1;
        self.unit_settled(from);
    }

    /// What waits for pages that have settled goes on.
    pub(in crate::ftl) fn resume_settled(&mut self, data: &mut PageFtl, media: &mut Media) {
        let any = std::mem::take(&mut self.any_settled);
        if any && (!self.waiting.is_empty() || !self.flush.settled.is_empty()) {
            self.flush_pages(data, media);
            self.on_slot_free(data, media);
        }
    }
}

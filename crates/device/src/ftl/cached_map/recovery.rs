//! The map after a power cut: map pages from map blocks, and behind them the OOB areas of blocks that were active.
//!
//! The first page of every block tells whether it holds map pages, and when it was opened. All pages of map blocks are read:
//! of several copies of a map page the one with the highest number counts, and so does the newest record of what was active.
//! Of data blocks those are read that were open then, or opened later. A page in one of them counts for a unit if its number is
//! higher than that of the unit's map page, which knows of everything before. Pages of the map that differ from flash by
//! then are dirty; those that do not fit in the cache are programmed.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use ssdlab_flash::{BlockId, Lpn, UnitId};

use super::MapCache;
use crate::ftl::RecoveryStep;
use crate::ftl::page::PageFtl;
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// Numbers that programs in flight may have taken.
const IN_FLIGHT: u64 = 1 << 20;

impl MapCache {
    /// Finds the map, and which of its pages differ from what is on flash.
    pub(in crate::ftl) fn rebuild(&mut self, data: &mut PageFtl, media: &mut Media, reads: &mut RecoveryReads) {
        data.forget_map();
        let mut newest = 0;
        let mut data_blocks = Vec::new();
        for block in (0..media.flash.geometry().blocks()).map(BlockId) {
            let state = *media.flash.blocks.get(block);
            if state.torn || state.programmed == 0 {
                continue;
            }
            let pages = (0..state.programmed).map(|page| Place { block, page });
            let readable = |place: &Place| media.flash.blocks.readable(media.ppn_at(*place));
            let first = pages.clone().find(readable);
            pages.clone().take_while(|place| Some(*place) != first).chain(first).for_each(|place| reads.oob(place));
            let Some(first) = first else {
                newest = newest.max(media.flash.oob.sequence(block, state.programmed - 1));
                continue;
            };
            if self.is_map(media, first) {
                newest = newest.max(self.read_map_block(data, media, block, reads));
            } else {
                data_blocks.push((block, first.page > 0));
            }
        }
        let (active_since, open) = self.read_record(data, media);
        newest = newest.max(active_since);
        self.read_map(data, media);
        let mut found = Found::default();
        for (block, first_is_lost) in data_blocks {
            let opened = media.flash.oob.sequence(block, 0);
            newest = newest.max(opened);
            if first_is_lost || opened >= active_since || open.contains(&block) {
                newest = newest.max(self.read_active(data, media, block, reads, &mut found));
            }
        }
        assert!(newest < 1 << 62, "a page has number {newest}");
        media.set_sequence(newest + IN_FLIGHT);
        data.count_found(media);
        self.found_dirty = match self.shape.by_entry {
            true => found.numbers.into_keys().map(|lpn| lpn.0).collect::<BTreeSet<u32>>().into_iter().collect(),
            false => found.pages.into_iter().collect(),
        };
        (self.changed_at, self.opened) = (media.pool.data_opened(), media.pool.data_opened());
    }

    /// All pages of a map block; returns the highest number.
    fn read_map_block(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        block: BlockId,
        reads: &mut RecoveryReads,
    ) -> u64 {
        let superblock = media.pool.superblocks.of(block);
        if superblock != ssdlab_flash::NONE && !media.flash.blocks.get(block).bad {
            media.pool.found_map_block(superblock);
        }
        let mut newest = 0;
        for page in 0..media.flash.blocks.get(block).programmed {
            let place = Place { block, page };
            reads.page(place);
            let sequence = media.flash.oob.sequence(block, page);
            newest = newest.max(sequence);
            let first = media.unit_at(place);
            if !media.flash.blocks.readable(media.page_of(first)) {
                continue;
            }
            for unit in UnitId::each(first..first + media.units_per_page) {
                let lpn = media.flash.oob.lpn(unit);
                if lpn == Lpn::NONE {
                    continue;
                }
                assert!(lpn.0 >= self.shape.user_units, "unit {unit} of a map block is of user unit {lpn}");
                let before = data.unit_of(lpn).map_or(0, |unit| sequence_of(media, unit));
                if sequence > before || seeded(Bug::OlderMapPageWins) {
                    data.found(lpn, Some(unit));
                }
            }
        }
        newest
    }

    /// Since when blocks are active, and those that are though they were opened before.
    fn read_record(&self, data: &PageFtl, media: &Media) -> (u64, BTreeSet<BlockId>) {
        let Some(unit) = data.unit_of(self.shape.record_lpn()) else { return (0, BTreeSet::new()) };
        let words = media.flash.oob.record(unit).expect("the record of what is active has words");
        let (since, open) = words.split_first().expect("it says since when");
        (*since, open.iter().map(|block| BlockId(*block as u32)).collect())
    }

    /// What map pages say.
    fn read_map(&self, data: &mut PageFtl, media: &Media) {
        for page in 0..self.shape.pages {
            let Some(unit) = data.unit_of(self.shape.lpn_of(page)) else { continue };
            let words = media.flash.oob.record(unit).unwrap_or_else(|| panic!("map page {page} has no words on flash"));
            let entries: &[UnitId] = bytemuck::cast_slice(&words[1..]);
            for (lpn, entry) in Lpn::each(self.shape.mapped_by(page)).zip(entries) {
                data.found(lpn, Some(*entry));
            }
        }
    }

    /// The pages of a data block that was active; returns the highest number.
    fn read_active(
        &self,
        data: &mut PageFtl,
        media: &Media,
        block: BlockId,
        reads: &mut RecoveryReads,
        found: &mut Found,
    ) -> u64 {
        let mut newest = 0;
        for page in 0..media.flash.blocks.get(block).programmed {
            let place = Place { block, page };
            reads.oob(place);
            let sequence = media.flash.oob.sequence(block, page);
            newest = newest.max(sequence);
            let first = media.unit_at(place);
            if !media.flash.blocks.readable(media.page_of(first)) {
                continue;
            }
            for unit in UnitId::each(first..first + media.units_per_page) {
                let lpn = media.flash.oob.lpn(unit);
                if lpn == Lpn::NONE || lpn.is_of_stripe() {
                    continue;
                }
                let map_page = self.shape.page_of(lpn);
                let known = data.unit_of(self.shape.lpn_of(map_page)).map_or(0, |unit| as_of(media, unit));
                let newer = found.numbers.get(&lpn).is_none_or(|number| sequence > *number);
                if (sequence > known || seeded(Bug::MapPageForgotten)) && newer {
                    found.numbers.insert(lpn, sequence);
                    found.pages.insert(map_page);
                    data.found(lpn, Some(unit));
                }
            }
        }
        newest
    }

    /// Brings lines that recovery changed into the cache, programming those that leave it for others.
    pub(in crate::ftl) fn finish_recovery(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        reads: &mut RecoveryReads,
    ) -> RecoveryStep {
        while let Some(line) = self.found_dirty.last().copied() {
            let page = self.shape.page_of_line(line);
            let of_page =
                self.found_dirty.iter().rev().take_while(|line| self.shape.page_of_line(**line) == page).count();
            let rest = self.found_dirty.len() - of_page;
            let (held, fits) = (self.lru.len() + of_page as u32, self.shape.capacity);
            if held <= fits || self.read_only {
                self.beside = held.saturating_sub(fits);
                for line in self.found_dirty.split_off(rest) {
                    self.lru.insert(line);
                    self.lines[line as usize].dirty = true;
                }
                self.pages[page as usize].dirty = !seeded(Bug::RecoveryLeavesPageClean);
                self.changes[page as usize].are_many();
                continue;
            }
            if !reads.may_go_on() {
                return RecoveryStep::PowerGone;
            }
            let step = if self.shape.by_entry {
                self.program_found(data, media, reads, page)
            } else {
                self.program_oldest(data, media, reads)
            };
            match step {
                RecoveryStep::Done if self.shape.by_entry => self.found_dirty.truncate(rest),
                RecoveryStep::Done => {}
                other => return other,
            }
        }
        RecoveryStep::Done
    }

    /// Programs pages that were found first, and gives the place of one of them to another.
    fn program_oldest(&mut self, data: &mut PageFtl, media: &mut Media, reads: &mut RecoveryReads) -> RecoveryStep {
        let dirty = self.lru.oldest_first().take(self.shape.in_page as usize).filter(|page| self.is_dirty(*page));
        let (oldest, dirty) = (self.lru.oldest_first().next(), dirty.collect::<Vec<u32>>());
        let oldest = oldest.expect("a full cache has an oldest page");
        if self.is_dirty(oldest) {
            match self.program(data, media, &dirty, None) {
                Some(place) => reads.programmed(place),
                None => return RecoveryStep::NeedsErase,
            }
        }
        self.lru.remove(oldest);
        RecoveryStep::Done
    }

    /// Programs a page of which the cache has no room for the entries that were found.
    fn program_found(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        reads: &mut RecoveryReads,
        page: u32,
    ) -> RecoveryStep {
        assert!(self.shape.by_entry, "map page {page} is programmed, and was not cached");
        let before = data.unit_of(self.shape.lpn_of(page)).map(|unit| media.place_of(unit));
        self.changes[page as usize].are_many();
        match self.program(data, media, &[page], None) {
            Some(place) => reads.programmed(place),
            None => return RecoveryStep::NeedsErase,
        }
        before.into_iter().for_each(|place| reads.page(place));
        RecoveryStep::Done
    }
}

/// What active blocks hold beyond the map.
#[derive(Default)]
struct Found {
    /// The number of the newest page by unit.
    numbers: FxHashMap<Lpn, u64>,
    /// Map pages that lack an entry.
    pages: BTreeSet<u32>,
}

/// Programs before this one are known to a map page.
fn as_of(media: &Media, unit: UnitId) -> u64 {
    if seeded(Bug::MoveMakesMapPageNew) {
        return sequence_of(media, unit);
    }
    media.flash.oob.record(unit).map_or(0, |words| words[0])
}

fn sequence_of(media: &Media, unit: UnitId) -> u64 {
    let Place { block, page } = media.place_of(unit);
    media.flash.oob.sequence(block, page)
}

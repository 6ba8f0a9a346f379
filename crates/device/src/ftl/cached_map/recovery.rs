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
use super::contents::TRIMMED;
use crate::block_pool::BlockKind;
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
        let found = self.scan(data, media, reads);
        self.scanned(data, media, found);
    }

    /// Reads map blocks and active blocks. Of blocks of a log it gives back what they hold, and does not map it.
    pub(in crate::ftl) fn scan(&mut self, data: &mut PageFtl, media: &mut Media, reads: &mut RecoveryReads) -> Found {
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
                data_blocks.push(first);
            }
        }
        for number in self.find_shared(data, media).expect("map blocks hold what was programmed") {
            data.found(self.shape.shared_lpn(number), None);
        }
        let Record { active_since, number, logs, open } = self.read_record(data, media);
        newest = newest.max(active_since);
        let mut found = Found { number, ..Found::default() };
        self.read_map(data, media, &mut found);
        for Place { block, page } in data_blocks {
            let opened = media.flash.oob.sequence(block, 0);
            newest = newest.max(opened);
            // The first page that can be read tells as much: what is written after the record is of an active block.
            let is_log = media.flash.oob.sequence(block, page) >= active_since || logs.contains(&block);
            if page > 0 || opened >= active_since || is_log || open.contains(&block) {
                newest = newest.max(self.read_active(data, media, block, is_log, reads, &mut found));
            }
        }
        assert!(newest < 1 << 62, "a page has number {newest}");
        media.set_sequence(newest + IN_FLIGHT);
        found
    }

    /// A unit is there, whatever was found before; nothing, where it is `None`.
    pub(in crate::ftl) fn found(&mut self, data: &mut PageFtl, found: &mut Found, lpn: Lpn, unit: Option<UnitId>) {
        self.trimmed_since.remove(&lpn);
        found.pages.insert(self.shape.page_of(lpn));
        found.numbers.insert(lpn, u64::MAX);
        data.found(lpn, unit);
    }

    /// The map is whole: what it names is current, and pages that differ from flash are dirty.
    pub(in crate::ftl) fn scanned(&mut self, data: &mut PageFtl, media: &mut Media, found: Found) {
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
            media.pool.found(superblock, BlockKind::Map);
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
                assert!(lpn.0 >= self.shape.mapped_units, "unit {unit} of a map block is of user unit {lpn}");
                let before = data.unit_of(lpn).map_or(0, |unit| media.sequence_of(unit));
                if sequence > before || seeded(Bug::OlderMapPageWins) {
                    data.found(lpn, Some(unit));
                }
            }
        }
        newest
    }

    /// Since when blocks are active, and those that are though they were opened before.
    fn read_record(&self, data: &PageFtl, media: &Media) -> Record {
        let Some(unit) = data.unit_of(self.shape.record_lpn()) else { return Record::default() };
        let words = media.flash.oob.record(unit).expect("the record of what is active has words");
        let (since, mut open) = words.split_first().expect("it says since when");
        let (mut number, mut logs) = (0, &[][..]);
        if media.flash.oob.keeps_origins() {
            let (first, rest) = open.split_first().expect("it has the number of the host's write");
            number = *first as u32;
            (logs, open) = rest.split_at((*first >> 32) as usize);
        }
        let blocks = |words: &[u64]| words.iter().map(|block| BlockId(*block as u32)).collect();
        Record { active_since: *since, number, logs: blocks(logs), open: blocks(open) }
    }

    /// What map pages say.
    fn read_map(&mut self, data: &mut PageFtl, media: &Media, found: &mut Found) {
        self.trimmed_since.clear();
        for page in 0..self.shape.pages {
            let Some(words) = self.words_of_page(data, media, page) else { continue };
            let entries: &[UnitId] = bytemuck::cast_slice(words);
            for (lpn, entry) in Lpn::each(self.shape.mapped_by(page)).zip(entries) {
                if entry.0 & TRIMMED != 0 && *entry != UnitId::NONE {
                    let number = entry.0 & !TRIMMED;
                    found.number = found.number.max(number);
                    self.trimmed_since.insert(lpn, number);
                    continue;
                }
                data.found(lpn, Some(*entry));
            }
        }
    }

    /// The pages of a data block that was active; returns the highest number.
    fn read_active(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        block: BlockId,
        is_log: bool,
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
                if media.flash.oob.keeps_origins() {
                    let origin = media.flash.oob.origin(unit);
                    found.number = found.number.max(origin.number);
                    // Of a log block that became a data block the map has the final names; a bad one was emptied.
                    if origin.lpn != Lpn::NONE && (!is_log || media.flash.blocks.get(block).bad) {
                        continue;
                    }
                    if origin.lpn != Lpn::NONE {
                        let superblock = media.pool.superblocks.of(block);
                        if superblock != ssdlab_flash::NONE {
                            media.pool.found(superblock, BlockKind::Log);
                        }
                        found.logged.push(Logged { lpn: origin.lpn, number: origin.number, sequence, unit });
                        continue;
                    }
                }
                let map_page = self.shape.page_of(lpn);
                let known = self.unit_of_page(data, map_page).map_or(0, |unit| as_of(media, unit));
                let newer = found.numbers.get(&lpn).is_none_or(|number| sequence > *number);
                if (sequence > known || seeded(Bug::MapPageForgotten)) && newer {
                    found.numbers.insert(lpn, sequence);
                    found.pages.insert(map_page);
                    self.trimmed_since.remove(&lpn);
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
        let before = self.unit_of_page(data, page).map(|unit| media.place_of(unit));
        self.changes[page as usize].are_many();
        match self.program(data, media, &[page], None) {
            Some(place) => reads.programmed(place),
            None => return RecoveryStep::NeedsErase,
        }
        before.into_iter().for_each(|place| reads.page(place));
        RecoveryStep::Done
    }
}

/// The record of what is active.
#[derive(Default)]
struct Record {
    active_since: u64,
    /// The number of the host's write then, where they are numbered.
    number: u32,
    /// Blocks of a log whose names were not final then.
    logs: BTreeSet<BlockId>,
    open: BTreeSet<BlockId>,
}

/// What active blocks hold beyond the map.
#[derive(Default)]
pub(in crate::ftl) struct Found {
    /// The number of the newest page by unit.
    numbers: FxHashMap<Lpn, u64>,
    /// Map pages that lack an entry.
    pages: BTreeSet<u32>,
    /// Units in blocks of a log.
    pub(in crate::ftl) logged: Vec<Logged>,
    /// No write of the host on flash has a higher number.
    pub(in crate::ftl) number: u32,
}

/// A unit in a block of a log.
#[derive(Clone, Copy, Debug)]
pub(in crate::ftl) struct Logged {
    /// Its final name.
    pub(in crate::ftl) lpn: Lpn,
    /// The number of the host's write.
    pub(in crate::ftl) number: u32,
    /// The number of its program.
    pub(in crate::ftl) sequence: u64,
    pub(in crate::ftl) unit: UnitId,
}

/// Programs before this one are known to a map page.
fn as_of(media: &Media, unit: UnitId) -> u64 {
    if seeded(Bug::MoveMakesMapPageNew) {
        return media.sequence_of(unit);
    }
    media.flash.oob.record(unit).map_or(0, |words| words[0])
}

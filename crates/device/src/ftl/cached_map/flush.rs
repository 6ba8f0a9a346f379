//! Dirty pages that are programmed while they stay in the cache: those with trims, which a flush of the host and the erase of
//! a block wait for, all of them when the active blocks are full (SHRD, section 2), and those of which dirty entries are to
//! leave a cache by entry.
//!
//! A cache of pages has all that a program takes. A cache by entry has not: the page is read first.
//!
//! Blocks that were opened for data since are *active*: a power cut leaves entries of what they hold in no map page, so
//! recovery reads them. When as many were opened as there are frontiers, all pages that are dirty at that moment are
//! programmed; then a record says which blocks were written in part, or hold copies whose entries are only in the log. All others
//! that are older are data blocks from now on.

use ssdlab_flash::{BlockId, NONE};
use std::collections::VecDeque;

use super::erase_epoch::EraseEpoch;
use super::state::Base;
use super::{MapCache, MapOp};
use crate::block_pool::{BlockKind, BlockState};
use crate::ftl::page::PageFtl;
use crate::media::{Media, MetadataToken};
use crate::seeded::{Bug, seeded};

/// Flushes in flight.
const FLUSHES_IN_FLIGHT: u32 = 32;

/// Pages to be programmed.
#[derive(Default)]
pub(super) struct Flush {
    /// Pages with trims that are in no program, and that have not been asked for yet.
    pub(super) trimmed: Vec<u32>,
    /// How many these are.
    pub(super) unsaved: u32,
    /// A token for each page whose trims were asked for, and that is in no program yet.
    pub(super) promised: Vec<MetadataToken>,
    /// Pages to be programmed, in order.
    queue: VecDeque<u32>,
    /// Held pages that are settled now.
    pub(super) settled: Vec<u32>,
}

impl Flush {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.settled.is_empty()
    }
}

/// Active blocks become data blocks.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The number of the next program when it began.
    sequence: u64,
    /// Blocks that had been written in part, or held copies whose entries were only in the log.
    open: Vec<BlockId>,
    /// Blocks of a log in which names were not final.
    logs: Vec<BlockId>,
    /// Superblocks of a log in which all were.
    settled_logs: Vec<EraseEpoch>,
    /// Superblocks that had been opened for data.
    opened: u64,
    /// Pages that have to be on flash first.
    left: u32,
    /// The record is on its way.
    recorded: bool,
}

impl MapCache {
    /// Every trim so far is in a program, or is promised one; returns how many pages that takes.
    pub(in crate::ftl) fn save_trims(&mut self, data: &mut PageFtl, media: &mut Media) -> u32 {
        let mut count = 0;
        for page in std::mem::take(&mut self.flush.trimmed) {
            let state = &mut self.pages[page as usize];
            assert!(state.trimmed && !state.promised, "map page {page} has no trim to be saved");
            assert!(state.dirty, "map page {page} has a trim, and is not dirty");
            state.promised = true;
            self.flush.unsaved -= 1;
            self.flush.promised.push(media.metadata.begin());
            count += 1;
            self.enqueue(page);
        }
        self.flush_pages(data, media);
        count
    }

    /// Map pages with trims that are in no program, and not promised one.
    pub(in crate::ftl) const fn trims_pending(&self) -> u32 {
        self.flush.unsaved
    }

    pub(super) fn enqueue(&mut self, page: u32) {
        assert!(self.pages[page as usize].dirty, "map page {page} is to be flushed, and is not dirty");
        if !std::mem::replace(&mut self.pages[page as usize].flush, true) {
            self.flush.queue.push_back(page);
        }
    }

    /// Programs pages of the queue, as many as may be in flight; what is not settled is held until it is.
    pub(super) fn flush_pages(&mut self, data: &mut PageFtl, media: &mut Media) {
        for page in std::mem::take(&mut self.flush.settled) {
            if self.pages[page as usize].held && self.pages[page as usize].unsettled == 0 {
                self.flush.queue.push_front(page);
            }
        }
        let mut behind_programs = Vec::new();
        while !self.flush.queue.is_empty() && self.in_flight < FLUSHES_IN_FLIGHT {
            let mut pages = Vec::new();
            while pages.len() < self.shape.in_page as usize
                && self.in_flight < FLUSHES_IN_FLIGHT
                && let Some(page) = self.flush.queue.pop_front()
            {
                let state = &mut self.pages[page as usize];
                if !state.flush || pages.contains(&page) {
                    continue;
                }
                if state.unsettled > 0 && !seeded(Bug::MapPageNamesUnwritten) {
                    state.held = true;
                    continue;
                }
                match self.read_base(data, media, page) {
                    Base::Read => pages.push(page),
                    Base::Reading => {}
                    Base::OnFlash => behind_programs.push(page),
                }
            }
            if pages.is_empty() {
                continue;
            }
            let trimmed = pages.iter().map(|page| self.pages[*page as usize].trimmed).collect();
            if self.program(data, media, &pages, None).is_none() {
                pages.into_iter().rev().for_each(|page| self.flush.queue.push_front(page));
                break;
            }
            self.count_flushes(&pages, trimmed);
            for page in pages {
                let state = &mut self.pages[page as usize];
                state.flush = false;
                if std::mem::take(&mut state.held) {
                    self.is_held_no_longer(media, page);
                }
            }
        }
        self.flush.queue.extend(behind_programs);
        self.record_change(data, media);
    }

    /// Pages were programmed, of which some had trims.
    fn count_flushes(&mut self, pages: &[u32], trimmed: Vec<bool>) {
        assert_eq!(pages.len(), trimmed.len(), "it is known of each page whether it had trims");
        for (page, trimmed) in pages.iter().zip(trimmed) {
            match self.pages[*page as usize].flushed_for.take() {
                Some(user) => self.counters.of(user).flushes += 1,
                None if trimmed => self.counters.flushed_for_trims += 1,
                None => self.counters.flushed_for_blocks += 1,
            }
        }
    }

    /// Reads the entries of a page that are not cached, for a program of it. `OnFlash` if it is in a program itself.
    fn read_base(&mut self, data: &PageFtl, media: &mut Media, page: u32) -> Base {
        let base = self.pages[page as usize].base;
        if !self.shape.by_entry || base == Base::Read {
            return Base::Read;
        }
        if base == Base::Reading || self.is_in_flight(data, media, page) {
            return base;
        }
        let Some(unit) = self.unit_of_page(data, page) else { return Base::Read };
        self.counters.update_reads += 1;
        let is_due = self.read_page(media, unit, false, MapOp::Base { page });
        let base = if is_due { Base::Reading } else { Base::Read };
        assert!(is_due <= media.flash.timed(), "map page {page} is read in time, and there is none");
        self.pages[page as usize].base = base;
        base
    }

    /// A page was read for a program of it.
    pub(super) fn base_is_read(&mut self, page: u32) {
        assert_eq!(self.pages[page as usize].base, Base::Reading, "map page {page} was read, and was not asked for");
        self.pages[page as usize].base = Base::Read;
        self.flush.queue.push_front(page);
    }

    /// Active blocks become data blocks, if enough were opened.
    #[inline]
    pub(in crate::ftl) fn end_active_blocks(&mut self, data: &mut PageFtl, media: &mut Media) {
        self.opened = media.pool.data_opened();
        let opened = self.opened.wrapping_sub(self.changed_at);
        if opened >= self.shape.active && self.change.is_none() {
            self.begin_change(data, media);
        }
    }

    /// Active blocks become data blocks now, unless they are about to already.
    pub(in crate::ftl) fn end_active_blocks_now(&mut self, data: &mut PageFtl, media: &mut Media) {
        if self.change.is_none() {
            self.begin_change(data, media);
        }
    }

    /// Whether active blocks are about to become data blocks.
    pub(in crate::ftl) const fn ends_active_blocks(&self) -> bool {
        self.change.is_some()
    }

    /// Whether a superblock of a log holds units whose names are not final.
    pub(in crate::ftl) fn has_open_names(&self, data: &PageFtl, media: &Media, superblock: u32) -> bool {
        let mut current = data.current_units(media, superblock, 0);
        current.any(|(_, unit)| media.flash.oob.lpn(unit).0 >= self.shape.reserved_from)
    }

    #[cold]
    fn begin_change(&mut self, data: &mut PageFtl, media: &mut Media) {
        let Some(logged) = self.logged_blocks(media) else { return };
        // Whatever has pages left may be a frontier again after a power cut.
        let pages = media.pages_per_block();
        let logs = (0..media.pool.superblocks_count())
            .filter(|superblock| media.pool.has(BlockKind::Log) && media.pool.kind(*superblock) == BlockKind::Log);
        let mut data_on_flash = std::mem::take(&mut self.data_on_flash);
        data_on_flash.retain(|epoch| epoch.is_current(media));
        let (open_logs, settled_logs): (Vec<u32>, Vec<u32>) = logs
            .filter(|superblock| !data_on_flash.iter().any(|epoch| epoch.superblock == *superblock))
            .partition(|superblock| {
                media.pool.state(*superblock) != BlockState::Closed || self.has_open_names(data, media, *superblock)
            });
        self.data_on_flash = data_on_flash;
        let settled_logs: Vec<EraseEpoch> =
            settled_logs.into_iter().map(|block| EraseEpoch::of(media, block)).collect();
        let blocks = (0..media.flash.geometry().blocks()).map(BlockId);
        let is_open = |block: &BlockId| {
            let superblock = media.pool.superblocks.of(*block);
            if seeded(Bug::RecordForgetsOpenBlocks) {
                return logged.contains(block);
            }
            logged.contains(block)
                || (1..pages).contains(&media.flash.blocks.get(*block).programmed)
                || superblock != NONE && matches!(media.pool.state(superblock), BlockState::Open | BlockState::Full)
        };
        let of_log = |superblock: &u32| media.pool.superblocks.members(*superblock).collect::<Vec<BlockId>>();
        let logs: Vec<BlockId> =
            if seeded(Bug::UnsettledLogForgotten) { Vec::new() } else { open_logs.iter().flat_map(of_log).collect() };
        let open = blocks.filter(is_open).collect();
        let dirty: Vec<u32> = self.lru.oldest_first().filter(|line| self.is_dirty(*line)).collect();
        let mut left = 0;
        for line in dirty {
            let page = self.shape.page_of_line(line);
            if !std::mem::replace(&mut self.pages[page as usize].in_change, true) {
                left += 1;
                self.enqueue(page);
            }
        }
        self.ops.each_used(|op| {
            if let MapOp::Program(program) = op {
                program.of_change += 1;
                left += 1;
            }
        });
        let (sequence, opened) = (media.sequence(), media.pool.data_opened());
        self.change = Some(Change { sequence, open, logs, settled_logs, opened, left, recorded: false });
        self.flush_pages(data, media);
    }

    /// A page that the change waits for is not on flash though its program ended: another change begins later.
    pub(super) fn give_up_change(&mut self) {
        if self.change.take().is_some() {
            self.end_waits_of_change();
        }
    }

    fn end_waits_of_change(&mut self) {
        self.pages.iter_mut().for_each(|page| page.in_change = false);
        self.ops.each_used(|op| {
            if let MapOp::Program(program) = op {
                program.of_change = 0;
            }
        });
    }

    /// Pages that the change waits for are on flash.
    pub(super) fn change_goes_on(&mut self, pages: u32) {
        if let Some(change) = &mut self.change {
            assert!(change.left >= pages, "{pages} map pages are on flash, of {} that a change waits for", change.left);
            change.left -= pages;
        }
    }

    /// Programs the record of what is active when all pages of the change are on flash.
    fn record_change(&mut self, data: &mut PageFtl, media: &mut Media) {
        let Some(change) = &self.change else { return };
        if change.left > 0 && !seeded(Bug::RecordBeforeMapPages) || change.recorded {
            return;
        }
        let blocks = change.logs.iter().chain(&change.open).map(|block| u64::from(block.0));
        let since = if seeded(Bug::RecordIsLate) { media.sequence() } else { change.sequence };
        // What the host writes later has a higher number.
        let number = media.flash.oob.write_number();
        let number = number.map(|number| u64::from(number) | (change.logs.len() as u64) << 32);
        let words: Box<[u64]> = std::iter::once(since).chain(number).chain(blocks).collect();
        // Without time the change is over when this returns.
        self.change.as_mut().expect("a change").recorded = true;
        if !self.program_record(data, media, words)
            && let Some(change) = &mut self.change
        {
            change.recorded = false;
        }
    }

    /// The record of a change is on flash.
    pub(super) fn change_is_recorded(&mut self) {
        if let Some(change) = self.change.take_if(|change| change.recorded) {
            self.changed_at = change.opened;
            self.counters.block_changes += 1;
            self.data_on_flash.extend(&change.settled_logs);
            self.settled_logs.extend(change.settled_logs);
            if seeded(Bug::RecordBeforeMapPages) {
                self.end_waits_of_change();
            }
        }
    }
}

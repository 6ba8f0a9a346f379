//! What recovery reads where lists name the owners of units, and what it learns.
//!
//! The last page of a block is read first: if it has a list, that is all. If it is erased, so may be the first page, and the block
//! is free. Else the first erased page is found by bisection, and pages before it are read from there backwards until one is a list.
//! Pages behind the newest list are lost: their block goes on behind them, or is collected.

use ssdlab_flash::{BlockId, Lpn};

use super::{List, Listed, units_of};
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// Numbers of programs that may have been given to pages which no list names.
const UNLISTED: u64 = 1 << 20;

/// What the pages of a block show.
struct Seen {
    /// Pages that are not erased.
    written: u32,
    list: Option<List>,
}

impl Media {
    /// Finds the newest list of every block. What OOB areas seem to hold from then on is a copy of what these lists say.
    pub(crate) fn read_lists(&mut self, reads: &mut RecoveryReads) {
        self.read_lists_but(reads, |_| false, 0);
    }

    /// Does so, but reads none of blocks that are settled: their lists are in their last pages. Programs from before number `since` are
    /// known, too.
    pub(crate) fn read_lists_but(
        &mut self,
        reads: &mut RecoveryReads,
        is_settled: impl Fn(BlockId) -> bool,
        since: u64,
    ) {
        let mut see = |block: BlockId| {
            if self.pool.is_kept_apart(block.0) {
                return Seen { written: self.flash.blocks.get(block).programmed, list: None };
            }
            if !is_settled(block) {
                return self.look_at(block, reads);
            }
            let written = self.pages_per_block();
            let list = self.list_in(block, written - 1);
            assert!(list.is_some(), "block {block} is settled, and its last page has no list");
            Seen { written, list }
        };
        let all = (0..self.flash.geometry().blocks()).map(BlockId);
        let good = all.filter(|block| !self.flash.blocks.get(*block).bad);
        let blocks: Vec<(BlockId, Seen)> = good.map(|block| (block, see(block))).collect();
        if !seeded(Bug::UnlistedPagesTaken) {
            self.flash.clear_oob();
        }
        let numbers = blocks.iter().filter_map(|(_, seen)| seen.list.as_ref()?.pages.last());
        let newest = numbers.map(|page| page.sequence).max().unwrap_or(0).max(since);
        assert!(newest < 1 << 62, "a page has number {newest}");
        let next = newest + if seeded(Bug::SequenceReused) { 1 } else { UNLISTED };
        self.set_sequence(next);
        for (block, Seen { written, list }) in blocks {
            if seeded(Bug::UnlistedPagesTaken) {
                self.summary().listed[block.index()] = Listed { pages: written, list: 0 };
                continue;
            }
            let Some(list) = list else {
                self.flash.oob.restore_block(block, next - 1);
                (0..written).for_each(|page| self.restore_unlisted(block, page, next - 1));
                continue;
            };
            self.take_list(&list);
            let last = list.pages.last().map_or(list.opening, |page| page.sequence);
            (list.pages.len() as u32..written).for_each(|page| self.restore_unlisted(block, page, last));
        }
    }

    fn restore_unlisted(&mut self, block: BlockId, page: u32, sequence: u64) {
        let none = [Lpn::NONE; crate::ftl::MAX_UNITS];
        self.flash.oob.restore_page(block, page, &none[..self.units_per_page as usize], sequence);
    }

    /// What a list says goes into the simulator's copy of it.
    fn take_list(&mut self, list: &List) {
        let block = list.block;
        for ((page, listed), owners) in (0..).zip(&list.pages).zip(list.owners()) {
            self.flash.oob.restore_page(block, page, owners, listed.sequence);
            for (index, unit) in units_of(self, Place { block, page }).enumerate() {
                if listed.lost >> index & 1 != 0 {
                    self.flash.oob.poison(unit);
                }
            }
        }
        let pages = list.pages.len() as u32;
        assert!(self.flash.is_written(block, pages), "the list of block {block} is in page {pages}, which is erased");
        self.summary().listed[block.index()] = Listed { pages, list: pages };
    }

    /// Reads as many pages of a block as it takes to know its newest list, and where its erased pages begin.
    fn look_at(&self, block: BlockId, reads: &mut RecoveryReads) -> Seen {
        let pages = self.pages_per_block();
        let mut is_written = |page: u32| {
            reads.page(Place { block, page });
            self.flash.is_written(block, page)
        };
        let last = pages - 1;
        let mut unread = last;
        let mut written = pages;
        if is_written(last) {
            if let Some(list) = self.list_in(block, last) {
                return Seen { written, list: Some(list) };
            }
        } else if !is_written(0) {
            return Seen { written: 0, list: None };
        } else {
            let (mut low, mut high) = (1, last);
            while low < high {
                let middle = low.midpoint(high);
                if is_written(middle) { low = middle + 1 } else { high = middle }
            }
            (written, unread) = (low, low);
        }
        let mut backwards = (0..unread).rev().collect::<Vec<u32>>();
        if seeded(Bug::OlderListTaken) {
            backwards.reverse();
        }
        let list = backwards.into_iter().find_map(|page| {
            reads.page(Place { block, page });
            self.list_in(block, page)
        });
        Seen { written, list }
    }

    /// The list in a page, if it can be read and has one.
    fn list_in(&self, block: BlockId, page: u32) -> Option<List> {
        let place = Place { block, page };
        if !self.flash.is_written(block, page) || !self.flash.blocks.readable(self.ppn_at(place)) {
            return None;
        }
        List::parse(self.flash.oob.record(self.unit_at(place))?, block, page, self.units_per_page)
    }

    /// Knows the lists of a restored drive again, none of whose pages lacks one; false if a list does not agree with what the
    /// drive has of its pages.
    pub(crate) fn accept_lists(&mut self) -> bool {
        if self.summary.is_none() {
            return true;
        }
        let mut all_agree = true;
        for block in (0..self.flash.geometry().blocks()).map(BlockId) {
            let written = self.flash.blocks.get(block).programmed;
            let Some(list) = (0..written).rev().find_map(|page| self.list_in(block, page)) else { continue };
            let agrees = |(page, listed): (u32, &[Lpn])| {
                let place = Place { block, page };
                let owners = units_of(self, place).map(|unit| self.flash.oob.lpn(unit));
                let readable = self.flash.blocks.readable(self.ppn_at(place));
                !readable || owners.eq(listed.iter().copied())
            };
            all_agree &= (0..).zip(list.owners()).all(agrees);
            let pages = list.pages.len() as u32;
            self.summary().listed[block.index()] = Listed { pages, list: pages };
        }
        all_agree
    }
}

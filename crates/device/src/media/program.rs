//! Programs: each page gets its OOB area, its number, its pins, and the reads or the row that it waits for.

use ssdlab_flash::{BlockId, Cause, Class, Lpn, NONE, OpId, OpKind, Ppn, Submit, UnitId};

use super::frontier::Frontier;
use super::metadata::MetadataToken;
use super::read::MultiSource;
use super::{Media, Place};
use crate::block_pool::BlockState;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// How a page is programmed.
pub(crate) struct Programming<'a> {
    pub(crate) kind: OpKind,
    pub(crate) cause: Cause,
    pub(crate) frontier: Frontier,
    pub(crate) owner: Waiter,
    /// Blocks whose units are superseded.
    pub(crate) pins: &'a [BlockId],
    /// Operations whose data goes into the page.
    pub(crate) after: &'a [OpId],
    /// For each unit of the page the one that those operations take it from, [`UnitId::NONE`] if it is all there; may be
    /// empty if `after` is.
    pub(crate) taken: &'a [UnitId],
    /// A copyback's source; else unused.
    pub(crate) source: Ppn,
}

/// A program that failed without time.
#[derive(Debug)]
pub(crate) struct FailedProgram {
    pub(crate) place: Place,
    pub(crate) cause: Cause,
    /// Who waits for it.
    pub(crate) owner: Waiter,
    /// Blocks whose units it superseded; they are pinned, and its own is.
    pub(crate) pins: Vec<BlockId>,
    /// It is one of metadata.
    pub(crate) metadata: Option<MetadataToken>,
}

/// The first program of the row that a frontier fills on a die, and the last that became ready with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    leader: OpId,
    last: OpId,
    place: Place,
}

pub(super) const NO_ROW: Row = Row { leader: NONE, last: NONE, place: Place { block: BlockId::NONE, page: 0 } };

impl Media {
    /// The numbers of the next `count` programs: returns the first.
    #[inline]
    pub(crate) fn take_sequence(&mut self, count: u64) -> u64 {
        debug_assert!(count > 0, "numbers are taken for no program");
        let first = self.sequence;
        self.sequence += count;
        first
    }

    /// The number the next program will carry.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Writes a page's OOB and starts its program. `pins` are the blocks whose units it supersedes; they stay pinned
    /// until it is done. `class` keeps pages of one block in order.
    #[inline]
    pub(crate) fn program(&mut self, place: Place, lpns: &[Lpn], write: Programming<'_>) -> OpId {
        debug_assert!(!self.flash.is_written(place.block, place.page), "{place:?} is programmed, and is written");
        debug_assert!(lpns.len() <= self.units_per_page as usize, "{} units in {place:?}", lpns.len());
        debug_assert!(self.flash.timed() || write.after.is_empty(), "{place:?} waits for reads without time");
        let sequence = self.sequence;
        self.sequence += 1;
        self.flash.oob.write(place.block, place.page, lpns, sequence);
        if !self.flash.timed() {
            let failed = if write.kind == OpKind::Copyback {
                self.flash.execute_copyback(write.cause, place.block, place.page, write.source)
            } else {
                self.flash.execute(write.kind, write.cause, place.block, place.page)
            };
            self.close_if_written(place.block);
            if failed {
                self.program_failed_now(place, write.cause, write.owner, write.pins);
            }
            if !self.stands_alone {
                self.stripe_goes_on(place, write.frontier, NONE);
                self.list_goes_on(place, &write);
            }
            return NONE;
        }
        if write.cause == Cause::Metadata {
            let token = self.metadata.begin();
            self.metadata.travel(token);
        }
        let shared = !self.separate_gc;
        let class = if write.frontier == Frontier::Gc && !shared { Class::GcWrite } else { Class::HostWrite };
        let page_bytes = self.unit_bytes * self.units_per_page;
        let pins = if seeded(Bug::EraseDoesNotWait) { &[] } else { write.pins };
        let pin = pins.first().copied().unwrap_or(BlockId::NONE);
        let alone = self.stands_alone;
        let leader = if alone { NONE } else { self.row_leader(place, &write) };
        let waits_for = if leader == NONE { write.after.len() as u16 } else { 1 };
        self.look_up(lpns.len() as u32);
        let op = self.issue(Submit {
            kind: write.kind,
            cause: write.cause,
            class,
            block: place.block,
            page: place.page,
            source: write.source,
            bytes: if write.kind == OpKind::Copyback { 0 } else { page_bytes },
            token: write.owner.pack(),
            pin,
            waits_for,
        });
        for pin in pins {
            self.pool.pin(*pin);
        }
        if self.units_per_page > 1 {
            self.remember_pins(op, pins);
        } else if pins.len() > 1 || write.taken.len() > 1 {
            let several = MultiSource { pins: pins.iter().skip(1).copied().collect(), sources: write.taken.to_vec() };
            self.multi_source_programs.insert(op, several);
        }
        if leader == NONE {
            for earlier in write.after {
                self.flash.link(*earlier, op);
            }
        }
        if (!write.after.is_empty() || leader != NONE) && self.flash.may_fail() {
            self.remember_sources(op, write.taken);
        }
        if !alone {
            self.join_row(place, &write, leader, op);
            self.stripe_goes_on(place, write.frontier, op);
            self.list_goes_on(place, &write);
        }
        op
    }

    /// A program without time failed. It counts as in flight until the drive deals with it: what it superseded is the only
    /// good copy, and what comes next may empty the block of that.
    #[cold]
    pub(super) fn program_failed_now(&mut self, place: Place, cause: Cause, owner: Waiter, pins: &[BlockId]) {
        assert!(!self.flash.timed(), "the program of {place:?} took time, and failed at once");
        let pins = if seeded(Bug::EraseDoesNotWait) { &[] } else { pins };
        for block in pins.iter().chain(&[place.block]) {
            self.pool.pin(*block);
        }
        if !matches!(owner, Waiter::List(_)) {
            self.page_failed(place);
        }
        let metadata = (cause == Cause::Metadata).then(|| self.metadata.begin());
        self.wakes.failed.push(FailedProgram { place, cause, owner, pins: pins.to_vec(), metadata });
    }

    /// The program of the same row on the same die that this one is to become ready with, since it waits for reads still;
    /// `NONE` where there is none. A program that waits for more than reads goes alone: a row must not wait
    /// for itself.
    fn row_leader(&self, place: Place, write: &Programming<'_>) -> OpId {
        if self.rows.is_empty() {
            return NONE;
        }
        let row = &self.rows[self.slot(self.group_of(place.block), write.frontier)];
        // An old leader's number may be another frontier's program of the same page by now: its block is in another superblock.
        let fits = row.leader != NONE
            && row.place.page == place.page
            && self.pool.superblocks.of(row.place.block) == self.pool.superblocks.of(place.block)
            && self.flash.die_of(row.place.block) == self.flash.die_of(place.block)
            && write.kind == OpKind::Program
            && self.flash.awaits_reads(row.leader, row.place.block, row.place.page)
            && write.after.iter().all(|op| self.flash.is_read(*op));
        if fits { row.leader } else { NONE }
    }

    /// `op` fills its frontier's row: with `leader`, which then waits for its reads as well, or as the first of a new one.
    fn join_row(&mut self, place: Place, write: &Programming<'_>, leader: OpId, op: OpId) {
        if self.rows.is_empty() {
            return;
        }
        let slot = self.slot(self.group_of(place.block), write.frontier);
        if leader == NONE {
            self.rows[slot] = Row { leader: op, last: op, place };
            return;
        }
        self.flash.follow(self.rows[slot].last, op);
        self.rows[slot].last = op;
        for read in write.after {
            self.flash.link_also(*read, leader);
        }
    }

    /// Pages of a superblock that are written.
    pub(crate) fn programmed(&self, superblock: u32) -> u32 {
        if self.pool.superblocks.width() == 1 {
            return self.flash.blocks.get(BlockId(superblock)).programmed;
        }
        self.pool.superblocks.members(superblock).map(|block| self.flash.blocks.get(block).programmed).sum()
    }

    /// A full superblock whose programs have all ended is closed.
    #[inline]
    pub(crate) fn close_if_written(&mut self, block: BlockId) {
        let superblock = self.pool.superblocks.of(block);
        if self.pool.state(superblock) == BlockState::Full {
            self.pool.close_if_written(superblock, self.programmed(superblock));
        }
    }
}

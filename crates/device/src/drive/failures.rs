//! Program failures: the data, still in RAM, goes elsewhere, and the block is emptied and never used again.
//!
//! What a failed page superseded is the only good copy until every unit of the failed page is on flash again: in the
//! page written in its stead, or in what was written later and made that unnecessary. A [`Retirement`] keeps those blocks
//! pinned until then, and only then does the owner hear that its page is written. A page for which there is no room is
//! a pending rewrite: it stays in RAM and is tried again when a block is free. Garbage collection may move it before: that is why
//! a record of trims is waited for by its hold, and not by the cause of whatever program carries it.

use ssdlab_flash::{BlockId, Cause, Done, NONE, Ppn};

use super::Drive;
use super::buffer_stage::Eviction;
use crate::Status;
use crate::ftl::{NoSpace, TrimTarget};
use crate::gc::IdlePolicy;
use crate::media::{FailedProgram, Frontier, MetadataToken, Place};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// What is left to do about programs that failed.
#[derive(Default)]
pub(super) struct Failures {
    /// Pages that found no space yet to be written again.
    pub(super) pending_rewrites: Vec<PendingRewrite>,
    /// What failed pages superseded, until their data is on flash.
    pub(super) retirements: Vec<Retirement>,
    /// The over-provisioning is gone: reads go on, writes are refused.
    pub(super) read_only: bool,
    /// The over-provisioning is there, and the victim policy let it be.
    pub(super) idle_policy: Option<IdlePolicy>,
}

/// A page whose program failed and that found no room yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRewrite {
    pub(super) place: Place,
    frontier: Frontier,
    cause: ssdlab_flash::Cause,
}

/// What a failed page leaves behind until its data is on flash.
#[derive(Debug)]
pub(super) struct Retirement {
    /// The page whose program failed.
    failed: Ppn,
    /// Pages that must be on flash first.
    pages: Vec<Ppn>,
    /// Blocks that hold the versions before, each pinned once.
    pub(super) blocks: Vec<BlockId>,
    /// A unit of the page was trimmed meanwhile: the record of that must be on flash too, or what was before the page
    /// would come back.
    trim: HeldTrim,
    /// It is a record of trims: it counts as in flight until it is on flash, whatever moves it and for what cause.
    metadata: Option<MetadataToken>,
    /// Who waits for the failed page.
    pub(super) owner: Waiter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldTrim {
    /// Nothing was trimmed, or the record is on flash.
    Done,
    /// The record could not be written yet.
    Unsaved,
    /// The record is in flight.
    InFlight,
}

impl Drive {
    /// A program failed that has pinned `blocks`: its units go elsewhere, and what it superseded is held.
    pub(super) fn program_failed(&mut self, place: Place, cause: Cause, owner: Waiter, blocks: Vec<BlockId>) {
        if let Waiter::Map(op) = owner {
            self.map_program_failed(op);
        }
        if let Waiter::List(block) = owner {
            return self.list_failed(BlockId(block), place);
        }
        self.media.page_failed(place);
        let relocates = matches!(owner, Waiter::Gc(_));
        let frontier = if relocates { Frontier::Gc } else { Frontier::Host(0) };
        // Without time no job waits for what it relocates.
        let owner = if relocates && !self.media.flash.timed() { Waiter::None } else { owner };
        let record = cause == Cause::Metadata;
        let cause = if record { Cause::Metadata } else { Cause::Retirement };
        let metadata = record.then(|| self.media.metadata.begin());
        let written = self.media.flash.is_written(place.block, place.page);
        let good = self.media.flash.blocks.readable(self.media.ppn_at(place));
        let found = good && self.ftl.is_recoverable(&self.media, place);
        assert!(written && !found, "the program of {place:?} failed: it is written {written}, and found {found}");
        if !good {
            self.retire_block_of(place);
            assert!(
                self.media.flash.blocks.get(place.block).suspect,
                "a program failed in block {}, which is trusted",
                place.block
            );
        }
        self.failures.retirements.push(Retirement {
            failed: self.media.ppn_at(place),
            pages: vec![self.media.ppn_at(place)],
            blocks,
            trim: HeldTrim::Done,
            metadata,
            owner,
        });
        self.rewrite_or_wait(PendingRewrite { place, frontier, cause });
    }

    /// The program of a list of owners failed: the next page of its block takes another one. If there is none the block is emptied, and
    /// what waits for its list waits for that.
    fn list_failed(&mut self, block: BlockId, place: Place) {
        assert_eq!(block, place.block, "a list is in its own block");
        self.media.list_failed(block);
        self.retire_block_of(place);
        self.end_listed_commands();
    }

    /// Programs that failed without time are dealt with as if they had just ended.
    pub(super) fn replace_failed_pages(&mut self) {
        while let Some(FailedProgram { place, cause, owner, pins, metadata }) = self.media.wakes.failed.pop() {
            assert!(!self.media.flash.timed(), "the program of {place:?} took time, and failed at once");
            assert!(
                self.media.pool.pins(self.media.pool.superblocks.of(place.block)) > 0,
                "{place:?} failed: it is pinned"
            );
            if let Waiter::Command(command) = owner {
                // Without time it waits for nothing but what fails.
                self.commands[command].remaining += 1;
            }
            self.program_failed(place, cause, owner, pins);
            self.media.unpin(place.block);
            if let Some(token) = metadata {
                // What is left of it is the retirement's.
                self.media.metadata.end(token);
                self.metadata_ended();
            }
            let group = self.media.group_of(place.block);
            self.gc.pump(&mut self.media, &mut *self.ftl, group);
            self.collect_garbage();
        }
    }

    fn retire_block_of(&mut self, place: Place) {
        let superblock = self.media.pool.superblocks.of(place.block);
        if superblock == NONE {
            // Of programs that failed together one before may have had it emptied, and it is bad.
            return;
        }
        self.media.abandon(place.block);
        self.gc.retire(&mut self.media, superblock);
    }

    fn rewrite_or_wait(&mut self, pending: PendingRewrite) {
        let PendingRewrite { place, frontier, cause } = pending;
        if let Err(NoSpace) = self.ftl.rewrite(&mut self.media, place, frontier, cause, Waiter::None) {
            self.media.pool.pin(place.block);
            self.failures.pending_rewrites.push(pending);
            return;
        }
        let page = self.media.ppn_at(place);
        let (pending, trimmed) = self.pages_not_on_flash(place);
        let pending = if seeded(Bug::FailedPageLetGo) { Vec::new() } else { pending };
        for hold in &mut self.failures.retirements {
            if hold.pages.contains(&page) {
                // Several of its pages may have led to the same one: each is in the list once.
                hold.pages.retain(|held| *held != page && !pending.contains(held));
                hold.pages.extend(&pending);
                if trimmed {
                    hold.trim = HeldTrim::Unsaved;
                }
            }
        }
        self.save_held_trims();
        self.release_holds();
    }

    fn save_held_trims(&mut self) {
        let unsaved = |hold: &Retirement| hold.trim == HeldTrim::Unsaved;
        if self.failures.retirements.iter().any(unsaved)
            && self.ftl.save_trims(&mut self.media, TrimTarget::Host, Waiter::None).is_ok()
        {
            for hold in self.failures.retirements.iter_mut().filter(|hold| unsaved(hold)) {
                hold.trim = HeldTrim::InFlight;
            }
        }
    }

    /// Where the units of a failed page are by now, as far as that is not on flash: in flight, or failed as well; and
    /// whether one of them was trimmed.
    fn pages_not_on_flash(&self, place: Place) -> (Vec<Ppn>, bool) {
        let mut pages = Vec::new();
        let trimmed = self.ftl.current_locations(&self.media, place, &mut pages);
        pages.sort_unstable();
        pages.dedup();
        pages.retain(|page| !self.media.is_on_flash(*page));
        (pages, trimmed)
    }

    /// A page is on flash: what waited for it may be let go.
    pub(super) fn page_is_on_flash(&mut self, done: &Done) {
        if self.failures.retirements.is_empty() {
            return;
        }
        let page = self.media.ppn_at(Place { block: done.block, page: done.page });
        for hold in &mut self.failures.retirements {
            hold.pages.retain(|held| *held != page);
        }
        self.release_holds();
    }

    pub(super) fn release_holds(&mut self) {
        let mut ended = false;
        for hold in self.failures.retirements.iter_mut().filter(|hold| hold.pages.is_empty()) {
            if let Some(token) = hold.metadata.take() {
                self.media.metadata.end(token);
                ended = true;
            }
        }
        if ended {
            self.metadata_ended();
        }
        if self.media.metadata.is_empty() {
            for hold in self.failures.retirements.iter_mut().filter(|hold| hold.trim == HeldTrim::InFlight) {
                hold.trim = HeldTrim::Done;
            }
        }
        let over = |hold: &Retirement| hold.pages.is_empty() && hold.trim == HeldTrim::Done;
        while let Some(index) = self.failures.retirements.iter().position(over) {
            let hold = self.failures.retirements.swap_remove(index);
            self.media.failed_page_is_replaced(hold.failed);
            self.media.unpin_when_listed(hold.blocks);
            self.operation_ended(hold.owner);
        }
    }

    /// Room may have been found for pages whose programs failed.
    pub(super) fn write_pending_pages(&mut self) {
        self.save_held_trims();
        if self.failures.pending_rewrites.is_empty() {
            // Trims that were on flash already send no record whose end would do this.
            if !self.failures.retirements.is_empty() {
                self.release_holds();
            }
            return;
        }
        let tried = self.failures.pending_rewrites.len();
        for pending in std::mem::take(&mut self.failures.pending_rewrites) {
            self.rewrite_or_wait(pending);
            self.media.unpin(pending.place.block);
        }
        if self.failures.pending_rewrites.len() < tried {
            self.metadata_ended();
        } else {
            // Nothing found room, and nothing frees any: to say so would try the same again at once, for ever.
            self.waiters_for_records_go_on();
        }
    }

    /// Map pages whose programs failed stay in RAM for good.
    fn give_up_map_programs(&mut self) {
        for index in 0..self.failures.retirements.len() {
            let owner = &mut self.failures.retirements[index].owner;
            if let Waiter::Map(op) = *owner {
                *owner = Waiter::None;
                self.map_given_up(op);
            }
        }
    }

    /// No room will be found: the waiters are told so with `status`. The pages stay in RAM.
    pub(super) fn give_up_pending_pages(&mut self, status: Status) {
        for index in 0..self.failures.retirements.len() {
            match self.failures.retirements[index].owner {
                Waiter::Command(command) => self.commands[command].status = status,
                Waiter::Eviction(slot) => {
                    let Eviction { serial, command, .. } = self.stage.evictions[slot];
                    let waiters = self.waiting.for_evictions.iter().filter(|(until, _)| *until > serial);
                    for command in waiters.map(|(_, command)| *command).chain(command) {
                        self.commands[command].status = status;
                    }
                }
                _ => {}
            }
        }
        let told =
            |hold: &Retirement| !matches!(hold.owner, Waiter::None | Waiter::Gc(_) | Waiter::Idle | Waiter::Map(_));
        while let Some(index) = self.failures.retirements.iter().position(told) {
            let owner = std::mem::replace(&mut self.failures.retirements[index].owner, Waiter::None);
            self.operation_ended(owner);
        }
        if status == Status::ReadOnly {
            self.give_up_map_programs();
        }
        for command in self.media.give_up_lists() {
            self.commands[command].status = status;
            self.release_command(command);
        }
        if !self.failures.pending_rewrites.is_empty() {
            for command in std::mem::take(&mut self.waiting.for_records) {
                self.commands[command].status = status;
                self.release_command(command);
            }
        }
    }
}

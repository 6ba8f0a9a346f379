//! The event loop: virtual time jumps to the next event, and what is done on flash finds who waited for it.

use std::cmp::Reverse;

use ssdlab_base::Nanos;
use ssdlab_flash::{Cause, Done, NONE, OpKind};

use super::{Drive, Orphan, Timer};
use crate::Status;
use crate::block_pool::BlockState;
use crate::ftl::NoSpace;
use crate::media::{Frontier, Place};
use crate::token::Owner;

impl Drive {
    /// When something happens next; `None` when nothing will.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        let flash = self.media.flash.next_event().unwrap_or(Nanos::MAX);
        let timer = self.timers.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
        let idle = self.idle_at.unwrap_or(Nanos::MAX);
        let next = flash.0.min(timer.0).min(idle.0);
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// Runs every event up to and including `until`; virtual time is `until` then.
    pub fn run_until(&mut self, until: Nanos) {
        while let Some(at) = self.next_event()
            && at <= until
        {
            self.step(at);
        }
        self.media.now = self.media.now.max(until);
        self.break_deadlock();
    }

    /// Runs events up to `until` but stops as soon as a completion is there; true if one is. Virtual time is that of
    /// the last event, not `until`.
    #[inline]
    pub fn run_to_completion(&mut self, until: Nanos) -> bool {
        loop {
            if !self.completions.is_empty() {
                return true;
            }
            match self.next_event() {
                Some(at) if at <= until => self.step(at),
                Some(_) => return false,
                None => {
                    self.break_deadlock();
                    return !self.completions.is_empty();
                }
            }
        }
    }

    /// Runs the events of one resource at time `at`, the earliest there is.
    #[inline]
    fn step(&mut self, at: Nanos) {
        self.media.now = at;
        if self.media.flash.next_event() == Some(at) {
            let mut done = std::mem::take(&mut self.done);
            done.clear();
            self.media.flash.step(&mut done);
            if !done.is_empty() {
                for done in &done {
                    self.flash_done(done);
                }
                self.settle();
            }
            self.done = done;
        } else if self.timers.peek().is_some_and(|Reverse((due, ..))| *due == at) {
            if let Some(Reverse((.., timer))) = self.timers.pop() {
                match timer {
                    Timer::Dispatch(command) => self.dispatch(command),
                    Timer::Finish(command) => self.release_command(command),
                    Timer::Complete(command) => self.complete(command),
                }
            }
        } else {
            self.idle_at = None;
            self.gc.set_background(true);
            for plane in 0..self.config.flash.geometry.planes() {
                self.gc.pump(&mut self.media, &mut *self.ftl, plane);
            }
            self.settle();
        }
    }

    #[inline]
    fn flash_done(&mut self, done: &Done) {
        match done.kind {
            OpKind::Read => self.read_done(done),
            OpKind::Program | OpKind::Copyback => self.program_done(done),
            OpKind::Erase => {
                self.gc.erased(&mut self.media, done.block, done.failed);
                self.space_freed(done.block);
            }
        }
    }

    #[inline]
    fn read_done(&mut self, done: &Done) {
        if done.failed {
            let from = Place { block: done.block, page: done.page };
            if done.then != NONE {
                let (block, page) = self.media.flash.target(done.then);
                self.ftl.poison(&mut self.media, from, Place { block, page });
            }
            if let Owner::Command(command) = Owner::unpack(done.token) {
                self.commands[command as usize].status = Status::UncorrectableRead;
            }
        }
        self.media.release_pins(done);
        self.owner_served(done.token);
    }

    #[inline]
    fn program_done(&mut self, done: &Done) {
        if done.failed {
            self.program_failed(done);
        } else {
            self.media.release_pins(done);
            self.owner_served(done.token);
        }
        if self.media.pool.state(done.block) == BlockState::Full {
            self.media.close_if_written(done.block);
            if self.media.pool.is_retiring(done.block) {
                let plane = self.media.pool.plane_of(done.block);
                self.gc.pump(&mut self.media, &mut *self.ftl, plane);
            }
        }
        if done.cause == Cause::Metadata {
            self.media.metadata_in_flight -= 1;
            if self.media.metadata_in_flight == 0 {
                self.gc.metadata_done(&mut self.media);
                for command in std::mem::take(&mut self.metadata_waiters) {
                    self.release_command(command);
                }
            }
        }
        while let Some(index) = self.program_waiters.iter().position(|(op, _)| *op == done.op) {
            let (_, command) = self.program_waiters.remove(index);
            self.release_command(command);
        }
    }

    #[inline]
    fn owner_served(&mut self, token: u32) {
        match Owner::unpack(token) {
            Owner::Nobody => {}
            Owner::Command(command) => self.release_command(command),
            Owner::Eviction(slot) => self.evicted(slot),
            Owner::Gc(plane) => self.gc.relocated(&mut self.media, &mut *self.ftl, plane),
        }
    }

    /// What follows from a batch of finished operations: erases that nothing pins, commands that may find room.
    #[inline]
    pub(super) fn settle(&mut self) {
        while let Some(block) = self.media.unpinned.pop() {
            if self.media.pool.pins(block) > 0 {
                continue;
            }
            while let Some(waiter) = self.media.pool.take_chained(block) {
                if self.media.pool.unpin(waiter) {
                    self.media.unpinned.push(waiter);
                }
            }
            if self.media.pool.state(block) == BlockState::Erasing {
                self.gc.erase(&mut self.media, block);
                if self.media.pool.state(block) == BlockState::Bad {
                    self.space_freed(block);
                }
            }
        }
        if self.room_freed {
            self.room_freed = false;
            self.adopt_orphans();
            self.check_spares();
            if !self.stalled.is_empty() {
                self.retry_stalled();
            }
        }
        self.collect_garbage();
    }

    fn space_freed(&mut self, block: u32) {
        self.room_freed = true;
        let plane = self.media.pool.plane_of(block);
        self.gc.pump(&mut self.media, &mut *self.ftl, plane);
    }

    /// Every plane in which a block was opened may need collection.
    #[inline]
    pub(super) fn collect_garbage(&mut self) {
        while let Some(plane) = self.media.opened.pop() {
            self.gc.pump(&mut self.media, &mut *self.ftl, plane);
        }
    }

    /// Untimed, every consequence follows at once.
    pub(super) fn settle_untimed(&mut self) {
        self.collect_garbage();
        while let Some(place) = self.media.failed_untimed.pop() {
            self.retire_block_of(place);
            let rewritten =
                self.ftl.rewrite(&mut self.media, place, Frontier::Host(0), Cause::Retirement, Owner::Nobody);
            if rewritten.is_err() {
                let owner = Owner::Nobody;
                let frontier = Frontier::Host(0);
                self.media.pool.pin(place.block);
                self.orphans.push(Orphan { place, frontier, cause: Cause::Retirement, owner });
            }
            let plane = self.media.pool.plane_of(place.block);
            self.gc.pump(&mut self.media, &mut *self.ftl, plane);
            self.collect_garbage();
        }
        if !self.orphans.is_empty() {
            self.adopt_orphans();
        }
        if self.gc.grown_bad > 0 {
            self.check_spares();
        }
    }

    // ---- failures ----

    /// A program failed: the data, still in RAM, goes elsewhere, and the block is emptied and never used again.
    fn program_failed(&mut self, done: &Done) {
        let place = Place { block: done.block, page: done.page };
        let owner = Owner::unpack(done.token);
        let frontier = if matches!(owner, Owner::Gc(_)) { Frontier::Gc } else { Frontier::Host(0) };
        let cause = if done.cause == Cause::Metadata { Cause::Metadata } else { Cause::Retirement };
        let superseded = self.media.pins_of(done);
        self.retire_block_of(place);
        self.rewrite_or_orphan(Orphan { place, frontier, cause, owner });
        // What the failed page superseded must outlive whatever now supersedes the failed page.
        for block in superseded {
            if block != place.block && self.media.pool.pins(place.block) > 0 {
                self.media.pool.chain(place.block, block);
            } else if self.media.pool.unpin(block) {
                self.media.unpinned.push(block);
            }
        }
    }

    fn retire_block_of(&mut self, place: Place) {
        self.media.abandon(place.block);
        self.gc.retire(&mut self.media, place.block);
    }

    fn rewrite_or_orphan(&mut self, orphan: Orphan) {
        let Orphan { place, frontier, cause, owner } = orphan;
        match self.ftl.rewrite(&mut self.media, place, frontier, cause, owner) {
            Ok(true) => {}
            Ok(false) => self.owner_served(owner.pack()),
            Err(NoSpace) => {
                self.media.pool.pin(place.block);
                self.orphans.push(orphan);
            }
        }
    }

    fn adopt_orphans(&mut self) {
        for orphan in std::mem::take(&mut self.orphans) {
            self.rewrite_or_orphan(orphan);
            if self.media.pool.unpin(orphan.place.block) {
                self.media.unpinned.push(orphan.place.block);
            }
        }
    }

    /// When bad blocks have eaten what garbage collection needs, the drive stops taking writes.
    fn check_spares(&mut self) {
        if self.read_only || self.gc.grown_bad == 0 {
            return;
        }
        let planes = 0..self.config.flash.geometry.planes();
        let usable: Vec<u32> = planes.map(|plane| self.media.pool.usable(plane)).collect();
        if self.config.check_space(&usable, self.ftl.metadata_units()).is_err() {
            self.go_read_only();
        }
    }

    fn go_read_only(&mut self) {
        self.read_only = true;
        for command in std::mem::take(&mut self.stalled) {
            self.commands[command as usize].status = Status::ReadOnly;
            self.commands[command as usize].order = self.order;
            self.order += 1;
            self.release_command(command);
        }
    }

    /// Commands wait but nothing is in flight: no block can be freed any more. Only faults can bring a drive here.
    fn break_deadlock(&mut self) {
        if self.next_event().is_none() && !self.stalled.is_empty() {
            self.go_read_only();
        }
    }
}

//! The engine on one screen: virtual time jumps to the next event, what ended there is told to who waited for it, and the
//! controller does its work in stages.
//!
//! A command enters through `submit` and [`super::dispatch`]; what its operations lead to is in [`super::events`].

use ssdlab_base::Nanos;

use super::events::WaitsForSpace;
use super::latency_trace::Ends;
use super::{Drive, Timer};
use crate::Status;
use crate::waiter::Waiter;

impl Drive {
    /// When something happens next; `None` when nothing will.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        let flash = self.media.flash.next_event().unwrap_or(Nanos::MAX);
        let timer = self.timers.next().unwrap_or(Nanos::MAX);
        let idle = self.idle.at.unwrap_or(Nanos::MAX);
        let next = flash.0.min(timer.0).min(idle.0);
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// When something happens next, without the work of idle time; `None` when nothing will.
    fn next_of_commands(&self) -> Option<Nanos> {
        self.media.flash.next_event().into_iter().chain(self.timers.next()).min()
    }

    /// Runs every event up to and including `until`; virtual time is `until` then.
    pub fn run_until(&mut self, until: Nanos) {
        loop {
            while let Some(at) = self.next_event()
                && at <= until
            {
                self.step(at);
            }
            // What waits for nothing that will happen is helped now, and not when the time is over.
            if !self.break_deadlock() {
                self.media.now = self.media.now.max(until);
                return;
            }
        }
    }

    /// Runs events up to `until` but stops as soon as a completion or an event for the host is there; true if one is. Virtual time is that of
    /// the last event, not `until`.
    #[inline]
    pub fn run_to_completion(&mut self, until: Nanos) -> bool {
        loop {
            if !self.host.completions.is_empty() || self.media.events.has_news() {
                return true;
            }
            match self.next_event() {
                Some(at) if at <= until && self.idle.at != Some(at) => self.step(at),
                // Commands that wait for nothing do not wait for idle time either.
                _ if self.break_deadlock() => {}
                Some(at) if at <= until => self.step(at),
                _ => return false,
            }
        }
    }

    /// Runs the events of one resource at time `at`, the earliest there is.
    #[inline]
    fn step(&mut self, at: Nanos) {
        debug_assert!(at >= self.media.now, "time goes from {} back to {at}", self.media.now);
        self.media.now = at;
        if self.media.flash.next_event() == Some(at) {
            let mut done = std::mem::take(&mut self.done);
            done.clear();
            self.media.flash.step(&mut done);
            if !done.is_empty() {
                if self.paths.is_none() {
                    self.data_is_on_flash(&done);
                    for done in &done {
                        self.flash_done(done);
                    }
                    self.work();
                } else {
                    self.flash_done_recorded(&done);
                }
            }
            self.done = done;
        } else if let Some(timer) = self.timers.take_due(at) {
            match timer {
                Timer::Dispatch(command) => self.dispatch(command),
                Timer::Finish(command) if self.paths.is_some() => {
                    self.waits_end_by(Ends::BufferLatency);
                    self.release_command(command);
                    self.waits_end_by(Ends::Other);
                }
                Timer::Finish(command) => self.release_command(command),
                Timer::Copied(command) => self.copy_ended(command),
                Timer::Complete(command) => self.complete(command),
            }
        } else {
            self.idle_time_has_come(at);
            self.work();
        }
    }

    /// What follows from a batch of finished operations: erases that nothing pins, commands that may find room.
    #[inline]
    pub(super) fn work(&mut self) {
        // After most batches nothing does: a few loads for each event, and no call.
        if self.media.wakes.is_due() || !self.media.wakes.groups.is_empty() || self.stage.destager.is_some() {
            self.work_in_stages();
        }
    }

    /// The controller's work at one instant, stage by stage, until no stage has left anything to another.
    fn work_in_stages(&mut self) {
        loop {
            let free = if self.caches_map { self.media.free_blocks() } else { 0 };
            self.replace_failed_pages();
            self.erase_emptied_superblocks();
            self.serve_map_waiters();
            if self.media.wakes.take_space() {
                self.use_freed_space();
            }
            self.destage();
            if self.caches_map {
                self.forget_waiter_served(Waiter::Buffer);
            }
            self.collect_garbage();
            // Without time no erase ends later: collection that waited for map pages has freed blocks by now.
            self.media.wakes.space_freed |=
                self.caches_map && !self.media.flash.timed() && self.media.free_blocks() > free;
            if !self.media.wakes.is_due() && !self.list_for_space() {
                return;
            }
        }
    }

    /// A superblock was erased, pages left the buffer, or collection lets the host write again: who waited for it goes on.
    fn use_freed_space(&mut self) {
        self.end_listed_commands();
        self.map_goes_on();
        self.write_pending_pages();
        self.check_over_provisioning();
        if !self.waiting.stalled.is_empty() {
            self.retry_stalled();
        }
        self.stage.destage_waits = false;
    }

    /// Without time every consequence of a step follows at once, in the middle of the command that took it: its next page may need
    /// what collection frees.
    #[inline]
    pub(super) fn work_untimed(&mut self) {
        self.collect_garbage();
        if self.caches_map {
            self.work_on_map_untimed();
        }
        if self.media.lists_owners() {
            self.work_on_lists_untimed();
        }
        if self.media.flash.may_fail() || self.gc.grown_bad > 0 {
            self.work_on_failures_untimed();
        }
    }

    /// Map blocks are erased, and collection that waited for map pages goes on.
    #[cold]
    fn work_on_map_untimed(&mut self) {
        while !self.media.wakes.erasable.is_empty() || self.media.wakes.is_for_map() {
            self.erase_emptied_superblocks();
            self.map_goes_on();
            self.serve_map_waiters();
            self.collect_garbage();
        }
    }

    /// Blocks whose erase waited for lists are erased, and collection goes on.
    #[cold]
    fn work_on_lists_untimed(&mut self) {
        while !self.media.wakes.erasable.is_empty() {
            self.erase_emptied_superblocks();
            self.collect_garbage();
        }
        self.end_listed_commands();
    }

    /// Pages whose programs or reads failed are written again.
    #[cold]
    fn work_on_failures_untimed(&mut self) {
        loop {
            while let Some(place) = self.media.wakes.rebuilt.pop() {
                self.page_was_rebuilt(place);
                let group = self.media.group_of(place.block);
                self.gc.pump(&mut self.media, &mut *self.ftl, group);
                self.collect_garbage();
            }
            self.replace_failed_pages();
            self.write_pending_pages();
            self.erase_emptied_superblocks();
            if self.media.wakes.rebuilt.is_empty() && self.media.wakes.failed.is_empty() {
                break;
            }
        }
        self.check_over_provisioning();
    }

    /// Closes a frontier, so that its block can be collected; false if there is none to close. Frontiers that were closed while
    /// `waits` stayed the same freed nothing for what waits: after as many as there are, no more are closed.
    fn gives_up_a_frontier(&mut self, waits: WaitsForSpace) -> bool {
        if self.media.own_blocks {
            return false;
        }
        let given_up = match self.waiting.given_up {
            Some((before, count)) if before == waits => count,
            _ => 0,
        };
        let mut groups = 0..self.media.pool.groups();
        if given_up >= self.media.data_frontiers() || !groups.any(|group| self.media.give_up_frontier(group)) {
            return false;
        }
        self.waiting.given_up = Some((waits, given_up + 1));
        true
    }

    /// Commands wait but nothing is in flight. Garbage collection looks at every group once more; if even that sets
    /// nothing going, no block can be freed any more, and only faults, or a victim policy that chooses nothing, can
    /// bring a drive here. True if anything changed.
    pub(super) fn break_deadlock(&mut self) -> bool {
        let pending = if self.commands.outstanding > 0 {
            self.failures.pending_rewrites.len() + self.failures.retirements.len()
        } else {
            0
        };
        // Without time the list of a command may have come with what another one led to.
        if self.end_listed_commands() {
            return true;
        }
        let waits = || !self.waiting.stalled.is_empty() || pending > 0 || self.media.commands_await_lists();
        if self.next_of_commands().is_some() || !waits() {
            return false;
        }
        let in_flight = self.media.flash.in_flight();
        assert_eq!(in_flight, 0, "{in_flight} operations are in flight, and nothing happens next");
        if self.list_for_space() {
            self.work();
            return true;
        }
        let before = self.waits_for_space();
        self.storage_full();
        self.gc.set_urgent(true);
        self.pump_all();
        self.gc.set_urgent(false);
        self.media.host_pace.release();
        self.media.wakes.space_freed = true;
        self.work();
        if self.next_of_commands().is_none() && self.waits_for_space() == before {
            if self.gives_up_a_frontier(before) {
                return true;
            }
            if self.storage_full() {
                // The host may find space again: only what waits now is refused.
                self.give_up_pending_pages(Status::StorageFull);
                self.give_up_stalled(Status::StorageFull);
            } else {
                self.failures.read_only = true;
                self.failures.idle_policy = self.gc.idle_policy(&self.media);
                self.announce_read_only();
                self.give_up_pending_pages(Status::ReadOnly);
                self.map_is_read_only();
                self.retry_stalled();
            }
        }
        self.next_of_commands().is_some() || self.waits_for_space() != before
    }
}

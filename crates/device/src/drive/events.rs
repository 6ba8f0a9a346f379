//! What ended on flash finds who waited for it.

use ssdlab_base::Nanos;
use ssdlab_flash::{BlockId, Cause, Done, NONE, OpId, OpKind};

use super::Drive;
use super::latency_trace::Ends;
use super::stalled::WaitsFor;
use crate::Status;
use crate::block_pool::BlockState;
use crate::media::Place;
use crate::waiter::Waiter;

/// What waits for free blocks, and how far it came: as long as any of it changes, the drive gets on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitsForSpace {
    stalled: usize,
    rewrites: usize,
    outstanding: u64,
    /// How far the stalled commands came, summed.
    cursors: u64,
    trims_pending: u32,
    programs_sent: u64,
    block_changes: u64,
}

impl Drive {
    /// What ended together, where the paths of requests say what ended their waits: of several operations the last that
    /// made space, since that is what waiting commands waited for.
    #[cold]
    pub(super) fn flash_done_recorded(&mut self, done: &[Done]) {
        let mut made_space = None;
        self.data_is_on_flash(done);
        for done in done {
            self.waits_end_by_operation(done.op);
            let before = self.media.wakes.space_freed;
            self.flash_done(done);
            if self.media.wakes.space_freed && !before {
                made_space = Some(done.op);
            }
        }
        if let Some(op) = made_space {
            self.waits_end_by_operation(op);
        }
        self.work();
        self.waits_end_by(Ends::Other);
        self.forget_waits();
    }

    #[inline]
    pub(super) fn flash_done(&mut self, done: &Done) {
        match done.kind {
            OpKind::Read => self.read_done(done),
            OpKind::Program => self.program_done(done),
            OpKind::Copyback => {
                // Data that could not have been corrected is lost in it.
                self.media.relist(Place { block: done.block, page: done.page });
                self.program_done(done);
            }
            OpKind::Erase if Waiter::unpack(done.token) == Waiter::Checkpoint => self.checkpoint_block_erased(done),
            OpKind::Erase => {
                if let Some(sent) = self.gc.erased(&mut self.media, done.block, done.failed) {
                    self.count_erase_in_stalls(sent);
                    self.space_freed(self.media.group_of(done.block));
                }
            }
        }
    }

    #[inline]
    fn read_done(&mut self, done: &Done) {
        if done.failed && self.begin_rebuild(done) {
            return;
        }
        if let Waiter::Rebuild(slot) = Waiter::unpack(done.token) {
            self.media.release_pins(done);
            self.stripe_page_read(slot, done.failed, done.op);
            return;
        }
        if done.failed {
            self.read_ended(done, true, done.op);
        }
        self.media.release_pins(done);
        self.operation_ended(Waiter::unpack(done.token));
    }

    /// A read that failed at first has ended for its waiters: by the operation `by`, with the page's data or without.
    pub(super) fn read_ended(&mut self, done: &Done, failed: bool, by: OpId) {
        if failed {
            let from = Place { block: done.block, page: done.page };
            if done.then != NONE {
                self.media.read_failed(from, done.then);
            }
            let waiter = Waiter::unpack(done.token);
            if let Some(command) = self.command_that_reads(waiter) {
                self.commands[command].status = Status::UncorrectableRead;
            } else if let Waiter::Versions(slot) = waiter {
                self.version_lost(slot);
            }
        }
        if done.then != NONE && self.media.flash.holds_failed_reads() {
            self.media.flash.release_waiter(done.then, by, self.media.now);
        }
    }

    #[inline]
    fn program_done(&mut self, done: &Done) {
        let place = Place { block: done.block, page: done.page };
        if Waiter::unpack(done.token) == Waiter::Checkpoint {
            return self.checkpoint_page_done(done);
        }
        if done.failed || self.media.own_blocks && !self.ftl.is_recoverable(&self.media, place) {
            let pins = self.media.pins_of(done);
            self.program_failed(place, done.cause, Waiter::unpack(done.token), pins);
        } else {
            self.media.release_pins(done);
            self.page_is_on_flash(done);
            self.media.wakes.room_may_be_free();
            self.resume_settled();
            self.operation_ended(Waiter::unpack(done.token));
        }
        let superblock = self.media.pool.superblocks.of(done.block);
        // Of programs that ended together one before may have closed it, and collection found nothing in it and members bad.
        if superblock != NONE && self.media.pool.state(superblock) == BlockState::Full {
            self.media.close_if_written(done.block);
            // A superblock that has just been closed may be the victim that its group was waiting for.
            if self.media.pool.state(superblock) == BlockState::Closed {
                let group = self.media.group_of(done.block);
                self.gc.pump(&mut self.media, &mut *self.ftl, group);
                // One of map pages may be what their collection was waiting for.
                self.media.wakes.map_block_closed |= self.media.pool.is_map_block(superblock);
            }
        }
        debug_assert!(
            self.media.flash.is_written(done.block, done.page),
            "the program of block {} page {} ended, and the page is not written",
            done.block,
            done.page
        );
        if done.cause == Cause::Metadata {
            let token = self.media.metadata.arrive();
            self.media.metadata.end(token);
            self.metadata_ended();
        }
        if self.waiting.for_programs.is_empty() {
            return;
        }
        for (command, units) in self.waiting.for_programs.remove(&done.op).unwrap_or_default() {
            let first = self.media.unit_at(Place { block: done.block, page: done.page });
            let lost = |index: u32| units >> index & 1 != 0 && self.media.flash.oob.is_poisoned(first + index);
            if (0..self.media.units_per_page).any(lost) {
                self.commands[command].status = Status::UncorrectableRead;
            }
            self.release_command(command);
        }
    }

    /// When all records of trims are on flash, who waited for them goes on.
    pub(super) fn metadata_ended(&mut self) {
        if self.media.metadata.is_empty() {
            self.waiters_for_records_go_on();
            self.media.wakes.room_may_be_free();
            if self.admission.is_some() {
                // Blocks whose trims are on flash may be erased now.
                self.pump_all();
                self.media.wakes.space_freed = true;
            }
        }
    }

    /// Waiters for records of trims go on if no record is in flight, also where none has ended just now.
    pub(super) fn waiters_for_records_go_on(&mut self) {
        if self.media.metadata.is_empty() {
            self.gc.metadata_done(&mut self.media);
            for command in std::mem::take(&mut self.waiting.for_records) {
                self.release_command(command);
            }
            self.release_holds();
        }
    }

    /// The operation that a waiter waited for has ended.
    #[inline]
    pub(super) fn operation_ended(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::None => {}
            Waiter::Command(command) => self.release_command(command),
            Waiter::Eviction(slot) => self.evicted(slot),
            Waiter::Idle => self.idle_work_done(),
            Waiter::Versions(slot) => self.read_next_version(slot),
            Waiter::Gathered(slot) => self.gathered(slot),
            Waiter::Rebuild(_) => {}
            Waiter::Map(op) => self.map_served(op),
            Waiter::Gc(group) => self.gc.relocated(&mut self.media, &mut *self.ftl, group),
            Waiter::VictimList(group) => self.gc.list_read(&mut self.media, &mut *self.ftl, group),
            Waiter::List(block) => {
                self.media.list_is_on_flash(BlockId(block));
                self.end_listed_commands();
            }
            Waiter::Checkpoint => unreachable!("{waiter:?} is told of its pages and blocks"),
            Waiter::Read(_) | Waiter::Buffer | Waiter::Log => unreachable!("{waiter:?} waits for map pages alone"),
        }
    }

    /// Superblocks that nothing pins any more are erased.
    pub(super) fn erase_emptied_superblocks(&mut self) {
        while let Some(superblock) = self.media.wakes.erasable.pop() {
            if self.media.pool.pins(superblock) > 0 {
                continue;
            }
            if self.media.pool.state(superblock) == BlockState::Erasing {
                self.gc.erase(&mut self.media, superblock);
                // Timed, an erase ends later; but where nothing is left to erase nothing tells of its end. Without time it has
                // ended: collection may have waited for it if the erase waited for map pages with trims.
                let tells = self.media.flash.timed() || self.caches_map || self.media.lists_owners();
                let ended = tells && self.media.pool.state(superblock) != BlockState::Erasing;
                if ended || self.media.pool.state(superblock) == BlockState::Bad {
                    self.space_freed(self.media.pool.group_of(superblock));
                }
            }
        }
    }

    /// What commands that wait for a free block waited for the erase that made one and was sent at `sent`; before an earlier
    /// erase had made space they waited for that one.
    #[cold]
    fn count_erase_in_stalls(&mut self, sent: Nanos) {
        let before = std::mem::replace(&mut self.waiting.space_made, self.media.now);
        for command in self.waiting.stalled.for_space() {
            let since = self.commands[command].stalled_since;
            if since != Nanos::MAX {
                self.counters.gc_stall_erase += self.media.now.since(sent.max(before).max(since));
            }
        }
    }

    fn space_freed(&mut self, group: u32) {
        self.media.wakes.space_freed = true;
        if self.media.own_blocks {
            // The design may have waited for a block of any group.
            return self.pump_all();
        }
        self.gc.pump(&mut self.media, &mut *self.ftl, group);
    }

    /// Collection looks at every group.
    pub(super) fn pump_all(&mut self) {
        for group in 0..self.media.pool.groups() {
            self.gc.pump(&mut self.media, &mut *self.ftl, group);
        }
    }

    /// Every group in which a superblock was opened may need collection.
    #[inline]
    pub(super) fn collect_garbage(&mut self) {
        if !self.media.wakes.groups.is_empty() {
            self.collect_in_opened();
        }
    }

    #[inline(never)]
    fn collect_in_opened(&mut self) {
        while let Some(group) = self.media.wakes.groups.pop() {
            self.gc.pump(&mut self.media, &mut *self.ftl, group);
        }
    }

    /// When bad blocks have eaten what garbage collection needs, the drive stops taking writes.
    pub(super) fn check_over_provisioning(&mut self) {
        if self.failures.read_only || self.gc.grown_bad == 0 {
            return;
        }
        // Stalled commands hear of it when they are tried again.
        self.failures.read_only = self.over_provisioning_is_gone();
        self.announce_read_only();
    }

    /// Whether the good blocks no longer hold the user's data beside what garbage collection needs.
    pub(super) fn over_provisioning_is_gone(&self) -> bool {
        self.ftl.check_space(&self.config, &self.usable()).is_err()
    }

    /// What waits for free blocks now. A command that trims several segments finds space for the records of
    /// some of them, and for more when it is tried again. A flush finds space for some of the buffer's pages. A design with
    /// blocks of its own may have merged some for a write that needs more of them.
    pub(super) fn waits_for_space(&self) -> WaitsForSpace {
        let (stalled, rewrites) = (self.waiting.stalled.len(), self.failures.pending_rewrites.len());
        let come_to = |command: u32| {
            let state = &self.commands[command];
            u64::from(state.cursor) + state.set_state.as_ref().map_or(0, |set_state| set_state.furthest())
        };
        let cursors = self.waiting.stalled.for_space().map(come_to).sum();
        let pool = &self.media.pool;
        WaitsForSpace {
            stalled,
            rewrites,
            outstanding: self.commands.outstanding,
            cursors,
            trims_pending: self.ftl.trims_pending(),
            programs_sent: self.stage.programs_sent,
            block_changes: if self.media.own_blocks { pool.state_changes() } else { pool.became_data() },
        }
    }

    /// Whether the host had no space for a block that was to be opened, since the last call.
    pub(super) fn storage_full(&self) -> bool {
        self.media.flash.store.image().is_some_and(ssdlab_flash::Image::take_full)
    }

    /// Commands that wait for room are refused with `status`; those that have begun go on waiting.
    pub(super) fn give_up_stalled(&mut self, status: Status) {
        for command in self.waiting.stalled.take() {
            if self.has_begun(command) {
                let extent = self.extent(command);
                self.waiting.stalled.push(command, extent, WaitsFor::Map);
                continue;
            }
            assert!(self.commands[command].remaining > 0, "stalled command {command} has ended");
            self.release_buffer_reservation(command);
            self.forget_command(command);
            if let Some(set_state) = self.commands[command].set_state.take() {
                let request = self.commands[command].request;
                self.never_written(&request, &set_state);
                self.commands[command].set_state = Some(set_state);
            }
            self.commands[command].status = status;
            self.commands.number(command);
            self.leave_order(command);
            self.release_command(command);
        }
        self.dispatch_unblocked();
    }
}

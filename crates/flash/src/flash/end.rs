//! The end of an operation: its effect, its count, its fault, and who waited for it; and the end of power.

use ssdlab_base::Nanos;

use super::Flash;
use super::issue::NOT_ISSUED;
use super::operation::{Done, Flight, NONE};
use super::resources::{EMPTY, Phase};
use crate::blocks::Asked;
use crate::{BlockId, DieId, OpKind, Ppn, UnitId};

/// What lost data reads as.
const LOST: u8 = 0xdb;

impl Flash {
    pub(super) fn complete_running(&mut self, die: DieId, now: Nanos) {
        match self.waits {
            None => self.complete_group::<false>(die, now),
            Some(_) => self.complete_recorded(die, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn complete_recorded(&mut self, die: DieId, now: Nanos) {
        self.complete_group::<true>(die, now);
    }

    /// The running group has ended. With `RECORDED` its waits are told, too: asked once, and not of every operation.
    #[inline(always)]
    fn complete_group<const RECORDED: bool>(&mut self, die: DieId, now: Nanos) {
        let mut op = self.dies[die.index()].running;
        self.dies[die.index()].running = NONE;
        debug_assert_ne!(op, NONE, "die {die} ends something at {now}, and nothing runs");
        let together = op != NONE && self.flights[op as usize].next != NONE;
        if RECORDED && let Some(waits) = &mut self.waits {
            waits.occupied(die, now, None);
        }
        while op != NONE {
            let Flight { submit, next, then, .. } = self.flights[op as usize];
            let asked = Asked { cause: submit.cause, now };
            self.multi_plane.0[submit.kind as usize][submit.cause as usize] += u64::from(together);
            let failed = self.apply(submit.kind, asked, submit.block, submit.page, submit.source);
            self.flights[op as usize].next = self.ended;
            self.ended = op;
            self.in_flight -= 1;
            self.done.push(Done {
                op,
                kind: submit.kind,
                cause: submit.cause,
                block: submit.block,
                page: submit.page,
                token: submit.token,
                pin: submit.pin,
                failed,
                then,
            });
            debug_assert_eq!(self.flights[op as usize].waits_for, 0, "operation {op} ran while it waited");
            let held = failed && self.holds_failed_reads && submit.kind == OpKind::Read;
            let then = if held { NONE } else { then };
            let is_last = RECORDED && then != NONE && self.links_of(then) == 1;
            if RECORDED && let Some(waits) = &mut self.waits {
                waits.done(op, now);
                if is_last {
                    waits.released(then, op, now);
                }
            }
            if then != NONE {
                self.release(then, now);
            }
            op = next;
        }
    }

    /// `op` waits for one thing less.
    // Every relocated page comes by here: rare callers must not make a call of it.
    #[inline(always)]
    pub(super) fn release(&mut self, op: u32, now: Nanos) {
        let flight = &mut self.flights[op as usize];
        assert!(flight.waits_for & !NOT_ISSUED > 0, "an operation is released once for each link");
        flight.waits_for -= 1;
        if flight.waits_for == 0 {
            let follower = flight.follower;
            let die = self.set_ready(op, now);
            if follower != NONE || !self.on_ready.is_empty() {
                self.release_more(op, follower, now);
            }
            let state = &self.dies[die.index()];
            // The die that is completing its group right now goes on by itself.
            if state.phase == Phase::Idle && state.suspended == NONE {
                self.start_next(die, now);
            } else {
                self.stage(die, now);
            }
        } else if flight.waits_for == NOT_ISSUED {
            let follower = flight.follower;
            self.release_more(op, follower, now);
        }
    }

    /// `op` is ready, so its followers are, and who waited until it is goes on.
    #[cold]
    #[inline(never)]
    fn release_more(&mut self, op: u32, mut follower: u32, now: Nanos) {
        while follower != NONE {
            let flight = &mut self.flights[follower as usize];
            flight.waits_for -= 1;
            let (links, next) = (flight.waits_for, flight.follower);
            assert_eq!(links & !NOT_ISSUED, 0, "a follower waits for nothing else");
            if links == 0 {
                self.set_ready(follower, now);
            }
            self.tell_ready(follower, now);
            follower = next;
        }
        self.tell_ready(op, now);
    }

    /// An operation that waits until `op` is ready waits for one thing less.
    fn tell_ready(&mut self, op: u32, now: Nanos) {
        let Some(waiter) = self.on_ready.get_mut(op as usize) else { return };
        let waiter = std::mem::replace(waiter, NONE);
        if waiter != NONE {
            self.release(waiter, now);
        }
    }

    /// What an operation waited for has ended: at the head of its queue it may be chosen. Returns its die.
    #[inline(always)]
    pub(super) fn set_ready(&mut self, op: u32, now: Nanos) -> DieId {
        let flight = &self.flights[op as usize];
        let (block, class, order) = (flight.submit.block, flight.submit.class, flight.order);
        let die = self.die_of(block);
        let plane = self.plane_in_die(block);
        let index = self.queue_index(die, class as usize, plane);
        if self.queues[index].head == op {
            self.queues[index].order = order;
            if self.is_watched {
                self.ready_for_drive(op, die, class as u32 * self.geometry.planes_per_die + plane, now);
            }
        }
        die
    }

    /// The effect of an operation that has come to its end; true if it failed.
    #[inline]
    pub(super) fn apply(&mut self, kind: OpKind, asked: Asked, block: BlockId, page: u32, source: Ppn) -> bool {
        self.counts.0[kind as usize][asked.cause as usize] += 1;
        match kind {
            OpKind::Read => {
                self.blocks.read(block, page, asked);
                let ppn = Ppn::of(block, page, self.geometry.pages_per_block);
                self.faults.strikes(kind, block, 0) || !self.blocks.readable(ppn)
            }
            OpKind::Program | OpKind::Copyback => {
                if kind == OpKind::Copyback {
                    self.copy_page(asked, source, Ppn::of(block, page, self.geometry.pages_per_block));
                }
                self.blocks.program(block, page, asked);
                let failed = self.faults.strikes(kind, block, 0);
                if failed {
                    self.blocks.suspect(block);
                    self.blocks.spoil(Ppn::of(block, page, self.geometry.pages_per_block));
                }
                if let Some(image) = self.store.image_mut() {
                    if failed {
                        image.put_block(block, self.blocks.get(block));
                    }
                    image.program_ends(self.blocks.get(block), (block, page), &self.oob, failed);
                }
                failed
            }
            OpKind::Erase => {
                let erases = self.blocks.get(block).erases;
                let failed = self.faults.strikes(kind, block, erases);
                if let Some(image) = self.store.image_mut() {
                    image.erase_begins(block, self.blocks.get(block));
                }
                self.blocks.erase(block, asked);
                self.oob.erase(block);
                if let Some(image) = self.store.image_mut() {
                    image.erase_ends(block, self.blocks.get(block));
                }
                failed
            }
        }
    }

    /// What a copyback reads goes into its page: data that could not have been corrected is lost there. Unless the copyback is
    /// checked, only who reads it finds out.
    #[inline(never)]
    fn copy_page(&mut self, asked: Asked, source: Ppn, target: Ppn) {
        let pages = self.geometry.pages_per_block;
        let (from, to) = (source.block(pages), target.block(pages));
        let plane = |block: BlockId| block.plane(self.geometry.blocks_per_plane);
        assert_eq!(plane(from), plane(to), "a copyback from page {source} to {target} stays in its plane");
        self.blocks.read(from, source % pages, asked);
        if self.faults.strikes(OpKind::Read, from, 0) {
            self.uncorrectable_copybacks += u64::from(self.config.checks_copyback);
            let units = self.oob.units_per_page();
            let first = target.first_unit(units);
            for unit in UnitId::each(first..first + units) {
                self.lose(unit);
            }
        }
    }

    /// What a unit in flight was to hold is lost: reading it is an error from now on, until all of it is written again.
    pub fn lose(&mut self, unit: UnitId) {
        self.oob.poison(unit);
        if self.store.sector_data_bytes() > 0 {
            // Nothing is left of it either: a reader that takes it for data shows.
            self.store.write(unit, &vec![LOST; self.store.unit_data_bytes()]);
        }
    }

    /// Power goes at `now`: queued operations never happened, running ones leave torn pages and blocks.
    pub fn power_cut(&mut self, now: Nanos) {
        for die in 0..self.dies.len() {
            let state = self.dies[die];
            let begun = matches!(state.phase, Phase::Array | Phase::Suspending) && state.array_start < now;
            assert!(
                !begun || state.running != NONE,
                "the array of die {die} works for no operation in {:?}",
                state.phase
            );
            for (group, begun) in [(state.running, begun), (state.suspended, true)] {
                let mut op = group;
                while op != NONE && begun {
                    let Flight { submit, next, .. } = self.flights[op as usize];
                    match submit.kind {
                        // Its page is still being read.
                        OpKind::Copyback if state.copy_unchecked => {}
                        OpKind::Program | OpKind::Copyback => {
                            self.blocks.program(submit.block, submit.page, Asked { cause: submit.cause, now });
                            self.blocks.spoil(Ppn::of(submit.block, submit.page, self.geometry.pages_per_block));
                        }
                        OpKind::Erase => self.blocks.tear_erase(submit.block),
                        OpKind::Read => {}
                    }
                    op = next;
                }
            }
            let state = &mut self.dies[die];
            state.waiting = 0;
            state.queued = 0;
            state.phase = Phase::Idle;
            (state.running, state.staged, state.suspended) = (NONE, NONE, NONE);
            state.copy_unchecked = false;
            state.next_waiter = DieId::NONE;
            self.events.clear(die as u32);
        }
        for (index, channel) in self.channels.iter_mut().enumerate() {
            (channel.head, channel.tail, channel.last_command) = (DieId::NONE, DieId::NONE, DieId::NONE);
            channel.free_at = Nanos::ZERO;
            self.events.clear((self.dies.len() + index) as u32);
        }
        if self.has_single_queue() {
            self.empty_single_queue();
        }
        self.forget_issues();
        assert_eq!(self.events.next(), None, "nothing happens on chips without power");
        self.queues.fill(EMPTY);
        self.flights.clear();
        self.on_ready.clear();
        (self.free, self.ended) = (NONE, NONE);
        self.in_flight = 0;
        self.done.clear();
        self.waits = None;
        self.watch_if_needed();
        self.oob.forget_unwritten(&self.blocks);
    }
}

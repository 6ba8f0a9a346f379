//! The die: what its queues give it next, and its phases from command to data.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::{NONE, Submit};
use super::resources::{NOT_READY, Phase, Staged};
use crate::blocks::Asked;
use crate::schedule::{CLASSES, choose, is_collection};
use crate::{DieId, MultiPlane, OpKind, Resource};

impl Flash {
    pub(super) fn die_event(&mut self, die: DieId, now: Nanos) {
        match self.dies[die.index()].phase {
            Phase::Idle => self.go_idle(die, now),
            Phase::Array => {
                debug_assert_eq!(self.dies[die.index()].until, now, "the array of die {die} is done when it says");
                self.array_done(die, now);
            }
            Phase::DataOut if self.dies[die.index()].copy_unchecked => {
                self.dies[die.index()].copy_unchecked = false;
                self.begin_array(die, now, now);
            }
            Phase::DataOut => {
                debug_assert_eq!(self.dies[die.index()].until, now, "the data of die {die} is out when it says");
                self.complete_running(die, now);
                self.go_idle(die, now);
            }
            Phase::AwaitStaged => self.start_staged_array(die, now),
            Phase::Suspending => {
                let state = &mut self.dies[die.index()];
                assert_eq!(state.suspended, NONE, "die {die} suspends one group at a time");
                assert!(now >= state.array_start, "die {die} stops at {now} what begins at {}", state.array_start);
                state.suspended = state.running;
                state.running = NONE;
                state.busy += now - state.array_start;
                let (group, start) = (state.suspended, state.array_start);
                if let Some(waits) = &mut self.waits {
                    waits.occupied(die, now, None);
                }
                if self.observer.is_some() {
                    self.report(Resource::Die(die), group, start, now);
                    self.edge(die, now, false);
                }
                self.go_idle(die, now);
            }
            phase => unreachable!("die {die} had an event in phase {phase:?}"),
        }
    }

    pub(super) fn array_done(&mut self, die: DieId, now: Nanos) {
        let state = &mut self.dies[die.index()];
        debug_assert!(now >= state.array_start, "die {die} is done at {now} with what begins at {}", state.array_start);
        state.busy += now - state.array_start;
        let group = state.running;
        if self.observer.is_some() {
            let start = self.dies[die.index()].array_start;
            self.report(Resource::Die(die), group, start, now);
            self.edge(die, now, false);
        }
        if self.flights[group as usize].submit.kind == OpKind::Read || self.dies[die.index()].copy_unchecked {
            if self.waits.is_some() {
                self.note_waits(group, |waits, op| waits.sensed(op, now));
            }
            self.dies[die.index()].phase = Phase::AwaitDataOut;
            let to_ecc = self.dies[die.index()].copy_unchecked;
            let duration = if to_ecc { self.config.timing.transfer } else { self.data_time(group) };
            if !self.request_channel(die, duration, now) {
                self.events.clear(die.0);
            }
            return;
        }
        self.complete_running(die, now);
        let state = &mut self.dies[die.index()];
        if state.staged == NONE {
            self.go_idle(die, now);
            return;
        }
        state.running = state.staged;
        state.staged = NONE;
        if self.waits.is_some() {
            let what = self.what(self.dies[die.index()].running);
            self.waits.as_mut().into_iter().for_each(|waits| waits.occupied(die, now, Some(what)));
        }
        let state = &mut self.dies[die.index()];
        match state.staged_state {
            Staged::Waiting => {
                // Still in line for the channel: from here on an ordinary program.
                state.phase = Phase::AwaitChannel;
                self.events.clear(die.0);
            }
            Staged::Transferring { until } if until > now => {
                state.phase = Phase::AwaitStaged;
                state.until = until;
                self.events.set(die.0, until);
            }
            Staged::Transferring { .. } => self.start_staged_array(die, now),
        }
    }

    pub(super) fn start_staged_array(&mut self, die: DieId, now: Nanos) {
        debug_assert_ne!(self.dies[die.index()].running, NONE, "die {die} has the data of a program that runs next");
        self.begin_array(die, now, now);
    }

    pub(super) fn go_idle(&mut self, die: DieId, now: Nanos) {
        debug_assert_eq!(self.dies[die.index()].running, NONE, "die {die} goes idle when its group has ended");
        self.dies[die.index()].phase = Phase::Idle;
        if !self.start_next(die, now) {
            self.events.clear(die.0);
        }
    }

    /// Starts what the policy chooses; false if the die stays idle.
    pub(super) fn start_next(&mut self, die: DieId, now: Nanos) -> bool {
        let state = &self.dies[die.index()];
        if state.suspended != NONE {
            debug_assert_eq!(state.staged, NONE, "nothing is staged behind what die {die} has suspended");
            let reads = state.waiting & ((1 << self.geometry.planes_per_die) - 1);
            let waits_in_line = self.has_single_queue() && !self.may_send_read(die, now);
            let waits = reads == 0 || state.reads_let_pass >= self.config.suspend_limit || waits_in_line;
            // A host read waits for nothing but its issue.
            match self.oldest_ready(die, reads).filter(|_| !waits) {
                None => self.resume(die, now),
                Some(read) => {
                    self.dies[die.index()].reads_let_pass += 1;
                    self.start_queue(die, read, now);
                }
            }
            return true;
        }
        debug_assert_eq!(state.queued == 0, state.waiting == 0, "die {die} has {} queued", state.queued);
        if state.queued == 0 {
            return false;
        }
        match self.choose_queue(die, now) {
            Some(queue) => {
                self.start_queue(die, queue, now);
                true
            }
            None => false,
        }
    }

    #[inline]
    pub(super) fn queue_index(&self, die: DieId, class: usize, plane: u32) -> usize {
        let planes = self.geometry.planes_per_die as usize;
        (die.index() * CLASSES + class) * planes + plane as usize
    }

    /// The queue (bit `class * planes + plane`) whose head goes next.
    #[inline]
    pub(super) fn choose_queue(&self, die: DieId, now: Nanos) -> Option<u32> {
        let waiting = self.dies[die.index()].waiting;
        let planes = self.geometry.planes_per_die;
        choose(
            self.config.scheduler,
            is_collection(self.dies[die.index()].last_queue, planes),
            |classes| {
                let (first, end) = (classes.start as u32 * planes, classes.end as u32 * planes);
                self.oldest_ready(die, waiting & ((1 << end) - (1 << first)))
            },
            |queue| now.since(self.flights[self.head(die, queue) as usize].queued),
            || self.may_send(die, now).is_some(),
        )
    }

    #[inline]
    pub(super) fn head(&self, die: DieId, queue: u32) -> u32 {
        self.queues[self.queue_index(die, 0, queue)].head
    }

    /// Of the queues in `bits`, the one whose head is ready and came first.
    #[inline]
    pub(super) fn oldest_ready(&self, die: DieId, mut bits: u64) -> Option<u32> {
        let (mut oldest, mut found) = (NOT_READY, None);
        let first = self.queue_index(die, 0, 0);
        while bits != 0 {
            let queue = bits.trailing_zeros();
            bits &= bits - 1;
            let order = self.queues[first + queue as usize].order;
            if order < oldest {
                oldest = order;
                found = Some(queue);
            }
        }
        found
    }

    pub(super) fn start_queue(&mut self, die: DieId, queue: u32, now: Nanos) {
        let group = self.take_group(die, queue);
        if self.is_watched {
            self.tell_started(die, group, now);
        }
        let state = &mut self.dies[die.index()];
        debug_assert_eq!(state.running, NONE, "die {die} takes up {group} when it has ended what ran");
        state.running = group;
        state.phase = Phase::AwaitChannel;
        let duration = self.command_and_data_in_time(group);
        if duration == Nanos::ZERO {
            if self.sends_one_at_a_time() {
                self.look_at_head(now);
            }
            self.begin_array(die, now, now);
            return;
        }
        // While it waits for the channel the die has no event of its own.
        if !self.request_channel(die, duration, now) {
            self.events.clear(die.0);
        }
    }

    /// The waits and the drive's one queue of the group that the die takes up.
    #[cold]
    #[inline(never)]
    fn tell_started(&mut self, die: DieId, group: u32, now: Nanos) {
        let what = self.what(group);
        if let Some(waits) = &mut self.waits {
            waits.occupied(die, now, Some(what));
        }
        self.note_waits(group, |waits, op| waits.started(op, now));
        if self.has_single_queue() {
            self.head_is_taken(die, now);
        }
    }

    #[inline]
    pub(super) fn joins_planes(&self) -> bool {
        self.config.multi_plane != MultiPlane::Off && self.geometry.planes_per_die > 1
    }

    /// Takes the head of a queue, and those of the same class on other planes that may join it, as a linked group.
    #[inline]
    pub(super) fn take_group(&mut self, die: DieId, queue: u32) -> u32 {
        let group = self.pop(die, queue);
        let planes = self.geometry.planes_per_die;
        if !self.joins_planes() {
            return group;
        }
        let first = self.flights[group as usize].submit;
        let class = self.by_planes_per_die.div(queue);
        let others =
            self.dies[die.index()].waiting >> (class * planes) & ((1 << planes) - 1) & !(1 << (queue % planes));
        if others != 0 && first.kind != OpKind::Copyback {
            if self.has_single_queue() {
                self.join_next_in_queue(die, queue, group);
            } else {
                self.join_planes(die, class * planes, others, group);
            }
        }
        group
    }

    pub(super) fn join_planes(&mut self, die: DieId, base: u32, mut others: u64, group: u32) {
        let first = self.flights[group as usize].submit;
        let mut last = group;
        while others != 0 {
            let other = base + others.trailing_zeros();
            others &= others - 1;
            let candidate = self.head(die, other);
            debug_assert_ne!(candidate, NONE, "queue {other} of die {die} is marked and empty");
            let flight = &self.flights[candidate as usize];
            if flight.waits_for == 0 && self.runs_with(&first, &flight.submit) {
                self.pop(die, other);
                self.flights[last as usize].next = candidate;
                last = candidate;
            }
        }
    }

    /// Whether an operation may run on its plane together with `first`, of the same class, on another.
    #[inline(always)]
    pub(super) fn runs_with(&self, first: &Submit, other: &Submit) -> bool {
        let offset_fits =
            first.kind == OpKind::Erase || other.page == first.page || self.config.multi_plane == MultiPlane::Relaxed;
        other.kind == first.kind && offset_fits
    }

    /// Takes the head out of a queue; it stands alone then.
    #[inline]
    pub(super) fn pop(&mut self, die: DieId, queue: u32) -> u32 {
        let index = self.queue_index(die, 0, queue);
        let op = self.queues[index].head;
        debug_assert_eq!(self.flights[op as usize].waits_for, 0, "operation {op} is started while it waits");
        let next = std::mem::replace(&mut self.flights[op as usize].next, NONE);
        let order = if next == NONE || self.flights[next as usize].waits_for > 0 {
            NOT_READY
        } else {
            self.flights[next as usize].order
        };
        self.queues[index].head = next;
        self.queues[index].order = order;
        let state = &mut self.dies[die.index()];
        if next == NONE {
            self.queues[index].tail = NONE;
            state.waiting &= !(1 << queue);
        }
        debug_assert!(state.queued > 0, "die {die} has an operation in queue {queue} and none queued");
        state.queued -= 1;
        state.last_queue = queue;
        op
    }

    /// At `now` it is settled that the running group's commands and data are in at `start`: the array works from then on.
    pub(super) fn begin_array(&mut self, die: DieId, now: Nanos, start: Nanos) {
        debug_assert!(start >= now, "die {die} begins at {start}, in the past of {now}");
        let mut duration = Nanos::ZERO;
        let mut op = self.dies[die.index()].running;
        let kind = self.flights[op as usize].submit.kind;
        if kind == OpKind::Copyback && self.config.checks_copyback {
            // A copyback runs alone.
            duration = self.begin_checked_copy(die, op);
            op = NONE;
        }
        while op != NONE {
            let flight = &self.flights[op as usize];
            let (submit, next) = (flight.submit, flight.next);
            if kind == OpKind::Read && submit.page >= self.blocks.get(submit.block).programmed {
                let asked = Asked { cause: submit.cause, now: start };
                self.blocks.read(submit.block, submit.page, asked);
            }
            if let Some(image) = self.store.image_mut() {
                let block = self.blocks.get(submit.block);
                match submit.kind {
                    OpKind::Read => {}
                    OpKind::Program | OpKind::Copyback => {
                        image.program_begins(block, (submit.block, submit.page), &self.oob);
                    }
                    OpKind::Erase => image.erase_begins(submit.block, block),
                }
            }
            duration = duration.max(self.array_time(submit.kind, submit.page, submit.source));
            op = next;
        }
        let state = &mut self.dies[die.index()];
        state.phase = Phase::Array;
        state.array_start = start;
        state.until = start + duration;
        self.events.set(die.0, start + duration);
        if kind != OpKind::Read {
            state.remaining = duration;
            state.reads_let_pass = 0;
        }
        let read_waits = state.waiting & ((1 << self.geometry.planes_per_die) - 1) != 0;
        if self.is_watched {
            self.tell_array_begins(die, start);
        }
        if kind != OpKind::Read && read_waits {
            self.consider_suspend(die, now);
        }
        self.stage(die, now);
    }

    /// The page of a checked copyback is read, or it has gone through the ECC and is programmed: how long that takes.
    #[cold]
    fn begin_checked_copy(&mut self, die: DieId, op: u32) -> Nanos {
        let Submit { block, page, source, .. } = self.flights[op as usize].submit;
        let is_checked = self.dies[die.index()].phase == Phase::DataOut;
        self.dies[die.index()].copy_unchecked = !is_checked;
        if !is_checked {
            return self.array_time(OpKind::Read, source % self.geometry.pages_per_block, source);
        }
        if let Some(image) = self.store.image_mut() {
            image.program_begins(self.blocks.get(block), (block, page), &self.oob);
        }
        self.array_time(OpKind::Program, page, source)
    }

    /// The observer and the waits of the group whose array work is from `start` on.
    #[cold]
    #[inline(never)]
    fn tell_array_begins(&mut self, die: DieId, start: Nanos) {
        self.note_waits(self.dies[die.index()].running, |waits, op| waits.array_from(op, start));
        self.edge(die, start, true);
    }

    /// Cache program: the next program's data may come in while this one runs.
    pub(super) fn stage(&mut self, die: DieId, now: Nanos) {
        let state = &self.dies[die.index()];
        if !self.config.cache_program || state.queued == 0 || state.phase != Phase::Array || state.staged != NONE {
            return;
        }
        // A die that is completing its group right now has nothing running, and goes on by itself.
        if state.running == NONE || self.flights[state.running as usize].submit.kind != OpKind::Program {
            return;
        }
        let Some(queue) = self.choose_queue(die, now) else { return };
        if self.flights[self.head(die, queue) as usize].submit.kind != OpKind::Program {
            return;
        }
        let group = self.take_group(die, queue);
        self.note_waits(group, |waits, op| waits.started(op, now));
        if self.has_single_queue() {
            self.head_is_taken(die, now);
        }
        let state = &mut self.dies[die.index()];
        state.staged = group;
        state.staged_state = Staged::Waiting;
        let duration = self.command_and_data_in_time(group);
        self.request_channel(die, duration, now);
    }
}

//! The engine: operations wait in their die's queue, take the channel, keep the array busy, and are done.
//!
//! A die executes one array operation at a time, on one plane or on several at once; a channel carries one transfer at
//! a time. The order of a die's queue is a policy ([`crate::SchedulerKind`]); joining planes, staging the next page's
//! data, copyback and suspending are decided here and nowhere above.
//!
//! Data is bound to a page when its program is submitted, but the page counts as written only when the program is done:
//! a power cut in between leaves it erased or torn.

use rand::RngExt;
use ssdlab_base::{Nanos, Rng, rng};

use crate::blocks::{Asked, Blocks};
use crate::contents::{Oob, Store};
use crate::events::EventTree;
use crate::faults::FaultPlan;
use crate::schedule::{CLASSES, Class, Head, choose};
use crate::{
    Block, Cause, Contents, FlashConfig, Geometry, Latency, MultiPlane, Observer, OpCounts, OpKind, Resource, Span,
};

/// An operation in flight. Numbers are used again once the operation is done.
pub type OpId = u32;

/// No operation, no block.
pub const NONE: u32 = u32::MAX;

/// How many queued operations are looked at for one that can join a multi-plane operation.
const JOIN_WINDOW: usize = 8;

/// Host reads served while an operation is suspended before it must go on, so that reads cannot starve a program.
const READS_PER_SUSPEND: u32 = 16;

/// What the controller asks of the chips.
#[derive(Clone, Copy, Debug)]
pub struct Submit {
    /// What to do.
    pub kind: OpKind,
    /// Why.
    pub cause: Cause,
    /// Which class of the die's queue.
    pub class: Class,
    /// The block; for a copyback the destination's.
    pub block: u32,
    /// The page in the block; 0 for an erase.
    pub page: u32,
    /// A copyback's source PPN; else unused.
    pub source: u32,
    /// Data bytes on the channel; 0 for an erase or a copyback.
    pub bytes: u32,
    /// The controller's own, given back when done.
    pub token: u32,
    /// A block that must not be erased before this is done, or `NONE`; given back when done.
    pub pin: u32,
    /// Operations to be linked that this one waits for.
    pub waits_for: u16,
}

/// An operation that is done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The operation, no longer in flight.
    pub op: OpId,
    /// What it was.
    pub kind: OpKind,
    /// Why it was.
    pub cause: Cause,
    /// Its block.
    pub block: u32,
    /// Its page.
    pub page: u32,
    /// The token it was submitted with.
    pub token: u32,
    /// The pinned block it was submitted with.
    pub pin: u32,
    /// It failed: an uncorrectable read, or a program or erase failure.
    pub failed: bool,
    /// The operation that waited for it and is still in flight, or `NONE`.
    pub then: OpId,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    submit: Submit,
    order: u64,
    queued: Nanos,
    /// The next in the die's queue, in the running group, or in the free list.
    next: u32,
    /// The operation that waits for this one.
    then: u32,
    waits_for: u16,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The running group waits for the channel, for its commands and data.
    AwaitChannel,
    /// The array is (or, from `array_start` on, will be) busy until `until`.
    Array,
    /// Read data waits for the channel.
    AwaitDataOut,
    /// Read data is on the channel until `until`.
    DataOut,
    /// The running program is done; the staged one's data is not in yet.
    AwaitStaged,
    /// The array stops for a read at `until`.
    Suspending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Staged {
    Waiting,
    Transferring { until: Nanos },
}

#[derive(Clone, Copy, Debug)]
struct Die {
    channel: u32,
    queues: [Queue; CLASSES],
    /// Operations queued, not counting the running group.
    queued: u32,
    phase: Phase,
    running: u32,
    array_start: Nanos,
    until: Nanos,
    /// Channel time the die is waiting for, and the next die waiting for the same channel.
    wants: Nanos,
    next_waiter: u32,
    staged: u32,
    staged_state: Staged,
    suspended: u32,
    remaining: Nanos,
    reads_while_suspended: u32,
    busy: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    free_at: Nanos,
    head: u32,
    tail: u32,
    busy: Nanos,
}

/// The chips of a drive.
pub struct Flash {
    config: FlashConfig,
    geometry: Geometry,
    timed: bool,
    /// Block states and rules.
    pub blocks: Blocks,
    /// Out-of-band areas.
    pub oob: Oob,
    /// Stored sectors.
    pub store: Store,
    faults: FaultPlan,
    rng: Rng,
    counts: OpCounts,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    events: EventTree,
    flights: Vec<Flight>,
    free: u32,
    in_flight: u32,
    order: u64,
    done: Vec<Done>,
    observer: Option<Box<dyn Observer>>,
}

impl Flash {
    /// Fresh chips: everything erased, factory bad blocks marked.
    pub fn new(config: &FlashConfig, units_per_page: u32, contents: Contents, seed: u64, timed: bool) -> Flash {
        let geometry = config.geometry;
        let mut blocks = Blocks::new(&geometry);
        let mut faults = FaultPlan::new(&config.faults, rng(seed, "flash faults"));
        for block in faults.factory_bad(geometry.blocks()) {
            blocks.retire(block);
        }
        let dies_per_channel = geometry.chips_per_channel * geometry.dies_per_chip;
        let die = |index: u32| Die {
            channel: index / dies_per_channel,
            queues: [Queue { head: NONE, tail: NONE }; CLASSES],
            queued: 0,
            phase: Phase::Idle,
            running: NONE,
            array_start: Nanos::ZERO,
            until: Nanos::ZERO,
            wants: Nanos::ZERO,
            next_waiter: NONE,
            staged: NONE,
            staged_state: Staged::Waiting,
            suspended: NONE,
            remaining: Nanos::ZERO,
            reads_while_suspended: 0,
            busy: Nanos::ZERO,
        };
        let channel = Channel { free_at: Nanos::ZERO, head: NONE, tail: NONE, busy: Nanos::ZERO };
        Flash {
            config: config.clone(),
            geometry,
            timed,
            blocks,
            oob: Oob::new(&geometry, units_per_page),
            store: Store::new(&geometry, contents),
            faults,
            rng: rng(seed, "flash latencies"),
            counts: OpCounts::default(),
            dies: (0..geometry.dies()).map(die).collect(),
            channels: vec![channel; geometry.channels as usize],
            events: EventTree::new((geometry.dies() + geometry.channels) as usize),
            flights: Vec::new(),
            free: NONE,
            in_flight: 0,
            order: 0,
            done: Vec::new(),
            observer: None,
        }
    }

    /// The hierarchy.
    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The configuration the chips were made from.
    pub const fn config(&self) -> &FlashConfig {
        &self.config
    }

    /// Operations counted so far, by kind and cause.
    pub const fn counts(&self) -> &OpCounts {
        &self.counts
    }

    /// Whether operations take time.
    pub const fn timed(&self) -> bool {
        self.timed
    }

    /// Switches timing; nothing may be in flight.
    pub fn set_timed(&mut self, timed: bool) {
        assert_eq!(self.in_flight, 0, "timing is switched only while the chips are idle");
        self.timed = timed;
    }

    /// Forgets counters and busy times, and starts virtual time again; nothing may be in flight.
    pub fn reset_statistics(&mut self) {
        assert_eq!(self.in_flight, 0, "statistics are reset only while the chips are idle");
        self.counts = OpCounts::default();
        for die in &mut self.dies {
            die.busy = Nanos::ZERO;
        }
        for channel in &mut self.channels {
            channel.busy = Nanos::ZERO;
            channel.free_at = Nanos::ZERO;
        }
    }

    /// Attaches or detaches an observer.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) {
        self.observer = observer;
    }

    /// Busy time of the channels and the arrays of the dies so far.
    pub fn busy(&self) -> (Vec<Nanos>, Vec<Nanos>) {
        let channels = self.channels.iter().map(|channel| channel.busy).collect();
        (channels, self.dies.iter().map(|die| die.busy).collect())
    }

    /// Draws latencies and faults from the beginning of a seed's streams.
    pub fn reseed(&mut self, seed: u64) {
        self.rng = rng(seed, "flash latencies");
        self.faults = FaultPlan::new(&self.config.faults, rng(seed, "flash faults"));
    }

    /// Counts operations that were modelled as a whole.
    pub const fn count(&mut self, kind: OpKind, cause: Cause, operations: u64) {
        self.counts.0[kind as usize][cause as usize] += operations;
    }

    /// Operations that wait or run on a die.
    #[inline]
    pub fn load(&self, die: u32) -> u32 {
        let die = &self.dies[die as usize];
        die.queued + u32::from(die.phase != Phase::Idle)
    }

    /// Operations submitted and not done.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The die of a block.
    #[inline]
    pub const fn die_of(&self, block: u32) -> u32 {
        block / self.geometry.blocks_per_plane / self.geometry.planes_per_die
    }

    /// Whether a page that has been given data is on flash already, or its program is still to end.
    #[inline]
    pub fn is_written(&self, block: u32, page: u32) -> bool {
        page < self.blocks.get(block).programmed
    }

    /// Marks a block bad for good.
    pub fn retire(&mut self, block: u32) {
        self.blocks.retire(block);
    }

    /// The program in flight of a page, if there is one. A walk over a die's operations: for rare cases.
    pub fn find_program(&self, block: u32, page: u32) -> Option<OpId> {
        let die = &self.dies[self.die_of(block) as usize];
        let queues = die.queues.iter().map(|queue| queue.head);
        let heads = queues.chain([die.running, die.staged, die.suspended]);
        heads.into_iter().find_map(|head| {
            let mut op = head;
            while op != NONE {
                let flight = &self.flights[op as usize];
                let programs = matches!(flight.submit.kind, OpKind::Program | OpKind::Copyback);
                if programs && flight.submit.block == block && flight.submit.page == page {
                    return Some(op);
                }
                op = flight.next;
            }
            None
        })
    }

    /// The last operation of the chain that waits for `op`, or `op` itself.
    pub fn last_waiter(&self, op: OpId) -> OpId {
        let mut last = op;
        while self.flights[last as usize].then != NONE {
            last = self.flights[last as usize].then;
        }
        last
    }

    /// The block and page of an operation in flight.
    pub fn target(&self, op: OpId) -> (u32, u32) {
        let submit = &self.flights[op as usize].submit;
        (submit.block, submit.page)
    }

    /// Whether a program in flight still waits for reads.
    pub fn waits(&self, op: OpId) -> bool {
        self.flights[op as usize].waits_for > 0
    }

    /// Does an operation at once, without time: its effect, its count, its fault. Returns whether it failed.
    #[inline]
    pub fn execute(&mut self, kind: OpKind, cause: Cause, block: u32, page: u32) -> bool {
        let asked = Asked { cause, now: Nanos::ZERO };
        self.apply(kind, asked, block, page, NONE)
    }

    /// Whether pages hold nothing but their OOB and no operation can fail, so that runs of pages may be dealt with as one.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.store.cell_bytes() == 0 && self.oob.is_plain() && !self.faults.is_active()
    }

    /// Does `count` operations on pages of one block at once, without time; only where [`Flash::is_plain`]. Programs go
    /// to the next pages in order; reads to pages that are written.
    #[inline]
    pub fn execute_run(&mut self, kind: OpKind, cause: Cause, block: u32, count: u32) {
        self.counts.0[kind as usize][cause as usize] += u64::from(count);
        let asked = Asked { cause, now: Nanos::ZERO };
        match kind {
            OpKind::Read => self.blocks.read_run(block, count),
            OpKind::Program | OpKind::Copyback => self.blocks.program_run(block, count, asked),
            OpKind::Erase => unreachable!("erases come one at a time"),
        }
    }

    /// Takes an operation into its die's queue, and starts it if the die is idle.
    #[inline]
    pub fn submit(&mut self, now: Nanos, submit: Submit) -> OpId {
        debug_assert!(self.timed, "untimed operations are executed, not submitted");
        let die = self.die_of(submit.block);
        let flight =
            Flight { submit, order: self.order, queued: now, next: NONE, then: NONE, waits_for: submit.waits_for };
        self.order += 1;
        self.in_flight += 1;
        let op = self.free;
        let op = if op == NONE {
            self.flights.push(flight);
            self.flights.len() as u32 - 1
        } else {
            self.free = self.flights[op as usize].next;
            self.flights[op as usize] = flight;
            op
        };
        let state = &mut self.dies[die as usize];
        let queue = &mut state.queues[submit.class as usize];
        if queue.head == NONE {
            queue.head = op;
        } else {
            self.flights[queue.tail as usize].next = op;
        }
        queue.tail = op;
        state.queued += 1;
        if state.phase == Phase::Idle {
            self.start_next(die, now);
        } else if submit.class == Class::HostRead {
            self.consider_suspend(die, now);
        }
        op
    }

    /// Makes `later` wait for `earlier` too; it was submitted with `waits_for` counting this link.
    pub fn link(&mut self, earlier: OpId, later: OpId) {
        let flight = &mut self.flights[earlier as usize];
        assert_eq!(flight.then, NONE, "an operation releases one other");
        flight.then = later;
    }

    /// When something happens next on the chips.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        self.events.next()
    }

    /// Runs the earliest event, which is at `now`; what is done by it is appended to `done`.
    #[inline]
    pub fn step(&mut self, done: &mut Vec<Done>) {
        let Some((resource, now)) = self.events.peek() else {
            return;
        };
        std::mem::swap(&mut self.done, done);
        let dies = self.dies.len() as u32;
        if resource < dies {
            self.die_event(resource, now);
        } else {
            self.channel_event(resource - dies, now);
        }
        std::mem::swap(&mut self.done, done);
    }

    // ---- the channel ----

    fn request_channel(&mut self, die: u32, duration: Nanos, now: Nanos) {
        let index = self.dies[die as usize].channel;
        let channel = &mut self.channels[index as usize];
        if channel.head == NONE && channel.free_at <= now {
            self.occupy(index, die, duration, now);
            return;
        }
        if channel.head == NONE {
            channel.head = die;
            self.events.set(self.dies.len() as u32 + index, channel.free_at);
        } else {
            self.dies[channel.tail as usize].next_waiter = die;
        }
        channel.tail = die;
        let state = &mut self.dies[die as usize];
        state.wants = duration;
        state.next_waiter = NONE;
    }

    fn channel_event(&mut self, index: u32, now: Nanos) {
        let channel = &mut self.channels[index as usize];
        let die = channel.head;
        let (next, duration) = (self.dies[die as usize].next_waiter, self.dies[die as usize].wants);
        channel.head = next;
        let resource = self.dies.len() as u32 + index;
        if next == NONE {
            self.events.clear(resource);
        } else {
            self.events.set(resource, now + duration);
        }
        self.occupy(index, die, duration, now);
    }

    fn occupy(&mut self, index: u32, die: u32, duration: Nanos, now: Nanos) {
        let end = now + duration;
        let channel = &mut self.channels[index as usize];
        channel.free_at = end;
        channel.busy += duration;
        if self.observer.is_some() {
            let state = &self.dies[die as usize];
            let group = if state.phase == Phase::Array { state.staged } else { state.running };
            self.report(Resource::Channel(index), group, now, end);
        }
        match self.dies[die as usize].phase {
            Phase::AwaitChannel => self.begin_array(die, end),
            Phase::AwaitDataOut => {
                let state = &mut self.dies[die as usize];
                state.phase = Phase::DataOut;
                state.until = end;
                self.events.set(die, end);
            }
            Phase::Array | Phase::Suspending => {
                self.dies[die as usize].staged_state = Staged::Transferring { until: end };
            }
            phase => unreachable!("die {die} got the channel in phase {phase:?}"),
        }
    }

    // ---- the die ----

    fn die_event(&mut self, die: u32, now: Nanos) {
        match self.dies[die as usize].phase {
            Phase::Array => self.array_done(die, now),
            Phase::DataOut => {
                self.complete_running(die, now);
                self.go_idle(die, now);
            }
            Phase::AwaitStaged => self.start_staged_array(die, now),
            Phase::Suspending => {
                let state = &mut self.dies[die as usize];
                state.suspended = state.running;
                state.running = NONE;
                state.reads_while_suspended = 0;
                self.edge(die, now, false);
                self.go_idle(die, now);
            }
            phase => unreachable!("die {die} had an event in phase {phase:?}"),
        }
    }

    fn array_done(&mut self, die: u32, now: Nanos) {
        let state = &mut self.dies[die as usize];
        state.busy += now - state.array_start;
        let group = state.running;
        if self.observer.is_some() {
            let start = self.dies[die as usize].array_start;
            self.report(Resource::Die(die), group, start, now);
            self.edge(die, now, false);
        }
        if self.flights[group as usize].submit.kind == OpKind::Read {
            self.dies[die as usize].phase = Phase::AwaitDataOut;
            self.events.clear(die);
            let duration = self.data_time(group);
            self.request_channel(die, duration, now);
            return;
        }
        self.complete_running(die, now);
        let state = &mut self.dies[die as usize];
        if state.staged == NONE {
            self.go_idle(die, now);
            return;
        }
        state.running = state.staged;
        state.staged = NONE;
        match state.staged_state {
            Staged::Waiting => {
                // Still in line for the channel: from here on an ordinary program.
                state.phase = Phase::AwaitChannel;
                self.events.clear(die);
            }
            Staged::Transferring { until } if until > now => {
                state.phase = Phase::AwaitStaged;
                self.events.set(die, until);
            }
            Staged::Transferring { .. } => self.start_staged_array(die, now),
        }
    }

    fn start_staged_array(&mut self, die: u32, now: Nanos) {
        self.begin_array(die, now);
    }

    fn go_idle(&mut self, die: u32, now: Nanos) {
        self.dies[die as usize].phase = Phase::Idle;
        if !self.start_next(die, now) {
            self.events.clear(die);
        }
    }

    /// Starts what the policy chooses; false if the die stays idle.
    fn start_next(&mut self, die: u32, now: Nanos) -> bool {
        let state = &self.dies[die as usize];
        if state.suspended != NONE {
            let read = state.queues[Class::HostRead as usize].head;
            if read == NONE || state.reads_while_suspended >= READS_PER_SUSPEND {
                self.resume(die, now);
            } else {
                self.dies[die as usize].reads_while_suspended += 1;
                self.start_class(die, Class::HostRead as usize, now);
            }
            return true;
        }
        if state.queued == 0 {
            return false;
        }
        match self.choose_class(die, now) {
            Some(class) => {
                self.start_class(die, class, now);
                true
            }
            None => false,
        }
    }

    #[inline]
    fn choose_class(&self, die: u32, now: Nanos) -> Option<usize> {
        let state = &self.dies[die as usize];
        let mut heads = [None; CLASSES];
        let (mut ready, mut only) = (0, 0);
        for (class, queue) in state.queues.iter().enumerate() {
            if queue.head != NONE {
                let flight = &self.flights[queue.head as usize];
                if flight.waits_for == 0 {
                    heads[class] = Some(Head { order: flight.order, queued: flight.queued });
                    ready += 1;
                    only = class;
                }
            }
        }
        match ready {
            0 => None,
            1 => Some(only),
            _ => choose(self.config.scheduler, &heads, now),
        }
    }

    fn start_class(&mut self, die: u32, class: usize, now: Nanos) {
        let group = self.take_group(die, class);
        let state = &mut self.dies[die as usize];
        state.running = group;
        state.phase = Phase::AwaitChannel;
        let duration = self.command_and_data_in_time(group);
        if duration == Nanos::ZERO {
            self.begin_array(die, now);
            return;
        }
        // The next event of this die is set when the channel is granted.
        self.events.clear(die);
        self.request_channel(die, duration, now);
    }

    /// Takes the head of a class, and whatever may join it on other planes, out of the queue as a linked group.
    fn take_group(&mut self, die: u32, class: usize) -> u32 {
        let group = self.dies[die as usize].queues[class].head;
        let planes = self.geometry.planes_per_die;
        self.unlink(die, class, NONE, group);
        if self.config.multi_plane == MultiPlane::Off || planes == 1 {
            return group;
        }
        let first = self.flights[group as usize].submit;
        if first.kind == OpKind::Copyback {
            return group;
        }
        let blocks_per_plane = self.geometry.blocks_per_plane;
        let plane_of = |block: u32| block / blocks_per_plane % planes;
        let mut taken = 1_u64 << plane_of(first.block);
        let (mut last, mut members) = (group, 1);
        let (mut previous, mut candidate) = (NONE, self.dies[die as usize].queues[class].head);
        for _ in 0..JOIN_WINDOW {
            if candidate == NONE || members == planes {
                break;
            }
            let flight = &self.flights[candidate as usize];
            let (submit, next) = (flight.submit, flight.next);
            let plane = 1_u64 << plane_of(submit.block);
            let offset_fits = submit.kind == OpKind::Erase
                || submit.page == first.page
                || self.config.multi_plane == MultiPlane::Relaxed;
            if submit.kind == first.kind && flight.waits_for == 0 && taken & plane == 0 && offset_fits {
                self.unlink(die, class, previous, candidate);
                self.flights[last as usize].next = candidate;
                last = candidate;
                members += 1;
            } else {
                previous = candidate;
            }
            // A plane whose operation was passed over keeps its order: nothing behind it may go first.
            taken |= plane;
            candidate = next;
        }
        group
    }

    /// Takes `op`, which follows `previous`, out of a queue; it stands alone then.
    #[inline]
    fn unlink(&mut self, die: u32, class: usize, previous: u32, op: u32) {
        let next = self.flights[op as usize].next;
        self.flights[op as usize].next = NONE;
        if previous != NONE {
            self.flights[previous as usize].next = next;
        }
        let state = &mut self.dies[die as usize];
        let queue = &mut state.queues[class];
        if previous == NONE {
            queue.head = next;
        }
        if next == NONE {
            queue.tail = previous;
        }
        state.queued -= 1;
    }

    /// The running group's commands and data are in at `start`: the array works from then on.
    fn begin_array(&mut self, die: u32, start: Nanos) {
        let mut duration = Nanos::ZERO;
        let mut op = self.dies[die as usize].running;
        let kind = self.flights[op as usize].submit.kind;
        while op != NONE {
            let flight = &self.flights[op as usize];
            let (submit, next) = (flight.submit, flight.next);
            if kind == OpKind::Read && submit.page >= self.blocks.get(submit.block).programmed {
                let asked = Asked { cause: submit.cause, now: start };
                self.blocks.read(submit.block, submit.page, asked);
            }
            duration = duration.max(self.array_time(submit.kind, submit.page, submit.source));
            op = next;
        }
        let state = &mut self.dies[die as usize];
        state.phase = Phase::Array;
        state.array_start = start;
        state.until = start + duration;
        self.events.set(die, start + duration);
        self.edge(die, start, true);
        if kind == OpKind::Program && self.config.cache_program {
            self.stage(die, start);
        }
    }

    /// Cache program: the next program's data may come in while this one runs.
    fn stage(&mut self, die: u32, now: Nanos) {
        if self.dies[die as usize].queued == 0 {
            return;
        }
        let Some(class) = self.choose_class(die, now) else {
            return;
        };
        let head = self.dies[die as usize].queues[class].head;
        if self.flights[head as usize].submit.kind != OpKind::Program {
            return;
        }
        let group = self.take_group(die, class);
        let state = &mut self.dies[die as usize];
        state.staged = group;
        state.staged_state = Staged::Waiting;
        let duration = self.command_and_data_in_time(group);
        self.request_channel(die, duration, now);
    }

    // ---- suspending ----

    #[inline]
    fn consider_suspend(&mut self, die: u32, now: Nanos) {
        if !(self.config.program_suspend || self.config.erase_suspend) {
            return;
        }
        let state = &self.dies[die as usize];
        if state.phase != Phase::Array || state.suspended != NONE || state.staged != NONE {
            return;
        }
        let allowed = match self.flights[state.running as usize].submit.kind {
            OpKind::Program => self.config.program_suspend,
            OpKind::Erase => self.config.erase_suspend,
            OpKind::Read | OpKind::Copyback => false,
        };
        let from = now.max(state.array_start);
        let stop = from + self.config.timing.suspend;
        if !allowed || stop >= state.until {
            return;
        }
        let state = &mut self.dies[die as usize];
        state.remaining = state.until - from;
        state.busy += from - state.array_start;
        state.phase = Phase::Suspending;
        state.until = stop;
        let (group, start) = (state.running, state.array_start);
        self.events.set(die, stop);
        if self.observer.is_some() {
            self.report(Resource::Die(die), group, start, stop);
        }
    }

    fn resume(&mut self, die: u32, now: Nanos) {
        let resume = self.config.timing.resume;
        let state = &mut self.dies[die as usize];
        state.running = state.suspended;
        state.suspended = NONE;
        state.phase = Phase::Array;
        state.array_start = now;
        state.until = now + resume + state.remaining;
        let until = state.until;
        self.events.set(die, until);
        self.edge(die, now, true);
    }

    // ---- time ----

    fn array_time(&mut self, kind: OpKind, page: u32, source: u32) -> Nanos {
        let timing = &self.config.timing;
        let at = |list: &[Latency], page: u32| {
            if list.len() == 1 { list[0] } else { list[page as usize % list.len()] }
        };
        match kind {
            OpKind::Read => draw(&mut self.rng, at(&timing.read, page)),
            OpKind::Program => draw(&mut self.rng, at(&timing.program, page)),
            OpKind::Erase => draw(&mut self.rng, timing.erase),
            OpKind::Copyback => {
                let read = at(&timing.read, source % self.geometry.pages_per_block);
                draw(&mut self.rng, read) + draw(&mut self.rng, at(&timing.program, page))
            }
        }
    }

    fn command_and_data_in_time(&self, group: u32) -> Nanos {
        let mut time = Nanos::ZERO;
        let mut op = group;
        while op != NONE {
            let flight = &self.flights[op as usize];
            time += match flight.submit.kind {
                OpKind::Program => self.config.timing.command + self.transfer_time(flight.submit.bytes),
                // A read's command and a program's command.
                OpKind::Copyback => self.config.timing.command * 2,
                OpKind::Read | OpKind::Erase => self.config.timing.command,
            };
            op = flight.next;
        }
        time
    }

    fn data_time(&self, group: u32) -> Nanos {
        let mut time = Nanos::ZERO;
        let mut op = group;
        while op != NONE {
            let flight = &self.flights[op as usize];
            time += self.transfer_time(flight.submit.bytes);
            op = flight.next;
        }
        time
    }

    /// Channel time of `bytes` bytes of a page, rounded up to the nanosecond.
    #[inline]
    pub fn transfer_time(&self, bytes: u32) -> Nanos {
        if bytes == self.geometry.page_bytes {
            return self.config.timing.transfer;
        }
        Nanos((self.config.timing.transfer.0 * u64::from(bytes)).div_ceil(u64::from(self.geometry.page_bytes)))
    }

    // ---- the end of an operation ----

    fn complete_running(&mut self, die: u32, now: Nanos) {
        let mut op = self.dies[die as usize].running;
        self.dies[die as usize].running = NONE;
        while op != NONE {
            let Flight { submit, next, then, .. } = self.flights[op as usize];
            let asked = Asked { cause: submit.cause, now };
            let failed = self.apply(submit.kind, asked, submit.block, submit.page, submit.source);
            self.flights[op as usize].next = self.free;
            self.free = op;
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
            if then != NONE {
                self.release(then, now);
            }
            op = next;
        }
    }

    fn release(&mut self, op: u32, now: Nanos) {
        let flight = &mut self.flights[op as usize];
        assert!(flight.waits_for > 0, "an operation is released once for each link");
        flight.waits_for -= 1;
        if flight.waits_for == 0 {
            let block = flight.submit.block;
            let die = self.die_of(block);
            let state = &self.dies[die as usize];
            // The die that is completing its group right now goes on by itself.
            if state.phase == Phase::Idle && state.suspended == NONE {
                self.start_next(die, now);
            }
        }
    }

    /// The effect of an operation that has come to its end; true if it failed.
    #[inline]
    fn apply(&mut self, kind: OpKind, asked: Asked, block: u32, page: u32, source: u32) -> bool {
        self.counts.0[kind as usize][asked.cause as usize] += 1;
        match kind {
            OpKind::Read => {
                self.blocks.read(block, page, asked);
                let ppn = block * self.geometry.pages_per_block + page;
                self.faults.strikes(kind, block, 0) || !self.blocks.readable(ppn)
            }
            OpKind::Program | OpKind::Copyback => {
                if kind == OpKind::Copyback && source != NONE {
                    let pages = self.geometry.pages_per_block;
                    self.blocks.read(source / pages, source % pages, asked);
                }
                self.blocks.program(block, page, asked);
                let failed = self.faults.strikes(kind, block, 0);
                if failed {
                    self.blocks.spoil(block * self.geometry.pages_per_block + page);
                }
                failed
            }
            OpKind::Erase => {
                let erases = self.blocks.get(block).erases;
                let failed = self.faults.strikes(kind, block, erases);
                self.blocks.erase(block, asked);
                self.oob.erase(block);
                failed
            }
        }
    }

    // ---- power ----

    /// Power goes at `now`: queued operations never happened, running ones leave torn pages and blocks.
    pub fn power_cut(&mut self, now: Nanos) {
        for die in 0..self.dies.len() {
            let state = self.dies[die];
            let begun = matches!(state.phase, Phase::Array | Phase::Suspending) && state.array_start < now;
            for (group, begun) in [(state.running, begun), (state.suspended, true)] {
                let mut op = group;
                while op != NONE && begun {
                    let Flight { submit, next, .. } = self.flights[op as usize];
                    match submit.kind {
                        OpKind::Program | OpKind::Copyback => {
                            self.blocks.program(submit.block, submit.page, Asked { cause: submit.cause, now });
                            self.blocks.spoil(submit.block * self.geometry.pages_per_block + submit.page);
                        }
                        OpKind::Erase => self.blocks.tear_erase(submit.block),
                        OpKind::Read => {}
                    }
                    op = next;
                }
            }
            let state = &mut self.dies[die];
            state.queues = [Queue { head: NONE, tail: NONE }; CLASSES];
            state.queued = 0;
            state.phase = Phase::Idle;
            (state.running, state.staged, state.suspended) = (NONE, NONE, NONE);
            state.next_waiter = NONE;
            self.events.clear(die as u32);
        }
        for (index, channel) in self.channels.iter_mut().enumerate() {
            (channel.head, channel.tail) = (NONE, NONE);
            channel.free_at = Nanos::ZERO;
            self.events.clear((self.dies.len() + index) as u32);
        }
        self.flights.clear();
        self.free = NONE;
        self.in_flight = 0;
        self.done.clear();
    }

    /// Puts a saved block state back.
    pub(crate) fn restore_block(&mut self, block: u32, state: Block) {
        self.blocks.restore(block, state);
    }

    // ---- observers ----

    #[inline]
    fn edge(&mut self, die: u32, at: Nanos, busy: bool) {
        if let Some(observer) = &mut self.observer {
            observer.ready_busy(die, at, busy);
        }
    }

    fn report(&mut self, resource: Resource, group: u32, start: Nanos, end: Nanos) {
        let submit = self.flights[group as usize].submit;
        let (mut planes, mut op) = (0, group);
        while op != NONE {
            planes += 1;
            op = self.flights[op as usize].next;
        }
        let pages = u64::from(self.geometry.pages_per_block);
        let ppn = u64::from(submit.block) * pages + u64::from(submit.page);
        if let Some(observer) = &mut self.observer {
            observer.span(Span { resource, kind: submit.kind, cause: submit.cause, ppn, planes, start, end });
        }
    }
}

#[inline]
fn draw(rng: &mut Rng, latency: Latency) -> Nanos {
    if latency.min == latency.max { latency.min } else { Nanos(rng.random_range(latency.min.0..=latency.max.0)) }
}

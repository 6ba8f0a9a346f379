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

/// An operation in flight. Numbers are used again in the step after the one in which the operation is done.
pub type OpId = u32;

/// No operation, no block.
pub const NONE: u32 = u32::MAX;

/// Most planes a die may have: its non-empty queues are bits of one word.
pub const MAX_PLANES_PER_DIE: u32 = 12;

/// Host reads that an operation gives way to, over all its suspensions; then it runs to its end, so that reads cannot
/// starve a program.
const READS_LET_PASS: u32 = 16;

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

/// One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
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
    /// The head's place in the order of arrival, or `NOT_READY`: what choosing looks at, without going to the head.
    order: u64,
}

const NOT_READY: u64 = u64::MAX;

const EMPTY: Queue = Queue { head: NONE, tail: NONE, order: NOT_READY };

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
    /// Which queues hold something: bit `class * planes + plane`.
    waiting: u64,
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
    /// What a suspended operation has still to do, without the time to resume.
    remaining: Nanos,
    /// Host reads that the running or suspended program or erase has given way to.
    reads_let_pass: u32,
    busy: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    free_at: Nanos,
    head: u32,
    tail: u32,
    /// The last waiting die that has only command cycles to send; these go before data.
    last_command: u32,
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
    /// Operations by die, class and plane, each in order.
    queues: Vec<Queue>,
    channels: Vec<Channel>,
    events: EventTree,
    flights: Vec<Flight>,
    free: u32,
    /// Operations that ended in the last step: their numbers are not used again before the next, since whoever hears
    /// of one of them may submit more before it hears of the others.
    ended: u32,
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
            waiting: 0,
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
            reads_let_pass: 0,
            busy: Nanos::ZERO,
        };
        let channel = Channel { free_at: Nanos::ZERO, head: NONE, tail: NONE, last_command: NONE, busy: Nanos::ZERO };
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
            queues: vec![EMPTY; geometry.planes() as usize * CLASSES],
            channels: vec![channel; geometry.channels as usize],
            events: EventTree::new((geometry.dies() + geometry.channels) as usize),
            flights: Vec::new(),
            free: NONE,
            ended: NONE,
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

    /// Busy time of the channels and the arrays of the dies: transfers count when they begin, array work when it ends.
    pub fn busy(&self) -> (Vec<Nanos>, Vec<Nanos>) {
        let channels = self.channels.iter().map(|channel| channel.busy).collect();
        (channels, self.dies.iter().map(|die| die.busy).collect())
    }

    /// As [`Flash::busy`], with what runs at `now` counted exactly up to then: never more than the time that has passed.
    pub fn busy_at(&self, now: Nanos) -> (Vec<Nanos>, Vec<Nanos>) {
        let running = |die: &Die| {
            let works = matches!(die.phase, Phase::Array | Phase::Suspending);
            if works { now.since(die.array_start) } else { Nanos::ZERO }
        };
        let channels = self.channels.iter().map(|channel| channel.busy - channel.free_at.since(now)).collect();
        (channels, self.dies.iter().map(|die| die.busy + running(die)).collect())
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
        let first = self.queue_index(self.die_of(block), 0, 0);
        let queues = self.queues[first..first + CLASSES * self.geometry.planes_per_die as usize].iter();
        let heads = queues.map(|queue| queue.head).chain([die.running, die.staged, die.suspended]);
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
        let plane = submit.block / self.geometry.blocks_per_plane % self.geometry.planes_per_die;
        let index = self.queue_index(die, submit.class as usize, plane);
        let queue = &mut self.queues[index];
        if queue.head == NONE {
            queue.head = op;
            queue.order = if flight.waits_for == 0 { flight.order } else { NOT_READY };
        } else {
            self.flights[queue.tail as usize].next = op;
        }
        queue.tail = op;
        let state = &mut self.dies[die as usize];
        state.waiting |= 1 << (submit.class as u32 * self.geometry.planes_per_die + plane);
        state.queued += 1;
        if state.phase == Phase::Idle {
            if self.joins_planes() {
                // What else is submitted now may join it.
                self.events.set(die, now);
            } else {
                self.start_next(die, now);
            }
        } else if submit.class == Class::HostRead {
            self.consider_suspend(die, now);
        } else {
            self.stage(die, now);
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
        while self.ended != NONE {
            let op = self.ended;
            self.ended = self.flights[op as usize].next;
            self.flights[op as usize].next = self.free;
            self.free = op;
        }
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

    /// Asks for the channel; true if the die has it at once. Commands go before data, else in order of asking: a command
    /// is short and sets an array to work; behind the data of all other dies it would leave its die, and soon the
    /// channel, with nothing to do.
    fn request_channel(&mut self, die: u32, duration: Nanos, now: Nanos) -> bool {
        let dies = self.dies.len() as u32;
        let state = &mut self.dies[die as usize];
        let index = state.channel;
        let channel = &mut self.channels[index as usize];
        if channel.head == NONE && channel.free_at <= now {
            self.occupy(index, die, duration, now);
            return true;
        }
        state.wants = duration;
        state.next_waiter = NONE;
        let command =
            state.phase == Phase::AwaitChannel && self.flights[state.running as usize].submit.kind != OpKind::Program;
        if channel.head == NONE {
            self.events.set(dies + index, channel.free_at);
            (channel.head, channel.tail) = (die, die);
        } else if !command {
            self.dies[channel.tail as usize].next_waiter = die;
            channel.tail = die;
        } else if channel.last_command == NONE {
            state.next_waiter = channel.head;
            channel.head = die;
        } else {
            let before = channel.last_command;
            let after = std::mem::replace(&mut self.dies[before as usize].next_waiter, die);
            self.dies[die as usize].next_waiter = after;
            if after == NONE {
                channel.tail = die;
            }
        }
        if command {
            channel.last_command = die;
        }
        false
    }

    fn channel_event(&mut self, index: u32, now: Nanos) {
        let channel = &mut self.channels[index as usize];
        let die = channel.head;
        let (next, duration) = (self.dies[die as usize].next_waiter, self.dies[die as usize].wants);
        channel.head = next;
        if channel.last_command == die {
            channel.last_command = NONE;
        }
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
            Phase::AwaitChannel => self.begin_array(die, now, end),
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
            Phase::Idle => self.go_idle(die, now),
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
                state.busy += now - state.array_start;
                let (group, start) = (state.suspended, state.array_start);
                if self.observer.is_some() {
                    self.report(Resource::Die(die), group, start, now);
                    self.edge(die, now, false);
                }
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
            let duration = self.data_time(group);
            if !self.request_channel(die, duration, now) {
                self.events.clear(die);
            }
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
        self.begin_array(die, now, now);
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
            let reads = state.waiting & ((1 << self.geometry.planes_per_die) - 1);
            if reads == 0 || state.reads_let_pass >= READS_LET_PASS {
                self.resume(die, now);
            } else {
                self.dies[die as usize].reads_let_pass += 1;
                let read = self.oldest_ready(die, reads).expect("a host read waits for nothing");
                self.start_queue(die, read, now);
            }
            return true;
        }
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
    fn queue_index(&self, die: u32, class: usize, plane: u32) -> usize {
        let planes = self.geometry.planes_per_die as usize;
        (die as usize * CLASSES + class) * planes + plane as usize
    }

    /// The queue (bit `class * planes + plane`) whose head goes next.
    #[inline]
    fn choose_queue(&self, die: u32, now: Nanos) -> Option<u32> {
        let waiting = self.dies[die as usize].waiting;
        if waiting.is_power_of_two() {
            return self.oldest_ready(die, waiting);
        }
        let planes = self.geometry.planes_per_die;
        let mut heads = [None; CLASSES];
        let mut queues = [0; CLASSES];
        let (mut ready, mut only) = (0, 0);
        for class in 0..CLASSES {
            let bits = waiting >> (class as u32 * planes) & ((1 << planes) - 1);
            if bits == 0 {
                continue;
            }
            if let Some(queue) = self.oldest_ready(die, bits << (class as u32 * planes)) {
                heads[class] = Some(self.queues[self.queue_index(die, 0, queue)].order);
                queues[class] = queue;
                ready += 1;
                only = class;
            }
        }
        match ready {
            0 => None,
            1 => Some(queues[only]),
            _ => {
                let heads = std::array::from_fn(|class| {
                    heads[class].map(|order| {
                        let head = self.head(die, queues[class]);
                        Head { order, queued: self.flights[head as usize].queued }
                    })
                });
                choose(self.config.scheduler, &heads, now).map(|class| queues[class])
            }
        }
    }

    #[inline]
    fn head(&self, die: u32, queue: u32) -> u32 {
        self.queues[self.queue_index(die, 0, queue)].head
    }

    /// Of the queues in `bits`, the one whose head is ready and came first.
    #[inline]
    fn oldest_ready(&self, die: u32, mut bits: u64) -> Option<u32> {
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

    fn start_queue(&mut self, die: u32, queue: u32, now: Nanos) {
        let group = self.take_group(die, queue);
        let state = &mut self.dies[die as usize];
        state.running = group;
        state.phase = Phase::AwaitChannel;
        let duration = self.command_and_data_in_time(group);
        if duration == Nanos::ZERO {
            self.begin_array(die, now, now);
            return;
        }
        // While it waits for the channel the die has no event of its own.
        if !self.request_channel(die, duration, now) {
            self.events.clear(die);
        }
    }

    #[inline]
    fn joins_planes(&self) -> bool {
        self.config.multi_plane != MultiPlane::Off && self.geometry.planes_per_die > 1
    }

    /// Takes the head of a queue, and those of the same class on other planes that may join it, as a linked group.
    #[inline]
    fn take_group(&mut self, die: u32, queue: u32) -> u32 {
        let group = self.pop(die, queue);
        let planes = self.geometry.planes_per_die;
        if !self.joins_planes() {
            return group;
        }
        let first = self.flights[group as usize].submit;
        let class = queue / planes;
        let others =
            self.dies[die as usize].waiting >> (class * planes) & ((1 << planes) - 1) & !(1 << (queue % planes));
        if others != 0 && first.kind != OpKind::Copyback {
            self.join_planes(die, class * planes, others, group);
        }
        group
    }

    fn join_planes(&mut self, die: u32, base: u32, mut others: u64, group: u32) {
        let first = self.flights[group as usize].submit;
        let mut last = group;
        while others != 0 {
            let other = base + others.trailing_zeros();
            others &= others - 1;
            let candidate = self.head(die, other);
            let flight = &self.flights[candidate as usize];
            let offset_fits = first.kind == OpKind::Erase
                || flight.submit.page == first.page
                || self.config.multi_plane == MultiPlane::Relaxed;
            if flight.submit.kind == first.kind && flight.waits_for == 0 && offset_fits {
                self.pop(die, other);
                self.flights[last as usize].next = candidate;
                last = candidate;
            }
        }
    }

    /// Takes the head out of a queue; it stands alone then.
    #[inline]
    fn pop(&mut self, die: u32, queue: u32) -> u32 {
        let index = self.queue_index(die, 0, queue);
        let op = self.queues[index].head;
        let next = std::mem::replace(&mut self.flights[op as usize].next, NONE);
        let order = if next == NONE || self.flights[next as usize].waits_for > 0 {
            NOT_READY
        } else {
            self.flights[next as usize].order
        };
        self.queues[index].head = next;
        self.queues[index].order = order;
        let state = &mut self.dies[die as usize];
        if next == NONE {
            self.queues[index].tail = NONE;
            state.waiting &= !(1 << queue);
        }
        state.queued -= 1;
        op
    }

    /// At `now` it is settled that the running group's commands and data are in at `start`: the array works from then on.
    fn begin_array(&mut self, die: u32, now: Nanos, start: Nanos) {
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
        if kind != OpKind::Read {
            state.remaining = duration;
            state.reads_let_pass = 0;
        }
        let read_waits = state.waiting & ((1 << self.geometry.planes_per_die) - 1) != 0;
        self.edge(die, start, true);
        if kind != OpKind::Read && read_waits {
            self.consider_suspend(die, now);
        }
        self.stage(die, now);
    }

    /// Cache program: the next program's data may come in while this one runs.
    fn stage(&mut self, die: u32, now: Nanos) {
        let state = &self.dies[die as usize];
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
        if !allowed || stop >= state.until || state.reads_let_pass >= READS_LET_PASS {
            return;
        }
        let state = &mut self.dies[die as usize];
        // While it resumes nothing is done, so what is left to do never grows.
        state.remaining = state.remaining.min(state.until - from);
        state.phase = Phase::Suspending;
        state.until = stop;
        self.events.set(die, stop);
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
            let (block, class, order) = (flight.submit.block, flight.submit.class, flight.order);
            let die = self.die_of(block);
            let plane = block / self.geometry.blocks_per_plane % self.geometry.planes_per_die;
            let index = self.queue_index(die, class as usize, plane);
            if self.queues[index].head == op {
                self.queues[index].order = order;
            }
            let state = &self.dies[die as usize];
            // The die that is completing its group right now goes on by itself.
            if state.phase == Phase::Idle && state.suspended == NONE {
                self.start_next(die, now);
            } else {
                self.stage(die, now);
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
            state.waiting = 0;
            state.queued = 0;
            state.phase = Phase::Idle;
            (state.running, state.staged, state.suspended) = (NONE, NONE, NONE);
            state.next_waiter = NONE;
            self.events.clear(die as u32);
        }
        for (index, channel) in self.channels.iter_mut().enumerate() {
            (channel.head, channel.tail, channel.last_command) = (NONE, NONE, NONE);
            channel.free_at = Nanos::ZERO;
            self.events.clear((self.dies.len() + index) as u32);
        }
        self.queues.fill(EMPTY);
        self.flights.clear();
        (self.free, self.ended) = (NONE, NONE);
        self.in_flight = 0;
        self.done.clear();
        self.oob.forget_unwritten(&self.blocks);
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

//! The engine: operations wait in their die's queue, take the channel, keep the array busy, and are done.
//!
//! A die executes one array operation at a time, on one plane or on several at once; a channel carries one transfer at
//! a time. The order of a die's queue is a policy ([`SchedulerKind`]); joining planes, staging the next page's
//! data, copyback and suspending are decided here and nowhere above.
//!
//! Data is bound to a page when its program is submitted, but the page counts as written only when the program is done:
//! a power cut in between leaves it erased or torn.

mod channel;
mod die;
mod end;
mod single;
mod suspend;
mod time;
mod waits;
mod watch;

use ssdlab_base::{Divider, Nanos, Rng, rng};

pub use waits::{RecordId, Stay, Stretch};
pub use watch::ArrayWork;

use crate::blocks::{Asked, Blocks};
use crate::contents::{Oob, Store};
use crate::events::EventTree;
use crate::faults::FaultPlan;
use crate::schedule::{CLASSES, Class};
use crate::{
    BlockId, Cause, Contents, DieId, FlashConfig, Geometry, Image, ImageError, Observer, OpCounts, OpKind, PlaneId,
    Ppn, SchedulerKind, UnitId,
};

/// An operation in flight. Numbers are used again in the step after the one in which the operation is done.
pub type OpId = u32;

/// No operation, no block.
pub const NONE: u32 = u32::MAX;

/// Most planes a die may have: its non-empty queues are bits of one word.
pub const MAX_PLANES_PER_DIE: u32 = 12;

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
    pub block: BlockId,
    /// The page in the block; 0 for an erase.
    pub page: u32,
    /// A copyback's source PPN; else unused.
    pub source: Ppn,
    /// Data bytes on the channel; 0 for an erase or a copyback.
    pub bytes: u32,
    /// The controller's own, given back when done.
    pub token: u32,
    /// A block that must not be erased before this is done, or `NONE`; given back when done.
    pub pin: BlockId,
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
    pub block: BlockId,
    /// Its page.
    pub page: u32,
    /// The token it was submitted with.
    pub token: u32,
    /// The pinned block it was submitted with.
    pub pin: BlockId,
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
    /// The program that becomes ready when this one does.
    follower: u32,
    waits_for: u16,
}

const _: () = assert!(size_of::<Flight>() == 64, "an operation in flight is one cache line");
const _: () = assert!(CLASSES * MAX_PLANES_PER_DIE as usize <= 64, "a die's queues are the bits of one word");

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
    /// The program before the running one is done; the running one's data, that was staged, is on the channel until `until`.
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
    next_waiter: DieId,
    staged: u32,
    staged_state: Staged,
    suspended: u32,
    /// What a suspended operation has still to do, without the time to resume.
    remaining: Nanos,
    /// Host reads that the running or suspended program or erase has given way to.
    reads_let_pass: u32,
    /// The queue that had the last turn.
    last_queue: u32,
    busy: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    free_at: Nanos,
    /// The dies that wait for it, in order.
    head: DieId,
    tail: DieId,
    /// The last waiting die that has only command cycles to send; these go before data.
    last_command: DieId,
    busy: Nanos,
}

/// The chips of a drive.
pub struct Flash {
    config: FlashConfig,
    geometry: Geometry,
    by_blocks_per_plane: Divider,
    by_planes_per_die: Divider,
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
    /// Of `counts`, those that ran on several planes at once.
    multi_plane: OpCounts,
    dies: Vec<Die>,
    /// Operations by die, class and plane, each in order.
    queues: Vec<Queue>,
    channels: Vec<Channel>,
    events: EventTree,
    flights: Vec<Flight>,
    free: u32,
    /// Operations that ended in the last step: their numbers are not used again before the next, since a caller that
    /// hears of one of them may submit more before it hears of the others.
    ended: u32,
    in_flight: u32,
    order: u64,
    done: Vec<Done>,
    observer: Option<Box<dyn Observer>>,
    /// What operations waited for, while a caller asks for it.
    waits: Option<Box<waits::Waits>>,
    /// There is an observer, waits are recorded, or the drive has one queue: one question where all are told something.
    is_watched: bool,
    /// By operation that is not ready yet: the one that waits until it is. Empty where none does.
    on_ready: Vec<u32>,
    /// An operation that waits for a read that fails is released by the controller.
    holds_failed_reads: bool,
}

impl Flash {
    /// Fresh chips: everything erased, factory bad blocks marked.
    pub fn new(config: &FlashConfig, units_per_page: u32, contents: Contents, seed: u64, timed: bool) -> Flash {
        // What this takes, `Flash::simulator_bytes` says beforehand: a table that grows with the chips belongs there, too.
        let geometry = config.geometry;
        let planes = geometry.planes_per_die;
        assert!((1..=MAX_PLANES_PER_DIE).contains(&planes), "{planes} planes a die, not 1 to {MAX_PLANES_PER_DIE}");
        assert!(
            units_per_page > 0 && geometry.page_bytes.is_multiple_of(units_per_page),
            "a page of {} bytes in {units_per_page} units",
            geometry.page_bytes
        );
        let mut blocks = Blocks::new(&geometry);
        let mut faults = FaultPlan::new(
            &config.faults,
            geometry.planes_per_die * geometry.blocks_per_plane,
            rng(seed, "flash faults"),
        );
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
            next_waiter: DieId::NONE,
            staged: NONE,
            staged_state: Staged::Waiting,
            suspended: NONE,
            remaining: Nanos::ZERO,
            reads_let_pass: 0,
            last_queue: 0,
            busy: Nanos::ZERO,
        };
        let channel = Channel {
            free_at: Nanos::ZERO,
            head: DieId::NONE,
            tail: DieId::NONE,
            last_command: DieId::NONE,
            busy: Nanos::ZERO,
        };
        let is_single = config.scheduler == SchedulerKind::SingleFifo;
        Flash {
            config: config.clone(),
            geometry,
            by_blocks_per_plane: Divider::new(geometry.blocks_per_plane),
            by_planes_per_die: Divider::new(geometry.planes_per_die),
            timed,
            blocks,
            oob: Oob::new(&geometry, units_per_page),
            store: Store::new(&geometry, units_per_page, contents),
            faults,
            rng: rng(seed, "flash latencies"),
            counts: OpCounts::default(),
            multi_plane: OpCounts::default(),
            dies: (0..geometry.dies()).map(die).collect(),
            queues: vec![EMPTY; geometry.planes() as usize * CLASSES],
            channels: vec![channel; geometry.channels as usize],
            // Dies, channels, and where there is one queue, that.
            events: EventTree::new((geometry.dies() + geometry.channels + u32::from(is_single)) as usize),
            flights: Vec::new(),
            free: NONE,
            ended: NONE,
            in_flight: 0,
            order: 0,
            done: Vec::new(),
            observer: None,
            waits: None,
            is_watched: is_single,
            on_ready: Vec::new(),
            holds_failed_reads: false,
        }
    }

    /// Bytes that [`Flash::new`] takes once all of the chips have been written. The operating system gives most of them
    /// only as they are.
    pub fn simulator_bytes(geometry: &Geometry, units_per_page: u32, contents: Contents) -> u64 {
        Blocks::simulator_bytes(geometry)
            + Oob::simulator_bytes(geometry, units_per_page)
            + Store::simulator_bytes(geometry, contents)
    }

    /// Bytes that chips on an image take: the contents are in its files, their checks in memory.
    pub fn simulator_bytes_on_image(geometry: &Geometry, units_per_page: u32) -> u64 {
        Flash::simulator_bytes(geometry, units_per_page, Contents::Nothing)
            + Image::simulator_bytes(geometry, units_per_page)
    }

    /// Chips whose contents are kept in an image: fresh ones where it is new, else as they were when the process that
    /// served them ended, however that was. What was being programmed or erased then is torn.
    pub fn on_image(config: &FlashConfig, seed: u64, timed: bool, mut image: Image) -> Result<Flash, ImageError> {
        let units_per_page = image.units_per_page();
        let mut flash = Flash::new(config, units_per_page, Contents::Nothing, seed, timed);
        if image.is_fresh() {
            let blocks = flash.blocks.all().iter().enumerate();
            image.finish(blocks.filter(|(_, block)| block.bad).map(|(number, _)| BlockId(number as u32)))?;
        } else {
            if image.keeps_origins() {
                flash.oob.keep_origins();
            }
            let loaded = image.load(&mut flash.oob)?;
            let (found, blocks) = (loaded.blocks.len(), flash.blocks.all().len());
            assert_eq!(found, blocks, "the image told of {found} blocks of {blocks}");
            for (block, state) in (0..).map(BlockId).zip(loaded.blocks) {
                flash.blocks.restore(block, state);
            }
            for ppn in loaded.unreadable {
                flash.blocks.spoil(ppn);
            }
            for (block, index) in loaded.substitutes {
                flash.blocks.substitute(block, Some(index));
            }
        }
        flash.store = Store::on_image(&flash.geometry, units_per_page, image);
        Ok(flash)
    }

    /// Whether a block may be opened: always, but on an image whose host has no space for it.
    #[inline]
    pub fn provide(&self, block: BlockId) -> bool {
        self.store.image().is_none_or(|image| image.provide(block))
    }

    /// Marks a unit as lost: reading it is an error from now on.
    pub fn poison(&mut self, unit: UnitId) {
        self.oob.poison(unit);
        let ppn = unit.page(self.oob.units_per_page());
        let place = (ppn.block(self.geometry.pages_per_block), ppn % self.geometry.pages_per_block);
        if self.is_written(place.0, place.1)
            && let Some(image) = self.store.image_mut()
        {
            image.rewrite(self.blocks.get(place.0), place, &self.oob, self.blocks.readable(ppn));
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

    /// Of [`Flash::counts`], the operations that ran together with others on planes of their die.
    pub const fn multi_plane(&self) -> &OpCounts {
        &self.multi_plane
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
        self.multi_plane = OpCounts::default();
        for die in &mut self.dies {
            die.busy = Nanos::ZERO;
        }
        for channel in &mut self.channels {
            channel.busy = Nanos::ZERO;
            channel.free_at = Nanos::ZERO;
        }
        if self.has_single_queue() {
            self.forget_queue_event();
        }
        if self.waits.is_some() {
            self.record_waits(true);
        }
    }

    /// Attaches or detaches an observer.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) {
        self.observer = observer;
        self.watch_if_needed();
    }

    /// An observer, or the record of waits, has come or gone.
    fn watch_if_needed(&mut self) {
        self.is_watched = self.observer.is_some() || self.waits.is_some() || self.has_single_queue();
    }

    /// Busy time of the channels and the arrays of the dies: transfers count when they begin, array work when it ends.
    pub fn busy(&self) -> (Vec<Nanos>, Vec<Nanos>) {
        let channels = self.channels.iter().map(|channel| channel.busy).collect();
        (channels, self.dies.iter().map(|die| die.busy).collect())
    }

    /// Busy time of the channels and the arrays of the dies, with what runs at `now` counted exactly up to then: never
    /// more than the time that has passed.
    pub fn busy_at(&self, now: Nanos) -> (Vec<Nanos>, Vec<Nanos>) {
        let running = |die: &Die| {
            let works = matches!(die.phase, Phase::Array | Phase::Suspending);
            if works { now.since(die.array_start) } else { Nanos::ZERO }
        };
        let so_far = |channel: &Channel| {
            let ahead = channel.free_at.since(now);
            assert!(channel.busy >= ahead, "a channel was busy for {}, of which {ahead} are to come", channel.busy);
            channel.busy - ahead
        };
        let channels = self.channels.iter().map(so_far).collect();
        (channels, self.dies.iter().map(|die| die.busy + running(die)).collect())
    }

    /// Draws latencies and faults from the beginning of a seed's streams.
    pub fn reseed(&mut self, seed: u64) {
        self.rng = rng(seed, "flash latencies");
        self.faults = FaultPlan::new(
            &self.config.faults,
            self.geometry.planes_per_die * self.geometry.blocks_per_plane,
            rng(seed, "flash faults"),
        );
    }

    /// Counts operations that were modelled as a whole.
    pub const fn count(&mut self, kind: OpKind, cause: Cause, operations: u64) {
        self.counts.0[kind as usize][cause as usize] += operations;
    }

    /// Operations that wait or run on a die.
    #[inline]
    pub fn load(&self, die: DieId) -> u32 {
        let die = &self.dies[die.index()];
        die.queued + u32::from(die.phase != Phase::Idle)
    }

    /// Operations submitted and not done.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The die of a block.
    #[inline]
    pub const fn die_of(&self, block: BlockId) -> DieId {
        DieId(self.by_planes_per_die.div(self.plane_of(block).0))
    }

    /// The plane of a block.
    #[inline]
    pub const fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(self.by_blocks_per_plane.div(block.0))
    }

    /// The plane of a block in its die.
    #[inline]
    const fn plane_in_die(&self, block: BlockId) -> u32 {
        self.by_planes_per_die.rem(self.plane_of(block).0)
    }

    /// Whether a page that has been given data is on flash already, or its program is still to end.
    #[inline]
    pub fn is_written(&self, block: BlockId, page: u32) -> bool {
        page < self.blocks.get(block).programmed
    }

    /// Forgets what OOB areas say of their pages, for a drive that has nothing there.
    pub fn forget_oob(&mut self) {
        self.oob.forget_owners(&self.blocks);
    }

    /// Marks a block bad for good.
    pub fn retire(&mut self, block: BlockId) {
        self.blocks.retire(block);
        if let Some(image) = self.store.image_mut() {
            image.put_block(block, self.blocks.get(block));
        }
    }

    /// The controller records that a block stands in place `index` of its plane, or, with `None`, in its own again.
    pub fn substitute(&mut self, block: BlockId, index: Option<u32>) {
        let (bad, own) = (self.blocks.get(block).bad, block.0 % self.geometry.blocks_per_plane);
        assert!(index.is_none() || !bad, "bad block {block} stands in for another in place {index:?}");
        assert_ne!(index, Some(own), "block {block} stands in for itself");
        self.blocks.substitute(block, index);
        if let Some(image) = self.store.image_mut() {
            image.substitute(block, index, self.blocks.get(block));
        }
    }

    /// The program in flight of a page, if there is one. A walk over a die's operations: for rare cases.
    pub fn find_program(&self, block: BlockId, page: u32) -> Option<OpId> {
        let die = &self.dies[self.die_of(block).index()];
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

    /// The operation that waits for `op`, or `NONE`.
    pub fn waiter(&self, op: OpId) -> OpId {
        self.flights[op as usize].then
    }

    /// The PPN that a copyback in flight moves; `None` for other operations.
    pub fn copyback_source(&self, op: OpId) -> Option<Ppn> {
        let submit = &self.flights[op as usize].submit;
        (submit.kind == OpKind::Copyback).then_some(submit.source)
    }

    /// The block and page of an operation in flight.
    pub fn target(&self, op: OpId) -> (BlockId, u32) {
        let submit = &self.flights[op as usize].submit;
        (submit.block, submit.page)
    }

    /// Whether a program in flight still waits for reads.
    pub fn waits(&self, op: OpId) -> bool {
        self.flights[op as usize].waits_for > 0
    }

    /// Does an operation at once, without time: its effect, its count, its fault. Returns whether it failed.
    #[inline]
    pub fn execute(&mut self, kind: OpKind, cause: Cause, block: BlockId, page: u32) -> bool {
        debug_assert_eq!(self.in_flight, 0, "{kind:?} of block {block} page {page} at once, while others take time");
        let asked = Asked { cause, now: Nanos::ZERO };
        self.apply(kind, asked, block, page, Ppn::NONE)
    }

    /// Does a copyback from PPN `source` at once, without time: its effect, its count, its fault. Returns whether it
    /// failed.
    pub fn execute_copyback(&mut self, cause: Cause, block: BlockId, page: u32, source: Ppn) -> bool {
        let asked = Asked { cause, now: Nanos::ZERO };
        self.apply(OpKind::Copyback, asked, block, page, source)
    }

    /// Whether operations can fail.
    #[inline]
    pub const fn may_fail(&self) -> bool {
        self.faults.is_active()
    }

    /// Whether no page's OOB holds more than the map and no operation can fail, so that pages are moved alike.
    #[inline]
    pub fn moves_alike(&self) -> bool {
        self.oob.is_plain() && !self.faults.is_active()
    }

    /// Whether nothing else is stored either, so that runs of pages may be dealt with as one.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.store.cell_bytes() == 0 && self.moves_alike()
    }

    /// Does `count` operations on pages of one block at once, without time; only where [`Flash::is_plain`]. Programs go
    /// to the next pages in order; reads to pages that are written.
    #[inline]
    pub fn execute_run(&mut self, kind: OpKind, cause: Cause, block: BlockId, count: u32) {
        debug_assert!(self.is_plain(), "{count} pages of block {block} go as one, and they are not alike");
        debug_assert_eq!(self.in_flight, 0, "a run of pages of block {block} at once, while others take time");
        self.counts.0[kind as usize][cause as usize] += u64::from(count);
        let asked = Asked { cause, now: Nanos::ZERO };
        match kind {
            OpKind::Read => self.blocks.read_run(block, count),
            OpKind::Program | OpKind::Copyback => self.blocks.program_run(block, count, asked),
            OpKind::Erase => unreachable!("erases come one at a time"),
        }
    }

    /// Takes an operation into its die's queue, and starts it if the die is idle.
    // Inlined, the caller's fields go straight to their cache line: copied from the stack in wider pieces than they were
    // put there in, they would wait for every store on the way.
    #[inline(always)]
    pub fn submit(&mut self, now: Nanos, submit: Submit) -> OpId {
        debug_assert!(self.timed, "untimed operations are executed, not submitted");
        debug_assert!(submit.block.0 < self.geometry.blocks(), "block {} of {}", submit.block, self.geometry.blocks());
        debug_assert!(submit.kind != OpKind::Erase || submit.page == 0, "an erase of page {}", submit.page);
        debug_assert!(
            self.events.next().is_none_or(|at| at >= now),
            "submitted at {now}, after what is to happen at {:?}",
            self.events.next()
        );
        let flight = Flight {
            submit,
            order: self.order,
            queued: now,
            next: NONE,
            then: NONE,
            follower: NONE,
            waits_for: submit.waits_for,
        };
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
        self.enqueue(now, op, submit.block, submit.class, submit.waits_for > 0);
        op
    }

    /// Puts the latest operation at the end of its queue.
    fn enqueue(&mut self, now: Nanos, op: OpId, block: BlockId, class: Class, waits: bool) {
        if self.waits.is_some() {
            self.note_submitted(op, now);
        }
        let die = self.die_of(block);
        let plane = self.plane_in_die(block);
        let index = self.queue_index(die, class as usize, plane);
        let queue = &mut self.queues[index];
        debug_assert_eq!(queue.head == NONE, queue.tail == NONE, "queue {index} has a head and a tail, or neither");
        if queue.head == NONE {
            queue.head = op;
            queue.order = if waits { NOT_READY } else { self.order - 1 };
        } else {
            self.flights[queue.tail as usize].next = op;
        }
        queue.tail = op;
        let state = &mut self.dies[die.index()];
        state.waiting |= 1 << (class as u32 * self.geometry.planes_per_die + plane);
        state.queued += 1;
        if state.phase == Phase::Idle {
            if self.joins_planes() {
                // What else is submitted now may join it.
                self.events.set(die.0, now);
            } else {
                self.start_next(die, now);
            }
        } else if class == Class::HostRead {
            self.consider_suspend(die, now);
        } else {
            self.stage(die, now);
        }
    }

    /// The waits of an operation begin.
    #[cold]
    #[inline(never)]
    fn note_submitted(&mut self, op: OpId, now: Nanos) {
        let die = self.die_of(self.flights[op as usize].submit.block);
        let (what, channel) = (self.what(op), self.dies[die.index()].channel);
        if let Some(waits) = &mut self.waits {
            waits.submitted(op, (die, channel), what, now);
        }
    }

    /// Tells the waits of every operation of a group something.
    #[cold]
    fn note_waits(&mut self, group: OpId, note: impl Fn(&mut waits::Waits, OpId)) {
        let Some(waits) = &mut self.waits else { return };
        let mut op = group;
        while op != NONE {
            note(waits, op);
            op = self.flights[op as usize].next;
        }
    }

    /// What an operation is.
    fn what(&self, op: OpId) -> (OpKind, Cause) {
        let Submit { kind, cause, .. } = self.flights[op as usize].submit;
        (kind, cause)
    }

    /// Makes `later` wait for `earlier` too; it was submitted with `waits_for` counting this link.
    pub fn link(&mut self, earlier: OpId, later: OpId) {
        let flight = &mut self.flights[earlier as usize];
        assert_eq!(flight.then, NONE, "an operation releases one other");
        flight.then = later;
        debug_assert!(self.waits(later), "operation {later} was submitted without a link, and waits for {earlier}");
    }

    /// Makes `later` ready together with `earlier`, which is not ready yet, and whose followers end with it: pages of a
    /// row are programmed on all planes at once. `later` was submitted with `waits_for` counting this, and nothing else.
    pub fn follow(&mut self, earlier: OpId, later: OpId) {
        assert!(self.waits(earlier), "what is ready is followed by nothing");
        let flight = &mut self.flights[earlier as usize];
        assert_eq!(flight.follower, NONE, "one operation follows another");
        flight.follower = later;
        let links = self.flights[later as usize].waits_for;
        assert_eq!(links, 1, "operation {later} follows {earlier} and waits for nothing else");
    }

    /// Makes `later` wait until `earlier`, which waits for reads, is ready: until its data is in the controller's RAM. It was
    /// submitted with `waits_for` counting this.
    pub fn link_ready(&mut self, earlier: OpId, later: OpId) {
        assert!(self.waits(earlier), "what is ready holds nobody up");
        assert!(
            self.waits(later),
            "operation {later} was submitted without a link, and waits until {earlier} is ready"
        );
        if self.on_ready.len() <= earlier as usize {
            self.on_ready.resize(self.flights.len(), NONE);
        }
        assert_eq!(self.on_ready[earlier as usize], NONE, "one operation waits until another is ready");
        self.on_ready[earlier as usize] = later;
    }

    /// From now on who waits for a read that fails goes on waiting, until [`Flash::release_waiter`].
    pub fn hold_failed_reads(&mut self) {
        self.holds_failed_reads = true;
    }

    /// What a failed read was to bring is there by other means, or never will be: `waiter`, which [`Done::then`] named, goes
    /// on; `by` is the operation that ended last for it.
    pub fn release_waiter(&mut self, waiter: OpId, by: OpId, now: Nanos) {
        assert!(self.holds_failed_reads, "operation {waiter} was released when {by} ended");
        if let Some(waits) = &mut self.waits
            && self.flights[waiter as usize].waits_for == 1
        {
            waits.released(waiter, by, now);
        }
        self.release(waiter, now);
    }

    /// Whether who waits for a failed read waits on.
    pub const fn holds_failed_reads(&self) -> bool {
        self.holds_failed_reads
    }

    /// Makes `later`, which waits already, wait for the read `earlier` as well.
    pub fn link_also(&mut self, earlier: OpId, later: OpId) {
        assert!(self.waits(later), "what is ready waits for nothing more");
        assert_eq!(self.flights[earlier as usize].submit.kind, OpKind::Read, "a row waits for reads");
        self.flights[later as usize].waits_for += 1;
        self.link(earlier, later);
    }

    /// The operation that becomes ready with `op`, or `NONE`.
    pub fn follower(&self, op: OpId) -> OpId {
        self.flights[op as usize].follower
    }

    /// Whether `op` is a program of this page that still waits; `op` may have ended long ago.
    pub fn awaits_reads(&self, op: OpId, block: BlockId, page: u32) -> bool {
        self.flights
            .get(op as usize)
            .is_some_and(|flight| flight.waits_for > 0 && (flight.submit.block, flight.submit.page) == (block, page))
    }

    /// Whether an operation in flight is a read.
    pub fn is_read(&self, op: OpId) -> bool {
        self.flights[op as usize].submit.kind == OpKind::Read
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
            self.die_event(DieId(resource), now);
        } else {
            self.channel_event(resource - dies, now);
        }
        std::mem::swap(&mut self.done, done);
        debug_assert!(
            self.events.next().is_none_or(|at| at >= now),
            "at {now} something was due in the past, at {:?}",
            self.events.next()
        );
    }
}

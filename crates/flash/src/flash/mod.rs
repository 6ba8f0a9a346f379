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
mod issue;
mod links;
mod operation;
mod resources;
mod single;
mod statistics;
mod submit;
mod suspend;
mod time;
mod untimed;
mod waits;
mod watch;

use std::collections::VecDeque;

use ssdlab_base::{Divider, Nanos, Rng, rng};

use self::operation::Flight;
use self::resources::{Channel, Die, EMPTY, Phase, Queue, Staged};
use crate::blocks::Blocks;
use crate::contents::{Oob, Store};
use crate::events::EventTree;
use crate::faults::FaultPlan;
use crate::schedule::CLASSES;
use crate::{
    BlockId, Contents, DieId, FlashConfig, Geometry, Image, ImageError, Observer, OpCounts, PlaneId, SchedulerKind,
    UnitId,
};

pub use operation::{Done, NONE, OpId, Submit};
pub use resources::MAX_PLANES_PER_DIE;
pub use single::QueueWaits;
pub use waits::{RecordId, Stay, Stretch};
pub use watch::ArrayWork;

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
    /// Checked copybacks whose page could not be corrected.
    uncorrectable_copybacks: u64,
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
    /// The head of the drive's one queue, where it has that.
    first: Option<single::Head>,
    /// What that queue holds up.
    queue_watch: Option<Box<single::QueueWatch>>,
    /// Operations that are submitted and not issued, and when they are, in order.
    issues: VecDeque<(Nanos, OpId)>,
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
            copy_unchecked: false,
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
        let is_single = matches!(config.scheduler, SchedulerKind::SingleFifo | SchedulerKind::InOrder);
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
            uncorrectable_copybacks: 0,
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
            first: None,
            queue_watch: is_single.then(|| Box::new(single::QueueWatch::new(geometry.dies()))),
            issues: VecDeque::new(),
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

    /// Whether operations take time.
    pub const fn timed(&self) -> bool {
        self.timed
    }

    /// Switches timing; nothing may be in flight.
    pub fn set_timed(&mut self, timed: bool) {
        assert_eq!(self.in_flight, 0, "timing is switched only while the chips are idle");
        self.timed = timed;
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

    /// Forgets all of the OOB areas: owners, numbers, and marks of lost data. For a drive that keeps them in its pages, and has
    /// in the arrays its own copy alone. Words of metadata units stay: they are what pages hold.
    pub fn clear_oob(&mut self) {
        self.oob.clear();
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

//! Restoring in the host, as ReSSD (Lee et al., SAC 2010) and LSDM do it, after what the paper of SHRD says of them (Kim et al.,
//! FAST 2017, sections 1 and 6): small writes go to a log one behind the other, and the host copies them to their own addresses
//! later. Any device will do: the log is in space that the layer takes from its capacity.
//!
//! ```text
//!   small write       -> place in the ring -> pack -> log -> table -> answer
//!   read              -> table -> log, home, or parts of both -> answer
//!   other change      -> home; its units leave the table. A part of a unit that is in the log is changed there -> answer
//!   flush, FUA write  -> commit: flush below -> slots of the table -> answer
//!   log is full       -> pass: copies of what is in the oldest places -> commit -> header -> the places are free
//! ```
//!
//! [`records`] is what is kept of the table on the device, [`commit`] when it is written, [`writeback`] the pass. The layer
//! promises what a drive with a volatile write cache does: what a flush or FUA write covered is there after any power cut, and
//! what nothing covered may be lost, with the host alone, too. With `table = "ram"`, as the systems are published, nothing is
//! promised when the host loses its memory.

mod command;
mod commit;
mod config;
mod device;
mod layout;
mod log_writes;
mod metrics;
mod records;
mod recovery;
mod writeback;

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::path::Path;
use ssdlab_device::{Completion, Status};

use crate::layer::{Array, Ended, Overlaps, changes, units_of, whole_units_of};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::{Pack, Packing, Reason, RedirectionTable, Ring};
use crate::{LayerError, Traffic};

use command::Command;
use commit::{Commit, Pending};
pub(crate) use config::LAYER;
pub use config::RestoringConfig;
use config::{Restore, TableIn};
use layout::Layout;
use metrics::Counts;
use records::Records;
use recovery::Found;
use writeback::{Move, Pass};

/// Whose a command below is, in the bits above the number of it.
const KIND: u32 = 60;
const PACK: u64 = 1;
const FETCH: u64 = 2;
const COPY: u64 = 3;
const FLUSH: u64 = 4;
const SLOTS: u64 = 5;
const HEADER: u64 = 6;

/// The layer.
pub struct Restoring {
    array: Array<u64>,
    config: RestoringConfig,
    layout: Layout,
    /// Bytes kept of a sector.
    cell: usize,
    /// Most units of a request that goes to the log, and of a write to the log.
    most_units: u32,
    pack_units: u32,
    /// Places that a pass makes free, and those that are kept for it.
    range: u32,
    reserve: u32,
    is_timed: bool,

    commands: Vec<Option<Command>>,
    free: Vec<u32>,
    /// All commands. The device may carry out what it has at once in another order: it has several queues.
    overlaps: Overlaps,
    /// Changes below of units that are in the log: nothing else may change these meanwhile.
    changing: Overlaps,
    /// Commands that wait for copies of their units; for places in the log.
    held: Vec<u32>,
    for_places: VecDeque<u32>,
    /// A command on which others may wait has ended, or a copy, or a commit.
    has_ended: bool,

    table: RedirectionTable,
    ring: Ring,
    /// The position of the first place that is in use.
    tail: u64,
    packing: Packing,
    packs: Vec<Option<Pack>>,
    free_packs: Vec<u32>,
    packs_in_flight: u32,
    /// Reads below by place.
    readers: Vec<u32>,

    /// A request found no place.
    wants_room: bool,
    pass: Option<Pass>,
    moves: Vec<Option<Move>>,
    /// How often a place could not be read.
    failed: FxHashMap<u32, u32>,
    /// The oldest place cannot be read, and is needed: no place becomes free until its unit is changed.
    is_blocked: bool,
    /// The device has refused a copy or a record: nothing goes to the log any more.
    stuck: Option<Status>,

    records: Records,
    /// The device has a header that frees fewer places.
    header_is_stale: bool,
    /// What the table has gained and lost since the last commit, by unit; and what the commit's flush covers.
    pending: FxHashMap<u32, Pending>,
    flushing: FxHashMap<u32, Pending>,
    commit: Option<Commit>,
    /// Commands that wait for the next commit, and whether one of them needs its flush.
    joining: Vec<u32>,
    needs_flush: bool,

    numbers: u64,
    order: u64,
    outstanding: u64,
    taken: Traffic,
    counts: Counts,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
    paths: Vec<Path>,
    ended: Vec<Ended<u64>>,
}

impl Restoring {
    /// A layer above a device, with the table that one before it has left there.
    ///
    /// # Errors
    /// The device is too small or too large, has a log of another size, or does not give back what is kept of the table.
    pub fn new(below: Box<dyn crate::Device>, config: RestoringConfig) -> Result<Restoring, LayerError> {
        let identity = below.identify();
        let layout = config.layout(below.sectors(), identity.unit_bytes)?;
        let cell = below.cell_bytes();
        let mut array = Array::new(vec![below]);
        let keeps_table = config.table == TableIn::Drive;
        let Found { records, header_is_stale, stuck } =
            if keeps_table { recovery::find(&mut array, &layout, cell)? } else { Found::nothing(&layout) };
        let places_of = |bytes: u64| bytes / u64::from(identity.unit_bytes);
        let pack_units = places_of(config.pack).clamp(1, u64::from(u32::MAX)) as u32;
        let (most_range, least_free) = match config.restore {
            Restore::Ressd => (layout.places, 0),
            Restore::Lsdm => (layout.places / 2, 1),
        };
        let range = places_of(config.range).clamp(1, u64::from(most_range)) as u32;
        let mut table = RedirectionTable::new(layout.places);
        let head = records.tell(&mut table, (layout.sectors / layout.per_unit) as u32);
        let tail = records.freed();
        let array = array.for_layer(false);
        Ok(Restoring {
            array,
            cell,
            most_units: places_of(config.threshold).min(u64::from(pack_units.min(layout.places / 4))) as u32,
            pack_units,
            range,
            reserve: range * least_free,
            is_timed: identity.is_timed,
            commands: Vec::new(),
            free: Vec::new(),
            overlaps: Overlaps::default(),
            changing: Overlaps::default(),
            held: Vec::new(),
            for_places: VecDeque::new(),
            has_ended: false,
            table,
            ring: Ring::resumed(layout.places, (tail % u64::from(layout.places)) as u32, (head - tail) as u32),
            tail,
            packing: Packing::new(pack_units, identity.unit_bytes),
            packs: Vec::new(),
            free_packs: Vec::new(),
            packs_in_flight: 0,
            readers: vec![0; layout.places as usize],
            wants_room: false,
            pass: None,
            moves: Vec::new(),
            failed: FxHashMap::default(),
            is_blocked: false,
            stuck,
            records,
            header_is_stale,
            pending: FxHashMap::default(),
            flushing: FxHashMap::default(),
            commit: None,
            joining: Vec::new(),
            needs_flush: false,
            numbers: 0,
            order: 0,
            outstanding: 0,
            taken: Traffic::default(),
            counts: Counts::default(),
            completions: Vec::new(),
            read_data: Vec::new(),
            paths: Vec::new(),
            ended: Vec::new(),
            config,
            layout,
        })
    }

    /// Units that a request touches, if only in part.
    fn units_of(&self, request: &Request) -> Range<u32> {
        units_of(request, self.layout.per_unit)
    }

    /// Units that a request covers whole.
    fn whole_units_of(&self, request: &Request) -> Range<u32> {
        whole_units_of(request, self.layout.per_unit)
    }

    /// Whether one of these units is in the log.
    fn any_in_log(&self, units: &Range<u32>) -> bool {
        self.table.next(units.start, units.end, true) < units.end
    }

    /// The position of a place in use.
    const fn position_of(&self, place: u32) -> u64 {
        self.tail + self.ring.before(place) as u64
    }

    /// Takes what has ended below, sends what waited for it, and answers; until there is no more to do now.
    fn work(&mut self) {
        loop {
            let mut ended = std::mem::take(&mut self.ended);
            self.array.take(&mut ended);
            let any = !ended.is_empty();
            for part in ended.drain(..) {
                match part.purpose >> KIND {
                    PACK => self.pack_ended(&part),
                    FETCH => self.fetch_ended(part),
                    COPY => self.copy_ended(&part),
                    FLUSH => self.flush_ended(part),
                    SLOTS => self.slots_ended(&part),
                    HEADER => self.header_ended(&part),
                    _ => self.part_ended(part),
                }
            }
            self.ended = ended;
            if std::mem::take(&mut self.has_ended) {
                self.begin_unblocked();
            }
            self.restore();
            self.commit_if_due();
            self.send_packs();
            if !any && !self.has_ended && !self.array.any_has_ended() {
                return;
            }
        }
    }

    /// Whether a pack waits for the end of the instant.
    fn waits_for_more(&self) -> bool {
        self.packing.has_open() && self.may_send_pack()
    }

    /// Nothing else arrives now.
    fn end_instant(&mut self) {
        self.packing.close(Reason::Idle);
        self.work();
    }

    /// Runs what is next up to `until`; false if there is nothing.
    fn step(&mut self, until: Nanos) -> bool {
        let now = self.array.now();
        if self.waits_for_more() {
            if self.array.next_event().is_some_and(|at| at <= now) {
                self.array.run(now);
                self.work();
            } else {
                self.end_instant();
            }
            return true;
        }
        let any = self.array.step(until);
        self.work();
        any
    }

    /// Runs until none of the layer's own commands is below.
    fn come_to_rest(&mut self) {
        while self.waits_for_more() || self.array.in_flight(0) > 0 {
            assert!(self.step(Nanos::MAX), "the device never answers a command of the layer's");
        }
        assert!(self.commit.is_none() && self.joining.is_empty(), "a commit ends with its last command");
    }

    /// A device below lost its power, and with it what was not flushed: the table says what the device's records do.
    fn revert(&mut self) {
        self.abort_unacknowledged();
        if !seeded(LayerBug::TableKeptAfterLoss) {
            self.pending.clear();
            self.records.tell(&mut self.table, (self.layout.sectors / self.layout.per_unit) as u32);
        }
        self.moves_are_void();
        if self.pass.as_ref().is_some_and(Pass::is_undone_by_a_cut) {
            self.pass = None;
        }
        // What was begun and has not ended may have lost a part that had.
        for slot in 0..self.commands.len() as u32 {
            let Some(command) = &mut self.commands[slot as usize] else { continue };
            command.lost_its_parts();
            if command.is_below() && changes(command.request.op) {
                // Its units may be in the log again.
                self.begins_changing(slot);
            }
        }
        self.commit_is_lost();
        self.failed.clear();
        self.is_blocked = false;
        self.wants_room = !self.for_places.is_empty();
        self.has_ended = true;
    }

    /// Changes that ended before a device lost its power but were not acknowledged may or may not survive.
    fn abort_unacknowledged(&mut self) {
        self.array.take(&mut self.ended);
        for part in &mut self.ended {
            let Request { op, fua, .. } = part.request;
            if changes(op) && !fua && part.completion.status == Status::Success {
                part.completion.status = Status::Aborted;
            }
        }
        let changed = |completion: &&mut Completion| changes(completion.op) && completion.status == Status::Success;
        self.completions.iter_mut().filter(changed).for_each(|completion| completion.status = Status::Aborted);
    }

    /// Whether a copy that a power cut made void still writes one of these units.
    fn is_written_by_void(&self, units: &Range<u32>) -> bool {
        self.moves.iter().flatten().any(|one| one.is_void() && one.touches(units))
    }

    /// Places that hold a unit of the host's, as the table says.
    fn live_in(&self, count: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ring.oldest(count).filter_map(|place| Some((self.table.unit_at(place)?, place)))
    }

    /// A read of a whole unit, to ask what it overlaps.
    const fn unit_as_request(&self, unit: u32) -> Request {
        let per_unit = self.layout.per_unit;
        Request::new(Op::Read, unit as u64 * per_unit, per_unit)
    }

    /// Places whose units were copied, of a pass that has not freed them.
    fn copied(&mut self) -> Option<&mut FxHashSet<u32>> {
        self.pass.as_mut().map(Pass::copied)
    }
}

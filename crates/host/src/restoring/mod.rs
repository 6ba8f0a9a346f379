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
use ssdlab_device::Status;

use crate::layer::{Array, Ended, Io, Layer, Overlaps, Slots, Turn, changes, units_of, whole_units_of, widened};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::{Pack, Packing, Reason, RedirectionTable, Ring};
use crate::{Device, Identity, LayerError, LayerKind, LayerMetrics, Loss};

use command::State;
use commit::{Commit, Pending};
pub(crate) use config::LAYER;
pub use config::RestoringConfig;
use config::{Restore, TableIn};
use layout::Layout;
use metrics::Counts;
use records::Records;
use recovery::Found;
use writeback::{Move, Pass};

/// What a command below is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// A command from above, or a part of it.
    Part {
        slot: u32,
        part: usize,
    },
    /// A pack, by its number.
    Pack(u32),
    /// The read of a copy, for its units from `first` on.
    Fetch {
        copy: u32,
        first: usize,
    },
    /// The write of a copy.
    Copy(u32),
    /// The flush of a commit, by the commit's number.
    Flush(u64),
    /// Slots up to this one.
    Slots(u32),
    Header,
}

/// The layer.
pub struct Restoring {
    io: Io<Purpose, State>,
    config: RestoringConfig,
    layout: Layout,
    /// Most units of a request that goes to the log, and of a write to the log.
    most_units: u32,
    pack_units: u32,
    /// Places that a pass makes free, and those that are kept for it.
    range: u32,
    reserve: u32,

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
    packs: Slots<Pack>,
    packs_in_flight: u32,
    /// Reads below by place.
    readers: Vec<u32>,

    /// A request found no place.
    wants_room: bool,
    pass: Option<Pass>,
    moves: Slots<Move>,
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

    counts: Counts,
}

impl Restoring {
    /// A layer above a device, with the table that one before it has left there.
    ///
    /// # Errors
    /// The device is too small or too large, has a log of another size, or does not give back what is kept of the table.
    pub fn new(below: Box<dyn Device>, config: RestoringConfig) -> Result<Restoring, LayerError> {
        let identity = below.identify();
        let layout = config.layout(below.sectors(), identity.unit_bytes)?;
        let cell = below.sector_data_bytes();
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
        Ok(Restoring {
            io: Io::new(array, &LAYER),
            most_units: places_of(config.threshold).min(u64::from(pack_units.min(layout.places / 4))) as u32,
            pack_units,
            range,
            reserve: range * least_free,
            changing: Overlaps::default(),
            held: Vec::new(),
            for_places: VecDeque::new(),
            has_ended: false,
            table,
            ring: Ring::resumed(layout.places, (tail % u64::from(layout.places)) as u32, (head - tail) as u32),
            tail,
            packing: Packing::new(pack_units, identity.unit_bytes),
            packs: Slots::new(),
            packs_in_flight: 0,
            readers: vec![0; layout.places as usize],
            wants_room: false,
            pass: None,
            moves: Slots::new(),
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
            counts: Counts::default(),
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

    /// A device below lost its power, and with it what was not flushed: the table says what the device's records do.
    fn revert(&mut self) {
        self.io.abort_unacknowledged();
        if !seeded(LayerBug::TableKeptAfterLoss) {
            self.pending.clear();
            self.records.tell(&mut self.table, (self.layout.sectors / self.layout.per_unit) as u32);
        }
        self.moves_are_void();
        if self.pass.as_ref().is_some_and(Pass::is_undone_by_a_cut) {
            self.pass = None;
        }
        // What was begun and has not ended may have lost a part that had.
        let mut changed = Vec::new();
        for (slot, command) in self.io.commands.all_mut().filter(|(_, command)| command.left > 0) {
            if changes(command.request.op) {
                changed.push(slot);
                if command.has_effect() {
                    command.status = Status::Aborted;
                }
            }
            // A read that the device below repeats may find what an older place holds.
            command.state.is_void |= command.request.op == Op::Read && command.request.sectors > 0;
        }
        // Their units may be in the log again.
        changed.into_iter().for_each(|slot| self.begins_changing(slot));
        self.commit_is_lost();
        self.failed.clear();
        self.is_blocked = false;
        self.wants_room = !self.for_places.is_empty();
        self.has_ended = true;
    }

    /// Whether a copy that a power cut made void still writes one of these units.
    fn is_written_by_void(&self, units: &Range<u32>) -> bool {
        self.moves.all().any(|(_, one)| one.is_void() && one.touches(units))
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

impl Layer for Restoring {
    const KIND: LayerKind = LAYER;
    const HOLDS_INSTANT: bool = true;
    type Purpose = Purpose;
    type State = State;

    fn io(&self) -> &Io<Purpose, State> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<Purpose, State> {
        &mut self.io
    }

    fn capacity(&self) -> u64 {
        self.layout.sectors
    }

    /// Whole units: the device may carry out what it has at once in another order, since it has several queues.
    fn extent(&self, request: &Request) -> Request {
        widened(request, self.layout.per_unit)
    }

    fn start(&mut self, slot: u32, _: Turn) {
        self.begin(slot);
    }

    fn ended(&mut self, part: Ended<Purpose>) {
        match part.purpose {
            Purpose::Part { slot, part: index } => self.part_ended(part, slot, index),
            Purpose::Pack(pack) => self.pack_ended(&part, pack),
            Purpose::Fetch { copy, first } => self.fetch_ended(part, copy, first),
            Purpose::Copy(copy) => self.copy_ended(part.status, copy),
            Purpose::Flush(number) => self.flush_ended(part, number),
            Purpose::Slots(end) => self.slots_ended(&part, end),
            Purpose::Header => self.header_ended(part.status),
        }
    }

    fn proceed(&mut self) -> bool {
        if std::mem::take(&mut self.has_ended) {
            self.begin_unblocked();
        }
        self.restore();
        self.commit_if_due();
        self.send_packs();
        self.has_ended
    }

    /// A pack waits for the end of the instant.
    fn wakes_at(&self) -> Option<Nanos> {
        (self.packing.has_open() && self.may_send_pack()).then(|| self.io.array.now())
    }

    fn wake(&mut self) {
        self.packing.close(Reason::Idle);
    }

    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        if loss == Loss::Unflushed {
            self.revert();
        }
        loss
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        let below = |from, to| self.io.array.device(0).mapped_run(from, to);
        self.table.mapped_run(self.layout.per_unit, sector, end.min(self.layout.sectors), below)
    }

    /// Until a flush the table is in the host's memory alone, whatever the device below has.
    fn identity(&self, below: Identity) -> Identity {
        Identity { has_write_cache: true, has_host_cache: true, ..below }
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics { configuration: self.config.shown(), figures: self.figures(), ..LayerMetrics::default() }
    }

    fn reset_counts(&mut self) {
        assert!(self.commit.is_none() && self.joining.is_empty(), "a commit ends with its last command");
        self.counts = Counts::default();
        self.packing.reset();
    }
}

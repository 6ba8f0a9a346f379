//! The driver of SHRD (Kim et al., FAST 2017): small writes go to a log in the drive one behind the other, and the drive gives them
//! their own addresses back later.
//!
//! ```text
//!   small write      -> place in the ring -> pack -> twrite-header -> twrite-data -> table -> answer     (section 4.2)
//!   read             -> table -> log, home, or parts of both -> answer                                   (section 4.3)
//!   large write, trim -> home -> entries of its units leave the table -> answer
//!   ring is full     -> remaps of all that is in the table, by address -> the places are free again      (section 4.4)
//! ```
//!
//! Commands that overlap one that changes sectors, or touch a unit that a remap moves, wait for it; nothing else does. A write
//! of parts of a unit goes home; if the unit is in the log it is remapped before. The table is the host's own: after a power cut
//! the drive has given everything its own address, and a host that begins anew above a drive with power asks it to
//! ([`RESTORE`](ssdlab_base::command_sets::shrd::RESTORE)).

mod command;
mod config;
mod metrics;
mod randomizer;
mod twrites;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use ssdlab_base::command_sets::shrd::{MOST_ENTRIES, RESTORE, SHRD};
use ssdlab_base::{Nanos, Request, SECTOR_BYTES};
use ssdlab_device::Status;

use crate::layer::{Array, Ended, Io, Layer, Overlaps, Slots, Turn};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::{Pack, Packing, Reason, RedirectionTable, Ring};
use crate::{CommandList, Device, LayerError, LayerKind, LayerMetrics, Loss};

use command::State;
pub(crate) use config::LAYER;
pub use config::ShrdConfig;
use metrics::Counts;
use randomizer::{Dead, Moving, Pass};

/// What a command in the drive is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// A command from above, or a part of it.
    Part {
        slot: u32,
        part: usize,
    },
    /// The header of a twrite, by the twrite's number.
    Header(u32),
    Data(u32),
    /// A remap, by its number.
    Remap(u64),
    Trim,
    /// A flush of the driver's own, for so many changes that replaced copies in the log.
    Flush(u64),
}

/// A twrite in the drive, and the epoch of the host's in which it was packed.
struct Twrite {
    pack: Pack,
    epoch: u32,
}

/// The driver.
pub struct Shrd {
    io: Io<Purpose, State>,
    config: ShrdConfig,
    /// Sectors of the user's, and of a unit.
    capacity: u64,
    per_unit: u64,
    /// Binary logarithm of the sectors of a unit.
    unit_shift: u32,
    log_units: u32,
    /// Most units of a request that is sequentialized.
    most_units: u32,

    /// Changes in the drive of units that are in the log, too: a remap would bring the older copy over them.
    changing: Overlaps,
    /// Commands that wait for remaps; for units that have to be at home; for places in the log.
    held: Vec<u32>,
    for_home: Vec<u32>,
    for_places: VecDeque<u32>,
    /// A command on which others may wait has ended, or a remap.
    has_ended: bool,

    table: RedirectionTable,
    ring: Ring,
    packing: Packing,
    twrites: Slots<Twrite>,
    twrites_in_flight: u32,

    /// A request found no place.
    wants_room: bool,
    pass: Option<Pass>,
    moving: Vec<Moving>,
    /// Places that hold a copy which is not needed any more, and of which the drive was not told.
    dead: Vec<Dead>,
    /// Changes that made such a copy, so far; how many of them are on flash; and whether a flush for them is in the drive.
    replaced: u64,
    replaced_on_flash: u64,
    flushes: bool,
    /// So many dead places are worth a command.
    trims_at: usize,
    trims_in_flight: u32,
    /// Reads of the log in flight, by first sector and length.
    log_reads: BTreeMap<(u64, u64), u32>,
    /// The drive has refused a remap: nothing is sequentialized any more.
    stuck: Option<Status>,
    /// A write failed in the log and at its own address, or a change of units in the log failed at their own: part of it may be
    /// where nothing reads it, and come to light when the drive restores the log. Flushes do not succeed until then.
    in_doubt: Option<Status>,
    /// Power cuts of the drive.
    epoch: u32,

    counts: Counts,
    /// Commands that results list.
    sent: CommandList,
}

impl Shrd {
    /// A driver above a drive, which gives all that a driver before left in its log its own addresses first.
    ///
    /// # Errors
    /// The device below does not know the command set, or does not restore what is in its log.
    pub fn new(below: Box<dyn Device>, config: ShrdConfig) -> Result<Shrd, LayerError> {
        if below.command_set().is_none_or(|set| set.name != SHRD.name) {
            return Err(LayerError::UnknownSet {
                layer: LAYER.name,
                sets: SHRD.name.to_string(),
                design: below.identify().design,
            });
        }
        let unit_bytes = below.identify().unit_bytes;
        let (capacity, reserved) = (below.sectors(), below.reserved_sectors());
        let per_unit = u64::from(unit_bytes) / SECTOR_BYTES;
        assert!(per_unit.is_power_of_two(), "a unit of {unit_bytes} bytes is a power of two of sectors");
        let log_units = (reserved / per_unit) as u32;
        let pack_units = config.pack_units(unit_bytes);
        let mut array = Array::new(vec![below]);
        let in_doubt = if seeded(LayerBug::LogNotRestored) { None } else { restore(&mut array)? };
        Ok(Shrd {
            io: Io::new(array, &LAYER),
            capacity,
            per_unit,
            unit_shift: per_unit.trailing_zeros(),
            log_units,
            most_units: pack_units.min(log_units).min((config.threshold / u64::from(unit_bytes)) as u32),
            changing: Overlaps::default(),
            held: Vec::new(),
            for_home: Vec::new(),
            for_places: VecDeque::new(),
            has_ended: false,
            table: RedirectionTable::new(log_units),
            ring: Ring::new(log_units),
            packing: Packing::new(pack_units, unit_bytes),
            twrites: Slots::new(),
            twrites_in_flight: 0,
            wants_room: false,
            pass: None,
            moving: Vec::new(),
            dead: Vec::new(),
            replaced: 0,
            replaced_on_flash: 0,
            flushes: false,
            trims_at: MOST_ENTRIES,
            trims_in_flight: 0,
            log_reads: BTreeMap::new(),
            stuck: None,
            in_doubt,
            epoch: 0,
            counts: Counts::default(),
            sent: CommandList::default(),
            config,
        })
    }

    /// Units that a request touches, if only in part.
    #[inline]
    fn units_of(&self, request: &Request) -> Range<u32> {
        (request.sector >> self.unit_shift) as u32..self.units_up_to(request.end())
    }

    /// Units up to a sector, the last of them perhaps in part.
    #[inline]
    fn units_up_to(&self, sector: u64) -> u32 {
        ((sector + self.per_unit - 1) >> self.unit_shift) as u32
    }

    /// Units that a request covers whole.
    fn whole_units_of(&self, request: &Request) -> Range<u32> {
        let first = self.units_up_to(request.sector);
        first..((request.end() >> self.unit_shift) as u32).max(first)
    }

    /// Puts a command on the list for results, if there is one and it is not full.
    fn list(&mut self, kind: &str, first: u64, end: u64, entries: u64) {
        if self.sent.len() < self.config.list_commands as usize {
            self.sent.push(self.io.array.now(), kind, first, end, entries);
        }
    }

    /// Puts a command that accesses sectors one behind the other on the list for results, if there is one and it is not
    /// full.
    fn list_run(&mut self, kind: &str, request: &Request) {
        if self.config.list_commands > 0 && request.sectors > 0 {
            let (first, end) = (request.sector / self.per_unit, request.end().div_ceil(self.per_unit));
            self.list(kind, first, end, end - first);
        }
    }
}

/// Asks the drive to give all that is in its log its own addresses. A drive that takes no more writes may have kept a part of a write that
/// failed: that is in doubt then.
fn restore(array: &mut Array<()>) -> Result<Option<Status>, LayerError> {
    let spec = SHRD.command(RESTORE).expect("the set has it");
    match array.alone(0, Request::of_set(spec, 0, 0), &[], &[])?.status {
        Status::Success => Ok(None),
        Status::ReadOnly => Ok(Some(Status::ReadOnly)),
        status => Err(LayerError::Unreadable { layer: LAYER.name, device: 0, status }),
    }
}

impl Layer for Shrd {
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
        self.capacity
    }

    /// Whole units: the drive may carry out what it has at once in another order, since it has several queues.
    fn extent(&self, request: &Request) -> Request {
        if request.sectors == 0 {
            return *request;
        }
        let units = self.units_of(request);
        let (sector, sectors) = (u64::from(units.start) << self.unit_shift, (units.len() as u64) << self.unit_shift);
        Request { sector, sectors, ..*request }
    }

    fn start(&mut self, slot: u32, _: Turn) {
        self.begin(slot);
    }

    fn ended(&mut self, part: Ended<Purpose>) {
        match part.purpose {
            Purpose::Part { slot, part: index } => self.part_ended(part, slot, index),
            Purpose::Header(twrite) => self.header_ended(&part, twrite),
            Purpose::Data(twrite) => self.data_ended(&part, twrite),
            Purpose::Remap(number) => self.remap_ended(part.status, number),
            Purpose::Trim => self.trims_in_flight -= 1,
            Purpose::Flush(replaced) => self.own_flush_ended(part.status, replaced),
        }
    }

    fn proceed(&mut self) -> bool {
        if std::mem::take(&mut self.has_ended) {
            self.begin_unblocked();
        }
        self.randomize();
        self.send_packs();
        self.has_ended
    }

    /// A pack waits for the end of the instant.
    fn wakes_at(&self) -> Option<Nanos> {
        (self.packing.has_open() && self.may_send_twrite()).then(|| self.io.array.now())
    }

    fn wake(&mut self) {
        self.packing.close(Reason::Idle);
    }

    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        self.io.abort_unacknowledged();
        if !seeded(LayerBug::TableKeptAfterCut) {
            self.on_autoremap();
        }
        loss
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        self.table.mapped_run(self.per_unit, sector, end, |from, to| self.io.array.device(0).mapped_run(from, to))
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics {
            configuration: self.config.shown(),
            figures: self.figures(),
            commands: (self.config.list_commands > 0).then(|| self.sent.clone()),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.sent = CommandList::default();
        self.packing.reset();
    }
}

impl Shrd {
    /// The drive lost its power: it has given everything in the log its own address.
    fn on_autoremap(&mut self) {
        self.epoch += 1;
        self.table.clear();
        self.ring = Ring::new(self.log_units);
        self.moving.clear();
        self.dead.clear();
        self.log_reads.clear();
        (self.pass, self.stuck, self.in_doubt) = (None, None, None);
        self.wants_room = !self.for_places.is_empty();
        self.has_ended = true;
        for pack in self.packing.take_apart() {
            for slot in pack.commands {
                self.again(slot);
            }
        }
    }
}

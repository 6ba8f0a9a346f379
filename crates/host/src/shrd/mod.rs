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
use ssdlab_device::path::Path;
use ssdlab_device::{Completion, Counters, Data, Payload, Status};

use crate::device::Again;
use crate::layer::{Array, Ended, Overlaps, changes, completion, turned_away};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::{Pack, Packing, Reason, RedirectionTable, Ring};
use crate::{
    Administration, BlockDevice, CommandList, Device, Identity, LayerError, LayerMetrics, Loss, Member, Part, PartMut,
    Power, Traffic,
};

use command::Command;
pub(crate) use config::LAYER;
pub use config::ShrdConfig;
use metrics::Counts;
use randomizer::{Dead, Moving, Pass};

/// Whose a command below is, in the bits above the number of it.
const KIND: u32 = 60;
const HEADER: u64 = 1;
const DATA: u64 = 2;
const REMAP: u64 = 3;
const TRIM: u64 = 4;
const FLUSH: u64 = 5;

/// A twrite in the drive, and the epoch of the host's in which it was packed.
struct Twrite {
    pack: Pack,
    epoch: u32,
}

/// The driver.
pub struct Shrd {
    array: Array<u64>,
    config: ShrdConfig,
    /// Sectors of the user's, and of a unit.
    capacity: u64,
    per_unit: u64,
    /// Binary logarithm of the sectors of a unit.
    unit_shift: u32,
    /// Bytes kept of a sector.
    cell: usize,
    log_units: u32,
    /// Most units of a request that is sequentialized.
    most_units: u32,
    is_timed: bool,

    commands: Vec<Option<Command>>,
    free: Vec<u32>,
    /// All commands. The drive may carry out what it has at once in another order: it has several queues.
    overlaps: Overlaps,
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
    twrites: Vec<Option<Twrite>>,
    free_twrites: Vec<u32>,
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

    numbers: u64,
    order: u64,
    outstanding: u64,
    taken: Traffic,
    counts: Counts,
    /// Commands that results list.
    sent: CommandList,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
    paths: Vec<Path>,
    ended: Vec<Ended<u64>>,
}

impl Shrd {
    /// A driver above a drive, which gives all that a driver before left in its log its own addresses first.
    ///
    /// # Errors
    /// The device below is no drive, does not know the command set, or does not restore what is in its log.
    pub fn new(below: Box<dyn Device>, config: ShrdConfig) -> Result<Shrd, LayerError> {
        if !below.layers().is_empty() {
            return Err(LayerError::NoDrive { layer: LAYER.name });
        }
        if below.command_set().is_none_or(|set| set.name != SHRD.name) {
            return Err(LayerError::UnknownSet {
                layer: LAYER.name,
                sets: SHRD.name.to_string(),
                design: below.identify().design,
            });
        }
        let Identity { unit_bytes, is_timed, .. } = below.identify();
        let (capacity, reserved, cell) = (below.sectors(), below.reserved_sectors(), below.cell_bytes());
        let per_unit = u64::from(unit_bytes) / SECTOR_BYTES;
        assert!(per_unit.is_power_of_two(), "a unit of {unit_bytes} bytes is a power of two of sectors");
        let log_units = (reserved / per_unit) as u32;
        let pack_units = config.pack_units(unit_bytes);
        let mut array = Array::new(vec![below]);
        if !seeded(LayerBug::LogNotRestored) {
            restore(&mut array)?;
        }
        let array = array.for_layer(false);
        Ok(Shrd {
            array,
            capacity,
            per_unit,
            unit_shift: per_unit.trailing_zeros(),
            cell,
            log_units,
            most_units: pack_units.min(log_units).min((config.threshold / u64::from(unit_bytes)) as u32),
            is_timed,
            commands: Vec::new(),
            free: Vec::new(),
            overlaps: Overlaps::default(),
            changing: Overlaps::default(),
            held: Vec::new(),
            for_home: Vec::new(),
            for_places: VecDeque::new(),
            has_ended: false,
            table: RedirectionTable::new(log_units),
            ring: Ring::new(log_units),
            packing: Packing::new(pack_units, unit_bytes),
            twrites: Vec::new(),
            free_twrites: Vec::new(),
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
            in_doubt: None,
            epoch: 0,
            numbers: 0,
            order: 0,
            outstanding: 0,
            taken: Traffic::default(),
            counts: Counts::default(),
            sent: CommandList::default(),
            completions: Vec::new(),
            read_data: Vec::new(),
            paths: Vec::new(),
            ended: Vec::new(),
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
            self.sent.push(self.array.now(), kind, first, end, entries);
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

    /// Takes what has ended in the drive, sends what waited for it, and answers; until there is no more to do now.
    fn work(&mut self) {
        loop {
            let mut ended = std::mem::take(&mut self.ended);
            self.array.take(&mut ended);
            let any = !ended.is_empty();
            for part in &mut ended {
                match part.purpose >> KIND {
                    HEADER => self.header_ended(part),
                    DATA => self.data_ended(part),
                    REMAP => self.remap_ended(part),
                    TRIM => self.trims_in_flight -= 1,
                    FLUSH => self.own_flush_ended(part),
                    _ => self.part_ended(part),
                }
            }
            ended.clear();
            self.ended = ended;
            if std::mem::take(&mut self.has_ended) {
                self.begin_unblocked();
            }
            self.randomize();
            self.send_packs();
            if !any && !self.has_ended && !self.array.any_has_ended() {
                return;
            }
        }
    }

    /// Whether a pack waits for the end of the instant.
    fn waits_for_more(&self) -> bool {
        self.packing.has_open() && self.may_send_twrite()
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

    /// Runs until none of the driver's own commands is in the drive.
    fn come_to_rest(&mut self) {
        while self.waits_for_more() || self.array.in_flight(0) > 0 {
            assert!(self.step(Nanos::MAX), "the drive never answers a command of the driver's");
        }
    }
}

/// Asks the drive to give all that is in its log its own addresses.
fn restore(array: &mut Array<()>) -> Result<(), LayerError> {
    let spec = SHRD.command(RESTORE).expect("the set has it");
    match array.alone(0, Request::of_set(spec, 0, 0), &[], &[])?.completion.status {
        Status::Success => Ok(()),
        status => Err(LayerError::Unreadable { layer: LAYER.name, device: 0, status }),
    }
}

impl BlockDevice for Shrd {
    fn sectors(&self) -> u64 {
        self.capacity
    }

    fn cell_bytes(&self) -> usize {
        self.cell
    }

    fn now(&self) -> Nanos {
        self.array.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        // Requests of one instant are packed together, so that only what is before it ends.
        if request.at > self.array.now() {
            self.run_until(request.at);
        }
        self.outstanding += 1;
        if let Some(status) = turned_away(request, self.capacity) {
            self.order += 1;
            self.outstanding -= 1;
            self.taken.add(request);
            self.paths.extend(self.array.records_paths().then(|| Path { request: *request, segments: Vec::new() }));
            self.completions.push(completion(request, status, self.array.now(), self.order - 1));
            return;
        }
        self.arrive(*request, data);
        self.work();
        if !self.is_timed {
            self.come_to_rest();
        }
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        self.submit(request, payload.data);
    }

    fn prefetch(&mut self, requests: &[Request]) {
        self.array.device_mut(0).prefetch(requests);
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.waits_for_more() { Some(self.array.now()) } else { self.array.next_event() }
    }

    fn run_until(&mut self, until: Nanos) {
        while (self.waits_for_more() || self.array.has_work(until)) && self.step(until) {}
        self.array.advance(until);
        self.work();
        if self.waits_for_more() {
            self.end_instant();
        }
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        while self.completions.is_empty() && self.step(until) {}
        !self.completions.is_empty()
    }

    fn outstanding(&self) -> u64 {
        self.outstanding
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        to.append(&mut self.paths);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        let run = |from: u64| {
            let (unit, last) = ((from >> self.unit_shift) as u32, self.units_up_to(end));
            if self.table.place_of(unit).is_some() {
                return (true, end.min(u64::from(self.table.next(unit, last, false)) * self.per_unit));
            }
            let home = end.min(u64::from(self.table.next(unit, last, true)) * self.per_unit);
            self.array.device(0).mapped_run(from, home)
        };
        let (is_mapped, mut to) = run(sector);
        while to < end {
            let (next_is_mapped, next) = run(to);
            if next_is_mapped != is_mapped {
                break;
            }
            to = next;
        }
        (is_mapped, to)
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for Shrd {
    fn identify(&self) -> Identity {
        self.array.device(0).identify()
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        self.array.layers(LayerMetrics {
            kind: LAYER.name.to_string(),
            configuration: self.config.shown(),
            taken: self.taken,
            figures: self.figures(),
            commands: (self.config.list_commands > 0).then(|| self.sent.clone()),
            ..LayerMetrics::default()
        })
    }

    fn set_timed(&mut self, timed: bool) {
        self.come_to_rest();
        self.array.set_timed(timed);
        self.is_timed = timed;
        self.work();
    }

    fn record_paths(&mut self, on: bool) {
        self.array.record_paths(on);
    }

    fn taken(&self) -> Traffic {
        self.taken
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.array.parts()
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        self.array.parts_mut()
    }

    fn reset_statistics(&mut self) {
        assert_eq!(self.outstanding, 0, "only an idle driver can be reset");
        self.come_to_rest();
        self.array.reset_statistics();
        (self.order, self.counts, self.taken) = (0, Counts::default(), Traffic::default());
        self.sent = CommandList::default();
        self.packing.reset();
    }

    fn counters(&self) -> Counters {
        self.array.device(0).counters()
    }
}

impl Power for Shrd {
    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        self.work();
        let (_, loss) = self.array.cut(part, again);
        self.abort_unacknowledged();
        if !seeded(LayerBug::TableKeptAfterCut) {
            self.on_autoremap();
        }
        self.work();
        loss
    }

    fn close(&mut self) {
        self.array.devices_mut().for_each(|device| device.close());
    }

    fn into_members(mut self: Box<Self>) -> Vec<Member> {
        self.array.take_members()
    }

    fn persist(&mut self) -> bool {
        self.array.device_mut(0).persist()
    }

    fn forget(&mut self) {
        self.array.device_mut(0).forget();
    }

    fn broken_image(&self) -> Option<String> {
        self.array.device(0).broken_image()
    }
}

impl Shrd {
    /// Changes that ended before the drive lost its power but were not acknowledged may or may not survive.
    fn abort_unacknowledged(&mut self) {
        self.array.take(&mut self.ended);
        for part in &mut self.ended {
            let Request { op, opcode, fua, .. } = part.request;
            if opcode.is_block() && changes(op) && !fua && part.completion.status == Status::Success {
                part.completion.status = Status::Aborted;
            }
        }
        for completion in self.completions.iter_mut().filter(|completion| changes(completion.op)) {
            if completion.status == Status::Success {
                completion.status = Status::Aborted;
            }
        }
    }

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

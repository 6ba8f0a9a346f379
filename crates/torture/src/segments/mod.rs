//! A host of append-only segments, or of zones over them: it appends to several, trims, flushes, reads, and breaks the
//! rules on purpose; it has several commands in flight, and the power goes. It knows segment size, write unit and what
//! it sent, and nothing else of the drive.
//!
//! What completed is readable after a power cut, though sectors before it may be missing. A trim that a flush covered
//! never comes back; one that none covered may, as a whole. A segment that has everything before its last sector goes
//! on; one with a hole takes no more before its trim.

mod case;
mod script;

pub use case::{SegmentScope, Segments};
pub use script::{Kind, Rule, SegmentCommand};

use ssdlab_base::command_sets::segments::{
    self, CLOSED, CROSSES_SEGMENTS, GAP, OVERWRITE, PART_OF_SEGMENT, SEGMENTS, Segment, SegmentState,
};
use ssdlab_base::command_sets::zoned::{self, ZONED, Zone, ZoneShape, ZoneState};
use ssdlab_base::{CommandSpec, Nanos, Op, Opcode, Refusal, Request};
use ssdlab_device::{Data, Drive, Options, Payload, Status, sector_stamp};
use ssdlab_flash::{Contents, OpKind};
use ssdlab_host::BlockDevice as _;

use crate::case::{Allowed, Case, Refused};
use crate::cut::{PoweredDrive, Stop};
use crate::driver::alone;
use crate::journal::stamps;
use crate::totals::Totals;

/// The stamp of what a finish wrote: zeroes.
const ZEROES: u32 = u32::MAX;

/// What a sector holds.
fn cell_of(stamp: u32, sector: u64) -> u64 {
    if stamp == ZEROES { 0 } else { sector_stamp(stamp.into(), sector) }
}

/// A write unit of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    /// 0 where it is missing since a power cut.
    stamp: u32,
    acknowledged: bool,
}

/// A segment from one trim to the next.
#[derive(Clone, Debug, Default)]
struct Life {
    units: Vec<Unit>,
    closed: bool,
}

/// A segment: its lives, the current one last.
#[derive(Clone, Debug)]
struct Modelled {
    lives: Vec<Life>,
    /// Lives before this one ended with a trim that completed.
    trimmed: usize,
    /// Lives before this one ended with a trim that completed and that a flush covered, or FUA.
    durable: usize,
    /// Of a zone.
    state: ZoneState,
}

impl Modelled {
    fn new() -> Modelled {
        Modelled { lives: vec![Life::default()], trimmed: 0, durable: 0, state: ZoneState::Empty }
    }

    fn now(&mut self) -> &mut Life {
        self.lives.last_mut().expect("a segment has a life")
    }

    fn written(&self) -> usize {
        self.lives.last().map_or(0, |life| life.units.len())
    }

    fn is_closed(&self) -> bool {
        self.lives.last().is_some_and(|life| life.closed)
    }

    /// Whether so many units from `first` on can be read.
    fn can_be_read(&self, first: usize, count: usize) -> bool {
        let units = self.lives.last().and_then(|life| life.units.get(first..first + count));
        units.is_some_and(|units| units.iter().all(|unit| unit.stamp > 0))
    }
}

/// What a command must come to.
#[derive(Clone, Debug)]
enum Expected {
    /// Units of a life of a segment are written.
    Written {
        segment: usize,
        life: usize,
        first: usize,
        count: usize,
        /// Where an append of zones has to say that it went.
        told: Option<u64>,
    },
    /// The state of a zone changes.
    Acted,
    /// Segments are trimmed: each with the life that begins then.
    Trimmed {
        lives: Vec<(usize, usize)>,
        fua: bool,
    },
    /// Trims that had completed are durable: of each segment the lives before this one.
    Flushed(Vec<usize>),
    /// Stamps of units, from a unit of the drive on.
    Read {
        segment: usize,
        first: usize,
        stamps: Vec<u32>,
    },
    Refused(Refusal),
}

/// A host with several commands in flight.
pub struct SegmentHost {
    power: PoweredDrive,
    /// Where the drive has zones.
    zones: Option<ZoneShape>,
    /// Sectors of a write unit.
    per_unit: u64,
    /// Units of a segment.
    units: usize,
    segments: Vec<Modelled>,
    /// By tag.
    in_flight_work: Vec<Option<Expected>>,
    next_stamp: u32,
    allowed: Allowed,
    /// Flushes and FUA commands that have completed.
    durable: u64,
    /// The drive takes no more writes.
    is_over: bool,
}

impl SegmentHost {
    /// A host of a new drive; `None` where that has no segments.
    fn new(case: &Case<Segments>) -> Result<Option<SegmentHost>, Refused> {
        let options = Options { seed: case.seed, contents: Contents::Stamps };
        let mut power = PoweredDrive::new(&case.drive, options)?;
        let (drive, allowed) = (power.get(), case.allows(&case.drive));
        allowed.prepare(drive);
        let zones = drive.zones();
        let (sectors, count, write_unit) = match (drive.segments(), zones) {
            (Some(shape), None) => (shape.sectors, shape.count, shape.write_unit),
            (None, Some(shape)) => (shape.capacity, shape.count, shape.write_unit),
            _ => return Ok(None),
        };
        Ok(Some(SegmentHost {
            power,
            zones,
            per_unit: write_unit,
            units: (sectors / write_unit) as usize,
            segments: vec![Modelled::new(); count as usize],
            in_flight_work: Vec::new(),
            next_stamp: 0,
            allowed,
            durable: 0,
            is_over: false,
        }))
    }

    fn drive(&mut self) -> &mut Drive {
        self.power.get()
    }

    /// Segments, and units of one.
    const fn shape(&self) -> (usize, usize) {
        (self.segments.len(), self.units)
    }

    const fn has_zones(&self) -> bool {
        self.zones.is_some()
    }

    /// Queues of the drive.
    const fn queues(&self) -> u16 {
        self.power.config.interface.queues as u16
    }

    /// Units that a segment takes.
    fn left(&self, segment: usize) -> usize {
        let modelled = &self.segments[segment];
        if modelled.is_closed() { 0 } else { self.units - modelled.written() }
    }

    fn sector(&self, segment: usize, unit: usize) -> u64 {
        let size = self.zones.map_or(self.units as u64 * self.per_unit, |shape| shape.size);
        segment as u64 * size + unit as u64 * self.per_unit
    }

    /// Whether a segment takes no more, as zones have it.
    fn is_full(&self, segment: usize) -> bool {
        self.segments[segment].is_closed() || self.segments[segment].written() == self.units
    }

    /// Why a read of what is not written is refused.
    const fn unwritten(&self) -> Refusal {
        if self.zones.is_some() { zoned::UNWRITTEN } else { segments::UNWRITTEN }
    }

    fn submit(&mut self, request: Request, stamp: u32, expected: Expected) {
        let tag = self.in_flight_work.len() as u32;
        // What a drive that takes no more writes has refused is expected to have taken effect.
        let is_refused = matches!(expected, Expected::Refused(_)) && !self.drive().is_read_only();
        self.in_flight_work.push(Some(expected));
        let drive = self.drive();
        let programs = |drive: &Drive| drive.counters().flash.total(OpKind::Program);
        let (before, order) = (programs(drive), drive.completions().len());
        let request = Request { at: drive.now(), tag, ..request };
        drive.submit_command(&request, Payload { data: Data::Stamp(stamp.into()), words: &[] });
        if is_refused {
            let told = drive.completions().len() == order + 1;
            assert!(told, "{request:?} is to be refused, and is not answered at once");
            assert_eq!(before, programs(drive), "{request:?} is refused, and programs a page");
        }
    }

    /// Appends units to a segment.
    fn append(&mut self, segment: usize, count: usize, append: bool, fua: bool, queue: u16) {
        self.next_stamp += 1;
        let stamp = self.next_stamp;
        let (life, first) = (self.segments[segment].lives.len() - 1, self.segments[segment].written());
        assert!(count > 0 && first + count <= self.units, "{count} units behind {first} of segment {segment}");
        self.segments[segment].now().units.extend(vec![Unit { stamp, acknowledged: false }; count]);
        let (place, sectors) = (self.sector(segment, first), count as u64 * self.per_unit);
        let request = Request { queue, fua, ..Request::new(Op::Write, place, sectors) };
        let state = self.segments[segment].state;
        self.segments[segment].state = match state {
            _ if first + count == self.units => ZoneState::Full,
            ZoneState::ExplicitlyOpen => state,
            _ => ZoneState::ImplicitlyOpen,
        };
        if self.zones.is_some() && append {
            let request = Request { opcode: zoned::APPEND, sector: self.sector(segment, 0), ..request };
            let told = Some(place);
            return self.submit(request, stamp, Expected::Written { segment, life, first, count, told });
        }
        self.submit(request, stamp, Expected::Written { segment, life, first, count, told: None });
    }

    /// An action on a zone, and whether its state allows it.
    fn act(&mut self, opcode: Opcode, segment: usize, queue: u16) {
        let full = self.is_full(segment);
        let (units, sector, size) = (self.units, self.sector(segment, 0), self.sector(1, 0));
        let modelled = &mut self.segments[segment];
        let (life, first) = (modelled.lives.len() - 1, modelled.written());
        let state = modelled.state;
        let (after, expected) = match opcode {
            zoned::OPEN if state != ZoneState::Full => (ZoneState::ExplicitlyOpen, Expected::Acted),
            zoned::CLOSE if state.is_active() => (ZoneState::Closed, Expected::Acted),
            zoned::FINISH if full => (ZoneState::Full, Expected::Acted),
            zoned::FINISH => {
                let count = units - first;
                modelled.now().units.extend(vec![Unit { stamp: ZEROES, acknowledged: false }; count]);
                (ZoneState::Full, Expected::Written { segment, life, first, count, told: None })
            }
            _ => (state, Expected::Refused(zoned::INVALID_TRANSITION)),
        };
        self.segments[segment].state = after;
        let request = Request { opcode, queue, ..Request::new(Op::Trim, sector, size) };
        self.submit(request, 0, expected);
    }

    fn trim(&mut self, first: usize, count: usize, fua: bool, queue: u16) {
        assert!(count > 0 && first + count <= self.segments.len(), "{count} segments from {first} on");
        let mut lives = Vec::new();
        for segment in first..first + count {
            self.segments[segment].lives.push(Life::default());
            self.segments[segment].state = ZoneState::Empty;
            lives.push((segment, self.segments[segment].lives.len() - 1));
        }
        let request = Request::new(Op::Trim, self.sector(first, 0), self.sector(count, 0));
        let opcode = if self.zones.is_some() { zoned::RESET } else { Opcode::BLOCK };
        self.submit(Request { fua, queue, opcode, ..request }, 0, Expected::Trimmed { lives, fua });
    }

    fn flush(&mut self) {
        let covers = self.segments.iter().map(|segment| segment.trimmed).collect();
        self.submit(Request::new(Op::Flush, 0, 0), 0, Expected::Flushed(covers));
    }

    fn read(&mut self, segment: usize, first: usize, count: usize, queue: u16) {
        let request = Request::new(Op::Read, self.sector(segment, first), count as u64 * self.per_unit);
        assert!(first + count <= self.units, "{count} units from {first} on of segment {segment}");
        let modelled = &self.segments[segment];
        let expected = if modelled.can_be_read(first, count) {
            let units = &modelled.lives[modelled.lives.len() - 1].units[first..first + count];
            Expected::Read { segment, first, stamps: units.iter().map(|unit| unit.stamp).collect() }
        } else {
            Expected::Refused(self.unwritten())
        };
        self.submit(Request { queue, ..request }, 0, expected);
    }

    /// A command that breaks a rule: it is refused for its reason.
    fn violate(&mut self, rule: Rule, segment: usize, place: usize) {
        let modelled = &self.segments[segment];
        let (written, closed) = (modelled.written(), modelled.is_closed());
        let per_unit = self.per_unit;
        let at = |unit: usize| self.sector(segment, unit);
        let units = self.units;
        let (op, sector, sectors, reason) = match rule {
            Rule::Overwrite if written > 0 => (Op::Write, at(place % written), per_unit, OVERWRITE),
            Rule::Gap if written + 1 < units && !closed => {
                let first = written + 1;
                (Op::Write, at(first + place % (units - first)), per_unit, GAP)
            }
            Rule::Closed if closed && written < units => (Op::Write, at(written), per_unit, CLOSED),
            Rule::Crosses if segment + 1 < self.segments.len() => {
                (Op::Write, at(units - 1), 2 * per_unit, CROSSES_SEGMENTS)
            }
            Rule::PartOfUnit if per_unit > 1 && written < units => {
                let (skip, sectors) = [(0, per_unit - 1), (1, per_unit)][place % 2];
                (Op::Write, at(written) + skip, sectors, segments::PART_OF_WRITE_UNIT)
            }
            Rule::PartOfSegment => (Op::Trim, at(0), per_unit * (units as u64 - 1), PART_OF_SEGMENT),
            Rule::Unwritten if written < units => (Op::Read, at(written), per_unit, self.unwritten()),
            _ => (Op::Trim, at(0) + 1, per_unit * units as u64, PART_OF_SEGMENT),
        };
        let breaks_nothing = op == Op::Trim && (sectors == 0 || self.sector(1, 0) == 1);
        if breaks_nothing || sector + sectors > self.sector(self.segments.len(), 0) {
            return;
        }
        let is_reset = self.zones.is_some() && op == Op::Trim;
        let opcode = if is_reset { zoned::RESET } else { Opcode::BLOCK };
        let reason = if self.zones.is_some() { self.reason_of_zones(segment, reason) } else { reason };
        self.submit(Request { opcode, ..Request::new(op, sector, sectors) }, 0, Expected::Refused(reason));
    }

    /// What the set `zoned` calls a broken rule of segments.
    fn reason_of_zones(&self, segment: usize, reason: Refusal) -> Refusal {
        match reason {
            segments::PART_OF_WRITE_UNIT => zoned::PART_OF_WRITE_UNIT,
            PART_OF_SEGMENT => zoned::NOT_A_ZONE,
            OVERWRITE | CLOSED | GAP | CROSSES_SEGMENTS if self.is_full(segment) => zoned::ZONE_IS_FULL,
            OVERWRITE | GAP => zoned::INVALID_WRITE,
            CROSSES_SEGMENTS => zoned::ZONE_BOUNDARY,
            other => other,
        }
    }

    /// Whether a command came to what it must; the host learns what is durable now.
    fn completed(&mut self, tag: u32, status: Status, cells: &[u64], answer: &[u64]) -> Result<(), Stop> {
        let expected = self.in_flight_work[tag as usize].take().expect("each command completes once");
        // The zones of a drive that takes no more writes change no more.
        let is_of_zones = self.zones.is_some() && status == Status::Refused(zoned::INVALID_TRANSITION);
        let is_refused = status == Status::ReadOnly || is_of_zones && self.drive().is_read_only();
        if is_refused && self.allowed.read_only {
            return Err(Stop::ReadOnly);
        }
        match expected {
            Expected::Refused(reason) => assert_eq!(status, Status::Refused(reason), "a command that breaks a rule"),
            Expected::Acted => assert_eq!(status, Status::Success, "an action on a zone"),
            Expected::Read { segment, first, stamps } => {
                if status == Status::UncorrectableRead && self.allowed.failed_reads {
                    return Ok(());
                }
                assert_eq!(status, Status::Success, "a read of unit {first} of segment {segment}");
                for (index, stamp) in stamps.iter().enumerate() {
                    let place = self.sector(segment, first + index);
                    self.compare(place, *stamp, &cells[index * self.per_unit as usize..]);
                }
            }
            Expected::Written { segment, life, first, count, told } => {
                assert_eq!(status, Status::Success, "units {first} to {} of segment {segment}", first + count);
                assert!(
                    told.is_none_or(|told| answer == [told]),
                    "an append to {told:?} says that it went to {answer:?}"
                );
                for unit in &mut self.segments[segment].lives[life].units[first..first + count] {
                    unit.acknowledged = true;
                }
            }
            Expected::Trimmed { lives, fua } => {
                assert_eq!(status, Status::Success, "a trim of {lives:?}");
                for (segment, life) in lives {
                    let modelled = &mut self.segments[segment];
                    modelled.trimmed = modelled.trimmed.max(life);
                    if fua {
                        modelled.durable = modelled.durable.max(life);
                    }
                }
                self.durable += u64::from(fua);
            }
            Expected::Flushed(covers) => {
                assert_eq!(status, Status::Success, "a flush");
                self.durable += 1;
                for (modelled, life) in self.segments.iter_mut().zip(covers) {
                    modelled.durable = modelled.durable.max(life);
                }
            }
        }
        Ok(())
    }

    fn compare(&self, place: u64, stamp: u32, cells: &[u64]) {
        for (sector, cell) in (place..).zip(&cells[..self.per_unit as usize]) {
            assert_eq!(*cell, cell_of(stamp, sector), "sector {sector}, of a unit with stamp {stamp}");
        }
    }

    /// Takes what completed.
    fn take_completions(&mut self) -> Result<(), Stop> {
        let drive = self.drive();
        let done = std::mem::take(drive.completions());
        let data = std::mem::take(drive.read_data());
        let answers = std::mem::take(drive.answers());
        let mut stop = Ok(());
        for done in done {
            let cells = data.iter().find(|(tag, _)| *tag == done.tag).map_or(&[][..], |(_, cells)| cells);
            let cells = stamps(cells);
            let answer = answers.iter().find(|answer| answer.tag == done.tag).map_or(&[][..], |answer| &answer.words);
            stop = self.completed(done.tag, done.status, &cells, answer);
            if stop.is_err() {
                // What comes behind a write that failed may rely on it.
                break;
            }
        }
        stop
    }

    /// Waits for all commands.
    fn wait(&mut self) -> Result<(), Stop> {
        self.take_completions()?;
        while self.in_flight_work.iter().any(Option::is_some) {
            if self.power.is_due(self.durable) {
                return Err(Stop::Cut);
            }
            let goes_on = self.power.run_event();
            assert!(goes_on, "commands never complete: {:?}", self.in_flight_work.iter().flatten().next());
            self.take_completions()?;
        }
        self.in_flight_work.clear();
        Ok(())
    }

    /// Every segment and unit is as it must be.
    fn compare_all(&mut self) -> Result<(), Stop> {
        for segment in 0..self.segments.len() {
            let modelled = &self.segments[segment];
            let written = modelled.written() as u64 * self.per_unit;
            if self.zones.is_some() {
                let state =
                    if self.drive().is_read_only() { ZoneState::ReadOnly } else { self.segments[segment].state };
                let expected = Some(Zone { state, written });
                assert_eq!(self.drive().zone(segment as u64), expected, "zone {segment}");
            } else {
                let state = match modelled.written() {
                    _ if modelled.is_closed() => SegmentState::Closed,
                    0 => SegmentState::Free,
                    written if written == self.units => SegmentState::Full,
                    _ => SegmentState::Open,
                };
                let expected = Some(Segment { state, written });
                assert_eq!(self.drive().segment(segment as u64), expected, "segment {segment}");
            }
            for unit in 0..self.units {
                self.read(segment, unit, 1, 0);
            }
            self.wait()?;
        }
        self.report();
        self.power.check();
        Ok(())
    }

    /// The report says of each segment what the drive says in process.
    fn report(&mut self) {
        let count = self.segments.len() as u64;
        let set = if self.zones.is_some() { &ZONED } else { &SEGMENTS };
        let spec: &CommandSpec = set.find("report").expect("of the set");
        let drive = self.drive();
        let request = Request { at: drive.now(), tag: u32::MAX, ..Request::of_set(spec, 0, 0) };
        drive.submit_command(&request, Payload { data: Data::Nothing, words: &[0, count] });
        assert!(drive.wait_for_completion(Nanos::MAX), "a report completes");
        let done = drive.completions().pop().expect("one command");
        assert_eq!((done.status, done.has_answer), (Status::Success, true), "a report");
        let answer = drive.answers().pop().expect("an answer");
        let reported = answer.bytes.chunks_exact(8).map(|bytes| bytes.try_into().expect("8 bytes"));
        if let Some(shape) = drive.zones() {
            let ZoneShape { size, capacity, count, write_unit, max_open, max_active } = shape;
            assert_eq!(answer.words, [size, count, write_unit, capacity, max_open.into(), max_active.into()]);
            let told: Vec<Option<Zone>> = (0..count).map(|zone| drive.zone(zone)).collect();
            assert_eq!(reported.map(Zone::decode).collect::<Vec<_>>(), told, "the report and what the drive says");
        } else {
            let shape = drive.segments().expect("a drive with segments");
            assert_eq!(answer.words, [shape.sectors, shape.count, shape.write_unit]);
            let told: Vec<Option<Segment>> = (0..count).map(|segment| drive.segment(segment)).collect();
            assert_eq!(reported.map(Segment::decode).collect::<Vec<_>>(), told, "the report and what the drive says");
        }
    }

    /// The power goes, by the cut that waits or at once, and comes back.
    fn cut(&mut self, totals: &mut Totals) {
        let cut = self.power.take_trap();
        self.power.pass_part(&cut);
        // What completed before the cut did so.
        let _ = self.take_completions();
        self.in_flight_work.clear();
        self.power.cut(&cut, totals);
        for segment in 0..self.segments.len() {
            self.found_after_cut(segment);
        }
        totals.sectors_compared += self.drive().user_sectors();
        let compared = self.compare_all();
        assert!(compared != Err(Stop::Cut), "no cut is due");
    }

    /// What a unit holds: nothing where it cannot be read, 0 where its read fails.
    fn look(&mut self, segment: usize, unit: usize) -> Option<Vec<u64>> {
        let (per_unit, unwritten) = (self.per_unit, self.unwritten());
        let at = self.sector(segment, unit);
        let status = alone(self.drive(), &Request::new(Op::Read, at, per_unit), 0).status;
        let cells = self.drive().read_data().pop().map(|(_, cells)| cells).unwrap_or_default();
        match status {
            Status::Refused(reason) if reason == unwritten => None,
            Status::Success => Some(stamps(&cells)),
            Status::UncorrectableRead => Some(Vec::new()),
            other => panic!("unit {unit} of segment {segment} is read with {other:?}"),
        }
    }

    /// One of the lives of a segment is there after a power cut, with all that was acknowledged.
    fn found_after_cut(&mut self, segment: usize) {
        let (written, takes_no_more) = self.told_after_cut(segment);
        let is_read_only = self.drive().is_read_only();
        let mut found = Vec::new();
        for unit in 0..self.units {
            // A read that fails says nothing of which life it is; the next may succeed.
            let mut looks = (0..20).map(|_| self.look(segment, unit));
            let is_told = |cells: &Option<Vec<u64>>| cells.as_ref().is_none_or(|cells| !cells.is_empty());
            found.push(looks.find(is_told).unwrap_or(Some(Vec::new())));
        }
        let Allowed { failed_reads, failed_programs, .. } = self.allowed;
        let per_unit = self.per_unit;
        let Modelled { lives, durable, .. } = &self.segments[segment];
        let has_acknowledged = |life: &Life| life.units.iter().any(|unit| unit.acknowledged);
        let low = lives.iter().rposition(has_acknowledged).unwrap_or(0).max(*durable);
        let fits = |life: &Life| {
            found.iter().enumerate().all(|(index, found)| match (life.units.get(index), found) {
                (None, found) => found.is_none(),
                (Some(unit), None) => !unit.acknowledged,
                (Some(unit), Some(cells)) => {
                    let first = self.sector(segment, index);
                    let is_stamped =
                        |(sector, cell): (u64, &u64)| unit.stamp > 0 && *cell == cell_of(unit.stamp, sector);
                    // What could not be read: an error, but never other data.
                    cells.is_empty() && (failed_reads || !unit.acknowledged)
                        || !cells.is_empty() && (first..).zip(cells).all(is_stamped)
                }
            })
        };
        let Some(index) = (low..lives.len()).rev().find(|index| fits(&lives[*index])) else {
            let readable: Vec<bool> = found.iter().map(Option::is_some).collect();
            panic!(
                "segment {segment} has units {readable:?} after a power cut, of {written} sectors: lives from {low} on are {lives:?}"
            )
        };
        let life = &lives[index];
        let readable = found.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        assert_eq!(written, readable as u64 * per_unit, "segment {segment}: what is written, and what can be read");
        let whole = found[..readable].iter().all(Option::is_some);
        // What a zone without room lacks is not told.
        let is_not_told = self.zones.is_some() && (readable == self.units || is_read_only);
        let closed = takes_no_more || is_not_told && !whole;
        assert!(whole || closed, "segment {segment} has a hole, and takes more");
        let at_rest = !life.closed && life.units.iter().all(|unit| unit.acknowledged);
        assert!(!at_rest || failed_programs || !closed, "segment {segment} was at rest, and takes no more");
        let unit = |index: usize, found: &Option<Vec<u64>>| Unit {
            stamp: if found.is_some() { life.units[index].stamp } else { 0 },
            acknowledged: found.is_some(),
        };
        let units = found[..readable].iter().enumerate().map(|(index, found)| unit(index, found)).collect();
        let state = match readable {
            _ if closed || readable == self.units => ZoneState::Full,
            0 => ZoneState::Empty,
            _ => ZoneState::Closed,
        };
        self.segments[segment] = Modelled { lives: vec![Life { units, closed }], trimmed: 0, durable: 0, state };
    }

    /// Sectors of a segment that are written, as the drive says behind a power cut, and whether it takes no more though
    /// they are not all.
    fn told_after_cut(&mut self, segment: usize) -> (u64, bool) {
        let (number, all) = (segment as u64, self.units as u64 * self.per_unit);
        if self.zones.is_some() {
            let Zone { state, written } = self.drive().zone(number).expect("there is such a zone");
            return (written, state == ZoneState::Full && written < all);
        }
        let Segment { state, written } = self.drive().segment(number).expect("there is such a segment");
        (written, state == SegmentState::Closed)
    }
}

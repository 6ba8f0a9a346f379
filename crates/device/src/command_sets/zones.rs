//! Which commands zones take, and the state that each leaves them in (Zoned Namespace Command Set 1.1, section 2.1.1). It looks
//! at numbers alone: no chip is asked.
//!
//! ```text
//!            write, append              close
//!   empty ------------------> open ------------> closed      open: implicitly, by a write, or explicitly, by `open`
//!     ^                        | ^                 | |
//!     |                        | +-----------------+ |       a write that ends with the capacity fills the zone
//!     |          finish, write v   write, open       |
//!     +---------------------- full <-----------------+
//!          reset                       finish
//! ```
//!
//! A command is taken or refused when it arrives, and the state and write pointer of its zone go on then. Where the host opens
//! more zones than the drive can have open, the drive closes the zone that was opened implicitly first.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use ssdlab_base::command_set::{EventKind, ZoneAction};
use ssdlab_base::command_sets::zoned::{
    INVALID_TRANSITION, INVALID_WRITE, NOT_A_ZONE, PART_OF_WRITE_UNIT, TOO_MANY_ACTIVE, TOO_MANY_OPEN, UNWRITTEN,
    ZONE_BOUNDARY, ZONE_IS_FULL, ZONES_READ_ONLY, Zone, ZoneShape, ZoneState,
};
use ssdlab_base::{Op, Refusal, Request};

use super::{Admitted, Effect, Located, Rules};
use crate::{Drive, ReadUnwritten, Status};

/// The zones of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    shape: ZoneShape,
    read_unwritten: ReadUnwritten,
    zones: Vec<Zone>,
    open: u32,
    active: u32,
    /// Zones that a write opened, the first opened in front.
    implicit: VecDeque<u32>,
    /// Full zones that may lack sectors before their last.
    with_holes: BTreeSet<u64>,
}

impl Rules for Zones {
    fn admit(
        &mut self,
        request: &Request,
        action: Option<ZoneAction>,
        is_held: &dyn Fn(u64, u64) -> bool,
    ) -> Result<Admitted, Status> {
        self.take(request, action, is_held)
    }

    fn set(&mut self, zone: u64, written: u64, takes_no_more: bool) {
        assert!(written <= self.shape.capacity, "zone {zone} has {written} sectors of {}", self.shape.capacity);
        let state = match written {
            _ if self.get(zone).state == ZoneState::ReadOnly => ZoneState::ReadOnly,
            _ if takes_no_more || written == self.shape.capacity => ZoneState::Full,
            0 => ZoneState::Empty,
            _ => ZoneState::Closed,
        };
        self.enter(zone, state);
        self.zones[zone as usize].written = written;
        if takes_no_more {
            self.with_holes.insert(zone);
        } else {
            self.with_holes.remove(&zone);
        }
    }

    fn make_read_only(&mut self) -> Option<(EventKind, Vec<u64>)> {
        (0..self.shape.count).for_each(|zone| self.enter(zone, ZoneState::ReadOnly));
        assert_eq!((self.open, self.active), (0, 0), "a read-only zone is not active");
        Some((ZONES_READ_ONLY, vec![0, self.shape.count]))
    }

    fn refusals_after_failure(&self) -> (Refusal, Refusal) {
        (INVALID_WRITE, UNWRITTEN)
    }

    fn count(&self) -> u64 {
        self.shape.count
    }

    fn segment_sectors(&self) -> u64 {
        self.shape.capacity
    }

    fn host_sectors(&self) -> u64 {
        self.shape.sectors()
    }

    fn locate(&self, address: u64, end: u64) -> Located {
        let (zone, within) = (address / self.shape.size, address % self.shape.size);
        let in_capacity = within < self.shape.capacity;
        let of_zone = if in_capacity { self.shape.capacity } else { self.shape.size };
        let data = in_capacity.then_some(zone * self.shape.capacity + within);
        Located { data, end: end.min(zone * self.shape.size + of_zone) }
    }

    fn report_words(&self) -> Vec<u64> {
        let ZoneShape { size, capacity, count, write_unit, max_open, max_active } = self.shape;
        vec![size, count, write_unit, capacity, max_open.into(), max_active.into()]
    }

    fn report_of(&self, zone: u64) -> Vec<u8> {
        self.get(zone).encode().to_vec()
    }

    fn as_zones(&self) -> Option<&Zones> {
        Some(self)
    }
}

impl Drive {
    /// Zones, of a drive whose host sees zones.
    pub fn zones(&self) -> Option<ZoneShape> {
        Some(self.rules()?.as_zones()?.shape)
    }

    /// One zone, with all commands that arrived; `None` where there is none.
    pub fn zone(&self, number: u64) -> Option<Zone> {
        let zones = self.rules()?.as_zones()?;
        (number < zones.shape.count).then(|| zones.get(number))
    }
}

impl Zones {
    /// All of them empty.
    pub(crate) fn new(shape: ZoneShape, read_unwritten: ReadUnwritten) -> Zones {
        assert!(shape.size.is_power_of_two(), "the size of a zone is a power of two: {shape:?}");
        assert!(shape.capacity <= shape.size, "the capacity of a zone is at most its size: {shape:?}");
        assert!(shape.capacity.is_multiple_of(shape.write_unit), "a zone is whole write units: {shape:?}");
        let zones = vec![Zone::default(); shape.count as usize];
        Zones {
            shape,
            read_unwritten,
            zones,
            open: 0,
            active: 0,
            implicit: VecDeque::new(),
            with_holes: BTreeSet::new(),
        }
    }

    /// One zone.
    fn get(&self, zone: u64) -> Zone {
        self.zones[zone as usize]
    }

    /// Takes a block command or an action on zones, within the host's address space, or says why not; nothing changes then.
    /// `is_held` tells of sectors of data whether the drive has all of them.
    ///
    /// # Errors
    /// The status that it ends with.
    fn take(
        &mut self,
        request: &Request,
        action: Option<ZoneAction>,
        is_held: impl Fn(u64, u64) -> bool,
    ) -> Result<Admitted, Status> {
        match (action, request.op) {
            (Some(ZoneAction::Append), _) => self.take_append(request),
            (Some(action), _) => self.take_action(request, action),
            (None, Op::Read) if request.sectors > 0 => self.take_read(request, is_held),
            (None, Op::Write) if request.sectors > 0 => self.take_write(request),
            (None, Op::Read | Op::Write | Op::Flush) => {
                Ok(Admitted { sectors: 0..0, address: request.sector, effect: None, answer: Vec::new() })
            }
            (None, Op::Trim | Op::WriteZeroes) => Err(Status::Unsupported),
        }
    }

    fn take_read(&self, request: &Request, is_held: impl Fn(u64, u64) -> bool) -> Result<Admitted, Status> {
        let work = self.within_zone(request)?;
        let zone = request.sector / self.shape.size;
        let end = request.sector % self.shape.size + request.sectors;
        // Elsewhere the write of a sector may not have reached the drive's map.
        let holds_all = || !self.with_holes.contains(&zone) || is_held(work.sectors.start, work.sectors.end);
        let is_written = end <= self.get(zone).written && holds_all();
        if !is_written && self.read_unwritten == ReadUnwritten::Error {
            return Err(Status::Refused(UNWRITTEN));
        }
        Ok(work)
    }

    fn take_write(&mut self, request: &Request) -> Result<Admitted, Status> {
        let unit = self.shape.write_unit;
        if !request.sector.is_multiple_of(unit) || !request.sectors.is_multiple_of(unit) {
            return Err(Status::Refused(PART_OF_WRITE_UNIT));
        }
        let zone = request.sector / self.shape.size;
        let Zone { state, written } = self.get(zone);
        self.takes_writes(state)?;
        let work = self.within_zone(request)?;
        if request.sector % self.shape.size != written {
            return Err(Status::Refused(INVALID_WRITE));
        }
        self.write(zone, request.sectors)?;
        Ok(work)
    }

    fn take_append(&mut self, request: &Request) -> Result<Admitted, Status> {
        if !request.sector.is_multiple_of(self.shape.size) {
            return Err(Status::Refused(NOT_A_ZONE));
        }
        if request.sectors == 0 || !request.sectors.is_multiple_of(self.shape.write_unit) {
            return Err(Status::Refused(PART_OF_WRITE_UNIT));
        }
        let zone = request.sector / self.shape.size;
        let Zone { state, written } = self.get(zone);
        self.takes_writes(state)?;
        let work = self.within_zone(&Request { sector: request.sector + written, ..*request })?;
        self.write(zone, request.sectors)?;
        Ok(Admitted { effect: Some(Effect::Write), answer: vec![work.address], ..work })
    }

    fn takes_writes(&self, state: ZoneState) -> Result<(), Status> {
        match state {
            ZoneState::Full => Err(Status::Refused(ZONE_IS_FULL)),
            ZoneState::ReadOnly => Err(Status::ReadOnly),
            _ => Ok(()),
        }
    }

    fn write(&mut self, zone: u64, sectors: u64) -> Result<(), Status> {
        self.open(zone, false).map_err(Status::Refused)?;
        let written = &mut self.zones[zone as usize].written;
        *written += sectors;
        if *written == self.shape.capacity {
            self.enter(zone, ZoneState::Full);
        }
        Ok(())
    }

    fn take_action(&mut self, request: &Request, action: ZoneAction) -> Result<Admitted, Status> {
        let size = self.shape.size;
        let is_whole = request.sector.is_multiple_of(size) && request.sectors.is_multiple_of(size);
        if !is_whole || request.sectors == 0 {
            return Err(Status::Refused(NOT_A_ZONE));
        }
        let zones = request.sector / size..request.end() / size;
        for zone in zones.clone() {
            let state = self.get(zone).state;
            let allowed = match action {
                _ if state == ZoneState::ReadOnly => false,
                ZoneAction::Open => state != ZoneState::Full,
                ZoneAction::Close => state.is_active(),
                ZoneAction::Append | ZoneAction::Finish | ZoneAction::Reset => true,
            };
            if !allowed {
                return Err(Status::Refused(INVALID_TRANSITION));
            }
        }
        let capacity = self.shape.capacity;
        let effect = match action {
            ZoneAction::Open => {
                self.open_all(zones.clone()).map_err(Status::Refused)?;
                Effect::Nothing
            }
            ZoneAction::Close => {
                zones.clone().for_each(|zone| self.enter(zone, ZoneState::Closed));
                Effect::Nothing
            }
            ZoneAction::Finish => {
                let mut fill = Vec::new();
                for zone in zones.clone() {
                    let Zone { state, written } = self.get(zone);
                    if state != ZoneState::Full {
                        fill.push(zone * capacity + written..(zone + 1) * capacity);
                        self.enter(zone, ZoneState::Full);
                        self.zones[zone as usize].written = capacity;
                    }
                }
                Effect::Zeroes(fill)
            }
            ZoneAction::Reset => {
                for zone in zones.clone() {
                    self.enter(zone, ZoneState::Empty);
                    self.zones[zone as usize].written = 0;
                    self.with_holes.remove(&zone);
                }
                Effect::Trim
            }
            ZoneAction::Append => unreachable!("an append is no action on a range of zones"),
        };
        let sectors = zones.start * capacity..zones.end * capacity;
        Ok(Admitted { sectors, address: request.sector, effect: Some(effect), answer: Vec::new() })
    }

    /// Opens zones explicitly, all or none.
    fn open_all(&mut self, zones: Range<u64>) -> Result<(), Refusal> {
        let (implicit, counts) = (self.implicit.clone(), (self.open, self.active));
        let states: Vec<ZoneState> = zones.clone().map(|zone| self.get(zone).state).collect();
        let opened = zones.clone().try_for_each(|zone| self.open(zone, true));
        if opened.is_err() {
            implicit.iter().for_each(|zone| self.zones[*zone as usize].state = ZoneState::ImplicitlyOpen);
            zones.zip(states).for_each(|(zone, state)| self.zones[zone as usize].state = state);
            (self.implicit, (self.open, self.active)) = (implicit, counts);
        }
        opened
    }

    /// A zone is open, for a write or because the host says so.
    fn open(&mut self, zone: u64, explicitly: bool) -> Result<(), Refusal> {
        let ZoneShape { max_open, max_active, .. } = self.shape;
        let state = self.get(zone).state;
        if !state.is_open() {
            if !state.is_active() && max_active > 0 && self.active >= max_active {
                return Err(TOO_MANY_ACTIVE);
            }
            if max_open > 0 && self.open >= max_open {
                let first = *self.implicit.front().ok_or(TOO_MANY_OPEN)?;
                self.enter(first.into(), ZoneState::Closed);
            }
        }
        match (explicitly, state) {
            (false, ZoneState::ExplicitlyOpen | ZoneState::ImplicitlyOpen) => {}
            (false, _) => self.enter(zone, ZoneState::ImplicitlyOpen),
            (true, _) => self.enter(zone, ZoneState::ExplicitlyOpen),
        }
        Ok(())
    }

    /// A zone changes its state; the counts follow.
    fn enter(&mut self, zone: u64, state: ZoneState) {
        let before = std::mem::replace(&mut self.zones[zone as usize].state, state);
        self.open = self.open + u32::from(state.is_open()) - u32::from(before.is_open());
        self.active = self.active + u32::from(state.is_active()) - u32::from(before.is_active());
        // Only where the drive closes zones by itself does it need to know in which order they were opened.
        if self.shape.max_open > 0 && before != state {
            if before == ZoneState::ImplicitlyOpen {
                self.implicit.retain(|other| u64::from(*other) != zone);
            }
            if state == ZoneState::ImplicitlyOpen {
                self.implicit.push_back(zone as u32);
            }
        }
        debug_assert!(self.open <= self.active, "{} zones are open, {} active", self.open, self.active);
    }

    /// The sectors of data of a range that stays in the capacity of one zone.
    fn within_zone(&self, request: &Request) -> Result<Admitted, Status> {
        let within = request.sector % self.shape.size;
        let end = within.checked_add(request.sectors).filter(|end| *end <= self.shape.capacity);
        if end.is_none() {
            return Err(Status::Refused(ZONE_BOUNDARY));
        }
        let first = request.sector / self.shape.size * self.shape.capacity + within;
        let sectors = first..first + request.sectors;
        Ok(Admitted { sectors, address: request.sector, effect: None, answer: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use ZoneAction::{Append, Close, Finish, Open, Reset};
    use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, ReadOnly};

    use super::*;

    /// Eight zones of 8 sectors with a capacity of 6, write units of 2.
    fn zones(max_open: u32, max_active: u32) -> Zones {
        let shape = ZoneShape { size: 8, capacity: 6, count: 8, write_unit: 2, max_open, max_active };
        Zones::new(shape, ReadUnwritten::Error)
    }

    /// Brings zone 2 to a state, with what is written of it.
    fn in_state(zones: &mut Zones, state: ZoneState) -> u64 {
        let mut sent = |action, op, sector, sectors| {
            zones.take(&Request::new(op, sector, sectors), action, |_, _| true).expect("a command that is allowed");
        };
        match state {
            Empty => {}
            ImplicitlyOpen => sent(None, Op::Write, 16, 2),
            ExplicitlyOpen => sent(Some(Open), Op::Trim, 16, 8),
            Closed => {
                sent(None, Op::Write, 16, 4);
                sent(Some(Close), Op::Trim, 16, 8);
            }
            Full => sent(None, Op::Write, 16, 6),
            ReadOnly => {
                sent(None, Op::Write, 16, 2);
                zones.make_read_only();
            }
        }
        assert_eq!(zones.get(2).state, state);
        zones.get(2).written
    }

    #[test]
    fn every_state_and_operation_is_as_the_table_has_it() {
        let refused = |reason| Err(Status::Refused(reason));
        let full = refused(ZONE_IS_FULL);
        let transition = refused(INVALID_TRANSITION);
        // By operation: what it comes to in Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, ReadOnly, Full.
        type Row = (&'static str, Option<ZoneAction>, Op, u64, [Result<ZoneState, Status>; 6]);
        let table: [Row; 9] = [
            (
                "write",
                None,
                Op::Write,
                2,
                [Ok(ImplicitlyOpen), Ok(ImplicitlyOpen), Ok(ExplicitlyOpen), Ok(Full), Err(Status::ReadOnly), full],
            ),
            (
                "append",
                Some(Append),
                Op::Write,
                2,
                [Ok(ImplicitlyOpen), Ok(ImplicitlyOpen), Ok(ExplicitlyOpen), Ok(Full), Err(Status::ReadOnly), full],
            ),
            (
                "open",
                Some(Open),
                Op::Trim,
                8,
                [
                    Ok(ExplicitlyOpen),
                    Ok(ExplicitlyOpen),
                    Ok(ExplicitlyOpen),
                    Ok(ExplicitlyOpen),
                    transition,
                    transition,
                ],
            ),
            (
                "close",
                Some(Close),
                Op::Trim,
                8,
                [transition, Ok(Closed), Ok(Closed), Ok(Closed), transition, transition],
            ),
            ("finish", Some(Finish), Op::Trim, 8, [Ok(Full), Ok(Full), Ok(Full), Ok(Full), transition, Ok(Full)]),
            ("reset", Some(Reset), Op::Trim, 8, [Ok(Empty), Ok(Empty), Ok(Empty), Ok(Empty), transition, Ok(Empty)]),
            (
                "read",
                None,
                Op::Read,
                2,
                [refused(UNWRITTEN), Ok(ImplicitlyOpen), refused(UNWRITTEN), Ok(Closed), Ok(ReadOnly), Ok(Full)],
            ),
            ("trim", None, Op::Trim, 8, [Err(Status::Unsupported); 6]),
            (
                "flush",
                None,
                Op::Flush,
                0,
                [Ok(Empty), Ok(ImplicitlyOpen), Ok(ExplicitlyOpen), Ok(Closed), Ok(ReadOnly), Ok(Full)],
            ),
        ];
        for (name, action, op, sectors, expected) in table {
            let states = [Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, ReadOnly, Full];
            for (state, expected) in states.into_iter().zip(expected) {
                let mut zones = zones(0, 0);
                let before = in_state(&mut zones, state);
                let sector = match (action, op) {
                    (None, Op::Write) => 16 + before,
                    (None, Op::Flush) => 0,
                    _ => 16,
                };
                let untouched = zones.clone();
                let found = zones.take(&Request::new(op, sector, sectors), action, |_, _| true);
                let what = format!("{name} of a zone that is {}", state.name());
                assert_eq!(found.as_ref().map(|_| zones.get(2).state).map_err(|status| *status), expected, "{what}");
                let written = match (&found, name) {
                    (Err(_), _) => {
                        let all = |zones: &Zones| (0..8).map(|zone| zones.get(zone)).collect::<Vec<Zone>>();
                        assert_eq!(all(&zones), all(&untouched), "{what} changed something");
                        before
                    }
                    (Ok(work), "write" | "append") => {
                        assert_eq!(
                            (work.sectors.clone(), work.address),
                            (12 + before..14 + before, 16 + before),
                            "{what}"
                        );
                        before + 2
                    }
                    (Ok(work), "finish") => {
                        let fill: Vec<Range<u64>> = (state != Full).then_some(12 + before..18).into_iter().collect();
                        assert_eq!(
                            (work.sectors.clone(), &work.effect),
                            (12..18, &Some(Effect::Zeroes(fill))),
                            "{what}"
                        );
                        6
                    }
                    (Ok(_), "reset") => 0,
                    _ => before,
                };
                assert_eq!(zones.get(2).written, written, "{what}");
                let count = |is: fn(ZoneState) -> bool| (0..8).filter(|zone| is(zones.get(*zone).state)).count() as u32;
                assert_eq!(
                    (zones.open, zones.active),
                    (count(ZoneState::is_open), count(ZoneState::is_active)),
                    "{what}"
                );
            }
        }
    }

    #[test]
    fn a_command_that_is_not_for_a_zone_is_refused_for_its_reason() {
        let table = [
            (None, Op::Write, 0, 8, ZONE_BOUNDARY),
            (None, Op::Write, 6, 2, ZONE_BOUNDARY),
            (None, Op::Write, 2, 2, INVALID_WRITE),
            (None, Op::Write, 16, 2, INVALID_WRITE),
            (None, Op::Write, 20, 2, INVALID_WRITE),
            (None, Op::Write, 1, 2, PART_OF_WRITE_UNIT),
            (None, Op::Write, 0, 1, PART_OF_WRITE_UNIT),
            (Some(Append), Op::Write, 2, 2, NOT_A_ZONE),
            (Some(Append), Op::Write, 0, 3, PART_OF_WRITE_UNIT),
            (Some(Append), Op::Write, 0, 0, PART_OF_WRITE_UNIT),
            (Some(Append), Op::Write, 16, 6, ZONE_BOUNDARY),
            (Some(Reset), Op::Trim, 4, 8, NOT_A_ZONE),
            (Some(Reset), Op::Trim, 0, 6, NOT_A_ZONE),
            (Some(Finish), Op::Trim, 0, 0, NOT_A_ZONE),
            (None, Op::Read, 16, 4, UNWRITTEN),
            (None, Op::Read, 20, 4, ZONE_BOUNDARY),
            (None, Op::Read, 22, 4, ZONE_BOUNDARY),
        ];
        for (action, op, sector, sectors, reason) in table {
            let mut zones = zones(0, 0);
            in_state(&mut zones, ImplicitlyOpen);
            let found = zones.take(&Request::new(op, sector, sectors), action, |_, _| true);
            assert_eq!(found, Err(Status::Refused(reason)), "{action:?} {op:?} of {sectors} sectors from {sector} on");
        }
    }

    #[test]
    fn a_drive_closes_what_it_opened_itself_and_refuses_what_exceeds_its_limits() {
        let mut zones = zones(2, 3);
        let write = |zones: &mut Zones, zone: u64| {
            let sector = zone * 8 + zones.get(zone).written;
            zones.take(&Request::new(Op::Write, sector, 2), None, |_, _| true).map(|_| ())
        };
        let action = |zones: &mut Zones, action, from: u64, count: u64| {
            zones.take(&Request::new(Op::Trim, from * 8, count * 8), Some(action), |_, _| true).map(|_| ())
        };
        let states = |zones: &Zones| (0..4).map(|zone| zones.get(zone).state).collect::<Vec<_>>();
        (0..3).for_each(|zone| write(&mut zones, zone).expect("the third closes the first"));
        assert_eq!(states(&zones), [Closed, ImplicitlyOpen, ImplicitlyOpen, Empty]);
        assert_eq!(write(&mut zones, 3), Err(Status::Refused(TOO_MANY_ACTIVE)));
        // Zone 1 is explicitly open now, so that zone 2 has to go for zone 0.
        action(&mut zones, Open, 1, 1).expect("it is open already");
        write(&mut zones, 0).expect("zone 2 is closed for it");
        assert_eq!(states(&zones), [ImplicitlyOpen, ExplicitlyOpen, Closed, Empty]);
        let before = states(&zones);
        assert_eq!(action(&mut zones, Open, 0, 3), Err(Status::Refused(TOO_MANY_OPEN)), "all or none");
        assert_eq!(states(&zones), before);
        action(&mut zones, Open, 0, 2).expect("two");
        assert_eq!(write(&mut zones, 2), Err(Status::Refused(TOO_MANY_OPEN)));
        action(&mut zones, Finish, 2, 1).expect("a full zone is not active");
        action(&mut zones, Close, 0, 1).expect("it is open");
        write(&mut zones, 3).expect("two are active, one open");
        assert_eq!(states(&zones), [Closed, ExplicitlyOpen, Full, ImplicitlyOpen]);
        action(&mut zones, Reset, 0, 8).expect("reset goes for all");
        assert_eq!((zones.open, zones.active, zones.implicit.len()), (0, 0, 0));
    }
}

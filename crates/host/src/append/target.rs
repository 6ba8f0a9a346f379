//! What takes the appends: segments of the set `segments`, or zones of the set `zoned`. Nothing else in the layer knows which.
//!
//! ```text
//!   the layer    | segment 0 | segment 1 | segment 2 |          sectors without gaps
//!   segments     | segment 0 | segment 1 | segment 2 |          the same; TRIM makes one free
//!   zones        | zone 0    |      | zone 1    |      | ...    `capacity` of `size` sectors; `reset` makes one free
//! ```
//!
//! A write goes to the next sector of its segment, which is the write pointer of its zone. A zone that is written in part counts against
//! the drive's limit of active zones. The layer has at most [`MOST_ACTIVE`] of them: those that a crash or a power cut leaves are made full.

use ssdlab_base::command_sets::segments::{self, MOST_REPORTED, REPORTED_BYTES, SEGMENTS, Segment, SegmentState};
use ssdlab_base::command_sets::zoned::{self, TOO_MANY_ACTIVE, ZONED, Zone, ZoneShape, ZoneState};
use ssdlab_base::{CommandSet, Op, Request};
use ssdlab_device::Status;

use super::config::LAYER;
use crate::layer::Array;
use crate::{Device, LayerError};

/// The sets of the drives that it can stand on.
pub(super) static SETS: [&CommandSet; 2] = [&SEGMENTS, &ZONED];

/// Segments that are written in part at one time: the host's, that of cleaning, and one in each area of the log.
pub(super) const MOST_ACTIVE: u32 = 4;

/// How the drive sees the layer's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// As segments of so many sectors.
    Segments(u64),
    /// As the capacity of zones.
    Zones(ZoneShape),
}

/// A segment, as the drive tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    /// Sectors up to the last that is written.
    pub(super) written: u64,
    /// It can be written from its start.
    pub(super) is_free: bool,
    /// It counts against the drive's limit.
    pub(super) is_active: bool,
}

impl From<Segment> for Reported {
    fn from(Segment { state, written }: Segment) -> Reported {
        Reported { written, is_free: state == SegmentState::Free, is_active: false }
    }
}

impl From<Zone> for Reported {
    fn from(Zone { state, written }: Zone) -> Reported {
        let is_free = state == ZoneState::Empty || state == ZoneState::ReadOnly && written == 0;
        Reported { written, is_free, is_active: state.is_active() }
    }
}

impl Target {
    /// Asks the drive, in which there is no command, what it has.
    ///
    /// # Errors
    /// It does not say.
    pub(super) fn report(array: &mut Array<()>) -> Result<(Target, Vec<Reported>), LayerError> {
        let unreadable = |status| LayerError::Unreadable { layer: LAYER.name, device: 0, status };
        let has_zones = array.device(0).command_set().is_some_and(|set| set.name == ZONED.name);
        let (set, opcode) = if has_zones { (&ZONED, zoned::REPORT) } else { (&SEGMENTS, segments::REPORT) };
        let spec = set.command(opcode).expect("of the set");
        let (mut target, mut all, mut count) = (None, Vec::new(), 1);
        while (all.len() as u64) < count {
            let from = all.len() as u64;
            // How many there are is in the first report.
            let asked = if from == 0 { 1 } else { MOST_REPORTED.min(count - from) };
            let part = array.alone(0, Request::of_set(spec, 0, 0), &[], &[from, asked])?;
            let status = part.status;
            let answer = part.answer.filter(|_| status == Status::Success).ok_or_else(|| unreadable(status))?;
            (target, count) = match answer.words[..] {
                [sectors, count, _] if !has_zones => (Some(Target::Segments(sectors)), count),
                [size, count, write_unit, capacity, open, active] if has_zones => {
                    let (max_open, max_active) = (open as u32, active as u32);
                    let shape = ZoneShape { size, capacity, count, write_unit, max_open, max_active };
                    (Some(Target::Zones(shape)), count)
                }
                _ => return Err(unreadable(Status::Invalid)),
            };
            let decode = |bytes: [u8; REPORTED_BYTES]| {
                if has_zones { Zone::decode(bytes).map(Into::into) } else { Segment::decode(bytes).map(Into::into) }
            };
            let told = answer.bytes.chunks_exact(REPORTED_BYTES).map(|bytes| bytes.try_into().ok().and_then(decode));
            let told = told.collect::<Option<Vec<Reported>>>().filter(|told| told.len() as u64 == asked);
            all.extend(told.ok_or_else(|| unreadable(Status::Invalid))?);
        }
        Ok((target.expect("one report at least"), all))
    }

    /// Sectors of a segment.
    pub(super) const fn segment_sectors(self) -> u64 {
        match self {
            Target::Segments(sectors) => sectors,
            Target::Zones(shape) => shape.capacity,
        }
    }

    /// Most segments that the drive lets be written in part at one time; 0 is no limit.
    pub(super) const fn limit(self) -> u32 {
        match self {
            Target::Segments(_) => 0,
            Target::Zones(shape) => shape.max_active,
        }
    }

    /// A read or write of the layer's sectors as the drive is sent it.
    pub(super) fn addressed(self, request: Request) -> Request {
        match self {
            // What is for whole zones is addressed already.
            Target::Zones(shape) if request.opcode.is_block() => {
                let (zone, within) = (request.sector / shape.capacity, request.sector % shape.capacity);
                Request { sector: zone * shape.size + within, ..request }
            }
            _ => request,
        }
    }

    /// The reverse.
    pub(super) fn located(self, request: Request) -> Request {
        match self {
            Target::Zones(shape) if request.opcode.is_block() => {
                let (zone, within) = (request.sector / shape.size, request.sector % shape.size);
                Request { sector: zone * shape.capacity + within, ..request }
            }
            _ => request,
        }
    }

    /// What makes segments free.
    pub(super) fn free(self, first: u32, count: u32) -> Request {
        match self {
            Target::Segments(sectors) => Request::new(Op::Trim, u64::from(first) * sectors, u64::from(count) * sectors),
            Target::Zones(shape) => Target::of_zones(&shape, zoned::RESET, first, count),
        }
    }

    /// What makes a segment full that is written in part, where the drive limits how many are.
    pub(super) fn finish(self, segment: u32) -> Option<Request> {
        match self {
            Target::Zones(shape) if shape.max_active > 0 => Some(Target::of_zones(&shape, zoned::FINISH, segment, 1)),
            _ => None,
        }
    }

    fn of_zones(shape: &ZoneShape, opcode: ssdlab_base::Opcode, first: u32, count: u32) -> Request {
        let spec = ZONED.command(opcode).expect("of the set");
        Request::of_set(spec, u64::from(first) * shape.size, u64::from(count) * shape.size)
    }

    /// A segment as it is now, without a command: after a power cut commands wait that must not go before what this leads to.
    pub(super) fn look(self, drive: &dyn Device, segment: u32) -> Option<Reported> {
        match self {
            Target::Segments(_) => None,
            Target::Zones(_) => drive.zone(segment.into()).map(Into::into),
        }
    }

    /// Panics where the layer has more zones active than it may: it would send the command again for ever.
    pub(super) fn check(self, status: Status) {
        if let Target::Zones(shape) = self {
            assert_ne!(
                status,
                Status::Refused(TOO_MANY_ACTIVE),
                "the layer keeps to {} active zones",
                shape.max_active
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_segments_are_found_at_the_addresses_of_zones() {
        let shape = ZoneShape { size: 16, capacity: 12, count: 4, write_unit: 4, max_open: 0, max_active: 5 };
        let (zones, segments) = (Target::Zones(shape), Target::Segments(12));
        for (sector, address) in [(0, 0), (11, 11), (12, 16), (23, 27), (40, 52)] {
            let request = Request::new(Op::Read, sector, 1);
            assert_eq!(zones.addressed(request).sector, address);
            assert_eq!(zones.located(zones.addressed(request)), request);
            assert_eq!((segments.addressed(request), segments.located(request)), (request, request));
        }
        let (trim, reset) = (segments.free(2, 2), zones.free(2, 2));
        assert_eq!((trim.sector, trim.sectors, trim.opcode.is_block()), (24, 24, true));
        assert_eq!((reset.sector, reset.sectors, reset.opcode), (32, 32, zoned::RESET));
        assert_eq!(zones.addressed(reset), reset, "it is for whole zones already");
        let finish = zones.finish(3).expect("the drive has a limit");
        assert_eq!((finish.sector, finish.sectors, finish.opcode), (48, 16, zoned::FINISH));
        assert_eq!((segments.finish(3), Target::Zones(ZoneShape { max_active: 0, ..shape }).finish(3)), (None, None));
    }
}

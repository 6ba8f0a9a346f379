//! Append-only segments and zones: commands are taken or refused as they arrive, and take effect in that order where it matters.
//!
//! A later write of a segment waits for the earlier one, a trim for all that came before it, and a read for the writes that it
//! reads: whichever queue brought them, and past stalls.

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_base::command_set::ZoneAction;
use ssdlab_base::command_sets::segments::{GAP, Segment, SegmentShape, UNWRITTEN};
use ssdlab_base::command_sets::zoned::{self, Zone, ZoneShape};
use ssdlab_base::{Op, Refusal, Request, SECTOR_BYTES};
use ssdlab_flash::Lpn;

use super::Drive;
use crate::ftl::{AppendOnly, Found};
use crate::segments::Segments;
use crate::zones::{ZoneWork, Zones};
use crate::{DriveConfig, ReadUnwritten, Status};

/// A command that was taken and has not taken effect.
#[derive(Clone, Copy, Debug)]
struct Taken {
    command: u32,
    op: Op,
    /// Sectors.
    first: u64,
    end: u64,
    /// It has come to its dispatch, and waits.
    waits: bool,
}

/// What the host sees the segments as.
enum Seen {
    Segments(Segments),
    Zones(Zones),
}

/// The segments of a drive, and the commands on them.
pub(super) struct InOrder {
    seen: Seen,
    /// Sectors of a segment.
    segment_sectors: u64,
    segments: u64,
    /// The sectors of data of the command that arrives, where the host addresses zones.
    placed: Option<Range<u64>>,
    /// In order of arrival.
    taken: VecDeque<Taken>,
    /// Those of them that wait.
    waiting: usize,
    /// Commands that waited are being dispatched.
    letting_go: bool,
    /// A write that was taken has failed: commands that were taken after it may rely on it.
    write_failed: bool,
}

impl InOrder {
    /// All segments free.
    pub(super) fn new(config: &DriveConfig, design: &dyn AppendOnly) -> InOrder {
        let write_unit = u64::from(config.ftl.mapping_unit) / SECTOR_BYTES;
        let sectors = u64::from(design.segment_units()) * write_unit;
        let count = config.user_bytes / SECTOR_BYTES / sectors;
        let read_unwritten = config.interface.read_unwritten;
        let seen = match config.zones() {
            Some(shape) => {
                assert_eq!((shape.capacity, shape.count), (sectors, count), "a segment is the capacity of a zone");
                Seen::Zones(Zones::new(shape, read_unwritten))
            }
            None => Seen::Segments(Segments::new(SegmentShape { sectors, count, write_unit }, read_unwritten)),
        };
        InOrder {
            seen,
            segment_sectors: sectors,
            segments: count,
            placed: None,
            taken: VecDeque::new(),
            waiting: 0,
            letting_go: false,
            write_failed: false,
        }
    }

    /// The zones, where the host sees zones.
    pub(super) const fn zones(&self) -> Option<&Zones> {
        match &self.seen {
            Seen::Zones(zones) => Some(zones),
            Seen::Segments(_) => None,
        }
    }

    /// Why a write that follows one that failed is refused, and a read of its sectors.
    const fn after_failures(&self) -> (Refusal, Refusal) {
        match self.seen {
            Seen::Segments(_) => (GAP, UNWRITTEN),
            Seen::Zones(_) => (zoned::INVALID_WRITE, zoned::UNWRITTEN),
        }
    }

    /// The entry at `index` waits, or does not.
    fn set_waits(&mut self, index: usize, waits: bool) {
        let before = std::mem::replace(&mut self.taken[index].waits, waits);
        self.waiting = self.waiting + usize::from(waits) - usize::from(before);
    }

    /// Whether the entry at `index` has to wait for an earlier one.
    fn must_wait(&self, index: usize) -> bool {
        let later = self.taken[index];
        let in_segments = |taken: &Taken| (taken.first / self.segment_sectors, (taken.end - 1) / self.segment_sectors);
        self.taken.iter().take(index).any(|earlier| match (earlier.op, later.op) {
            (Op::Read, Op::Read | Op::Write) => false,
            (_, Op::Read) => earlier.first < later.end && later.first < earlier.end,
            _ => {
                let (a, b) = (in_segments(earlier), in_segments(&later));
                a.0 <= b.1 && b.0 <= a.1
            }
        })
    }
}

impl Drive {
    /// Segments, of a drive whose host sees segments.
    pub fn segments(&self) -> Option<SegmentShape> {
        match &self.in_order.as_ref()?.seen {
            Seen::Segments(segments) => Some(segments.shape()),
            Seen::Zones(_) => None,
        }
    }

    /// One segment, with all commands that arrived; `None` where there is none.
    pub fn segment(&self, number: u64) -> Option<Segment> {
        match &self.in_order.as_ref()?.seen {
            Seen::Segments(segments) if number < segments.shape().count => Some(segments.get(number)),
            _ => None,
        }
    }

    /// Zones, of a drive whose host sees zones.
    pub fn zones(&self) -> Option<ZoneShape> {
        self.in_order.as_ref()?.zones().map(|zones| *zones.shape())
    }

    /// One zone, with all commands that arrived; `None` where there is none.
    pub fn zone(&self, number: u64) -> Option<Zone> {
        let zones = self.in_order.as_ref()?.zones()?;
        (number < zones.shape().count).then(|| zones.get(number))
    }

    /// The segments are as the design has them: after recovery, and of a restored drive.
    pub(super) fn find_segments(&mut self) {
        let Some(count) = self.in_order.as_ref().map(|in_order| in_order.segments) else { return };
        (0..count).for_each(|segment| self.find_segment(segment));
    }

    fn find_segment(&mut self, segment: u64) {
        let (Some(in_order), Some(design)) = (&mut self.in_order, self.ftl.append_only()) else { return };
        let (units, takes_no_more) = design.written(segment as u32);
        let sectors = u64::from(units) * self.sectors_per_unit;
        match &mut in_order.seen {
            Seen::Segments(segments) => segments.set(segment, sectors, takes_no_more),
            Seen::Zones(zones) => zones.set(segment, sectors, takes_no_more),
        }
    }

    /// Where the drive takes no more writes, its zones are read-only, and the host hears of it.
    pub(super) fn tell_zones_if_read_only(&mut self) {
        if !self.failures.read_only {
            return;
        }
        let Some(InOrder { seen: Seen::Zones(zones), segments, .. }) = self.in_order.as_deref_mut() else { return };
        zones.make_read_only();
        self.media.events.send(self.media.now, zoned::ZONES_READ_ONLY, &[0, *segments]);
    }

    /// A block command within the drive arrives: the status that it ends with, if it is refused.
    #[cold]
    pub(super) fn refuses_append(&mut self, request: &Request) -> Option<Status> {
        if request.op == Op::WriteZeroes {
            return Some(Status::Unsupported);
        }
        let is_write = matches!(request.op, Op::Write | Op::Trim);
        let (ftl, per_unit) = (&self.ftl, self.sectors_per_unit);
        let is_held = |from: u64, to: u64| {
            let (first, end) = (Lpn((from / per_unit) as u32), Lpn(to.div_ceil(per_unit) as u32));
            Lpn::each(first..end).all(|lpn| ftl.find(lpn) != Found::Unmapped)
        };
        let in_order = self.in_order.as_mut().expect("a drive with segments");
        match &mut in_order.seen {
            Seen::Segments(_) if self.failures.read_only && is_write => Some(Status::ReadOnly),
            Seen::Segments(segments) => segments.take(request, is_held).err().map(Status::Refused),
            Seen::Zones(zones) => match zones.take(request, None, is_held) {
                Ok(work) => {
                    in_order.placed = Some(work.sectors);
                    None
                }
                Err(status) => Some(status),
            },
        }
    }

    /// A command on zones, within the drive, arrives.
    ///
    /// # Errors
    /// The status that it ends with.
    pub(super) fn admits_to_zones(&mut self, request: &Request, action: ZoneAction) -> Result<ZoneWork, Status> {
        let in_order = self.in_order.as_mut().expect("a drive with zones");
        let Seen::Zones(zones) = &mut in_order.seen else { unreachable!("segments have no actions of zones") };
        let work = zones.take(request, Some(action), |_, _| true)?;
        in_order.placed = Some(work.sectors.clone());
        Ok(work)
    }

    /// A command was taken. From here on its sectors are those of the data.
    pub(super) fn enter_order(&mut self, command: u32) {
        let Some(in_order) = &mut self.in_order else { return };
        let request = &mut self.commands[command].request;
        if let Some(placed) = in_order.placed.take() {
            (request.sector, request.sectors) = (placed.start, placed.end - placed.start);
        }
        let is_of_segments = request.opcode.is_block() || in_order.zones().is_some_and(|_| request.op != Op::Read);
        if is_of_segments && request.sectors > 0 && request.op != Op::Flush {
            let (first, end) = (request.sector, request.end());
            debug_assert!(
                in_order.taken.iter().all(|taken| taken.command != command),
                "command {command} is taken twice"
            );
            in_order.taken.push_back(Taken { command, op: request.op, first, end, waits: false });
        }
    }

    /// Whether a command has to wait for an earlier one; it is dispatched again then.
    pub(super) fn must_wait_for_order(&mut self, command: u32) -> bool {
        let Some(in_order) = &mut self.in_order else { return false };
        let Some(index) = in_order.taken.iter().position(|taken| taken.command == command) else { return false };
        let waits = in_order.must_wait(index);
        in_order.set_waits(index, waits);
        waits
    }

    /// A command has taken effect, or never will: its segment is as it left it.
    pub(super) fn leave_order(&mut self, command: u32) {
        let Some(in_order) = &mut self.in_order else { return };
        let Some(index) = in_order.taken.iter().position(|taken| taken.command == command) else { return };
        in_order.set_waits(index, false);
        let Some(Taken { op, first, end, .. }) = in_order.taken.remove(index) else { return };
        if op != Op::Read && self.commands[command].status != Status::Success {
            // What came behind it is refused when its turn comes.
            in_order.write_failed |= op == Op::Write;
            let segments = first / in_order.segment_sectors..end.div_ceil(in_order.segment_sectors);
            segments.for_each(|segment| self.find_segment(segment));
        }
    }

    /// Whether a command relies on a write that was taken and failed: nothing is written behind a gap, nor read there.
    pub(super) fn follows_a_gap(&mut self, command: u32) -> bool {
        let (Some(design), Some(in_order)) = (self.ftl.append_only(), &self.in_order) else { return false };
        let request = self.commands[command].request;
        if !in_order.write_failed || request.sectors == 0 || self.commands[command].cursor > 0 {
            return false;
        }
        let unit = (request.sector / self.sectors_per_unit) as u32;
        let (gap, unwritten) = in_order.after_failures();
        let reason = match request.op {
            Op::Write => {
                let (segment, within) = (unit / design.segment_units(), unit % design.segment_units());
                (design.written(segment).0 != within).then_some(gap)
            }
            Op::Read if self.config.interface.read_unwritten == ReadUnwritten::Error => {
                let end = request.end().div_ceil(self.sectors_per_unit) as u32;
                let is_held = |lpn| self.ftl.find(lpn) != Found::Unmapped;
                (!Lpn::each(Lpn(unit)..Lpn(end)).all(is_held)).then_some(unwritten)
            }
            _ => None,
        };
        if let Some(reason) = reason {
            self.commands[command].status = Status::Refused(reason);
        }
        reason.is_some()
    }

    /// Dispatches what waited and need not wait any longer.
    pub(super) fn dispatch_unblocked(&mut self) {
        while let Some(in_order) = &mut self.in_order {
            if in_order.letting_go || in_order.waiting == 0 {
                return;
            }
            let mut waiting = (0..in_order.taken.len()).filter(|index| in_order.taken[*index].waits);
            let Some(index) = waiting.find(|index| !in_order.must_wait(*index)) else { return };
            debug_assert!(
                in_order.taken.iter().take(index).all(|taken| taken.op != Op::Trim
                    || taken.end <= in_order.taken[index].first
                    || taken.first >= in_order.taken[index].end),
                "a command passes a trim"
            );
            in_order.set_waits(index, false);
            in_order.letting_go = true;
            let command = in_order.taken[index].command;
            self.dispatch(command);
            if let Some(in_order) = &mut self.in_order {
                in_order.letting_go = false;
            }
        }
    }
}

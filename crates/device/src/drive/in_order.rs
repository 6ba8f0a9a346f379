//! Append-only segments: commands are taken or refused as they arrive, and take effect in that order where it matters.
//!
//! A later write of a segment waits for the earlier one, a trim for all that came before it, and a read for the writes that it
//! reads: whichever queue brought them, and past stalls.

use std::collections::VecDeque;

use ssdlab_base::command_sets::segments::{GAP, Segment, SegmentShape, UNWRITTEN};
use ssdlab_base::{Op, Request, SECTOR_BYTES};
use ssdlab_flash::Lpn;

use super::Drive;
use crate::ftl::{AppendOnly, Found};
use crate::segments::Segments;
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

/// The segments of a drive, and the commands on them.
pub(super) struct InOrder {
    segments: Segments,
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
        let shape = SegmentShape { sectors, count, write_unit };
        InOrder {
            segments: Segments::new(shape, config.interface.read_unwritten),
            taken: VecDeque::new(),
            waiting: 0,
            letting_go: false,
            write_failed: false,
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
        let in_segments = |taken: &Taken| (self.segments.of(taken.first), self.segments.of(taken.end - 1));
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
    /// Segments, of a drive that has them.
    pub fn segments(&self) -> Option<SegmentShape> {
        self.in_order.as_ref().map(|in_order| in_order.segments.shape())
    }

    /// One segment, with all commands that arrived; `None` where there is none.
    pub fn segment(&self, number: u64) -> Option<Segment> {
        let segments = &self.in_order.as_ref()?.segments;
        (number < segments.shape().count).then(|| segments.get(number))
    }

    /// The segments are as the design has them: after recovery, and of a restored drive.
    pub(super) fn find_segments(&mut self) {
        let Some(count) = self.segments().map(|shape| shape.count) else { return };
        (0..count).for_each(|segment| self.find_segment(segment));
    }

    fn find_segment(&mut self, segment: u64) {
        let (Some(in_order), Some(design)) = (&mut self.in_order, self.ftl.append_only()) else { return };
        let (units, closed) = design.written(segment as u32);
        in_order.segments.set(segment, u64::from(units) * self.sectors_per_unit, closed);
    }

    /// A command within the drive arrives: why it is refused, if it is.
    #[cold]
    pub(super) fn refuses_append(&mut self, request: &Request) -> Option<Status> {
        if request.op == Op::WriteZeroes {
            return Some(Status::Unsupported);
        }
        let is_write = matches!(request.op, Op::Write | Op::Trim);
        if self.failures.read_only && is_write {
            return Some(Status::ReadOnly);
        }
        let (ftl, per_unit) = (&self.ftl, self.sectors_per_unit);
        let is_held = |from: u64, to: u64| {
            let (first, end) = (Lpn((from / per_unit) as u32), Lpn(to.div_ceil(per_unit) as u32));
            Lpn::each(first..end).all(|lpn| ftl.find(lpn) != Found::Unmapped)
        };
        let in_order = self.in_order.as_mut().expect("a drive with segments");
        in_order.segments.take(request, is_held).err().map(Status::Refused)
    }

    /// A command was taken.
    pub(super) fn takes_its_turn(&mut self, command: u32, request: &Request) {
        let Some(in_order) = &mut self.in_order else { return };
        if request.sectors > 0 && request.op != Op::Flush && request.opcode.is_block() {
            let (first, end) = (request.sector, request.end());
            debug_assert!(
                in_order.taken.iter().all(|taken| taken.command != command),
                "command {command} is taken twice"
            );
            in_order.taken.push_back(Taken { command, op: request.op, first, end, waits: false });
        }
    }

    /// Whether a command has to wait for an earlier one; it is dispatched again then.
    pub(super) fn waits_its_turn(&mut self, command: u32) -> bool {
        let Some(in_order) = &mut self.in_order else { return false };
        let Some(index) = in_order.taken.iter().position(|taken| taken.command == command) else { return false };
        let waits = in_order.must_wait(index);
        in_order.set_waits(index, waits);
        waits
    }

    /// A command has taken effect, or never will: its segment is as it left it.
    pub(super) fn had_its_turn(&mut self, command: u32) {
        let Some(in_order) = &mut self.in_order else { return };
        let Some(index) = in_order.taken.iter().position(|taken| taken.command == command) else { return };
        in_order.set_waits(index, false);
        in_order.taken.remove(index);
        let Request { op, sector, .. } = self.commands[command].request;
        if op == Op::Write && self.commands[command].status != Status::Success {
            // What came behind it is refused when its turn comes.
            in_order.write_failed = true;
            let segment = sector / self.segments().map_or(1, |shape| shape.sectors);
            self.find_segment(segment);
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
        let reason = match request.op {
            Op::Write => {
                let (segment, within) = (unit / design.segment_units(), unit % design.segment_units());
                (design.written(segment).0 != within).then_some(GAP)
            }
            Op::Read if self.config.interface.read_unwritten == ReadUnwritten::Error => {
                let end = request.end().div_ceil(self.sectors_per_unit) as u32;
                let is_held = |lpn| self.ftl.find(lpn) != Found::Unmapped;
                (!Lpn::each(Lpn(unit)..Lpn(end)).all(is_held)).then_some(UNWRITTEN)
            }
            _ => None,
        };
        if let Some(reason) = reason {
            self.commands[command].status = Status::Refused(reason);
        }
        reason.is_some()
    }

    /// Dispatches what waited and need not wait any longer.
    pub(super) fn let_go(&mut self) {
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

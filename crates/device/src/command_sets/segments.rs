//! Which commands append-only segments take (Application-Managed Flash, section 2). It looks at numbers alone: no chip is asked.
//!
//! A command is taken or refused when it arrives, and the pointer of its segment goes on then. So commands of one segment take
//! effect in the order in which they arrive, whatever queue they come by.

use ssdlab_base::command_set::{EventKind, ZoneAction};
use ssdlab_base::command_sets::segments::{
    CLOSED, CROSSES_SEGMENTS, GAP, OVERWRITE, PART_OF_SEGMENT, PART_OF_WRITE_UNIT, Segment, SegmentShape, SegmentState,
    UNWRITTEN,
};
use ssdlab_base::{Op, Refusal, Request};

use super::{Admitted, Located, Rules};
use crate::{Drive, ReadUnwritten, Status};

/// A segment as the host's commands see it: those that were taken, whether they have taken effect or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pointer {
    /// Sectors up to the last that is written.
    written: u64,
    closed: bool,
}

/// The pointers of all segments.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    shape: SegmentShape,
    read_unwritten: ReadUnwritten,
    pointers: Vec<Pointer>,
    read_only: bool,
}

impl Rules for Segments {
    fn admit(
        &mut self,
        request: &Request,
        _: Option<ZoneAction>,
        is_held: &dyn Fn(u64, u64) -> bool,
    ) -> Result<Admitted, Status> {
        match request.op {
            Op::WriteZeroes => return Err(Status::Unsupported),
            Op::Write | Op::Trim if self.read_only => return Err(Status::ReadOnly),
            _ => self.take(request, is_held).map_err(Status::Refused)?,
        }
        let sectors = request.sector..request.end();
        Ok(Admitted { sectors, address: request.sector, effect: None, answer: Vec::new() })
    }

    fn set(&mut self, segment: u64, written: u64, takes_no_more: bool) {
        assert!(written <= self.shape.sectors, "segment {segment} has {written} sectors of {}", self.shape.sectors);
        assert!(written.is_multiple_of(self.shape.write_unit), "segment {segment} has {written} sectors");
        self.pointers[segment as usize] = Pointer { written, closed: takes_no_more };
    }

    fn make_read_only(&mut self) -> Option<(EventKind, Vec<u64>)> {
        self.read_only = true;
        None
    }

    fn refusals_after_failure(&self) -> (Refusal, Refusal) {
        (GAP, UNWRITTEN)
    }

    fn count(&self) -> u64 {
        self.shape.count
    }

    fn segment_sectors(&self) -> u64 {
        self.shape.sectors
    }

    fn host_sectors(&self) -> u64 {
        self.shape.sectors * self.shape.count
    }

    fn locate(&self, address: u64, end: u64) -> Located {
        Located { data: Some(address), end }
    }

    fn report_words(&self) -> Vec<u64> {
        vec![self.shape.sectors, self.shape.count, self.shape.write_unit]
    }

    fn report_of(&self, segment: u64) -> Vec<u8> {
        self.get(segment).encode().to_vec()
    }

    fn as_segments(&self) -> Option<&Segments> {
        Some(self)
    }
}

impl Drive {
    /// Segments, of a drive whose host sees segments.
    pub fn segments(&self) -> Option<SegmentShape> {
        Some(self.rules()?.as_segments()?.shape)
    }

    /// One segment, with all commands that arrived; `None` where there is none.
    pub fn segment(&self, number: u64) -> Option<Segment> {
        let segments = self.rules()?.as_segments()?;
        (number < segments.shape.count).then(|| segments.get(number))
    }
}

impl Segments {
    /// All of them free.
    pub(crate) fn new(shape: SegmentShape, read_unwritten: ReadUnwritten) -> Segments {
        assert!(shape.sectors.is_multiple_of(shape.write_unit), "a segment is whole write units: {shape:?}");
        Segments { shape, read_unwritten, pointers: vec![Pointer::default(); shape.count as usize], read_only: false }
    }

    /// The segment of a sector.
    const fn of(&self, sector: u64) -> u64 {
        sector / self.shape.sectors
    }

    /// One segment.
    fn get(&self, segment: u64) -> Segment {
        let Pointer { written, closed } = self.pointers[segment as usize];
        let state = match written {
            _ if closed => SegmentState::Closed,
            0 => SegmentState::Free,
            all if all == self.shape.sectors => SegmentState::Full,
            _ => SegmentState::Open,
        };
        Segment { state, written }
    }

    /// Takes a command that is within the drive, or says why not; nothing changes then. `is_held` tells of sectors of a closed
    /// segment whether the drive has all of them.
    ///
    /// # Errors
    /// The refusal of the set.
    fn take(&mut self, request: &Request, is_held: impl Fn(u64, u64) -> bool) -> Result<(), Refusal> {
        if request.sectors == 0 {
            return Ok(());
        }
        match request.op {
            Op::Read => self.take_read(request, is_held),
            Op::Write => self.take_write(request),
            Op::Trim => self.take_trim(request),
            Op::Flush => Ok(()),
            Op::WriteZeroes => unreachable!("zeroes are not written to segments"),
        }
    }

    fn take_read(&self, request: &Request, is_held: impl Fn(u64, u64) -> bool) -> Result<(), Refusal> {
        if self.read_unwritten == ReadUnwritten::Zeroes {
            return Ok(());
        }
        for segment in self.of(request.sector)..=self.of(request.end() - 1) {
            let first = segment * self.shape.sectors;
            let (from, to) = (request.sector.max(first), request.end().min(first + self.shape.sectors));
            let Pointer { written, closed } = self.pointers[segment as usize];
            if to - first > written || closed && !is_held(from, to) {
                return Err(UNWRITTEN);
            }
        }
        Ok(())
    }

    fn take_write(&mut self, request: &Request) -> Result<(), Refusal> {
        let unit = self.shape.write_unit;
        if !request.sector.is_multiple_of(unit) || !request.sectors.is_multiple_of(unit) {
            return Err(PART_OF_WRITE_UNIT);
        }
        let segment = self.of(request.sector);
        if self.of(request.end() - 1) != segment {
            return Err(CROSSES_SEGMENTS);
        }
        let within = request.sector % self.shape.sectors;
        let Pointer { written, closed } = &mut self.pointers[segment as usize];
        if within < *written {
            return Err(OVERWRITE);
        }
        if *closed {
            return Err(CLOSED);
        }
        if within > *written {
            return Err(GAP);
        }
        *written += request.sectors;
        Ok(())
    }

    fn take_trim(&mut self, request: &Request) -> Result<(), Refusal> {
        let sectors = self.shape.sectors;
        if !request.sector.is_multiple_of(sectors) || !request.sectors.is_multiple_of(sectors) {
            return Err(PART_OF_SEGMENT);
        }
        for segment in self.of(request.sector)..self.of(request.end()) {
            self.pointers[segment as usize] = Pointer::default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three segments of eight sectors, write units of two: the first has four sectors, the second is full, the third closed
    /// after six; 20 and 21 are missing.
    fn segments(read_unwritten: ReadUnwritten) -> Segments {
        let mut segments = Segments::new(SegmentShape { sectors: 8, count: 4, write_unit: 2 }, read_unwritten);
        segments.set(0, 4, false);
        segments.set(1, 8, false);
        segments.set(2, 6, true);
        segments
    }

    fn is_held(from: u64, to: u64) -> bool {
        to <= 20 || from >= 22
    }

    #[test]
    fn every_command_is_taken_or_refused_for_its_reason() {
        let table = [
            // Writes: the next of its segment, whole units, within it.
            (Op::Write, 4, 2, Ok(())),
            (Op::Write, 4, 4, Ok(())),
            (Op::Write, 24, 8, Ok(())),
            (Op::Write, 0, 2, Err(OVERWRITE)),
            (Op::Write, 2, 4, Err(OVERWRITE)),
            (Op::Write, 8, 8, Err(OVERWRITE)),
            (Op::Write, 16, 2, Err(OVERWRITE)),
            (Op::Write, 6, 2, Err(GAP)),
            (Op::Write, 26, 2, Err(GAP)),
            (Op::Write, 22, 2, Err(CLOSED)),
            (Op::Write, 4, 6, Err(CROSSES_SEGMENTS)),
            (Op::Write, 6, 4, Err(CROSSES_SEGMENTS)),
            (Op::Write, 5, 2, Err(PART_OF_WRITE_UNIT)),
            (Op::Write, 4, 3, Err(PART_OF_WRITE_UNIT)),
            (Op::Write, 4, 1, Err(PART_OF_WRITE_UNIT)),
            (Op::Write, 5, 0, Ok(())),
            // Trims: whole segments, any number, written or not.
            (Op::Trim, 0, 8, Ok(())),
            (Op::Trim, 0, 32, Ok(())),
            (Op::Trim, 24, 8, Ok(())),
            (Op::Trim, 16, 8, Ok(())),
            (Op::Trim, 0, 4, Err(PART_OF_SEGMENT)),
            (Op::Trim, 4, 8, Err(PART_OF_SEGMENT)),
            (Op::Trim, 8, 12, Err(PART_OF_SEGMENT)),
            // Reads: what is written, by the sector, across segments.
            (Op::Read, 0, 4, Ok(())),
            (Op::Read, 3, 1, Ok(())),
            (Op::Read, 9, 7, Ok(())),
            (Op::Read, 8, 12, Ok(())),
            (Op::Read, 22, 0, Ok(())),
            (Op::Read, 3, 2, Err(UNWRITTEN)),
            (Op::Read, 0, 9, Err(UNWRITTEN)),
            (Op::Read, 24, 1, Err(UNWRITTEN)),
            (Op::Read, 19, 2, Err(UNWRITTEN)),
            (Op::Read, 22, 1, Err(UNWRITTEN)),
            (Op::Flush, 0, 0, Ok(())),
        ];
        for (op, sector, sectors, expected) in table {
            let mut taken = segments(ReadUnwritten::Error);
            let found = taken.take(&Request::new(op, sector, sectors), is_held);
            assert_eq!(found, expected, "{op:?} of {sectors} sectors from {sector} on");
            let after: Vec<Segment> = (0..4).map(|segment| taken.get(segment)).collect();
            let mut model: Vec<Segment> = (0..4).map(|segment| segments(ReadUnwritten::Error).get(segment)).collect();
            if expected.is_ok() && sectors > 0 {
                let touched = (sector / 8) as usize..=((sector + sectors - 1) / 8) as usize;
                for segment in touched {
                    match op {
                        Op::Trim => model[segment] = Segment { state: SegmentState::Free, written: 0 },
                        Op::Write => {
                            model[segment].written += sectors;
                            let full = model[segment].written == 8;
                            model[segment].state = if full { SegmentState::Full } else { SegmentState::Open };
                        }
                        _ => {}
                    }
                }
            }
            assert_eq!(after, model, "after {op:?} of {sectors} sectors from {sector} on");
            let mut zeroes = segments(ReadUnwritten::Zeroes);
            let found = zeroes.take(&Request::new(op, sector, sectors), is_held);
            assert_eq!(found, if op == Op::Read { Ok(()) } else { expected }, "with zeroes: {op:?} from {sector} on");
        }
    }
}

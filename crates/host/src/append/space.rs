//! Segments for data: which are free, which are being filled, and where the next unit goes.

use std::collections::VecDeque;

use ssdlab_base::{Op, Request};

use super::layout::Layout;
use super::{Append, Purpose};

/// What is done with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It can be opened.
    Free,
    /// Units are appended to it.
    Open,
    /// It takes no more.
    Full,
    /// It is being cleaned, or waits for its TRIM.
    Cleaned,
}

/// A segment for data, or of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) state: State,
    /// Reads of it below.
    pub(super) readers: u32,
    /// Writes to it below.
    pub(super) writes: u32,
    /// Units that all segments together had taken when it was full.
    pub(super) full_since: u64,
    /// It is free, and the drive may say that it is not: a power cut undoes a TRIM that no flush covered.
    needs_trim: bool,
}

/// For whom units are appended: the two never share a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Host,
    Cleaning,
}

/// All segments.
pub(super) struct Space {
    segments: Vec<Segment>,
    free: VecDeque<u32>,
    /// By [`For`]: the open segment, and its next unit.
    open: [Option<(u32, u32)>; 2],
    /// Units that were appended.
    pub(super) clock: u64,
}

impl Space {
    /// Segments with data are full, and the others are free.
    pub(super) fn new(layout: &Layout, holds_data: impl Fn(u32) -> bool) -> Space {
        let free: VecDeque<u32> = layout.data_segments().filter(|segment| !holds_data(*segment)).collect();
        let full = Segment { state: State::Full, readers: 0, writes: 0, full_since: 0, needs_trim: false };
        let mut segments = vec![full; layout.segments as usize];
        free.iter().for_each(|segment| segments[*segment as usize].state = State::Free);
        Space { segments, free, open: [None; 2], clock: 0 }
    }

    pub(super) fn get(&mut self, segment: u32) -> &mut Segment {
        &mut self.segments[segment as usize]
    }

    pub(super) fn look(&self, segment: u32) -> &Segment {
        &self.segments[segment as usize]
    }

    /// Segments that can be opened.
    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Whether there is no room in an open segment, and none may be opened. The host leaves the last free segment to cleaning.
    pub(super) fn is_full(&self, who: For) -> bool {
        self.open[who as usize].is_none() && self.free() <= u32::from(who == For::Host)
    }

    /// Units of so many that the open segment takes.
    pub(super) fn room(&self, who: For, segment_units: u32) -> u32 {
        self.open[who as usize].map_or(0, |(_, next)| segment_units - next)
    }

    /// A segment takes no more.
    fn close(&mut self, who: For) {
        if let Some((segment, _)) = self.open[who as usize].take() {
            self.segments[segment as usize].state = State::Full;
            self.segments[segment as usize].full_since = self.clock;
        }
    }

    /// A segment takes no more if it is open: the drive may have less of it than was sent.
    pub(super) fn close_segment(&mut self, segment: u32) {
        for who in [For::Host, For::Cleaning] {
            if self.open[who as usize].is_some_and(|(open, _)| open == segment) {
                self.close(who);
            }
        }
    }

    /// Segments that can be opened.
    pub(super) fn all_free(&self) -> Vec<u32> {
        self.free.iter().copied().collect()
    }

    /// The power of the drive was lost.
    pub(super) fn power_was_lost(&mut self) {
        self.close(For::Host);
        self.close(For::Cleaning);
        self.free.iter().for_each(|segment| self.segments[*segment as usize].needs_trim = true);
    }
}

impl Append {
    /// The next places, one behind the other: the first, and how many, `most` of them at most.
    pub(super) fn take_places(&mut self, who: For, most: u32) -> Option<(u32, u32)> {
        let segment_units = self.layout.segment_units;
        if self.space.is_full(who) {
            return None;
        }
        if self.space.open[who as usize].is_none() {
            let segment = self.space.free.pop_front()?;
            assert_eq!(self.map.valid(segment), 0, "segment {segment} is free, and holds units");
            self.trim_again(segment);
            self.space.get(segment).state = State::Open;
            self.space.open[who as usize] = Some((segment, 0));
        }
        let (segment, next) = self.space.open[who as usize]?;
        let count = most.min(segment_units - next);
        self.space.open[who as usize] = Some((segment, next + count));
        self.space.clock += u64::from(count);
        if next + count == segment_units {
            self.space.close(who);
        }
        Some((segment * segment_units + next, count))
    }

    /// Appends units.
    pub(super) fn append(&mut self, place: u32, count: u32, queue: u16, cells: &[u8], purpose: Purpose) {
        let segment = self.layout.segment_of(place);
        self.space.get(segment).writes += 1;
        let (sector, sectors) = (self.layout.sector_of(place), u64::from(count) * self.layout.per_unit);
        self.send(Request { queue, ..Request::new(Op::Write, sector, sectors) }, cells, purpose);
    }

    /// Such a write has ended.
    pub(super) fn append_ended(&mut self, place: u32) {
        let segment = self.layout.segment_of(place);
        self.space.get(segment).writes -= 1;
    }

    /// Reads units.
    pub(super) fn read_places(&mut self, request: Request, purpose: Purpose) {
        let segment = self.layout.segment_of((request.sector / self.layout.per_unit) as u32);
        self.space.get(segment).readers += 1;
        self.send(request, &[], purpose);
    }

    /// Such a read has ended.
    pub(super) fn read_ended(&mut self, request: &Request) {
        let segment = self.layout.segment_of((request.sector / self.layout.per_unit) as u32);
        self.space.get(segment).readers -= 1;
    }

    /// A segment holds nothing that is needed, and can be written again.
    pub(super) fn release(&mut self, segment: u32) {
        assert_eq!(self.map.valid(segment), 0, "segment {segment} is trimmed, and holds units");
        self.trim(segment, 1);
        self.space.get(segment).state = State::Free;
        self.space.free.push_back(segment);
    }

    /// Trims a free segment that the drive may have as one that is written.
    pub(super) fn trim_again(&mut self, segment: u32) {
        if std::mem::take(&mut self.space.get(segment).needs_trim) {
            self.trim(segment, 1);
        }
    }

    /// Trims segments. What is sent to them next comes behind it.
    pub(super) fn trim(&mut self, first: u32, count: u32) {
        self.counts.trims += 1;
        self.send(self.target.free(first, count), &[], Purpose::Trim);
    }
}

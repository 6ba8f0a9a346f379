//! Segments: what each is for, how many of its blocks are valid, and which are free.

use std::collections::BTreeSet;

use super::free_segments::FreeSegments;
use crate::format::checkpoint::LOGS;
use crate::format::superblock::Superblock;
use crate::format::usage::{self, MAP_LOG, SegmentUse, Usage};

/// The present use of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Superblock or check-points.
    Fixed,
    /// It can be written from its start.
    Free,
    /// Nothing of it is needed, and the drive does not know yet.
    Leaving,
    /// The log of this number writes it.
    Open(u8),
    /// Full, or left, with its summary at its end.
    Sealed(u8),
    /// Left, with its summary in check-points.
    Loose(u8),
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) state: State,
    /// Valid blocks. Of a segment of the map: blocks that the table, or the list of its blocks, names.
    pub(crate) valid: u32,
    /// Commands that write it.
    pub(crate) writing: u32,
    /// Commands that read it.
    pub(crate) reading: u32,
    /// Blocks that all logs had written when it was written last.
    pub(crate) age: u64,
}

/// All segments.
#[derive(Debug)]
pub(crate) struct Space {
    segments: Vec<Segment>,
    segment_blocks: u32,
    free: FreeSegments,
    /// Sealed or loose segments without valid blocks.
    empty: BTreeSet<u32>,
    /// Blocks of the usage table that the next check-point writes.
    pub(crate) dirty: BTreeSet<u32>,
    /// Blocks that all logs have written.
    pub(crate) clock: u64,
    /// Valid blocks of data and nodes.
    pub(crate) used: u64,
    /// Blocks that are promised to pages and nodes without an address.
    pub(crate) reserved: u64,
    /// Segments of the map.
    pub(crate) map_segments: u32,
    /// A block that was to be freed in a segment that has no valid block.
    pub(crate) contradiction: Option<u32>,
    /// Metadata blocks that are not valid any more and that the last check-point needs, where the drive keeps records for want of bytes.
    stale: Option<Vec<u32>>,
    /// Where the search for a free segment goes on, so that all are used in turn.
    next: u32,
}

impl Space {
    /// All segments before their usage is known.
    pub(crate) fn new(superblock: &Superblock, keeps_records: bool) -> Space {
        let one = Segment { state: State::Leaving, valid: 0, writing: 0, reading: 0, age: 0 };
        let mut segments = vec![one; superblock.segments as usize];
        segments.iter_mut().take(3).for_each(|segment| segment.state = State::Fixed);
        Space {
            segments,
            segment_blocks: superblock.segment_blocks,
            free: FreeSegments::new(superblock.segments),
            empty: BTreeSet::new(),
            dirty: BTreeSet::new(),
            clock: 0,
            used: 0,
            reserved: 0,
            map_segments: 0,
            contradiction: None,
            stale: keeps_records.then(Vec::new),
            next: 3,
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Segment)> {
        (0..).zip(&self.segments)
    }

    pub(crate) fn get(&self, segment: u32) -> &Segment {
        &self.segments[segment as usize]
    }

    pub(crate) const fn segment_of(&self, address: u32) -> u32 {
        address / self.segment_blocks
    }

    /// Free segments.
    pub(crate) const fn free(&self) -> u32 {
        self.free.len()
    }

    fn touch(&mut self, segment: u32) -> &mut Segment {
        self.dirty.insert(segment / usage::ENTRIES as u32);
        &mut self.segments[segment as usize]
    }

    /// A segment is as a check-point says.
    pub(crate) fn load(&mut self, segment: u32, usage: &Usage) {
        let one = &mut self.segments[segment as usize];
        (one.valid, one.age) = (usage.valid, usage.age);
        one.state = match usage.segment_use {
            SegmentUse::Fixed => State::Fixed,
            SegmentUse::Free => State::Leaving,
            SegmentUse::Open(log) => State::Open(log),
            SegmentUse::Sealed(log) => State::Sealed(log),
            SegmentUse::Loose(log) => State::Loose(log),
        };
        let is_map = matches!(one.state, State::Open(MAP_LOG) | State::Sealed(MAP_LOG));
        self.map_segments += u32::from(is_map);
        self.used += u64::from(usage.valid);
        self.settle(segment);
    }

    /// What a check-point says of a segment.
    pub(crate) fn usage(&self, segment: u32) -> Usage {
        let Segment { state, valid, age, .. } = *self.get(segment);
        let segment_use = match state {
            State::Fixed => SegmentUse::Fixed,
            State::Free | State::Leaving => SegmentUse::Free,
            State::Open(log) => SegmentUse::Open(log),
            State::Sealed(log) => SegmentUse::Sealed(log),
            State::Loose(log) => SegmentUse::Loose(log),
        };
        let is_map = matches!(state, State::Open(MAP_LOG) | State::Sealed(MAP_LOG));
        Usage { segment_use, valid: if is_map { 0 } else { valid }, age }
    }

    /// Whether a segment has the blocks of the map.
    fn is_map(&self, segment: u32) -> bool {
        matches!(self.get(segment).state, State::Open(MAP_LOG) | State::Sealed(MAP_LOG))
    }

    /// A block is valid from now on.
    pub(crate) fn add(&mut self, address: u32) {
        let segment = self.segment_of(address);
        // Check-points do not say what is valid in segments of the map.
        if self.is_map(segment) {
            self.segments[segment as usize].valid += 1;
        } else {
            self.touch(segment).valid += 1;
            self.used += 1;
        }
        self.empty.remove(&segment);
    }

    /// A block is not valid any more. Where the segment has no valid block, metadata of the drive contradicts itself, and that is noted.
    pub(crate) fn remove(&mut self, address: u32) {
        let segment = self.segment_of(address);
        if self.segments.get(segment as usize).is_none_or(|one| one.valid == 0) {
            self.contradiction.get_or_insert(address);
            return;
        }
        let is_map = self.is_map(segment);
        let one = if is_map { &mut self.segments[segment as usize] } else { self.touch(segment) };
        one.valid -= 1;
        self.used = self.used.saturating_sub(u64::from(!is_map));
        self.settle(segment);
    }

    /// A block of metadata is not valid any more.
    pub(crate) fn remove_metadata(&mut self, address: u32) {
        self.remove(address);
        if let Some(stale) = &mut self.stale {
            stale.push(address);
        }
    }

    /// The metadata blocks that were removed since the last call: the check-point that is made now does not need them.
    pub(crate) fn take_stale(&mut self) -> Vec<u32> {
        self.stale.as_mut().map_or(Vec::new(), std::mem::take)
    }

    /// Notes whether a segment can leave.
    fn settle(&mut self, segment: u32) {
        let one = self.get(segment);
        let is_left = matches!(one.state, State::Sealed(_) | State::Loose(_));
        if is_left && one.valid == 0 && one.writing == 0 {
            self.empty.insert(segment);
        } else {
            self.empty.remove(&segment);
        }
    }

    /// Whether a check-point would free segments.
    pub(crate) fn any_empty(&self) -> bool {
        !self.empty.is_empty()
    }

    /// Segments that the next check-point frees.
    pub(crate) fn empties(&self) -> u32 {
        self.empty.len() as u32
    }

    /// Segments without anything valid leave: the check-point that is being made calls them free.
    pub(crate) fn leave(&mut self) -> Vec<u32> {
        let leaving: Vec<u32> = std::mem::take(&mut self.empty).into_iter().collect();
        for segment in &leaving {
            self.map_segments -= u32::from(self.is_map(*segment));
            self.touch(*segment).state = State::Leaving;
        }
        leaving
    }

    /// A segment can be written from its start.
    pub(crate) fn set_free(&mut self, segment: u32) {
        let one = &mut self.segments[segment as usize];
        assert_eq!((one.state, one.valid), (State::Leaving, 0), "segment {segment} leaves");
        one.state = State::Free;
        self.free.insert(segment);
    }

    /// Takes a free segment for a log.
    pub(crate) fn open(&mut self, log: u8) -> Option<u32> {
        let segment = self.free.take(self.next)?;
        self.next = segment + 1;
        self.map_segments += u32::from(log == MAP_LOG);
        let clock = self.clock;
        let one = self.touch(segment);
        (one.state, one.age) = (State::Open(log), clock);
        Some(segment)
    }

    /// A log leaves its segment, with or without a summary at its end.
    pub(crate) fn seal(&mut self, segment: u32, log: u8, has_summary: bool) {
        let clock = self.clock;
        let one = self.touch(segment);
        one.state = if has_summary { State::Sealed(log) } else { State::Loose(log) };
        one.age = clock;
        self.settle(segment);
    }

    /// Commands begin or end to write a segment.
    pub(crate) fn write_begins(&mut self, segment: u32) {
        self.segments[segment as usize].writing += 1;
        self.settle(segment);
    }

    /// A command that wrote a segment has ended.
    pub(crate) fn write_ends(&mut self, segment: u32) {
        self.segments[segment as usize].writing -= 1;
        self.settle(segment);
    }

    /// Commands that read a segment.
    pub(crate) fn reading(&mut self, segment: u32) -> &mut u32 {
        &mut self.segments[segment as usize].reading
    }

    /// Segments of each log that have valid blocks or are open.
    pub(crate) fn by_log(&self) -> [u32; LOGS] {
        let mut segments = [0; LOGS];
        for one in &self.segments {
            match one.state {
                State::Open(log) => segments[usize::from(log)] += 1,
                State::Sealed(log) | State::Loose(log) => segments[usize::from(log)] += u32::from(one.valid > 0),
                State::Fixed | State::Free | State::Leaving => {}
            }
        }
        segments
    }

    /// Bytes of the table, and of the set of free segments.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.segments.len() * size_of::<Segment>() + self.free.memory_bytes()
    }
}

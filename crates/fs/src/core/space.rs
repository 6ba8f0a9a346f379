//! Segments: what each is for, how many of its blocks are valid, and which are free.

use std::collections::BTreeSet;

use super::free_segments::FreeSegments;
use crate::format::checkpoint::LOGS;
use crate::format::superblock::Superblock;
use crate::format::usage::{MAP_LOG, SegmentUse, Usage, words_of};
use crate::seeded::{FsBug, seeded};

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

/// Bits for each block.
#[derive(Debug)]
pub(crate) struct ValidBits {
    /// It is valid now.
    now: Vec<u64>,
    /// It is needed by the newest check-point, or by what fsyncs wrote behind it: it was valid then, or became so since.
    needed: Vec<u64>,
    /// Segments as the check-point on its way says.
    coming: Vec<(u32, Vec<u64>)>,
    /// Words of a segment.
    words: usize,
    segment_blocks: u32,
}

impl ValidBits {
    fn new(superblock: &Superblock) -> ValidBits {
        let words = words_of(superblock.segment_blocks);
        let now = vec![0; words * superblock.segments as usize];
        ValidBits { needed: now.clone(), now, coming: Vec::new(), words, segment_blocks: superblock.segment_blocks }
    }

    fn set(&mut self, address: u32, is_valid: bool) {
        let (segment, block) = (address / self.segment_blocks, address % self.segment_blocks);
        let (word, bit) = (segment as usize * self.words + block as usize / 64, 1 << (block % 64));
        if is_valid {
            self.now[word] |= bit;
            self.needed[word] |= bit;
        } else {
            self.now[word] &= !bit;
        }
    }

    fn is_valid(&self, address: u32) -> bool {
        let (segment, block) = (address / self.segment_blocks, address % self.segment_blocks);
        self.now[segment as usize * self.words + block as usize / 64] >> (block % 64) & 1 == 1
    }

    /// Those of a segment.
    pub(crate) fn of(&self, segment: u32) -> &[u64] {
        &self.now[segment as usize * self.words..][..self.words]
    }

    /// A segment is as a check-point says.
    pub(crate) fn load(&mut self, segment: u32, bits: &[u64]) {
        self.now[segment as usize * self.words..][..self.words].copy_from_slice(bits);
        self.needed[segment as usize * self.words..][..self.words].copy_from_slice(bits);
    }

    /// The check-point that is being made says of a segment what is valid now.
    pub(crate) fn tell(&mut self, segment: u32) {
        let bits = self.of(segment).to_vec();
        self.coming.push((segment, bits));
    }

    /// The check-point on its way is durable.
    pub(crate) fn is_told(&mut self) {
        for (segment, bits) in std::mem::take(&mut self.coming) {
            for (index, bits) in bits.into_iter().enumerate() {
                let word = segment as usize * self.words + index;
                self.needed[word] = bits | self.now[word];
            }
        }
    }

    /// Blocks of a segment that can be written again, the last first.
    pub(crate) fn slots(&self, segment: u32) -> Vec<u32> {
        let first = segment as usize * self.words;
        let is_free = |block: &u32| {
            let word = first + *block as usize / 64;
            let needed = if seeded(FsBug::NeededBlockWritten) { 0 } else { self.needed[word] };
            (self.now[word] | needed) >> (block % 64) & 1 == 0
        };
        (0..self.segment_blocks).rev().filter(is_free).collect()
    }

    const fn memory_bytes(&self) -> usize {
        self.now.len() * 16
    }
}

/// All segments.
#[derive(Debug)]
pub(crate) struct Space {
    segments: Vec<Segment>,
    segment_blocks: u32,
    free: FreeSegments,
    /// Sealed or loose segments without valid blocks.
    empty: BTreeSet<u32>,
    /// Blocks of the usage table that the next check-point writes; where entries are journaled, segments whose entry has changed.
    pub(crate) dirty: BTreeSet<u32>,
    /// Segments for each entry of `dirty`.
    dirty_step: u32,
    /// Segments whose entry the newest check-point has in place of the usage table.
    pub(crate) journal: BTreeSet<u32>,
    /// Which blocks are valid, where the usage table says so.
    pub(crate) bits: Option<ValidBits>,
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
        let first = superblock.first_segment();
        segments.iter_mut().take(first as usize).for_each(|segment| segment.state = State::Fixed);
        let bits = superblock.areas.map(|_| ValidBits::new(superblock));
        Space {
            segments,
            segment_blocks: superblock.segment_blocks,
            free: FreeSegments::new(superblock.segments),
            empty: BTreeSet::new(),
            dirty: BTreeSet::new(),
            dirty_step: if bits.is_some() { 1 } else { superblock.usage_entries() },
            journal: BTreeSet::new(),
            bits,
            clock: 0,
            used: 0,
            reserved: 0,
            map_segments: 0,
            contradiction: None,
            stale: keeps_records.then(Vec::new),
            next: first,
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
        self.dirty.insert(segment / self.dirty_step);
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
        if let Some(bits) = &mut self.bits {
            bits.set(address, true);
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
        if let Some(bits) = &mut self.bits {
            bits.set(address, false);
        }
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

    /// A log goes on in the blocks of a segment that are not valid; false if the segment has none that the log may have.
    pub(crate) fn reopen(&mut self, segment: u32, log: u8) -> bool {
        let one = self.get(segment);
        if one.state != State::Sealed(log) || one.writing > 0 || one.valid == 0 {
            return false;
        }
        self.touch(segment).state = State::Open(log);
        self.settle(segment);
        true
    }

    /// Whether an address is that of a valid block in a segment that a log of data or nodes has written. Only bits for each block say so.
    pub(crate) fn is_valid(&self, address: u32) -> bool {
        let segment = self.segment_of(address);
        let is_logged = |one: &Segment| match one.state {
            State::Open(log) | State::Sealed(log) | State::Loose(log) => log != MAP_LOG,
            State::Fixed | State::Free | State::Leaving => false,
        };
        self.segments.get(segment as usize).is_some_and(is_logged)
            && self.bits.as_ref().is_some_and(|bits| bits.is_valid(address))
    }

    /// A log leaves its segment, with or without a summary at its end.
    pub(crate) fn seal(&mut self, segment: u32, log: u8, has_summary: bool) {
        let clock = self.clock;
        let one = self.touch(segment);
        one.state = if has_summary { State::Sealed(log) } else { State::Loose(log) };
        one.age = clock;
        self.settle(segment);
    }

    /// A segment that was left has its summary now.
    pub(crate) fn has_summary(&mut self, segment: u32, log: u8) {
        self.touch(segment).state = State::Sealed(log);
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
        let bits = match &self.bits {
            Some(bits) => bits.memory_bytes(),
            None => 0,
        };
        self.segments.len() * size_of::<Segment>() + self.free.memory_bytes() + bits
    }
}

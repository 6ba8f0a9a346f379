//! Trims: cheap where nothing is mapped, and remembered on flash.
//!
//! A bit a unit tells what is mapped, so a trim of gigabytes that are unmapped already walks words, not entries. What a
//! trim unmapped is made durable by writing the bits of its segment as one metadata unit; recovery believes the newest.
//!
//! A record is `[as_of, revivals, (unit, sequence) for each revival, bits]`. The bits say which units were mapped when
//! program number `as_of` was decided; garbage collection moves the record without changing that. A revival is a unit
//! that was written again after a trim, by a program that had not ended by then: its bit is set, and what was there
//! before the trim is older than `sequence`. There are only as many as programs in flight, so they fit in the header.

use std::io;

use ssdlab_base::{damaged, saved};
use ssdlab_flash::{HugeArray, Lpn};

use super::bit_fields::next_set;

/// What is mapped, and which segments have trims that are not on flash yet.
pub(super) struct TrimState {
    mapped: HugeArray<u64>,
    /// Units of a segment: as many as a mapping unit has bits.
    segment_units: u32,
    segments: u32,
    dirty: Vec<bool>,
    dirty_list: Vec<u32>,
    /// Something was trimmed since the drive was made.
    in_use: bool,
    /// Units written after they were unmapped, and the number of the program, until one of its kind has ended.
    revivals: Vec<(Lpn, u64)>,
    /// How long the list of revivals may grow before those that have ended are dropped.
    revivals_limit: usize,
}

/// Words of a record before its revivals.
const RECORD_HEADER: usize = 2;

/// Revivals are looked through when there are so many.
const REVIVALS_AT_LEAST: usize = 256;

/// A record of trims as recovery reads it.
pub(super) struct TrimRecord<'a> {
    as_of: u64,
    revivals: &'a [u64],
    bits: &'a [u64],
    first: Lpn,
}

impl<'a> TrimRecord<'a> {
    /// The record in a metadata unit's words; `first` is its segment's first unit.
    pub(super) fn new(words: &'a [u64], first: Lpn) -> TrimRecord<'a> {
        assert!(words.len() >= RECORD_HEADER, "a record of trims has {} words", words.len());
        let (revivals, bits) = words[RECORD_HEADER..].split_at(words[1] as usize * 2);
        TrimRecord { as_of: words[0], revivals, bits, first }
    }

    /// Whether a copy of `lpn` that program number `sequence` wrote was trimmed since.
    pub(super) fn trimmed(&self, lpn: Lpn, sequence: u64) -> bool {
        debug_assert!(lpn >= self.first, "unit {lpn} is before the segment that begins with {}", self.first);
        let bit = (lpn - self.first) as usize;
        let was_mapped = self.bits[bit / 64] >> (bit % 64) & 1 != 0;
        let (pairs, _) = self.revivals.as_chunks::<2>();
        let revived = pairs.iter().any(|[unit, since]| *unit == u64::from(lpn.0) && sequence < *since);
        revived || !was_mapped && sequence < self.as_of
    }
}

impl TrimState {
    pub(super) fn new(user_units: u32, unit_bytes: u32) -> TrimState {
        let segment_units = unit_bytes * 8;
        TrimState::of_segments(user_units, segment_units, user_units.div_ceil(segment_units))
    }

    /// What is mapped of the user's units and of `segments` behind them.
    pub(super) fn of_segments(user_units: u32, segment_units: u32, segments: u32) -> TrimState {
        TrimState {
            mapped: HugeArray::new((user_units as usize + segments as usize).div_ceil(64)),
            segment_units,
            segments,
            dirty: vec![false; segments as usize],
            dirty_list: Vec::new(),
            in_use: false,
            revivals: Vec::new(),
            revivals_limit: REVIVALS_AT_LEAST,
        }
    }

    /// Bytes that [`TrimState::new`] takes, and the records of trims of all segments, which the chips keep.
    pub(super) fn simulator_bytes(user_units: u32, unit_bytes: u32) -> u64 {
        let segments = u64::from(user_units.div_ceil(unit_bytes * 8));
        let bits = HugeArray::<u64>::bytes_of((u64::from(user_units) + segments).div_ceil(64));
        2 * bits + segments * size_of::<bool>() as u64
    }

    /// Whether anything was trimmed since the drive was made.
    #[inline]
    pub(super) const fn in_use(&self) -> bool {
        self.in_use
    }

    /// Whether the bit of a unit says that it is mapped.
    #[inline]
    pub(super) fn is_mapped(&self, lpn: Lpn) -> bool {
        self.mapped.get(lpn.index() / 64) >> (lpn % 64) & 1 != 0
    }

    /// Whether words are a record of a segment, as far as their number tells.
    pub(super) fn is_record(&self, words: &[u64], segment: u32, user_units: u32) -> bool {
        let first = segment * self.segment_units;
        let bits = (user_units - first).min(self.segment_units).div_ceil(64);
        let revivals = words.get(1).copied().unwrap_or(u64::MAX);
        u64::try_from(words.len()).is_ok_and(|length| {
            revivals.checked_mul(2).and_then(|pairs| pairs.checked_add(RECORD_HEADER as u64 + u64::from(bits)))
                == Some(length)
        })
    }

    /// Takes a record that a snapshot holds, and refuses words that are none.
    pub(super) fn accept_record(&mut self, words: Option<&[u64]>, segment: u32, user_units: u32) -> io::Result<()> {
        assert!(segment < self.segments, "segment {segment} of {}", self.segments);
        if !words.is_some_and(|words| self.is_record(words, segment, user_units)) {
            return Err(damaged("a record of trims is not whole"));
        }
        self.in_use = true;
        Ok(())
    }

    /// Recovery found a record.
    pub(super) fn set_in_use(&mut self) {
        self.in_use = true;
    }

    pub(super) const fn segments(&self) -> u32 {
        self.segments
    }

    pub(super) fn bytes(&self) -> u64 {
        self.mapped.bytes()
    }

    pub(super) fn pending(&self) -> u32 {
        self.dirty_list.len() as u32
    }

    #[inline]
    pub(super) fn mapped(&mut self, lpn: Lpn) {
        self.mapped.as_mut_slice()[lpn.index() / 64] |= 1 << (lpn % 64);
    }

    pub(super) fn unmapped(&mut self, lpn: Lpn) {
        debug_assert!(self.is_mapped(lpn), "unit {lpn} is unmapped, and was not mapped");
        self.mapped.as_mut_slice()[lpn.index() / 64] &= !(1 << (lpn % 64));
    }

    /// The next mapped unit in `from..end`.
    pub(super) fn next_mapped(&self, from: Lpn, end: Lpn) -> Option<Lpn> {
        next_set(self.mapped.as_slice(), from.0, end.0).map(Lpn)
    }

    /// A unit's trim is not on flash yet.
    pub(super) fn mark_dirty(&mut self, lpn: Lpn) {
        self.in_use = true;
        debug_assert!(!self.is_mapped(lpn), "the trim of unit {lpn} is to be saved, and it is mapped");
        let segment = lpn / self.segment_units;
        if !std::mem::replace(&mut self.dirty[segment as usize], true) {
            self.dirty_list.push(segment);
        }
    }

    /// The bits of a segment's units: set is mapped.
    fn bits(&self, segment: u32, user_units: u32) -> Box<[u64]> {
        let first = (segment * self.segment_units) as usize;
        let end = (first + self.segment_units as usize).min(user_units as usize);
        let mut words: Box<[u64]> = self.mapped.as_slice()[first / 64..end.div_ceil(64)].into();
        if !end.is_multiple_of(64) {
            // The last word's other bits belong to the bitmaps themselves.
            let last = words.len() - 1;
            words[last] &= (1 << (end % 64)) - 1;
        }
        words
    }

    pub(super) fn clear(&mut self) {
        self.mapped.as_mut_slice().fill(0);
        self.dirty.fill(false);
        self.dirty_list.clear();
        self.revivals.clear();
    }

    /// A segment with a trim that is not on flash yet.
    pub(super) fn next_unsaved(&self) -> Option<u32> {
        self.dirty_list.last().copied()
    }

    /// The record of the segment that [`TrimState::next_unsaved`] gave was handed to the chips.
    pub(super) fn saved(&mut self) {
        if let Some(segment) = self.dirty_list.pop() {
            let was_dirty = std::mem::replace(&mut self.dirty[segment as usize], false);
            assert!(was_dirty, "segment {segment} was saved, and had nothing to save");
        }
    }

    /// `lpn` held nothing and program number `since` writes it. Until that has ended, a record that calls the unit mapped
    /// must say since when, or a power cut would bring back what was there before the trim.
    pub(super) fn revive(&mut self, lpn: Lpn, since: u64) {
        self.revivals.push((lpn, since));
    }

    /// Whether revivals should be looked through.
    pub(super) fn has_many_revivals(&self) -> bool {
        self.revivals.len() >= self.revivals_limit
    }

    /// They were: so many more may come before the next look.
    pub(super) fn limit_revivals(&mut self) {
        self.revivals_limit = (self.revivals.len() * 2).max(REVIVALS_AT_LEAST);
    }

    /// All revivals, to be given back with [`TrimState::put_revivals`].
    pub(super) fn take_revivals(&mut self) -> Vec<(Lpn, u64)> {
        std::mem::take(&mut self.revivals)
    }

    pub(super) fn put_revivals(&mut self, revivals: Vec<(Lpn, u64)>) {
        self.revivals = revivals;
    }

    /// The record of a segment as things are now, when the next program is number `as_of`.
    pub(super) fn record(&self, as_of: u64, segment: u32, user_units: u32) -> Box<[u64]> {
        let in_segment = |lpn: Lpn| lpn / self.segment_units == segment;
        let revivals = self.revivals.iter().filter(|(lpn, _)| in_segment(*lpn));
        let mut words = vec![as_of, 0];
        for (lpn, sequence) in revivals {
            debug_assert!(
                *sequence <= as_of,
                "unit {lpn} came back with program {sequence}, after the record of {as_of}"
            );
            words.extend([u64::from(lpn.0), *sequence]);
            words[1] += 1;
        }
        words.extend_from_slice(&self.bits(segment, user_units));
        words.into()
    }

    pub(super) const fn segment_units(&self) -> u32 {
        self.segment_units
    }

    /// Marks the segments of a restored list as dirty, and refuses a list that names one twice or behind the last.
    pub(super) fn accept(&mut self) -> io::Result<()> {
        assert!(!self.dirty.contains(&true), "a state is restored into one without trims");
        self.in_use |= !self.dirty_list.is_empty();
        for segment in &self.dirty_list {
            match self.dirty.get_mut(*segment as usize) {
                Some(dirty) if !*dirty => *dirty = true,
                _ => return Err(damaged("a segment with trims that are not on flash is unknown, or named twice")),
            }
        }
        Ok(())
    }
}

// The list is in the order in which segments became dirty: the one in which their records will be written.
saved!(TrimState: mapped, dirty_list);

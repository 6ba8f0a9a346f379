//! The read cache: segments of consecutive sectors, and what is read ahead. The least recently used segment is replaced.
//!
//! A segment says which sectors the disk need not read again. Their data is that of the medium and of the write cache, so a
//! write leaves segments as they are.

use std::ops::{Range, RangeInclusive};

use ssdlab_base::Nanos;

use crate::config::ReadCacheConfig;
use crate::mechanism::{Mechanism, Track};

/// Consecutive sectors that are in the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    /// When it was used, in steps; 0 is never.
    used: u64,
}

ssdlab_base::saved!(Segment: start, end, used);

/// Sectors that the heads read without a command.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    /// The segment that they go to.
    segment: u32,
    /// The first of them.
    from: u64,
    /// A head is on its track at this time, in nanoseconds.
    time: u64,
    /// The sector behind the last of them.
    limit: u64,
}

ssdlab_base::saved!(Ahead: segment, from, time, limit);

/// The cache.
pub(crate) struct Segments {
    segments: Vec<Segment>,
    ahead: Option<Ahead>,
    steps: u64,
    /// Sectors of a segment.
    most: u64,
    /// Sectors that are read ahead.
    distance: u64,
    /// Sectors of the disk.
    sectors: u64,
}

ssdlab_base::saved!(Segments: segments[..], ahead, steps);

impl Segments {
    pub(crate) fn new(config: &ReadCacheConfig, sectors: u64) -> Segments {
        Segments {
            segments: vec![Segment::default(); config.segments as usize],
            ahead: None,
            steps: 0,
            most: config.segment_bytes / ssdlab_base::SECTOR_BYTES,
            distance: config.ahead_bytes / ssdlab_base::SECTOR_BYTES,
            sectors,
        }
    }

    fn set_end(&mut self, index: u32, end: u64) {
        let segment = &mut self.segments[index as usize];
        debug_assert!(end >= segment.end, "a segment grows");
        segment.end = end;
        segment.start = segment.start.max(end.saturating_sub(self.most));
    }

    /// Notes what was read ahead by `now`.
    fn advance(&mut self, mechanism: &Mechanism, now: Nanos) -> Option<Ahead> {
        let ahead = self.ahead?;
        let passed = mechanism.passed(ahead.from, ahead.limit, Nanos(ahead.time), false, now);
        self.set_end(ahead.segment, ahead.from + passed);
        Some(ahead)
    }

    /// Reading ahead goes on from `from`; a head is on the track of the sector before it at `time`.
    fn go_on(&mut self, mechanism: &Mechanism, segment: u32, from: u64, time: Nanos, limit: u64) {
        let limit = limit.min(self.sectors);
        self.ahead = (from < limit).then(|| {
            let time = time + mechanism.movement(mechanism.track(from - 1), mechanism.track(from), false);
            Ahead { segment, from, time: time.0, limit }
        });
    }

    /// Whether all of a range is cached. Reading ahead goes on behind it.
    pub(crate) fn hits(&mut self, mechanism: &Mechanism, range: &Range<u64>, now: Nanos) -> bool {
        let ahead = self.advance(mechanism, now);
        let holds = |segment: &Segment| segment.start <= range.start && range.end <= segment.end;
        let Some(index) = self.segments.iter().position(holds) else { return false };
        self.steps += 1;
        self.segments[index].used = self.steps;
        if let Some(ahead) = ahead.filter(|ahead| ahead.segment as usize == index) {
            let limit = (range.end + self.distance).min(self.sectors);
            if self.segments[index].end < ahead.limit {
                self.ahead = Some(Ahead { limit: limit.max(ahead.limit), ..ahead });
            } else if limit > ahead.limit {
                self.go_on(mechanism, ahead.segment, ahead.limit, now, limit);
            }
        }
        true
    }

    /// The sectors that are there of what is read ahead, and the next one to come: a read that begins there, and ends behind them,
    /// needs no movement.
    pub(crate) fn continued(&mut self, mechanism: &Mechanism, now: Nanos) -> Option<RangeInclusive<u64>> {
        let ahead = self.advance(mechanism, now)?;
        let segment = self.segments[ahead.segment as usize];
        Some(segment.start..=segment.end)
    }

    /// When the sectors up to `end` have passed heads that go on reading ahead.
    pub(crate) fn passes(&self, mechanism: &Mechanism, end: u64, now: Nanos) -> Option<Nanos> {
        let ahead = self.ahead?;
        // Heads that have read all they were to read are still on the track.
        let (from, time) = match self.segments[ahead.segment as usize].end < ahead.limit {
            true => (ahead.from, Nanos(ahead.time)),
            false => {
                let (last, next) = (mechanism.track(ahead.limit - 1), mechanism.track(ahead.limit));
                (ahead.limit, now + mechanism.movement(last, next, false))
            }
        };
        Some(mechanism.pass(from, end, time, false).max(now))
    }

    /// Reading ahead ends, as the heads do something else; where they are, if they were reading ahead.
    pub(crate) fn stop(&mut self, mechanism: &Mechanism, now: Nanos) -> Option<Track> {
        let ahead = self.advance(mechanism, now)?;
        self.ahead = None;
        Some(mechanism.track((self.segments[ahead.segment as usize].end - 1).max(ahead.from - 1)))
    }

    /// The heads have read `range`, and read on.
    pub(crate) fn was_read(&mut self, mechanism: &Mechanism, range: &Range<u64>, now: Nanos) {
        self.steps += 1;
        // What the range begins in or behind grows by it, otherwise the oldest makes room.
        let grows = |segment: &Segment| segment.used > 0 && (segment.start..=segment.end).contains(&range.start);
        let index = self.segments.iter().position(grows);
        let index = index.unwrap_or_else(|| {
            let oldest = self.segments.iter().enumerate().min_by_key(|(_, segment)| segment.used);
            let index = oldest.map_or(0, |(index, _)| index);
            self.segments[index] = Segment { start: range.start, end: range.start, used: self.steps };
            index
        });
        self.segments[index].used = self.steps;
        let end = range.end.max(self.segments[index].end);
        self.set_end(index as u32, end);
        self.go_on(mechanism, index as u32, range.end, now, range.end + self.distance);
        // What is known already is not read again.
        if end > range.end {
            self.ahead = None;
        }
    }

    /// The power has gone.
    pub(crate) fn clear(&mut self) {
        self.segments.fill(Segment::default());
        self.ahead = None;
        self.steps = 0;
    }

    /// Whether every segment is on the disk and no longer than it can be.
    pub(crate) fn is_consistent(&self) -> bool {
        let fits = |segment: &Segment| {
            segment.used <= self.steps
                && segment.start <= segment.end
                && segment.end <= self.sectors
                && segment.end - segment.start <= self.most
        };
        let of_ahead = |ahead: &Ahead| {
            let index = ahead.segment as usize;
            let follows =
                self.segments.get(index).is_some_and(|segment| (ahead.from..=ahead.limit).contains(&segment.end));
            follows
                && ahead.time < Nanos::HORIZON.0
                && 0 < ahead.from
                && ahead.from < ahead.limit
                && ahead.limit <= self.sectors
        };
        self.steps < u64::MAX / 2 && self.segments.iter().all(fits) && self.ahead.iter().all(of_ahead)
    }
}

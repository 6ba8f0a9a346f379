//! What the heads do next: the command that they reach first, and cached data when no read is to be done, when the cache is
//! full, or for a flush.

use std::ops::Range;

use ssdlab_base::{Nanos, Op};

use super::{Disk, Event};
use crate::mechanism::{Access, Target, Track};
use crate::seeded::{DiskBug, seeded};

/// What the heads are doing.
#[derive(Debug, Default)]
pub(super) struct Operation {
    /// The command that they read for; `None` where they write.
    reads_for: Option<u32>,
    pub(super) first: u64,
    pub(super) end: u64,
    /// A head is on the first sector's track at this time, in nanoseconds.
    pub(super) on_track: u64,
    /// The last sector has passed, in nanoseconds.
    pub(super) done: u64,
    /// Writes that had taken effect when it began.
    writes: u64,
    /// What it writes.
    pub(super) data: Vec<u8>,
}

ssdlab_base::saved!(Operation: reads_for, first, end, on_track, done, writes, data);

impl Operation {
    pub(super) fn sectors_to_write(&self) -> u64 {
        if self.reads_for.is_some() { 0 } else { self.end - self.first }
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.first..self.end
    }

    /// Whether `sector` is being written, and the first sector up to `end` from which on that is different.
    pub(super) fn run(&self, sector: u64, end: u64) -> (bool, u64) {
        match self.sectors_to_write() {
            0 => (false, end),
            _ if sector < self.first => (false, end.min(self.first)),
            _ if sector < self.end => (true, end.min(self.end)),
            _ => (false, end),
        }
    }

    /// Copies what it writes of `range` over `data`.
    pub(super) fn read(&self, range: &Range<u64>, per_sector: usize, data: &mut [u8]) {
        let (from, to) = (range.start.max(self.first), range.end.min(self.end));
        if self.sectors_to_write() == 0 || from >= to {
            return;
        }
        let bytes = |sector: u64, first: u64| (sector - first) as usize * per_sector;
        data[bytes(from, range.start)..bytes(to, range.start)]
            .copy_from_slice(&self.data[bytes(from, self.first)..bytes(to, self.first)]);
    }
}

/// What the heads may do next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// This one of the commands that wait for them.
    Command(usize),
    /// Write cached data from this sector on.
    Cached(u64),
}

impl Disk {
    /// Where the heads are.
    fn where_heads_are(&mut self) -> Track {
        if let Some(track) = self.segments.stop(&self.mechanism, self.now) {
            self.track = track;
        }
        self.track
    }

    /// The heads do something, if they are free and there is something to do.
    pub(super) fn use_heads(&mut self) {
        if self.operation.is_some() || (self.for_heads.is_empty() && self.cache.is_empty()) {
            return;
        }
        let writes_cached = self.may_write_cached();
        if self.for_heads.is_empty() && !writes_cached {
            return;
        }
        // A read that what is read ahead will reach needs no movement: nothing is closer.
        let continued = self.continued_read();
        if let Some((index, done)) = continued
            && (index == 0 || !self.oldest_is_overdue())
        {
            return self.go_on_reading(index, done);
        }
        let track = self.where_heads_are();
        let Some((choice, access)) = self.choose(track, writes_cached) else { return };
        match choice {
            Choice::Command(index) => self.serve(index, access),
            Choice::Cached(sector) => {
                if self.cache.oldest().is_some_and(|(oldest, _)| oldest == sector) {
                    self.since_oldest = 0;
                }
                self.write_cached(sector, self.config.sectors, access);
            }
        }
    }

    /// Whether there is a reason to write cached data now; otherwise the heads look again when they have rested.
    fn may_write_cached(&mut self) -> bool {
        if self.cache.is_empty() {
            return false;
        }
        if self.flush.is_some() || !self.no_space.is_empty() {
            return true;
        }
        if self.for_heads.iter().any(|slot| self.commands[*slot as usize].op == Op::Read) {
            return false;
        }
        let rested = Nanos(self.last_read) + self.config.write_cache.idle;
        if rested > self.now {
            if self.rested_at.is_none_or(|at| at > rested) {
                self.rested_at = Some(rested);
                self.schedule(rested, Event::Rested);
            }
            return false;
        }
        true
    }

    fn oldest_is_overdue(&self) -> bool {
        self.for_heads
            .front()
            .is_some_and(|slot| self.now.since(self.commands[*slot as usize].since) >= self.config.queue.age_limit)
    }

    /// The first command that waits for what is read ahead, and when it ends.
    fn continued_read(&mut self) -> Option<(usize, Nanos)> {
        if self.for_heads.is_empty() {
            return None;
        }
        let continued = self.segments.continued(&self.mechanism, self.now)?;
        let goes_on = |slot: &u32| {
            let command = &self.commands[*slot as usize];
            let range = &command.range;
            command.op == Op::Read && continued.contains(&range.start) && range.end > *continued.end()
        };
        let index = self.for_heads.iter().position(goes_on)?;
        let end = self.commands[self.for_heads[index] as usize].range.end;
        Some((index, self.segments.passes(&self.mechanism, end, self.now)?))
    }

    /// A command waits for the heads from now on, or for other sectors than before.
    pub(super) fn aim(&mut self, slot: u32) {
        let command = &mut self.commands[slot as usize];
        let sector = command.left.first().map_or(command.range.start, |left| left.start);
        command.target = self.mechanism.target(sector);
    }

    /// What the heads reach first from `track`. A command, or cached data, that is too old goes first.
    fn choose(&mut self, track: Track, writes_cached: bool) -> Option<(Choice, Access)> {
        if self.oldest_is_overdue() {
            self.counters.aged += 1;
            let command = &self.commands[self.for_heads[0] as usize];
            let access = self.mechanism.access(track, self.now, &command.target, command.op == Op::Write);
            return Some((Choice::Command(0), access));
        }
        let mut best: Option<(Choice, Access)> = None;
        // A movement that takes longer than the best access as a whole needs no look at the rotation.
        let mut look = |choice, target: &Target, is_write| {
            let least = best.map_or(Nanos::MAX, |(_, access)| access.time());
            if self.mechanism.movement(track, target.track, is_write) < least {
                let access = self.mechanism.access(track, self.now, target, is_write);
                if access.time() < least {
                    best = Some((choice, access));
                }
            }
        };
        for (index, slot) in self.for_heads.iter().enumerate() {
            let command = &self.commands[*slot as usize];
            look(Choice::Command(index), &command.target, command.op == Op::Write);
        }
        if !writes_cached {
            return best;
        }
        let (oldest, since) = self.cache.oldest().expect("cached data is to be written");
        let is_turn = self.since_oldest >= u64::from(self.config.write_cache.candidates);
        if is_turn && self.now.since(since) >= self.config.write_cache.age_limit {
            look(Choice::Cached(oldest), &self.mechanism.target(oldest), true);
        } else {
            let candidates = self.cache.run_starts(self.behind, self.config.write_cache.candidates as usize);
            candidates
                .into_iter()
                .for_each(|sector| look(Choice::Cached(sector), &self.mechanism.target(sector), true));
        }
        best
    }

    fn begin(&mut self, access: Access, operation: Operation) {
        debug_assert!(self.operation.is_none(), "the heads do one thing at a time");
        debug_assert!(operation.first < operation.end, "the heads pass {:?}", operation.range());
        self.counters.seeks += u64::from(access.moves);
        self.counters.seek_ns += access.seek.0;
        self.counters.rotational_waits += u64::from(access.wait > Nanos::ZERO);
        self.counters.rotational_wait_ns += access.wait.0;
        self.schedule(Nanos(operation.done), Event::Heads);
        self.operation = Some(operation);
    }

    fn serve(&mut self, index: usize, access: Access) {
        self.counters.reorders += u64::from(index > 0);
        let slot = self.for_heads[index];
        let command = &self.commands[slot as usize];
        if command.op == Op::Write {
            let left = command.left[0].clone();
            return self.write_cached(left.start, left.end, access);
        }
        let range = command.range.clone();
        self.for_heads.remove(index);
        self.counters.media_reads += 1;
        let on_track = self.now + access.seek;
        let done = self.mechanism.pass(range.start, range.end, on_track, false);
        self.begin(access, self.reading(slot, &range, on_track, done));
    }

    fn reading(&self, slot: u32, range: &Range<u64>, on_track: Nanos, done: Nanos) -> Operation {
        let writes = self.writes;
        Operation {
            reads_for: Some(slot),
            first: range.start,
            end: range.end,
            on_track: on_track.0,
            done: done.0,
            writes,
            data: Vec::new(),
        }
    }

    fn go_on_reading(&mut self, index: usize, done: Nanos) {
        self.counters.reorders += u64::from(index > 0);
        self.counters.media_reads += 1;
        let slot = self.for_heads.remove(index).expect("it waits for the heads");
        let range = self.commands[slot as usize].range.clone();
        self.segments.stop(&self.mechanism, self.now);
        let access = Access { seek: Nanos::ZERO, wait: Nanos::ZERO, moves: false };
        self.begin(access, self.reading(slot, &range, self.now, done));
    }

    /// Writes what is cached without a gap from `first` on, up to `end` and to the end of the track: then the heads look again.
    fn write_cached(&mut self, first: u64, end: u64, access: Access) {
        let end = self.cache.run_end(first, end.min(self.mechanism.track_end(first)).min(self.config.sectors));
        let data = self.cache.take(&(first..end));
        let on_track = self.now + access.seek;
        let done = self.mechanism.pass(first, end, on_track, true);
        self.counters.media_writes += 1;
        self.since_oldest = self.since_oldest.saturating_add(1);
        self.begin(
            access,
            Operation { reads_for: None, first, end, on_track: on_track.0, done: done.0, writes: self.writes, data },
        );
    }

    /// The last sector has passed.
    pub(super) fn heads_are_done(&mut self) {
        let operation = self.operation.take().expect("the heads were doing something");
        let range = operation.range();
        self.track = self.mechanism.track(range.end - 1);
        self.behind = range.end;
        match operation.reads_for {
            Some(slot) => {
                self.last_read = self.now.0;
                self.segments.was_read(&self.mechanism, &range, self.now);
                let bytes = (range.end - range.start) * ssdlab_base::SECTOR_BYTES;
                let at = self.link.stream(Nanos(operation.on_track), self.now, bytes).max(self.now);
                self.schedule(at, Event::Complete(slot));
            }
            None => self.was_written(&operation),
        }
        self.use_heads();
    }

    fn was_written(&mut self, operation: &Operation) {
        let range = operation.range();
        self.counters.sectors_written += range.end - range.start;
        if seeded(DiskBug::LastSectorSkipped) && self.mechanism.track_end(range.start) == range.end {
            let sectors = range.end - range.start - 1;
            self.medium
                .write(&(range.start..range.end - 1), &operation.data[..sectors as usize * self.sector_data_bytes()]);
        } else {
            self.medium.write(&range, &operation.data);
        }
        if seeded(DiskBug::NewerForgotten) {
            self.cache.forget(&range);
        }
        // Writes that waited for these sectors; those of a later one are still in the cache.
        let mut ended = Vec::new();
        for index in 0..self.for_heads.len() {
            let slot = self.for_heads[index];
            let command = &mut self.commands[slot as usize];
            if command.op == Op::Write && (command.number <= operation.writes || seeded(DiskBug::FuaByEarlierOperation))
            {
                command.left = without(&command.left, &range);
                if command.left.is_empty() {
                    ended.push(slot);
                } else {
                    self.aim(slot);
                }
            }
        }
        self.for_heads.retain(|slot| !ended.contains(slot));
        ended.into_iter().for_each(|slot| self.schedule(self.now, Event::Complete(slot)));
        self.take_writes();
        self.end_flush();
    }
}

/// Ranges in order without the sectors of another one.
fn without(ranges: &[Range<u64>], gone: &Range<u64>) -> Vec<Range<u64>> {
    let parts = ranges.iter().flat_map(|range| {
        let before = range.start..range.end.min(gone.start);
        let behind = range.start.max(gone.end)..range.end;
        [before, behind]
    });
    parts.filter(|part| part.start < part.end).collect()
}

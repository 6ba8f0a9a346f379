//! The pass: what is in the oldest places of a full log is copied to where it belongs, and the places are free again.
//!
//! ```text
//!   copying -> copied -> flushing -> freed -> written -> free
//!      ^_________|   a change of what was copied: it is copied again
//! ```
//!
//! Entries stay in the table until the commit's flush has covered the copies, so that a cut before leaves what it found. The
//! places are used again when the header on the device has passed them, and nothing reads them any more.
//!
//! A copy that is below when a device loses its power counts for nothing, but still writes where the device below is a layer that
//! sends it later. Changes and reads of its units wait for its end, and so do flushes: what it writes is then covered.

use std::ops::Range;

use rustc_hash::FxHashSet;
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::commit::Pending;
use super::config::Restore;
use super::{Purpose, Restoring};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

/// A place that cannot be read so often counts as unreadable until its unit is changed.
const TRIES: u32 = 3;

/// How far a pass is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Units are copied.
    Copying,
    /// All are, and the next commit flushes them.
    Copied,
    /// The flush is below.
    Flushing,
    /// The table does not name the places any more; the device does not know.
    Freed,
    /// It does.
    Written,
}

/// A pass over the oldest places of the log.
pub(super) struct Pass {
    /// How many places it frees.
    pub(super) count: u32,
    pub(super) phase: Phase,
    /// Units go to the head of the log.
    goes_forward: bool,
    /// Units and their places that are to be copied, the next one last.
    todo: Vec<(u32, u32)>,
    /// Places that were copied to their units' own addresses.
    copied: FxHashSet<u32>,
    /// Something has changed since it was looked for what is to be copied.
    looks: bool,
    /// A copy could not be read: units are copied one by one.
    one_by_one: bool,
}

impl Pass {
    /// Whether a power cut of a device below undoes it.
    pub(super) fn is_undone_by_a_cut(&self) -> bool {
        matches!(self.phase, Phase::Copying | Phase::Copied | Phase::Flushing)
    }

    pub(super) fn copied(&mut self) -> &mut FxHashSet<u32> {
        &mut self.copied
    }
}

/// A copy below.
pub(super) struct Move {
    /// Units and their places.
    entries: Vec<(u32, u32)>,
    /// The first of the places that it goes to, if it stays in the log.
    to: Option<u32>,
    cells: Vec<u8>,
    /// Reads that have not ended.
    left: u32,
    status: Status,
    /// A device below has lost its power since it began: it counts for nothing.
    void: bool,
}

impl Move {
    /// Whether it counts for nothing; it may write all the same.
    pub(super) const fn is_void(&self) -> bool {
        self.void
    }

    pub(super) fn touches(&self, units: &Range<u32>) -> bool {
        self.entries.iter().any(|(unit, _)| units.contains(unit))
    }
}

impl Restoring {
    /// Whether a copy below is of one of these units.
    pub(super) fn is_moving(&self, units: &Range<u32>) -> bool {
        self.moves.all().any(|(_, one)| one.touches(units))
    }

    /// Whether one of these units was copied by a pass whose flush is below.
    pub(super) fn is_settling(&self, units: &Range<u32>) -> bool {
        let Some(pass) = self.pass.as_ref().filter(|pass| pass.phase == Phase::Flushing) else { return false };
        let is_in_pass = |unit| self.table.place_of(unit).is_some_and(|place| self.ring.before(place) < pass.count);
        self.table.in_range(units.clone()).into_iter().any(is_in_pass)
    }

    /// Goes on with the pass, or begins one where a write waits for places.
    pub(super) fn restore(&mut self) {
        loop {
            if self.stuck.is_some() {
                return self.give_up_waiting();
            }
            if self.pass.is_some() {
                if !self.go_on() {
                    return;
                }
                continue;
            }
            if !self.for_places.is_empty() {
                self.give_places();
            }
            if !self.wants_room || self.is_blocked || !self.begin_pass() {
                return;
            }
        }
    }

    /// A pass over the places that were given out before the oldest write to the log that has not ended; false if there are none.
    fn begin_pass(&mut self) -> bool {
        let packs = self.packs.all().map(|(_, pack)| pack.first);
        let firsts = packs.chain(self.moves.all().filter_map(|(_, one)| one.to)).chain(self.packing.oldest());
        let complete = firsts.map(|first| self.ring.before(first)).min().unwrap_or(self.ring.used());
        let count = complete.min(self.range);
        if count == 0 {
            return false;
        }
        self.counts.passes += 1;
        let live = self.live_in(count).count() as u64;
        // A segment of which all is live gains nothing at the head of the log.
        let is_little = live < u64::from(count) && live * 100 <= u64::from(self.config.live) * u64::from(count);
        self.pass = Some(Pass {
            count,
            phase: Phase::Copying,
            goes_forward: self.config.restore == Restore::Lsdm && is_little,
            todo: Vec::new(),
            copied: FxHashSet::default(),
            looks: true,
            one_by_one: false,
        });
        true
    }

    /// What the pass is to copy may have changed.
    pub(super) fn look_again(&mut self) {
        if let Some(pass) = &mut self.pass {
            pass.looks = true;
        }
    }

    /// True if something has changed that may let the pass go on at once, or it is over.
    fn go_on(&mut self) -> bool {
        let Some(pass) = &self.pass else { return true };
        match pass.phase {
            Phase::Copying => {
                self.send_moves();
                let is_copying = self.moves.all().any(|(_, one)| !one.void);
                !is_copying && self.find_what_is_left()
            }
            Phase::Copied | Phase::Flushing | Phase::Freed => false,
            Phase::Written => {
                let count = pass.count;
                if self.ring.oldest(count).any(|place| self.readers[place as usize] > 0) {
                    return false;
                }
                self.ring.release(count);
                self.tail += u64::from(count);
                assert_eq!(self.tail, self.records.freed(), "what is free is what the header says");
                self.pass = None;
                self.give_places();
                true
            }
        }
    }

    /// Looks for units in the places of the pass that were not copied; false if there is nothing to do about them now.
    fn find_what_is_left(&mut self) -> bool {
        let Some(mut pass) = self.pass.take_if(|pass| pass.looks) else { return false };
        pass.looks = false;
        let left: Vec<_> = self.live_in(pass.count).filter(|(_, place)| !pass.copied.contains(place)).collect();
        let is_unreadable = |(_, place): &&(u32, u32)| self.failed.get(place).is_some_and(|tries| *tries >= TRIES);
        if let Some((_, place)) = left.iter().find(is_unreadable) {
            // What is before it can be freed; it itself is needed until its unit is changed.
            pass.count = self.ring.before(*place);
            self.is_blocked = pass.count == 0;
            pass.looks = true;
            if self.is_blocked {
                self.give_up_waiting();
            } else {
                self.pass = Some(pass);
            }
            return true;
        }
        let is_over = left.is_empty();
        if is_over {
            pass.phase = Phase::Copied;
        } else {
            pass.todo = left.into_iter().filter(|(unit, _)| !self.is_busy(*unit)).rev().collect();
            if !pass.goes_forward {
                pass.todo.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        let any = !pass.todo.is_empty();
        self.pass = Some(pass);
        any
    }

    /// Whether a change of the unit, or a copy that counts for nothing, is below.
    fn is_busy(&self, unit: u32) -> bool {
        let is_changed = self.changing.has_change(&self.unit_as_request(unit));
        !seeded(LayerBug::CopyOverChange) && is_changed || self.is_written_by_void(&(unit..unit + 1))
    }

    fn send_moves(&mut self) {
        while self.moves.all().filter(|(_, one)| !one.void).count() < self.config.copies as usize {
            let run = self.next_run();
            if run.is_empty() {
                return;
            }
            self.send_move(run);
        }
    }

    /// The next units that are copied together: those with consecutive addresses, or, if they go to the head of the log, what
    /// fits there.
    fn next_run(&mut self) -> Vec<(u32, u32)> {
        let mut run: Vec<(u32, u32)> = Vec::new();
        let Some(mut pass) = self.pass.take() else { return run };
        let mut most = if pass.one_by_one { 1 } else { self.pack_units };
        if pass.goes_forward {
            most = most.min(self.ring.free()).min(self.ring.before_wrap());
            if most == 0 {
                // Copies that failed have taken the places: the rest goes home.
                pass.goes_forward = false;
                pass.looks = true;
                pass.todo.clear();
            }
        }
        while run.len() < most as usize
            && let Some(&(unit, place)) = pass.todo.last()
        {
            let follows = |(last, _): &(u32, u32)| pass.goes_forward || last + 1 == unit;
            if !run.last().is_none_or(follows) {
                break;
            }
            pass.todo.pop();
            if self.table.place_of(unit) == Some(place) && !self.is_busy(unit) {
                run.push((unit, place));
            } else {
                pass.looks = true;
            }
        }
        self.pass = Some(pass);
        run
    }

    /// Reads units where they are in the log.
    fn send_move(&mut self, entries: Vec<(u32, u32)>) {
        let count = entries.len() as u32;
        let goes_forward = self.pass.as_ref().is_some_and(|pass| pass.goes_forward);
        let to = goes_forward.then(|| self.ring.take(count));
        let per_unit = self.layout.per_unit;
        let cells = vec![0; (u64::from(count) * per_unit) as usize * self.io.cell];
        let runs: Vec<_> = entries.chunk_by(|(_, a), (_, b)| a + 1 == *b).map(|run| (run[0].1, run.len())).collect();
        let (left, status) = (runs.len() as u32, Status::Success);
        let copy = self.moves.put(Move { entries, to, cells, left, status, void: false });
        let mut first = 0;
        for (place, units) in runs {
            let request = Request::new(Op::Read, self.layout.sector_of(place), units as u64 * per_unit);
            self.io.array.send(0, request, &[], Purpose::Fetch { copy, first });
            first += units;
        }
        assert!(left > 0 && first == count as usize, "every unit is read once");
    }

    pub(super) fn fetch_ended(&mut self, part: Ended<Purpose>, copy: u32, first: usize) {
        let unit_cells = self.layout.per_unit as usize * self.io.cell;
        let one = self.moves.get_mut(copy);
        match (part.status, part.cells) {
            (Status::Success, Some(cells)) => {
                one.cells[first * unit_cells..][..cells.len()].copy_from_slice(&cells);
            }
            (Status::Success, None) => {}
            (status, _) => one.status = status,
        }
        one.left -= 1;
        if one.left > 0 {
            return;
        }
        if one.void || one.status != Status::Success {
            return self.was_not_read(copy);
        }
        let sector = one.to.map_or(u64::from(one.entries[0].0) * self.layout.per_unit, |to| self.layout.sector_of(to));
        let request = Request::new(Op::Write, sector, one.entries.len() as u64 * self.layout.per_unit);
        let cells = std::mem::take(&mut one.cells);
        self.io.array.send(0, request, &cells, Purpose::Copy(copy));
    }

    /// A copy could not be read, or counts for nothing: its units are looked at again.
    fn was_not_read(&mut self, copy: u32) {
        let one = self.moves.take(copy);
        self.has_ended = true;
        self.look_again();
        if one.void || one.status == Status::Aborted {
            return;
        }
        match (one.entries.as_slice(), &mut self.pass) {
            ([(_, place)], _) => {
                let tries = self.failed.entry(*place).or_default();
                *tries += 1;
                self.counts.unreadable_places += u64::from(*tries == TRIES);
            }
            (_, Some(pass)) => pass.one_by_one = true,
            (_, None) => {}
        }
    }

    pub(super) fn copy_ended(&mut self, status: Status, copy: u32) {
        let one = self.moves.take(copy);
        self.has_ended = true;
        self.look_again();
        if one.void {
            return;
        }
        match (status, one.to) {
            (Status::Success, None) => {
                self.counts.copied_runs += 1;
                self.counts.copied_units += one.entries.len() as u64;
                if let Some(copied) = self.copied() {
                    copied.extend(one.entries.iter().map(|(_, place)| *place));
                }
            }
            (Status::Success, Some(to)) => {
                self.counts.moved_units += one.entries.len() as u64;
                for ((unit, place), to) in one.entries.into_iter().zip(to..) {
                    // Written again in the meantime, its newest copy is elsewhere.
                    if self.table.place_of(unit) == Some(place) {
                        self.map_to_log(unit, to, false);
                    }
                }
            }
            (Status::Aborted, _) => {}
            (status, _) => self.give_up(status),
        }
    }

    /// The device refuses writes: what is in the log stays there, and everything else goes to its own address.
    pub(super) fn give_up(&mut self, status: Status) {
        self.stuck = Some(status);
        self.pass = None;
        self.has_ended = true;
    }

    /// Copies that are below count for nothing.
    pub(super) fn moves_are_void(&mut self) {
        self.moves.all_mut().for_each(|(_, one)| one.void = true);
    }

    /// Units are changed now, if only in part: of those in the log no copy at home is the newest.
    pub(super) fn copy_again(&mut self, units: &Range<u32>) {
        for unit in self.table.in_range(units.clone()) {
            let Some(place) = self.table.place_of(unit) else { continue };
            self.release_place(place);
            if let Some(pass) = &mut self.pass {
                pass.copied.remove(&place);
                if pass.phase == Phase::Copied {
                    pass.phase = Phase::Copying;
                }
            }
        }
        self.look_again();
    }

    /// What was at a place is not needed any more, or will be something else.
    pub(super) fn release_place(&mut self, place: u32) {
        if self.failed.remove(&place).is_some() {
            self.is_blocked = false;
        }
    }

    /// A change of units has succeeded at home: the log has nothing newer of those that it covers whole.
    pub(super) fn reach_home(&mut self, request: &Request) {
        let whole = self.whole_units_of(request);
        for unit in self.table.in_range(whole.clone()) {
            let Some(place) = self.table.remove(unit) else { continue };
            self.release_place(place);
            let position = self.position_of(place);
            if seeded(LayerBug::RemovalNotWritten) {
                self.pending.remove(&unit);
            } else {
                self.pending.insert(unit, Pending { position, is_home: true, durable: request.fua });
            }
        }
        if request.fua {
            // What an earlier change has said of them, and no flush has covered, is true of this one.
            for map in [&mut self.pending, &mut self.flushing] {
                map.iter_mut().filter(|(unit, _)| whole.contains(unit)).for_each(|(_, pending)| pending.durable = true);
            }
        }
    }
}

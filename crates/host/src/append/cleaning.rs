//! Cleaning: what a segment still holds is copied, and the segment is trimmed when a commit covers the copies.
//!
//! The map changes when all units of a segment are copied, and one commit has all of it. So a crash leaves either the segment as
//! it was, or nothing valid in it.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_device::pacing::{self, Pace};

use super::config::Cleaning;
use super::layout::{LOST, NOWHERE};
use super::log::Entry;
use super::space::{For, State};
use super::{Append, Purpose, READS, is_void};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

/// Writes of cleaning that paced cleaning may lag behind before the host is held back.
const SLACK: u32 = 2;

/// A segment that is being cleaned.
pub(super) struct Victim {
    segment: u32,
    /// Valid units that it had when it was chosen.
    valid: u32,
    /// The next of its units to be looked at.
    next: u32,
    /// Copies in flight.
    copies: u32,
    /// Units that are copied, by place.
    units: Vec<Moved>,
    /// The power of the drive was lost: segments with copies take no more, and hold nothing that counts. Cleaning begins anew
    /// with what is least work then.
    is_given_up: bool,
}

/// A unit that is copied.
pub(super) struct Moved {
    unit: u32,
    from: u32,
    /// Its new place, when the copy is there.
    to: u32,
}

/// Units that are copied with one write.
pub(super) struct Copy {
    /// The first in the victim's list, and how many.
    first: u32,
    count: u32,
    cells: Vec<u8>,
    /// Reads that have not ended.
    reads: u32,
    /// Reads that failed.
    failures: u32,
    /// Where they go.
    to: u32,
}

impl Append {
    /// Segments that are free, or will be when commits and reads have ended.
    fn free_soon(&self) -> u32 {
        self.space.free() + (self.cleaned.len() + self.log.being_committed() + self.to_trim.len()) as u32
    }

    /// What cleaning and writes may do now: without pacing, all that the free segments allow.
    pub(super) fn pace(&self) -> Pace {
        if !self.config.pacing.is_on() {
            let is_short = self.free_soon() <= self.config.free_segments;
            return Pace {
                relocations: if is_short || self.victim.is_some() { u32::MAX } else { 0 },
                host_pages: u32::MAX,
            };
        }
        let (valid, started, writes) = match &self.victim {
            Some(victim) => (victim.valid, victim.units.len() as u32, victim.copies),
            None => (0, 0, 0),
        };
        let block_pages = self.layout.segment_units;
        let in_open = self.space.room(For::Host, block_pages) + self.space.room(For::Cleaning, block_pages);
        let space = pacing::Space {
            block_pages,
            slack: SLACK * self.copy_units,
            empty_pages: self.free_soon() * block_pages + in_open,
            keep_free: self.config.free_segments,
            frontiers: 2,
            host_is_blocked: self.space.is_full(For::Host),
            victim_valid: valid,
            victim_left: valid.saturating_sub(started),
        };
        pacing::pace(&space, writes * self.copy_units, self.config.copies * self.copy_units)
    }

    /// Units that the host may write now. What cleaning owes for those before is begun first.
    pub(super) fn host_pages(&mut self) -> u32 {
        if self.config.pacing.is_on() {
            self.clean();
        }
        self.pace().host_pages
    }

    /// Cleans as much as is needed, and as copies may be in flight.
    pub(super) fn clean(&mut self) {
        if !self.parked.is_empty() {
            std::mem::take(&mut self.parked).into_iter().for_each(|copy| self.continue_copy(copy));
        }
        loop {
            if self.victim.is_none() {
                if self.stuck.is_some() || self.pace().relocations == 0 {
                    return;
                }
                let Some(segment) = self.choose() else { return };
                self.space.get(segment).state = State::Cleaned;
                let units = std::mem::take(&mut self.moved);
                let valid = self.map.valid(segment);
                self.victim = Some(Victim { segment, valid, next: 0, copies: 0, units, is_given_up: false });
                self.counts.cleaned_segments += 1;
            }
            self.copy_more();
            let is_copied = |victim: &mut Victim| victim.copies == 0 && victim.next == self.layout.segment_units;
            let Some(mut victim) = self.victim.take_if(is_copied) else { return };
            if victim.is_given_up {
                self.space.get(victim.segment).state = State::Full;
            } else {
                self.finish_victim(&victim);
            }
            victim.units.clear();
            self.moved = victim.units;
        }
    }

    /// The segment to clean next.
    fn choose(&self) -> Option<u32> {
        let units = self.layout.segment_units;
        // Power cuts may have taken the last free segment: then only what the open one has room for can be copied.
        let room = if self.free_soon() > 0 { units - 1 } else { self.space.room(For::Cleaning, units).min(units - 1) };
        let may = |segment: &u32| {
            let one = self.space.look(*segment);
            one.state == State::Full && one.writes == 0 && self.map.valid(*segment) <= room
        };
        let full = self.layout.data_segments().filter(may);
        match self.config.cleaning {
            Cleaning::Greedy => full.min_by_key(|segment| self.map.valid(*segment)),
            Cleaning::CostBenefit => {
                let benefit = |segment: u32| {
                    let valid = f64::from(self.map.valid(segment)) / f64::from(units);
                    let age = (self.space.clock - self.space.look(segment).full_since + 1) as f64;
                    (1.0 - valid) * age / (1.0 + valid)
                };
                full.max_by(|a, b| benefit(*a).total_cmp(&benefit(*b)).then(b.cmp(a)))
            }
        }
    }

    /// Reads what of the victim is to be copied next.
    fn copy_more(&mut self) {
        let mut most = self.pace().relocations;
        if most < self.copy_units && self.victim.as_ref().is_some_and(|victim| victim.copies > 0) {
            // Little is due: it goes with more.
            return;
        }
        let Some(mut victim) = self.victim.take() else { return };
        let first = victim.segment * self.layout.segment_units;
        while most > 0 && victim.copies < self.config.copies && victim.next < self.layout.segment_units {
            let before = victim.units.len();
            let end = before + self.copy_units as usize;
            while victim.next < self.layout.segment_units && victim.units.len() < end {
                let from = first + victim.next;
                victim.units.extend(self.map.unit_at(from).map(|unit| Moved { unit, from, to: NOWHERE }));
                victim.next += 1;
            }
            let units = &victim.units[before..];
            if !units.is_empty() {
                most = most.saturating_sub(units.len() as u32);
                victim.copies += 1;
                self.counts.copied_units += units.len() as u64;
                self.read_copy(before, units);
            }
        }
        self.victim = Some(victim);
    }

    /// Sends a read for each run of places of units. The first place is that of the victim's unit number `first`.
    fn read_copy(&mut self, first: usize, units: &[Moved]) {
        let cells = vec![0; units.len() * self.unit_cells()];
        let copy = Copy { first: first as u32, count: units.len() as u32, cells, reads: 0, failures: 0, to: 0 };
        let number = self.copies.put(copy);
        let (mut sent, mut reads) = (0, 0);
        for run in units.chunk_by(|a, b| b.from == a.from + 1) {
            self.read_of_copy(number, sent, run[0].from, run.len());
            (sent, reads) = (sent + run.len(), reads + 1);
        }
        self.copies.get_mut(number).reads = reads;
    }

    /// Sends the read of consecutive places for units of a copy, from its unit number `first` on.
    fn read_of_copy(&mut self, copy: u32, first: usize, place: u32, count: usize) {
        let read = Request::new(Op::Read, self.layout.sector_of(place), count as u64 * self.layout.per_unit);
        self.read_places(read, Purpose::CopyRead { copy, first });
    }

    /// A read of a copy has ended.
    pub(super) fn copy_read_ended(&mut self, part: &Ended<Purpose>, number: u32, first: usize) {
        self.read_ended(&part.request);
        let unit_cells = self.unit_cells();
        let is_given_up = self.victim.as_ref().is_none_or(|victim| victim.is_given_up);
        let copy = self.copies.get_mut(number);
        match (&part.cells, part.status) {
            (Some(cells), Status::Success) => copy.cells[first * unit_cells..][..cells.len()].copy_from_slice(cells),
            (None, Status::Success) if unit_cells == 0 => {}
            _ if is_given_up => {}
            (None, Status::Success) => return self.read_places(part.request, part.purpose),
            (_, Status::Aborted) => return self.read_places(part.request, part.purpose),
            _ if copy.failures < READS => {
                copy.failures += 1;
                return self.read_places(part.request, part.purpose);
            }
            _ => self.lose(number, first, part.request.sectors),
        }
        let copy = self.copies.get_mut(number);
        copy.reads -= 1;
        if copy.reads == 0 {
            self.continue_copy(number);
        }
    }

    /// A copy goes on, or ends where its segment was given up.
    fn continue_copy(&mut self, number: u32) {
        match &mut self.victim {
            Some(victim) if victim.is_given_up => {
                victim.copies -= 1;
                self.copies.take(number);
            }
            _ => self.write_copy(number),
        }
    }

    /// The power of the drive was lost.
    pub(super) fn give_up_copies(&mut self) {
        if let Some(victim) = &mut self.victim {
            victim.is_given_up = true;
            victim.next = self.layout.segment_units;
        }
    }

    /// Units cannot be read: their reads fail from now on. Where one of several cannot be, each is read alone.
    fn lose(&mut self, number: u32, first: usize, sectors: u64) {
        let count = (sectors / self.layout.per_unit) as usize;
        let copy = self.copies.get_mut(number);
        copy.failures = 0;
        let at = copy.first as usize + first;
        let victim = self.victim.as_ref().expect("a segment is cleaned");
        let Moved { unit, from, .. } = victim.units[at];
        if count > 1 {
            copy.reads += count as u32;
            (0..count).for_each(|index| self.read_of_copy(number, first + index, from + index as u32, 1));
            return;
        }
        self.counts.lost_units += 1;
        if self.map.unit_at(from) == Some(unit) {
            self.map_to(unit, LOST);
        }
    }

    /// All of a copy is read.
    fn write_copy(&mut self, number: u32) {
        let units = self.copies.get_mut(number).count;
        let Some((to, count)) = self.take_places(For::Cleaning, units) else {
            self.parked.push(number);
            return;
        };
        let unit_cells = self.unit_cells();
        let copy = self.copies.get_mut(number);
        (copy.to, copy.count) = (to, count);
        let first = copy.first + count;
        let rest = copy.cells.split_off(count as usize * unit_cells);
        let cells = std::mem::take(&mut copy.cells);
        self.append(to, count, 0, &cells, Purpose::CopyWrite(number));
        self.copies.get_mut(number).cells = cells;
        if count < units {
            // The rest goes to the next segment, and behind this: only the last segment of cleaning is written in part.
            let rest = Copy { first, count: units - count, cells: rest, reads: 0, failures: 0, to: 0 };
            let rest = self.copies.put(rest);
            self.victim.as_mut().expect("a segment is cleaned").copies += 1;
            self.write_copy(rest);
        }
    }

    /// A write of a copy has ended.
    pub(super) fn copy_write_ended(&mut self, status: Status, number: u32) {
        let to = self.copies.get_mut(number).to;
        self.append_ended(to);
        match status {
            Status::Success => {}
            status if is_void(status) => {
                self.space.close_segment(self.layout.segment_of(to));
                return self.continue_copy(number);
            }
            status => {
                self.stop_writing(status);
                return;
            }
        }
        let Copy { first, count, to, .. } = self.copies.take(number);
        let victim = self.victim.as_mut().expect("a segment is cleaned");
        victim.copies -= 1;
        let units = &mut victim.units[first as usize..][..count as usize];
        units.iter_mut().zip(to..).for_each(|(moved, to)| moved.to = to);
    }

    /// All units of a segment have copies.
    fn finish_victim(&mut self, victim: &Victim) {
        for &Moved { unit, from, to } in &victim.units {
            // The host may have written it meanwhile.
            if self.map.unit_at(from) == Some(unit) {
                self.map.move_copied(unit, from, to);
                self.log.add(Entry::Mapped { unit, place: to });
            } else if seeded(LayerBug::CopyOverWrite) {
                self.map_to(unit, to);
            } else {
                self.counts.copied_in_vain += 1;
            }
        }
        assert_eq!(self.map.valid(victim.segment), 0, "segment {} is cleaned", victim.segment);
        if seeded(LayerBug::TrimBeforeCommit) {
            self.to_trim.push(victim.segment);
        } else {
            self.cleaned.push(victim.segment);
        }
    }

    /// A unit is somewhere else from now on, and the next commit says so.
    pub(super) fn map_to(&mut self, unit: u32, place: u32) {
        self.map.set(unit, place);
        self.log.add(Entry::Mapped { unit, place });
    }

    /// Segments whose commit has ended are trimmed when no command reads them.
    pub(super) fn trim_cleaned(&mut self) {
        if self.to_trim.is_empty() {
            return;
        }
        for segment in std::mem::take(&mut self.to_trim) {
            if self.space.look(segment).readers > 0 {
                self.to_trim.push(segment);
            } else {
                self.release(segment);
            }
        }
    }
}

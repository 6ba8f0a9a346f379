//! Randomizing (section 4.4): remaps give units in the log their own addresses back, and trims tell the drive what is not
//! needed there any more.

use std::ops::Range;

use ssdlab_base::command_sets::shrd::{MOST_ENTRIES, Pairs, REMAP as REMAP_COMMAND, SHRD, TRIM_LOG};
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::{Purpose, Shrd};
use crate::seeded::{LayerBug, seeded};

/// Entries of a map page of 4 KB.
const ENTRIES_OF_A_PAGE: u32 = 1024;

/// A pass over the oldest places of the log.
pub(super) struct Pass {
    /// How many places it frees.
    count: u32,
    /// Units in them and their places, by unit, the next one last.
    entries: Vec<(u32, u32)>,
    /// All have left, and the drive was told of what is not needed.
    is_trimmed: bool,
}

/// A copy in the log that is not needed any more, once the change that replaced it is on flash.
pub(super) struct Dead {
    place: u32,
    /// The number of that change; 0 if it was on flash when it completed.
    replaced: u64,
}

/// A remap in the drive.
pub(super) struct Moving {
    number: u64,
    /// Units and their places, by unit.
    entries: Vec<(u32, u32)>,
}

impl Shrd {
    /// Whether a remap in the drive moves one of these units.
    pub(super) fn is_moving(&self, units: &Range<u32>) -> bool {
        self.moving.iter().any(|moving| {
            let from = moving.entries.partition_point(|(unit, _)| *unit < units.start);
            moving.entries.get(from).is_some_and(|(unit, _)| *unit < units.end)
        })
    }

    /// Goes on with the pass, or begins one where a write waits for places, and sends what remaps and trims it may.
    pub(super) fn randomize(&mut self) {
        if self.stuck.is_none() && self.has_to_randomize() {
            self.send_remaps();
            while self.pass_is_over() {
                self.give_places();
                self.send_remaps();
            }
        }
        if self.dead.len() >= self.trims_at && self.trims_in_flight == 0 && self.stuck.is_none() {
            self.send_trims();
        }
    }

    /// Whether there is a pass, or something waits for one or for a remap.
    fn has_to_randomize(&self) -> bool {
        self.pass.is_some() || self.wants_room || !self.for_home.is_empty() || !self.for_places.is_empty()
    }

    fn send_remaps(&mut self) {
        if self.pass.is_none() && !self.for_places.is_empty() {
            self.give_places();
        }
        if self.pass.is_none() && self.wants_room {
            self.begin_pass();
        }
        while self.moving.len() < self.config.remaps as usize {
            let mut entries = self.entries_for_home();
            if entries.is_empty() {
                entries = self.entries_of_pass();
            }
            if entries.is_empty() {
                return;
            }
            self.send_remap(entries);
        }
    }

    /// A pass over the places that were given out before the oldest twrite that has not completed.
    fn begin_pass(&mut self) {
        let in_flight = self.twrites.all().map(|(_, twrite)| twrite).filter(|twrite| twrite.epoch == self.epoch);
        let firsts = in_flight.map(|twrite| twrite.pack.first).chain(self.packing.oldest());
        let complete = firsts.map(|first| self.ring.before(first)).min().unwrap_or(self.ring.used());
        let range = (self.config.range / (self.per_unit * 512)).clamp(1, u64::from(u32::MAX)) as u32;
        let count = complete.min(range);
        if count > 0 {
            self.counts.passes += 1;
            self.pass = Some(Pass { count, entries: self.live(count), is_trimmed: false });
        }
    }

    /// Units in the oldest places that no change in the drive is about to replace, by unit, the last one first.
    fn live(&self, count: u32) -> Vec<(u32, u32)> {
        let units = self.ring.oldest(count).filter_map(|place| Some((self.table.unit_at(place)?, place)));
        let mut entries: Vec<_> = units.filter(|entry| !self.is_busy(*entry)).collect();
        entries.sort_unstable_by(|a, b| b.cmp(a));
        entries
    }

    /// Whether the drive has a command that a remap of the unit must not overtake, or be overtaken by: a change of its own address,
    /// or a read of its place in the log.
    fn is_busy(&self, (unit, place): (u32, u32)) -> bool {
        let request = Request::new(Op::Read, u64::from(unit) * self.per_unit, self.per_unit);
        let is_changed = !seeded(LayerBug::RemapOverChange) && self.changing.has_change(&request);
        is_changed || self.is_read(place)
    }

    /// Whether a read of a place is in the drive.
    fn is_read(&self, place: u32) -> bool {
        let first = self.capacity + u64::from(place) * self.per_unit;
        let overlaps = |(sector, sectors): &(u64, u64)| *sector < first + self.per_unit && first < sector + sectors;
        !seeded(LayerBug::ReadOvertaken) && self.log_reads.keys().any(overlaps)
    }

    /// What changes of parts of units wait for.
    fn entries_for_home(&self) -> Vec<(u32, u32)> {
        let mut entries = Vec::new();
        for slot in &self.for_home {
            let request = self.io.commands.get(*slot).request;
            for unit in self.edges(&request).filter(|unit| !self.is_moving(&(*unit..unit + 1))) {
                let entry = self.table.place_of(unit).map(|place| (unit, place));
                entries.extend(entry.filter(|entry| !self.is_busy(*entry)));
            }
        }
        entries.sort_unstable();
        entries.dedup();
        entries.truncate(self.config.remap_entries as usize);
        entries
    }

    /// The next entries of the pass; those that have changed since it began are left out.
    fn entries_of_pass(&mut self) -> Vec<(u32, u32)> {
        let mut entries = Vec::new();
        let Some(mut pass) = self.pass.take() else { return entries };
        while entries.len() < self.config.remap_entries as usize
            && let Some((unit, place)) = pass.entries.pop()
        {
            let is_there = self.table.place_of(unit) == Some(place);
            if is_there && !self.is_moving(&(unit..unit + 1)) && !self.is_busy((unit, place)) {
                entries.push((unit, place));
            }
        }
        self.pass = Some(pass);
        entries
    }

    fn send_remap(&mut self, entries: Vec<(u32, u32)>) {
        self.counts.remaps += 1;
        self.counts.remapped_entries += entries.len() as u64;
        let pages = entries.chunk_by(|a, b| a.0 / ENTRIES_OF_A_PAGE == b.0 / ENTRIES_OF_A_PAGE).count();
        self.counts.remapped_map_pages += pages as u64;
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            self.list("remap", u64::from(first.0), u64::from(last.0) + 1, entries.len() as u64);
        }
        let words = Pairs(entries.iter().map(|(unit, place)| (*place, *unit)).collect()).encode();
        let number = self.io.next_number();
        self.moving.push(Moving { number, entries });
        self.send_own(REMAP_COMMAND, &words, Purpose::Remap(number));
    }

    fn send_own(&mut self, opcode: ssdlab_base::Opcode, words: &[u64], purpose: Purpose) {
        let spec = SHRD.command(self.config.carried(opcode)).expect("the set has it");
        self.io.array.send_of_set(0, Request::of_set(spec, 0, 0), &[], words, purpose);
    }

    pub(super) fn remap_ended(&mut self, status: Status, number: u64) {
        // After a power cut the drive has moved everything.
        let Some(index) = self.moving.iter().position(|moving| moving.number == number) else { return };
        let moving = self.moving.swap_remove(index);
        self.has_ended = true;
        match status {
            Status::Success => {
                for (unit, place) in moving.entries {
                    // Written again in the meantime, its newest copy is elsewhere.
                    if self.table.place_of(unit) == Some(place) {
                        self.table.remove(unit);
                    }
                }
            }
            Status::Aborted => {}
            status => {
                self.counts.remaps_refused += 1;
                self.give_up(status);
            }
        }
    }

    /// No remaps any more: what is in the log stays there, and everything else goes to its own address.
    pub(super) fn give_up(&mut self, status: Status) {
        self.stuck = Some(status);
        self.has_ended = true;
        (self.pass, self.wants_room) = (None, false);
        for slot in std::mem::take(&mut self.for_places) {
            self.change(slot);
        }
    }

    /// The pass has nothing left: its places are free. False if it goes on, or there is none.
    fn pass_is_over(&mut self) -> bool {
        let Some(pass) = &self.pass else { return false };
        let (count, is_trimmed) = (pass.count, pass.is_trimmed);
        let has_more = !pass.entries.is_empty() || !self.moving.is_empty();
        if has_more && !seeded(LayerBug::PlacesFreedEarly) {
            return false;
        }
        if !is_trimmed && !seeded(LayerBug::PlacesFreedEarly) {
            if self.ring.oldest(count).any(|place| self.table.unit_at(place).is_some()) {
                let entries = self.live(count);
                self.pass.iter_mut().for_each(|pass| pass.entries.clone_from(&entries));
                self.send_remaps();
                return false;
            }
            if !self.is_replaced_on_flash(count) {
                self.send_own_flush();
                return false;
            }
            self.pass.iter_mut().for_each(|pass| pass.is_trimmed = true);
            self.send_trims();
        }
        if self.trims_in_flight > 0 || self.ring.oldest(count).any(|place| self.is_read(place)) {
            return false;
        }
        let (ring, dead) = (&self.ring, &mut self.dead);
        dead.retain(|dead| ring.before(dead.place) >= count);
        self.ring.release(count);
        self.pass = None;
        true
    }

    /// Writes that wait for places take them.
    fn give_places(&mut self) {
        self.wants_room = false;
        while let Some(&slot) = self.for_places.front() {
            if !self.place(slot) {
                self.wants_room = true;
                return;
            }
            self.for_places.pop_front();
        }
    }

    /// The copy at a place is not needed any more when a change is on flash; 0 if that is.
    pub(super) fn dies(&mut self, place: u32, replaced: u64) {
        let is_moving = self.moving.iter().flat_map(|moving| &moving.entries).any(|(_, at)| *at == place);
        if !is_moving {
            self.dead.push(Dead { place, replaced });
        }
    }

    /// A change of whole units has completed: their copies in the log are old.
    pub(super) fn units_are_home(&mut self, request: &Request) {
        self.replaced += 1;
        let replaced = if request.fua { 0 } else { self.replaced };
        for unit in self.table.in_range(self.whole_units_of(request)) {
            if let Some(place) = self.table.remove(unit) {
                self.dies(place, replaced);
            }
        }
    }

    /// Whether what replaced copies in the oldest places is on flash. A place that is written again before is lost with what
    /// replaced it when the power goes.
    fn is_replaced_on_flash(&self, count: u32) -> bool {
        let is_lost = |dead: &Dead| dead.replaced > self.replaced_on_flash && self.ring.before(dead.place) < count;
        !self.dead.iter().any(is_lost)
    }

    /// So many changes that replaced copies in the log are on flash.
    pub(super) fn flushed(&mut self, replaced: u64) {
        self.replaced_on_flash = self.replaced_on_flash.max(replaced);
        self.trims_at = MOST_ENTRIES;
    }

    fn send_own_flush(&mut self) {
        if !std::mem::replace(&mut self.flushes, true) {
            self.counts.flushes += 1;
            self.io.array.send(0, Request::new(Op::Flush, 0, 0), &[], Purpose::Flush(self.replaced));
        }
    }

    pub(super) fn own_flush_ended(&mut self, status: Status, replaced: u64) {
        self.flushes = false;
        match status {
            Status::Success => self.flushed(replaced),
            Status::Aborted => {}
            status => self.give_up(status),
        }
    }

    /// Tells the drive of all that is not needed, but for what is being read or may still be.
    fn send_trims(&mut self) {
        if !self.config.trim_tlpn {
            return;
        }
        let (now, later) = std::mem::take(&mut self.dead)
            .into_iter()
            .partition::<Vec<Dead>, _>(|dead| dead.replaced <= self.replaced_on_flash && !self.is_read(dead.place));
        self.dead = later;
        self.trims_at = self.dead.len() + MOST_ENTRIES;
        let mut places: Vec<u32> = now.into_iter().map(|dead| dead.place).collect();
        places.sort_unstable();
        let runs: Vec<_> = places.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len() as u32)).collect();
        for runs in runs.chunks(MOST_ENTRIES) {
            self.counts.trims += 1;
            self.counts.trimmed_units += runs.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
            self.trims_in_flight += 1;
            let words = Pairs(runs.to_vec()).encode();
            self.send_own(TRIM_LOG, &words, Purpose::Trim);
        }
    }
}

//! Commands on their way through the layer.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_device::critical_path::{Part, Path};

use super::{Purpose, Restoring};
use crate::layer::{Ended, Engine, changes};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::Reason;

/// What the layer notes of a command.
#[derive(Default)]
pub(crate) struct State {
    /// The device has not taken it into the log: it goes to its own address.
    was_refused: bool,
    /// It changes units that are in the log.
    is_changing: bool,
    /// It has changed a part of a unit in the log.
    is_partial: bool,
    /// A read that was below when a device lost its power: the table may name other places now.
    pub(super) is_void: bool,
}

impl Restoring {
    /// Begins what no longer waits for others, or for copies.
    pub(super) fn begin_unblocked(&mut self) {
        for slot in std::mem::take(&mut self.held) {
            self.begin(slot);
        }
        self.start_ready();
    }

    /// Nothing before it is on its units.
    pub(super) fn begin(&mut self, slot: u32) {
        self.io.end_wait(slot);
        let command = self.io.command(slot);
        let (request, was_refused) = (command.request, command.state.was_refused);
        if request.op == Op::Flush {
            // What a void copy still writes would be seen after the flush without being on flash.
            if self.moves.all().any(|(_, one)| one.is_void()) {
                return self.hold(slot);
            }
            self.packing.close(Reason::Flush);
            self.send_packs();
            self.io.take_effect(slot);
            return self.join(slot, true);
        }
        if request.sectors == 0 {
            return self.send_home(slot);
        }
        if request.op == Op::Read {
            self.read(slot);
        } else if self.is_small(&request) && !was_refused {
            self.sequentialize(slot);
        } else {
            self.change(slot);
        }
    }

    /// It waits for a copy of its units, or for the flush of those that were copied; a flush, for copies that count for nothing.
    fn hold(&mut self, slot: u32) {
        self.counts.waited_for_copies += 1;
        self.io.begin_wait(slot, Part::LayerCopy);
        self.held.push(slot);
    }

    /// A read: where its units are, in as few parts as there can be.
    fn read(&mut self, slot: u32) {
        let request = self.io.command(slot).request;
        let units = self.units_of(&request);
        if self.is_written_by_void(&units) {
            return self.hold(slot);
        }
        if !self.any_in_log(&units) {
            return self.send_home(slot);
        }
        self.io.take_effect(slot);
        self.counts.reads_of_log += 1;
        let parts = self.parts_of(&request, &units, |_| true);
        self.counts.reads_split += u64::from(parts.len() > 1);
        let cell = self.io.cell;
        self.io.command(slot).cells = vec![0; request.sectors as usize * cell];
        for (_, part) in &parts {
            for place in self.places_of(part) {
                self.readers[place as usize] += 1;
            }
        }
        self.send_parts(slot, parts, &[]);
    }

    /// The places of the log that a command below touches.
    fn places_of(&self, part: &Request) -> Range<u32> {
        match self.layout.place_at(part.sector) {
            Some(first) if part.sectors > 0 => {
                first..self.layout.place_at(part.end() - 1).expect("it ends in the log, too") + 1
            }
            _ => 0..0,
        }
    }

    /// A request in parts, with where they begin in it, in sectors: of units in the log that `from_log` names those are in the
    /// log, and all others at home.
    fn parts_of(&self, request: &Request, units: &Range<u32>, from_log: impl Fn(u32) -> bool) -> Vec<(u64, Request)> {
        let per_unit = self.layout.per_unit;
        let place_of = |unit: u32| self.table.place_of(unit).filter(|_| from_log(unit));
        let mut parts = Vec::new();
        let mut unit = units.start;
        while unit < units.end {
            let first = place_of(unit);
            let follows = |next: &u32| match (first, place_of(*next)) {
                (None, None) => true,
                (Some(first), Some(place)) => place == first + (next - unit),
                _ => false,
            };
            let end = (unit + 1..units.end).find(|next| !follows(next)).unwrap_or(units.end);
            let from = request.sector.max(u64::from(unit) * per_unit);
            let to = request.end().min(u64::from(end) * per_unit);
            assert!(from < to, "a part has sectors");
            let within = from - u64::from(unit) * per_unit;
            let sector = first.map_or(from, |place| self.layout.sector_of(place) + within);
            parts.push((from - request.sector, Request { sector, sectors: to - from, ..*request }));
            unit = end;
        }
        parts
    }

    /// Sends the parts of a command; `cells` is what a write brings.
    fn send_parts(&mut self, slot: u32, parts: Vec<(u64, Request)>, cells: &[u8]) {
        let cell = self.io.cell;
        let command = self.io.command(slot);
        command.left = parts.len() as u32;
        command.split(parts.iter().map(|(offset, _)| *offset).collect());
        for (index, (offset, part)) in parts.into_iter().enumerate() {
            let (from, to) = (offset as usize * cell, (offset + part.sectors) as usize * cell);
            let cells = if cells.is_empty() { cells } else { &cells[from..to] };
            self.io.array.send(0, part, cells, Purpose::Part { slot, part: index });
        }
    }

    /// A change that does not go to the log as a whole: what it covers in part is changed where it is, the rest at home.
    pub(super) fn change(&mut self, slot: u32) {
        let request = self.io.command(slot).request;
        let (units, whole) = (self.units_of(&request), self.whole_units_of(&request));
        if !seeded(LayerBug::CopyOverChange) && (self.is_moving(&units) || self.is_settling(&units)) {
            return self.hold(slot);
        }
        self.begins_changing(slot);
        if self.any_in_log(&units) {
            // Whether it succeeds or not: what was copied home of these is not the newest any more.
            self.copy_again(&units);
        }
        let is_edge = |unit: u32| !whole.contains(&unit) && !seeded(LayerBug::PartOverHome);
        let is_partial = [units.start, units.end - 1].into_iter().any(|unit| is_edge(unit) && self.is_named(unit));
        self.io.command(slot).state.is_partial = is_partial;
        let parts = self.parts_of(&request, &units, is_edge);
        self.io.take_effect(slot);
        let cells = std::mem::take(&mut self.io.command(slot).cells);
        self.send_parts(slot, parts, &cells);
    }

    /// Whether the table, or what is to be written of it, names a unit.
    fn is_named(&self, unit: u32) -> bool {
        let is_pending = self.pending.contains_key(&unit) || self.flushing.contains_key(&unit);
        is_pending || self.table.place_of(unit).is_some()
    }

    /// A command changes its units from now on.
    pub(super) fn begins_changing(&mut self, slot: u32) {
        let command = self.io.command(slot);
        let (number, request, is_changing) = (command.number, command.request, command.state.is_changing);
        if !is_changing && self.any_in_log(&self.units_of(&request)) {
            self.changing.add(number, slot, &request);
            self.io.command(slot).state.is_changing = true;
        }
    }

    /// Sends a command as it came.
    fn send_home(&mut self, slot: u32) {
        self.io.take_effect(slot);
        let command = self.io.command(slot);
        command.left = 1;
        let (request, cells) = (command.request, std::mem::take(&mut command.cells));
        self.io.array.send(0, request, &cells, Purpose::Part { slot, part: 0 });
    }

    /// A command below has ended that is one from above, or a part of it.
    pub(super) fn part_ended(&mut self, part: Ended<Purpose>, slot: u32, index: usize) {
        if part.request.op == Op::Read {
            for place in self.places_of(&part.request) {
                assert!(self.readers[place as usize] > 0, "a read of place {place} ends once");
                self.readers[place as usize] -= 1;
            }
        }
        let cell = self.io.cell;
        let command = self.io.command(slot);
        command.note(part.status, part.path);
        if let Some(cells) = part.cells {
            command.fill(index, cells, cell);
        }
        self.one_less(slot);
    }

    /// A pack of the command's is in the log, or ended otherwise.
    pub(super) fn log_part_ended(&mut self, slot: u32, status: Status, path: Option<&Path>) {
        let is_refused = !matches!(status, Status::Success | Status::Aborted);
        let command = self.io.command(slot);
        command.note(if is_refused { Status::Success } else { status }, path.cloned().map(Box::new));
        command.state.was_refused |= is_refused;
        self.one_less(slot);
    }

    /// A part of a command has ended; with the last one the command goes on.
    fn one_less(&mut self, slot: u32) {
        let command = self.io.command(slot);
        if !command.ends() {
            return;
        }
        let (request, status, is_partial) = (command.request, command.status, command.state.is_partial);
        if std::mem::take(&mut command.state.is_void) && status == Status::Success {
            command.split(Vec::new());
            return self.read(slot);
        }
        let was_in_log = command.parts().is_empty();
        if status != Status::Success {
            return self.answer(slot, status);
        }
        if command.state.was_refused && was_in_log {
            self.counts.sent_home_instead += 1;
            return self.change(slot);
        }
        if !changes(request.op) || request.sectors == 0 {
            return self.answer(slot, status);
        }
        if !was_in_log {
            self.reach_home(&request);
        }
        let is_clean = self.records.is_clean() && !self.header_is_stale;
        let all_is_written = self.commit.is_none() && is_clean && self.pending.is_empty();
        if request.fua && !all_is_written { self.join(slot, is_partial) } else { self.answer(slot, status) }
    }

    /// A command is done.
    pub(super) fn answer(&mut self, slot: u32, status: Status) {
        let command = self.io.command(slot);
        let (number, request) = (command.number, command.request);
        let state = self.io.answer(slot, status);
        self.has_ended |= self.io.overlaps.any_waits();
        if state.is_changing {
            self.changing.remove(number, &request);
            self.look_again();
        }
    }

    /// What a command waited for last.
    pub(super) fn waited_for(&mut self, slot: u32, path: Option<&Path>) {
        let command = self.io.command(slot);
        command.note(Status::Success, path.cloned().map(Box::new));
    }
}

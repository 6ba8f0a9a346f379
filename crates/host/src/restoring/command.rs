//! Commands on their way through the layer.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::path::{Part, Path};
use ssdlab_device::{Data, Status};

use super::writeback::Move;
use super::{KIND, Restoring};
use crate::layer::{Ended, Turn, Waits, changes, completion, path_of, widened};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::Reason;

/// An order of effect that was not given yet.
const UNNUMBERED: u64 = u64::MAX;

/// A command from above.
pub(super) struct Command {
    pub(super) request: Request,
    /// Its place in the order of arrival.
    number: u64,
    order: u64,
    /// What a write brings, or a read has found.
    pub(super) cells: Vec<u8>,
    /// Parts that have not ended: packs, or commands below.
    left: u32,
    /// The device has not taken it into the log: it goes to its own address.
    was_refused: bool,
    status: Status,
    path: Option<Path>,
    pub(super) waits: Waits,
    /// Where the parts of a read that was split begin in it, in sectors.
    parts: Vec<u64>,
    /// It changes units that are in the log.
    is_changing: bool,
    /// It has changed a part of a unit in the log.
    is_partial: bool,
    /// A read that was below when a device lost its power: the table may name other places now.
    is_void: bool,
}

impl Command {
    /// Whether a part of it is below, or in a pack.
    pub(super) const fn is_below(&self) -> bool {
        self.left > 0
    }

    /// A device below has lost its power: of a change that was begun a part may be gone that had ended, and a read that the device
    /// below repeats may find what an older place holds.
    pub(super) fn lost_its_parts(&mut self) {
        if changes(self.request.op) && self.order != UNNUMBERED && self.left > 0 {
            self.status = Status::Aborted;
        }
        self.is_void |= self.request.op == Op::Read && self.request.sectors > 0 && self.left > 0;
    }
}

impl Restoring {
    pub(super) fn command(&mut self, slot: u32) -> &mut Command {
        self.commands[slot as usize].as_mut().expect("the command has not ended")
    }

    /// A command arrives, and begins unless one before it is on the same units.
    pub(super) fn arrive(&mut self, request: Request, data: Data<'_>) {
        self.numbers += 1;
        let cells = if self.cell > 0 && request.op == Op::Write { data.cells(&request, self.cell) } else { Vec::new() };
        let command = Command {
            request,
            number: self.numbers,
            order: UNNUMBERED,
            cells,
            left: 0,
            was_refused: false,
            status: Status::Success,
            path: None,
            waits: Waits::default(),
            parts: Vec::new(),
            is_changing: false,
            is_partial: false,
            is_void: false,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.commands.push(None);
            self.commands.len() as u32 - 1
        });
        self.commands[slot as usize] = Some(command);
        let whole = self.whole(&request);
        if self.overlaps.add(self.numbers, slot, &whole) == Turn::Free {
            self.begin(slot);
        } else {
            self.counts.waited_for_overlaps += 1;
            let wait = self.array.wait(Part::LayerOverlap);
            self.command(slot).waits.begin_opt(wait);
        }
    }

    /// The request, as wide as the units that it touches.
    fn whole(&self, request: &Request) -> Request {
        widened(request, self.layout.per_unit)
    }

    /// Begins what no longer waits for others, or for copies.
    pub(super) fn begin_unblocked(&mut self) {
        for slot in std::mem::take(&mut self.held) {
            self.begin(slot);
        }
        while let Some(slot) = self.overlaps.next_ready() {
            self.begin(slot);
        }
    }

    /// Nothing before it is on its units.
    fn begin(&mut self, slot: u32) {
        let now = self.array.now();
        let command = self.command(slot);
        command.waits.end(now);
        let (request, was_refused) = (command.request, command.was_refused);
        if request.op == Op::Flush {
            // What a void copy still writes would be seen after the flush without being on flash.
            if self.moves.iter().flatten().any(Move::is_void) {
                return self.hold(slot);
            }
            self.packing.close(Reason::Flush);
            self.send_packs();
            self.take_effect(slot);
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

    /// It takes its place in the order of effect.
    pub(super) fn take_effect(&mut self, slot: u32) {
        let order = self.order;
        let command = self.command(slot);
        if command.order == UNNUMBERED {
            command.order = order;
            self.order += 1;
        }
    }

    /// It waits for a copy of its units, or for the flush of those that were copied; a flush, for copies that count for nothing.
    fn hold(&mut self, slot: u32) {
        self.counts.waited_for_copies += 1;
        let wait = self.array.wait(Part::LayerCopy);
        self.command(slot).waits.begin_opt(wait);
        self.held.push(slot);
    }

    /// A read: where its units are, in as few parts as there can be.
    fn read(&mut self, slot: u32) {
        let request = self.command(slot).request;
        let units = self.units_of(&request);
        if self.is_written_by_void(&units) {
            return self.hold(slot);
        }
        if !self.any_in_log(&units) {
            return self.send_home(slot);
        }
        self.take_effect(slot);
        self.counts.reads_of_log += 1;
        let parts = self.parts_of(&request, &units, |_| true);
        self.counts.reads_split += u64::from(parts.len() > 1);
        let cell = self.cell;
        self.command(slot).cells = vec![0; request.sectors as usize * cell];
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
        let cell = self.cell;
        let command = self.command(slot);
        command.left = parts.len() as u32;
        command.parts = parts.iter().map(|(offset, _)| *offset).collect();
        for (index, (offset, part)) in parts.into_iter().enumerate() {
            let (from, to) = (offset as usize * cell, (offset + part.sectors) as usize * cell);
            let cells = if cells.is_empty() { cells } else { &cells[from..to] };
            self.array.send(0, part, cells, (index as u64) << 32 | u64::from(slot));
        }
    }

    /// A change that does not go to the log as a whole: what it covers in part is changed where it is, the rest at home.
    pub(super) fn change(&mut self, slot: u32) {
        let request = self.command(slot).request;
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
        self.command(slot).is_partial = is_partial;
        let parts = self.parts_of(&request, &units, is_edge);
        self.take_effect(slot);
        let cells = std::mem::take(&mut self.command(slot).cells);
        self.send_parts(slot, parts, &cells);
    }

    /// Whether the table, or what is to be written of it, names a unit.
    fn is_named(&self, unit: u32) -> bool {
        let is_pending = self.pending.contains_key(&unit) || self.flushing.contains_key(&unit);
        is_pending || self.table.place_of(unit).is_some()
    }

    /// A command changes its units from now on.
    pub(super) fn begins_changing(&mut self, slot: u32) {
        let command = self.command(slot);
        let (number, request, is_changing) = (command.number, command.request, command.is_changing);
        if !is_changing && self.any_in_log(&self.units_of(&request)) {
            self.changing.add(number, slot, &request);
            self.command(slot).is_changing = true;
        }
    }

    /// Sends a command as it came.
    fn send_home(&mut self, slot: u32) {
        self.take_effect(slot);
        let command = self.command(slot);
        command.left = 1;
        let (request, cells) = (command.request, std::mem::take(&mut command.cells));
        self.array.send(0, request, &cells, u64::from(slot));
    }

    /// A command below has ended that is one from above, or a part of it.
    pub(super) fn part_ended(&mut self, part: Ended<u64>) {
        let (slot, index) = (part.purpose as u32, (part.purpose >> 32 & ((1 << (KIND - 32)) - 1)) as usize);
        if part.request.op == Op::Read {
            for place in self.places_of(&part.request) {
                assert!(self.readers[place as usize] > 0, "a read of place {place} ends once");
                self.readers[place as usize] -= 1;
            }
        }
        let cell = self.cell;
        let command = self.command(slot);
        command.path = part.path.or(command.path.take());
        match (part.completion.status, part.cells) {
            (Status::Success, Some(cells)) => match command.parts.get(index) {
                None => command.cells = cells,
                Some(offset) => command.cells[*offset as usize * cell..][..cells.len()].copy_from_slice(&cells),
            },
            (Status::Success, None) => {}
            (status, _) => command.status = status,
        }
        self.one_less(slot);
    }

    /// A command has so many parts more.
    pub(super) fn add_parts(&mut self, slot: u32, parts: u32) {
        self.command(slot).left += parts;
    }

    /// A pack of the command's is in the log, or ended otherwise.
    pub(super) fn log_part_ended(&mut self, slot: u32, status: Status, path: Option<&Path>) {
        let command = self.command(slot);
        command.path = path.cloned().or(command.path.take());
        match status {
            Status::Success => {}
            Status::Aborted => command.status = status,
            _ => command.was_refused = true,
        }
        self.one_less(slot);
    }

    /// A part of a command has ended; with the last one the command goes on.
    fn one_less(&mut self, slot: u32) {
        let command = self.command(slot);
        assert!(command.left > 0, "a part ends once");
        command.left -= 1;
        if command.left > 0 {
            return;
        }
        let (request, status, is_partial) = (command.request, command.status, command.is_partial);
        if std::mem::take(&mut command.is_void) && status == Status::Success {
            command.parts.clear();
            return self.read(slot);
        }
        let was_in_log = command.parts.is_empty();
        if status != Status::Success {
            return self.answer(slot, status);
        }
        if command.was_refused && was_in_log {
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
        self.take_effect(slot);
        let command = self.commands[slot as usize].take().expect("a command ends once");
        let Command { request, number, order, cells, path, waits, is_changing, .. } = command;
        self.free.push(slot);
        self.overlaps.remove(number, &self.whole(&request));
        self.has_ended |= self.overlaps.any_waits();
        if is_changing {
            self.changing.remove(number, &request);
            self.look_again();
        }
        self.outstanding -= 1;
        self.taken.add(&request);
        if request.op == Op::Read && status == Status::Success && !cells.is_empty() {
            self.read_data.push((request.tag, cells));
        }
        let now = self.array.now();
        if self.array.records_paths() {
            self.paths.push(path_of(&request, &waits, path.as_ref(), now));
        }
        self.completions.push(completion(&request, status, now, order));
    }

    /// What a command waited for last.
    pub(super) fn waited_for(&mut self, slot: u32, path: Option<&Path>) {
        let command = self.command(slot);
        command.path = path.cloned().or(command.path.take());
    }
}

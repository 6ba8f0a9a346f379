//! Commands on their way through the layer.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::path::Path;
use ssdlab_device::{Data, Status};

use super::layout::{LOST, NOWHERE};
use super::log::Entry;
use super::space::For;
use super::{Append, EDGE, KIND, READ, READS, WRITE, is_void};
use crate::array::{Ended, Turn, completion, units_of, waited, waited_around, whole_units_of, widened};
use crate::seeded::{LayerBug, seeded};

/// An order of effect that was not given yet.
const UNNUMBERED: u64 = u64::MAX;

/// A command from above.
pub(super) struct Command {
    pub(super) request: Request,
    /// Its place in the order of arrival.
    number: u64,
    order: u64,
    /// What a write brings, or a read has found.
    cells: Vec<u8>,
    /// Commands below that have not ended.
    left: u32,
    status: Status,
    path: Option<Path>,
    /// Where the parts of a read begin in it, in sectors.
    parts: Vec<u64>,
    /// Units that are to be written, and have no place.
    spans: Vec<Span>,
    /// Units that it covers in part, and the rest could not be read.
    unreadable: Vec<u32>,
    /// Reads of these that failed.
    failures: u32,
    has_begun: bool,
    /// It was sent while earlier commands on the same units were on their way, and takes effect after them.
    is_early: bool,
    /// All of it is on the drive, and it waits for those before it.
    awaits_turn: bool,
    /// What of it is on the drive, and takes effect then.
    held: Vec<Write>,
}

impl Command {
    /// Whether it ends with what is below, and with commands that do.
    const fn is_underway(&self) -> bool {
        self.has_begun && self.spans.is_empty()
    }
}

/// Consecutive units that are to be written.
struct Span {
    first: u32,
    count: u32,
    /// What they hold, where contents are kept.
    cells: Vec<u8>,
}

/// A write below.
pub(super) struct Write {
    slot: u32,
    first: u32,
    count: u32,
    place: u32,
    cells: Vec<u8>,
}

impl Append {
    pub(super) fn command(&mut self, slot: u32) -> &mut Command {
        self.commands.get(slot)
    }

    /// A command arrives, and begins unless one before it is on the same units.
    pub(super) fn arrive(&mut self, request: Request, data: Data<'_>) {
        self.numbers += 1;
        let cells = if self.cell > 0 && request.op == Op::Write { data.cells(&request, self.cell) } else { Vec::new() };
        let number = self.numbers;
        let slot = self.commands.put(Command {
            request,
            number,
            order: UNNUMBERED,
            cells,
            left: 0,
            status: Status::Success,
            path: None,
            parts: Vec::new(),
            spans: Vec::new(),
            unreadable: Vec::new(),
            failures: 0,
            has_begun: false,
            is_early: false,
            awaits_turn: false,
            held: Vec::new(),
        });
        // A write of whole units needs nothing of what earlier commands do, so it may be sent before they have ended.
        let passes = request.op == Op::Write && self.units_of(&request) == self.whole_units_of(&request);
        match self.overlaps.add_passing(number, slot, &self.whole(&request), passes) {
            Turn::Free => self.begin(slot),
            Turn::Passes => self.begin_early(slot),
            Turn::Waits => self.counts.waited_for_overlaps += 1,
        }
    }

    /// What a command may do now, because of earlier ones on the same units.
    fn turn(&mut self, slot: u32) -> Turn {
        let Command { number, request, .. } = *self.command(slot);
        self.overlaps.turn(number, &self.whole(&request))
    }

    /// Later writes may pass a command that waits for no room: what they hold meanwhile, it does not need.
    fn update_passing(&mut self, slot: u32) {
        let command = self.command(slot);
        let (number, request, is_underway) = (command.number, command.request, command.is_underway());
        self.overlaps.set_passable(number, &self.whole(&request), is_underway);
    }

    /// Whether what a write brought must wait for earlier ones to take effect.
    fn must_hold(&mut self, slot: u32) -> bool {
        self.command(slot).is_early && self.turn(slot) != Turn::Free && !seeded(LayerBug::LaterWriteFirst)
    }

    /// Begins a write before earlier ones on the same units have ended.
    fn begin_early(&mut self, slot: u32) {
        self.counts.sent_early += 1;
        self.command(slot).is_early = true;
        self.begin(slot);
    }

    /// The request, as wide as the units that it touches.
    fn whole(&self, request: &Request) -> Request {
        widened(request, self.layout.per_unit)
    }

    /// Units that a request touches, if only in part.
    fn units_of(&self, request: &Request) -> Range<u32> {
        units_of(request, self.layout.per_unit)
    }

    /// Units that a request covers whole.
    fn whole_units_of(&self, request: &Request) -> Range<u32> {
        whole_units_of(request, self.layout.per_unit)
    }

    /// Begins what no longer waits for others on the same units, and ends what is written and waited for them.
    pub(super) fn begin_ready(&mut self) {
        while let Some(slot) = self.overlaps.next_ready() {
            let turn = self.turn(slot);
            match (turn, self.command(slot).has_begun) {
                (Turn::Free, true) => {
                    // Also where more of it waits for room: what it holds and replaces can be cleaned from now on.
                    self.held_takes_its_place(slot);
                    if self.command(slot).awaits_turn {
                        self.is_written(slot);
                    }
                }
                (Turn::Free, false) => self.begin(slot),
                (Turn::Passes, false) => self.begin_early(slot),
                _ => {}
            }
        }
    }

    /// Nothing before it is on its units.
    fn begin(&mut self, slot: u32) {
        let command = self.command(slot);
        command.has_begun = true;
        let request = command.request;
        match request.op {
            Op::Flush => {
                self.counts.flushes += 1;
                self.is_durable_with_commit(slot);
            }
            _ if request.sectors == 0 => self.answer(slot, Status::Success),
            Op::Read => {
                self.update_passing(slot);
                self.read(slot);
            }
            Op::Write | Op::Trim | Op::WriteZeroes => self.change(slot),
        }
    }

    /// It takes its place in the order of effect.
    pub(super) fn takes_effect(&mut self, slot: u32) {
        let order = self.order;
        let command = self.command(slot);
        if command.order == UNNUMBERED {
            command.order = order;
            self.order += 1;
        }
    }

    /// Answers a flush or a FUA write when all that took effect before is on the drive.
    fn is_durable_with_commit(&mut self, slot: u32) {
        if self.log.is_clean() || seeded(LayerBug::FlushOfNothing) && self.log.pending() == 0 {
            self.answer(slot, Status::Success);
        } else {
            if self.log.pending() == 0 {
                self.takes_effect(slot);
            }
            self.log.join(slot);
        }
    }

    /// A read: in as few parts as there can be; what is nowhere is zeroes.
    fn read(&mut self, slot: u32) {
        let request = self.command(slot).request;
        let (units, per_unit, cell) = (self.units_of(&request), self.layout.per_unit, self.cell);
        self.command(slot).cells = vec![0; request.sectors as usize * cell];
        let mut parts = Vec::new();
        let mut unit = units.start;
        while unit < units.end {
            let place = self.map.get(unit);
            if place == LOST || self.lost.get(unit) & self.covered(&request, unit) != 0 {
                return self.answer(slot, Status::UncorrectableRead);
            }
            let follows = |next: &u32| place != NOWHERE && self.map.get(*next) == place + (next - unit);
            let has_lost = |unit: &u32| !self.lost.is_empty() && self.lost.get(*unit) != 0;
            let end = (unit + 1..units.end).find(|next| !follows(next) || has_lost(next)).unwrap_or(units.end);
            let from = request.sector.max(u64::from(unit) * per_unit);
            let to = request.end().min(u64::from(end) * per_unit);
            if place != NOWHERE {
                let sector = self.layout.sector_of(place) + from - u64::from(unit) * per_unit;
                parts.extend(self.by_segment(from - request.sector, Request { sector, sectors: to - from, ..request }));
            }
            unit = end;
        }
        if parts.is_empty() {
            return self.answer(slot, Status::Success);
        }
        let command = self.command(slot);
        command.left = parts.len() as u32;
        command.parts = parts.iter().map(|(offset, _)| *offset).collect();
        for (index, (_, part)) in parts.into_iter().enumerate() {
            self.read_places(part, READ << KIND | (index as u64) << 32 | u64::from(slot));
        }
    }

    /// A part of a read, split where a segment ends.
    fn by_segment(&self, offset: u64, part: Request) -> Vec<(u64, Request)> {
        let sectors = u64::from(self.layout.segment_units) * self.layout.per_unit;
        let mut parts = Vec::with_capacity(1);
        let mut from = part.sector;
        while from < part.end() {
            let to = part.end().min((from / sectors + 1) * sectors);
            parts.push((offset + from - part.sector, Request { sector: from, sectors: to - from, ..part }));
            from = to;
        }
        parts
    }

    /// A part of a read has ended.
    pub(super) fn read_part_ended(&mut self, part: Ended) {
        self.read_ended(&part.request);
        let (slot, index) = (part.owner as u32, (part.owner >> 32 & 0xfff_ffff) as usize);
        let cell = self.cell;
        match (part.cells, part.completion.status) {
            (Some(cells), Status::Success) => {
                let command = self.command(slot);
                let at = command.parts[index] as usize * cell;
                command.cells[at..][..cells.len()].copy_from_slice(&cells);
            }
            (None, Status::Success) if cell == 0 => {}
            // A power cut took what it had read, or kept it from reading.
            (None, Status::Success) => return self.read_places(part.request, part.owner),
            (_, Status::Aborted) => return self.read_places(part.request, part.owner),
            // The map names what is not there.
            (_, Status::Refused(_)) => self.command(slot).status = Status::UncorrectableRead,
            (_, status) => self.command(slot).status = status,
        }
        let command = self.command(slot);
        command.path = part.path.or(command.path.take());
        command.left -= 1;
        if command.left == 0 {
            let status = command.status;
            self.answer(slot, status);
        }
    }

    /// A change: units that it covers in part are read first, where they hold something.
    fn change(&mut self, slot: u32) {
        let request = self.command(slot).request;
        let (units, whole) = (self.units_of(&request), self.whole_units_of(&request));
        if units == whole {
            let command = self.command(slot);
            if request.op == Op::Write {
                let cells = std::mem::take(&mut command.cells);
                command.spans.push(Span { first: units.start, count: units.len() as u32, cells });
            }
            return self.place(slot);
        }
        let mut edges = vec![units.start, units.end - 1];
        edges.dedup();
        edges.retain(|unit| !whole.contains(unit));
        if request.op != Op::Write {
            // What holds nothing stays as it is.
            edges.retain(|unit| self.map.holds(*unit));
        }
        let spans: Vec<Range<u32>> = match request.op {
            Op::Write => vec![units],
            _ => edges.iter().map(|unit| *unit..unit + 1).collect(),
        };
        let unit_cells = self.unit_cells();
        let cells = std::mem::take(&mut self.command(slot).cells);
        let spans = spans.into_iter().map(|units| {
            let mut of_span = vec![0; units.len() * unit_cells];
            if !cells.is_empty() {
                let at = (request.sector % self.layout.per_unit) as usize * self.cell;
                of_span[at..][..cells.len()].copy_from_slice(&cells);
            }
            Span { first: units.start, count: units.len() as u32, cells: of_span }
        });
        let spans = spans.collect();
        self.command(slot).spans = spans;
        edges.retain(|unit| self.map.holds(*unit));
        if edges.is_empty() || seeded(LayerBug::EdgesNotRead) {
            return self.place(slot);
        }
        let (lost, edges): (Vec<u32>, Vec<u32>) = edges.into_iter().partition(|unit| self.map.get(*unit) == LOST);
        self.command(slot).unreadable = lost;
        if edges.is_empty() {
            return self.place(slot);
        }
        self.counts.units_read_for_parts += edges.len() as u64;
        self.command(slot).left = edges.len() as u32;
        for unit in edges {
            let sector = self.layout.sector_of(self.map.get(unit));
            let read = Request { queue: request.queue, ..Request::new(Op::Read, sector, self.layout.per_unit) };
            // Both edges are units of the request: one is the first.
            let is_last = u64::from(unit != self.units_of(&request).start);
            self.read_places(read, EDGE << KIND | is_last << 32 | u64::from(slot));
        }
    }

    /// A unit that a change covers in part was read.
    pub(super) fn edge_ended(&mut self, part: Ended) {
        self.read_ended(&part.request);
        let (slot, is_last) = (part.owner as u32, part.owner >> 32 & 1 == 1);
        match (part.cells, part.completion.status) {
            (Some(cells), Status::Success) => self.complete(slot, is_last, &cells),
            (None, Status::Success) if self.cell == 0 => {}
            (None, Status::Success) => return self.read_places(part.request, part.owner),
            (_, Status::Aborted) => return self.read_places(part.request, part.owner),
            _ if self.command(slot).failures < READS => {
                self.command(slot).failures += 1;
                return self.read_places(part.request, part.owner);
            }
            _ => {
                let request = self.command(slot).request;
                let units = self.units_of(&request);
                self.command(slot).unreadable.push(if is_last { units.end - 1 } else { units.start });
            }
        }
        let command = self.command(slot);
        command.left -= 1;
        if command.left == 0 {
            self.place(slot);
        }
    }

    /// The sectors of a unit that a request covers, a bit each.
    fn covered(&self, request: &Request, unit: u32) -> u64 {
        let first = u64::from(unit) * self.layout.per_unit;
        let (from, to) = (request.sector.max(first) - first, request.end().min(first + self.layout.per_unit) - first);
        (u64::MAX >> (64 - (to - from))) << from
    }

    /// A unit was written by a command: of what the command does not cover, what could not be read is lost.
    fn tells_what_is_lost(&mut self, slot: u32, unit: u32) {
        let command = self.command(slot);
        let (request, cannot) = (command.request, command.unreadable.contains(&unit));
        let before = self.lost.get(unit);
        if cannot || before != 0 {
            let all = u64::MAX >> (64 - self.layout.per_unit);
            let rest = all & !self.covered(&request, unit);
            let lost = if cannot { rest } else { before & rest };
            for entry in self.lost.set(unit, lost) {
                self.log.add(entry);
            }
        }
    }

    /// The sectors of a unit that the command does not cover are what they were.
    fn complete(&mut self, slot: u32, is_last: bool, cells: &[u8]) {
        let (cell, per_unit) = (self.cell, self.layout.per_unit);
        let request = self.command(slot).request;
        let units = self.units_of(&request);
        let unit = if is_last { units.end - 1 } else { units.start };
        let first = u64::from(unit) * per_unit;
        let span =
            self.command(slot).spans.iter_mut().find(|span| (span.first..span.first + span.count).contains(&unit));
        let span = span.expect("a unit that is read is written");
        let at = (unit - span.first) as usize * per_unit as usize * cell;
        let of_unit = span.cells[at..].chunks_exact_mut(cell).zip(cells.chunks_exact(cell));
        for (sector, (to, from)) in (first..first + per_unit).zip(of_unit) {
            if !(request.sector..request.end()).contains(&sector) {
                to.copy_from_slice(from);
            }
        }
    }

    /// All that is to be written is known: it takes places, or waits for them.
    fn place(&mut self, slot: u32) {
        if let Some(status) = self.stuck {
            return self.answer(slot, status);
        }
        if !self.for_room.is_empty() || !self.place_some(slot) {
            self.counts.waited_for_room += 1;
            self.waits_for_room(slot);
        }
    }

    /// A command waits for places, before those that arrived later.
    fn waits_for_room(&mut self, slot: u32) {
        let number = self.command(slot).number;
        let later =
            (0..self.for_room.len()).rev().take_while(|&index| self.commands.get(self.for_room[index]).number > number);
        let index = later.last().unwrap_or(self.for_room.len());
        self.for_room.insert(index, slot);
    }

    /// Commands that wait for places take them.
    pub(super) fn give_places(&mut self) {
        while let Some(&slot) = self.for_room.front() {
            if !self.place_some(slot) {
                return;
            }
            self.for_room.pop_front();
        }
    }

    /// Writes units of a command as far as there is room; false if some have no place.
    fn place_some(&mut self, slot: u32) -> bool {
        let unit_cells = self.unit_cells();
        if self.command(slot).is_early {
            match self.turn(slot) {
                Turn::Free => self.held_takes_its_place(slot),
                Turn::Passes => {}
                Turn::Waits => return false,
            }
        }
        while let Some(count) = self.command(slot).spans.last().map(|span| span.count) {
            let room = self.layout.most_pending.saturating_sub(self.log.pending() + self.units_in_flight) as u32;
            let most = count.min(room).min(self.host_pages());
            if most == 0 {
                return false;
            }
            let Some((place, count)) = self.take_places(For::Host, most) else { return false };
            let command = self.command(slot);
            let queue = command.request.queue;
            let span = command.spans.last_mut().expect("it was there");
            let (first, rest) = (span.first, span.cells.split_off(count as usize * unit_cells));
            let cells = std::mem::replace(&mut span.cells, rest);
            span.first += count;
            span.count -= count;
            if span.count == 0 {
                command.spans.pop();
            }
            command.left += 1;
            self.units_in_flight += count as usize;
            self.counts.written_units += u64::from(count);
            let write = self.writes.put(Write { slot, first, count, place, cells: Vec::new() });
            self.append(place, count, queue, &cells, WRITE << KIND | u64::from(write));
            self.writes.get(write).cells = cells;
        }
        self.update_passing(slot);
        if self.command(slot).left == 0 {
            self.is_written(slot);
        }
        true
    }

    /// A write of a command has ended.
    pub(super) fn write_ended(&mut self, part: Ended) {
        let write = self.writes.take(part.owner as u32);
        let slot = write.slot;
        let command = self.command(slot);
        command.left -= 1;
        command.path = part.path.or(command.path.take());
        match part.completion.status {
            Status::Success if !self.must_hold(slot) => self.takes_its_place(&write),
            Status::Success if self.turn(slot) == Turn::Passes => self.command(slot).held.push(write),
            Status::Success => self.is_written_anew(write),
            status if is_void(status) => {
                self.space.close_segment(self.layout.segment_of(write.place));
                self.is_written_anew(write);
                self.hold_nothing();
            }
            status => {
                self.gives_back(&write);
                self.command(slot).status = status;
                self.is_stuck(status);
            }
        }
        let command = self.command(slot);
        if command.left > 0 {
            return;
        }
        if command.spans.is_empty() {
            self.is_written(slot);
        } else if !self.for_room.contains(&slot) {
            // With its last units it waits for places, or not at all where there will be none.
            self.place(slot);
        }
    }

    /// A write below has ended: its segment and the log have less to wait for.
    fn gives_back(&mut self, write: &Write) {
        self.append_ended(write.place);
        self.units_in_flight -= write.count as usize;
    }

    /// What a write brought is where it went from now on.
    fn takes_its_place(&mut self, write: &Write) {
        self.gives_back(write);
        let &Write { slot, first, count, place, .. } = write;
        let may_lose = !self.lost.is_empty() || !self.command(slot).unreadable.is_empty();
        for (unit, place) in (first..).zip(place..place + count) {
            self.is_at(unit, place);
            if may_lose {
                self.tells_what_is_lost(slot, unit);
            }
        }
    }

    /// What a write brought is sent again, to another place.
    fn is_written_anew(&mut self, write: Write) {
        self.gives_back(&write);
        let Write { slot, first, count, cells, .. } = write;
        self.command(slot).spans.push(Span { first, count, cells });
        self.update_passing(slot);
    }

    /// Writes that wait for others to take effect are sent again: the others may need the room that these hold.
    fn hold_nothing(&mut self) {
        let holds = |(slot, command): (u32, &Command)| (!command.held.is_empty()).then_some(slot);
        let slots: Vec<u32> = self.commands.all().filter_map(holds).collect();
        for slot in slots {
            let held = std::mem::take(&mut self.command(slot).held);
            held.into_iter().for_each(|write| self.is_written_anew(write));
            if self.command(slot).left == 0 && !self.for_room.contains(&slot) {
                self.command(slot).awaits_turn = false;
                self.waits_for_room(slot);
            }
        }
    }

    /// All of a change is on the drive, and takes effect after those before it.
    fn is_written(&mut self, slot: u32) {
        if self.command(slot).status == Status::Success {
            let must_hold = self.must_hold(slot);
            self.command(slot).awaits_turn = must_hold;
            if must_hold {
                return;
            }
            self.held_takes_its_place(slot);
        }
        self.is_changed(slot);
    }

    /// What a write holds takes effect: those before it have ended.
    fn held_takes_its_place(&mut self, slot: u32) {
        let held = std::mem::take(&mut self.command(slot).held);
        held.iter().for_each(|write| self.takes_its_place(write));
        // A commit may be due, and others may have room.
        self.has_ended |= !held.is_empty();
    }

    /// All of a change has ended.
    fn is_changed(&mut self, slot: u32) {
        let command = self.command(slot);
        let (request, status) = (command.request, command.status);
        if status != Status::Success {
            return self.answer(slot, status);
        }
        if request.op != Op::Write {
            self.unmap(self.whole_units_of(&request));
        }
        self.takes_effect(slot);
        if request.fua { self.is_durable_with_commit(slot) } else { self.answer(slot, status) }
    }

    /// Units hold nothing any more.
    fn unmap(&mut self, units: Range<u32>) {
        let (first, count) = (units.start, units.len() as u32);
        let mut any = false;
        for unit in units {
            if self.map.holds(unit) {
                self.map.set(unit, NOWHERE);
                any = true;
                if self.lost.get(unit) != 0 {
                    self.lost.set(unit, 0).for_each(|entry| self.log.add(entry));
                }
            }
        }
        if any && !seeded(LayerBug::TrimNotLogged) {
            self.log.add(Entry::Trimmed { first, count });
        }
    }

    /// A command is done.
    pub(super) fn answer(&mut self, slot: u32, status: Status) {
        self.takes_effect(slot);
        let Command { request, number, order, cells, path, held, .. } = self.commands.take(slot);
        // What an unsuccessful write holds has no effect.
        held.iter().for_each(|write| self.gives_back(write));
        self.overlaps.remove(number, &self.whole(&request));
        self.has_ended |= self.overlaps.any_ready();
        self.outstanding -= 1;
        if request.op == Op::Read && status == Status::Success && !cells.is_empty() {
            self.read_data.push((request.tag, cells));
        }
        let now = self.array.now();
        if self.records_paths {
            self.paths.push(path.map_or_else(|| waited(&request, now), |path| waited_around(&request, &path, now)));
        }
        self.completions.push(completion(&request, status, now, order));
    }

    /// The drive takes no more writes: what waits for places ends like this.
    pub(super) fn is_stuck(&mut self, status: Status) {
        self.stuck = Some(status);
    }

    /// Answers what waits for places that there will not be.
    pub(super) fn give_up(&mut self) {
        let Some(status) = self.stuck else { return };
        for slot in std::mem::take(&mut self.for_room) {
            // The others end with their last write below.
            if self.command(slot).left == 0 {
                self.answer(slot, status);
            }
        }
    }
}

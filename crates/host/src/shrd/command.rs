//! Commands on their way through the driver.

use std::ops::Range;

use ssdlab_base::command_sets::shrd::READ_LOG;
use ssdlab_base::{Op, Request};
use ssdlab_device::path::{Part, Path};
use ssdlab_device::{Data, Status};

use super::{KIND, Shrd};
use crate::layer::{Ended, Turn, Waits, completion, path_of};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::Reason;

/// An order of effect that was not given yet.
const UNNUMBERED: u64 = u64::MAX;

/// What follows when the last part of a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It is answered.
    Answer,
    /// The drive has not taken it into the log: it goes to its own address.
    Home,
    /// It begins anew.
    Again,
}

/// A command from above.
pub(super) struct Command {
    pub(super) request: Request,
    /// Its place in the order of arrival.
    number: u64,
    order: u64,
    /// What a write brings, or a read has found.
    pub(super) cells: Vec<u8>,
    /// Parts that have not ended: packs, or commands to the drive.
    left: u32,
    next: Next,
    status: Status,
    path: Option<Box<Path>>,
    pub(super) waits: Waits,
    /// Where the parts of a read that was split begin in it, in sectors.
    parts: Vec<u64>,
    /// The drive has not taken all of it into the log.
    was_refused: bool,
    /// It changes units that are in the log, too.
    is_changing: bool,
    /// Changes that a flush covers, of those that replaced a copy in the log.
    covers: u64,
}

impl Shrd {
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
            next: Next::Answer,
            status: Status::Success,
            path: None,
            waits: Waits::default(),
            parts: Vec::new(),
            was_refused: false,
            is_changing: false,
            covers: 0,
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
        if request.sectors == 0 {
            return *request;
        }
        let units = self.units_of(request);
        let (sector, sectors) = (u64::from(units.start) << self.unit_shift, (units.len() as u64) << self.unit_shift);
        Request { sector, sectors, ..*request }
    }

    /// Begins what no longer waits for others, or for remaps.
    pub(super) fn begin_unblocked(&mut self) {
        for slot in std::mem::take(&mut self.held) {
            self.begin(slot);
        }
        for slot in std::mem::take(&mut self.for_home) {
            self.change(slot);
        }
        while let Some(slot) = self.overlaps.next_ready() {
            self.begin(slot);
        }
    }

    /// Nothing before it is on its units.
    fn begin(&mut self, slot: u32) {
        let now = self.array.now();
        self.command(slot).waits.end(now);
        let request = self.command(slot).request;
        if request.op == Op::Flush {
            self.packing.close(Reason::Flush);
            self.send_packs();
            return self.send_home(slot);
        }
        if request.sectors == 0 {
            return self.send_home(slot);
        }
        let units = self.units_of(&request);
        if !seeded(LayerBug::RemapNotWaitedFor) && self.is_moving(&units) {
            self.counts.waited_for_remaps += 1;
            let wait = self.array.wait(Part::LayerCopy);
            self.command(slot).waits.begin_opt(wait);
            self.held.push(slot);
        } else if request.op == Op::Read {
            self.read(slot, units);
        } else if self.is_small(&request) {
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

    /// A read: where its units are, in as few parts as there can be.
    fn read(&mut self, slot: u32, units: Range<u32>) {
        let first = self.table.next(units.start, units.end, true);
        if first >= units.end {
            return self.send_home(slot);
        }
        self.take_effect(slot);
        self.counts.reads_of_log += 1;
        let (per_unit, capacity, cell) = (self.per_unit, self.capacity, self.cell);
        let command = self.command(slot);
        let request = command.request;
        command.cells = vec![0; request.sectors as usize * cell];
        let mut parts = Vec::new();
        let mut unit = units.start;
        while unit < units.end {
            let from = request.sector.max(u64::from(unit) * per_unit);
            let place =
                self.table.place_of(unit).filter(|_| unit == units.start || !seeded(LayerBug::FirstUnitDecides));
            let end = match place {
                None => self.table.next(unit + 1, units.end, true),
                Some(place) => {
                    let follows = |next: &u32| self.table.place_of(*next) == Some(place + (next - unit));
                    (unit + 1..units.end).find(|next| !follows(next)).unwrap_or(units.end)
                }
            };
            let end = if seeded(LayerBug::FirstUnitDecides) && place.is_none() { units.end } else { end };
            let to = request.end().min(u64::from(end) * per_unit);
            let part = Request { sectors: to - from, fua: false, ..request };
            let log = place.map(|place| capacity + u64::from(place) * per_unit + from - u64::from(unit) * per_unit);
            parts.push(match log {
                None => (from - request.sector, Request { sector: from, ..part }),
                Some(sector) => (from - request.sector, Request { sector, opcode: READ_LOG, ..part }),
            });
            unit = end;
        }
        self.counts.reads_split += u64::from(parts.len() > 1);
        let command = self.command(slot);
        command.left = parts.len() as u32;
        command.parts = parts.iter().map(|(offset, _)| *offset).collect();
        for (index, (_, part)) in parts.into_iter().enumerate() {
            if !part.opcode.is_block() {
                *self.log_reads.entry((part.sector, part.sectors)).or_default() += 1;
            }
            self.list_run(if part.opcode.is_block() { "read" } else { "log_read" }, &part);
            self.array.send(0, part, &[], (index as u64) << 32 | u64::from(slot));
        }
    }

    /// A change that goes to its own address. Of units that it covers in part the current copy must be there before.
    pub(super) fn change(&mut self, slot: u32) {
        let command = self.command(slot);
        let (request, number) = (command.request, command.number);
        // A remap may have begun since the command did.
        if !seeded(LayerBug::RemapNotWaitedFor) && self.is_moving(&self.units_of(&request)) {
            self.held.push(slot);
            return;
        }
        if !seeded(LayerBug::PartOverOldCopy) && self.edges(&request).next().is_some() {
            match self.stuck {
                Some(status) => self.answer(slot, status),
                None => self.for_home.push(slot),
            }
            return;
        }
        if !self.table.in_range(self.whole_units_of(&request)).is_empty() {
            self.command(slot).is_changing = true;
            self.changing.add(number, slot, &request);
        }
        self.send_home(slot);
    }

    /// Units in the log that a change covers in part.
    pub(super) fn edges(&self, request: &Request) -> impl Iterator<Item = u32> {
        let (units, whole) = (self.units_of(request), self.whole_units_of(request));
        let first = (units.start < whole.start).then_some(units.start);
        let last = (units.end > whole.end && (units.len() > 1 || first.is_none())).then(|| units.end - 1);
        first.into_iter().chain(last).filter(|unit| self.table.place_of(*unit).is_some())
    }

    /// Sends a command as it came.
    fn send_home(&mut self, slot: u32) {
        self.take_effect(slot);
        let replaced = self.replaced;
        let command = self.command(slot);
        (command.left, command.next, command.covers) = (1, Next::Answer, replaced);
        let (request, cells) = (command.request, std::mem::take(&mut command.cells));
        let kind = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            _ => "trim",
        };
        self.list_run(kind, &request);
        self.array.send(0, request, &cells, u64::from(slot));
    }

    /// A command to the drive has ended that is one from above, or a part of it.
    pub(super) fn part_ended(&mut self, part: &mut Ended<u64>) {
        let (slot, index) = (part.purpose as u32, (part.purpose >> 32 & ((1 << (KIND - 32)) - 1)) as usize);
        if !part.request.opcode.is_block() {
            let key = (part.request.sector, part.request.sectors);
            if let Some(count) = self.log_reads.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.log_reads.remove(&key);
                }
            }
        }
        let cell = self.cell;
        let command = self.command(slot);
        if let Some(path) = part.path.take() {
            command.path = Some(Box::new(path));
        }
        match (part.completion.status, part.cells.take()) {
            (Status::Success, Some(cells)) => match command.parts.get(index) {
                None => command.cells = cells,
                Some(offset) => command.cells[*offset as usize * cell..][..cells.len()].copy_from_slice(&cells),
            },
            (Status::Success, None) => {}
            (status, _) => command.status = status,
        }
        self.one_less(slot);
    }

    /// A part of a command has ended; with the last one the command goes on.
    fn one_less(&mut self, slot: u32) {
        let command = self.command(slot);
        command.left -= 1;
        if command.left > 0 {
            return;
        }
        let (request, status) = (command.request, command.status);
        match command.next {
            _ if status != Status::Success => self.answer(slot, status),
            Next::Home => {
                self.counts.sent_home_instead += 1;
                self.change(slot);
            }
            Next::Again => {
                command.next = Next::Answer;
                self.sequentialize(slot);
            }
            Next::Answer => {
                if command.is_changing && !seeded(LayerBug::OldEntryKept) {
                    self.units_are_home(&request);
                }
                self.answer(slot, status);
            }
        }
    }

    /// A command has so many parts more.
    pub(super) fn add_parts(&mut self, slot: u32, parts: u32) {
        self.command(slot).left += parts;
    }

    /// A pack of the command's is in the log, or ended otherwise.
    pub(super) fn pack_ended(&mut self, slot: u32, status: Status, path: Option<&Path>) {
        let command = self.command(slot);
        if let Some(path) = path {
            command.path = Some(Box::new(path.clone()));
        }
        match status {
            Status::Success => {}
            Status::Aborted => command.status = status,
            _ => {
                command.was_refused = true;
                if command.next == Next::Answer {
                    command.next = Next::Home;
                }
            }
        }
        self.one_less(slot);
    }

    /// A pack of the command's was not sent before the drive lost its power.
    pub(super) fn again(&mut self, slot: u32) {
        self.command(slot).next = Next::Again;
        self.one_less(slot);
    }

    /// A command is done.
    fn answer(&mut self, slot: u32, status: Status) {
        self.take_effect(slot);
        let command = self.commands[slot as usize].take().expect("a command ends once");
        let Command { request, number, order, cells, path, waits, was_refused, is_changing, covers, .. } = command;
        self.free.push(slot);
        let mut status = status;
        if was_refused && status.is_error() && status != Status::Aborted {
            self.in_doubt = Some(status);
        }
        if is_changing && status == Status::ReadOnly {
            // Part of it may be home, newer than what is in the log: recovery takes that, and a remap must not say otherwise.
            self.in_doubt = Some(status);
            self.give_up(status);
        }
        if request.op == Op::Flush && status == Status::Success {
            self.flushed(covers);
            status = self.in_doubt.unwrap_or(status);
        }
        self.overlaps.remove(number, &self.whole(&request));
        self.has_ended |= self.overlaps.any_waits();
        if is_changing {
            self.changing.remove(number, &request);
        }
        self.outstanding -= 1;
        self.taken.add(&request);
        if request.op == Op::Read && status == Status::Success && !cells.is_empty() {
            self.read_data.push((request.tag, cells));
        }
        let now = self.array.now();
        if self.array.records_paths() {
            self.paths.push(path_of(&request, &waits, path.as_deref(), now));
        }
        self.completions.push(completion(&request, status, now, order));
    }
}

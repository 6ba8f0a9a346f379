//! Commands on their way through the driver.

use std::ops::Range;

use ssdlab_base::command_sets::shrd::READ_LOG;
use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_device::critical_path::{Part, Path};

use super::{Purpose, Shrd};
use crate::layer::{Ended, Engine};
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::Reason;

/// What follows when the last part of a command has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// It is answered.
    #[default]
    Answer,
    /// The drive has not taken it into the log: it goes to its own address.
    Home,
    /// It begins anew.
    Again,
}

/// What the driver notes of a command.
#[derive(Default)]
pub(crate) struct State {
    next: Next,
    /// The drive has not taken all of it into the log.
    was_refused: bool,
    /// It changes units that are in the log, too.
    is_changing: bool,
    /// Changes that a flush covers, of those that replaced a copy in the log.
    covers: u64,
}

impl Shrd {
    /// Begins what no longer waits for others, or for remaps.
    pub(super) fn begin_unblocked(&mut self) {
        for slot in std::mem::take(&mut self.held) {
            self.begin(slot);
        }
        for slot in std::mem::take(&mut self.for_home) {
            self.change(slot);
        }
        self.start_ready();
    }

    /// Nothing before it is on its units.
    pub(super) fn begin(&mut self, slot: u32) {
        self.io.end_wait(slot);
        let request = self.io.command(slot).request;
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
            self.io.begin_wait(slot, Part::LayerCopy);
            self.held.push(slot);
        } else if request.op == Op::Read {
            self.read(slot, units);
        } else if self.is_small(&request) {
            self.sequentialize(slot);
        } else {
            self.change(slot);
        }
    }

    /// A read: where its units are, in as few parts as there can be.
    fn read(&mut self, slot: u32, units: Range<u32>) {
        let first = self.table.next(units.start, units.end, true);
        if first >= units.end {
            return self.send_home(slot);
        }
        self.io.take_effect(slot);
        self.counts.reads_of_log += 1;
        let (per_unit, capacity, cell) = (self.per_unit, self.capacity, self.io.cell);
        let command = self.io.command(slot);
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
        let command = self.io.command(slot);
        command.left = parts.len() as u32;
        if parts.len() > 1 {
            command.split(parts.iter().map(|(offset, _)| *offset).collect());
        }
        for (index, (_, part)) in parts.into_iter().enumerate() {
            if !part.opcode.is_block() {
                *self.log_reads.entry((part.sector, part.sectors)).or_default() += 1;
            }
            self.list_run(if part.opcode.is_block() { "read" } else { "log_read" }, &part);
            self.io.array.send(0, part, &[], Purpose::Part { slot, part: index });
        }
    }

    /// A change that goes to its own address. Of units that it covers in part the current copy must be there before.
    pub(super) fn change(&mut self, slot: u32) {
        let command = self.io.command(slot);
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
            self.io.command(slot).state.is_changing = true;
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
        self.io.take_effect(slot);
        let replaced = self.replaced;
        let command = self.io.command(slot);
        (command.left, command.state.next, command.state.covers) = (1, Next::Answer, replaced);
        let (request, cells) = (command.request, std::mem::take(&mut command.cells));
        let kind = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            _ => "trim",
        };
        self.list_run(kind, &request);
        self.io.array.send(0, request, &cells, Purpose::Part { slot, part: 0 });
    }

    /// A command to the drive has ended that is one from above, or a part of it.
    pub(super) fn part_ended(&mut self, part: Ended<Purpose>, slot: u32, index: usize) {
        if !part.request.opcode.is_block() {
            let key = (part.request.sector, part.request.sectors);
            if let Some(count) = self.log_reads.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.log_reads.remove(&key);
                }
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

    /// A part of a command has ended; with the last one the command goes on.
    fn one_less(&mut self, slot: u32) {
        let command = self.io.command(slot);
        if !command.ends() {
            return;
        }
        let (request, status) = (command.request, command.status);
        match command.state.next {
            _ if status != Status::Success => self.answer(slot, status),
            Next::Home => {
                self.counts.sent_home_instead += 1;
                self.change(slot);
            }
            Next::Again => {
                command.state.next = Next::Answer;
                self.sequentialize(slot);
            }
            Next::Answer => {
                if command.state.is_changing && !seeded(LayerBug::OldEntryKept) {
                    self.units_are_home(&request);
                }
                self.answer(slot, status);
            }
        }
    }

    /// A pack of the command's is in the log, or ended otherwise.
    pub(super) fn pack_ended(&mut self, slot: u32, status: Status, path: Option<&Path>) {
        let command = self.io.command(slot);
        let is_refused = !matches!(status, Status::Success | Status::Aborted);
        command.note(if is_refused { Status::Success } else { status }, path.cloned().map(Box::new));
        if is_refused {
            command.state.was_refused = true;
            if command.state.next == Next::Answer {
                command.state.next = Next::Home;
            }
        }
        self.one_less(slot);
    }

    /// A pack of the command's was not sent before the drive lost its power.
    pub(super) fn again(&mut self, slot: u32) {
        self.io.command(slot).state.next = Next::Again;
        self.one_less(slot);
    }

    /// A command is done.
    fn answer(&mut self, slot: u32, status: Status) {
        let command = self.io.command(slot);
        let (number, request) = (command.number, command.request);
        let State { was_refused, is_changing, covers, .. } = command.state;
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
        if is_changing {
            self.changing.remove(number, &request);
        }
        self.io.answer(slot, status);
        self.has_ended |= self.io.overlaps.any_waits();
    }
}

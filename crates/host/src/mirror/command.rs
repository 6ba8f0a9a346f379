//! Commands on their way through a mirror.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_device::path::{Part, Path};

use super::Mirror;
use crate::layer::{Ended, Turn, Waits, changes, completion, path_of};
use crate::seeded::{LayerBug, seeded};

/// A command from above, or a copy of the mirror's own.
pub(super) struct Command {
    pub(super) request: Request,
    pub(super) number: u64,
    order: u64,
    /// What a write brings, or a copy has read.
    pub(super) cells: Vec<u8>,
    /// Parts that have not ended.
    pub(super) left: u32,
    /// Sides that have done their part, and those that failed to, a bit each.
    done: u64,
    tried: u64,
    status: Status,
    path: Option<Path>,
    waits: Waits,
    /// The command copies its sectors from a side in sync to the others: it is none from above.
    pub(super) is_copy: bool,
    /// A copy has read, and writes.
    pub(super) writes: bool,
    /// The mirror's epoch in which it began.
    pub(super) epoch: u64,
    /// It waits in [`Mirror::held`].
    is_held: bool,
    sent: bool,
}

impl Command {
    pub(super) fn range(&self) -> Range<u64> {
        self.request.sector..self.request.end()
    }

    /// Whether the last read of it went well.
    pub(super) fn has_read(&self) -> bool {
        self.status == Status::Success
    }
}

impl Mirror {
    /// A command arrives, and begins unless one before it is on the same sectors.
    pub(super) fn arrive(&mut self, request: Request, cells: Vec<u8>, is_copy: bool) {
        self.numbers += 1;
        let command = Command {
            request,
            number: self.numbers,
            order: 0,
            cells,
            left: 0,
            done: 0,
            tried: 0,
            status: Status::Success,
            path: None,
            waits: Waits::default(),
            is_copy,
            writes: false,
            epoch: self.epoch,
            is_held: false,
            sent: false,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.commands.push(None);
            self.commands.len() as u32 - 1
        });
        let ignored = is_copy && seeded(LayerBug::CopyIgnoresWrites);
        let is_free = ignored || self.overlaps.add(command.number, slot, &request) == Turn::Free;
        self.commands[slot as usize] = Some(command);
        if is_free {
            self.begin(slot);
        } else {
            self.counts.waited += 1;
            let wait = self.array.wait(Part::LayerOverlap);
            self.command(slot).waits.begin_opt(wait);
        }
    }

    /// Begins what no longer waits for others on the same sectors.
    pub(super) fn begin_unblocked(&mut self) {
        while let Some(slot) = self.overlaps.next_ready() {
            self.begin(slot);
        }
    }

    pub(super) fn command(&mut self, slot: u32) -> &mut Command {
        self.commands[slot as usize].as_mut().expect("the command has not ended")
    }

    /// The command takes its place in the order of effect.
    fn begin(&mut self, slot: u32) {
        let (order, now) = (self.order, self.numbers);
        let at = self.array.now();
        let command = self.command(slot);
        command.waits.end(at);
        let (request, range) = (command.request, command.range());
        if !command.is_copy {
            command.order = order;
            self.order += 1;
        }
        if self.command(slot).is_copy {
            self.intent.begin(&range, now);
            self.send_read(slot);
        } else if request.op == Op::Read {
            self.send_read(slot);
        } else if changes(request.op) && request.sectors > 0 {
            self.intent.begin(&range, now);
            // Where changes are refused, the command is sent to no side and waits for no bit.
            if self.refused.is_some() || self.intent.is_durable(&range) || seeded(LayerBug::BitAfterWrite) {
                self.send_change(slot);
            } else {
                self.for_bits.push_back(slot);
            }
        } else {
            self.send_change(slot);
        }
    }

    /// Sends a write, trim or flush to every side that takes writes; of a copy, to those that are not in sync.
    pub(super) fn send_change(&mut self, slot: u32) {
        let (in_sync, refused) = (self.in_sync, self.refused.is_some());
        let command = self.command(slot);
        (command.sent, command.done) = (true, 0);
        let (request, is_copy) = (command.request, command.is_copy);
        let cells = std::mem::take(&mut command.cells);
        let mut left = 0;
        for side in self.writable().filter(|_| !refused || is_copy || !changes(request.op)) {
            if !(is_copy && in_sync >> side & 1 == 1) {
                left += 1;
                self.array.send(side, request, &cells, u64::from(slot));
            }
        }
        let command = self.command(slot);
        (command.left, command.cells) = (left, cells);
        if left == 0 {
            // No side takes writes, or none is left behind any more.
            command.left = 1;
            self.one_less(slot);
        }
    }

    /// Sends a read to the side in sync that has the fewest commands, in turn among equals.
    fn send_read(&mut self, slot: u32) {
        let tried = self.command(slot).tried;
        let (sides, turn) = (self.array.len(), self.turn);
        let may = (1..=sides).map(|step| (turn + step) % sides);
        let in_sync = if seeded(LayerBug::ReadFromBehind) { u64::MAX } else { self.in_sync };
        let may = may.filter(|side| (in_sync & !tried) >> side & 1 == 1);
        let Some(side) = may.min_by_key(|side| self.array.in_flight(*side)) else {
            self.command(slot).left = 1;
            return self.one_less(slot);
        };
        self.turn = side;
        let command = self.command(slot);
        command.left = 1;
        let request = Request { op: Op::Read, fua: false, ..command.request };
        self.array.send(side, request, &[], u64::from(slot));
    }

    /// A command has ended on a side.
    pub(super) fn part_ended(&mut self, part: Ended<u64>) {
        let slot = part.purpose as u32;
        let (side, status) = (part.device, part.completion.status);
        let is_read = part.request.op == Op::Read;
        let in_sync = self.in_sync;
        let command = self.command(slot);
        let path = part.path;
        command.path = path.or(command.path.take());
        match status {
            Status::Success if is_read && in_sync >> side & 1 == 0 && !seeded(LayerBug::ReadFromBehind) => {
                // It was left behind while it read: a side that is a layer may have answered from what its drives have left.
                self.counts.read_elsewhere += 1;
                return self.send_read(slot);
            }
            Status::Success if is_read => {
                command.status = status;
                command.cells = part.cells.unwrap_or_default();
            }
            Status::Success => command.done |= 1 << side,
            Status::Aborted if is_read => {
                // The side is back, but perhaps no longer in sync.
                self.counts.read_elsewhere += 1;
                return self.send_read(slot);
            }
            // Where the last side in sync was cut, the flush was told so then. Of another side nothing counts that was lost: it
            // is flushed before it is in sync again, which may be before this answer of a side that is a layer.
            Status::Aborted if part.request.op == Op::Flush => {}
            Status::Aborted => {
                let cells = std::mem::take(&mut command.cells);
                self.array.send(side, part.request, &cells, part.purpose);
                self.command(slot).cells = cells;
                return;
            }
            _ if is_read => {
                command.status = status;
                command.tried |= 1 << side;
                if in_sync & !command.tried != 0 {
                    self.counts.read_elsewhere += 1;
                    return self.send_read(slot);
                }
            }
            _ => {
                if !self.give_up(side, status) {
                    self.command(slot).status = status;
                    // Sides that were left behind may have taken it: what was copied to them there is no longer equal.
                    self.resync_anew();
                }
            }
        }
        self.one_less(slot);
    }

    /// A part has ended; with the last one the command is done.
    pub(super) fn one_less(&mut self, slot: u32) {
        let command = self.command(slot);
        command.left -= 1;
        if command.left > 0 {
            return;
        }
        let is_read = command.request.op == Op::Read;
        if command.is_copy {
            return self.copy_went_on(slot);
        }
        if !is_read && self.is_record_unwritten() {
            self.command(slot).is_held = true;
            self.held.push(slot);
            return;
        }
        self.answer(slot);
    }

    /// A command is over.
    pub(super) fn retire(&mut self, slot: u32) -> Command {
        let command = self.commands[slot as usize].take().expect("a command ends once");
        self.free.push(slot);
        self.overlaps.remove(command.number, &command.request);
        if changes(command.request.op) && command.request.sectors > 0 {
            self.intent.end(&command.range(), self.numbers);
        }
        command
    }

    /// A command is done, and so is all that its answer promises.
    pub(super) fn answer(&mut self, slot: u32) {
        let Command { request, number, order, cells, mut status, path, waits, .. } = self.retire(slot);
        if request.op != Op::Read && status == Status::Success {
            status = self.refused.unwrap_or(status);
        }
        self.outstanding -= 1;
        self.taken.add(&request);
        let everyone = (1 << self.array.len()) - 1;
        if request.op == Op::Flush && status == Status::Success && self.in_sync == everyone {
            self.intent.flushed(number);
        }
        if request.op == Op::Read && status == Status::Success && !cells.is_empty() {
            self.read_data.push((request.tag, cells));
        }
        if self.array.records_paths() {
            self.paths.push(path_of(&request, &waits, path.as_ref(), self.array.now()));
        }
        self.completions.push(completion(&request, status, self.array.now(), order));
    }

    /// The last side in sync has lost what it had not made durable, and stays what is there: what was to be answered well is
    /// written to it once more, and flushes have not covered what they should.
    pub(super) fn last_was_cut(&mut self, side: usize) {
        for slot in 0..self.commands.len() as u32 {
            let Some(command) = self.commands[slot as usize].as_mut() else { continue };
            if command.is_copy || !command.sent || seeded(LayerBug::LastSideForgotten) {
                continue;
            }
            if command.request.op == Op::Flush {
                if command.left > 0 && command.done >> side & 1 == 0 || command.is_held {
                    command.status = Status::Aborted;
                }
                continue;
            }
            if command.done >> side & 1 == 0 {
                // It ends as aborted, and is sent again then.
                continue;
            }
            command.done &= !(1 << side);
            command.left += 1;
            let (request, cells) = (command.request, std::mem::take(&mut command.cells));
            if std::mem::take(&mut command.is_held) {
                self.held.retain(|held| *held != slot);
            }
            self.array.send(side, request, &cells, u64::from(slot));
            self.command(slot).cells = cells;
        }
        self.resync_anew();
    }
}

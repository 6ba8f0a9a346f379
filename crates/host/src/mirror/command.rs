//! Commands on their way through a mirror.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::{Mirror, Purpose};
use crate::layer::{Command, Ended, Engine, changes};
use crate::seeded::{LayerBug, seeded};

/// What a mirror notes of a command from above, or of a copy of its own.
#[derive(Default)]
pub(crate) struct State {
    /// Sides that have done their part, and those that failed to, a bit each.
    done: u64,
    tried: u64,
    /// The command copies its sectors from a side in sync to the others: it is none from above.
    is_copy: bool,
    /// A copy has read, and writes.
    pub(super) writes: bool,
    /// The mirror's epoch in which it began.
    pub(super) epoch: u64,
    /// It waits in [`Mirror::held`].
    is_held: bool,
    sent: bool,
}

impl Mirror {
    /// A copy begins, unless a command before it is on the same sectors.
    pub(super) fn copy(&mut self, request: Request) {
        let slot = self.io.add(request, request, Vec::new(), &[]);
        let epoch = self.epoch;
        self.io.command(slot).state = State { is_copy: true, epoch, ..State::default() };
        if seeded(LayerBug::CopyIgnoresWrites) {
            self.begin(slot);
        } else {
            self.admit(slot);
        }
    }

    /// Whether the sides know that they may differ where a command changes them.
    pub(super) fn is_durable(&self, slot: u32) -> bool {
        let request = self.io.commands.get(slot).request;
        self.intent.is_durable(&(request.sector..request.end()))
    }

    /// The command takes its place in the order of effect.
    pub(super) fn begin(&mut self, slot: u32) {
        self.io.end_wait(slot);
        let now = self.io.newest();
        let command = self.io.command(slot);
        let (request, is_copy) = (command.request, command.state.is_copy);
        let range = request.sector..request.end();
        if is_copy {
            self.intent.begin(&range, now);
            return self.send_read(slot);
        }
        self.io.take_effect(slot);
        if request.op == Op::Read {
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
        let command = self.io.command(slot);
        (command.state.sent, command.state.done) = (true, 0);
        let (request, is_copy) = (command.request, command.state.is_copy);
        let cells = std::mem::take(&mut command.cells);
        let mut left = 0;
        for side in self.writable().filter(|_| !refused || is_copy || !changes(request.op)) {
            if !(is_copy && in_sync >> side & 1 == 1) {
                left += 1;
                self.io.array.send(side, request, &cells, Purpose::Command(slot));
            }
        }
        let command = self.io.command(slot);
        (command.left, command.cells) = (left, cells);
        if left == 0 {
            // No side takes writes, or none is left behind any more.
            command.left = 1;
            self.one_less(slot);
        }
    }

    /// Sends a read to the side in sync that has the fewest commands, in turn among equals.
    fn send_read(&mut self, slot: u32) {
        let tried = self.io.command(slot).state.tried;
        let (sides, turn) = (self.io.array.len(), self.turn);
        let may = (1..=sides).map(|step| (turn + step) % sides);
        let in_sync = if seeded(LayerBug::ReadFromBehind) { u64::MAX } else { self.in_sync };
        let may = may.filter(|side| (in_sync & !tried) >> side & 1 == 1);
        let Some(side) = may.min_by_key(|side| self.io.array.in_flight(*side)) else {
            self.io.command(slot).left = 1;
            return self.one_less(slot);
        };
        self.turn = side;
        let command = self.io.command(slot);
        command.left = 1;
        let request = Request { op: Op::Read, fua: false, ..command.request };
        self.io.array.send(side, request, &[], Purpose::Command(slot));
    }

    /// A command has ended on a side.
    pub(super) fn part_ended(&mut self, part: Ended<Purpose>, slot: u32) {
        let (side, status) = (part.device, part.status);
        let is_read = part.request.op == Op::Read;
        let in_sync = self.in_sync;
        let command = self.io.command(slot);
        command.note_path(part.path);
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
            Status::Success => command.state.done |= 1 << side,
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
                self.io.array.send(side, part.request, &cells, part.purpose);
                self.io.command(slot).cells = cells;
                return;
            }
            _ if is_read => {
                command.status = status;
                command.state.tried |= 1 << side;
                if in_sync & !command.state.tried != 0 {
                    self.counts.read_elsewhere += 1;
                    return self.send_read(slot);
                }
            }
            _ => {
                if !self.give_up(side, status) {
                    self.io.command(slot).status = status;
                    // Sides that were left behind may have taken it: what was copied to them there is no longer equal.
                    self.resync_anew();
                }
            }
        }
        self.one_less(slot);
    }

    /// A part has ended; with the last one the command is done.
    pub(super) fn one_less(&mut self, slot: u32) {
        let command = self.io.command(slot);
        if !command.ends() {
            return;
        }
        let is_read = command.request.op == Op::Read;
        if command.state.is_copy {
            return self.copy_went_on(slot);
        }
        if !is_read && self.is_record_unwritten() {
            self.io.command(slot).state.is_held = true;
            self.held.push(slot);
            return;
        }
        self.answer(slot);
    }

    /// A command is over.
    pub(super) fn retire(&mut self, slot: u32) -> Command<State> {
        self.changes_nothing_more(slot);
        self.io.retire(slot)
    }

    fn changes_nothing_more(&mut self, slot: u32) {
        let request = self.io.command(slot).request;
        if changes(request.op) && request.sectors > 0 {
            self.intent.end(&(request.sector..request.end()), self.io.newest());
        }
    }

    /// A command is done, and so is all that its answer promises.
    pub(super) fn answer(&mut self, slot: u32) {
        self.changes_nothing_more(slot);
        let Command { request, number, mut status, .. } = *self.io.command(slot);
        if request.op != Op::Read && status == Status::Success {
            status = self.refused.unwrap_or(status);
        }
        let everyone = (1 << self.sides()) - 1;
        if request.op == Op::Flush && status == Status::Success && self.in_sync == everyone {
            self.intent.flushed(number);
        }
        self.io.answer(slot, status);
    }

    /// The last side in sync has lost what it had not made durable, and stays what is there: what was to be answered well is
    /// written to it once more, and flushes have not covered what they should.
    pub(super) fn last_was_cut(&mut self, side: usize) {
        let mut again = Vec::new();
        for (slot, command) in self.io.commands.all_mut() {
            let state = &mut command.state;
            if state.is_copy || !state.sent || seeded(LayerBug::LastSideForgotten) {
                continue;
            }
            let is_done = state.done >> side & 1 == 1;
            if command.request.op == Op::Flush {
                if command.left > 0 && !is_done || state.is_held {
                    command.status = Status::Aborted;
                }
            } else if is_done {
                // What has not ended there ends as aborted, and is sent again then.
                state.done &= !(1 << side);
                command.left += 1;
                if std::mem::take(&mut state.is_held) {
                    self.held.retain(|held| *held != slot);
                }
                again.push(slot);
            }
        }
        for slot in again {
            let command = self.io.commands.get(slot);
            self.io.array.send(side, command.request, &command.cells, Purpose::Command(slot));
        }
        self.resync_anew();
    }
}

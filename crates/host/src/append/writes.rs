//! Writes of the host on their way to places, and when they take effect.

use ssdlab_base::Op;
use ssdlab_device::Status;
use ssdlab_device::critical_path::Part;

use super::command::State;
use super::space::For;
use super::{Append, Purpose, is_void};
use crate::layer::{Command, Ended, Turn};

/// Consecutive units that are to be written.
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) count: u32,
    /// What they hold, where contents are kept.
    pub(super) cells: Vec<u8>,
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
    /// All that is to be written is known: it takes places, or waits for them.
    pub(super) fn place(&mut self, slot: u32) {
        if let Some(status) = self.stuck {
            return self.answer(slot, status);
        }
        if !self.for_room.is_empty() || !self.place_some(slot) {
            self.counts.waited_for_room += 1;
            self.io.begin_wait(slot, Part::LayerSpace);
            self.wait_for_room(slot);
        }
    }

    /// A command waits for places, before those that arrived later.
    fn wait_for_room(&mut self, slot: u32) {
        let number = self.io.command(slot).number;
        let later = (0..self.for_room.len())
            .rev()
            .take_while(|&index| self.io.commands.get(self.for_room[index]).number > number);
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
        if self.io.command(slot).state.is_early {
            match self.io.turn(slot) {
                Turn::Free => self.apply_held(slot),
                Turn::Passes => {}
                Turn::Waits => return false,
            }
        }
        while let Some(count) = self.io.command(slot).state.spans.last().map(|span| span.count) {
            let room = self.layout.most_pending.saturating_sub(self.log.pending() + self.units_in_flight) as u32;
            let most = count.min(room).min(self.host_pages());
            if most == 0 {
                return false;
            }
            let Some((place, count)) = self.take_places(For::Host, most) else { return false };
            self.io.end_wait(slot);
            let command = self.io.command(slot);
            let queue = command.request.queue;
            let span = command.state.spans.last_mut().expect("it was there");
            let (first, rest) = (span.first, span.cells.split_off(count as usize * unit_cells));
            let cells = std::mem::replace(&mut span.cells, rest);
            span.first += count;
            span.count -= count;
            if span.count == 0 {
                command.state.spans.pop();
            }
            command.left += 1;
            self.units_in_flight += count as usize;
            self.counts.written_units += u64::from(count);
            let write = self.writes.put(Write { slot, first, count, place, cells: Vec::new() });
            self.append(place, count, queue, &cells, Purpose::Write(write));
            self.writes.get_mut(write).cells = cells;
        }
        self.update_passing(slot);
        if self.io.command(slot).left == 0 {
            self.finish_write(slot);
        }
        true
    }

    /// A write of a command has ended.
    pub(super) fn write_ended(&mut self, part: Ended<Purpose>, write: u32) {
        let write = self.writes.take(write);
        let slot = write.slot;
        let command = self.io.command(slot);
        command.left -= 1;
        command.note_path(part.path);
        match part.status {
            Status::Success if !self.must_hold(slot) => self.apply(&write),
            Status::Success if self.io.turn(slot) == Turn::Passes => self.io.command(slot).state.held.push(write),
            Status::Success => self.write_again(write),
            status if is_void(status) => {
                self.space.close_segment(self.layout.segment_of(write.place));
                self.write_again(write);
                self.write_held_again();
            }
            status => {
                self.release_room(&write);
                self.io.command(slot).status = status;
                self.stop_writing(status);
            }
        }
        let command = self.io.command(slot);
        if command.left > 0 {
            return;
        }
        if command.state.spans.is_empty() {
            self.finish_write(slot);
        } else if !self.for_room.contains(&slot) {
            // With its last units it waits for places, or not at all where there will be none.
            self.place(slot);
        }
    }

    /// A write below has ended: its segment and the log have less to wait for.
    pub(super) fn release_room(&mut self, write: &Write) {
        self.append_ended(write.place);
        self.units_in_flight -= write.count as usize;
    }

    /// What a write brought is where it went from now on.
    fn apply(&mut self, write: &Write) {
        self.release_room(write);
        let &Write { slot, first, count, place, .. } = write;
        let may_lose = !self.lost.is_empty() || !self.io.command(slot).state.unreadable.is_empty();
        for (unit, place) in (first..).zip(place..place + count) {
            self.map_to(unit, place);
            if may_lose {
                self.record_lost(slot, unit);
            }
        }
    }

    /// What a write brought is sent again, to another place.
    fn write_again(&mut self, write: Write) {
        self.release_room(&write);
        let Write { slot, first, count, cells, .. } = write;
        self.io.command(slot).state.spans.push(Span { first, count, cells });
        self.update_passing(slot);
    }

    /// Writes that wait for others to take effect are sent again: the others may need the room that these hold.
    fn write_held_again(&mut self) {
        let holds = |(slot, command): (u32, &Command<State>)| (!command.state.held.is_empty()).then_some(slot);
        let slots: Vec<u32> = self.io.commands.all().filter_map(holds).collect();
        for slot in slots {
            let held = std::mem::take(&mut self.io.command(slot).state.held);
            held.into_iter().for_each(|write| self.write_again(write));
            if self.io.command(slot).left == 0 && !self.for_room.contains(&slot) {
                self.io.command(slot).state.awaits_turn = false;
                self.wait_for_room(slot);
            }
        }
    }

    /// All of a change is on the drive, and takes effect after those before it.
    pub(super) fn finish_write(&mut self, slot: u32) {
        if self.io.command(slot).status == Status::Success {
            let must_hold = self.must_hold(slot);
            self.io.command(slot).state.awaits_turn = must_hold;
            if must_hold {
                return;
            }
            self.apply_held(slot);
        }
        self.finish_change(slot);
    }

    /// What a write holds takes effect: those before it have ended.
    pub(super) fn apply_held(&mut self, slot: u32) {
        let held = std::mem::take(&mut self.io.command(slot).state.held);
        held.iter().for_each(|write| self.apply(write));
        // A commit may be due, and others may have room.
        self.has_ended |= !held.is_empty();
    }

    /// All of a change has ended.
    fn finish_change(&mut self, slot: u32) {
        let command = self.io.command(slot);
        let (request, status) = (command.request, command.status);
        if status != Status::Success {
            return self.answer(slot, status);
        }
        if request.op != Op::Write {
            self.unmap(self.whole_units_of(&request));
        }
        self.io.take_effect(slot);
        if request.fua { self.answer_when_durable(slot) } else { self.answer(slot, status) }
    }
}

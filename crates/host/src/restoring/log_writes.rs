//! Sequentializing: places for small writes, and their packs on their way into the log.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_device::critical_path::Part;

use super::commit::Pending;
use super::config::WhenFull;
use super::{Purpose, Restoring};
use crate::layer::Ended;
use crate::sequentializing::Pack;

impl Restoring {
    /// Whether a write goes to the log: whole units, and not too many.
    pub(super) fn is_small(&self, request: &Request) -> bool {
        let per_unit = self.layout.per_unit;
        let in_units = request.sector.is_multiple_of(per_unit) && request.sectors.is_multiple_of(per_unit);
        let is_write = request.op == Op::Write && request.sectors > 0;
        is_write && in_units && request.sectors / per_unit <= u64::from(self.most_units) && self.stuck.is_none()
    }

    /// A small write takes places in the log, or waits for them.
    pub(super) fn sequentialize(&mut self, slot: u32) {
        if self.stuck.is_some() {
            return self.change(slot);
        }
        if self.for_places.is_empty() && self.place(slot) {
            return;
        }
        if self.is_blocked || self.config.when_full == WhenFull::Direct {
            self.wants_room = !self.is_blocked;
            self.counts.direct_when_full += 1;
            return self.change(slot);
        }
        self.wants_room = true;
        self.counts.waited_for_places += 1;
        self.io.begin_wait(slot, Part::LayerSpace);
        self.for_places.push_back(slot);
    }

    /// Gives a write its places, and packs it; at the end of the ring it becomes two. False if there are too few.
    pub(super) fn place(&mut self, slot: u32) -> bool {
        let request = self.io.command(slot).request;
        let units = self.units_of(&request);
        let count = units.len() as u32;
        if self.ring.free() < count + self.reserve {
            return false;
        }
        self.io.end_wait(slot);
        self.counts.small_writes += 1;
        self.begins_changing(slot);
        let before_end = count.min(self.ring.before_wrap());
        let unit_cells = self.layout.per_unit as usize * self.io.cell;
        let cells = std::mem::take(&mut self.io.command(slot).cells);
        let parts = [(0, before_end), (before_end, count - before_end)];
        self.io.command(slot).left += 1 + u32::from(before_end < count);
        for (from, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
            let first = self.ring.take(count);
            let of_part = &cells[from as usize * unit_cells..(from + count) as usize * unit_cells];
            self.packing.add(slot, units.start + from, count, first, of_part);
        }
        // It goes to its own address if the device does not take it.
        self.io.command(slot).cells = cells;
        true
    }

    /// Writes that wait for places take them.
    pub(super) fn give_places(&mut self) {
        self.wants_room = false;
        while let Some(&slot) = self.for_places.front() {
            if !self.place(slot) {
                self.wants_room = true;
                return;
            }
            self.for_places.pop_front();
        }
    }

    /// Nothing becomes free: writes that wait for places go to their own addresses.
    pub(super) fn give_up_waiting(&mut self) {
        self.wants_room = false;
        for slot in std::mem::take(&mut self.for_places) {
            self.counts.direct_when_full += 1;
            self.io.end_wait(slot);
            self.change(slot);
        }
    }

    /// Whether one more pack may go.
    pub(super) const fn may_send_pack(&self) -> bool {
        self.config.writes == 0 || self.packs_in_flight < self.config.writes
    }

    /// Sends the packs that are closed.
    pub(super) fn send_packs(&mut self) {
        while self.may_send_pack()
            && let Some(pack) = self.packing.next()
        {
            self.send_pack(pack);
        }
    }

    fn send_pack(&mut self, mut pack: Pack) {
        self.counts.log_writes += 1;
        self.counts.packed_requests += pack.commands.len() as u64;
        self.counts.packed_units += pack.units.len() as u64;
        self.packs_in_flight += 1;
        for slot in pack.commands.clone() {
            self.io.take_effect(slot);
        }
        let fua = pack.commands.clone().into_iter().any(|slot| self.io.command(slot).request.fua);
        let queue = self.io.command(pack.commands[0]).request.queue;
        let (sector, sectors) = (self.layout.sector_of(pack.first), pack.units.len() as u64 * self.layout.per_unit);
        assert!(sector + sectors <= self.layout.slots, "a pack ends before the log does");
        let cells = std::mem::take(&mut pack.cells);
        let number = self.packs.put(pack);
        let request = Request { queue, fua, ..Request::new(Op::Write, sector, sectors) };
        self.io.array.send(0, request, &cells, Purpose::Pack(number));
    }

    pub(super) fn pack_ended(&mut self, part: &Ended<Purpose>, pack: u32) {
        let pack = self.packs.take(pack);
        self.packs_in_flight -= 1;
        let status = part.status;
        if status == Status::Success {
            for (&unit, place) in pack.units.iter().zip(pack.first..) {
                self.map_to_log(unit, place, part.request.fua);
            }
        }
        self.counts.log_writes_refused += u64::from(!matches!(status, Status::Success | Status::Aborted));
        for slot in pack.commands {
            self.log_part_ended(slot, status, part.path.as_deref());
        }
    }

    /// A unit is at a place now; and on flash, if it is durable.
    pub(super) fn map_to_log(&mut self, unit: u32, place: u32, durable: bool) {
        if let Some(before) = self.table.insert(unit, place) {
            assert_ne!(before, place, "a place is written once in a round");
            self.release_place(before);
        }
        let position = self.position_of(place);
        self.pending.insert(unit, Pending { position, is_home: false, durable });
    }
}

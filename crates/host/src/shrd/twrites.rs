//! Sequentializing (section 4.2): places for small writes, and their packs on their way into the log.

use ssdlab_base::Request;
use ssdlab_base::command_sets::shrd::{SHRD, TWRITE_DATA, TWRITE_HEADER, TwriteHeader};
use ssdlab_device::Status;
use ssdlab_device::critical_path::Part;

use super::config::{Ordering, WhenFull};
use super::{Purpose, Shrd, Twrite};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};
use crate::sequentializing::Pack;

impl Shrd {
    /// Whether a write goes to the log: whole units, and not too many.
    pub(super) fn is_small(&self, request: &Request) -> bool {
        let is_write = request.op == ssdlab_base::Op::Write && request.sectors > 0;
        let in_units = (request.sector | request.sectors) & (self.per_unit - 1) == 0;
        is_write && in_units && request.sectors >> self.unit_shift <= u64::from(self.most_units) && self.stuck.is_none()
    }

    /// A small write takes places in the log, or waits for them.
    pub(super) fn sequentialize(&mut self, slot: u32) {
        if self.stuck.is_some() {
            return self.change(slot);
        }
        if self.for_places.is_empty() && self.place(slot) {
            return;
        }
        self.wants_room = true;
        match self.config.when_full {
            WhenFull::Wait => {
                self.counts.waited_for_places += 1;
                self.io.begin_wait(slot, Part::LayerSpace);
                self.for_places.push_back(slot);
            }
            WhenFull::Direct => {
                self.counts.direct_when_full += 1;
                self.change(slot);
            }
        }
    }

    /// Gives a write its places, and packs it; at the end of the ring it becomes two. False if there are too few.
    pub(super) fn place(&mut self, slot: u32) -> bool {
        let request = self.io.command(slot).request;
        let units = self.units_of(&request);
        let count = units.len() as u32;
        if self.ring.free() < count {
            return false;
        }
        self.io.end_wait(slot);
        self.counts.small_writes += 1;
        let before_end = count.min(self.ring.before_wrap());
        let unit_cells = self.per_unit as usize * self.io.cell;
        let cells = std::mem::take(&mut self.io.command(slot).cells);
        let parts = [(0, before_end), (before_end, count - before_end)];
        self.io.command(slot).left += 1 + u32::from(before_end < count);
        for (from, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
            let first = self.ring.take(count);
            let of_part = &cells[from as usize * unit_cells..(from + count) as usize * unit_cells];
            self.packing.add(slot, units.start + from, count, first, of_part);
        }
        // It goes to its own address if the drive does not take it.
        self.io.command(slot).cells = cells;
        true
    }

    /// Whether one more twrite may go.
    pub(super) const fn may_send_twrite(&self) -> bool {
        self.config.twrites == 0 || self.twrites_in_flight < self.config.twrites
    }

    /// Sends the packs that are closed.
    pub(super) fn send_packs(&mut self) {
        while self.may_send_twrite()
            && let Some(pack) = self.packing.next()
        {
            self.send_header(pack);
        }
    }

    fn send_header(&mut self, mut pack: Pack) {
        self.counts.twrites += 1;
        self.counts.packed_requests += pack.commands.len() as u64;
        self.counts.packed_units += pack.units.len() as u64;
        self.twrites_in_flight += 1;
        let header = TwriteHeader { first: pack.first, units: std::mem::take(&mut pack.units) };
        let words = header.encode();
        pack.units = header.units;
        let queue = self.io.command(pack.commands[0]).request.queue;
        let twrite = self.twrites.put(Twrite { pack, epoch: self.epoch });
        let spec = SHRD.command(self.config.carried(TWRITE_HEADER)).expect("the set has it");
        let request = Request { queue, ..Request::of_set(spec, 0, 0) };
        self.io.array.send_of_set(0, request, &[], &words, Purpose::Header(twrite));
        if self.config.ordering == Ordering::Drive {
            self.send_data(twrite);
        }
    }

    fn send_data(&mut self, twrite: u32) {
        let pack = &mut self.twrites.get_mut(twrite).pack;
        let (first, count, cells) = (u64::from(pack.first), pack.units.len() as u64, std::mem::take(&mut pack.cells));
        for slot in &pack.commands {
            self.io.take_effect(*slot);
        }
        let queue = self.io.command(pack.commands[0]).request.queue;
        let spec = SHRD.command(TWRITE_DATA).expect("the set has it");
        let (sector, sectors) = (self.capacity + first * self.per_unit, count * self.per_unit);
        let request = Request { queue, ..Request::of_set(spec, sector, sectors) };
        if seeded(LayerBug::TableBeforeData) {
            self.map_to_log(twrite);
        }
        self.list_run("log_write", &request);
        self.io.array.send_of_set(0, request, &cells, &[], Purpose::Data(twrite));
    }

    pub(super) fn header_ended(&mut self, part: &Ended<Purpose>, twrite: u32) {
        if self.config.ordering == Ordering::Drive {
            return;
        }
        match part.status {
            Status::Success if self.twrites.get(twrite).epoch == self.epoch => self.send_data(twrite),
            // The drive has lost its power, and the header with it.
            Status::Success => self.twrite_ended(twrite, Status::Aborted, part),
            status => self.twrite_ended(twrite, status, part),
        }
    }

    pub(super) fn data_ended(&mut self, part: &Ended<Purpose>, twrite: u32) {
        // After a power cut the drive has given the units their own addresses.
        if part.status == Status::Success && self.twrites.get(twrite).epoch == self.epoch {
            self.map_to_log(twrite);
        }
        self.twrite_ended(twrite, part.status, part);
    }

    /// The units of a twrite are in the log now.
    fn map_to_log(&mut self, twrite: u32) {
        let pack = &mut self.twrites.get_mut(twrite).pack;
        let (first, units) = (pack.first, std::mem::take(&mut pack.units));
        for (&unit, place) in units.iter().zip(first..) {
            if let Some(before) = self.table.insert(unit, place) {
                self.dies(if seeded(LayerBug::NewCopyTrimmed) { place } else { before }, 0);
            }
        }
        self.twrites.get_mut(twrite).pack.units = units;
    }

    fn twrite_ended(&mut self, twrite: u32, status: Status, part: &Ended<Purpose>) {
        let twrite = self.twrites.take(twrite);
        self.twrites_in_flight -= 1;
        self.counts.twrites_refused += u64::from(!matches!(status, Status::Success | Status::Aborted));
        for slot in twrite.pack.commands {
            self.pack_ended(slot, status, part.path.as_deref());
        }
    }
}

//! Reads of the host: where the map says, in as few parts as there can be.

use ssdlab_base::Request;
use ssdlab_device::Status;

use super::layout::{LOST, NOWHERE};
use super::{Append, Purpose};
use crate::layer::Ended;

impl Append {
    /// A read: in as few parts as there can be; what is nowhere is zeroes.
    pub(super) fn read(&mut self, slot: u32) {
        let request = self.io.command(slot).request;
        let (units, per_unit, cell) = (self.units_of(&request), self.layout.per_unit, self.io.cell);
        self.io.command(slot).cells = vec![0; request.sectors as usize * cell];
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
        let command = self.io.command(slot);
        command.left = parts.len() as u32;
        command.split(parts.iter().map(|(offset, _)| *offset).collect());
        for (index, (_, part)) in parts.into_iter().enumerate() {
            self.read_places(part, Purpose::Read { slot, part: index });
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
    pub(super) fn read_part_ended(&mut self, part: Ended<Purpose>, slot: u32, index: usize) {
        self.read_ended(&part.request);
        let cell = self.io.cell;
        match (part.cells, part.status) {
            (Some(cells), Status::Success) => {
                self.io.command(slot).fill(index, cells, cell);
            }
            (None, Status::Success) if cell == 0 => {}
            // A power cut took what it had read, or kept it from reading.
            (None, Status::Success) => return self.read_places(part.request, part.purpose),
            (_, Status::Aborted) => return self.read_places(part.request, part.purpose),
            // The map names what is not there.
            (_, Status::Refused(_)) => self.io.command(slot).status = Status::UncorrectableRead,
            (_, status) => self.io.command(slot).status = status,
        }
        let command = self.io.command(slot);
        command.note_path(part.path);
        if command.ends() {
            let status = command.status;
            self.answer(slot, status);
        }
    }
}

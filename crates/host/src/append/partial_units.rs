//! Changes of a part of a unit: the rest is read first, and the whole unit is written.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::layout::LOST;
use super::writes::Span;
use super::{Append, Purpose, READS};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

impl Append {
    /// A change: units that it covers in part are read first, where they hold something.
    pub(super) fn change(&mut self, slot: u32) {
        let request = self.io.command(slot).request;
        let (units, whole) = (self.units_of(&request), self.whole_units_of(&request));
        if units == whole {
            let command = self.io.command(slot);
            if request.op == Op::Write {
                let cells = std::mem::take(&mut command.cells);
                command.state.spans.push(Span { first: units.start, count: units.len() as u32, cells });
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
        let cells = std::mem::take(&mut self.io.command(slot).cells);
        let spans = spans.into_iter().map(|units| {
            let mut of_span = vec![0; units.len() * unit_cells];
            if !cells.is_empty() {
                let at = (request.sector % self.layout.per_unit) as usize * self.io.cell;
                of_span[at..][..cells.len()].copy_from_slice(&cells);
            }
            Span { first: units.start, count: units.len() as u32, cells: of_span }
        });
        let spans = spans.collect();
        self.io.command(slot).state.spans = spans;
        edges.retain(|unit| self.map.holds(*unit));
        if edges.is_empty() || seeded(LayerBug::EdgesNotRead) {
            return self.place(slot);
        }
        let (lost, edges): (Vec<u32>, Vec<u32>) = edges.into_iter().partition(|unit| self.map.get(*unit) == LOST);
        self.io.command(slot).state.unreadable = lost;
        if edges.is_empty() {
            return self.place(slot);
        }
        self.counts.units_read_for_parts += edges.len() as u64;
        self.io.command(slot).left = edges.len() as u32;
        for unit in edges {
            let sector = self.layout.sector_of(self.map.get(unit));
            let read = Request { queue: request.queue, ..Request::new(Op::Read, sector, self.layout.per_unit) };
            // Both edges are units of the request: one is the first.
            let is_last = unit != self.units_of(&request).start;
            self.read_places(read, Purpose::Edge { slot, is_last });
        }
    }

    /// A unit that a change covers in part was read.
    pub(super) fn edge_ended(&mut self, part: Ended<Purpose>, slot: u32, is_last: bool) {
        self.read_ended(&part.request);
        match (part.cells, part.status) {
            (Some(cells), Status::Success) => self.complete(slot, is_last, &cells),
            (None, Status::Success) if self.io.cell == 0 => {}
            (None, Status::Success) => return self.read_places(part.request, part.purpose),
            (_, Status::Aborted) => return self.read_places(part.request, part.purpose),
            _ if self.io.command(slot).state.failures < READS => {
                self.io.command(slot).state.failures += 1;
                return self.read_places(part.request, part.purpose);
            }
            _ => {
                let request = self.io.command(slot).request;
                let units = self.units_of(&request);
                self.io.command(slot).state.unreadable.push(if is_last { units.end - 1 } else { units.start });
            }
        }
        if self.io.command(slot).ends() {
            self.place(slot);
        }
    }

    /// The sectors of a unit that a request covers, a bit each.
    pub(super) fn covered(&self, request: &Request, unit: u32) -> u64 {
        let first = u64::from(unit) * self.layout.per_unit;
        let (from, to) = (request.sector.max(first) - first, request.end().min(first + self.layout.per_unit) - first);
        (u64::MAX >> (64 - (to - from))) << from
    }

    /// A unit was written by a command: of what the command does not cover, what could not be read is lost.
    pub(super) fn record_lost(&mut self, slot: u32, unit: u32) {
        let command = self.io.command(slot);
        let (request, cannot) = (command.request, command.state.unreadable.contains(&unit));
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
        let (cell, per_unit) = (self.io.cell, self.layout.per_unit);
        let request = self.io.command(slot).request;
        let units = self.units_of(&request);
        let unit = if is_last { units.end - 1 } else { units.start };
        let first = u64::from(unit) * per_unit;
        let span = self
            .io
            .command(slot)
            .state
            .spans
            .iter_mut()
            .find(|span| (span.first..span.first + span.count).contains(&unit));
        let span = span.expect("a unit that is read is written");
        let at = (unit - span.first) as usize * per_unit as usize * cell;
        let of_unit = span.cells[at..].chunks_exact_mut(cell).zip(cells.chunks_exact(cell));
        for (sector, (to, from)) in (first..first + per_unit).zip(of_unit) {
            if !(request.sector..request.end()).contains(&sector) {
                to.copy_from_slice(from);
            }
        }
    }
}

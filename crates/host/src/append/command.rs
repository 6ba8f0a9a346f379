//! Commands on their way through the layer.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::path::{Part, Path};
use ssdlab_device::{Data, Status};

use super::Append;
use super::layout::NOWHERE;
use super::log::Entry;
use super::writes::{Span, Write};
use crate::layer::{Turn, Waits, completion, path_of, units_of, whole_units_of, widened};
use crate::seeded::{LayerBug, seeded};

/// An order of effect that was not given yet.
const UNNUMBERED: u64 = u64::MAX;

/// A command from above.
pub(super) struct Command {
    pub(super) request: Request,
    /// Its place in the order of arrival.
    pub(super) number: u64,
    pub(super) order: u64,
    /// What a write brings, or a read has found.
    pub(super) cells: Vec<u8>,
    /// Commands below that have not ended.
    pub(super) left: u32,
    pub(super) status: Status,
    pub(super) path: Option<Path>,
    pub(super) waits: Waits,
    /// Where the parts of a read begin in it, in sectors.
    pub(super) parts: Vec<u64>,
    /// Units that are to be written, and have no place.
    pub(super) spans: Vec<Span>,
    /// Units that it covers in part, and the rest could not be read.
    pub(super) unreadable: Vec<u32>,
    /// Reads of these that failed.
    pub(super) failures: u32,
    pub(super) has_begun: bool,
    /// It was sent while earlier commands on the same units were on their way, and takes effect after them.
    pub(super) is_early: bool,
    /// All of it is on the drive, and it waits for those before it.
    pub(super) awaits_turn: bool,
    /// What of it is on the drive, and takes effect then.
    pub(super) held: Vec<Write>,
}

impl Command {
    /// Whether it ends with what is below, and with commands that do.
    const fn is_underway(&self) -> bool {
        self.has_begun && self.spans.is_empty()
    }
}

impl Append {
    pub(super) fn command(&mut self, slot: u32) -> &mut Command {
        self.commands.get_mut(slot)
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
            waits: Waits::default(),
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
            Turn::Waits => {
                self.counts.waited_for_overlaps += 1;
                let wait = self.array.wait(Part::LayerOverlap);
                self.command(slot).waits.begin_opt(wait);
            }
        }
    }

    /// What a command may do now, because of earlier ones on the same units.
    pub(super) fn turn(&mut self, slot: u32) -> Turn {
        let Command { number, request, .. } = *self.command(slot);
        self.overlaps.turn(number, &self.whole(&request))
    }

    /// Later writes may pass a command that waits for no room: what they hold meanwhile, it does not need.
    pub(super) fn update_passing(&mut self, slot: u32) {
        let command = self.command(slot);
        let (number, request, is_underway) = (command.number, command.request, command.is_underway());
        self.overlaps.set_passable(number, &self.whole(&request), is_underway);
    }

    /// Whether what a write brought must wait for earlier ones to take effect.
    pub(super) fn must_hold(&mut self, slot: u32) -> bool {
        self.command(slot).is_early && self.turn(slot) != Turn::Free && !seeded(LayerBug::LaterWriteFirst)
    }

    /// Begins a write before earlier ones on the same units have ended.
    fn begin_early(&mut self, slot: u32) {
        self.counts.sent_early += 1;
        self.command(slot).is_early = true;
        self.begin(slot);
    }

    /// The request, as wide as the units that it touches.
    pub(super) fn whole(&self, request: &Request) -> Request {
        widened(request, self.layout.per_unit)
    }

    /// Units that a request touches, if only in part.
    pub(super) fn units_of(&self, request: &Request) -> Range<u32> {
        units_of(request, self.layout.per_unit)
    }

    /// Units that a request covers whole.
    pub(super) fn whole_units_of(&self, request: &Request) -> Range<u32> {
        whole_units_of(request, self.layout.per_unit)
    }

    /// Begins what no longer waits for others on the same units, and ends what is written and waited for them.
    pub(super) fn begin_ready(&mut self) {
        while let Some(slot) = self.overlaps.next_ready() {
            let turn = self.turn(slot);
            match (turn, self.command(slot).has_begun) {
                (Turn::Free, true) => {
                    // Also where more of it waits for room: what it holds and replaces can be cleaned from now on.
                    self.apply_held(slot);
                    if self.command(slot).awaits_turn {
                        self.finish_write(slot);
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
        let now = self.array.now();
        let command = self.command(slot);
        command.waits.end(now);
        command.has_begun = true;
        let request = command.request;
        match request.op {
            Op::Flush => {
                self.counts.flushes += 1;
                self.answer_when_durable(slot);
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
    pub(super) fn take_effect(&mut self, slot: u32) {
        let order = self.order;
        let command = self.command(slot);
        if command.order == UNNUMBERED {
            command.order = order;
            self.order += 1;
        }
    }

    /// Answers a flush or a FUA write when all that took effect before is on the drive.
    pub(super) fn answer_when_durable(&mut self, slot: u32) {
        if self.log.is_clean() || seeded(LayerBug::FlushOfNothing) && self.log.pending() == 0 {
            self.answer(slot, Status::Success);
        } else {
            if self.log.pending() == 0 {
                self.take_effect(slot);
            }
            self.log.join(slot);
        }
    }

    /// Units hold nothing any more.
    pub(super) fn unmap(&mut self, units: Range<u32>) {
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
        self.take_effect(slot);
        let Command { request, number, order, cells, path, waits, held, .. } = self.commands.take(slot);
        // What an unsuccessful write holds has no effect.
        held.iter().for_each(|write| self.release_room(write));
        self.overlaps.remove(number, &self.whole(&request));
        self.has_ended |= self.overlaps.any_ready();
        self.outstanding -= 1;
        self.taken.add(&request);
        if request.op == Op::Read && status == Status::Success && !cells.is_empty() {
            self.read_data.push((request.tag, cells));
        }
        let now = self.array.now();
        if self.array.records_paths() {
            self.paths.push(path_of(&request, &waits, path.as_ref(), now));
        }
        self.completions.push(completion(&request, status, now, order));
    }

    /// The drive takes no more writes: what waits for places ends like this.
    pub(super) fn stop_writing(&mut self, status: Status) {
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

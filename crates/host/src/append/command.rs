//! Commands on their way through the layer.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::layout::NOWHERE;
use super::log::Entry;
use super::writes::{Span, Write};
use super::{Append, units_of, whole_units_of};
use crate::layer::Turn;
use crate::seeded::{LayerBug, seeded};

/// What the layer notes of a command.
#[derive(Default)]
pub(crate) struct State {
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

impl State {
    /// Whether it ends with what is below, and with commands that do.
    const fn is_underway(&self) -> bool {
        self.has_begun && self.spans.is_empty()
    }
}

impl Append {
    /// Later writes may pass a command that waits for no room: what they hold meanwhile, it does not need.
    pub(super) fn update_passing(&mut self, slot: u32) {
        let is_underway = self.io.command(slot).state.is_underway();
        self.io.set_passable(slot, is_underway);
    }

    /// Whether what a write brought must wait for earlier ones to take effect.
    pub(super) fn must_hold(&mut self, slot: u32) -> bool {
        self.io.command(slot).state.is_early && self.io.turn(slot) != Turn::Free && !seeded(LayerBug::LaterWriteFirst)
    }

    /// Begins a write before earlier ones on the same units have ended.
    pub(super) fn begin_early(&mut self, slot: u32) {
        self.counts.sent_early += 1;
        self.io.command(slot).state.is_early = true;
        self.begin(slot);
    }

    /// Units that a request touches, if only in part.
    pub(super) fn units_of(&self, request: &Request) -> Range<u32> {
        units_of(request, self.layout.per_unit)
    }

    /// Units that a request covers whole.
    pub(super) fn whole_units_of(&self, request: &Request) -> Range<u32> {
        whole_units_of(request, self.layout.per_unit)
    }

    /// The commands before one that has begun have ended: what it holds takes effect.
    pub(super) fn has_its_turn(&mut self, slot: u32) {
        // Also where more of it waits for room: what it holds and replaces can be cleaned from now on.
        self.apply_held(slot);
        if self.io.command(slot).state.awaits_turn {
            self.finish_write(slot);
        }
    }

    /// A command begins.
    pub(super) fn begin(&mut self, slot: u32) {
        self.io.end_wait(slot);
        let command = self.io.command(slot);
        command.state.has_begun = true;
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

    /// Answers a flush or a FUA write when all that took effect before is on the drive.
    pub(super) fn answer_when_durable(&mut self, slot: u32) {
        if self.log.is_clean() || seeded(LayerBug::FlushOfNothing) && self.log.pending() == 0 {
            self.answer(slot, Status::Success);
        } else {
            if self.log.pending() == 0 {
                self.io.take_effect(slot);
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
        let state = self.io.answer(slot, status);
        // What an unsuccessful write holds has no effect.
        state.held.iter().for_each(|write| self.release_room(write));
        self.has_ended |= self.io.overlaps.any_ready();
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
            if self.io.command(slot).left == 0 {
                self.answer(slot, status);
            }
        }
    }
}

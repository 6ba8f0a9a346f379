//! How a layer goes through time: it sees the end of a command below at the time of that end, before any later event.

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Payload, Status};

use super::paths::turned_away;
use super::{Layer, Turn};

/// What every layer does alike.
pub(crate) trait Engine: Layer {
    /// Takes what has ended below, sends what waited for it, and answers; until there is no more to do now.
    fn work(&mut self) {
        loop {
            let io = self.io_mut();
            let mut ended = std::mem::take(&mut io.ended);
            io.array.take(&mut ended);
            let any = !ended.is_empty();
            for part in ended.drain(..) {
                self.ended(part);
            }
            self.io_mut().ended = ended;
            if !self.proceed() && !any && !self.io_mut().array.any_has_ended() {
                return;
            }
        }
    }

    /// Starts commands that no longer wait for others on the same sectors.
    fn start_ready(&mut self) {
        while let Some(slot) = self.io_mut().overlaps.next_ready() {
            match self.io().turn(slot) {
                // An earlier one cannot be passed any more.
                Turn::Waits => {}
                turn => self.start(slot, turn),
            }
        }
    }

    /// Starts a command that was added, unless it waits for others on the same sectors.
    fn admit(&mut self, slot: u32) {
        let passes = self.passes(&self.io().commands.get(slot).request);
        match self.io_mut().order_in(slot, passes) {
            Turn::Waits => {}
            turn => self.start(slot, turn),
        }
    }

    /// A command arrives.
    fn arrive(&mut self, request: &Request, payload: Payload<'_>) {
        if !Self::HOLDS_INSTANT || request.at > self.io().array.now() {
            self.go_through(request.at);
        }
        let capacity = self.capacity();
        let is_trim = request.opcode.is_block() && matches!(request.op, Op::Trim | Op::WriteZeroes);
        // A layer that hands on what it is sent leaves that to the device, which numbers it.
        let refused = is_trim && !Self::KIND.hands_on && !self.takes_trims();
        let io = self.io_mut();
        io.outstanding += 1;
        io.records.submitted(request);
        if refused {
            return io.turn_away(request, Status::Unsupported);
        }
        let mut sectors = capacity;
        if Self::KIND.hands_on {
            sectors += io.array.device(0).reserved_sectors();
        } else if let Some(status) = turned_away(request, capacity) {
            return io.turn_away(request, status);
        }
        let in_range = request.sector.checked_add(request.sectors).is_some_and(|end| end <= sectors);
        let keeps = io.cell > 0 && request.op == Op::Write && in_range;
        let cells = if keeps { payload.data.sector_data(request, io.cell) } else { Vec::new() };
        let extent = self.extent(request);
        let slot = self.io_mut().add(*request, extent, cells, payload.words);
        self.admit(slot);
        self.work();
        if !self.io().is_timed {
            self.come_to_rest();
        }
    }

    /// When something happens next.
    fn next_time(&self) -> Option<Nanos> {
        let now = self.io().array.now();
        self.io().array.next_event().into_iter().chain(self.wakes_at().map(|at| at.max(now))).min()
    }

    /// Runs what is next up to `until`; false if there is nothing. What the devices do at a time comes before what the layer does
    /// at that time of its own.
    fn step(&mut self, until: Nanos) -> bool {
        let wakes = self.wakes_at();
        let array = &mut self.io_mut().array;
        let now = array.now();
        let wakes = wakes.map(|at| at.max(now)).filter(|at| *at <= until);
        let any = match wakes {
            None => array.run(until) || array.run_stuck(),
            Some(at) if array.next_event().is_some_and(|event| event <= at) => {
                array.run(at);
                true
            }
            Some(at) if at > now && array.run_stuck() => true,
            Some(at) => {
                if at > now {
                    array.advance(at);
                }
                self.wake();
                true
            }
        };
        self.work();
        any
    }

    /// Runs everything up to `until`, which is the time then.
    fn go_through(&mut self, until: Nanos) {
        loop {
            while self.wakes_at().is_some_and(|at| at <= until) || self.io().array.has_work(until) {
                if !self.step(until) {
                    break;
                }
            }
            let array = &mut self.io_mut().array;
            array.advance(until);
            if !array.any_has_ended() {
                return;
            }
            self.work();
        }
    }

    /// Runs up to `until`, but stops at the first answer, or an event for the host; true if there is one.
    fn go_to_answer(&mut self, until: Nanos) -> bool {
        let has_stopped = |layer: &Self| !layer.io().completions.is_empty() || layer.io().array.has_event();
        loop {
            while !has_stopped(self) && self.step(until) {}
            let array = &mut self.io_mut().array;
            // One device alone is never behind.
            if array.len() == 1 {
                return has_stopped(self);
            }
            array.advance(array.now());
            if !array.any_has_ended() {
                return has_stopped(self);
            }
            self.work();
        }
    }

    /// Runs until none of the layer's own commands is below, and nothing waits for the end of the instant.
    fn come_to_rest(&mut self) {
        self.work();
        while !self.io().array.is_idle() || self.wakes_at().is_some_and(|at| at <= self.io().array.now()) {
            assert!(self.step(Nanos::MAX), "a device never answers a command of the layer {}", Self::KIND.name);
        }
        let array = &mut self.io_mut().array;
        array.advance(array.now());
    }
}

impl<L: Layer> Engine for L {}

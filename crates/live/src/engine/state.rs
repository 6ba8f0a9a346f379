//! Commands on their way through the device: what enters it, what has ended, and what that promises.

use std::time::Instant;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Completion, Data, Payload};

use super::{Outgoing, Pending, Promise, State, To, push};
use crate::seeded::{Bug, seeded};
use crate::target::{Answer, Command, Failure};

impl State {
    /// Virtual time at an instant of a drive that is paced, never before what the drive has done.
    pub(super) fn virtual_at(&self, instant: Instant) -> Nanos {
        let device = self.device.now();
        self.clock.map_or(device, |clock| clock.virtual_at(instant).max(device))
    }

    /// When something arrives at a drive that is not paced: after all that has happened. So a recording says what came together,
    /// and a replay of it does not mix it with what came before.
    pub(super) fn next_instant(&self) -> Nanos {
        self.device.now() + Nanos(1)
    }

    /// The instant at which the next thing happens in a drive that is paced.
    pub(super) fn next_event(&self) -> Option<Instant> {
        let clock = self.clock?;
        self.device.next_event().map(|at| clock.instant_of(at))
    }

    /// What the answer to a command promises. The engine's own flush at the end has no waiter; it promises all that was
    /// answered.
    pub(super) fn promise_of(&self, completion: &Completion) -> Promise {
        let pending = self.pending.get(completion.tag as usize).and_then(Option::as_ref);
        pending.map_or(Promise::AllAnswered, |pending| pending.promise)
    }

    /// Runs until no command is in the drive, whatever the clock says; what completes is to be answered later.
    pub(super) fn run_all(&mut self) {
        while self.device.outstanding() > 0 && self.device.run_to_completion(Nanos::MAX) {
            self.gather();
        }
    }

    /// Moves what has completed out of the drive, to be answered later.
    pub(super) fn gather(&mut self) {
        self.completions.append(self.device.completions());
        self.read_data.append(self.device.read_data());
        if self.set.is_some() {
            self.device.take_answers(&mut self.answers);
            self.gather_events();
        }
    }

    /// Takes the device's events for the host of its set; without one they are dropped, and the device keeps those that
    /// have to be acknowledged.
    pub(super) fn gather_events(&mut self) {
        self.device.take_events(&mut self.events);
        if !self.has_host {
            self.events.clear();
        }
    }

    /// Puts everything that has happened into the images' files; false if they cannot take it.
    pub(super) fn persist(&mut self) -> bool {
        self.is_kept = self.device.persist();
        self.is_kept
    }

    /// Why the images have not taken what has happened: they are full, or cannot be written.
    pub(super) fn why_not_kept(&self) -> Failure {
        if self.device.broken_image().is_some() { Failure::Io } else { Failure::NoSpace }
    }

    /// Why a request must not enter the drive: it changes something, and the images do not take what has happened before. They are
    /// asked again each time, so commands go on as soon as there is space.
    pub(super) fn refusal_of(&mut self, request: &Request) -> Option<Failure> {
        let changes = request.op != Op::Read || !request.opcode.is_block();
        (!self.is_kept && changes && !self.persist()).then(|| self.why_not_kept())
    }

    /// A command enters the drive at `now`, or as soon after as virtual time allows.
    pub(super) fn take(&mut self, command: Command, now: Nanos, outgoing: &mut Outgoing) {
        let Command { request, data, cookie, sink } = command;
        if self.stopping {
            push(outgoing, sink, Answer { cookie, result: Err(Failure::Shutdown) });
            return;
        }
        if let Some(failure) = self.refusal_of(&request) {
            push(outgoing, sink, Answer { cookie, result: Err(failure) });
            return;
        }
        let data = if request.op == Op::Write { Data::Bytes(&data) } else { Data::Nothing };
        self.enter(request, data.into(), now, To::Client { cookie, sink });
    }

    /// A request enters the drive, which is not stopping, at `now` or as soon after as virtual time allows.
    pub(super) fn enter(&mut self, mut request: Request, payload: Payload<'_>, now: Nanos, to: To) {
        let at = now.max(self.device.now());
        // Not within an instant: to a driver this would say that nothing else arrives at it.
        if at > self.device.now() {
            self.device.run_until(at);
        }
        let tag = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() as u32 - 1
        });
        let fua = request.fua && !(request.op != Op::Write && seeded(Bug::FuaOfWritesOnly));
        let promise = Promise::of_request(&Request { fua, ..request }, self.buffered);
        self.pending[tag as usize] = Some(Pending { to, promise });
        request.at = at;
        request.tag = tag;
        for (_, tap) in &mut self.taps {
            tap.request(&request, payload.words);
        }
        self.device.submit_command(&request, payload);
    }
}

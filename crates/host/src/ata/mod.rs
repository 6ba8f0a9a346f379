//! Tags and error handling of an ATA host (Linux 2.6.33, `drivers/ata/libata-eh.c`).
//!
//! ```text
//!   command -> waits for a tag -> in the device -> answer
//!                                    | an error, or a timeout
//!                                    v
//!              nothing is sent; everything in flight ends; perhaps the link is reset; everything is sent again
//! ```
//!
//! A drive with queued commands stops at an error, and names the one that failed. What else was in flight is sent again, without blame;
//! the failed command is, too, `retries` times. If it fails once more, the link is reset, and the command ends with its error. The
//! simulated drive cannot drop commands: those in flight come to their ends, and what they brought is dropped.
//!
//! Commands on the same sectors wait for each other, if one of them changes these: one that is sent again must not take effect after a
//! later one. A command of a set, and a change of a segment or zone, may not be repeatable: one that has succeeded is answered,
//! whatever else failed.

mod config;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Status;

pub use config::AtaConfig;

use crate::layer::{Array, Ended, Engine as _, Io, Layer, Turn};
use crate::layers::LayerKind;
use crate::seeded::{LayerBug, seeded};
use crate::{Device, LayerMetrics, Loss};

pub(crate) use config::LAYER;

/// What is noted of a command.
#[derive(Default)]
pub(crate) struct State {
    words: Vec<u64>,
    /// How often it failed.
    failed: u32,
    /// When it last ended in vain because of another.
    dropped_at: Option<Nanos>,
}

/// What the layer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Commands are sent.
    Open,
    /// A command has failed: nothing is sent until all in flight have ended.
    Draining,
    /// Nothing is in flight, and nothing is sent before this time.
    Until(Nanos),
}

/// What it did.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    errors: u64,
    timeouts: u64,
    resets: u64,
    failed: u64,
    retried: u64,
    others_repeated: u64,
    others_delayed_ns: u64,
    waited_for_tags: u64,
}

/// Tags and error handling.
pub struct Ata {
    io: Io<u32, State>,
    config: AtaConfig,
    /// Commands that wait for a tag.
    waiting: VecDeque<u32>,
    /// Commands that ended in vain, in the order of arrival.
    again: BTreeMap<u64, u32>,
    /// Commands in the device by slot: when they were sent. All have the same time there, so the first is the oldest.
    sent: VecDeque<(Nanos, u32)>,
    mode: Mode,
    needs_reset: bool,
    /// Commands that end with their errors after the reset.
    given_up: Vec<(u32, Status)>,
    /// Changes can be repeated: the device has no segments.
    repeats_changes: bool,
    /// The layer above sends commands of the device's set.
    serves_a_set: bool,
    counts: Counts,
}

impl Ata {
    /// The error handler above a device.
    pub fn new(below: Box<dyn Device>, config: AtaConfig) -> Ata {
        Ata {
            repeats_changes: below.segment_sectors().is_none(),
            io: Io::new(Array::new(vec![below]), &LAYER),
            config: AtaConfig { tags: config.tags.max(1), ..config },
            waiting: VecDeque::new(),
            again: BTreeMap::new(),
            sent: VecDeque::new(),
            mode: Mode::Open,
            needs_reset: false,
            given_up: Vec::new(),
            serves_a_set: false,
            counts: Counts::default(),
        }
    }

    /// Whether a command may be sent again after it has succeeded.
    fn is_repeatable(&self, request: &Request) -> bool {
        request.opcode.is_block() && (self.repeats_changes || matches!(request.op, Op::Read | Op::Flush))
    }

    fn send(&mut self, slot: u32) {
        self.io.take_effect(slot);
        let now = self.io.array.now();
        let command = self.io.command(slot);
        let request = command.request;
        let (cells, words) = (std::mem::take(&mut command.cells), std::mem::take(&mut command.state.words));
        if let Some(dropped) = command.state.dropped_at.take() {
            self.counts.others_delayed_ns += now.0 - dropped.0;
        }
        self.io.array.send_of_set(0, request, &cells, &words, slot);
        let command = self.io.command(slot);
        command.state.words = words;
        if request.op == Op::Write {
            command.cells = cells;
        }
        self.sent.push_back((now, slot));
    }

    /// A command has ended in vain, and is sent again.
    fn repeat(&mut self, slot: u32) {
        let number = self.io.command(slot).number;
        self.again.insert(number, slot);
    }

    /// A command has failed, or timed out with this as its end.
    fn failed(&mut self, slot: u32, status: Status) {
        let state = &mut self.io.command(slot).state;
        state.failed += 1;
        if state.failed > self.config.retries {
            self.needs_reset = true;
            self.given_up.push((slot, status));
        } else {
            self.counts.retried += 1;
            self.repeat(slot);
        }
    }

    /// All in flight have ended after an error: when they are sent again.
    fn drained(&mut self) {
        let pause = if std::mem::take(&mut self.needs_reset) {
            self.counts.resets += 1;
            self.config.reset_time
        } else {
            self.config.error_time
        };
        self.mode = match self.io.is_timed {
            true => Mode::Until(Nanos(self.io.array.now().0.saturating_add(pause.0))),
            false => Mode::Open,
        };
        if !self.io.is_timed {
            self.end_given_up();
        }
    }

    fn end_given_up(&mut self) {
        for (slot, status) in std::mem::take(&mut self.given_up) {
            self.counts.failed += u64::from(status != Status::Success);
            self.io.answer(slot, status);
        }
    }

    /// When the command that was sent first times out.
    fn times_out_at(&self) -> Option<Nanos> {
        let (sent, _) = self.sent.front()?;
        Some(Nanos(sent.0.saturating_add(self.config.timeout.0)))
    }
}

impl Layer for Ata {
    const KIND: LayerKind = LAYER;
    /// The command from above.
    type Purpose = u32;
    type State = State;

    fn io(&self) -> &Io<u32, State> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<u32, State> {
        &mut self.io
    }

    /// What cannot be repeated keeps its order in the device.
    fn extent(&self, request: &Request) -> Request {
        let in_range = request.sector.checked_add(request.sectors).is_some();
        if self.is_repeatable(request) && in_range { *request } else { Request { sectors: 0, ..*request } }
    }

    fn start(&mut self, slot: u32, _: Turn) {
        let command = self.io.command(slot);
        command.state.words = command.take_words();
        self.serves_a_set |= !command.request.opcode.is_block();
        let is_full = self.io.array.in_flight(0) >= u64::from(self.config.tags);
        self.counts.waited_for_tags += u64::from(is_full && self.mode == Mode::Open);
        self.waiting.push_back(slot);
    }

    fn ended(&mut self, part: Ended<u32>) {
        let (slot, status) = (part.purpose, part.status);
        let at = self.sent.iter().position(|(_, sent)| *sent == slot).expect("a command that ends was sent");
        let timed_out = at < self.late(self.io.array.now());
        self.sent.remove(at);
        let request = self.io.command(slot).request;
        let is_repeatable = self.is_repeatable(&request);
        let command = self.io.command(slot);
        command.note_path(part.path);
        if command.request.op == Op::Read {
            command.cells = part.cells.unwrap_or_default();
        }
        command.note_answer(part.answer);
        match status {
            Status::Success if timed_out && is_repeatable && self.mode == Mode::Draining => self.failed(slot, status),
            Status::Success if self.mode == Mode::Draining && is_repeatable => {
                if seeded(LayerBug::OthersNotRepeated) {
                    self.io.command(slot).cells.fill(0);
                    self.io.answer(slot, status);
                    return;
                }
                let now = self.io.array.now();
                self.counts.others_repeated += 1;
                self.io.command(slot).state.dropped_at = Some(now);
                self.repeat(slot);
            }
            Status::UncorrectableRead | Status::ReadOnly | Status::StorageFull => {
                self.counts.errors += 1;
                self.mode = Mode::Draining;
                self.failed(slot, status);
            }
            // The power went, or the device says that it does not take such a command: there is nothing to repeat.
            _ => drop(self.io.answer(slot, status)),
        }
    }

    fn proceed(&mut self) -> bool {
        self.start_ready();
        let mut is_more = false;
        if self.mode == Mode::Draining && self.io.array.is_idle() && !self.io.array.any_has_ended() {
            self.drained();
            is_more = true;
        }
        while self.mode == Mode::Open && self.io.array.in_flight(0) < u64::from(self.config.tags) {
            let next = self.again.pop_first().map(|(_, slot)| slot).or_else(|| self.waiting.pop_front());
            let Some(slot) = next else { break };
            self.send(slot);
        }
        is_more
    }

    fn wakes_at(&self) -> Option<Nanos> {
        match self.mode {
            Mode::Open if self.io.is_timed => self.times_out_at(),
            Mode::Open | Mode::Draining => None,
            Mode::Until(at) => Some(at),
        }
    }

    fn wake(&mut self) {
        if let Mode::Until(_) = self.mode {
            self.mode = Mode::Open;
            self.end_given_up();
            return;
        }
        self.counts.timeouts += self.late(self.io.array.now()) as u64;
        self.mode = Mode::Draining;
        self.needs_reset = true;
    }

    /// A layer that knows the device's set counts on it that what it has sent ends with the power. A change that came to its end after its
    /// timeout, and waits for the reset, may be lost with what was not flushed.
    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        if loss == Loss::Unflushed {
            for (slot, status) in &mut self.given_up {
                if *status == Status::Success && self.io.command(*slot).request.op != Op::Read {
                    *status = Status::Aborted;
                }
            }
        }
        if self.serves_a_set {
            let waiting = std::mem::take(&mut self.again).into_values().chain(std::mem::take(&mut self.waiting));
            for slot in waiting.collect::<Vec<_>>() {
                self.io.answer(slot, Status::Aborted);
            }
        }
        loss
    }

    fn metrics(&self) -> LayerMetrics {
        let counts = self.counts;
        let figures = [
            ("errors", counts.errors),
            ("failed", counts.failed),
            ("others_delayed_ns", counts.others_delayed_ns),
            ("others_repeated", counts.others_repeated),
            ("resets", counts.resets),
            ("retried", counts.retried),
            ("timeouts", counts.timeouts),
            ("waited_for_overlaps", self.io.waited_for_overlaps),
            ("waited_for_tags", counts.waited_for_tags),
        ];
        LayerMetrics {
            configuration: self.config.shown(),
            figures: figures.map(|(name, count)| (name.to_string(), count as f64)).into(),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
    }
}

impl Ata {
    /// How many of the commands in the device, from the oldest on, have been there for too long.
    fn late(&self, now: Nanos) -> usize {
        if !self.io.is_timed {
            return 0;
        }
        let is_late = |sent: &Nanos| sent.0.saturating_add(self.config.timeout.0) <= now.0;
        self.sent.iter().take_while(|(sent, _)| is_late(sent)).count()
    }
}

//! What every layer keeps: the devices below, the commands from above that have not ended, and what the caller has not taken.

use ssdlab_base::{Answer, Op, Request};
use ssdlab_device::path::{Part, Path};
use ssdlab_device::{Completion, Status};

use super::paths::{Waits, completion, path_of};
use super::{Array, Ended, Overlaps, Slots, Turn, changes};
use crate::{LayerKind, Traffic};

/// An order of effect that was not given yet.
const UNNUMBERED: u64 = u64::MAX;

/// A command from above, or one of the layer's own that waits for others as those do. `S` is what the layer notes of it.
pub(crate) struct Command<S> {
    pub(crate) request: Request,
    /// Its place in the order of arrival.
    pub(crate) number: u64,
    /// What it excludes meanwhile.
    extent: Request,
    /// Its place in the order of effect.
    order: u64,
    /// What a write brings, or a read has found.
    pub(crate) cells: Vec<u8>,
    /// Words of a command of a set.
    pub(crate) words: Vec<u64>,
    /// Parts that have not ended.
    pub(crate) left: u32,
    pub(crate) status: Status,
    /// The device's answer to a command of its set.
    pub(crate) answer: Option<Box<Answer>>,
    /// Of the part that ended last.
    pub(crate) path: Option<Box<Path>>,
    pub(crate) waits: Waits,
    /// Where the parts of a read that was split begin in it, in sectors.
    pub(crate) parts: Vec<u64>,
    pub(crate) state: S,
}

impl<S> Command<S> {
    /// Whether it has its place in the order of effect.
    pub(crate) const fn has_effect(&self) -> bool {
        self.order != UNNUMBERED
    }

    /// Notes how a part of it ended, and what it waited for.
    pub(crate) fn note(&mut self, status: Status, path: Option<Box<Path>>) {
        self.path = path.or(self.path.take());
        if status != Status::Success {
            self.status = status;
        }
    }

    /// Puts what a part of a read brought where the part begins. A read that was not split has one part.
    pub(crate) fn fill(&mut self, part: usize, cells: Vec<u8>, cell: usize) {
        match self.parts.get(part) {
            None => self.cells = cells,
            Some(offset) => self.cells[*offset as usize * cell..][..cells.len()].copy_from_slice(&cells),
        }
    }

    /// A part has ended; true with the last one.
    pub(crate) fn ends(&mut self) -> bool {
        assert!(self.left > 0, "a part ends once");
        self.left -= 1;
        self.left == 0
    }
}

/// What every layer keeps, with `P` for what commands go below and `S` for what it notes of commands from above.
pub(crate) struct Io<P, S> {
    /// The devices below.
    pub(crate) array: Array<P>,
    /// Bytes kept of a sector.
    pub(crate) cell: usize,
    /// Commands that have not ended.
    pub(crate) commands: Slots<Command<S>>,
    pub(crate) overlaps: Overlaps,
    /// The devices model time. Without it commands complete at once.
    pub(super) is_timed: bool,
    numbers: u64,
    order: u64,
    pub(super) outstanding: u64,
    pub(super) taken: Traffic,
    /// Commands that waited for others on the same sectors.
    pub(crate) waited_for_overlaps: u64,
    pub(crate) completions: Vec<Completion>,
    pub(super) read_data: Vec<(u32, Vec<u8>)>,
    pub(super) answers: Vec<Answer>,
    pub(super) paths: Vec<Path>,
    pub(crate) ended: Vec<Ended<P>>,
}

impl<P, S: Default> Io<P, S> {
    /// What a layer of this kind keeps above devices before any command has come.
    pub(crate) fn new(devices: Array<()>, kind: &LayerKind) -> Io<P, S> {
        let cell = devices.device(0).cell_bytes();
        let is_timed = devices.devices().any(|device| device.identify().is_timed);
        Io {
            cell,
            is_timed,
            array: devices.for_layer(kind.hands_on),
            commands: Slots::new(),
            overlaps: Overlaps::default(),
            numbers: 0,
            order: 0,
            outstanding: 0,
            taken: Traffic::default(),
            waited_for_overlaps: 0,
            completions: Vec::new(),
            read_data: Vec::new(),
            answers: Vec::new(),
            paths: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// A number that none was given before, for what must be told apart.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The newest number.
    pub(crate) const fn newest(&self) -> u64 {
        self.numbers
    }

    /// Puts a command among those that have not ended.
    #[inline]
    pub(crate) fn add(&mut self, request: Request, extent: Request, cells: Vec<u8>, words: Vec<u64>) -> u32 {
        let number = self.next_number();
        self.commands.put(Command {
            request,
            number,
            extent,
            order: UNNUMBERED,
            cells,
            words,
            left: 0,
            status: Status::Success,
            answer: None,
            path: None,
            waits: Waits::default(),
            parts: Vec::new(),
            state: S::default(),
        })
    }
}

impl<P, S> Io<P, S> {
    pub(crate) fn command(&mut self, slot: u32) -> &mut Command<S> {
        self.commands.get_mut(slot)
    }

    /// A command that was added is ordered among those on the same sectors; what it may do.
    pub(super) fn order_in(&mut self, slot: u32, passes: bool) -> Turn {
        let Command { number, ref extent, .. } = *self.commands.get(slot);
        let turn = self.overlaps.add_passing(number, slot, extent, passes);
        if turn == Turn::Waits {
            self.waited_for_overlaps += 1;
            self.begin_wait(slot, Part::LayerOverlap);
        }
        turn
    }

    /// What a command may do now, because of earlier ones on the same sectors.
    pub(crate) fn turn(&self, slot: u32) -> Turn {
        let Command { number, ref extent, .. } = *self.commands.get(slot);
        self.overlaps.turn(number, extent)
    }

    /// Whether later commands may pass one from now on.
    pub(crate) fn set_passable(&mut self, slot: u32, is_passable: bool) {
        let Command { number, ref extent, .. } = *self.commands.get(slot);
        self.overlaps.set_passable(number, extent, is_passable);
    }

    /// A command waits for this from now on.
    pub(crate) fn begin_wait(&mut self, slot: u32, part: Part) {
        if self.array.records_paths() {
            let now = self.array.now();
            self.command(slot).waits.begin(now, part);
        }
    }

    /// A command goes on.
    pub(crate) fn end_wait(&mut self, slot: u32) {
        let now = self.array.now();
        self.command(slot).waits.end(now);
    }

    /// A command takes its place in the order of effect, if it has none.
    pub(crate) fn take_effect(&mut self, slot: u32) {
        let command = self.commands.get_mut(slot);
        if !command.has_effect() {
            command.order = self.order;
            self.order += 1;
        }
    }

    /// A command does not begin.
    pub(super) fn turn_away(&mut self, request: &Request, status: Status) {
        let path = || Path { request: *request, segments: Vec::new() };
        self.paths.extend(self.array.records_paths().then(path));
        self.end(request, status, self.order, None);
        self.order += 1;
    }

    /// A command is over. Nothing is answered.
    #[inline]
    pub(crate) fn retire(&mut self, slot: u32) -> Command<S> {
        let command = self.commands.take(slot);
        self.overlaps.remove(command.number, &command.extent);
        command
    }

    /// A command is done; what the layer noted of it.
    pub(crate) fn answer(&mut self, slot: u32, status: Status) -> S {
        self.take_effect(slot);
        let order = self.commands.get(slot).order;
        self.answer_in_order(slot, status, order)
    }

    /// A command is done that took effect in an order which the layer says; what the layer noted of it.
    pub(crate) fn answer_in_order(&mut self, slot: u32, status: Status, order: u64) -> S {
        let command = self.retire(slot);
        let request = command.request;
        if request.op == Op::Read && status == Status::Success && !command.cells.is_empty() {
            self.read_data.push((request.tag, command.cells));
        }
        if self.array.records_paths() {
            self.paths.push(path_of(&request, &command.waits, command.path.as_deref(), self.array.now()));
        }
        self.end(&request, status, order, command.answer);
        command.state
    }

    fn end(&mut self, request: &Request, status: Status, order: u64, answer: Option<Box<Answer>>) {
        self.outstanding -= 1;
        self.taken.add(request);
        let has_answer = answer.is_some();
        if let Some(answer) = answer {
            self.answers.push(Answer { tag: request.tag, ..*answer });
        }
        self.completions.push(Completion { has_answer, ..completion(request, status, self.array.now(), order) });
    }

    /// Changes of block I/O that ended before a device lost its power but were not acknowledged may or may not survive.
    pub(crate) fn abort_unacknowledged(&mut self) {
        self.array.take(&mut self.ended);
        for part in &mut self.ended {
            let Request { op, opcode, fua, .. } = part.request;
            if opcode.is_block() && changes(op) && !fua && part.completion.status == Status::Success {
                part.completion.status = Status::Aborted;
            }
        }
        let changed = |completion: &&mut Completion| changes(completion.op) && completion.status == Status::Success;
        self.completions.iter_mut().filter(changed).for_each(|completion| completion.status = Status::Aborted);
    }

    /// Counters begin anew.
    pub(crate) fn reset_counts(&mut self) {
        (self.taken, self.waited_for_overlaps) = (Traffic::default(), 0);
    }

    /// Counters and the order of effect begin anew, and so does time.
    pub(super) fn reset_statistics(&mut self) {
        self.array.reset_statistics();
        self.order = 0;
        self.reset_counts();
    }
}

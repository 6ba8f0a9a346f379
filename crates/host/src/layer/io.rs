//! What every layer keeps: the devices below, the commands from above that have not ended, and what the caller has not taken.

use ssdlab_base::{Answer, Op, Request};
use ssdlab_device::critical_path::{Part, Path};
use ssdlab_device::{Completion, Status};

use super::paths::{Waits, completion, path_of};
use super::{Array, Ended, Overlaps, Slots, Turn, changes};
use crate::records::Records;
use crate::{LayerKind, Traffic};

/// An order of effect that was not given yet.
const UNNUMBERED: u64 = u64::MAX;

/// A command from above, or one of the layer's own that waits for others as those do. `S` is what the layer notes of it.
pub(crate) struct Command<S> {
    pub(crate) request: Request,
    /// Its place in the order of arrival.
    pub(crate) number: u64,
    /// What it excludes meanwhile: first sector, and how many.
    extent: (u64, u64),
    /// Its place in the order of effect.
    order: u64,
    /// What a write brings, or a read has found.
    pub(crate) cells: Vec<u8>,
    /// Parts that have not ended.
    pub(crate) left: u32,
    pub(crate) status: Status,
    pub(crate) state: S,
    /// What few commands have: a command is moved often.
    rare: Option<Box<Rare>>,
}

/// What few commands have.
#[derive(Default)]
struct Rare {
    /// Words of a command of a set.
    words: Vec<u64>,
    /// The device's answer to a command of its set.
    answer: Option<Box<Answer>>,
    /// Of the part that ended last, where paths are recorded.
    path: Option<Box<Path>>,
    waits: Waits,
    /// Where the parts of a read that was split begin in it, in sectors.
    parts: Vec<u64>,
}

impl<S> Command<S> {
    /// Whether it has its place in the order of effect.
    pub(crate) const fn has_effect(&self) -> bool {
        self.order != UNNUMBERED
    }

    /// What it excludes meanwhile.
    const fn extent(&self) -> Request {
        let (sector, sectors) = self.extent;
        Request { sector, sectors, ..self.request }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Takes the words of a command of a set.
    pub(crate) fn take_words(&mut self) -> Vec<u64> {
        self.rare.as_mut().map_or(Vec::new(), |rare| std::mem::take(&mut rare.words))
    }

    /// Notes the device's answer to a command of its set, in place of the one before it was repeated.
    pub(crate) fn note_answer(&mut self, answer: Option<Box<Answer>>) {
        if answer.is_some() || self.rare.is_some() {
            self.rare().answer = answer;
        }
    }

    /// Notes what the part waited for that ended last, where that is recorded.
    #[inline]
    pub(crate) fn note_path(&mut self, path: Option<Box<Path>>) {
        if path.is_some() {
            self.rare().path = path;
        }
    }

    /// Notes how a part of it ended, and what it waited for.
    #[inline]
    pub(crate) fn note(&mut self, status: Status, path: Option<Box<Path>>) {
        self.note_path(path);
        if status != Status::Success {
            self.status = status;
        }
    }

    /// Where the parts of a read that was split begin in it, in sectors; empty where it was not.
    pub(crate) fn parts(&self) -> &[u64] {
        self.rare.as_ref().map_or(&[], |rare| &rare.parts)
    }

    /// A read is split: where its parts begin in it, in sectors. With none it is not split any more.
    pub(crate) fn split(&mut self, parts: Vec<u64>) {
        if !parts.is_empty() || self.rare.is_some() {
            self.rare().parts = parts;
        }
    }

    /// Puts what a part of a read brought where the part begins. A read that was not split has one part.
    pub(crate) fn fill(&mut self, part: usize, cells: Vec<u8>, cell: usize) {
        match self.parts().get(part) {
            None => self.cells = cells,
            Some(offset) => {
                let from = *offset as usize * cell;
                self.cells[from..][..cells.len()].copy_from_slice(&cells);
            }
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
    pub(crate) is_timed: bool,
    numbers: u64,
    order: u64,
    pub(super) outstanding: u64,
    pub(crate) taken: Traffic,
    /// Commands that waited for others on the same sectors.
    pub(crate) waited_for_overlaps: u64,
    pub(crate) completions: Vec<Completion>,
    pub(super) read_data: Vec<(u32, Vec<u8>)>,
    pub(super) answers: Vec<Answer>,
    pub(super) paths: Vec<Path>,
    pub(crate) ended: Vec<Ended<P>>,
    /// Those of who stands on this layer.
    pub(super) records: Records,
}

impl<P, S: Default> Io<P, S> {
    /// What a layer of this kind keeps above devices before any command has come.
    pub(crate) fn new(devices: Array<()>, kind: &LayerKind) -> Io<P, S> {
        let cell = devices.device(0).sector_data_bytes();
        let is_timed = devices.devices().any(|device| device.identify().is_timed);
        Io {
            cell,
            is_timed,
            array: devices.for_layer(kind.hands_on),
            commands: Slots::new(),
            overlaps: Overlaps::default(),
            records: Records::default(),
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
    pub(crate) fn add(&mut self, request: Request, extent: Request, cells: Vec<u8>, words: &[u64]) -> u32 {
        let number = self.next_number();
        let rare = || Box::new(Rare { words: words.to_vec(), ..Rare::default() });
        self.commands.put(Command {
            request,
            number,
            extent: (extent.sector, extent.sectors),
            order: UNNUMBERED,
            cells,
            left: 0,
            status: Status::Success,
            state: S::default(),
            rare: (!words.is_empty()).then(rare),
        })
    }
}

impl<P, S> Io<P, S> {
    pub(crate) fn command(&mut self, slot: u32) -> &mut Command<S> {
        self.commands.get_mut(slot)
    }

    /// A command that was added is ordered among those on the same sectors; what it may do.
    pub(super) fn order_in(&mut self, slot: u32, passes: bool) -> Turn {
        let command = self.commands.get(slot);
        let turn = self.overlaps.add_passing(command.number, slot, &command.extent(), passes);
        if turn == Turn::Waits {
            self.waited_for_overlaps += 1;
            self.begin_wait(slot, Part::LayerOverlap);
        }
        turn
    }

    /// What a command may do now, because of earlier ones on the same sectors.
    pub(crate) fn turn(&self, slot: u32) -> Turn {
        let command = self.commands.get(slot);
        self.overlaps.turn(command.number, &command.extent())
    }

    /// Whether later commands may pass one from now on.
    pub(crate) fn set_passable(&mut self, slot: u32, is_passable: bool) {
        let command = self.commands.get(slot);
        self.overlaps.set_passable(command.number, &command.extent(), is_passable);
    }

    /// A command waits for this from now on.
    pub(crate) fn begin_wait(&mut self, slot: u32, part: Part) {
        if self.array.records_paths() {
            let now = self.array.now();
            self.command(slot).rare().waits.begin(now, part);
        }
    }

    /// A command goes on.
    #[inline]
    pub(crate) fn end_wait(&mut self, slot: u32) {
        if self.array.records_paths() {
            let now = self.array.now();
            if let Some(rare) = &mut self.command(slot).rare {
                rare.waits.end(now);
            }
        }
    }

    /// A command takes its place in the order of effect, if it has none.
    #[inline]
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
        self.overlaps.remove(command.number, &command.extent());
        command
    }

    /// A command is done; what the layer noted of it.
    #[inline]
    pub(crate) fn answer(&mut self, slot: u32, status: Status) -> S {
        self.take_effect(slot);
        let order = self.commands.get(slot).order;
        self.answer_in_order(slot, status, order)
    }

    /// A command is done that took effect in an order which the layer says; what the layer noted of it.
    pub(crate) fn answer_in_order(&mut self, slot: u32, status: Status, order: u64) -> S {
        let Command { request, cells, mut rare, state, .. } = self.retire(slot);
        // A read of a set that says what is absent brings the rest.
        if request.op == Op::Read && matches!(status, Status::Success | Status::Absent) && !cells.is_empty() {
            self.read_data.push((request.tag, cells));
        }
        if self.array.records_paths() {
            let (no_waits, rare) = (Waits::default(), rare.as_deref());
            let (waits, below) = rare.map_or((&no_waits, None), |rare| (&rare.waits, rare.path.as_deref()));
            self.paths.push(path_of(&request, waits, below, self.array.now()));
        }
        self.end(&request, status, order, rare.as_mut().and_then(|rare| rare.answer.take()));
        state
    }

    fn end(&mut self, request: &Request, status: Status, order: u64, answer: Option<Box<Answer>>) {
        self.outstanding -= 1;
        self.taken.add_ended(request, status);
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
            if opcode.is_block() && changes(op) && !fua && part.status == Status::Success {
                part.status = Status::Aborted;
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

//! One thread of a personality: which call comes next. It knows no file system and no clock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ssdlab_base::{Nanos, Rng, rng};

use super::call::{Call, Descriptor};
use super::engine::Shared;
use super::file_set::FileId;
use super::flowop::{DESCRIPTORS, OpKind};
use super::looped::Looped;
use super::measure::Done;
use super::parameters::Parameters;
use super::personality::{Personality, Script};
use super::postmark::Transactions;

/// What a thread wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// This call. Asked again before it is completed, the thread gives the same one.
    Call(&'a Call),
    /// Nothing more, ever.
    Done,
}

/// A stretch of a file, in calls of at most `chunk` bytes that are made as they are needed: a large file has many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) way: Way,
    pub(super) descriptor: Descriptor,
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) chunk: u64,
}

/// What is done with a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    /// As `Read`, and in whole chunks at the end, too.
    ReadWholeChunks,
    Write,
    Append,
}

/// A part of an operation.
#[derive(Clone, Debug)]
pub(super) enum Part {
    One(Call),
    Many(Stretch),
}

impl Stretch {
    fn next(&mut self) -> Option<Call> {
        if self.offset >= self.end {
            return None;
        }
        let (descriptor, offset) = (self.descriptor, self.offset);
        let bytes = self.chunk.min(self.end - offset);
        self.offset += bytes;
        Some(match self.way {
            Way::Read => Call::Read { descriptor, offset, bytes },
            Way::ReadWholeChunks => Call::Read { descriptor, offset, bytes: self.chunk },
            Way::Write => Call::Write { descriptor, offset, bytes },
            Way::Append => Call::Append { descriptor, bytes },
        })
    }
}

/// What to note in the table of files when an operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// The file was made, is empty and stays open.
    Created(FileId, Descriptor),
    /// The file was made, written and closed.
    Written(FileId),
    Opened(FileId, Descriptor),
    Deleted(FileId),
    /// The file was only looked at, or was closed.
    Released(FileId),
}

/// The operation in flight.
#[derive(Debug)]
struct Running {
    kind: OpKind,
    counted: bool,
    began: Option<Nanos>,
    bytes_read: u64,
    bytes_written: u64,
    /// Reads go on until one finds nothing.
    to_end: bool,
    after: After,
}

/// How an attempt to begin an operation went.
pub(super) enum Begun {
    /// A call is waiting.
    Yes,
    /// There was nothing to work on.
    Skipped,
    /// There never will be anything.
    Starved,
    /// The work that was asked for is done.
    Finished,
}

#[derive(Debug)]
enum Plan {
    Looped(Looped),
    Transactions(Transactions),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Opens the files that stay open.
    Opening,
    Running,
    /// Closes what is open.
    Closing,
    Ended,
}

/// What a script works with: draws, the files, and the calls of the operation that it begins.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) rng: Rng,
    pub(super) shared: Arc<Shared>,
    pub(super) parameters: Arc<Parameters>,
    /// The file behind each descriptor.
    pub(super) open: [Option<FileId>; DESCRIPTORS as usize],
    /// The call that was given out last, or is next.
    call: Option<Call>,
    /// What comes behind it.
    parts: VecDeque<Part>,
    running: Option<Running>,
}

impl Bench {
    /// Begins an operation of these parts.
    pub(super) fn begin<const N: usize>(&mut self, kind: OpKind, after: After, parts: [Part; N]) -> Begun {
        assert!(self.running.is_none(), "an operation begins before the last has ended");
        self.parts.extend(parts);
        self.advance();
        assert!(self.call.is_some(), "an operation without a call would take no time and never end");
        let to_end = false;
        self.running =
            Some(Running { kind, counted: true, began: None, bytes_read: 0, bytes_written: 0, to_end, after });
        Begun::Yes
    }

    /// The operation at hand reads on until the end of the file.
    pub(super) fn read_to_end(&mut self) {
        if let Some(running) = &mut self.running {
            running.to_end = true;
        }
    }

    /// The operation at hand belongs to the beginning or the end of the thread, and is not counted.
    pub(super) fn uncounted(&mut self) {
        if let Some(running) = &mut self.running {
            running.counted = false;
        }
    }

    /// Takes the next call out of the parts.
    fn advance(&mut self) {
        self.call = None;
        while let (None, Some(part)) = (&self.call, self.parts.front_mut()) {
            match part {
                Part::One(call) => {
                    self.call = Some(call.clone());
                    self.parts.pop_front();
                }
                Part::Many(stretch) => match stretch.next() {
                    Some(call) => self.call = Some(call),
                    None => drop(self.parts.pop_front()),
                },
            }
        }
    }

    /// The end of the call at hand.
    fn completed(&mut self, now: Nanos, bytes: u64) -> Option<Done> {
        let call = self.call.take().expect("a call was completed that was not asked for");
        let running = self.running.as_mut().expect("every call belongs to an operation");
        match call {
            Call::Read { descriptor, offset, bytes: asked } => {
                running.bytes_read += bytes;
                if running.to_end && bytes > 0 {
                    self.parts.push_front(Part::One(Call::Read { descriptor, offset: offset + bytes, bytes: asked }));
                }
            }
            Call::Write { bytes, .. } | Call::Append { bytes, .. } => running.bytes_written += bytes,
            _ => {}
        }
        self.advance();
        if self.call.is_some() {
            return None;
        }
        let running = self.running.take().expect("it was there a moment ago");
        self.note(running.after);
        let done = Done {
            kind: running.kind,
            latency: now.since(running.began.unwrap_or(now)),
            bytes_read: running.bytes_read,
            bytes_written: running.bytes_written,
        };
        running.counted.then_some(done)
    }

    fn note(&mut self, after: After) {
        let mut files = self.shared.files();
        match after {
            After::Nothing => {}
            After::Created(id, descriptor) => {
                files.created(id, 0);
                self.open[usize::from(descriptor)] = Some(id);
            }
            After::Written(id) => {
                let length = files.size_planned(id);
                files.created(id, length);
                files.unpin(id);
            }
            After::Opened(id, descriptor) => self.open[usize::from(descriptor)] = Some(id),
            After::Deleted(id) => files.deleted(id),
            After::Released(id) => files.unpin(id),
        }
    }

    /// Begins to close a descriptor.
    pub(super) fn close(&mut self, descriptor: Descriptor) -> Option<Begun> {
        let id = self.open[usize::from(descriptor)].take()?;
        Some(self.begin(OpKind::Close, After::Released(id), [Part::One(Call::Close { descriptor })]))
    }
}

/// A thread: a state machine that is asked for calls and told of their outcomes.
#[derive(Debug)]
pub struct Thread {
    bench: Bench,
    plan: Plan,
    stage: Stage,
}

impl Thread {
    pub(super) fn new(
        personality: &Personality,
        parameters: &Arc<Parameters>,
        shared: &Arc<Shared>,
        number: u32,
        seed: u64,
    ) -> Thread {
        let plan = match &personality.script {
            Script::Loop(flowops) => Plan::Looped(Looped::new(flowops)),
            Script::Postmark => Plan::Transactions(Transactions::new()),
        };
        let bench = Bench {
            rng: rng(seed, &format!("files thread {number}")),
            shared: Arc::clone(shared),
            parameters: Arc::clone(parameters),
            open: [None; DESCRIPTORS as usize],
            call: None,
            parts: VecDeque::new(),
            running: None,
        };
        Thread { bench, plan, stage: Stage::Opening }
    }

    /// The next call at time `now`.
    pub fn next(&mut self, now: Nanos) -> Next<'_> {
        while self.bench.call.is_none() {
            match self.stage {
                Stage::Opening => {
                    let begun = match &mut self.plan {
                        Plan::Looped(looped) => looped.open_held(&mut self.bench),
                        Plan::Transactions(_) => Begun::Finished,
                    };
                    match begun {
                        Begun::Yes => self.bench.uncounted(),
                        Begun::Starved => self.starved(),
                        Begun::Skipped | Begun::Finished => self.stage = Stage::Running,
                    }
                }
                Stage::Running => self.begin(now),
                Stage::Closing => {
                    let open = (0..DESCRIPTORS).find(|descriptor| self.bench.open[usize::from(*descriptor)].is_some());
                    match open.and_then(|descriptor| self.bench.close(descriptor)) {
                        Some(_) => self.bench.uncounted(),
                        None => self.stage = Stage::Ended,
                    }
                }
                Stage::Ended => return Next::Done,
            }
        }
        if let Some(running) = &mut self.bench.running {
            running.began.get_or_insert(now);
        }
        self.bench.call.as_ref().map_or(Next::Done, Next::Call)
    }

    fn starved(&mut self) {
        self.bench.shared.starved.store(true, Ordering::Relaxed);
        self.stage = Stage::Closing;
    }

    /// Begins the next operation, or ends.
    fn begin(&mut self, now: Nanos) {
        if !self.bench.shared.goes_on(now) || !self.bench.shared.take_operation() {
            self.stage = Stage::Closing;
            return;
        }
        let begun = match &mut self.plan {
            Plan::Looped(looped) => looped.begin(&mut self.bench),
            Plan::Transactions(transactions) => transactions.begin(&mut self.bench),
        };
        if !matches!(begun, Begun::Yes) {
            self.bench.shared.give_back_operation();
        }
        match begun {
            Begun::Yes => {}
            Begun::Skipped => {
                self.bench.shared.skipped.fetch_add(1, Ordering::Relaxed);
            }
            Begun::Starved => self.starved(),
            Begun::Finished => self.stage = Stage::Closing,
        }
    }

    /// The call at hand has ended at `now` and moved so many bytes. The operation, if that was its last call and it
    /// counts.
    ///
    /// # Panics
    /// If no call is at hand.
    pub fn completed(&mut self, now: Nanos, bytes: u64) -> Option<Done> {
        self.bench.completed(now, bytes)
    }
}

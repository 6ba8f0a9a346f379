//! The block layer's simplest I/O scheduler: first come, first served, with neighbours merged while they wait.
//!
//! At most `depth` requests are in the device below. While that is full, requests wait in order; one that begins where
//! the last waiting one of its kind ends is joined to it (a back merge), so the device sees fewer and larger requests.
//! A flush keeps its place: it goes when everything before it has gone, and nothing is joined across it.

use std::collections::VecDeque;

use ssdlab_base::command_set::Merging;
use ssdlab_base::{Answer, CommandSet, Event, Nanos, Op, Request, SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};
use ssdlab_device::path::Path;
use ssdlab_device::{Completion, Counters, Data, Payload};

use crate::array::{Waits, completion as completion_of, waited_around};
use crate::device::Again;
use crate::layers::{Below, LayerConfig, LayerKind};
use crate::{
    Administration, AnswersBelow, BlockDevice, Device, Identity, LayerError, LayerMetrics, Loss, Member, Part, PartMut,
    Power, Traffic,
};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "scheduler",
    summary: "the block layer's simplest I/O scheduler: first come, first served, neighbours merged",
    keys: KEYS,
    devices: (1, 1),
    read,
};

/// Most requests that are joined to one.
const PARTS_MAX: u64 = 1 << 12;

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "depth",
        Kind::Count { unit: "requests", least: 1, most: 65_536 },
        Default::number(32),
        "Requests that the device below holds at once.",
    ),
    Key::new(
        "merge_size",
        Kind::Size { least: 0, most: u64::MAX, step: SECTOR_BYTES },
        Default::number(512 << 10),
        "The largest request that merging makes, in whole sectors; `0` merges nothing.",
    ),
];

/// What the scheduler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Requests in the device at one time, at least 1.
    pub depth: u32,
    /// Most bytes of a merged request; 0 merges nothing.
    pub merge_bytes: u64,
}

fn read(keys: &Section<'_>) -> Result<Box<dyn LayerConfig>, DescriptionError> {
    let depth = keys.count("depth")?;
    let merge_bytes = match keys.get("merge_size") {
        None => keys.number("merge_size")?,
        Some(size) => match size.size()? {
            bytes if bytes.is_multiple_of(SECTOR_BYTES) => bytes,
            _ => return Err(size.expected("whole sectors of 512 bytes, or 0 to merge nothing")),
        },
    };
    Ok(Box::new(SchedulerConfig { depth, merge_bytes }))
}

impl LayerConfig for SchedulerConfig {
    fn kind(&self) -> &'static str {
        LAYER.name
    }

    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        Ok(below.iter().map(|below| below.sectors).sum())
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = below.into_iter().next().ok_or(LayerError::NoDevice { layer: LAYER.name })?;
        Ok(Box::new(Scheduler::new(below, *self)))
    }

    fn clone_box(&self) -> Box<dyn LayerConfig> {
        Box::new(*self)
    }
}

/// A request to the device below: one or several from above, one behind the other.
struct Joined {
    request: Request,
    first: Request,
    /// Those that were joined to the first.
    more: Vec<Request>,
    /// The cells of all, where contents are kept.
    cells: Vec<u8>,
    /// The words of all, where they are commands of a set.
    words: Vec<u64>,
}

/// First come, first served, merging.
pub struct Scheduler {
    below: Box<dyn Device>,
    config: SchedulerConfig,
    waiting: VecDeque<Joined>,
    /// By tag below.
    dispatched: Vec<Option<Joined>>,
    free: Vec<u32>,
    in_device: u32,
    outstanding: u64,
    merged: u64,
    /// Requests that wait, merged ones one by one, and the most that ever did.
    waiting_requests: u64,
    waiting_max: u64,
    taken: Traffic,
    sent: Traffic,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
    answers: Vec<Answer>,
    /// Of completions, where they are recorded, and those of the device below.
    paths: Vec<Path>,
    paths_below: Vec<Path>,
}

impl Scheduler {
    /// A scheduler above a device.
    pub fn new(below: Box<dyn Device>, config: SchedulerConfig) -> Scheduler {
        Scheduler {
            below,
            config: SchedulerConfig { depth: config.depth.max(1), ..config },
            waiting: VecDeque::new(),
            dispatched: Vec::new(),
            free: Vec::new(),
            in_device: 0,
            outstanding: 0,
            merged: 0,
            waiting_requests: 0,
            waiting_max: 0,
            taken: Traffic::default(),
            sent: Traffic::default(),
            completions: Vec::new(),
            read_data: Vec::new(),
            answers: Vec::new(),
            paths: Vec::new(),
            paths_below: Vec::new(),
        }
    }

    /// Requests that were joined to another one.
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    fn joins(&self, last: &Joined, request: &Request, words: usize) -> bool {
        let (before, after) = (&last.request, request);
        matches!(after.op, Op::Read | Op::Write)
            && self.may_join(last, after, words)
            && before.op == after.op
            && before.fua == after.fua
            && before.stream == after.stream
            && before.queue == after.queue
            && before.end() == after.sector
            && before.bytes() + after.bytes() <= self.config.merge_bytes
            && after.end() <= self.below.sectors()
            && (last.more.len() as u64) + 1 < PARTS_MAX
    }

    /// Whether the command set lets the two become one, with so many words of the second.
    fn may_join(&self, last: &Joined, request: &Request, words: usize) -> bool {
        if last.request.opcode.is_block() && request.opcode.is_block() {
            return true;
        }
        let spec = self.below.command_set().and_then(|set| set.command(request.opcode));
        last.request.opcode == request.opcode
            && spec.is_some_and(|spec| {
                spec.merging == Merging::Neighbours && spec.words_in.allow(last.words.len() + words)
            })
    }

    /// Sends what may go, and answers what completes; what completes lets more go.
    fn work(&mut self) {
        loop {
            while self.in_device < self.config.depth
                && let Some(joined) = self.waiting.pop_front()
            {
                self.send(joined);
            }
            if self.below.completions().is_empty() {
                return;
            }
            self.collect();
        }
    }

    fn send(&mut self, mut joined: Joined) {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.dispatched.push(None);
            self.dispatched.len() as u32 - 1
        });
        self.waiting_requests -= 1 + joined.more.len() as u64;
        joined.request.tag = tag;
        joined.request.at = self.below.now();
        let (request, cells) = (joined.request, std::mem::take(&mut joined.cells));
        let words = std::mem::take(&mut joined.words);
        self.dispatched[tag as usize] = Some(joined);
        self.in_device += 1;
        let data = if cells.is_empty() { Data::Nothing } else { Data::Bytes(&cells) };
        self.below.submit_command(&request, Payload { data, words: &words });
    }

    /// Takes what has completed below, and gives each part its own answer.
    fn collect(&mut self) {
        let mut completions = std::mem::take(self.below.completions());
        let mut read = std::mem::take(self.below.read_data());
        let mut answers = AnswersBelow::take(&mut *self.below);
        self.below.take_paths(&mut self.paths_below);
        let mut paths_below = self.paths_below.drain(..);
        for completion in completions.drain(..) {
            let path = paths_below.next();
            let joined = self.dispatched[completion.tag as usize].take().expect("a tag below is in use once");
            self.free.push(completion.tag);
            self.in_device -= 1;
            self.sent.add(&joined.request);
            // What has an answer is never joined.
            let answer = answers.of(&completion);
            self.answers.extend(answer.map(|answer| Answer { tag: joined.first.tag, ..answer }));
            let index = read.iter().position(|(tag, _)| *tag == completion.tag);
            let cells = index.map(|index| read.swap_remove(index).1);
            for (index, part) in std::iter::once(&joined.first).chain(&joined.more).enumerate() {
                if let Some(cells) = &cells {
                    let cell = cells.len() / joined.request.sectors.max(1) as usize;
                    let from = (part.sector - joined.request.sector) as usize * cell;
                    self.read_data.push((part.tag, cells[from..from + part.sectors as usize * cell].to_vec()));
                }
                let order = completion.order * PARTS_MAX + index as u64;
                self.completions.push(Completion {
                    has_answer: completion.has_answer,
                    ..completion_of(part, completion.status, completion.at, order)
                });
                self.paths
                    .extend(path.as_ref().map(|path| waited_around(part, &Waits::default(), path, completion.at)));
                self.outstanding -= 1;
                self.taken.add(part);
            }
        }
        answers.end();
        drop(paths_below);
        // The allocation goes back: the device fills it again.
        *self.below.completions() = completions;
    }
}

impl BlockDevice for Scheduler {
    fn sectors(&self) -> u64 {
        self.below.sectors()
    }

    fn reserved_sectors(&self) -> u64 {
        self.below.reserved_sectors()
    }

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.submit_command(request, data.into());
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        self.below.command_set()
    }

    fn take_answers(&mut self, to: &mut Vec<Answer>) {
        to.append(&mut self.answers);
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        self.below.take_events(to);
    }

    fn submit_command(&mut self, request: &Request, payload: Payload<'_>) {
        let Payload { data, words } = payload;
        self.run_until(request.at);
        self.outstanding += 1;
        let cell = self.below.cell_bytes();
        let sectors = self.below.sectors() + self.below.reserved_sectors();
        let in_range = request.sector.checked_add(request.sectors).is_some_and(|end| end <= sectors);
        let cells = match request.op {
            Op::Write if cell > 0 && in_range => data.cells(request, cell),
            _ => Vec::new(),
        };
        match self.waiting.back() {
            Some(last) if self.joins(last, request, words.len()) => {
                let last = self.waiting.back_mut().expect("it was there");
                last.request.sectors += request.sectors;
                last.more.push(*request);
                last.cells.extend_from_slice(&cells);
                last.words.extend_from_slice(words);
                self.merged += 1;
            }
            _ => {
                let (more, words) = (Vec::new(), words.to_vec());
                self.waiting.push_back(Joined { request: *request, first: *request, more, cells, words });
            }
        }
        self.waiting_requests += 1;
        self.work();
        self.waiting_max = self.waiting_max.max(self.waiting_requests);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.below.next_event()
    }

    fn run_until(&mut self, until: Nanos) {
        // Step by step: what a completion lets in goes at that very time.
        while let Some(at) = self.below.next_event()
            && at <= until
        {
            self.below.run_until(at);
            self.work();
        }
        self.below.run_until(until);
        self.work();
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        while self.completions.is_empty() {
            if !self.below.run_to_completion(until) {
                return false;
            }
            if self.below.completions().is_empty() {
                // An event for the host.
                return true;
            }
            self.work();
        }
        true
    }

    fn outstanding(&self) -> u64 {
        self.outstanding
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    fn take_paths(&mut self, to: &mut Vec<Path>) {
        to.append(&mut self.paths);
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.below.mapped_run(sector, end)
    }

    fn order_stride(&self) -> u64 {
        self.below.order_stride() * PARTS_MAX
    }

    fn cell_bytes(&self) -> usize {
        self.below.cell_bytes()
    }
}

impl Administration for Scheduler {
    fn identify(&self) -> Identity {
        self.below.identify()
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        let SchedulerConfig { depth, merge_bytes } = self.config;
        let configuration = [("depth", depth.to_string()), ("merge_size", format_size(merge_bytes))];
        let figures = [("merged_requests", self.merged as f64), ("waiting_max", self.waiting_max as f64)];
        let own = LayerMetrics {
            kind: LAYER.name.to_string(),
            configuration: configuration.map(|(key, value)| (key.to_string(), value)).into(),
            taken: self.taken,
            sent: self.sent,
            below: self.below.taken(),
            figures: figures.map(|(key, value)| (key.to_string(), value)).into(),
            ..LayerMetrics::default()
        };
        std::iter::once(own).chain(self.below.layers()).collect()
    }

    fn set_timed(&mut self, timed: bool) {
        self.below.set_timed(timed);
    }

    fn record_paths(&mut self, on: bool) {
        self.below.record_paths(on);
    }

    fn taken(&self) -> Traffic {
        self.taken
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.below.parts()
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        self.below.parts_mut()
    }

    fn reset_statistics(&mut self) {
        self.below.reset_statistics();
        (self.merged, self.waiting_max) = (0, 0);
        (self.taken, self.sent) = (Traffic::default(), Traffic::default());
    }

    fn counters(&self) -> Counters {
        self.below.counters()
    }
}

impl Power for Scheduler {
    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        let loss = self.below.cut(part, again);
        self.work();
        loss
    }

    fn close(&mut self) {
        self.below.close();
    }

    fn into_members(self: Box<Self>) -> Vec<Member> {
        self.below.into_members()
    }

    fn persist(&mut self) -> bool {
        self.below.persist()
    }

    fn forget(&mut self) {
        self.below.forget();
    }

    fn broken_image(&self) -> Option<String> {
        self.below.broken_image()
    }
}

//! The block layer's simplest I/O scheduler: first come, first served, with neighbours merged while they wait.
//!
//! At most `depth` requests are in the device below. While that is full, requests wait in order; one that begins where
//! the last waiting one of its kind ends is joined to it (a back merge), so the device sees fewer and larger requests.
//! A flush keeps its place: it goes when everything before it has gone, and nothing is joined across it.

use std::collections::VecDeque;
use std::sync::Arc;

use ssdlab_base::command_set::Merging;
use ssdlab_base::{Op, Request, SECTOR_BYTES, format_size};
use ssdlab_device::Status;
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};

use crate::layer::{Array, Ended, Io, Layer, Turn};
use crate::layers::{Below, LayerConfig, LayerKind, only};
use crate::{Device, LayerError, LayerMetrics, Loss};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "scheduler",
    summary: "the block layer's simplest I/O scheduler: first come, first served, neighbours merged",
    keys: KEYS,
    devices: (1, 1),
    hands_on: true,
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

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    let depth = keys.count("depth")?;
    let merge_bytes = match keys.get("merge_size") {
        None => keys.number("merge_size")?,
        Some(size) => match size.size()? {
            bytes if bytes.is_multiple_of(SECTOR_BYTES) => bytes,
            _ => return Err(size.expected("whole sectors of 512 bytes, or 0 to merge nothing")),
        },
    };
    Ok(Arc::new(SchedulerConfig { depth, merge_bytes }))
}

impl LayerConfig for SchedulerConfig {
    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        Ok(below.iter().map(|below| below.sectors).sum())
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = only(below, LAYER.name)?;
        Ok(Box::new(Scheduler::new(below, *self)))
    }
}

/// A request to the device below: one or several from above, one behind the other.
pub(crate) struct Joined {
    request: Request,
    first: u32,
    /// Those that were joined to the first, in order.
    more: Vec<u32>,
    /// The cells of all, where contents are kept.
    cells: Vec<u8>,
    /// The words of all, where they are commands of a set.
    words: Vec<u64>,
}

/// First come, first served, merging.
pub struct Scheduler {
    io: Io<Joined, ()>,
    config: SchedulerConfig,
    /// Sectors of a segment or zone of the device, which no request crosses.
    segment: Option<u64>,
    waiting: VecDeque<Joined>,
    merged: u64,
    /// Requests that wait, merged ones one by one, and the most that ever did.
    waiting_requests: u64,
    waiting_max: u64,
    /// The layer above sends commands of the device's set.
    serves_a_set: bool,
}

impl Scheduler {
    /// A scheduler above a device.
    pub fn new(below: Box<dyn Device>, config: SchedulerConfig) -> Scheduler {
        let segment = below.segment_sectors();
        Scheduler {
            segment,
            io: Io::new(Array::new(vec![below]), &LAYER),
            config: SchedulerConfig { depth: config.depth.max(1), ..config },
            waiting: VecDeque::new(),
            merged: 0,
            waiting_requests: 0,
            waiting_max: 0,
            serves_a_set: false,
        }
    }

    /// Requests that were joined to another one.
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    fn joins(&self, last: &Joined, after: &Request, words: usize) -> bool {
        let before = &last.request;
        matches!(after.op, Op::Read | Op::Write)
            && self.may_join(last, after, words)
            && before.op == after.op
            && before.fua == after.fua
            && before.stream == after.stream
            && before.queue == after.queue
            && before.end() == after.sector
            && before.bytes() + after.bytes() <= self.config.merge_bytes
            && after.end() <= self.capacity()
            && self.segment.is_none_or(|sectors| before.sector / sectors == (after.end() - 1) / sectors)
            && (last.more.len() as u64) + 1 < PARTS_MAX
    }

    /// Whether the command set lets the two become one, with so many words of the second.
    fn may_join(&self, last: &Joined, request: &Request, words: usize) -> bool {
        if last.request.opcode.is_block() && request.opcode.is_block() {
            return true;
        }
        let set = self.io.array.device(0).command_set();
        last.request.opcode == request.opcode
            && set.and_then(|set| set.command(request.opcode)).is_some_and(|spec| {
                spec.merging == Merging::Neighbours && spec.words_in.allow(last.words.len() + words)
            })
    }
}

impl Layer for Scheduler {
    const KIND: LayerKind = LAYER;
    type Purpose = Joined;
    type State = ();

    fn io(&self) -> &Io<Joined, ()> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<Joined, ()> {
        &mut self.io
    }

    fn capacity(&self) -> u64 {
        self.io.array.device(0).sectors()
    }

    /// The device below keeps the order.
    fn extent(&self, request: &Request) -> Request {
        Request { sectors: 0, ..*request }
    }

    fn start(&mut self, slot: u32, _: Turn) {
        let command = self.io.command(slot);
        let (request, cells, words) = (command.request, std::mem::take(&mut command.cells), command.take_words());
        self.serves_a_set |= !request.opcode.is_block();
        self.waiting_requests += 1;
        if self.waiting.back().is_some_and(|last| self.joins(last, &request, words.len())) {
            let last = self.waiting.back_mut().expect("it was there");
            last.request.sectors += request.sectors;
            last.more.push(slot);
            last.cells.extend_from_slice(&cells);
            last.words.extend_from_slice(&words);
            self.merged += 1;
        } else {
            self.waiting.push_back(Joined { request, first: slot, more: Vec::new(), cells, words });
        }
    }

    fn ended(&mut self, mut part: Ended<Joined>) {
        let (joined, status, order) = (part.purpose, part.status, part.order);
        let cell = part.cells.as_ref().map_or(0, |cells| cells.len() / joined.request.sectors.max(1) as usize);
        for (index, slot) in (0..).zip(std::iter::once(joined.first).chain(joined.more)) {
            let command = self.io.command(slot);
            let from = (command.request.sector - joined.request.sector) as usize * cell;
            let to = from + command.request.sectors as usize * cell;
            command.cells = part.cells.as_ref().map_or(Vec::new(), |cells| cells[from..to].to_vec());
            command.note_path(part.path.clone());
            // What has an answer is never joined.
            command.note_answer(part.answer.take());
            self.io.answer_in_order(slot, status, order * PARTS_MAX + index);
        }
    }

    /// Sends what may go.
    fn proceed(&mut self) -> bool {
        while self.io.array.in_flight(0) < u64::from(self.config.depth)
            && let Some(mut joined) = self.waiting.pop_front()
        {
            self.waiting_requests -= 1 + joined.more.len() as u64;
            let (cells, words) = (std::mem::take(&mut joined.cells), std::mem::take(&mut joined.words));
            self.io.array.send_of_set(0, joined.request, &cells, &words, joined);
        }
        if !self.io.array.any_has_ended() {
            self.waiting_max = self.waiting_max.max(self.waiting_requests);
        }
        false
    }

    /// A layer that knows the device's set counts on it that what it has sent ends with the power, and sends it again as the device
    /// is then. It does not look at the order of effect.
    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        if self.serves_a_set {
            for joined in std::mem::take(&mut self.waiting) {
                for slot in std::iter::once(joined.first).chain(joined.more) {
                    self.io.answer(slot, Status::Aborted);
                }
            }
            self.waiting_requests = 0;
        }
        loss
    }

    fn metrics(&self) -> LayerMetrics {
        let SchedulerConfig { depth, merge_bytes } = self.config;
        let configuration = [("depth", depth.to_string()), ("merge_size", format_size(merge_bytes))];
        let figures = [("merged_requests", self.merged as f64), ("waiting_max", self.waiting_max as f64)];
        LayerMetrics {
            configuration: configuration.map(|(key, value)| (key.to_string(), value)).into(),
            figures: figures.map(|(key, value)| (key.to_string(), value)).into(),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        (self.merged, self.waiting_max) = (0, 0);
    }

    fn stride(&self) -> u64 {
        self.io.array.device(0).order_stride() * PARTS_MAX
    }
}

//! The block layer's simplest I/O scheduler: first come, first served, with neighbours merged while they wait.
//!
//! At most `depth` requests are in the device below. While that is full, requests wait in order; one that begins where
//! the last waiting one of its kind ends is joined to it (a back merge), so the device sees fewer and larger requests.
//! A flush keeps its place: it goes when everything before it has gone, and nothing is joined across it.

use std::collections::VecDeque;

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Completion, Data, Drive};

use crate::BlockDevice;

/// What the scheduler is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Requests in the device at one time, at least 1.
    pub depth: u32,
    /// Most bytes of a merged request; 0 merges nothing.
    pub merge_bytes: u64,
}

/// A request of whoever is above, as a part of one below.
#[derive(Clone, Copy, Debug)]
struct Part {
    request: Request,
}

/// A request to the device below: one or several from above, one behind the other.
struct Joined {
    request: Request,
    parts: Vec<Part>,
    data: Vec<u8>,
}

/// First come, first served, merging.
pub struct Scheduler {
    below: Box<dyn BlockDevice>,
    config: SchedulerConfig,
    waiting: VecDeque<Joined>,
    /// By tag below.
    dispatched: Vec<Option<Joined>>,
    free: Vec<u32>,
    in_device: u32,
    outstanding: u64,
    order: u64,
    merged: u64,
    completions: Vec<Completion>,
    read_data: Vec<(u32, Vec<u8>)>,
}

impl Scheduler {
    /// A scheduler above a device.
    pub fn new(below: Box<dyn BlockDevice>, config: SchedulerConfig) -> Scheduler {
        Scheduler {
            below,
            config: SchedulerConfig { depth: config.depth.max(1), ..config },
            waiting: VecDeque::new(),
            dispatched: Vec::new(),
            free: Vec::new(),
            in_device: 0,
            outstanding: 0,
            order: 0,
            merged: 0,
            completions: Vec::new(),
            read_data: Vec::new(),
        }
    }

    /// Requests that were joined to another one.
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    fn joins(&self, last: &Joined, request: &Request) -> bool {
        let (before, after) = (&last.request, request);
        matches!(after.op, Op::Read | Op::Write)
            && before.op == after.op
            && before.fua == after.fua
            && before.stream == after.stream
            && before.queue == after.queue
            && before.end() == after.sector
            && before.bytes() + after.bytes() <= self.config.merge_bytes
            && after.end() <= self.below.sectors()
    }

    /// Sends what may go.
    fn dispatch(&mut self) {
        while self.in_device < self.config.depth
            && let Some(mut joined) = self.waiting.pop_front()
        {
            let tag = self.free.pop().unwrap_or_else(|| {
                self.dispatched.push(None);
                self.dispatched.len() as u32 - 1
            });
            joined.request.tag = tag;
            joined.request.at = self.below.now();
            let (request, bytes) = (joined.request, std::mem::take(&mut joined.data));
            let data = if bytes.is_empty() { Data::Nothing } else { Data::Bytes(&bytes) };
            self.dispatched[tag as usize] = Some(joined);
            self.in_device += 1;
            self.below.submit(&request, data);
        }
        self.collect();
    }

    /// Takes what has completed below, and gives each part its own answer.
    fn collect(&mut self) {
        while !self.below.completions().is_empty() {
            let completions = std::mem::take(self.below.completions());
            let mut data = std::mem::take(self.below.read_data());
            for completion in completions {
                let joined = self.dispatched[completion.tag as usize].take().expect("a tag below is in use once");
                self.free.push(completion.tag);
                self.in_device -= 1;
                let index = data.iter().position(|(tag, _)| *tag == completion.tag);
                let bytes = index.map(|index| data.swap_remove(index).1);
                for Part { request } in joined.parts {
                    if let Some(bytes) = &bytes {
                        let cell = bytes.len() / joined.request.sectors.max(1) as usize;
                        let from = (request.sector - joined.request.sector) as usize * cell;
                        let part = bytes[from..from + request.sectors as usize * cell].to_vec();
                        self.read_data.push((request.tag, part));
                    }
                    self.completions.push(Completion {
                        tag: request.tag,
                        op: request.op,
                        status: completion.status,
                        submitted: request.at,
                        at: completion.at,
                        order: self.order,
                        bytes: request.sectors.saturating_mul(SECTOR_BYTES),
                    });
                    self.order += 1;
                    self.outstanding -= 1;
                }
            }
            if !self.waiting.is_empty() {
                self.dispatch();
            }
        }
    }
}

impl BlockDevice for Scheduler {
    fn sectors(&self) -> u64 {
        self.below.sectors()
    }

    fn now(&self) -> Nanos {
        self.below.now()
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.below.run_until(request.at);
        self.collect();
        self.outstanding += 1;
        let bytes = match data {
            Data::Bytes(bytes) if request.op == Op::Write => bytes,
            _ => &[],
        };
        let part = Part { request: *request };
        match self.waiting.back() {
            Some(last) if self.joins(last, request) => {
                let last = self.waiting.back_mut().expect("it was there");
                last.request.sectors += request.sectors;
                last.parts.push(part);
                last.data.extend_from_slice(bytes);
                self.merged += 1;
            }
            _ => self.waiting.push_back(Joined { request: *request, parts: vec![part], data: bytes.to_vec() }),
        }
        self.dispatch();
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
            self.collect();
        }
        self.below.run_until(until);
        self.collect();
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        while self.completions.is_empty() {
            if !self.below.run_to_completion(until) {
                return false;
            }
            self.collect();
        }
        true
    }

    fn outstanding(&self) -> u64 {
        self.outstanding
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.completions
    }

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        &mut self.read_data
    }

    fn mapped_run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.below.mapped_run(sector, end)
    }

    fn drive(&self) -> &Drive {
        self.below.drive()
    }

    fn drive_mut(&mut self) -> &mut Drive {
        self.below.drive_mut()
    }
}

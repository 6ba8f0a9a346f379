//! For tests: a drive that may misbehave, and a workload to drive it with.

use std::collections::VecDeque;

use ssdlab_base::command_set::EVENT_WORDS;
use ssdlab_base::command_sets::tags::{TAGS, TAGS_CLEARED};
use ssdlab_base::{CommandSet, Event, Nanos, Op, Request};
use ssdlab_device::{Completion, Counters, Data, Drive, Status};
use ssdlab_host::{Administration, BlockDevice, Identity, LayerMetrics, Part, Traffic};
use ssdlab_workload::{Next, Workload, WorkloadError};

/// How a drive misbehaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Every hundredth request never completes, as a queue slot that is lost.
    Loses,
    /// Every hundredth request completes twice.
    Repeats,
    /// Latencies are understated: the time in the queue is left out.
    Flatters,
    /// One sector of every request is not counted.
    Miscounts,
    /// None: it tells its host before each completion, as a drive with a command set may.
    Tells,
}

/// A drive that serves one request at a time, each for a microsecond and a nanosecond a sector.
pub(crate) struct Fake {
    fault: Fault,
    timed: bool,
    pub(crate) now: Nanos,
    queue: VecDeque<(Nanos, Request)>,
    done: Vec<Completion>,
    busy_until: Nanos,
    served: u64,
    /// Events sent, and those that the host has not taken.
    told: u64,
    events: Vec<Event>,
    pub(crate) counters: Counters,
}

impl Fake {
    pub(crate) fn new(fault: Fault) -> Fake {
        Fake {
            fault,
            timed: true,
            now: Nanos::ZERO,
            queue: VecDeque::new(),
            done: Vec::new(),
            busy_until: Nanos::ZERO,
            served: 0,
            told: 0,
            events: Vec::new(),
            counters: Counters::default(),
        }
    }
}

impl BlockDevice for Fake {
    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, request: &Request, _data: Data<'_>) {
        assert!(request.at >= self.now);
        let time = if self.timed { 1_000 + request.sectors } else { 0 };
        self.busy_until = self.busy_until.max(request.at) + Nanos(time);
        self.queue.push_back((self.busy_until, *request));
    }

    fn command_set(&self) -> Option<&'static CommandSet> {
        (self.fault == Fault::Tells).then_some(&TAGS)
    }

    fn take_events(&mut self, to: &mut Vec<Event>) {
        to.append(&mut self.events);
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        if !self.done.is_empty() || !self.events.is_empty() {
            return true;
        }
        while let Some(&(at, request)) = self.queue.front() {
            if at > until {
                break;
            }
            if self.fault == Fault::Tells && self.told == self.served {
                self.told += 1;
                self.now = at;
                self.events.push(Event { number: self.told, at, kind: TAGS_CLEARED, words: [0; EVENT_WORDS] });
                return true;
            }
            self.queue.pop_front();
            self.now = at;
            self.served += 1;
            let odd = self.served.is_multiple_of(100);
            if odd && self.fault == Fault::Loses {
                continue;
            }
            let submitted = if self.fault == Fault::Flatters { Nanos(at.0 - 1_000) } else { request.at };
            let bytes = if self.fault == Fault::Miscounts { request.bytes() - 512 } else { request.bytes() };
            self.counters.commands[request.op.class()] += 1;
            self.counters.bytes[request.op.class()] += bytes;
            let Request { tag, op, .. } = request;
            let completion = Completion {
                has_answer: false,
                tag,
                op,
                status: Status::Success,
                submitted,
                at,
                order: self.served,
                bytes: request.bytes(),
            };
            self.done.push(completion);
            if odd && self.fault == Fault::Repeats {
                self.done.push(completion);
            }
            return true;
        }
        false
    }

    fn run_until(&mut self, until: Nanos) {
        assert!(!self.run_to_completion(until));
        self.now = until;
    }

    fn next_event(&self) -> Option<Nanos> {
        self.queue.front().map(|&(at, _)| at)
    }

    fn completions(&mut self) -> &mut Vec<Completion> {
        &mut self.done
    }

    fn sectors(&self) -> u64 {
        1 << 20
    }

    fn sector_data_bytes(&self) -> usize {
        0
    }

    fn outstanding(&self) -> u64 {
        self.queue.len() as u64
    }

    fn take_paths(&mut self, _to: &mut Vec<ssdlab_device::critical_path::Path>) {}

    fn read_data(&mut self) -> &mut Vec<(u32, Vec<u8>)> {
        unreachable!("it keeps no contents")
    }

    fn mapped_run(&self, _sector: u64, end: u64) -> (bool, u64) {
        (false, end)
    }

    fn order_stride(&self) -> u64 {
        1
    }
}

impl Administration for Fake {
    fn identify(&self) -> Identity {
        unreachable!("a replay does not ask who it drives")
    }

    fn layers(&self) -> Vec<LayerMetrics> {
        Vec::new()
    }

    fn taken(&self) -> Traffic {
        Traffic::default()
    }

    fn drives(&self) -> Vec<Part<&Drive>> {
        Vec::new()
    }

    fn drives_mut(&mut self) -> Vec<Part<&mut Drive>> {
        Vec::new()
    }

    fn reset_statistics(&mut self) {}

    fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
    }

    fn record_paths(&mut self, _on: bool) {}

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// `total` writes, `depth` at a time, or one every `gap` whatever completes.
pub(crate) struct Writes {
    pub(crate) total: u64,
    pub(crate) sent: u64,
    pub(crate) depth: u64,
    pub(crate) outstanding: u64,
    pub(crate) gap: Option<Nanos>,
    pub(crate) beyond: bool,
}

impl Writes {
    pub(crate) fn closed(total: u64, depth: u64) -> Writes {
        Writes { total, sent: 0, depth, outstanding: 0, gap: None, beyond: false }
    }
}

impl Workload for Writes {
    fn next(&mut self, now: Nanos) -> Result<Next, WorkloadError> {
        if self.sent == self.total {
            return Ok(Next::Done);
        }
        if let Some(at) = self.gap.map(|gap| gap * self.sent)
            && at > now
        {
            return Ok(Next::WaitUntil(at));
        }
        if self.gap.is_none() && self.outstanding == self.depth {
            return Ok(Next::WaitForCompletion);
        }
        self.sent += 1;
        self.outstanding += 1;
        let op = if self.sent.is_multiple_of(3) { Op::Read } else { Op::Write };
        let sector = if self.beyond && self.sent == 77 { u64::MAX } else { self.sent * 8 };
        Ok(Next::Request(Request { tag: self.sent as u32, ..Request::new(op, sector, 8 + self.sent % 5) }))
    }

    fn completed(&mut self, _now: Nanos, _tag: u32) {
        self.outstanding -= 1;
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.sent, Some(self.total))
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        self.sent = 0;
        Ok(())
    }
}

//! The loop and the laws against drives that keep them, and drives that do not.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::checks;
use crate::progress::{Progress, Quiet};
use crate::result::Check;
use ssdlab_host::{Identity, LayerMetrics, Part, PartMut, Traffic};

/// How a drive misbehaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Every hundredth request never completes, as a queue slot that is lost.
    Loses,
    /// Every hundredth request completes twice.
    Repeats,
    /// Latencies are understated: the time in the queue is left out.
    Flatters,
    /// One sector of every request is not counted.
    Miscounts,
}

/// A drive that serves one request at a time, each for a microsecond and a nanosecond a sector.
struct Fake {
    fault: Fault,
    now: Nanos,
    queue: VecDeque<(Nanos, Request)>,
    done: Vec<Completion>,
    busy_until: Nanos,
    served: u64,
    counters: Counters,
}

impl Fake {
    fn new(fault: Fault) -> Fake {
        Fake {
            fault,
            now: Nanos::ZERO,
            queue: VecDeque::new(),
            done: Vec::new(),
            busy_until: Nanos::ZERO,
            served: 0,
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
        self.busy_until = self.busy_until.max(request.at) + Nanos(1_000 + request.sectors);
        self.queue.push_back((self.busy_until, *request));
    }

    fn run_to_completion(&mut self, until: Nanos) -> bool {
        while let Some(&(at, request)) = self.queue.front() {
            if at > until {
                break;
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

    fn cell_bytes(&self) -> usize {
        0
    }

    fn outstanding(&self) -> u64 {
        self.queue.len() as u64
    }

    fn take_paths(&mut self, _to: &mut Vec<ssdlab_device::path::Path>) {}

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

    fn parts(&self) -> Vec<Part<'_>> {
        Vec::new()
    }

    fn parts_mut(&mut self) -> Vec<PartMut<'_>> {
        Vec::new()
    }

    fn reset_statistics(&mut self) {}

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// `total` writes, `depth` at a time, or one every `gap` whatever completes.
struct Writes {
    total: u64,
    sent: u64,
    depth: u64,
    outstanding: u64,
    gap: Option<Nanos>,
    beyond: bool,
}

impl Writes {
    fn closed(total: u64, depth: u64) -> Writes {
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

fn invariants(fault: Fault, mut workload: Writes) -> (Ended, Vec<Check>, Recorder) {
    let mut fake = Fake::new(fault);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &Quiet);
    let ended = replay(&mut fake, &mut workload, &mut recorder, &control).expect("the workload fits");
    let timeline = recorder.take_timeline(fake.now.0, &fake.counters, 4096);
    let checks = checks::invariants(&config(), ended, &recorder, &fake.counters, &[], &timeline, fake.now.0);
    (ended, checks, recorder)
}

/// A drive's configuration, of which the laws read only that it has no faults.
fn config() -> ssdlab_device::DriveConfig {
    let text = include_str!("../../tests/common/small.toml");
    let description = ssdlab_device::Description::parse(text, "small.toml").expect("a description");
    description.resolve().expect("a drive")
}

fn broken(checks: &[Check]) -> Vec<&str> {
    checks.iter().filter(|check| !check.held).map(|check| check.name.as_str()).collect()
}

#[test]
fn an_honest_drive_keeps_every_law_in_closed_and_open_loops() {
    let (ended, checks, recorder) = invariants(Fault::None, Writes::closed(10_000, 32));
    assert_eq!(ended, Ended::Done);
    assert_eq!(broken(&checks), [""; 0]);
    assert_eq!(recorder.completed, [3_333, 6_667, 0, 0]);
    assert_eq!(recorder.outstanding_max, 32);
    assert!(checks.iter().any(|check| check.name == "littles_law"));

    // Three hundred nanoseconds between arrivals are too few: the queue grows to thousands.
    let open = Writes { gap: Some(Nanos(300)), ..Writes::closed(10_000, 0) };
    let (ended, checks, recorder) = invariants(Fault::None, open);
    assert_eq!((ended, broken(&checks).len()), (Ended::Done, 0));
    assert!(recorder.outstanding_max > 5_000);

    // An hour between arrivals: time passes without completions.
    let rare = Writes { gap: Some(Nanos(3_600_000_000_000)), ..Writes::closed(50, 0) };
    let (ended, checks, recorder) = invariants(Fault::None, rare);
    assert_eq!((ended, broken(&checks).len(), recorder.outstanding_max), (Ended::Done, 0, 1));
}

#[test]
fn a_drive_that_loses_queue_slots_is_caught_and_does_not_hang_the_run() {
    let (ended, checks, _) = invariants(Fault::Loses, Writes::closed(10_000, 32));
    assert_eq!(ended, Ended::Stuck { outstanding: 32 });
    let broken = broken(&checks);
    assert!(broken.contains(&"requests_generated_equal_completed"), "{broken:?}");
    assert!(broken.contains(&"bytes_conserved"), "{broken:?}");
    assert!(broken.contains(&"littles_law"), "{broken:?}");
}

#[test]
fn a_drive_that_flatters_its_latencies_breaks_littles_law() {
    let (_, checks, _) = invariants(Fault::Flatters, Writes::closed(10_000, 32));
    assert_eq!(broken(&checks), ["littles_law"]);
}

#[test]
fn a_drive_that_completes_twice_or_miscounts_is_caught() {
    let open = || Writes { gap: Some(Nanos(2_000)), depth: u64::MAX, ..Writes::closed(100, 0) };
    let (_, checks, _) = invariants(Fault::Miscounts, open());
    assert_eq!(broken(&checks), ["bytes_conserved"]);
    let repeated = Writes { outstanding: 1_000, ..open() };
    let (_, checks, _) = invariants(Fault::Repeats, repeated);
    assert!(broken(&checks).contains(&"requests_generated_equal_completed"));
}

#[test]
fn a_request_behind_the_drive_is_an_error_that_names_it() {
    let mut fake = Fake::new(Fault::None);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &Quiet);
    let mut workload = Writes { beyond: true, ..Writes::closed(100, 4) };
    let error = replay(&mut fake, &mut workload, &mut recorder, &control).expect_err("too far").to_string();
    assert!(error.contains("request 77"), "{error}");
    assert!(error.contains("--wrap"), "{error}");
}

#[test]
fn a_stopped_run_lets_what_is_in_the_drive_complete() {
    /// Stops the run at the third look.
    struct Impatient<'a>(&'a AtomicBool, std::sync::atomic::AtomicU32);
    impl Progress for Impatient<'_> {
        fn advance(&self, _done: u64, _total: Option<u64>) {
            if self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2 {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }
    let stop = AtomicBool::new(false);
    let impatient = Impatient(&stop, std::sync::atomic::AtomicU32::new(0));
    let control = Control::new(&stop, &impatient);
    let mut fake = Fake::new(Fault::None);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let ended =
        replay(&mut fake, &mut Writes::closed(1 << 40, 16), &mut recorder, &control).expect("the workload fits");
    assert_eq!(ended, Ended::Stopped);
    assert!(recorder.sent_total() < 10_000);
    let timeline = recorder.take_timeline(fake.now.0, &fake.counters, 4096);
    let checks = checks::invariants(&config(), ended, &recorder, &fake.counters, &[], &timeline, fake.now.0);
    assert_eq!(broken(&checks), [""; 0]);
}

#[test]
fn a_workload_that_waits_for_nothing_is_an_error() {
    let stop = AtomicBool::new(false);
    let control = Control::new(&stop, &Quiet);
    let mut recorder = Recorder::new(Axis::Time, Counters::default(), 8);
    let error = replay(&mut Fake::new(Fault::None), &mut Writes::closed(5, 0), &mut recorder, &control);
    assert!(matches!(error, Err(ReplayError::Deadlock { sent: 0 })));
}

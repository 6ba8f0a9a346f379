//! A drive that takes a fixed time for each request, and what a workload sends to it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_workload::fio::{FioJob, FioWorkload};
use ssdlab_workload::{Next, Workload};

/// A generator from a one-line specification.
pub(crate) fn spec(text: &str, capacity: u64, seed: u64) -> FioWorkload {
    let job = FioJob::parse_line(text).unwrap_or_else(|error| panic!("{error}"));
    job.generator(capacity, seed).unwrap_or_else(|error| panic!("{error}"))
}

/// A generator from the text of a job file.
pub(crate) fn jobs(text: &str, capacity: u64, seed: u64) -> FioWorkload {
    let job = FioJob::parse_text(text, "test.fio").unwrap_or_else(|error| panic!("{error}"));
    job.generator(capacity, seed).unwrap_or_else(|error| panic!("{error}"))
}

/// The message of a specification that must be refused, by its text or by a drive of 1 GiB.
pub(crate) fn refused(text: &str) -> String {
    let error = FioJob::parse_line(text).and_then(|job| job.generator(1 << 30, 1).map(|_| ()));
    error.expect_err(text).to_string()
}

/// Runs the workload on a drive where each request takes `latency`, up to `limit` requests; every request is checked
/// against the rules that hold for all workloads.
pub(crate) fn run(workload: &mut FioWorkload, capacity: u64, latency: Nanos, limit: usize) -> Vec<Request> {
    let mut now = Nanos::ZERO;
    let mut sent = Vec::new();
    let mut in_flight: BinaryHeap<Reverse<(Nanos, u32)>> = BinaryHeap::new();
    while sent.len() < limit {
        let next = workload.next(now).expect("a generator has nothing to fail on");
        let wake = match next {
            Next::Request(request) => {
                assert_eq!(request.at, now);
                assert!(request.end() * 512 <= capacity, "{request:?} ends behind the drive");
                assert_eq!(request.sectors == 0, request.op == Op::Flush, "{request:?}");
                let in_use = |Reverse((_, tag)): &Reverse<(Nanos, u32)>| *tag == request.tag;
                assert!(!in_flight.iter().any(in_use), "tag {} is in flight already", request.tag);
                assert!(in_flight.len() < workload.depth_max() as usize);
                in_flight.push(Reverse((now + latency, request.tag)));
                sent.push(request);
                continue;
            }
            Next::WaitUntil(time) => {
                assert!(time > now, "asked to wait until {time:?} at {now:?}");
                Some(time)
            }
            Next::WaitForCompletion => None,
            Next::Done => {
                assert!(in_flight.is_empty(), "done with {} in flight", in_flight.len());
                break;
            }
        };
        match (in_flight.peek().copied(), wake) {
            (Some(Reverse((due, tag))), wake) if wake.is_none_or(|wake| due <= wake) => {
                in_flight.pop();
                now = due;
                workload.completed(now, tag);
            }
            (_, Some(wake)) => now = wake,
            (None, None) => panic!("waits for a completion with nothing in flight"),
            (Some(_), None) => unreachable!("the first arm takes a completion when there is no wake time"),
        }
    }
    sent
}

/// Counts of `op`.
pub(crate) fn count(requests: &[Request], op: Op) -> usize {
    requests.iter().filter(|request| request.op == op).count()
}

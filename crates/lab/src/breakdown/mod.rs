//! What the requests' time was spent on: gathered from their paths while a run goes, in memory that does not grow with it.
//!
//! For each kind of request latencies fall into buckets, 256 in each power of two, and each bucket adds up the parts of its
//! requests. So the mean over all requests and the mean over any tail that begins at a bucket are exact. The slowest
//! requests are kept whole. Every path is held against its completion: it begins when the request was sent, leaves no gap,
//! and ends when it completed, or the run's check does not hold.

pub(crate) mod text;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use ssdlab_base::Request;
use ssdlab_device::Completion;
use ssdlab_device::critical_path::{Part, Path, Segment, Stage};

use crate::result::{Check, LatencyBreakdown, LatencySplit, OpBreakdown, SlowRequest, Wait};

/// The check's stable key.
const NAME: &str = "latency_parts_equal_latency";

/// Bits of a latency below its highest that tell buckets apart.
const BUCKET_BITS: u32 = 8;

/// Quantiles whose tails are split, with their keys.
pub(crate) const TAILS: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];

/// Kinds of requests, in the order of their classes.
pub(crate) const OPS: [&str; 4] = ["read", "write", "trim", "flush"];

/// Takes the requests of a window of virtual time as they complete.
pub trait RequestLanes: Send {
    /// A request has completed.
    fn request(&mut self, path: &Path);
}

/// What a run is asked to say of what its requests waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// How many of the slowest requests are listed.
    pub slowest: u32,
}

/// Requests of about the same latency.
#[derive(Clone, Debug, Default)]
struct Bucket {
    requests: u64,
    least_ns: u64,
    sum_ns: u128,
    /// Time by stage and part, those that occurred.
    parts: Parts,
}

/// Time by number of stage and part.
#[derive(Clone, Debug, Default)]
struct Parts(Vec<(u16, u128)>);

impl Parts {
    fn add(&mut self, slot: u16, ns: u128) {
        match self.0.iter_mut().find(|(other, _)| *other == slot) {
            Some((_, sum)) => *sum += ns,
            None => self.0.push((slot, ns)),
        }
    }
}

fn slot(segment: &Segment) -> u16 {
    (segment.stage as usize * Part::COUNT + segment.part.number()) as u16
}

fn key(slot: u16) -> String {
    let (stage, part) = (usize::from(slot) / Part::COUNT, usize::from(slot) % Part::COUNT);
    format!("{}{}", Stage::ALL[stage].prefix(), Part::numbered(part).key())
}

/// The bucket of a latency; larger latencies have larger numbers.
fn bucket(ns: u64) -> u32 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BUCKET_BITS + 1);
    (shift << BUCKET_BITS) + (ns >> shift) as u32
}

/// Waits of a slow request at most; of one that waited more often, those of a kind are added up.
const WAITS_MAX: usize = 64;

/// Memory of one of the slowest requests: a wait while the run goes, as a result, and three times as text of a file.
pub(crate) const SLOW_BYTES: u64 = WAITS_MAX as u64 * 250;

/// A slow request, ordered by latency; of equals the earlier is the slower.
#[derive(Clone, Debug)]
struct Slow {
    latency_ns: u64,
    number: u64,
    request: Request,
    /// Stage and part of each wait, and how long it was.
    waits: Box<[(u16, u64)]>,
}

/// The waits along a path, in their order.
fn waits(path: &Path) -> Box<[(u16, u64)]> {
    let of = |segment: &Segment| (slot(segment), segment.length().0);
    if path.segments.len() <= WAITS_MAX {
        return path.segments.iter().map(of).collect();
    }
    let mut waits: Vec<(u16, u64)> = Vec::new();
    for (slot, ns) in path.segments.iter().map(of) {
        match waits.iter_mut().find(|(other, _)| *other == slot) {
            Some((_, sum)) => *sum += ns,
            None => waits.push((slot, ns)),
        }
    }
    waits.into_boxed_slice()
}

impl Slow {
    const fn order(&self) -> (u64, Reverse<u64>) {
        (self.latency_ns, Reverse(self.number))
    }
}

impl PartialEq for Slow {
    fn eq(&self, other: &Slow) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Slow {}

impl PartialOrd for Slow {
    fn partial_cmp(&self, other: &Slow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slow {
    fn cmp(&self, other: &Slow) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// Gathers.
pub(crate) struct Gathered {
    options: Breakdown,
    ops: [BTreeMap<u32, Bucket>; 4],
    slow: BinaryHeap<Reverse<Slow>>,
    requests: u64,
    /// Requests whose path does not add up, and the first of them as a sentence.
    wrong: u64,
    first_wrong: Option<String>,
    lanes: Option<Box<dyn RequestLanes>>,
    /// Taken from the drive and not dealt with.
    pub(crate) paths: Vec<Path>,
}

impl std::fmt::Debug for Gathered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gathered").field("requests", &self.requests).field("wrong", &self.wrong).finish_non_exhaustive()
    }
}

impl Gathered {
    pub(crate) fn new(options: Breakdown, lanes: Option<Box<dyn RequestLanes>>) -> Gathered {
        Gathered {
            options,
            ops: std::array::from_fn(|_| BTreeMap::new()),
            slow: BinaryHeap::new(),
            requests: 0,
            wrong: 0,
            first_wrong: None,
            lanes,
            paths: Vec::new(),
        }
    }

    /// A request has completed.
    pub(crate) fn completed(&mut self, completion: &Completion, path: Path) {
        self.requests += 1;
        let latency = completion.at.since(completion.submitted).0;
        if let Some(why) = wrong(completion, &path) {
            self.wrong += 1;
            self.first_wrong.get_or_insert(why);
        }
        let bucket = self.ops[completion.op.class()].entry(bucket(latency)).or_default();
        bucket.least_ns = if bucket.requests == 0 { latency } else { bucket.least_ns.min(latency) };
        bucket.requests += 1;
        bucket.sum_ns += u128::from(latency);
        for segment in &path.segments {
            bucket.parts.add(slot(segment), u128::from(segment.length().0));
        }
        if let Some(lanes) = &mut self.lanes {
            lanes.request(&path);
        }
        if self.options.slowest > 0 {
            let is_full = self.slow.len() >= self.options.slowest as usize;
            // Of equals the earlier stays.
            if is_full && self.slow.peek().is_some_and(|Reverse(least)| latency <= least.latency_ns) {
                return;
            }
            let (number, waits) = (self.requests, waits(&path));
            self.slow.push(Reverse(Slow { latency_ns: latency, number, request: path.request, waits }));
            if is_full {
                self.slow.pop();
            }
        }
    }

    /// A completion came without a path.
    pub(crate) fn without_path(&mut self) {
        self.requests += 1;
        self.wrong += 1;
        self.first_wrong.get_or_insert_with(|| "a request completed without a path".to_string());
    }

    /// Whether the parts of every request added up to its latency.
    pub(crate) fn check(&self) -> Check {
        let mut detail = format!(
            "the parts of {} of {} requests add up to their latencies, to the nanosecond",
            self.requests - self.wrong,
            self.requests
        );
        if let Some(why) = &self.first_wrong {
            detail.push_str(&format!("; the first that do not: {why}"));
        }
        Check { name: NAME.to_string(), passed: self.wrong == 0, detail }
    }

    /// What results say.
    pub(crate) fn result(self) -> LatencyBreakdown {
        let ops = OPS.iter().zip(&self.ops).filter(|(_, buckets)| !buckets.is_empty());
        let ops = ops.map(|(name, buckets)| ((*name).to_string(), of_op(buckets))).collect();
        let slowest = self.slow.into_sorted_vec();
        let slowest = slowest.into_iter().map(|Reverse(slow)| slow_request(&slow)).collect();
        LatencyBreakdown { ops, slowest }
    }
}

/// Why a path does not fit its completion.
fn wrong(completion: &Completion, path: &Path) -> Option<String> {
    let mut until = completion.submitted;
    let same = path.request.op == completion.op;
    let gap = path.segments.iter().find(|segment| {
        let follows = segment.from == until && segment.to > segment.from;
        until = segment.to;
        !follows
    });
    if same && gap.is_none() && until == completion.at {
        return None;
    }
    let sum: u64 = path.segments.iter().map(|segment| segment.to.since(segment.from).0).sum();
    Some(format!(
        "{:?} of {} sectors at sector {}, sent at {} ns and completed at {} ns: its parts are {sum} of {} ns",
        completion.op,
        path.request.sectors,
        path.request.sector,
        completion.submitted.0,
        completion.at.0,
        completion.at.since(completion.submitted).0
    ))
}

fn of_op(buckets: &BTreeMap<u32, Bucket>) -> OpBreakdown {
    let all: u64 = buckets.values().map(|bucket| bucket.requests).sum();
    let tail = |quantile: f64| {
        // The quantile's request and those slower than it; its bucket belongs to the tail as a whole.
        let least = all - ((quantile * all as f64).ceil() as u64).clamp(1, all) + 1;
        let mut inside = 0;
        let tail = buckets.values().rev().take_while(|bucket| {
            let before = inside;
            inside += bucket.requests;
            before < least
        });
        split(tail)
    };
    let tails = TAILS.iter().map(|(name, quantile)| ((*name).to_string(), tail(*quantile))).collect();
    OpBreakdown { mean: split(buckets.values()), tails }
}

/// The mean over the requests of some buckets.
fn split<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> LatencySplit {
    let (mut requests, mut sum_ns, mut from_ns) = (0, 0, u64::MAX);
    let mut parts = Parts::default();
    for bucket in buckets {
        requests += bucket.requests;
        sum_ns += bucket.sum_ns;
        from_ns = from_ns.min(bucket.least_ns);
        bucket.parts.0.iter().for_each(|(slot, ns)| parts.add(*slot, *ns));
    }
    let mean = |sum: u128| sum as f64 / requests.max(1) as f64;
    let parts_ns = parts.0.iter().map(|(slot, ns)| (key(*slot), mean(*ns))).collect();
    LatencySplit { from_ns: if requests == 0 { 0 } else { from_ns }, requests, mean_ns: mean(sum_ns), parts_ns }
}

fn slow_request(Slow { latency_ns, request, waits, .. }: &Slow) -> SlowRequest {
    SlowRequest {
        op: OPS[request.op.class()].to_string(),
        sector: request.sector,
        sectors: request.sectors,
        submitted_ns: request.at.0,
        latency_ns: *latency_ns,
        waits: waits.iter().map(|(slot, ns)| Wait { part: key(*slot), ns: *ns }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ssdlab_base::{Nanos, Op};
    use ssdlab_device::Status;

    fn completed(gathered: &mut Gathered, at: u64, lengths: &[(Part, u64)]) {
        let mut until = at;
        let segments = lengths.iter().map(|&(part, length)| {
            until += length;
            Segment { stage: Stage::Request, part, from: Nanos(until - length), to: Nanos(until) }
        });
        let segments: Vec<Segment> = segments.collect();
        let request = Request { at: Nanos(at), ..Request::new(Op::Read, 8, 8) };
        let (op, status) = (Op::Read, Status::Success);
        let (submitted, end) = (Nanos(at), Nanos(until));
        let completion =
            Completion { tag: 0, op, has_answer: false, status, submitted, at: end, order: 0, bytes: 4096 };
        gathered.completed(&completion, Path { request, segments });
    }

    proptest! {
        #[test]
        fn buckets_are_in_order_and_narrow(a in 0..1u64 << 50, b in 0..1u64 << 50) {
            prop_assert_eq!(a < b && bucket(a) > bucket(b), false);
            if bucket(a) == bucket(b) {
                prop_assert!(a.abs_diff(b) as f64 <= a.max(b) as f64 / 256.0);
            }
        }

        #[test]
        fn tails_are_the_slowest_and_their_parts_add_up(
            latencies in prop::collection::vec((0..2_000_000u64, 1..2_000_000u64), 1..1500),
        ) {
            let mut gathered = Gathered::new(Breakdown { slowest: 7 }, None);
            for (at, &(wait, link)) in latencies.iter().enumerate() {
                let wait = (Part::LinkWait, wait);
                completed(&mut gathered, at as u64, &[wait, (Part::Link, link)].into_iter().filter(|(_, ns)| *ns > 0).collect::<Vec<_>>());
            }
            prop_assert!(gathered.check().passed, "{}", gathered.check().detail);
            let result = gathered.result();
            let mut sorted: Vec<u64> = latencies.iter().map(|(wait, link)| wait + link).collect();
            sorted.sort_unstable();
            let read = &result.ops["read"];
            for (name, quantile) in TAILS {
                let tail = &read.tails[name];
                let slowest: Vec<u64> = sorted.iter().copied().filter(|&ns| ns >= tail.from_ns).collect();
                // All that are as slow as the least of them, and hardly more than were asked for.
                prop_assert_eq!(tail.requests, slowest.len() as u64);
                let mean = slowest.iter().sum::<u64>() as f64 / slowest.len() as f64;
                prop_assert!((tail.mean_ns - mean).abs() < 1e-6 * mean);
                prop_assert!((tail.parts_ns.values().sum::<f64>() - mean).abs() < 1e-6 * mean);
                let rank = ((quantile * sorted.len() as f64).ceil() as usize).max(1) - 1;
                prop_assert!(tail.from_ns <= sorted[rank] && sorted[rank] as f64 <= tail.from_ns as f64 * (1.0 + 1.0 / 256.0) + 1.0);
            }
            let listed: Vec<u64> = result.slowest.iter().map(|slow| slow.latency_ns).collect();
            let most: Vec<u64> = sorted.iter().rev().take(7).copied().collect();
            prop_assert_eq!(listed, most);
        }
    }

    #[test]
    fn a_request_that_waited_very_often_has_the_sum_of_each_kind() {
        for (waits, kept) in [(WAITS_MAX, WAITS_MAX), (WAITS_MAX + 2, 2)] {
            let mut gathered = Gathered::new(Breakdown { slowest: 1 }, None);
            let parts = [(Part::LinkWait, 2), (Part::Link, 3)];
            let lengths: Vec<(Part, u64)> = parts.into_iter().cycle().take(waits).collect();
            completed(&mut gathered, 0, &lengths);
            assert!(gathered.check().passed, "{}", gathered.check().detail);
            let slowest = &gathered.result().slowest[0];
            assert_eq!(slowest.waits.len(), kept);
            assert_eq!(slowest.waits.iter().map(|wait| wait.ns).sum::<u64>(), slowest.latency_ns);
        }
    }

    #[test]
    fn a_part_that_is_missing_breaks_the_check() {
        let mut gathered = Gathered::new(Breakdown { slowest: 0 }, None);
        completed(&mut gathered, 5, &[(Part::Link, 10), (Part::Controller, 3)]);
        assert!(gathered.check().passed);
        let request = Request { at: Nanos(5), ..Request::new(Op::Write, 8, 8) };
        let segment = |from, to| Segment { stage: Stage::Request, part: Part::Link, from: Nanos(from), to: Nanos(to) };
        let completion = Completion {
            tag: 0,
            has_answer: false,
            op: Op::Write,
            status: Status::Success,
            submitted: Nanos(5),
            at: Nanos(20),
            order: 0,
            bytes: 4096,
        };
        for segments in [vec![segment(5, 19)], vec![segment(5, 9), segment(10, 20)], vec![], vec![segment(4, 20)]] {
            let mut gathered = Gathered::new(Breakdown { slowest: 0 }, None);
            gathered.completed(&completion, Path { request, segments });
            let check = gathered.check();
            assert!(!check.passed, "{}", check.detail);
            assert!(check.detail.contains("Write of 8 sectors at sector 8"), "{}", check.detail);
        }
    }
}

//! The jobs of a workload, each measured by itself: what a recorder counts for all of them, once more by job.

use ssdlab_base::{Op, Request};
use ssdlab_device::{Completion, Status};

use crate::latency::Latencies;
use crate::result::{JobResult, LatencySummary, PerOp, Throughput};

/// One job.
#[derive(Debug)]
struct Job {
    name: String,
    /// By kind; made with the first completion of the kind, for they are large.
    latencies: [Option<Box<Latencies>>; 4],
    bytes: [u64; 4],
    failed: u64,
    /// First arrival and last completion.
    span_ns: Option<(u64, u64)>,
    /// Pages written, by their place in the order of all jobs' pages, modulo the number of jobs.
    turns: Vec<u64>,
}

/// More jobs than this are not looked at for turns: they cost each write as many.
const TURNS_MAX: usize = 16;
/// From so many pages on, a job's turns say something.
const PAGES_TO_JUDGE: u64 = 1_000;
/// A job keeps its turn where this share of its pages has it.
const SHARE_IN_STEP: f64 = 0.9;

/// The jobs of a workload, in its order; none where there are no several.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: Vec<Job>,
    /// Sectors of a page.
    page_sectors: u64,
    /// The place of the next page written in the order of all, modulo the number of jobs.
    turn: usize,
}

impl Jobs {
    /// Jobs of these names, above a drive with pages of so many sectors.
    pub(crate) fn new(names: Vec<String>, page_sectors: u64) -> Jobs {
        assert!(page_sectors > 0, "a page has sectors");
        let turns = vec![0; if names.len() <= TURNS_MAX { names.len() } else { 0 }];
        let job = |name| Job {
            name,
            latencies: [const { None }; 4],
            bytes: [0; 4],
            failed: 0,
            span_ns: None,
            turns: turns.clone(),
        };
        Jobs { jobs: names.into_iter().map(job).collect(), page_sectors, turn: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Job number `job` sent a request.
    pub(crate) fn submitted(&mut self, job: usize, request: &Request) {
        let at = request.at.0;
        self.jobs[job].span_ns.get_or_insert((at, at));
        if request.op == Op::Write {
            self.take_turns(job, request.sectors.div_ceil(self.page_sectors));
        }
    }

    /// Pages of a job are the next in the order of all.
    fn take_turns(&mut self, job: usize, pages: u64) {
        let turns = &mut self.jobs[job].turns;
        let count = turns.len();
        if count == 0 {
            return;
        }
        let rest = (pages % count as u64) as usize;
        turns.iter_mut().for_each(|turn| *turn += pages / count as u64);
        (0..rest).for_each(|step| turns[(self.turn + step) % count] += 1);
        self.turn = (self.turn + rest) % count;
    }

    /// Whether the jobs write in step with `groups` that take pages in turn, so that jobs keep to groups of their own: of so
    /// many classes.
    pub(crate) fn classes_in_step(&self, groups: u64) -> Option<u64> {
        let classes = greatest_common_divisor(self.jobs.len() as u64, groups);
        if classes < 2 {
            return None;
        }
        let mut taken = Vec::new();
        for job in self.jobs.iter().filter(|job| job.turns.iter().sum::<u64>() >= PAGES_TO_JUDGE) {
            let of_class = |class: u64| job.turns.iter().skip(class as usize).step_by(classes as usize).sum::<u64>();
            let (class, most) = (0..classes).map(|class| (class, of_class(class))).max_by_key(|(_, pages)| *pages)?;
            if (most as f64) < SHARE_IN_STEP * job.turns.iter().sum::<u64>() as f64 {
                return None;
            }
            taken.push(class);
        }
        taken.iter().any(|class| *class != taken[0]).then_some(classes)
    }

    /// A request of job number `job` completed.
    pub(crate) fn completed(&mut self, job: usize, completion: &Completion) {
        let job = &mut self.jobs[job];
        let class = completion.op.class();
        let latency = completion.at.since(completion.submitted).0;
        job.latencies[class].get_or_insert_with(|| Box::new(Latencies::new())).record(latency);
        if completion.status == Status::Success {
            job.bytes[class] += completion.bytes;
        } else {
            job.failed += 1;
        }
        if let Some((_, end)) = &mut job.span_ns {
            *end = completion.at.0;
        }
    }

    /// Requests completed, by kind, summed over the jobs.
    pub(crate) fn requests(&self) -> [u64; 4] {
        std::array::from_fn(|class| self.jobs.iter().map(|job| job.count(class)).sum())
    }

    /// What the jobs got; rates are those of a drive that takes time.
    pub(crate) fn results(&self, timed: bool) -> Vec<JobResult> {
        self.jobs.iter().map(|job| job.result(timed)).collect()
    }
}

impl Job {
    fn count(&self, class: usize) -> u64 {
        self.latencies[class].as_ref().map_or(0, |latencies| latencies.count())
    }

    fn result(&self, timed: bool) -> JobResult {
        let per_op = |[read, write, trim, flush]: [u64; 4]| PerOp { read, write, trim, flush };
        let requests = per_op(std::array::from_fn(|class| self.count(class)));
        let bytes = per_op(self.bytes);
        let (begun_ns, ended_ns) = self.span_ns.filter(|_| timed).unwrap_or_default();
        let mut all = Latencies::new();
        self.latencies.iter().flatten().for_each(|latencies| all.add(latencies));
        let summary = |class: usize| -> Option<LatencySummary> { self.latencies[class].as_ref()?.summary() };
        JobResult {
            name: self.name.clone(),
            requests,
            bytes,
            failed_requests: self.failed,
            begun_ns,
            ended_ns,
            throughput: Throughput::over(&requests, &bytes, ended_ns - begun_ns),
            latency_ns: crate::result::Latencies {
                all: all.summary(),
                read: summary(0),
                write: summary(1),
                trim: summary(2),
                flush: summary(3),
            },
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Characters of a name in the table; longer ones are cut.
const NAME_MAX: usize = 40;

/// The table: for each drive a line for each job and kind of request.
pub(crate) fn render(name: &str, timed: bool, jobs: &[JobResult]) -> String {
    use crate::text::{clipped, columns};
    use ssdlab_base::Nanos;

    let heads = ["", "requests", "IOPS", "MB/s", "mean", "p50", "p99", "p99.9", "max"];
    let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_string).to_vec()];
    rows[0][0] = format!("jobs of {}", clipped(name, NAME_MAX));
    for job in jobs {
        let name = clipped(&job.name, NAME_MAX);
        for (kind, requests, bytes, latency) in job.by_kind() {
            let seconds = job.ended_ns.saturating_sub(job.begun_ns) as f64 / 1e9;
            let rate = |amount: u64| if seconds > 0.0 { Some(amount as f64 / seconds) } else { None };
            let mut row = vec![format!("  {name} {kind}"), crate::table::count(requests)];
            row.push(rate(requests).map_or_else(dash, |rate| crate::table::count(rate.round() as u64)));
            row.push(rate(bytes).filter(|&rate| rate > 0.0).map_or_else(dash, |rate| format!("{:.1}", rate / 1e6)));
            let parts = latency.filter(|_| timed).map(|l| [l.mean.round() as u64, l.p50, l.p99, l.p999, l.max]);
            row.extend(parts.map_or_else(|| vec![dash(); 5], |parts| parts.map(|ns| Nanos(ns).to_string()).to_vec()));
            rows.push(row);
        }
    }
    format!("\n{}", columns(&rows, 1))
}

fn dash() -> String {
    "-".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs that send writes of these pages in turn.
    fn in_turn(pages: &[u64]) -> Jobs {
        let mut jobs = Jobs::new(pages.iter().map(|_| String::new()).collect(), 8);
        for _ in 0..2000 {
            for (job, pages) in pages.iter().enumerate() {
                jobs.submitted(job, &Request::new(Op::Write, 0, pages * 8));
            }
        }
        jobs
    }

    #[test]
    fn jobs_in_turn_are_in_step_with_a_multiple_of_groups() {
        assert_eq!(in_turn(&[1, 1]).classes_in_step(2), Some(2));
        assert_eq!(in_turn(&[1, 1]).classes_in_step(8), Some(2));
        assert_eq!(in_turn(&[3, 1]).classes_in_step(4), None, "three pages meet both classes");
        assert_eq!(in_turn(&[1, 1]).classes_in_step(3), None);
        assert_eq!(in_turn(&[2, 2]).classes_in_step(4), None, "each write meets both classes");
        assert_eq!(in_turn(&[1, 1, 1]).classes_in_step(9), Some(3));
        assert_eq!(in_turn(&[1, 1, 1]).classes_in_step(4), None);
        assert_eq!(in_turn(&[1, 1, 1, 1]).classes_in_step(2), Some(2));
        assert_eq!(in_turn(&[1]).classes_in_step(2), None);
        assert_eq!(in_turn(&[1, 2]).classes_in_step(2), None, "the second shifts the first each time");
    }
}

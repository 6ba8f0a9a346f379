//! The jobs of a workload, each measured by itself: what a recorder counts for all of them, once more by job.

use ssdlab_base::Request;
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
}

/// The jobs of a workload, in its order; none where there are no several.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Vec<Job>);

impl Jobs {
    /// Jobs of these names.
    pub(crate) fn new(names: Vec<String>) -> Jobs {
        let job = |name| Job { name, latencies: [const { None }; 4], bytes: [0; 4], failed: 0, span_ns: None };
        Jobs(names.into_iter().map(job).collect())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Job number `job` sent a request.
    pub(crate) fn submitted(&mut self, job: usize, request: &Request) {
        let at = request.at.0;
        self.0[job].span_ns.get_or_insert((at, at));
    }

    /// A request of job number `job` completed.
    pub(crate) fn completed(&mut self, job: usize, completion: &Completion) {
        let job = &mut self.0[job];
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
        std::array::from_fn(|class| self.0.iter().map(|job| job.count(class)).sum())
    }

    /// What the jobs got; rates are those of a drive that takes time.
    pub(crate) fn results(&self, timed: bool) -> Vec<JobResult> {
        self.0.iter().map(|job| job.result(timed)).collect()
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

/// The table: for each drive a line for each job and kind of request.
pub(crate) fn render(name: &str, timed: bool, jobs: &[JobResult]) -> String {
    use ssdlab_base::Nanos;

    let heads = ["", "requests", "IOPS", "MB/s", "mean", "p50", "p99", "p99.9", "max"];
    let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_string).to_vec()];
    rows[0][0] = format!("jobs of {name}");
    for job in jobs {
        for (kind, requests, bytes, latency) in job.by_kind() {
            let seconds = (job.ended_ns - job.begun_ns) as f64 / 1e9;
            let rate = |amount: u64| if seconds > 0.0 { Some(amount as f64 / seconds) } else { None };
            let mut row = vec![format!("  {} {kind}", job.name), crate::table::count(requests)];
            row.push(rate(requests).map_or_else(dash, |rate| crate::table::count(rate.round() as u64)));
            row.push(rate(bytes).filter(|&rate| rate > 0.0).map_or_else(dash, |rate| format!("{:.1}", rate / 1e6)));
            let parts = latency.filter(|_| timed).map(|l| [l.mean.round() as u64, l.p50, l.p99, l.p999, l.max]);
            row.extend(parts.map_or_else(|| vec![dash(); 5], |parts| parts.map(|ns| Nanos(ns).to_string()).to_vec()));
            rows.push(row);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = "\n".to_string();
    for row in &rows {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn dash() -> String {
    "-".to_string()
}

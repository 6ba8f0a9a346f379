//! The jobs of a job file on the page: a row for each drive, job and kind of request.

use super::html::{bytes_per_second, escape, nanos, or_dash, rate, whole};
use super::tables::chip;
use crate::result::{DeviceResult, JobResult, RunResult};

/// The section, or nothing of a workload that has no several jobs.
pub(super) fn section(run: &RunResult) -> String {
    if run.devices.iter().all(|device| device.jobs.is_empty()) {
        return String::new();
    }
    let tables: String = run.devices.iter().enumerate().map(|(index, device)| table(index, device)).collect();
    format!(
        "<section class=\"card\">\n<h2>Jobs</h2>\n<p class=\"caption\">Each job of the workload by itself, clones of a job \
         together. Rates are those of the job's own time, from its first request to its last completion.</p>\n\
         {tables}</section>\n"
    )
}

fn table(index: usize, device: &DeviceResult) -> String {
    let heads: String = ["Job", "", "Requests", "IOPS", "Bandwidth", "Mean", "p50", "p99", "p99.9", "Max"]
        .map(|head| format!("<th>{head}</th>"))
        .concat();
    let rows: String = device.jobs.iter().map(|job| rows(device, job)).collect();
    format!(
        "<h3>{}{}</h3>\n<div class=\"scroll\"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>\n",
        chip(index),
        escape(&device.name)
    )
}

fn rows(device: &DeviceResult, job: &JobResult) -> String {
    let seconds = job.ended_ns.saturating_sub(job.begun_ns) as f64 / 1e9;
    let per_second = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
    let mut rows = String::new();
    for (place, (kind, requests, bytes, latency)) in job.by_kind().into_iter().enumerate() {
        let latency = latency.filter(|_| device.timed);
        let name = if place == 0 { escape(&job.name) } else { String::new() };
        let mut cells = vec![
            whole(requests),
            or_dash(per_second(requests), rate).into_owned(),
            or_dash(per_second(bytes).filter(|&rate| rate > 0.0), bytes_per_second).into_owned(),
        ];
        let parts = latency.map(|l| [l.mean, l.p50 as f64, l.p99 as f64, l.p999 as f64, l.max as f64]);
        cells.extend((0..5).map(|part| or_dash(parts.map(|parts| parts[part]), nanos).into_owned()));
        let cells: String = cells.into_iter().map(|cell| format!("<td>{cell}</td>")).collect();
        rows.push_str(&format!("<tr><td class=\"name\">{name}</td><td>{kind}</td>{cells}</tr>\n"));
    }
    rows
}

//! The metrics that a run is judged by: the headline of the report, the table of many drives, and the columns of
//! `summary.csv`.

use crate::result::{DeviceResult, LatencySummary, RunResult};
use crate::subtests;

/// In what a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanos,
    Rate,
    Bytes,
    Ratio,
    Share,
    Count,
}

/// A metric: its key in files, its head in a table, its whole name, its unit, and every drive's value.
pub(crate) struct Metric {
    pub(crate) key: &'static str,
    pub(crate) head: &'static str,
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) value: fn(&DeviceResult) -> Option<f64>,
}

/// A time of the latency summary, of a drive that takes time.
fn time(device: &DeviceResult, of: Option<LatencySummary>, pick: fn(LatencySummary) -> f64) -> Option<f64> {
    of.filter(|_| device.timed).map(pick)
}

/// Mean erases of a block in the measured run alone: what the drive had before depends on how it was preconditioned.
fn erases_in_run(device: &DeviceResult) -> Option<f64> {
    if let Some(erases) = &device.erases_in_run {
        return Some(erases.mean);
    }
    // Older results have the sum alone.
    let blocks: u64 = device.wear_histogram.blocks.iter().sum();
    (blocks > 0).then(|| device.flash.erases.total as f64 / blocks as f64)
}

/// Those of kinds of requests and of parts of a drive that some drive of the run has.
pub(crate) fn metrics(run: &RunResult) -> Vec<Metric> {
    let metric = |key, head, name, unit, value| Metric { key, head, name, unit, value };
    let some = |has: fn(&DeviceResult) -> bool| run.devices.iter().any(has);
    let mut metrics = vec![metric("iops", "Requests/s", "Requests a second", Unit::Rate, |d| {
        d.timed.then(|| subtests::throughput(d).iops)
    })];
    if some(|d| d.latency_ns.read.is_some()) {
        metrics.extend([
            metric("read_bytes_per_s", "Read", "Read a second", Unit::Bytes, |d| {
                d.timed.then(|| subtests::throughput(d).read_bytes_per_s)
            }),
            metric("read_p50_ns", "Read p50", "Read latency, p50", Unit::Nanos, |d| {
                time(d, d.latency_ns.read, |s| s.p50 as f64)
            }),
            metric("read_p99_ns", "p99", "Read latency, p99", Unit::Nanos, |d| {
                time(d, d.latency_ns.read, |s| s.p99 as f64)
            }),
            metric("read_p999_ns", "p99.9", "Read latency, p99.9", Unit::Nanos, |d| {
                time(d, d.latency_ns.read, |s| s.p999 as f64)
            }),
        ]);
    }
    if some(|d| d.latency_ns.write.is_some()) {
        metrics.extend([
            metric("write_bytes_per_s", "Written", "Written a second", Unit::Bytes, |d| {
                d.timed.then(|| subtests::throughput(d).write_bytes_per_s)
            }),
            metric("write_p50_ns", "Write p50", "Write latency, p50", Unit::Nanos, |d| {
                time(d, d.latency_ns.write, |s| s.p50 as f64)
            }),
            metric("write_p99_ns", "p99", "Write latency, p99", Unit::Nanos, |d| {
                time(d, d.latency_ns.write, |s| s.p99 as f64)
            }),
            metric("write_p999_ns", "p99.9", "Write latency, p99.9", Unit::Nanos, |d| {
                time(d, d.latency_ns.write, |s| s.p999 as f64)
            }),
            metric("write_amplification", "Write ampl.", "Write amplification", Unit::Ratio, |d| {
                d.write_amplification.as_ref().map(|amplification| amplification.total)
            }),
        ]);
    }
    if some(|d| d.theory.is_some()) {
        metrics.push(metric("theory", "Theory", "Write amplification by theory", Unit::Ratio, |d| {
            d.theory.as_ref().map(|theory| theory.write_amplification)
        }));
    }
    if some(|d| d.timed && d.gc.stalled_commands > 0) {
        metrics.push(metric("gc_stalled_commands", "Stalled by GC", "Commands stalled by GC", Unit::Count, |d| {
            d.timed.then_some(d.gc.stalled_commands as f64)
        }));
    }
    if some(|d| d.buffer.hits > 0) {
        metrics.push(metric("buffer_hits", "Buffer hits", "Pages found in the write buffer", Unit::Count, |d| {
            Some(d.buffer.hits as f64)
        }));
    }
    metrics.extend([
        metric("over_provisioning", "Over-prov.", "Over-provisioning, nominal", Unit::Share, |d| {
            Some(d.over_provisioning.nominal)
        }),
        metric("erases_per_block", "Erases/block", "Erases of a block in the run", Unit::Ratio, erases_in_run),
    ]);
    if some(|d| d.lifetime.is_some()) {
        metrics.extend([
            metric("lifetime_written_tb", "TBW", "Written by the host until worn out, TB", Unit::Ratio, |d| {
                d.lifetime.as_ref().map(|lasts| lasts.written_bytes / 1e12)
            }),
            metric("drive_writes_per_day", "DWPD", "Drive writes a day over five years", Unit::Ratio, |d| {
                d.lifetime.as_ref().map(|lasts| lasts.drive_writes_per_day)
            }),
            metric("lifetime_years", "Years", "Years at the rate of the run", Unit::Ratio, |d| {
                d.lifetime.as_ref()?.years
            }),
        ]);
    }
    metrics
}

//! What several figures need: the board, and columns that are read from a run.

use crate::frame::run_columns::busy_dies;
use crate::frame::{Column, Drawn, Measured, Reading};

pub(super) use crate::frame::run_columns::{THROUGHPUT, WRITE_AMPLIFICATION};

/// The board of Table 1.
pub(super) const BOARD: &str = "256 GB";

/// What the host's programs have done in a second.
pub(super) const IOPS: Column<Reading> = ("IOPS", "", |run| run.number("throughput.iops"));

/// What they have done by what they did with the baseline firmware.
pub(super) const BY_BASELINE: Column<Reading> =
    ("IOPS relative to the baseline", "x", |run| run.ratio(|run| run.number("throughput.iops")));

/// Writes that reached the drive, and their bytes: what the lowest layer has sent.
fn sent(run: &Measured) -> Option<(f64, f64)> {
    let last = run.length("host_layers").checked_sub(1)?;
    let of = |what: &str| run.number(&format!("host_layers.{last}.sent.{what}.1"));
    Some((of("requests").filter(|&requests| requests > 0.0)?, of("bytes")?))
}

/// Sectors of 512 bytes of a write that reaches the drive.
pub(super) const SECTORS: Column<Reading> =
    ("sectors/request", "", |run| sent(run).map(|(requests, bytes)| bytes / requests / 512.0));

/// Pages that were programmed with a part of the data old, by the writes that reached the drive.
pub(super) const PARTIAL: Column<Reading> = ("partial pages/request", "", |run| {
    sent(run).and_then(|(requests, _)| run.number("design.partial_page_writes").map(|pages| pages / requests))
});

/// Pages that were read to fill up a write, by the writes that reached the drive.
pub(super) const FILLED_UP: Column<Reading> = ("pages read/request", "", |run| {
    sent(run).and_then(|(requests, _)| run.number("flash.reads.by_cause.rmw").map(|pages| pages / requests))
});

/// The share of time in which a bank works, on average.
pub(super) const BUSY_BANKS: Column<Reading> = ("busy banks", "%", |run| busy_dies(run));

/// The share of time in which a channel moves data, on average.
pub(super) const BUSY_CHANNELS: Column<Reading> =
    ("busy channels", "%", |run| run.mean("utilization.channels").map(|share| 100.0 * share));

/// The share of writes that reached the drive which begin or end inside a page.
pub(super) const MISALIGNED: Column<Reading> = ("misaligned requests", "%", |run| {
    let (requests, _) = sent(run)?;
    run.number("controller.misaligned_writes").map(|writes| 100.0 * writes / requests)
});

/// The share of time in which the first operation in the controller's one waiting room waits for its busy bank.
pub(super) const HEAD_WAITS: Column<Reading> = ("waits for a busy bank", "%", |run| {
    Some(100.0 * run.number("flash.queue.head_wait_ns")? / run.number("virtual_time_ns")?)
});

/// The share of time in which a bank is idle and has an operation that is behind another one, on average over banks.
pub(super) const HELD_UP: Column<Reading> = ("idle behind a busy bank", "%", |run| {
    let banks = run.length("utilization.dies") as f64;
    Some(100.0 * run.number("flash.queue.held_up_ns")? / (banks * run.number("virtual_time_ns")?))
});

/// Bars of columns, which are named with their units: a colour for each setting, the workloads on x.
pub(super) fn bars_by_setting(drawn: &mut Drawn, columns: &[(&'static str, &'static str)]) {
    for &(series, unit) in columns {
        drawn.bars(series, ["", unit], |point| {
            (point.series == series).then(|| (point.setting.clone(), point.workload.clone()))
        });
    }
}

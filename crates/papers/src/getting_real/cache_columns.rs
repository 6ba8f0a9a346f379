//! What the figures about caches read from runs of a stack with a cache above a board and a disk.

use super::common::IOPS;
use crate::frame::{Column, Measured, Reading};

/// The board of section 4.1, with 8 GB in use.
pub(super) const BOARD_IN_USE: &str = "8 GB";

/// A metric of the cache layer, wherever in the stack it is.
fn of_cache(run: &Measured, metric: &str) -> Option<f64> {
    let is_cache = |kind: &str| kind == "cache" || kind == "flashcache";
    let kind = |index: &usize| run.text(&format!("host_layers.{index}.kind")).is_some_and(is_cache);
    let index = (0..run.length("host_layers")).find(kind)?;
    run.number(&format!("host_layers.{index}.metrics.{metric}"))
}

/// What was counted below a cache; nothing where the disk is alone.
fn below_cache(run: &Measured, path: &str) -> Option<f64> {
    of_cache(run, "disk_reads").and(run.number(path))
}

fn erases(run: &Measured) -> Option<f64> {
    below_cache(run, "flash.erases.total")
}

fn latency(run: &Measured) -> Option<f64> {
    run.number("latency_ns.all.mean")
}

fn iops(run: &Measured) -> Option<f64> {
    run.number("throughput.iops")
}

/// What a run shows by itself.
pub(super) const ALONE: [Column<Reading>; 10] = [
    IOPS,
    ("mean latency", "ms", |run| latency(run).map(|ns| ns / 1e6)),
    ("read hits", "%", |run| of_cache(run, "read_hit_ratio").map(|share| 100.0 * share)),
    ("disk reads", "", |run| of_cache(run, "disk_reads")),
    ("disk writes", "", |run| of_cache(run, "disk_writes")),
    ("flash pages programmed", "", |run| below_cache(run, "flash.programs.total")),
    ("of them copied", "", |run| below_cache(run, "flash.programs.by_cause.gc")),
    ("erases", "", |run| erases(run)),
    ("nominal over-provisioning", "%", |run| below_cache(run, "over_provisioning.nominal").map(|share| 100.0 * share)),
    ("effective over-provisioning", "%", |run| {
        below_cache(run, "over_provisioning.effective").map(|share| 100.0 * share)
    }),
];

/// Beside the disk alone.
pub(super) const OVER_DISK: [Column<Reading>; 1] = [("IOPS relative to No-Cache", "x", |run| run.ratio(iops))];

/// Beside FlashCache in the same mode.
pub(super) const OVER_SSD: [Column<Reading>; 3] = [
    ("IOPS over SSD", "%", |run| run.more(iops)),
    ("erases below SSD", "%", |run| run.less(erases)),
    ("latency below SSD", "%", |run| run.less(latency)),
];

//! What a run leaves behind: the structure of `result.json`.
//!
//! Keys only grow; [`FORMAT`] counts the times that a key changed its meaning. Everything here is read from the
//! drive's counters and the recorder, never computed twice. Two runs of the same experiment give the same structure
//! except for keys that begin with `wall_`. Every key is described in `docs/results.md`, and a test holds the two
//! together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ssdlab_host::{LayerMetrics, Traffic};

mod drive;
mod latencies;

pub use crate::by_cause::ByCause;
use crate::ready_busy::ReadyBusy;
pub use crate::variants::Repetition;
pub use drive::{
    Buffer, Capacity, Controller, Erases, Flash, FlashOps, Gc, MapCache, MapRequests, OverProvisioning, Queue, Theory,
    Utilization, WearHistogram, WriteAmplification,
};
pub use latencies::{
    Latencies, LatencyBreakdown, LatencySplit, LatencySummary, OpBreakdown, OpTimeline, PerOp, SlowRequest, Wait,
};
pub use ssdlab_measure::Lifetime;

/// The version of the result's keys.
pub const FORMAT: u32 = 2;

/// The version of ssdlab that this library belongs to.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A whole run: what was asked for, and what each drive made of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Version of the keys.
    pub format: u32,
    /// Version of ssdlab.
    pub version: String,
    /// False when the run was interrupted: the metrics cover the part that ran.
    pub complete: bool,
    /// The seed of everything random.
    pub seed: u64,
    /// The title that the user gave the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The command line, where there was one.
    pub command: Vec<String>,
    /// When the run started, by the wall clock in UTC; absent in older results and in those of the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_started: Option<String>,
    /// The workload as it was asked for.
    pub workload: String,
    /// The replay discipline as it was asked for.
    pub replay: String,
    /// The age the drives were brought to first.
    pub precondition: String,
    /// The description of what stood above the drives; nothing where requests went straight to them.
    #[serde(default)]
    pub host: Option<String>,
    /// What a person should know of how the workload was read, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// One entry for each drive, in the order they were given.
    pub devices: Vec<DeviceResult>,
}

impl RunResult {
    /// Whether all drives were sent the same requests, as far as the results tell.
    pub fn is_same_requests(&self) -> bool {
        let sent = |device: &DeviceResult| (device.requests, device.bytes, device.requests_digest.clone());
        self.devices.windows(2).all(|pair| sent(&pair[0]) == sent(&pair[1]))
    }
}

/// One drive's part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceResult {
    /// The drive's name; unique in a run.
    pub name: String,
    /// The drive's log before and after, for files of their own.
    #[serde(skip)]
    pub smart: crate::SmartLogs,
    /// What its own way through the workload showed, a sentence each; the run's `notes` have them.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// What was laid over its description, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, String>,
    /// Which repetition it is of, where a run was repeated with other seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<Repetition>,
    /// False when this drive's run was interrupted.
    pub complete: bool,
    /// False when the drive only counts (`timing = "none"`): times and rates mean nothing then.
    pub timed: bool,
    /// Whether the drive took no writes any more at the end, for want of spare blocks.
    #[serde(default)]
    pub read_only: bool,
    /// Requests completed.
    pub requests: PerOp<u64>,
    /// Bytes of those that succeeded.
    pub bytes: PerOp<u64>,
    /// Sixteen hexadecimal digits over the operations, addresses and lengths of all requests, whatever their order: two
    /// drives with the same were sent the same. Empty in older results.
    #[serde(default)]
    pub requests_digest: String,
    /// Latencies; `null` where no request of the kind completed.
    pub latency_ns: Latencies,
    /// Virtual time from the first moment to the last completion.
    pub virtual_time_ns: u64,
    /// Wall-clock time of the measured part (not of preconditioning), in seconds.
    pub wall_time_s: f64,
    /// Wall-clock time of bringing the drive to its age, in seconds.
    pub wall_precondition_s: f64,
    /// Rates over the virtual time.
    pub throughput: Throughput,
    /// How much the rate varies over the run.
    #[serde(default)]
    pub rate_variation: RateVariation,
    /// Requests in the drive, as a mean over virtual time and at most.
    pub outstanding: Outstanding,
    /// Flash operations.
    pub flash: Flash,
    /// Programmed and copied bytes for each byte the host wrote; `null` when it wrote nothing.
    pub write_amplification: Option<WriteAmplification>,
    /// What theory says for uniform random overwrites, where the workload is that.
    pub theory: Option<Theory>,
    /// Erase counts over the blocks that are not bad, of the drive's whole life.
    pub erases: Erases,
    /// Erases of the measured run alone, over all blocks; absent in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erases_in_run: Option<Erases>,
    /// How long the drive lasts at what the run did to it, where its description states `flash.faults.endurance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Lifetime>,
    /// The write buffer.
    pub buffer: Buffer,
    /// The cache of the map; absent where all of the map is in RAM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_cache: Option<MapCache>,
    /// The controller's processor and DRAM; absent where these take no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// Garbage collection and wear levelling.
    pub gc: Gc,
    /// Busy time as a share of virtual time.
    pub utilization: Utilization,
    /// Memory by name, in bytes.
    pub memory: BTreeMap<String, u64>,
    /// The design's own metrics.
    pub design: BTreeMap<String, f64>,
    /// How many bytes there are.
    #[serde(default)]
    pub capacity: Capacity,
    /// How much of the flash is over-provisioned.
    pub over_provisioning: OverProvisioning,
    /// How the drive was brought to its age.
    pub precondition: Precondition,
    /// Other counters of the host's side.
    pub host: Host,
    /// What stood above the drive, the topmost first: empty where requests went straight to it.
    #[serde(default)]
    pub host_layers: Vec<LayerMetrics>,
    /// Each drive below the layers, where there are several; `flash` is their sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveOfStack>,
    /// Each hard disk below the layers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskOfStack>,
    /// Commands of the drive's own set, by name, and its events; absent where it knows block I/O alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
    /// The laws that the run had to keep.
    pub checks: Vec<Check>,
    /// What could mislead, a sentence each.
    pub warnings: Vec<String>,
    /// The whole drive, as its description would say it.
    pub configuration: serde_json::Value,
    /// The run over time.
    pub timeline: Timeline,
    /// The cumulative distribution of latencies, for each kind that occurred.
    pub latency_cdf: BTreeMap<String, Cdf>,
    /// How many blocks have how many erases.
    pub wear_histogram: WearHistogram,
    /// What requests waited for, where that was asked for.
    #[serde(default)]
    pub latency_breakdown: Option<LatencyBreakdown>,
    /// The jobs, where the workload is a job file with several.
    #[serde(default)]
    pub jobs: Vec<JobResult>,
    /// The sub-tests, where the run was divided.
    #[serde(default)]
    pub subtests: Vec<Subtest>,
    /// What was recorded from the Ready/Busy lines, where that was asked for.
    #[serde(default)]
    pub ready_busy: Option<ReadyBusy>,
}

/// One of several drives below host layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveOfStack {
    /// What the stack calls it.
    pub name: String,
    /// Operations of its flash.
    pub flash: Flash,
}

/// A hard disk below host layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskOfStack {
    /// What the stack calls it.
    pub name: String,
    /// How many bytes of it are used.
    pub capacity_bytes: u64,
    /// What it counted in the run (docs/disk.md).
    pub counters: BTreeMap<String, u64>,
}

impl DiskOfStack {
    /// What it took from above.
    fn taken(&self) -> Traffic {
        let count = |name: &str| self.counters.get(name).copied().unwrap_or(0);
        Traffic {
            requests: [count("reads"), count("writes"), 0, count("flushes")],
            bytes: [count("read_bytes"), count("written_bytes"), 0, 0],
        }
    }
}

/// A job of the workload, its clones together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// The section of the job file.
    pub name: String,
    /// Requests completed.
    pub requests: PerOp<u64>,
    /// Bytes of those that succeeded.
    pub bytes: PerOp<u64>,
    /// Requests that ended with an error.
    pub failed_requests: u64,
    /// The first request's arrival, in nanoseconds of virtual time.
    pub begun_ns: u64,
    /// The last completion.
    pub ended_ns: u64,
    /// Rates over the time between the two.
    pub throughput: Throughput,
    /// Latencies; `null` where no request of the kind completed.
    pub latency_ns: Latencies,
}

impl JobResult {
    /// The kinds of request that it completed: name, requests, bytes, latencies.
    pub(crate) fn by_kind(&self) -> Vec<(&'static str, u64, u64, Option<LatencySummary>)> {
        let (requests, bytes, latency) = (&self.requests, &self.bytes, &self.latency_ns);
        let kinds = [
            ("read", requests.read, bytes.read, latency.read),
            ("write", requests.write, bytes.write, latency.write),
            ("trim", requests.trim, bytes.trim, latency.trim),
            ("flush", requests.flush, bytes.flush, latency.flush),
        ];
        let some: Vec<_> = kinds.into_iter().filter(|(_, requests, ..)| *requests > 0).collect();
        // A job that sent nothing still has its line.
        if some.is_empty() { vec![("", 0, 0, None)] } else { some }
    }
}

/// How much the rate varies from interval to interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateVariation {
    /// Length of the intervals of virtual time.
    pub interval_ns: u64,
    /// Whole intervals up to the last completion, without the first tenth of the run.
    pub intervals: u64,
    /// Standard deviation over mean of the requests that completed in an interval: the coefficient of variation. `null` for
    /// fewer than two intervals, for a run that takes no time, and for one in sub-tests.
    pub cv: Option<f64>,
}

/// The host's side of a sub-test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subtest {
    /// Its number from 1, or `initial`.
    pub name: String,
    /// Requests of all kinds.
    pub requests: u64,
    /// Bytes that the host wrote.
    pub written_bytes: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// When it began.
    pub begun_ns: u64,
    /// Its last completion.
    pub ended_ns: u64,
    /// Bytes written by that time.
    pub write_bytes_per_s: f64,
    /// Sub-tests after it that were not run, because the level that it ended stands for them.
    #[serde(default)]
    pub stands_for: u64,
}

/// Rates over the virtual time; zero for a run that takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Requests of all kinds a second.
    pub iops: f64,
    /// Reads a second.
    pub read_iops: f64,
    /// Writes a second.
    pub write_iops: f64,
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
}

/// How many requests were in the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outstanding {
    /// The mean over virtual time.
    pub mean: f64,
    /// The most.
    pub max: u64,
}

/// How the drive was brought to its age. None of it counts in the other figures, except in `erases`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Precondition {
    /// Bytes the host wrote for it.
    pub written_bytes: u64,
    /// User capacity of what it wrote to, in bytes: the stack's, or that of all drives where each was written to below
    /// the layers. Zero in older results.
    #[serde(default)]
    pub capacity_bytes: u64,
    /// For `steady`: the bytes of one window.
    pub window_bytes: u64,
    /// For `steady`: write amplification of each window, in order.
    pub windows: Vec<f64>,
    /// For `steady`: whether write amplification has settled; `null` for the other ages.
    pub steady: Option<bool>,
    /// What agreed, where it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Share of the drives' user capacity that held data when the run began, where preconditioning did not write all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<f64>,
    /// What a person should know about it, a sentence each.
    pub notes: Vec<String>,
}

/// What agrees when write amplification has settled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Settled {
    /// The last windows.
    Windows,
    /// The last passes of the workload.
    Passes,
    /// The means of the last spans of windows, while windows alternate or scatter.
    Spans {
        /// Windows of a span.
        windows: u64,
        /// From the least window of the spans to the most, as a share of their mean.
        apart: f64,
    },
}

/// Counters of the host's side that explain others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Requests whose range did not begin or did not end on a mapping unit.
    pub misaligned_requests: u64,
    /// Commands that ended with an error.
    pub failed_requests: u64,
    /// Sectors read that had never been written, or had been trimmed.
    pub unmapped_sectors_read: u64,
    /// Sectors trimmed that held data.
    pub trimmed_mapped_sectors: u64,
    /// Bytes programmed only to fill pages up.
    pub padding_bytes: u64,
}

/// An invariant, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// A stable key.
    pub name: String,
    /// Whether it holds. Earlier versions wrote `held`.
    #[serde(alias = "held")]
    pub passed: bool,
    /// The numbers, as a sentence.
    pub detail: String,
}

/// The run in some hundred intervals of equal length: columns of the same length, an entry for each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What the intervals divide: `time` (nanoseconds), or `requests` for a drive that takes no time.
    pub axis: String,
    /// Length of an interval, in the axis's unit; the last may be shorter.
    pub interval: u64,
    /// Virtual time at the interval's end.
    pub time_ns: Vec<u64>,
    /// Requests completed up to the interval's end.
    pub requests_total: Vec<u64>,
    /// Requests completed in the interval.
    pub requests: Vec<u64>,
    /// Bytes read.
    pub read_bytes: Vec<u64>,
    /// Bytes written.
    pub write_bytes: Vec<u64>,
    /// Requests a second.
    pub iops: Vec<f64>,
    /// Mean latency of the requests that completed in the interval; `null` without any.
    pub latency_mean_ns: Vec<Option<f64>>,
    /// Their 99th percentile, within 7 % above.
    pub latency_p99_ns: Vec<Option<u64>>,
    /// The longest.
    pub latency_max_ns: Vec<Option<u64>>,
    /// Latencies of each kind of request that occurred: `read`, `write`, `trim`, `flush`.
    #[serde(default)]
    pub latency_by_op: BTreeMap<String, OpTimeline>,
    /// Write amplification; `null` where the host wrote nothing.
    pub write_amplification: Vec<Option<f64>>,
    /// Pages read from flash, by cause.
    pub reads: ByCause<Vec<u64>>,
    /// Pages programmed or copied back, by cause.
    pub programs: ByCause<Vec<u64>>,
    /// Blocks erased.
    pub erases: Vec<u64>,
    /// Time that host writes waited for garbage collection.
    pub gc_stall_ns: Vec<u64>,
    /// Pages in the write buffer at the end of the interval.
    #[serde(default)]
    pub buffer_pages: Vec<u64>,
    /// Of them partial.
    #[serde(default)]
    pub buffer_partial_pages: Vec<u64>,
    /// Map pages asked for that were cached, as a share of all that were asked for; `null` where none was, and empty for a drive
    /// that holds all of its map in RAM.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map_hit_ratio: Vec<Option<f64>>,
}

/// A cumulative distribution: `fraction[i]` of the requests took at most `latency_ns[i]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cdf {
    /// Nanoseconds, rising.
    pub latency_ns: Vec<u64>,
    /// Shares, rising to 1.
    pub fraction: Vec<f64>,
}

impl DeviceResult {
    /// Requests that the drives took, by kind (read, write, trim, flush): below layers others than the workload's.
    pub(crate) fn taken_by_drives(&self) -> [u64; 4] {
        let PerOp { read, write, trim, flush } = self.requests;
        self.to_drives(|layer| layer.below).map_or([read, write, trim, flush], |taken| taken.requests)
    }

    /// What the layers sent to the drives; nothing without layers.
    pub(crate) fn sent_to_drives(&self) -> Option<Traffic> {
        self.to_drives(|layer| layer.sent)
    }

    /// Whether a drive was there: a stack of disks has no flash to tell of.
    pub fn has_drives(&self) -> bool {
        self.disks.is_empty() || self.capacity.flash_bytes > 0
    }

    /// Of what the layers have below them, what the drives have: all layers but the topmost take what another one sent, and
    /// disks take the rest.
    fn to_drives(&self, of: impl Fn(&LayerMetrics) -> Traffic) -> Option<Traffic> {
        let (top, others) = self.host_layers.split_first()?;
        let mut traffic = of(top);
        others.iter().for_each(|layer| traffic.merge(&of(layer)));
        let less = |all: &mut [u64; 4], part: &[u64; 4]| {
            all.iter_mut().zip(part).for_each(|(all, part)| *all = all.saturating_sub(*part));
        };
        for layer in others {
            less(&mut traffic.requests, &layer.taken.requests);
            less(&mut traffic.bytes, &layer.taken.bytes);
        }
        for disk in &self.disks {
            let taken = disk.taken();
            less(&mut traffic.requests, &taken.requests);
            less(&mut traffic.bytes, &taken.bytes);
        }
        Some(traffic)
    }

    /// How much of a victim was valid when it was chosen, as a share of 1 and a mean over all victims, below layers of all
    /// drives; nothing where none was collected.
    pub fn victim_valid_share(&self) -> Option<f64> {
        const SHARE: &str = "victim_valid_share";
        if self.gc.victims() == 0 {
            return None;
        }
        if let Some(&share) = self.design.get(SHARE) {
            return Some(share);
        }
        // Of several drives each metric is preceded by its drive's name.
        let of_drives = self.design.iter().filter_map(|(key, share)| Some((key.strip_suffix(SHARE)?, *share)));
        let count = |drive: &str, what: &str| self.design.get(&format!("{drive}{what}")).copied().unwrap_or(0.0);
        let (valid, victims) = of_drives.fold((0.0, 0.0), |(valid, all), (drive, share)| {
            let victims = count(drive, "victims_foreground") + count(drive, "victims_background");
            (valid + share * victims, all + victims)
        });
        (victims > 0.0).then(|| valid / victims)
    }
}

impl Precondition {
    /// How often it wrote the capacity; nothing where it wrote nothing, and in older results.
    pub fn drive_writes(&self) -> Option<f64> {
        (self.written_bytes > 0 && self.capacity_bytes > 0)
            .then(|| self.written_bytes as f64 / self.capacity_bytes as f64)
    }
}

impl Throughput {
    /// Rates over so many nanoseconds; zero over none.
    pub(crate) fn over(requests: &PerOp<u64>, bytes: &PerOp<u64>, span_ns: u64) -> Throughput {
        if span_ns == 0 {
            return Throughput::default();
        }
        let seconds = span_ns as f64 / 1e9;
        Throughput {
            iops: requests.total() as f64 / seconds,
            read_iops: requests.read as f64 / seconds,
            write_iops: requests.write as f64 / seconds,
            read_bytes_per_s: bytes.read as f64 / seconds,
            write_bytes_per_s: bytes.write as f64 / seconds,
        }
    }
}

impl RunResult {
    /// Whether every check of every drive holds.
    pub fn checks_held(&self) -> bool {
        self.devices.iter().all(|device| device.checks.iter().all(|check| check.passed))
    }
}

/// What became of the commands of a drive's own set; `requests` and latencies have them under what carried them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commands {
    /// The set's name.
    pub set: String,
    /// By the command's name.
    pub by_name: BTreeMap<String, CommandCount>,
    /// Events that the drive sent.
    pub events: u64,
    /// Events that were sent and not acknowledged at the end.
    pub events_unacknowledged: u64,
}

/// How often a command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCount {
    /// In all.
    pub completed: u64,
    /// Completed commands that were refused for a reason of the set's.
    pub refused: u64,
    /// Completed commands with any status but success.
    pub failed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_read_under_its_name_of_earlier_versions_too() {
        for key in ["passed", "held"] {
            let text = format!(r#"{{ "name": "requests", "{key}": true, "detail": "9 of 9" }}"#);
            let check: Check = serde_json::from_str(&text).expect("a check");
            assert!(check.passed, "{key}");
        }
        let check = Check { name: "requests".into(), passed: false, detail: "8 of 9".into() };
        let text = serde_json::to_string(&check).expect("a check");
        assert_eq!(text, r#"{"name":"requests","passed":false,"detail":"8 of 9"}"#);
    }
}

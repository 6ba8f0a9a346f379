//! How long requests took, and what they waited for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A figure for each kind of command (write zeroes count as trims).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerOp<T> {
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Trims and write zeroes.
    pub trim: T,
    /// Flushes.
    pub flush: T,
}

/// Latency summaries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Over all requests.
    pub all: Option<LatencySummary>,
    /// Of reads.
    pub read: Option<LatencySummary>,
    /// Of writes.
    pub write: Option<LatencySummary>,
    /// Of trims and write zeroes.
    pub trim: Option<LatencySummary>,
    /// Of flushes.
    pub flush: Option<LatencySummary>,
}

/// What requests waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyBreakdown {
    /// For each kind of request that occurred: `read`, `write`, `trim`, `flush`.
    pub ops: BTreeMap<String, OpBreakdown>,
    /// The slowest requests, the slowest first, as many as were asked for.
    pub slowest: Vec<SlowRequest>,
}

/// What requests of one kind waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpBreakdown {
    /// Over all of them.
    pub mean: LatencySplit,
    /// Over the slowest of them: `p50` (the slower half), `p90`, `p99`, `p999`, `p9999` (the slowest in ten thousand).
    pub tails: BTreeMap<String, LatencySplit>,
}

/// The mean latency of some requests, and its parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySplit {
    /// The least latency of them.
    pub from_ns: u64,
    /// How many they are: all that took `from_ns` or longer.
    pub requests: u64,
    /// The mean of their latencies.
    pub mean_ns: f64,
    /// Its parts: the mean time of each, which add up to it.
    pub parts_ns: BTreeMap<String, f64>,
}

/// A request and what it waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowRequest {
    /// What it was.
    pub op: String,
    /// Its first sector.
    pub sector: u64,
    /// Its length.
    pub sectors: u64,
    /// When it was sent.
    pub submitted_ns: u64,
    /// How long it took.
    pub latency_ns: u64,
    /// What that time was, in order.
    pub waits: Vec<Wait>,
}

/// A stretch of a request's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// What it was.
    pub part: String,
    /// How long.
    pub ns: u64,
}

/// Latencies of one kind of request over time, a value for each interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpTimeline {
    /// Requests of the kind that completed.
    pub requests: Vec<u64>,
    /// Their mean latency; `null` without any.
    pub latency_mean_ns: Vec<Option<f64>>,
    /// Their 99th percentile, within 7 % above.
    pub latency_p99_ns: Vec<Option<u64>>,
    /// The longest.
    pub latency_max_ns: Vec<Option<u64>>,
}

/// A latency distribution in a few numbers, in nanoseconds: mean, least and most are exact, percentiles are within
/// 0.1 % above.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// How many requests.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// 90 % take at most this.
    pub p90: u64,
    /// 95 % take at most this.
    pub p95: u64,
    /// 99 % take at most this.
    pub p99: u64,
    /// 99.9 % take at most this.
    pub p999: u64,
    /// 99.99 % take at most this.
    pub p9999: u64,
    /// The most.
    pub max: u64,
}

impl PerOp<u64> {
    /// Over all kinds.
    pub(crate) fn total(&self) -> u64 {
        self.read + self.write + self.trim + self.flush
    }
}

//! A run in a few sentences, made from its results: which drive is slowest and what its time goes into, what a written byte
//! costs, what the slowest requests wait for and which key would change it, and how long the drive lasts.
//!
//! Every sentence is made of figures that stand in the result; where they carry none, there is none.

use std::collections::BTreeMap;

use serde_json::Value;
use ssdlab_base::Nanos;

use crate::breakdown::text::{label, parts_in};
use crate::checks::percent;
use crate::result::{DeviceResult, LatencySplit, LatencySummary, RunResult, WriteAmplification};
use crate::table::{three_digits, volume};
use crate::text::clipped;

/// Part of a latency from which it is named.
const PART_TO_NAME: f64 = 0.1;

/// Parts of a latency that are named.
const PARTS_NAMED: usize = 3;

/// How far two drives must be apart to be called faster and slower.
const APART: f64 = 1.05;

/// How many times the median a percentile is to be worth a sentence.
const TAIL_TO_NAME: f64 = 5.0;

/// Characters of a drive's name.
const NAME_MAX: usize = 60;

/// Share of the time from which chips count as always at work.
const BUSY: f64 = 0.9;

/// Requests of a tail from which it is spoken of.
const TAIL_REQUESTS: u64 = 10;

/// The sentences, the most general first.
pub fn conclusions(run: &RunResult) -> Vec<String> {
    let served = |device: &&DeviceResult| device.latency_ns.all.is_some_and(|all| all.count > 0);
    let devices: Vec<&DeviceResult> = run.devices.iter().filter(served).collect();
    let timed = devices.iter().filter(|device| device.timed && mean_latency(device) > 0.0);
    let slowest = timed.clone().max_by(|a, b| mean_latency(a).total_cmp(&mean_latency(b)));
    let fastest = timed.min_by(|a, b| mean_latency(a).total_cmp(&mean_latency(b)));
    let mut said = Vec::new();
    if let (Some(slowest), Some(fastest)) = (slowest, fastest) {
        said.push(speed(slowest, fastest, devices.len()));
    }
    said.extend(writes(&devices));
    if let Some(slowest) = slowest {
        said.extend(["read", "write"].iter().filter_map(|op| tail(slowest, op, devices.len() > 1)));
    }
    said.extend(lasts(&devices));
    said
}

/// Which drive is slowest, by how much, and what its time goes into.
fn speed(slowest: &DeviceResult, fastest: &DeviceResult, drives: usize) -> String {
    let takes = time(mean_latency(slowest));
    let ratio = mean_latency(slowest) / mean_latency(fastest);
    let who = match drives {
        1 => format!("A request takes {takes} on average"),
        _ if ratio < APART => format!("A request takes {takes} on average, on all {drives} drives within 5 %"),
        _ => format!(
            "{} is the slowest: a request takes {takes} on average, {} times as long as on {}",
            name(slowest),
            three_digits(ratio),
            name(fastest)
        ),
    };
    let into = match time_by_part(slowest) {
        Some(parts) => largest(parts).map_or_else(String::new, |parts| format!("; of that time {parts}")),
        None => busy(slowest),
    };
    format!("{who}{into}.")
}

/// The mean latency of all requests in nanoseconds; 0 where there is none.
fn mean_latency(device: &DeviceResult) -> f64 {
    device.latency_ns.all.map_or(0.0, |all| all.mean)
}

/// The largest parts of a latency with their shares; nothing where all are small. `parts` begin with the largest.
fn largest<'a>(parts: impl IntoIterator<Item = (&'a str, f64)>) -> Option<String> {
    let large = parts.into_iter().take_while(|(_, share)| *share >= PART_TO_NAME).take(PARTS_NAMED);
    let named: Vec<String> = large.map(|(part, share)| format!("{} {}", percent(share), in_a_sentence(part))).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// All parts of the latencies of all requests by share, the largest first; nothing without a breakdown.
fn time_by_part(device: &DeviceResult) -> Option<Vec<(&str, f64)>> {
    let breakdown = device.latency_breakdown.as_ref()?;
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    for split in breakdown.ops.values().map(|op| &op.mean) {
        for (part, ns) in &split.parts_ns {
            *parts.entry(part).or_default() += ns * split.requests as f64;
        }
    }
    let all: f64 = parts.values().sum();
    let mut shares: Vec<(&str, f64)> =
        parts.into_iter().map(|(part, ns)| (part, if all > 0.0 { ns / all } else { 0.0 })).collect();
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Some(shares)
}

/// A part of a latency, with what the request waited for at its end.
fn in_a_sentence(key: &str) -> String {
    let Some((stage, part)) = key.split_once('/') else { return label(key) };
    let what = match stage {
        "buffer_full" => "for space in the write buffer",
        "no_free_block" => "for a free block",
        "overlap" => "behind an earlier request to the same sectors",
        "map" => "for a page of the map",
        "records" => "for the drive's records",
        _ => return label(key),
    };
    format!("{} {what}", label(part))
}

/// What was at work, and what requests waited for as far as it is counted without a breakdown.
fn busy(device: &DeviceResult) -> String {
    let latencies = device.latency_ns.all.map_or(0.0, |all| all.mean * all.count as f64);
    let share = |ns: u64| if latencies > 0.0 { ns as f64 / latencies } else { 0.0 };
    let waits = [
        (share(device.gc.stall_ns), "for a free block"),
        (share(device.map_cache.as_ref().map_or(0, |map| map.wait_ns)), "for a page of the map"),
    ];
    let named = waits.iter().filter(|(share, _)| *share >= PART_TO_NAME);
    let named: Vec<String> = named.map(|(share, what)| format!("{} {what}", percent(*share))).collect();
    let waits = if named.is_empty() { String::new() } else { format!(", of which it waits {}", named.join(" and ")) };
    format!(
        "{waits}; dies are busy for {} of the run, channels for {}",
        percent(dies_busy(device)),
        percent(mean_of(&device.utilization.channels))
    )
}

fn dies_busy(device: &DeviceResult) -> f64 {
    mean_of(&device.utilization.dies)
}

fn mean_of(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// What a written byte costs, by cause, beside theory.
fn writes(devices: &[&DeviceResult]) -> Option<String> {
    let amplified = |device: &&&DeviceResult| device.write_amplification.as_ref().is_some_and(|wa| wa.total > 0.0);
    let total = |device: &DeviceResult| device.write_amplification.as_ref().map_or(0.0, |wa| wa.total);
    let writing = devices.iter().filter(amplified);
    let most = writing.clone().max_by(|a, b| total(a).total_cmp(&total(b)))?;
    let least = writing.min_by(|a, b| total(a).total_cmp(&total(b)))?;
    // Theory is of a drive that collects.
    let collects = most.gc.foreground_victims + most.gc.background_victims > 0;
    let theory = most.theory.as_ref().filter(|_| collects).map_or_else(String::new, |theory| {
        format!("; theory has {:.3} ({})", theory.write_amplification, theory.model)
    });
    let of = most.write_amplification.as_ref().map(causes).unwrap_or_default();
    Some(match devices.len() {
        1 => format!("Write amplification is {:.3}: {of}{theory}.", total(most)),
        _ if total(most) / total(least) < APART => {
            format!("Write amplification is {:.3} on all drives within 5 %: {of}{theory}.", total(most))
        }
        _ => format!(
            "Write amplification is between {:.3} on {} and {:.3} on {}: there {of}{theory}.",
            total(least),
            name(least),
            total(most),
            name(most)
        ),
    })
}

/// The parts of write amplification, the largest first.
fn causes(amplification: &WriteAmplification) -> String {
    let mut parts: Vec<(&str, f64)> = amplification
        .by_cause
        .iter()
        .filter(|(_, part)| **part >= 0.0005)
        .map(|(cause, part)| (cause.as_ref(), *part))
        .collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let named: Vec<String> = parts.iter().map(|(cause, part)| format!("{part:.3} {}", in_words(cause))).collect();
    named.join(", ")
}

/// What programs for a cause are for.
fn in_words(cause: &str) -> String {
    match cause {
        "host" => "for the host".to_string(),
        "gc" => "by garbage collection".to_string(),
        "mapping" => "for pages of the map".to_string(),
        "metadata" => "for the drive's own records".to_string(),
        "rmw" => "by read-modify-write".to_string(),
        "merge" => "by merges".to_string(),
        "parity" => "for parity".to_string(),
        "wear_levelling" => "by wear levelling".to_string(),
        other => format!("for {}", other.replace('_', " ")),
    }
}

/// What the slowest requests of a kind wait for, and what would change it.
fn tail(device: &DeviceResult, op: &str, is_one_of_several: bool) -> Option<String> {
    let whose = if is_one_of_several { format!(" of {}", name(device)) } else { String::new() };
    let Some(breakdown) = &device.latency_breakdown else { return unexplained_tail(device, op, &whose) };
    let of = breakdown.ops.get(op)?;
    let tails = &of.tails;
    let enough = |key: &str| tails.get(key).filter(|tail| tail.requests >= TAIL_REQUESTS && tail.mean_ns > 0.0);
    let split = enough("p999").or(enough("p99"))?;
    // Many requests may take as long as the percentile: then the tail is more than its name says.
    let part = three_digits(split.requests as f64 / of.mean.requests.max(1) as f64 * 100.0);
    let share = |key: &str| split.parts_ns.get(key).map_or(0.0, |ns| ns / split.mean_ns);
    let named = largest(parts_in(&[("", split)]).into_iter().map(|key| (key, share(key))))?;
    let change =
        remedy(split, op, device).map_or_else(String::new, |keys| format!("; {keys} would change what waits for it"));
    Some(format!(
        "The slowest {part} % of the {op}s{whose} take {} or longer, {} on average: {}{change}.",
        Nanos(split.from_ns),
        time(split.mean_ns),
        named
    ))
}

/// That there is a tail, where nothing says what it waits for.
fn unexplained_tail(device: &DeviceResult, op: &str, whose: &str) -> Option<String> {
    let summary: LatencySummary = match op {
        "read" => device.latency_ns.read?,
        _ => device.latency_ns.write?,
    };
    let (tail, median) = (summary.p999 as f64, summary.p50 as f64);
    let has_tail = summary.count >= 1_000 * TAIL_REQUESTS && median > 0.0 && tail >= TAIL_TO_NAME * median;
    has_tail.then(|| {
        format!(
            "The slowest 0.1 % of the {op}s{whose} take {} or longer, {:.0} times the median: --latency-breakdown says what they \
             wait for.",
            Nanos(summary.p999),
            tail / median
        )
    })
}

/// What a group of parts is behind, and the key of a description that changes that.
struct Remedy {
    /// Whether a part belongs to it.
    parts: fn(&str) -> bool,
    /// The operation whose tail it changes; empty for all.
    op: &'static str,
    /// The key, with the value it would have; nothing where the drive has it already.
    key: fn(&DeviceResult) -> Option<&'static str>,
}

const REMEDIES: [Remedy; 8] = [
    Remedy {
        parts: |part| part.starts_with("behind_erase"),
        op: "read",
        key: |drive| (!is_on(drive, "/flash/erase_suspend")).then_some("flash.erase_suspend"),
    },
    Remedy {
        parts: |part| part.starts_with("behind_program") || part.starts_with("behind_read_gc"),
        op: "read",
        key: |drive| match word(drive, "/flash/scheduler") {
            "fifo" | "single-fifo" => Some("flash.scheduler = \"reads-first\""),
            _ => (!is_on(drive, "/flash/program_suspend")).then_some("flash.program_suspend"),
        },
    },
    Remedy {
        parts: |part| part.starts_with("no_free_block/"),
        op: "",
        key: |_| Some("more capacity.over_provisioning"),
    },
    Remedy {
        parts: |part| part.starts_with("buffer_full/"),
        op: "",
        key: |drive| match word(drive, "/buffer/destage") {
            "on-demand" => Some("buffer.destage = \"watermark\""),
            // Behind chips that are always at work no buffer is large enough.
            _ => (dies_busy(drive) < BUSY).then_some("a larger buffer.size"),
        },
    },
    Remedy { parts: |part| part.starts_with("map/"), op: "", key: |_| Some("a larger ftl.map_cache") },
    Remedy { parts: |part| part.starts_with("link"), op: "", key: |_| Some("interface.bandwidth") },
    Remedy {
        parts: |part| part.starts_with("controller"),
        op: "",
        key: |_| Some("interface.processing or interface.command_overhead"),
    },
    Remedy { parts: |part| part == "arbitration", op: "", key: |_| Some("interface.queue_depth") },
];

fn is_on(drive: &DeviceResult, path: &str) -> bool {
    drive.configuration.pointer(path).and_then(Value::as_bool) == Some(true)
}

fn word<'a>(drive: &'a DeviceResult, path: &str) -> &'a str {
    drive.configuration.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The key that changes most of a tail; nothing where no key of a description does.
fn remedy(split: &LatencySplit, op: &str, drive: &DeviceResult) -> Option<&'static str> {
    let share = |remedy: &Remedy| {
        let of: f64 = split.parts_ns.iter().filter(|(part, _)| (remedy.parts)(part)).map(|(_, ns)| ns).sum();
        of / split.mean_ns
    };
    let mut found: Vec<(f64, &Remedy)> = REMEDIES
        .iter()
        .filter(|remedy| remedy.op.is_empty() || remedy.op == op)
        .map(|remedy| (share(remedy), remedy))
        .collect();
    found.retain(|(share, _)| *share >= PART_TO_NAME);
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found.into_iter().find_map(|(_, remedy)| (remedy.key)(drive))
}

/// How long the drive that lasts shortest does.
fn lasts(devices: &[&DeviceResult]) -> Option<String> {
    let of =
        |device: &&&DeviceResult| device.lifetime.map(|lasts| lasts.worst_written_bytes.unwrap_or(lasts.written_bytes));
    let shortest = devices
        .iter()
        .filter(|device| device.lifetime.is_some())
        .min_by(|a, b| of(a).unwrap_or(f64::INFINITY).total_cmp(&of(b).unwrap_or(f64::INFINITY)))?;
    let lasts = shortest.lifetime?;
    let who = if devices.len() == 1 { "The drive".to_string() } else { name(shortest) };
    let span = |years: f64| match years {
        _ if years < 1.0 => format!("{} days", three_digits(years * 365.25)),
        _ => format!("{} years", three_digits(years)),
    };
    let years = lasts.years.map_or_else(String::new, |years| format!("{} at this rate, ", span(years)));
    Some(format!(
        "{who} lasts {years}{} written by the host: {} drive writes a day over five years.",
        volume(lasts.written_bytes),
        three_digits(lasts.drive_writes_per_day)
    ))
}

/// A name as a sentence can hold it.
fn name(device: &DeviceResult) -> String {
    clipped(&device.name, NAME_MAX)
}

fn time(ns: f64) -> String {
    Nanos(ns.round() as u64).to_string()
}

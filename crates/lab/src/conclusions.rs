//! A run in a few sentences, made from its results: which drive is slowest and what its time goes into, what a written byte
//! costs, what the slowest requests wait for and which key would change it, and how long the drive lasts.
//!
//! Every sentence is made of figures that stand in the result; where they carry none, there is none.

mod remedies;

use std::collections::BTreeMap;

use ssdlab_base::{Nanos, Op};

use crate::breakdown::OPS;
use crate::breakdown::text::{label, parts_in, plural};
use crate::result::{DeviceResult, LatencyBreakdown, LatencySplit, LatencySummary, OpBreakdown, RunResult};
use crate::table::{three_digits, volume};
use crate::text::{clipped, percent};
use crate::variants::{Difference, Spread, by_variant, differences};

use remedies::{remedy, word};

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

/// Percent of all requests from which a tail is most of them.
const MOST: f64 = 50.0;

/// Write amplification of a cause from which it costs something.
const COSTS: f64 = 0.1;

/// The key of the victim policy.
const VICTIM: &str = "gc.victim";

/// Requests of a tail from which it is spoken of.
const TAIL_REQUESTS: u64 = 10;

/// Times as long that requests of a kind must take on another drive to be named beside the mean over all.
const FAR_APART: f64 = 1.5;

/// What a write waits for where pages are free and `gc.pacing` keeps them back.
const PACED: &str = "for garbage collection to keep pace";

/// A drive of the run with its repetitions: a run that was not repeated has one of each.
struct Drive<'a> {
    name: &'a str,
    repetitions: Vec<&'a DeviceResult>,
}

impl Drive<'_> {
    /// The mean of a figure over the repetitions; nothing where one of them has none.
    fn mean(&self, of: impl Fn(&DeviceResult) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = self.repetitions.iter().map(|device| of(device)).collect();
        Spread::of(&values?).map(|spread| spread.mean)
    }

    /// The mean latency of all requests in nanoseconds; 0 where there is none.
    fn latency(&self) -> f64 {
        self.mean(|device| device.latency_ns.all.map(|all| all.mean)).unwrap_or(0.0)
    }

    fn amplification(&self) -> f64 {
        self.mean(|device| device.write_amplification.as_ref().map(|of| of.total)).unwrap_or(0.0)
    }

    fn is_timed(&self) -> bool {
        self.repetitions.iter().all(|device| device.timed)
    }

    /// Any of the repetitions, for what they have in common.
    fn any(&self) -> &DeviceResult {
        self.repetitions[0]
    }

    /// Its name as a sentence can hold it.
    fn name(&self) -> String {
        clipped(self.name, NAME_MAX)
    }
}

/// The sentences, the most general first.
pub fn conclusions(run: &RunResult) -> Vec<String> {
    let served = |device: &DeviceResult| device.latency_ns.all.is_some_and(|all| all.count > 0);
    let drives: Vec<Drive<'_>> = by_variant(run)
        .into_iter()
        .filter(|(_, repetitions)| repetitions.iter().all(|device| served(device)))
        .map(|(name, repetitions)| Drive { name, repetitions })
        .collect();
    let timed: Vec<&Drive<'_>> = drives.iter().filter(|drive| drive.is_timed() && drive.latency() > 0.0).collect();
    let mut said = Vec::new();
    if let Some((slowest, fastest)) = apart(&timed, |drive| Some(drive.latency())) {
        said.push(speed(slowest, fastest, drives.len()));
        said.extend(speed_by_kind(&timed, slowest));
    }
    said.extend(writes(&drives));
    said.extend(victims(run, &drives));
    said.extend(tails(&timed, drives.len() > 1));
    said.extend(lasts(&drives));
    let repetitions = drives.iter().map(|drive| drive.repetitions.len()).max().unwrap_or(0);
    if repetitions > 1 && !said.is_empty() {
        said.insert(0, format!("What follows are means over {repetitions} repetitions."));
    }
    said
}

/// The drives with the most and the least of something that all have.
fn apart<'a, 'r>(
    drives: &[&'a Drive<'r>],
    of: impl Fn(&Drive<'_>) -> Option<f64>,
) -> Option<(&'a Drive<'r>, &'a Drive<'r>)> {
    let values: Option<Vec<(f64, &Drive<'_>)>> = drives.iter().map(|drive| Some((of(drive)?, *drive))).collect();
    let values = values?;
    let (_, most) = values.iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let (_, least) = values.iter().min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some((most, least))
}

/// The latencies of a kind of request.
fn latencies(device: &DeviceResult, op: &str) -> Option<LatencySummary> {
    let latencies = &device.latency_ns;
    match op {
        "read" => latencies.read,
        "write" => latencies.write,
        "trim" => latencies.trim,
        _ => latencies.flush,
    }
}

/// That reads or writes take far longer on another drive than the one that is slowest over all requests: a mean over
/// both hides it.
fn speed_by_kind(drives: &[&Drive<'_>], slowest_of_all: &Drive<'_>) -> Option<String> {
    let kind = |op: &str| {
        let takes = |drive: &Drive<'_>| drive.mean(|device| latencies(device, op).map(|of| of.mean));
        let (slowest, fastest) = apart(drives, takes)?;
        let ratio = takes(slowest)? / takes(fastest)?;
        let is_hidden = slowest.name != slowest_of_all.name && ratio.is_finite() && ratio >= FAR_APART;
        is_hidden.then(|| {
            format!(
                "{} take {} on {}, {} times as long as on {}",
                plural(op),
                time(takes(slowest).unwrap_or_default()),
                slowest.name(),
                three_digits(ratio),
                fastest.name()
            )
        })
    };
    let found: Vec<String> = ["read", "write"].into_iter().filter_map(kind).collect();
    (!found.is_empty()).then(|| format!("But {}.", found.join(", and ")))
}

/// Which drive is slowest, by how much, and what its time goes into.
fn speed(slowest: &Drive<'_>, fastest: &Drive<'_>, drives: usize) -> String {
    let takes = time(slowest.latency());
    let ratio = slowest.latency() / fastest.latency();
    let who = match drives {
        1 => format!("A request takes {takes} on average"),
        _ if ratio < APART => format!("A request takes {takes} on average, on all {drives} drives within 5 %"),
        _ => format!(
            "{} is the slowest: a request takes {takes} on average, {} times as long as on {}",
            slowest.name(),
            three_digits(ratio),
            fastest.name()
        ),
    };
    let into = match time_by_part(slowest) {
        Some(parts) => largest(parts).map_or_else(String::new, |parts| format!("; of that time {parts}")),
        None => busy(slowest),
    };
    format!("{who}{into}.")
}

/// The largest parts of a latency with their shares; nothing where all are small. `parts` begin with the largest.
fn largest<'a>(parts: impl IntoIterator<Item = (&'a str, f64)>) -> Option<String> {
    let large = parts.into_iter().take_while(|(_, share)| *share >= PART_TO_NAME).take(PARTS_NAMED);
    let named: Vec<String> = large.map(|(part, share)| format!("{} {}", percent(share), in_a_sentence(part))).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// All parts of the latencies of all requests by share, the largest first; nothing without a breakdown.
fn time_by_part<'a>(drive: &Drive<'a>) -> Option<Vec<(&'a str, f64)>> {
    let breakdowns = drive.repetitions.iter().map(|device| device.latency_breakdown.as_ref());
    let breakdowns: Vec<&LatencyBreakdown> = breakdowns.collect::<Option<_>>()?;
    let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
    for split in breakdowns.iter().flat_map(|breakdown| breakdown.ops.values()).map(|op| &op.mean) {
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
    let Some((stage, part)) = key.split_once('/') else {
        return match key {
            "host_layers" => "in the host's layers".to_string(),
            "layer_overlap" => "in a layer, behind an earlier request to the same sectors".to_string(),
            "layer_space" => "in a layer, for space that it has to free".to_string(),
            "layer_copy" => "in a layer, for a copy of the same sectors".to_string(),
            _ => label(key),
        };
    };
    let what = match stage {
        "buffer_full" => "for space in the write buffer",
        "no_free_block" => "for a free block",
        "gc_pace" => PACED,
        "overlap" => "behind an earlier request to the same sectors",
        "map" => "for a page of the map",
        "records" => "for the drive's records",
        _ => return label(key),
    };
    format!("{} {what}", label(part))
}

/// What was at work, and what requests waited for as far as it is counted without a breakdown.
fn busy(drive: &Drive<'_>) -> String {
    let sum = |of: &dyn Fn(&DeviceResult) -> f64| drive.repetitions.iter().map(|device| of(device)).sum::<f64>();
    let latencies = sum(&|device| device.latency_ns.all.map_or(0.0, |all| all.mean * all.count as f64));
    let share = |ns: f64| if latencies > 0.0 { ns / latencies } else { 0.0 };
    // Below layers a request is several commands, on several drives: their waits are no parts of its own.
    let waited = |of: &dyn Fn(&DeviceResult) -> u64| {
        share(sum(&|device| if device.host_layers.is_empty() { of(device) as f64 } else { 0.0 }))
    };
    let is_paced = word(drive.any(), "/gc/pacing") != "off";
    let waits = [
        (waited(&|device| device.gc.stall_ns), if is_paced { PACED } else { "for a free block" }),
        (waited(&|device| device.map_cache.as_ref().map_or(0, |map| map.wait_ns)), "for a page of the map"),
    ];
    let named = waits.iter().filter(|(share, _)| *share >= PART_TO_NAME);
    let named: Vec<String> = named.map(|(share, what)| format!("{} {what}", percent(*share))).collect();
    let waits = if named.is_empty() { String::new() } else { format!(", of which it waits {}", named.join(" and ")) };
    if !drive.any().has_drives() {
        return waits;
    }
    format!(
        "{waits}; dies are busy for {} of the run, channels for {}",
        percent(drive.mean(|device| Some(dies_busy(device))).unwrap_or(0.0)),
        percent(drive.mean(|device| Some(mean_of(&device.utilization.channels))).unwrap_or(0.0))
    )
}

fn dies_busy(device: &DeviceResult) -> f64 {
    mean_of(&device.utilization.dies)
}

fn mean_of(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// What a written byte costs, by cause, beside theory.
fn writes(drives: &[Drive<'_>]) -> Option<String> {
    let writing = drives.iter().filter(|drive| drive.amplification() > 0.0);
    let most = writing.clone().max_by(|a, b| a.amplification().total_cmp(&b.amplification()))?;
    let least = writing.min_by(|a, b| a.amplification().total_cmp(&b.amplification()))?;
    // Theory is of a drive that collects.
    let theory =
        |device: &DeviceResult| Some(device.theory.as_ref().filter(|_| device.gc.victims() > 0)?.write_amplification);
    let model = most.any().theory.as_ref().map_or("", |theory| theory.model.as_str());
    let theory = most.mean(theory).map_or_else(String::new, |theory| format!("; theory has {theory:.3} ({model})"));
    let of = causes(most);
    let (highest, lowest) = (most.amplification(), least.amplification());
    let disks = drives.iter().any(|drive| !drive.any().disks.is_empty());
    let theory = format!("{theory}{}", if disks { "; what disks wrote is not in it" } else { "" });
    Some(match drives.len() {
        1 => format!("Write amplification is {highest:.3}: {of}{theory}."),
        _ if highest / lowest < APART => {
            format!("Write amplification is {highest:.3} on all drives within 5 %; on {}: {of}{theory}.", most.name())
        }
        _ => format!(
            "Write amplification is between {lowest:.3} on {} and {highest:.3} on {}: there {of}{theory}.",
            least.name(),
            most.name()
        ),
    })
}

/// Of drives that differ in nothing but their victim policy, how much of a victim is valid where write amplification is highest
/// and where it is lowest: what is valid has to be moved.
fn victims(run: &RunResult, drives: &[Drive<'_>]) -> Option<String> {
    let differences = differences(run);
    // Keys of one policy, such as gc.choices, are no keys of the others.
    let is_of_policy =
        |of: &Difference| of.key == VICTIM || of.key.starts_with("gc.") && of.values.iter().any(Option::is_none);
    if !differences.iter().any(|of| of.key == VICTIM) || !differences.iter().all(is_of_policy) {
        return None;
    }
    let most = drives.iter().max_by(|a, b| a.amplification().total_cmp(&b.amplification()))?;
    let least = drives.iter().min_by(|a, b| a.amplification().total_cmp(&b.amplification()))?;
    let share = |drive: &Drive<'_>| drive.mean(DeviceResult::victim_valid_share);
    let (more, less) = (share(most)?, share(least)?);
    if most.amplification() < APART * least.amplification() || more <= less {
        return None;
    }
    Some(format!(
        "The drives differ only in {VICTIM}: a victim of {} is {} valid when it is chosen, one of {} {}; what is valid has to \
         be moved.",
        most.name(),
        percent(more),
        least.name(),
        percent(less)
    ))
}

/// The parts of write amplification, the largest first.
fn causes(drive: &Drive<'_>) -> String {
    let mut parts: BTreeMap<String, f64> = BTreeMap::new();
    for device in &drive.repetitions {
        let by_cause = device.write_amplification.iter().flat_map(|amplification| &amplification.by_cause);
        for (cause, part) in by_cause {
            let mut of_layers = if cause == "host" { by_layers(device) } else { Vec::new() };
            if of_layers.iter().map(|(part, _)| part).sum::<f64>() > *part {
                // The drives' buffers took some of it: what they programmed is not told apart.
                of_layers.clear();
            }
            let added: f64 = of_layers.iter().map(|(part, _)| part).sum();
            let workload = if of_layers.is_empty() { in_words(cause) } else { "for the workload".to_string() };
            for (part, words) in of_layers.into_iter().chain([(part - added, workload)]) {
                *parts.entry(words).or_default() += part / drive.repetitions.len() as f64;
            }
        }
    }
    let mut parts: Vec<(String, f64)> = parts.into_iter().filter(|(_, part)| *part >= 0.0005).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let named: Vec<String> = parts.iter().map(|(words, part)| format!("{part:.3} {words}")).collect();
    named.join(", ")
}

/// What the layers above a drive wrote beyond the workload, for each of its bytes: copies of a layer that moves data, and the rest.
fn by_layers(device: &DeviceResult) -> Vec<(f64, String)> {
    let own = device.bytes.write as f64;
    if !device.disks.is_empty() {
        // What a layer sent is not told apart by drives and disks, and some of the workload's bytes went to disks alone.
        let sent = device.sent_to_drives().map_or(0.0, |sent| sent.bytes[Op::Write.class()] as f64);
        return vec![((sent - own).max(0.0) / own, "by layers, beyond what the workload wrote".to_string())];
    }
    let mut parts = Vec::new();
    for layer in &device.host_layers {
        let [sent, taken] = [&layer.sent, &layer.taken].map(|traffic| traffic.bytes[Op::Write.class()] as f64);
        let (added, kind) = ((sent - taken) / own, &layer.kind);
        match layer.copied_bytes() {
            Some(copied) => {
                parts.push((copied / own, format!("for copies by the layer {kind}")));
                parts.push((added - copied / own, format!("for records and parts of units of the layer {kind}")));
            }
            None => parts.push((added, format!("by the layer {kind}"))),
        }
    }
    parts
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

/// What the slowest requests of each kind wait for, the slowest kind first. A flush or a trim that is quicker than every read
/// and write is not worth a sentence.
fn tails(drives: &[&Drive<'_>], are_several: bool) -> Vec<String> {
    let of_drive = |drive: &Drive<'_>, op: &str| {
        let whose = if are_several { format!(" of {}", drive.name()) } else { String::new() };
        let explained = drive.repetitions.iter().all(|device| device.latency_breakdown.is_some());
        if explained { tail(drive, op, &whose) } else { unexplained_tail(drive, op, &whose) }
    };
    // Each kind where its slowest take longest.
    let tail = |op| drives.iter().filter_map(|drive| of_drive(drive, op)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut said: Vec<(f64, bool, String)> =
        OPS.into_iter().filter_map(|op| tail(op).map(|(takes, sentence)| (takes, moves_data(op), sentence))).collect();
    said.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    if let Some(last) = said.iter().rposition(|(_, moves_data, _)| *moves_data) {
        said.truncate(last + 1);
    }
    said.into_iter().map(|(.., sentence)| sentence).collect()
}

fn moves_data(op: &str) -> bool {
    matches!(op, "read" | "write")
}

/// The requests of all repetitions as one split: it begins at the least of their latencies.
fn joined<'a>(splits: impl Iterator<Item = &'a LatencySplit> + Clone) -> LatencySplit {
    let requests = splits.clone().map(|split| split.requests).sum::<u64>();
    let weight = |split: &LatencySplit| split.requests as f64 / requests.max(1) as f64;
    let mut parts_ns: BTreeMap<String, f64> = BTreeMap::new();
    for split in splits.clone() {
        for (part, ns) in &split.parts_ns {
            *parts_ns.entry(part.clone()).or_default() += ns * weight(split);
        }
    }
    LatencySplit {
        from_ns: splits.clone().map(|split| split.from_ns).min().unwrap_or(0),
        requests,
        mean_ns: splits.map(|split| split.mean_ns * weight(split)).sum(),
        parts_ns,
    }
}

/// What the slowest requests of a kind wait for, and what would change it, after their mean latency.
fn tail(drive: &Drive<'_>, op: &str, whose: &str) -> Option<(f64, String)> {
    let breakdowns = drive.repetitions.iter().filter_map(|device| device.latency_breakdown.as_ref());
    let of: Vec<&OpBreakdown> = breakdowns.filter_map(|breakdown| breakdown.ops.get(op)).collect();
    let all = joined(of.iter().map(|of| &of.mean));
    let slowest = |key: &str| {
        let tails: Vec<&LatencySplit> = of.iter().filter_map(|of| of.tails.get(key)).collect();
        let split = joined(tails.iter().copied());
        (split.requests >= TAIL_REQUESTS && split.mean_ns > 0.0).then_some(split)
    };
    let tail = [("p999", 0.1), ("p99", 1.0)].into_iter().find_map(|(key, part)| Some((part, slowest(key)?)));
    let (who, split) = match tail {
        Some((part, split)) => {
            // Many requests may take as long as the percentile: then the tail is more than its name says.
            let really = split.requests as f64 / all.requests.max(1) as f64 * 100.0;
            let who = match really {
                _ if really < 2.0 * part => format!("The slowest {part} %"),
                _ if really < MOST => format!("The slowest {} %", three_digits(really)),
                _ => format!("{} %", three_digits(really)),
            };
            (format!("{who} of the {}{whose} take {} or longer,", plural(op), Nanos(split.from_ns)), split)
        }
        // There are few flushes and trims, but each may take long.
        None if !moves_data(op) && all.mean_ns > 0.0 => match all.requests {
            1 => (format!("The only {op}{whose} takes"), all),
            count => (format!("The {} {}{whose} take", crate::table::count(count), plural(op)), all),
        },
        None => return None,
    };
    let share = |key: &str| split.parts_ns.get(key).map_or(0.0, |ns| ns / split.mean_ns);
    let named = largest(parts_in(&[("", &split)]).into_iter().map(|key| (key, share(key))))?;
    let change = remedy(&split, op, drive.any()).map_or_else(String::new, |change| format!("; {change}"));
    Some((split.mean_ns, format!("{who} {} on average: {named}{change}.", time(split.mean_ns))))
}

/// That there is a tail, where nothing says what it waits for, after how long it takes.
fn unexplained_tail(drive: &Drive<'_>, op: &str, whose: &str) -> Option<(f64, String)> {
    let mean = |op: &str| drive.mean(|device| latencies(device, op).map(|of| of.mean));
    let (takes, sentence) = if moves_data(op) {
        let tail = drive.mean(|device| latencies(device, op).map(|of| of.p999 as f64))?;
        let median = drive.mean(|device| latencies(device, op).map(|of| of.p50 as f64))?;
        let count = drive.repetitions.iter().filter_map(|device| latencies(device, op)).map(|of| of.count).min()?;
        let has_tail = count >= 1_000 * TAIL_REQUESTS && median > 0.0 && tail >= TAIL_TO_NAME * median;
        let sentence = has_tail.then(|| {
            format!(
                "The slowest 0.1 % of the {}{whose} take {} or longer, {} times the median",
                plural(op),
                time(tail),
                crate::table::count((tail / median).round() as u64)
            )
        });
        (tail, sentence?)
    } else {
        let takes = mean(op)?;
        let (other, beside) = ["read", "write"]
            .into_iter()
            .filter_map(|op| Some((op, mean(op)?)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
            .filter(|(_, beside)| *beside > 0.0 && takes >= TAIL_TO_NAME * beside)?;
        let sentence = format!(
            "The {}{whose} take {} on average, {} times as long as the {}",
            plural(op),
            time(takes),
            crate::table::count((takes / beside).round() as u64),
            plural(other)
        );
        (takes, sentence)
    };
    Some((takes, format!("{sentence}: --latency-breakdown says what they wait for.")))
}

/// How long the drives last, by what the host may write: the one that lasts longest, and the one that lasts shortest. Years at
/// the run's rate would call a faster drive the one that lasts shorter.
fn lasts(drives: &[Drive<'_>]) -> Option<String> {
    let mut lasting: Vec<(&Drive<'_>, Lasting)> =
        drives.iter().filter_map(|drive| Some((drive, Lasting::of(drive)?))).collect();
    let span = |lasts: &Lasting| lasts.written_bytes;
    lasting.sort_by(|(_, a), (_, b)| span(a).total_cmp(&span(b)));
    let ((shortest, least), (longest, most)) = (lasting.first()?, lasting.last()?);
    Some(match lasting.len() {
        1 if drives.len() == 1 => format!("The drive lasts {}.", most.in_words(true)),
        1 => format!("{} lasts {}.", longest.name(), most.in_words(true)),
        count if span(most) < APART * span(least) => {
            format!("All {count} drives take as many writes within 5 %: {}.", least.in_words(false))
        }
        _ => {
            // Of drives that are written to at rates of their own, the faster one may be worn out first.
            let same_order = most.years >= least.years;
            format!(
                "{} takes the most writes until it is worn out, {}; {} the fewest, {}{}.",
                longest.name(),
                most.in_words(same_order),
                shortest.name(),
                least.in_words(same_order),
                by_worst(&lasting, longest)
            )
        }
    })
}

/// That another drive lasts longest by its most worn block, where one does.
fn by_worst(lasting: &[(&Drive<'_>, Lasting)], longest: &Drive<'_>) -> String {
    let worst = lasting.iter().filter_map(|(drive, lasts)| Some((drive, lasts.worst_written_bytes?)));
    match worst.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        Some((drive, bytes)) if drive.name != longest.name => {
            format!("; by the most worn block {} takes the most, {}", drive.name(), volume(bytes))
        }
        _ => String::new(),
    }
}

/// How long a drive lasts, over its repetitions.
struct Lasting {
    years: Option<f64>,
    written_bytes: f64,
    worst_written_bytes: Option<f64>,
    drive_writes_per_day: f64,
}

impl Lasting {
    /// Nothing where the drive erased nothing: what a written byte costs in the end is not known then.
    fn of(drive: &Drive<'_>) -> Option<Lasting> {
        if drive.repetitions.iter().any(|device| device.gc.victims() == 0) {
            return None;
        }
        Some(Lasting {
            years: drive.mean(|device| device.lifetime?.years),
            written_bytes: drive.mean(|device| Some(device.lifetime?.written_bytes))?,
            worst_written_bytes: drive.mean(|device| device.lifetime?.worst_written_bytes),
            drive_writes_per_day: drive.mean(|device| Some(device.lifetime?.drive_writes_per_day))?,
        })
    }

    /// What the host may write first; years as the table has them, and days where they are few.
    fn in_words(&self, with_years: bool) -> String {
        let days = |years: f64| match years {
            _ if years < 1.0 => format!(" ({} days)", three_digits(years * 365.25)),
            _ => String::new(),
        };
        let span = |years: f64| format!(", {} years{} at this rate", three_digits(years), days(years));
        format!(
            "{} written by the host, {} drive writes a day over five years{}",
            volume(self.written_bytes),
            three_digits(self.drive_writes_per_day),
            self.years.filter(|_| with_years).map_or_else(String::new, span)
        )
    }
}

fn time(ns: f64) -> String {
    Nanos(ns.round() as u64).to_string()
}

//! What requests waited for, for a terminal: a table for each kind of request, and a line for each of the slowest.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::text::clipped;
use ssdlab_base::Nanos;

use super::OPS;
use crate::result::{LatencyBreakdown, LatencySplit, OpBreakdown, SlowRequest};
use crate::table::count;
use crate::text::percent;

/// Parts below this share in every column are shown together.
const SMALL: f64 = 0.005;

/// Parts of a slow request that are named; the others are shown together.
const NAMED: usize = 4;

/// Requests that make a tail worth a column.
const ENOUGH: u64 = 10;

/// A part's key as a person reads it: `no_free_block/behind_program_gc` is `no free block: behind gc programs`.
pub(crate) fn label(key: &str) -> String {
    let (stage, part) = key.split_once('/').unwrap_or(("", key));
    let behind = part.strip_prefix("behind_").and_then(|rest| rest.split_once('_'));
    let part = match (behind, part.strip_prefix("channel_"), part.strip_prefix("array_")) {
        (Some((kind, cause)), ..) => format!("behind {cause} {kind}s"),
        (_, Some(cause), _) => format!("channel: {cause} data"),
        (.., Some(kind)) => format!("array {kind}"),
        _ => part.to_string(),
    };
    let text = if stage.is_empty() { part } else { format!("{stage}: {part}") };
    text.replace('_', " ")
}

/// Several requests of a kind.
pub(crate) fn plural(op: &str) -> String {
    let ending = if op.ends_with('h') { "es" } else { "s" };
    format!("{op}{ending}")
}

/// Characters of a drive's name above its tables; longer ones are cut.
const NAME_MAX: usize = 60;

/// The tables of a drive.
pub(crate) fn render(drive: &str, breakdown: &LatencyBreakdown) -> String {
    let drive = &clipped(drive, NAME_MAX);
    let mut text = String::new();
    for op in OPS {
        if let Some(of) = breakdown.ops.get(op).filter(|of| of.mean.mean_ns > 0.0) {
            table(&mut text, &format!("{drive}: {}, where the time goes", plural(op)), of);
        }
    }
    if !breakdown.slowest.is_empty() {
        slowest(&mut text, drive, &breakdown.slowest);
    }
    text
}

/// A column for all requests and one for each tail that has some.
pub(crate) fn columns(of: &OpBreakdown) -> Vec<(&'static str, &LatencySplit)> {
    let tails = [("slowest 1 %", "p99"), ("slowest 0.1 %", "p999"), ("slowest 0.01 %", "p9999")];
    let tails = tails.into_iter().filter_map(|(name, key)| Some((name, of.tails.get(key)?)));
    let tails = tails.enumerate().filter(|(place, (_, tail))| *place == 0 || tail.requests >= ENOUGH);
    [("all", &of.mean)].into_iter().chain(tails.map(|(_, column)| column)).collect()
}

fn table(text: &mut String, title: &str, of: &OpBreakdown) {
    let columns = columns(of);
    let time = |ns: f64| Nanos(ns.round() as u64).to_string();
    let row = |label: String, cell: &dyn Fn(&LatencySplit) -> String| {
        (label, columns.iter().map(|(_, split)| cell(split)).collect::<Vec<String>>())
    };
    let mut rows = vec![
        row("requests".to_string(), &|split| count(split.requests)),
        row("that took at least".to_string(), &|split| Nanos(split.from_ns).to_string()),
        row("mean latency".to_string(), &|split| time(split.mean_ns)),
    ];
    let share = |split: &LatencySplit, ns: f64| if split.mean_ns > 0.0 { ns / split.mean_ns } else { 0.0 };
    let cell = |split: &LatencySplit, ns: f64| {
        let share = percent(share(split, ns)).replace("less than", "<");
        format!("{:>9} {share:>8}", time(ns))
    };
    let (large, small): (Vec<_>, Vec<_>) = parts_in(&columns).into_iter().partition(|key| {
        let of = |split: &LatencySplit| split.parts_ns.get(*key).copied().unwrap_or(0.0);
        columns.iter().any(|(_, split)| share(split, of(split)) >= SMALL)
    });
    for key in large {
        rows.push(row(format!("  {}", label(key)), &|split| match split.parts_ns.get(key) {
            Some(ns) => cell(split, *ns),
            None => format!("{:>9} {:>8}", "-", ""),
        }));
    }
    if !small.is_empty() {
        let sum = |split: &LatencySplit| small.iter().filter_map(|key| split.parts_ns.get(*key)).sum::<f64>();
        let parts = if small.len() == 1 { "part" } else { "parts" };
        rows.push(row(format!("  {} small {parts}", small.len()), &|split| cell(split, sum(split))));
    }
    let width = rows.iter().map(|(label, _)| label.chars().count()).chain([title.chars().count()]).max().unwrap_or(0);
    let _ = write!(text, "\n{title:<width$}");
    for (name, _) in &columns {
        let _ = write!(text, "  {name:>18}");
    }
    text.push('\n');
    for (label, cells) in rows {
        let _ = write!(text, "{label:<width$}");
        for cell in cells {
            let _ = write!(text, "  {cell:>18}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
}

/// All parts that occur, those that matter most in the rarest tail first.
pub(crate) fn parts_in<'a>(columns: &[(&str, &'a LatencySplit)]) -> Vec<&'a str> {
    let mut order: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (place, (_, split)) in columns.iter().rev().enumerate() {
        for (key, ns) in &split.parts_ns {
            order.entry(key).or_insert_with(|| vec![0.0; columns.len()])[place] = *ns;
        }
    }
    let mut order: Vec<(&str, Vec<f64>)> = order.into_iter().collect();
    order.sort_by(|(_, a), (_, b)| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
    order.into_iter().map(|(key, _)| key).collect()
}

fn slowest(text: &mut String, drive: &str, requests: &[SlowRequest]) {
    let _ = writeln!(text, "\n{drive}: the slowest requests, and what each waited for (what took longest first)");
    for (place, request) in requests.iter().enumerate() {
        let _ = writeln!(
            text,
            "{:>4}  {:<5}  sector {:>11}, {:>4} sectors, sent at {:>10}  {:>9}: {}",
            place + 1,
            request.op,
            request.sector,
            request.sectors,
            Nanos(request.submitted_ns).to_string(),
            Nanos(request.latency_ns).to_string(),
            waits(request)
        );
    }
}

/// The waits of a request by part, the longest first.
pub(crate) fn waits(request: &SlowRequest) -> String {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for wait in &request.waits {
        match sums.iter_mut().find(|(part, _)| *part == wait.part) {
            Some((_, sum)) => *sum += wait.ns,
            None => sums.push((&wait.part, wait.ns)),
        }
    }
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let named = sums.iter().take(NAMED).map(|(part, sum)| format!("{} {}", label(part), Nanos(*sum)));
    let mut named: Vec<String> = named.collect();
    let others = sums.iter().skip(NAMED).map(|(_, sum)| sum).sum::<u64>();
    if others > 0 {
        named.push(format!("{} others {}", sums.len() - NAMED, Nanos(others)));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Wait;

    #[test]
    fn keys_are_words() {
        assert_eq!(label("behind_program_gc"), "behind gc programs");
        assert_eq!(label("no_free_block/behind_erase_wear_levelling"), "no free block: behind wear levelling erases");
        assert_eq!(label("buffer_full/channel_host"), "buffer full: channel: host data");
        assert_eq!(label("array_read"), "array read");
        assert_eq!(label("link_wait"), "link wait");
        assert_eq!(OPS.map(plural), ["reads", "writes", "trims", "flushes"]);
    }

    #[test]
    fn a_table_has_the_tail_s_largest_part_first_and_joins_the_small_ones() {
        let split = |parts: &[(&str, f64)], requests| LatencySplit {
            from_ns: 1_000,
            requests,
            mean_ns: parts.iter().map(|(_, ns)| ns).sum(),
            parts_ns: parts.iter().map(|(key, ns)| ((*key).to_string(), *ns)).collect(),
        };
        let mean = split(&[("array_read", 60_000.0), ("behind_program_gc", 40_000.0), ("link", 3.0)], 2_000);
        let tail = split(&[("array_read", 60_000.0), ("behind_program_gc", 940_000.0), ("link", 3.0)], 20);
        let rare = split(&[("array_read", 60_000.0)], 2);
        let tails = [("p99", tail), ("p999", rare)].map(|(name, tail)| (name.to_string(), tail)).into();
        let ops = [("read".to_string(), OpBreakdown { mean, tails })].into();
        let waits = [("behind_read_gc", 5_000), ("array_read", 60_000), ("behind_read_gc", 70_000)];
        let slow = SlowRequest {
            op: "read".to_string(),
            sector: 8,
            sectors: 8,
            submitted_ns: 0,
            latency_ns: 135_000,
            waits: waits.map(|(part, ns)| Wait { part: part.to_string(), ns }).to_vec(),
        };
        let text = render("d", &LatencyBreakdown { ops, slowest: vec![slow] });
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("'{words}' in {text}"));
        assert!(at("behind gc programs") < at("array read"), "{text}");
        assert!(at("1 small part") > at("array read"), "{text}");
        assert!(text.contains("slowest 1 %") && !text.contains("0.1 %\n"), "{text}");
        assert!(text.contains("94.0 %"), "{text}");
        assert!(text.contains("behind gc reads 75.0 us, array read 60.0 us"), "{text}");
    }
}

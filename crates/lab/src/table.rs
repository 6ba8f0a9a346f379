//! Drives side by side, as a table for a terminal.

use std::fmt::Write as _;

use crate::text::{clipped, columns, printable};
use ssdlab_base::{Nanos, Op, format_size};
use ssdlab_flash::Cause;
use ssdlab_host::LayerMetrics;

use crate::breakdown;
use crate::checks;
use crate::result::{DeviceResult, LatencySummary, MapCache, RunResult};
use crate::subtests;

/// The widest column of a drive; longer names are cut.
const COLUMN_MAX: usize = 22;

/// A row's label and how it is read from a drive; a row in which every drive has nothing is left out.
type Row = (String, Box<dyn Fn(&DeviceResult) -> Option<String>>);

fn row(label: &str, figure: impl Fn(&DeviceResult) -> Option<String> + 'static) -> Row {
    (label.to_string(), Box::new(figure))
}

/// The table: what was run, a column for each drive, then the checks that did not hold and the warnings.
pub fn render(run: &RunResult) -> String {
    let mut text = String::new();
    if run.devices.is_empty() {
        text.push_str("No drive came to run.\n");
        return text;
    }
    let _ = writeln!(
        text,
        "workload {}, replay {}, precondition {}, {}seed {}\n",
        printable(&run.workload),
        run.replay,
        printable(&run.precondition),
        run.host.as_ref().map_or_else(String::new, |host| format!("host {}, ", printable(host))),
        run.seed
    );
    let rows: Vec<(String, Vec<String>)> = rows()
        .into_iter()
        .filter_map(|(label, figure)| {
            let cells: Vec<Option<String>> = run.devices.iter().map(figure).collect();
            cells
                .iter()
                .any(Option::is_some)
                .then(|| (label, cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_string())).collect()))
        })
        .collect();
    let names = run.devices.iter().map(|device| clipped(&device.name, COLUMN_MAX));
    let heads: Vec<String> = std::iter::once(String::new()).chain(names).collect();
    let rows = rows.into_iter().map(|(label, cells)| std::iter::once(label).chain(cells).collect());
    text.push_str(&columns(&std::iter::once(heads).chain(rows).collect::<Vec<_>>(), 1));
    for device in run.devices.iter().filter(|device| !device.jobs.is_empty()) {
        text.push_str(&crate::jobs::render(&device.name, device.timed, &device.jobs));
    }
    for device in &run.devices {
        if let Some(watched) = &device.ready_busy {
            text.push_str(&crate::ready_busy::render(device, watched));
        }
    }
    for device in &run.devices {
        if let Some(breakdown) = &device.latency_breakdown {
            text.push_str(&breakdown::text::render(&device.name, breakdown));
        }
    }
    remarks(run, &mut text);
    text
}

fn rows() -> Vec<Row> {
    let timed = |figure: fn(&DeviceResult) -> Option<String>| {
        move |device: &DeviceResult| if device.timed { figure(device) } else { None }
    };
    let mut rows = vec![
        row("requests", |d| Some(count(d.requests.read + d.requests.write + d.requests.trim + d.requests.flush))),
        row("  read / write", |d| Some(format!("{} / {}", count(d.requests.read), count(d.requests.write)))),
        row("  trim / flush", |d| {
            (d.requests.trim + d.requests.flush > 0)
                .then(|| format!("{} / {}", count(d.requests.trim), count(d.requests.flush)))
        }),
        row("  commands of the set", |d| {
            let completed = d.commands.as_ref()?.by_name.values().map(|count| count.completed).sum();
            (completed > 0).then(|| count(completed))
        }),
        row("  sent by the layers", |d| d.host_layers.last().map(|layer| count(layer.sent.requests.iter().sum()))),
        row("queue depth", queue_depth),
        row(
            "in flight, mean / max",
            timed(|d| Some(format!("{:.1} / {}", subtests::outstanding_mean(d), count(d.outstanding.max)))),
        ),
        row("IOPS", timed(|d| Some(count(subtests::throughput(d).iops.round() as u64)))),
        row("  variation (CV)", rate_variation),
        row(
            "read MB/s",
            timed(|d| positive(subtests::throughput(d).read_bytes_per_s / 1e6).map(|rate| format!("{rate:.1}"))),
        ),
        row(
            "write MB/s",
            timed(|d| positive(subtests::throughput(d).write_bytes_per_s / 1e6).map(|rate| format!("{rate:.1}"))),
        ),
    ];
    for (name, pick) in [
        ("read latency", (|d| d.latency_ns.read) as fn(&DeviceResult) -> Option<LatencySummary>),
        ("write latency", |d| d.latency_ns.write),
        ("trim latency", |d| d.latency_ns.trim),
        ("flush latency", |d| d.latency_ns.flush),
    ] {
        let latency = move |part: fn(&LatencySummary) -> u64| {
            move |device: &DeviceResult| {
                // Requests that never take time, such as trims on a drive without overhead, are not worth five rows.
                let summary = pick(device).filter(|summary| device.timed && summary.max > 0);
                summary.map(|summary| Nanos(part(&summary)).to_string())
            }
        };
        rows.push(row(&format!("{name}, mean"), latency(|summary| summary.mean.round() as u64)));
        rows.push(row("  p50", latency(|summary| summary.p50)));
        rows.push(row("  p99", latency(|summary| summary.p99)));
        rows.push(row("  p99.9", latency(|summary| summary.p999)));
        rows.push(row("  max", latency(|summary| summary.max)));
    }
    rows.push(row("write amplification", |d| d.write_amplification.as_ref().map(|wa| format!("{:.3}", wa.total))));
    for cause in Cause::ALL {
        rows.push(row(&format!("  {}", cause.key()), move |d| {
            let part = d.write_amplification.as_ref().and_then(|wa| wa.by_cause.get(cause.key()).copied());
            part.and_then(positive).map(|part| format!("{part:.3}"))
        }));
    }
    rows.extend([
        row("  of which padding", padding),
        row("  added by layers", |d| {
            let (sent, own) = (d.host_layers.last()?.sent.bytes[Op::Write.class()] as f64, d.bytes.write as f64);
            (own > 0.0 && sent > own).then(|| format!("{:.3}", (sent - own) / own))
        }),
        row("  theory", |d| d.theory.as_ref().map(|theory| format!("{:.3}", theory.write_amplification))),
        row("flash reads", |d| Some(count(d.flash.reads.total))),
        row("flash programs", |d| Some(count(d.flash.programs.total + d.flash.copybacks.total))),
        row(
            "  multi-plane",
            timed(|d| {
                let together = d.flash.programs.multi_plane.values().sum::<u64>();
                let programs = d.flash.programs.total;
                let pairs = planes_per_die(d) > 1 && programs > 0;
                pairs.then(|| checks::percent(together as f64 / programs as f64))
            }),
        ),
        row("  pages rebuilt", |d| positive(d.flash.rebuilt_pages as f64).map(|_| count(d.flash.rebuilt_pages))),
        row("erases", |d| Some(count(d.flash.erases.total))),
        row("wear min / mean / max", |d| Some(format!("{} / {:.2} / {}", d.erases.min, d.erases.mean, d.erases.max))),
        row("stalled by GC", timed(|d| stalled(d).map(|_| count(d.gc.stalled_commands)))),
        row("  of writes, flushes", timed(|d| stalled(d).and_then(|stalled| part(stalled, not_reads(d))))),
        row("  mean stall", timed(|d| stalled(d).map(|stalled| Nanos(d.gc.stall_ns / stalled).to_string()))),
        row("buffer hits", |d| (d.buffer.hits > 0).then(|| count(d.buffer.hits))),
        row("map cache hits", |d| d.map_cache.as_ref()?.hit_ratio.map(checks::percent)),
        row("  hits / misses", |d| mapped(d).map(|map| format!("{} / {}", count(map.hits), count(map.misses)))),
        row("  misses of host / buffer", |d| mapped(d).map(|map| misses(map, ["host", "buffer"]))),
        row("  misses of GC / log", |d| mapped(d).map(|map| misses(map, ["gc", "log"]))),
        row("  loads / flushes", |d| mapped(d).map(|map| format!("{} / {}", count(map.loads), count(map.flushes)))),
        row("waited for the map", timed(|d| mapped(d).map(|map| count(map.waited_commands)))),
        row("  of all commands", timed(|d| mapped(d).and_then(|map| part(map.waited_commands, all(d))))),
        row("  mean wait", timed(|d| mapped(d)?.wait_mean_ns.map(|mean| Nanos(mean.round() as u64).to_string()))),
        row("channels busy", timed(|d| mean_share(&d.utilization.channels))),
        row("dies busy", timed(|d| mean_share(&d.utilization.dies))),
        row("over-provisioning", |d| Some(format!("{:.1} %", d.over_provisioning.nominal * 100.0))),
        // A drive that ran out of blocks has none to which a closed form applies.
        row("  effective", |d| {
            let effective = || format!("{:.1} %", d.over_provisioning.effective * 100.0);
            Some(if d.read_only { "-".to_string() } else { effective() })
        }),
        row("mapping memory", |d| size_above_zero(maps_in_drive(d))),
        row("  in the host", |d| size_above_zero(maps_in_host(d))),
        row("virtual time", timed(|d| Some(Nanos(d.virtual_time_ns).to_string()))),
        row("  of it idle gaps", |d| {
            Some(subtests::quiet_ns(d)).filter(|&gaps| gaps > 0).map(|ns| Nanos(ns).to_string())
        }),
        row("wall time", |d| Some(format!("{:.2} s", d.wall_time_s))),
    ]);
    rows
}

fn size_above_zero(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| format_size(bytes))
}

/// Bytes of all maps of a drive, without bitmaps.
fn maps_in_drive(d: &DeviceResult) -> u64 {
    let is_map = |name: &str| name.starts_with("map") || name.ends_with("_map_bytes");
    d.memory.iter().filter(|(name, _)| is_map(name)).map(|(_, bytes)| bytes).sum()
}

/// Bytes of the maps and tables of host layers.
fn maps_in_host(d: &DeviceResult) -> u64 {
    let of_layer = |layer: &LayerMetrics| {
        ["map_bytes", "table_bytes"].iter().filter_map(|name| layer.figures.get(*name)).sum::<f64>()
    };
    d.host_layers.iter().map(of_layer).sum::<f64>() as u64
}

/// Commands that are in the drive at most, queue by queue.
fn queue_depth(device: &DeviceResult) -> Option<String> {
    let interface = device.configuration.get("interface")?;
    let (queues, depth) = (interface.get("queues")?.as_u64()?, interface.get("queue_depth")?.as_u64()?);
    Some(if queues == 1 { depth.to_string() } else { format!("{queues} x {depth}") })
}

/// Planes that can work together.
fn planes_per_die(device: &DeviceResult) -> u64 {
    let planes = device.configuration.get("flash").and_then(|flash| flash.get("planes_per_die"));
    planes.and_then(serde_json::Value::as_u64).unwrap_or(1)
}

/// How much the rate varies, and over which intervals; a dozen of them says something.
fn rate_variation(device: &DeviceResult) -> Option<String> {
    const INTERVALS_TO_JUDGE: u64 = 12;
    let variation = &device.rate_variation;
    let cv = variation.cv.filter(|_| variation.intervals >= INTERVALS_TO_JUDGE)?;
    Some(format!("{} of {}", checks::percent(cv), Nanos(variation.interval_ns)))
}

/// Padding for each byte written, in the unit of write amplification.
fn padding(device: &DeviceResult) -> Option<String> {
    let padding = device.host.padding_bytes as f64 / device.bytes.write.max(1) as f64;
    positive(padding).map(|padding| format!("{padding:.3}"))
}

/// Commands that waited for garbage collection, if any did.
fn stalled(device: &DeviceResult) -> Option<u64> {
    Some(device.gc.stalled_commands).filter(|&commands| commands > 0)
}

/// The cache of its map, if somebody asked it for something.
fn mapped(device: &DeviceResult) -> Option<&MapCache> {
    device.map_cache.as_ref().filter(|map| map.hit_ratio.is_some())
}

/// Misses of two that ask.
fn misses(map: &MapCache, askers: [&str; 2]) -> String {
    let [one, other] = askers.map(|asker| count(map.by_asker.get(asker).map_or(0, |requests| requests.misses)));
    format!("{one} / {other}")
}

/// All commands.
fn all(device: &DeviceResult) -> u64 {
    device.requests.read + not_reads(device)
}

/// Commands that can wait for garbage collection.
fn not_reads(device: &DeviceResult) -> u64 {
    device.requests.write + device.requests.trim + device.requests.flush
}

fn part(part: u64, whole: u64) -> Option<String> {
    (whole > 0).then(|| checks::percent(part as f64 / whole as f64))
}

/// Checks that did not hold and warnings; one that several drives share is said once.
fn remarks(run: &RunResult, text: &mut String) {
    let held = run.devices.iter().flat_map(|device| &device.checks).filter(|check| check.held).count();
    let all = run.devices.iter().map(|device| device.checks.len()).sum::<usize>();
    let holding = if held < all { format!("{held} of {all}") } else { format!("All {all}") };
    let _ = writeln!(text, "\n{holding} invariants hold.");
    for device in &run.devices {
        for check in device.checks.iter().filter(|check| !check.held) {
            let _ = writeln!(text, "INVARIANT BROKEN  {}: {}: {}", device.name, check.name, check.detail);
        }
    }
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for device in &run.devices {
        for warning in &device.warnings {
            match said.iter_mut().find(|(sentence, _)| sentence == warning) {
                Some((_, devices)) => devices.push(&device.name),
                None => said.push((warning, vec![&device.name])),
            }
        }
    }
    for (sentence, devices) in said {
        let _ = writeln!(text, "warning  {}: {sentence}", devices.join(", "));
    }
    if !run.complete {
        text.push_str("The run was interrupted: these are the results up to then.\n");
    }
}

/// A count with thin separators a person can read: `1,234,567`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn positive(value: f64) -> Option<f64> {
    (value > 0.0).then_some(value)
}

fn mean_share(shares: &[f64]) -> Option<String> {
    (!shares.is_empty()).then(|| format!("{:.1} %", shares.iter().sum::<f64>() / shares.len() as f64 * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}

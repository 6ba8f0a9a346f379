//! Drives side by side, as a table for a terminal.

mod layers;

use std::fmt::{self, Write as _};

use crate::text::{self, clipped, clipped_apart, columns, decimal_bytes, printable, with_thousands};
use crate::variants::{Spread, by_variant, spread};
use ssdlab_base::{Nanos, Op, format_size, grouped};
use ssdlab_flash::Cause;
use ssdlab_host::LayerMetrics;

use crate::breakdown;
use crate::conclusions::conclusions;
use crate::headline::{Metric, Unit, metrics};
use crate::result::{DeviceResult, LatencySummary, Lifetime, MapCache, RunResult, Settled};
use crate::subtests;

/// The widest column of a drive; longer names are cut so that they differ.
const COLUMN_MAX: usize = 22;

/// Drives that have a column each; more have a row each.
const ABREAST_MAX: usize = 6;

/// Characters of a drive's name in a row of its own.
const NAME_MAX: usize = 60;

/// A row's label and how it is read from a drive; a row in which every drive has nothing is left out.
type Row = (String, Box<dyn Fn(&DeviceResult) -> Option<String>>);

fn row(label: &str, figure: impl Fn(&DeviceResult) -> Option<String> + 'static) -> Row {
    (label.to_string(), Box::new(figure))
}

impl fmt::Display for RunResult {
    /// The table of [`render`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(self))
    }
}

/// The table: what was run, a column for each drive, then the checks that did not hold and the warnings.
pub fn render(run: &RunResult) -> String {
    let mut text = String::new();
    if run.devices.is_empty() {
        text.push_str("No drive came to run.\n");
        return text;
    }
    if let Some(title) = &run.title {
        let _ = writeln!(text, "{}\n", printable(title));
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
    if run.devices.len() > ABREAST_MAX || repetitions(run).is_some() {
        text.push_str(&sideways(run));
    } else {
        text.push_str(&abreast(run));
        run.devices.iter().for_each(|device| text.push_str(&layers::render(device)));
    }
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
    let said = conclusions(run);
    if !said.is_empty() {
        text.push('\n');
        said.iter().for_each(|sentence| text.extend([sentence, "\n"]));
    }
    text
}

/// A column for each drive.
fn abreast(run: &RunResult) -> String {
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
    let names: Vec<String> = run.devices.iter().map(|device| device.name.clone()).collect();
    let heads: Vec<String> = std::iter::once(String::new()).chain(clipped_apart(&names, COLUMN_MAX)).collect();
    let rows = rows.into_iter().map(|(label, cells)| std::iter::once(label).chain(cells).collect());
    columns(&std::iter::once(heads).chain(rows).collect::<Vec<_>>(), 1)
}

/// A row for each drive, with the metrics that it is judged by.
fn sideways(run: &RunResult) -> String {
    let metrics = metrics(run);
    let row = |(of, cells): (&str, Vec<Option<String>>)| -> Vec<String> {
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_string()));
        std::iter::once(clipped(of, NAME_MAX)).chain(cells).collect()
    };
    let heads = std::iter::once(String::new()).chain(metrics.iter().map(|metric| metric.head.to_string())).collect();
    let rows = judged(run, &metrics).into_iter().map(row);
    let mut text = columns(&std::iter::once(heads).chain(rows).collect::<Vec<_>>(), 1);
    if let Some(said) = repetitions(run) {
        let _ = writeln!(text, "\n{said}");
    }
    text
}

/// Every drive with what it has of `metrics`, in words; of repetitions the mean and half of its 95 % interval.
pub(crate) fn judged<'a>(run: &'a RunResult, metrics: &[Metric]) -> Vec<(&'a str, Vec<Option<String>>)> {
    let cell = |metric: &Metric, spread: Spread| {
        let mean = in_unit(metric.unit, spread.mean);
        match spread.half_interval {
            // An interval below the digits of the mean is said as a share of it.
            Some(0.0) => format!("{mean} ±0"),
            Some(half) if half < spread.mean.abs() * 5e-4 => format!("{mean} ±<0.05 %"),
            Some(half) => format!("{mean} ±{}", in_unit(metric.unit, half).trim_end_matches(" MB/s")),
            None => mean,
        }
    };
    let row = |(of, devices): (&'a str, Vec<&DeviceResult>)| {
        let cells = metrics.iter().map(|metric| spread(metric, &devices).map(|spread| cell(metric, spread)));
        (of, cells.collect())
    };
    by_variant(run).into_iter().map(row).collect()
}

/// What the metrics of a repeated run are; nothing of one that was not repeated.
pub(crate) fn repetitions(run: &RunResult) -> Option<String> {
    let count = run.devices.iter().filter_map(|device| device.repetition.as_ref()).map(|of| of.number).max()?;
    Some(format!("{count} repetitions, each with a seed of its own: the mean, and half of its 95 % interval"))
}

fn in_unit(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanos => Nanos(value.round() as u64).to_string(),
        Unit::Rate => rate(value),
        Unit::Bytes => format!("{} MB/s", megabytes(value / 1e6)),
        Unit::Ratio => format!("{value:.3}"),
        Unit::Share => text::percent(value),
        Unit::Count => count(value.round() as u64),
    }
}

fn rows() -> Vec<Row> {
    let timed = |figure: fn(&DeviceResult) -> Option<String>| {
        move |device: &DeviceResult| if device.timed { figure(device) } else { None }
    };
    let mut rows = vec![
        row("requests", |d| Some(count(d.requests.total()))),
        row("  read / write", |d| Some(format!("{} / {}", count(d.requests.read), count(d.requests.write)))),
        row("  trim / flush", |d| {
            (d.requests.trim + d.requests.flush > 0)
                .then(|| format!("{} / {}", count(d.requests.trim), count(d.requests.flush)))
        }),
        row("  commands of the set", |d| {
            let completed = d.commands.as_ref()?.by_name.values().map(|count| count.completed).sum();
            (completed > 0).then(|| count(completed))
        }),
        row("  sent by the layers", |d| {
            d.sent_to_drives().filter(|_| d.has_drives()).map(|sent| count(sent.requests.iter().sum()))
        }),
        row("queue depth", queue_depth),
        row(
            "in flight, mean / max",
            timed(|d| Some(format!("{:.1} / {}", subtests::outstanding_mean(d), count(d.outstanding.max)))),
        ),
        row("IOPS", timed(|d| Some(rate(subtests::throughput(d).iops)))),
        row("  variation (CV)", rate_variation),
        row("read MB/s", timed(|d| positive(subtests::throughput(d).read_bytes_per_s / 1e6).map(megabytes))),
        row("write MB/s", timed(|d| positive(subtests::throughput(d).write_bytes_per_s / 1e6).map(megabytes))),
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
    rows.push(row("write amplification", |d| {
        d.write_amplification.as_ref().filter(|_| d.has_drives()).map(|wa| format!("{:.3}", wa.total))
    }));
    for cause in Cause::ALL {
        rows.push(row(&format!("  {}", cause.key()), move |d| {
            let part = d.write_amplification.as_ref().and_then(|wa| wa.by_cause.get(cause.key()).copied());
            part.and_then(positive).map(|part| format!("{part:.3}"))
        }));
    }
    rows.extend([
        row("  of which padding", |d| padding(d, d.host.padding_bytes)),
        row("  of which padding by relocation", |d| padding(d, d.gc.padding_bytes)),
        row("  of which by layers", |d| {
            let (sent, own) = (d.sent_to_drives()?.bytes[Op::Write.class()] as f64, d.bytes.write as f64);
            (own > 0.0 && sent > own).then(|| format!("{:.3}", (sent - own) / own))
        }),
        row("    copies by layers", |d| {
            let copied: f64 = d.host_layers.iter().filter_map(LayerMetrics::copied_bytes).sum();
            (d.bytes.write > 0 && copied > 0.0).then(|| format!("{:.3}", copied / d.bytes.write as f64))
        }),
        row("  theory", |d| d.theory.as_ref().map(|theory| format!("{:.3}", theory.write_amplification))),
        row("  victims, valid share", |d| d.victim_valid_share().map(text::percent)),
        row("flash reads", |d| d.has_drives().then(|| count(d.flash.reads.total))),
        row("flash programs", |d| d.has_drives().then(|| count(d.flash.programs.total + d.flash.copybacks.total))),
        row(
            "  multi-plane",
            timed(|d| {
                let together = d.flash.programs.multi_plane.values().sum::<u64>();
                let programs = d.flash.programs.total;
                let pairs = planes_per_die(d) > 1 && programs > 0;
                pairs.then(|| text::percent(together as f64 / programs as f64))
            }),
        ),
        row("  pages rebuilt", |d| any(d.flash.rebuilt_pages)),
        row("  uncorrectable copybacks", |d| any(d.flash.uncorrectable_copybacks)),
        row("erases", |d| d.has_drives().then(|| count(d.flash.erases.total))),
        row("  a block, min/mean/max", |d| d.erases_in_run.as_ref().filter(|_| d.has_drives()).map(wear)),
        row("  a block since new", |d| d.has_drives().then(|| wear(&d.erases))),
    ]);
    rows.extend(LIFETIME.map(|(label, figure)| row(label, move |d| figure(d.lifetime.as_ref()?))));
    rows.extend([
        row("stalled by GC", timed(|d| stalled(d).map(|_| count(d.gc.stalled_commands)))),
        row("  of writes, flushes", timed(|d| stalled(d).and_then(|stalled| part(stalled, not_reads(d))))),
        row("  mean stall", timed(|d| stalled(d).map(|stalled| Nanos(d.gc.stall_ns / stalled).to_string()))),
        row("  of it behind erases", timed(|d| stalled(d).and_then(|_| part(d.gc.stall_erase_ns, d.gc.stall_ns)))),
        row("buffer hits", |d| (d.buffer.hits > 0).then(|| count(d.buffer.hits))),
        row("map cache hits", |d| d.map_cache.as_ref()?.hit_ratio.map(text::percent)),
        row("  hits / misses", |d| mapped(d).map(|map| format!("{} / {}", count(map.hits), count(map.misses)))),
        row("  misses of host / buffer", |d| mapped(d).map(|map| misses(map, ["host", "buffer"]))),
        row("  misses of GC / log", |d| mapped(d).map(|map| misses(map, ["gc", "log"]))),
        row("  loads / flushes", |d| mapped(d).map(|map| format!("{} / {}", count(map.loads), count(map.flushes)))),
        row("waited for the map", timed(|d| mapped(d).map(|map| count(map.waited_commands)))),
        row(
            "  of all commands",
            timed(|d| mapped(d).and_then(|map| part(map.waited_commands, d.taken_by_drives().iter().sum()))),
        ),
        row("  mean wait", timed(|d| mapped(d)?.wait_mean_ns.map(|mean| Nanos(mean.round() as u64).to_string()))),
        row("channels busy", timed(|d| mean_share(&d.utilization.channels))),
        row("dies busy", timed(|d| mean_share(&d.utilization.dies))),
        row("  idle behind others", timed(|d| part(d.flash.queue?.held_up_ns, d.virtual_time_ns * dies(d)))),
        row("first of queue waits", timed(|d| part(d.flash.queue?.head_wait_ns, d.virtual_time_ns))),
        row("processor busy", timed(|d| part(d.controller?.work_ns, d.virtual_time_ns))),
        row("capacity", |d| Some(d.capacity.user_bytes).filter(|&bytes| bytes > 0).map(format_size)),
        row("  of the drives below", |d| {
            (!d.host_layers.is_empty() && d.has_drives()).then(|| format_size(d.capacity.drive_bytes))
        }),
        row("over-provisioning", |d| d.has_drives().then(|| format!("{:.1} %", d.over_provisioning.nominal * 100.0))),
        // A drive that ran out of blocks has none to which a closed form applies.
        row("  effective", |d| {
            let effective = || format!("{:.1} %", d.over_provisioning.effective * 100.0);
            d.has_drives().then(|| if d.read_only { "-".to_string() } else { effective() })
        }),
        row("  in the host", |d| {
            let spare = d.host_layers.iter().find_map(|layer| layer.figures.get("over_provisioning"))?;
            Some(format!("{:.1} %", spare * 100.0))
        }),
        row("preconditioning", |d| positive(d.precondition.written_bytes as f64).map(volume)),
        row("  drive writes", |d| d.precondition.drive_writes().map(three_digits)),
        row("  ended", |d| {
            let ended = match (d.precondition.steady?, d.precondition.settled) {
                (false, _) => "not steady",
                (true, Some(Settled::Passes)) => "steady by passes",
                (true, Some(Settled::Spans { .. })) => "steady by spans",
                (true, Some(Settled::Windows) | None) => "steady",
            };
            Some(format!("{ended}, {} windows", d.precondition.windows.len()))
        }),
        row("    windows alternate by", |d| match d.precondition.settled? {
            Settled::Spans { apart, .. } => Some(text::percent(apart)),
            Settled::Windows | Settled::Passes => None,
        }),
        row("  capacity mapped", |d| d.precondition.mapped.map(text::percent)),
        row("  wall time", |d| (d.precondition.written_bytes > 0).then(|| format!("{:.2} s", d.wall_precondition_s))),
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

/// A row's label and how it is read from a lifetime.
pub type LifetimeRow = (&'static str, fn(&Lifetime) -> Option<String>);

/// How long a drive lasts: rows with what they have, of a run and of a drive's logs.
pub const LIFETIME: [LifetimeRow; 6] = [
    ("lifetime, host writes", |lasts| Some(volume(lasts.written_bytes))),
    ("  DWPD over 5 years", |lasts| Some(three_digits(lasts.drive_writes_per_day))),
    ("  years at this rate", |lasts| lasts.years.map(three_digits)),
    ("  by most worn block", |lasts| lasts.worst_written_bytes.map(volume)),
    ("    DWPD over 5 years", |lasts| lasts.worst_drive_writes_per_day.map(three_digits)),
    ("    years at this rate", |lasts| lasts.worst_years.map(three_digits)),
];

/// Requests a second, with at least three digits.
fn rate(a_second: f64) -> String {
    if a_second >= 99.5 { count(a_second.round() as u64) } else { three_digits(a_second) }
}

/// Megabytes a second, with a decimal and at least three digits.
fn megabytes(a_second: f64) -> String {
    if a_second >= 9.995 { format!("{a_second:.1}") } else { three_digits(a_second) }
}

/// Bytes as data sheets count them; those that make no kilobyte in words.
pub(crate) fn volume(bytes: f64) -> String {
    if bytes < 999.5 { format!("{bytes:.0} bytes") } else { decimal_bytes(bytes) }
}

/// A number with three digits that count, without an exponent: `1.23`, `45.6`, `0.0531`.
pub(crate) fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    // What rounds up to the next power of ten has a digit less behind the point.
    let magnitude = (value.abs() * (1.0 + 0.5e-3)).log10().floor() as i32;
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if decimals == 0 { count(value.round() as u64) } else { text }
}

/// Erases of a block.
fn wear(erases: &crate::result::Erases) -> String {
    format!("{} / {:.2} / {}", erases.min, erases.mean, erases.max)
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

/// Dies of all drives.
fn dies(device: &DeviceResult) -> u64 {
    device.utilization.dies.len() as u64
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
    Some(format!("{} / {}", text::percent(cv), Nanos(variation.interval_ns)))
}

/// Padding for each byte written, in the unit of write amplification, if there is any in three digits.
fn padding(device: &DeviceResult, bytes: u64) -> Option<String> {
    let padding = bytes as f64 / device.bytes.write.max(1) as f64;
    (padding >= 0.0005).then(|| format!("{padding:.3}"))
}

/// Commands that waited for garbage collection, if any did.
fn stalled(device: &DeviceResult) -> Option<u64> {
    Some(device.gc.stalled_commands).filter(|&commands| commands > 0)
}

/// The cache of its map, if a map page was asked for.
fn mapped(device: &DeviceResult) -> Option<&MapCache> {
    device.map_cache.as_ref().filter(|map| map.hit_ratio.is_some())
}

/// Misses of two that ask.
fn misses(map: &MapCache, askers: [&str; 2]) -> String {
    let [one, other] = askers.map(|asker| count(map.by_asker.get(asker).map_or(0, |requests| requests.misses)));
    format!("{one} / {other}")
}

/// Commands that can wait for garbage collection, of the drives.
fn not_reads(device: &DeviceResult) -> u64 {
    let taken = device.taken_by_drives();
    taken.iter().sum::<u64>() - taken[Op::Read.class()]
}

fn part(part: u64, whole: u64) -> Option<String> {
    (whole > 0).then(|| text::percent(part as f64 / whole as f64))
}

/// Checks that did not hold and warnings; one that several drives share is said once.
fn remarks(run: &RunResult, text: &mut String) {
    let held = run.devices.iter().flat_map(|device| &device.checks).filter(|check| check.passed).count();
    let all = run.devices.iter().map(|device| device.checks.len()).sum::<usize>();
    let holding = if held < all { format!("{held} of {all}") } else { format!("All {all}") };
    let of_each = match run.devices.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|d| d.checks.len() == first.checks.len()) => {
            format!(", {} for each drive", first.checks.len())
        }
        _ => String::new(),
    };
    let of_each = if held < all { String::new() } else { of_each };
    let _ = writeln!(text, "\n{holding} invariants hold{of_each}.");
    for device in &run.devices {
        for check in device.checks.iter().filter(|check| !check.passed) {
            let detail = with_thousands(&check.detail, ',');
            let _ = writeln!(text, "INVARIANT BROKEN  {}: {}: {detail}", device.name, check.name);
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
    for (sentence, devices) in folded(said, run.devices.len()) {
        let _ = writeln!(text, "warning  {devices}: {sentence}");
    }
    if !run.complete {
        text.push_str("The run was interrupted: these are the results up to then.\n");
    }
}

/// Warnings with whom they are of. Of many drives, those that differ in numbers and names alone are told once.
fn folded<'a>(said: Vec<(&'a str, Vec<&str>)>, drives: usize) -> Vec<(&'a str, String)> {
    if drives <= ABREAST_MAX {
        return said.into_iter().map(|(sentence, devices)| (sentence, devices.join(", "))).collect();
    }
    let mut kinds: Vec<(String, &str, Vec<&str>)> = Vec::new();
    for (sentence, devices) in said {
        let kind = kind_of(sentence);
        match kinds.iter_mut().find(|(other, ..)| *other == kind) {
            Some((.., all)) => all.extend(devices),
            None => kinds.push((kind, sentence, devices)),
        }
    }
    let told = |devices: Vec<&str>| match devices.as_slice() {
        [one] => (*one).to_string(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
        [] => String::new(),
    };
    kinds.into_iter().map(|(_, sentence, devices)| (sentence, told(devices))).collect()
}

/// A warning up to what is told of it in numbers.
fn kind_of(sentence: &str) -> String {
    let words = sentence.split(|letter: char| letter.is_whitespace() || letter == '(');
    let has_number = |word: &&str| word.contains(|letter: char| letter.is_ascii_digit());
    words.filter(|word| !has_number(word)).take(8).collect::<Vec<_>>().join(" ")
}

/// A count with thin separators a person can read: `1,234,567`.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string(), ',')
}

/// A count, if it is any.
fn any(value: u64) -> Option<String> {
    (value > 0).then(|| count(value))
}

fn positive(value: f64) -> Option<f64> {
    (value > 0.0).then_some(value)
}

fn mean_share(shares: &[f64]) -> Option<String> {
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    // A tenth of a percent says nothing of a drive that is hardly busy.
    let shown = || if mean < 0.01 { text::percent(mean) } else { format!("{:.1} %", mean * 100.0) };
    (!shares.is_empty()).then(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_volumes_have_three_digits() {
        let cases =
            [(0.0, "0"), (0.0531, "0.0531"), (0.9996, "1.00"), (5.306, "5.31"), (45.64, "45.6"), (999.6, "1,000")];
        for (value, text) in cases {
            assert_eq!(three_digits(value), text);
        }
        assert_eq!((rate(0.0532), rate(99.4), rate(12_345.6)), ("0.0532".into(), "99.4".into(), "12,346".into()));
        assert_eq!(
            (megabytes(0.531), megabytes(9.999), megabytes(435.27)),
            ("0.531".into(), "10.0".into(), "435.3".into())
        );
        assert_eq!(
            (volume(1.569e12), volume(999.7e9), volume(12.0)),
            ("1.57 TB".into(), "1.00 TB".into(), "12 bytes".into())
        );
    }

    #[test]
    fn a_drive_that_is_hardly_busy_is_not_idle() {
        let shown = |shares: &[f64]| mean_share(shares).expect("some");
        assert_eq!([shown(&[0.0]), shown(&[0.0002, 0.0004]), shown(&[0.5, 0.1])], ["0.00 %", "0.03 %", "30.0 %"]);
        assert_eq!(mean_share(&[]), None);
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}

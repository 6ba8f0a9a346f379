//! The parts of the page that are text: readable without script, and the same figures as in `result.json`.

use super::html::{bytes_per_second, escape, figure, nanos, or_dash, percent, rate, size, whole};
use crate::result::{DeviceResult, LatencySummary, PerOp, RunResult};

/// Drives that have a colour of their own.
const COLOURS: usize = 12;

/// Under the title: what was run, in a line of facts.
pub(super) fn facts(run: &RunResult) -> String {
    let workload = match escape(&run.workload) {
        // A path, of which the title has the last part.
        path if super::workload(run) != run.workload => format!("<li>Workload <b>{path}</b></li>"),
        _ => String::new(),
    };
    let mut items = format!(
        "{workload}<li>Replay <b>{}</b></li><li>Precondition <b>{}</b></li><li>Seed <b>{}</b></li>",
        escape(&run.replay),
        escape(&run.precondition),
        run.seed
    );
    if let Some(host) = &run.host {
        items.push_str(&format!("<li>Host <b>{}</b></li>", escape(host)));
    }
    if let Some(first) = run.devices.first() {
        let requests = total(&first.requests);
        let same = run.devices.iter().all(|device| total(&device.requests) == requests);
        let each = if same { whole(requests) } else { "different numbers".to_string() };
        items.push_str(&format!("<li>Requests <b>{each}</b></li>"));
    }
    format!("<ul class=\"facts\">{items}</ul>")
}

fn total(counts: &PerOp<u64>) -> u64 {
    counts.read + counts.write + counts.trim + counts.flush
}

/// What a reader has to know before any figure.
pub(super) fn banners(run: &RunResult) -> String {
    let mut banners = String::new();
    if run.devices.is_empty() {
        banners.push_str("<p class=\"banner warn\">This run has no drive in it.</p>");
    }
    if !run.complete {
        let unfinished: Vec<String> =
            run.devices.iter().filter(|device| !device.complete).map(|device| escape(&device.name)).collect();
        let whose = if unfinished.is_empty() { String::new() } else { format!(" ({})", unfinished.join(", ")) };
        banners.push_str(&format!(
            "<p class=\"banner warn\"><b>Incomplete.</b> The run was interrupted{whose}; the figures stand for the \
             part that ran.</p>"
        ));
    }
    let broken: Vec<String> = run
        .devices
        .iter()
        .flat_map(|device| device.checks.iter().filter(|check| !check.held).map(move |check| (device, check)))
        .map(|(device, check)| format!("<li>{}: {}</li>", escape(&device.name), escape(&check.detail)))
        .collect();
    if !broken.is_empty() {
        banners.push_str(&format!(
            "<div class=\"banner bad\"><b>Do not trust these figures:</b> a law that every run has to keep did not \
             hold.<ul class=\"notes\">{}</ul></div>",
            broken.concat()
        ));
    }
    banners
}

fn chip(index: usize) -> String {
    format!("<span class=\"chip\" style=\"background:var(--d{})\"></span>", index % COLOURS)
}

/// The table that answers most questions: a row for each drive.
pub(super) fn summary(run: &RunResult) -> String {
    let has =
        |pick: fn(&DeviceResult) -> Option<LatencySummary>| run.devices.iter().any(|device| pick(device).is_some());
    let (reads, writes) = (has(|device| device.latency_ns.read), has(|device| device.latency_ns.write));
    let mut heads = vec!["Drive", "Checks", "Requests/s"];
    if reads {
        heads.extend(["Read", "Read p50", "p99", "p99.9"]);
    }
    if writes {
        heads.extend(["Written", "Write p50", "p99", "p99.9", "Write ampl."]);
    }
    heads.push("Erases/block");
    let head: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
    let rows: String =
        run.devices.iter().enumerate().map(|(index, device)| row(index, device, reads, writes)).collect();
    format!("<div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>")
}

fn row(index: usize, device: &DeviceResult, reads: bool, writes: bool) -> String {
    let timed = |show: String| if device.timed { show } else { "–".to_string() };
    let rates = &device.throughput;
    let mut cells = vec![verdict(device), timed(rate(rates.iops))];
    let mut side = |bytes_per_s: f64, summary: Option<LatencySummary>| {
        cells.push(timed(bytes_per_second(bytes_per_s)));
        let summary = summary.filter(|_| device.timed);
        for pick in [|s: LatencySummary| s.p50, |s: LatencySummary| s.p99, |s: LatencySummary| s.p999] {
            cells.push(or_dash(summary, |summary| nanos(pick(summary) as f64)).into_owned());
        }
    };
    if reads {
        side(rates.read_bytes_per_s, device.latency_ns.read);
    }
    if writes {
        side(rates.write_bytes_per_s, device.latency_ns.write);
        let amplification = device.write_amplification.as_ref();
        cells.push(or_dash(amplification, |amplification| figure(amplification.total)).into_owned());
    }
    cells.push(figure(device.erases.mean));
    let name = escape(&device.name);
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr><td class=\"name\" title=\"{name}\">{}{name}</td>{cells}</tr>", chip(index))
}

fn verdict(device: &DeviceResult) -> String {
    let broken = device.checks.iter().filter(|check| !check.held).count();
    let held = device.checks.len() - broken;
    let mut tags = String::new();
    if held > 0 {
        tags.push_str(&tag("good", "✓", held, "check", "held"));
    }
    if broken > 0 {
        tags.push_str(&tag("bad", "✗", broken, "check", "did not hold"));
    }
    if !device.warnings.is_empty() {
        tags.push_str(&tag("warn", "!", device.warnings.len(), "warning", "below"));
    }
    tags
}

fn tag(class: &str, sign: &str, count: usize, what: &str, how: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("<span class=\"tag {class}\" title=\"{count} {what}{plural} {how}\">{sign} {count}</span> ")
}

/// Every drive's warnings and checks.
pub(super) fn checks(run: &RunResult) -> String {
    let mut text = String::new();
    if !run.notes.is_empty() {
        let notes: String = run.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
        text.push_str(&format!("<ul class=\"notes\">{notes}</ul>"));
    }
    for (index, device) in run.devices.iter().enumerate() {
        text.push_str(&format!("<h3>{}{}</h3>", chip(index), escape(&device.name)));
        let notes: String = device
            .warnings
            .iter()
            .map(|warning| format!("<li><span class=\"tag warn\">warning</span> {}</li>", escape(warning)))
            .chain(device.precondition.notes.iter().map(|note| format!("<li>{}</li>", escape(note))))
            .collect();
        if !notes.is_empty() {
            text.push_str(&format!("<ul class=\"notes\">{notes}</ul>"));
        }
        let rows: String = device
            .checks
            .iter()
            .map(|check| {
                let (class, word) = if check.held { ("good", "held") } else { ("bad", "broken") };
                format!(
                    "<tr><td><code>{}</code></td><td><span class=\"tag {class}\">{word}</span></td><td>{}</td></tr>",
                    escape(&check.name),
                    escape(&check.detail)
                )
            })
            .collect();
        let all = device.checks.len();
        let held = device.checks.iter().filter(|check| check.held).count();
        // A broken law is shown at once; those that held fold away.
        let open = if held < all { " open" } else { "" };
        text.push_str(&format!(
            "<details{open}><summary>{held} of {all} checks held</summary><div class=\"scroll\"><table \
             class=\"checks\"><thead><tr><th>Check</th><th></th><th>Numbers</th></tr></thead><tbody>{rows}</tbody>\
             </table></div></details>"
        ));
    }
    text
}

/// All scalar figures, a column for each drive.
pub(super) fn figures(run: &RunResult) -> String {
    let heads: String = run
        .devices
        .iter()
        .enumerate()
        .map(|(index, device)| {
            let name = escape(&device.name);
            format!("<th class=\"drive\" title=\"{name}\">{}{name}</th>", chip(index))
        })
        .collect();
    let mut body = Body { run, rows: String::new() };
    body.requests();
    body.latency();
    body.flash();
    body.controller();
    body.named();
    format!(
        "<div class=\"scroll\"><table><thead><tr><th></th>{heads}</tr></thead><tbody>{}</tbody></table></div>",
        body.rows
    )
}

/// The count of one kind of command.
type Count = fn(PerOp<u64>) -> u64;

/// The latencies of one kind of command.
type Summary = fn(&DeviceResult) -> Option<LatencySummary>;

/// One number of them, in nanoseconds.
type Point = fn(LatencySummary) -> f64;

/// Rows under construction.
struct Body<'a> {
    run: &'a RunResult,
    rows: String,
}

impl Body<'_> {
    fn group(&mut self, title: &str) {
        let span = self.run.devices.len() + 1;
        self.rows.push_str(&format!("<tr class=\"group\"><th colspan=\"{span}\">{title}</th></tr>"));
    }

    /// A row of what `show` says of each drive; left out where it says nothing of any.
    fn row(&mut self, label: &str, show: impl Fn(&DeviceResult) -> Option<String>) {
        let cells: Vec<Option<String>> = self.run.devices.iter().map(show).collect();
        if cells.iter().all(Option::is_none) {
            return;
        }
        let cells: String = cells
            .into_iter()
            .map(|cell| cell.map_or("<td class=\"none\">–</td>".to_string(), |cell| format!("<td>{cell}</td>")))
            .collect();
        self.rows.push_str(&format!("<tr><td>{}</td>{cells}</tr>", escape(label)));
    }

    fn per_op(&mut self, what: &str, pick: fn(&DeviceResult) -> PerOp<u64>, show: fn(u64) -> String) {
        let ops: [(&str, Count); 4] = [
            ("read", |counts| counts.read),
            ("write", |counts| counts.write),
            ("trim", |counts| counts.trim),
            ("flush", |counts| counts.flush),
        ];
        for (name, op) in ops {
            self.row(&format!("{what}, {name}"), |device| Some(op(pick(device))).filter(|&count| count > 0).map(show));
        }
    }

    /// What each room of the host sent to the device below it, and its own counts.
    fn rooms(&mut self) {
        let rooms = self.run.devices.first().map_or(&[][..], |device| &device.host_rooms);
        for (place, room) in rooms.iter().enumerate() {
            let sent = |device: &DeviceResult| device.host_rooms.get(place).map(|room| room.sent.requests.iter().sum());
            self.row(&format!("Sent on by the {}", room.kind), |device| sent(device).map(whole));
            for key in room.figures.keys() {
                let count = |device: &DeviceResult| device.host_rooms.get(place)?.figures.get(key).copied();
                self.row(&format!("&nbsp;&nbsp;{}", key.replace('_', " ")), |device| count(device).map(figure));
            }
        }
    }

    fn requests(&mut self) {
        self.group("Requests");
        self.per_op("Requests", |device| device.requests, whole);
        self.per_op("Bytes", |device| device.bytes, size);
        self.rooms();
        self.row("Virtual time", |device| device.timed.then(|| nanos(device.virtual_time_ns as f64)));
        self.row("Reads a second", |device| device.timed.then(|| rate(device.throughput.read_iops)));
        self.row("Writes a second", |device| device.timed.then(|| rate(device.throughput.write_iops)));
        self.row("Requests in the drive, mean", |device| device.timed.then(|| figure(device.outstanding.mean)));
        self.row("Requests in the drive, most", |device| device.timed.then(|| whole(device.outstanding.max)));
        self.row("Misaligned requests", |device| Some(whole(device.host.misaligned_requests)));
        self.row("Failed requests", |device| Some(whole(device.host.failed_requests)));
        self.row("Sectors read unwritten", |device| Some(whole(device.host.unmapped_sectors_read)));
        self.row("Sectors trimmed that held data", |device| Some(whole(device.host.trimmed_mapped_sectors)));
    }

    fn latency(&mut self) {
        self.group("Latency");
        let kinds: [(&str, Summary); 5] = [
            ("All", |device| device.latency_ns.all),
            ("Read", |device| device.latency_ns.read),
            ("Write", |device| device.latency_ns.write),
            ("Trim", |device| device.latency_ns.trim),
            ("Flush", |device| device.latency_ns.flush),
        ];
        let points: [(&str, Point); 9] = [
            ("mean", |summary| summary.mean),
            ("least", |summary| summary.min as f64),
            ("p50", |summary| summary.p50 as f64),
            ("p90", |summary| summary.p90 as f64),
            ("p95", |summary| summary.p95 as f64),
            ("p99", |summary| summary.p99 as f64),
            ("p99.9", |summary| summary.p999 as f64),
            ("p99.99", |summary| summary.p9999 as f64),
            ("most", |summary| summary.max as f64),
        ];
        for (kind, of) in kinds {
            for (name, point) in points {
                self.row(&format!("{kind}, {name}"), |device| {
                    of(device).filter(|_| device.timed).map(|summary| nanos(point(summary)))
                });
            }
        }
    }

    fn flash(&mut self) {
        self.group("Flash");
        self.row("Write amplification", |device| device.write_amplification.as_ref().map(|part| figure(part.total)));
        self.row("Write amplification in theory", |device| {
            device.theory.as_ref().map(|theory| {
                format!("<span title=\"{}\">{}</span>", escape(&theory.model), figure(theory.write_amplification))
            })
        });
        self.row("Pages read", |device| Some(whole(device.flash.reads.total)));
        self.row("Pages programmed", |device| Some(whole(device.flash.programs.total)));
        self.row("Pages copied back", |device| Some(whole(device.flash.copybacks.total)));
        self.row("Blocks erased", |device| Some(whole(device.flash.erases.total)));
        self.row("Padding", |device| Some(size(device.host.padding_bytes)));
        self.row("Erases of a block, mean", |device| Some(figure(device.erases.mean)));
        self.row("Erases of a block, least", |device| Some(whole(device.erases.min.into())));
        self.row("Erases of a block, most", |device| Some(whole(device.erases.max.into())));
        self.row("Erases of a block, deviation", |device| Some(figure(device.erases.stddev)));
        self.row("Channels busy, mean", |device| mean(&device.utilization.channels).map(percent));
        self.row("Dies busy, mean", |device| mean(&device.utilization.dies).map(percent));
    }

    fn controller(&mut self) {
        self.group("Controller");
        self.row("Spare, nominal", |device| Some(percent(device.spare.nominal)));
        self.row("Spare, effective", |device| Some(percent(device.spare.effective)));
        self.row("Victims, foreground", |device| Some(whole(device.gc.foreground_victims)));
        self.row("Victims, background", |device| Some(whole(device.gc.background_victims)));
        self.row("Victims, wear levelling", |device| Some(whole(device.gc.wear_levelling_victims)));
        self.row("Stalled by GC", |device| device.timed.then(|| whole(device.gc.stalled_commands)));
        self.row("Stalled by GC, mean of those", |device| {
            let stalled = device.gc.stalled_commands;
            (device.timed && stalled > 0).then(|| nanos(device.gc.stall_ns as f64 / stalled as f64))
        });
        self.row("Stalled by GC, sum over them", |device| device.timed.then(|| nanos(device.gc.stall_ns as f64)));
        self.row("Blocks gone bad", |device| Some(whole(device.gc.grown_bad_blocks)));
        self.row("Buffer hits", |device| Some(whole(device.buffer.hits)));
        self.row("Buffer evictions", |device| Some(whole(device.buffer.evictions)));
        self.row("Buffer evictions, full pages", |device| Some(whole(device.buffer.full_pages)));
        self.row("Buffer evictions, partial pages", |device| Some(whole(device.buffer.partial_pages)));
        self.row("Buffer, partial pages delayed", |device| Some(whole(device.buffer.delayed_pages)));
        self.row("Buffer, partial pages made full", |device| Some(whole(device.buffer.converted_pages)));
        self.row("Map cache hits", |device| Some(device.map_cache.hits).filter(|&hits| hits > 0).map(whole));
        self.row("Map cache misses", |device| Some(device.map_cache.misses).filter(|&misses| misses > 0).map(whole));
        self.row("Written to age the drive", |device| {
            Some(device.precondition.written_bytes).filter(|&bytes| bytes > 0).map(size)
        });
    }

    /// Memory and the designs' own figures, whose names the drives bring.
    fn named(&mut self) {
        let run = self.run;
        let memory: std::collections::BTreeSet<&String> =
            run.devices.iter().flat_map(|device| device.memory.keys()).collect();
        if !memory.is_empty() {
            self.group("Memory");
        }
        for name in memory {
            let label = name.strip_suffix("_bytes").unwrap_or(name).replace('_', " ");
            self.row(&capital(&label), |device| device.memory.get(name).map(|&bytes| size(bytes)));
        }
        let design: std::collections::BTreeSet<&String> =
            run.devices.iter().flat_map(|device| device.design.keys()).collect();
        if !design.is_empty() {
            self.group("The design's own");
        }
        for name in design {
            self.row(&capital(&name.replace('_', " ")), |device| device.design.get(name).map(|&value| figure(value)));
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn mean(shares: &[f64]) -> Option<f64> {
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// The command line and every drive's whole description.
pub(super) fn configuration(run: &RunResult) -> String {
    let mut text = String::new();
    if !run.command.is_empty() {
        let command: Vec<String> = run.command.iter().map(|word| quoted(word)).collect();
        text.push_str(&format!("<h3>Command</h3><pre>{}</pre>", escape(&command.join(" "))));
    }
    for (index, device) in run.devices.iter().enumerate() {
        // A value that came out of JSON always goes back into it.
        let value = serde_json::to_string_pretty(&device.configuration).unwrap_or_default();
        text.push_str(&format!(
            "<details><summary>{}{}</summary><pre>{}</pre></details>",
            chip(index),
            escape(&device.name),
            escape(&value)
        ));
    }
    text
}

/// A word of a command line as a shell would need it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:%+@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

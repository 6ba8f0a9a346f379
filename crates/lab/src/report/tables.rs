//! The parts of the page that are text: readable without script, and the same figures as in `result.json`.

use super::html::{bytes_per_second, escape, figure, nanos, or_dash, rate, whole};
use super::layers;
use crate::result::{DeviceResult, LatencySummary, PerOp, RunResult};
use crate::subtests;

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
            "<p class=\"banner warn\"><b>Incomplete.</b> The run was interrupted{whose}; the metrics cover the \
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

pub(super) fn chip(index: usize) -> String {
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
    let rates = subtests::throughput(device);
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
        tags.push_str(&tag("good", "✓", held, "invariant", "held"));
    }
    if broken > 0 {
        tags.push_str(&tag("bad", "✗", broken, "invariant", "did not hold"));
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
                let (class, word) = if check.held { ("good", "holds") } else { ("bad", "broken") };
                format!(
                    "<tr><td><code>{}</code></td><td><span class=\"tag {class}\">{word}</span></td><td>{}</td></tr>",
                    escape(&check.name),
                    escape(&check.detail)
                )
            })
            .collect();
        let all = device.checks.len();
        let held = device.checks.iter().filter(|check| check.held).count();
        // A broken invariant is shown at once; those that hold fold away.
        let open = if held < all { " open" } else { "" };
        text.push_str(&format!(
            "<details{open}><summary>{} invariants hold</summary><div class=\"scroll\"><table \
             class=\"checks\"><thead><tr><th>Invariant</th><th></th><th>Numbers</th></tr></thead><tbody>{rows}</tbody>\
             </table></div></details>",
            if held < all { format!("{held} of {all}") } else { format!("All {all}") }
        ));
    }
    text
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The command line and every drive's whole description.
pub(super) fn configuration(run: &RunResult) -> String {
    let mut text = String::new();
    if !run.command.is_empty() {
        let command: Vec<String> = run.command.iter().map(|word| quoted(word)).collect();
        text.push_str(&format!("<h3>Command</h3><pre>{}</pre>", escape(&command.join(" "))));
    }
    text.push_str(&layers::configuration(run));
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

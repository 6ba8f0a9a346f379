//! The parts of the page that are text: readable without script, and the same figures as in `result.json`.

use super::html::{bytes_per_second, escape, figure, nanos, percent, rate, sentence, whole};
use super::layers;
use crate::headline::{Metric, Unit, metrics};
use crate::result::{DeviceResult, RunResult};
use crate::table;

/// Drives that have a colour of their own.
const COLOURS: usize = 12;

/// Under the title: what was run, in a line of facts.
pub(super) fn facts(run: &RunResult) -> String {
    // The page's title does not have the whole workload: it is the user's own, or has the last part of a path.
    let is_told = run.title.is_some() || super::workload(run) != run.workload;
    let workload = match is_told {
        true => format!("<li>Workload <b>{}</b></li>", breakable(&run.workload)),
        false => String::new(),
    };
    let mut items = format!(
        "{workload}<li>Replay <b>{}</b></li><li>Precondition <b>{}</b></li><li>Seed <b>{}</b></li>",
        breakable(&run.replay),
        breakable(&run.precondition),
        run.seed
    );
    if let Some(host) = &run.host {
        items.push_str(&format!("<li>Host <b>{}</b></li>", breakable(host)));
    }
    if let Some(first) = run.devices.first() {
        let requests = first.requests.total();
        let same = run.devices.iter().all(|device| device.requests.total() == requests);
        let each = if same { whole(requests) } else { "different numbers".to_string() };
        items.push_str(&format!("<li>Requests <b>{each}</b></li>"));
    }
    format!("<ul class=\"facts\">{items}</ul>")
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
        .flat_map(|device| device.checks.iter().filter(|check| !check.passed).map(move |check| (device, check)))
        .map(|(device, check)| format!("<li>{}: {}</li>", escape(&device.name), sentence(&check.detail)))
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

/// The run in a few sentences.
pub(super) fn conclusions(run: &RunResult) -> String {
    let said = crate::conclusions::conclusions(run);
    if said.is_empty() {
        return String::new();
    }
    let items: String = said.iter().map(|sentence| format!("<li>{}</li>", escape(sentence))).collect();
    format!("<ul class=\"conclusions\">{items}</ul>")
}

pub(super) fn chip(index: usize) -> String {
    format!("<span class=\"chip\" style=\"background:var(--d{})\"></span>", index % COLOURS)
}

/// A unit as the script knows it.
fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanos => "ns",
        Unit::Rate => "rate",
        Unit::Bytes => "bytes",
        Unit::Ratio => "ratio",
        Unit::Share => "share",
        Unit::Count => "count",
    }
}

fn show(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanos => nanos(value),
        Unit::Rate => rate(value),
        Unit::Bytes => bytes_per_second(value),
        Unit::Ratio => figure(value),
        Unit::Share => percent(value),
        Unit::Count => whole(value as u64),
    }
}

/// Of repeated drives the means that the terminal shows, a row for each.
pub(super) fn means(run: &RunResult) -> String {
    let Some(said) = table::repetitions(run) else { return String::new() };
    let columns = metrics(run);
    let heads: String =
        columns.iter().map(|Metric { head, name, .. }| format!("<th title=\"{name}\">{head}</th>")).collect();
    let row = |(of, cells): (&str, Vec<Option<String>>)| {
        let cells = cells.iter().map(|cell| match cell {
            // A line may end between the two, and not before a unit.
            Some(cell) => format!("<td>{}</td>", escape(&cell.replace(' ', "\u{a0}").replace("\u{a0}±", " ±"))),
            None => "<td class=\"none\">–</td>".to_string(),
        });
        format!("<tr><td class=\"name\">{}</td>{}</tr>", escape(of), cells.collect::<String>())
    };
    let rows: Vec<String> = table::judged(run, &columns).into_iter().map(row).collect();
    let tall = if rows.len() > 2 * super::drives::FEW { " tall" } else { "" };
    format!(
        "<h3>Means</h3>\n<p class=\"caption\">{}.</p>\n<div class=\"scroll{tall}\"><table id=\"means\"><thead><tr>\
         <th>Drive</th>{heads}</tr></thead><tbody>{}</tbody></table></div>\n<h3>Each repetition</h3>",
        escape(&said),
        rows.concat()
    )
}

/// The table that answers most questions: a row for each drive. The script sorts it by `data-value` and takes from it what
/// a chart by parameter shows.
pub(super) fn summary(run: &RunResult) -> String {
    let columns = metrics(run);
    let head: String = columns
        .iter()
        .map(|Metric { head, name, unit, .. }| {
            format!("<th title=\"{name}\" data-metric=\"{name}\" data-unit=\"{}\">{head}</th>", unit_name(*unit))
        })
        .collect();
    let rows: String = run.devices.iter().enumerate().map(|(index, device)| row(index, device, &columns)).collect();
    let tall = if run.devices.len() > 2 * super::drives::FEW { " tall" } else { "" };
    format!(
        "<div class=\"scroll{tall}\"><table id=\"headline\"><thead><tr><th>Drive</th><th>Checks</th>{head}</tr></thead>\
         <tbody>{rows}</tbody></table></div>"
    )
}

fn row(index: usize, device: &DeviceResult, columns: &[Metric]) -> String {
    let name = escape(&device.name);
    let cells: String = columns
        .iter()
        .map(|column| match (column.value)(device) {
            Some(value) => format!("<td data-value=\"{value}\">{}</td>", show(column.unit, value)),
            None => "<td class=\"none\">–</td>".to_string(),
        })
        .collect();
    format!(
        "<tr data-drive=\"{index}\"><td class=\"name\" title=\"{name}\">{}{name}</td><td>{}</td>{cells}</tr>",
        chip(index),
        verdict(device)
    )
}

fn verdict(device: &DeviceResult) -> String {
    let broken = device.checks.iter().filter(|check| !check.passed).count();
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
                let (class, word) = if check.passed { ("good", "holds") } else { ("bad", "broken") };
                format!(
                    "<tr><td><code>{}</code></td><td><span class=\"tag {class}\">{word}</span></td><td>{}</td></tr>",
                    escape(&check.name),
                    sentence(&check.detail)
                )
            })
            .collect();
        let all = device.checks.len();
        let held = device.checks.iter().filter(|check| check.passed).count();
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

/// The command line, to copy: nothing where there was none.
pub(super) fn command(run: &RunResult) -> String {
    if run.command.is_empty() {
        return String::new();
    }
    let words: Vec<String> = run.command.iter().map(|word| quoted(word)).collect();
    format!("<div class=\"command\"><pre id=\"command\">{}</pre></div>", escape(&words.join(" ")))
}

/// Letters that a narrow screen has room for in a line of the title.
const LINE: usize = 20;

/// A title, or what was given on a command line, that breaks where a person would: a list behind its commas, and names, and what
/// is long in a list, also between their parts.
pub(super) fn breakable(title: &str) -> String {
    let mut broken = String::with_capacity(title.len() * 2);
    for word in title.split_inclusive(' ') {
        let is_list = word.trim_end_matches([',', ' ']).contains(',');
        for item in word.split_inclusive(',') {
            let ends = if is_list && item.chars().count() <= LINE { &[','][..] } else { &[',', '/', '_'] };
            for part in item.split_inclusive(ends) {
                broken.push_str(&escape(part));
                if part.ends_with(ends) {
                    broken.push_str("<wbr>");
                }
            }
        }
    }
    broken
}

/// Every drive's whole description.
pub(super) fn configuration(run: &RunResult) -> String {
    let mut text = String::new();
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

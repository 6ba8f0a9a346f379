//! Sub-tests on the page: a table and two charts, and what the quiet between them does to every mean over the run.

use super::html::{bytes_per_second, escape, nanos, or_dash, size, whole};
use super::tables::chip;
use crate::ready_busy::SubtestCount;
use crate::result::{DeviceResult, RunResult, Subtest};
use crate::subtests::quiet_ns;

/// From so many sub-tests of a drive on there is a curve to see.
const CHARTED: usize = 3;

/// The section, or nothing of a run that was not divided.
pub(super) fn section(run: &RunResult) -> String {
    if run.devices.iter().all(|device| device.subtests.is_empty()) {
        return String::new();
    }
    let watched = run.devices.iter().any(|device| device.ready_busy.is_some());
    let amplification = match watched {
        true => {
            "Write amplification as the first recorder counts it, and as it really was. What stays in the write buffer \
             counts in a later sub-test or in none."
        }
        false => "Only runs with --rb-probe know the write amplification of each sub-test.",
    };
    let tables: String = run.devices.iter().enumerate().map(|(index, device)| table(index, device, watched)).collect();
    format!(
        "<section class=\"card\">\n<h2>Sub-tests</h2>\n<p class=\"caption\">Between two of them everything comes to \
         rest. Rates are those of the sub-test alone, from its beginning to its last completion. {amplification}</p>\n\
         {}{tables}</section>\n",
        charts(run, watched)
    )
}

fn counts(device: &DeviceResult) -> Vec<SubtestCount> {
    match &device.ready_busy {
        Some(watched) => watched.of_subtests(device.bytes.write, &device.subtests),
        None => vec![SubtestCount::default(); device.subtests.len()],
    }
}

/// Places of the charts, with what they draw: for each drive a list of name, counted, really, bytes a second.
fn charts(run: &RunResult, watched: bool) -> String {
    if run.devices.iter().all(|device| device.subtests.len() < CHARTED) {
        return String::new();
    }
    let drawn = run.devices.iter().map(|device| {
        let points = device.subtests.iter().zip(counts(device)).map(|(test, count)| {
            let rate = device.timed.then_some(test.write_bytes_per_s);
            serde_json::json!([test.name, count.counted, count.real, rate])
        });
        serde_json::Value::Array(points.collect())
    });
    let points = escape(&serde_json::Value::Array(drawn.collect()).to_string());
    let chart = |id: &str, title: &str| {
        format!(
            "<div><div class=\"head\"><h3>{title}</h3><div class=\"choice\" data-for=\"{id}\"></div></div>\
             <div class=\"chart short\" id=\"{id}\"></div></div>"
        )
    };
    let mut both = String::new();
    if watched {
        both.push_str(&chart("subtest-amplification", "Write amplification"));
    }
    if run.devices.iter().any(|device| device.timed) {
        both.push_str(&chart("subtest-rate", "Written a second"));
    }
    format!("<div class=\"pair\" id=\"subtests\" data-points=\"{points}\">{both}</div>\n")
}

fn table(index: usize, device: &DeviceResult, watched: bool) -> String {
    let title = format!("<h3>{}{}</h3>", chip(index), escape(&device.name));
    if device.subtests.is_empty() {
        return format!("{title}<p class=\"caption\">No sub-test ended.</p>");
    }
    let reads = device.subtests.iter().any(|test| test.read_bytes > 0);
    let mut heads = vec!["Sub-test", "Requests", "Written"];
    if reads {
        heads.push("Read");
    }
    if watched {
        heads.extend(["Programs counted", "WA counted", "WA really"]);
    }
    if device.timed {
        heads.extend(["Began at", "Lasted", "Written a second"]);
    }
    let cells = |test: &Subtest, count: SubtestCount| {
        let mut cells = vec![whole(test.requests), size(test.written_bytes)];
        if reads {
            cells.push(size(test.read_bytes));
        }
        if watched {
            let ratio = |value| or_dash(value, |value: f64| format!("{value:.3}")).into_owned();
            let programs = device.ready_busy.as_ref().map(|_| count.programs);
            cells.extend([or_dash(programs, whole).into_owned(), ratio(count.counted), ratio(count.real)]);
        }
        if device.timed {
            let lasted = test.ended_ns.saturating_sub(test.begun_ns);
            cells.extend([nanos(test.begun_ns as f64), nanos(lasted as f64), bytes_per_second(test.write_bytes_per_s)]);
        }
        cells.into_iter().map(|cell| format!("<td>{cell}</td>")).collect::<String>()
    };
    let rows = device.subtests.iter().zip(counts(device));
    let rows: String =
        rows.map(|(test, count)| format!("<tr><td>{}</td>{}</tr>", escape(&test.name), cells(test, count))).collect();
    let heads: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
    format!(
        "{title}<div class=\"scroll tall\"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>\n"
    )
}

/// Under the headline: of which time its rates are.
pub(super) fn headline(run: &RunResult) -> String {
    note(run, |times| {
        format!(
            "Requests/s and what was read and written a second are over the time in which the host was busy, without \
             the quiet between sub-tests: {times}"
        )
    })
}

/// Over the charts that show the run over time.
pub(super) fn over_time(run: &RunResult) -> String {
    note(run, |times| {
        format!(
            "This chart includes the idle gaps between sub-tests: {times} An interval may include both, so a peak is lower \
             than the rate of its sub-test in Sub-tests."
        )
    })
}

/// Over the busy shares of channels and dies.
pub(super) fn shares(run: &RunResult) -> String {
    note(run, |times| format!("The virtual time includes the idle gaps between sub-tests: {times}"))
}

fn note(run: &RunResult, sentence: impl FnOnce(&str) -> String) -> String {
    let quiet: Vec<&DeviceResult> = run.devices.iter().filter(|device| quiet_ns(device) > 0).collect();
    let times: Vec<String> = quiet
        .iter()
        .map(|device| {
            let (quiet, all) = (quiet_ns(device), device.virtual_time_ns);
            let whose = if run.devices.len() > 1 { format!(" ({})", escape(&device.name)) } else { String::new() };
            format!("busy {}, idle {}{whose}", nanos(all.saturating_sub(quiet) as f64), nanos(quiet as f64))
        })
        .collect();
    match times.is_empty() {
        true => String::new(),
        false => format!("<p class=\"caption quiet\">{}</p>", sentence(&format!("{}.", times.join("; ")))),
    }
}

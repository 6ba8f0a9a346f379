//! What `ssdlab wa capture` found out, for a person and as JSON.

use std::io::Write as _;

use serde_json::{Value, json};
use ssdlab_base::Nanos;
use ssdlab_measure::capture::Decoded;
use ssdlab_measure::classify::{Estimate, Fit};
use ssdlab_measure::histogram::Durations;
use ssdlab_measure::model::write_amplification;
use ssdlab_measure::recorder::Report;
use ssdlab_measure::{Model, Window};

use super::capture::CaptureArgs;
use super::{counted, grouped};
use crate::failure::Failure;
use crate::stdout;

/// What was found out.
pub(super) struct Findings<'a> {
    pub(super) args: &'a CaptureArgs,
    pub(super) format: &'static str,
    pub(super) lines: Vec<String>,
    pub(super) resolution: Option<Nanos>,
    pub(super) notes: Vec<String>,
    pub(super) decoded: Decoded,
    pub(super) model: Model,
    pub(super) window: Window,
    pub(super) window_from: &'static str,
    pub(super) watched: usize,
    pub(super) all: Durations,
    pub(super) busiest: Nanos,
    pub(super) fit: Option<Fit>,
    pub(super) recorder: Report,
    pub(super) estimates: Vec<Estimate>,
    pub(super) host_bytes: Option<u64>,
}

pub(super) fn as_json(findings: &Findings<'_>) -> Value {
    let Findings { decoded, model, window, recorder, .. } = findings;
    let amplification = |pages: f64| {
        findings.host_bytes.and_then(|host| write_amplification(pages * f64::from(model.levels.page_bytes), host))
    };
    let estimate = |estimate: &Estimate| {
        let (least, most) = estimate.pages_interval;
        json!({
            "method": estimate.method.key(),
            "lines": estimate.lines,
            "programs_a_line": estimate.lows,
            "pages": estimate.pages,
            "pages_interval": [least, most],
            "write_amplification": amplification(estimate.pages),
            "write_amplification_interval": [amplification(least), amplification(most)],
        })
    };
    let pages = model.pages(recorder.programs() as f64);
    let components = findings.fit.iter().flat_map(|fit| &fit.components).map(|component| {
        json!({
            "operation": component.operation.name(),
            "share": component.weight,
            "typical_ns": component.shape.typical().0,
        })
    });
    json!({
        "format": 1,
        "file": findings.args.file.display().to_string(),
        "capture": findings.format,
        "lines": findings.lines,
        "start_ns": decoded.start.0,
        "end_ns": decoded.end.0,
        "edges": decoded.edges,
        "resolution_ns": findings.resolution.map(|time| time.0),
        "geometry": model.levels.to_string(),
        "page_bytes": model.levels.page_bytes,
        "program_model": model.program.key(),
        "host_bytes": findings.host_bytes,
        "window_ns": [window.above.0, window.below.0],
        "window_from": findings.window_from,
        "recorder": {
            "line": findings.lines[findings.watched],
            "sampling": findings.args.sampling,
            "programs": recorder.programs(),
            "tests": recorder.tests.iter().map(|test| test.programs).collect::<Vec<_>>(),
            "lows_seen": recorder.durations.total(),
            "lows_missed": recorder.unnoticed.missed,
            "lows_merged": recorder.unnoticed.merged,
            "pages": pages,
            "write_amplification": amplification(pages),
        },
        "estimates": findings.estimates.iter().map(estimate).collect::<Vec<_>>(),
        "components": components.collect::<Vec<_>>(),
        "histogram": findings.all.bins().map(|bin| json!([bin.from.0, bin.to.0, bin.count])).collect::<Vec<_>>(),
        "notes": findings.notes,
    })
}

pub(super) fn show(findings: &Findings<'_>) -> Result<(), Failure> {
    let Findings { decoded, model, window, recorder, .. } = findings;
    let span = decoded.end.since(decoded.start);
    let share = if span.0 > 0 { findings.busiest.0 as f64 * 100.0 / span.0 as f64 } else { 0.0 };
    let resolution = findings.resolution.map(|time| format!(", to {time}")).unwrap_or_default();
    let head = [
        ("capture", format!("{}, {}{resolution}", findings.format, counted(findings.lines.len() as u64, "line"))),
        ("length", format!("{span}, {}, the busiest line low for {share:.1} %", counted(decoded.edges, "edge"))),
        (
            "drive",
            format!(
                "{} ({} die{}), page {}, {} a program",
                model.levels,
                grouped(model.levels.dies().into()),
                if model.levels.dies() == 1 { "" } else { "s" },
                ssdlab_base::format_size(model.levels.page_bytes.into()),
                counted(model.pages_per_low().into(), "page"),
            ),
        ),
        ("window", format!("{window} ({})", findings.window_from)),
    ];
    let head: Vec<Vec<String>> = head.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect();
    let amplification = |pages: f64| {
        let bytes = pages * f64::from(model.levels.page_bytes);
        let ratio = findings.host_bytes.and_then(|host| write_amplification(bytes, host));
        ratio.map_or_else(|| "-".to_string(), |ratio| format!("{ratio:.3}"))
    };
    let heading = ["method", "lines", "programs/line", "pages", "95 % of it", "WA", "95 % of it"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    let pages = model.pages(recorder.programs() as f64);
    rows.push(vec![
        format!("recorder ({})", findings.args.sampling),
        "1".to_string(),
        grouped(recorder.programs().into()),
        grouped(pages as u128),
        String::new(),
        amplification(pages),
    ]);
    for estimate in &findings.estimates {
        let (least, most) = estimate.pages_interval;
        rows.push(vec![
            estimate.method.key().to_string(),
            estimate.lines.to_string(),
            grouped(estimate.lows.round() as u128),
            grouped(estimate.pages.round() as u128),
            format!("{} .. {}", grouped(least.round() as u128), grouped(most.round() as u128)),
            amplification(estimate.pages),
            if findings.host_bytes.is_some() {
                format!("{} .. {}", amplification(least), amplification(most))
            } else {
                String::new()
            },
        ]);
    }
    let mut fitted = Vec::new();
    for component in findings.fit.iter().flat_map(|fit| &fit.components) {
        let name = component.operation.name().to_string();
        fitted.push(vec![name, format!("{:.2} %", component.weight * 100.0), component.shape.typical().to_string()]);
    }
    stdout::print(|to| {
        to.write_all(stdout::aligned(&head).as_bytes())?;
        writeln!(to, "\nlows by duration (bars are logarithms, > is the window)")?;
        to.write_all(findings.all.render(Some(*window)).as_bytes())?;
        if !fitted.is_empty() {
            writeln!(to, "\nfitted: operation, share of the lows, typical duration")?;
            to.write_all(stdout::aligned(&fitted).as_bytes())?;
        }
        writeln!(to)?;
        to.write_all(stdout::aligned(&rows).as_bytes())?;
        let (missed, merged) = (recorder.unnoticed.missed, recorder.unnoticed.merged);
        if missed + merged > 0 {
            writeln!(to, "\nthe recorder missed {missed} lows, and took {merged} for part of the one before")?;
        }
        findings.notes.iter().try_for_each(|note| writeln!(to, "note: {note}"))
    })
}

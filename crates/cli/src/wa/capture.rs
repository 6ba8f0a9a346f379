//! `ssdlab wa capture`: page programs and write amplification from a capture of Ready/Busy lines.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use ssdlab_base::Nanos;
use ssdlab_measure::capture::{Capture, CaptureError, Decoded, Select};
use ssdlab_measure::classify::{Estimate, Expected, Fit, Survey, estimates};
use ssdlab_measure::histogram::{Durations, Window};
use ssdlab_measure::model::write_amplification;
use ssdlab_measure::recorder::{Recorder, Report, Settings};
use ssdlab_measure::{Levels, Model, ProgramModel};

use super::{Shape, grouped, size, time, window};
use crate::failure::Failure;
use crate::stdout;

/// Count page programs in a capture of Ready/Busy lines, and give write amplification where the host's bytes are known.
///
/// Reads VCD, sigrok sessions (.sr) and Saleae's CSV, recognised by content, gzip unpacked, in constant memory. A line
/// that is low is busy. Lows are told apart by how long they last: see the histogram, and choose --window by it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab wa capture rb.vcd --geometry 4x1x1x2                    # look at the durations first
  ssdlab wa capture rb.sr --line D0 --geometry 4x1x1x2 --window 200us..2.2ms --host-bytes 2g
  ssdlab run -d wa-ssd-v-16g -w rw=randwrite,bs=4k,io_size=1g --vcd rb.vcd
  ssdlab wa capture rb.vcd --device wa-ssd-v-16g --host-bytes 1g")]
pub(crate) struct CaptureArgs {
    /// The capture
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    shape: Shape,
    /// A line of the capture that is a Ready/Busy line; may be repeated. By default all of one bit
    #[arg(long, value_name = "NAME")]
    line: Vec<String>,
    /// The line that the paper's recorder watches; by default the first
    #[arg(long, value_name = "NAME")]
    watch: Option<String>,
    /// The capture is upside down: high is busy
    #[arg(long)]
    invert: bool,
    /// Samples a second of a CSV that counts samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample_rate: Option<u64>,
    /// What lasts longer than A and shorter than B is a program; by default the description's, or what the fit suggests
    #[arg(long, value_name = "A..B")]
    window: Option<String>,
    /// How long reads last, as far as known
    #[arg(long, value_name = "A..B")]
    read: Option<String>,
    /// How long erases last, as far as known
    #[arg(long, value_name = "A..B")]
    erase: Option<String>,
    /// Time between two samples of the paper's recorder
    #[arg(long, value_name = "TIME", default_value = "1us")]
    sampling: String,
    /// Bytes that the host wrote during the capture
    #[arg(long, value_name = "SIZE")]
    host_bytes: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What was found out.
struct Findings<'a> {
    args: &'a CaptureArgs,
    format: &'static str,
    lines: Vec<String>,
    resolution: Option<Nanos>,
    notes: Vec<String>,
    decoded: Decoded,
    model: Model,
    window: Window,
    window_from: &'static str,
    watched: usize,
    all: Durations,
    busiest: Nanos,
    fit: Option<Fit>,
    recorder: Report,
    estimates: Vec<Estimate>,
    host_bytes: Option<u64>,
}

pub(super) fn capture(args: &CaptureArgs) -> Result<(), Failure> {
    let given = window("--window", &args.window)?;
    let known = args.shape.known()?;
    let mut expected = known.as_ref().map_or_else(Expected::default, |known| known.expected);
    expected.read = window("--read", &args.read)?.or(expected.read);
    expected.erase = window("--erase", &args.erase)?.or(expected.erase);
    expected.program = given.or(expected.program);
    let sampling = time("--sampling", &args.sampling)?;
    if sampling == Nanos::ZERO {
        return Err(Failure::input("--sampling 0: expected a time between samples, such as 1us"));
    }
    let host_bytes = args.host_bytes.as_ref().map(|text| size("--host-bytes", text)).transpose()?;
    if host_bytes == Some(0) {
        return Err(Failure::input("--host-bytes 0: write amplification of nothing written does not exist"));
    }
    let select = Select { lines: args.line.clone(), invert: args.invert, sample_rate: args.sample_rate };
    let mut findings = look(args, &select, known.map(|known| known.model), expected, (given, sampling))?;
    findings.host_bytes = host_bytes;
    if args.shape.geometry.is_none() && args.shape.device.is_none() {
        findings
            .notes
            .push("no --geometry and no --device: the lines are taken for all dies, of one plane each".into());
    }
    if args.json { stdout::print_json(&as_json(&findings)) } else { show(&findings) }
}

/// Without a geometry, the drive is what was captured.
fn every_line_a_die(lines: usize, args: &CaptureArgs) -> Result<Model, Failure> {
    let channels = u32::try_from(lines).unwrap_or(u32::MAX);
    let page_bytes = args.shape.page_bytes()?;
    let levels = Levels { channels, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 1, page_bytes };
    Ok(Model { levels, program: ProgramModel::SinglePlane })
}

fn unreadable(error: &CaptureError) -> Failure {
    Failure::input(error)
}

/// The passes over the file: one, and another for the recorder where the window has to be found first.
fn look<'a>(
    args: &'a CaptureArgs,
    select: &Select,
    model: Option<Model>,
    expected: Expected,
    (given, sampling): (Option<Window>, Nanos),
) -> Result<Findings<'a>, Failure> {
    let capture = Capture::open(&args.file, select).map_err(|error| unreadable(&error))?;
    let lines = capture.lines().to_vec();
    let model = model.map_or_else(|| every_line_a_die(lines.len(), args), Ok)?;
    let dies = model.levels.dies();
    if lines.len() as u64 > dies {
        let (file, lines) = (args.file.display(), lines.len());
        return Err(Failure::input(format!("{file}: {lines} lines, and a drive of {} has {dies} dies", model.levels))
            .hint("name the Ready/Busy lines with --line, or correct --geometry"));
    }
    let watched = match &args.watch {
        None => 0,
        Some(name) => lines
            .iter()
            .position(|line| line == name)
            .ok_or_else(|| Failure::input(format!("--watch {name}: no such line; there are {}", lines.join(", "))))?,
    };
    let (format, resolution, mut notes) = (capture.format().name(), capture.resolution(), capture.notes().to_vec());
    let early = given.or(expected.program);
    let mut survey = Survey::new(lines.len(), early);
    let mut recorder = early.map(|window| recorder(window, sampling));
    let decoded = capture
        .decode(|edges| {
            for &edge in edges {
                if let (Some(low), Some(recorder)) = (survey.edge(edge), &mut recorder)
                    && low.die as usize == watched
                {
                    recorder.low(low);
                }
            }
        })
        .map_err(|error| unreadable(&error))?;
    let all = survey.all();
    let fit = Fit::new(&all, &expected);
    let suggested = || fit.as_ref().and_then(|fit| fit.window(&all));
    let (window, window_from) = match (given, expected.program) {
        (Some(window), _) => (window, "given"),
        (None, Some(window)) => (window, "from the description"),
        (None, None) => match suggested() {
            Some(window) => (window, "suggested by the fit"),
            None => return Err(nothing_to_see(args, &decoded, lines.len())),
        },
    };
    let report = match recorder {
        Some(recorder) => recorder.finish(),
        None => second_pass(args, select, watched, recorder_for(window, sampling))?,
    };
    let (head, tail) = survey.cut();
    if head + tail > 0 {
        notes.push(format!("lows cut off by the beginning ({head}) or the end ({tail}) of the capture are left out"));
    }
    if decoded.unknown > 0 {
        notes.push(format!("{} unknown values (x) were taken as no change", grouped(decoded.unknown.into())));
    }
    let estimates = estimates(&survey, &model, window, watched, &expected, fit.as_ref());
    Ok(Findings {
        args,
        format,
        lines,
        resolution,
        notes,
        decoded,
        model,
        window,
        window_from,
        watched,
        all,
        busiest: survey.busiest(),
        fit,
        recorder: report,
        estimates,
        host_bytes: None,
    })
}

fn nothing_to_see(args: &CaptureArgs, decoded: &Decoded, lines: usize) -> Failure {
    let what = if decoded.edges == 0 { "no edge" } else { "no low that could be a program" };
    Failure::input(format!("{}: {what} on its {lines} lines", args.file.display()))
        .hint("is it the right line (--line), and is low busy (--invert)?")
}

fn recorder(window: Window, sampling: Nanos) -> Recorder {
    Recorder::new(recorder_for(window, sampling))
}

fn recorder_for(window: Window, sampling: Nanos) -> Settings {
    Settings { interval: sampling, ..Settings::with_window(window) }
}

fn second_pass(args: &CaptureArgs, select: &Select, watched: usize, settings: Settings) -> Result<Report, Failure> {
    let capture = Capture::open(&args.file, select).map_err(|error| unreadable(&error))?;
    let mut survey = Survey::new(capture.lines().len(), None);
    let mut recorder = Recorder::new(settings);
    capture
        .decode(|edges| {
            for &edge in edges {
                if let Some(low) = survey.edge(edge).filter(|low| low.die as usize == watched) {
                    recorder.low(low);
                }
            }
        })
        .map_err(|error| unreadable(&error))?;
    Ok(recorder.finish())
}

fn as_json(findings: &Findings<'_>) -> Value {
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

fn show(findings: &Findings<'_>) -> Result<(), Failure> {
    let Findings { decoded, model, window, recorder, .. } = findings;
    let span = decoded.end.since(decoded.start);
    let share = if span.0 > 0 { findings.busiest.0 as f64 * 100.0 / span.0 as f64 } else { 0.0 };
    let resolution = findings.resolution.map(|time| format!(", to {time}")).unwrap_or_default();
    let head = [
        ("capture", format!("{}, {} lines{resolution}", findings.format, findings.lines.len())),
        ("length", format!("{span}, {} edges, the busiest line low for {share:.1} %", grouped(decoded.edges.into()))),
        (
            "drive",
            format!(
                "{} ({} dies), page {}, {} page{} a program",
                model.levels,
                model.levels.dies(),
                ssdlab_base::format_size(model.levels.page_bytes.into()),
                model.pages_per_low(),
                if model.pages_per_low() == 1 { "" } else { "s" },
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

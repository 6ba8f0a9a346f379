//! `ssdlab wa capture`: page programs and write amplification from a capture of Ready/Busy lines.

use std::path::PathBuf;

use clap::Args;
use ssdlab_base::Nanos;
use ssdlab_measure::capture::{Capture, CaptureError, Decoded, Select};
use ssdlab_measure::classify::{Expected, Fit, ProgramWindow, Survey, estimates};
use ssdlab_measure::recorder::{Recorder, Report, Settings};
use ssdlab_measure::{Levels, Model, ProgramModel, Window};

use super::findings::{Findings, as_json, show};
use super::{Shape, counted, grouped, size, time, window};
use crate::failure::Failure;
use crate::stdout;

/// Count page programs in a capture of Ready/Busy lines, and compute write amplification from the host's bytes.
///
/// Reads VCD, sigrok sessions (.sr), and the CSV of sigrok, PulseView, DSView and Saleae Logic, plain or gzip, in constant
/// memory; the format is recognised by content.
/// A low line is busy, and the duration of a low distinguishes programs from reads and erases. Choose --window by the
/// histogram.
///
/// The table compares methods: recorder is the paper's procedure, which samples one line; window is the same without
/// sampling; all-dies counts every line of the capture; read-filter and mixture fit the durations.
/// docs/write-amplification.md describes their errors and the 95 % intervals.
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
    pub(super) file: PathBuf,
    #[command(flatten)]
    shape: Shape,
    /// A Ready/Busy line of the capture, by its name or the last part of it; may be repeated. By default all one-bit lines
    #[arg(long, value_name = "NAME")]
    line: Vec<String>,
    /// The line that the paper's recorder probes; by default the first
    #[arg(long, value_name = "NAME")]
    watch: Option<String>,
    /// The capture is inverted: high is busy
    #[arg(long)]
    invert: bool,
    /// Sample rate of a CSV that counts samples and does not say its rate, per second
    #[arg(long, value_name = "N", value_parser = crate::args::whole::<u64>(1, u64::MAX))]
    sample_rate: Option<u64>,
    /// Lows longer than A and shorter than B are programs; by default the description's times, or what the fit suggests
    ///
    /// A description's range includes both ends. If it gives programs a single time, the window ends half way to the nearest
    /// read or erase.
    #[arg(long, value_name = "A..B")]
    window: Option<String>,
    /// Duration of reads, if known
    #[arg(long, value_name = "A..B")]
    read: Option<String>,
    /// Duration of erases, if known
    #[arg(long, value_name = "A..B")]
    erase: Option<String>,
    /// Time between two samples of the paper's recorder; at most a tenth of the window, or a note warns
    #[arg(long, value_name = "TIME", default_value = "1us")]
    pub(super) sampling: String,
    /// Bytes that the host wrote during the capture
    #[arg(long, value_name = "SIZE")]
    host_bytes: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn capture(args: &CaptureArgs) -> Result<(), Failure> {
    let given = window("--window", &args.window)?;
    let known = args.shape.known()?;
    if known.is_none() && args.shape.program_model.is_some() {
        return Err(Failure::input(
            "--program-model without --geometry or --device: a low is a page on each of how many planes?",
        ));
    }
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
    let described = known.as_ref().and_then(|known| known.window.clone());
    let windows = Windows { given, described, sampling };
    let mut findings = look(args, &select, known.map(|known| known.model), expected, &windows)?;
    findings.host_bytes = host_bytes;
    if args.shape.geometry.is_none() && args.shape.device.is_none() {
        findings
            .notes
            .push("no --geometry and no --device: the lines are taken for all dies, of one plane each".into());
    }
    if args.json { stdout::print_json(&as_json(&findings)) } else { show(&findings) }
}

/// The windows that are known before the capture is, and how often the recorder samples.
struct Windows {
    given: Option<Window>,
    described: Option<ProgramWindow>,
    sampling: Nanos,
}

impl Windows {
    /// The one that goes before the fit's.
    fn early(&self) -> Option<Window> {
        self.given.or(self.described.as_ref().map(|described| described.window))
    }

    /// What misleads where this window is taken, in a capture of this resolution.
    fn notes(&self, window: Window, resolution: Option<Nanos>) -> Vec<String> {
        let described = self.described.as_ref().filter(|_| self.given.is_none());
        let mut notes = described.map_or_else(Vec::new, |described| described.notes.clone());
        if described.is_some_and(|described| described.room.is_some()) {
            notes.push(
                "where the description gives programs one time and no range, the window ends half way to the nearest read \
                 or erase"
                    .to_string(),
            );
        }
        let narrow = |interval: Nanos| match described {
            Some(described) => described.is_narrow_for(interval),
            None => window.is_narrow_for(interval),
        };
        let lost = "programs may leave the window and other operations get into it";
        if narrow(self.sampling) {
            notes.push(format!(
                "the recorder's sample each {} is too slow for the window {window}: {lost} (choose a shorter --sampling, or \
                 a wider --window)",
                self.sampling
            ));
        }
        if let Some(resolution) = resolution.filter(|&resolution| narrow(resolution)) {
            notes.push(format!(
                "the capture itself tells times to {resolution}, which is too coarse for the window {window}: {lost} \
                 (capture with a higher rate, or choose a wider --window)"
            ));
        }
        notes
    }
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
    windows: &Windows,
) -> Result<Findings<'a>, Failure> {
    let capture = Capture::open(&args.file, select).map_err(|error| unreadable(&error))?;
    let lines = capture.lines().to_vec();
    let model = model.map_or_else(|| every_line_a_die(lines.len(), args), Ok)?;
    let dies = model.levels.dies();
    if lines.len() as u64 > dies {
        let (file, lines) = (args.file.display(), counted(lines.len() as u64, "line"));
        let dies = counted(dies, "die");
        return Err(Failure::input(format!("{file}: {lines}, and a drive of {} has {dies}", model.levels))
            .hint("name the Ready/Busy lines with --line, or correct --geometry"));
    }
    let watched = match &args.watch {
        None => 0,
        Some(name) => capture.line(name).map_err(|what| Failure::input(format!("--watch: {what}")))?,
    };
    let (format, resolution, mut notes) = (capture.format().name(), capture.resolution(), capture.notes().to_vec());
    let early = windows.early();
    let mut survey = Survey::new(lines.len(), early);
    let mut recorder = early.map(|window| recorder(window, windows.sampling));
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
    let (window, window_from) = match (early, windows.given) {
        (Some(window), Some(_)) => (window, "given"),
        (Some(window), None) => (window, "from the description"),
        (None, _) => match suggested() {
            Some(window) => (window, "suggested by the fit"),
            None => return Err(nothing_to_see(args, &decoded, lines.len())),
        },
    };
    notes.extend(windows.notes(window, resolution));
    let report = match recorder {
        Some(recorder) => recorder.finish(),
        None => second_pass(args, select, watched, recorder_for(window, windows.sampling))?,
    };
    let (head, tail) = survey.cut();
    if head + tail > 0 {
        notes.push(format!("lows cut off by the beginning ({head}) or the end ({tail}) of the capture are left out"));
    }
    if decoded.edges == 0 {
        notes.push(format!("no edge on its {}: is it the right line (--line)?", counted(lines.len() as u64, "line")));
    }
    if let Some((line, byte)) = decoded.unfinished {
        notes.push(format!(
            "the last line, {line}, has no end (the data end after {byte} bytes): if the file was cut off there, its last \
             time or value is not whole, and lows behind it are missing"
        ));
    }
    if fit.as_ref().is_some_and(|fit| !fit.settled) {
        notes.push("the fit had not settled when it was stopped: hold its shares against the histogram".to_string());
    }
    let hidden = fit.as_ref().map_or(0.0, |fit| fit.hidden(&all, &expected)).floor();
    if hidden > 0.0 {
        notes.push(format!(
            "the fit gives reads or erases no share though some were expected: up to {} counted as programs may be \
             such (95 %), and the mixture's interval goes down so far",
            counted(hidden as u64, "low")
        ));
    }
    if decoded.unknown > 0 {
        notes.push(format!("{} unknown values (x, U, W, -) were taken as no change", grouped(decoded.unknown.into())));
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
    Failure::input(format!("{}: {what} on its {}", args.file.display(), counted(lines as u64, "line")))
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

//! `ssdlab run`: drives, a workload and an age from the command line to a table and files.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use ssdlab_base::{Nanos, closest};
use ssdlab_device::{Description, DriveConfig};
use ssdlab_flash::DieId;
use ssdlab_flash::Geometry;
use ssdlab_lab::perfetto::TraceWindow;
use ssdlab_lab::subtests::volumes;
use ssdlab_lab::{
    Age, Asked, Breakdown, Control, Entrant, Experiment, Observe, Recording, RunError, RunIntoError, RunResult,
    Sending, SnapshotCache, SourceError, Subtests, TextSource, WorkloadSource, output, table,
};
use ssdlab_measure::Levels;
use ssdlab_workload::WorkloadKind;
use ssdlab_workload::fio::Variables;
use ssdlab_workload::replay::Fit;

use crate::args::Run;
use crate::failure::Failure;
use crate::memory::allowed;
use crate::reproduce::cores;
use crate::trace::variables;
use crate::waveform::Waveform;
use crate::{interrupt, progress, shipped, stderr, stdout};

/// The kinds of preconditioning that have a name.
const AGES: [&str; 4] = ["none", "fill", "footprint", "steady"];

/// Runs what was asked for, prints it, and says whether it can be trusted.
pub(crate) fn run(args: Run) -> Result<ExitCode, Failure> {
    let descriptions = described(&args)?;
    let drives = entrants(&args, &descriptions)?;
    let refused = |error| refused(error, &drives, &descriptions);
    let sending = sending(&args)?;
    let variables = variables(&args.env)?;
    let workload = TextSource::open_with(&args.workload, sending, args.seed, &variables)?;
    let steady_under = args.precondition.strip_prefix("steady:");
    let aged_by = match args.precondition.as_str() {
        "none" | "fill" | "footprint" | "steady" => None,
        other => Some(open_beside(steady_under.unwrap_or(other), sending, args.seed, &variables).map_err(|error| {
            let takes = "none, fill, footprint, steady, steady:WORKLOAD, or a workload as --workload takes it";
            // What looks like the name of a file or like options was meant as a workload.
            if other.contains(['/', '.', '=', ':']) || Path::new(other).exists() {
                return Failure::from(error).hint(format!("--precondition takes {takes}"));
            }
            let refused = Failure::input(format!("--precondition: found '{other}', expected {takes}"));
            match closest(other, AGES) {
                Some(word) => refused.hint(format!("did you mean '{word}'?")),
                None => refused,
            }
        })?),
    };
    let age = match (args.precondition.as_str(), &aged_by) {
        (_, Some(source)) if steady_under.is_some() => Age::SteadyUnder(source),
        (_, Some(source)) => Age::Workload(source),
        ("fill", _) => Age::Fill,
        ("footprint", _) => Age::Touched,
        ("steady", _) => Age::Steady,
        _ => Age::None,
    };
    let window: Option<TraceWindow> = match &args.trace_window {
        Some(text) => Some(text.parse().map_err(|error| Failure::input(format!("--trace-window: {error}")))?),
        None => None,
    };
    let timeline_interval = args.timeline_interval.as_deref().map(interval).transpose()?;
    let initial = args.initial.as_ref().map(|text| open_beside(text, sending, args.seed, &variables)).transpose()?;
    let subtests = match &args.subtests {
        Some(text) => Some(Subtests {
            volumes: volumes(text).map_err(|error| Failure::input(format!("--subtests: {error}")))?,
            initial: initial.as_ref().map(|source| source as &dyn WorkloadSource),
        }),
        None => None,
    };
    // The slowest are told apart by their breakdown, and the requests of a trace window show what they waited for.
    let breakdown = (args.latency_breakdown || args.slowest.is_some() || window.is_some())
        .then(|| Breakdown { slowest: args.slowest.unwrap_or(0) });
    let snapshots = if args.no_snapshot { None } else { snapshots()? };
    let host = args.host.as_deref().map(shipped::host).transpose()?;
    let allowed = allowed(args.memory.as_deref())?;
    let experiment = Experiment {
        drives: &drives,
        host: host.as_ref(),
        precondition_below: args.precondition_below,
        workload: &workload,
        age,
        seed: args.seed,
        verify: args.verify,
        snapshots: snapshots.as_ref(),
        recording: args.rb_probe.as_ref().map(|line| recording(line, &drives)).transpose()?,
        subtests,
        breakdown,
        jobs: args.jobs.map_or_else(cores, |jobs| jobs as usize),
        memory_bytes: allowed.bytes,
        timeline_interval,
        asked: Asked {
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            started: Some(ssdlab_lab::utc(SystemTime::now())),
            workload: args.workload.clone(),
            replay: workload.replay(),
            precondition: args.precondition.clone(),
            host: args.host.as_ref().map(|file| file.display().to_string()),
        },
    };
    let memory = experiment.memory().map_err(refused)?;
    let configs = drives.iter().map(|entrant| &entrant.config);
    allowed.check_run(&configs.zip(memory).collect::<Vec<_>>())?;
    let line = progress::Line::new(args.quiet);
    let control = Control::new(interrupt::listen()?, &line);
    let waveform = args.vcd.as_ref().map(|path| Waveform::begin(path, &drives)).transpose()?;
    let mut probe = |_: &str, _: &Geometry| waveform.as_ref().map_or_else(Waveform::nobody, Waveform::observer);
    let observe: Option<&mut Observe<'_>> = if waveform.is_some() { Some(&mut probe) } else { None };
    let (result, written) = match &args.out {
        None => (ssdlab_lab::run(&experiment, observe, &control).map_err(refused)?, Ok(())),
        Some(folder) => {
            let outcome = ssdlab_lab::run_into_observed(&experiment, folder, window, observe, &control);
            let outcome = outcome.map_err(|error| match error {
                RunIntoError::Run(error) => refused(error),
                RunIntoError::Output(error) => Failure::from(error),
            })?;
            (outcome.result, outcome.written)
        }
    };
    if let (Some(waveform), Some(device)) = (waveform, result.devices.first()) {
        waveform.finish(Nanos(device.virtual_time_ns))?;
    }
    for note in &result.notes {
        stderr::note(note);
    }
    if result.devices.is_empty() {
        let files = if args.out.is_some() { ", and no file was written" } else { "" };
        return Err(Failure::work(format!(
            "the run was interrupted before the first drive was ready: there are no results{files}"
        )));
    }
    show(&args, &result, written.is_ok())?;
    written
        .map_err(|error| Failure::work(&error).hint("no file of this run was left behind; the results are above"))?;
    Ok(if result.complete && result.checks_held() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(args: &Run, result: &RunResult, written: bool) -> Result<(), Failure> {
    if args.json {
        return stdout::print_as_json(|to| output::write_json(result, to));
    }
    stdout::print(|to| {
        to.write_all(table::render(result).as_bytes())?;
        match &args.out {
            Some(folder) if written => writeln!(to, "\n{}", folder.join("report.html").display()),
            _ => Ok(()),
        }
    })
}

/// The die that `--rb-probe` names by its number or its line, the same in all drives.
fn recording(line: &str, drives: &[Entrant]) -> Result<Recording, Failure> {
    if let Ok(die) = line.parse() {
        return Ok(Recording { die: DieId(die) });
    }
    let mut found: Option<(u32, &str)> = None;
    for drive in drives {
        let levels = Levels::of(&drive.config.flash.geometry);
        let Some(die) = levels.die_named(line) else {
            let last = u32::try_from(levels.dies() - 1).unwrap_or(u32::MAX);
            let (first, end) = (levels.line_name(0), levels.line_name(last));
            return Err(Failure::input(format!(
                "--rb-probe: found '{line}', which is no die of {}; expected {first} to {end}, or 0 to {last}",
                drive.label
            )));
        };
        match found {
            Some((other, label)) if other != die => {
                return Err(Failure::input(format!(
                    "--rb-probe {line}: it is die {other} of {label} and die {die} of {}",
                    drive.label
                ))
                .hint("give a die's number, or run the drives one after the other"));
            }
            _ => found = Some((die, &drive.label)),
        }
    }
    let (die, _) = found.ok_or_else(|| Failure::input("--rb-probe: there is no drive to probe"))?;
    Ok(Recording { die: DieId(die) })
}

/// What `--timeline-interval` says.
fn interval(text: &str) -> Result<Nanos, Failure> {
    let refused = |why: &str| Failure::input(format!("--timeline-interval: {why}; expected a time such as 100ms"));
    let interval: Nanos = ssdlab_base::parse_duration(text).map_err(|error| refused(&format!("{error}")))?;
    if interval < Nanos::from_us(1) {
        return Err(refused(&format!("found '{text}', which is shorter than 1us")));
    }
    Ok(interval)
}

/// The user's cache; `SSDLAB_CHECKPOINT_EVERY` says how often preconditioning leaves a checkpoint there.
fn snapshots() -> Result<Option<SnapshotCache>, Failure> {
    const EVERY: &str = "SSDLAB_CHECKPOINT_EVERY";
    let cache = SnapshotCache::of_user();
    let Some(text) = std::env::var_os(EVERY).filter(|text| !text.is_empty()) else { return Ok(cache) };
    let every: Nanos = ssdlab_base::parse_duration(&text.to_string_lossy())
        .map_err(|error| Failure::input(format!("{EVERY}: {error}; expected a time such as 10s")))?;
    Ok(cache.map(|cache| cache.checkpoint_every(Duration::from_nanos(every.0))))
}

/// What `--replay`, `--wrap`, `--fit` and `--limit` say.
fn sending(args: &Run) -> Result<Sending, Failure> {
    let discipline = match &args.replay {
        Some(text) => Some(text.parse().map_err(|error| Failure::input(format!("--replay: {error}")))?),
        None => None,
    };
    let fit = match (args.wrap, args.fit) {
        (true, _) => Fit::Wrap,
        (_, true) => Fit::Dense,
        _ => Fit::Exact,
    };
    Ok(Sending { discipline, fit, limit: args.limit })
}

/// A workload that is sent besides the measured one, whole: --wrap and --fit hold for it where it is a trace, too.
fn open_beside(text: &str, sending: Sending, seed: u64, variables: &Variables) -> Result<TextSource, SourceError> {
    let is_fio = text.starts_with("micro:")
        || matches!(WorkloadKind::of(text), WorkloadKind::Specification | WorkloadKind::JobFile);
    let fit = if is_fio { Fit::Exact } else { sending.fit };
    TextSource::open_with(text, Sending { fit, ..sending.whole() }, seed, variables)
}

/// The descriptions of the drives, with their overrides.
fn described(args: &Run) -> Result<Vec<Description>, Failure> {
    let mut descriptions = args.device.iter().map(|device| shipped::open(device)).collect::<Result<Vec<_>, _>>()?;
    for assignment in &args.set {
        let (scope, assignment) = scoped(assignment);
        for index in chosen(scope, args, &descriptions)? {
            descriptions[index].set(assignment).map_err(Failure::input)?;
        }
    }
    Ok(descriptions)
}

/// The drives that they describe, in their order.
fn entrants(args: &Run, descriptions: &[Description]) -> Result<Vec<Entrant>, Failure> {
    let entrant = |description: &Description| -> Result<Entrant, Failure> {
        let config: DriveConfig = description.resolve().map_err(Failure::input)?;
        Ok(Entrant { label: config.name.clone(), config })
    };
    let mut entrants: Vec<Entrant> = descriptions.iter().map(entrant).collect::<Result<_, _>>()?;
    tell_apart(&mut entrants, &args.device);
    Ok(entrants)
}

/// A drive whose name is taken is called after its file, or else numbered.
fn tell_apart(entrants: &mut [Entrant], devices: &[String]) {
    for (index, device) in devices.iter().enumerate().skip(1) {
        let (before, rest) = entrants.split_at_mut(index);
        let taken = |label: &str| before.iter().any(|other| other.label == label);
        let entrant = &mut rest[0];
        if !taken(&entrant.label) {
            continue;
        }
        let stem = Path::new(device).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let numbered = || format!("{} ({})", entrant.label, index + 1);
        entrant.label = stem.filter(|stem| !taken(stem)).unwrap_or_else(numbered);
    }
}

/// Takes `DRIVE:` off an assignment: keys have no colon, values may have.
fn scoped(assignment: &str) -> (Option<&str>, &str) {
    let key = assignment.find('=').unwrap_or(assignment.len());
    match assignment[..key].rfind(':') {
        Some(colon) => (Some(&assignment[..colon]), &assignment[colon + 1..]),
        None => (None, assignment),
    }
}

/// The places of the drives that `DRIVE:` means: a place from 1, or a name as it was given or as the file says.
fn chosen(scope: Option<&str>, args: &Run, descriptions: &[Description]) -> Result<Vec<usize>, Failure> {
    let Some(scope) = scope else { return Ok((0..descriptions.len()).collect()) };
    if let Ok(place) = scope.parse::<usize>()
        && (1..=descriptions.len()).contains(&place)
    {
        return Ok(vec![place - 1]);
    }
    let called = |index: &usize| {
        let given = &args.device[*index];
        given == scope
            || Path::new(given).file_stem().is_some_and(|stem| stem == scope)
            || descriptions[*index].resolve().is_ok_and(|config| config.name == scope)
    };
    let places: Vec<usize> = (0..descriptions.len()).filter(called).collect();
    if places.is_empty() {
        let drives = match &args.device[..] {
            [one] => format!("the only drive is {one}, or 1"),
            all => format!("the drives are {}, or 1 to {}", all.join(", "), all.len()),
        };
        return Err(Failure::input(format!("--set {scope}:...: no drive of this run is called '{scope}'")).hint(drives));
    }
    Ok(places)
}

/// Why an experiment cannot be run; what is wrong with a drive is told with its place in the description.
fn refused(error: RunError, drives: &[Entrant], descriptions: &[Description]) -> Failure {
    match &error {
        RunError::Drive { label, source } => match drives.iter().position(|drive| drive.label == *label) {
            Some(index) => Failure::input(descriptions[index].place(source)),
            None => Failure::input(&error),
        },
        RunError::SameLabel { .. } => {
            Failure::input(&error).hint("give one another name, for example with --set 2:name=other")
        }
        _ => Failure::input(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::scoped;

    #[test]
    fn only_what_stands_before_the_key_is_taken_for_a_drive() {
        assert_eq!(scoped("gc.victim=fifo"), (None, "gc.victim=fifo"));
        assert_eq!(scoped("2:gc.victim=fifo"), (Some("2"), "gc.victim=fifo"));
        assert_eq!(scoped("a:b:name=x"), (Some("a:b"), "name=x"));
        assert_eq!(scoped("name=a:b"), (None, "name=a:b"));
        assert_eq!(scoped("nonsense"), (None, "nonsense"));
        assert_eq!(scoped(""), (None, ""));
    }
}

//! `ssdlab run`: drives, a workload and a preconditioning from the command line to a table and files.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use ssdlab::Device;
use ssdlab::variants::{Variant, duts, overrides, vary};
use ssdlab_base::Nanos;
use ssdlab_flash::DieId;
use ssdlab_flash::Geometry;
use ssdlab_lab::output::Staging;
use ssdlab_lab::perfetto::TraceWindow;
use ssdlab_lab::precondition::workload_of;
use ssdlab_lab::subtests::volumes;
use ssdlab_lab::variants::{Axis, merged};
use ssdlab_lab::{
    Breakdown, Control, DeviceUnderTest, Experiment, Observe, Provenance, Recording, ReplayOptions, RunError,
    RunIntoError, RunResult, SnapshotCache, Subtests, TextPreconditioning, TextSource, WorkloadSource, output, table,
};
use ssdlab_measure::Levels;
use ssdlab_workload::file_of;
use ssdlab_workload::replay::Fit;

use crate::args::{Run, time_of_environment};
use crate::failure::Failure;
use crate::memory::allowed;
use crate::reproduce::cores;
use crate::trace::variables;
use crate::waveform::Waveform;
use crate::{interrupt, outputs, progress, shipped, stderr, stdout};

/// Runs what was asked for, prints it, and says whether it can be trusted.
pub(crate) fn run(args: Run) -> Result<ExitCode, Failure> {
    let (host, host_drives) = args.host.as_deref().map(shipped::host_and_drives).transpose()?.unzip();
    let alone = host.as_ref().filter(|_| args.device.is_empty());
    let named = host_drives.as_deref().unwrap_or(&[]);
    let stand_in = alone.map(|host| shipped::stand_in(host, named, &args.set)).transpose()?;
    let variants = match &stand_in {
        Some(device) => varied(&args, vec![device.clone()])?,
        None => varied(&args, devices(&args)?)?,
    };
    let drives = duts(&variants, |drives| tell_apart(drives, &args.device))?;
    let refused = |error| refused(error, &drives, &variants);
    let replay = replay_options(&args)?;
    let variables = variables(&args.env)?;
    let window: Option<TraceWindow> = match &args.trace_window {
        Some(text) => Some(text.parse().map_err(|error| Failure::input(format!("--trace-window: {error}")))?),
        None => None,
    };
    let timeline_interval = args.timeline_interval.as_deref().map(interval).transpose()?;
    let volumes = match &args.subtests {
        Some(text) => Some(volumes(text).map_err(|error| Failure::input(format!("--subtests: {error}")))?),
        None => None,
    };
    // The slowest are told apart by their breakdown, and the requests of a trace window show what they waited for.
    let breakdown = (args.latency_breakdown || args.slowest.is_some() || window.is_some())
        .then(|| Breakdown { slowest: args.slowest.unwrap_or(0) });
    let snapshots = if args.no_snapshot { None } else { snapshots()? };
    let allowed = allowed(args.memory.as_deref())?;
    let recording = args.rb_probe.as_ref().map(|line| recording(line, &drives)).transpose()?;
    let progress = progress::shown(args.quiet)?;
    let control = Control::new(interrupt::listen()?, &*progress);
    if let Some(path) = &args.vcd {
        let drives = args.device.iter().chain(host_drives.iter().flatten()).map(Path::new);
        let workloads = [Some(args.workload.as_str()), workload_of(&args.precondition), args.initial.as_deref()];
        let workloads = workloads.into_iter().flatten().filter_map(file_of);
        outputs::is_not_read("--vcd ", path, drives.chain(workloads).chain(args.host.as_deref()))?;
    }
    let waveform = args.vcd.as_ref().map(|path| Waveform::begin(path, &drives)).transpose()?;
    let mut probe = |_: &str, _: &Geometry| waveform.as_ref().map_or_else(Waveform::nobody, Waveform::observer);
    if let Some(folder) = args.out.as_ref().filter(|_| args.repeat > 1) {
        // A wrong folder does not cost a run.
        Staging::of_run(folder)?;
    }
    let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let started = ssdlab_lab::utc(SystemTime::now());
    let overrides = overrides(&drives, &variants);

    let (mut repetitions, mut written) = (Vec::new(), Ok(()));
    for repetition in 0..args.repeat {
        let seed = args.seed.wrapping_add(repetition.into());
        let workload = TextSource::open_with(&args.workload, replay, seed, &variables)?;
        let precondition = TextPreconditioning::open(&args.precondition, replay, seed, &variables)?;
        let initial = args.initial.as_ref().map(|text| TextSource::open_beside(text, replay, seed, &variables));
        let initial = initial.transpose()?;
        let initial = initial.as_ref().map(|source| source as &dyn WorkloadSource);
        let experiment = Experiment {
            drives: &drives,
            host: host.as_ref(),
            precondition_below: args.precondition_below,
            workload: &workload,
            preconditioning: precondition.preconditioning(),
            seed,
            verify: args.verify,
            snapshots: snapshots.as_ref(),
            recording,
            subtests: volumes.clone().map(|volumes| Subtests { volumes, initial }),
            breakdown,
            jobs: args.jobs.map_or_else(cores, |jobs| jobs as usize),
            memory_bytes: allowed.bytes,
            timeline_interval,
            provenance: Provenance {
                title: args.title.clone(),
                command: command.clone(),
                started: Some(started.clone()),
                workload: args.workload.clone(),
                replay: workload.replay(),
                precondition: args.precondition.clone(),
                host: args.host.as_ref().map(|file| file.display().to_string()),
                overrides: overrides.clone(),
            },
        };
        if repetition == 0 {
            let memory = experiment.memory().map_err(refused)?;
            host.as_ref().map_or(Ok(()), |host| allowed.check_host(host))?;
            let configs = drives.iter().map(|dut| &dut.config);
            allowed.check_run(&configs.zip(memory).collect::<Vec<_>>())?;
        }
        let observe: Option<&mut Observe<'_>> = if waveform.is_some() { Some(&mut probe) } else { None };
        let result = match args.out.as_ref().filter(|_| args.repeat == 1) {
            None => ssdlab_lab::run(&experiment, observe, &control).map_err(refused)?,
            Some(folder) => {
                let outcome = ssdlab_lab::run_into_observed(&experiment, folder, window, observe, &control);
                let outcome = outcome.map_err(|error| match error {
                    RunIntoError::Run(error) => refused(error),
                    RunIntoError::Output(error) => Failure::from(error),
                })?;
                written = outcome.written;
                outcome.result
            }
        };
        let complete = result.complete;
        repetitions.push(result);
        if !complete {
            break;
        }
    }
    let result = if args.repeat == 1 { repetitions.remove(0) } else { merged(repetitions) };
    if let (Some(folder), false) = (args.out.as_ref().filter(|_| args.repeat > 1), result.devices.is_empty()) {
        written = output::write_into(folder, &result);
    }
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
fn recording(line: &str, drives: &[DeviceUnderTest]) -> Result<Recording, Failure> {
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
    let cache = SnapshotCache::of_user();
    Ok(match time_of_environment("SSDLAB_CHECKPOINT_EVERY", "10s")? {
        Some(every) => cache.map(|cache| cache.checkpoint_every(every)),
        None => cache,
    })
}

/// What `--replay`, `--wrap`, `--fit` and `--limit` say.
fn replay_options(args: &Run) -> Result<ReplayOptions, Failure> {
    let discipline = match &args.replay {
        Some(text) => Some(text.parse().map_err(|error| Failure::input(format!("--replay: {error}")))?),
        None => None,
    };
    let fit = match (args.wrap, args.fit) {
        (true, _) => Fit::Wrap,
        (_, true) => Fit::Dense,
        _ => Fit::Exact,
    };
    Ok(ReplayOptions { discipline, fit, limit: args.limit })
}

/// The drives, with what `--set` lays over them.
fn devices(args: &Run) -> Result<Vec<Device>, Failure> {
    let mut devices = args.device.iter().map(|device| Device::open(device)).collect::<Result<Vec<_>, _>>()?;
    for assignment in &args.set {
        let (scope, assignment) = scoped(assignment);
        for index in chosen(scope, args, &devices)? {
            devices[index].set_by("--set", assignment)?;
        }
    }
    Ok(devices)
}

/// Refuses what looks like a key of one drive, or is none of drives but of runs.
fn varies_a_key(axis: &Axis) -> Result<(), Failure> {
    if let (Some(scope), key) = scoped(&axis.key) {
        let found = format!("--vary: found '{scope}:' before {key}, expected a key alone: it varies all drives");
        return Err(Failure::input(found).hint(format!("--set {scope}:{key}=VALUE sets it on one drive")));
    }
    if axis.key == "seed" {
        let hint = "--repeat N runs everything with N seeds, --seed and those after it";
        return Err(Failure::input("--vary: 'seed' is no key of a drive").hint(hint));
    }
    Ok(())
}

/// Every drive in all its variants.
fn varied(args: &Run, devices: Vec<Device>) -> Result<Vec<Variant>, Failure> {
    let axes = args.vary.iter().map(|axis| axis.parse()).collect::<Result<Vec<Axis>, _>>();
    let axes = axes.map_err(ssdlab::Error::Vary)?;
    axes.iter().try_for_each(varies_a_key)?;
    Ok(vary(devices, &axes)?)
}

/// A drive whose name is taken is called after its file, or else numbered.
fn tell_apart(duts: &mut [DeviceUnderTest], devices: &[String]) {
    for (index, device) in devices.iter().enumerate().skip(1) {
        let (before, rest) = duts.split_at_mut(index);
        let taken = |label: &str| before.iter().any(|other| other.label == label);
        let dut = &mut rest[0];
        if !taken(&dut.label) {
            continue;
        }
        let stem = Path::new(device).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let numbered = || format!("{} ({})", dut.label, index + 1);
        dut.label = stem.filter(|stem| !taken(stem)).unwrap_or_else(numbered);
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
fn chosen(scope: Option<&str>, args: &Run, devices: &[Device]) -> Result<Vec<usize>, Failure> {
    let Some(scope) = scope else { return Ok((0..devices.len()).collect()) };
    if let Ok(place) = scope.parse::<usize>()
        && (1..=devices.len()).contains(&place)
    {
        return Ok(vec![place - 1]);
    }
    let called = |index: &usize| {
        let given = &args.device[*index];
        given == scope
            || Path::new(given).file_stem().is_some_and(|stem| stem == scope)
            || devices[*index].config().is_ok_and(|config| config.name == scope)
    };
    let places: Vec<usize> = (0..devices.len()).filter(called).collect();
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
fn refused(error: RunError, drives: &[DeviceUnderTest], variants: &[Variant]) -> Failure {
    match &error {
        RunError::Drive { label, source } => match drives.iter().position(|drive| drive.label == *label) {
            Some(index) => Failure::input(variants[index].device.description().place(source)),
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

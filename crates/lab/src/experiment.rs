//! An experiment: drives, each brought to the same state and then driven by the same workload.
//!
//! ```text
//!   for each drive:  snapshot or preconditioning --> statistics reset --> replay --> checks, warnings --> DeviceResult
//! ```
//!
//! Each drive opens the workload anew, so that all see the same workload and none sees another; several run at a time,
//! which changes no result. Nothing is written but snapshots; [`run_into`] adds the files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use ssdlab_base::command_sets;
use ssdlab_base::{Nanos, SECTOR_BYTES};
use ssdlab_device::{DriveConfig, DriveError};
use ssdlab_flash::{Geometry, Observer, OpKind};
use ssdlab_host::{Administration, BlockDevice, Host};
use ssdlab_workload::Workload;

use crate::breakdown::{Breakdown, Gathered, RequestLanes};
use crate::observers::Both;
use crate::output::{OutputError, Staging, write_results};
use crate::perfetto::{Trace, TraceWindow};
use crate::precondition::Preconditioning;
use crate::progress::{Control, Phase};
use crate::ready_busy::{Recording, Watch, WatchError};
use crate::replay::{Ended, Recorder, ReplayError, replay};
use crate::result::{DeviceResult, FORMAT, RunResult, VERSION};
use crate::snapshot::SnapshotCache;
use crate::source::WorkloadSource;
use crate::subtests::{Divided, Subtests};
use crate::timeline::Axis;
use crate::verify::{self, Verified, Verifier};
use crate::warnings::{Circumstances, FreeSpace};

pub use stack::StackRefused;
pub(crate) use stack::{Stack, fresh, seen_by_workloads};
pub(crate) use summary::{Before, below_file_system};

mod parts;
mod side_by_side;
mod stack;
mod summary;

/// A drive that takes part.
#[derive(Clone, Debug)]
pub struct DeviceUnderTest {
    /// What it is called in the results; unique in an experiment.
    pub label: String,
    /// What it is.
    pub config: DriveConfig,
}

/// What is to be run.
pub struct Experiment<'a> {
    /// The drives, in the order of the results.
    pub drives: &'a [DeviceUnderTest],
    /// What stands above each drive; one that names several drives stands above all of them.
    pub host: Option<&'a Host>,
    /// Drives are preconditioned one by one, without the host. So they are in any case where the host passes every sector
    /// of one drive through and keeps nothing.
    pub precondition_below: bool,
    /// The measured workload, replay discipline included.
    pub workload: &'a dyn WorkloadSource,
    /// The state that the drives are brought to before it.
    pub preconditioning: Preconditioning<'a>,
    /// The seed of everything random in the drives.
    pub seed: u64,
    /// Whether every read is compared with what was written. The drive then keeps a stamp a sector and the comparison
    /// another, 16 bytes for each 512 of flash, and the drives are aged anew.
    pub verify: bool,
    /// Where preconditioned drives are kept; `None` preconditions each time and keeps nothing.
    pub snapshots: Option<&'a SnapshotCache>,
    /// Whether the Ready/Busy lines are recorded, and on which die's the recorder is.
    pub recording: Option<Recording>,
    /// Whether the workload is sent in sub-tests, with a long quiet between them.
    pub subtests: Option<Subtests<'a>>,
    /// Whether results say what requests waited for.
    pub breakdown: Option<Breakdown>,
    /// How many drives run at a time; with an observer they run one after the other.
    pub jobs: usize,
    /// Memory that the drives that run at a time may take together, in bytes; one always runs.
    pub memory_bytes: u64,
    /// The timeline's interval; by default a run of any length has some hundred.
    pub timeline_interval: Option<Nanos>,
    /// What the results say was asked for.
    pub provenance: Provenance,
}

impl<'a> Experiment<'a> {
    /// `workload` on fresh drives without a host, with seed 1, one drive at a time; nothing else is recorded or kept.
    pub fn new(drives: &'a [DeviceUnderTest], workload: &'a dyn WorkloadSource) -> Experiment<'a> {
        Experiment {
            drives,
            host: None,
            precondition_below: false,
            workload,
            preconditioning: Preconditioning::None,
            seed: 1,
            verify: false,
            snapshots: None,
            recording: None,
            subtests: None,
            breakdown: None,
            jobs: 1,
            memory_bytes: u64::MAX,
            timeline_interval: None,
            provenance: Provenance { workload: workload.name(), ..Provenance::default() },
        }
    }
}

/// What was asked for, in the words of the person who did: it is repeated in the results.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// What the run is called; nothing names it after its drives and its workload.
    pub title: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// When, as [`crate::utc`] writes it; nothing keeps the results free of the wall clock.
    pub started: Option<String>,
    /// The workload.
    pub workload: String,
    /// The replay discipline.
    pub replay: String,
    /// The preconditioning.
    pub precondition: String,
    /// The description of the host, where there is one.
    pub host: Option<String>,
    /// What was laid over the descriptions: keys and values by the drive's label.
    pub overrides: BTreeMap<String, BTreeMap<String, String>>,
}

/// Why an experiment cannot be run. In all cases the input was wrong, not the drive.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The drive's configuration is refused.
    #[error("{label}: {source}")]
    Drive {
        /// The drive.
        label: String,
        /// The key and the reason.
        source: DriveError,
    },
    /// The workload cannot be read, or does not fit the drive.
    #[error("{label}: {source}")]
    Replay {
        /// The drive.
        label: String,
        /// The reason.
        source: ReplayError,
    },
    /// The layers of the host cannot stand on their drives, or what was asked for cannot be had of a stack.
    #[error("{label}: {source}")]
    Stack {
        /// The drive.
        label: String,
        /// The reason.
        source: StackRefused,
    },
    /// The Ready/Busy lines cannot be recorded.
    #[error("{label}: {source}")]
    Recording {
        /// The drive.
        label: String,
        /// The reason.
        source: WatchError,
    },
    /// Two drives have the same label.
    #[error("two drives are called '{label}': their results could not be told apart")]
    SameLabel {
        /// The label.
        label: String,
    },
}

/// Makes the observer of a drive's measured run.
pub type Observe<'a> = dyn FnMut(&str, &Geometry) -> Box<dyn Observer> + 'a;

/// Makes what takes the requests of a drive's measured run as they complete.
type Lanes<'a> = dyn FnMut(&str) -> Box<dyn RequestLanes> + 'a;

/// Runs the experiment. Setting the stop flag ends it early with what it has, marked as incomplete.
pub fn run(
    experiment: &Experiment<'_>,
    observe: Option<&mut Observe<'_>>,
    control: &Control<'_>,
) -> Result<RunResult, RunError> {
    run_in_lanes(experiment, observe, None, control)
}

/// Runs the experiment as [`run`] does; `lanes` makes what takes every request of a drive's measured run.
fn run_in_lanes(
    experiment: &Experiment<'_>,
    mut observe: Option<&mut Observe<'_>>,
    mut lanes: Option<&mut Lanes<'_>>,
    control: &Control<'_>,
) -> Result<RunResult, RunError> {
    for (index, dut) in experiment.drives.iter().enumerate() {
        if experiment.drives[..index].iter().any(|other| other.label == dut.label) {
            return Err(RunError::SameLabel { label: dut.label.clone() });
        }
    }
    let provenance = &experiment.provenance;
    let mut result = RunResult {
        format: FORMAT,
        version: VERSION.to_string(),
        complete: true,
        seed: experiment.seed,
        title: provenance.title.clone(),
        command: provenance.command.clone(),
        wall_started: provenance.started.clone(),
        workload: provenance.workload.clone(),
        replay: provenance.replay.clone(),
        precondition: provenance.precondition.clone(),
        host: provenance.host.clone(),
        notes: Vec::new(),
        devices: Vec::with_capacity(experiment.drives.len()),
    };
    let mut ran = Vec::new();
    if observe.is_none() && lanes.is_none() && experiment.jobs.min(experiment.drives.len()) > 1 {
        ran = side_by_side::run(experiment, control);
    } else {
        for dut in experiment.drives {
            let observe: Option<&mut Observe<'_>> = match &mut observe {
                Some(observe) => Some(&mut **observe),
                None => None,
            };
            let lanes = lanes.as_mut().map(|lanes| lanes(&dut.label));
            ran.push(run_drive(experiment, dut, observe, lanes, control));
            if control.stopped() || ran.last().is_some_and(Result::is_err) {
                break;
            }
        }
    }
    control.progress.finish();
    result.complete = ran.len() == experiment.drives.len();
    for device in ran {
        // A drive that was stopped while it was preconditioned has no results; one that was stopped in the run has some.
        match device? {
            Some(mut device) => {
                result.complete &= device.complete;
                device.overrides = provenance.overrides.get(&device.name).cloned().unwrap_or_default();
                result.devices.push(device);
            }
            None => result.complete = false,
        }
    }
    result.notes = notes(experiment.workload, experiment);
    if let Some(source) = experiment.preconditioning.source() {
        result.notes.extend(notes(source, experiment));
    }
    for note in result.devices.iter().flat_map(|device| &device.notes) {
        if !result.notes.contains(note) {
            result.notes.push(note.clone());
        }
    }
    same_requests(&mut result);
    Ok(result)
}

/// What a person should know of how a workload was read, for the drives in their order.
fn notes(source: &dyn WorkloadSource, experiment: &Experiment<'_>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for dut in experiment.drives {
        for note in source.notes(&dut.config) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// An experiment's result, and whether its files could be written.
#[derive(Debug)]
pub struct Outcome {
    /// The result.
    pub result: RunResult,
    /// What became of the files; none are written for a run that was interrupted before its first drive was ready.
    pub written: Result<(), OutputError>,
}

/// Why an experiment with files did not even begin.
#[derive(Debug, thiserror::Error)]
pub enum RunIntoError {
    /// It cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The folder cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs the experiment and, where a drive came to run, writes its files into `folder`; with a `window`, also `trace.json` for Perfetto.
///
/// The folder is tried before the run, so that a wrong one does not cost a run.
pub fn run_into(
    experiment: &Experiment<'_>,
    folder: &Path,
    window: Option<TraceWindow>,
    control: &Control<'_>,
) -> Result<Outcome, RunIntoError> {
    run_into_observed(experiment, folder, window, None, control)
}

/// Runs the experiment and writes its files as [`run_into`] does; `observe` makes an observer for each drive.
pub fn run_into_observed(
    experiment: &Experiment<'_>,
    folder: &Path,
    window: Option<TraceWindow>,
    mut observe: Option<&mut Observe<'_>>,
    control: &Control<'_>,
) -> Result<Outcome, RunIntoError> {
    const TRACE: &str = "trace.json";
    let mut staging = Staging::of_run(folder)?;
    let Some(window) = window else {
        let result = run(experiment, observe, control)?;
        let written = if result.devices.is_empty() { Ok(()) } else { write_results(staging, &result) };
        return Ok(Outcome { result, written });
    };
    let failed = |source| OutputError { path: folder.join(TRACE), source };
    let file = BufWriter::with_capacity(1 << 18, staging.open(TRACE)?);
    let trace = Trace::begin(file, window).map_err(failed)?;
    let trace = RefCell::new(trace);
    let mut traced = |name: &str, geometry: &Geometry| -> Box<dyn Observer> {
        let tracks = trace.borrow_mut().observer(name, geometry);
        match &mut observe {
            Some(observe) => Box::new(Both(tracks, observe(name, geometry))),
            None => tracks,
        }
    };
    let mut lanes = |name: &str| trace.borrow_mut().requests(name);
    let lanes: Option<&mut Lanes<'_>> = if experiment.breakdown.is_some() { Some(&mut lanes) } else { None };
    let mut result = run_in_lanes(experiment, Some(&mut traced), lanes, control)?;
    let trace = trace.into_inner();
    if result.devices.is_empty() {
        return Ok(Outcome { result, written: Ok(()) });
    }
    for (device, slices) in result.devices.iter_mut().zip(trace.slices()) {
        if slices == 0 {
            device.warnings.push(format!(
                "no channel and no die was at work in the trace window {window}, so trace.json shows nothing of this \
                 drive: its run took {}",
                Nanos(device.virtual_time_ns)
            ));
        }
    }
    let traced = trace.finish().and_then(|file| file.into_inner().map_err(std::io::IntoInnerError::into_error));
    let written = traced
        .map_err(failed)
        .and_then(|file| staging.close(TRACE, &file))
        .and_then(|()| write_results(staging, &result));
    Ok(Outcome { result, written })
}

/// Runs one drive; `None` if it was stopped before the measured run.
fn run_drive(
    experiment: &Experiment<'_>,
    dut: &DeviceUnderTest,
    observe: Option<&mut Observe<'_>>,
    lanes: Option<Box<dyn RequestLanes>>,
    control: &Control<'_>,
) -> Result<Option<DeviceResult>, RunError> {
    let watched = observe.is_some() || experiment.recording.is_some();
    let in_flight_max = experiment.in_flight_max(dut);
    let dut = &seen_by_workloads(dut, experiment, watched)?;
    let config = &dut.config;
    let failed = |source| RunError::Replay { label: dut.label.clone(), source };
    // A workload that cannot be opened shall not wait for an hour of preconditioning to say so.
    let workload = experiment.workload.open(config, 0).map_err(|error| failed(error.into()))?;
    let mut sent = match &experiment.subtests {
        None => Sent::Whole(workload),
        Some(plan) => {
            let divided = Divided::new(plan, experiment.workload, workload, config);
            Sent::Divided(Box::new(divided.map_err(|error| failed(error.into()))?))
        }
    };
    let set = sent.workload().command_set().and_then(command_sets::named);
    if let Some(set) = set.filter(|set| experiment.verify && !verify::follows(set)) {
        return Err(failed(ReplayError::NotVerified { set: set.name }));
    }

    let refused = |source| RunError::Recording { label: dut.label.clone(), source };
    let watch = experiment.recording.map(|recording| Watch::new(config, recording)).transpose().map_err(refused)?;
    let started = Instant::now();
    let mut verifier = experiment.verify.then(|| Verifier::of(config));
    let Some((mut stack, mut aged, struck)) = stack::preconditioned(experiment, dut, verifier.as_mut(), control)?
    else {
        return Ok(None);
    };
    let wall_precondition_s = started.elapsed().as_secs_f64();
    if experiment.preconditioning.may_leave_holes() {
        aged.mapped = Some(parts::mapped(stack.look()));
    }

    let axis = if config.timed { Axis::Time } else { Axis::Requests };
    let unit_sectors = u64::from(config.ftl.mapping_unit) / ssdlab_base::SECTOR_BYTES;
    let page_sectors = u64::from(config.flash.geometry.page_bytes) / SECTOR_BYTES;
    let mut recorder =
        Recorder::new(axis, stack.counters(), unit_sectors).of_jobs(sent.workload().jobs(), page_sectors);
    recorder.in_flight_max = in_flight_max;
    if let (Axis::Time, Some(interval)) = (axis, experiment.timeline_interval) {
        recorder = recorder.with_interval(interval, stack.counters());
    }
    if let Some(options) = experiment.breakdown.filter(|_| config.timed) {
        recorder.breakdown = Some(Box::new(Gathered::new(options, lanes)));
        stack.administration().record_paths(true);
    }
    let theirs = observe.map(|observe| observe(&dut.label, &config.flash.geometry));
    let observer: Option<Box<dyn Observer>> = match (theirs, watch.as_ref().map(Watch::observer)) {
        (Some(theirs), Some(ours)) => Some(Box::new(Both(theirs, ours))),
        (theirs, ours) => theirs.or(ours),
    };
    if let (Some(observer), Some(first)) = (observer, stack.administration().drives_mut().into_iter().next()) {
        first.device.observe(Some(observer));
    }
    control.progress.begin(&dut.label, Phase::Run);
    let was_read_only = stack.look().is_read_only();
    let space_before = FreeSpace::of(stack.look());
    let smart_before = parts::logs(stack.drives(), experiment.seed);
    let erases_before = parts::erase_counts(stack.look());
    let started = Instant::now();
    let ended = match &mut stack {
        // The main job goes straight to the drive.
        Stack::Bare(drive) if verifier.is_none() => send_all(&mut **drive, &mut sent, &mut recorder, control),
        Stack::Bare(drive) => through(&mut **drive, verifier.as_mut(), &mut sent, &mut recorder, control),
        Stack::Layered(device) => through(&mut **device, verifier.as_mut(), &mut sent, &mut recorder, control),
    }
    .map_err(failed)?;
    let wall_time_s = started.elapsed().as_secs_f64();
    stack.administration().drives_mut().into_iter().for_each(|part| part.device.observe(None));
    let breakdown = recorder.breakdown.take();
    let collects_by_policy = stack.administration().drives().iter().all(|part| part.device.collects_by_policy());

    let notes = sent.workload().notes();
    let subtests = match sent {
        Sent::Whole(_) => Vec::new(),
        Sent::Divided(divided) => divided.into_subtests(),
    };
    let measured = summary::Measured {
        recorder,
        breakdown,
        ended,
        aged,
        smart_before,
        erases_before,
        notes,
        user_bytes: config.address_bytes(),
        verifier,
        subtests,
        watch,
        timeline_interval: experiment.timeline_interval,
        wall_time_s,
        wall_precondition_s,
        struck_before: struck,
        circumstances: Circumstances {
            is_trace: experiment.workload.is_trace(),
            is_clocked: experiment.workload.is_clocked(),
            is_steady_of_this: matches!(experiment.preconditioning, Preconditioning::Steady),
            is_aged_by_workload: matches!(experiment.preconditioning, Preconditioning::Workload(_)),
            was_read_only,
            space_before,
            collects_by_policy,
            in_step: None,
        },
    };
    // Closed forms know nothing of what a host makes of a workload, nor of collection of a design's own.
    let uniform = experiment.host.is_none() && collects_by_policy && experiment.workload.is_uniform_overwrites(config);
    let stopped = || control.stopped();
    Ok(Some(summary::summarise(dut, &mut stack, measured, uniform, experiment.seed, &stopped)))
}

/// The run through a host, a verifier, or both.
fn through<D: BlockDevice + Administration + ?Sized>(
    device: &mut D,
    verifier: Option<&mut Verifier>,
    sent: &mut Sent<'_>,
    recorder: &mut Recorder,
    control: &Control<'_>,
) -> Result<Ended, ReplayError> {
    match verifier {
        None => send_all(device, sent, recorder, control),
        Some(verifier) => send_all(&mut Verified { device, verifier }, sent, recorder, control),
    }
}

/// Replays the workload to its end; one that is divided says after each sub-test whether another follows.
fn send_all<T: BlockDevice + Administration + ?Sized>(
    target: &mut T,
    sent: &mut Sent<'_>,
    recorder: &mut Recorder,
    control: &Control<'_>,
) -> Result<Ended, ReplayError> {
    let programs = |target: &T| {
        let flash = target.counters().flash;
        flash.total(OpKind::Program) + flash.total(OpKind::Copyback)
    };
    let before = programs(target);
    loop {
        let ended = replay(target, sent.workload(), recorder, control)?;
        let goes_on = match sent {
            Sent::Divided(divided) => ended == Ended::Done && divided.goes_on(programs(target) - before),
            Sent::Whole(_) => false,
        };
        if !goes_on {
            return Ok(ended);
        }
    }
}

/// The measured workload, as it is sent.
enum Sent<'a> {
    Whole(Box<dyn Workload>),
    Divided(Box<Divided<'a>>),
}

impl Sent<'_> {
    fn workload(&mut self) -> &mut dyn Workload {
        match self {
            Sent::Whole(workload) => &mut **workload,
            Sent::Divided(divided) => &mut **divided,
        }
    }
}

/// Says so when the drives were sent different numbers of requests, as happens when a workload is sized by the drive.
fn same_requests(result: &mut RunResult) {
    if !result.complete {
        return;
    }
    let Some((first, rest)) = result.devices.split_first_mut() else {
        return;
    };
    for other in rest {
        if other.requests == first.requests
            && other.bytes == first.bytes
            && other.requests_digest != first.requests_digest
        {
            other.warnings.push(format!(
                "this drive was not sent the same requests as {}: as many, but at other addresses or of other lengths \
                 (the workload is sized by the drive's user capacity)",
                first.name
            ));
        } else if other.requests_digest != first.requests_digest {
            other.warnings.push(format!(
                "this drive was not sent the same requests as {}: {} bytes written and {} read, against {} and {} (the \
                 workload is sized by the drive's user capacity, or by time)",
                first.name, other.bytes.write, other.bytes.read, first.bytes.write, first.bytes.read
            ));
        }
    }
}

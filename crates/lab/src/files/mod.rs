//! A file run in virtual time: a file-level workload on a file system on a simulated drive.
//!
//! ```text
//!   personality or jobs --source--> runner --calls--> FileSystem --requests--> Tap --> layers, drives
//!                                     ^ host time         ^ prepare: files first, without time
//!                                     v                   v
//!                                  model (--verify)     check, invariants, DeviceFilesResult
//! ```
//!
//! One thread of the machine runs it. The same run and seed give the same result, but for keys that begin with `wall_`.

mod calls;
mod checks;
mod counts;
mod error;
mod host_time;
mod jobs;
mod memory;
mod model;
mod prepare;
mod result;
mod runner;
mod summary;
mod tap;
mod text;
mod threads;
mod timeline;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ssdlab_base::{Nanos, SECTOR_BYTES};
use ssdlab_device::Options as DriveOptions;
use ssdlab_flash::Contents;
use ssdlab_fs::call::{Sync, WriteMode};
use ssdlab_fs::check::check;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_fs::{FileSystem, MakeOptions, Options};
use ssdlab_host::{Device, Host, Through};
use ssdlab_workload::files::{Engine, FileSets, Limits, Personality, PreparedResult};
use ssdlab_workload::fio::FioJob;

use crate::experiment::{Before, DeviceUnderTest, Stack, below_file_system, fresh};
use crate::progress::{Control, Phase};
use crate::replay::Recorder;
use crate::timeline::Axis;

pub use error::FilesError;
pub use host_time::{COPY_BYTES, HOST_TIME_KEYS, HostTime};
pub use result::{
    BytesByKind, CacheResult, CallsResult, CheckpointsResult, CleaningResult, DeviceFilesResult, FileSystemCapacity,
    FileSystemMemory, FileSystemResult, FileWriteAmplification, HostTimeResult,
};
pub use timeline::FilesTimeline;

use calls::Access;
use jobs::Jobs;
use model::Model;
use prepare::Preparation;
use runner::{Ran, Runner, Source};
use tap::{Socket, Tap};
use threads::Threads;

/// A workload on files.
#[derive(Clone, Copy)]
pub enum FilesWork<'a> {
    /// Threads of a personality.
    Personality(&'a Personality),
    /// Jobs in fio's words, and what they are called.
    Jobs(&'a FioJob, &'a str),
}

/// A file run to be made.
pub struct FilesRun<'a> {
    /// The drive.
    pub dut: &'a DeviceUnderTest,
    /// What stands between it and the file system.
    pub host: Option<&'a Host>,
    /// The kind of file system.
    pub kind: &'static FileSystemKind,
    /// How it is made.
    pub make: MakeOptions,
    /// How it is mounted.
    pub options: Options,
    /// Time of calls on the host.
    pub host_time: HostTime,
    /// The workload.
    pub work: FilesWork<'a>,
    /// No operation begins at or behind this time.
    pub until: Option<Nanos>,
    /// Operations of all threads.
    pub operations: Option<u64>,
    /// The seed of files, threads and drives.
    pub seed: u64,
    /// The caches are dropped before the run.
    pub is_cold: bool,
    /// Every read is compared with a model, and the whole tree at the end.
    pub verify: bool,
    /// The device is walked at the end, and every contradiction told.
    pub check: bool,
    /// The command line, for the result.
    pub command: Vec<String>,
}

/// Runs it. Setting the stop flag ends it early with what it has, marked as incomplete.
///
/// # Errors
/// The drive, the file system, the jobs or the files are refused, or nothing will ever happen again.
pub fn run_files(run: &FilesRun<'_>, control: &Control<'_>) -> Result<DeviceFilesResult, FilesError> {
    if run.host_time.call == Nanos::ZERO && run.operations.is_none() && run.until.is_some() {
        return Err(FilesError::NoTime);
    }
    match run.work {
        FilesWork::Personality(personality) => run_personality(run, personality, control),
        FilesWork::Jobs(jobs, name) => run_jobs(run, jobs, name, control),
    }
}

fn run_personality(
    run: &FilesRun<'_>,
    personality: &Personality,
    control: &Control<'_>,
) -> Result<DeviceFilesResult, FilesError> {
    let files = FileSets::new(personality, run.seed);
    let planned = files.planned();
    let access = access(personality);
    let (mut fs, socket, mut model) = begin(run, control)?;
    Preparation { fs: &mut fs, run, model: model.as_mut() }.files(&files, access, control)?;
    let limits = Limits { until: run.until, operations: run.operations, stop: Arc::new(AtomicBool::new(false)) };
    let engine = Engine::new(personality, files, run.seed, &limits);
    let mut threads = Threads::new(engine, access, Arc::clone(&limits.stop), run.operations);
    let measured = measure(run, fs, &socket, model, &mut threads, control)?;
    let prepared =
        PreparedResult { directories: planned.directories, files: planned.files, bytes: planned.bytes, seconds: None };
    let mut result = summary::result(run, &personality.name, &personality.source, prepared, measured);
    let engine = &threads.engine;
    (result.run.turns, result.run.skipped) = (engine.turns(), engine.skipped());
    result.run.parameters = Some(personality.parameters.clone());
    let seconds = result.run.seconds;
    result.run.measured(&threads.measures, seconds);
    result.run.notes.extend(notes(personality, engine.starved()));
    Ok(result)
}

fn run_jobs(
    run: &FilesRun<'_>,
    jobs: &FioJob,
    name: &str,
    control: &Control<'_>,
) -> Result<DeviceFilesResult, FilesError> {
    let jobs = jobs.on_files(run.seed)?;
    let (files, notes) = (jobs.files.clone(), jobs.notes.clone());
    let (mut fs, socket, mut model) = begin(run, control)?;
    let mut preparation = Preparation { fs: &mut fs, run, model: model.as_mut() };
    let (mut source, directories) = Jobs::prepare(jobs, &mut preparation, control)?;
    let measured = measure(run, fs, &socket, model, &mut source, control)?;
    let bytes = files.iter().map(|file| file.bytes).sum();
    let prepared = PreparedResult { directories, files: files.len() as u64, bytes, seconds: None };
    let mut result = summary::result(run, name, "fio jobs", prepared, measured);
    let seconds = result.run.seconds;
    result.run.measured_as(source.measures(), seconds);
    result.run.notes.extend(notes);
    result.jobs = source.by_job();
    Ok(result)
}

/// A new file system, the socket below it, and the model where reads are compared.
fn begin(run: &FilesRun<'_>, control: &Control<'_>) -> Result<(FileSystem, Socket, Option<Model>), FilesError> {
    let socket = Socket::default();
    let fs = make(run, &socket)?;
    control.progress.begin(&run.dut.label, Phase::Prepare);
    Ok((fs, socket, run.verify.then(Model::new)))
}

/// What one should know of a run of a personality.
fn notes(personality: &Personality, is_starved: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if is_starved {
        notes.push("a thread ended early: no file was left for it; take more files".to_string());
    }
    let parameters = &personality.parameters;
    if parameters.direct && parameters.align > 1 {
        notes.push(format!("direct I/O: sizes of files and appends are rounded up to {} bytes", parameters.align));
    }
    notes
}

/// How a personality uses its files.
fn access(personality: &Personality) -> Access {
    let parameters = &personality.parameters;
    let sync = if parameters.dsync { Sync::Data } else { Sync::No };
    Access { is_direct: parameters.direct, mode: WriteMode { is_direct: parameters.direct, sync } }
}

/// The file system on new drives, in which time stands still.
fn make(run: &FilesRun<'_>, socket: &Socket) -> Result<FileSystem, FilesError> {
    let contents = if run.verify { Contents::Stamps } else { Contents::Nothing };
    let options = DriveOptions { seed: run.seed, contents };
    let mut device = fresh(run.dut, run.host, options)?;
    device.set_timed(false);
    device.reset_statistics();
    let tapped: Box<dyn Device> = Box::new(Through::new(device, Tap(socket.clone())));
    let make = MakeOptions { seed: run.seed, ..run.make };
    FileSystem::make(tapped, &make, &run.options).map_err(|source| FilesError::Make {
        label: run.dut.label.clone(),
        kind: run.kind.name,
        source,
    })
}

/// What was measured of a run.
struct Measured {
    ran: Ran,
    file_system: FileSystemResult,
    drive: crate::result::DeviceResult,
    checks: Vec<crate::result::Check>,
    problems: Vec<String>,
}

/// Runs a source on a file system whose files are made, and looks at everything behind it.
fn measure<S: Source>(
    run: &FilesRun<'_>,
    mut fs: FileSystem,
    socket: &Socket,
    mut model: Option<Model>,
    source: &mut S,
    control: &Control<'_>,
) -> Result<Measured, FilesError> {
    let (label, config) = (&run.dut.label, &run.dut.config);
    if run.is_cold {
        fs.drop_caches();
    }
    fs.set_timed(true);
    fs.reset_statistics();
    let before = Before::of(fs.device().look(), run.seed);
    let begun = fs.levels();
    let axis = if config.timed { Axis::Time } else { Axis::Requests };
    let unit_sectors = u64::from(config.ftl.mapping_unit) / SECTOR_BYTES;
    socket.put(Recorder::new(axis, fs.device().look().counters(), unit_sectors));
    control.progress.begin(label, Phase::Run);
    let started = Instant::now();
    let mut runner = Runner::new(&mut fs, run.host_time, model.as_mut());
    let ran = runner.run(source, control)?;
    let (sync, sync_error) = runner.sync(source.moved(), control)?;
    let wall_time_s = started.elapsed().as_secs_f64();
    let (counts, sampler) = (runner.counts, runner.sampler);
    let timeline = sampler.finish(&fs, source.moved());
    control.progress.finish();

    let recorder = socket.take().unwrap_or_else(|| Recorder::new(axis, Default::default(), unit_sectors));
    let seen = summary::Seen { counts, metrics: fs.metrics(), begun, timeline, sync };
    let mut file_system = summary::file_system(run, &fs, &seen);
    let mut checks = checks::invariants(&seen, &fs, &recorder, ran.error.is_none());
    let is_whole = fs.read_only_reason().is_none() && sync_error.is_none();
    let mut stack = Stack::Layered(fs.into_device());
    let mut drive = below_file_system(run.dut, &mut stack, recorder, before, wall_time_s, run.seed);
    drive.complete = !ran.is_stopped && ran.error.is_none();
    file_system.write_amplification = summary::write_amplification(&file_system, &drive);
    let Stack::Layered(mut device) = stack else { unreachable!("it was put there a moment ago") };

    device.set_timed(false);
    let mut problems = Vec::new();
    if let Some(mut model) = model.filter(|_| is_whole) {
        let refused = |source| FilesError::Mount { label: label.clone(), source };
        let mut fs = FileSystem::mount(device, &run.options).map_err(refused)?;
        model.compare_tree(&mut fs)?;
        checks.push(model.check());
        device = fs.into_device();
    }
    if run.check {
        let (_, found) = check(device);
        let (one, told) = checks::walked(found);
        checks.push(one);
        problems = told;
    }
    Ok(Measured { ran: Ran { error: ran.error.or(sync_error), ..ran }, file_system, drive, checks, problems })
}

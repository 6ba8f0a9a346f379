//! A file-level workload on a file system on a simulated drive, in virtual time.

use std::process::ExitCode;

use ssdlab_base::Nanos;
use ssdlab_device::Description;
use ssdlab_fs::MakeError;
use ssdlab_fs::kinds::{FileSystemKind, KINDS};
use ssdlab_lab::files::{FilesError, FilesRun, FilesWork, HostTime, run_files};
use ssdlab_lab::{Control, DeviceUnderTest, RunError};
use ssdlab_workload::files::PrepareError;

use super::{Files, ends_by_time, finish, refuse_given, staging};
use crate::failure::Failure;
use crate::memory::allowed;
use crate::{interrupt, progress, shipped};

/// Runs a personality or jobs on the drive `device`.
pub(super) fn run_on(args: &Files, work: FilesWork<'_>, device: &str) -> Result<ExitCode, Failure> {
    refuse_directory_options(args)?;
    let Some(fs) = &args.fs else {
        let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(Failure::input(format!(
            "--device without --fs, expected a kind of file system: {}",
            kinds.join(", ")
        )));
    };
    let kind = FileSystemKind::of_name(fs).map_err(|error| {
        let kinds: Vec<String> = KINDS.iter().map(|kind| format!("{}: {}", kind.name, kind.summary)).collect();
        Failure::input(format!("--fs: {error}")).hint(kinds.join("; "))
    })?;
    let (make, options) = kind.read_overrides(&args.fs_set, "--fs-set").map_err(Failure::input)?;
    let host_time = HostTime::read(&args.host_time, "--host-time").map_err(Failure::input)?;
    let mut description = shipped::open(device)?;
    for assignment in &args.device_set {
        description.set_by("--device-set", assignment).map_err(Failure::input)?;
    }
    let config = description.resolve().map_err(Failure::input)?;
    let dut = DeviceUnderTest { label: config.name.clone(), config };
    let host = args.host.as_deref().map(shipped::host).transpose()?;
    let staging = staging(args)?;
    let until = match work {
        FilesWork::Personality(personality) if ends_by_time(args, personality) => personality.parameters.runtime_ns,
        _ => None,
    };
    let until = until.map(Nanos);
    let run = FilesRun {
        dut: &dut,
        host: host.as_ref(),
        kind,
        make,
        options,
        host_time,
        work,
        until,
        operations: args.operations,
        seed: args.seed,
        is_cold: args.cold,
        verify: args.verify,
        check: !args.no_check,
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    let is_jobs = matches!(run.work, FilesWork::Jobs(..));
    let memory = run.memory().map_err(|error| refused(error, &description, device, is_jobs))?;
    allowed(args.memory.as_deref())?.check_run(&[(&dut.config, memory)])?;
    let progress = progress::shown(args.quiet || args.json)?;
    let control = Control::new(interrupt::listen()?, &*progress);
    let result = run_files(&run, &control).map_err(|error| refused(error, &description, device, is_jobs))?;
    let status = finish(args, staging, &result.run, &result, &result.to_string())?;
    Ok(if result.checks_held() { status } else { ExitCode::FAILURE })
}

/// Options of a directory make no sense on a drive that is made anew.
fn refuse_directory_options(args: &Files) -> Result<(), Failure> {
    let options = [("--prepare-only", args.prepare_only), ("--keep", args.keep), ("--nonempty", args.nonempty)];
    let why = "is for --dir: with --device the drive and its file system are made anew for each run, and end with it";
    refuse_given(&options, why)
}

/// Why a run cannot be made, with a hint.
fn refused(error: FilesError, description: &Description, device: &str, is_jobs: bool) -> Failure {
    match &error {
        FilesError::Run(RunError::Drive { source, .. }) => Failure::input(description.place(source)),
        FilesError::Make { source: MakeError::NoSegments { .. }, .. } => Failure::input(&error).hint(
            "amf-16g-aftl is such a drive (`ssdlab devices` lists all); layers such as append hide the segments: leave out --host",
        ),
        FilesError::Make { source: MakeError::TooSmall { least, .. }, .. } => Failure::input(&error).hint(format!(
            "take a drive with {least} segments: more blocks a plane (--device-set flash.blocks_per_plane=...) with a larger \
             capacity.user; with 2 logs (--fs-set logs=2) 4 segments less than with 6 are enough"
        )),
        FilesError::Make { .. } => Failure::input(&error).hint(format!("`ssdlab devices {device}` shows the drive")),
        FilesError::Prepare { source: PrepareError::TooSmall { .. }, .. } => Failure::input(&error).hint(if is_jobs {
            "a smaller size=, or fewer numjobs="
        } else {
            "a smaller --set files=..., or a larger drive; `ssdlab files --list` shows the personalities"
        }),
        FilesError::Prepare { .. } | FilesError::Call { .. } | FilesError::Silent { .. } | FilesError::Mount { .. } => {
            Failure::work(&error)
        }
        _ => Failure::input(&error),
    }
}

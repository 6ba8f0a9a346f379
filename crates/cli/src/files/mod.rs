//! `ssdlab files`: what servers do to a directory tree, done in a directory of the machine, or on a file system on a simulated drive.

mod directory;
mod drive;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use ssdlab_lab::files::FilesWork;
use ssdlab_lab::output::Staging;
use ssdlab_workload::files::{FilesResult, Personality, shipped};
use ssdlab_workload::fio::FioJob;

use crate::failure::Failure;
use crate::trace::variables;
use crate::{stderr, stdout};

/// The file of results.
const RESULT: &str = "files.json";

/// Run a file-level workload (Filebench's personalities, Postmark) in a directory, or on a file system on a simulated drive.
///
/// With --dir it creates the files first, in their own folder, and removes them at the end; neither is timed. With --device and
/// --fs it makes a file system on a new drive and runs in virtual time: the same seed gives the same result, bit for bit. The
/// seed decides the files and everything random.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ssdlab files --list
  ssdlab files fileserver --dir /mnt/drive --runtime 60s
  ssdlab files webproxy --dir /mnt/drive --set paper=waflash --out out/webproxy
  ssdlab files postmark --dir /mnt/drive --set files=15000 --set transactions=60000
  ssdlab files varmail --dir /mnt/drive --prepare-only      # the next run with these parameters finds the files
  ssdlab files postmark --set paper=amf-heavy --device amf-16g-aftl --fs alfs
  ssdlab files varmail --device amf-16g-aftl --fs alfs --fs-set cache=64m --runtime 5s --verify
  ssdlab files --jobs jobs.fio --device amf-16g-aftl --fs alfs

Interrupting a run (Ctrl-C) removes its files and shows the results up to then; a second Ctrl-C ends at once.
Exit status: 0 done; 1 the work failed or was interrupted; 2 the input was wrong.")]
pub(crate) struct Files {
    /// dfsio, fileserver, postmark, randomwrite, terasort, varmail, webproxy, webserver, wordcount, or the FILE of another
    /// personality
    #[arg(value_name = "PERSONALITY", required_unless_present_any = ["list", "jobs"])]
    personality: Option<String>,

    /// Jobs in fio's words on files of a simulated drive, in place of a personality
    #[arg(long, value_name = "FILE", requires = "device",
        conflicts_with_all = ["personality", "set", "threads", "runtime", "operations", "direct"])]
    jobs: Option<PathBuf>,

    /// What ${NAME} stands for in the job file; may be repeated. Other variables are those of the environment
    #[arg(long, value_name = "NAME=VALUE", requires = "jobs")]
    env: Vec<String>,

    /// List the shipped personalities, with the parameters of papers
    #[arg(long, conflicts_with_all = ["personality", "dir", "device"])]
    list: bool,

    /// The directory; it must be empty
    #[arg(long, value_name = "DIR", required_unless_present_any = ["list", "device"], conflicts_with = "device")]
    dir: Option<PathBuf>,

    /// A simulated drive in place of a directory: a description FILE, or the NAME of a shipped one; with --fs
    #[arg(long, short, value_name = "FILE|NAME", requires = "fs")]
    device: Option<String>,

    /// Override a key of the drive's description
    #[arg(long, value_name = "KEY=VALUE")]
    device_set: Vec<String>,

    /// Put the layers of a host description (docs/host.md) between the drive and the file system
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,

    /// The kind of file system that is made on the drive: alfs on segments, lfs on blocks (docs/file-systems.md)
    #[arg(long, value_name = "KIND")]
    fs: Option<String>,

    /// Override a key of the file system, e.g. cache=64m or logs=2
    #[arg(long, value_name = "KEY=VALUE")]
    fs_set: Vec<String>,

    /// Override the host's time: call=TIME for each call, copy=TIME for each 4 KiB that it copies
    #[arg(long, value_name = "KEY=VALUE")]
    host_time: Vec<String>,

    /// Drop the file system's caches between making the files and the run
    #[arg(long)]
    cold: bool,

    /// Compare every read with a model, and the whole tree at the end; the drive then keeps a stamp for each sector
    #[arg(long)]
    verify: bool,

    /// Do not walk the drive at the end of the run to look for contradictions of the file system
    #[arg(long)]
    no_check: bool,

    /// Memory for the run, such as 8g; by default three quarters of what is available
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,

    /// Override a parameter, e.g. files=1000 or mean_size=16k; paper=NAME takes a paper's
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Threads, each with the whole loop
    #[arg(long, value_name = "N")]
    threads: Option<u64>,

    /// Run for this time, such as 60s or 10min
    #[arg(long, value_name = "TIME")]
    runtime: Option<String>,

    /// Run this many operations, instead of a time
    #[arg(long, value_name = "N", value_parser = crate::args::whole::<u64>(1, u64::MAX))]
    operations: Option<u64>,

    /// Bypass the page cache; sizes of files and appends are rounded up to 4 KiB
    #[arg(long)]
    direct: bool,

    /// Seed of the files and of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Create the files and leave them for a later run
    #[arg(long, conflicts_with_all = ["keep", "operations", "runtime", "out"])]
    prepare_only: bool,

    /// Keep the files after the run
    #[arg(long)]
    keep: bool,

    /// Use a directory that is not empty; its contents are left alone
    #[arg(long)]
    nonempty: bool,

    /// Write files.json to this folder
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print the results as JSON instead of the table
    #[arg(long)]
    json: bool,

    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Does what was asked for.
pub(crate) fn files(args: &Files) -> Result<ExitCode, Failure> {
    if args.list {
        return list(args);
    }
    if args.device.is_none() {
        refuse_drive_options(args)?;
    }
    if let (Some(path), Some(device)) = (&args.jobs, &args.device) {
        let jobs = FioJob::parse_file(path, &variables(&args.env)?).map_err(Failure::input)?;
        return drive::run_on(args, FilesWork::Jobs(&jobs, &path.display().to_string()), device);
    }
    let Some(text) = &args.personality else { return list(args) };
    let personality = personality(args, text)?;
    match (&args.dir, &args.device) {
        (Some(dir), _) => directory::run_in(args, &personality, dir),
        (None, Some(device)) => drive::run_on(args, FilesWork::Personality(&personality), device),
        (None, None) => Err(Failure::input("found neither --dir nor --device, expected one of them")),
    }
}

/// Options of a simulated drive make no sense in a directory.
fn refuse_drive_options(args: &Files) -> Result<(), Failure> {
    let options = [
        ("--fs", args.fs.is_some()),
        ("--fs-set", !args.fs_set.is_empty()),
        ("--device-set", !args.device_set.is_empty()),
        ("--host", args.host.is_some()),
        ("--host-time", !args.host_time.is_empty()),
        ("--cold", args.cold),
        ("--verify", args.verify),
        ("--no-check", args.no_check),
        ("--memory", args.memory.is_some()),
    ];
    refuse_given(&options, "is for --device: in a directory, files are on the file system that is mounted there")
}

/// Refuses the first of some options that was given; `why` follows its name.
fn refuse_given(options: &[(&str, bool)], why: &str) -> Result<(), Failure> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::input(format!("{option} {why}"))),
        None => Ok(()),
    }
}

/// The folder of results, which can be written.
fn staging(args: &Files) -> Result<Option<Staging>, Failure> {
    let Some(folder) = &args.out else { return Ok(None) };
    let mut staging = Staging::new(folder).map_err(Failure::input)?;
    staging.try_out().map_err(Failure::input)?;
    Ok(Some(staging))
}

/// Prints a result, as `json` or as `text`, and writes it; `run` is what the workload did.
fn finish(
    args: &Files,
    staging: Option<Staging>,
    run: &FilesResult,
    json: &impl Serialize,
    text: &str,
) -> Result<ExitCode, Failure> {
    if args.json {
        stdout::print_json(json)?;
    } else {
        for note in &run.notes {
            stderr::note(note);
        }
        stdout::print(|to| to.write_all(text.as_bytes()))?;
    }
    if let Some(mut staging) = staging {
        let write = staging.write(RESULT, |to| {
            serde_json::to_writer_pretty(&mut *to, json)?;
            to.write_all(b"\n")
        });
        write.and_then(|()| staging.commit()).map_err(Failure::work)?;
    }
    match &run.error {
        Some(error) => Err(Failure::work(error)),
        None if !run.complete => Ok(ExitCode::FAILURE),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Whether the runtime ends a run, and not a number of operations or transactions.
fn ends_by_time(args: &Files, personality: &Personality) -> bool {
    args.runtime.is_some() || (args.operations.is_none() && personality.transactions().is_none())
}

/// Lists what ships.
fn list(args: &Files) -> Result<ExitCode, Failure> {
    let personalities: Vec<Personality> = shipped().collect();
    if args.json {
        let list: Vec<_> = personalities
            .iter()
            .map(|found| {
                let papers: Vec<_> =
                    found.variants().map(|(name, source)| json!({ "name": name, "source": source })).collect();
                json!({
                    "name": found.name, "summary": found.summary, "source": found.source,
                    "parameters": found.parameters, "keys": found.keys(), "papers": papers,
                })
            })
            .collect();
        stdout::print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for found in &personalities {
        rows.push(vec![found.name.clone(), found.summary.clone(), found.source.clone()]);
        for (name, source) in found.variants() {
            rows.push(vec![String::new(), format!("  --set paper={name}"), source.to_string()]);
        }
    }
    stdout::print(|to| to.write_all(stdout::aligned(&rows).as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// The personality with everything that the command line says of it.
fn personality(args: &Files, text: &str) -> Result<Personality, Failure> {
    let mut personality = Personality::open(text).map_err(Failure::input)?;
    let mut settings = args.set.clone();
    settings.extend(args.threads.map(|threads| format!("threads={threads}")));
    settings.extend(args.runtime.as_ref().map(|runtime| format!("runtime={runtime}")));
    if args.direct {
        settings.push("direct=true".into());
    }
    for setting in &settings {
        personality.set(setting).map_err(Failure::input)?;
    }
    personality.check().map_err(|error| Failure::input(format!("{}: {error}", personality.name)))?;
    Ok(personality)
}

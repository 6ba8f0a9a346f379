//! A file-level workload in a directory of the machine, in wall-clock time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use std::io::Write as _;

use indicatif::{HumanBytes, ProgressBar};
use serde_json::json;
use ssdlab_base::Nanos;
use ssdlab_workload::files::{
    Directory, Engine, FILES_FORMAT, FileSets, FilesResult, FsError, FsErrorKind, Limits, Personality, Phase,
    PrepareError, PreparedResult, Watch, prepare, remove, run,
};

use super::{Files, ends_by_time, finish, staging};
use crate::failure::Failure;
use crate::{interrupt, progress, stderr, stdout};

/// The directory that all files are made in, below the one that was given.
const ROOT: &str = "ssdlab-files";
/// What says, in that directory, that files were prepared and for what.
const MARK: &str = "prepared.json";
/// Threads that make files.
const PREPARE_THREADS: usize = 8;

/// Runs a personality in the directory `dir`.
pub(super) fn run_in(args: &Files, personality: &Personality, dir: &Path) -> Result<ExitCode, Failure> {
    let staging = staging(args)?;
    let mark = mark(personality, args.seed);
    let root = Root::open(dir, args.nonempty, &mark)?;
    let stop = interrupt::listen()?;
    let line = Line::new(args.quiet || args.json);
    let done = work(args, personality, &root, &mark, stop, &line);
    line.bar.finish_and_clear();
    let Some(result) = done? else { return Ok(ExitCode::SUCCESS) };
    finish(args, staging, &result, &result, &result.to_string())
}

/// What prepared files depend on, as it stands beside them.
fn mark(personality: &Personality, seed: u64) -> String {
    let numbers = &personality.parameters;
    let mark = json!({
        "format": FILES_FORMAT, "personality": personality.name, "seed": seed,
        "files": numbers.files, "mean_size": numbers.mean_size, "size_gamma": numbers.size_gamma,
        "directory_width": numbers.directory_width, "prealloc_percent": numbers.prealloc_percent,
        "log_files": numbers.log_files, "size_low": numbers.size_low, "size_high": numbers.size_high,
        "subdirectories": numbers.subdirectories, "align": numbers.align,
    });
    format!("{mark:#}\n")
}

/// The folder of our own files.
struct Root {
    path: PathBuf,
    given: PathBuf,
    /// Files for these parameters are there.
    prepared: bool,
}

impl Root {
    fn open(given: &Path, nonempty: bool, mark: &str) -> Result<Root, Failure> {
        let shown = given.display();
        let entries = fs::read_dir(given).map_err(|error| Failure::input(format!("--dir {shown}: {error}")))?;
        let path = given.join(ROOT);
        let mut root = Root { path, given: given.to_path_buf(), prepared: false };
        for entry in entries {
            let entry = entry.map_err(|error| Failure::input(format!("--dir {shown}: {error}")))?;
            let name = entry.file_name();
            if name == ROOT {
                root.check(mark)?;
            } else if !nonempty && name != "lost+found" {
                return Err(Failure::input(format!("--dir {shown} is not empty: it has '{}'", name.to_string_lossy()))
                    .hint("take an empty directory, or --nonempty, which leaves alone what is there"));
            }
        }
        if !root.prepared {
            fs::create_dir(&root.path).map_err(|error| Failure::input(format!("{}: {error}", root.path.display())))?;
        }
        Ok(root)
    }

    /// Whether what an earlier run left can be used.
    fn check(&mut self, mark: &str) -> Result<(), Failure> {
        let shown = self.path.display();
        let Ok(found) = fs::read_to_string(self.path.join(MARK)) else {
            return Err(Failure::input(format!(
                "{shown} is there: a run with --keep, or one that was killed, left it"
            ))
            .hint(format!("look whether it is needed, and remove it: rm -r '{shown}'")));
        };
        let other = found.lines().zip(mark.lines()).find(|(found, wanted)| found != wanted);
        if let Some((found, wanted)) = other {
            let (found, wanted) = (found.trim().trim_end_matches(','), wanted.trim().trim_end_matches(','));
            return Err(Failure::input(format!("{shown} was prepared for {found}, and this run has {wanted}"))
                .hint(format!("take the same parameters and seed, or remove it: rm -r '{shown}'")));
        }
        self.prepared = true;
        Ok(())
    }

    fn unmark(&self) -> Result<(), Failure> {
        match fs::remove_file(self.path.join(MARK)) {
            Err(error) if self.prepared => Err(Failure::work(format!("{}: {error}", self.path.join(MARK).display()))),
            _ => Ok(()),
        }
    }

    /// Removes all files of ours, and the folder if that leaves it empty.
    fn clear(&self, fs: &Directory, files: &FileSets, line: &Line) -> Result<(), Failure> {
        let removed = remove(fs, files, line).map_err(Failure::work)?;
        if removed.left > 0 || std::fs::remove_dir(&self.path).is_err() {
            stderr::note(format_args!("{} stays: it holds files that are not of this run", self.path.display()));
        }
        Ok(())
    }
}

/// Prepares, runs and clears up; no result where only files were to be prepared.
fn work(
    args: &Files,
    personality: &Personality,
    root: &Root,
    mark: &str,
    stop: &AtomicBool,
    line: &Line,
) -> Result<Option<FilesResult>, Failure> {
    let fs = Directory::new(&root.path);
    let parameters = &personality.parameters;
    let files = FileSets::new(personality, args.seed);
    let planned = files.planned();
    let mut prepared =
        PreparedResult { directories: planned.directories, files: planned.files, bytes: planned.bytes, seconds: None };
    if !root.prepared {
        match prepare(&fs, &files, parameters, PREPARE_THREADS, stop, line) {
            Ok(made) => prepared = made.into(),
            Err(error) => {
                root.clear(&fs, &files, line)?;
                return Err(unprepared(&error, &root.given));
            }
        }
    }
    if args.prepare_only {
        let path = root.path.join(MARK);
        std::fs::write(&path, mark).map_err(|error| Failure::work(format!("{}: {error}", path.display())))?;
        let how = if root.prepared { "found" } else { "made" };
        let text = format!("{}: {how} {} files, {}", root.path.display(), planned.files, HumanBytes(planned.bytes));
        stdout::print(|to| writeln!(to, "{text}"))?;
        return Ok(None);
    }
    root.unmark()?;
    let limits = Limits {
        until: parameters.runtime_ns.filter(|_| ends_by_time(args, personality)).map(Nanos),
        operations: args.operations,
        ..Limits::default()
    };
    let mut engine = Engine::new(personality, files, args.seed, &limits);
    line.limit(limits.until);
    let outcome = run(&fs, &mut engine, parameters, &limits, stop, line);
    let interrupted = stop.load(Ordering::Relaxed);
    let mut result = FilesResult {
        format: FILES_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        personality: personality.name.clone(),
        source: personality.source.clone(),
        parameters: Some(parameters.clone()),
        seed: args.seed,
        directory: Some(root.given.display().to_string()),
        prepared,
        seconds: 0.0,
        operations: 0,
        operations_per_second: 0.0,
        turns: engine.turns(),
        skipped: engine.skipped(),
        bytes_read: 0,
        bytes_written: 0,
        by_operation: Vec::new(),
        complete: !interrupted && outcome.error.is_none(),
        error: outcome.error.as_ref().map(FsError::to_string),
        notes: notes(personality, &engine, interrupted),
    };
    result.measured(&outcome.measures, outcome.seconds);
    if !args.keep {
        root.clear(&fs, &engine.files(), line)?;
    }
    Ok(Some(result))
}

/// What one should know of a run.
fn notes(personality: &Personality, engine: &Engine, interrupted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if interrupted {
        notes.push("the run was interrupted: these are the results up to then".to_string());
    }
    if engine.starved() {
        notes.push("a thread ended early: no file was left for it; take more files".to_string());
    }
    let parameters = &personality.parameters;
    if parameters.direct && parameters.align > 1 {
        notes.push(format!("direct I/O: sizes of files and appends are rounded up to {} bytes", parameters.align));
    }
    notes
}

fn unprepared(error: &PrepareError, given: &Path) -> Failure {
    let shown = given.display();
    match error {
        PrepareError::TooSmall { .. } => Failure::input(format!("--dir {shown}: {error}"))
            .hint("for example --set files=1000; `ssdlab files --list` shows the personalities"),
        PrepareError::Call(call) if call.kind == FsErrorKind::Unsupported => {
            Failure::input(error).hint("some file systems, such as tmpfs, do no direct I/O")
        }
        _ => Failure::work(error),
    }
}

/// Progress on a terminal.
struct Line {
    bar: ProgressBar,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    began: Instant,
    drawn: Instant,
    /// The run's time.
    until: Option<Nanos>,
}

impl Line {
    fn new(quiet: bool) -> Line {
        let now = Instant::now();
        Line {
            bar: progress::line(quiet),
            state: Mutex::new(State { phase: Phase::Preparing, began: now, drawn: now, until: None }),
        }
    }

    /// How long the run lasts.
    fn limit(&self, until: Option<Nanos>) {
        if let Ok(mut state) = self.state.lock() {
            state.until = until;
        }
    }
}

impl Watch for Line {
    fn begin(&self, phase: Phase) {
        if let Ok(mut state) = self.state.lock() {
            state.phase = phase;
            state.began = Instant::now();
        }
    }

    fn advance(&self, done: u64, total: Option<u64>) {
        if self.bar.is_hidden() {
            return;
        }
        let Ok(mut state) = self.state.try_lock() else { return };
        if state.drawn.elapsed() < Duration::from_millis(125) {
            return;
        }
        state.drawn = Instant::now();
        let seconds = state.began.elapsed().as_secs_f64();
        let rate = done as f64 / seconds.max(1e-9);
        let of = |text: String| total.map_or(String::new(), |_| format!(" of {text}"));
        self.bar.set_message(match state.phase {
            Phase::Preparing => {
                format!("preparing: {}{}", HumanBytes(done), of(HumanBytes(total.unwrap_or(0)).to_string()))
            }
            Phase::Removing => format!("removing: {done}{} files", of(total.unwrap_or(0).to_string())),
            Phase::Running => {
                let time = state.until.map_or(String::new(), |until| format!(" of {until}"));
                let done = format!("{done}{} operations  {rate:.0}/s", of(total.unwrap_or(0).to_string()));
                format!("running: {seconds:.0} s{time}  {done}")
            }
        });
        self.bar.tick();
    }
}

//! A workload from the text a user gave: one line of fio's options, a fio job file, a trace, or a model of one.
//!
//! They are told apart without a flag and without guessing: what begins with `model:` is a model, a line that sets `rw`
//! is a specification, a name that ends in `.fio` is a job file, and everything else is a trace, whose content says its
//! format.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ssdlab_base::SECTOR_BYTES;

use crate::fio::{FioJob, Variables, is_direction, is_key, is_spec};
use crate::model::{Model, is_model};
use crate::replay::{Discipline, Fit, ReplaySettings, TraceReplay};
use crate::trace::{DASH, Trace, standard_input};
use crate::{Workload, WorkloadError};

/// What a workload is opened for.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// User capacity of the drive, in bytes.
    pub capacity_bytes: u64,
    /// Seed of everything a generator draws; a job's own `randseed` goes before it.
    pub seed: u64,
    /// When a trace's requests are sent; `None` is as its times say. Jobs say so themselves, and refuse one.
    pub replay: Option<Discipline>,
    /// Where a trace's requests go on a drive of another size. Jobs are sized by the drive, and refuse all but `Exact`.
    pub fit: Fit,
}

/// What a user's text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// One line of fio's options.
    Specification,
    /// A fio job file.
    JobFile,
    /// A trace, perhaps with options before its path, or a modelled one.
    Trace,
}

impl WorkloadKind {
    /// The kind of `text`, which is not opened.
    pub fn of(text: &str) -> WorkloadKind {
        if is_model(text) {
            WorkloadKind::Trace
        } else if is_spec(text) {
            WorkloadKind::Specification
        } else if Path::new(text).extension().is_some_and(|extension| extension == "fio") {
            WorkloadKind::JobFile
        } else {
            WorkloadKind::Trace
        }
    }
}

/// The file that the workload in `text` is read from; `None` for options, models and standard input. It is not opened.
pub fn file_of(text: &str) -> Option<&Path> {
    match WorkloadKind::of(text) {
        WorkloadKind::Specification => None,
        WorkloadKind::JobFile => Some(Path::new(text)),
        WorkloadKind::Trace if is_model(text) => None,
        WorkloadKind::Trace => Trace::path_in(text),
    }
}

/// Opens the workload that `text` names.
///
/// # Errors
/// Text that cannot be read or understood, and a workload that does not fit the drive.
pub fn open(text: &str, options: &OpenOptions) -> Result<Box<dyn Workload>, WorkloadError> {
    let job = match WorkloadKind::of(text) {
        WorkloadKind::Specification => FioJob::parse_line_with(text, &Variables::of_environment())?,
        WorkloadKind::JobFile => FioJob::parse_file(Path::new(text), &Variables::of_environment())?,
        WorkloadKind::Trace => {
            let settings = ReplaySettings {
                discipline: options.replay.unwrap_or_default(),
                fit: options.fit,
                ..ReplaySettings::default()
            };
            let capacity_sectors = options.capacity_bytes / SECTOR_BYTES;
            return Ok(Box::new(TraceReplay::new(open_seeded(text, options.seed)?, settings, capacity_sectors)?));
        }
    };
    if let Some(discipline) = options.replay {
        return Err(WorkloadError(format!(
            "'{text}' is a fio workload, and replay {discipline} is for traces: a job says itself when it sends \
             (iodepth=, rate_iops=, thinktime=)"
        )));
    }
    if options.fit != Fit::Exact {
        return Err(WorkloadError(format!(
            "'{text}' is a fio workload, and {} is for traces: a job is sized by the drive (size=50%, io_size=4g)",
            options.fit
        )));
    }
    Ok(Box::new(job.generator(options.capacity_bytes, options.seed)?))
}

/// Opens the trace that `text` names, or the model; a model that gives no seed is drawn from seed 1.
///
/// # Errors
/// A trace that [`Trace::open`] refuses, or a model that cannot be read. Where `text`, or the file it names, is rather
/// something for fio, the error says how to write that.
pub fn open_trace(text: &str) -> Result<Trace, WorkloadError> {
    open_seeded(text, 1)
}

fn open_seeded(text: &str, seed: u64) -> Result<Trace, WorkloadError> {
    if is_model(text) {
        return Model::parse(text, seed)?.trace();
    }
    if let Some((options, model)) = text.split_once(':').filter(|(head, rest)| head.contains('=') && is_model(rest)) {
        return Err(WorkloadError(format!(
            "'{options}' stands before a model, expected before a trace's path; write the model's requests to a file first: \
             ssdlab trace convert {model} FILE"
        )));
    }
    Trace::open(text).map_err(|error| meant_for_fio(text).unwrap_or(error))
}

/// What to write instead of `text`, if it looks like fio's options without a direction, or names a job file.
fn meant_for_fio(text: &str) -> Option<WorkloadError> {
    /// So much of a file tells a job file.
    const HEAD_BYTES: u64 = 4096;
    let path = Path::new(text);
    if text == DASH {
        let mut head = Vec::new();
        standard_input().ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
        let head = String::from_utf8_lossy(&head);
        let line = first_line(&head)?;
        return if is_section(line) {
            Some(WorkloadError(format!(
                "standard input is no trace: its first line, '{line}', is that of a fio job file, and one is not read \
                 from standard input: write it to a file whose name ends in .fio"
            )))
        } else if is_spec(line) {
            Some(WorkloadError(format!(
                "standard input is no trace: its first line, '{line}', is a line of fio's options, which stands in the \
                 place of the `-`"
            )))
        } else {
            None
        };
    }
    if !path.exists() {
        let first = text.split(',').next().unwrap_or_default();
        let key = first.split_once('=').map(|(key, _)| key.trim());
        return if key.is_some_and(is_key) {
            Some(WorkloadError(format!(
                "'{text}' is no file; if it is meant as fio's options, they need a direction, such as rw=randwrite,{text}"
            )))
        } else if is_direction(first) {
            Some(WorkloadError(format!("'{text}' is no file; if it is meant as fio's options, write rw={text}")))
        } else {
            None
        };
    }
    if !path.is_file() {
        // Opening a named pipe would wait for a process that writes to it.
        return None;
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let line = first_line(&head)?;
    is_section(line).then(|| {
        WorkloadError(format!(
            "{text} is no trace: its first line, '{line}', is that of a fio job file, and the name of one ends in .fio: \
             call it {}",
            path.with_extension("fio").display()
        ))
    })
}

/// The first line that says something, in a job file.
fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !(line.is_empty() || line.starts_with(['#', ';'])))
}

/// Whether a line begins a section of a job file.
fn is_section(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']')
}

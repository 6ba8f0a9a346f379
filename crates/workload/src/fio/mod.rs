//! Workloads in fio's own words: job files, and one line of the same options.
//!
//! The semantics and defaults are those of fio 3.33, read from its manual and sources and compared with its output.
//! A key that fio knows and that would change the requests, but is not supported, is an error that says so; a key
//! that cannot change them is accepted and noted. `docs/workloads.md` lists every key.
//!
//! ```text
//! text ──ini──> sections ──settings──> typed jobs ──plan(capacity, seed)──> clones with numbers ──> FioWorkload
//! ```
//!
//! ```
//! use ssdlab_base::Nanos;
//! use ssdlab_workload::{Next, Workload, fio::FioJob};
//!
//! let job = FioJob::parse_line("rw=randwrite,bs=4k,iodepth=32,size=50%")?;
//! let mut workload = job.generator(1 << 30, 1)?;
//! assert!(matches!(workload.next(Nanos::ZERO)?, Next::Request(request) if request.sectors == 8));
//! # Ok::<(), ssdlab_workload::WorkloadError>(())
//! ```

mod engines;
mod files;
mod generator;
mod ini;
mod job;
mod keys;
mod listing;
mod mode;
mod plan;
mod random_map;
mod reader;
mod settings;
mod skew;
mod targets;
mod value;
mod variables;
mod zone_plan;
mod zones;

use std::path::Path;

use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_base::{SECTOR_BYTES, read_text};

pub use files::{Durability, JobFile, JobsOnFiles, OnFile};
pub use generator::FioWorkload;
pub use keys::{KEYS, Key, Support};
pub use value::size as parse_size;
pub use variables::Variables;

use settings::JobSettings;

use crate::{Demand, WorkloadError};

/// A job file is text that a person wrote; anything larger is something else.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Most bytes of a name in a path of a file.
const MAX_NAME_BYTES: usize = 255;

/// The jobs of a job file or of a one-line specification, checked as far as they can be without a drive.
#[derive(Clone, Debug)]
pub struct FioJob {
    jobs: Vec<JobSettings>,
    variables: Vec<variables::Used>,
}

/// [`FioJob`] by the name of its one-line form: `FioSpec::parse_line("rw=randwrite,bs=4k")`.
pub type FioSpec = FioJob;

impl FioJob {
    /// Reads a job file.
    ///
    /// # Errors
    /// A file that cannot be read, and everything that [`FioJob::parse_text`] refuses.
    pub fn parse_file(path: &Path, variables: &Variables) -> Result<FioJob, WorkloadError> {
        FioJob::parse_text_with(&FioJob::read_file(path)?, &path.display().to_string(), variables)
    }

    /// The text of a job file, for [`FioJob::parse_text`].
    ///
    /// # Errors
    /// A file that cannot be read, or is no text.
    pub fn read_file(path: &Path) -> Result<String, WorkloadError> {
        read_text(path, FILE_BYTES_MAX, "a fio job file")
            .map_err(|error| WorkloadError(format!("{}: {error}", path.display())))
    }

    /// Reads the text of a job file that has no variables; `source` names it in messages.
    ///
    /// # Errors
    /// The first line that is wrong, with its key, what was found and what was expected.
    pub fn parse_text(text: &str, source: &str) -> Result<FioJob, WorkloadError> {
        FioJob::parse_text_with(text, source, &Variables::default())
    }

    /// Reads the text of a job file with values for its variables.
    ///
    /// # Errors
    /// The first line that is wrong, with its key, what was found and what was expected; a variable without a value.
    pub fn parse_text_with(text: &str, source: &str, variables: &Variables) -> Result<FioJob, WorkloadError> {
        let mut used = Vec::new();
        let sections = ini::parse_file(text, source, variables, &mut used)?;
        let jobs = sections.iter().map(JobSettings::read).collect::<Result<_, _>>()?;
        Ok(FioJob { jobs, variables: used })
    }

    /// Reads one line of options separated by commas, such as
    /// `rw=randwrite,bs=4k,iodepth=32,size=100%,io_size=4g,randseed=1`.
    ///
    /// # Errors
    /// The first key that is wrong, with what was found and what was expected.
    pub fn parse_line(text: &str) -> Result<FioJob, WorkloadError> {
        FioJob::parse_line_with(text, &Variables::default())
    }

    /// Reads one line of options with values for its variables.
    ///
    /// # Errors
    /// The first key that is wrong, with what was found and what was expected; and a variable without a value.
    pub fn parse_line_with(text: &str, variables: &Variables) -> Result<FioJob, WorkloadError> {
        let mut used = Vec::new();
        let section = ini::parse_line(text, variables, &mut used)?;
        Ok(FioJob { jobs: vec![JobSettings::read(&section)?], variables: used })
    }

    /// The workload on a drive of `capacity_bytes` bytes of user capacity, with everything random drawn from `seed`
    /// (or from a job's own `randseed`).
    ///
    /// # Errors
    /// A job that does not fit the drive.
    pub fn generator(&self, capacity_bytes: u64, seed: u64) -> Result<FioWorkload, WorkloadError> {
        self.generator_on(capacity_bytes, None, seed)
    }

    /// The workload on a drive that may have zones, with everything random drawn from `seed` (or from a job's own
    /// `randseed`); `capacity_bytes` are those that a host addresses.
    ///
    /// # Errors
    /// A job that does not fit the drive or its zones.
    pub fn generator_on(
        &self,
        capacity_bytes: u64,
        zones: Option<ZoneShape>,
        seed: u64,
    ) -> Result<FioWorkload, WorkloadError> {
        if capacity_bytes < SECTOR_BYTES {
            return Err(WorkloadError(format!(
                "a drive of {capacity_bytes} bytes holds no sector, expected at least {SECTOR_BYTES} bytes"
            )));
        }
        let (plans, zones) = plan::plan(&self.jobs, capacity_bytes, zones, seed)?;
        Ok(FioWorkload::new(plans, zones, self.notes()))
    }

    /// What the workload of [`FioJob::generator_on`] will take.
    ///
    /// # Errors
    /// A job that does not fit the drive or its zones.
    pub fn demand(&self, capacity_bytes: u64, zones: Option<ZoneShape>) -> Result<Demand, WorkloadError> {
        let (plans, zones) = plan::plan(&self.jobs, capacity_bytes, zones, 0)?;
        Ok(plan::demand(&plans, zones.as_ref()))
    }

    /// Requests that each job keeps in flight at most, clones one by one, in the file's order.
    pub fn depths(&self) -> Vec<u32> {
        let depth = |job: &JobSettings| if job.synchronous_engine.is_some() { 1 } else { job.depth };
        self.jobs.iter().flat_map(|job| std::iter::repeat_n(depth(job), job.clones as usize)).collect()
    }

    /// What a person should know: values of variables, jobs that name different files, keys accepted without effect, depths that
    /// were capped.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.variables.iter().map(ToString::to_string).collect();
        notes.extend(targets::note(&self.jobs));
        let mut idle: Vec<&str> = Vec::new();
        for job in &self.jobs {
            for key in job.without_effect() {
                if !idle.contains(&key) {
                    idle.push(key);
                }
            }
            if let Some(engine) = job.synchronous_engine.as_deref().filter(|_| job.depth > 1) {
                notes.push(format!(
                    "job '{}': ioengine={engine} is synchronous, so its depth is 1 and not {}",
                    job.name, job.depth
                ));
            }
        }
        if !idle.is_empty() {
            notes.push(format!("without effect on a stream of block requests: {}", idle.join(", ")));
        }
        notes
    }
}

/// Whether `text` is a one-line specification and not the path of a file: it sets `rw` or `readwrite`.
///
/// ```
/// use ssdlab_workload::fio::is_spec;
/// assert!(is_spec("rw=randwrite,bs=4k"));
/// assert!(!is_spec("traces/fin1.csv"));
/// ```
pub fn is_spec(text: &str) -> bool {
    let sets_rw = |piece: &str| {
        let key = piece.split_once('=').map(|(key, _)| key.trim());
        matches!(key, Some("rw" | "readwrite"))
    };
    text.split(',').any(sets_rw)
}

/// Whether fio has a key of this name.
pub(crate) fn is_key(name: &str) -> bool {
    keys::find(name).is_some()
}

/// Whether `text` is one of the values of `rw`, without more.
pub(crate) fn is_direction(text: &str) -> bool {
    reader::direction(text.trim()).is_some()
}

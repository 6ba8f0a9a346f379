//! A paper's `experiment.toml`: its drives, the variants that are compared, the inputs, and what smaller sizes cut off.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ReproduceError;
use super::file_work::FileWorkText;

/// The data of a paper's experiments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The seed of every run.
    pub seed: u64,
    /// The workload in whose steady state drives are that are prepared so, as `--precondition steady:WORKLOAD`.
    pub steady: Option<String>,
    /// The job file of the paper's folder that ages drives which are prepared so, as `--precondition FILE`.
    pub ageing: Option<String>,
    /// The description of each of the paper's drives, by the name that figures use (a page size, say).
    pub drives: BTreeMap<String, String>,
    /// The variants, by name.
    pub variants: BTreeMap<String, Variant>,
    /// The inputs, in the order of the tables.
    pub input: Vec<InputText>,
    /// The file workloads, in the order of the tables.
    #[serde(default)]
    pub files: Vec<FileWorkText>,
    /// What `--quick` runs instead.
    pub quick: Smaller,
    /// What `--middle` runs instead; nothing where the whole takes as long.
    pub middle: Option<Smaller>,
    /// Why there is no middle size, where there is none.
    pub no_middle: Option<String>,
}

/// How large runs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Seconds: whether all is in order. The values mean nothing.
    Quick,
    /// Minutes: everything in proportion, so that orderings and ratios hold.
    Middle,
    /// The paper's.
    #[default]
    Full,
}

/// A variant of a drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it sets, as `--set` does.
    pub set: Vec<String>,
    /// The host description in the paper's folder whose layers stand above its drive, as `--host` does.
    pub host: Option<String>,
    /// What it is, in a line.
    pub about: String,
}

/// An input as the file states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputText {
    /// What tables call it.
    pub name: String,
    /// Which of a paper's workloads it stands for; nothing where it is one of ours.
    #[serde(default)]
    pub stands_for: String,
    /// What figures choose by.
    pub group: String,
    /// As `--workload`; `{file}` is where `file` was found. Without it, the file is the workload.
    pub workload: Option<String>,
    /// The workload of `--middle`, where it is another: a model with a smaller footprint.
    pub middle: Option<String>,
    /// A file in one of the folders of traces.
    pub file: Option<String>,
    /// Where its requests go on another drive: `exact` (by default), `fit`, `wrap`.
    pub fit: Option<String>,
    /// At most so many requests.
    pub limit: Option<u64>,
    /// At most so many requests are looked at for the tables of inputs: for one that only sub-tests end.
    pub look: Option<u64>,
    /// Phases of a recording that figures tell apart, in their order.
    #[serde(default)]
    pub phase: Vec<Phase>,
    /// The workload that runs before it, without time, in runs that are warmed up: what fills caches above a drive. `{file}` is where
    /// `file` was found.
    pub warm_up: Option<String>,
    /// What it is, and where it comes from.
    pub about: String,
}

/// A phase of a recording: what a program did from one request to another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// What figures choose by.
    pub name: String,
    /// Bytes that the program read or wrote in it, in equal parts; nothing where it rested. The file system may have sent more, or fewer.
    pub bytes: Option<u64>,
    /// Requests before each part, and before what comes after the last one.
    pub parts: Vec<u64>,
}

/// Smaller runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smaller {
    /// At most so many requests of a run.
    pub requests: Option<u64>,
    /// One in so many requests of each input, from its first on.
    pub part_of_requests: Option<u64>,
    /// What is set on every drive.
    #[serde(default)]
    pub set: Vec<String>,
    /// What is set on some: by the drive's name.
    #[serde(default)]
    pub drives: BTreeMap<String, Vec<String>>,
    /// The most inputs of each group.
    #[serde(default = "all")]
    pub inputs: usize,
    /// By how much sizes that a figure states are smaller: caches, buffers, volumes.
    #[serde(default = "one")]
    pub divided_by: u64,
    /// Figures whose published values mean something at this size: they are compared.
    #[serde(default)]
    pub judged: Vec<String>,
    /// What holds at this size and what does not, in a sentence or two.
    #[serde(default)]
    pub about: String,
}

impl Smaller {
    /// Whether drives are smaller, too.
    pub(super) fn has_small_drives(&self) -> bool {
        let all = self.set.iter().chain(self.drives.values().flatten());
        all.into_iter().any(|set| set.starts_with("flash.") || set.starts_with("capacity."))
    }
}

fn all() -> usize {
    usize::MAX
}

fn one() -> u64 {
    1
}

impl Experiment {
    /// Reads the text; `paper` is what messages call it.
    ///
    /// # Errors
    /// What is wrong with it, with its line.
    pub fn parse(paper: &str, text: &str) -> Result<Experiment, ReproduceError> {
        toml::from_str(text).map_err(|error| ReproduceError::new(format!("papers/{paper}/experiment.toml: {error}")))
    }
}

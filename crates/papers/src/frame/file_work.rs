//! File workloads of a reproduction: what an experiment says of one, and its run on a file system.

use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::{Value, json};
use ssdlab_base::Nanos;
use ssdlab_device::DriveConfig;
use ssdlab_fs::kinds::FileSystemKind;
use ssdlab_lab::files::{FilesRun, FilesWork, HostTime, run_files};
use ssdlab_lab::progress::{Control, Progress};
use ssdlab_lab::result::FORMAT;
use ssdlab_lab::{DeviceUnderTest, memory};
use ssdlab_workload::files::Personality;
use ssdlab_workload::fio::{FioJob, Variables};

use super::ReproduceError;
use super::figure::Paper;

/// A file workload as an experiment states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWorkText {
    /// What tables call it.
    pub name: String,
    /// Which of the paper's workloads it stands for; nothing where it is one of ours.
    #[serde(default)]
    pub stands_for: String,
    /// The personality, as `ssdlab files` takes it.
    pub personality: Option<String>,
    /// What is set on it, as `--set`.
    #[serde(default)]
    pub set: Vec<String>,
    /// What is set as well in runs of `--quick`: of a personality, or variables of a job file.
    #[serde(default)]
    pub quick: Vec<String>,
    /// A job file of the paper's folder, in place of a personality.
    pub jobs: Option<String>,
    /// Values of the job file's variables, as `--env`.
    #[serde(default)]
    pub env: Vec<String>,
    /// What it is, and where it comes from.
    pub about: String,
}

/// A file system and a file workload on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnFiles {
    /// The kind of file system.
    pub kind: String,
    /// Its keys, as `--fs-set`.
    pub keys: Vec<String>,
    /// Times on the host, as `--host-time`.
    pub host_time: Vec<String>,
    /// The name of the file workload.
    pub work: String,
}

/// A file workload that can be run.
enum Work {
    Personality(Box<Personality>),
    Jobs(Box<FioJob>, String),
}

/// A run on a file system that can be begun on any thread.
pub(super) struct ReadyFiles {
    on: OnFiles,
    work: Work,
}

impl FileWorkText {
    /// What it sets on a personality, or as variables, at this size.
    fn settings(&self, is_quick: bool) -> impl Iterator<Item = &String> {
        let stated = if self.jobs.is_some() { &self.env } else { &self.set };
        stated.iter().chain(self.quick.iter().filter(move |_| is_quick))
    }

    /// As a command line has it.
    pub(super) fn spoken(&self, paper: &Paper, is_quick: bool) -> String {
        let mut text = match (&self.personality, &self.jobs) {
            (Some(name), _) => name.clone(),
            (None, Some(file)) => format!("--jobs {}", paper.path(file)),
            (None, None) => String::new(),
        };
        let option = if self.jobs.is_some() { "--env" } else { "--set" };
        self.settings(is_quick).for_each(|set| text.push_str(&format!(" {option} {set}")));
        text
    }

    fn work(&self, paper: &Paper, is_quick: bool) -> Result<Work, ReproduceError> {
        match (&self.personality, &self.jobs) {
            (Some(name), None) => {
                let mut personality = Personality::open(name).map_err(ReproduceError::new)?;
                for setting in self.settings(is_quick) {
                    personality.set(setting).map_err(ReproduceError::new)?;
                }
                personality.check().map_err(ReproduceError::new)?;
                Ok(Work::Personality(Box::new(personality)))
            }
            (None, Some(file)) => {
                let mut variables = Variables::default();
                for variable in self.settings(is_quick) {
                    variables = variables.with(variable).map_err(ReproduceError::new)?;
                }
                let path = paper.path(file);
                let jobs =
                    FioJob::parse_text_with(paper.file(file)?, &path, &variables).map_err(ReproduceError::new)?;
                Ok(Work::Jobs(Box::new(jobs), path))
            }
            _ => Err(ReproduceError::new(format!(
                "papers/{}/experiment.toml, file workload '{}': expected either a personality or jobs",
                paper.name, self.name
            ))),
        }
    }
}

impl OnFiles {
    /// The rest of the command, from the workload on.
    pub(super) fn command(&self, stated: Option<&FileWorkText>, paper: &Paper, is_quick: bool) -> String {
        let mut text = stated.map_or_else(String::new, |stated| format!(" {}", stated.spoken(paper, is_quick)));
        text.push_str(&format!(" --fs {}", self.kind));
        self.keys.iter().for_each(|key| text.push_str(&format!(" --fs-set {key}")));
        self.host_time.iter().for_each(|key| text.push_str(&format!(" --host-time {key}")));
        text
    }

    /// Makes the run ready.
    ///
    /// # Errors
    /// A workload that the experiment does not have, and whatever is wrong with its words.
    pub(super) fn ready(
        &self,
        stated: &[FileWorkText],
        paper: &Paper,
        is_quick: bool,
    ) -> Result<ReadyFiles, ReproduceError> {
        let found = stated.iter().find(|stated| stated.name == self.work);
        let found =
            found.ok_or_else(|| ReproduceError::new(format!("the paper has no file workload '{}'", self.work)))?;
        let ready = ReadyFiles { on: self.clone(), work: found.work(paper, is_quick)? };
        ready.kind()?.read_overrides(&self.keys, "--fs-set").map_err(ReproduceError::new)?;
        HostTime::read(&self.host_time, "--host-time").map_err(ReproduceError::new)?;
        Ok(ready)
    }
}

impl ReadyFiles {
    fn kind(&self) -> Result<&'static FileSystemKind, ReproduceError> {
        FileSystemKind::of_name(&self.on.kind).map_err(ReproduceError::new)
    }

    /// What tells it apart from others.
    pub(super) fn identity(&self) -> String {
        match &self.work {
            Work::Personality(personality) => format!("{:?} {personality:?}", self.on),
            Work::Jobs(jobs, _) => format!("{:?} {jobs:?}", self.on),
        }
    }

    fn with<T>(
        &self,
        dut: &DeviceUnderTest,
        seed: u64,
        command: &str,
        then: impl FnOnce(&FilesRun<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let kind = self.kind().map_err(|error| error.sentence)?;
        let (make, options) = kind.read_overrides(&self.on.keys, "--fs-set").map_err(|error| error.to_string())?;
        let host_time = HostTime::read(&self.on.host_time, "--host-time").map_err(|error| error.to_string())?;
        let (work, until) = match &self.work {
            Work::Personality(personality) => {
                let runtime = personality.parameters.runtime_ns.map(Nanos);
                (FilesWork::Personality(personality), runtime.filter(|_| personality.transactions().is_none()))
            }
            Work::Jobs(jobs, path) => (FilesWork::Jobs(jobs, path), None),
        };
        then(&FilesRun {
            dut,
            host: None,
            kind,
            make,
            options,
            host_time,
            work,
            until,
            operations: None,
            seed,
            is_cold: false,
            verify: false,
            check: true,
            command: command.split(' ').map(str::to_string).collect(),
        })
    }

    /// Memory that it takes at most, in bytes. What is wrong is the run's to refuse.
    pub(super) fn memory_bytes(&self, config: &DriveConfig) -> u64 {
        let dut = DeviceUnderTest { label: config.name.clone(), config: config.clone() };
        let memory = self.with(&dut, 0, "", |run| run.memory().map_err(|error| error.to_string()));
        memory.map_or(0, |memory| memory.total()) + memory::BESIDES
    }

    /// The run itself, as a result with one drive that has everything of `files.json`; nothing if it was stopped.
    pub(super) fn run(
        &self,
        config: &DriveConfig,
        seed: u64,
        command: &str,
        stop: &AtomicBool,
        progress: &dyn Progress,
    ) -> Result<Option<Value>, String> {
        let dut = DeviceUnderTest { label: config.name.clone(), config: config.clone() };
        let control = Control::new(stop, progress);
        let result =
            self.with(&dut, seed, command, |run| run_files(run, &control).map_err(|error| error.to_string()))?;
        if let Some(error) = &result.run.error {
            return Err(error.clone());
        }
        let of_drives = result.drives.iter().flat_map(|drive| &drive.checks).cloned();
        let checks: Vec<_> = result.checks.iter().cloned().chain(of_drives).collect();
        let complete = result.run.complete;
        let mut device = serde_json::to_value(&result).map_err(|error| error.to_string())?;
        device["checks"] = json!(checks);
        Ok(complete.then(|| json!({ "format": FORMAT, "complete": true, "devices": [device] })))
    }
}

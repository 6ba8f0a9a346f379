//! A run as figures state it, and what makes two of them the same.

use std::fmt;

use ssdlab_device::DriveConfig;

use super::ReproduceError;
use super::input::Input;
use super::scene::Scene;
use crate::precondition::Age;
use crate::result::VERSION;
use crate::snapshot::build;
use crate::source::{TextSource, WorkloadSource as _};

/// Name and version of what a key is made of.
const KEY: &str = "ssdlab reproduction run v1";

/// How a drive is prepared for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preparation {
    /// Fresh from the factory.
    None,
    /// All that the input touches was written once.
    Touched,
    /// The whole user capacity was written once.
    Fill,
}

impl Preparation {
    /// As `--precondition` has it.
    pub const fn text(self) -> &'static str {
        match self {
            Preparation::None => "none",
            Preparation::Touched => "touched",
            Preparation::Fill => "fill",
        }
    }

    pub(super) const fn age(self) -> Age<'static> {
        match self {
            Preparation::None => Age::None,
            Preparation::Touched => Age::Touched,
            Preparation::Fill => Age::Fill,
        }
    }
}

/// A run: a drive with what is set on it, an input, and how it is sent. Equal runs are one run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The description's name.
    pub device: String,
    /// What is set on it, in this order, as `--set`.
    pub set: Vec<String>,
    /// The input's name.
    pub input: String,
    /// As `--replay`; nothing for the input's own way.
    pub replay: Option<String>,
    /// The drive's age.
    pub preparation: Preparation,
    /// The seed of everything random.
    pub seed: u64,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.input, self.device)?;
        for set in &self.set {
            write!(f, ", {set}")?;
        }
        if let Some(replay) = &self.replay {
            write!(f, ", {replay}")?;
        }
        write!(f, ", {}", self.preparation.text())
    }
}

impl Run {
    /// With one more key set.
    #[must_use]
    pub fn with(mut self, set: impl Into<String>) -> Run {
        self.set.push(set.into());
        self
    }

    /// With another preparation.
    #[must_use]
    pub fn prepared(mut self, preparation: Preparation) -> Run {
        self.preparation = preparation;
        self
    }

    /// The command that does this run alone; traces lie under `TRACES/`.
    pub fn command(&self, scene: &Scene) -> String {
        let mut command = format!("ssdlab run --device {}", self.device);
        for set in &self.set {
            command.push_str(&format!(" --set {set}"));
        }
        let input = scene.inputs.iter().find(|input| input.name == self.input);
        if let Some(input) = input {
            command.push_str(&format!(" --workload {}", input.spoken()));
            if input.fit != ssdlab_workload::replay::Fit::Exact {
                command.push_str(&format!(" --{}", input.fit));
            }
            if let Some(limit) = input.limit {
                command.push_str(&format!(" --limit {limit}"));
            }
        }
        if let Some(replay) = &self.replay {
            command.push_str(&format!(" --replay {replay}"));
        }
        command.push_str(&format!(" --precondition {} --seed {}", self.preparation.text(), self.seed));
        command
    }

    /// Makes the run ready: everything that can be wrong without running it is found here.
    pub(super) fn ready(&self, scene: &Scene) -> Result<Ready, ReproduceError> {
        let config = scene.config(self)?;
        let input = scene.inputs.iter().find(|input| input.name == self.input);
        let Some(input) = input else {
            return Err(ReproduceError::new(format!("the paper has no input '{}'", self.input)));
        };
        if let Some(missing) = &input.missing {
            return Err(ReproduceError::new(format!("input '{}' is missing: {missing}", input.name)));
        }
        let source = input.source(self.replay.as_deref(), self.seed)?;
        let mut hasher = blake3::Hasher::new();
        let replay = source.replay();
        let fields = [
            KEY,
            VERSION,
            &build(),
            &format!("{config:?}"),
            &source.identity(),
            &replay,
            self.preparation.text(),
            &self.seed.to_string(),
        ];
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
        }
        let key = hasher.finalize().to_hex()[..32].to_string();
        Ok(Ready { run: self.clone(), config, input: input.clone(), command: self.command(scene), key })
    }
}

/// A run that can be begun on any thread.
pub(super) struct Ready {
    pub(super) run: Run,
    pub(super) config: DriveConfig,
    pub(super) input: Input,
    pub(super) command: String,
    /// What names its results: a hash of the program, the whole configuration, the input and how it is sent.
    pub(super) key: String,
}

impl Ready {
    /// The workload, opened for this thread.
    pub(super) fn source(&self) -> Result<TextSource, ReproduceError> {
        self.input.source(self.run.replay.as_deref(), self.run.seed)
    }

    /// Memory that the run takes at most, roughly, in bytes: flash pages, maps and the buffer's units.
    pub(super) fn memory_bytes(&self) -> u64 {
        const PAGE: u64 = 16;
        const BESIDES: u64 = 64 << 20;
        let geometry = &self.config.flash.geometry;
        let units = geometry.bytes() / u64::from(self.config.ftl.mapping_unit.max(512));
        units.max(geometry.bytes() / u64::from(geometry.page_bytes)) * PAGE + self.config.buffer.bytes / 4 + BESIDES
    }
}

//! A run as figures state it, and what makes two of them the same.

use std::fmt;

use ssdlab_device::DriveConfig;
use ssdlab_flash::DieId;
use ssdlab_host::Host;

use super::ReproduceError;
use super::context::PaperContext;
use super::file_work::{OnFiles, ReadyFiles};
use super::input::Input;
use ssdlab_lab::memory::{BESIDES, Memory};
use ssdlab_lab::ready_busy::Recording;
use ssdlab_lab::result::VERSION;
use ssdlab_lab::snapshot::build;
use ssdlab_lab::source::{ReplayOptions, TextSource, WorkloadSource as _};
use ssdlab_lab::subtests::{Volumes, volumes};

/// Name and version of what a key is made of.
const KEY: &str = "ssdlab reproduction run v1";

/// How a drive is prepared for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preparation {
    /// Fresh from the factory.
    None,
    /// All that the input touches was written once.
    #[default]
    Footprint,
    /// The whole user capacity was written once.
    Fill,
    /// The steady state of the experiment's `steady` workload.
    Steady,
    /// What the experiment's `ageing` leaves, once on a fresh drive.
    Aged,
    /// What the input's `warm_up` leaves, once on fresh devices.
    WarmedUp,
}

impl Preparation {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Preparation::None => "none",
            Preparation::Footprint => "footprint",
            Preparation::Fill => "fill",
            Preparation::Steady => "steady",
            Preparation::Aged => "aged",
            Preparation::WarmedUp => "warmed up",
        }
    }
}

/// A run: a drive with what is set on it, an input, and how it is sent. Equal runs are one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Run {
    /// The description's name.
    pub device: String,
    /// What is set on it, in this order, as `--set`.
    pub set: Vec<String>,
    /// The file of the paper's folder that describes the layers above the drive; nothing where it has none.
    pub host: Option<String>,
    /// The input's name.
    pub input: String,
    /// As `--replay`; nothing for the input's own way.
    pub replay: Option<String>,
    /// Groups of the trace that are sorted by address, as `reorder=SIZE`; nothing for its own order.
    pub reorder: Option<String>,
    /// The drive's age.
    pub preparation: Preparation,
    /// The seed of everything random.
    pub seed: u64,
    /// Whether the recorder watches, and which die.
    pub recording: Option<Recording>,
    /// As `--subtests`; nothing for the whole input, once.
    pub subtests: Option<String>,
    /// The input that is sent before the sub-tests.
    pub initial: Option<String>,
    /// Whether results say what requests waited for.
    pub breakdown: bool,
    /// Milliseconds of an interval of the timeline, as `--timeline-interval`; nothing for one in at most 1024 parts.
    pub interval_ms: Option<u64>,
    /// The file system on which a file workload runs, in place of the input's requests.
    pub files: Option<OnFiles>,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.input, self.device)?;
        for set in &self.set {
            write!(f, ", {set}")?;
        }
        if let Some(host) = &self.host {
            write!(f, ", below {host}")?;
        }
        if let Some(replay) = &self.replay {
            write!(f, ", {replay}")?;
        }
        if let Some(size) = &self.reorder {
            write!(f, ", reorder={size}")?;
        }
        if let Some(subtests) = &self.subtests {
            write!(f, ", {subtests}")?;
        }
        if let Some(on) = &self.files {
            return write!(f, ", {}", on.kind);
        }
        write!(f, ", {}", self.preparation.name())
    }
}

impl Run {
    /// With one more key set.
    #[must_use]
    pub fn with(mut self, set: impl Into<String>) -> Run {
        self.set.push(set.into());
        self
    }

    /// With more keys set.
    #[must_use]
    pub fn with_all(mut self, set: &[&str]) -> Run {
        self.set.extend(set.iter().map(ToString::to_string));
        self
    }

    /// With keys of its file system, as `--fs-set`, and times of the host, as `--host-time`.
    #[must_use]
    pub fn with_files(mut self, keys: &[&str], host_time: &[&str]) -> Run {
        if let Some(on) = &mut self.files {
            on.keys.extend(keys.iter().map(ToString::to_string));
            on.host_time.extend(host_time.iter().map(ToString::to_string));
        }
        self
    }

    /// With the trace sorted by address in groups of this size.
    #[must_use]
    pub fn reordered(mut self, size: impl Into<String>) -> Run {
        self.reorder = Some(size.into());
        self
    }

    /// With another preparation.
    #[must_use]
    pub fn prepared(mut self, preparation: Preparation) -> Run {
        self.preparation = preparation;
        self
    }

    /// Watched by the recorder on a die's Ready/Busy line.
    #[must_use]
    pub fn recorded(mut self, die: u32) -> Run {
        self.recording = Some(Recording { die: DieId(die) });
        self
    }

    /// With what its requests waited for.
    #[must_use]
    pub fn broken_down(mut self) -> Run {
        self.breakdown = true;
        self
    }

    /// With a timeline of intervals of so many milliseconds.
    #[must_use]
    pub fn every_ms(mut self, interval: u64) -> Run {
        self.interval_ms = Some(interval);
        self
    }

    /// With another seed.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Run {
        self.seed = seed;
        self
    }

    /// In sub-tests of these volumes.
    #[must_use]
    pub fn divided(mut self, volumes: impl Into<String>) -> Run {
        self.subtests = Some(volumes.into());
        self
    }

    /// With initial data before the sub-tests.
    #[must_use]
    pub fn beginning_with(mut self, initial: &Input) -> Run {
        self.initial = Some(initial.name.clone());
        self
    }

    /// As `--precondition` has it.
    pub(super) fn precondition(&self, context: &PaperContext) -> String {
        let input = context.inputs.iter().find(|input| input.name == self.input);
        match (self.preparation, &context.experiment.steady, &context.experiment.ageing) {
            (Preparation::Steady, Some(workload), _) => format!("steady:{workload}"),
            (Preparation::Aged, _, Some(file)) => context.paper.path(file),
            (Preparation::WarmedUp, ..) => input.and_then(Input::spoken_warm_up).unwrap_or_default(),
            (preparation, ..) => preparation.name().to_string(),
        }
    }

    /// The command that does this run alone; traces lie under `TRACES/`.
    pub fn command(&self, context: &PaperContext) -> String {
        if let Some(on) = &self.files {
            let stated = context.experiment.files.iter().find(|stated| stated.name == on.work);
            let work = on.command(stated, context.paper, context.is_quick());
            let set: String = self.set.iter().map(|set| format!(" --device-set {set}")).collect();
            return format!("ssdlab files{work} --device {}{set} --seed {}", self.device, self.seed);
        }
        let mut command = format!("ssdlab run --device {}", self.device);
        match (&self.host, &context.host) {
            (Some(file), _) => command.push_str(&format!(" --host {}", context.paper.path(file))),
            (None, Some((file, _))) => command.push_str(&format!(" --host {file}")),
            (None, None) => {}
        }
        for set in &self.set {
            command.push_str(&format!(" --set {set}"));
        }
        let input = context.inputs.iter().find(|input| input.name == self.input);
        if let Some(input) = input {
            let order = self.reorder.as_ref().map(|size| format!("reorder={size}:")).unwrap_or_default();
            command.push_str(&format!(" --workload {order}{}", input.spoken()));
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
        if let Some(recording) = self.recording {
            command.push_str(&format!(" --rb-probe {}", recording.die));
        }
        if self.breakdown {
            command.push_str(" --latency-breakdown");
        }
        if let Some(interval) = self.interval_ms {
            command.push_str(&format!(" --timeline-interval {interval}ms"));
        }
        if let Some(subtests) = &self.subtests {
            command.push_str(&format!(" --subtests {subtests}"));
        }
        let initial = context.inputs.iter().find(|input| Some(&input.name) == self.initial.as_ref());
        if let Some(initial) = initial {
            command.push_str(&format!(" --initial {}", initial.spoken()));
        }
        command.push_str(&format!(" --precondition {} --seed {}", self.precondition(context), self.seed));
        command
    }

    /// Makes the run ready: everything that can be wrong without running it is found here.
    pub(super) fn ready(&self, context: &PaperContext) -> Result<Ready, ReproduceError> {
        let config = context.config(self)?;
        let host = context.layers(self)?;
        let command = self.command(context);
        if let Some(on) = &self.files {
            let files = on.ready(&context.experiment.files, context.paper, context.is_quick())?;
            let key =
                key_of(&[KEY, VERSION, &build(), &format!("{config:?}"), &files.identity(), &self.seed.to_string()]);
            return Ok(Ready { run: self.clone(), config, command, key, doing: Doing::Files(files) });
        }
        let found = |name: &str| {
            let input = context.inputs.iter().find(|input| input.name == name);
            let input = input.ok_or_else(|| ReproduceError::new(format!("the paper has no input '{name}'")))?;
            match &input.missing {
                Some(missing) => Err(ReproduceError::new(format!("input '{name}' is missing: {missing}"))),
                None => Ok(input.clone()),
            }
        };
        let mut input = found(&self.input)?;
        if let Some(size) = &self.reorder {
            input.text = format!("reorder={size}:{}", input.text);
        }
        let initial = self.initial.as_deref().map(found).transpose()?;
        let volumes = self.subtests.as_deref().map(volumes).transpose().map_err(ReproduceError::new)?;
        if self.preparation == Preparation::Steady && context.experiment.steady.is_none() {
            let sentence =
                format!("papers/{}/experiment.toml: found no `steady`, expected a workload", context.paper.name);
            return Err(ReproduceError::new(sentence));
        }
        let ageing = match (self.preparation, &context.experiment.ageing) {
            (Preparation::Aged, None) => {
                let file = context.paper.path("experiment.toml");
                return Err(ReproduceError::new(format!("{file}: found no `ageing`, expected a job file")));
            }
            (Preparation::Aged, Some(file)) => Some((context.paper.path(file), context.paper.file(file)?)),
            _ => None,
        };
        if self.preparation == Preparation::WarmedUp && input.warm_up.is_none() {
            let file = context.paper.path("experiment.toml");
            let sentence = format!("{file}: input '{}': found no `warm_up`, expected a workload", input.name);
            return Err(ReproduceError::new(sentence));
        }
        let source = input.source(self.replay.as_deref(), self.seed)?;
        let of_initial = initial.as_ref().map(|initial| initial.source(None, self.seed)).transpose()?;
        let precondition = self.precondition(context);
        let fields = [
            KEY,
            VERSION,
            &build(),
            &format!("{config:?}"),
            &source.identity(),
            &source.replay(),
            &precondition,
            &self.seed.to_string(),
            &format!("{:?} {volumes:?} {:?}", self.recording, of_initial.map(|initial| initial.identity())),
        ];
        let layers = host.as_ref().map(|(_, host)| format!("{host:?}"));
        let aged_by = ageing.as_ref().map(|(_, text)| *text);
        let breakdown = self.breakdown.then_some("breakdown");
        let interval = self.interval_ms.map(|interval| format!("every {interval} ms"));
        let asked = layers.as_deref().into_iter().chain(aged_by).chain(breakdown).chain(interval.as_deref());
        let key = key_of(&fields.into_iter().chain(asked).collect::<Vec<&str>>());
        let steady = context.experiment.steady.clone().filter(|_| self.preparation == Preparation::Steady);
        let requests = Requests { host, input, initial, volumes, steady, ageing, precondition };
        Ok(Ready { run: self.clone(), config, command, key, doing: Doing::Requests(Box::new(requests)) })
    }
}

/// What names results: a hash of these fields.
fn key_of(fields: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for field in fields {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_string()
}

/// A run that can be begun on any thread.
pub(super) struct Ready {
    pub(super) run: Run,
    pub(super) config: DriveConfig,
    pub(super) command: String,
    /// What names its results: a hash of the program, the whole configuration, the input and how it is sent.
    pub(super) key: String,
    pub(super) doing: Doing,
}

/// What a run does.
pub(super) enum Doing {
    /// Requests on a drive or a stack.
    Requests(Box<Requests>),
    /// A file workload on a file system.
    Files(ReadyFiles),
}

/// Requests, with what the drive is before them.
pub(super) struct Requests {
    pub(super) host: Option<(String, Host)>,
    pub(super) input: Input,
    pub(super) initial: Option<Input>,
    pub(super) volumes: Option<Volumes>,
    /// The workload in whose steady state the drive is, where it is in one.
    pub(super) steady: Option<String>,
    /// Path and text of the job file that ages the drive, where one does.
    pub(super) ageing: Option<(String, &'static str)>,
    /// As `--precondition`.
    pub(super) precondition: String,
}

impl Requests {
    /// The workload, opened for this thread.
    pub(super) fn source(&self, run: &Run) -> Result<TextSource, ReproduceError> {
        self.input.source(run.replay.as_deref(), run.seed)
    }

    /// The input that comes first, opened for this thread.
    pub(super) fn initial_source(&self, run: &Run) -> Result<Option<TextSource>, ReproduceError> {
        self.initial.as_ref().map(|initial| initial.source(None, run.seed)).transpose()
    }

    /// The workload that ages the drive, opened for this thread.
    pub(super) fn ageing_source(&self, run: &Run) -> Result<Option<TextSource>, ReproduceError> {
        let warm_up = self.input.warm_up.as_ref().filter(|_| run.preparation == Preparation::WarmedUp);
        let source = match (&self.steady, &self.ageing, warm_up) {
            (Some(text), ..) | (None, None, Some(text)) => {
                Some(TextSource::open(text, ReplayOptions::default(), run.seed))
            }
            (None, Some((file, text)), _) => Some(TextSource::of_jobs(text, file, run.seed)),
            (None, None, None) => None,
        };
        source.transpose().map_err(ReproduceError::new)
    }
}

impl Ready {
    /// What names the drive's age, for runs that share it; nothing where none is kept.
    pub(super) fn shared_age(&self) -> Option<String> {
        let Doing::Requests(requests) = &self.doing else { return None };
        let kept = matches!(self.run.preparation, Preparation::Fill | Preparation::Steady | Preparation::Aged);
        let layers = requests.host.as_ref().map(|(_, host)| host);
        kept.then(|| format!("{:?} {layers:?} {} {}", self.config, requests.precondition, self.run.seed))
    }

    /// Memory that the run takes at most, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        match &self.doing {
            Doing::Requests(requests) => memory_bytes(&self.config, requests.host.as_ref().map(|(_, host)| host)),
            Doing::Files(files) => files.memory_bytes(&self.config),
        }
    }
}

/// Memory that a run on this drive, or on a stack of such drives, takes at most, in bytes. A design that is not known is the
/// run's to refuse.
pub(super) fn memory_bytes(config: &DriveConfig, host: Option<&Host>) -> u64 {
    let memory = match host {
        Some(host) => Memory::of_stack(&config.name, config, host, false),
        None => Memory::of(&config.name, config, false),
    };
    memory.map_or(0, |memory| memory.total()) + BESIDES
}

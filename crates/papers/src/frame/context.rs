//! What figures see: the paper, its inputs as found, and the way to state a run.

use std::collections::BTreeMap;

use ssdlab_device::{Description, DriveConfig};
use ssdlab_host::{Host, Names, UnknownDrive};
use ssdlab_workload::replay::Fit;

use super::ReproduceError;
use super::experiment::{Experiment, Size, Smaller};
use super::figure::Paper;
use super::file_work::OnFiles;
use super::input::{Input, Library};
use super::input_stats::Survey;
use super::plan::Run;
use super::published::{self, Published};

/// A paper, opened on this machine.
#[derive(Clone)]
pub struct PaperContext {
    /// The paper.
    pub paper: &'static Paper,
    /// Its data.
    pub experiment: Experiment,
    /// Its published values.
    pub published: Vec<Published>,
    /// Its inputs, in order, those that are missing too.
    pub inputs: Vec<Input>,
    /// How large runs are.
    pub size: Size,
    /// Layers above the drive of every run, which the paper has not: the file's name, and what it says.
    pub host: Option<(String, Host)>,
}

impl PaperContext {
    /// Reads the paper's data, finds its inputs and walks through each.
    ///
    /// # Errors
    /// Data that is wrong.
    pub fn open(paper: &'static Paper, library: &Library, size: Size) -> Result<PaperContext, ReproduceError> {
        let experiment = Experiment::parse(paper.name, paper.experiment)?;
        let mut published = Vec::new();
        for (file, text) in paper.published {
            let file = format!("papers/{}/published/{file}", paper.name);
            published.extend(published::parse(&file, text).map_err(ReproduceError::new)?);
        }
        let mut context = PaperContext { paper, experiment, published, inputs: Vec::new(), size, host: None };
        if size == Size::Middle && context.experiment.middle.is_none() {
            let why = context.experiment.no_middle.as_deref().map_or(String::new(), |why| format!(": {why}"));
            let sentence = format!("{} has no middle size{why}; found --middle, expected none or --quick", paper.name);
            return Err(ReproduceError::new(sentence));
        }
        let Some(first) = context.experiment.drives.keys().next().cloned() else {
            return Err(ReproduceError::new(format!("papers/{}/experiment.toml: it has no drive", paper.name)));
        };
        let drive = context.config(&context.run_on(&first))?;
        let smaller = context.smaller().cloned();
        let limit = smaller.as_ref().and_then(|smaller| smaller.requests);
        let parts = smaller.as_ref().and_then(|smaller| smaller.part_of_requests);
        // A small drive has no room at the addresses of a large one.
        let fit = smaller.as_ref().filter(|smaller| smaller.has_small_drives()).map(|_| Fit::Dense);
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for stated in &context.experiment.input {
            let of_group = taken.entry(&stated.group).or_default();
            if smaller.as_ref().is_some_and(|smaller| *of_group == smaller.inputs) {
                continue;
            }
            let mut stated = stated.clone();
            if size == Size::Middle && stated.middle.is_some() {
                stated.workload = stated.middle.take();
            }
            let mut input = Input::open(&stated, library, &drive, limit, fit)?;
            if let (Some(parts), Some(whole)) = (parts, &input.survey) {
                let part = Some((whole.requests / parts).max(1));
                input = Input::open(&stated, library, &drive, part, fit)?;
            }
            *of_group += usize::from(input.is_there());
            context.inputs.push(input);
        }
        Ok(context)
    }

    /// What its runs have in place of the whole; nothing where they are the whole.
    fn smaller(&self) -> Option<&Smaller> {
        match self.size {
            Size::Quick => Some(&self.experiment.quick),
            Size::Middle => self.experiment.middle.as_ref(),
            Size::Full => None,
        }
    }

    /// Whether runs are those of a smoke test.
    pub fn is_quick(&self) -> bool {
        self.size == Size::Quick
    }

    /// Whether runs are the whole.
    pub fn is_full(&self) -> bool {
        self.size == Size::Full
    }

    /// A size that a figure states, at this size: smaller in proportion.
    pub fn sized(&self, bytes: u64) -> u64 {
        bytes / self.smaller().map_or(1, |smaller| smaller.divided_by)
    }

    /// Whether the published values of a figure are compared with ours.
    pub fn is_judged(&self, figure: &str) -> bool {
        self.smaller().is_none_or(|smaller| smaller.judged.iter().any(|judged| judged == figure))
    }

    /// What holds at this size, and what does not; nothing where all is whole.
    pub fn about_size(&self) -> Option<&str> {
        self.smaller().map(|smaller| smaller.about.as_str())
    }

    /// The inputs of a group that are there.
    pub fn inputs<'s>(&'s self, group: &'s str) -> impl Iterator<Item = &'s Input> {
        self.inputs.iter().filter(move |input| input.group == group && input.is_there())
    }

    /// The input of this name, if it is there.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name && input.is_there())
    }

    /// A run of `input` on the drive and variant of these names; figures change what they vary.
    pub fn run(&self, drive: &str, variant: &str, input: &Input, replay: &str) -> Run {
        let mut run = self.run_on(drive);
        run.set.extend(self.experiment.variants.get(variant).map(|variant| variant.set.clone()).unwrap_or_default());
        run.host = self.experiment.variants.get(variant).and_then(|variant| variant.host.clone());
        run.input.clone_from(&input.name);
        run.replay = (!replay.is_empty()).then(|| replay.to_string());
        run
    }

    /// A run of a file workload on a file system of this kind on a drive of the experiment.
    pub fn on_files(&self, drive: &str, kind: &str, work: &str) -> Run {
        let on = OnFiles { kind: kind.to_string(), keys: Vec::new(), host_time: Vec::new(), work: work.to_string() };
        Run { input: work.to_string(), files: Some(on), ..self.run_on(drive) }
    }

    /// As it would be on a machine that lacks no input, one request standing for what is in those that are missing here:
    /// what figures ask for there tells what they lack here.
    pub(super) fn lacking_nothing(&self) -> PaperContext {
        let mut context = self.clone();
        for input in context.inputs.iter_mut().filter(|input| !input.is_there()) {
            input.missing = None;
            input.survey = Some(Survey { requests: 2, reads: 1, writes: 1, ..Survey::default() });
        }
        context
    }

    fn run_on(&self, drive: &str) -> Run {
        let mut set = Vec::new();
        if let Some(smaller) = self.smaller() {
            set.extend(smaller.set.iter().chain(smaller.drives.get(drive).into_iter().flatten()).cloned());
        }
        Run {
            // A name that the experiment does not have is refused when the run is made ready.
            device: self.experiment.drives.get(drive).cloned().unwrap_or_else(|| drive.to_string()),
            set,
            seed: self.experiment.seed,
            ..Run::default()
        }
    }

    /// A drive of the experiment as its description says it, also where runs are small.
    ///
    /// # Errors
    /// A name that the experiment does not have.
    pub fn drive(&self, name: &str) -> Result<DriveConfig, ReproduceError> {
        let mut run = self.run_on(name);
        run.set.clear();
        self.config(&run)
    }

    /// The drive and variant of these names with `set` on it as well, for requests that come from elsewhere.
    ///
    /// # Errors
    /// A name that the experiment does not have, or a key that this ssdlab does not know.
    pub fn variant(&self, drive: &str, variant: &str, set: &[&str]) -> Result<DriveConfig, ReproduceError> {
        let Some(found) = self.experiment.variants.get(variant) else {
            return Err(ReproduceError::new(format!("the paper has no variant '{variant}'")));
        };
        let mut run = self.run_on(drive);
        run.set.extend(found.set.iter().cloned().chain(set.iter().map(ToString::to_string)));
        self.config(&run)
    }

    /// Puts layers above the drive of every run, which the paper has not.
    ///
    /// # Errors
    /// A paper whose variants have layers of their own: which of the two would stand above the other is not said.
    pub fn put_above(&mut self, file: &str, host: Host) -> Result<(), ReproduceError> {
        let own = self.experiment.variants.iter().find_map(|(name, variant)| Some((name, variant.host.as_ref()?)));
        if let Some((name, own)) = own {
            return Err(ReproduceError::new(format!(
                "found layers from {file}, expected none: variant '{name}' of {} has those of {}",
                self.paper.name,
                self.paper.path(own)
            )));
        }
        self.host = Some((file.to_string(), host));
        Ok(())
    }

    /// The layers above the drive of a run, and the file that describes them.
    ///
    /// # Errors
    /// A file that the paper does not have, or that is no host description.
    pub(crate) fn layers(&self, run: &Run) -> Result<Option<(String, Host)>, ReproduceError> {
        let Some(file) = &run.host else { return Ok(self.host.clone()) };
        let (path, text) = (self.paper.path(file), self.paper.file(file)?);
        let host = Host::parse_with(text, &path, &Shipped { paper: self.paper }).map_err(ReproduceError::new)?;
        Ok(Some((path, host)))
    }

    /// A figure that was measured has the published values of another: those of `of` stand for those of `id`, too.
    pub fn publish_as(&mut self, of: &str, id: &str) {
        let same = self.published.iter().filter(|published| published.figure == of);
        let same: Vec<Published> = same.map(|one| Published { figure: id.to_string(), ..one.clone() }).collect();
        self.published.extend(same);
    }

    /// The drive of a run.
    ///
    /// # Errors
    /// A description that this paper does not have, or a key that this ssdlab does not know.
    pub fn config(&self, run: &Run) -> Result<DriveConfig, ReproduceError> {
        let Some((name, text)) = self.paper.devices.iter().find(|(name, _)| *name == run.device) else {
            let names: Vec<&str> = self.paper.devices.iter().map(|(name, _)| *name).collect();
            let sentence = format!("the paper has no drive '{}', only {}", run.device, names.join(", "));
            return Err(ReproduceError::new(sentence));
        };
        let mut description =
            Description::parse(text, &format!("shipped description {name}")).map_err(ReproduceError::new)?;
        for assignment in &run.set {
            description.set(assignment).map_err(ReproduceError::new)?;
        }
        description.resolve().map_err(ReproduceError::new)
    }
}

/// The descriptions that a paper's layers may name.
struct Shipped {
    paper: &'static Paper,
}

impl Names for Shipped {
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive> {
        Err(UnknownDrive(format!("the layers of a paper stand on its drives, and not on '{name}'")))
    }

    fn disk(&self, name: &str) -> Result<(String, String), UnknownDrive> {
        let found = self.paper.devices.iter().find(|(device, _)| *device == name);
        let unknown = || UnknownDrive(format!("the paper has no disk '{name}'"));
        found.map(|(_, text)| ((*text).to_string(), format!("devices/{name}.toml"))).ok_or_else(unknown)
    }
}

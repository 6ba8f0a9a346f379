//! A case: a system and the explicit list of what happens to it. Everything random was drawn before, so that a case
//! does the same every time, and any part of it can be left out to see whether it matters.
//!
//! A kind of system under torture is a [`Subject`]: what a case sets up, the steps that can happen to it, and the
//! system with its oracle. Running, shrinking, campaigns, walks over all cuts and saved files are written once for all
//! subjects.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use ssdlab_base::CommandSet;
use ssdlab_device::{Drive, DriveConfig, DriveError};
use ssdlab_flash::{FaultKind, ScriptedFault};
use ssdlab_fs::MakeError;
use ssdlab_host::StackError;
use toml::Value;

use crate::cut::Whose;
use crate::panic_capture::{Caught, catch};
use crate::script::{Keys, ScriptError};
use crate::single_drive::SingleDrive;
use crate::step::{Command, Place, Step};
use crate::totals::Totals;

/// A system, and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case<S: Subject = SingleDrive> {
    /// Seed of the system's latencies, faults and random policies; also the seed the case was drawn from, if it was.
    pub seed: u64,
    /// The drive, or what a stack stands on where its layers name no drives; with its scripted faults.
    pub drive: DriveConfig,
    /// What is tortured.
    pub subject: S,
    /// What happens, in order.
    pub steps: Vec<Step<S::Command>>,
}

/// What is tortured: everything that a case says of it beside the drive and the steps.
pub trait Subject: Clone + fmt::Debug + PartialEq + Send + Sync {
    /// A command that its host sends.
    type Command: Command;
    /// The system with its oracle.
    type System: System<Command = Self::Command>;

    /// The command sets of its drives, one of which a saved case names; none for block I/O.
    const SETS: &'static [&'static str] = &[];

    /// The steps that it takes, for messages.
    const STEPS: &'static str;

    /// What every case ends with, for messages.
    const END: &'static str;

    /// A fresh system.
    ///
    /// # Errors
    /// A drive or a layer refuses.
    fn build(case: &Case<Self>) -> Result<Self::System, Refused>;

    /// Whether there is such a step for it.
    fn takes(step: &Step<Self::Command>) -> bool {
        match step {
            Step::Command(_) | Step::Drain => true,
            Step::Run(_) | Step::Pass(_) | Step::Fail(FaultKind::Die, _) => false,
            Step::Fail(_, place) => !matches!(place, Place::Drive(_)),
            Step::Cut(cut) => cut.whose == Whose::Only && !cut.unread && !cut.is_of_files(),
        }
    }

    /// What a saved case says of it, in the table `[torture]`.
    fn keys(&self, _drive: &DriveConfig) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Reads what [`Subject::keys`] wrote.
    ///
    /// # Errors
    /// A key is missing or wrong.
    fn read(keys: &mut Keys<'_>) -> Result<Self, ScriptError>;

    /// All drives of the system.
    fn drives(&self, drive: &DriveConfig) -> Vec<DriveConfig> {
        vec![drive.clone()]
    }

    /// Lines about it that come before the steps, for messages.
    fn describe(&self) -> Vec<String> {
        Vec::new()
    }

    /// Plainer forms.
    fn plainer(&self) -> Vec<Self> {
        Vec::new()
    }
}

/// A system that runs beside its oracle. Both speak by panicking.
pub trait System {
    /// A command that its host sends.
    type Command;

    /// Lets a step happen. `Break` is the end of a case whose system takes no more, which is no finding.
    fn apply(&mut self, step: &Step<Self::Command>, totals: &mut Totals) -> ControlFlow<()>;

    /// The end of every case: everything completes, and is compared.
    fn end(&mut self, totals: &mut Totals);

    /// The drives that have power.
    fn drives(&self) -> Vec<&Drive>;

    /// Adds what the system counted by itself.
    fn count(&self, _totals: &mut Totals) {}
}

/// Why a system cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A drive.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// A layer.
    #[error(transparent)]
    Layer(#[from] StackError),
    /// A file system.
    #[error(transparent)]
    FileSystem(#[from] MakeError),
}

/// What was found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What the oracle or the drive said.
    pub message: String,
    /// Where it was said: file and line.
    pub place: String,
    /// The step that was in flight, from 0; behind the last, the end that every case comes to.
    pub step: usize,
}

impl Finding {
    /// Whether the oracle found it, and not the drive's own assertions.
    pub fn by_oracle(&self) -> bool {
        self.place.contains("torture")
    }
}

/// What a drive may do because operations fail on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    /// A read may fail.
    pub(crate) failed_reads: bool,
    /// A program may fail.
    pub(crate) failed_programs: bool,
    /// The drive may run out of spare blocks, and take no more writes from there on.
    pub(crate) read_only: bool,
    /// Steps let operations fail.
    by_steps: bool,
}

impl Allowed {
    /// What either of two drives may do.
    pub(crate) const fn or(self, other: Allowed) -> Allowed {
        Allowed {
            failed_reads: self.failed_reads | other.failed_reads,
            failed_programs: self.failed_programs | other.failed_programs,
            read_only: self.read_only | other.read_only,
            by_steps: self.by_steps | other.by_steps,
        }
    }

    /// Prepares a fresh drive for the failures of steps.
    pub(crate) fn prepare(&self, drive: &mut Drive) {
        if self.by_steps {
            drive.expect_faults();
        }
    }
}

impl<S: Subject> Case<S> {
    /// Whether an operation of `kind` may fail on a drive of the case.
    fn may_fail(&self, drive: &DriveConfig, kind: FaultKind) -> bool {
        let faults = &drive.flash.faults;
        let by_rate = match kind {
            FaultKind::Read => faults.uncorrectable_read > 0.0,
            FaultKind::Program => faults.program_failure > 0.0,
            FaultKind::Erase => faults.erase_failure > 0.0 || faults.endurance.is_some(),
            FaultKind::Factory => faults.factory_bad > 0.0,
            FaultKind::Die => false,
        };
        // Everything fails on a lost die.
        let includes = |fails: FaultKind| fails == kind || fails == FaultKind::Die && kind != FaultKind::Factory;
        by_rate
            || faults.script.iter().any(|fault| includes(fault.kind))
            || self.steps.iter().filter_map(Step::failure).any(|(fails, _)| includes(fails))
    }

    /// What a drive of the case may do because operations fail on it.
    pub(crate) fn allows(&self, drive: &DriveConfig) -> Allowed {
        let failed_programs = self.may_fail(drive, FaultKind::Program);
        Allowed {
            failed_reads: self.may_fail(drive, FaultKind::Read),
            failed_programs,
            // With one block in reserve a few torn pages are too much.
            read_only: drive.gc.free_blocks < 3 || failed_programs || self.may_fail(drive, FaultKind::Erase),
            by_steps: self.steps.iter().any(|step| step.failure().is_some()),
        }
    }

    /// All drives of the system.
    pub fn drives(&self) -> Vec<DriveConfig> {
        self.subject.drives(&self.drive)
    }

    /// The drive is of the design that takes a command set.
    pub(crate) fn takes_set(&self, set: &CommandSet) -> Result<(), Refused> {
        let design = &self.drive.ftl.design;
        if ssdlab_device::design_with(set) == Some(design.as_str()) {
            return Ok(());
        }
        let reason = format!("'{design}' does not take the command set '{}'", set.name);
        Err(Refused::Drive(DriveError { key: "ftl.design".to_string(), reason }))
    }

    /// Whether the system can be built, faults of the factory included.
    ///
    /// # Errors
    /// A drive or a layer refuses.
    pub fn accepted(&self) -> Result<(), Refused> {
        S::build(self).map(|_| ())
    }

    /// The case as a list that a person reads, with a mark at the step of the finding.
    pub fn describe(&self, finding: &Finding) -> String {
        let mut text = format!("  on {}\n", ssdlab_device::description::one_line(&self.drive));
        self.subject.describe().iter().for_each(|line| text.push_str(&format!("  | {line}\n")));
        for fault in &self.drive.flash.faults.script {
            text.push_str(&format!("  fault: {:?} number {} on block {}\n", fault.kind, fault.nth, fault.block));
        }
        for (index, step) in self.steps.iter().enumerate() {
            let mark = if index == finding.step { "->" } else { "  " };
            text.push_str(&format!("{mark}{:4}  {step}\n", index + 1));
        }
        if finding.step >= self.steps.len() {
            text.push_str(&format!("->      the end: {}\n", S::END));
        }
        text + &format!("  {}\n  at {}", finding.message, finding.place)
    }
}

/// A fault that struck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Struck {
    /// As the script that repeats it.
    pub(crate) fault: ScriptedFault,
    /// The step that was in flight.
    pub(crate) step: usize,
}

/// What a run tells beside its finding.
#[derive(Default)]
pub(crate) struct Watched {
    /// The faults that struck, as far as the case went.
    pub(crate) struck: Vec<Struck>,
    /// A sentence for each fault of the case that never struck, if the case came to its end and has one drive.
    unstruck: Vec<String>,
    /// By drive: faults in `struck`. The chips remember all that struck, over power cuts.
    noted: Vec<usize>,
}

impl Watched {
    fn note<T: System>(&mut self, system: &T, step: usize) {
        for (place, drive) in system.drives().into_iter().enumerate() {
            if self.noted.len() == place {
                self.noted.push(0);
            }
            let all = drive.faults_struck();
            assert!(all.len() >= self.noted[place], "drive {place} forgot faults that struck in step {step} or before");
            self.struck.extend(all[self.noted[place]..].iter().map(|fault| Struck { fault: *fault, step }));
            self.noted[place] = all.len();
        }
    }
}

/// Runs a case; `Err` says what was found wrong. A system that its own checks refuse is no finding.
pub fn run<S: Subject>(case: &Case<S>, totals: &mut Totals) -> Result<(), Finding> {
    run_watched(case, totals, &mut Watched::default())
}

/// Runs a case as [`run`] does. `unstruck` gets a sentence for each fault of the case that never struck, if the case
/// came to its end and has one drive.
pub fn run_telling<S: Subject>(case: &Case<S>, totals: &mut Totals, unstruck: &mut Vec<String>) -> Result<(), Finding> {
    let mut watched = Watched::default();
    let result = run_watched(case, totals, &mut watched);
    unstruck.append(&mut watched.unstruck);
    result
}

/// Runs a case as [`run`] does, and says what struck.
pub(crate) fn run_watched<S: Subject>(
    case: &Case<S>,
    totals: &mut Totals,
    watched: &mut Watched,
) -> Result<(), Finding> {
    let start = Instant::now();
    let mut at = 0;
    let mut system = None;
    let result = catch(|| {
        assert!(case.steps.iter().all(S::takes), "all steps of seed {} are such of their subject", case.seed);
        system = S::build(case).ok();
        let Some(system) = &mut system else { return };
        for (index, step) in case.steps.iter().enumerate() {
            at = index;
            if system.apply(step, totals).is_break() {
                return;
            }
            watched.note(system, index);
        }
        at = case.steps.len();
        system.end(totals);
        watched.unstruck = never_struck(case, system);
    });
    // Also after a finding; then a drive may be without power, of which nothing can be told.
    let _ = catch(|| {
        if let Some(system) = &system {
            watched.note(system, at);
            system.count(totals);
        }
    });
    watched.struck.iter().for_each(|struck| totals.struck(struck.fault.kind));
    totals.cases += 1;
    totals.working += start.elapsed();
    result.map_err(|Caught { message, place }| Finding { message, place, step: at })
}

/// The faults of the script and of the steps that have not struck, a sentence each.
fn never_struck<S: Subject>(case: &Case<S>, system: &S::System) -> Vec<String> {
    let [drive] = system.drives()[..] else { return Vec::new() };
    let mut sentences: Vec<String> = drive.faults_unstruck().iter().map(ToString::to_string).collect();
    let mut asked = drive.faults_asked().to_vec();
    // Of steps that ask for the same, those that came first struck first.
    let mut late = Vec::new();
    for (index, step) in case.steps.iter().enumerate().rev() {
        let Some((kind, place)) = step.failure() else { continue };
        let block = place.block();
        if let Some(place) = asked.iter().position(|one| *one == (kind, block)) {
            asked.swap_remove(place);
            let on = block.map_or_else(|| "on any block".to_string(), |block| format!("on block {block}"));
            let word = match kind {
                FaultKind::Read => "read",
                FaultKind::Program => "program",
                FaultKind::Erase => "erase",
                FaultKind::Factory | FaultKind::Die => "operation",
            };
            late.push(format!("step {} (\"{step}\") never struck: no {word} {on} came after it", index + 1));
        }
    }
    sentences.extend(late.into_iter().rev());
    sentences
}

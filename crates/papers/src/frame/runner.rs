//! Doing the runs: every distinct one once, on all cores, as many at a time as memory holds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use ssdlab_base::Nanos;

use super::context::PaperContext;
use super::plan::{Doing, Preparation, Ready, Requests, Run, memory_bytes};
use super::result_reader::Measured;
use super::store::Store;
use ssdlab_lab::breakdown::Breakdown;
use ssdlab_lab::experiment::{DeviceUnderTest, Experiment, Provenance};
use ssdlab_lab::precondition::Preconditioning;
use ssdlab_lab::progress::{Control, NoProgress, Progress};
use ssdlab_lab::result::RunResult;
use ssdlab_lab::snapshot::SnapshotCache;
use ssdlab_lab::source::WorkloadSource;
use ssdlab_lab::subtests::Subtests;

/// How the runs are done.
pub struct Settings<'a> {
    /// Runs at a time.
    pub jobs: usize,
    /// Memory that all runs together may take, in bytes; one always runs.
    pub memory_bytes: u64,
    /// Where aged drives are kept.
    pub snapshots: Option<&'a SnapshotCache>,
    /// Set to end early: runs that were begun are given up, those that ended are kept.
    pub stop: &'a AtomicBool,
    /// Who watches.
    pub watch: &'a dyn Watch,
}

/// Watches the runs, from any thread.
pub trait Watch: Sync {
    /// So many runs are to be done, beside so many that were kept from before.
    fn planned(&self, runs: usize, kept: usize) {
        let _ = (runs, kept);
    }

    /// A run begins.
    fn began(&self, run: &Run) {
        let _ = run;
    }

    /// A run has ended, well or not.
    fn ended(&self, run: &Run, well: bool) {
        let _ = (run, well);
    }

    /// Who watches a run from within, while it lasts.
    fn within(&self, run: &Run) -> Box<dyn Progress + '_> {
        let _ = run;
        Box::new(NoProgress)
    }

    /// All is over.
    fn finish(&self) {}
}

impl Watch for NoProgress {}

/// Why a run has no results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunFailure {
    /// The run, in words.
    pub run: String,
    /// Its key; empty for one that could not even be made ready.
    pub key: String,
    /// What went wrong.
    pub reason: String,
    /// The command that does it alone.
    pub command: String,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ended, or was kept from before.
    Done(Measured),
    /// It did not.
    Failed(RunFailure),
    /// It was not done, because all was stopped.
    Stopped,
}

/// What came of all runs.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    outcomes: HashMap<Run, Outcome>,
    /// Runs in the order in which they were asked for.
    order: Vec<Run>,
    /// Those whose results were there before.
    kept: HashSet<Run>,
}

impl Outcomes {
    /// What a run left, if it ended.
    pub fn get(&self, run: &Run) -> Option<&Measured> {
        match self.outcomes.get(run) {
            Some(Outcome::Done(measured)) => Some(measured),
            _ => None,
        }
    }

    /// The runs that failed, in the order in which they were asked for.
    pub fn failures(&self) -> Vec<RunFailure> {
        let failed = self.order.iter().filter_map(|run| match self.outcomes.get(run) {
            Some(Outcome::Failed(failure)) => Some(failure.clone()),
            _ => None,
        });
        failed.collect()
    }

    /// Runs that ended, those that failed, and those that were not done.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&Outcome) -> bool| self.outcomes.values().filter(|&outcome| is(outcome)).count();
        (
            count(|outcome| matches!(outcome, Outcome::Done(_))),
            count(|outcome| matches!(outcome, Outcome::Failed(_))),
            count(|outcome| matches!(outcome, Outcome::Stopped)),
        )
    }

    /// Of the runs that ended, those whose results were there before.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Checks that did not hold: the run and the sentence.
    pub fn broken_checks(&self) -> Vec<(String, String)> {
        let mut broken = Vec::new();
        for run in &self.order {
            if let Some(measured) = self.get(run) {
                broken.extend(measured.broken_checks().into_iter().map(|check| (run.to_string(), check)));
            }
        }
        broken
    }
}

/// The run that takes the most memory, and how much that is in bytes; nothing where none can be made ready.
pub fn largest(context: &PaperContext, runs: &[Run]) -> Option<(Run, u64)> {
    let sized = runs.iter().filter_map(|run| {
        if run.files.is_some() {
            return Some((run.clone(), run.ready(context).ok()?.memory_bytes()));
        }
        let host = context.layers(run).ok()?;
        Some((run.clone(), memory_bytes(&context.config(run).ok()?, host.as_ref().map(|(_, host)| host))))
    });
    sized.max_by_key(|(_, bytes)| *bytes)
}

/// Does all distinct runs of `runs`, in their order, and keeps the results under `out`.
pub fn execute(context: &PaperContext, runs: Vec<Run>, out: &Path, settings: &Settings<'_>) -> Outcomes {
    let store = Store::at(out);
    let mut seen = HashSet::new();
    let order: Vec<Run> = runs.into_iter().filter(|run| seen.insert(run.clone())).collect();
    let mut outcomes = HashMap::new();
    let mut waiting: Vec<Ready> = Vec::new();
    // Runs by their key: two runs of the same drive and requests in other words are one run.
    let mut alike: HashMap<String, Vec<Run>> = HashMap::new();
    let mut kept = HashSet::new();
    for run in &order {
        match run.ready(context) {
            Err(error) => {
                let failure = RunFailure {
                    run: run.to_string(),
                    key: String::new(),
                    reason: error.sentence,
                    command: run.command(context),
                };
                outcomes.insert(run.clone(), Outcome::Failed(failure));
            }
            Ok(ready) => match alike.get_mut(&ready.key) {
                Some(others) => others.push(run.clone()),
                None => {
                    alike.insert(ready.key.clone(), vec![run.clone()]);
                    match store.find(&ready.key).and_then(|result| Measured::of(&result)) {
                        Some(measured) => {
                            kept.insert(run.clone());
                            outcomes.insert(run.clone(), Outcome::Done(measured));
                        }
                        None => waiting.push(ready),
                    }
                }
            },
        }
    }
    let waiting = aged_first(waiting, settings.snapshots.is_some());
    settings.watch.planned(waiting.len(), kept.len());
    let pool = Pool {
        work: Mutex::new(Work { next: 0, memory_bytes: 0, running: 0, ageing: HashSet::new(), done: Vec::new() }),
        freed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..settings.jobs.clamp(1, waiting.len().max(1)) {
            scope.spawn(|| pool.serve(&waiting, &store, settings));
        }
    });
    settings.watch.finish();
    let work = pool.work.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (index, outcome) in work.done {
        outcomes.insert(waiting[index].run.clone(), outcome);
    }
    for ready in &waiting {
        outcomes.entry(ready.run.clone()).or_insert(Outcome::Stopped);
    }
    for runs in alike.values() {
        if let Some(outcome) = outcomes.get(&runs[0]).cloned() {
            for other in &runs[1..] {
                outcomes.insert(other.clone(), outcome.clone());
                if kept.contains(&runs[0]) {
                    kept.insert(other.clone());
                }
            }
        }
    }
    Outcomes { outcomes, order, kept }
}

/// The first run of each age that is kept, and then the others in their order: so drives age side by side, each once.
fn aged_first(waiting: Vec<Ready>, kept: bool) -> Vec<Ready> {
    let mut seen = HashSet::new();
    let (first, others): (Vec<Ready>, Vec<Ready>) = waiting
        .into_iter()
        .partition(|ready| kept && ready.shared_age().is_some_and(|preconditioning| seen.insert(preconditioning)));
    first.into_iter().chain(others).collect()
}

/// The threads' common list.
struct Pool {
    work: Mutex<Work>,
    freed: Condvar,
}

struct Work {
    next: usize,
    memory_bytes: u64,
    running: usize,
    /// Ages that a run which began first has not kept yet.
    ageing: HashSet<String>,
    done: Vec<(usize, Outcome)>,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one run after another until none is left.
    fn serve(&self, waiting: &[Ready], store: &Store, settings: &Settings<'_>) {
        loop {
            let mut work = self.lock();
            let index = loop {
                if settings.stop.load(Ordering::Relaxed) || work.next == waiting.len() {
                    return;
                }
                let ready = &waiting[work.next];
                let fits = work.memory_bytes + ready.memory_bytes() <= settings.memory_bytes;
                let aged = ready.shared_age().is_none_or(|preconditioning| !work.ageing.contains(&preconditioning));
                if work.running == 0 || fits && aged {
                    break work.next;
                }
                work = self.freed.wait(work).unwrap_or_else(PoisonError::into_inner);
            };
            let ready = &waiting[index];
            work.next += 1;
            work.running += 1;
            work.memory_bytes += ready.memory_bytes();
            let preconditioning = ready.shared_age().filter(|_| settings.snapshots.is_some());
            if let Some(preconditioning) = &preconditioning
                && !waiting[..index].iter().any(|earlier| earlier.shared_age().as_ref() == Some(preconditioning))
            {
                work.ageing.insert(preconditioning.clone());
            }
            drop(work);

            settings.watch.began(&ready.run);
            let outcome = outcome(ready, store, settings);
            settings.watch.ended(&ready.run, matches!(outcome, Outcome::Done(_)));

            let mut work = self.lock();
            work.running -= 1;
            work.memory_bytes -= ready.memory_bytes();
            if let Some(preconditioning) = &preconditioning {
                work.ageing.remove(preconditioning);
            }
            work.done.push((index, outcome));
            drop(work);
            self.freed.notify_all();
        }
    }
}

/// Does one run; a panic in it is that run's failure and no other's.
fn outcome(ready: &Ready, store: &Store, settings: &Settings<'_>) -> Outcome {
    let failed = |reason: String| {
        Outcome::Failed(RunFailure {
            run: ready.run.to_string(),
            key: ready.key.clone(),
            reason,
            command: ready.command.clone(),
        })
    };
    match catch_unwind(AssertUnwindSafe(|| one(ready, settings))) {
        Err(panic) => {
            let said =
                panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            let said = said.unwrap_or("a panic without words");
            let whose = if said.contains(ssdlab_device::BROKEN_CONTRACT) { "" } else { "a bug of ssdlab: " };
            failed(format!("{whose}{said}"))
        }
        Ok(Err(reason)) => failed(reason),
        Ok(Ok(None)) => Outcome::Stopped,
        Ok(Ok(Some(result))) => {
            if let Err(error) = store.keep(&ready.key, &result) {
                return failed(error.to_string());
            }
            let measured = serde_json::to_value(&result).ok().as_ref().and_then(|value: &Value| Measured::of(value));
            measured.map_or_else(|| failed("it has no drive in it".to_string()), Outcome::Done)
        }
    }
}

/// What a run leaves.
#[derive(Serialize)]
#[serde(untagged)]
enum Left {
    Requests(Box<RunResult>),
    Files(Value),
}

/// The run itself; nothing if it was stopped.
fn one(ready: &Ready, settings: &Settings<'_>) -> Result<Option<Left>, String> {
    match &ready.doing {
        Doing::Requests(requests) => {
            Ok(of_requests(ready, requests, settings)?.map(|left| Left::Requests(Box::new(left))))
        }
        Doing::Files(files) => {
            let progress = settings.watch.within(&ready.run);
            let run = &ready.run;
            Ok(files.run(&ready.config, run.seed, &ready.command, settings.stop, &*progress)?.map(Left::Files))
        }
    }
}

fn of_requests(ready: &Ready, requests: &Requests, settings: &Settings<'_>) -> Result<Option<RunResult>, String> {
    let said = |error: super::ReproduceError| error.sentence;
    let run = &ready.run;
    let source = requests.source(run).map_err(said)?;
    let (initial, ageing) = (requests.initial_source(run).map_err(said)?, requests.ageing_source(run).map_err(said)?);
    let preconditioning = match (ready.run.preparation, &ageing) {
        (Preparation::Steady, Some(steady)) => Preconditioning::SteadyUnder(steady),
        (Preparation::Aged | Preparation::WarmedUp, Some(jobs)) => Preconditioning::Workload(jobs),
        (Preparation::None | Preparation::Steady | Preparation::Aged | Preparation::WarmedUp, _) => {
            Preconditioning::None
        }
        (Preparation::Footprint, _) => Preconditioning::Footprint,
        (Preparation::Fill, _) => Preconditioning::Fill,
    };
    let subtests = requests.volumes.as_ref().map(|volumes| Subtests {
        volumes: volumes.clone(),
        initial: initial.as_ref().map(|initial| initial as &dyn WorkloadSource),
    });
    let drives = [DeviceUnderTest { label: ready.config.name.clone(), config: ready.config.clone() }];
    let experiment = Experiment {
        host: requests.host.as_ref().map(|(_, host)| host),
        precondition_below: false,
        drives: &drives,
        workload: &source,
        preconditioning,
        seed: ready.run.seed,
        verify: false,
        snapshots: settings.snapshots.filter(|_| ready.shared_age().is_some()),
        recording: ready.run.recording,
        subtests,
        breakdown: ready.run.breakdown.then_some(Breakdown { slowest: 0 }),
        jobs: 1,
        memory_bytes: settings.memory_bytes,
        timeline_interval: ready.run.interval_ms.map(Nanos::from_ms),
        provenance: Provenance {
            title: None,
            command: ready.command.split(' ').map(str::to_string).collect(),
            started: None,
            workload: requests.input.shown.clone(),
            replay: source.replay(),
            precondition: requests.precondition.clone(),
            host: requests.host.as_ref().map(|(file, _)| file.clone()),
            overrides: BTreeMap::new(),
        },
    };
    let progress = settings.watch.within(&ready.run);
    let control = Control::new(settings.stop, &*progress);
    let mut result = ssdlab_lab::run(&experiment, None, &control).map_err(|error| error.to_string())?;
    result.notes.extend(
        source.notes(&ready.config).into_iter().filter(|note| !result.notes.contains(note)).collect::<Vec<_>>(),
    );
    Ok((result.complete && !result.devices.is_empty()).then_some(result))
}

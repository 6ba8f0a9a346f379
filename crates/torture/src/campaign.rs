//! Campaigns: many seeds on many threads. What one seed does depends on nothing but the seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::case::{Case, Finding, Subject, run};
use crate::cpu::Cpu;
use crate::single_drive::SingleDrive;
use crate::totals::Totals;

/// What cases are drawn from.
pub trait Draw: Sync {
    /// What the cases are of.
    type Subject: Subject;

    /// The case of a seed, as [`draw`] gives it; drawing ends when `over` says so.
    ///
    /// # Errors
    /// Nothing that was drawn was accepted, or drawing was ended before it was.
    fn draw_until(&self, seed: u64, over: &dyn Fn() -> bool) -> Result<Case<Self::Subject>, NotDrawn>;
}

/// Why a seed has no case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDrawn {
    /// No drive that was drawn was accepted.
    #[error("none of {tries} drives that were drawn for seed {seed} is accepted, the last of them because of {reason}")]
    Refused {
        /// The seed.
        seed: u64,
        /// Drives that were drawn.
        tries: u32,
        /// Why the last one was refused.
        reason: String,
    },
    /// Time was over, or the user has asked for the end.
    #[error("drawing ended before a drive was accepted")]
    Stopped,
}

/// The case of a seed; the same seed and scope give the same case.
///
/// # Errors
/// Nothing that was drawn was accepted.
pub fn draw<D: Draw>(seed: u64, scope: &D) -> Result<Case<D::Subject>, NotDrawn> {
    scope.draw_until(seed, &|| false)
}

/// Draws until something is accepted, `tries` times at most, or until `over` says so. A draw that fails may say why.
pub(crate) fn try_drives<T>(
    seed: u64,
    tries: u32,
    over: &dyn Fn() -> bool,
    mut draw: impl FnMut() -> Result<T, Option<String>>,
) -> Result<T, NotDrawn> {
    let mut reason = "what its description says".to_string();
    for _ in 0..tries {
        if over() {
            return Err(NotDrawn::Stopped);
        }
        match draw() {
            Ok(drawn) => return Ok(drawn),
            Err(why) => reason = why.unwrap_or(reason),
        }
    }
    Err(NotDrawn::Refused { seed, tries, reason })
}

/// Seeds to be run.
#[derive(Clone, Debug)]
pub struct Campaign<D> {
    /// What cases are drawn from.
    pub scope: D,
    /// The first seed.
    pub first: u64,
    /// How many; the numbers wrap around.
    pub seeds: u64,
    /// No seed is begun after so much time.
    pub until: Option<Duration>,
    /// Threads.
    pub jobs: usize,
}

/// What came of many cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<S: Subject = SingleDrive> {
    /// Counts of all cases that were run.
    pub totals: Totals,
    /// The first case that failed, in the order of the campaign, and what was found.
    pub failed: Option<(Case<S>, Finding)>,
    /// Why a seed before that has no case.
    pub not_drawn: Option<NotDrawn>,
}

/// A case that failed, and what was found.
pub type Failed<S> = Box<(Case<S>, Finding)>;

/// Runs a case, which is given back where it fails.
///
/// # Errors
/// What was found wrong.
pub fn run_failing<S: Subject>(case: Case<S>, totals: &mut Totals) -> Result<(), Failed<S>> {
    run(&case, totals).map_err(|finding| Box::new((case, finding)))
}

/// Runs what has a number.
pub(crate) type Numbered<'a, S> = dyn Fn(u64, &mut Totals) -> Result<(), Ended<S>> + Sync + 'a;

/// Why there is no need to run what comes later.
pub(crate) enum Ended<S: Subject> {
    /// Something was found.
    Found(Failed<S>),
    /// A seed has no case.
    NotDrawn(NotDrawn),
    /// There is no more.
    NoMore,
}

impl<D: Draw> Campaign<D> {
    /// Runs the seeds until one fails, `stop` is set, or time is over; the seeds before the one that failed are all
    /// run. `watch` hears of the counts now and then, on whatever thread.
    pub fn run(&self, stop: &AtomicBool, watch: &(dyn Fn(&Totals) + Sync)) -> Outcome<D::Subject> {
        let start = Instant::now();
        let over = || stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| start.elapsed() >= until);
        in_order(self.seeds, self.jobs, &over, watch, &|index, totals| {
            let seed = self.first.wrapping_add(index);
            let case = match self.scope.draw_until(seed, &over) {
                Ok(case) => case,
                Err(NotDrawn::Stopped) => return Ok(()),
                Err(why) => return Err(Ended::NotDrawn(why)),
            };
            run_failing(case, totals).map_err(Ended::Found)
        })
    }
}

/// Runs what is numbered from 0 to `count` on so many threads, until one ends it all or `over` says so; what is
/// numbered before that one is all run.
pub(crate) fn in_order<S: Subject>(
    count: u64,
    jobs: usize,
    over: &(dyn Fn() -> bool + Sync),
    watch: &(dyn Fn(&Totals) + Sync),
    one: &Numbered<'_, S>,
) -> Outcome<S> {
    let next = AtomicU64::new(0);
    // From here on nothing need be run.
    let limit = AtomicU64::new(count);
    let outcome = Mutex::new(Outcome { totals: Totals::default(), failed: None, not_drawn: None });
    let work = || {
        while !over() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= limit.load(Ordering::Relaxed) {
                return;
            }
            let mut totals = Totals::default();
            let result = one(number, &mut totals);
            let mut outcome = outcome.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            outcome.totals.add(&totals);
            // Numbers are taken in order, so a lower one that ends it all comes later at most.
            if let Err(ended) = result
                && limit.fetch_min(number, Ordering::Relaxed) > number
            {
                (outcome.failed, outcome.not_drawn) = match ended {
                    Ended::Found(failed) => (Some(*failed), None),
                    Ended::NotDrawn(why) => (None, Some(why)),
                    Ended::NoMore => (None, None),
                };
            }
            watch(&outcome.totals);
        }
    };
    assert!(jobs > 0, "a campaign needs a thread");
    let cpu = over_threads(jobs, &work);
    let mut outcome = outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    outcome.totals.took(cpu);
    outcome
}

/// Runs the same work on so many threads, this one among them; gives back the processor time it took.
fn over_threads(threads: usize, work: &(dyn Fn() + Sync)) -> Duration {
    let measured = || {
        let cpu = Cpu::start();
        work();
        cpu.elapsed()
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(measured)).collect();
        let own = measured();
        // A thread that panicked panics here as well, when the scope ends.
        others.into_iter().filter_map(|thread| thread.join().ok()).sum::<Duration>() + own
    })
}

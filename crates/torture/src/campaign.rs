//! Campaigns: many seeds on many threads. What one seed does depends on nothing but the seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cpu::Cpu;
use crate::draw::{NotDrawn, Scope, draw_until};
use crate::run::{Finding, run};
use crate::totals::Totals;

/// Seeds to be run.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What cases are drawn from.
    pub scope: Scope,
    /// The first seed.
    pub first: u64,
    /// How many; the numbers wrap around.
    pub seeds: u64,
    /// No seed is begun after so much time.
    pub until: Option<Duration>,
    /// Threads.
    pub jobs: usize,
}

/// What came of a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Counts of all seeds that were run.
    pub totals: Totals,
    /// The first seed of those that failed, by number, and what was found.
    pub failed: Option<(u64, Finding)>,
    /// Why a seed before that has no case.
    pub not_drawn: Option<NotDrawn>,
}

/// Why a seed ends the campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Something was found.
    Found(Finding),
    /// It has no case.
    NotDrawn(NotDrawn),
}

/// Runs a seed and counts; the last that it is given says whether the campaign is over meanwhile.
pub type OneSeed<'a> = dyn Fn(u64, &mut Totals, &dyn Fn() -> bool) -> Result<(), Ended> + Sync + 'a;

impl From<Finding> for Ended {
    fn from(finding: Finding) -> Ended {
        Ended::Found(finding)
    }
}

impl From<NotDrawn> for Ended {
    fn from(why: NotDrawn) -> Ended {
        Ended::NotDrawn(why)
    }
}

impl Campaign {
    /// Runs the seeds until one fails, `stop` is set, or time is over; the seeds before the one that failed are all run.
    /// `watch` hears of the counts now and then, on whatever thread.
    pub fn run(&self, stop: &AtomicBool, watch: &(dyn Fn(&Totals) + Sync)) -> Outcome {
        self.run_each(stop, watch, &|seed, totals, over| Ok(run(&draw_until(seed, &self.scope, over)?, totals)?))
    }

    /// Runs the seeds as [`Campaign::run`] does, where `one` runs a seed.
    pub fn run_each(&self, stop: &AtomicBool, watch: &(dyn Fn(&Totals) + Sync), one: &OneSeed<'_>) -> Outcome {
        let start = Instant::now();
        let next = AtomicU64::new(0);
        // Seeds from here on need not be run.
        let limit = AtomicU64::new(self.seeds);
        let outcome = Mutex::new(Outcome::default());
        let over = || stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| start.elapsed() >= until);
        let work = || {
            while !over() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= limit.load(Ordering::Relaxed) {
                    return;
                }
                let seed = self.first.wrapping_add(index);
                let mut totals = Totals::default();
                let result = one(seed, &mut totals, &over);
                let mut outcome = outcome.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                outcome.totals.add(&totals);
                match result {
                    Ok(()) | Err(Ended::NotDrawn(NotDrawn::Stopped)) => {}
                    // Seeds are taken in order, so a lower one that fails comes later at most.
                    Err(why) if limit.fetch_min(index, Ordering::Relaxed) > index => {
                        (outcome.failed, outcome.not_drawn) = match why {
                            Ended::Found(finding) => (Some((seed, finding)), None),
                            Ended::NotDrawn(why) => (None, Some(why)),
                        };
                    }
                    Err(_) => {}
                }
                watch(&outcome.totals);
            }
        };
        let cpu = over_threads(self.jobs, &work);
        let mut outcome = outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        outcome.totals.took(cpu);
        outcome
    }
}

/// Runs the same work on so many threads, this one among them; gives back the processor time it took.
pub(crate) fn over_threads(threads: usize, work: &(dyn Fn() + Sync)) -> Duration {
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

//! Every power cut of every short sequence of commands, on drives of a handful of pages.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ssdlab_base::{Op, Request};
use ssdlab_device::DriveConfig;

use crate::campaign::over_threads;
use crate::case::{Case, Cut, Moment, Step};
use crate::configs::handful;
use crate::run::{Finding, run};
use crate::script::describable;
use crate::totals::Totals;

/// How far into the next event the power goes, in percent.
const PERCENTS: [u8; 2] = [0, 50];

/// How many commands are in flight at most.
const DEPTHS: [u32; 2] = [1, 4];

/// Sequences to be run.
#[derive(Clone, Debug)]
pub struct Exhaustive {
    /// FTL designs, by name.
    pub designs: Vec<String>,
    /// Buffer policies, by name.
    pub buffers: Vec<String>,
    /// Commands of a sequence, at most.
    pub length: u32,
    /// Threads.
    pub jobs: usize,
}

/// What came of them.
#[derive(Clone, Debug, Default)]
pub struct Enumerated {
    /// Counts over all of them.
    pub totals: Totals,
    /// The first that failed, and what was found.
    pub failed: Option<(Case, Finding)>,
}

/// The commands that sequences are made of, on a drive of four units of two sectors or eight of one.
pub fn alphabet() -> [Request; 7] {
    [
        Request::new(Op::Write, 0, 2),
        Request { fua: true, ..Request::new(Op::Write, 2, 3) },
        Request::new(Op::Write, 1, 1),
        Request::new(Op::Trim, 0, 8),
        Request::new(Op::Trim, 1, 2),
        Request { fua: true, ..Request::new(Op::WriteZeroes, 1, 4) },
        Request::new(Op::Flush, 0, 0),
    ]
}

impl Exhaustive {
    /// One drive for each design, buffer and mapping unit.
    fn drives(&self) -> Vec<DriveConfig> {
        let mut drives = Vec::new();
        for design in &self.designs {
            for buffer in &self.buffers {
                for unit in [512, 1024] {
                    let mut config = handful();
                    config.user_bytes = 4096;
                    config.ftl.design = design.clone();
                    config.buffer.policy = buffer.clone();
                    config.buffer.bytes = 1024;
                    config.ftl.mapping_unit = unit;
                    config.flash.geometry.planes_per_die = if unit == 512 { 2 } else { 1 };
                    ssdlab_device::handful_for_design(&mut config, unit == 1024);
                    drives.extend(describable(&config));
                }
            }
        }
        drives
    }

    /// Runs all sequences of 1 up to `length` commands, each at each depth, cut at each event and between; until one
    /// fails, or `stop` is set. `watch` hears of the counts now and then.
    pub fn run(&self, stop: &AtomicBool, watch: &(dyn Fn(&Totals) + Sync)) -> Enumerated {
        let drives = self.drives();
        let count = alphabet().len() as u64;
        let sequences: u64 = (1..=self.length).map(|length| count.pow(length)).sum();
        let next = AtomicU64::new(0);
        let limit = AtomicU64::new(sequences * drives.len() as u64);
        let result = Mutex::new(Enumerated::default());
        let cpu = over_threads(self.jobs, &|| {
            while !stop.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= limit.load(Ordering::Relaxed) {
                    return;
                }
                let drive = &drives[(number % drives.len() as u64) as usize];
                let mut totals = Totals::default();
                let failed = every_cut(drive, &sequence(number / drives.len() as u64), &mut totals);
                let mut result = result.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                result.totals.add(&totals);
                if failed.is_some() && limit.fetch_min(number, Ordering::Relaxed) > number {
                    result.failed = failed;
                }
                watch(&result.totals);
            }
        });
        let mut result = result.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        result.totals.took(cpu);
        result
    }
}

/// Sequence `number`: all of one command come first, then all of two...
fn sequence(mut number: u64) -> Vec<Request> {
    let alphabet = alphabet();
    let count = alphabet.len() as u64;
    let mut length = 1;
    while number >= count.pow(length) {
        number -= count.pow(length);
        length += 1;
    }
    (0..length).map(|place| alphabet[(number / count.pow(place) % count) as usize]).collect()
}

/// Cuts the power at each event of a case from step `before` on, when `percent` of the time to the next event has passed; until a
/// cut is not survived.
pub fn every_event(case: &Case, before: usize, percent: u8, jobs: usize) -> Enumerated {
    let (next, result) = (AtomicU64::new(0), Mutex::new(Enumerated::default()));
    let over = AtomicBool::new(false);
    over_threads(jobs, &|| {
        while !over.load(Ordering::Relaxed) {
            let events = next.fetch_add(1, Ordering::Relaxed) as u32;
            let cut = Step::Cut(Cut { at: Moment::After(events), percent, recovery: [None; 3], unread: false });
            let mut case = case.clone();
            case.steps.insert(before, cut);
            let mut totals = Totals::default();
            let finding = run(&case, &mut totals).err();
            let mut result = result.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            // Without a cut there are no more events.
            over.fetch_or(finding.is_some() || totals.cuts == 0, Ordering::Relaxed);
            result.totals.add(&totals);
            result.failed = finding.map(|finding| (case, finding)).or_else(|| result.failed.take());
        }
    });
    result.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn every_cut(drive: &DriveConfig, sequence: &[Request], totals: &mut Totals) -> Option<(Case, Finding)> {
    for depth in DEPTHS {
        for percent in PERCENTS {
            for events in 0.. {
                let cut = Step::Cut(Cut { at: Moment::After(events), percent, recovery: [None; 3], unread: false });
                let commands = sequence.iter().map(|request| Step::Command { request: *request, depth });
                // Before the first event is after the last command: else nothing has happened at all.
                let steps = if events == 0 {
                    commands.chain([cut]).collect()
                } else {
                    [cut].into_iter().chain(commands).collect()
                };
                let case = Case { seed: 1, config: drive.clone(), steps };
                let before = totals.cuts;
                if let Err(finding) = run(&case, totals) {
                    return Some((case, finding));
                }
                if totals.cuts == before {
                    break;
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_comes_once() {
        let count = alphabet().len();
        let all: Vec<Vec<Request>> = (0..(count + count * count) as u64).map(sequence).collect();
        assert!(all[..count].iter().all(|sequence| sequence.len() == 1));
        assert!(all[count..].iter().all(|sequence| sequence.len() == 2));
        let distinct: std::collections::HashSet<String> = all.iter().map(|sequence| format!("{sequence:?}")).collect();
        assert_eq!(distinct.len(), count + count * count);
    }
}

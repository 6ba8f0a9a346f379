//! Every cut of every short sequence of commands to a stack: of its host alone, of its first drive, and of everything.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ssdlab_base::Request;
use ssdlab_device::DriveConfig;
use ssdlab_host::Host;

use super::{Cut, StackCase, Step, System, run};
use crate::campaign::over_threads;
use crate::run::Finding;
use crate::totals::Totals;

/// Whose power goes, and when within the time to the next event, in percent.
const CUTS: [(Cut, u8); 3] = [(Cut::Host, 0), (Cut::Drive(0), 0), (Cut::All, 50)];

/// How many commands are in flight at most.
const DEPTHS: [u32; 2] = [1, 4];

/// Sequences to be run on a stack.
pub struct Sequences<'a> {
    /// The layers.
    pub host: &'a Host,
    /// The layers as text.
    pub text: &'a str,
    /// The drive below.
    pub drive: &'a DriveConfig,
    /// What sequences are made of.
    pub alphabet: &'a [Request],
    /// Commands of a sequence, at most.
    pub length: u32,
}

impl Sequences<'_> {
    /// Runs all sequences of 1 up to `length` commands at each depth, and cuts each at every event behind the arrival of its last command,
    /// up to the moment at which the stack is at rest; until one fails.
    ///
    /// # Panics
    /// The drive or a layer refuses.
    pub fn run(&self, jobs: usize) -> (Totals, Option<(StackCase, Finding)>) {
        let count = self.alphabet.len() as u64;
        let sequences: u64 = (1..=self.length).map(|length| count.pow(length)).sum();
        let (next, result) = (AtomicU64::new(0), Mutex::new((Totals::default(), None)));
        over_threads(jobs, &|| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= sequences {
                    return;
                }
                let mut totals = Totals::default();
                let failed = self.every_cut(&self.sequence(number), &mut totals);
                let mut result = result.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                result.0.add(&totals);
                if failed.is_some() {
                    result.1 = failed;
                    next.store(sequences, Ordering::Relaxed);
                }
            }
        });
        result.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sequence `number`: all of one command come first, then all of two...
    fn sequence(&self, mut number: u64) -> Vec<Request> {
        let count = self.alphabet.len() as u64;
        let mut length = 1;
        while number >= count.pow(length) {
            number -= count.pow(length);
            length += 1;
        }
        (0..length).map(|place| self.alphabet[(number / count.pow(place) % count) as usize]).collect()
    }

    fn every_cut(&self, sequence: &[Request], totals: &mut Totals) -> Option<(StackCase, Finding)> {
        for depth in DEPTHS {
            let commands: Vec<Step> =
                sequence.iter().map(|request| Step::Command { request: *request, depth }).collect();
            let case = |steps| StackCase { seed: 1, host: self.text.to_string(), drive: self.drive.clone(), steps };
            let events = self.events(&case(commands.clone()), depth);
            for (what, percent) in CUTS {
                for events in 0..=events {
                    let cut = Step::Cut { what, percent, again: None, compare: true };
                    let steps = commands.iter().copied().chain([Step::Run(events), cut]).collect();
                    let case = case(steps);
                    if let Err(finding) = run(&case, self.host, totals) {
                        return Some((case, finding));
                    }
                }
            }
        }
        None
    }

    /// Events between the arrival of the last command and rest.
    fn events(&self, case: &StackCase, depth: u32) -> u32 {
        let mut system = System::new(self.host, case).unwrap_or_else(|refused| panic!("{refused:?}"));
        for (tag, step) in (1..).zip(&case.steps) {
            let Step::Command { request, .. } = step else { continue };
            system.wait_for_fewer_than(depth.into());
            system.submit(&Request { tag, ..*request }, tag.into());
        }
        let mut events = 0;
        while system.step() {
            events += 1;
        }
        events
    }
}

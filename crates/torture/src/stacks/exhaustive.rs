//! Every cut of every short sequence of commands to a stack: of its host alone, of its first drive, and of everything.

use std::sync::atomic::AtomicBool;

use ssdlab_base::Request;
use ssdlab_device::DriveConfig;

use super::Stack;
use crate::campaign::{Failed, Outcome, run_failing};
use crate::case::{Case, Subject as _, System as _};
use crate::cut::{Cut, Whose};
use crate::step::{BlockCommand, Step};
use crate::totals::Totals;
use crate::walk::Sequences;

/// Whose power goes, and when within the time to the next event, in percent.
const CUTS: [(Whose, u8); 3] = [(Whose::Host, 0), (Whose::Drive(0), 0), (Whose::All, 50)];

/// How many commands are in flight at most.
const DEPTHS: [u32; 2] = [1, 4];

/// Runs all sequences of 1 up to `length` commands on a stack, at each depth, and cuts each at every event behind the
/// arrival of its last command, up to the moment at which the stack is at rest; until one fails.
///
/// # Panics
/// The drive or a layer refuses.
pub fn walk(stack: &Stack, drive: &DriveConfig, alphabet: &[Request], length: u32, jobs: usize) -> Outcome<Stack> {
    let case = Case { seed: 1, drive: drive.clone(), subject: stack.clone(), steps: Vec::new() };
    let sequences = Sequences { systems: &[case], alphabet, length, jobs };
    sequences.run(&AtomicBool::new(false), &|_| {}, &every_cut)
}

fn every_cut(fresh: &Case<Stack>, sequence: &[Request], totals: &mut Totals) -> Result<(), Failed<Stack>> {
    for depth in DEPTHS {
        let commands = sequence.iter().map(|request| Step::Command(BlockCommand { request: *request, depth }));
        let case = Case { steps: commands.collect(), ..fresh.clone() };
        let last = events(&case);
        for (whose, percent) in CUTS {
            for events in 0..=last {
                let mut case = case.clone();
                case.steps.extend([Step::Run(events), Step::Cut(Cut { whose, percent, ..Cut::NOW })]);
                run_failing(case, totals)?;
            }
        }
    }
    Ok(())
}

/// Events between the arrival of the last command and rest.
fn events(case: &Case<Stack>) -> u32 {
    let mut system = Stack::build(case).unwrap_or_else(|refused| panic!("{refused:?}"));
    let taken = case.steps.iter().all(|step| system.apply(step, &mut Totals::default()).is_continue());
    assert!(taken, "a stack takes commands");
    let mut events = 0;
    while system.step() {
        events += 1;
    }
    events
}

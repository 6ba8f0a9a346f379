//! Stacks under torture: the host crashes, one drive loses its power, or everything does, each at moments of its own.
//!
//! ```text
//! draw        a stack and what happens to it, from a seed
//! script      the same as text
//! system      the stack and the oracle, over crashes and cuts
//! exhaustive  every cut of every short sequence of commands
//! ```
//!
//! The oracle looks at the stack from above, through its layers, and knows nothing of them but what each says of a power
//! cut below it: whether completed commands may be lost ([`ssdlab_host::Loss`]).

mod draw;
mod exhaustive;
mod script;
mod system;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ssdlab_base::{Op, Request};
use ssdlab_device::DriveConfig;
use ssdlab_flash::FaultKind;
use ssdlab_host::Host;

pub use draw::{StackScope, draw, draw_until};
pub use exhaustive::Sequences;
pub use system::{Refused, System};

use crate::panic_capture::{Caught, catch};
use crate::run::Finding;
use crate::totals::Totals;

/// What loses its power, or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The host alone: its layers lose their memory, and the drives do what they have taken.
    Host,
    /// One drive, by its place.
    Drive(usize),
    /// The host and all drives at one time.
    All,
}

/// One thing that happens to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A command arrives as soon as fewer than `depth` are in flight.
    Command {
        /// What is asked.
        request: Request,
        /// How many may be in flight, this one included.
        depth: u32,
    },
    /// So many events run, or until there are no more.
    Run(u32),
    /// All commands complete.
    Drain,
    /// The next operation of a kind fails on a drive, by its place.
    Fail {
        /// The kind: a read, a program or an erase.
        kind: FaultKind,
        /// The drive.
        drive: usize,
    },
    /// Power is lost, and comes back.
    Cut {
        /// Whose.
        what: Cut,
        /// How much of the time to the next event passes before, in percent.
        percent: u8,
        /// The drives' recoveries are cut once more, when they have looked at so many percent of the written pages.
        again: Option<u8>,
        /// Everything is read and compared afterwards.
        compare: bool,
    },
}

/// A stack, and what happens to it.
#[derive(Clone, Debug)]
pub struct StackCase {
    /// Seed of everything random in the drives; also the seed that the case was drawn from.
    pub seed: u64,
    /// The layers, as text.
    pub host: String,
    /// The drives that the layers stand on where they name none.
    pub drive: DriveConfig,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// Whether a stack can be made of this.
///
/// # Errors
/// A drive or a layer refuses.
pub fn accepted(case: &StackCase, host: &Host) -> Result<(), Refused> {
    System::new(host, case).map(|_| ())
}

/// Runs a case; `Err` says what was found wrong.
pub fn run(case: &StackCase, host: &Host, totals: &mut Totals) -> Result<(), Finding> {
    let start = Instant::now();
    let mut step = 0;
    let result = catch(|| run_steps(case, host, totals, &mut step));
    totals.cases += 1;
    totals.working += start.elapsed();
    result.map_err(|Caught { message, place }| Finding { message, place, step })
}

fn run_steps(case: &StackCase, host: &Host, totals: &mut Totals, at: &mut usize) {
    let Ok(mut system) = System::new(host, case) else { return };
    let done = run_in(&mut system, case, totals, at);
    system.count(totals);
    // Where what a mirror keeps cannot be read, the stack does not come back, and says so.
    totals.not_back += u64::from(done.is_none());
}

/// `None` where the stack does not come back.
fn run_in(system: &mut System, case: &StackCase, totals: &mut Totals, at: &mut usize) -> Option<()> {
    let mut tag = 0;
    let mut submit = |system: &mut System, totals: &mut Totals, request: &Request| {
        tag += 1;
        totals.commands += 1;
        system.submit(&Request { tag, ..*request }, u64::from(tag));
    };
    for (index, step) in case.steps.iter().enumerate() {
        *at = index;
        match step {
            Step::Command { request, depth } => {
                system.wait_for_fewer_than(u64::from(*depth));
                submit(system, totals, request);
            }
            Step::Run(events) => {
                for _ in 0..*events {
                    if !system.step() {
                        break;
                    }
                }
            }
            Step::Drain => system.wait_for_fewer_than(1),
            Step::Fail { kind, drive } => system.fail_next(*kind, *drive),
            Step::Cut { what, percent, again, compare } => {
                system.pass_part(*percent);
                cut(system, *what, *again, totals)?;
                if *compare {
                    let start = Instant::now();
                    totals.sectors_compared += system.compare();
                    totals.comparing += start.elapsed();
                }
            }
        }
    }
    *at = case.steps.len();
    // What is there in the end: after the power of everything went once more, and after what the layers do by themselves.
    system.wait_for_fewer_than(1);
    submit(system, totals, &Request::new(Op::Write, 0, 1));
    submit(system, totals, &Request::new(Op::Flush, 0, 0));
    system.wait_for_fewer_than(1);
    totals.sectors_compared += system.compare();
    system.settle();
    cut(system, Cut::All, None, totals)?;
    totals.sectors_compared += system.compare();
    system.settle();
    // Any side of a mirror may be the one that is read now.
    for drive in 0..system.drives() {
        cut(system, Cut::Drive(drive), None, totals)?;
        totals.sectors_compared += system.compare();
        system.settle();
    }
    Some(())
}

fn cut(system: &mut System, what: Cut, again: Option<u8>, totals: &mut Totals) -> Option<()> {
    let start = Instant::now();
    let back = system.cut(what, again);
    totals.stack_cut(what);
    totals.recovering += start.elapsed();
    back.then_some(())
}

/// The steps of a failing case that matter: parts are left out as long as it still fails, at most `tries` times.
pub fn shrink(case: &StackCase, host: &Host, tries: u32) -> (StackCase, Option<Finding>) {
    shrink_until(case, host, tries, &AtomicBool::new(false))
}

/// Leaves out steps of a failing case as [`shrink`] does, until `stop` is set; gives back what was found up to then.
pub fn shrink_until(case: &StackCase, host: &Host, tries: u32, stop: &AtomicBool) -> (StackCase, Option<Finding>) {
    let mut small = case.clone();
    let mut found = None;
    let mut left = tries;
    let mut size = (small.steps.len() / 2).max(1);
    loop {
        let mut from = 0;
        let before = small.steps.len();
        while from < small.steps.len() && left > 0 {
            if stop.load(Ordering::Relaxed) {
                return (small, found);
            }
            let mut without = small.clone();
            without.steps.drain(from..(from + size).min(small.steps.len()));
            left -= 1;
            match run(&without, host, &mut Totals::default()) {
                Err(finding) => (small, found) = (without, Some(finding)),
                Ok(()) => from += size,
            }
        }
        if left == 0 || (size == 1 && small.steps.len() == before) {
            return (small, found);
        }
        size = (size / 2).max(1);
    }
}

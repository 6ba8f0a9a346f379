//! A case: a drive and the explicit list of what happens to it. Everything random was drawn before, so that a case does
//! the same every time, and any part of it can be left out to see whether it matters.

use ssdlab_base::{Nanos, Request};
use ssdlab_device::DriveConfig;
use ssdlab_flash::{BlockId, FaultKind};

/// A drive, and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Seed of the drive's latencies, faults and random policies; also the seed the case was drawn from, if it was.
    pub seed: u64,
    /// The drive, with its scripted faults.
    pub config: DriveConfig,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A command arrives as soon as fewer than `depth` are in flight. Its tag and its stamp come from its place.
    Command {
        /// What is asked.
        request: Request,
        /// How many may be in flight, this one included.
        depth: u32,
    },
    /// Events run, so many, or until there are no more.
    Run(u32),
    /// Time passes, and whatever happens in it.
    Pass(Nanos),
    /// All commands complete.
    Drain,
    /// The next operation of a kind fails.
    Fail {
        /// The kind: a read, a program or an erase; or all operations of a die from now on.
        kind: FaultKind,
        /// On this block only, or on the die of this block.
        block: Option<BlockId>,
    },
    /// The power goes, and comes back.
    Cut(Cut),
}

/// A power cut, when its moment comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What is waited for before.
    pub at: Moment,
    /// How much of the time from there to the next event passes, in percent; at 0 the last event has just happened.
    pub percent: u8,
    /// Where the power goes again in the recovery, in the recovery from that, and so on; `None` is not at all.
    pub recovery: [Option<Again>; 3],
    /// Nothing is read after this cut: the next one follows.
    pub unread: bool,
}

/// Where in a recovery the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// When so many percent of the written pages have been looked at.
    Scan(u8),
    /// While the next of the torn blocks is erased, after so many of them.
    Erase(u8),
}

/// What a power cut waits for, while the steps behind it go on: and if it does not come before the next cut there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing.
    Now,
    /// A page is being programmed.
    Program,
    /// A block is being erased.
    Erase,
    /// A flush, or a FUA write, has completed.
    Durable,
    /// So many events have run.
    After(u32),
}

impl Case {
    /// Whether an operation of `kind` may fail.
    pub fn may_fail(&self, kind: FaultKind) -> bool {
        let faults = &self.config.flash.faults;
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
            || self.steps.iter().any(|step| matches!(step, Step::Fail { kind: fails, .. } if includes(*fails)))
    }
}

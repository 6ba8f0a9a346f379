//! What campaigns count.

use std::collections::BTreeMap;
use std::time::Duration;

use ssdlab_flash::FaultKind;

use crate::cut::Whose;

/// What the power went in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// Pages were being programmed, and no block erased.
    Program,
    /// A block was being erased.
    Erase,
    /// The drive was recovering.
    Recovery,
    /// Neither: the arrays were reading or at rest.
    Idle,
}

/// Counts over cases; sums of them are counts as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Cases run.
    pub cases: u64,
    /// Commands submitted.
    pub commands: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Power cuts by [`CutKind`], without those of stacks.
    pub cuts_by_kind: [u64; 4],
    /// Power cuts by the kinds of the design's own work that were in flight; a cut counts for each of them.
    pub cuts_by_work: BTreeMap<&'static str, u64>,
    /// Of stacks: crashes of the host alone, power cuts of one drive, and of everything.
    pub stack_cuts: [u64; 3],
    /// Stacks that did not come back, because what a layer keeps could not be read.
    pub not_back: u64,
    /// Faults that struck: uncorrectable reads, program failures, erase failures (worn-out blocks among them), blocks
    /// bad from the factory.
    pub faults: [u64; 5],
    /// Drives that ended read-only.
    pub read_only: u64,
    /// Commands refused by them.
    pub refused: u64,
    /// Reads that ended with an error.
    pub unreadable: u64,
    /// Sectors compared with what they may hold after power cuts.
    pub sectors_compared: u64,
    /// Time of recoveries.
    pub recovering: Duration,
    /// Time of comparisons: reading all sectors and judging them.
    pub comparing: Duration,
    /// Time of whole cases.
    pub working: Duration,
}

impl Totals {
    /// Adds the counts of other cases.
    pub fn add(&mut self, other: &Totals) {
        self.cases += other.cases;
        self.commands += other.commands;
        self.cuts += other.cuts;
        for (sum, more) in self.cuts_by_kind.iter_mut().zip(other.cuts_by_kind) {
            *sum += more;
        }
        for (work, more) in &other.cuts_by_work {
            *self.cuts_by_work.entry(work).or_default() += more;
        }
        for (sum, more) in self.stack_cuts.iter_mut().zip(other.stack_cuts) {
            *sum += more;
        }
        self.not_back += other.not_back;
        for (sum, more) in self.faults.iter_mut().zip(other.faults) {
            *sum += more;
        }
        self.read_only += other.read_only;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.sectors_compared += other.sectors_compared;
        self.recovering += other.recovering;
        self.comparing += other.comparing;
        self.working += other.working;
    }

    /// A power cut.
    pub fn cut(&mut self, kind: CutKind) {
        self.cuts += 1;
        self.cuts_by_kind[kind as usize] += 1;
    }

    /// A crash or a power cut of a stack.
    pub fn stack_cut(&mut self, whose: Whose) {
        self.cuts += 1;
        let kind = match whose {
            Whose::Host => 0,
            Whose::Only | Whose::Drive(_) => 1,
            Whose::All => 2,
        };
        self.stack_cuts[kind] += 1;
    }

    /// A fault struck.
    pub fn struck(&mut self, kind: FaultKind) {
        self.faults[kind as usize] += 1;
    }

    /// All of it took so much processor time: spans measured by the clock are brought down to that.
    pub fn took(&mut self, cpu: Duration) {
        let share = cpu.as_secs_f64() / self.working.as_secs_f64().max(1e-9);
        self.recovering = self.recovering.mul_f64(share);
        self.comparing = self.comparing.mul_f64(share);
        self.working = cpu;
    }

    /// Power cuts a second of one core.
    pub fn cuts_per_core_second(&self) -> f64 {
        self.cuts as f64 / self.working.as_secs_f64().max(1e-9)
    }
}

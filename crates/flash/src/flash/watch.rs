//! What an observer is told; nothing is computed when there is none.

use ssdlab_base::Nanos;

use super::Flash;
use super::operation::NONE;
use super::resources::Phase;
use crate::{BlockId, DieId, FaultKind, OpKind, Ppn, Resource, ScriptedFault, Span, Unstruck};

impl Flash {
    #[inline]
    pub(super) fn edge(&mut self, die: DieId, at: Nanos, busy: bool) {
        if let Some(observer) = &mut self.observer {
            observer.ready_busy(die, at, busy);
        }
    }

    pub(super) fn report(&mut self, resource: Resource, group: u32, start: Nanos, end: Nanos) {
        assert!(start <= end, "{resource:?} is occupied from {start} to {end}");
        let submit = self.flights[group as usize].submit;
        let (mut planes, mut op) = (0, group);
        while op != NONE {
            planes += 1;
            op = self.flights[op as usize].next;
        }
        assert!(planes <= self.geometry.planes_per_die, "{planes} operations at once on {resource:?}");
        let ppn = Ppn::of(submit.block, submit.page, self.geometry.pages_per_block);
        if let Some(observer) = &mut self.observer {
            observer.span(Span { resource, kind: submit.kind, cause: submit.cause, ppn, planes, start, end });
        }
    }
}

/// Operations whose array work has begun at an instant: what a power cut there tears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayWork {
    /// Pages being read.
    pub reads: u32,
    /// Pages being programmed; suspended programs count.
    pub programs: u32,
    /// Blocks being erased; suspended erases count.
    pub erases: u32,
}

impl Flash {
    /// What the arrays of all dies are doing at `now`.
    pub fn array_work(&self, now: Nanos) -> ArrayWork {
        let mut work = ArrayWork::default();
        for die in &self.dies {
            let begun = matches!(die.phase, Phase::Array | Phase::Suspending) && die.array_start < now;
            for (group, begun) in [(die.running, begun), (die.suspended, true)] {
                let mut op = group;
                while op != NONE && begun {
                    let flight = &self.flights[op as usize];
                    match flight.submit.kind {
                        OpKind::Read => work.reads += 1,
                        OpKind::Copyback if die.copy_unchecked => work.reads += 1,
                        OpKind::Program | OpKind::Copyback => work.programs += 1,
                        OpKind::Erase => work.erases += 1,
                    }
                    op = flight.next;
                }
            }
        }
        work
    }

    /// Faults may be asked for from now on: what the controller keeps only for that case is kept. Nothing is in flight.
    pub fn expect_faults(&mut self) {
        assert_eq!(self.in_flight, 0, "operations in flight were begun as ones that cannot fail");
        self.faults.expect();
    }

    /// Lets the next operation of `kind` fail, on `block` or, with `None`, on whatever block it is. Only on chips whose
    /// description has faults, or after [`Flash::expect_faults`].
    pub fn fail_next(&mut self, kind: FaultKind, block: Option<BlockId>) {
        self.faults.fail_next(kind, block);
    }

    /// The faults that have struck, in order, each as the script that would repeat it.
    pub fn faults_struck(&self) -> &[ScriptedFault] {
        self.faults.struck()
    }

    /// The faults of the script that have not struck since the chips were made or reseeded.
    pub fn faults_unstruck(&self) -> Vec<Unstruck> {
        self.faults.unstruck()
    }

    /// What [`Flash::fail_next`] was asked for and waits for its operation, in no order.
    pub fn faults_asked(&self) -> &[(FaultKind, Option<BlockId>)] {
        self.faults.asked()
    }
}

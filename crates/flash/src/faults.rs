//! Which operation fails: drawn by rate from the seed, scripted, or by wear.

use rand::RngExt;
use ssdlab_base::Rng;

use crate::{FaultKind, Faults, OpKind};

/// The faults of a drive; inert and nearly free when none is configured.
#[derive(Clone, Debug)]
pub(crate) struct FaultPlan {
    faults: Faults,
    active: bool,
    rng: Rng,
    /// How often each scripted (kind, block) has been tried.
    tried: Vec<u32>,
}

impl FaultPlan {
    pub(crate) fn new(faults: &Faults, rng: Rng) -> FaultPlan {
        let active = faults.program_failure > 0.0
            || faults.erase_failure > 0.0
            || faults.uncorrectable_read > 0.0
            || faults.endurance.is_some()
            || faults.script.iter().any(|fault| fault.kind != FaultKind::Factory);
        FaultPlan { faults: faults.clone(), active, rng, tried: vec![0; faults.script.len()] }
    }

    /// Blocks that are bad from the factory, by number.
    pub(crate) fn factory_bad(&mut self, blocks: u32) -> Vec<u32> {
        let mut bad: Vec<u32> = if self.faults.factory_bad > 0.0 {
            (0..blocks).filter(|_| self.rng.random_bool(self.faults.factory_bad)).collect()
        } else {
            Vec::new()
        };
        let scripted = self.faults.script.iter().filter(|fault| fault.kind == FaultKind::Factory);
        bad.extend(scripted.map(|fault| fault.block).filter(|block| *block < blocks));
        bad.sort_unstable();
        bad.dedup();
        bad
    }

    /// Whether anything but factory bad blocks is configured.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        self.active
    }

    /// Whether this operation fails. `erases` is the block's count before the operation.
    #[inline]
    pub(crate) fn strikes(&mut self, kind: OpKind, block: u32, erases: u32) -> bool {
        self.active && self.draw(kind, block, erases)
    }

    #[cold]
    fn draw(&mut self, kind: OpKind, block: u32, erases: u32) -> bool {
        let (kind, rate) = match kind {
            OpKind::Read => (FaultKind::Read, self.faults.uncorrectable_read),
            OpKind::Program | OpKind::Copyback => (FaultKind::Program, self.faults.program_failure),
            OpKind::Erase => (FaultKind::Erase, self.faults.erase_failure),
        };
        let mut strikes = rate > 0.0 && self.rng.random_bool(rate);
        for (fault, tried) in self.faults.script.iter().zip(&mut self.tried) {
            if fault.kind == kind && fault.block == block {
                *tried += 1;
                strikes |= *tried == fault.nth;
            }
        }
        let worn = kind == FaultKind::Erase && self.faults.endurance.is_some_and(|endurance| erases >= endurance);
        strikes || worn
    }
}

//! Which operation fails: drawn by rate from the seed, scripted, or by wear.

use std::collections::BTreeMap;
use std::fmt;

use rand::RngExt;
use ssdlab_base::Rng;

use crate::{BlockId, DieId, FaultKind, Faults, OpKind, ScriptedFault};

/// The faults of a drive; inert and nearly free when none is configured.
#[derive(Clone, Debug)]
pub(crate) struct FaultPlan {
    faults: Faults,
    active: bool,
    rng: Rng,
    /// How often each kind of operation has been tried on each block.
    tried: BTreeMap<(u8, u32), u32>,
    struck: Vec<ScriptedFault>,
    blocks_per_die: u32,
    /// Dies of which every operation fails.
    lost: Vec<DieId>,
    /// Asked for while running: the next operation of a kind fails, on any block or on one.
    next: Vec<(FaultKind, Option<BlockId>)>,
}

/// A fault of the script that has not struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unstruck {
    /// As the script has it.
    pub fault: ScriptedFault,
    /// Operations of its kind that its block saw; for a die, of any kind on that die.
    pub seen: u32,
}

impl fmt::Display for Unstruck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScriptedFault { kind, block, nth } = self.fault;
        let (word, where_) = match kind {
            FaultKind::Read => ("read", "that block"),
            FaultKind::Program => ("program", "that block"),
            FaultKind::Erase => ("erase", "that block"),
            FaultKind::Factory => ("factory", "that block"),
            FaultKind::Die => ("die", "its die"),
        };
        let operation = if kind == FaultKind::Die { "operation" } else { word };
        let plural = if self.seen == 1 { "" } else { "s" };
        write!(
            f,
            "the fault {{ kind = \"{word}\", block = {block}, nth = {nth} }} never struck: {where_} saw {} {operation}{plural}",
            self.seen
        )
    }
}

impl FaultPlan {
    pub(crate) fn new(faults: &Faults, blocks_per_die: u32, rng: Rng) -> FaultPlan {
        let active = faults.program_failure > 0.0
            || faults.erase_failure > 0.0
            || faults.uncorrectable_read > 0.0
            || faults.endurance.is_some()
            || faults.script.iter().any(|fault| fault.kind != FaultKind::Factory);
        FaultPlan {
            faults: faults.clone(),
            active,
            rng,
            tried: BTreeMap::new(),
            struck: Vec::new(),
            blocks_per_die,
            lost: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Blocks that are bad from the factory, by number.
    pub(crate) fn factory_bad(&mut self, blocks: u32) -> Vec<BlockId> {
        let mut bad: Vec<BlockId> = if self.faults.factory_bad > 0.0 {
            (0..blocks).map(BlockId).filter(|_| self.rng.random_bool(self.faults.factory_bad)).collect()
        } else {
            Vec::new()
        };
        let scripted = self.faults.script.iter().filter(|fault| fault.kind == FaultKind::Factory);
        bad.extend(scripted.map(|fault| fault.block).filter(|block| block.0 < blocks));
        bad.sort_unstable();
        bad.dedup();
        self.struck =
            bad.iter().map(|block| ScriptedFault { kind: FaultKind::Factory, block: *block, nth: 1 }).collect();
        bad
    }

    /// Whether anything but factory bad blocks is configured.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        self.active
    }

    /// Whether this operation fails. `erases` is the block's count before the operation.
    #[inline]
    pub(crate) fn strikes(&mut self, kind: OpKind, block: BlockId, erases: u32) -> bool {
        self.active && self.draw(kind, block, erases)
    }

    #[cold]
    fn draw(&mut self, kind: OpKind, block: BlockId, erases: u32) -> bool {
        let (kind, rate) = match kind {
            OpKind::Read => (FaultKind::Read, self.faults.uncorrectable_read),
            OpKind::Program | OpKind::Copyback => (FaultKind::Program, self.faults.program_failure),
            OpKind::Erase => (FaultKind::Erase, self.faults.erase_failure),
        };
        let tried = self.tried.entry((kind as u8, block.0)).or_default();
        *tried += 1;
        let this = ScriptedFault { kind, block, nth: *tried };
        let worn = kind == FaultKind::Erase && self.faults.endurance.is_some_and(|endurance| erases >= endurance);
        // Drawn in any case, so that a script beside a rate does not change what the rate gives.
        let drawn = rate > 0.0 && self.rng.random_bool(rate);
        let asked = self.next.iter().position(|(asked, on)| *asked == kind && on.is_none_or(|on| on == block));
        if let Some(index) = asked {
            self.next.swap_remove(index);
        }
        if self.die_is_lost(block) {
            return true;
        }
        let strikes = drawn || worn || asked.is_some() || self.faults.script.contains(&this);
        if strikes {
            self.struck.push(this);
        }
        strikes
    }

    /// Counts an operation of a block's die, and says whether that is lost by now.
    fn die_is_lost(&mut self, block: BlockId) -> bool {
        let die = DieId(block.0 / self.blocks_per_die);
        if self.lost.contains(&die) {
            return true;
        }
        let of_die =
            |fault: &&ScriptedFault| fault.kind == FaultKind::Die && fault.block.0 / self.blocks_per_die == die.0;
        let Some(fault) = self.faults.script.iter().find(of_die).copied() else { return false };
        let tried = self.tried.entry((FaultKind::Die as u8, die.0)).or_default();
        *tried += 1;
        let lost = *tried >= fault.nth;
        if lost {
            self.lost.push(die);
            self.struck.push(fault);
        }
        lost
    }

    /// From now on faults may be asked for.
    pub(crate) fn expect(&mut self) {
        self.active = true;
    }

    /// The next operation of `kind` fails, on `block` or wherever it is.
    pub(crate) fn fail_next(&mut self, kind: FaultKind, block: Option<BlockId>) {
        assert!(self.active, "faults were expected before they were asked for");
        assert_ne!(kind, FaultKind::Factory, "a factory bad block is bad from the beginning");
        assert!(kind != FaultKind::Die || block.is_some(), "a die that fails is named by one of its blocks");
        if let (FaultKind::Die, Some(block)) = (kind, block) {
            self.lost.push(DieId(block.0 / self.blocks_per_die));
            self.struck.push(ScriptedFault { kind, block, nth: 1 });
            return;
        }
        self.next.push((kind, block));
    }

    /// The faults of the script that have not struck; those of the factory always have.
    pub(crate) fn unstruck(&self) -> Vec<Unstruck> {
        let script = self.faults.script.iter().filter(|fault| fault.kind != FaultKind::Factory);
        script
            .filter(|fault| !self.struck.contains(fault))
            .map(|fault| {
                let place =
                    if fault.kind == FaultKind::Die { fault.block.0 / self.blocks_per_die } else { fault.block.0 };
                Unstruck { fault: *fault, seen: self.tried.get(&(fault.kind as u8, place)).copied().unwrap_or(0) }
            })
            .collect()
    }

    /// What was asked for by [`FaultPlan::fail_next`] and waits for its operation.
    pub(crate) fn asked(&self) -> &[(FaultKind, Option<BlockId>)] {
        &self.next
    }

    /// The faults that have struck, in order; those of the factory first.
    pub(crate) fn struck(&self) -> &[ScriptedFault] {
        &self.struck
    }
}

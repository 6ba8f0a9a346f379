//! Greedy: the fewest valid units. Of blocks with equally few the lowest number is taken, which says nothing of their age;
//! the block that was closed first would cost less under skew (`crates/lab/tests/it/victims.rs`).

use ssdlab_base::Rng;

use super::{Policy, VictimPolicy};
use crate::block_pool::PoolView;

/// The policy as a description names it.
pub(super) const POLICY: Policy =
    Policy { name: "greedy", summary: "the block with the fewest valid units", keys: &[], make: |_| Box::new(Greedy) };

/// The block that costs least to empty now.
pub(super) struct Greedy;

impl VictimPolicy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        pool.fewest_valid()
    }
}

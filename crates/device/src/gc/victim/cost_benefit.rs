//! Cost-benefit: age times free space over cost, as the log-structured file system's cleaner.
//!
//! Rosenblum and Ousterhout, "The design and implementation of a log-structured file system", 1992, section 3.5; in the
//! form used for flash: `age * (1 - u) / 2u`, since a victim's valid share is read and written.

use ssdlab_base::Rng;

use super::{Policy, VictimPolicy};
use crate::block_pool::PoolView;

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "cost-benefit",
    summary: "the highest age * (1 - u) / 2u, u the valid share (LFS)",
    keys: &[],
    make: |_| Box::new(CostBenefit),
};

/// Prefers old blocks, whose valid data is unlikely to die soon.
pub(super) struct CostBenefit;

impl VictimPolicy for CostBenefit {
    fn name(&self) -> &'static str {
        "cost-benefit"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        let units = u128::from(pool.units_per_block());
        let closed = (0..pool.blocks()).filter(|block| pool.is_closed(*block));
        closed.max_by_key(|block| {
            let valid = u128::from(pool.valid(*block));
            // In integers, so that every machine agrees; an empty block beats all others.
            let benefit = (u128::from(pool.age(*block)) * (units - valid)) << 32;
            benefit.checked_div(2 * valid).unwrap_or(u128::MAX)
        })
    }
}

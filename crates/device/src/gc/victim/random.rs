//! Random: any closed block, each as likely.

use rand::RngExt;
use ssdlab_base::Rng;

use super::{Policy, VictimPolicy};
use crate::block_pool::PoolView;

/// The policy as a description names it.
pub(super) const POLICY: Policy =
    Policy { name: "random", summary: "any closed block", keys: &[], make: |_| Box::new(Random) };

/// The baseline that knows nothing.
pub(super) struct Random;

impl VictimPolicy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn choose(&mut self, pool: &PoolView<'_>, rng: &mut Rng) -> Option<u32> {
        draw(pool, rng)
    }
}

/// A closed block, each as likely; `None` when there is none.
pub(super) fn draw(pool: &PoolView<'_>, rng: &mut Rng) -> Option<u32> {
    // Nearly all blocks are closed once GC runs, so a few draws do; else count them out.
    for _ in 0..16 {
        let block = rng.random_range(0..pool.blocks());
        if pool.is_closed(block) {
            return Some(block);
        }
    }
    let closed: Vec<u32> = (0..pool.blocks()).filter(|block| pool.is_closed(*block)).collect();
    if closed.is_empty() { None } else { Some(closed[rng.random_range(0..closed.len())]) }
}

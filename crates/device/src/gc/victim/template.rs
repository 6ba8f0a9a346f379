//! Oldest half: the fewest valid units among the older half of the closed blocks.
//!
//! A template to copy. Say here which paper the policy is from, and which section.

use ssdlab_base::Rng;

use super::{Policy, VictimPolicy};
use crate::block_pool::PoolView;

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "oldest-half",
    summary: "the fewest valid units among the older half",
    keys: &[],
    make: |_| Box::new(OldestHalf::default()),
};

/// Spares young blocks, whose data is still dying.
#[derive(Default)]
pub(super) struct OldestHalf {
    /// Closed blocks with their ages; kept, so that no choice allocates.
    closed: Vec<(u64, u32)>,
}

impl VictimPolicy for OldestHalf {
    fn name(&self) -> &'static str {
        "oldest-half"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        self.closed.clear();
        let closed = (0..pool.blocks()).filter(|block| pool.is_closed(*block));
        self.closed.extend(closed.map(|block| (pool.age(block), block)));
        // Partitioned, not sorted: sorting would dominate the run time.
        let middle = self.closed.len() / 2;
        if middle > 0 {
            self.closed.select_nth_unstable(middle);
        }
        let older = self.closed[middle..].iter().map(|(_, block)| *block);
        older.min_by_key(|block| (pool.valid(*block), *block))
    }
}

//! FIFO: the block that was closed first.

use ssdlab_base::Rng;

use super::{Policy, VictimPolicy};
use crate::block_pool::PoolView;

/// The policy as a description names it.
pub(super) const POLICY: Policy =
    Policy { name: "fifo", summary: "the block that was closed first", keys: &[], make: |_| Box::new(Fifo) };

/// Blocks leave in the order they were filled, as a circular log.
pub(super) struct Fifo;

impl VictimPolicy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        pool.first_closed()
    }
}

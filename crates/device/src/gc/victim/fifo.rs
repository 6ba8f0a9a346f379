//! FIFO: the block that was closed first.

use ssdlab_base::Rng;

use super::VictimPolicy;
use crate::block_pool::PoolView;

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

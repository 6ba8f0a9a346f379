//! What of a map is under way, for tests that cut the power in each of it.

use super::{MapCache, MapOp};
use crate::block_pool::BlockState;
use crate::media::Media;

impl MapCache {
    /// Kinds of work under way, by name.
    pub(in crate::ftl) fn in_flight_work(&mut self, media: &Media) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        self.ops.each_used(|op| {
            kinds.push(match op {
                MapOp::Load { .. } | MapOp::Base { .. } => "load",
                MapOp::Record { .. } => "record",
                MapOp::Program(program) => program.kind(),
            });
        });
        if !media.metadata.is_empty() {
            kinds.push("flush for trims");
        }
        if self.change.is_some() {
            kinds.push("block change");
        }
        if !self.log.is_at_rest() {
            kinds.push("flush of the log");
        }
        let pool = &media.pool;
        let is_erased = |superblock: &u32| {
            pool.is_map_block(*superblock)
                && pool.state(*superblock) == BlockState::Erasing
                && pool.pins(*superblock) == 0
        };
        if (0..pool.superblocks_count()).any(|superblock| is_erased(&superblock)) {
            kinds.push("erase of a map block");
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

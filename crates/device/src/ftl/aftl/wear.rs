//! Static wear levelling: the least worn block with data and the most worn free block of a plane are exchanged (section 4).

use ssdlab_flash::BlockId;

use super::Aftl;
use crate::block_pool::BlockState;
use crate::media::{Media, Place};

/// Dead blocks of a plane that are erased before wear is looked at again.
const ERASES_A_LOOK: u32 = 8;

impl Aftl {
    /// A full block of a plane that has been erased less often than the most worn free one, by more than the threshold.
    pub(super) fn least_worn(&mut self, media: &Media, group: u32) -> Option<u32> {
        if self.wear_threshold == 0 || self.erased[group as usize] < ERASES_A_LOOK {
            return None;
        }
        let lane = self.layout.lane_of(group);
        if self.free_in(media, lane) <= self.reserve {
            return None;
        }
        self.erased[group as usize] = 0;
        let wear = |block: u32| media.pool.wear(block, &media.flash);
        let most = wear(media.pool.most_worn_free(group, &media.flash)?);
        let first = group * media.pool.per_group;
        let holds_data = |block: &u32| {
            media.pool.state(*block) == BlockState::Closed
                && !media.pool.is_retiring(*block)
                && self
                    .home_of(media, Place { block: BlockId(*block), page: 0 })
                    .is_some_and(|(segment, _)| !self.is_closed(segment))
        };
        let full = (first..first + media.pool.per_group).filter(holds_data);
        let (least, block) = full.map(|block| (wear(block), block)).min()?;
        if most.saturating_sub(least) <= self.wear_threshold {
            return None;
        }
        self.exchanged.push(BlockId(block));
        Some(block)
    }
}

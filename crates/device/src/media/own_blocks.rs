//! Blocks of a design that opens them by itself, without frontiers, and gives out their pages.

use ssdlab_flash::BlockId;

use super::Media;
use super::frontier::Frontier;

impl Media {
    /// Opens a superblock for a design with blocks of its own, which gives out its pages: `None` where the group has no free
    /// one, or an image's host no space for it.
    pub(crate) fn open_block(&mut self, group: u32) -> Option<BlockId> {
        assert!(self.own_blocks, "a block of group {group} is opened by a design with frontiers");
        (self.pool.free_blocks(group) > 0 && self.can_open(group))
            .then(|| BlockId(self.open_superblock(group, Frontier::Gc).block))
    }

    /// Opens the most worn free superblock of a group for a design with blocks of its own, which gives out its pages:
    /// `None` where the group has no free one, or an image's host no space for it.
    pub(crate) fn open_most_worn(&mut self, group: u32) -> Option<BlockId> {
        assert!(self.own_blocks, "a block of group {group} is opened by a design with frontiers");
        let superblock = self.pool.most_worn_free(group, &self.flash)?;
        if self.flash.store.image().is_some() {
            let mut members = self.pool.superblocks.members(superblock);
            if !members.all(|block| self.flash.provide(block)) {
                return None;
            }
        }
        self.pool.open_this(superblock);
        self.was_opened(group, superblock);
        Some(BlockId(superblock))
    }

    /// No more than the `issued` pages that were given out of such a superblock will be.
    pub(crate) fn end_block(&mut self, BlockId(superblock): BlockId, issued: u32) {
        assert!(self.own_blocks, "block {superblock} is ended by a design with frontiers");
        assert!((1..=self.pages_per_superblock).contains(&issued), "block {superblock} ends after {issued} pages");
        self.pool.fill_up(superblock, issued);
        self.pool.close_if_written(superblock, self.programmed(superblock));
    }
}

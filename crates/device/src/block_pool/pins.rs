//! Pins: operations in flight that must end before a superblock is erased.

use ssdlab_flash::BlockId;

use super::BlockPool;
use super::life_cycle::BlockState;

impl BlockPool {
    /// An operation in flight must end before the block is erased.
    #[inline]
    pub(crate) fn pin(&mut self, block: BlockId) {
        let block = self.superblocks.of(block);
        debug_assert_ne!(self.states[block as usize], BlockState::Free, "block {block} is pinned, and holds nothing");
        self.pins[block as usize] += 1;
    }

    /// It has ended; true when the superblock now waits for nothing but its erase.
    #[inline]
    pub(crate) fn unpin(&mut self, block: BlockId) -> bool {
        self.unpin_superblock(self.superblocks.of(block))
    }

    /// Takes a pin from a superblock; true when it now waits for nothing but its erase.
    #[inline]
    pub(crate) fn unpin_superblock(&mut self, superblock: u32) -> bool {
        let pins = &mut self.pins[superblock as usize];
        assert!(*pins > 0, "block {superblock} was pinned");
        *pins -= 1;
        *pins == 0 && self.states[superblock as usize] == BlockState::Erasing
    }

    /// Pins a superblock that is to be erased: records must be on flash before its erase.
    pub(crate) fn pin_superblock(&mut self, superblock: u32) {
        let state = self.states[superblock as usize];
        assert_eq!(state, BlockState::Erasing, "superblock {superblock} waits for records before its erase");
        self.pins[superblock as usize] += 1;
    }

    /// Pins on a superblock.
    pub(crate) fn pins(&self, block: u32) -> u32 {
        self.pins[block as usize]
    }
}

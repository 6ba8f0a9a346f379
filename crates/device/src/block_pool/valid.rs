//! How many units of each superblock are valid.

use ssdlab_flash::BlockId;

use super::BlockPool;
use super::life_cycle::BlockState;

/// Marks the valid count of a block that is not closed, so that a plain minimum over counts finds victims only.
pub(super) const NOT_CLOSED: u32 = 1 << 31;

impl BlockPool {
    /// Valid units in a block.
    #[inline]
    pub(crate) fn valid(&self, block: u32) -> u32 {
        self.valid[block as usize] & !NOT_CLOSED
    }

    /// One more valid unit.
    #[inline]
    pub(crate) fn add_valid(&mut self, block: BlockId) {
        let block = self.superblocks.of(block);
        debug_assert!(self.valid(block) < NOT_CLOSED - 1, "block {block} holds {} units", self.valid(block));
        self.valid[block as usize] += 1;
    }

    /// One valid unit less.
    #[inline]
    pub(crate) fn drop_valid(&mut self, block: BlockId) {
        let block = self.superblocks.of(block);
        debug_assert!(self.valid(block) > 0, "block {block} has something valid to lose");
        self.valid[block as usize] -= 1;
        self.state_changes += u64::from(self.valid(block) == 0);
    }

    /// Units of a block that are current and that collection need not move.
    pub(crate) fn loose(&self, block: u32) -> u32 {
        self.loose[block as usize]
    }

    /// Whether any block has such units.
    pub(crate) const fn has_loose(&self) -> bool {
        self.loose_units > 0
    }

    /// One more unit that is current and need not be moved.
    pub(crate) fn add_loose(&mut self, block: BlockId) {
        self.loose_units += 1;
        self.loose[self.superblocks.of(block) as usize] += 1;
    }

    /// One unit less that is current and need not be moved.
    pub(crate) fn drop_loose(&mut self, block: BlockId) {
        let loose = &mut self.loose[self.superblocks.of(block) as usize];
        assert!(*loose > 0, "block {block} has a unit to lose that need not be moved");
        *loose -= 1;
        self.loose_units -= 1;
    }

    /// `count` valid units go from one block to another.
    #[inline]
    pub(crate) fn move_valid(&mut self, from: u32, to: u32, count: u32) {
        assert!(self.valid(from) >= count, "block {from} has {count} valid units to give");
        debug_assert_ne!(from, to, "{count} units go to another block");
        debug_assert_eq!(self.states[from as usize], BlockState::Collecting, "block {from} gives {count} units away");
        self.valid[from as usize] -= count;
        self.state_changes += u64::from(self.valid(from) == 0);
        self.valid[to as usize] += count;
    }
}

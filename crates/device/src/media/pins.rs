//! Pins: the blocks that an operation in flight keeps from being erased.

use ssdlab_flash::{BlockId, Done, OpId, OpKind};

use super::Media;
use super::read::MultiSource;

impl Media {
    /// Takes a pin from the superblock of a block; with the last one of a superblock that is to be erased, its erase is due.
    #[inline]
    pub(crate) fn unpin(&mut self, block: BlockId) {
        if self.pool.unpin(block) {
            self.erase_is_due(block);
        }
    }

    #[cold]
    fn erase_is_due(&mut self, block: BlockId) {
        self.wakes.erasable.push(self.pool.superblocks.of(block));
    }

    pub(super) fn remember_pins(&mut self, op: OpId, pins: &[BlockId]) {
        let stride = self.units_per_page as usize;
        let first = op as usize * stride;
        if self.pin_table.len() < first + stride {
            self.pin_table.resize(first + stride, BlockId::NONE);
        }
        let slots = &mut self.pin_table[first..first + stride];
        slots.fill(BlockId::NONE);
        slots[..pins.len()].copy_from_slice(pins);
    }

    /// Lets go of what a finished operation pinned.
    #[inline]
    pub(crate) fn release_pins(&mut self, done: &Done) {
        if self.units_per_page == 1 || done.kind == OpKind::Read {
            if done.pin != BlockId::NONE {
                self.unpin(done.pin);
            }
            if !self.multi_source_programs.is_empty()
                && let Some(MultiSource { pins, .. }) = self.multi_source_programs.remove(&done.op)
            {
                pins.into_iter().for_each(|pin| self.unpin(pin));
            }
            return;
        }
        for index in 0..self.units_per_page as usize {
            let pin = self.pin_table[done.op as usize * self.units_per_page as usize + index];
            if pin != BlockId::NONE {
                self.unpin(pin);
            }
        }
    }

    /// The blocks a finished program pinned, to be kept pinned for longer.
    pub(crate) fn pins_of(&mut self, done: &Done) -> Vec<BlockId> {
        if self.units_per_page == 1 {
            let mut pins = if done.pin == BlockId::NONE { Vec::new() } else { vec![done.pin] };
            pins.extend(self.multi_source_programs.remove(&done.op).into_iter().flat_map(|several| several.pins));
            return pins;
        }
        let first = done.op as usize * self.units_per_page as usize;
        debug_assert!(first < self.pin_table.len(), "operation {} ended, and was never given pins", done.op);
        let slots = &self.pin_table[first..first + self.units_per_page as usize];
        slots.iter().copied().filter(|pin| *pin != BlockId::NONE).collect()
    }
}

//! The order of pages in which a direct pointer counts.

use ssdlab_flash::{BlockId, Ppn};

/// Numbers pages as frontiers that fill in step give them out: the same page of a block of each plane, then the next.
pub(super) struct PageOrder {
    pub(super) pages_per_block: u32,
    pub(super) blocks_per_plane: u32,
    pub(super) planes: u32,
}

impl PageOrder {
    fn number(&self, ppn: Ppn) -> u32 {
        let (block, page) = (ppn.block(self.pages_per_block), ppn % self.pages_per_block);
        let (plane, block) = (block.plane(self.blocks_per_plane), block.0 % self.blocks_per_plane);
        (block * self.pages_per_block + page) * self.planes + plane.0
    }

    fn ppn(&self, number: u32) -> Ppn {
        let (row, plane) = (number / self.planes, number % self.planes);
        let (block, page) = (row / self.pages_per_block, row % self.pages_per_block);
        Ppn::of(BlockId(plane * self.blocks_per_plane + block), page, self.pages_per_block)
    }

    pub(super) fn pages(&self) -> u64 {
        u64::from(self.pages_per_block) * u64::from(self.blocks_per_plane) * u64::from(self.planes)
    }

    pub(super) fn distance(&self, old: Ppn, new: Ppn) -> u32 {
        let (old, new) = (u64::from(self.number(old)), u64::from(self.number(new)));
        ((new + self.pages() - old) % self.pages()) as u32
    }

    pub(super) fn behind(&self, old: Ppn, distance: u32) -> Ppn {
        let number = (u64::from(self.number(old)) + u64::from(distance)) % self.pages();
        self.ppn(number as u32)
    }
}

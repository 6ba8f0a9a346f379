//! Addresses and sizes: units, pages, blocks and superblocks by their numbers.

use ssdlab_flash::{BlockId, Ppn, UnitId};

use super::{Media, Place};

impl Media {
    /// Pages in a block.
    #[inline]
    pub(crate) const fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Pages in a superblock.
    #[inline]
    pub(crate) const fn pages_per_superblock(&self) -> u32 {
        self.pages_per_superblock
    }

    /// Pages in a superblock that hold data: all but parity.
    #[inline]
    pub(crate) const fn data_pages_per_superblock(&self) -> u32 {
        self.data_pages_per_superblock
    }

    /// Pages of each block that are kept for a list of owners.
    pub(crate) const fn list_pages(&self) -> u32 {
        self.list_pages
    }

    /// Units of data in a superblock.
    #[inline]
    pub(crate) const fn data_units_per_superblock(&self) -> u32 {
        self.data_pages_per_superblock * self.units_per_page
    }

    /// Units in a superblock, those of parity pages included.
    #[inline]
    pub(crate) const fn units_per_superblock(&self) -> u32 {
        self.pages_per_superblock * self.units_per_page
    }

    /// Pages of data in a stripe.
    pub(crate) const fn stripe_width(&self) -> u32 {
        self.pool.superblocks.width() - self.pool.superblocks.parity()
    }

    /// The number of the program of a unit's page.
    pub(crate) fn sequence_of(&self, unit: UnitId) -> u64 {
        let Place { block, page } = self.place_of(unit);
        self.flash.oob.sequence(block, page)
    }

    /// The group of a block.
    #[inline]
    pub(crate) fn group_of(&self, block: BlockId) -> u32 {
        self.pool.superblocks.group_of(block)
    }

    /// The unit that comes `cursor`th in a superblock, by the order in which its pages were given out.
    #[inline]
    pub(crate) fn unit_in(&self, superblock: u32, cursor: u32) -> UnitId {
        let (page, unit) = (self.by_units_per_page.div(cursor), self.by_units_per_page.rem(cursor));
        self.unit_at(self.pool.superblocks.place(superblock, page)) + unit
    }

    /// The block and page of a physical unit.
    #[inline]
    pub(crate) const fn place_of(&self, unit: UnitId) -> Place {
        self.place_of_page(self.page_of(unit))
    }

    /// The block and page of a physical page.
    #[inline]
    pub(crate) const fn place_of_page(&self, ppn: Ppn) -> Place {
        Place { block: self.block_of_page(ppn), page: self.by_pages_per_block.rem(ppn.0) }
    }

    /// The page of a physical unit.
    #[inline]
    pub(crate) const fn page_of(&self, unit: UnitId) -> Ppn {
        Ppn(self.by_units_per_page.div(unit.0))
    }

    /// The block of a physical unit.
    #[inline]
    pub(crate) const fn block_of(&self, unit: UnitId) -> BlockId {
        self.block_of_page(self.page_of(unit))
    }

    /// The block of a physical page.
    #[inline]
    pub(crate) const fn block_of_page(&self, ppn: Ppn) -> BlockId {
        BlockId(self.by_pages_per_block.div(ppn.0))
    }

    /// The first physical unit of a page.
    #[inline]
    pub(crate) const fn unit_at(&self, place: Place) -> UnitId {
        self.ppn_at(place).first_unit(self.units_per_page)
    }

    /// The number of a page over the whole drive.
    #[inline]
    pub(crate) const fn ppn_at(&self, place: Place) -> Ppn {
        Ppn::of(place.block, place.page, self.pages_per_block)
    }

    /// Whether a physical page's program has ended well: a power cut leaves it.
    #[inline]
    pub(crate) fn is_on_flash(&self, ppn: Ppn) -> bool {
        let place = self.place_of_page(ppn);
        self.flash.is_written(place.block, place.page) && self.flash.blocks.readable(ppn)
    }

    /// Looks at what every access to a block looks at, so that it is in the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, block: BlockId) -> u32 {
        let superblock = self.pool.superblocks.of(block);
        self.flash.blocks.get(block).programmed ^ self.pool.valid(superblock) ^ self.pool.pins(superblock)
    }
}

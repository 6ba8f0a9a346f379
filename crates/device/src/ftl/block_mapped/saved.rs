//! The map in a snapshot. What the headers say is in the snapshot of the chips.

use std::io;

use ssdlab_base::{damaged, saved};
use ssdlab_flash::{BlockId, Lpn, NONE};

use super::header::Header;
use super::{BlockFtl, DataBlock, Split};
use crate::media::{Media, Place};

saved!(DataBlock: block, pages);
saved!(Split: older, pages);
saved!(BlockFtl: data_blocks[..], next_group, trimmed, splits, to_erase, mapped[..]);

impl BlockFtl {
    /// Finds the owners of blocks, counts what is valid, and refuses tables that name what is not there.
    pub(super) fn accept(&mut self, media: &mut Media) -> io::Result<()> {
        let blocks = media.flash.geometry().blocks();
        let logical_blocks = self.data_blocks.len() as u32;
        let known = self.trimmed.iter().chain(self.splits.keys()).all(|logical| *logical < logical_blocks);
        let mut listed = self.splits.values().flat_map(|split| &split.older).chain(&self.to_erase);
        if !known || self.next_group >= media.pool.groups() || listed.any(|block| block.0 >= blocks) {
            return Err(damaged("a list of blocks names one that is not there"));
        }
        for block in (0..blocks).map(BlockId) {
            let header = Header::of(media, block, self.data_pages);
            self.owners[block.index()] = header.map_or(NONE, |header| header.logical);
        }
        for (logical, data_block) in
            self.data_blocks.iter().enumerate().filter(|(_, data_block)| data_block.block != BlockId::NONE)
        {
            let fits = data_block.block.0 < blocks
                && data_block.pages <= self.data_pages
                && self.owners[data_block.block.index()] as usize == logical
                && media.flash.blocks.get(data_block.block).programmed == data_block.pages + 1
                && !self.to_erase.contains(&data_block.block);
            if !fits {
                return Err(damaged("a logical block is in a block that holds something else"));
            }
            media.pool.add_valid(data_block.block);
        }
        if Lpn::each(Lpn(self.user_units)..Lpn(self.mapped.len() as u32 * 64)).any(|lpn| self.is_mapped(lpn)) {
            return Err(damaged("a page behind the user's capacity holds data"));
        }
        for lpn in Lpn::each(Lpn(0)..Lpn(self.user_units)).filter(|lpn| self.is_mapped(*lpn)) {
            let (logical, offset) = self.split(lpn);
            if self.data_blocks[logical as usize].block == BlockId::NONE {
                return Err(damaged("a page holds data, and its logical block is nowhere"));
            }
            let Place { block, page } = media.place_of_page(self.page_of(lpn));
            if block.0 >= blocks || page != offset + 1 || !media.flash.is_written(block, page) {
                return Err(damaged("a page holds data, and is not written"));
            }
            media.pool.add_valid(block);
        }
        Ok(())
    }
}

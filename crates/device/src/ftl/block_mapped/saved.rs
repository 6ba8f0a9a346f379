//! The map in a snapshot. What the headers say is in the snapshot of the chips.

use std::io::{self, Read, Write};

use ssdlab_flash::{BlockId, Lpn, NONE, Ppn};

use super::header::Header;
use super::{BlockFtl, Home, Spread};
use crate::ftl::saved_words::{bad, count, list, push_list, word};
use crate::media::{Media, Place};

impl BlockFtl {
    pub(super) fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut words: Vec<u32> = self.homes.iter().flat_map(|home| [home.block.0, home.pages]).collect();
        words.push(self.next_group);
        push_list(&mut words, self.trimmed.iter().copied());
        words.push(self.spread.len() as u32);
        for (logical, Spread { older, pages }) in &self.spread {
            words.push(*logical);
            push_list(&mut words, older.iter().map(|block| block.0));
            let pages: Vec<u32> = pages.iter().flat_map(|(offset, page)| [*offset, page.0]).collect();
            push_list(&mut words, pages.into_iter());
        }
        push_list(&mut words, self.leaving.iter().map(|block| block.0));
        to.write_all(bytemuck::cast_slice(&words))?;
        to.write_all(bytemuck::cast_slice(&self.mapped))
    }

    pub(super) fn restore_from(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        let blocks = media.flash.geometry().blocks();
        let logical_blocks = self.homes.len() as u32;
        for home in &mut self.homes {
            *home = Home { block: BlockId(word(from)?), pages: word(from)? };
        }
        self.next_group = word(from)?;
        self.trimmed = list(from, logical_blocks)?;
        for _ in 0..count(from, logical_blocks)? {
            let logical = word(from)?;
            let older = list(from, blocks)?.into_iter().map(BlockId).collect();
            let pages = list(from, 2 * self.data_pages)?;
            let pages = pages.chunks_exact(2).map(|pair| (pair[0], Ppn(pair[1]))).collect();
            self.spread.insert(logical, Spread { older, pages });
        }
        self.leaving = list(from, blocks)?.into_iter().map(BlockId).collect();
        from.read_exact(bytemuck::cast_slice_mut(&mut self.mapped))?;
        let known = self.trimmed.iter().chain(self.spread.keys()).all(|logical| *logical < logical_blocks);
        let listed = self.spread.values().flat_map(|spread| &spread.older).chain(&self.leaving);
        if !known || self.next_group >= media.pool.groups() || listed.clone().any(|block| block.0 >= blocks) {
            return Err(bad("a list of blocks names one that is not there"));
        }
        for block in (0..blocks).map(BlockId) {
            let header = Header::of(media, block, self.data_pages);
            self.owners[block.index()] = header.map_or(NONE, |header| header.logical);
        }
        for (logical, home) in self.homes.iter().enumerate().filter(|(_, home)| home.block != BlockId::NONE) {
            let fits = home.block.0 < blocks
                && home.pages <= self.data_pages
                && self.owners[home.block.index()] as usize == logical
                && media.flash.blocks.get(home.block).programmed == home.pages + 1
                && !self.leaving.contains(&home.block);
            if !fits {
                return Err(bad("a logical block is in a block that holds something else"));
            }
            media.pool.add_valid(home.block);
        }
        if Lpn::each(Lpn(self.user_units)..Lpn(self.mapped.len() as u32 * 64)).any(|lpn| self.is_mapped(lpn)) {
            return Err(bad("a page behind the user's capacity holds data"));
        }
        for lpn in Lpn::each(Lpn(0)..Lpn(self.user_units)).filter(|lpn| self.is_mapped(*lpn)).collect::<Vec<Lpn>>() {
            let (logical, offset) = self.split(lpn);
            if self.homes[logical as usize].block == BlockId::NONE {
                return Err(bad("a page holds data, and its logical block is nowhere"));
            }
            let Place { block, page } = media.place_of_page(self.page_of(lpn));
            if block.0 >= blocks || page != offset + 1 || !media.flash.is_written(block, page) {
                return Err(bad("a page holds data, and is not written"));
            }
            media.pool.add_valid(block);
        }
        Ok(())
    }
}

//! The map in a snapshot. What headers and OOB areas say is in the snapshot of the chips.

use std::io::{self, Read, Write};

use ssdlab_flash::{BlockId, Lpn, NONE, Ppn};

use super::{Home, Log, LogBlockFtl};
use crate::ftl::saved_words::{bad, count, list, long, push_list, push_long, word};
use crate::media::{Media, Place};

impl LogBlockFtl {
    pub(super) fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut words: Vec<u32> = self.homes.iter().flat_map(|home| [home.block.0, home.pages]).collect();
        words.push(self.next_group);
        push_list(&mut words, self.trimmed.iter().copied());
        words.push(self.held.len() as u32);
        for (logical, blocks) in &self.held {
            words.push(*logical);
            push_list(&mut words, blocks.iter().map(|block| block.0));
        }
        let mut strays: Vec<_> = self.strays.iter().map(|(lpn, page)| [lpn.0, page.0]).collect();
        strays.sort_unstable();
        push_list(&mut words, strays.as_flattened().iter().copied());
        words.push(self.logs.len() as u32);
        for log in &self.logs {
            words.extend([log.block.0, log.logical]);
            push_long(&mut words, log.used);
            push_list(&mut words, log.lpns.iter().map(|lpn| lpn.0));
        }
        push_long(&mut words, self.clock);
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
            let held = list(from, blocks.saturating_mul(self.data_pages))?;
            self.held.insert(logical, held.into_iter().map(BlockId).collect());
        }
        let strays = list(from, self.user_units.saturating_mul(2))?;
        self.strays = strays.chunks_exact(2).map(|pair| (Lpn(pair[0]), Ppn(pair[1]))).collect();
        for _ in 0..count(from, self.most_logs)? {
            let (block, logical) = (BlockId(word(from)?), word(from)?);
            let used = long(from)?;
            let lpns = list(from, self.data_pages)?.into_iter().map(Lpn).collect();
            self.logs.push(Log { block, logical, lpns, used });
        }
        self.clock = long(from)?;
        self.leaving = list(from, blocks)?.into_iter().map(BlockId).collect();
        from.read_exact(bytemuck::cast_slice_mut(&mut self.mapped))?;
        self.accept_tables(media)?;
        self.count_valid(media)
    }

    /// Refuses tables that name what is not there.
    fn accept_tables(&self, media: &Media) -> io::Result<()> {
        let blocks = media.flash.geometry().blocks();
        let logical_blocks = self.homes.len() as u32;
        let held = self.held.values().flatten();
        let listed = held.chain(&self.leaving).chain(self.logs.iter().map(|log| &log.block));
        let logicals = self.trimmed.iter().chain(self.held.keys());
        let of_logs = self.logs.iter().map(|log| &log.logical).filter(|logical| **logical != NONE);
        let known = logicals.chain(of_logs).all(|logical| *logical < logical_blocks);
        if !known || self.next_group >= media.pool.groups() || listed.into_iter().any(|block| block.0 >= blocks) {
            return Err(bad("a list of blocks names one that is not there"));
        }
        let pages = u64::from(blocks) * u64::from(self.data_pages + 1);
        let stray =
            |(lpn, page): (&Lpn, &Ppn)| lpn.0 < self.user_units && u64::from(page.0) < pages && self.is_mapped(*lpn);
        if !self.strays.iter().all(stray) {
            return Err(bad("a page of a log block is of no LPN that holds data"));
        }
        let has = |log: &Log| {
            let lpns = log.lpns.iter().all(|lpn| *lpn == Lpn::NONE || lpn.0 < self.user_units);
            lpns && media.flash.blocks.get(log.block).programmed == log.lpns.len() as u32 + 1
                && !self.leaving.contains(&log.block)
        };
        if !self.logs.iter().all(has) {
            return Err(bad("a log block holds other pages than its list says"));
        }
        let mut homes = self.homes.iter().filter(|home| home.block != BlockId::NONE);
        let fits = |home: &Home| {
            home.block.0 < blocks
                && home.pages <= self.data_pages
                && media.flash.blocks.get(home.block).programmed == home.pages + 1
                && !self.leaving.contains(&home.block)
        };
        if !homes.all(fits) {
            return Err(bad("a logical block is in a block that holds something else"));
        }
        if Lpn::each(Lpn(self.user_units)..Lpn(self.mapped.len() as u32 * 64)).any(|lpn| self.is_mapped(lpn)) {
            return Err(bad("a page behind the user's capacity holds data"));
        }
        Ok(())
    }

    /// Counts valid pages again, and refuses those that are not written.
    fn count_valid(&self, media: &mut Media) -> io::Result<()> {
        for home in self.homes.iter().filter(|home| home.block != BlockId::NONE) {
            media.pool.add_valid(home.block);
        }
        for block in self.held.values().flatten() {
            media.pool.add_valid(*block);
        }
        for lpn in Lpn::each(Lpn(0)..Lpn(self.user_units)).filter(|lpn| self.is_mapped(*lpn)) {
            let (logical, _) = self.split(lpn);
            if self.homes[logical as usize].block == BlockId::NONE && !self.strays.contains_key(&lpn) {
                return Err(bad("a page holds data, and its logical block is nowhere"));
            }
            let page = self.page_of(lpn);
            let Place { block, page: at } = media.place_of_page(page);
            if !media.flash.is_written(block, at) || media.flash.oob.lpn(page.sole_unit()) != lpn {
                return Err(bad("an LPN is mapped to a page that is not its own"));
            }
            media.pool.add_valid(block);
        }
        Ok(())
    }
}

//! The map in a snapshot. What headers and OOB areas say is in the snapshot of the chips.

use std::io;

use ssdlab_base::{damaged, saved};
use ssdlab_flash::{BlockId, Lpn, NONE, Ppn};

use super::logs::Log;
use super::{DataBlock, LogBlockFtl};
use crate::media::{Media, Place};

saved!(DataBlock: block, pages);
saved!(LogBlockFtl: data_blocks[..], next_group, trimmed, held, displaced, logs, clock, to_erase, mapped[..]);

impl LogBlockFtl {
    /// Counts what is valid, and refuses tables that name what is not there.
    pub(super) fn accept(&self, media: &mut Media) -> io::Result<()> {
        self.accept_tables(media)?;
        self.count_valid(media)
    }

    /// Refuses tables that name what is not there.
    fn accept_tables(&self, media: &Media) -> io::Result<()> {
        let blocks = media.flash.geometry().blocks();
        let logical_blocks = self.data_blocks.len() as u32;
        let held = self.held.values().flatten();
        let listed = held.chain(&self.to_erase).chain(self.logs.iter().map(|log| &log.block));
        let logicals = self.trimmed.iter().chain(self.held.keys());
        let of_logs = self.logs.iter().map(|log| &log.logical).filter(|logical| **logical != NONE);
        let known = logicals.chain(of_logs).all(|logical| *logical < logical_blocks);
        if !known || self.next_group >= media.pool.groups() || listed.into_iter().any(|block| block.0 >= blocks) {
            return Err(damaged("a list of blocks names one that is not there"));
        }
        let pages = u64::from(blocks) * u64::from(self.data_pages + 1);
        let displaced_page =
            |(lpn, page): (&Lpn, &Ppn)| lpn.0 < self.user_units && u64::from(page.0) < pages && self.is_mapped(*lpn);
        if !self.displaced.iter().all(displaced_page) {
            return Err(damaged("a page of a log block is of no LPN that holds data"));
        }
        let has = |log: &Log| {
            let lpns = log.lpns.iter().all(|lpn| *lpn == Lpn::NONE || lpn.0 < self.user_units);
            lpns && media.flash.blocks.get(log.block).programmed == log.lpns.len() as u32 + 1
                && !self.to_erase.contains(&log.block)
        };
        if !self.logs.iter().all(has) {
            return Err(damaged("a log block holds other pages than its list says"));
        }
        let mut data_blocks = self.data_blocks.iter().filter(|data_block| data_block.block != BlockId::NONE);
        let fits = |data_block: &DataBlock| {
            data_block.block.0 < blocks
                && data_block.pages <= self.data_pages
                && media.flash.blocks.get(data_block.block).programmed == data_block.pages + 1
                && !self.to_erase.contains(&data_block.block)
        };
        if !data_blocks.all(fits) {
            return Err(damaged("a logical block is in a block that holds something else"));
        }
        if Lpn::each(Lpn(self.user_units)..Lpn(self.mapped.len() as u32 * 64)).any(|lpn| self.is_mapped(lpn)) {
            return Err(damaged("a page behind the user's capacity holds data"));
        }
        Ok(())
    }

    /// Counts valid pages again, and refuses those that are not written.
    fn count_valid(&self, media: &mut Media) -> io::Result<()> {
        for data_block in self.data_blocks.iter().filter(|data_block| data_block.block != BlockId::NONE) {
            media.pool.add_valid(data_block.block);
        }
        for block in self.held.values().flatten() {
            media.pool.add_valid(*block);
        }
        for lpn in Lpn::each(Lpn(0)..Lpn(self.user_units)).filter(|lpn| self.is_mapped(*lpn)) {
            let (logical, _) = self.split(lpn);
            if self.data_blocks[logical as usize].block == BlockId::NONE && !self.displaced.contains_key(&lpn) {
                return Err(damaged("a page holds data, and its logical block is nowhere"));
            }
            let Place { block, page } = media.place_of_page(self.page_of(lpn));
            if !media.flash.is_written(block, page) {
                return Err(damaged("an LPN is mapped to a page that was never written"));
            }
            media.pool.add_valid(block);
        }
        Ok(())
    }
}

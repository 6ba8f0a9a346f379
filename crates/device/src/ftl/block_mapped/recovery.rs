//! Recovery: the map from the headers of blocks, and from which pages behind them can be read.

use std::collections::BTreeMap;

use ssdlab_flash::{BlockId, Lpn, NONE};

use super::header::Header;
use super::{BlockFtl, DataBlock, Split};
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// Numbers that programs in flight may have been given beyond the newest that is found.
const IN_FLIGHT: u64 = 1 << 20;

impl BlockFtl {
    pub(super) fn rebuild(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.data_blocks.fill(DataBlock { block: BlockId::NONE, pages: 0 });
        self.mapped.fill(0);
        self.owners.fill(NONE);
        (self.trimmed, self.to_erase, self.splits) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut newest = 0;
        let mut found: BTreeMap<u32, Vec<(Header, BlockId)>> = BTreeMap::new();
        for block in (0..media.flash.geometry().blocks()).map(BlockId) {
            let state = *media.flash.blocks.get(block);
            if state.torn || state.programmed == 0 {
                continue;
            }
            // Without the OOB area nothing less tells whether a page is there and can be read.
            for page in 0..state.programmed {
                reads.page(Place { block, page });
            }
            self.to_erase.push(block);
            if !media.flash.blocks.readable(media.ppn_at(Place { block, page: 0 })) {
                continue;
            }
            let Some(header) = Header::of(media, block, self.data_pages) else { continue };
            assert!((header.logical as usize) < self.data_blocks.len(), "block {block} holds block {}", header.logical);
            self.owners[block.index()] = header.logical;
            newest = newest.max(header.sequence);
            found.entry(header.logical).or_default().push((header, block));
        }
        for (logical, mut blocks) in found {
            blocks.sort_by_key(|(header, _)| std::cmp::Reverse(header.sequence));
            let falls = blocks.windows(2).all(|pair| pair[0].0.sequence > pair[1].0.sequence);
            assert!(falls, "two headers of logical block {logical} have one sequence number");
            self.settle(media, logical, &blocks);
        }
        media.set_sequence(newest + IN_FLIGHT);
    }

    /// Finds the pages of a logical block in its blocks, the newest first.
    fn settle(&mut self, media: &mut Media, logical: u32, mut blocks: &[(Header, BlockId)]) {
        // An interrupted copy takes up a block, and says nothing that the block before does not.
        while let [(header, block), _, ..] = blocks
            && header.is_copy
            && !self.is_whole(media, header, *block)
            && !(header.pages..self.data_pages).any(|offset| is_there(media, *block, offset))
        {
            blocks = &blocks[1..];
        }
        let (header, block) = &blocks[0];
        let older = if self.is_whole(media, header, *block) { &[] } else { &blocks[1..] };
        let pages = media.flash.blocks.get(*block).programmed - 1;
        assert!(pages <= self.data_pages, "block {block} has {pages} pages of {}", self.data_pages);
        assert_eq!(self.owners[block.index()], logical, "block {block} is of another logical block");
        self.data_blocks[logical as usize] = DataBlock { block: *block, pages };
        self.to_erase.retain(|other| other != block);
        media.pool.add_valid(*block);
        let mut split = Split { older: older.iter().map(|(_, block)| *block).collect(), ..Split::default() };
        let first = Lpn(logical * self.data_pages);
        for offset in 0..self.data_pages.min(self.user_units - first.0) {
            let Some(holder) = self.holder(media, offset, header, *block, older) else { continue };
            self.set_mapped(first + offset, true);
            media.pool.add_valid(holder);
            if holder != *block {
                split.pages.insert(offset, self.first_page(holder) + 1 + offset);
            }
        }
        if !older.is_empty() {
            self.splits.insert(logical, split);
        }
    }

    /// The block that has a page, looked for from the newest on.
    fn holder(
        &self,
        media: &Media,
        offset: u32,
        header: &Header,
        block: BlockId,
        older: &[(Header, BlockId)],
    ) -> Option<BlockId> {
        if is_there(media, block, offset) {
            return header.has_data(offset).then_some(block);
        }
        let (next, behind) = older.split_first().filter(|_| header.inherits(offset))?;
        self.holder(media, offset, &next.0, next.1, behind)
    }

    /// Whether a block has all that its merge took from older ones.
    fn is_whole(&self, media: &Media, header: &Header, block: BlockId) -> bool {
        let trusted = seeded(Bug::CopyTakenForWhole) && header.is_copy;
        trusted || (0..self.data_pages).all(|offset| !header.inherits(offset) || is_there(media, block, offset))
    }
}

/// Whether a page of a logical block can be read in a block.
fn is_there(media: &Media, block: BlockId, offset: u32) -> bool {
    let place = Place { block, page: offset + 1 };
    media.flash.is_written(block, place.page) && media.flash.blocks.readable(media.ppn_at(place))
}

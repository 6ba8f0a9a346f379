//! Recovery: the newest page of each LPN, by the OOB areas, without those that a header makes meaningless; then which blocks are
//! data and log blocks.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_flash::{BlockId, Lpn, NONE, Ppn};

use super::header::{Header, Role};
use super::logs::{Log, Logs};
use super::{DataBlock, LogBlockFtl};
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;

/// Numbers that programs in flight may have been given beyond the newest that is found.
const IN_FLIGHT: u64 = 1 << 20;

/// A block with a header that can be read.
struct Block {
    id: BlockId,
    header: Header,
}

impl LogBlockFtl {
    pub(super) fn rebuild(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.data_blocks.fill(DataBlock { block: BlockId::NONE, pages: 0 });
        self.mapped.fill(0);
        self.displaced.clear();
        self.held.clear();
        self.revived.clear();
        (self.logs, self.trimmed, self.to_erase) = (Logs::default(), Vec::new(), Vec::new());
        let mut newest = 0;
        let mut blocks = Vec::new();
        let mut first_pages = BTreeSet::new();
        for id in (0..media.flash.geometry().blocks()).map(BlockId) {
            let state = *media.flash.blocks.get(id);
            if state.torn || state.programmed == 0 {
                continue;
            }
            let header = Place { block: id, page: 0 };
            reads.page(header);
            for page in 1..state.programmed {
                reads.oob(Place { block: id, page });
            }
            for page in 0..state.programmed {
                newest = newest.max(media.flash.oob.sequence(id, page));
            }
            let is_new = first_pages.insert(media.flash.oob.sequence(id, 0));
            assert!(is_new, "the first page of block {id} has a number that another has, too");
            self.to_erase.push(id);
            if media.flash.blocks.readable(media.ppn_at(header))
                && let Some(header) = Header::of(media, id, self.data_pages)
            {
                blocks.push(Block { id, header });
            }
        }
        // Oldest first.
        blocks.sort_by_key(|block| block.header.sequence);
        let interrupted = blocks.iter().filter(|block| self.is_interrupted(media, block, &first_pages));
        let forgotten: Vec<BlockId> = interrupted.map(|block| block.id).collect();
        blocks.retain(|block| !forgotten.contains(&block.id));
        let mut of_logical: BTreeMap<u32, Vec<&Block>> = BTreeMap::new();
        for block in &blocks {
            of_logical.entry(block.header.logical).or_default().push(block);
        }
        let pages = self.newest_pages(media, &of_logical, &forgotten);
        for (logical, blocks) in of_logical.iter().filter(|(logical, _)| **logical != NONE) {
            self.settle(media, *logical, blocks, &pages);
        }
        for (lpn, page) in &pages {
            self.set_mapped(*lpn, true);
            media.pool.add_valid(media.block_of_page(*page));
            let (logical, offset) = self.split(*lpn);
            let data_block = self.data_blocks[logical as usize].block;
            if data_block == BlockId::NONE || *page != self.first_page(data_block) + 1 + offset {
                self.displaced.insert(*lpn, *page);
            }
        }
        self.find_logs(media, &blocks);
        assert!(newest < 1 << 47, "a page has number {newest}");
        media.set_sequence(newest + IN_FLIGHT);
    }

    /// Whether a block is of a merge that says nothing new, that did not come to its end, and whose sources are all there: what it
    /// copied is where it was. Where a program of the merge failed its sources may be gone.
    fn is_interrupted(&self, media: &Media, block: &Block, first_pages: &BTreeSet<u64>) -> bool {
        let Block { id, header } = block;
        let has = |offset: u32| self.lpn_at(media, *id, offset).is_some();
        let lacks = (0..header.pages).any(|offset| header.has_held(offset) && !has(offset));
        header.role == Role::Copy
            && lacks
            && !(header.pages..self.data_pages).any(has)
            && header.sources.iter().all(|source| first_pages.contains(source))
    }

    /// The LPN of a page behind the header, if the page can be read and holds one.
    fn lpn_at(&self, media: &Media, block: BlockId, offset: u32) -> Option<Lpn> {
        let place = Place { block, page: offset + 1 };
        let is_there = media.flash.is_written(block, place.page) && media.flash.blocks.readable(media.ppn_at(place));
        let lpn = media.flash.oob.lpn(media.unit_at(place));
        (is_there && lpn != Lpn::NONE).then_some(lpn)
    }

    /// Of each LPN that holds data the page.
    fn newest_pages(
        &self,
        media: &Media,
        of_logical: &BTreeMap<u32, Vec<&Block>>,
        forgotten: &[BlockId],
    ) -> BTreeMap<Lpn, Ppn> {
        let mut newest: BTreeMap<Lpn, (u64, Ppn)> = BTreeMap::new();
        for block in self.to_erase.iter().filter(|block| !forgotten.contains(block)) {
            for offset in 0..self.data_pages {
                let Some(lpn) = self.lpn_at(media, *block, offset) else { continue };
                assert!(lpn.0 < self.user_units, "block {block} names LPN {lpn}, behind the map");
                let sequence = media.flash.oob.sequence(*block, offset + 1);
                let (logical, at) = self.split(lpn);
                let headers = of_logical.get(&logical).into_iter().flatten();
                if headers.map(|block| &block.header).any(|header| header.hides(at, sequence)) {
                    continue;
                }
                let page = self.first_page(*block) + 1 + offset;
                let entry = newest.entry(lpn).or_insert((sequence, page));
                if sequence > entry.0 {
                    *entry = (sequence, page);
                }
            }
        }
        newest.into_iter().map(|(lpn, (_, page))| (lpn, page)).collect()
    }

    /// Which of the blocks of a logical block is its data block: the newest, or a log block with all of its pages in order.
    fn settle(&mut self, media: &mut Media, logical: u32, blocks: &[&Block], pages: &BTreeMap<Lpn, Ppn>) {
        let first = self.first_of(logical);
        let within = self.pages_of(logical);
        let in_order = |block: BlockId| {
            (0..within).all(|offset| self.lpn_at(media, block, offset) == Some(first + offset))
                && Lpn::each(first..first + within).all(|lpn| pages.contains_key(&lpn))
        };
        let is_data_block = |block: &&&Block| block.header.role != Role::Log || in_order(block.id);
        let Some(data_block) = blocks.iter().rev().find(is_data_block).map(|block| block.id) else { return };
        let programmed = media.flash.blocks.get(data_block).programmed - 1;
        assert!(programmed <= self.data_pages, "data block {data_block} has {programmed} pages of {}", self.data_pages);
        assert_eq!(
            self.data_blocks[logical as usize].block,
            BlockId::NONE,
            "logical block {logical} has two data blocks"
        );
        self.data_blocks[logical as usize] = DataBlock { block: data_block, pages: programmed };
        self.to_erase.retain(|other| *other != data_block);
        media.pool.add_valid(data_block);
    }

    /// Log blocks with pages that count, up to as many as there may be; what others have is merged.
    fn find_logs(&mut self, media: &Media, blocks: &[Block]) {
        // The newest first.
        let mut found: Vec<Log> = Vec::new();
        for block in blocks.iter().rev().filter(|block| block.header.role == Role::Log) {
            let Header { logical, .. } = block.header;
            let is_data_block = logical != NONE && self.data_blocks[logical as usize].block == block.id;
            let sole = match self.scheme {
                super::Scheme::Bast => found.iter().all(|log| log.logical != logical),
                super::Scheme::Fast => logical == NONE || found.iter().all(|log| log.logical == NONE),
            };
            let counts = media.pool.valid(block.id.0) > 0;
            if is_data_block || !sole || !counts || found.len() as u32 >= self.most_logs {
                continue;
            }
            let pages = media.flash.blocks.get(block.id).programmed - 1;
            let lpns = (0..pages).map(|offset| self.lpn_at(media, block.id, offset).unwrap_or(Lpn::NONE)).collect();
            self.to_erase.retain(|other| *other != block.id);
            found.push(Log { block: block.id, logical, lpns, used: 0 });
        }
        self.clock = found.len() as u64;
        for (used, log) in found.into_iter().rev().enumerate() {
            let log = Log { used: used as u64, ..log };
            self.logs.add(log).unwrap_or_else(|log| panic!("logical block {} has two log blocks", log.logical));
        }
        assert!(self.logs.len() as u32 <= self.most_logs, "{} log blocks of {}", self.logs.len(), self.most_logs);
    }
}

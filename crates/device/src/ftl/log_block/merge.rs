//! Merges: a logical block gets one data block again.
//!
//! - *Switch*: its log block has all of its pages in order, and becomes the data block.
//! - *Partial*: its log block has the first pages in order; the others are copied behind them, and it becomes the data block.
//! - *Full*: the newest of each page is copied to a new block.
//!
//! Where a logical block holds nothing in some of its pages only a full merge is made: the header of its new block then says
//! so, and what older blocks have of them is meaningless.

use ssdlab_flash::{BlockId, Cause, Lpn, NONE, Ppn};

use super::header::{Header, Role, bits};
use super::logs::LogNumber;
use super::{DataBlock, LogBlockFtl};
use crate::block_pool::BlockState;
use crate::ftl::NoSpace;
use crate::ftl::whole_pages::{self, Page};
use crate::media::{Media, Place};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// Why a logical block is merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Why {
    /// The cause of the copies.
    pub(super) cause: Cause,
    /// The host can wait: the reserve is left alone.
    pub(super) for_host: bool,
    /// All of it is on flash already: a merge that is interrupted may be forgotten.
    pub(super) is_copy: bool,
}

impl Why {
    /// A log block is needed for the host's data.
    pub(super) const LOG: Why = Why { cause: Cause::Merge, for_host: true, is_copy: true };
    /// A page of it failed: what is in RAM goes to a new block.
    pub(super) const FAILED: Why = Why { cause: Cause::Retirement, for_host: false, is_copy: false };
}

impl LogBlockFtl {
    /// Gets rid of a log block. `Err` leaves a drive that can go on.
    pub(super) fn merge_log(&mut self, media: &mut Media, number: LogNumber) -> Result<(), NoSpace> {
        self.forget_settled(media);
        let block = self.logs[number].block;
        let logical = self.logs[number].logical;
        if logical == NONE {
            for lpn in self.logs[number].lpns.clone() {
                if lpn != Lpn::NONE && self.is_mapped(lpn) && media.block_of_page(self.page_of(lpn)) == block {
                    self.full_merge(media, self.split(lpn).0, Why::LOG)?;
                    self.merges.full += 1;
                }
            }
            self.drop_log(media, block);
            return Ok(());
        }
        if !self.is_in_order(media, number) {
            self.full_merge(media, logical, Why::LOG)?;
            self.merges.full += 1;
            return Ok(());
        }
        let within = self.pages_of(logical);
        if (self.logs[number].lpns.len() as u32) < within {
            self.fill_up(media, number);
            self.merges.partial += 1;
        } else {
            self.merges.switch += 1;
        }
        self.promote_log_block(media, number);
        Ok(())
    }

    /// Whether a log block has the first pages of its logical block in order, and may become its data block: every page of the
    /// logical block holds data, and nothing older can come to light when the old data block goes.
    fn is_in_order(&self, media: &Media, number: LogNumber) -> bool {
        let log = &self.logs[number];
        let first = self.first_of(log.logical);
        let within = self.pages_of(log.logical);
        let in_order =
            log.lpns.iter().enumerate().all(|(page, lpn)| *lpn == first + page as u32 || seeded(Bug::SwitchOutOfOrder));
        // A merge that a power cut interrupted may have newer copies in the data block.
        let is_newer = |lpn: &Lpn| *lpn != Lpn::NONE && self.is_mapped(*lpn) && self.displaced.contains_key(lpn);
        let in_order = in_order && log.lpns.iter().all(is_newer);
        let can_go_on = log.lpns.len() as u32 == within
            || media.pool.state(log.block.0) == BlockState::Open && !media.flash.blocks.get(log.block).suspect;
        let all = Lpn::each(first..first + within).all(|lpn| self.is_mapped(lpn));
        let all = all && !self.revived.iter().any(|(lpn, _)| self.split(*lpn).0 == log.logical);
        !log.lpns.is_empty() && in_order && can_go_on && (all || seeded(Bug::SwitchForgetsTrims))
    }

    /// Copies the pages that a log block does not have behind those that it has.
    fn fill_up(&mut self, media: &mut Media, number: LogNumber) {
        let (block, logical) = (self.logs[number].block, self.logs[number].logical);
        let first = self.first_of(logical);
        let left = self.blocks_with(media, logical);
        assert_eq!(media.pool.state(block.0), BlockState::Open, "log block {block} is filled up");
        for offset in self.logs[number].lpns.len() as u32..self.pages_of(logical) {
            let lpn = first + offset;
            let place = Place { block, page: offset + 1 };
            if !self.is_mapped(lpn) {
                whole_pages::pad(media, &Page { place, pins: &left, ..Page::OF_OWN_BLOCK }, Cause::Merge);
                self.logs.give_page(number, Lpn::NONE);
                continue;
            }
            let source = self.page_of(lpn);
            whole_pages::copy_page(
                media,
                &Page { place, lpn, source, pins: &left, ..Page::OF_OWN_BLOCK },
                Cause::Merge,
                Waiter::None,
            );
            self.set_page(media, lpn, media.ppn_at(place));
            self.logs.give_page(number, lpn);
            self.copied_pages += 1;
        }
        media.end_block(block, 1 + self.logs[number].lpns.len() as u32);
    }

    /// A log block with all pages of its logical block in order is its data block from now on.
    fn promote_log_block(&mut self, media: &mut Media, number: LogNumber) {
        let log = self.logs.remove(number);
        assert_ne!(log.logical, NONE, "log block {} is of any logical block, and becomes a data block", log.block);
        assert_eq!(log.lpns.len() as u32, self.pages_of(log.logical), "log block {} lacks pages", log.block);
        if media.pool.state(log.block.0) == BlockState::Open {
            media.end_block(log.block, 1 + log.lpns.len() as u32);
        }
        let old = self.data_blocks[log.logical as usize];
        assert_ne!(old.block, log.block, "log block {} is a data block", log.block);
        media.pool.add_valid(log.block);
        self.data_blocks[log.logical as usize] = DataBlock { block: log.block, pages: log.lpns.len() as u32 };
        for (offset, lpn) in log.lpns.iter().enumerate() {
            let page = self.first_page(log.block) + 1 + offset as u32;
            if self.displaced.get(lpn) == Some(&page) {
                self.displaced.remove(lpn);
            }
        }
        // What the old data block has and was trimmed stays there until the trims are saved: no page of it is mapped there.
        if old.block != BlockId::NONE {
            self.release_data_block(media, old);
        }
    }

    /// Moves a logical block to a new data block; `Err` leaves everything as it was.
    pub(super) fn full_merge(&mut self, media: &mut Media, logical: u32, why: Why) -> Result<(), NoSpace> {
        self.forget_settled(media);
        let first = self.first_of(logical);
        let within = self.pages_of(logical);
        let source_of = |lpn| if self.is_mapped(lpn) { self.page_of(lpn) } else { Ppn::NONE };
        let sources: Vec<Ppn> = Lpn::each(first..first + within).map(source_of).collect();
        let pages = sources.iter().rposition(|source| *source != Ppn::NONE).map_or(0, |last| last as u32 + 1);
        let all_on_flash = sources.iter().all(|source| *source == Ppn::NONE || media.is_on_flash(*source));
        let holds = |offset: u32| sources.get(offset as usize).is_some_and(|source| *source != Ppn::NONE);
        let is_copy = why.is_copy && all_on_flash && !self.trimmed.contains(&logical);
        let is_copy = is_copy && self.is_recoverable(media, logical);
        let revived = self.revived.iter().filter(|(lpn, _)| self.split(**lpn).0 == logical);
        let left = self.blocks_with(media, logical);
        let number = |block: &BlockId| media.flash.oob.sequence(*block, 0);
        let header = Header {
            role: if is_copy { Role::Copy } else { Role::Data },
            logical,
            pages,
            sequence: 0,
            revived: revived.map(|(lpn, since)| (*lpn - first, *since)).collect(),
            sources: if is_copy { left.iter().map(number).collect() } else { Vec::new() },
            held: bits(self.data_pages, |offset| holds(offset) || seeded(Bug::HeaderTellsNoTrims)),
        };
        let target = self.begin_block(media, &header, &left, why.for_host)?;
        // From here on nothing fails.
        assert!(pages <= within, "logical block {logical} has {pages} pages of {within}");
        assert!(!left.contains(&target), "block {target} is merged into itself");
        let old = self.data_blocks[logical as usize];
        assert_ne!(old.block, target, "logical block {logical} is merged into its own data block");
        media.pool.add_valid(target);
        self.data_blocks[logical as usize] = DataBlock { block: target, pages };
        let pins = if seeded(Bug::MergePinsDataBlock) { &left[..left.len().min(1)] } else { &left[..] };
        for offset in 0..pages {
            let (source, lpn) = (sources[offset as usize], first + offset);
            let place = Place { block: target, page: offset + 1 };
            if source == Ppn::NONE {
                whole_pages::pad(media, &Page { place, source, pins, ..Page::OF_OWN_BLOCK }, why.cause);
                continue;
            }
            whole_pages::copy_page(
                media,
                &Page { place, lpn, source, pins, ..Page::OF_OWN_BLOCK },
                why.cause,
                Waiter::None,
            );
            self.displaced.remove(&lpn);
            media.pool.add_valid(target);
            self.drop_page(media, media.block_of_page(source));
            self.copied_pages += 1;
        }
        if pages == self.data_pages {
            media.end_block(target, pages + 1);
        }
        // The header says what was trimmed.
        for block in self.held.remove(&logical).unwrap_or_default() {
            self.drop_page(media, block);
        }
        self.trimmed.retain(|other| *other != logical);
        if old.block != BlockId::NONE {
            self.release_data_block(media, old);
        }
        if let Some(number) = self.logs.of_logical(logical) {
            self.drop_log(media, self.logs[number].block);
        }
        Ok(())
    }

    /// Whether recovery would find the header of a logical block's data block, and what that says of trims.
    fn is_recoverable(&self, media: &Media, logical: u32) -> bool {
        let data_block = self.data_blocks[logical as usize].block;
        data_block == BlockId::NONE || media.is_on_flash(self.first_page(data_block))
    }

    /// Blocks that a logical block is in, its data block first.
    fn blocks_with(&self, media: &Media, logical: u32) -> Vec<BlockId> {
        let first = self.first_of(logical);
        let data_block = self.data_blocks[logical as usize].block;
        let mapped = Lpn::each(first..first + self.pages_of(logical)).filter(|lpn| self.is_mapped(*lpn));
        let held = self.held.get(&logical).into_iter().flatten().copied();
        let mut blocks: Vec<BlockId> = mapped.map(|lpn| media.block_of_page(self.page_of(lpn))).chain(held).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.retain(|block| *block != data_block);
        if data_block != BlockId::NONE {
            blocks.insert(0, data_block);
        }
        blocks
    }

    /// A data block is one no more.
    fn release_data_block(&mut self, media: &mut Media, data_block: DataBlock) {
        assert!(media.pool.valid(data_block.block.0) > 0, "data block {} has no valid header", data_block.block);
        media.pool.drop_valid(data_block.block);
        if media.pool.state(data_block.block.0) == BlockState::Open {
            media.end_block(data_block.block, data_block.pages + 1);
        }
        self.retire_block(media, data_block.block);
    }

    /// A log block takes no more pages, and is none any more.
    pub(super) fn drop_log(&mut self, media: &mut Media, block: BlockId) {
        let Some(number) = self.logs.of_block(block) else { return };
        let log = self.logs.remove(number);
        assert!(log.lpns.len() as u32 <= self.data_pages, "log block {block} has {} pages", log.lpns.len());
        if media.pool.state(block.0) == BlockState::Open {
            media.end_block(block, 1 + log.lpns.len() as u32);
        }
        self.retire_block(media, block);
    }

    /// A block is to be erased.
    fn retire_block(&mut self, media: &mut Media, block: BlockId) {
        if !self.to_erase.contains(&block) {
            self.to_erase.push(block);
        }
        media.wakes.groups.push(media.group_of(block));
    }

    /// A page of a block is not needed any more.
    pub(super) fn drop_page(&mut self, media: &mut Media, block: BlockId) {
        media.pool.drop_valid(block);
        if self.to_erase.contains(&block) {
            media.wakes.groups.push(media.group_of(block));
        }
    }

    /// An LPN that holds data is in another page from now on, at its place in the data block to be or in a log.
    pub(super) fn set_page(&mut self, media: &mut Media, lpn: Lpn, page: Ppn) {
        assert!(self.is_mapped(lpn), "LPN {lpn} is moved, and holds nothing");
        assert_ne!(self.page_of(lpn), page, "LPN {lpn} is moved to where it is");
        let before = media.block_of_page(self.page_of(lpn));
        media.pool.add_valid(media.block_of_page(page));
        self.displaced.insert(lpn, page);
        self.drop_page(media, before);
    }

    /// Opens a block and programs its header. Where that fails at once the next block is taken.
    pub(super) fn begin_block(
        &mut self,
        media: &mut Media,
        header: &Header,
        left: &[BlockId],
        for_host: bool,
    ) -> Result<BlockId, NoSpace> {
        loop {
            let kept = if for_host { self.reserve } else { 0 };
            if media.free_blocks() <= kept {
                return Err(NoSpace);
            }
            let group = media.pool.group_with_most_free(self.next_group);
            let block = media.open_block(group).ok_or(NoSpace)?;
            assert!(self.logs.of_block(block).is_none(), "block {block} was free, and is a log block");
            self.next_group = (group + 1) % media.pool.groups();
            self.to_erase.retain(|other| *other != block);
            assert!(!left.contains(&block), "block {block} was free, and is merged from");
            let place = Place { block, page: 0 };
            media.flash.oob.put_record(media.unit_at(place), header.words());
            let page = Page { place, pins: left, ..Page::OF_OWN_BLOCK };
            whole_pages::program(media, &page, NONE, Cause::Metadata, Waiter::None);
            if media.flash.timed() || media.flash.blocks.readable(media.ppn_at(place)) {
                return Ok(block);
            }
            media.end_block(block, 1);
        }
    }
}

//! The merge: a logical block goes into a new physical block. It is how pages are overwritten, trims are saved, failed
//! programs are repeated, blocks that go bad are emptied, and what a power cut interrupted is brought to its end.

use ssdlab_flash::{BlockId, Cause, Lpn, NONE, Ppn};

use super::header::{Header, bits};
use super::{BlockFtl, DataBlock};
use crate::block_pool::BlockState;
use crate::ftl::whole_pages::{self, Page};
use crate::ftl::{NoSpace, UnitWrite};
use crate::media::{Media, Place};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// Why a logical block is merged, and what goes into it.
pub(super) struct Merge<'a> {
    /// A page that the host overwrites or writes out of order.
    pub(super) new: Option<UnitWrite<'a>>,
    /// The cause of that page, and who waits for it.
    pub(super) new_cause: Cause,
    pub(super) owner: Waiter,
    /// The cause of the copies.
    pub(super) cause: Cause,
    /// The host can wait: the reserve is left alone.
    pub(super) for_host: bool,
    /// All of it is on flash already: a merge that is interrupted may be forgotten.
    pub(super) is_copy: bool,
}

impl Merge<'_> {
    /// A merge that host writes pay for, with nothing new.
    pub(super) const fn of_host() -> Self {
        let (cause, owner) = (Cause::Merge, Waiter::None);
        Merge { new: None, new_cause: Cause::Host, owner, cause, for_host: true, is_copy: false }
    }
}

impl BlockFtl {
    /// Moves a logical block; `Err` leaves everything as it was.
    pub(super) fn merge(&mut self, media: &mut Media, logical: u32, merge: &Merge<'_>) -> Result<(), NoSpace> {
        let first = Lpn(logical * self.data_pages);
        let within = self.data_pages.min(self.user_units - first.0);
        let units = Lpn::each(first..first + within);
        let source_of = |lpn| if self.is_mapped(lpn) { self.page_of(lpn) } else { Ppn::NONE };
        let sources: Vec<Ppn> = units.map(source_of).collect();
        let new = merge.new.map(|unit| unit.lpn - first);
        let is_written =
            |offset: u32| new == Some(offset) || sources.get(offset as usize).is_some_and(|s| *s != Ppn::NONE);
        let pages = (0..within).rev().find(|offset| is_written(*offset)).map_or(0, |last| last + 1);
        let old = self.data_blocks[logical as usize];
        let before = Some(old.block).filter(|block| *block != BlockId::NONE);
        let before = before.and_then(|block| Header::of(media, block, self.data_pages));
        // While its header is not on flash the old block has nothing that would be found: what it inherits counts instead.
        let is_found = old.block != BlockId::NONE && media.is_on_flash(self.first_page(old.block));
        let inherits = |offset: u32| {
            let source = sources.get(offset as usize).copied().unwrap_or(Ppn::NONE);
            if seeded(Bug::HeaderForgetsTrims) && source == Ppn::NONE {
                return is_found && offset < old.pages;
            }
            source != Ppn::NONE
                && (is_found && media.is_on_flash(source) || before.as_ref().is_some_and(|old| old.inherits(offset)))
        };
        let all_found = is_found && sources.iter().all(|source| *source == Ppn::NONE || media.is_on_flash(*source));
        let split = self.splits.get(&logical);
        let mut left: Vec<BlockId> = split.map_or_else(Vec::new, |split| split.older.clone());
        left.extend(Some(old.block).filter(|block| *block != BlockId::NONE));
        let header = Header {
            sequence: 0,
            logical,
            pages,
            // Trims that no header on flash tells of are something new.
            is_copy: merge.is_copy && all_found && !self.trimmed.contains(&logical),
            inherited: bits(self.data_pages, inherits),
            written: bits(self.data_pages, is_written),
        };
        let target = self.begin_block(media, header, &left, merge.for_host)?;
        // From here on nothing fails.
        assert!(!left.contains(&target), "block {target} is merged into itself");
        media.pool.add_valid(target);
        if old.block != BlockId::NONE {
            media.pool.drop_valid(old.block);
        }
        let pins = if seeded(Bug::MergeKeepsNewestOnly) { &left[left.len().saturating_sub(1)..] } else { &left };
        for offset in 0..pages {
            let source = sources[offset as usize];
            let page = Page { place: Place { block: target, page: offset + 1 }, source, pins, ..Page::OF_OWN_BLOCK };
            match merge.new.filter(|_| new == Some(offset)) {
                Some(unit) => {
                    whole_pages::write_page(media, &unit, &page, merge.new_cause, merge.owner);
                    self.set_mapped(unit.lpn, true);
                }
                None if source == Ppn::NONE => whole_pages::pad(media, &page, merge.cause),
                None => whole_pages::copy_page(media, &page, merge.cause, Waiter::None),
            }
            if is_written(offset) {
                media.pool.add_valid(target);
            }
            if source != Ppn::NONE {
                media.pool.drop_valid(media.block_of_page(source));
            }
        }
        assert!(pages <= self.data_pages, "logical block {logical} has {pages} pages of {}", self.data_pages);
        self.data_blocks[logical as usize] = DataBlock { block: target, pages };
        self.splits.remove(&logical);
        self.trimmed.retain(|other| *other != logical);
        if pages == self.data_pages {
            media.end_block(target, pages + 1);
        }
        for block in left {
            if media.pool.state(block.0) == BlockState::Open {
                media.end_block(block, old.pages + 1);
            }
            if !self.to_erase.contains(&block) {
                self.to_erase.push(block);
            }
            media.wakes.groups.push(media.group_of(block));
        }
        self.merges += 1;
        self.merged_pages += u64::from(pages);
        Ok(())
    }

    /// Programs the next page of a logical block.
    pub(super) fn append(&mut self, media: &mut Media, unit: &UnitWrite<'_>, cause: Cause, owner: Waiter) {
        let (logical, offset) = self.split(unit.lpn);
        let block = self.data_blocks[logical as usize].block;
        assert!(!self.is_mapped(unit.lpn), "LPN {} holds data, and is appended", unit.lpn);
        let page = Page { place: Place { block, page: offset + 1 }, ..Page::OF_OWN_BLOCK };
        whole_pages::write_page(media, unit, &page, cause, owner);
        media.pool.add_valid(block);
        self.set_mapped(unit.lpn, true);
        self.data_blocks[logical as usize].pages = offset + 1;
        if offset + 1 == self.data_pages {
            media.end_block(block, offset + 2);
        }
        self.appended_pages += 1;
    }

    /// Opens a block and programs its header. A header cannot be written again without the whole block, so where its program
    /// fails at once the next block is taken.
    fn begin_block(
        &mut self,
        media: &mut Media,
        mut header: Header,
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
            assert!(!self.is_needed(block), "block {block} was free, and is needed");
            self.next_group = (group + 1) % media.pool.groups();
            self.to_erase.retain(|other| *other != block);
            self.owners[block.index()] = header.logical;
            header.sequence = media.sequence();
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

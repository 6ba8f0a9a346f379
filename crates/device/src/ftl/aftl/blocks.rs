//! The blocks of segments: which is allocated, and how a bad one is replaced.

use ssdlab_flash::{BlockId, Cause, NONE};

use super::{Aftl, Dead};
use crate::block_pool::BlockState;
use crate::ftl::whole_pages::{self, Page};
use crate::ftl::{NoSpace, UnitWrite};
use crate::media::{Media, Place};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

impl Aftl {
    /// Blocks of a lane that can be opened.
    pub(super) fn free_in(&self, media: &Media, lane: u32) -> u32 {
        let free: u32 = self.layout.groups(lane).map(|group| media.pool.free_blocks(group)).sum();
        free + self.unused[lane as usize].len() as u32
    }

    /// Blocks of a lane that can be opened, now or once their erase is done.
    pub(super) fn free_or_erasing_in(&self, media: &Media, lane: u32) -> u32 {
        let free: u32 = self.layout.groups(lane).map(|group| media.pool.free_or_erasing(group)).sum();
        free + self.unused[lane as usize].len() as u32
    }

    /// The lane with most free blocks, the first of equals.
    pub(super) fn most_free_lane(&self, media: &Media) -> u32 {
        (0..self.layout.lanes).rev().max_by_key(|lane| self.free_in(media, *lane)).unwrap_or(0)
    }

    /// Opens the least worn free block of a lane that has more than `kept` of them.
    pub(super) fn open_in(&mut self, media: &mut Media, lane: u32, kept: u32) -> Result<BlockId, NoSpace> {
        if self.free_in(media, lane) <= kept {
            return Err(NoSpace);
        }
        if let Some(block) = self.unused[lane as usize].pop() {
            return Ok(block);
        }
        let wear = |group: &u32| media.pool.next_free(*group).map(|block| media.pool.wear(block, &media.flash));
        let groups = self.layout.groups(lane).filter(|group| media.pool.free_blocks(*group) > 0);
        let group = groups.min_by_key(|group| (wear(group), *group)).ok_or(NoSpace)?;
        let block = media.open_block(group).ok_or(NoSpace)?;
        self.was_opened(media, block);
        Ok(block)
    }

    /// A block is open: what was in it is erased, and counts no more before it is written.
    fn was_opened(&mut self, media: &Media, block: BlockId) {
        self.trims.settle(media);
        let dead = self.dead[media.group_of(block) as usize].iter().chain(&self.trims.erasing);
        let is_listed = dead.filter(|dead| dead.block == block).count() > 0;
        assert!(!is_listed, "block {block} was free, and is to be erased");
    }

    /// A block holds nothing any more, and is to be erased.
    pub(super) fn add_dead(&mut self, media: &mut Media, dead: Dead) {
        let group = media.group_of(dead.block);
        assert_eq!(media.pool.valid(dead.block.0), 0, "block {} is to be erased, and holds pages", dead.block);
        if dead.segment != NONE {
            let held = self.trims.held.entry(dead.segment).or_default();
            held.blocks += 1;
            held.trim = held.trim.max(dead.trim);
        }
        self.dead[group as usize].push(dead);
        media.wakes.groups.push(group);
    }

    /// Allocates the blocks that a segment lacks: all of them at its first write, in a new generation.
    pub(super) fn allocate(&mut self, media: &mut Media, segment: u32) -> Result<(), NoSpace> {
        let lacking: Vec<u32> =
            (0..self.layout.lanes).filter(|lane| self.home(segment, *lane) == BlockId::NONE).collect();
        assert!(!lacking.is_empty(), "segment {segment} has all its blocks");
        self.trims.settle(media);
        let begins = lacking.len() == self.layout.lanes as usize && self.written[segment as usize] == 0;
        let generation = self.next_generation(segment);
        // Sixteen generations ago the segment had the same one.
        let is_taken =
            |dead: &Dead| dead.segment == segment && self.generation_of(media, dead.block) == Some(generation);
        let is_held = self.trims.held.contains_key(&segment);
        let taken = begins && is_held && self.dead.iter().flatten().chain(&self.trims.erasing).any(is_taken);
        if taken || lacking.iter().any(|lane| self.free_in(media, *lane) <= self.reserve) {
            self.wants_blocks(media, segment, taken);
            return Err(NoSpace);
        }
        assert!(!self.is_closed(segment), "closed segment {segment} is written");
        if begins {
            self.generations[segment as usize] = generation as u8;
        }
        for lane in lacking {
            // Where an image's host has no space, the lanes before have their blocks.
            let block = self.open_in(media, lane, self.reserve)?;
            self.set_home(segment, lane, block);
        }
        Ok(())
    }

    fn next_generation(&self, segment: u32) -> u32 {
        (u32::from(self.generations[segment as usize]) + 1) % self.layout.generations
    }

    /// Free blocks are short: what holds them is erased, after a record of the trims that made it dead.
    fn wants_blocks(&mut self, media: &mut Media, segment: u32, of_segment: bool) {
        if of_segment {
            self.urgent = Some(segment);
        }
        self.trims.settle(media);
        if !self.trims.unrecorded.is_empty() && !self.trims.is_writing() {
            // Where there is no room for a record either, the next try comes when a block is free.
            let _ = self.write_record(media);
        }
        media.wakes.groups.extend(0..media.pool.groups());
    }

    /// The generation that a block says it is of.
    fn generation_of(&self, media: &Media, block: BlockId) -> Option<u32> {
        let programmed = media.flash.blocks.get(block).programmed;
        let lpn = media.flash.oob.lpn(media.unit_at(Place { block, page: programmed.checked_sub(1)? }));
        self.layout.untagged(lpn).map(|(_, _, generation)| generation)
    }

    /// Programs the next page of a segment.
    pub(super) fn append(&self, media: &mut Media, write: &UnitWrite<'_>, place: Place, cause: Cause, owner: Waiter) {
        let (segment, page) = self.layout.split(write.lpn);
        let lpn = self.layout.tagged(segment, page, self.generations[segment as usize].into());
        let page = Page { place, lpn, ..Page::OF_OWN_BLOCK };
        whole_pages::write_page(media, write, &page, cause, owner);
    }

    /// A new block takes the place of a segment's block in a lane, with all of its pages. `Err` leaves everything as it was.
    pub(super) fn replace(&mut self, media: &mut Media, segment: u32, lane: u32, cause: Cause) -> Result<(), NoSpace> {
        let old = self.home(segment, lane);
        assert!(!self.is_closed(segment), "block {old} of closed segment {segment} is replaced");
        let pages = self.layout.pages_in_lane(lane, self.written[segment as usize]);
        let new = match cause {
            Cause::WearLevelling => media.open_most_worn(media.group_of(old)).ok_or(NoSpace)?,
            _ => self.open_in(media, lane, 0)?,
        };
        self.was_opened(media, new);
        assert_ne!(old, new, "block {old} of segment {segment} is replaced by itself");
        let pins = if seeded(Bug::ReplacedBlockNotPinned) { &[][..] } else { &[old][..] };
        let generation = self.generations[segment as usize].into();
        for offset in 0..pages {
            let source = media.ppn_at(Place { block: old, page: offset });
            let lpn = self.layout.tagged(segment, self.layout.page_at(lane, offset), generation);
            let page = Page { place: Place { block: new, page: offset }, lpn, source, pins, ..Page::OF_OWN_BLOCK };
            whole_pages::copy_page(media, &page, cause, Waiter::None);
            media.pool.add_valid(new);
            media.pool.drop_valid(old);
        }
        self.set_home(segment, lane, new);
        if pages > 0 && media.pool.state(old.0) == BlockState::Open {
            media.end_block(old, pages);
        }
        if pages == self.layout.pages_per_block {
            media.end_block(new, pages);
        }
        self.add_dead(media, Dead { block: old, segment, trim: 0 });
        self.replaced_blocks += 1;
        self.replaced_pages += u64::from(pages);
        Ok(())
    }

    /// A segment has no block any more: what it had is dead, at this trim.
    pub(super) fn give_up_blocks(&mut self, media: &mut Media, segment: u32) {
        self.trims.settle(media);
        let trim = media.sequence();
        assert!(
            trim > self.trims.covers,
            "a trim has number {trim}, and those up to {} are on flash",
            self.trims.covers
        );
        let written = self.written[segment as usize];
        let closed = self.closed.remove(&segment);
        for lane in 0..self.layout.lanes {
            let block = self.home(segment, lane);
            if block == BlockId::NONE {
                continue;
            }
            self.set_home(segment, lane, BlockId::NONE);
            let programmed = media.flash.blocks.get(block).programmed;
            let issued = if closed.is_some() { programmed } else { self.layout.pages_in_lane(lane, written) };
            if issued == 0 {
                self.unused[lane as usize].push(block);
                continue;
            }
            self.leaves(media, block, issued, Dead { block, segment, trim });
        }
        for block in closed.into_iter().flat_map(|closed| closed.others) {
            let programmed = media.flash.blocks.get(block).programmed;
            self.leaves(media, block, programmed, Dead { block, segment, trim });
        }
        if let Some(held) = self.trims.held.get_mut(&segment) {
            held.trim = trim;
            if !self.trims.unrecorded.contains(&segment) {
                self.trims.unrecorded.push(segment);
            }
        }
    }

    fn leaves(&mut self, media: &mut Media, block: BlockId, issued: u32, dead: Dead) {
        while media.pool.valid(block.0) > 0 {
            media.pool.drop_valid(block);
        }
        if media.pool.state(block.0) == BlockState::Open {
            media.end_block(block, issued);
        }
        self.add_dead(media, dead);
    }
}

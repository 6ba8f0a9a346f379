//! Write frontiers: each is a superblock of a group that is open for one purpose, and gives out its pages in order.

use ssdlab_flash::{BlockId, NONE};

use super::{Media, Place};
use crate::block_pool::{BlockKind, BlockState};
use crate::seeded::{Bug, seeded};
use crate::superblocks::Role;

/// Which frontier a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontier {
    /// Host data of a stream.
    Host(u16),
    /// Relocations.
    Gc,
    /// Map pages, in blocks of their own.
    Map,
    /// Units whose names are not final, in blocks of their own.
    Log,
}

impl Frontier {
    /// Where what is valid in a block of a kind is moved.
    pub(crate) const fn of_relocation(kind: BlockKind) -> Frontier {
        match kind {
            BlockKind::Data => Frontier::Gc,
            BlockKind::Map => Frontier::Map,
            BlockKind::Log => Frontier::Log,
        }
    }

    /// The kind of blocks that it is on.
    pub(super) const fn kind(self) -> BlockKind {
        match self {
            Frontier::Host(_) | Frontier::Gc => BlockKind::Data,
            Frontier::Map => BlockKind::Map,
            Frontier::Log => BlockKind::Log,
        }
    }
}

/// A write frontier: the superblock, and how many of its pages were given out.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBlock {
    pub(super) block: u32,
    pub(super) next_page: u32,
}

pub(super) const CLOSED: OpenBlock = OpenBlock { block: NONE, next_page: 0 };

impl Media {
    /// The number of the frontier in its group's row.
    #[inline]
    pub(super) fn slot(&self, group: u32, frontier: Frontier) -> usize {
        let index = match frontier {
            Frontier::Host(stream) => u32::from(stream).min(self.streams - 1),
            Frontier::Gc if self.separate_gc => self.streams,
            Frontier::Gc => 0,
            Frontier::Map => self.streams + 1,
            Frontier::Log => self.streams + 2,
        };
        debug_assert!(index < self.row, "a drive without blocks of a kind has no frontier for them");
        (group * self.row + index) as usize
    }

    /// The page that a frontier gives out next.
    #[inline]
    fn place_next(&self, slot: usize, open: OpenBlock) -> Place {
        match self.skipped_pages[slot].front() {
            Some((place, _)) => *place,
            None => self.pool.superblocks.place(open.block, open.next_page),
        }
    }

    /// Gives out the next page of a frontier, opening a superblock if need be.
    #[inline]
    pub(crate) fn take_page(&mut self, group: u32, frontier: Frontier) -> Option<Place> {
        self.has_page(group, frontier).then(|| self.take_seen_page(group, frontier))
    }

    /// Gives out the next page of a frontier that was seen to have one just now, opening a superblock if need be.
    #[inline]
    pub(crate) fn take_seen_page(&mut self, group: u32, frontier: Frontier) -> Place {
        let slot = self.slot(group, frontier);
        let mut open = self.frontiers[slot];
        if open.block == NONE {
            open = self.open_superblock(group, frontier);
        }
        debug_assert_eq!(
            self.pool.state(open.block),
            BlockState::Open,
            "frontier {slot} is on superblock {}",
            open.block
        );
        debug_assert!(
            open.next_page < self.pages_per_superblock,
            "frontier {slot} is behind its superblock's last page"
        );
        let (place, full) = if self.pool.superblocks.width() == 1 {
            let place = Place { block: BlockId(open.block), page: open.next_page };
            open.next_page += 1;
            // Whether the next page can be told from the first of its block by the numbers in their OOB.
            let fits = place.page == 0 || self.flash.oob.sequence_fits(place.block, self.sequence + 1);
            (place, open.next_page == self.data_pages_per_superblock || !fits)
        } else {
            self.take_from_row(slot, &mut open, frontier)
        };
        if self.host_pace.on && matches!(frontier, Frontier::Host(_)) && self.flash.timed() {
            self.note_host_page(group);
        }
        if full {
            self.pool.fill_up(open.block, open.next_page + self.list_pages);
            if self.list_pages > 0 {
                self.list_is_due(BlockId(open.block));
            }
            self.skipped_pages[slot].clear();
            open = CLOSED;
        }
        debug_assert!(
            self.flash.timed() || place.page == self.flash.blocks.get(place.block).programmed,
            "{place:?} is given out, and {} pages of its block are written",
            self.flash.blocks.get(place.block).programmed
        );
        debug_assert!(!self.flash.is_written(place.block, place.page), "{place:?} is given out, and is written");
        self.frontiers[slot] = open;
        place
    }

    /// A frontier's next superblock.
    // Not inlined, as what follows: taking a page of an open block, which every write does, stays short.
    #[inline(never)]
    pub(super) fn open_superblock(&mut self, group: u32, frontier: Frontier) -> OpenBlock {
        let opened = match frontier {
            Frontier::Map | Frontier::Log => self.pool.open_of(frontier.kind(), group),
            Frontier::Host(_) | Frontier::Gc => self.pool.open(group),
        };
        let superblock = opened.expect("a group that has a page has a superblock to open");
        self.was_opened(group, superblock);
        OpenBlock { block: superblock, next_page: 0 }
    }

    /// A free superblock of a group is open: it is sound and erased.
    pub(super) fn was_opened(&mut self, group: u32, superblock: u32) {
        assert_eq!(self.pool.group_of(superblock), group, "superblock {superblock} is opened for another group");
        for block in self.pool.superblocks.members(superblock) {
            let state = self.flash.blocks.get(block);
            assert!(!state.suspect, "block {block} failed a program: it is not opened");
            assert!(!state.bad, "block {block} is bad: it is not opened");
            assert!(!state.torn, "block {block} is torn: it is not opened");
            assert_eq!(state.programmed, 0, "block {block} is opened, and has written pages");
        }
        self.wakes.groups.push(group);
    }

    /// Takes the next page of a superblock of several blocks, and whether it is the last that can be taken.
    #[inline(never)]
    fn take_from_row(&mut self, slot: usize, open: &mut OpenBlock, frontier: Frontier) -> (Place, bool) {
        debug_assert!(self.stripe_page_due(slot).is_none(), "frontier {slot} comes to a page that is not for data");
        let place = self.place_next(slot, *open);
        open.next_page += 1;
        self.skipped_pages[slot].pop_front();
        let ends_row = open.next_page.is_multiple_of(self.pool.superblocks.together())
            || self.pool.superblocks.role(open.next_page) == Role::Parity;
        if frontier.kind() == BlockKind::Data {
            self.host_row_open = frontier != Frontier::Gc && !ends_row;
        }
        (place, open.next_page == self.pages_per_superblock || !self.row_fits(slot, *open))
    }

    /// Whether the next page of a superblock of several blocks can be told from the first of its block by the numbers in
    /// their OOB.
    pub(super) fn row_fits(&self, slot: usize, open: OpenBlock) -> bool {
        let next = self.place_next(slot, open);
        // The first page may just have been given out, and its number is still to come.
        next.page < 2 || self.flash.oob.sequence_fits(next.block, self.sequence + u64::from(self.pages_per_superblock))
    }

    /// The page that [`Media::take_page`] would give out.
    pub(crate) fn next_page(&self, group: u32, frontier: Frontier) -> Option<Place> {
        if !self.has_page(group, frontier) {
            return None;
        }
        let slot = self.slot(group, frontier);
        let open = self.frontiers[slot];
        if open.block != NONE {
            // What comes before the next page of data is programmed with it.
            let data = self.skipped_pages[slot].iter().find(|(_, role)| *role == Role::Data);
            let behind =
                || self.pool.superblocks.place(open.block, open.next_page + self.skipped_pages[slot].len() as u32);
            return Some(data.map_or_else(behind, |(place, _)| *place));
        }
        self.pool.next_free(group).map(|superblock| self.pool.superblocks.place(superblock, 0))
    }

    /// Gives out up to `wanted` consecutive pages of a frontier: the first and how many. Only where a superblock is a
    /// block.
    #[inline]
    pub(crate) fn take_run(&mut self, group: u32, frontier: Frontier, wanted: u32) -> Option<(Place, u32)> {
        debug_assert!(self.stands_alone, "pages of a superblock, or before a list, are not in a run");
        let first = self.take_page(group, frontier)?;
        let slot = self.slot(group, frontier);
        let open = &mut self.frontiers[slot];
        if open.block != first.block.0 {
            return Some((first, 1));
        }
        debug_assert!(wanted > 0, "a run of no pages was asked for in group {group}");
        let more = (wanted - 1).min(self.pages_per_block - open.next_page);
        open.next_page += more;
        if open.next_page == self.pages_per_block {
            self.pool.fill_up(first.block.0, self.pages_per_block);
            *open = CLOSED;
        }
        Some((first, more + 1))
    }

    /// Whether a frontier has given out some pages of a row that a die programs at once, and not all.
    #[inline]
    pub(crate) fn is_within_row(&self, group: u32, frontier: Frontier) -> bool {
        let together = self.pool.superblocks.together();
        together > 1 && !self.frontiers[self.slot(group, frontier)].next_page.is_multiple_of(together)
    }

    /// Pages of data that a frontier has still to give out of a stripe that it has begun.
    pub(crate) fn pages_left_in_stripe(&self, group: u32, frontier: Frontier) -> u32 {
        let begun = self.frontiers[self.slot(group, frontier)].next_page % self.pool.superblocks.width();
        if begun == 0 { 0 } else { self.stripe_width().saturating_sub(begun) }
    }

    /// At most `limit` pages, so many that relocation's frontier ends with a whole row.
    pub(crate) fn whole_rows(&self, group: u32, limit: u32) -> u32 {
        let together = self.pool.superblocks.together();
        if together == 1 {
            return limit;
        }
        let next = self.frontiers[self.slot(group, Frontier::Gc)].next_page;
        let pages = limit - (self.number_after(next, limit) % together).min(limit);
        debug_assert!(pages + together > limit, "{pages} pages of {limit} end with a row of {together}");
        pages
    }

    /// Closes a frontier of a group whose valid pages fit where relocation can still write then, so that it can be a
    /// victim: power cuts in a row leave torn pages in frontiers, until no closed superblock is empty enough.
    /// Relocation's own, which the host may share, goes like any other, and what it has left with it. False if there is
    /// none.
    pub(crate) fn give_up_frontier(&mut self, group: u32) -> bool {
        let (relocation, room) = (self.slot(group, Frontier::Gc), self.relocation_room(group));
        let row = (group * self.row) as usize;
        let fits = |slot: &usize| {
            let open = self.frontiers[*slot];
            let lost = if *slot == relocation { self.data_pages_left(*slot) } else { 0 };
            open.next_page > 0
                && open.block != NONE
                && self.pool.valid(open.block).div_ceil(self.units_per_page) <= room - lost
        };
        // Those of the host first: what relocation's has left is wanted for them.
        let slots = (row..=row + self.streams as usize).filter(|slot| *slot != relocation).chain([relocation]);
        let Some(slot) = slots.into_iter().find(fits) else { return false };
        let superblock = self.frontiers[slot].block;
        let block = self.pool.superblocks.members(superblock).next().expect("an open superblock has members");
        self.abandon(block);
        assert_eq!(self.frontiers[slot].block, NONE, "frontier {slot} was given up");
        self.wakes.groups.push(group);
        true
    }

    /// No more data goes into the superblock of `block` if it is a frontier; its last stripe is closed. Programs in flight still
    /// end.
    pub(crate) fn abandon(&mut self, block: BlockId) {
        let superblock = self.pool.superblocks.of(block);
        if let Some(slot) = self.frontiers.iter().position(|open| open.block == superblock) {
            if self.list_pages > 0 {
                self.list_abandoned(slot);
                return self.close_if_written(block);
            }
            self.close_stripe(slot);
            self.pool.fill_up(superblock, self.frontiers[slot].next_page);
            self.skipped_pages[slot].clear();
            if let Some(unready) = self.deferred_programs.get_mut(slot) {
                unready.clear();
            }
            self.frontiers[slot] = CLOSED;
            self.close_if_written(block);
        }
    }

    /// Makes a partly written superblock a frontier again after recovery; false if all frontiers are taken, or no page of it
    /// is left for data.
    pub(crate) fn reopen(&mut self, superblock: u32) -> bool {
        let group = self.pool.group_of(superblock);
        let row = (group * self.row) as usize;
        // Relocation first: host data can wait for it, but not the other way round.
        let relocation = self.separate_gc.then_some(self.streams);
        let data = relocation.into_iter().chain(0..self.streams);
        let all: Vec<u32> = match self.pool.kind(superblock) {
            BlockKind::Data => data.collect(),
            BlockKind::Map => vec![self.streams + 1],
            BlockKind::Log => vec![self.streams + 2],
        };
        let mut slots = all.into_iter().map(|index| row + index as usize);
        let Some(slot) = slots.find(|slot| self.frontiers[*slot].block == NONE) else { return false };
        // Members whose erase was cut are erased by now: an image's host must have space for them again.
        let mut members = self.pool.superblocks.members(superblock);
        if self.pool.superblocks.width() > 1 && !members.all(|block| self.flash.provide(block)) {
            return false;
        }
        let programmed = self.programmed(superblock);
        assert!(programmed > 0, "superblock {superblock} is a frontier again, and nothing is written in it");
        assert!(programmed < self.pages_per_superblock, "superblock {superblock} is a frontier again, and is full");
        self.set_frontier(slot, superblock);
        if self.data_pages_left(slot) == 0 {
            self.skipped_pages[slot].clear();
            self.frontiers[slot] = CLOSED;
            return false;
        }
        self.pool.adopt(superblock, BlockState::Open);
        true
    }

    /// A partly written superblock is a frontier: members that are behind the one that is written furthest come up with
    /// it first, so that from then on they are written in step.
    fn set_frontier(&mut self, slot: usize, superblock: u32) {
        self.frontiers[slot] = OpenBlock { block: superblock, next_page: self.programmed(superblock) };
        self.skipped_pages[slot].clear();
        if self.pool.superblocks.width() > 1 && !seeded(Bug::MembersInStep) {
            let members: Vec<BlockId> = self.pool.superblocks.members(superblock).collect();
            let programmed = |block: BlockId| self.flash.blocks.get(block).programmed;
            let level = members.iter().map(|block| programmed(*block)).max().unwrap_or(0);
            let least = members.iter().map(|block| programmed(*block)).min().unwrap_or(0);
            if self.pool.superblocks.parity() > 0 {
                self.skipped_pages[slot] = self.stripe_gaps(superblock, least..level);
                return;
            }
            for page in least..level {
                let behind = members.iter().filter(|block| programmed(**block) <= page);
                self.skipped_pages[slot].extend(behind.map(|block| (Place { block: *block, page }, Role::Data)));
            }
        }
    }

    /// Open superblocks and how many of their pages were given out, for snapshots.
    pub(crate) fn open_blocks(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.frontiers.iter().map(|open| (open.block, open.next_page))
    }

    /// Puts a saved frontier back, `None` where it has no superblock; false if that is not one it could have.
    pub(crate) fn set_open_block(&mut self, slot: usize, superblock: u32, next_page: u32) -> bool {
        if superblock == NONE {
            self.frontiers[slot] = CLOSED;
            return true;
        }
        let (group, index) = (slot as u32 / self.row, slot as u32 % self.row);
        let used = self.separate_gc || index != self.streams;
        let taken = self.frontiers.iter().any(|open| open.block == superblock);
        let known = superblock < self.pool.superblocks_count() && self.pool.superblocks.is_whole(superblock);
        let kinds = [BlockKind::Data, BlockKind::Map, BlockKind::Log];
        let kind = known && self.pool.kind(superblock) == kinds[index.saturating_sub(self.streams) as usize];
        if !used || taken || !kind || self.pool.group_of(superblock) != group {
            return false;
        }
        let written = self.programmed(superblock);
        if written != next_page || !(1..self.pages_per_superblock).contains(&written) {
            return false;
        }
        self.set_frontier(slot, superblock);
        // Parity follows the data at once: a frontier at rest comes to data next.
        let data_next = self.stripe_page_due(slot).is_none();
        self.reread.clear();
        data_next
    }

    /// Whether a superblock is a frontier.
    pub(crate) fn is_frontier(&self, superblock: u32) -> bool {
        self.frontiers.iter().any(|open| open.block == superblock)
    }
}

//! Space: whether a frontier has a page to give, and how many pages there are for the host, relocation, the map and a log.

use ssdlab_flash::NONE;

use super::Media;
use super::frontier::Frontier;
use crate::block_pool::BlockKind;

impl Media {
    /// Whether a page can be given out in this group now.
    #[inline]
    pub(crate) fn has_page(&self, group: u32, frontier: Frontier) -> bool {
        let slot = self.slot(group, frontier);
        let open = self.frontiers[slot].block != NONE;
        if frontier == Frontier::Gc {
            return open || self.pool.free_blocks(group) > 0 && self.can_open(group);
        }
        if frontier.kind() != BlockKind::Data {
            return open || self.pool.free_of(frontier.kind(), group) > 0 && self.can_open(group);
        }
        // Nothing can stand against an open frontier that is the host's alone.
        open && self.separate_gc && !self.host_pace.on || self.host_has_page(group, frontier, slot, open)
    }

    /// Whether a page can be given out to the host in this group now, where pacing, a shared frontier or a new
    /// superblock is to be thought of.
    #[inline(never)]
    fn host_has_page(&self, group: u32, frontier: Frontier, slot: usize, open: bool) -> bool {
        // What pages of a row go together is not held back half-way.
        let allowed = self.host_pace.allowed[group as usize] > 0 || self.is_within_row(group, frontier);
        allowed && self.host_could_take(group, slot, open)
    }

    /// Whether the host would have a page of a frontier if collection did not keep pace with it.
    pub(super) fn host_could_take(&self, group: u32, slot: usize, open: bool) -> bool {
        self.host_has_room(group, slot, self.pool.free_blocks(group)) && (open || self.can_open(group))
    }

    /// Whether relocation keeps what it needs though the host takes a page from a frontier, or opens a superblock for it.
    #[inline]
    fn host_has_room(&self, group: u32, slot: usize, free: u32) -> bool {
        let open = self.frontiers[slot].block != NONE;
        // A frontier that relocation shares and that it opened out of the reserve is relocation's alone until a block is
        // free again: a job that was begun must find the pages it was begun for.
        let lent = slot == self.slot(group, Frontier::Gc) && free < self.gc_reserve;
        open && !lent || !open && free > self.gc_reserve || self.job_leaves_room(group, slot, free)
    }

    /// Whether a stream of the host has no superblock in a group and may not open one, not even when the erases in flight
    /// have ended.
    pub(crate) fn host_is_blocked(&self, group: u32) -> bool {
        let free = self.pool.free_or_erasing(group);
        let row = (group * self.row) as usize;
        (row..row + self.streams as usize).any(|slot| !self.host_has_room(group, slot, free))
    }

    /// Whether the group's next free superblock may be opened: not where an image's host has no space for it.
    pub(super) fn can_open(&self, group: u32) -> bool {
        let provided = |superblock: u32| {
            let mut members = self.pool.superblocks.members(superblock);
            members.all(|block| self.flash.provide(block))
        };
        self.flash.store.image().is_none() || self.pool.next_free(group).is_some_and(provided)
    }

    /// Free superblocks of the whole drive.
    pub(crate) fn free_blocks(&self) -> u32 {
        (0..self.pool.groups()).map(|group| self.pool.free_blocks(group)).sum()
    }

    /// Superblocks of a group that are open, with one at least for the host and one for relocation where that has its own.
    pub(crate) fn open_frontiers(&self, group: u32) -> u32 {
        let row = (group * self.row) as usize;
        let host = row..row + self.streams as usize;
        let open = host.filter(|slot| self.frontiers[*slot].block != NONE).count() as u32;
        open.max(1) + u32::from(self.separate_gc)
    }

    /// Pages that relocation has in a group, once the erases in flight are done.
    pub(crate) fn relocation_room(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Gc));
        left + self.pool.free_or_erasing(group) * self.data_pages_per_superblock
    }

    /// Pages that relocation has in a group if the power is cut now: an emptied superblock that waits for programs of what was moved
    /// out of it would not be empty.
    pub(crate) fn room_after_a_cut(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Gc));
        let room = left + self.pool.free_or_certain(group) * self.data_pages_per_superblock;
        debug_assert!(room <= self.relocation_room(group), "group {group} has {room} pages even after a cut");
        room
    }

    /// Pages for data of a group that hold none: in superblocks that are free or will be, and left in frontiers.
    pub(crate) fn empty_pages(&self, group: u32) -> u32 {
        let first = (group * self.row) as usize;
        debug_assert!(group < self.pool.groups(), "group {group} of {}", self.pool.groups());
        let left: u32 = (first..=first + self.streams as usize).map(|slot| self.data_pages_left(slot)).sum();
        left + self.pool.free_or_erasing(group) * self.data_pages_per_superblock
    }

    /// Frontiers of data in all groups: the host's and relocation's.
    pub(crate) fn data_frontiers(&self) -> u32 {
        self.pool.groups() * (self.streams + 1)
    }

    /// Pages that the map's frontier of a group can still give out, in what is open or free now.
    pub(crate) fn map_pages_left(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Map));
        left + self.pool.free_of(BlockKind::Map, group) * self.data_pages_per_superblock
    }

    /// Pages that the map's frontier of a group can still give out, with what is in map blocks that are about to be
    /// erased.
    pub(crate) fn map_pages_coming(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Map));
        left + self.pool.coming_map_blocks(group) * self.data_pages_per_superblock
    }

    /// Pages that a log's frontiers can still give out, in what is open or free now.
    pub(crate) fn log_pages_left(&self) -> u32 {
        (0..self.pool.groups()).map(|group| self.log_pages_left_in(group)).sum()
    }

    /// Pages that a log's frontiers can still give out, with what is set aside and not free yet.
    pub(crate) fn log_pages_coming(&self) -> u32 {
        let owed = |group: u32| self.pool.owed_to(BlockKind::Log, group) * self.data_pages_per_superblock;
        let left = |group: u32| self.data_pages_left(self.slot(group, Frontier::Log));
        (0..self.pool.groups()).map(|group| left(group) + owed(group)).sum()
    }

    /// Pages of one group that a log's frontier can still give out.
    pub(crate) fn log_pages_left_in(&self, group: u32) -> u32 {
        let left = self.data_pages_left(self.slot(group, Frontier::Log));
        left + self.pool.free_of(BlockKind::Log, group) * self.data_pages_per_superblock
    }
}

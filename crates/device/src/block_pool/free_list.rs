//! The free superblocks of each group, in the order in which they are opened: the least worn first, or the first freed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ssdlab_flash::Flash;

use super::BlockPool;
use super::life_cycle::BlockState;
use super::valid::NOT_CLOSED;

pub(super) enum FreeList {
    LeastWorn(BinaryHeap<Reverse<(u32, u32)>>),
    InOrder(VecDeque<u32>),
}

impl FreeList {
    pub(super) fn len(&self) -> usize {
        match self {
            FreeList::LeastWorn(heap) => heap.len(),
            FreeList::InOrder(queue) => queue.len(),
        }
    }

    pub(super) fn push(&mut self, block: u32, erases: u32) {
        match self {
            FreeList::LeastWorn(heap) => heap.push(Reverse((erases, block))),
            FreeList::InOrder(queue) => queue.push_back(block),
        }
    }

    fn peek(&self) -> Option<u32> {
        match self {
            FreeList::LeastWorn(heap) => heap.peek().map(|Reverse((_, block))| *block),
            FreeList::InOrder(queue) => queue.front().copied(),
        }
    }

    fn pop(&mut self) -> Option<u32> {
        match self {
            FreeList::LeastWorn(heap) => heap.pop().map(|Reverse((_, block))| block),
            FreeList::InOrder(queue) => queue.pop_front(),
        }
    }
}

impl BlockPool {
    /// Of the groups with most free blocks the first, from `from` on and around.
    pub(crate) fn group_with_most_free(&self, from: u32) -> u32 {
        let groups = self.groups();
        let turns = (0..groups).map(|step| (from + step) % groups);
        turns.rev().max_by_key(|group| self.free_blocks(*group)).unwrap_or(from)
    }

    /// Free superblocks of a group.
    #[inline]
    pub(crate) fn free_blocks(&self, group: u32) -> u32 {
        (self.free[group as usize].len() as u32).saturating_sub(self.owed[group as usize])
    }

    /// Superblocks of a group that are free or will be once their erase is done.
    #[inline]
    pub(crate) fn free_or_erasing(&self, group: u32) -> u32 {
        let all = self.free[group as usize].len() as u32 + self.erasing[group as usize];
        all.saturating_sub(self.owed[group as usize])
    }

    /// Superblocks of a group that are free or are being erased, without those that wait for their last pin.
    pub(crate) fn free_or_certain(&self, group: u32) -> u32 {
        let pinned = |block: &u32| self.state(*block) == BlockState::Erasing && self.pins(*block) > 0;
        let of_group = self.superblocks_of(group);
        let waiting = if self.waits_for_erases(group) { of_group.filter(pinned).count() as u32 } else { 0 };
        let all = self.free[group as usize].len() as u32 + self.erasing[group as usize];
        assert!(waiting <= self.erasing[group as usize], "{waiting} blocks of group {group} wait for their last pin");
        (all - waiting).saturating_sub(self.owed[group as usize])
    }

    /// Whether emptied superblocks of a group wait for their last pin or for their erase.
    pub(crate) fn waits_for_erases(&self, group: u32) -> bool {
        self.erasing[group as usize] > 0
    }

    /// The free superblock that will be opened next.
    pub(crate) fn next_free(&self, group: u32) -> Option<u32> {
        self.free[group as usize].peek()
    }

    /// The most worn free superblock, the last of equals.
    pub(crate) fn most_worn_free(&self, group: u32, flash: &Flash) -> Option<u32> {
        self.free_list(group).into_iter().max_by_key(|block| (self.wear(*block, flash), *block))
    }

    /// The free superblocks of a group, in the order they leave.
    pub(crate) fn free_list(&self, group: u32) -> Vec<u32> {
        match &self.free[group as usize] {
            FreeList::LeastWorn(heap) => {
                let mut blocks: Vec<(u32, u32)> = heap.iter().map(|Reverse(block)| *block).collect();
                blocks.sort_unstable();
                blocks.into_iter().map(|(_, block)| block).collect()
            }
            FreeList::InOrder(queue) => queue.iter().copied().collect(),
        }
    }

    /// Opens a particular free superblock.
    pub(crate) fn open_this(&mut self, superblock: u32) {
        let list = &mut self.free[self.by_per_group.div(superblock) as usize];
        let before = list.len();
        match list {
            FreeList::LeastWorn(heap) => heap.retain(|Reverse((_, block))| *block != superblock),
            FreeList::InOrder(queue) => queue.retain(|block| *block != superblock),
        }
        assert_eq!(list.len() + 1, before, "block {superblock} was on the free list");
        self.data_opened += 1;
        self.leaves_free(superblock);
    }

    /// Opens a free superblock.
    pub(crate) fn open(&mut self, group: u32) -> Option<u32> {
        self.data_opened += 1;
        self.take_free(group)
    }

    pub(super) fn take_free(&mut self, group: u32) -> Option<u32> {
        let block = self.free[group as usize].pop()?;
        self.leaves_free(block);
        Some(block)
    }

    fn leaves_free(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Free, "block {block} was on the free list");
        assert_eq!(self.valid[block as usize], NOT_CLOSED, "free block {block} holds nothing valid");
        assert_eq!(self.pins[block as usize], 0, "free block {block} is not pinned");
        assert!(!self.retiring[block as usize], "free block {block} is not about to go bad");
        self.state_changes += 1;
        self.states[block as usize] = BlockState::Open;
    }

    /// Puts saved free lists back, after the states; false if they do not name exactly the free blocks.
    pub(crate) fn restore_free(&mut self, blocks: &[u32], flash: &Flash) -> bool {
        let known = |block: &u32| self.states.get(*block as usize) == Some(&BlockState::Free);
        let mut sorted = blocks.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let free = self.states.iter().filter(|state| **state == BlockState::Free).count();
        if sorted.len() != blocks.len() || blocks.len() != free || !blocks.iter().all(known) {
            return false;
        }
        self.rebuild_free(flash);
        for list in &mut self.free {
            while list.pop().is_some() {}
        }
        for block in blocks {
            let group = self.group_of(*block) as usize;
            let wear = self.wear(*block, flash);
            self.free[group].push(*block, wear);
        }
        true
    }

    /// Rebuilds the free lists from the states, least worn first where that is the rule.
    pub(crate) fn rebuild_free(&mut self, flash: &Flash) {
        for list in &mut self.free {
            while list.pop().is_some() {}
        }
        self.usable.fill(self.per_group);
        for block in 0..self.states.len() as u32 {
            let group = self.group_of(block) as usize;
            match self.states[block as usize] {
                BlockState::Free => {
                    let wear = self.wear(block, flash);
                    self.free[group].push(block, wear);
                }
                BlockState::Bad => self.usable[group] -= 1,
                _ => {}
            }
        }
    }
}

//! The blocks as the controller keeps them: free, open, closed; how much in them is valid; what pins them.
//!
//! A block is pinned by every operation in flight that must end before the block may be erased: reads from it, and the
//! programs that supersede what it holds. An erase waits for the last pin, so a power cut never finds the only good
//! copy of anything gone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ssdlab_base::Divider;
use ssdlab_flash::{Flash, Geometry};

/// What the controller is doing with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockState {
    /// Erased, waiting to be opened.
    Free,
    /// A write frontier.
    Open,
    /// No page is left to give out, but programs are in flight.
    Full,
    /// Written: may be a victim.
    Closed,
    /// Being emptied.
    Collecting,
    /// Empty, waiting for its last pin or for its erase.
    Erasing,
    /// Never used again.
    Bad,
}

/// Marks the valid count of a block that is not closed, so that a plain minimum over counts finds victims only.
const NOT_CLOSED: u32 = 1 << 31;

/// All blocks of the drive.
pub(crate) struct BlockPool {
    pub(crate) blocks_per_plane: u32,
    by_blocks_per_plane: Divider,
    states: Vec<BlockState>,
    /// Valid units of each block, with `NOT_CLOSED` on top where the block cannot be a victim.
    valid: Vec<u32>,
    pins: Vec<u32>,
    /// Pages given out when a block became full.
    issued: Vec<u32>,
    /// When a block was closed, in closings of the whole drive.
    closed_order: Vec<u64>,
    closings: u64,
    /// Blocks in line to be emptied and marked bad; the chips remember which they are.
    retiring: Vec<bool>,
    /// Trims took units from this block since it was last erased.
    trimmed: Vec<bool>,
    free: Vec<FreeList>,
    erasing: Vec<u32>,
    usable: Vec<u32>,
}

enum FreeList {
    LeastWorn(BinaryHeap<Reverse<(u32, u32)>>),
    InOrder(VecDeque<u32>),
}

impl FreeList {
    fn len(&self) -> usize {
        match self {
            FreeList::LeastWorn(heap) => heap.len(),
            FreeList::InOrder(queue) => queue.len(),
        }
    }

    fn push(&mut self, block: u32, erases: u32) {
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

/// One plane's blocks as a victim policy sees them; indexes are blocks within the plane.
pub(crate) struct PoolView<'a> {
    valid: &'a [u32],
    closed_order: &'a [u64],
    closings: u64,
    units_per_block: u32,
}

impl PoolView<'_> {
    /// Blocks in the plane.
    pub(crate) fn len(&self) -> u32 {
        self.valid.len() as u32
    }

    /// Whether a block may be chosen.
    #[inline]
    pub(crate) fn is_closed(&self, block: u32) -> bool {
        self.valid[block as usize] < NOT_CLOSED
    }

    /// Valid units of a closed block.
    #[inline]
    pub(crate) fn valid(&self, block: u32) -> u32 {
        self.valid[block as usize]
    }

    /// Units of a block.
    pub(crate) const fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    /// Age of a closed block: blocks closed since, in the whole drive.
    #[inline]
    pub(crate) fn age(&self, block: u32) -> u64 {
        self.closings - self.closed_order[block as usize]
    }

    /// The closed block with the fewest valid units, the lowest number among equals.
    pub(crate) fn fewest_valid(&self) -> Option<u32> {
        // Two passes over a dense array: the minimum vectorises, and so does the search.
        let fewest = self.valid.iter().copied().min()?;
        if fewest >= NOT_CLOSED {
            return None;
        }
        self.valid.iter().position(|valid| *valid == fewest).map(|block| block as u32)
    }
}

impl BlockPool {
    /// All good blocks free.
    pub(crate) fn new(geometry: &Geometry, flash: &Flash, least_worn: bool) -> BlockPool {
        let blocks = geometry.blocks() as usize;
        let planes = geometry.planes();
        let list = || {
            if least_worn { FreeList::LeastWorn(BinaryHeap::new()) } else { FreeList::InOrder(VecDeque::new()) }
        };
        let mut pool = BlockPool {
            blocks_per_plane: geometry.blocks_per_plane,
            by_blocks_per_plane: Divider::new(geometry.blocks_per_plane),
            states: vec![BlockState::Free; blocks],
            valid: vec![NOT_CLOSED; blocks],
            pins: vec![0; blocks],
            issued: vec![0; blocks],
            closed_order: vec![0; blocks],
            closings: 0,
            retiring: vec![false; blocks],
            trimmed: vec![false; blocks],
            free: (0..planes).map(|_| list()).collect(),
            erasing: vec![0; planes as usize],
            usable: vec![geometry.blocks_per_plane; planes as usize],
        };
        for block in 0..blocks as u32 {
            let plane = pool.plane_of(block);
            if flash.blocks.get(block).bad {
                pool.states[block as usize] = BlockState::Bad;
                pool.usable[plane as usize] -= 1;
            } else {
                pool.free[plane as usize].push(block, flash.blocks.get(block).erases);
            }
        }
        pool
    }

    /// The plane of a block.
    #[inline]
    pub(crate) fn plane_of(&self, block: u32) -> u32 {
        self.by_blocks_per_plane.div(block)
    }

    /// The state of a block.
    #[inline]
    pub(crate) fn state(&self, block: u32) -> BlockState {
        self.states[block as usize]
    }

    /// Valid units in a block.
    #[inline]
    pub(crate) fn valid(&self, block: u32) -> u32 {
        self.valid[block as usize] & !NOT_CLOSED
    }

    /// Free blocks of a plane.
    #[inline]
    pub(crate) fn free_blocks(&self, plane: u32) -> u32 {
        self.free[plane as usize].len() as u32
    }

    /// Blocks of a plane that are free or will be once their erase is done.
    #[inline]
    pub(crate) fn free_or_erasing(&self, plane: u32) -> u32 {
        self.free_blocks(plane) + self.erasing[plane as usize]
    }

    /// Good blocks of a plane.
    pub(crate) fn usable(&self, plane: u32) -> u32 {
        self.usable[plane as usize]
    }

    /// What a victim policy may look at.
    pub(crate) fn view(&self, plane: u32, units_per_block: u32) -> PoolView<'_> {
        let first = (plane * self.blocks_per_plane) as usize;
        let range = first..first + self.blocks_per_plane as usize;
        PoolView {
            valid: &self.valid[range.clone()],
            closed_order: &self.closed_order[range],
            closings: self.closings,
            units_per_block,
        }
    }

    /// The free block that will be opened next.
    pub(crate) fn next_free(&self, plane: u32) -> Option<u32> {
        self.free[plane as usize].peek()
    }

    /// Opens a free block.
    pub(crate) fn open(&mut self, plane: u32) -> Option<u32> {
        let block = self.free[plane as usize].pop()?;
        assert_eq!(self.states[block as usize], BlockState::Free, "block {block} was on the free list");
        assert_eq!(self.valid[block as usize], NOT_CLOSED, "free block {block} holds nothing valid");
        self.states[block as usize] = BlockState::Open;
        Some(block)
    }

    /// A particular free block becomes open, or a written one becomes what recovery found.
    pub(crate) fn adopt(&mut self, block: u32, state: BlockState) {
        self.states[block as usize] = state;
        let closed = state == BlockState::Closed;
        let valid = self.valid[block as usize] & !NOT_CLOSED;
        self.valid[block as usize] = if closed { valid } else { valid | NOT_CLOSED };
        if closed {
            self.closings += 1;
            self.closed_order[block as usize] = self.closings;
        }
    }

    /// The free blocks of a plane, in the order they leave.
    pub(crate) fn free_list(&self, plane: u32) -> Vec<u32> {
        match &self.free[plane as usize] {
            FreeList::LeastWorn(heap) => {
                let mut blocks: Vec<(u32, u32)> = heap.iter().map(|Reverse(block)| *block).collect();
                blocks.sort_unstable();
                blocks.into_iter().map(|(_, block)| block).collect()
            }
            FreeList::InOrder(queue) => queue.iter().copied().collect(),
        }
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
            let plane = self.plane_of(*block) as usize;
            self.free[plane].push(*block, flash.blocks.get(*block).erases);
        }
        true
    }

    /// Rebuilds the free lists from the states, least worn first where that is the rule.
    pub(crate) fn rebuild_free(&mut self, flash: &Flash) {
        for list in &mut self.free {
            while list.pop().is_some() {}
        }
        self.usable.fill(self.blocks_per_plane);
        for block in 0..self.states.len() as u32 {
            let plane = self.plane_of(block) as usize;
            match self.states[block as usize] {
                BlockState::Free => self.free[plane].push(block, flash.blocks.get(block).erases),
                BlockState::Bad => self.usable[plane] -= 1,
                _ => {}
            }
        }
    }

    /// No page of an open block is left to give out.
    pub(crate) fn fill_up(&mut self, block: u32, issued: u32) {
        assert_eq!(self.states[block as usize], BlockState::Open, "block {block} was open");
        self.issued[block as usize] = issued;
        self.states[block as usize] = BlockState::Full;
    }

    /// Closes a full block once `programmed` pages, all that were given out, are written.
    #[inline]
    pub(crate) fn close_if_written(&mut self, block: u32, programmed: u32) {
        if self.states[block as usize] == BlockState::Full && programmed == self.issued[block as usize] {
            self.close(block);
        }
    }

    /// The last program of a full block is done.
    fn close(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Full, "block {block} was full");
        self.states[block as usize] = BlockState::Closed;
        self.valid[block as usize] &= !NOT_CLOSED;
        self.closings += 1;
        self.closed_order[block as usize] = self.closings;
    }

    /// The block is a victim from now on.
    pub(crate) fn collect(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Closed, "victim {block} was closed");
        self.states[block as usize] = BlockState::Collecting;
        self.valid[block as usize] |= NOT_CLOSED;
    }

    /// The victim is empty; its erase may start when the last pin is gone.
    pub(crate) fn await_erase(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Collecting, "block {block} was being emptied");
        assert_eq!(self.valid[block as usize], NOT_CLOSED, "block {block} to be erased holds nothing valid");
        self.states[block as usize] = BlockState::Erasing;
        let plane = self.plane_of(block);
        self.erasing[plane as usize] += 1;
    }

    /// The erase is done: the block is free, or bad.
    pub(crate) fn erased(&mut self, block: u32, erases: u32, good: bool) {
        assert_eq!(self.states[block as usize], BlockState::Erasing, "block {block} was being erased");
        assert_eq!(self.pins[block as usize], 0, "erased block {block} was not pinned");
        let plane = self.plane_of(block) as usize;
        self.erasing[plane] -= 1;
        self.trimmed[block as usize] = false;
        if good {
            self.states[block as usize] = BlockState::Free;
            self.free[plane].push(block, erases);
        } else {
            self.states[block as usize] = BlockState::Bad;
            self.usable[plane] -= 1;
        }
    }

    /// One more valid unit.
    #[inline]
    pub(crate) fn add_valid(&mut self, block: u32) {
        self.valid[block as usize] += 1;
    }

    /// One valid unit less.
    #[inline]
    pub(crate) fn drop_valid(&mut self, block: u32) {
        debug_assert!(self.valid(block) > 0, "block {block} has something valid to lose");
        self.valid[block as usize] -= 1;
    }

    /// `count` valid units go from one block to another.
    #[inline]
    pub(crate) fn move_valid(&mut self, from: u32, to: u32, count: u32) {
        assert!(self.valid(from) >= count, "block {from} has {count} valid units to give");
        self.valid[from as usize] -= count;
        self.valid[to as usize] += count;
    }

    /// Forgets all valid counts and pins, before recovery counts anew.
    pub(crate) fn forget(&mut self) {
        self.valid.fill(NOT_CLOSED);
        self.pins.fill(0);
        self.erasing.fill(0);
        self.retiring.fill(false);
        self.trimmed.fill(false);
    }

    /// An operation in flight must end before the block is erased.
    #[inline]
    pub(crate) fn pin(&mut self, block: u32) {
        self.pins[block as usize] += 1;
    }

    /// It has ended; true when the block now waits for nothing but its erase.
    #[inline]
    pub(crate) fn unpin(&mut self, block: u32) -> bool {
        let pins = &mut self.pins[block as usize];
        assert!(*pins > 0, "block {block} was pinned");
        *pins -= 1;
        *pins == 0 && self.states[block as usize] == BlockState::Erasing
    }

    /// Pins on a block.
    pub(crate) fn pins(&self, block: u32) -> u32 {
        self.pins[block as usize]
    }

    /// The block is in line to be emptied and go bad.
    pub(crate) fn set_retiring(&mut self, block: u32) {
        self.retiring[block as usize] = true;
    }

    /// Whether the block is in that line.
    #[inline]
    pub(crate) fn is_retiring(&self, block: u32) -> bool {
        self.retiring[block as usize]
    }

    /// A trim took a unit from the block.
    pub(crate) fn set_trimmed(&mut self, block: u32) {
        self.trimmed[block as usize] = true;
    }

    /// Whether a trim took a unit from the block since it was last erased.
    #[inline]
    pub(crate) fn is_trimmed(&self, block: u32) -> bool {
        self.trimmed[block as usize]
    }

    /// Puts a saved state back.
    pub(crate) fn restore_state(&mut self, block: u32, state: BlockState, closed_order: u64) {
        self.adopt(block, state);
        self.closed_order[block as usize] = closed_order;
    }

    /// Blocks closed since the drive was made.
    pub(crate) const fn closings(&self) -> u64 {
        self.closings
    }

    /// Puts a saved count back; false if it is less than some block's number.
    pub(crate) fn set_closings(&mut self, closings: u64) -> bool {
        let most = self.closed_order.iter().copied().max().unwrap_or(0);
        self.closings = closings;
        (most..1 << 62).contains(&closings)
    }

    /// The closing order of a block.
    pub(crate) fn closed_order(&self, block: u32) -> u64 {
        self.closed_order[block as usize]
    }
}

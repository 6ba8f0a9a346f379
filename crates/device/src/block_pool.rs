//! The blocks as the controller keeps them: free, open, closed; how much in them is valid; what pins them.
//!
//! All of this is kept by superblock: by block where every block stands alone, else for the blocks of one as a whole. What
//! happens to single pages (a unit becomes valid, an operation pins) is told by block.
//!
//! A block is pinned by every operation in flight that must end before the block may be erased: reads from it, and the
//! programs that supersede what it holds. An erase waits for the last pin, so a power cut never finds the only good
//! copy of anything gone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ssdlab_base::{Divider, saved};
use ssdlab_flash::{BlockId, Flash, Geometry};

use crate::DriveConfig;
use crate::superblocks::Superblocks;

/// What the controller is doing with a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockState {
    /// Erased, waiting to be opened.
    #[default]
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
    /// Never used again: a bad block, or a superblock that lacks a member and is dissolved.
    Bad,
}

/// What a superblock holds. Those of a kind that is not data are no victims of collection, and each group sets a number of
/// them aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    /// Units of the user.
    #[default]
    Data,
    /// Map pages.
    Map,
    /// Units whose names are not final, of a design that logs what the host writes.
    Log,
}

// At rest there is no other state.
saved!(enum BlockState: Free, Open, Closed, Bad);
saved!(enum BlockKind: Data, Map, Log);

/// Kinds of superblocks.
const KINDS: usize = 3;

/// Superblocks of a kind that each group sets aside.
#[derive(Debug, Default)]
struct SetAside {
    quota: u32,
    /// By group: how many of these are free or being erased: they are not for data.
    owed: Vec<u32>,
    /// By group: those that wait for the end of their erase, and come back then.
    erasing: Vec<u32>,
    /// By group: those that go bad as soon as they are empty; others are owed in their stead.
    retiring: Vec<u32>,
    /// By group: those of the kind.
    held: Vec<u32>,
}

/// Marks the valid count of a block that is not closed, so that a plain minimum over counts finds victims only.
const NOT_CLOSED: u32 = 1 << 31;

/// All blocks of the drive.
pub(crate) struct BlockPool {
    /// Which blocks make up which superblock.
    pub(crate) superblocks: Superblocks,
    /// Superblocks of a group, those that are dissolved included.
    pub(crate) per_group: u32,
    by_per_group: Divider,
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
    /// What superblocks hold.
    kinds: Vec<BlockKind>,
    /// By kind; nothing for data.
    set_aside: [SetAside; KINDS],
    /// By group: what all kinds are owed.
    owed: Vec<u32>,
    /// What superblocks are has changed so often: their states and kinds, and whether they hold something.
    state_changes: u64,
    /// Superblocks opened for data since the drive was made.
    data_opened: u64,
    /// Superblocks of another kind that became data blocks.
    became_data: u64,
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
pub struct PoolView<'a> {
    valid: &'a [u32],
    closed_order: &'a [u64],
    closings: u64,
    units_per_block: u32,
}

impl PoolView<'_> {
    /// Blocks in the plane.
    pub fn blocks(&self) -> u32 {
        self.valid.len() as u32
    }

    /// Whether a block may be chosen.
    #[inline]
    pub fn is_closed(&self, block: u32) -> bool {
        self.valid[block as usize] < NOT_CLOSED
    }

    /// Valid units of a closed block.
    #[inline]
    pub fn valid(&self, block: u32) -> u32 {
        debug_assert!(self.is_closed(block), "block {block} of the group is no victim");
        self.valid[block as usize]
    }

    /// Units of a block.
    pub const fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    /// Age of a closed block: blocks closed since, in the whole drive.
    #[inline]
    pub fn age(&self, block: u32) -> u64 {
        debug_assert!(self.is_closed(block), "block {block} of the group has no age: it is not closed");
        debug_assert!(
            self.closed_order[block as usize] <= self.closings,
            "block {block} was closed as number {} of {}",
            self.closed_order[block as usize],
            self.closings
        );
        self.closings - self.closed_order[block as usize]
    }

    /// The closed block that was closed first.
    pub fn first_closed(&self) -> Option<u32> {
        // As below: a minimum without branches first, then where it is.
        let key = |(valid, order): (&u32, &u64)| if *valid < NOT_CLOSED { *order } else { u64::MAX };
        let first = self.valid.iter().zip(self.closed_order).map(key).min().filter(|first| *first != u64::MAX)?;
        let at = |pair: (&u32, &u64)| key(pair) == first;
        self.valid.iter().zip(self.closed_order).position(at).map(|block| block as u32)
    }

    /// The closed block with the fewest valid units, the lowest number among equals.
    pub fn fewest_valid(&self) -> Option<u32> {
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
    pub(crate) fn new(config: &DriveConfig, flash: &mut Flash) -> BlockPool {
        let geometry = *flash.geometry();
        let superblocks = Superblocks::new(config, flash);
        let width = superblocks.width();
        assert!(geometry.planes().is_multiple_of(width), "{} planes in groups of {width}", geometry.planes());
        let groups = (geometry.planes() / superblocks.width()) as usize;
        let per_group = geometry.blocks_per_plane;
        let count = groups * per_group as usize;
        let list = || match config.gc.dynamic_wear_levelling {
            true => FreeList::LeastWorn(BinaryHeap::new()),
            false => FreeList::InOrder(VecDeque::new()),
        };
        let mut pool = BlockPool {
            superblocks,
            per_group,
            by_per_group: Divider::new(per_group),
            states: vec![BlockState::Free; count],
            valid: vec![NOT_CLOSED; count],
            pins: vec![0; count],
            issued: vec![0; count],
            closed_order: vec![0; count],
            closings: 0,
            retiring: vec![false; count],
            trimmed: vec![false; count],
            free: (0..groups).map(|_| list()).collect(),
            erasing: vec![0; groups],
            usable: vec![0; groups],
            kinds: vec![BlockKind::Data; count],
            set_aside: [0, config.map_blocks(), config.log_blocks()].map(|quota| SetAside {
                quota,
                owed: vec![quota; groups],
                erasing: vec![0; groups],
                retiring: vec![0; groups],
                held: vec![0; groups],
            }),
            owed: vec![config.map_blocks() + config.log_blocks(); groups],
            state_changes: 0,
            data_opened: 0,
            became_data: 0,
        };
        for superblock in 0..count as u32 {
            if !pool.is_good(superblock, flash) {
                pool.states[superblock as usize] = BlockState::Bad;
            }
        }
        if flash.blocks.all().iter().all(|block| block.programmed == 0 && !block.torn) {
            pool.mend_all(flash);
        }
        pool.rebuild_free(flash);
        pool
    }

    /// Bytes that [`BlockPool::new`] takes, with a list for each superblock and as many of them as there are blocks: the
    /// lists, a place in a free list, which may have twice as many, and the table of members.
    pub(crate) fn simulator_bytes(geometry: &Geometry) -> u64 {
        let lists = size_of::<BlockState>() + 3 * size_of::<u32>() + size_of::<u64>() + 2 * size_of::<bool>();
        let free = 2 * size_of::<Reverse<(u32, u32)>>();
        let members = 2 * size_of::<u32>();
        u64::from(geometry.blocks()) * (lists + free + members) as u64
    }

    /// Whether all members of a superblock are there and good.
    pub(crate) fn is_good(&self, superblock: u32, flash: &Flash) -> bool {
        let good = |block: BlockId| !flash.blocks.get(block).bad;
        self.superblocks.is_whole(superblock) && self.superblocks.members(superblock).all(good)
    }

    /// Groups: planes, dies, or the drive.
    pub(crate) fn groups(&self) -> u32 {
        self.free.len() as u32
    }

    /// Superblocks of the drive.
    pub(crate) fn superblocks_count(&self) -> u32 {
        self.states.len() as u32
    }

    /// Superblocks that lack a member are made whole as far as blocks are left over; whatever is in state `Bad` is erased.
    pub(crate) fn mend(&mut self, group: u32, flash: &mut Flash) {
        if self.superblocks.width() == 1 {
            return;
        }
        let of_group = group * self.per_group..(group + 1) * self.per_group;
        let mut lacking: Vec<u32> =
            of_group.filter(|superblock| self.states[*superblock as usize] == BlockState::Bad).collect();
        // Those that lack the fewest members first: what was dissolved long ago stays so.
        lacking.sort_by_key(|superblock| Reverse(self.superblocks.members(*superblock).count()));
        for superblock in self.superblocks.reform(flash, &lacking) {
            let wear = self.wear(superblock, flash);
            assert!(self.superblocks.is_whole(superblock), "superblock {superblock} was mended, and lacks a member");
            assert_eq!(self.pins[superblock as usize], 0, "superblock {superblock} was mended, and is pinned");
            assert_eq!(
                self.valid[superblock as usize], NOT_CLOSED,
                "superblock {superblock} was mended, and holds data"
            );
            self.state_changes += 1;
            self.states[superblock as usize] = BlockState::Free;
            self.retiring[superblock as usize] = false;
            self.usable[group as usize] += 1;
            self.free[group as usize].push(superblock, wear);
        }
    }

    /// Makes superblocks that lack a member whole in every group, as [`BlockPool::mend`] does in one.
    pub(crate) fn mend_all(&mut self, flash: &mut Flash) {
        for group in 0..self.groups() {
            self.mend(group, flash);
        }
    }

    /// Erases of the member that has the most.
    pub(crate) fn wear(&self, superblock: u32, flash: &Flash) -> u32 {
        if self.superblocks.width() == 1 {
            return flash.blocks.get(BlockId(superblock)).erases;
        }
        self.superblocks.members(superblock).map(|block| flash.blocks.get(block).erases).max().unwrap_or(0)
    }

    /// The group of a superblock.
    #[inline]
    pub(crate) fn group_of(&self, superblock: u32) -> u32 {
        self.by_per_group.div(superblock)
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

    /// Whether superblocks are set aside for a kind.
    pub(crate) fn has(&self, kind: BlockKind) -> bool {
        self.set_aside[kind as usize].quota > 0
    }

    /// What a superblock holds.
    #[inline]
    pub(crate) fn kind(&self, superblock: u32) -> BlockKind {
        self.kinds[superblock as usize]
    }

    /// What the superblock of a block holds; data where the block is in no superblock any more.
    pub(crate) fn kind_of(&self, block: BlockId) -> BlockKind {
        self.kinds.get(self.superblocks.of(block) as usize).copied().unwrap_or_default()
    }

    /// Whether a superblock holds map pages.
    #[inline]
    pub(crate) fn is_map_block(&self, superblock: u32) -> bool {
        self.kind(superblock) == BlockKind::Map
    }

    /// Superblocks of a group that can be opened for a kind that is not data.
    pub(crate) fn free_of(&self, kind: BlockKind, group: u32) -> u32 {
        let (owed, free) = (self.set_aside[kind as usize].owed[group as usize], self.free[group as usize].len() as u32);
        // Map blocks come first: nothing can go on without them.
        let before =
            if kind == BlockKind::Log { self.set_aside[BlockKind::Map as usize].owed[group as usize] } else { 0 };
        owed.min(free.saturating_sub(before))
    }

    /// Superblocks of a group that are set aside for a kind and not in use, free or not.
    pub(crate) fn owed_to(&self, kind: BlockKind, group: u32) -> u32 {
        self.set_aside[kind as usize].owed[group as usize]
    }

    /// Superblocks of a group that can be opened for map pages, with those that are on their way: map blocks to be
    /// erased, which wait for nothing but the chips.
    pub(crate) fn coming_map_blocks(&self, group: u32) -> u32 {
        let group = group as usize;
        let map = &self.set_aside[BlockKind::Map as usize];
        map.owed[group].min(self.free[group].len() as u32 + map.erasing[group])
    }

    /// Opens a free superblock for a kind that is not data.
    pub(crate) fn open_of(&mut self, kind: BlockKind, group: u32) -> Option<u32> {
        assert_ne!(kind, BlockKind::Data, "a block of group {group} for data is opened as one that is set aside");
        if self.free_of(kind, group) == 0 {
            return None;
        }
        let superblock = self.take_free(group)?;
        assert_eq!(self.kind(superblock), BlockKind::Data, "free block {superblock} is of a kind");
        self.set_kind(superblock, kind);
        self.set_aside[kind as usize].owed[group as usize] -= 1;
        self.owed[group as usize] -= 1;
        Some(superblock)
    }

    /// Recovery found what a superblock holds that is not data.
    pub(crate) fn found(&mut self, superblock: u32, kind: BlockKind) {
        if self.set_kind(superblock, kind) != kind {
            let group = self.by_per_group.div(superblock) as usize;
            let owed = &mut self.set_aside[kind as usize].owed[group];
            self.owed[group] -= u32::from(*owed > 0);
            *owed = owed.saturating_sub(1);
        }
    }

    /// A closed data block is one of a kind that is set aside: it was about to become a data block when the power went.
    pub(crate) fn becomes(&mut self, superblock: u32, kind: BlockKind) {
        assert_eq!(self.state(superblock), BlockState::Closed, "block {superblock} becomes one of {kind:?}");
        assert_eq!(self.kind(superblock), BlockKind::Data, "block {superblock} becomes one of {kind:?}");
        self.found(superblock, kind);
        self.valid[superblock as usize] |= NOT_CLOSED;
    }

    /// A closed superblock of another kind holds data from now on, and its group owes that kind another one. Only while a group
    /// has one to spare.
    pub(crate) fn becomes_data(&mut self, superblock: u32) {
        let group = self.by_per_group.div(superblock) as usize;
        let kind = self.set_kind(superblock, BlockKind::Data);
        self.became_data += 1;
        assert_ne!(kind, BlockKind::Data, "block {superblock} becomes a data block, and is one");
        assert_eq!(self.state(superblock), BlockState::Closed, "block {superblock} becomes a data block");
        self.valid[superblock as usize] &= !NOT_CLOSED;
        self.owe_another(kind, group);
    }

    /// A group owes a kind one more superblock, unless it has as many as are set aside: recovery may have found more,
    /// since the power went before the erase of some.
    fn owe_another(&mut self, kind: BlockKind, group: usize) {
        if self.held_and_owed(kind, group) < self.set_aside[kind as usize].quota {
            self.set_aside[kind as usize].owed[group] += 1;
            self.owed[group] += 1;
        }
    }

    /// Superblocks of another kind that became data blocks since the drive was made.
    pub(crate) const fn became_data(&self) -> u64 {
        self.became_data
    }

    /// Whether a kind has more superblocks of a group than are set aside for it: recovery may find more.
    pub(crate) fn has_too_many(&self, kind: BlockKind, group: u32) -> bool {
        self.held_and_owed(kind, group as usize) > self.set_aside[kind as usize].quota
    }

    fn held_and_owed(&self, kind: BlockKind, group: usize) -> u32 {
        let set_aside = &self.set_aside[kind as usize];
        // For what is being erased, or goes bad, others are owed already.
        let (held, leaving) = (set_aside.held[group], set_aside.erasing[group] + set_aside.retiring[group]);
        assert!(held >= leaving, "{leaving} blocks of {kind:?} leave group {group}, of {held}");
        held + set_aside.owed[group] - leaving
    }

    /// A superblock is of another kind from now on; returns that of before.
    fn set_kind(&mut self, superblock: u32, kind: BlockKind) -> BlockKind {
        let group = self.by_per_group.div(superblock) as usize;
        let before = std::mem::replace(&mut self.kinds[superblock as usize], kind);
        self.state_changes += 1;
        if before != BlockKind::Data {
            self.set_aside[before as usize].held[group] -= 1;
        }
        if kind != BlockKind::Data {
            self.set_aside[kind as usize].held[group] += 1;
        }
        before
    }

    /// A number that is another one after the state or the kind of a superblock changed, or it was left with nothing valid.
    pub(crate) const fn state_changes(&self) -> u64 {
        self.state_changes
    }

    /// The closed map block of a group with the fewest valid units.
    pub(crate) fn emptiest_map_block(&self, group: u32) -> Option<u32> {
        let of_group = group * self.per_group..(group + 1) * self.per_group;
        let closed = of_group.filter(|block| self.is_map_block(*block) && self.state(*block) == BlockState::Closed);
        closed.min_by_key(|block| (self.valid(*block), *block))
    }

    /// Map pages are moved out of a superblock from now on.
    pub(crate) fn collect_map_block(&mut self, superblock: u32) {
        assert!(self.is_map_block(superblock), "block {superblock} holds no map pages");
        self.collect(superblock);
    }

    /// Superblocks opened for data since the drive was made.
    pub(crate) const fn data_opened(&self) -> u64 {
        self.data_opened
    }

    /// Superblocks of a group that are free or will be once their erase is done.
    #[inline]
    pub(crate) fn free_or_erasing(&self, group: u32) -> u32 {
        let all = self.free[group as usize].len() as u32 + self.erasing[group as usize];
        all.saturating_sub(self.owed[group as usize])
    }

    /// Good superblocks of a group.
    pub(crate) fn usable(&self, group: u32) -> u32 {
        self.usable[group as usize]
    }

    /// What a victim policy may look at.
    pub(crate) fn view(&self, group: u32, units_per_block: u32) -> PoolView<'_> {
        let first = (group * self.per_group) as usize;
        let range = first..first + self.per_group as usize;
        PoolView {
            valid: &self.valid[range.clone()],
            closed_order: &self.closed_order[range],
            closings: self.closings,
            units_per_block,
        }
    }

    /// The free superblock that will be opened next.
    pub(crate) fn next_free(&self, group: u32) -> Option<u32> {
        self.free[group as usize].peek()
    }

    /// The most worn free superblock, the last of equals.
    pub(crate) fn most_worn_free(&self, group: u32, flash: &Flash) -> Option<u32> {
        self.free_list(group).into_iter().max_by_key(|block| (self.wear(*block, flash), *block))
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

    fn take_free(&mut self, group: u32) -> Option<u32> {
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

    /// A particular free block becomes open, or a written one becomes what recovery found.
    pub(crate) fn adopt(&mut self, block: u32, state: BlockState) {
        let at_rest = matches!(state, BlockState::Free | BlockState::Open | BlockState::Closed | BlockState::Bad);
        assert!(at_rest, "block {block} is found as {state:?}, which nothing at rest is");
        self.state_changes += 1;
        self.states[block as usize] = state;
        let closed = state == BlockState::Closed;
        let valid = self.valid[block as usize] & !NOT_CLOSED;
        self.valid[block as usize] =
            if closed && self.kind(block) == BlockKind::Data { valid } else { valid | NOT_CLOSED };
        if closed {
            self.closings += 1;
            self.closed_order[block as usize] = self.closings;
        }
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

    /// No page of an open block is left to give out.
    pub(crate) fn fill_up(&mut self, block: u32, issued: u32) {
        assert_eq!(self.states[block as usize], BlockState::Open, "block {block} was open");
        assert!(issued > 0, "block {block} is full, and no page of it was given out");
        self.issued[block as usize] = issued;
        self.state_changes += 1;
        self.states[block as usize] = BlockState::Full;
    }

    /// Closes a full block once `programmed` pages, all that were given out, are written.
    #[inline]
    pub(crate) fn close_if_written(&mut self, block: u32, programmed: u32) {
        if self.states[block as usize] == BlockState::Full && programmed == self.issued[block as usize] {
            self.close(block);
        }
        debug_assert!(
            self.states[block as usize] != BlockState::Full || programmed < self.issued[block as usize],
            "block {block} has {programmed} pages written of {} that were given out",
            self.issued[block as usize]
        );
    }

    /// The last program of a full block is done.
    fn close(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Full, "block {block} was full");
        assert!(self.valid[block as usize] >= NOT_CLOSED, "full block {block} could have been a victim");
        self.state_changes += 1;
        self.states[block as usize] = BlockState::Closed;
        if self.kind(block) == BlockKind::Data {
            self.valid[block as usize] &= !NOT_CLOSED;
        }
        self.closings += 1;
        self.closed_order[block as usize] = self.closings;
    }

    /// The block is a victim from now on.
    pub(crate) fn collect(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Closed, "victim {block} was closed");
        let hidden = self.valid[block as usize] >= NOT_CLOSED;
        assert_eq!(hidden, self.kind(block) != BlockKind::Data, "victim {block} was hidden from the policies");
        self.state_changes += 1;
        self.states[block as usize] = BlockState::Collecting;
        self.valid[block as usize] |= NOT_CLOSED;
    }

    /// The victim is not emptied now.
    pub(crate) fn put_back(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Collecting, "block {block} was being emptied");
        assert_eq!(self.kind(block), BlockKind::Data, "block {block} was hidden from the policies, and is put back");
        self.state_changes += 1;
        self.states[block as usize] = BlockState::Closed;
        self.valid[block as usize] &= !NOT_CLOSED;
    }

    /// The victim is empty; its erase may start when the last pin is gone.
    pub(crate) fn await_erase(&mut self, block: u32) {
        assert_eq!(self.states[block as usize], BlockState::Collecting, "block {block} was being emptied");
        assert_eq!(self.valid[block as usize], NOT_CLOSED, "block {block} to be erased holds nothing valid");
        self.state_changes += 1;
        self.states[block as usize] = BlockState::Erasing;
        let group = self.group_of(block);
        self.erasing[group as usize] += 1;
        let kind = self.kind(block);
        if kind != BlockKind::Data && !self.retiring[block as usize] {
            self.set_aside[kind as usize].erasing[group as usize] += 1;
            self.owe_another(kind, group as usize);
        }
    }

    /// The erase is done: the superblock is free, or bad.
    pub(crate) fn erased(&mut self, block: u32, erases: u32, good: bool) {
        assert_eq!(self.states[block as usize], BlockState::Erasing, "block {block} was being erased");
        assert_eq!(self.pins[block as usize], 0, "erased block {block} was not pinned");
        let group = self.group_of(block) as usize;
        assert!(self.erasing[group] > 0, "block {block} is erased, and group {group} waits for no erase");
        assert_eq!(self.valid[block as usize], NOT_CLOSED, "erased block {block} holds nothing valid");
        self.erasing[group] -= 1;
        self.trimmed[block as usize] = false;
        let kind = self.set_kind(block, BlockKind::Data);
        if kind != BlockKind::Data {
            let set_aside = &mut self.set_aside[kind as usize];
            let leaving = if self.retiring[block as usize] { &mut set_aside.retiring } else { &mut set_aside.erasing };
            assert!(leaving[group] > 0, "block {block} of {kind:?} is erased, and none of group {group} was leaving");
            leaving[group] -= 1;
        }
        self.retiring[block as usize] &= !good;
        if good {
            self.state_changes += 1;
            self.states[block as usize] = BlockState::Free;
            self.free[group].push(block, erases);
        } else {
            assert!(self.usable[group] > 0, "block {block} goes bad, and group {group} has no good one");
            self.state_changes += 1;
            self.states[block as usize] = BlockState::Bad;
            self.usable[group] -= 1;
        }
    }

    /// One more valid unit.
    #[inline]
    pub(crate) fn add_valid(&mut self, block: BlockId) {
        let block = self.superblocks.of(block);
        debug_assert!(self.valid(block) < NOT_CLOSED - 1, "block {block} holds {} units", self.valid(block));
        self.valid[block as usize] += 1;
    }

    /// One valid unit less.
    #[inline]
    pub(crate) fn drop_valid(&mut self, block: BlockId) {
        let block = self.superblocks.of(block);
        debug_assert!(self.valid(block) > 0, "block {block} has something valid to lose");
        self.valid[block as usize] -= 1;
        self.state_changes += u64::from(self.valid(block) == 0);
    }

    /// `count` valid units go from one block to another.
    #[inline]
    pub(crate) fn move_valid(&mut self, from: u32, to: u32, count: u32) {
        assert!(self.valid(from) >= count, "block {from} has {count} valid units to give");
        debug_assert_ne!(from, to, "{count} units go to another block");
        debug_assert_eq!(self.states[from as usize], BlockState::Collecting, "block {from} gives {count} units away");
        self.valid[from as usize] -= count;
        self.state_changes += u64::from(self.valid(from) == 0);
        self.valid[to as usize] += count;
    }

    /// Forgets all valid counts and pins, before recovery counts anew.
    pub(crate) fn forget(&mut self) {
        self.valid.fill(NOT_CLOSED);
        self.pins.fill(0);
        self.erasing.fill(0);
        self.retiring.fill(false);
        self.trimmed.fill(false);
        self.kinds.fill(BlockKind::Data);
        for set_aside in &mut self.set_aside {
            set_aside.erasing.fill(0);
            set_aside.retiring.fill(0);
            set_aside.held.fill(0);
            set_aside.owed.fill(set_aside.quota);
        }
        self.owed.fill(self.set_aside.iter().map(|set_aside| set_aside.quota).sum());
    }

    /// An operation in flight must end before the block is erased.
    #[inline]
    pub(crate) fn pin(&mut self, block: BlockId) {
        let block = self.superblocks.of(block);
        debug_assert_ne!(self.states[block as usize], BlockState::Free, "block {block} is pinned, and holds nothing");
        self.pins[block as usize] += 1;
    }

    /// It has ended; true when the superblock now waits for nothing but its erase.
    #[inline]
    pub(crate) fn unpin(&mut self, block: BlockId) -> bool {
        self.unpin_superblock(self.superblocks.of(block))
    }

    /// Takes a pin from a superblock; true when it now waits for nothing but its erase.
    #[inline]
    pub(crate) fn unpin_superblock(&mut self, superblock: u32) -> bool {
        let pins = &mut self.pins[superblock as usize];
        assert!(*pins > 0, "block {superblock} was pinned");
        *pins -= 1;
        *pins == 0 && self.states[superblock as usize] == BlockState::Erasing
    }

    /// Pins a superblock that is to be erased: records must be on flash before its erase.
    pub(crate) fn pin_superblock(&mut self, superblock: u32) {
        let state = self.states[superblock as usize];
        assert_eq!(state, BlockState::Erasing, "superblock {superblock} waits for records before its erase");
        self.pins[superblock as usize] += 1;
    }

    /// Pins on a superblock.
    pub(crate) fn pins(&self, block: u32) -> u32 {
        self.pins[block as usize]
    }

    /// The block is in line to be emptied and go bad. One that was set aside gives nothing back: what it was for has
    /// another one from now on, since emptying it takes pages, too.
    pub(crate) fn set_retiring(&mut self, block: u32) {
        assert_ne!(self.states[block as usize], BlockState::Free, "block {block} holds nothing that must leave");
        assert!(!self.retiring[block as usize], "block {block} goes bad twice");
        self.retiring[block as usize] = true;
        self.state_changes += 1;
        let (kind, group) = (self.kind(block), self.by_per_group.div(block) as usize);
        if kind != BlockKind::Data {
            let set_aside = &mut self.set_aside[kind as usize];
            set_aside.retiring[group] += 1;
            set_aside.erasing[group] -= u32::from(self.states[block as usize] == BlockState::Erasing);
            self.owe_another(kind, group);
        }
    }

    /// Whether the block is in that line.
    #[inline]
    pub(crate) fn is_retiring(&self, block: u32) -> bool {
        self.retiring[block as usize]
    }

    /// A trim took a unit from the block.
    pub(crate) fn set_trimmed(&mut self, block: BlockId) {
        let block = self.superblocks.of(block);
        debug_assert_ne!(self.states[block as usize], BlockState::Free, "a trim took a unit from free block {block}");
        self.trimmed[block as usize] = true;
    }

    /// Whether a trim took a unit from the block since it was last erased.
    #[inline]
    pub(crate) fn is_trimmed(&self, block: u32) -> bool {
        self.trimmed[block as usize]
    }

    /// Puts a saved state back.
    pub(crate) fn restore_state(&mut self, block: u32, state: BlockState, closed_order: u64, trimmed: bool) {
        self.adopt(block, state);
        self.trimmed[block as usize] = trimmed;
        self.closed_order[block as usize] = closed_order;
    }

    /// Walks a group: its lists and counts agree with the states of its superblocks. Too slow for every erase of a long run.
    pub(crate) fn audit(&self, group: u32) {
        let of_group = group * self.per_group..(group + 1) * self.per_group;
        let (mut free, mut erasing, mut usable) = (0, 0, 0);
        for block in of_group {
            let (state, valid) = (self.states[block as usize], self.valid[block as usize]);
            free += usize::from(state == BlockState::Free);
            erasing += u32::from(state == BlockState::Erasing);
            usable += u32::from(state != BlockState::Bad);
            let victim = state == BlockState::Closed && self.kind(block) == BlockKind::Data;
            assert_eq!(victim, valid < NOT_CLOSED, "block {block} is {state:?}: a victim or not");
            if matches!(state, BlockState::Free | BlockState::Erasing) {
                assert_eq!(valid, NOT_CLOSED, "block {block} is {state:?} and holds valid units");
            }
            if state == BlockState::Free {
                assert_eq!(self.pins[block as usize], 0, "free block {block} is pinned");
            }
        }
        for kind in [BlockKind::Map, BlockKind::Log] {
            let of_group = self.kinds[(group * self.per_group) as usize..][..self.per_group as usize].iter();
            let held = of_group.filter(|other| **other == kind).count() as u32;
            assert_eq!(self.set_aside[kind as usize].held[group as usize], held, "group {group}: blocks of {kind:?}");
            let of_group = group * self.per_group..(group + 1) * self.per_group;
            let retiring = |block: &u32| self.kind(*block) == kind && self.retiring[*block as usize];
            let retiring = of_group.filter(retiring).count() as u32;
            let counted = self.set_aside[kind as usize].retiring[group as usize];
            assert_eq!(counted, retiring, "group {group}: blocks of {kind:?} that go bad");
        }
        let listed = self.free_list(group);
        assert_eq!(listed.len(), free, "group {group}: the free list and the free blocks");
        assert_eq!(self.erasing[group as usize], erasing, "group {group}: blocks that wait for their erase");
        assert_eq!(self.usable[group as usize], usable, "group {group}: good blocks");
        for block in listed {
            assert_eq!(self.states[block as usize], BlockState::Free, "block {block} is on the free list");
            assert_eq!(self.group_of(block), group, "block {block} is on the free list of another group");
        }
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

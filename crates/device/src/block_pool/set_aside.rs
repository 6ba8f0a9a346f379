//! Kinds of superblocks that are not data, such as map blocks: each group sets a number of them aside.

use ssdlab_base::saved;
use ssdlab_flash::BlockId;

use super::BlockPool;
use super::life_cycle::BlockState;
use super::valid::NOT_CLOSED;

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

saved!(enum BlockKind: Data, Map, Log);

/// Kinds of superblocks.
pub(super) const KINDS: usize = 3;

/// Superblocks of a kind that each group sets aside.
#[derive(Debug, Default)]
pub(super) struct SetAside {
    pub(super) quota: u32,
    /// By group: how many of these are free or being erased: they are not for data.
    pub(super) owed: Vec<u32>,
    /// By group: those that wait for the end of their erase, and come back then.
    pub(super) erasing: Vec<u32>,
    /// By group: those that go bad as soon as they are empty; others are owed in their stead.
    pub(super) retiring: Vec<u32>,
    /// By group: those of the kind.
    pub(super) held: Vec<u32>,
}

impl BlockPool {
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
        assert_ne!(kind, BlockKind::Data, "block {superblock} is found to hold data, which is set aside for nothing");
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
    pub(super) fn owe_another(&mut self, kind: BlockKind, group: usize) {
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
        debug_assert_ne!(kind, BlockKind::Data, "group {group} may have any number of blocks for data");
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
    pub(super) fn set_kind(&mut self, superblock: u32, kind: BlockKind) -> BlockKind {
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

    /// The closed map block of a group with the fewest valid units.
    pub(crate) fn emptiest_map_block(&self, group: u32) -> Option<u32> {
        let of_group = self.superblocks_of(group);
        let closed = of_group.filter(|block| self.is_map_block(*block) && self.state(*block) == BlockState::Closed);
        closed.min_by_key(|block| (self.valid(*block), *block))
    }

    /// Map pages are moved out of a superblock from now on.
    pub(crate) fn collect_map_block(&mut self, superblock: u32) {
        assert!(self.is_map_block(superblock), "block {superblock} holds no map pages");
        self.collect(superblock);
    }
}

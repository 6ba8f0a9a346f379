//! The states of a superblock from one erase to the next: open, full, closed, collected, erased; and what recovery and
//! saved state make of one.

use ssdlab_base::saved;
use ssdlab_flash::BlockId;

use super::BlockPool;
use super::set_aside::BlockKind;
use super::valid::NOT_CLOSED;

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

// At rest there is no other state.
saved!(enum BlockState: Free, Open, Closed, Bad);

impl BlockPool {
    /// The state of a block.
    #[inline]
    pub(crate) fn state(&self, block: u32) -> BlockState {
        self.states[block as usize]
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
        assert_eq!(self.loose[block as usize], 0, "block {block} to be erased holds nothing current");
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

    /// Puts a saved state back.
    pub(crate) fn restore_state(&mut self, block: u32, state: BlockState, closed_order: u64, trimmed: bool) {
        self.adopt(block, state);
        self.trimmed[block as usize] = trimmed;
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

    /// A number that is another one after the state or the kind of a superblock changed, or it was left with nothing valid.
    pub(crate) const fn state_changes(&self) -> u64 {
        self.state_changes
    }
}

//! A walk over a group that compares its lists and counts with the states of its superblocks.

use super::BlockPool;
use super::life_cycle::BlockState;
use super::set_aside::BlockKind;
use super::valid::NOT_CLOSED;

impl BlockPool {
    /// Walks a group: its lists and counts agree with the states of its superblocks. Too slow for every erase of a long run.
    pub(crate) fn audit(&self, group: u32) {
        let of_group = self.superblocks_of(group);
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
            let of_group = self.superblocks_of(group);
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
}

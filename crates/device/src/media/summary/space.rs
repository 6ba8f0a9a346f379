//! Space: blocks that were emptied and wait for lists, and lists that are written early so that they can be erased.

use std::collections::BTreeMap;

use ssdlab_flash::BlockId;

use super::{AfterLists, Unlisted};
use crate::block_pool::BlockState;
use crate::media::Media;

impl Media {
    /// A victim is empty. If no list names its pages, what they superseded is let go when lists name what was written up to now.
    pub(crate) fn was_emptied(&mut self, superblock: u32) {
        let block = BlockId(superblock);
        let mut twice = Vec::new();
        let Some(summary) = &mut self.summary else { return };
        let Some(unlisted) = summary.unlisted.get_mut(&block) else { return };
        assert!(!unlisted.emptied, "block {block} is emptied twice");
        unlisted.emptied = true;
        // A list whose program failed at the same instant, and was not told of yet, holds its pins no longer.
        for pin in std::mem::take(&mut unlisted.in_flight).into_iter().flat_map(|list| list.pins) {
            if !unlisted.pins.insert(pin) {
                twice.push(pin);
            }
        }
        twice.into_iter().for_each(|pin| self.release_listed(pin));
        let wanted = self.all_unlisted();
        let id = self.new_barrier(AfterLists::Forget(block));
        self.await_also(id, &wanted);
        let summary = self.summary();
        // One for this call, so that nothing ends it too early.
        summary.barriers.get_mut(&id).expect("it was made just now").left += 1 + summary.failed.len() as u32;
        summary.failed.values_mut().for_each(|waiting| waiting.push(id));
        self.one_less(id);
        self.list_for_emptied();
    }

    /// Lists name all that was moved out of a block whose own list failed.
    pub(super) fn forget_emptied(&mut self, block: BlockId) {
        let unlisted = self.summary().unlisted.remove(&block).expect("an emptied block is known until it is forgotten");
        assert!(unlisted.emptied, "block {block} is forgotten, and was not emptied");
        unlisted.pins.into_iter().for_each(|pin| self.release_listed(pin));
        unlisted.waiting.into_iter().for_each(|(_, barrier)| self.one_less(barrier));
    }

    /// Something waits for free blocks: where emptied blocks of a group wait for nothing but lists, those of one of them are
    /// written early. Returns whether one was.
    pub(crate) fn list_for_space(&mut self) -> bool {
        let lacks_space =
            |group: &u32| self.pool.free_blocks(*group) <= self.gc_reserve && self.pool.waits_for_erases(*group);
        let groups: Vec<u32> = (0..self.pool.groups()).filter(lacks_space).collect();
        let mut written = false;
        for blocks in self.awaited_for_space(&groups) {
            for block in blocks {
                written |= self.list_early(block);
            }
        }
        written
    }

    /// The blocks whose lists emptied blocks wait for and nothing else: for each of these groups, of the one that waits for the fewest.
    fn awaited_for_space(&self, groups: &[u32]) -> Vec<Vec<BlockId>> {
        let summary = self.summary.as_ref().expect("the drive lists owners");
        let waits = |superblock: &u32| {
            let pins = summary.pins[*superblock as usize];
            pins > 0 && self.pool.state(*superblock) == BlockState::Erasing && self.pool.pins(*superblock) == pins
        };
        let all = groups.iter().flat_map(|group| self.pool.superblocks_of(*group)).filter(waits);
        // In one walk for all groups: a drive that is nearly full comes here with every command that waits.
        let mut holders: BTreeMap<u32, Vec<BlockId>> = all.map(|superblock| (superblock, Vec::new())).collect();
        if holders.is_empty() {
            return Vec::new();
        }
        let mut hold = |superblock: u32, block: BlockId| {
            if let Some(blocks) = holders.get_mut(&superblock)
                && !blocks.contains(&block)
            {
                blocks.push(block);
            }
        };
        for (block, unlisted) in &summary.unlisted {
            // A list on its way comes without another one.
            let on_its_way = unlisted.in_flight.back().map_or(0, |list| list.page);
            unlisted.pins.iter().for_each(|pin| hold(pin.0, *block));
            for (_, id) in unlisted.waiting.iter().filter(|(pages, _)| *pages > on_its_way) {
                match summary.barriers[id].then {
                    AfterLists::Unpin(superblock) => hold(superblock, *block),
                    // What an emptied block holds waits for what it waits for.
                    AfterLists::Forget(emptied) => {
                        summary.unlisted[&emptied].pins.iter().for_each(|pin| hold(pin.0, *block));
                    }
                    AfterLists::End(_) | AfterLists::Room => {}
                }
            }
        }
        let fewest = |group: &u32| {
            let of_group = holders.range(self.pool.superblocks_of(*group)).map(|(_, blocks)| blocks);
            // Where one waits for nothing but lists on their way, none is written for another.
            of_group.min_by_key(|blocks| blocks.len()).filter(|blocks| !blocks.is_empty()).cloned()
        };
        groups.iter().filter_map(fewest).collect()
    }

    /// Writes lists of all open blocks with pages that none names; whether one was written.
    pub(crate) fn list_all(&mut self) -> bool {
        let Some(summary) = &self.summary else { return false };
        let blocks: Vec<BlockId> = summary.unlisted.keys().copied().collect();
        let mut written = false;
        for block in blocks {
            written |= self.list_early(block);
        }
        written
    }

    /// Pins that wait for lists, counted by walking all that does.
    pub(crate) fn pins_of_lists(&self) -> usize {
        let Some(summary) = &self.summary else { return 0 };
        let of_block = |unlisted: &Unlisted| {
            unlisted.pins.len() + unlisted.in_flight.iter().map(|list| list.pins.len()).sum::<usize>()
        };
        let of_barriers =
            summary.barriers.values().filter(|barrier| matches!(barrier.then, AfterLists::Unpin(_))).count();
        let walked = summary.unlisted.values().map(of_block).sum::<usize>() + of_barriers;
        let counted: u32 = summary.pins.iter().sum();
        assert_eq!(walked, counted as usize, "pins of lists, walked and counted");
        walked
    }
}

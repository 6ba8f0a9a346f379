//! FAB: the block with the most pages in the buffer leaves as a whole.
//!
//! Jo et al., "FAB: Flash-Aware Buffer Management Policy for Portable Media Players", IEEE Transactions on Consumer
//! Electronics 52(2), 2006: pages are grouped by the block that they belong to; the group with the most pages is the
//! victim, of several the one that was used longest ago, and all its pages leave, in the order of their addresses. A block
//! is a run of `buffer.block_pages` pages of the logical space. Pages are counted, partial ones like full ones.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use ssdlab_flash::Lpn;

use super::blocks::{BLOCK_PAGES, Blocks, block_units};
use super::{BufferPolicy, Policy, Slot, Unit, View};

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "fab",
    summary: "the block with the most pages in the buffer leaves as a whole (FAB)",
    keys: &[BLOCK_PAGES],
    make: Some(|config| Box::new(Fab::new(block_units(config)))),
};

/// See the module.
pub(super) struct Fab {
    blocks: Blocks,
    /// Pages of a block, when it was last used (the later, the smaller), the block: the victim is the last.
    ranked: BTreeSet<(u32, u64, u32)>,
    used: FxHashMap<u32, u64>,
    clock: u64,
}

impl Fab {
    pub(super) fn new(block_units: u32) -> Fab {
        Fab { blocks: Blocks::new(block_units), ranked: BTreeSet::new(), used: FxHashMap::default(), clock: 0 }
    }

    /// A block is used, by a unit that is there already.
    fn rank(&mut self, block: u32, before: u32) {
        if let Some(used) = self.used.get(&block) {
            let known = self.ranked.remove(&(before, u64::MAX - used, block));
            assert!(known, "block {block} has the rank of its {before} units");
        }
        self.clock += 1;
        self.used.insert(block, self.clock);
        self.ranked.insert((self.blocks.count(block), u64::MAX - self.clock, block));
    }
}

impl BufferPolicy for Fab {
    fn insert(&mut self, slot: Slot, unit: &Unit) {
        let now = self.blocks.insert(unit.lpn, slot);
        self.rank(self.blocks.of(unit.lpn), now - 1);
    }

    fn touch(&mut self, _: Slot, unit: &Unit) {
        let block = self.blocks.of(unit.lpn);
        self.rank(block, self.blocks.count(block));
    }

    fn remove(&mut self, _: Slot, lpn: Lpn, _: bool) {
        let block = self.blocks.of(lpn);
        let left = self.blocks.remove(lpn);
        let used = self.used[&block];
        let known = self.ranked.remove(&(left + 1, u64::MAX - used, block));
        assert!(known, "block {block} has the rank of its {} units", left + 1);
        debug_assert_eq!(self.ranked.len() + 1, self.used.len(), "every block has one rank");
        if left == 0 {
            self.used.remove(&block);
        } else {
            self.ranked.insert((left, u64::MAX - used, block));
        }
    }

    fn victims(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        self.coming(wanted, out);
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        for (.., block) in self.ranked.iter().rev() {
            if out.len() >= wanted {
                break;
            }
            out.extend(self.blocks.slots(*block));
        }
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("buffer_order_bytes", self.blocks.bytes() + self.used.len() as u64 * 16)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::model::{Model, Written, drive};

    /// LPNs in the buffer and when their block was last written.
    struct Naive {
        units: Vec<Lpn>,
        used: Vec<(u32, u64)>,
        clock: u64,
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            let lpn = write.lpn;
            self.clock += 1;
            if !self.units.contains(&lpn) {
                self.units.push(lpn);
            }
            self.used.retain(|(block, _)| *block != lpn / 4);
            self.used.push((lpn / 4, self.clock));
        }

        fn leave(&mut self, lpn: Lpn, _: bool) {
            self.units.retain(|other| *other != lpn);
        }

        fn victim(&mut self, _: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            let pages = |block: u32| self.units.iter().filter(|lpn| **lpn / 4 == block).count();
            let most = self.used.iter().map(|(block, _)| pages(*block)).max()?;
            let block = self.used.iter().find(|(block, _)| pages(*block) == most)?.0;
            self.units.iter().copied().filter(|lpn| *lpn / 4 == block).min()
        }
    }

    #[test]
    fn the_fullest_block_leaves_and_of_several_the_one_used_longest_ago() {
        for seed in 0..40 {
            let mut naive = Naive { units: Vec::new(), used: Vec::new(), clock: 0 };
            drive(seed, Box::new(Fab::new(4)), 4, &mut naive);
        }
    }
}

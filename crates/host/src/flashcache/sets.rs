//! Slots of the cache: which block of the disk each holds, found by set, and which one a new block replaces.
//!
//! The cache is a set-associative hash: a block may be in one set alone, and blocks that follow one another share a set, so that
//! neighbours are found together (FlashCache, doc/flashcache-doc.txt, Design). Within a set the block that came first is replaced,
//! or the one that was used longest ago; dirty blocks never are.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::config::Replacement;

/// No block.
const NOTHING: u32 = u32::MAX;

/// A slot as it is now.
#[derive(Clone, Copy, Debug)]
struct Slot {
    block: u32,
    is_dirty: bool,
    /// The drive is being told that the slot holds nothing.
    is_held: bool,
    /// Its place in the order of uses.
    used: u64,
}

const EMPTY: Slot = Slot { block: NOTHING, is_dirty: false, is_held: false, used: 0 };

/// The slots of all sets.
#[derive(Debug)]
pub(super) struct Sets {
    slots: Vec<Slot>,
    by_block: FxHashMap<u32, u32>,
    set_blocks: u32,
    replacement: Replacement,
    /// By set: where FIFO looks next, and how many blocks are dirty.
    next: Vec<u32>,
    dirty: Vec<u32>,
    dirty_blocks: BTreeSet<u32>,
    uses: u64,
}

impl Sets {
    /// So many sets of so many slots, all empty.
    pub(super) fn new(sets: u32, set_blocks: u32, replacement: Replacement) -> Sets {
        assert!(sets > 0 && set_blocks > 0, "a cache has a slot");
        Sets {
            slots: vec![EMPTY; sets as usize * set_blocks as usize],
            by_block: FxHashMap::default(),
            set_blocks,
            replacement,
            next: vec![0; sets as usize],
            dirty: vec![0; sets as usize],
            dirty_blocks: BTreeSet::new(),
            uses: 0,
        }
    }

    /// The set of a block: that of its neighbours.
    pub(super) fn set_of(&self, block: u32) -> u32 {
        block / self.set_blocks % self.next.len() as u32
    }

    pub(super) const fn set_of_slot(&self, slot: u32) -> u32 {
        slot / self.set_blocks
    }

    const fn slots_of(&self, set: u32) -> Range<u32> {
        set * self.set_blocks..(set + 1) * self.set_blocks
    }

    /// Sets.
    pub(super) fn sets(&self) -> u32 {
        self.next.len() as u32
    }

    /// Slots of a set.
    pub(super) const fn set_blocks(&self) -> u32 {
        self.set_blocks
    }

    /// Slots.
    pub(super) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The slot that holds a block.
    pub(super) fn find(&self, block: u32) -> Option<u32> {
        self.by_block.get(&block).copied()
    }

    /// The block in a slot.
    pub(super) fn block_in(&self, slot: u32) -> Option<u32> {
        Some(self.slots[slot as usize].block).filter(|block| *block != NOTHING)
    }

    pub(super) fn is_dirty(&self, slot: u32) -> bool {
        self.slots[slot as usize].is_dirty
    }

    /// Dirty blocks of a set.
    pub(super) fn dirty_of(&self, set: u32) -> u32 {
        self.dirty[set as usize]
    }

    /// Dirty blocks of all sets.
    pub(super) fn dirty(&self) -> u32 {
        self.dirty_blocks.len() as u32
    }

    /// Blocks in the cache.
    pub(super) fn cached(&self) -> u32 {
        self.by_block.len() as u32
    }

    /// The block in a slot is used now.
    pub(super) fn touch(&mut self, slot: u32) {
        assert!(self.block_in(slot).is_some(), "slot {slot} holds no block");
        self.uses += 1;
        self.slots[slot as usize].used = self.uses;
    }

    /// Gives a block that is in no slot the one that is empty, or that of the clean block that is replaced, which comes back; none
    /// where every slot of the set is dirty or in use, as `is_busy` says of a block.
    pub(super) fn insert(&mut self, block: u32, is_busy: impl Fn(u32) -> bool) -> Option<(u32, Option<u32>)> {
        assert!(self.find(block).is_none() && block != NOTHING, "block {block} has a slot");
        let slot = self.victim(self.set_of(block), is_busy)?;
        let before = self.block_in(slot);
        if let Some(before) = before {
            self.drop_clean(before);
        }
        self.put(slot, block);
        Some((slot, before))
    }

    /// A slot that is empty holds this block.
    pub(super) fn put(&mut self, slot: u32, block: u32) {
        assert_eq!(self.set_of_slot(slot), self.set_of(block), "block {block} in slot {slot}");
        assert!(self.block_in(slot).is_none() && !self.slots[slot as usize].is_held, "slot {slot} is in use");
        let before = self.by_block.insert(block, slot);
        assert!(before.is_none(), "block {block} is in slot {before:?}, too");
        self.slots[slot as usize].block = block;
        self.touch(slot);
    }

    fn victim(&mut self, set: u32, is_busy: impl Fn(u32) -> bool) -> Option<u32> {
        let slots = self.slots_of(set);
        let is_empty = |slot: &u32| {
            let slot = &self.slots[*slot as usize];
            slot.block == NOTHING && !slot.is_held
        };
        if let Some(slot) = slots.clone().find(is_empty) {
            return Some(slot);
        }
        let may_go = |slot: &u32| {
            let Slot { block, is_dirty, .. } = self.slots[*slot as usize];
            block != NOTHING && !is_dirty && !is_busy(block)
        };
        match self.replacement {
            Replacement::Fifo => {
                let first = slots.start + self.next[set as usize];
                let slot = (first..slots.end).chain(slots.start..first).find(may_go)?;
                self.next[set as usize] = (slot + 1 - slots.start) % self.set_blocks;
                Some(slot)
            }
            Replacement::Lru => slots.filter(may_go).min_by_key(|slot| self.slots[*slot as usize].used),
        }
    }

    /// A block that is clean leaves; its slot, if it had one.
    pub(super) fn drop_clean(&mut self, block: u32) -> Option<u32> {
        let slot = self.by_block.remove(&block)?;
        let state = &mut self.slots[slot as usize];
        assert!(!state.is_dirty, "block {block} is dirty");
        state.block = NOTHING;
        Some(slot)
    }

    /// Every clean block leaves for which `may_go`; how many.
    pub(super) fn drop_all_clean(&mut self, may_go: impl Fn(u32) -> bool) -> u32 {
        let clean = |(block, slot): (&u32, &u32)| (!self.is_dirty(*slot) && may_go(*block)).then_some(*block);
        let mut blocks: Vec<u32> = self.by_block.iter().filter_map(clean).collect();
        blocks.sort_unstable();
        blocks.iter().for_each(|block| assert!(self.drop_clean(*block).is_some(), "block {block} was there"));
        blocks.len() as u32
    }

    /// Nothing is put into a slot meanwhile.
    pub(super) fn hold(&mut self, slot: u32, is_held: bool) {
        assert!(self.block_in(slot).is_none(), "slot {slot} holds a block");
        self.slots[slot as usize].is_held = is_held;
    }

    /// Whether the block in a slot is dirty from now on.
    pub(super) fn set_dirty(&mut self, slot: u32, is_dirty: bool) {
        assert!(self.block_in(slot).is_some(), "slot {slot} holds no block");
        if self.is_dirty(slot) == is_dirty {
            return;
        }
        let state = &mut self.slots[slot as usize];
        state.is_dirty = is_dirty;
        let of_set = &mut self.dirty[(slot / self.set_blocks) as usize];
        let has_changed = if is_dirty {
            *of_set += 1;
            self.dirty_blocks.insert(state.block)
        } else {
            *of_set -= 1;
            self.dirty_blocks.remove(&state.block)
        };
        assert!(has_changed, "block {} is dirty in one slot", state.block);
    }

    /// Dirty slots of a set in the order in which they would be replaced, were they clean.
    pub(super) fn dirty_in_order(&self, set: u32) -> Vec<u32> {
        let slots = self.slots_of(set);
        let first = slots.start + self.next[set as usize];
        let is_dirty = |slot: &u32| self.is_dirty(*slot);
        let mut dirty: Vec<u32> = (first..slots.end).chain(slots.start..first).filter(is_dirty).collect();
        if self.replacement == Replacement::Lru {
            dirty.sort_by_key(|slot| self.slots[*slot as usize].used);
        }
        dirty
    }

    /// The first block from `from` on and before `end` that is dirty.
    pub(super) fn first_dirty(&self, from: u32, end: u32) -> Option<u32> {
        self.dirty_blocks.range(from..end.max(from)).next().copied()
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    /// A set as a list of blocks in the order in which they go, with what is dirty.
    #[derive(Default, Clone)]
    struct Model(Vec<(u32, bool)>);

    /// LRU against lists in the order of use; FIFO against lists in the order of arrival, as long as no block leaves before its turn.
    #[test]
    fn sets_replace_what_lists_say() {
        for (replacement, sets, set_blocks) in
            [(Replacement::Fifo, 3, 4), (Replacement::Lru, 3, 4), (Replacement::Fifo, 1, 9), (Replacement::Lru, 5, 1)]
        {
            let mut rng = rng(sets.into(), "sets");
            let mut cache = Sets::new(sets, set_blocks, replacement);
            let mut model = vec![Model::default(); sets as usize];
            let mut replaced = 0;
            for _ in 0..20_000 {
                let block = rng.random_range(0..sets * set_blocks * 3);
                let set = (block / set_blocks % sets) as usize;
                assert_eq!(cache.set_of(block), set as u32);
                let list = &mut model[set].0;
                let at = list.iter().position(|(other, _)| *other == block);
                assert_eq!(cache.find(block).is_some(), at.is_some(), "block {block}");
                match (at, cache.find(block)) {
                    (Some(at), Some(slot)) if rng.random_bool(0.5) => {
                        cache.touch(slot);
                        if replacement == Replacement::Lru {
                            let one = list.remove(at);
                            list.push(one);
                        }
                    }
                    (Some(at), Some(slot)) if replacement == Replacement::Lru && rng.random_bool(0.3) => {
                        cache.set_dirty(slot, false);
                        assert_eq!(cache.drop_clean(block), Some(slot));
                        list.remove(at);
                    }
                    (Some(at), Some(slot)) => {
                        // FIFO passes over a dirty block, and comes back to it after a round: only lists without any are compared.
                        let is_dirty = replacement == Replacement::Lru && rng.random_bool(0.5);
                        cache.set_dirty(slot, is_dirty);
                        list[at].1 = is_dirty;
                    }
                    _ => {
                        let busy = rng.random_range(0..set_blocks * 3);
                        let is_busy = |block: u32| replacement == Replacement::Lru && block % (set_blocks * 3) == busy;
                        let is_full = list.len() as u32 == set_blocks;
                        let goes = list.iter().position(|(block, dirty)| !dirty && !is_busy(*block));
                        let expected = if is_full { goes.map(|at| list[at].0) } else { None };
                        let found = cache.insert(block, is_busy);
                        assert_eq!(found.is_some(), !is_full || goes.is_some(), "block {block}");
                        if let Some((slot, before)) = found {
                            assert_eq!((before, cache.block_in(slot)), (expected, Some(block)));
                            list.retain(|(other, _)| Some(*other) != expected);
                            list.push((block, false));
                            replaced += u32::from(expected.is_some());
                        }
                    }
                }
                let dirty = |list: &Model| list.0.iter().filter(|(_, dirty)| *dirty).count() as u32;
                let all: Vec<u32> = model.iter().map(dirty).collect();
                assert_eq!((0..sets).map(|set| cache.dirty_of(set)).collect::<Vec<_>>(), all);
                assert_eq!(cache.dirty(), all.iter().sum::<u32>());
                assert_eq!(cache.cached() as usize, model.iter().map(|list| list.0.len()).sum::<usize>());
                let in_order = cache.dirty_in_order(set as u32).into_iter().filter_map(|slot| cache.block_in(slot));
                let expected = model[set].0.iter().filter(|(_, dirty)| *dirty).map(|(block, _)| *block);
                assert_eq!(in_order.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                let (from, end) = (rng.random_range(0..30), rng.random_range(30..200));
                let dirty = model.iter().flat_map(|list| list.0.iter().filter(|(_, dirty)| *dirty));
                let first = dirty.map(|(block, _)| *block).filter(|block| (from..end).contains(block)).min();
                assert_eq!(cache.first_dirty(from, end), first);
            }
            assert!(replaced > 1000, "{replaced} blocks were replaced");
        }
    }

    #[test]
    fn a_held_slot_takes_nothing_and_fifo_passes_over_what_is_dirty() {
        let mut cache = Sets::new(1, 3, Replacement::Fifo);
        let free = |_: u32| false;
        for block in 0..3 {
            assert_eq!(cache.insert(block, free), Some((block, None)));
        }
        cache.set_dirty(0, true);
        assert_eq!(cache.insert(7, free), Some((1, Some(1))), "the first clean one goes");
        assert_eq!(cache.insert(8, |block| block == 2), Some((1, Some(7))), "one in use stays");
        assert_eq!(cache.drop_clean(8), Some(1));
        cache.hold(1, true);
        assert_eq!(cache.insert(9, |block| block == 2), None);
        cache.hold(1, false);
        assert_eq!(cache.insert(9, free), Some((1, None)));
        assert_eq!(cache.drop_all_clean(|block| block != 2), 1);
        assert_eq!((cache.cached(), cache.find(0), cache.find(2)), (2, Some(0), Some(2)));
    }
}

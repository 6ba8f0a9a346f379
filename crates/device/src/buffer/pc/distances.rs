//! Page conversion distances (WAFLASH, 3.1).
//!
//! The PCD of a partial page is the number of distinct pages between two consecutive references to it. Every reference is
//! a mark at the next tick of a logical clock; a page that is referenced again takes its older mark away, so the marks
//! behind a page's own are the distinct pages since. They are counted by bits and a Fenwick tree over words of bits: the
//! logarithm of the clock's range, without a walk. When the clock has run out the ticks are numbered anew.
//!
//! A page that left keeps its mark: it was referenced all the same. If it comes back it is counted again, for the
//! mark is not known to be its own; that is the only difference from the definition.

use crate::buffer::Slot;

/// The fewest ticks.
const LEAST_TICKS: usize = 1024;

/// A slot without a reference.
const NEVER: u32 = u32::MAX;

/// See the module.
pub(in crate::buffer) struct Distances {
    /// One bit a tick: it is some page's latest reference.
    marks: Vec<u64>,
    /// A Fenwick tree over the words of `marks`; entry 0 is unused.
    tree: Vec<u32>,
    /// By tick: the page that was referenced, whether or not it is still there.
    page_of: Vec<Slot>,
    /// By slot: the tick of its latest reference.
    tick: Vec<u32>,
    /// By slot: marks of pages that had left, behind its own, from before the ticks were numbered anew.
    left_since: Vec<u32>,
    /// Marks in all.
    marked: u32,
    /// Pages there.
    pages: u32,
    next: u32,
    /// All PCDs tracked, and how many.
    sum: u64,
    count: u64,
}

impl Distances {
    pub(in crate::buffer) fn new() -> Distances {
        Distances {
            marks: vec![0; LEAST_TICKS / 64],
            tree: vec![0; LEAST_TICKS / 64 + 1],
            page_of: vec![Slot::NONE; LEAST_TICKS],
            tick: Vec::new(),
            left_since: Vec::new(),
            marked: 0,
            pages: 0,
            next: 0,
            sum: 0,
            count: 0,
        }
    }

    /// A page came in.
    pub(in crate::buffer) fn came(&mut self, slot: Slot) {
        if self.tick.len() <= slot.index() {
            self.tick.resize(slot.index() + 1, NEVER);
            self.left_since.resize(slot.index() + 1, 0);
        }
        self.pages += 1;
        self.mark(slot);
    }

    /// A page that is there was referenced; it was partial until then or not.
    #[inline]
    pub(in crate::buffer) fn referenced(&mut self, slot: Slot, partial: bool) {
        debug_assert_ne!(self.tick[slot.index()], NEVER, "slot {slot} is referenced, and is not there");
        if partial {
            self.sum += u64::from(self.since(slot));
            self.count += 1;
        }
        let tick = self.tick[slot.index()];
        self.marks[tick as usize / 64] &= !(1 << (tick % 64));
        self.count_word(tick as usize / 64, u32::MAX);
        self.marked -= 1;
        self.mark(slot);
    }

    /// A page left.
    pub(in crate::buffer) fn left(&mut self, slot: Slot) {
        assert_ne!(self.tick[slot.index()], NEVER, "slot {slot} leaves, and is not there");
        assert!(self.pages > 0, "slot {slot} leaves, and no page is there");
        self.tick[slot.index()] = NEVER;
        self.pages -= 1;
    }

    /// Distinct pages referenced since the page was.
    fn since(&self, slot: Slot) -> u32 {
        let tick = self.tick[slot.index()];
        let word = tick as usize / 64;
        let mut behind = self.marked - (self.marks[word] & (u64::MAX >> (63 - tick % 64))).count_ones();
        let mut node = word;
        while node > 0 {
            behind -= self.tree[node];
            node &= node - 1;
        }
        behind.saturating_add(self.left_since[slot.index()])
    }

    fn mark(&mut self, slot: Slot) {
        if self.next as usize == self.page_of.len() {
            // Without its old mark it is not there for a moment.
            self.tick[slot.index()] = NEVER;
            self.renumber();
        }
        let tick = self.next;
        self.next += 1;
        self.tick[slot.index()] = tick;
        self.left_since[slot.index()] = 0;
        self.page_of[tick as usize] = slot;
        self.marks[tick as usize / 64] |= 1 << (tick % 64);
        self.count_word(tick as usize / 64, 1);
        self.marked += 1;
    }

    /// Adds to a word's count; `u32::MAX` takes one away.
    #[inline]
    fn count_word(&mut self, word: usize, by: u32) {
        let mut node = word + 1;
        while node < self.tree.len() {
            self.tree[node] = self.tree[node].wrapping_add(by);
            node += node & node.wrapping_neg();
        }
    }

    /// Pages that are there get the first ticks, in order; the marks of those that left become numbers.
    fn renumber(&mut self) {
        let mut left = 0_u32;
        let mut there = Vec::with_capacity(self.pages as usize);
        for tick in (0..self.next).rev() {
            let slot = self.page_of[tick as usize];
            if self.marks[tick as usize / 64] >> (tick % 64) & 1 == 0 {
                continue;
            }
            if self.tick[slot.index()] == tick {
                let since = &mut self.left_since[slot.index()];
                *since = since.saturating_add(left);
                there.push(slot);
            } else {
                left += 1;
            }
        }
        let ticks = (there.len() * 2).next_power_of_two().max(LEAST_TICKS);
        self.marks = vec![0; ticks / 64];
        self.tree = vec![0; ticks / 64 + 1];
        self.page_of = vec![Slot::NONE; ticks];
        assert!(there.len() <= self.pages as usize, "{} page marks, {} of them present", there.len(), self.pages);
        self.next = there.len() as u32;
        self.marked = self.next;
        for (tick, slot) in there.into_iter().rev().enumerate() {
            self.tick[slot.index()] = tick as u32;
            self.page_of[tick] = slot;
            self.marks[tick / 64] |= 1 << (tick % 64);
            self.count_word(tick / 64, 1);
        }
    }

    /// ACD: the mean of all PCDs so far, rounded down; 0 before the first.
    pub(in crate::buffer) fn mean(&self) -> u32 {
        self.sum.checked_div(self.count).map_or(0, |mean| u32::try_from(mean).unwrap_or(u32::MAX))
    }

    /// ACD and how many PCDs it is the mean of.
    pub(in crate::buffer) fn figures(&self) -> Vec<(&'static str, f64)> {
        let mean = if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 };
        vec![("buffer_conversion_distance", mean), ("buffer_conversion_distances", self.count as f64)]
    }

    /// RAM that a real drive would need for PCDs.
    pub(in crate::buffer) fn bytes(&self) -> u64 {
        let slots = self.tick.len() as u64 * 8;
        self.marks.len() as u64 * 8 + self.tree.len() as u64 * 4 + self.page_of.len() as u64 * 4 + slots
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn a_distance_is_the_number_of_distinct_pages_in_between() {
        for seed in 0..30 {
            let mut rng = rng(seed, "distances");
            let mut distances = Distances::new();
            let slots = rng.random_range(1..300);
            // Which stay of which page each reference was to.
            let mut references: Vec<u64> = Vec::new();
            let mut stay: Vec<Option<u64>> = vec![None; slots as usize];
            let mut stays = 0;
            for _ in 0..6000 {
                let slot = Slot(rng.random_range(0..slots));
                match stay[slot.index()] {
                    None => {
                        stays += 1;
                        stay[slot.index()] = Some(stays);
                        references.push(stays);
                        distances.came(slot);
                    }
                    Some(_) if rng.random_bool(0.3) => {
                        stay[slot.index()] = None;
                        distances.left(slot);
                    }
                    Some(number) => {
                        let since = references.iter().rev().take_while(|other| **other != number);
                        let distinct: std::collections::BTreeSet<_> = since.collect();
                        let (sum, count) = (distances.sum, distances.count);
                        assert_eq!(distances.since(slot) as usize, distinct.len(), "seed {seed}");
                        let partial = rng.random_bool(0.7);
                        distances.referenced(slot, partial);
                        assert_eq!(distances.count, count + u64::from(partial));
                        assert_eq!(distances.sum, sum + if partial { distinct.len() as u64 } else { 0 });
                        references.push(number);
                    }
                }
            }
        }
    }

    /// A B C B A: two distinct pages between the references to A, one between those to B.
    #[test]
    fn pages_referenced_twice_are_one() {
        let mut distances = Distances::new();
        assert_eq!(distances.mean(), 0);
        (0..3).for_each(|slot| distances.came(Slot(slot)));
        distances.referenced(Slot(1), true);
        assert_eq!(distances.mean(), 1);
        distances.referenced(Slot(0), true);
        assert_eq!((distances.sum, distances.count), (3, 2));
    }
}

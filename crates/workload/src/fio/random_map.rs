//! Which blocks a pass has already covered, for block sizes that vary: fio's random map.
//!
//! A bitmap with summaries above it, 64 to one, so that the next free block is found in a handful of words however
//! large the drive is. With one fixed block size a [`Permutation`](crate::draw::Permutation) does the same in
//! no memory, and this map is not built.

/// A set of blocks `0..size`, all free at first.
#[derive(Clone, Debug)]
pub(crate) struct RandomMap {
    size: u64,
    used: u64,
    /// `levels[0]` has a bit for each block, set when used; above, a bit is set when the whole word below is.
    levels: Vec<Vec<u64>>,
}

impl RandomMap {
    /// A map of `size` free blocks.
    pub(crate) fn new(size: u64) -> RandomMap {
        assert!(size > 0, "a map of nothing covers nothing");
        let mut map = RandomMap { size, used: 0, levels: Vec::new() };
        let mut bits = size;
        loop {
            let words = bits.div_ceil(64);
            map.levels.push(vec![0; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        map.clear();
        map
    }

    /// Memory of a map of `size` blocks.
    pub(crate) fn bytes(size: u64) -> u64 {
        let (mut bytes, mut bits) = (0, size);
        loop {
            let words = bits.div_ceil(64);
            bytes += words * 8;
            if words <= 1 {
                return bytes;
            }
            bits = words;
        }
    }

    /// Every block is free again.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        let mut bits = self.size;
        for level in &mut self.levels {
            level.fill(0);
            // Bits behind the end count as used, so that nothing ever finds them.
            if !bits.is_multiple_of(64)
                && let Some(last) = level.last_mut()
            {
                *last = u64::MAX << (bits % 64);
            }
            bits = bits.div_ceil(64);
        }
    }

    /// Whether every block is used.
    pub(crate) fn is_full(&self) -> bool {
        self.used == self.size
    }

    /// Whether `block` is used.
    pub(crate) fn contains(&self, block: u64) -> bool {
        self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// The first free block at `start` or behind it, from the beginning when there is none, `None` when full.
    pub(crate) fn next_free(&self, start: u64) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        self.free_at_or_behind(start).or_else(|| self.free_at_or_behind(0))
    }

    fn free_at_or_behind(&self, start: u64) -> Option<u64> {
        let mut position = start;
        let mut level = 0;
        // Climb while the rest of the word is used.
        loop {
            let words = self.levels.get(level)?;
            let word = *words.get((position / 64) as usize)?;
            let free = !word & (u64::MAX << (position % 64));
            if free != 0 {
                position = position / 64 * 64 + u64::from(free.trailing_zeros());
                break;
            }
            position = position / 64 + 1;
            level += 1;
        }
        // Come down to the first free bit below.
        while level > 0 {
            level -= 1;
            let free = !self.levels[level][position as usize];
            assert!(free != 0, "the summary says that word {position} of level {level} has a free bit");
            position = position * 64 + u64::from(free.trailing_zeros());
        }
        Some(position)
    }

    /// Marks up to `count` blocks from `block`, stopping before one that is used; returns how many were marked.
    pub(crate) fn mark(&mut self, block: u64, count: u64) -> u64 {
        let mut marked = 0;
        while marked < count && block + marked < self.size && !self.contains(block + marked) {
            self.set(block + marked);
            marked += 1;
        }
        self.used += marked;
        marked
    }

    fn set(&mut self, block: u64) {
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                break;
            }
            bit /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_map_agrees_with_a_plain_set(
            size in 1_u64..9000,
            steps in proptest::collection::vec((any::<u64>(), 1_u64..200), 0..400),
        ) {
            let mut map = RandomMap::new(size);
            let mut free: BTreeSet<u64> = (0..size).collect();
            for (start, count) in steps {
                let start = start % size;
                let expected = free.range(start..).next().or_else(|| free.iter().next()).copied();
                prop_assert_eq!(map.next_free(start), expected);
                let Some(block) = expected else { break };
                let marked = map.mark(block, count);
                prop_assert!(marked >= 1);
                for each in block..block + marked {
                    prop_assert!(free.remove(&each));
                }
                prop_assert!(marked == count || !free.contains(&(block + marked)));
                prop_assert_eq!(map.is_full(), free.is_empty());
            }
            map.clear();
            prop_assert_eq!(map.next_free(size - 1), Some(size - 1));
        }
    }
}

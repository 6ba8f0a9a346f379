//! Free segments, a bit each.

/// A set of segments.
#[derive(Debug)]
pub(crate) struct FreeSegments {
    words: Vec<u64>,
    count: u32,
}

impl FreeSegments {
    /// None of so many segments.
    pub(crate) fn new(segments: u32) -> FreeSegments {
        FreeSegments { words: vec![0; segments.div_ceil(64) as usize], count: 0 }
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> u32 {
        self.count
    }

    /// Puts in a segment that is not there.
    pub(crate) fn insert(&mut self, segment: u32) {
        let (word, bit) = (&mut self.words[segment as usize / 64], 1 << (segment % 64));
        assert_eq!(*word & bit, 0, "segment {segment} is not free yet");
        *word |= bit;
        self.count += 1;
    }

    /// Takes out the first segment from `from` on, or the first of all where none follows.
    pub(crate) fn take(&mut self, from: u32) -> Option<u32> {
        let segment = self.first(from).or_else(|| self.first(0))?;
        self.words[segment as usize / 64] &= !(1 << (segment % 64));
        self.count -= 1;
        Some(segment)
    }

    fn first(&self, from: u32) -> Option<u32> {
        let start = from as usize / 64;
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in self.words.iter().enumerate().skip(start) {
            let left = word & mask;
            if left != 0 {
                return Some(index as u32 * 64 + left.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }

    /// Bytes of the set.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ssdlab_base::rng;

    use super::*;
    use rand::Rng as _;

    #[test]
    fn it_takes_what_a_sorted_set_takes() {
        let mut rng = rng(1, "free segments");
        for segments in [1, 63, 64, 65, 1000] {
            let (mut free, mut model) = (FreeSegments::new(segments), BTreeSet::new());
            for _ in 0..3000 {
                let at = rng.next_u32() % segments;
                if rng.next_u32().is_multiple_of(2) {
                    if model.insert(at) {
                        free.insert(at);
                    }
                    continue;
                }
                let expected = model.range(at..).next().or_else(|| model.iter().next()).copied();
                expected.map(|segment| model.remove(&segment));
                assert_eq!(free.take(at), expected);
                assert_eq!(free.len() as usize, model.len());
            }
        }
    }
}

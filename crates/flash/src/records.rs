//! Words of metadata units, by physical unit: found by block first, so that an erase forgets them together.

use rustc_hash::FxHashMap;

use crate::UnitId;

/// The words of one unit.
pub(crate) type Words = Box<[u64]>;

/// All of them.
#[derive(Debug)]
pub(crate) struct Records {
    units_per_block: u32,
    blocks: FxHashMap<u32, FxHashMap<UnitId, Words>>,
    len: usize,
}

impl Records {
    pub(crate) fn new(units_per_block: u32) -> Records {
        assert!(units_per_block > 0, "a block has units");
        Records { units_per_block, blocks: FxHashMap::default(), len: 0 }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, unit: UnitId) -> Option<&[u64]> {
        self.blocks.get(&(unit.0 / self.units_per_block))?.get(&unit).map(|words| &**words)
    }

    pub(crate) fn insert(&mut self, unit: UnitId, words: Words) {
        let block = self.blocks.entry(unit.0 / self.units_per_block).or_default();
        self.len += usize::from(block.insert(unit, words).is_none());
    }

    pub(crate) fn remove(&mut self, unit: UnitId) -> Option<Words> {
        let words = self.blocks.get_mut(&(unit.0 / self.units_per_block))?.remove(&unit)?;
        self.len -= 1;
        Some(words)
    }

    /// Forgets the words of all units of a block.
    pub(crate) fn remove_block(&mut self, block: u32) {
        self.len -= self.blocks.remove(&block).map_or(0, |units| units.len());
    }

    pub(crate) fn retain(&mut self, stays: impl Fn(UnitId) -> bool) {
        for units in self.blocks.values_mut() {
            units.retain(|unit, _| stays(*unit));
        }
        self.len = self.blocks.values().map(FxHashMap::len).sum();
    }

    /// All units with their words, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (UnitId, &[u64])> {
        let mut all: Vec<(UnitId, &[u64])> =
            self.blocks.values().flatten().map(|(unit, words)| (*unit, &**words)).collect();
        all.sort_unstable_by_key(|(unit, _)| *unit);
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted map.
        #[test]
        fn records_are_a_map_in_order(steps in prop::collection::vec((0u8..4, 0u32..64, any::<u64>()), 0..200)) {
            let (mut records, mut model) = (Records::new(8), BTreeMap::<UnitId, Words>::new());
            for (step, unit, word) in steps {
                let unit = UnitId(unit);
                match step {
                    0 => {
                        records.remove_block(unit.0 / 8);
                        model.retain(|other, _| other.0 / 8 != unit.0 / 8);
                    }
                    1 => prop_assert_eq!(records.remove(unit), model.remove(&unit)),
                    2 if word % 8 == 0 => {
                        records.retain(|unit| unit.0 % 3 != 0);
                        model.retain(|unit, _| unit.0 % 3 != 0);
                    }
                    _ => {
                        records.insert(unit, vec![word].into());
                        model.insert(unit, vec![word].into());
                    }
                }
                prop_assert_eq!(records.len(), model.len());
                prop_assert_eq!(records.get(unit), model.get(&unit).map(|words| &**words));
            }
            let all: Vec<(UnitId, &[u64])> = model.iter().map(|(unit, words)| (*unit, &**words)).collect();
            prop_assert_eq!(records.iter().collect::<Vec<_>>(), all);
        }
    }
}

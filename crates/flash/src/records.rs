//! Words of metadata units, by physical unit: found by block first, so that an erase forgets them together.
//!
//! A unit that is written anew with few other words hands its own to the newer one, and keeps what they were before. So a map page
//! is not copied whole each time; what was handed on is put together again when the power goes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::UnitId;

/// The words of one unit.
pub(crate) type Words = Box<[u64]>;

/// What a unit has.
#[derive(Clone, Debug, PartialEq)]
enum UnitWords {
    Words(Words),
    /// Those of another unit, but for some: where, and what is there.
    HandedOn {
        to: UnitId,
        before: Box<[(u32, u64)]>,
    },
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Records {
    units_per_block: u32,
    blocks: FxHashMap<u32, FxHashMap<UnitId, UnitWords>>,
    len: usize,
    /// Units that handed their words on: those whose successor is in flight, and few others.
    handed_on: BTreeSet<UnitId>,
}

impl Records {
    pub(crate) fn new(units_per_block: u32) -> Records {
        assert!(units_per_block > 0, "a block has units");
        Records { units_per_block, blocks: FxHashMap::default(), len: 0, handed_on: BTreeSet::new() }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn find(&self, unit: UnitId) -> Option<&UnitWords> {
        self.blocks.get(&(unit.0 / self.units_per_block))?.get(&unit)
    }

    /// The words of a unit that has not handed them on.
    #[inline]
    pub(crate) fn get(&self, unit: UnitId) -> Option<&[u64]> {
        match self.find(unit)? {
            UnitWords::Words(words) => Some(words),
            UnitWords::HandedOn { to, .. } => panic!("the words of unit {unit} are asked for, and {to} has them"),
        }
    }

    /// The words of a unit, put together if it handed them on.
    fn whole(&self, unit: UnitId) -> Option<Cow<'_, [u64]>> {
        match self.find(unit)? {
            UnitWords::Words(words) => Some(Cow::Borrowed(words)),
            UnitWords::HandedOn { to, before } => {
                let mut words =
                    self.whole(*to).unwrap_or_else(|| panic!("unit {to} has the words of {unit}")).into_owned();
                before.iter().for_each(|(index, word)| words[*index as usize] = *word);
                Some(Cow::Owned(words))
            }
        }
    }

    pub(crate) fn insert(&mut self, unit: UnitId, words: Words) {
        self.before_it_goes(unit);
        self.put(unit, words);
    }

    fn put(&mut self, unit: UnitId, words: Words) {
        self.handed_on.remove(&unit);
        let block = self.blocks.entry(unit.0 / self.units_per_block).or_default();
        self.len += usize::from(block.insert(unit, UnitWords::Words(words)).is_none());
    }

    /// `to` has the words of `from`, but for `changes`.
    pub(crate) fn hand_on(&mut self, from: UnitId, to: UnitId, changes: impl Iterator<Item = (u32, u64)>) {
        assert_ne!(from, to, "a unit hands its words on to another");
        self.before_it_goes(to);
        let block = self.blocks.get_mut(&(from.0 / self.units_per_block));
        let held = block.and_then(|block| block.get_mut(&from)).unwrap_or_else(|| panic!("unit {from} has words"));
        let UnitWords::Words(words) = held else { panic!("unit {from} hands its words on twice") };
        let mut words = std::mem::take(words);
        let before = changes.map(|(index, word)| (index, std::mem::replace(&mut words[index as usize], word)));
        // The first of several changes in one place is what was there before.
        let mut before: Vec<(u32, u64)> = before.collect();
        before.reverse();
        *held = UnitWords::HandedOn { to, before: before.into() };
        self.put(to, words);
        self.handed_on.insert(from);
    }

    /// Whether a unit has words, and has not handed them on.
    pub(crate) fn can_hand_on(&self, unit: UnitId) -> bool {
        matches!(self.find(unit), Some(UnitWords::Words(_)))
    }

    /// Whatever has its words in `unit` gets them back.
    fn before_it_goes(&mut self, unit: UnitId) {
        if !self.handed_on.is_empty() {
            self.take_back(|to| to == unit);
        }
    }

    fn take_back(&mut self, goes: impl Fn(UnitId) -> bool) {
        let is_held_there =
            |unit: &&UnitId| matches!(self.find(**unit), Some(UnitWords::HandedOn { to, .. }) if goes(*to));
        let units: Vec<UnitId> = self.handed_on.iter().filter(is_held_there).copied().collect();
        for unit in units {
            let words: Words = self.whole(unit).expect("it handed its words on").into_owned().into();
            self.handed_on.remove(&unit);
            let block = self.blocks.entry(unit.0 / self.units_per_block).or_default();
            block.insert(unit, UnitWords::Words(words));
        }
    }

    /// Gives back the words of a unit that had not handed them on.
    pub(crate) fn remove(&mut self, unit: UnitId) -> Option<Words> {
        self.find(unit)?;
        self.before_it_goes(unit);
        let held = self.blocks.get_mut(&(unit.0 / self.units_per_block))?.remove(&unit)?;
        self.len -= 1;
        match held {
            UnitWords::Words(words) => Some(words),
            UnitWords::HandedOn { .. } => {
                self.handed_on.remove(&unit);
                None
            }
        }
    }

    /// Forgets the words of all units of a block.
    pub(crate) fn remove_block(&mut self, block: u32) {
        let units_per_block = self.units_per_block;
        let is_of_block = |unit: UnitId| unit.0 / units_per_block == block;
        if !self.handed_on.is_empty() {
            self.take_back(is_of_block);
            self.handed_on.retain(|unit| !is_of_block(*unit));
        }
        self.len -= self.blocks.remove(&block).map_or(0, |units| units.len());
    }

    /// Keeps the words of some units. Nothing is handed on any more then.
    pub(crate) fn retain(&mut self, stays: impl Fn(UnitId) -> bool) {
        self.take_back(|_| true);
        for units in self.blocks.values_mut() {
            units.retain(|unit, _| stays(*unit));
        }
        self.len = self.blocks.values().map(FxHashMap::len).sum();
    }

    /// All units, in no order.
    pub(crate) fn units(&self) -> impl Iterator<Item = UnitId> {
        self.blocks.values().flat_map(FxHashMap::keys).copied()
    }

    /// All units with their words, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (UnitId, Cow<'_, [u64]>)> {
        let mut units: Vec<UnitId> = self.units().collect();
        units.sort_unstable();
        units.into_iter().map(|unit| (unit, self.whole(unit).expect("a unit that has words")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted map in which every unit has words of its own.
        #[test]
        fn records_are_a_map_in_order(steps in prop::collection::vec((0u8..6, 0u32..64, 0u32..64, any::<u64>()), 0..200)) {
            let (mut records, mut model) = (Records::new(8), BTreeMap::<UnitId, Words>::new());
            for (step, unit, other, word) in steps {
                let (unit, other) = (UnitId(unit), UnitId(other));
                match step {
                    0 => {
                        records.remove_block(unit.0 / 8);
                        model.retain(|other, _| other.0 / 8 != unit.0 / 8);
                    }
                    1 => {
                        let had = model.remove(&unit);
                        let was_whole = records.can_hand_on(unit);
                        prop_assert_eq!(records.remove(unit), had.filter(|_| was_whole));
                    }
                    2 if word % 8 == 0 => {
                        records.retain(|unit| unit.0 % 3 != 0);
                        model.retain(|unit, _| unit.0 % 3 != 0);
                    }
                    3 | 4 if unit != other && records.can_hand_on(unit) => {
                        let changes = [((word % 3) as u32, word), ((word % 2) as u32, !word)];
                        records.hand_on(unit, other, changes.into_iter());
                        let mut words = model[&unit].clone();
                        changes.iter().for_each(|(index, word)| words[*index as usize] = *word);
                        model.insert(other, words);
                    }
                    _ => {
                        records.insert(unit, vec![word, 1, 2].into());
                        model.insert(unit, vec![word, 1, 2].into());
                    }
                }
                prop_assert_eq!(records.len(), model.len());
                prop_assert_eq!(records.whole(unit).map(|words| words.to_vec()), model.get(&unit).map(|words| words.to_vec()));
            }
            let all: Vec<(UnitId, Vec<u64>)> = model.iter().map(|(unit, words)| (*unit, words.to_vec())).collect();
            let found: Vec<(UnitId, Vec<u64>)> = records.iter().map(|(unit, words)| (unit, words.to_vec())).collect();
            prop_assert_eq!(found, all);
        }
    }
}

//! What the layer keeps of its table on the device: a slot for each place of the log, and a header.
//!
//! Places have positions: numbers that only grow, the place being the position modulo the log's places. The slot of a place
//! says which unit was written there, in which round of the log, or that the unit has gone home since. Of slots that name one
//! unit that of the highest position is right. The header says before which position everything is home.
//!
//! A slot and a word of the header stand in a sector of their own, which a power cut leaves whole, and fit 8 bytes, which is
//! all that is kept of a sector where contents are stamps. So each record counts by itself, and none has to be written
//! together with another. What makes them safe is when they are written: a slot names what is on flash, and the header passes
//! a place when what replaces it is on flash, and the slot that says so.

use std::collections::BTreeSet;
use std::ops::Range;

use super::layout::Layout;
use crate::sequentializing::RedirectionTable;

/// Tell the header's words from other contents.
const MAGIC_FREED: u64 = 0x5d2e;
const MAGIC_LOG: u64 = 0x5d2f;

/// Bits of a slot: the unit, the round of the log, a check of both, and whether the unit has gone home.
const ROUND_SHIFT: u32 = 32;
const ROUND_BITS: u32 = 24;
const CHECK_SHIFT: u32 = 56;
const HOME: u64 = 1 << 63;

/// Where a unit is, as a slot says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) unit: u32,
    /// It was here, and its own address has something newer.
    pub(super) is_home: bool,
}

/// A check of a slot's other bits; that of no bits is not 0, so that cleared sectors are no slots.
const fn check(bits: u64) -> u64 {
    (!bits).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (CHECK_SHIFT + 1)
}

impl Slot {
    const fn to_word(self, round: u64) -> u64 {
        let home = if self.is_home { HOME } else { 0 };
        let bits = home | (round & ((1 << ROUND_BITS) - 1)) << ROUND_SHIFT | self.unit as u64;
        bits | check(bits) << CHECK_SHIFT
    }

    /// `None` where the word is no slot of that round.
    fn from_word(word: u64, round: u64) -> Option<Slot> {
        let slot = Slot { unit: word as u32, is_home: word & HOME != 0 };
        (slot.to_word(round) == word).then_some(slot)
    }
}

/// The header's words.
pub(super) const fn header(freed: u64, places: u32) -> [u64; 2] {
    [MAGIC_FREED << 48 | freed, MAGIC_LOG << 48 | places as u64]
}

/// What a header says: the position before which everything is home, and the places of the log; `None` where it is none.
pub(super) fn read_header(words: [u64; 2]) -> Option<(u64, u64)> {
    let body = |word: u64| word & ((1 << 48) - 1);
    let is_one = words[0] >> 48 == MAGIC_FREED && words[1] >> 48 == MAGIC_LOG;
    is_one.then(|| (body(words[0]), body(words[1])))
}

/// The slots as they are on the device, or will be when the commit that is in flight has ended.
pub(super) struct Records {
    places: u32,
    /// Slots that are written together: those in a unit of the device's.
    group: u32,
    words: Vec<u64>,
    /// Everything before this position is home.
    freed: u64,
    /// Groups that differ from what is on the device.
    stale: BTreeSet<u32>,
}

impl Records {
    /// Of an empty log, or as they were found.
    pub(super) fn new(layout: &Layout, freed: u64, found: Option<Vec<u64>>) -> Records {
        let words = found.unwrap_or_else(|| vec![0; layout.places as usize]);
        assert_eq!(words.len(), layout.places as usize, "a slot for each place");
        Records { places: layout.places, group: layout.per_unit as u32, words, freed, stale: BTreeSet::new() }
    }

    /// The position before which everything is home.
    pub(super) const fn freed(&self) -> u64 {
        self.freed
    }

    /// Everything before this position is home now.
    pub(super) fn free(&mut self, to: u64) {
        assert!(to >= self.freed && to - self.freed <= u64::from(self.places), "{to} after {}", self.freed);
        assert!(to < 1 << 48, "the header has 48 bits for a position");
        self.freed = to;
    }

    /// A slot says something new. One that was freed in the meantime says nothing any more.
    pub(super) fn set(&mut self, position: u64, slot: Slot) {
        if position < self.freed {
            return;
        }
        assert!(position - self.freed < u64::from(self.places), "position {position} is beyond the log");
        let place = (position % u64::from(self.places)) as u32;
        let word = slot.to_word(position / u64::from(self.places));
        if std::mem::replace(&mut self.words[place as usize], word) != word {
            self.stale.insert(place / self.group);
        }
    }

    /// The position that the slot of a place is right for.
    const fn position_of(&self, place: u32) -> u64 {
        let places = self.places as u64;
        let (round, first) = (self.freed / places, self.freed % places);
        (if (place as u64) < first { round + 1 } else { round }) * places + place as u64
    }

    /// Makes a table say what the slots say; gives back the position behind the last of them.
    pub(super) fn tell(&self, table: &mut RedirectionTable, units: u32) -> u64 {
        table.clear();
        let mut head = self.freed;
        let first = (self.freed % u64::from(self.places)) as u32;
        for place in (first..self.places).chain(0..first) {
            let position = self.position_of(place);
            let found = Slot::from_word(self.words[place as usize], position / u64::from(self.places));
            let Some(Slot { unit, is_home }) = found.filter(|slot| slot.unit < units) else { continue };
            head = position + 1;
            if is_home {
                table.remove(unit);
            } else {
                table.insert(unit, place);
            }
        }
        head
    }

    /// Whether the device has all of them.
    pub(super) fn is_clean(&self) -> bool {
        self.stale.is_empty()
    }

    /// The device does not have these any more, or perhaps not.
    pub(super) fn are_stale(&mut self, slots: Range<u32>) {
        self.stale.extend(slots.start / self.group..slots.end.div_ceil(self.group));
    }

    /// Slots that are to be written, in runs of whole groups and at most `most` slots.
    pub(super) fn take_stale(&mut self, most: u32) -> Vec<Range<u32>> {
        let most = (most / self.group).max(1) as usize;
        let groups: Vec<u32> = std::mem::take(&mut self.stale).into_iter().collect();
        let runs = groups.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(most));
        let end = self.places;
        runs.map(|run| run[0] * self.group..((run[run.len() - 1] + 1) * self.group).min(end)).collect()
    }

    /// The words of slots.
    pub(super) fn words(&self, slots: Range<u32>) -> &[u64] {
        &self.words[slots.start as usize..slots.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn a_word_reads_back_in_its_round_alone() {
        for (unit, is_home, round) in [(0, false, 0), (7, true, 1), (u32::MAX - 1, false, (1 << ROUND_BITS) - 1)] {
            let slot = Slot { unit, is_home };
            let word = slot.to_word(round);
            assert_eq!(Slot::from_word(word, round), Some(slot));
            assert_eq!(Slot::from_word(word, round + 1), None);
            assert_eq!(Slot::from_word(word ^ 1 << 20, round), None);
        }
        assert_eq!((Slot::from_word(0, 0), Slot::from_word(u64::MAX, 0)), (None, None));
        assert_eq!(read_header(header(123, 45)), Some((123, 45)));
        assert_eq!((read_header([0, 0]), read_header([header(1, 2)[1], header(1, 2)[0]])), (None, None));
    }

    /// Against a map that is told in order, over many rounds of the log, with a device that has what was written of it.
    #[test]
    fn slots_tell_what_was_set_last_of_each_unit() {
        let mut rng = rng(11, "records");
        for (places, per_unit) in [(4, 1), (16, 8), (37, 8)] {
            let layout = Layout { sectors: 800, per_unit, places, slots: 0, header: 0 };
            let mut records = Records::new(&layout, 0, None);
            let mut device = records.words.clone();
            let (mut head, mut model) = (0_u64, HashMap::<u32, (u64, bool)>::new());
            for _ in 0..4000 {
                if head - records.freed < u64::from(places) && rng.random_bool(0.7) {
                    let unit = rng.random_range(0..100);
                    records.set(head, Slot { unit, is_home: false });
                    model.insert(unit, (head, false));
                    head += 1;
                } else if let Some((unit, (position, _))) = model.iter().min().map(|(unit, at)| (*unit, *at))
                    && rng.random_bool(0.5)
                {
                    records.set(position, Slot { unit, is_home: true });
                    model.insert(unit, (position, true));
                } else {
                    records.free(rng.random_range(records.freed..=head));
                    model.retain(|_, (position, _)| *position >= records.freed);
                }
                if rng.random_bool(0.3) {
                    for run in records.take_stale(16) {
                        device[run.start as usize..run.end as usize].copy_from_slice(records.words(run));
                    }
                    assert_eq!(device, records.words);
                    let found = Records::new(&layout, records.freed, Some(device.clone()));
                    let mut table = RedirectionTable::new(places);
                    let to = found.tell(&mut table, 100);
                    assert!(to <= head && to >= records.freed);
                    for unit in 0..100 {
                        let expected = model.get(&unit).filter(|(_, is_home)| !is_home);
                        let expected = expected.map(|(position, _)| (position % u64::from(places)) as u32);
                        assert_eq!(table.place_of(unit), expected, "unit {unit}");
                    }
                }
            }
            assert!(head > u64::from(places) * 20);
        }
    }
}

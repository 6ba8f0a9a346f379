//! The redirection table: which unit of the host's is at which place of a log, in both directions (SHRD, sections 4.2 and 4.3).

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Bytes of RAM that the paper's driver has for an entry: 256 KB for 16,384 entries.
const ENTRY_BYTES: u64 = 16;

/// A place that holds nothing.
const NOTHING: u32 = u32::MAX;

/// Where units are.
pub(crate) struct RedirectionTable {
    /// By place: the unit that was written there last; it is there still if `places` says so.
    units: Vec<u32>,
    /// By unit: its place.
    places: FxHashMap<u32, u32>,
    most: usize,
}

impl RedirectionTable {
    /// An empty one, of a log of so many places.
    pub(crate) fn new(places: u32) -> RedirectionTable {
        RedirectionTable { units: vec![NOTHING; places as usize], places: FxHashMap::default(), most: 0 }
    }

    /// Bytes of RAM for it.
    pub(crate) fn bytes(&self) -> u64 {
        self.units.len() as u64 * ENTRY_BYTES
    }

    /// Entries, and the most that there ever were.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.places.len(), self.most)
    }

    /// Where a unit is.
    #[inline]
    pub(crate) fn place_of(&self, unit: u32) -> Option<u32> {
        if self.places.is_empty() { None } else { self.places.get(&unit).copied() }
    }

    /// The unit that is at a place, if it is there still.
    pub(crate) fn unit_at(&self, place: u32) -> Option<u32> {
        let unit = self.units[place as usize];
        (unit != NOTHING && self.place_of(unit) == Some(place)).then_some(unit)
    }

    /// A unit is at a place now; gives back where it was.
    pub(crate) fn insert(&mut self, unit: u32, place: u32) -> Option<u32> {
        self.units[place as usize] = unit;
        let before = self.places.insert(unit, place);
        self.most = self.most.max(self.places.len());
        before
    }

    /// A unit is in the log no more; gives back where it was.
    pub(crate) fn remove(&mut self, unit: u32) -> Option<u32> {
        if self.places.is_empty() { None } else { self.places.remove(&unit) }
    }

    /// Units of a range that are in the log, in no order.
    pub(crate) fn in_range(&self, range: Range<u32>) -> Vec<u32> {
        if self.places.is_empty() {
            return Vec::new();
        }
        if range.len() > self.places.len() {
            return self.places.keys().copied().filter(|unit| range.contains(unit)).collect();
        }
        range.filter(|unit| self.places.contains_key(unit)).collect()
    }

    /// The first unit from `from` on, and before `end`, that is in the log, or not, as `redirected` says.
    pub(crate) fn next(&self, from: u32, end: u32, redirected: bool) -> u32 {
        if self.places.is_empty() {
            return if redirected { end } else { from };
        }
        (from..end).find(|unit| self.places.contains_key(unit) == redirected).unwrap_or(end)
    }

    /// Whether a sector holds data, and the first sector up to `end` from which on that is different: what is in the log does, the rest
    /// is as `below` says, from a sector up to another. A unit has `per_unit` sectors.
    pub(crate) fn mapped_run(
        &self,
        per_unit: u64,
        sector: u64,
        end: u64,
        below: impl Fn(u64, u64) -> (bool, u64),
    ) -> (bool, u64) {
        let run = |from: u64| {
            let (unit, last) = ((from / per_unit) as u32, end.div_ceil(per_unit) as u32);
            let is_redirected = self.place_of(unit).is_some();
            let to = end.min(u64::from(self.next(unit, last, !is_redirected)) * per_unit);
            if is_redirected { (true, to) } else { below(from, to) }
        };
        let (is_mapped, mut to) = run(sector);
        while to < end {
            let (next_is_mapped, next) = run(to);
            if next_is_mapped != is_mapped {
                break;
            }
            to = next;
        }
        (is_mapped, to)
    }

    /// Nothing is in the log.
    pub(crate) fn clear(&mut self) {
        self.units.fill(NOTHING);
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn the_table_says_what_a_vector_says() {
        let mut rng = rng(1, "table");
        let (units, places) = (300_u32, 64_u32);
        let mut table = RedirectionTable::new(places);
        let mut model: Vec<Option<u32>> = vec![None; units as usize];
        for step in 0..20_000 {
            let unit = rng.random_range(0..units);
            match rng.random_range(0..10) {
                0..5 => {
                    let place = rng.random_range(0..places);
                    // A place is given out again when nothing is there any more.
                    if table.unit_at(place).is_none() {
                        assert_eq!(table.insert(unit, place), model[unit as usize]);
                        model[unit as usize] = Some(place);
                    }
                }
                5..8 => assert_eq!(table.remove(unit), model[unit as usize].take()),
                _ if step % 500 == 0 => {
                    table.clear();
                    model.fill(None);
                }
                _ => {}
            }
            assert_eq!(table.place_of(unit), model[unit as usize]);
            let place = rng.random_range(0..places);
            let expected = model.iter().position(|at| *at == Some(place)).map(|unit| unit as u32);
            assert_eq!(table.unit_at(place), expected, "place {place}");
            let (from, end) = (unit, (unit + rng.random_range(0..200)).min(units));
            let mut found = table.in_range(from..end);
            found.sort_unstable();
            let inside: Vec<u32> = (from..end).filter(|unit| model[*unit as usize].is_some()).collect();
            assert_eq!(found, inside);
            assert_eq!(table.next(from, end, true), inside.first().copied().unwrap_or(end));
            let outside = (from..end).find(|unit| model[*unit as usize].is_none());
            assert_eq!(table.next(from, end, false), outside.unwrap_or(end));
            assert_eq!(table.len().0, model.iter().flatten().count());
        }
    }
}

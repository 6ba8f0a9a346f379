//! The page map, in both directions, and how much of each segment is valid.

use ssdlab_base::Divider;

use super::layout::{LOST, Layout, NOWHERE};

/// Where units are.
pub(super) struct Map {
    /// By unit: its place, [`NOWHERE`] or [`LOST`].
    places: Vec<u32>,
    /// By place: the unit that was written there last.
    units: Vec<u32>,
    /// By place, a bit each: that unit is there still. Cleaning asks this, and leaves `places` alone, which is in no cache.
    holds: Vec<u64>,
    /// By segment: places whose unit is there still.
    valid: Vec<u32>,
    by_segment_units: Divider,
}

impl Map {
    /// Nothing is anywhere.
    pub(super) fn new(layout: &Layout) -> Map {
        Map {
            places: vec![NOWHERE; layout.units as usize],
            units: vec![NOWHERE; (layout.segments * layout.segment_units) as usize],
            holds: vec![0; (layout.segments * layout.segment_units).div_ceil(64) as usize],
            valid: vec![0; layout.segments as usize],
            by_segment_units: Divider::new(layout.segment_units),
        }
    }

    /// Bytes of RAM for it.
    pub(super) fn bytes(&self) -> u64 {
        (self.places.len() + self.units.len() + self.valid.len()) as u64 * 4 + self.holds.len() as u64 * 8
    }

    pub(super) fn len(&self) -> u32 {
        self.places.len() as u32
    }

    /// Where a unit is: a place, [`NOWHERE`] or [`LOST`].
    #[inline]
    pub(super) fn get(&self, unit: u32) -> u32 {
        self.places[unit as usize]
    }

    /// Whether a unit holds something, even if that cannot be read.
    #[inline]
    pub(super) fn holds(&self, unit: u32) -> bool {
        self.get(unit) != NOWHERE
    }

    /// The places of consecutive units.
    pub(super) fn places(&self, units: std::ops::Range<u32>) -> &[u32] {
        &self.places[units.start as usize..units.end as usize]
    }

    /// The unit that is at a place.
    #[inline]
    pub(super) fn unit_at(&self, place: u32) -> Option<u32> {
        let is_there = self.holds[place as usize / 64] >> (place % 64) & 1 != 0;
        is_there.then(|| self.units[place as usize])
    }

    /// Brings what writes of these units will change into the processor's cache: no load of a pass waits for another one of it.
    pub(super) fn prefetch(&self, units: impl Iterator<Item = u32> + Clone) {
        let places = units.map(|unit| self.get(unit));
        let seen = places.clone().fold(0, |seen, place| seen ^ place);
        let mapped = places.filter(|place| *place < LOST);
        std::hint::black_box(mapped.fold(u64::from(seen), |seen, place| seen ^ self.holds[place as usize / 64]));
    }

    /// Units that a segment holds.
    pub(super) fn valid(&self, segment: u32) -> u32 {
        self.valid[segment as usize]
    }

    /// A unit that is at a place has a copy, which counts from now on. It reads nothing of `places`.
    #[inline]
    pub(super) fn move_copied(&mut self, unit: u32, from: u32, to: u32) {
        debug_assert_eq!((self.get(unit), self.unit_at(from)), (from, Some(unit)), "unit {unit} is moved from {from}");
        self.places[unit as usize] = to;
        self.leaves(from);
        self.takes(to, unit);
    }

    #[inline]
    fn leaves(&mut self, place: u32) {
        self.valid[self.by_segment_units.div(place) as usize] -= 1;
        self.holds[place as usize / 64] &= !(1 << (place % 64));
    }

    #[inline]
    fn takes(&mut self, place: u32, unit: u32) {
        self.units[place as usize] = unit;
        self.valid[self.by_segment_units.div(place) as usize] += 1;
        self.holds[place as usize / 64] |= 1 << (place % 64);
    }

    /// A unit is somewhere else now.
    #[inline]
    pub(super) fn set(&mut self, unit: u32, place: u32) {
        let before = std::mem::replace(&mut self.places[unit as usize], place);
        assert!(before != place || place >= LOST, "unit {unit} is written to place {place}, where it is");
        if before < LOST {
            self.leaves(before);
        }
        if place < LOST {
            self.takes(place, unit);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;
    use ssdlab_device::Pacing;

    use super::*;
    use crate::append::config::{AppendConfig, Cleaning};
    use crate::layers::Below;

    #[test]
    fn the_map_says_what_a_list_says() {
        let below = Below { sectors: 40 * 64, unit_bytes: 4096, segment: Some(64), most_active: 0 };
        let cleaning = Cleaning::Greedy;
        let config = AppendConfig {
            over_provisioning: 7,
            cleaning,
            free_segments: 2,
            pacing: Pacing::Off,
            copies: 1,
            copy_size: 4096,
        };
        let layout = Layout::new(&below, &config).expect("a layout");
        let mut map = Map::new(&layout);
        let mut model = vec![NOWHERE; layout.units as usize];
        let mut rng = rng(1, "map");
        for _ in 0..5000 {
            let unit = rng.random_range(0..layout.units);
            let place = match rng.random_range(0..8) {
                0 => NOWHERE,
                1 => LOST,
                _ => rng.random_range(0..layout.segments * layout.segment_units),
            };
            // A place is written once before its segment is trimmed.
            if place < LOST && map.unit_at(place).is_some() {
                continue;
            }
            map.set(unit, place);
            model[unit as usize] = place;
            assert_eq!(map.get(unit), place);
        }
        assert_eq!(map.places(0..layout.units), model);
        for segment in 0..layout.segments {
            let places = segment * layout.segment_units..(segment + 1) * layout.segment_units;
            let expected = model.iter().filter(|place| places.contains(place)).count() as u32;
            assert_eq!(map.valid(segment), expected);
            assert_eq!(places.filter(|place| map.unit_at(*place).is_some()).count() as u32, expected);
        }
    }
}

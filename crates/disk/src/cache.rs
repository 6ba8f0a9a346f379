//! The write cache: written data that is not on the medium yet. It is lost with the power.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::ops::Range;

use ssdlab_base::{Nanos, Saved, damaged, load};

use crate::contents::Contents;
use crate::seeded::{DiskBug, seeded};

/// Sectors that were written together.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    end: u64,
    /// Which write it is from; later ones have greater numbers.
    number: u64,
    /// When that took effect, in nanoseconds.
    since: u64,
}

ssdlab_base::saved!(Extent: end, number, since);

/// The cache. Extents do not overlap.
pub(crate) struct WriteCache {
    data: Contents,
    /// By their first sector.
    extents: BTreeMap<u64, Extent>,
    /// Number and first sector of each, so that the oldest is found.
    ages: BTreeSet<(u64, u64)>,
}

impl WriteCache {
    pub(crate) fn new(per_sector: usize) -> WriteCache {
        WriteCache { data: Contents::new(per_sector), extents: BTreeMap::new(), ages: BTreeSet::new() }
    }

    pub(crate) const fn sectors(&self) -> u64 {
        self.data.sectors()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    pub(crate) fn has_all(&self, range: &Range<u64>) -> bool {
        self.data.has_all(range)
    }

    pub(crate) fn run(&self, sector: u64, end: u64) -> (bool, u64) {
        self.data.run(sector, end)
    }

    /// Copies what is cached of `range` over `data`.
    pub(crate) fn read(&self, range: &Range<u64>, data: &mut [u8]) {
        self.data.read(range, data);
    }

    fn add(&mut self, start: u64, extent: Extent) {
        debug_assert!(start < extent.end, "an extent has sectors");
        self.ages.insert((extent.number, start));
        let before = self.extents.insert(start, extent);
        assert!(before.is_none(), "extents of the cache overlap at {start}");
    }

    /// Takes the extents in `range` out of the lists, without their data; what they have outside of it stays.
    fn cut_out(&mut self, range: &Range<u64>) {
        let from = self.extents.range(..range.start).next_back().filter(|(_, extent)| extent.end > range.start);
        let from = from.map_or(range.start, |(start, _)| *start);
        let overlapping: Vec<(u64, Extent)> =
            self.extents.range(from..range.end).map(|(start, extent)| (*start, *extent)).collect();
        for (start, extent) in overlapping {
            self.extents.remove(&start);
            let was_there = self.ages.remove(&(extent.number, start));
            assert!(was_there, "every extent has an age");
            if start < range.start {
                self.add(start, Extent { end: range.start, ..extent });
            }
            if extent.end > range.end {
                self.add(range.end, extent);
            }
        }
    }

    /// Takes a write, which is newer than what is there.
    pub(crate) fn insert(&mut self, range: &Range<u64>, data: &[u8], number: u64, since: Nanos) {
        let kept = range.end - 1..range.end;
        let older = (seeded(DiskBug::OverlapKeepsOld) && self.data.has_all(&kept)).then(|| self.data.take(&kept));
        self.cut_out(range);
        self.data.write(range, data);
        if let Some(older) = older {
            self.data.write(&kept, &older);
        }
        self.add(range.start, Extent { end: range.end, number, since: since.0 });
    }

    /// Takes out sectors that are all there, with their data: they go to the medium.
    pub(crate) fn take(&mut self, range: &Range<u64>) -> Vec<u8> {
        self.cut_out(range);
        self.data.take(range)
    }

    /// Takes out what is there of `range`.
    pub(crate) fn forget(&mut self, range: &Range<u64>) {
        self.cut_out(range);
        let mut sector = range.start;
        while sector < range.end {
            let (there, to) = self.data.run(sector, range.end);
            if there {
                self.data.remove(&(sector..to));
            }
            sector = to;
        }
    }

    /// First sectors of what is cached without a gap, `most` of them: those from `sector` on, and then those before it. The first one
    /// may be within such a run.
    pub(crate) fn run_starts(&self, sector: u64, most: usize) -> Vec<u64> {
        let mut starts = Vec::new();
        for part in [sector..u64::MAX, 0..sector] {
            let mut next = part.start;
            while starts.len() < most
                && let Some((start, _)) = self.extents.range(next..part.end).next()
            {
                starts.push(*start);
                next = self.data.run(*start, part.end).1;
            }
        }
        starts
    }

    /// The first sector of the oldest extent, and when it was written.
    pub(crate) fn oldest(&self) -> Option<(u64, Nanos)> {
        let (_, start) = self.ages.first()?;
        Some((*start, Nanos(self.extents[start].since)))
    }

    /// The end of what is cached without a gap from `sector` on, at most `end`.
    pub(crate) fn run_end(&self, sector: u64, end: u64) -> u64 {
        let (there, to) = self.data.run(sector, end);
        assert!(there, "sector {sector} is in the cache");
        to
    }

    /// Whether extents, ages and data agree.
    pub(crate) fn is_consistent(&self) -> bool {
        let mut behind = 0;
        let in_order = self.extents.iter().all(|(start, extent)| {
            let follows = *start >= behind && *start < extent.end;
            behind = extent.end;
            follows && self.ages.contains(&(extent.number, *start)) && self.data.has_all(&(*start..extent.end))
        });
        let sectors = || self.extents.iter().map(|(start, extent)| extent.end - start).sum::<u64>();
        in_order
            && sectors() == self.data.sectors()
            && self.ages.len() == self.extents.len()
            && self.data.is_consistent()
    }

    /// The last sector that is cached.
    pub(crate) fn last(&self) -> Option<u64> {
        self.data.last()
    }
}

impl Saved for WriteCache {
    fn save_to(&self, to: &mut dyn Write) -> io::Result<()> {
        self.data.save_to(to)?;
        self.extents.save_to(to)
    }

    fn load_from(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.data.load_from(from)?;
        self.extents = load(from)?;
        self.ages = self.extents.iter().map(|(start, extent)| (extent.number, *start)).collect();
        if self.is_consistent() { Ok(()) } else { Err(damaged("the write cache of a saved state contradicts itself")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_the_newest_data_in_extents_that_do_not_overlap(
            steps in proptest::collection::vec((0_u64..100, 1_u64..60, 0_u8..4), 1..40),
        ) {
            let mut cache = WriteCache::new(1);
            let mut model: BTreeMap<u64, u8> = BTreeMap::new();
            for (number, (from, length, what)) in steps.into_iter().enumerate() {
                let range = from..from + length;
                match what {
                    0 => {
                        cache.forget(&range);
                        model.retain(|sector, _| !range.contains(sector));
                    }
                    1 if model.contains_key(&from) => {
                        let end = cache.run_end(from, range.end);
                        let data = cache.take(&(from..end));
                        let expected: Vec<u8> = (from..end).map(|sector| model.remove(&sector).expect("cached")).collect();
                        prop_assert_eq!(data, expected);
                    }
                    _ => {
                        cache.insert(&range, &vec![number as u8; length as usize], number as u64, Nanos(number as u64));
                        model.extend(range.map(|sector| (sector, number as u8)));
                    }
                }
                prop_assert!(cache.is_consistent());
                prop_assert_eq!(cache.sectors(), model.len() as u64);
                let oldest = model.values().min().map(|oldest| Nanos(u64::from(*oldest)));
                prop_assert_eq!(cache.oldest().map(|(_, since)| since), oldest);
                let mut data = vec![255; 200];
                cache.read(&(0..200), &mut data);
                prop_assert!((0..200).all(|sector| data[sector as usize] == model.get(&sector).copied().unwrap_or(255)));
            }
        }
    }
}

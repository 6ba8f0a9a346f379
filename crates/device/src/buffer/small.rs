//! Small partial units by address, so that those of one region can leave together (WAFLASH, 3.3).
//!
//! Kept only where the FTL compacts. The units of a region are found from the one that leaves outwards, the nearest
//! first: adjacent ones are the likeliest to be read together.

use std::collections::BTreeMap;

use ssdlab_flash::Lpn;

use super::{Entry, Slot};
use crate::ftl::Compaction;

/// The small partial units in the buffer.
pub(super) struct SmallUnits {
    pub(super) limits: Compaction,
    by_lpn: BTreeMap<Lpn, Slot>,
}

impl SmallUnits {
    pub(super) fn new(limits: Compaction) -> SmallUnits {
        SmallUnits { limits, by_lpn: BTreeMap::new() }
    }

    /// A unit holds `mask` now.
    pub(super) fn holds(&mut self, lpn: Lpn, slot: Slot, mask: u64) {
        if mask.count_ones() <= self.limits.small_sectors {
            self.by_lpn.insert(lpn, slot);
        } else {
            self.by_lpn.remove(&lpn);
        }
    }

    /// A unit left.
    pub(super) fn left(&mut self, lpn: Lpn) {
        self.by_lpn.remove(&lpn);
    }

    /// Appends the small units of `lead`'s region that fit into a page with it, the nearest first, `lead` itself before
    /// all; nothing if `lead` is not small. Only units of its stream that are `wanted`.
    pub(super) fn together(&self, lead: Slot, entries: &[Entry], wanted: impl Fn(Lpn) -> bool, out: &mut Vec<Slot>) {
        let Entry { lpn, mask, stream, .. } = entries[lead.index()];
        if self.by_lpn.get(&lpn) != Some(&lead) || !wanted(lpn) {
            return;
        }
        out.push(lead);
        let first = lpn.begin(self.limits.region_units);
        let end = Lpn(first.0.saturating_add(self.limits.region_units));
        let mut below = self.by_lpn.range(first..lpn).rev().peekable();
        let mut above = self.by_lpn.range(lpn + 1..end).peekable();
        let mut room = self.limits.room_sectors.saturating_sub(mask.count_ones());
        let mut triples = self.limits.most_runs.saturating_sub(runs(mask));
        while room > 0 && (out.len() as u32) < self.limits.most_units {
            let next = match (below.peek(), above.peek()) {
                (Some((down, _)), Some((up, _))) if lpn - **down <= **up - lpn => below.next(),
                (Some(_), None) => below.next(),
                _ => above.next(),
            };
            let Some((other, slot)) = next else { break };
            let entry = &entries[slot.index()];
            let sectors = entry.mask.count_ones();
            let its_runs = runs(entry.mask);
            if sectors <= room && its_runs <= triples && entry.stream == stream && wanted(*other) {
                room -= sectors;
                triples -= its_runs;
                out.push(*slot);
            }
        }
    }
}

/// Runs of sectors in a mask.
const fn runs(mask: u64) -> u32 {
    (mask & !(mask << 1)).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lpn: u32, mask: u64) -> Entry {
        Entry { lpn: Lpn(lpn), mask, clean: 0, sector_data: Vec::new(), since: 0, stream: 0, expendable: false }
    }

    fn limits() -> Compaction {
        Compaction { region_units: 16, small_sectors: 4, room_sectors: 7, most_runs: 85, most_units: 64 }
    }

    fn together(entries: &[Entry], lead: Slot, limits: Compaction) -> Vec<u32> {
        let mut small = SmallUnits::new(limits);
        for (slot, entry) in entries.iter().enumerate() {
            small.holds(entry.lpn, Slot(slot as u32), entry.mask);
        }
        let mut out = Vec::new();
        small.together(lead, entries, |_| true, &mut out);
        out.into_iter().map(|slot| entries[slot.index()].lpn.0).collect()
    }

    #[test]
    fn the_nearest_small_units_of_the_region_leave_together() {
        let entries =
            [entry(20, 0b1), entry(15, 0b1), entry(25, 0b11), entry(22, 0b11), entry(31, 0b1), entry(32, 0b1)];
        // 15 and 32 are in other regions.
        assert_eq!(together(&entries, Slot(0), limits()), [20, 22, 25, 31]);
    }

    #[test]
    fn what_does_not_fit_stays_and_what_is_not_small_neither_leads_nor_follows() {
        let entries = [entry(0, 0b111), entry(1, 0b1111), entry(2, 0b1111), entry(3, 0b1), entry(4, 0b11_1111)];
        assert_eq!(together(&entries, Slot(0), limits()), [0, 1], "all seven sectors are taken");
        assert_eq!(together(&entries, Slot(2), limits()), [2, 3], "four, then one of the nearest; the next do not fit");
        assert_eq!(together(&entries, Slot(4), limits()), [0; 0]);
        let most = Compaction { most_units: 2, ..limits() };
        assert_eq!(together(&entries, Slot(3), most), [3, 2]);
        let holes = [entry(0, 0b1), entry(1, 0b101), entry(2, 0b1)];
        let few = Compaction { most_runs: 2, ..limits() };
        assert_eq!(together(&holes, Slot(0), few), [0, 2], "two runs of sectors take two triples");
    }

    #[test]
    fn the_last_region_may_end_at_the_last_number() {
        let entries = [entry(u32::MAX - 2, 1), entry(u32::MAX - 3, 1)];
        assert_eq!(together(&entries, Slot(0), limits()).len(), 2);
    }
}

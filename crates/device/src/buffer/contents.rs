//! The buffer's units as plain data, for a drive that is saved while it holds some.

use ssdlab_base::saved;
use ssdlab_flash::Lpn;

use super::{Entry, Slot, Unit, WriteBuffer};

/// A unit that waits in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldUnit {
    pub(crate) lpn: Lpn,
    pub(crate) stream: u16,
    /// Sectors held, all of them newer than flash.
    pub(crate) mask: u64,
    /// Number of the write command that brought the unit in.
    pub(crate) since: u64,
    pub(crate) expendable: bool,
}

/// All units in the buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldUnits {
    /// In the order they came in.
    pub(crate) units: Vec<HeldUnit>,
    /// Their places in `units`, in the policy's order.
    pub(crate) order: Vec<u32>,
}

saved!(HeldUnit: lpn, stream, mask, since, expendable);
saved!(HeldUnits: units, order);

impl WriteBuffer {
    /// The buffer's units, while none is on its way to flash; `None` where the policy knows more than an order, and where
    /// contents, clean sectors or compaction are kept.
    pub(crate) fn held(&self) -> Option<HeldUnits> {
        let order = self.policy.order()?;
        if self.sector_data_bytes > 0 || self.small.is_some() || self.policy.caches_reads() {
            return None;
        }
        let mut place = vec![u32::MAX; self.entries.len()];
        let mut units = Vec::with_capacity(order.len());
        for slot in self.by_age.iter() {
            let &Entry { lpn, stream, mask, since, expendable, .. } = self.entry(slot);
            place[slot.index()] = units.len() as u32;
            units.push(HeldUnit { lpn, stream, mask, since, expendable });
        }
        let sectors: u64 = units.iter().map(|unit| u64::from(unit.mask.count_ones())).sum();
        assert_eq!(units.len(), order.len(), "the policy orders the units that are there");
        assert_eq!(sectors, self.used_sectors, "no unit is on its way to flash");
        let order = order.into_iter().map(|slot| place[slot.index()]).collect();
        Some(HeldUnits { units, order })
    }

    /// Puts units into an empty buffer, as [`WriteBuffer::held`] told of them; false if they are no buffer's.
    pub(crate) fn refill(&mut self, held: &HeldUnits) -> bool {
        assert!(self.is_empty(), "only an empty buffer is refilled");
        let sectors: u64 = held.units.iter().map(|unit| u64::from(unit.mask.count_ones())).sum();
        let sound = |unit: &HeldUnit| {
            unit.mask != 0 && unit.mask & !self.full_mask == 0 && (!unit.expendable || unit.mask == self.full_mask)
        };
        if sectors > self.capacity_sectors || held.order.len() != held.units.len() || !held.units.iter().all(sound) {
            return false;
        }
        for unit in &held.units {
            let HeldUnit { lpn, stream, mask, since, expendable } = *unit;
            if self.find(lpn).is_some() {
                return false;
            }
            let slot = self.put(Entry { lpn, mask, clean: 0, sector_data: Vec::new(), since, stream, expendable });
            self.by_age.push(slot);
            self.dirty_units += 1;
            self.partial_units += u32::from(mask != self.full_mask);
        }
        self.used_sectors = sectors;
        // Nothing is on its way to flash, and no unit is clean.
        self.dirty_sectors = sectors;
        let mut seen = vec![false; held.units.len()];
        for place in &held.order {
            let Some(unit) = held.units.get(*place as usize) else { return false };
            if std::mem::replace(&mut seen[*place as usize], true) {
                return false;
            }
            let slot = self.find(unit.lpn).unwrap_or(Slot::NONE);
            let held = unit.mask.count_ones();
            let is_full = unit.mask == self.full_mask;
            let told = Unit {
                lpn: unit.lpn,
                command: unit.since,
                written: unit.mask,
                held: [0, held],
                was_full: false,
                is_full,
            };
            self.policy.insert(slot, &told);
        }
        true
    }
}

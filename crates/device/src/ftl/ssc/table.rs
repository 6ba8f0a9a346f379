//! The map: a table of fixed size from addresses of the disk to units of flash, with closed hashing and linear probing (Getting
//! Real, 3.3.2).
//!
//! The hash is of rotations and a modulo. A slot holds the address itself, so that a collision never returns another block's unit.
//! A deleted slot is filled from behind (Knuth, *Sorting and Searching*, 6.4, algorithm R): silent eviction deletes as often as
//! writes insert, and marks of deletion would lengthen every probe for good.
//!
//! An address keeps its slot as long as flash has a copy of it, current or not: as long as that is so, what took the block out of
//! the cache must be remembered, or a power cut brings an old copy back. So there are never more slots in use than units on flash.

use std::collections::BTreeMap;
use std::ops::Range;

use ssdlab_base::{Divider, saved};
use ssdlab_flash::{Lpn, UnitId};

use crate::seeded::{Bug, seeded};

/// Bytes of a slot in a real drive: the address with the dirty bit, and the unit (the issue of FlashTier's map, 3.3.2).
pub(super) const SLOT_BYTES: u64 = 8;

/// Bytes of the number of copies in a real drive.
pub(super) const COPIES_BYTES: u64 = 4;

/// A slot of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The address; [`Lpn::NONE`] of a slot that is empty.
    pub(super) lpn: Lpn,
    /// Where the block is; [`UnitId::NONE`] where it is absent.
    pub(super) unit: UnitId,
    /// Copies on flash, current or not.
    pub(super) copies: u32,
    /// The disk has the same data.
    pub(super) clean: bool,
}

const EMPTY: Slot = Slot { lpn: Lpn::NONE, unit: UnitId::NONE, copies: 0, clean: false };

impl Default for Slot {
    fn default() -> Slot {
        EMPTY
    }
}

/// A block that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) unit: UnitId,
    pub(super) clean: bool,
}

/// The table.
pub(super) struct Table {
    slots: Vec<Slot>,
    used: u32,
    /// Slots in use by region of addresses, so that who walks through addresses passes over those that are not there. No firmware has
    /// these counts; nothing but inspection and trims of long ranges asks them.
    regions: Vec<u32>,
    /// The region of an address is the address shifted by this.
    region_shift: u32,
    /// What checkpoints have to know of slots; nothing where there are none.
    watched: Option<Watched>,
}

/// What checkpoints have to know of slots.
struct Watched {
    /// By slot: copies in blocks that the newest checkpoint calls settled.
    settled: Vec<u32>,
    /// By page of the map: a slot has changed since it was written.
    changed: Vec<bool>,
    slots_per_page: usize,
    by_slots_per_page: Divider,
}

/// A region has at least this many addresses: 64.
const LEAST_REGION: u32 = 6;

saved!(Slot: lpn, unit, copies, clean);
saved!(Table: slots[..]);

impl Table {
    /// Slots for so many units on flash: one in five stays empty.
    pub(super) const fn slots_for(units: u64) -> u64 {
        units + units / 4 + 1
    }

    /// Regions of addresses for so many units on flash, at most: memory follows the flash and not the disk.
    const fn most_regions(units: u64) -> u64 {
        units / 16 + 1
    }

    /// Bytes that [`Table::new`] takes at most.
    pub(super) const fn simulator_bytes(units: u64) -> u64 {
        Table::slots_for(units) * size_of::<Slot>() as u64 + Table::most_regions(units) * 4
    }

    /// A table for addresses `0..addresses`.
    pub(super) fn new(units: u64, addresses: u32) -> Table {
        let regions = |shift: u32| u64::from(addresses >> shift) + 1;
        let shift = (LEAST_REGION..u32::BITS).find(|shift| regions(*shift) <= Table::most_regions(units));
        let region_shift = shift.unwrap_or(u32::BITS - 1);
        let regions = vec![0; regions(region_shift) as usize];
        let slots = vec![EMPTY; Table::slots_for(units) as usize];
        Table { slots, used: 0, regions, region_shift, watched: None }
    }

    /// Slots are written to checkpoints, so many to a page.
    pub(super) fn watch(&mut self, slots_per_page: usize) {
        let pages = self.slots.len().div_ceil(slots_per_page);
        let by_slots_per_page = Divider::new(slots_per_page as u32);
        let settled = vec![0; self.slots.len()];
        self.watched = Some(Watched { settled, changed: vec![true; pages], slots_per_page, by_slots_per_page });
    }

    /// Bytes that [`Table::watch`] takes at most.
    pub(super) const fn watched_bytes(units: u64) -> u64 {
        Table::slots_for(units) * (size_of::<u32>() as u64 + 1)
    }

    #[inline]
    fn changes(&mut self, at: usize) {
        if let Some(watched) = &mut self.watched {
            watched.changed[watched.by_slots_per_page.div(at as u32) as usize] = true;
        }
    }

    /// What is remembered of an address that has a slot has changed.
    pub(super) fn note_changed(&mut self, lpn: Lpn) {
        let (at, _) = self.probe(lpn);
        self.changes(at);
    }

    /// Pages of the map in a checkpoint.
    pub(super) fn pages(&self) -> usize {
        self.changed().len()
    }

    /// By page of the map, whether a slot has changed since it was written.
    pub(super) fn changed(&self) -> &[bool] {
        self.watched.as_ref().map_or(&[], |watched| &watched.changed)
    }

    /// Pages of the map are written as they are now.
    pub(super) fn set_written(&mut self) {
        if let Some(watched) = &mut self.watched {
            watched.changed.fill(false);
        }
    }

    /// The slots of a page of the map in their order, with their copies in settled blocks; nothing without checkpoints.
    pub(super) fn page(&self, page: usize) -> impl Iterator<Item = (Slot, u32)> + use<'_> {
        self.watched.iter().flat_map(move |watched| {
            let per_page = watched.slots_per_page;
            let slots = page * per_page..((page + 1) * per_page).min(self.slots.len());
            slots.map(move |at| (self.slots[at], watched.settled[at]))
        })
    }

    /// Copies of an address in settled blocks.
    pub(super) fn settled_copies(&self, lpn: Lpn) -> u32 {
        let (at, _) = self.probe(lpn);
        self.watched.as_ref().filter(|_| self.slots[at].lpn == lpn).map_or(0, |watched| watched.settled[at])
    }

    /// A copy of an address that has a slot is in a settled block from now on.
    pub(super) fn add_settled(&mut self, lpn: Lpn) {
        let (at, _) = self.probe(lpn);
        assert_eq!(self.slots[at].lpn, lpn, "a copy of block {lpn} is settled, and the table does not know the block");
        self.changes(at);
        if let Some(watched) = &mut self.watched {
            watched.settled[at] += 1;
        }
    }

    /// It is not any more.
    pub(super) fn drop_settled(&mut self, lpn: Lpn) {
        let (at, _) = self.probe(lpn);
        assert_eq!(self.slots[at].lpn, lpn, "a copy of block {lpn} was settled, and the table does not know the block");
        self.changes(at);
        if let Some(watched) = &mut self.watched {
            assert!(watched.settled[at] > 0, "a copy of block {lpn} was settled, and none is counted");
            watched.settled[at] -= 1;
        }
    }

    /// No copy is in a settled block.
    pub(super) fn none_settled(&mut self) {
        if let Some(watched) = &mut self.watched {
            watched.settled.fill(0);
            watched.changed.fill(true);
        }
    }

    /// Takes the slots of a checkpoint in their order, each with as many copies as are in settled blocks. False if they are no table:
    /// then it is empty.
    pub(super) fn load(&mut self, slots: impl Iterator<Item = (Slot, u32)>) -> bool {
        self.clear();
        for (at, (slot, settled)) in slots.enumerate().take(self.slots.len()) {
            self.slots[at] = slot;
            if let Some(watched) = &mut self.watched {
                watched.settled[at] = settled;
            }
        }
        let is_table = self.recount();
        if is_table {
            self.set_written();
        } else {
            self.clear();
        }
        is_table
    }

    /// A copy in a settled block is not there any more. False if the address had none.
    pub(super) fn take_settled(&mut self, lpn: Lpn) -> bool {
        if self.settled_copies(lpn) == 0 {
            return false;
        }
        self.drop_settled(lpn);
        self.slot_mut(lpn).copies -= 1;
        true
    }

    /// Blocks are where they are if their unit is kept, and else absent as far as is known; addresses that flash has no copy of have no
    /// slot.
    pub(super) fn keep_where(&mut self, is_kept: impl Fn(UnitId) -> bool) {
        for at in 0..self.slots.len() {
            let slot = &mut self.slots[at];
            if slot.unit != UnitId::NONE && !is_kept(slot.unit) {
                (slot.unit, slot.clean) = (UnitId::NONE, false);
                // What is on flash names a unit that may be another block's in the next checkpoint.
                self.changes(at);
            }
        }
        let gone: Vec<Lpn> = self.all().filter(|slot| slot.copies == 0).map(|slot| slot.lpn).collect();
        for lpn in gone {
            let (at, _) = self.probe(lpn);
            self.remove(at);
        }
    }

    fn region(&mut self, lpn: Lpn) -> &mut u32 {
        &mut self.regions[(lpn.0 >> self.region_shift) as usize]
    }

    /// Addresses of a range that have a slot.
    pub(super) fn known(&self, lpns: Range<Lpn>) -> impl Iterator<Item = Lpn> {
        let size = 1_u32 << self.region_shift;
        let region_of = |lpn: u32| (lpn >> self.region_shift) as usize;
        let of_range = if lpns.is_empty() { 0..0 } else { region_of(lpns.start.0)..region_of(lpns.end.0 - 1) + 1 };
        let in_use = of_range.filter(|region| self.regions[*region] > 0);
        in_use.flat_map(move |region| {
            let first = Lpn((region as u32) << self.region_shift);
            let end = Lpn(first.0.saturating_add(size));
            self.known_of_region(first.max(lpns.start)..end.min(lpns.end))
        })
    }

    /// Addresses of a part of a region that have a slot, in order, whichever way is shorter to find them.
    fn known_of_region(&self, lpns: Range<Lpn>) -> impl Iterator<Item = Lpn> {
        let is_short = ((lpns.end - lpns.start) as usize) < self.slots.len();
        let mut sorted: Vec<Lpn> = Vec::new();
        if !is_short {
            sorted.extend(self.all().map(|slot| slot.lpn).filter(|lpn| lpns.contains(lpn)));
            sorted.sort_unstable();
        }
        let walked = if is_short { lpns } else { lpns.end..lpns.end };
        Lpn::each(walked).filter(|lpn| self.slot(*lpn).is_some()).chain(sorted)
    }

    /// Nothing is mapped.
    pub(super) fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.regions.fill(0);
        self.used = 0;
        self.none_settled();
    }

    /// Slots of the table.
    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Slots in use.
    pub(super) const fn used(&self) -> u32 {
        self.used
    }

    /// The slot at which probing for an address begins.
    fn home(&self, lpn: Lpn) -> usize {
        let mixed = lpn.0 ^ lpn.0.rotate_left(11) ^ lpn.0.rotate_left(21);
        mixed as usize % self.slots.len()
    }

    /// The slot of an address, or the empty one where it would go; and how many slots were looked at.
    fn probe(&self, lpn: Lpn) -> (usize, u32) {
        debug_assert_ne!(lpn, Lpn::NONE, "nothing is looked up");
        let (mut at, mut probes) = (self.home(lpn), 1);
        while self.slots[at].lpn != lpn && self.slots[at].lpn != Lpn::NONE {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
            probes += 1;
        }
        (at, probes)
    }

    /// The slot of an address that has one.
    pub(super) fn slot(&self, lpn: Lpn) -> Option<&Slot> {
        let (at, _) = self.probe(lpn);
        Some(&self.slots[at]).filter(|slot| slot.lpn == lpn)
    }

    /// Where a block is, if it is there.
    pub(super) fn get(&self, lpn: Lpn) -> Option<Present> {
        let slot = if seeded(Bug::CollisionTaken) { self.slots.get(self.home(lpn)) } else { self.slot(lpn) };
        let slot = slot.filter(|slot| slot.unit != UnitId::NONE)?;
        Some(Present { unit: slot.unit, clean: slot.clean })
    }

    /// How many slots a look at an address takes.
    pub(super) fn probes(&self, lpn: Lpn) -> u32 {
        self.probe(lpn).1
    }

    /// The slot of an address, which gets one.
    fn slot_mut(&mut self, lpn: Lpn) -> &mut Slot {
        let (at, _) = self.probe(lpn);
        if !seeded(Bug::ChangedPageForgotten) {
            self.changes(at);
        }
        if self.slots[at].lpn == Lpn::NONE {
            self.used += 1;
            assert!((self.used as usize) < self.slots.len(), "{} addresses take all slots of the table", self.used);
            self.slots[at].lpn = lpn;
            *self.region(lpn) += 1;
        }
        &mut self.slots[at]
    }

    /// A block is at a unit from now on; returns where it was.
    pub(super) fn set(&mut self, lpn: Lpn, unit: UnitId, clean: bool) -> Option<Present> {
        debug_assert_ne!(unit, UnitId::NONE, "block {lpn} goes nowhere");
        let slot = self.slot_mut(lpn);
        let old = Present { unit: slot.unit, clean: slot.clean };
        (slot.unit, slot.clean) = (unit, clean);
        Some(old).filter(|old| old.unit != UnitId::NONE)
    }

    /// A block is clean as far as its copy says, and that says that it is not.
    pub(super) fn set_dirty(&mut self, lpn: Lpn) {
        let slot = self.slot_mut(lpn);
        assert!(slot.clean, "block {lpn} becomes dirty again, and is");
        slot.clean = false;
    }

    /// A block that is there becomes clean.
    pub(super) fn set_clean(&mut self, lpn: Lpn) {
        let slot = self.slot_mut(lpn);
        assert_ne!(slot.unit, UnitId::NONE, "block {lpn} becomes clean, and is absent");
        assert!(!slot.clean, "block {lpn} becomes clean, and is");
        slot.clean = true;
    }

    /// A block is absent from now on; returns where it was.
    pub(super) fn forget(&mut self, lpn: Lpn) -> Option<Present> {
        let old = self.get(lpn)?;
        let slot = self.slot_mut(lpn);
        assert!(slot.copies > 0, "block {lpn} is at {}, and flash has no copy of it", old.unit);
        (slot.unit, slot.clean) = (UnitId::NONE, false);
        Some(old)
    }

    /// Flash has one more copy of a block.
    pub(super) fn add_copy(&mut self, lpn: Lpn) {
        self.slot_mut(lpn).copies += 1;
    }

    /// A copy was erased; returns whether the address has no slot any more.
    pub(super) fn drop_copy(&mut self, lpn: Lpn) -> bool {
        let (at, _) = self.probe(lpn);
        let slot = &mut self.slots[at];
        assert_eq!(slot.lpn, lpn, "a copy of block {lpn} was erased, and the table does not know the block");
        assert!(slot.copies > 0, "a copy of block {lpn} was erased, and there was none");
        slot.copies -= 1;
        if slot.copies > 0 {
            return false;
        }
        let settled = self.settled_copies(lpn);
        let slot = &self.slots[at];
        assert_eq!(settled, 0, "the last copy of block {lpn} was erased, and {settled} are in settled blocks");
        assert_eq!(slot.unit, UnitId::NONE, "block {lpn} is at {}, and its last copy was erased", slot.unit);
        self.remove(at);
        true
    }

    /// Empties a slot, and moves into it what probing would not find behind it any more.
    fn remove(&mut self, at: usize) {
        let in_region = self.region(self.slots[at].lpn);
        assert!(*in_region > 0, "a slot is emptied, and its region has none");
        *in_region -= 1;
        let (mut hole, mut next) = (at, at);
        let distance = |from: usize, to: usize, slots: usize| if to >= from { to - from } else { to + slots - from };
        loop {
            next = if next + 1 == self.slots.len() { 0 } else { next + 1 };
            let slot = self.slots[next];
            if slot.lpn == Lpn::NONE || seeded(Bug::HoleInMap) {
                break;
            }
            let slots = self.slots.len();
            if distance(self.home(slot.lpn), next, slots) >= distance(hole, next, slots) {
                self.slots[hole] = slot;
                if let Some(watched) = &mut self.watched {
                    watched.settled[hole] = watched.settled[next];
                }
                self.changes(hole);
                hole = next;
            }
        }
        self.slots[hole] = EMPTY;
        if let Some(watched) = &mut self.watched {
            watched.settled[hole] = 0;
        }
        self.changes(hole);
        assert!(self.used > 0, "a slot is emptied, and none was in use");
        self.used -= 1;
    }

    /// All slots in use.
    pub(super) fn all(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.lpn != Lpn::NONE)
    }

    /// Flash has so many copies of each address, and none of others. Returns the addresses without a slot from now on; `None` if one
    /// that flash has a copy of has no slot, or one that is there has no copy.
    pub(super) fn set_copies(&mut self, copies: &BTreeMap<Lpn, u32>) -> Option<Vec<Lpn>> {
        let known = copies.keys().all(|lpn| self.slot(*lpn).is_some());
        let has_copy = |slot: &Slot| slot.unit == UnitId::NONE || copies.contains_key(&slot.lpn);
        if !known || !self.all().all(has_copy) {
            return None;
        }
        let gone: Vec<Lpn> = self.all().map(|slot| slot.lpn).filter(|lpn| !copies.contains_key(lpn)).collect();
        for (lpn, count) in copies {
            self.slot_mut(*lpn).copies = *count;
        }
        for lpn in &gone {
            let (at, _) = self.probe(*lpn);
            self.remove(at);
        }
        Some(gone)
    }

    /// Counts the slots in use of a restored table; false if probing does not find one of them.
    pub(super) fn recount(&mut self) -> bool {
        let lpns: Vec<Lpn> = self.all().map(|slot| slot.lpn).collect();
        let used = lpns.len();
        self.used = used as u32;
        self.regions.fill(0);
        for lpn in lpns {
            let Some(count) = self.regions.get_mut((lpn.0 >> self.region_shift) as usize) else { return false };
            *count += 1;
        }
        used < self.slots.len()
            && self.all().all(|slot| self.slot(slot.lpn).is_some_and(|found| std::ptr::eq(found, slot)))
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    /// The table against a map of the standard library.
    #[test]
    fn the_table_knows_what_a_map_knows() {
        for seed in 0..60 {
            let mut rng = rng(seed, "table");
            let units = rng.random_range(1..60_u64);
            let addresses = rng.random_range(1..200_u32);
            let mut table = Table::new(units, addresses);
            let mut model: BTreeMap<u32, (Option<(u32, bool)>, u32)> = BTreeMap::new();
            for step in 0..2000_u32 {
                let lpn = rng.random_range(0..addresses);
                let copies: u32 = model.values().map(|(_, copies)| copies).sum();
                match rng.random_range(0..4) {
                    0 | 1 if u64::from(copies) < units => {
                        let clean = rng.random_bool(0.5);
                        let old = table.set(Lpn(lpn), UnitId(step), clean);
                        table.add_copy(Lpn(lpn));
                        let entry = model.entry(lpn).or_default();
                        let before = entry.0.map(|(unit, clean)| Present { unit: UnitId(unit), clean });
                        assert_eq!(old, before, "seed {seed}: block {lpn}");
                        *entry = (Some((step, clean)), entry.1 + 1);
                    }
                    2 => {
                        let there = model.get(&lpn).is_some_and(|(unit, _)| unit.is_some());
                        assert_eq!(table.forget(Lpn(lpn)).is_some(), there, "seed {seed}: block {lpn}");
                        model.entry(lpn).and_modify(|entry| entry.0 = None);
                    }
                    _ => {
                        let Some((unit, copies)) = model.get_mut(&lpn) else { continue };
                        if unit.is_some() && *copies == 1 {
                            continue;
                        }
                        *copies -= 1;
                        let gone = *copies == 0;
                        assert_eq!(table.drop_copy(Lpn(lpn)), gone, "seed {seed}: block {lpn}");
                        if gone {
                            model.remove(&lpn);
                        }
                    }
                }
                assert_eq!(table.used() as usize, model.len(), "seed {seed}");
            }
            for (lpn, (unit, copies)) in &model {
                let slot = table.slot(Lpn(*lpn)).expect("a slot for each address with a copy");
                let there = unit.map(|(unit, clean)| Present { unit: UnitId(unit), clean });
                assert_eq!((table.get(Lpn(*lpn)), slot.copies), (there, *copies), "seed {seed}: block {lpn}");
            }
            let first = rng.random_range(0..addresses);
            let end = rng.random_range(first..=addresses);
            let known: Vec<u32> = table.known(Lpn(first)..Lpn(end)).map(|lpn| lpn.0).collect();
            let expected: Vec<u32> = model.keys().copied().filter(|lpn| (first..end).contains(lpn)).collect();
            assert_eq!(known, expected, "seed {seed}: addresses {first} to {end}");
            assert!(table.recount(), "seed {seed}: probing finds each slot");
        }
    }

    /// Knuth's formulas for linear probing: (1 + 1 / (1 - a)) / 2 slots for an address that is there, and
    /// (1 + 1 / (1 - a)^2) / 2 for one that is not, at a load of a. Ten capacities of evictions do not change that.
    #[test]
    fn mean_probes_after_ten_capacities_of_evictions_are_those_of_linear_probing() {
        let units = 60_000_u64;
        let mut table = Table::new(units, 366_210_937);
        let mut rng = rng(3, "probes");
        let mut there: Vec<u32> = Vec::new();
        for step in 0..units * 11 {
            if there.len() as u64 == units {
                let at = rng.random_range(0..there.len());
                let lpn = Lpn(there.swap_remove(at));
                table.forget(lpn);
                assert!(table.drop_copy(lpn), "it had one copy");
            }
            // The addresses of a disk of 1.5 TB.
            let lpn = loop {
                let lpn = Lpn(rng.random_range(0..366_210_937));
                if table.slot(lpn).is_none() {
                    break lpn;
                }
            };
            table.set(lpn, UnitId(step as u32), true);
            table.add_copy(lpn);
            there.push(lpn.0);
        }
        let load = f64::from(table.used()) / table.len() as f64;
        assert!((0.79..0.81).contains(&load), "a load of {load}");
        let found = there.iter().map(|lpn| f64::from(table.probes(Lpn(*lpn)))).sum::<f64>() / there.len() as f64;
        let absent = (0..200_000).map(|_| Lpn(rng.random_range(400_000_000..800_000_000)));
        let missed = absent.map(|lpn| f64::from(table.probes(lpn))).sum::<f64>() / 200_000.0;
        let free = 1.0 - load;
        for (mean, formula) in [(found, (1.0 + 1.0 / free) / 2.0), (missed, (1.0 + 1.0 / (free * free)) / 2.0)] {
            assert!((mean / formula - 1.0).abs() < 0.1, "{mean} slots a look, and the formula says {formula}");
        }
    }
}

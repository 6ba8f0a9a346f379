//! The units in the buffer: what they hold, how much room there is, and who leaves.

use std::ops::Range;

use rustc_hash::FxHashMap;
use ssdlab_flash::Lpn;

use super::{BufferPolicy, Chain, Chips, Padding, Slot, Unit, View, small};
use crate::BufferCounters;
use crate::ftl::Compaction;
#[cfg(feature = "seeded-bugs")]
use crate::seeded::{Bug, seeded};

/// A unit in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) lpn: Lpn,
    /// Sectors held.
    pub(crate) mask: u64,
    /// Of them those that a read brought in: they are on flash as they are here.
    pub(crate) clean: u64,
    /// Data of all sectors of the unit, where contents are kept.
    pub(crate) sector_data: Vec<u8>,
    /// Number of the write command that brought the unit in.
    pub(crate) since: u64,
    pub(crate) stream: u16,
    /// The host has the unit elsewhere.
    pub(crate) expendable: bool,
}

impl Entry {
    /// Sectors that are not on flash.
    pub(crate) const fn dirty(&self) -> u64 {
        self.mask & !self.clean
    }
}

/// What a write met in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// Its unit was not there.
    Nothing,
    /// Its unit.
    Unit,
    /// Its unit, partial, which is full now.
    Completed,
}

/// The units in the buffer.
pub(crate) struct WriteBuffer {
    pub(super) policy: Box<dyn BufferPolicy>,
    pub(super) entries: Vec<Entry>,
    free: Vec<Slot>,
    index: FxHashMap<Lpn, Slot>,
    /// Units in the order they came in, for flushes.
    pub(super) by_age: Chain,
    pub(super) capacity_sectors: u64,
    pub(super) used_sectors: u64,
    /// Sectors of the units that have to go to flash.
    pub(super) dirty_sectors: u64,
    pub(super) dirty_units: u32,
    /// Of them partial.
    pub(super) partial_units: u32,
    pub(super) sector_data_bytes: usize,
    /// All sectors of a unit.
    pub(super) full_mask: u64,
    /// Small partial units, where the FTL compacts them.
    pub(super) small: Option<small::SmallUnits>,
    /// The unit that left last.
    #[cfg(feature = "seeded-bugs")]
    left_last: Option<Lpn>,
}

impl WriteBuffer {
    pub(crate) fn new(
        policy: Box<dyn BufferPolicy>,
        bytes: u64,
        sector_data_bytes: usize,
        full_mask: u64,
        compaction: Option<Compaction>,
    ) -> WriteBuffer {
        WriteBuffer {
            policy,
            entries: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            by_age: Chain::default(),
            capacity_sectors: bytes / 512,
            used_sectors: 0,
            dirty_sectors: 0,
            dirty_units: 0,
            partial_units: 0,
            sector_data_bytes,
            full_mask,
            small: compaction.map(small::SmallUnits::new),
            #[cfg(feature = "seeded-bugs")]
            left_last: None,
        }
    }

    /// Bytes that a buffer of `bytes` takes when it is full of whole units, the policy's lists included.
    pub(crate) fn simulator_bytes(bytes: u64, unit_bytes: u32, sector_data_bytes: usize) -> u64 {
        /// A policy's own of a unit: links, places, ghosts.
        const POLICY: u64 = 64;
        /// A list that grows is up to twice as long as what is in it.
        const GROWN: u64 = 2;
        let entry = (size_of::<Entry>() + size_of::<Slot>() + 2 * size_of::<(Lpn, Slot)>()) as u64 + POLICY;
        let sector_data = u64::from(unit_bytes) / 512 * sector_data_bytes as u64;
        bytes / u64::from(unit_bytes) * (GROWN * entry + sector_data)
    }

    /// Sectors that can come in now.
    pub(crate) fn room(&self) -> u64 {
        debug_assert!(
            self.used_sectors <= self.capacity_sectors,
            "{} sectors in a buffer of {}",
            self.used_sectors,
            self.capacity_sectors
        );
        self.capacity_sectors - self.used_sectors
    }

    /// Looks units up, so that what that touches is in the processor's cache.
    pub(crate) fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            std::hint::black_box(self.find(lpn));
        }
    }

    /// Whether units leave with almost every write that comes in.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.room() < self.capacity_sectors / 16
    }

    /// Whether there is nothing that could leave.
    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Units held that have to go to flash and are not on their way.
    pub(crate) fn units(&self) -> u32 {
        self.dirty_units
    }

    /// Those units, with expendable ones or without.
    pub(crate) fn dirty_lpns(&self, expendable: bool) -> impl Iterator<Item = Lpn> {
        let entries = self.index.values().map(|slot| self.entry(*slot));
        entries.filter(move |entry| entry.dirty() != 0 && (expendable || !entry.expendable)).map(|entry| entry.lpn)
    }

    /// Expendable units that have to go to flash.
    pub(crate) fn expendable(&self) -> impl Iterator<Item = (Lpn, Slot)> {
        let is_expendable = |slot: Slot| self.entry(slot).expendable && self.entry(slot).dirty() != 0;
        self.index.iter().filter(move |(_, slot)| is_expendable(**slot)).map(|(lpn, slot)| (*lpn, *slot))
    }

    /// The unit that has just come in is expendable, until it is written again.
    pub(crate) fn mark_expendable(&mut self, lpn: Lpn) {
        let slot = self.find(lpn).expect("a unit that has come in is there");
        let entry = &mut self.entries[slot.index()];
        assert_eq!(entry.mask, self.full_mask, "a part of unit {lpn} is written as expendable");
        entry.expendable = true;
    }

    /// The sectors of those units.
    pub(crate) fn dirty_sectors(&self) -> u64 {
        self.dirty_sectors
    }

    /// Of them those that do not hold all their sectors.
    pub(crate) fn partial_units(&self) -> u32 {
        self.partial_units
    }

    /// Sectors held, those on their way to flash included.
    pub(crate) fn used_sectors(&self) -> u64 {
        self.used_sectors
    }

    /// The buffered unit of an LPN.
    #[inline]
    pub(crate) fn find(&self, lpn: Lpn) -> Option<Slot> {
        if self.index.is_empty() { None } else { self.index.get(&lpn).copied() }
    }

    /// Whether a unit of these LPNs is buffered.
    pub(crate) fn holds_any(&self, lpns: Range<Lpn>) -> bool {
        Lpn::each(lpns).any(|lpn| self.find(lpn).is_some())
    }

    /// The first unit of these LPNs that is buffered, whichever way is shorter to find it.
    pub(crate) fn first_in(&self, lpns: Range<Lpn>) -> Option<Lpn> {
        if u64::from(lpns.end - lpns.start) < self.index.len() as u64 {
            return Lpn::each(lpns).find(|lpn| self.find(*lpn).is_some());
        }
        self.index.keys().filter(|lpn| lpns.contains(lpn)).min().copied()
    }

    pub(crate) fn entry(&self, slot: Slot) -> &Entry {
        &self.entries[slot.index()]
    }

    /// Merges a write into the buffer. `Ok` tells what it met there, `Err` how many sectors it would take that there is no
    /// room for.
    #[inline]
    pub(crate) fn write(
        &mut self,
        lpn: Lpn,
        mask: u64,
        sector_data: &[u8],
        command: u64,
        stream: u16,
    ) -> Result<Met, u64> {
        let found = self.find(lpn);
        debug_assert!(mask != 0 && mask & !self.full_mask == 0, "sectors {mask:#x} of unit {lpn} are written");
        debug_assert!(found.is_none_or(|slot| self.entry(slot).lpn == lpn), "unit {lpn} is found in another's slot");
        let held = found.map_or(0, |slot| self.entry(slot).mask);
        let cost = u64::from((mask & !held).count_ones());
        if cost > self.room() {
            return Err(cost);
        }
        self.used_sectors += cost;
        #[cfg(feature = "seeded-bugs")]
        if found.is_none() && seeded(Bug::OverwriteLost) && self.left_last == Some(lpn) {
            return Ok(Met::Nothing);
        }
        let is_full = held | mask == self.full_mask;
        let unit = Unit {
            lpn,
            command,
            written: mask,
            held: [held.count_ones(), (held | mask).count_ones()],
            was_full: held == self.full_mask,
            is_full,
        };
        if let Some(slot) = found {
            let entry = &mut self.entries[slot.index()];
            let was_dirty = entry.dirty() != 0;
            entry.mask |= mask;
            entry.clean &= !mask;
            entry.stream = stream;
            entry.expendable = false;
            if self.sector_data_bytes > 0 {
                merge(&mut entry.sector_data, sector_data, mask, self.sector_data_bytes);
            }
            let held = entry.mask;
            self.dirty_sectors += if was_dirty { cost } else { u64::from(held.count_ones()) };
            self.policy.touch(slot, &unit);
            if let Some(small) = &mut self.small {
                small.holds(lpn, slot, held);
            }
            debug_assert!(self.dirty_sectors <= self.used_sectors, "{} sectors are dirty", self.dirty_sectors);
            if !was_dirty {
                self.entries[slot.index()].since = command;
                self.by_age.push(slot);
                self.dirty_units += 1;
                self.partial_units += u32::from(!is_full);
                return Ok(Met::Unit);
            }
            let completed = is_full && !unit.was_full;
            self.partial_units -= u32::from(completed);
            return Ok(if completed { Met::Completed } else { Met::Unit });
        }
        let entry =
            Entry { lpn, mask, clean: 0, sector_data: sector_data.to_vec(), since: command, stream, expendable: false };
        debug_assert!(
            self.youngest() <= command,
            "unit {lpn} came in with write {command}, behind {}",
            self.youngest()
        );
        let slot = self.put(entry);
        self.dirty_sectors += cost;
        self.dirty_units += 1;
        self.by_age.push(slot);
        self.policy.insert(slot, &unit);
        if let Some(small) = &mut self.small {
            small.holds(lpn, slot, mask);
        }
        self.partial_units += u32::from(!is_full);
        Ok(Met::Nothing)
    }

    /// The write command that brought the last unit in.
    fn youngest(&self) -> u64 {
        if self.by_age.tail == Slot::NONE { 0 } else { self.entry(self.by_age.tail).since }
    }

    /// How blocks leave padded, if they do.
    pub(crate) fn pads(&self) -> Option<Padding> {
        self.policy.pads()
    }

    /// The policy counts from nothing.
    pub(crate) fn reset_figures(&mut self) {
        self.policy.reset_figures();
    }

    /// Whether what is read from flash is kept.
    pub(crate) fn caches_reads(&self) -> bool {
        self.policy.caches_reads()
    }

    /// A unit in the buffer was read.
    pub(crate) fn read_hit(&mut self, slot: Slot) {
        self.policy.read(slot);
    }

    /// Keeps sectors that were read from flash and are not in the buffer; there must be room for them.
    pub(crate) fn keep_clean(&mut self, lpn: Lpn, mask: u64, sector_data: &[u8]) {
        let sectors = u64::from(mask.count_ones());
        assert!(sectors <= self.room(), "{sectors} sectors read, room for {}", self.room());
        assert!(mask & !self.full_mask == 0, "sectors {mask:#x} of unit {lpn} are kept");
        self.used_sectors += sectors;
        if let Some(slot) = self.find(lpn) {
            let entry = &mut self.entries[slot.index()];
            assert!(entry.mask & mask == 0, "unit {lpn} holds sectors that are kept again");
            let was_partial = entry.dirty() != 0 && entry.mask != self.full_mask;
            entry.mask |= mask;
            entry.clean |= mask;
            let (dirty, held) = (entry.dirty(), entry.mask);
            self.dirty_sectors += if dirty != 0 { sectors } else { 0 };
            if self.sector_data_bytes > 0 {
                merge(&mut entry.sector_data, sector_data, mask, self.sector_data_bytes);
            }
            if was_partial && held == self.full_mask {
                self.partial_units -= 1;
            }
            if dirty != 0
                && let Some(small) = &mut self.small
            {
                small.holds(lpn, slot, held);
            }
            self.policy.read(slot);
            return;
        }
        let sector_data = sector_data.to_vec();
        let slot = self.put(Entry { lpn, mask, clean: mask, sector_data, since: 0, stream: 0, expendable: false });
        let is_full = mask == self.full_mask;
        let held = [0, mask.count_ones()];
        let unit = Unit { lpn, command: 0, written: 0, held, was_full: false, is_full };
        self.policy.insert(slot, &unit);
    }

    /// Gives an entry a slot.
    pub(super) fn put(&mut self, entry: Entry) -> Slot {
        let lpn = entry.lpn;
        let slot = if let Some(slot) = self.free.pop() {
            self.entries[slot.index()] = entry;
            slot
        } else {
            self.entries.push(entry);
            Slot(self.entries.len() as u32 - 1)
        };
        let before = self.index.insert(lpn, slot);
        assert_eq!(before, None, "unit {lpn} comes in to slot {slot}, and is in the buffer");
        slot
    }

    /// The units that leave next.
    pub(crate) fn victims(
        &mut self,
        wanted: usize,
        chips: &dyn Chips,
        counters: &mut BufferCounters,
        out: &mut Vec<Slot>,
    ) {
        out.clear();
        let mut view = View { entries: &self.entries, full_mask: self.full_mask, chips, counters };
        self.policy.victims(wanted, &mut view, out);
        debug_assert!(out.iter().all(|slot| !self.has_left(*slot)), "the policy names units that have left: {out:?}");
    }

    /// The units that are destaged next: as [`WriteBuffer::victims`], of those that have to go to flash.
    pub(crate) fn destaged(
        &mut self,
        wanted: usize,
        chips: &dyn Chips,
        counters: &mut BufferCounters,
        out: &mut Vec<Slot>,
    ) {
        out.clear();
        let mut view = View { entries: &self.entries, full_mask: self.full_mask, chips, counters };
        self.policy.destaged(wanted, &mut view, out);
        debug_assert!(out.iter().all(|slot| self.entry(*slot).dirty() != 0), "a unit on flash is destaged: {out:?}");
    }

    /// Units that will probably leave soon.
    pub(crate) fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        out.clear();
        self.policy.coming(wanted, out);
    }

    /// RAM of a real drive for the policy's bookkeeping.
    pub(crate) fn memory(&self) -> Vec<(&'static str, u64)> {
        self.policy.memory()
    }

    /// The policy's own figures.
    pub(crate) fn figures(&self) -> Vec<(&'static str, f64)> {
        self.policy.figures()
    }

    /// The small partial units that leave in one page with `lead`, itself the first of them, if the FTL compacts and
    /// `may` for it: all of its region that fit. Empty, or with `lead` alone, if there is nothing to compact.
    pub(crate) fn compacted_with(&self, lead: Slot, may: impl Fn(Lpn) -> bool, out: &mut Vec<Slot>) {
        out.clear();
        if let Some(small) = &self.small {
            small.together(lead, &self.entries, may, out);
        }
    }

    /// Whether what was in a slot has left, and nothing has come into it since.
    pub(crate) fn has_left(&self, slot: Slot) -> bool {
        self.entries[slot.index()].mask == 0
    }

    /// Takes a unit out on its way to flash; its space stays held until `release`.
    pub(crate) fn take(&mut self, slot: Slot) -> Entry {
        self.take_out(slot, false)
    }

    /// Takes a trimmed unit out; its space is held until `release`.
    pub(crate) fn drop_unit(&mut self, slot: Slot) -> Entry {
        self.take_out(slot, true)
    }

    fn take_out(&mut self, slot: Slot, dropped: bool) -> Entry {
        assert_ne!(self.entries[slot.index()].mask, 0, "slot {slot} is taken, and what was in it has left");
        self.policy.remove(slot, self.entries[slot.index()].lpn, dropped);
        let entry = &mut self.entries[slot.index()];
        let sector_data = std::mem::take(&mut entry.sector_data);
        let taken = Entry { sector_data, ..*entry };
        entry.mask = 0;
        if let Some(small) = &mut self.small {
            small.left(taken.lpn);
        }
        let known = self.index.remove(&taken.lpn);
        debug_assert_eq!(known, Some(slot), "unit {} is taken out of slot {slot}", taken.lpn);
        #[cfg(feature = "seeded-bugs")]
        {
            self.left_last = Some(taken.lpn);
        }
        self.free.push(slot);
        if taken.dirty() != 0 {
            self.by_age.remove(slot);
            debug_assert!(
                self.dirty_units > self.partial_units || taken.mask != self.full_mask,
                "all units are partial"
            );
            self.dirty_sectors -= u64::from(taken.mask.count_ones());
            self.dirty_units -= 1;
            self.partial_units -= u32::from(taken.mask != self.full_mask);
        }
        taken
    }

    /// Sectors that left are on flash, or were dropped.
    pub(crate) fn release(&mut self, sectors: u64) {
        assert!(sectors <= self.used_sectors, "{sectors} sectors are on flash, and {} are held", self.used_sectors);
        debug_assert!(self.dirty_sectors + sectors <= self.used_sectors, "sectors are released while they are held");
        self.used_sectors -= sectors;
    }

    /// The oldest units that came in before write command number `before`, at most `limit`.
    pub(crate) fn older_than(&self, before: u64, limit: usize, out: &mut Vec<Slot>) {
        out.clear();
        let mut slot = self.by_age.head;
        while slot != Slot::NONE && out.len() < limit && self.entry(slot).since < before {
            out.push(slot);
            slot = self.by_age.next(slot);
        }
    }

    /// Units in `first..end`, whichever way is shorter to find them.
    pub(crate) fn in_range(&self, first: Lpn, end: Lpn, out: &mut Vec<Slot>) {
        debug_assert!(first <= end, "units {first} to {end}");
        out.clear();
        if u64::from(end - first) < self.index.len() as u64 {
            out.extend(Lpn::each(first..end).filter_map(|lpn| self.find(lpn)));
        } else {
            out.extend(self.index.iter().filter(|(lpn, _)| (first..end).contains(lpn)).map(|(_, slot)| *slot));
            out.sort_unstable_by_key(|slot| self.entry(*slot).lpn);
        }
    }
}

/// Copies the data of the sectors in `mask`.
fn merge(into: &mut [u8], from: &[u8], mask: u64, per_sector: usize) {
    debug_assert_eq!(into.len(), from.len(), "the data of a unit is merged with that of one");
    for sector in (0..64).filter(|sector| mask >> sector & 1 != 0) {
        let range = sector * per_sector..(sector + 1) * per_sector;
        into[range.clone()].copy_from_slice(&from[range]);
    }
}

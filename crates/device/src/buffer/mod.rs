//! The write buffer: sector-granular space in front of the FTL.
//!
//! A unit in the buffer merges overwrites. Space is held from the moment a sector comes in until the page it left in is
//! on flash. Which units leave, and in which order, is a policy: one file and one line in [`POLICIES`].

mod fifo;
mod lru;

use rustc_hash::FxHashMap;

#[cfg(feature = "planted-bugs")]
use crate::planted::{Bug, planted};

/// A slot of a buffered unit.
pub(crate) type Slot = u32;

/// No slot.
const NIL: Slot = u32::MAX;

/// The order in which units leave.
pub(crate) trait BufferPolicy: Send {
    /// A unit came in with write command number `command`.
    fn insert(&mut self, slot: Slot, command: u64);

    /// A unit was overwritten in the buffer.
    fn touch(&mut self, slot: Slot, command: u64);

    /// A unit left or was dropped.
    fn remove(&mut self, slot: Slot);

    /// Appends the units that leave next: at least `wanted` of them if there are so many, and whatever leaves with them.
    fn victims(&self, wanted: usize, out: &mut Vec<Slot>);
}

type Make = fn() -> Box<dyn BufferPolicy>;

/// Every buffer policy: name, summary, constructor; `none` has no buffer at all.
pub(crate) const POLICIES: &[(&str, &str, Option<Make>)] = &[
    ("none", "no buffer: a write completes when it is on flash", None),
    ("fifo", "whole requests leave in the order they came (VSSIM)", Some(|| Box::new(fifo::Fifo::default()))),
    ("lru", "the least recently written page leaves", Some(|| Box::new(lru::Lru::default()))),
];

/// A unit in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) lpn: u32,
    /// Sectors held.
    pub(crate) mask: u64,
    /// Cells of all sectors of the unit, where contents are kept.
    pub(crate) cells: Vec<u8>,
    /// Number of the write command that brought the unit in.
    pub(crate) since: u64,
    pub(crate) stream: u16,
}

/// The units in the buffer.
pub(crate) struct WriteBuffer {
    policy: Box<dyn BufferPolicy>,
    entries: Vec<Entry>,
    free: Vec<Slot>,
    index: FxHashMap<u32, Slot>,
    /// Units in the order they came in, for flushes.
    by_age: Chain,
    capacity_sectors: u64,
    used_sectors: u64,
    dirty_units: u32,
    cell_bytes: usize,
    /// The unit that left last.
    #[cfg(feature = "planted-bugs")]
    left_last: Option<u32>,
}

impl WriteBuffer {
    pub(crate) fn new(policy: Box<dyn BufferPolicy>, bytes: u64, cell_bytes: usize) -> WriteBuffer {
        WriteBuffer {
            policy,
            entries: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            by_age: Chain::default(),
            capacity_sectors: bytes / 512,
            used_sectors: 0,
            dirty_units: 0,
            cell_bytes,
            #[cfg(feature = "planted-bugs")]
            left_last: None,
        }
    }

    /// Sectors that can come in now.
    pub(crate) fn room(&self) -> u64 {
        self.capacity_sectors - self.used_sectors
    }

    /// Looks units up, so that what that touches is in the processor's cache.
    pub(crate) fn glance(&self, lpns: impl Iterator<Item = u32>) {
        for lpn in lpns {
            std::hint::black_box(self.find(lpn));
        }
    }

    /// Whether units leave with almost every write that comes in.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.room() < self.capacity_sectors / 16
    }

    /// Units held and not on their way to flash.
    pub(crate) fn units(&self) -> u32 {
        self.dirty_units
    }

    /// Sectors held, those on their way to flash included.
    pub(crate) fn used_sectors(&self) -> u64 {
        self.used_sectors
    }

    /// The buffered unit of an LPN.
    #[inline]
    pub(crate) fn find(&self, lpn: u32) -> Option<Slot> {
        if self.dirty_units == 0 { None } else { self.index.get(&lpn).copied() }
    }

    pub(crate) fn entry(&self, slot: Slot) -> &Entry {
        &self.entries[slot as usize]
    }

    /// Merges a write into the buffer. `Ok` tells whether the unit was there already, `Err` how many sectors it would
    /// take that there is no room for.
    #[inline]
    pub(crate) fn write(&mut self, lpn: u32, mask: u64, cells: &[u8], command: u64, stream: u16) -> Result<bool, u64> {
        let found = self.find(lpn);
        let held = found.map_or(0, |slot| self.entry(slot).mask);
        let cost = u64::from((mask & !held).count_ones());
        if cost > self.room() {
            return Err(cost);
        }
        self.used_sectors += cost;
        #[cfg(feature = "planted-bugs")]
        if found.is_none() && planted(Bug::OverwriteLost) && self.left_last == Some(lpn) {
            return Ok(false);
        }
        if let Some(slot) = found {
            let entry = &mut self.entries[slot as usize];
            entry.mask |= mask;
            entry.stream = stream;
            if self.cell_bytes > 0 {
                merge(&mut entry.cells, cells, mask, self.cell_bytes);
            }
            self.policy.touch(slot, command);
            return Ok(true);
        }
        let entry = Entry { lpn, mask, cells: cells.to_vec(), since: command, stream };
        let slot = if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = entry;
            slot
        } else {
            self.entries.push(entry);
            self.entries.len() as Slot - 1
        };
        self.index.insert(lpn, slot);
        self.dirty_units += 1;
        self.by_age.push(slot);
        self.policy.insert(slot, command);
        Ok(false)
    }

    /// The units that leave next.
    pub(crate) fn victims(&self, wanted: usize, out: &mut Vec<Slot>) {
        out.clear();
        self.policy.victims(wanted, out);
    }

    /// Takes a unit out on its way to flash; its space stays held until `release`.
    pub(crate) fn take(&mut self, slot: Slot) -> Entry {
        self.policy.remove(slot);
        self.by_age.remove(slot);
        let entry = &mut self.entries[slot as usize];
        let cells = std::mem::take(&mut entry.cells);
        let taken = Entry { cells, ..*entry };
        self.index.remove(&taken.lpn);
        #[cfg(feature = "planted-bugs")]
        {
            self.left_last = Some(taken.lpn);
        }
        self.free.push(slot);
        self.dirty_units -= 1;
        taken
    }

    /// Sectors that left are on flash, or were dropped.
    pub(crate) fn release(&mut self, sectors: u64) {
        self.used_sectors -= sectors;
    }

    /// The oldest units that came in before write command number `before`, at most `limit`.
    pub(crate) fn older_than(&self, before: u64, limit: usize, out: &mut Vec<Slot>) {
        out.clear();
        let mut slot = self.by_age.head;
        while slot != NIL && out.len() < limit && self.entry(slot).since < before {
            out.push(slot);
            slot = self.by_age.next(slot);
        }
    }

    /// Units in `first..end`, whichever way is shorter to find them.
    pub(crate) fn in_range(&self, first: u32, end: u32, out: &mut Vec<Slot>) {
        out.clear();
        if u64::from(end - first) < self.index.len() as u64 {
            out.extend((first..end).filter_map(|lpn| self.find(lpn)));
        } else {
            out.extend(self.index.iter().filter(|(lpn, _)| (first..end).contains(lpn)).map(|(_, slot)| *slot));
            out.sort_unstable_by_key(|slot| self.entry(*slot).lpn);
        }
    }
}

/// Copies the cells of the sectors in `mask`.
fn merge(into: &mut [u8], from: &[u8], mask: u64, cell: usize) {
    for sector in (0..64).filter(|sector| mask >> sector & 1 != 0) {
        let range = sector * cell..(sector + 1) * cell;
        into[range.clone()].copy_from_slice(&from[range]);
    }
}

/// A doubly linked list over slots: the stack of LRU and the queue of FIFO.
#[derive(Clone, Debug)]
struct Chain {
    links: Vec<(Slot, Slot)>,
    head: Slot,
    tail: Slot,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { links: Vec::new(), head: NIL, tail: NIL }
    }
}

impl Chain {
    /// Puts a slot at the tail.
    fn push(&mut self, slot: Slot) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, (NIL, NIL));
        }
        self.links[slot as usize] = (self.tail, NIL);
        match self.tail {
            NIL => self.head = slot,
            tail => self.links[tail as usize].1 = slot,
        }
        self.tail = slot;
    }

    fn remove(&mut self, slot: Slot) {
        let (before, after) = self.links[slot as usize];
        match before {
            NIL => self.head = after,
            before => self.links[before as usize].1 = after,
        }
        match after {
            NIL => self.tail = before,
            after => self.links[after as usize].0 = before,
        }
    }

    fn next(&self, slot: Slot) -> Slot {
        self.links[slot as usize].1
    }
}

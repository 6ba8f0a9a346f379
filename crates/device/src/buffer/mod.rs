//! The write buffer: sector-granular space in front of the FTL.
//!
//! A unit in the buffer merges overwrites. Space is held from the moment a sector comes in until the page it left in is
//! on flash. Which units leave, and in which order, is a policy: one file and one line in [`POLICIES`].

mod arc;
mod blocks;
mod bplru;
mod cflru;
mod chain;
mod counts;
mod fab;
mod fifo;
mod ghosts;
mod lirs;
mod list;
mod lru;
mod mca;
#[cfg(test)]
mod model;
mod pc;
mod pc_lru;
mod small;

use chain::Chain;
use list::Stack;
use pc::PcStack;
use rustc_hash::FxHashMap;

use crate::ftl::Compaction;
use crate::{BufferCounters, DriveConfig};

#[cfg(feature = "planted-bugs")]
use crate::planted::{Bug, planted};

/// A slot of a buffered unit.
pub(crate) type Slot = u32;

/// No slot.
const NIL: Slot = u32::MAX;

/// A write of a unit, as a policy is told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) lpn: u32,
    /// Number of the write command; units of one request share it.
    pub(crate) command: u64,
    /// Sectors of this write; none when a read brings the unit in.
    pub(crate) written: u64,
    /// Sectors in the buffer before and now.
    pub(crate) held: [u32; 2],
    /// All sectors of the unit were in the buffer before.
    pub(crate) was_full: bool,
    /// All sectors of the unit are in the buffer now.
    pub(crate) is_full: bool,
}

/// Which chips are at work.
pub(crate) trait Chips {
    /// Whether the first flash operation that writing these sectors of a unit now would start would have to wait.
    fn is_busy(&self, lpn: u32, mask: u64) -> bool;
}

/// What a policy sees when it chooses.
pub(crate) struct View<'a> {
    entries: &'a [Entry],
    full_mask: u64,
    chips: &'a dyn Chips,
    counters: &'a mut BufferCounters,
}

impl View<'_> {
    /// Whether all sectors of the unit are in the buffer.
    pub(crate) fn is_full(&self, slot: Slot) -> bool {
        self.entries[slot as usize].mask == self.full_mask
    }

    /// Whether the unit's chip is congested: its first flash operation would have to wait.
    pub(crate) fn is_congested(&self, slot: Slot) -> bool {
        let entry = &self.entries[slot as usize];
        self.chips.is_busy(entry.lpn, entry.mask)
    }

    /// Partial units that would have left stay, for the sake of a busy chip.
    pub(crate) fn delayed(&mut self, units: u64) {
        self.counters.delayed_pages += units;
    }
}

/// The order in which units leave.
///
/// A policy keeps an order of slots; it sees no data and writes nothing. What it chooses leaves, or stays if flash has no
/// room: only `remove` says that a unit is gone.
pub(crate) trait BufferPolicy: Send {
    /// Whether what is read from flash is kept as well.
    fn caches_reads(&self) -> bool {
        false
    }

    /// Units of a block, if blocks leave padded: `victims` are a block's then.
    fn pads(&self) -> Option<u32> {
        None
    }

    /// Forgets what it counted, not what it knows.
    fn reset_figures(&mut self) {}

    /// A unit came in.
    fn insert(&mut self, slot: Slot, unit: &Unit);

    /// A unit was overwritten in the buffer.
    fn touch(&mut self, slot: Slot, unit: &Unit);

    /// A unit in the buffer was read; only told where reads are kept.
    fn read(&mut self, _slot: Slot) {}

    /// A unit left, or was trimmed (`dropped`).
    fn remove(&mut self, slot: Slot, lpn: u32, dropped: bool);

    /// Appends the units that leave next: at least `wanted` of them if there are so many, and whatever leaves with them.
    fn victims(&mut self, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>);

    /// Appends units that will probably be among the next `wanted` to leave: a hint for the processor's cache.
    fn coming(&self, wanted: usize, out: &mut Vec<Slot>);

    /// RAM that a real drive would need for the policy beside the data, by name, in bytes.
    fn memory(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The policy's own figures, by name.
    fn figures(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

type Make = fn(&DriveConfig) -> Box<dyn BufferPolicy>;

/// Every buffer policy: name, summary, constructor; `none` has no buffer at all.
pub(crate) const POLICIES: &[(&str, &str, Option<Make>)] = &[
    ("none", "no buffer: a write completes when it is on flash", None),
    ("fifo", "whole requests leave in the order they came (VSSIM)", Some(|_| Box::new(fifo::Fifo::default()))),
    ("lru", "the least recently written page leaves", Some(|_| Box::new(lru::Lru::default()))),
    (
        "mca",
        "LRU that passes over partial pages whose chip is busy (MCA)",
        Some(|config| Box::new(mca::Mca::new(config.buffer.policies.mca_window))),
    ),
    (
        "pc-lru",
        "LRU; while a chip is congested full pages leave before partial ones (WAFLASH)",
        Some(|_| Box::new(pc_lru::PcLru::new())),
    ),
    (
        "arc",
        "adapts between pages written once and again and again (ARC)",
        Some(|_| Box::new(arc::Arc::<Stack>::new())),
    ),
    (
        "pc-arc",
        "ARC; while a chip is congested full pages leave before partial ones",
        Some(|_| Box::new(arc::Arc::<PcStack>::new())),
    ),
    (
        "lirs",
        "pages with the longest time between their last two writes leave (LIRS)",
        Some(|config| Box::new(lirs::Lirs::<Stack>::new(config))),
    ),
    (
        "pc-lirs",
        "LIRS; while a chip is congested full pages leave before partial ones",
        Some(|config| Box::new(lirs::Lirs::<PcStack>::new(config))),
    ),
    (
        "cflru",
        "caches reads too; clean pages in the window at the bottom leave before dirty ones (CFLRU)",
        Some(|config| Box::new(cflru::Cflru::new(config.buffer.policies.cflru_window_permille))),
    ),
    (
        "fab",
        "the block with the most pages in the buffer leaves as a whole (FAB)",
        Some(|config| Box::new(fab::Fab::new(block_units(config)))),
    ),
    (
        "bplru",
        "the least recently written block leaves as a whole (BPLRU)",
        Some(|config| {
            let padding = config.buffer.policies.bplru_padding;
            Box::new(bplru::Bplru::new(block_units(config), config.ftl.mapping_unit, padding))
        }),
    ),
];

/// Mapping units of a logical block, for the policies that know blocks.
fn block_units(config: &DriveConfig) -> u32 {
    config.flash.geometry.page_bytes / config.ftl.mapping_unit * config.buffer.policies.block_pages
}

/// A unit in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) lpn: u32,
    /// Sectors held.
    pub(crate) mask: u64,
    /// Of them those that a read brought in: they are on flash as they are here.
    pub(crate) clean: u64,
    /// Cells of all sectors of the unit, where contents are kept.
    pub(crate) cells: Vec<u8>,
    /// Number of the write command that brought the unit in.
    pub(crate) since: u64,
    pub(crate) stream: u16,
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
    policy: Box<dyn BufferPolicy>,
    entries: Vec<Entry>,
    free: Vec<Slot>,
    index: FxHashMap<u32, Slot>,
    /// Units in the order they came in, for flushes.
    by_age: Chain,
    capacity_sectors: u64,
    used_sectors: u64,
    dirty_units: u32,
    /// Of them partial.
    partial_units: u32,
    cell_bytes: usize,
    /// All sectors of a unit.
    full_mask: u64,
    /// Small partial units, where the FTL compacts them.
    small: Option<small::SmallUnits>,
    /// The unit that left last.
    #[cfg(feature = "planted-bugs")]
    left_last: Option<u32>,
}

impl WriteBuffer {
    pub(crate) fn new(
        policy: Box<dyn BufferPolicy>,
        bytes: u64,
        cell_bytes: usize,
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
            dirty_units: 0,
            partial_units: 0,
            cell_bytes,
            full_mask,
            small: compaction.map(small::SmallUnits::new),
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

    /// Whether there is nothing that could leave.
    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Units held that have to go to flash and are not on their way.
    pub(crate) fn units(&self) -> u32 {
        self.dirty_units
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
    pub(crate) fn find(&self, lpn: u32) -> Option<Slot> {
        if self.index.is_empty() { None } else { self.index.get(&lpn).copied() }
    }

    pub(crate) fn entry(&self, slot: Slot) -> &Entry {
        &self.entries[slot as usize]
    }

    /// Merges a write into the buffer. `Ok` tells what it met there, `Err` how many sectors it would take that there is no
    /// room for.
    #[inline]
    pub(crate) fn write(&mut self, lpn: u32, mask: u64, cells: &[u8], command: u64, stream: u16) -> Result<Met, u64> {
        let found = self.find(lpn);
        let held = found.map_or(0, |slot| self.entry(slot).mask);
        let cost = u64::from((mask & !held).count_ones());
        if cost > self.room() {
            return Err(cost);
        }
        self.used_sectors += cost;
        #[cfg(feature = "planted-bugs")]
        if found.is_none() && planted(Bug::OverwriteLost) && self.left_last == Some(lpn) {
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
            let entry = &mut self.entries[slot as usize];
            let was_dirty = entry.dirty() != 0;
            entry.mask |= mask;
            entry.clean &= !mask;
            entry.stream = stream;
            if self.cell_bytes > 0 {
                merge(&mut entry.cells, cells, mask, self.cell_bytes);
            }
            let held = entry.mask;
            self.policy.touch(slot, &unit);
            if let Some(small) = &mut self.small {
                small.holds(lpn, slot, held);
            }
            if !was_dirty {
                self.entries[slot as usize].since = command;
                self.by_age.push(slot);
                self.dirty_units += 1;
                self.partial_units += u32::from(!is_full);
                return Ok(Met::Unit);
            }
            let completed = is_full && !unit.was_full;
            self.partial_units -= u32::from(completed);
            return Ok(if completed { Met::Completed } else { Met::Unit });
        }
        let entry = Entry { lpn, mask, clean: 0, cells: cells.to_vec(), since: command, stream };
        let slot = self.put(entry);
        self.dirty_units += 1;
        self.by_age.push(slot);
        self.policy.insert(slot, &unit);
        if let Some(small) = &mut self.small {
            small.holds(lpn, slot, mask);
        }
        self.partial_units += u32::from(!is_full);
        Ok(Met::Nothing)
    }

    /// Units of a block, if blocks leave padded.
    pub(crate) fn pads(&self) -> Option<u32> {
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
    pub(crate) fn keep_clean(&mut self, lpn: u32, mask: u64, cells: &[u8]) {
        let sectors = u64::from(mask.count_ones());
        assert!(sectors <= self.room(), "{sectors} sectors read, room for {}", self.room());
        self.used_sectors += sectors;
        if let Some(slot) = self.find(lpn) {
            let entry = &mut self.entries[slot as usize];
            assert!(entry.mask & mask == 0, "unit {lpn} holds sectors that are kept again");
            let was_partial = entry.dirty() != 0 && entry.mask != self.full_mask;
            entry.mask |= mask;
            entry.clean |= mask;
            let (dirty, held) = (entry.dirty(), entry.mask);
            if self.cell_bytes > 0 {
                merge(&mut entry.cells, cells, mask, self.cell_bytes);
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
        let slot = self.put(Entry { lpn, mask, clean: mask, cells: cells.to_vec(), since: 0, stream: 0 });
        let is_full = mask == self.full_mask;
        let held = [0, mask.count_ones()];
        let unit = Unit { lpn, command: 0, written: 0, held, was_full: false, is_full };
        self.policy.insert(slot, &unit);
    }

    /// Gives an entry a slot.
    fn put(&mut self, entry: Entry) -> Slot {
        let lpn = entry.lpn;
        let slot = if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = entry;
            slot
        } else {
            self.entries.push(entry);
            self.entries.len() as Slot - 1
        };
        self.index.insert(lpn, slot);
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
    pub(crate) fn compacted_with(&self, lead: Slot, may: impl Fn(u32) -> bool, out: &mut Vec<Slot>) {
        out.clear();
        if let Some(small) = &self.small {
            small.together(lead, &self.entries, may, out);
        }
    }

    /// Whether what was in a slot has left, and nothing has come into it since.
    pub(crate) fn has_left(&self, slot: Slot) -> bool {
        self.entries[slot as usize].mask == 0
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
        self.policy.remove(slot, self.entries[slot as usize].lpn, dropped);
        let entry = &mut self.entries[slot as usize];
        let cells = std::mem::take(&mut entry.cells);
        let taken = Entry { cells, ..*entry };
        entry.mask = 0;
        if let Some(small) = &mut self.small {
            small.left(taken.lpn);
        }
        self.index.remove(&taken.lpn);
        #[cfg(feature = "planted-bugs")]
        {
            self.left_last = Some(taken.lpn);
        }
        self.free.push(slot);
        if taken.dirty() != 0 {
            self.by_age.remove(slot);
            self.dirty_units -= 1;
            self.partial_units -= u32::from(taken.mask != self.full_mask);
        }
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

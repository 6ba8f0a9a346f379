//! What a buffer policy is, and what it is told.

use ssdlab_flash::Lpn;

use super::{Entry, Slot};
use crate::BufferCounters;

/// A write of a unit, as a policy is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// The logical unit.
    pub lpn: Lpn,
    /// Number of the write command; units of one request share it.
    pub command: u64,
    /// Sectors of this write; none when a read brings the unit in.
    pub written: u64,
    /// Sectors in the buffer before and now.
    pub held: [u32; 2],
    /// All sectors of the unit were in the buffer before.
    pub was_full: bool,
    /// All sectors of the unit are in the buffer now.
    pub is_full: bool,
}

/// Which chips are at work.
pub(crate) trait Chips {
    /// Whether the first flash operation that writing these sectors of a unit now would start would have to wait.
    fn is_busy(&self, lpn: Lpn, mask: u64) -> bool;
}

/// What a policy sees when it chooses.
pub struct View<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) full_mask: u64,
    pub(super) chips: &'a dyn Chips,
    pub(super) counters: &'a mut BufferCounters,
}

impl View<'_> {
    /// Whether all sectors of the unit are in the buffer.
    pub fn is_full(&self, slot: Slot) -> bool {
        self.entries[slot.index()].mask == self.full_mask
    }

    /// Whether the unit's chip is congested: its first flash operation would have to wait.
    pub fn is_congested(&self, slot: Slot) -> bool {
        let entry = &self.entries[slot.index()];
        self.chips.is_busy(entry.lpn, entry.mask)
    }

    /// Partial units that would have left stay, for the sake of a busy chip.
    pub fn delayed(&mut self, units: u64) {
        self.counters.delayed_pages += units;
    }
}

/// Blocks leave with what they lack, read from flash and written anew.
pub struct Padding {
    /// Units of a block.
    pub block_units: u32,
    /// The key of `[buffer]` that asks for it.
    pub key: &'static str,
}

/// The order in which units leave.
///
/// A policy keeps an order of slots; it sees no data and writes nothing. What it chooses leaves, or stays if flash has no
/// room: only `remove` says that a unit is gone.
pub trait BufferPolicy: Send {
    /// Whether what is read from flash is kept as well.
    fn caches_reads(&self) -> bool {
        false
    }

    /// How blocks leave padded, if they do: `victims` are a block's then.
    fn pads(&self) -> Option<Padding> {
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
    fn remove(&mut self, slot: Slot, lpn: Lpn, dropped: bool);

    /// Appends the units that leave next: at least `wanted` of them if there are so many, and whatever leaves with them.
    fn victims(&mut self, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>);

    /// Appends the units that leave next, as [`BufferPolicy::victims`] does, but only those that have to go to flash:
    /// with these the drive destages. A policy that keeps no reads has no others.
    fn destaged(&mut self, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>) {
        self.victims(wanted, view, out);
    }

    /// Appends units that will probably be among the next `wanted` to leave: a hint for the processor's cache.
    fn coming(&self, wanted: usize, out: &mut Vec<Slot>);

    /// All units in an order in which inserting them anew brings a fresh policy to the same state; `None` where a policy
    /// knows more than that. A drive whose policy gives none cannot be saved with units in its buffer.
    fn order(&self) -> Option<Vec<Slot>> {
        None
    }

    /// RAM that a real drive would need for the policy beside the data, by name, in bytes.
    fn memory(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The policy's own figures, by name.
    fn figures(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

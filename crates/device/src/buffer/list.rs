//! The lists that ARC and LIRS take their victims from: plain ones, and those of the principle of [`super::pc`].

use super::pc::{Distances, PcStack, choose};
use super::{Chain, Slot, View};

/// A list whose bottom leaves first.
pub(super) trait List: Send {
    /// Whether conversion distances are wanted.
    const AWARE: bool;

    fn new() -> Self;
    fn push(&mut self, slot: Slot, full: bool);
    fn remove(&mut self, slot: Slot);
    fn len(&self) -> u32;

    /// Units taken out that had been delayed.
    fn moved_units(&self) -> u64 {
        0
    }

    fn forget_moved(&mut self) {}
    fn bytes(&self) -> u64;

    /// The units from the bottom up.
    fn iter(&self) -> Box<dyn Iterator<Item = Slot> + '_>;

    /// Appends up to `wanted` units that leave.
    fn choose(&mut self, distances: &Distances, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>);
}

/// A plain list.
#[derive(Default)]
pub(super) struct Stack {
    chain: Chain,
    len: u32,
}

impl List for Stack {
    const AWARE: bool = false;

    fn new() -> Stack {
        Stack::default()
    }

    fn push(&mut self, slot: Slot, _: bool) {
        self.chain.push(slot);
        self.len += 1;
    }

    fn remove(&mut self, slot: Slot) {
        self.chain.remove(slot);
        debug_assert!(self.len > 0, "slot {slot} is taken from an empty list");
        self.len -= 1;
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn bytes(&self) -> u64 {
        self.chain.bytes()
    }

    fn iter(&self) -> Box<dyn Iterator<Item = Slot> + '_> {
        Box::new(self.chain.iter())
    }

    fn choose(&mut self, _: &Distances, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        out.extend(self.chain.iter().take(wanted));
    }
}

impl List for PcStack {
    const AWARE: bool = true;

    fn new() -> PcStack {
        PcStack::new()
    }

    fn push(&mut self, slot: Slot, full: bool) {
        PcStack::push(self, slot, full);
    }

    fn remove(&mut self, slot: Slot) {
        PcStack::remove(self, slot);
    }

    fn len(&self) -> u32 {
        PcStack::len(self)
    }

    fn moved_units(&self) -> u64 {
        PcStack::moved_units(self)
    }

    fn forget_moved(&mut self) {
        PcStack::forget_moved(self);
    }

    fn bytes(&self) -> u64 {
        PcStack::bytes(self)
    }

    fn iter(&self) -> Box<dyn Iterator<Item = Slot> + '_> {
        Box::new(PcStack::iter(self))
    }

    fn choose(&mut self, distances: &Distances, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>) {
        choose(self, distances, wanted, view, out);
    }
}

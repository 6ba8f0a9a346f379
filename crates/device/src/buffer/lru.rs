//! LRU: the unit that was written longest ago leaves.

use ssdlab_flash::Lpn;

use super::{BufferPolicy, Chain, Policy, Slot, Unit, View};

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "lru",
    summary: "the least recently written page leaves",
    keys: &[],
    make: Some(|_| Box::new(Lru::default())),
};

/// The LRU stack; its bottom is the head of the chain.
#[derive(Default)]
pub(super) struct Lru {
    stack: Chain,
}

impl BufferPolicy for Lru {
    fn insert(&mut self, slot: Slot, _: &Unit) {
        self.stack.push(slot);
    }

    fn touch(&mut self, slot: Slot, _: &Unit) {
        self.stack.remove(slot);
        self.stack.push(slot);
    }

    fn remove(&mut self, slot: Slot, _: Lpn, _: bool) {
        self.stack.remove(slot);
    }

    fn victims(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        self.coming(wanted, out);
    }

    fn order(&self) -> Option<Vec<Slot>> {
        Some(self.stack.iter().collect())
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        let mut slot = self.stack.head;
        while slot != Slot::NONE && out.len() < wanted {
            out.push(slot);
            slot = self.stack.next(slot);
        }
    }
}

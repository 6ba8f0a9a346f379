//! LRU: the unit that was written longest ago leaves.

use super::{BufferPolicy, Chain, NIL, Slot};

/// The LRU stack; its bottom is the head of the chain.
#[derive(Default)]
pub(super) struct Lru {
    stack: Chain,
}

impl BufferPolicy for Lru {
    fn insert(&mut self, slot: Slot, _: u64) {
        self.stack.push(slot);
    }

    fn touch(&mut self, slot: Slot, _: u64) {
        self.stack.remove(slot);
        self.stack.push(slot);
    }

    fn remove(&mut self, slot: Slot) {
        self.stack.remove(slot);
    }

    fn victims(&self, wanted: usize, out: &mut Vec<Slot>) {
        let mut slot = self.stack.head;
        while slot != NIL && out.len() < wanted {
            out.push(slot);
            slot = self.stack.next(slot);
        }
    }
}

//! A doubly linked list over slots: the stack of LRU and the queue of FIFO.

use super::{NIL, Slot};

/// The list; each slot is in it at most once.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    links: Vec<(Slot, Slot)>,
    pub(super) head: Slot,
    pub(super) tail: Slot,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { links: Vec::new(), head: NIL, tail: NIL }
    }
}

impl Chain {
    /// Puts a slot at the tail.
    pub(super) fn push(&mut self, slot: Slot) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, (NIL, NIL));
        }
        debug_assert_eq!(self.head == NIL, self.tail == NIL, "a chain has two ends or none");
        debug_assert_ne!(self.tail, slot, "slot {slot} is linked twice");
        self.links[slot as usize] = (self.tail, NIL);
        match self.tail {
            NIL => self.head = slot,
            tail => self.links[tail as usize].1 = slot,
        }
        self.tail = slot;
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        let (before, after) = self.links[slot as usize];
        debug_assert!(
            before != NIL || self.head == slot,
            "slot {slot} is the first, and the chain begins with {}",
            self.head
        );
        debug_assert!(
            after != NIL || self.tail == slot,
            "slot {slot} is the last, and the chain ends with {}",
            self.tail
        );
        match before {
            NIL => self.head = after,
            before => self.links[before as usize].1 = after,
        }
        match after {
            NIL => self.tail = before,
            after => self.links[after as usize].0 = before,
        }
    }

    pub(super) fn next(&self, slot: Slot) -> Slot {
        self.links[slot as usize].1
    }

    pub(super) fn before(&self, slot: Slot) -> Slot {
        self.links[slot as usize].0
    }

    /// From the head to the tail.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        let mut slot = self.head;
        std::iter::from_fn(move || {
            let here = slot;
            (here != NIL).then(|| {
                slot = self.next(here);
                here
            })
        })
    }

    /// Moves the run from the head, `first`, to `last` behind `after`, which comes later.
    pub(super) fn move_run(&mut self, first: Slot, last: Slot, after: Slot) {
        debug_assert!(first == self.head, "a run is moved from the head");
        debug_assert!(first != after && last != after, "a run is moved behind {after}, which is in it");
        let (next, behind) = (self.next(last), self.next(after));
        self.head = next;
        self.links[next as usize].0 = NIL;
        self.links[after as usize].1 = first;
        self.links[first as usize].0 = after;
        self.links[last as usize].1 = behind;
        match behind {
            NIL => self.tail = last,
            behind => self.links[behind as usize].0 = last,
        }
    }

    /// Two links a slot, of as many slots as were ever used at a time.
    pub(super) fn bytes(&self) -> u64 {
        self.links.len() as u64 * 8
    }
}

//! A doubly linked list over slots, or over the nodes of a policy: the stack of LRU and the queue of FIFO.

use std::fmt::{Debug, Display};

use super::Slot;

/// What a [`Chain`] links: numbers that count from 0.
pub(super) trait Link: Copy + Debug + Display + Eq {
    /// None of them.
    const NONE: Self;

    /// The place in a table with an entry for each.
    fn index(self) -> usize;
}

impl Link for Slot {
    const NONE: Slot = Slot::NONE;

    #[inline(always)]
    fn index(self) -> usize {
        Slot::index(self)
    }
}

/// No node of a policy's own: these are numbers in a table that only the policy knows.
pub(super) const NO_NODE: u32 = u32::MAX;

impl Link for u32 {
    const NONE: u32 = NO_NODE;

    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

/// The list; each slot is in it at most once.
#[derive(Clone, Debug)]
pub(super) struct Chain<L = Slot> {
    links: Vec<(L, L)>,
    pub(super) head: L,
    pub(super) tail: L,
}

impl<L: Link> Default for Chain<L> {
    fn default() -> Chain<L> {
        Chain { links: Vec::new(), head: L::NONE, tail: L::NONE }
    }
}

impl<L: Link> Chain<L> {
    /// Puts a slot at the tail.
    pub(super) fn push(&mut self, slot: L) {
        if self.links.len() <= slot.index() {
            self.links.resize(slot.index() + 1, (L::NONE, L::NONE));
        }
        debug_assert_eq!(self.head == L::NONE, self.tail == L::NONE, "a chain has two ends or none");
        debug_assert_ne!(self.tail, slot, "slot {slot} is linked twice");
        self.links[slot.index()] = (self.tail, L::NONE);
        if self.tail == L::NONE {
            self.head = slot;
        } else {
            self.links[self.tail.index()].1 = slot;
        }
        self.tail = slot;
    }

    pub(super) fn remove(&mut self, slot: L) {
        let (before, after) = self.links[slot.index()];
        debug_assert!(
            before != L::NONE || self.head == slot,
            "slot {slot} is the first, and the chain begins with {}",
            self.head
        );
        debug_assert!(
            after != L::NONE || self.tail == slot,
            "slot {slot} is the last, and the chain ends with {}",
            self.tail
        );
        if before == L::NONE {
            self.head = after;
        } else {
            self.links[before.index()].1 = after;
        }
        if after == L::NONE {
            self.tail = before;
        } else {
            self.links[after.index()].0 = before;
        }
    }

    pub(super) fn next(&self, slot: L) -> L {
        self.links[slot.index()].1
    }

    pub(super) fn before(&self, slot: L) -> L {
        self.links[slot.index()].0
    }

    /// From the head to the tail.
    pub(super) fn iter(&self) -> impl Iterator<Item = L> + '_ {
        let mut slot = self.head;
        std::iter::from_fn(move || {
            let here = slot;
            (here != L::NONE).then(|| {
                slot = self.next(here);
                here
            })
        })
    }

    /// Moves the run from the head, `first`, to `last` behind `after`, which comes later.
    pub(super) fn move_run(&mut self, first: L, last: L, after: L) {
        debug_assert!(first == self.head, "a run is moved from the head");
        debug_assert!(first != after && last != after, "a run is moved behind {after}, which is in it");
        let (next, behind) = (self.next(last), self.next(after));
        self.head = next;
        self.links[next.index()].0 = L::NONE;
        self.links[after.index()].1 = first;
        self.links[first.index()].0 = after;
        self.links[last.index()].1 = behind;
        if behind == L::NONE {
            self.tail = last;
        } else {
            self.links[behind.index()].0 = last;
        }
    }

    /// Two links a slot, of as many slots as were ever used at a time.
    pub(super) fn bytes(&self) -> u64 {
        self.links.len() as u64 * 8
    }
}

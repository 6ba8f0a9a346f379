//! A stack of units from which the lowest full one can leave, and the partial ones below it move up, at once.
//!
//! Every unit has a place: a number that rises towards the top. A unit that is pushed gets the next one. Those that are
//! re-inserted together share a place with the unit that they are put above, and are told from it by the list alone: a
//! block of any length moves by changing whose place it is (union-find), and the place at a distance from the bottom is
//! found by prefix sums. Each place is given away once, so a move costs the number of places that it merges, constant on
//! average, times the logarithm of the sums.
//!
//! ```text
//! bottom                    f = lowest full                      d above f                    top
//!   p p p p                      f             q q ... q q q_d         q q q ...
//!   `--- these move above q_d and what was put above it before; f is the bottom then
//! ```
//!
//! Units that were re-inserted at one place and not overwritten since stay together: P_insert is never between them but
//! above them.

use crate::buffer::counts::Counts;
use crate::buffer::{Chain, Slot};

/// The fewest places.
const LEAST_PLACES: usize = 1024;

/// See the module.
pub(in crate::buffer) struct PcStack {
    /// All units from the bottom to the top.
    order: Chain,
    /// The full ones, likewise.
    fulls: Chain,
    full: Vec<bool>,
    /// The place that each slot was pushed to.
    place: Vec<u32>,
    /// By place: the place that its units have moved to, itself if they have not.
    moved_to: Vec<u32>,
    /// By place: the uppermost of its units.
    top_of: Vec<Slot>,
    counts: Counts,
    /// The next place.
    next: u32,
    /// By slot: it moved since it was pushed.
    moved: Vec<bool>,
    /// Units taken out that had moved.
    moved_units: u64,
}

impl PcStack {
    pub(in crate::buffer) fn new() -> PcStack {
        PcStack {
            order: Chain::default(),
            fulls: Chain::default(),
            full: Vec::new(),
            place: Vec::new(),
            moved_to: (0..LEAST_PLACES as u32).collect(),
            top_of: vec![Slot::NONE; LEAST_PLACES],
            counts: Counts::new(LEAST_PLACES),
            next: 0,
            moved: Vec::new(),
            moved_units: 0,
        }
    }

    /// Units that moved between a push and being taken out, since the last call of [`PcStack::forget_moved`].
    pub(in crate::buffer) fn moved_units(&self) -> u64 {
        self.moved_units
    }

    /// Counts from nothing.
    pub(in crate::buffer) fn forget_moved(&mut self) {
        self.moved_units = 0;
    }

    /// Units in the stack.
    pub(in crate::buffer) fn len(&self) -> u32 {
        self.counts.total()
    }

    /// The lowest unit.
    pub(in crate::buffer) fn bottom(&self) -> Option<Slot> {
        (self.order.head != Slot::NONE).then_some(self.order.head)
    }

    /// Whether a unit was full when it was pushed.
    pub(in crate::buffer) fn is_full(&self, slot: Slot) -> bool {
        self.full[slot.index()]
    }

    /// The units from the bottom up.
    pub(in crate::buffer) fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.order.iter()
    }

    /// The full ones from the bottom up.
    pub(in crate::buffer) fn fulls(&self) -> impl Iterator<Item = Slot> + '_ {
        self.fulls.iter()
    }

    /// Puts a unit on top.
    pub(in crate::buffer) fn push(&mut self, slot: Slot, full: bool) {
        let place = self.next_place();
        if self.place.len() <= slot.index() {
            self.place.resize(slot.index() + 1, 0);
            self.full.resize(slot.index() + 1, false);
            self.moved.resize(slot.index() + 1, false);
        }
        self.moved[slot.index()] = false;
        self.place[slot.index()] = place;
        self.full[slot.index()] = full;
        self.top_of[place as usize] = slot;
        self.counts.add(place, 1);
        self.order.push(slot);
        if full {
            self.fulls.push(slot);
        }
    }

    /// Units below a unit that no other was re-inserted with.
    pub(in crate::buffer) fn below(&mut self, slot: Slot) -> u32 {
        let place = self.place_of(slot);
        self.counts.before(place)
    }

    /// Takes a unit out.
    pub(in crate::buffer) fn remove(&mut self, slot: Slot) {
        let place = self.place_of(slot);
        self.moved_units += u64::from(self.moved[slot.index()]);
        if self.top_of[place as usize] == slot {
            // If that is a unit of a place below, this one is empty and never looked at again.
            self.top_of[place as usize] = self.order.before(slot);
        }
        debug_assert!(self.counts.at(place) > 0, "slot {slot} is taken from place {place}, where nothing is");
        self.counts.take(place, 1);
        self.order.remove(slot);
        if self.full[slot.index()] {
            self.fulls.remove(slot);
        }
    }

    /// The partial units below the lowest full one move up, above `distance` of those that are above it, or to the top if
    /// those are fewer. Returns how many there are, moved or not.
    pub(in crate::buffer) fn delay(&mut self, distance: u32) -> u32 {
        let full = self.fulls.head;
        if full == Slot::NONE || full == self.order.head {
            return 0;
        }
        let mut full_place = self.place_of(full);
        let below = self.counts.before(full_place);
        let above = self.len() - below - 1;
        if distance == 0 || above == 0 {
            return below;
        }
        let target = if above < distance {
            // That may number all places anew.
            let target = self.next_place();
            full_place = self.place_of(full);
            target
        } else {
            self.counts.reaching(below + 1 + distance)
        };
        debug_assert!(target >= full_place, "P_insert is above the full page");
        let (first, last) = (self.order.head, self.order.before(full));
        let mut slot = first;
        while slot != full {
            let place = self.place_of(slot);
            let count = self.counts.at(place);
            slot = self.order.next(self.top_of[place as usize]);
            self.counts.take(place, count);
            self.moved_to[place as usize] = target;
        }
        let lower = if self.counts.at(target) == 0 { self.order.tail } else { self.top_of[target as usize] };
        debug_assert_ne!(lower, Slot::NONE, "{below} units go above one that is not there");
        self.order.move_run(first, last, lower);
        self.counts.add(target, below);
        self.top_of[target as usize] = last;
        below
    }

    /// The place of a unit now; the ways that lead there are made shorter.
    fn place_of(&mut self, slot: Slot) -> u32 {
        let mut place = self.place[slot.index()];
        self.moved[slot.index()] |= self.moved_to[place as usize] != place;
        while self.moved_to[place as usize] != place {
            let next = self.moved_to[self.moved_to[place as usize] as usize];
            self.moved_to[place as usize] = next;
            place = next;
        }
        self.place[slot.index()] = place;
        place
    }

    fn next_place(&mut self) -> u32 {
        if self.next as usize == self.counts.places() {
            self.renumber();
        }
        self.next += 1;
        self.next - 1
    }

    /// Numbers the places that hold anything anew, from 0, and makes room for as many again at least.
    fn renumber(&mut self) {
        let places = (self.len() as usize * 2).next_power_of_two().max(LEAST_PLACES);
        let mut counts = Counts::new(places);
        let mut top_of = vec![Slot::NONE; places];
        self.next = 0;
        let mut slot = self.order.head;
        while slot != Slot::NONE {
            let old = self.place_of(slot);
            let top = self.top_of[old as usize];
            counts.add(self.next, self.counts.at(old));
            top_of[self.next as usize] = top;
            loop {
                self.moved[slot.index()] |= self.place[slot.index()] != old;
                self.place[slot.index()] = self.next;
                let here = slot;
                slot = self.order.next(slot);
                if here == top {
                    break;
                }
            }
            self.next += 1;
        }
        assert_eq!(counts.total(), self.len(), "all units have a place when places are numbered anew");
        assert!((self.next as usize) < places, "{} places of {places} are taken", self.next);
        self.counts = counts;
        self.top_of = top_of;
        self.moved_to = (0..places as u32).collect();
    }

    /// RAM that a real drive would need.
    pub(in crate::buffer) fn bytes(&self) -> u64 {
        let slots = self.place.len() as u64;
        let places = self.counts.places() as u64;
        // A place a slot and a bit for full (whether it moved is for the statistics alone); who moved where and the uppermost unit of each place.
        self.order.bytes() + self.fulls.bytes() + slots * 4 + slots / 8 + places * 8 + self.counts.bytes()
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    /// A model of [`PcStack`] that walks its units.
    #[derive(Default)]
    struct Naive {
        /// Slot, full, and which push or move brought it where it is.
        stack: Vec<(Slot, bool, u64)>,
        serial: u64,
    }

    impl Naive {
        fn push(&mut self, slot: Slot, full: bool) {
            self.serial += 1;
            self.stack.push((slot, full, self.serial));
        }

        fn remove(&mut self, slot: Slot) {
            self.stack.retain(|(other, ..)| *other != slot);
        }

        fn delay(&mut self, distance: u32) -> u32 {
            let Some(full) = self.stack.iter().position(|(_, full, _)| *full) else { return 0 };
            let mut block: Vec<_> = self.stack.drain(..full).collect();
            let count = block.len() as u32;
            let mut at = 1 + distance as usize;
            if distance == 0 || count == 0 || self.stack.len() == 1 {
                at = 0;
            } else if at > self.stack.len() {
                at = self.stack.len();
                self.serial += 1;
                block.iter_mut().for_each(|unit| unit.2 = self.serial);
            } else {
                while at < self.stack.len() && self.stack[at].2 == self.stack[at - 1].2 {
                    at += 1;
                }
                let at = self.stack[at - 1].2;
                block.iter_mut().for_each(|unit| unit.2 = at);
            }
            self.stack.splice(at..at, block);
            count
        }
    }

    #[test]
    fn every_unit_is_where_walking_would_put_it() {
        for seed in 0..60 {
            let mut rng = rng(seed, "stack");
            let (mut stack, mut naive) = (PcStack::new(), Naive::default());
            let full_share = rng.random_range(0.02..0.9);
            let most = rng.random_range(2..80);
            let far = rng.random_range(1..most * 2);
            let mut free: Vec<Slot> = (0..most).rev().map(Slot).collect();
            for _ in 0..4000 {
                match rng.random_range(0..10) {
                    0..5 => {
                        if let Some(slot) = free.pop() {
                            let full = rng.random_bool(full_share);
                            stack.push(slot, full);
                            naive.push(slot, full);
                        }
                    }
                    5 if !naive.stack.is_empty() => {
                        let slot = naive.stack[rng.random_range(0..naive.stack.len())].0;
                        stack.remove(slot);
                        naive.remove(slot);
                        if rng.random_bool(0.5) {
                            let full = rng.random_bool(full_share);
                            stack.push(slot, full);
                            naive.push(slot, full);
                        } else {
                            free.push(slot);
                        }
                    }
                    6..9 => {
                        let distance = rng.random_range(0..far);
                        assert_eq!(stack.delay(distance), naive.delay(distance));
                        let full = stack.fulls().next();
                        if let Some(full) = full.filter(|_| rng.random_bool(0.8)) {
                            stack.remove(full);
                            naive.remove(full);
                            free.push(full);
                        }
                    }
                    _ => {
                        if let Some(bottom) = stack.bottom() {
                            stack.remove(bottom);
                            naive.remove(bottom);
                            free.push(bottom);
                        }
                    }
                }
                let order: Vec<Slot> = naive.stack.iter().map(|(slot, ..)| *slot).collect();
                assert_eq!(stack.iter().collect::<Vec<_>>(), order, "seed {seed}");
                assert_eq!(stack.len() as usize, order.len());
                let fulls: Vec<Slot> =
                    naive.stack.iter().filter(|(_, full, _)| *full).map(|(slot, ..)| *slot).collect();
                assert_eq!(stack.fulls().collect::<Vec<_>>(), fulls);
            }
        }
    }

    /// The example of WAFLASH's Figure 4: partial 17 and 20 at the bottom, full 05 above them.
    #[test]
    fn the_partial_pages_below_the_full_one_go_to_the_distance_that_is_asked_for() {
        let mut stack = PcStack::new();
        for (slot, full) in [(20, false), (17, false), (5, true), (23, true), (9, true), (12, true)] {
            stack.push(Slot(slot), full);
        }
        assert_eq!(stack.delay(2), 2);
        assert_eq!(stack.iter().collect::<Vec<_>>(), [5, 23, 9, 20, 17, 12].map(Slot));
        stack.remove(Slot(5));
        assert_eq!(stack.iter().collect::<Vec<_>>(), [23, 9, 20, 17, 12].map(Slot));
    }
}

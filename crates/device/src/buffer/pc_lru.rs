//! PC-LRU: LRU that is aware of partial pages and of chip congestion (WAFLASH, 3.1).
//!
//! The stack holds full and partial pages alike; a write puts its page on top. See [`super::pc`] for how a page is chosen
//! and what the paper leaves open. Without partial pages, or while all chips are idle, this is LRU.

use ssdlab_flash::Lpn;

use super::pc::{Distances, PcStack, choose};
use super::{BufferPolicy, Policy, Slot, Unit, View};

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "pc-lru",
    summary: "LRU; while a chip is congested full pages leave before partial ones (WAFLASH)",
    keys: &[],
    make: Some(|_| Box::new(PcLru::new())),
};

/// The stack L and the distances tracked.
pub(super) struct PcLru {
    stack: PcStack,
    distances: Distances,
}

impl PcLru {
    pub(super) fn new() -> PcLru {
        PcLru { stack: PcStack::new(), distances: Distances::new() }
    }
}

impl BufferPolicy for PcLru {
    fn insert(&mut self, slot: Slot, unit: &Unit) {
        self.distances.came(slot);
        self.stack.push(slot, unit.is_full);
    }

    fn touch(&mut self, slot: Slot, unit: &Unit) {
        self.distances.referenced(slot, !unit.was_full);
        self.stack.remove(slot);
        self.stack.push(slot, unit.is_full);
    }

    fn remove(&mut self, slot: Slot, _: Lpn, _: bool) {
        self.distances.left(slot);
        self.stack.remove(slot);
    }

    fn victims(&mut self, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>) {
        choose(&mut self.stack, &self.distances, wanted, view, out);
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        out.extend(self.stack.iter().take(wanted));
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("buffer_order_bytes", self.stack.bytes()), ("buffer_distance_bytes", self.distances.bytes())]
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut figures = self.distances.figures();
        figures.push(("buffer_pages_delayed", self.stack.moved_units() as f64));
        figures
    }

    fn reset_figures(&mut self) {
        self.stack.forget_moved();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::model::{Model, Written, drive};
    use crate::buffer::pc::naive::{NaiveDistances, NaiveList};

    /// PC-LRU by walking.
    #[derive(Default)]
    struct Naive {
        stack: NaiveList,
        distances: NaiveDistances,
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            self.distances.wrote(write.lpn, write.was_full);
            self.stack.remove(write.lpn);
            self.stack.push(write.lpn, write.is_full);
        }

        fn leave(&mut self, lpn: Lpn, _: bool) {
            self.distances.left(lpn);
            self.stack.remove(lpn);
        }

        fn victim(&mut self, busy: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            self.stack.choose(&self.distances, busy)
        }
    }

    #[test]
    fn it_chooses_what_walking_the_stack_would_choose() {
        for seed in 0..150 {
            for sectors in [1, 2, 8, 16] {
                drive(seed, Box::new(PcLru::new()), sectors, &mut Naive::default());
            }
        }
    }
}

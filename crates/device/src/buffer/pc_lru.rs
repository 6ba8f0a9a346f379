//! PC-LRU: LRU that is aware of partial pages and of chip congestion (WAFLASH, 3.1).
//!
//! The stack holds full and partial pages alike; a write puts its page on top. See [`super::pc`] for how a page is chosen
//! and what the paper leaves open. Without partial pages, or while all chips are idle, this is LRU.

use super::pc::{Distances, PcStack, choose};
use super::{BufferPolicy, Slot, Unit, View};

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

    fn remove(&mut self, slot: Slot, _: u32, _: bool) {
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::buffer::model::{Model, Written, drive};

    /// A page in the stack.
    #[derive(Clone, Copy)]
    struct Page {
        lpn: u32,
        full: bool,
        /// Which stay in the buffer this is.
        stay: u64,
        /// Which write or re-insertion brought it where it is.
        place: u64,
    }

    /// PC-LRU by walking: the stack, and all references ever.
    #[derive(Default)]
    struct Naive {
        /// The bottom first.
        stack: Vec<Page>,
        references: Vec<u64>,
        stays: u64,
        places: u64,
        sum: u64,
        count: u64,
    }

    impl Naive {
        /// Re-inserts what is below the full page at `full`, above as many pages as ACD.
        fn delay(&mut self, full: usize) {
            let distance = self.sum.checked_div(self.count).unwrap_or(0) as usize;
            let mut block: Vec<Page> = self.stack.drain(..full).collect();
            let mut at = 0;
            if distance > 0 && self.stack.len() > 1 {
                self.places += 1;
                let mut place = self.places;
                at = (1 + distance).min(self.stack.len());
                if distance < self.stack.len() {
                    // Never between pages that were re-inserted together.
                    place = self.stack[at - 1].place;
                    at += self.stack[at..].iter().take_while(|page| page.place == place).count();
                }
                block.iter_mut().for_each(|page| page.place = place);
            }
            self.stack.splice(at..at, block);
        }
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            let known = self.stack.iter().position(|page| page.lpn == write.lpn);
            let stay = match known.map(|at| self.stack.remove(at)) {
                Some(page) => {
                    if !write.was_full {
                        let since = self.references.iter().rev().take_while(|stay| **stay != page.stay);
                        self.sum += since.collect::<BTreeSet<_>>().len() as u64;
                        self.count += 1;
                    }
                    page.stay
                }
                None => {
                    self.stays += 1;
                    self.stays
                }
            };
            self.references.push(stay);
            self.places += 1;
            self.stack.push(Page { lpn: write.lpn, full: write.is_full, stay, place: self.places });
        }

        fn leave(&mut self, lpn: u32, _: bool) {
            self.stack.retain(|page| page.lpn != lpn);
        }

        fn victim(&mut self, busy: &dyn Fn(u32) -> bool) -> Option<u32> {
            let bottom = *self.stack.first()?;
            let full = self.stack.iter().position(|page| page.full);
            if bottom.full || !busy(bottom.lpn) {
                return Some(bottom.lpn);
            }
            let Some(full) = full else { return Some(bottom.lpn) };
            let lpn = self.stack[full].lpn;
            self.delay(full);
            Some(lpn)
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

//! MCA: LRU that passes over partial pages which would wait for a busy chip.
//!
//! Seol et al., "A Buffer Replacement Algorithm Exploiting Multi-Chip Parallelism in Solid State Disks", CASES 2009, as
//! WAFLASH describes it (5.3, 7): when room is needed, a full page leaves, or a partial one whose additional read finds its
//! chip idle; a partial page that would wait is shifted by one position, past the page that leaves in its stead. So the
//! order of those passed over does not change, and they are asked again the next time.
//!
//! How far MCA looks is not said: here `buffer.mca_window` units from the bottom; if none of them avoids waiting, the
//! bottom leaves.

use ssdlab_flash::Lpn;

use super::{BufferPolicy, Chain, Policy, Slot, Unit, View};
use crate::description::{Default, Key, Kind};

/// Units that it looks at.
const WINDOW: Key = Key::new(
    "mca_window",
    Kind::Count { unit: "units", least: 1, most: 1 << 16 },
    Default::number(32),
    "Units from the bottom of the stack among which it looks for one whose chip is idle.",
);

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "mca",
    summary: "LRU that passes over partial pages whose chip is busy (MCA)",
    keys: &[WINDOW],
    make: Some(|config| Box::new(Mca::new(config.buffer.own.count(&WINDOW, &config.flash.geometry)))),
};

/// The LRU stack; its bottom is the head of the chain.
pub(super) struct Mca {
    stack: Chain,
    window: u32,
    /// By slot: it was passed over since its last write.
    passed: Vec<bool>,
    /// Pages passed over between two writes.
    pages_passed: u64,
}

impl Mca {
    pub(super) fn new(window: u32) -> Mca {
        Mca { stack: Chain::default(), window, passed: Vec::new(), pages_passed: 0 }
    }
}

impl BufferPolicy for Mca {
    fn insert(&mut self, slot: Slot, _: &Unit) {
        if self.passed.len() <= slot.index() {
            self.passed.resize(slot.index() + 1, false);
        }
        self.passed[slot.index()] = false;
        self.stack.push(slot);
    }

    fn touch(&mut self, slot: Slot, _: &Unit) {
        self.passed[slot.index()] = false;
        self.stack.remove(slot);
        self.stack.push(slot);
    }

    fn remove(&mut self, slot: Slot, _: Lpn, _: bool) {
        self.stack.remove(slot);
    }

    fn victims(&mut self, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>) {
        let mut passed = Vec::new();
        let mut slot = self.stack.head;
        let mut looked = 0;
        while slot != Slot::NONE && out.len() < wanted && looked < self.window {
            if view.is_full(slot) || !view.is_congested(slot) {
                out.push(slot);
            } else {
                passed.push(slot);
            }
            looked += 1;
            slot = self.stack.next(slot);
        }
        if out.len() >= wanted {
            view.delayed(passed.len() as u64);
            for slot in passed {
                self.pages_passed += u64::from(!std::mem::replace(&mut self.passed[slot.index()], true));
            }
            return;
        }
        // Not enough that avoid waiting: the bottom fills up.
        let short = (wanted - out.len()).min(passed.len());
        view.delayed(if out.is_empty() { 0 } else { (passed.len() - short) as u64 });
        out.extend(passed.drain(..short));
        while slot != Slot::NONE && out.len() < wanted {
            out.push(slot);
            slot = self.stack.next(slot);
        }
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        let mut slot = self.stack.head;
        while slot != Slot::NONE && out.len() < wanted {
            out.push(slot);
            slot = self.stack.next(slot);
        }
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("buffer_order_bytes", self.stack.bytes())]
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        vec![("buffer_pages_delayed", self.pages_passed as f64)]
    }

    fn reset_figures(&mut self) {
        self.pages_passed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::model::{Model, Written, drive};

    /// MCA by its words: the lowest of the first so many pages that is full or finds its chip idle, or else the bottom.
    struct Naive {
        /// The bottom first: LPN, whether it is full.
        stack: Vec<(Lpn, bool)>,
        window: usize,
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            self.stack.retain(|(lpn, _)| *lpn != write.lpn);
            self.stack.push((write.lpn, write.is_full));
        }

        fn leave(&mut self, lpn: Lpn, _: bool) {
            self.stack.retain(|(other, _)| *other != lpn);
        }

        fn victim(&mut self, busy: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            let does_not_wait = |(lpn, full): &&(Lpn, bool)| *full || !busy(*lpn);
            let found = self.stack.iter().take(self.window).find(does_not_wait);
            found.or(self.stack.first()).map(|(lpn, _)| *lpn)
        }
    }

    #[test]
    fn it_chooses_what_its_words_say() {
        for seed in 0..60 {
            for window in [1, 4, 32, 1000] {
                let mut naive = Naive { stack: Vec::new(), window: window as usize };
                drive(seed, Box::new(Mca::new(window)), 4, &mut naive);
            }
        }
    }
}

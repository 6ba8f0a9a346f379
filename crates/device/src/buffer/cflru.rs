//! CFLRU: clean pages leave before dirty ones.
//!
//! Park et al., "CFLRU: A Replacement Algorithm for Flash Memory", CASES 2006, section 3: the LRU list is divided into a
//! working region and a clean-first region, the window of w pages at its bottom. While there is a clean page in the
//! window, the lowest of them is dropped, which costs nothing; else the bottom is written to flash.
//!
//! CFLRU caches reads, so with this policy, unlike all others, the buffer does too: what a read fetched from flash stays as
//! clean sectors from the moment the command is through, if it is still current then, and hits move their page to the top.
//! A write to a clean page makes it dirty and needs no read-modify-write for what is there. The window is
//! `buffer.cflru_window_permille` of the pages held. A read for which nothing clean can be dropped sends the bottom to
//! flash and is itself not kept: space is free only when that is there, and a read does not wait for it.

use ssdlab_flash::Lpn;

use super::pc::PcStack;
use super::{BufferPolicy, Chain, Policy, Slot, Unit, View};
use crate::description::{Default, Key, Kind};

/// The window.
const WINDOW_PERMILLE: Key = Key::new(
    "cflru_window_permille",
    Kind::Count { unit: "thousandths", least: 0, most: 1000 },
    Default::number(250),
    "Thousandths of the cached pages that form the clean-first window at the bottom.",
);

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "cflru",
    summary: "caches reads too; evicts clean pages in the window at the bottom before dirty ones (CFLRU)",
    keys: &[WINDOW_PERMILLE],
    make: Some(|config| Box::new(Cflru::new(config.buffer.own.count(&WINDOW_PERMILLE, &config.flash.geometry)))),
};

/// The LRU stack; what it calls full is clean here.
pub(super) struct Cflru {
    stack: PcStack,
    /// The dirty pages of the stack, in its order.
    dirty: Chain,
    window_permille: u32,
}

impl Cflru {
    pub(super) fn new(window_permille: u32) -> Cflru {
        Cflru { stack: PcStack::new(), dirty: Chain::default(), window_permille }
    }

    fn push(&mut self, slot: Slot, clean: bool) {
        self.stack.push(slot, clean);
        if !clean {
            self.dirty.push(slot);
        }
    }

    fn take(&mut self, slot: Slot) {
        if !self.stack.is_full(slot) {
            self.dirty.remove(slot);
        }
        self.stack.remove(slot);
    }

    /// The lowest clean page, if it is in the window.
    fn clean_first(&mut self) -> Option<Slot> {
        debug_assert_eq!(self.stack.len() == 0, self.stack.bottom().is_none(), "a stack of pages has a bottom");
        let window = u64::from(self.stack.len()) * u64::from(self.window_permille) / 1000;
        let clean = self.stack.fulls().next()?;
        (u64::from(self.stack.below(clean)) < window.max(1)).then_some(clean)
    }
}

impl BufferPolicy for Cflru {
    fn caches_reads(&self) -> bool {
        true
    }

    fn insert(&mut self, slot: Slot, unit: &Unit) {
        self.push(slot, unit.written == 0);
    }

    fn touch(&mut self, slot: Slot, _: &Unit) {
        self.take(slot);
        self.push(slot, false);
    }

    fn read(&mut self, slot: Slot) {
        let clean = self.stack.is_full(slot);
        self.take(slot);
        self.push(slot, clean);
    }

    fn remove(&mut self, slot: Slot, _: Lpn, _: bool) {
        self.take(slot);
    }

    fn victims(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        match self.clean_first() {
            // Dropping it is all there is to do.
            Some(clean) => out.push(clean),
            None => out.extend(self.stack.iter().take(wanted)),
        }
    }

    /// The dirty ones from the bottom up: clean pages stay, since writing back frees no room that they need.
    fn destaged(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        out.extend(self.dirty.iter().take(wanted));
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        out.extend(self.stack.iter().take(wanted));
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        // A page is in one of the lists of clean and of dirty ones: their links share a place.
        vec![("buffer_order_bytes", self.stack.bytes())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::model::{Model, Written, drive};

    /// LPNs and whether they are clean, the bottom first.
    #[derive(Default)]
    struct Naive {
        stack: Vec<(Lpn, bool)>,
        window_permille: usize,
    }

    impl Naive {
        fn move_up(&mut self, lpn: Lpn, dirty: bool) {
            let known = self.stack.iter().position(|(other, _)| *other == lpn);
            let clean = known.is_none_or(|at| self.stack.remove(at).1);
            self.stack.push((lpn, clean && !dirty));
        }
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            self.move_up(write.lpn, true);
        }

        fn read(&mut self, lpn: Lpn) {
            self.move_up(lpn, false);
        }

        fn leave(&mut self, lpn: Lpn, _: bool) {
            self.stack.retain(|(other, _)| *other != lpn);
        }

        fn victim(&mut self, _: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            let window = (self.stack.len() * self.window_permille / 1000).max(1);
            let clean = self.stack.iter().take(window).find(|(_, clean)| *clean);
            clean.or(self.stack.first()).map(|(lpn, _)| *lpn)
        }

        fn destaged(&mut self, _: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            self.stack.iter().find(|(_, clean)| !clean).map(|(lpn, _)| *lpn)
        }
    }

    #[test]
    fn the_lowest_clean_page_of_the_window_leaves_and_else_the_bottom() {
        for seed in 0..60 {
            for window_permille in [0, 250, 1000] {
                let mut naive = Naive { window_permille, ..Naive::default() };
                drive(seed, Box::new(Cflru::new(window_permille as u32)), 4, &mut naive);
            }
        }
    }
}

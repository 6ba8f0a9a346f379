//! ARC: adapts between recency and frequency.
//!
//! Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, Figure 4: T1 holds pages referenced
//! once, T2 those referenced again, B1 and B2 remember what left them, and p, the size that T1 should have, grows with
//! hits in B1 and shrinks with hits in B2.
//!
//! As a write buffer:
//! - A reference is a write to a unit. Reads are none: the buffer is for writes (WAFLASH, 3).
//! - c, the cache's size in pages, is what was in the buffer when room was last needed: space is counted in sectors, so
//!   that changes with how full the pages are.
//! - Room is made before a write is let in, so p adapts after the replacement and not before it, and REPLACE takes T1 only
//!   while it is larger than p.
//! - Trimmed pages are not remembered. What left with a flush is.
//!
//! With [`super::pc::PcStack`] as its lists this is PC-ARC, WAFLASH's principle on ARC (its future work): in the list that
//! ARC takes the victim from, the nearest full page leaves while the bottom is partial and its chip congested, and the
//! partial pages below it are re-inserted in the same list.

use ssdlab_flash::Lpn;

use super::ghosts::Ghosts;
use super::list::{List, Stack};
use super::pc::{Distances, PcStack};
use super::{BufferPolicy, Policy, Slot, Unit, View};

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "arc",
    summary: "adapts between pages written once and again and again (ARC)",
    keys: &[],
    make: Some(|_| Box::new(Arc::<Stack>::new())),
};

/// PC-ARC as a description names it.
pub(super) const PC_POLICY: Policy = Policy {
    name: "pc-arc",
    summary: "ARC; while a chip is congested full pages leave before partial ones",
    keys: &[],
    make: Some(|_| Box::new(Arc::<PcStack>::new())),
};

/// Which list a slot is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    T1,
    T2,
}

/// See the module.
pub(super) struct Arc<L> {
    t1: L,
    t2: L,
    b1: Ghosts,
    b2: Ghosts,
    /// By slot.
    within: Vec<In>,
    /// The size that T1 should have, in pages.
    p: u32,
    /// Pages in the buffer when room was last needed.
    c: u32,
    distances: Distances,
}

impl<L: List> Arc<L> {
    pub(super) fn new() -> Arc<L> {
        Arc {
            t1: L::new(),
            t2: L::new(),
            b1: Ghosts::default(),
            b2: Ghosts::default(),
            within: Vec::new(),
            p: 0,
            c: 1,
            distances: Distances::new(),
        }
    }

    /// |T1| + |B1| is at most c, and all four together at most 2c.
    fn trim_ghosts(&mut self) {
        while self.b1.len() > 0 && self.t1.len() + self.b1.len() > self.c {
            self.b1.pop();
        }
        let pages = self.t1.len() + self.t2.len();
        while self.b2.len() > 0 && u64::from(pages + self.b1.len() + self.b2.len()) > 2 * u64::from(self.c) {
            self.b2.pop();
        }
    }
}

impl<L: List> BufferPolicy for Arc<L> {
    fn insert(&mut self, slot: Slot, unit: &Unit) {
        if self.within.len() <= slot.index() {
            self.within.resize(slot.index() + 1, In::T1);
        }
        let (b1, b2) = (self.b1.len(), self.b2.len());
        let list = if self.b1.forget(unit.lpn) {
            self.p = (self.p + (b2 / b1).max(1)).min(self.c);
            In::T2
        } else if self.b2.forget(unit.lpn) {
            self.p = self.p.saturating_sub((b1 / b2).max(1));
            In::T2
        } else {
            In::T1
        };
        assert!(self.p <= self.c, "T1 should have {} pages of {}", self.p, self.c);
        self.within[slot.index()] = list;
        let list = if list == In::T1 { &mut self.t1 } else { &mut self.t2 };
        list.push(slot, unit.is_full);
        if L::AWARE {
            self.distances.came(slot);
        }
        self.trim_ghosts();
    }

    fn touch(&mut self, slot: Slot, unit: &Unit) {
        if L::AWARE {
            self.distances.referenced(slot, !unit.was_full);
        }
        match std::mem::replace(&mut self.within[slot.index()], In::T2) {
            In::T1 => self.t1.remove(slot),
            In::T2 => self.t2.remove(slot),
        }
        self.t2.push(slot, unit.is_full);
    }

    fn remove(&mut self, slot: Slot, lpn: Lpn, dropped: bool) {
        if L::AWARE {
            self.distances.left(slot);
        }
        let (list, ghosts) = match self.within[slot.index()] {
            In::T1 => (&mut self.t1, &mut self.b1),
            In::T2 => (&mut self.t2, &mut self.b2),
        };
        debug_assert!(list.len() > 0, "page {lpn} leaves an empty list");
        list.remove(slot);
        if !dropped {
            ghosts.push(lpn);
            self.trim_ghosts();
        }
    }

    fn victims(&mut self, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>) {
        self.c = (self.t1.len() + self.t2.len()).max(1);
        self.p = self.p.min(self.c);
        debug_assert!(self.p <= self.c, "T1 should have {} pages of {}", self.p, self.c);
        // REPLACE; a page of several units that the list cannot fill takes from the other as well.
        let from_t1 = self.t1.len() > self.p || self.t2.len() == 0;
        let (first, second) = if from_t1 { (&mut self.t1, &mut self.t2) } else { (&mut self.t2, &mut self.t1) };
        first.choose(&self.distances, wanted, view, out);
        if out.len() < wanted {
            second.choose(&self.distances, wanted - out.len(), view, out);
        }
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        let list = if self.t1.len() > self.p { &self.t1 } else { &self.t2 };
        out.extend(list.iter().take(wanted));
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let order = self.t1.bytes() + self.t2.bytes() + self.within.len() as u64 / 8;
        let mut memory = vec![("buffer_order_bytes", order), ("buffer_ghost_bytes", self.b1.bytes() + self.b2.bytes())];
        if L::AWARE {
            memory.push(("buffer_distance_bytes", self.distances.bytes()));
        }
        memory
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut figures = vec![("buffer_arc_p", f64::from(self.p)), ("buffer_arc_c", f64::from(self.c))];
        if L::AWARE {
            figures.extend(self.distances.figures());
            figures.push(("buffer_pages_delayed", (self.t1.moved_units() + self.t2.moved_units()) as f64));
        }
        figures
    }

    fn reset_figures(&mut self) {
        self.t1.forget_moved();
        self.t2.forget_moved();
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;
    use crate::buffer::list::Stack;
    use crate::buffer::model::{Model, Written, drive};
    use crate::buffer::pc::PcStack;
    use crate::buffer::pc::naive::{NaiveDistances, NaiveList};

    /// ARC by walking lists of LPNs; PC-ARC if it is aware of congestion.
    #[derive(Default)]
    struct Naive {
        t1: NaiveList,
        t2: NaiveList,
        b1: Vec<Lpn>,
        b2: Vec<Lpn>,
        p: usize,
        c: usize,
        distances: NaiveDistances,
        aware: bool,
    }

    impl Naive {
        fn trim(&mut self) {
            while !self.b1.is_empty() && self.t1.len() + self.b1.len() > self.c.max(1) {
                self.b1.remove(0);
            }
            while !self.b2.is_empty()
                && self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() > 2 * self.c.max(1)
            {
                self.b2.remove(0);
            }
        }
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            let lpn = write.lpn;
            self.distances.wrote(lpn, write.was_full);
            let (in_b1, in_b2) = (self.b1.contains(&lpn), self.b2.contains(&lpn));
            if in_b1 {
                self.p = (self.p + (self.b2.len() / self.b1.len()).max(1)).min(self.c.max(1));
            } else if in_b2 {
                self.p = self.p.saturating_sub((self.b1.len() / self.b2.len()).max(1));
            }
            let in_t = self.t1.remove(lpn) | self.t2.remove(lpn);
            self.b1.retain(|other| *other != lpn);
            self.b2.retain(|other| *other != lpn);
            if in_t || in_b1 || in_b2 {
                self.t2.push(lpn, write.is_full);
            } else {
                self.t1.push(lpn, write.is_full);
            }
            self.trim();
        }

        fn leave(&mut self, lpn: Lpn, dropped: bool) {
            self.distances.left(lpn);
            let ghosts = if self.t1.remove(lpn) { &mut self.b1 } else { &mut self.b2 };
            self.t2.remove(lpn);
            if !dropped {
                ghosts.push(lpn);
            }
            self.trim();
        }

        fn victim(&mut self, busy: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            self.c = (self.t1.len() + self.t2.len()).max(1);
            self.p = self.p.min(self.c);
            let list = if self.t1.len() > self.p || self.t2.len() == 0 { &mut self.t1 } else { &mut self.t2 };
            if self.aware { list.choose(&self.distances, busy) } else { list.bottom() }
        }
    }

    #[test]
    fn it_chooses_what_the_lists_of_the_paper_would() {
        for seed in 0..40 {
            drive(seed, Box::new(Arc::<Stack>::new()), 4, &mut Naive::default());
        }
    }

    #[test]
    fn aware_of_congestion_it_chooses_what_walking_its_lists_would() {
        for seed in 0..80 {
            for sectors in [2, 8] {
                let mut naive = Naive { aware: true, ..Naive::default() };
                drive(seed, Box::new(Arc::<PcStack>::new()), sectors, &mut naive);
            }
        }
    }

    /// A loop larger than the buffer with a few pages written over and over: those stay.
    #[test]
    fn pages_written_again_and_again_outlive_a_scan() {
        let mut rng = rng(1, "arc");
        let mut naive = Naive::default();
        for scan in 0..2000_u32 {
            for lpn in [1000 + scan, rng.random_range(0..8)].map(Lpn) {
                if naive.t1.len() + naive.t2.len() >= 32 && !naive.t1.contains(lpn) && !naive.t2.contains(lpn) {
                    let victim = naive.victim(&|_| false).expect("the buffer is full");
                    naive.leave(victim, false);
                }
                naive.write(&Written { lpn, sectors: 1, was_full: false, is_full: true });
            }
        }
        assert_eq!(Lpn::each(Lpn(0)..Lpn(8)).filter(|lpn| naive.t2.contains(*lpn)).count(), 8);
    }
}

//! LIRS: pages with the longest inter-reference recency leave.
//!
//! Jiang and Zhang, "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy to Improve Buffer Cache
//! Performance", SIGMETRICS 2002, section 3: most of the space is for LIR pages, which were referenced again within a short
//! time; the others (HIR) pass through the queue Q, whose front leaves. The stack S orders all that was referenced since the
//! LIR page that was referenced longest ago, HIR pages that have left among them: one that is referenced while it is in S
//! becomes LIR, and the bottom LIR page HIR. The bottom of S is always LIR (pruning).
//!
//! As a write buffer:
//! - A reference is a write to a unit, as in [`super::arc`].
//! - Space is counted in sectors: LIR pages hold all of it but `buffer.lirs_hir_permille` (the paper uses 1 %). While they
//!   hold less, a page that comes in is LIR, as at the paper's start.
//! - What is leaving holds space too, so Q may be empty when room is needed: then the bottom of S leaves.
//! - At most as many pages that have left are remembered as are in the buffer, the oldest forgotten first. Trimmed pages
//!   are not remembered.
//!
//! With [`super::pc::PcStack`] as Q this is PC-LIRS, WAFLASH's principle on LIRS (its future work).

use rustc_hash::FxHashMap;
use ssdlab_flash::Lpn;

use super::list::{List, Stack};
use super::pc::{Distances, PcStack};
use super::{BufferPolicy, Chain, NO_NODE, Policy, Slot, Unit, View};
use crate::DriveConfig;
use crate::description::{self, Default, Key};

/// The share of HIR pages.
const HIR_PERMILLE: Key = Key::new(
    "lirs_hir_permille",
    description::Kind::Count { unit: "thousandths", least: 1, most: 1000 },
    Default::number(10),
    "Thousandths of the space for pages that were not written again soon; the paper's 1 %.",
);

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "lirs",
    summary: "evicts pages with the longest time between their last two writes (LIRS)",
    keys: &[HIR_PERMILLE],
    make: Some(|config| Box::new(Lirs::<Stack>::new(config))),
};

/// PC-LIRS as a description names it.
pub(super) const PC_POLICY: Policy = Policy {
    name: "pc-lirs",
    summary: "LIRS; while a chip is congested full pages leave before partial ones",
    keys: &[HIR_PERMILLE],
    make: Some(|config| Box::new(Lirs::<PcStack>::new(config))),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lir,
    /// In the buffer, in Q.
    Hir,
    /// Not in the buffer any more, but in S.
    Left,
}

#[derive(Clone, Copy)]
struct Node {
    lpn: Lpn,
    slot: Slot,
    kind: Kind,
    in_s: bool,
}

/// See the module.
pub(super) struct Lirs<L> {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Nodes, the bottom first.
    s: Chain<u32>,
    /// Slots, the front first.
    q: L,
    /// By slot: its node, sectors, and whether it is full.
    units: Vec<(u32, u32, bool)>,
    /// Pages in the buffer.
    pages: u32,
    left_of: FxHashMap<Lpn, u32>,
    /// Nodes of pages that left, the oldest first.
    left: Chain<u32>,
    lir_sectors: u64,
    lir_limit: u64,
    distances: Distances,
}

impl<L: List> Lirs<L> {
    pub(super) fn new(config: &DriveConfig) -> Lirs<L> {
        let share = 1000 - config.buffer.own.number(&HIR_PERMILLE, &config.flash.geometry).min(1000);
        Lirs::with_limit(config.buffer.bytes / 512 * share / 1000)
    }

    /// LIR pages hold at most so many sectors.
    fn with_limit(lir_limit: u64) -> Lirs<L> {
        Lirs {
            nodes: Vec::new(),
            free: Vec::new(),
            s: Chain::default(),
            q: L::new(),
            units: Vec::new(),
            pages: 0,
            left_of: FxHashMap::default(),
            left: Chain::default(),
            lir_sectors: 0,
            lir_limit,
            distances: Distances::new(),
        }
    }

    /// The page's node, that of a page that left if there is one, off the stack and of kind HIR; and whether it was there.
    fn node_for(&mut self, lpn: Lpn, slot: Slot) -> (u32, bool) {
        if let Some(node) = self.left_of.remove(&lpn) {
            self.left.remove(node);
            self.s.remove(node);
            self.nodes[node as usize] = Node { lpn, slot, kind: Kind::Hir, in_s: false };
            return (node, true);
        }
        let fresh = Node { lpn, slot, kind: Kind::Hir, in_s: false };
        let node = if let Some(node) = self.free.pop() {
            self.nodes[node as usize] = fresh;
            node
        } else {
            self.nodes.push(fresh);
            self.nodes.len() as u32 - 1
        };
        (node, false)
    }

    fn move_up(&mut self, node: u32) {
        if std::mem::replace(&mut self.nodes[node as usize].in_s, true) {
            self.s.remove(node);
        }
        self.s.push(node);
    }

    fn promote(&mut self, node: u32, sectors: u32) {
        debug_assert!(self.nodes[node as usize].kind == Kind::Hir, "node {node} becomes LIR, and was not HIR");
        self.nodes[node as usize].kind = Kind::Lir;
        self.lir_sectors += u64::from(sectors);
    }

    /// While LIR pages hold too much, the bottom one becomes HIR, at the end of Q.
    fn demote(&mut self) {
        while self.lir_sectors > self.lir_limit && self.s.head != NO_NODE {
            let node = self.s.head;
            self.s.remove(node);
            let Node { slot, kind, .. } = self.nodes[node as usize];
            debug_assert!(kind == Kind::Lir, "the bottom of S is LIR");
            let (_, sectors, full) = self.units[slot.index()];
            debug_assert_eq!(self.units[slot.index()].0, node, "slot {slot} is of another node");
            assert!(
                self.lir_sectors >= u64::from(sectors),
                "{sectors} sectors of {} are LIR no more",
                self.lir_sectors
            );
            self.nodes[node as usize].kind = Kind::Hir;
            self.nodes[node as usize].in_s = false;
            self.lir_sectors -= u64::from(sectors);
            self.q.push(slot, full);
            self.prune();
        }
    }

    /// What is below the lowest LIR page goes off the stack.
    fn prune(&mut self) {
        while self.s.head != NO_NODE {
            let node = self.s.head;
            match self.nodes[node as usize].kind {
                Kind::Lir => return,
                Kind::Hir => {
                    self.s.remove(node);
                    self.nodes[node as usize].in_s = false;
                }
                Kind::Left => self.forget(node),
            }
        }
    }

    /// A page that left is remembered no longer.
    fn forget(&mut self, node: u32) {
        debug_assert!(self.nodes[node as usize].kind == Kind::Left, "node {node} is forgotten, and is in the buffer");
        self.s.remove(node);
        self.left.remove(node);
        self.left_of.remove(&self.nodes[node as usize].lpn);
        self.free.push(node);
    }

    /// The bottom LIR pages.
    fn lowest(&self) -> impl Iterator<Item = Slot> + '_ {
        let nodes = self.s.iter().map(|node| self.nodes[node as usize]);
        nodes.filter(|node| node.kind == Kind::Lir).map(|node| node.slot)
    }
}

impl<L: List> BufferPolicy for Lirs<L> {
    fn insert(&mut self, slot: Slot, unit: &Unit) {
        if L::AWARE {
            self.distances.came(slot);
        }
        let (node, remembered) = self.node_for(unit.lpn, slot);
        if self.units.len() <= slot.index() {
            self.units.resize(slot.index() + 1, (NO_NODE, 0, false));
        }
        let sectors = unit.held[1];
        self.units[slot.index()] = (node, sectors, unit.is_full);
        self.pages += 1;
        self.move_up(node);
        if remembered || self.lir_sectors + u64::from(sectors) <= self.lir_limit {
            self.promote(node, sectors);
            self.demote();
        } else {
            self.q.push(slot, unit.is_full);
        }
        self.prune();
    }

    fn touch(&mut self, slot: Slot, unit: &Unit) {
        if L::AWARE {
            self.distances.referenced(slot, !unit.was_full);
        }
        let (node, before, _) = self.units[slot.index()];
        let sectors = unit.held[1];
        self.units[slot.index()] = (node, sectors, unit.is_full);
        let Node { kind, in_s, .. } = self.nodes[node as usize];
        if kind == Kind::Lir {
            debug_assert!(sectors >= before, "unit {} had {before} sectors, and has {sectors}", unit.lpn);
            self.lir_sectors += u64::from(sectors - before);
            self.move_up(node);
        } else {
            self.q.remove(slot);
            self.move_up(node);
            if in_s {
                self.promote(node, sectors);
            } else {
                self.q.push(slot, unit.is_full);
            }
        }
        self.prune();
        self.demote();
    }

    fn remove(&mut self, slot: Slot, lpn: Lpn, dropped: bool) {
        if L::AWARE {
            self.distances.left(slot);
        }
        let (node, sectors, _) = self.units[slot.index()];
        let Node { kind, in_s, .. } = self.nodes[node as usize];
        if kind == Kind::Lir {
            self.lir_sectors -= u64::from(sectors);
        } else {
            self.q.remove(slot);
        }
        debug_assert_eq!(self.nodes[node as usize].lpn, lpn, "slot {slot} holds another page");
        assert!(self.pages > 0, "page {lpn} leaves, and none is there");
        self.pages -= 1;
        if in_s && !dropped {
            self.nodes[node as usize].kind = Kind::Left;
            self.left_of.insert(lpn, node);
            self.left.push(node);
        } else {
            if in_s {
                self.s.remove(node);
            }
            self.free.push(node);
        }
        self.prune();
        while self.left_of.len() as u32 > self.pages {
            self.forget(self.left.head);
        }
    }

    fn victims(&mut self, wanted: usize, view: &mut View<'_>, out: &mut Vec<Slot>) {
        self.q.choose(&self.distances, wanted, view, out);
        if out.len() < wanted {
            let short = wanted - out.len();
            out.extend(self.lowest().take(short));
        }
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        out.extend(self.q.iter().take(wanted));
        if out.len() < wanted {
            let short = wanted - out.len();
            out.extend(self.lowest().take(short));
        }
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        // A node: the page, its kind and place; a slot: its node and sectors.
        let order = self.s.bytes() + self.q.bytes() + self.nodes.len() as u64 * 12 + self.units.len() as u64 * 8;
        let mut memory = vec![
            ("buffer_order_bytes", order),
            ("buffer_ghost_bytes", self.left.bytes() + self.left_of.len() as u64 * 8),
        ];
        if L::AWARE {
            memory.push(("buffer_distance_bytes", self.distances.bytes()));
        }
        memory
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut figures = vec![("buffer_lir_sectors", self.lir_sectors as f64)];
        if L::AWARE {
            figures.extend(self.distances.figures());
            figures.push(("buffer_pages_delayed", self.q.moved_units() as f64));
        }
        figures
    }

    fn reset_figures(&mut self) {
        self.q.forget_moved();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::list::Stack;
    use crate::buffer::model::{Model, Written, drive};
    use crate::buffer::pc::PcStack;
    use crate::buffer::pc::naive::{NaiveDistances, NaiveList};

    /// LIRS by walking lists of LPNs; PC-LIRS if it is aware of congestion.
    #[derive(Default)]
    struct Naive {
        /// The bottom first: LPN, kind.
        s: Vec<(Lpn, Kind)>,
        q: NaiveList,
        /// Sectors, and whether it is full.
        sectors: FxHashMap<Lpn, (u32, bool)>,
        /// Pages that left, the oldest first.
        left: Vec<Lpn>,
        limit: u64,
        distances: NaiveDistances,
        aware: bool,
    }

    impl Naive {
        fn kind(&self, lpn: Lpn) -> Option<Kind> {
            self.s.iter().find(|(other, _)| *other == lpn).map(|(_, kind)| *kind)
        }

        fn lir_sectors(&self) -> u64 {
            self.s.iter().filter(|(_, kind)| *kind == Kind::Lir).map(|(lpn, _)| u64::from(self.sectors[lpn].0)).sum()
        }

        fn settle(&mut self) {
            self.prune();
            while self.lir_sectors() > self.limit {
                let (lpn, _) = self.s.remove(0);
                self.q.push(lpn, self.sectors[&lpn].1);
                self.prune();
            }
        }

        fn prune(&mut self) {
            while let Some((lpn, kind)) = self.s.first().copied()
                && kind != Kind::Lir
            {
                self.s.remove(0);
                self.left.retain(|other| *other != lpn);
            }
        }
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            let lpn = write.lpn;
            self.distances.wrote(lpn, write.was_full);
            let kind = self.kind(lpn);
            let resident = self.sectors.contains_key(&lpn);
            let room = self.lir_sectors() + u64::from(write.sectors) <= self.limit;
            self.sectors.insert(lpn, (write.sectors, write.is_full));
            self.s.retain(|(other, _)| *other != lpn);
            self.left.retain(|other| *other != lpn);
            self.q.remove(lpn);
            if kind.is_some() || !resident && room {
                self.s.push((lpn, Kind::Lir));
            } else {
                self.s.push((lpn, Kind::Hir));
                self.q.push(lpn, write.is_full);
            }
            self.settle();
        }

        fn leave(&mut self, lpn: Lpn, dropped: bool) {
            self.distances.left(lpn);
            self.sectors.remove(&lpn);
            self.q.remove(lpn);
            if dropped {
                self.s.retain(|(other, _)| *other != lpn);
            } else if let Some(page) = self.s.iter_mut().find(|(other, _)| *other == lpn) {
                page.1 = Kind::Left;
                self.left.push(lpn);
            }
            self.prune();
            while self.left.len() > self.sectors.len() {
                let oldest = self.left.remove(0);
                self.s.retain(|(other, _)| *other != oldest);
            }
        }

        fn victim(&mut self, busy: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            let front = if self.aware { self.q.choose(&self.distances, busy) } else { self.q.bottom() };
            front.or_else(|| self.s.iter().find(|(_, kind)| *kind == Kind::Lir).map(|(lpn, _)| *lpn))
        }
    }

    #[test]
    fn it_chooses_what_the_stack_and_the_queue_of_the_paper_would() {
        for seed in 0..60 {
            for limit in [0, 20, 90, 99, 1000] {
                let mut naive = Naive { limit, ..Naive::default() };
                drive(seed, Box::new(Lirs::<Stack>::with_limit(limit)), 4, &mut naive);
            }
        }
    }
    #[test]
    fn aware_of_congestion_it_chooses_what_walking_its_lists_would() {
        for seed in 0..60 {
            for limit in [0, 20, 60, 90, 99] {
                let mut naive = Naive { limit, aware: true, ..Naive::default() };
                drive(seed, Box::new(Lirs::<PcStack>::with_limit(limit)), 4, &mut naive);
            }
        }
    }
}

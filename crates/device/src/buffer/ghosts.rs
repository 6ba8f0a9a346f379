//! Pages that left and are remembered for a while, the oldest forgotten first: ARC's B1 and B2.

use rustc_hash::FxHashMap;
use ssdlab_flash::Lpn;

use super::{Chain, NO_NODE};

/// A list of LPNs, each at most once.
#[derive(Default)]
pub(super) struct Ghosts {
    index: FxHashMap<Lpn, u32>,
    /// By node.
    lpns: Vec<Lpn>,
    free: Vec<u32>,
    /// Nodes, the oldest first.
    order: Chain<u32>,
}

impl Ghosts {
    pub(super) fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Remembers a page as the newest.
    pub(super) fn push(&mut self, lpn: Lpn) {
        self.forget(lpn);
        let node = self.free.pop().unwrap_or(self.lpns.len() as u32);
        if node as usize == self.lpns.len() {
            self.lpns.push(lpn);
        }
        self.lpns[node as usize] = lpn;
        self.index.insert(lpn, node);
        debug_assert_eq!(self.index.len() + self.free.len(), self.lpns.len(), "each node is remembered or free");
        self.order.push(node);
    }

    /// Forgets a page; true if it was there.
    pub(super) fn forget(&mut self, lpn: Lpn) -> bool {
        let Some(node) = self.index.remove(&lpn) else { return false };
        self.order.remove(node);
        self.free.push(node);
        true
    }

    /// Forgets the oldest.
    pub(super) fn pop(&mut self) -> Option<Lpn> {
        let node = self.order.head;
        (node != NO_NODE).then(|| {
            let lpn = self.lpns[node as usize];
            let known = self.forget(lpn);
            assert!(known, "page {lpn} is the oldest that left, and is not remembered");
            lpn
        })
    }

    /// RAM: the LPN, two links, and as much again for finding it.
    pub(super) fn bytes(&self) -> u64 {
        self.lpns.len() as u64 * 24
    }
}

//! BPLRU: blocks in the order of their last write; the bottom one leaves as a whole.
//!
//! Kim and Ahn, "BPLRU: A Buffer Management Scheme for Improving Random Writes in Flash Storage", FAST 2008:
//! - block-level LRU (4.1): a write to any page of a block puts the whole block on top, and the victim block's pages leave
//!   together, in the order of their addresses;
//! - page padding (4.2), with `buffer.bplru_padding`: what the victim block lacks is read from flash and written with it, so that
//!   the whole block is written in order. It serves FTLs that merge blocks; with a page-mapped one it only costs;
//! - LRU compensation (4.3): a block that was written from its first sector to its last, in order, goes to the bottom: what
//!   is written sequentially is not written again soon.
//!
//! A block is a run of `buffer.block_pages` pages of the logical space.

use rustc_hash::FxHashMap;
use ssdlab_flash::Lpn;

use super::blocks::{BLOCK_PAGES, Blocks, block_units};
use super::{BufferPolicy, Chain, NO_NODE, Padding, Policy, Slot, Unit, View};
use crate::description::{Default, Key, Kind};

/// Page padding.
const PADDING: Key = Key::new(
    "bplru_padding",
    Kind::Boolean,
    Default::OFF,
    "Read the pages that an evicted block lacks from flash and write them with it (page padding). This helps designs \
     that merge blocks; with `page` it only costs.",
);

/// The policy as a description names it.
pub(super) const POLICY: Policy = Policy {
    name: "bplru",
    summary: "evicts the least recently written block as a whole (BPLRU)",
    keys: &[BLOCK_PAGES, PADDING],
    make: Some(|config| {
        let padding = config.buffer.own.flag(&PADDING, &config.flash.geometry);
        Box::new(Bplru::new(block_units(config), config.ftl.mapping_unit, padding))
    }),
};

/// A block in the buffer.
#[derive(Clone, Copy)]
struct Block {
    number: u32,
    /// The next sector of the block if it is written in order from its first; `BROKEN` if it was not.
    next_sector: u32,
}

const BROKEN: u32 = u32::MAX;

/// See the module.
pub(super) struct Bplru {
    blocks: Blocks,
    unit_sectors: u32,
    /// By node.
    nodes: Vec<Block>,
    free: Vec<u32>,
    node_of: FxHashMap<u32, u32>,
    /// Nodes, the bottom first.
    order: Chain<u32>,
    /// Written in order, the last one last: below all others.
    compensated: Chain<u32>,
    is_compensated: Vec<bool>,
    padding: bool,
}

impl Bplru {
    pub(super) fn new(block_units: u32, unit_bytes: u32, padding: bool) -> Bplru {
        Bplru {
            blocks: Blocks::new(block_units),
            unit_sectors: unit_bytes / 512,
            nodes: Vec::new(),
            free: Vec::new(),
            node_of: FxHashMap::default(),
            order: Chain::default(),
            compensated: Chain::default(),
            is_compensated: Vec::new(),
            padding,
        }
    }

    fn unlink(&mut self, node: u32) {
        let chain = if self.is_compensated[node as usize] { &mut self.compensated } else { &mut self.order };
        chain.remove(node);
    }

    /// A unit of a block was written.
    fn written(&mut self, unit: &Unit) {
        let number = self.blocks.of(unit.lpn);
        let node = if let Some(node) = self.node_of.get(&number) {
            let node = *node;
            self.unlink(node);
            node
        } else {
            let node = self.free.pop().unwrap_or(self.nodes.len() as u32);
            if node as usize == self.nodes.len() {
                self.nodes.push(Block { number, next_sector: 0 });
                self.is_compensated.push(false);
            }
            self.nodes[node as usize] = Block { number, next_sector: 0 };
            self.node_of.insert(number, node);
            node
        };
        debug_assert_eq!(self.nodes[node as usize].number, number, "node {node} is of another block");
        assert_ne!(unit.written, 0, "a write of no sector to unit {}", unit.lpn);
        let block = &mut self.nodes[node as usize];
        let base = unit.lpn % self.blocks.block_units() * self.unit_sectors;
        let first = base + unit.written.trailing_zeros();
        let end = base + 64 - unit.written.leading_zeros();
        // Writes are runs of sectors.
        block.next_sector = if first == 0 || block.next_sector == first { end } else { BROKEN };
        let whole = block.next_sector == self.blocks.block_units() * self.unit_sectors;
        self.is_compensated[node as usize] = whole;
        if whole { self.compensated.push(node) } else { self.order.push(node) }
    }
}

impl BufferPolicy for Bplru {
    fn pads(&self) -> Option<Padding> {
        self.padding.then(|| Padding { block_units: self.blocks.block_units(), key: PADDING.name })
    }

    fn insert(&mut self, slot: Slot, unit: &Unit) {
        self.blocks.insert(unit.lpn, slot);
        self.written(unit);
    }

    fn touch(&mut self, _: Slot, unit: &Unit) {
        self.written(unit);
    }

    fn remove(&mut self, _: Slot, lpn: Lpn, _: bool) {
        let number = self.blocks.of(lpn);
        if self.blocks.remove(lpn) == 0
            && let Some(node) = self.node_of.remove(&number)
        {
            debug_assert_eq!(self.blocks.count(number), 0, "block {number} is forgotten with units in it");
            self.unlink(node);
            self.free.push(node);
        }
    }

    fn victims(&mut self, wanted: usize, _: &mut View<'_>, out: &mut Vec<Slot>) {
        self.coming(wanted, out);
    }

    fn coming(&self, wanted: usize, out: &mut Vec<Slot>) {
        // The one that was completed last is at the very bottom.
        let mut node = self.compensated.tail;
        while node != NO_NODE && out.len() < wanted {
            out.extend(self.blocks.slots(self.nodes[node as usize].number));
            node = self.compensated.before(node);
        }
        let mut node = self.order.head;
        while node != NO_NODE && out.len() < wanted {
            out.extend(self.blocks.slots(self.nodes[node as usize].number));
            node = self.order.next(node);
        }
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        let nodes = self.nodes.len() as u64 * 16;
        vec![("buffer_order_bytes", self.blocks.bytes() + self.order.bytes() + self.compensated.bytes() + nodes)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::model::{Model, Written, drive};

    /// Blocks of four units in order, bottom first, each with how far it was written in order.
    #[derive(Default)]
    struct Naive {
        units: Vec<Lpn>,
        order: Vec<(u32, Option<u32>)>,
    }

    impl Model for Naive {
        fn write(&mut self, write: &Written) {
            let lpn = write.lpn;
            let (block, at) = (lpn / 4, lpn % 4);
            let known = self.units.iter().any(|other| *other / 4 == block);
            let next = if known { self.order.iter().find(|(other, _)| *other == block) } else { None };
            let next = if at == 0 { Some(0) } else { next.and_then(|(_, next)| *next) };
            self.order.retain(|(other, _)| *other != block);
            if !self.units.contains(&lpn) {
                self.units.push(lpn);
            }
            match next.filter(|next| *next == at).map(|next| next + 1) {
                Some(4) => self.order.insert(0, (block, Some(4))),
                next => self.order.push((block, next)),
            }
        }

        fn leave(&mut self, lpn: Lpn, _: bool) {
            self.units.retain(|other| *other != lpn);
            if !self.units.iter().any(|other| *other / 4 == lpn / 4) {
                self.order.retain(|(block, _)| *block != lpn / 4);
            }
        }

        fn victim(&mut self, _: &dyn Fn(Lpn) -> bool) -> Option<Lpn> {
            let block = self.order.first()?.0;
            self.units.iter().copied().filter(|lpn| *lpn / 4 == block).min()
        }
    }

    #[test]
    fn blocks_leave_in_the_order_of_their_last_write_and_sequential_ones_first() {
        for seed in 0..40 {
            // Whole units of one sector each, as the model writes them.
            drive(seed, Box::new(Bplru::new(4, 512, false)), 1, &mut Naive::default());
        }
    }
}

//! Blocks and pages: what state they are in, and the rules of NAND.
//!
//! The rules hold in every build. Breaking one is the controller's bug, so it panics with the address, the state, the
//! operation's cause and the time.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_base::Nanos;

use crate::{BlockId, Cause, Geometry, Ppn};

/// What the chips know of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Pages programmed since the last erase, torn and failed ones included: pages below are written, the rest erased.
    pub programmed: u32,
    /// Erases survived.
    pub erases: u32,
    /// Page reads since the last erase.
    pub reads: u32,
    /// Bad from the factory or marked bad by the controller.
    pub bad: bool,
    /// An erase was cut: the block must be erased again before it is used.
    pub torn: bool,
    /// A program failed here: what is valid must leave, and nothing is written any more. The controller keeps this in
    /// its bad-block table, so it outlives the power.
    pub suspect: bool,
}

/// All blocks of the drive, and the pages in them that cannot be read.
#[derive(Clone, Debug)]
pub struct Blocks {
    pub(crate) blocks: Vec<Block>,
    pages_per_block: u32,
    /// Pages whose program was cut or failed, by PPN; few at any time.
    pub(crate) unreadable: BTreeSet<Ppn>,
    /// The controller's record beside its bad-block table: blocks that stand in another block's place in a superblock, and
    /// the number of that place in their plane. It outlives the power.
    pub(crate) substitutes: BTreeMap<BlockId, u32>,
}

/// Who asks, for the message of a broken rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) cause: Cause,
    pub(crate) now: Nanos,
}

impl Blocks {
    pub(crate) fn new(geometry: &Geometry) -> Blocks {
        Blocks {
            blocks: vec![Block::default(); geometry.blocks() as usize],
            pages_per_block: geometry.pages_per_block,
            unreadable: BTreeSet::new(),
            substitutes: BTreeMap::new(),
        }
    }

    /// Blocks that stand in another block's place, and the number of that place in their plane.
    pub fn substitutes(&self) -> impl Iterator<Item = (BlockId, u32)> + '_ {
        self.substitutes.iter().map(|(block, index)| (*block, *index))
    }

    /// Whose place in its plane a block takes: its own, unless the controller recorded another.
    pub fn stands_in(&self, block: BlockId, own: u32) -> u32 {
        self.substitutes.get(&block).copied().unwrap_or(own)
    }

    pub(crate) fn substitute(&mut self, block: BlockId, index: Option<u32>) {
        match index {
            Some(index) => self.substitutes.insert(block, index),
            None => self.substitutes.remove(&block),
        };
    }

    /// Bytes that [`Blocks::new`] takes.
    pub(crate) fn simulator_bytes(geometry: &Geometry) -> u64 {
        u64::from(geometry.blocks()) * size_of::<Block>() as u64
    }

    /// One block.
    #[inline]
    pub fn get(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// All blocks, by number.
    pub fn all(&self) -> &[Block] {
        &self.blocks
    }

    pub(crate) fn restore(&mut self, block: BlockId, state: Block) {
        self.blocks[block.index()] = state;
    }

    /// Whether a written page holds data that can be read.
    #[inline]
    pub fn readable(&self, ppn: Ppn) -> bool {
        self.unreadable.is_empty() || !self.unreadable.contains(&ppn)
    }

    /// Pages whose program was cut or failed, by PPN.
    pub fn unreadable(&self) -> impl Iterator<Item = Ppn> + '_ {
        self.unreadable.iter().copied()
    }

    pub(crate) fn spoil(&mut self, ppn: Ppn) {
        let (block, page) = (ppn.block(self.pages_per_block), ppn % self.pages_per_block);
        let programmed = self.blocks[block.index()].programmed;
        assert!(page < programmed, "page {page} of block {block} is torn, of {programmed} that are written");
        self.unreadable.insert(ppn);
    }

    /// A program failed in the block.
    pub(crate) fn suspect(&mut self, block: BlockId) {
        assert!(self.blocks[block.index()].programmed > 0, "a program failed in block {block}, and no page is written");
        self.blocks[block.index()].suspect = true;
    }

    /// Never use the block again.
    pub(crate) fn retire(&mut self, block: BlockId) {
        self.blocks[block.index()].bad = true;
    }

    #[inline]
    pub(crate) fn read(&mut self, block: BlockId, page: u32, asked: Asked) {
        let state = &mut self.blocks[block.index()];
        if page < state.programmed {
            state.reads += 1;
        } else {
            broken("read of an erased page", block, page, state, asked);
        }
    }

    #[inline]
    pub(crate) fn program(&mut self, block: BlockId, page: u32, asked: Asked) {
        let state = &mut self.blocks[block.index()];
        if page == state.programmed && page < self.pages_per_block && !state.bad && !state.torn {
            state.programmed += 1;
        } else {
            broken("program twice, out of order, or on a bad or torn block", block, page, state, asked);
        }
    }

    #[inline]
    pub(crate) fn read_run(&mut self, block: BlockId, count: u32) {
        debug_assert!(self.blocks[block.index()].programmed > 0, "{count} reads of block {block}, which is erased");
        self.blocks[block.index()].reads += count;
    }

    #[inline]
    pub(crate) fn program_run(&mut self, block: BlockId, count: u32, asked: Asked) {
        let state = &mut self.blocks[block.index()];
        if state.programmed + count <= self.pages_per_block && !state.bad && !state.torn {
            state.programmed += count;
        } else {
            broken("program behind the end, or on a bad or torn block", block, state.programmed, state, asked);
        }
    }

    pub(crate) fn erase(&mut self, block: BlockId, asked: Asked) {
        let state = &mut self.blocks[block.index()];
        if state.bad {
            broken("erase of a bad block", block, 0, state, asked);
        }
        if state.suspect {
            broken("erase of a block that failed a program", block, 0, state, asked);
        }
        state.programmed = 0;
        state.reads = 0;
        state.erases += 1;
        state.torn = false;
        if !self.unreadable.is_empty() {
            let first = Ppn::of(block, 0, self.pages_per_block);
            let gone: Vec<Ppn> = self.unreadable.range(first..first + self.pages_per_block).copied().collect();
            for ppn in gone {
                self.unreadable.remove(&ppn);
            }
        }
    }

    /// Power went while the block was being erased.
    pub(crate) fn tear_erase(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        assert!(!state.bad, "an erase of block {block} was cut, which is bad");
        assert!(!state.suspect, "an erase of block {block} was cut, in which a program failed");
        state.torn = true;
        // Whatever was there can no longer be trusted.
        let first = Ppn::of(block, 0, self.pages_per_block);
        let programmed = state.programmed;
        self.unreadable.extend(Ppn::each(first..first + programmed));
    }
}

#[cold]
#[inline(never)]
fn broken(rule: &str, block: BlockId, page: u32, state: &Block, asked: Asked) -> ! {
    panic!(
        "NAND rule broken, a bug in the controller: {rule}: block {block} page {page}, {state:?}, cause {:?}, at {}",
        asked.cause, asked.now
    )
}

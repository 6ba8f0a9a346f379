//! The index of a file: addresses of its blocks in the inode and in index blocks.

use super::Core;
use super::cache::{Body, Key};
use super::view::{Leaf, View};
use crate::call::FileKind;
use crate::format::inode::{Index, LEVELS, Route, route, span};
use crate::format::{LOST, NOWHERE};

impl Core {
    /// Sets the address of a block of a file whose leaf is at hand, and gives back the one before.
    pub(crate) fn set_address(&mut self, number: u32, leaf: u32, block: u32, address: u32) -> u32 {
        self.touched.insert(number);
        if leaf == number {
            let inode = self.inode_mut(number);
            let before = inode.direct(block);
            inode.set_direct(block, address);
            before
        } else {
            let index = self.index_mut(leaf);
            let entry = (block - index.first) as usize;
            let before = index.entries[entry];
            index.set(entry, address);
            before
        }
    }

    /// A block of a file or a directory is not valid any more.
    pub(crate) fn remove_block(&mut self, number: u32, address: u32) {
        match self.inode(number).kind {
            FileKind::Directory => self.space.remove_metadata(address),
            _ => self.space.remove(address),
        }
    }

    /// A block of a file is at an address from now on, and where it was before holds nothing.
    pub(crate) fn move_block(&mut self, number: u32, leaf: u32, block: u32, address: u32) {
        let before = self.set_address(number, leaf, block, address);
        if address != NOWHERE && address != LOST {
            self.space.add(address);
        }
        if before != NOWHERE && before != LOST {
            self.remove_block(number, before);
        }
        let (had, has) = (before != NOWHERE, address != NOWHERE);
        if had != has {
            let inode = self.inode_mut(number);
            inode.blocks = if has { inode.blocks.saturating_add(1) } else { inode.blocks.saturating_sub(1) };
        }
    }

    /// The node with the address of a block; index blocks that are missing on the way take numbers from `numbers`.
    pub(crate) fn leaf_or_new(&mut self, number: u32, block: u32, numbers: &mut Vec<u32>) -> u32 {
        let found = View::of(self).leaf(self.inode(number), block);
        match found.expect("gather has walked here") {
            Leaf::In(leaf) => leaf,
            Leaf::Absent { below, missing } => {
                let Route::Indexed { slot, first } = route(block) else { return number };
                let (mut above, mut level) = (below, missing as u8);
                loop {
                    let new = numbers.pop().expect("gather has picked numbers");
                    let start = match self.cache.index(above) {
                        None => first,
                        Some(index) => {
                            let entry = u64::from(block - index.first) / span(index.level);
                            index.first + (entry * span(index.level)) as u32
                        }
                    };
                    let generation = self.inode(number).generation;
                    let index = Index::new(new, number, generation, level, start);
                    self.take_number(new);
                    self.cache.insert(Key::node(new), Body::Index(Box::new(index)));
                    self.set_node_dirty(new);
                    if above == number {
                        debug_assert_eq!(LEVELS[slot], level);
                        self.inode_mut(number).index[slot] = new;
                    } else {
                        let index = self.index_mut(above);
                        let entry = u64::from(block - index.first) / span(index.level);
                        index.set(entry as usize, new);
                    }
                    if level == 1 {
                        return new;
                    }
                    (above, level) = (new, level - 1);
                }
            }
        }
    }
}

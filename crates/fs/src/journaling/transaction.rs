//! A transaction: what has changed since the last commit began. At the instant of the next one its blocks are copied as they are.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::core::{Block, Body, Core, Role};
use super::format::extents;
use super::format::group::{self, Descriptor};
use super::format::inode::{self, Inode};
use super::format::superblock::{DESCRIPTORS, Fixed, INODES, Superblock};
use crate::call::FileKind;
use crate::core::cache::Key;
use crate::format::{Bytes, directory, zeroes};
use crate::seeded::{FsBug, seeded};

/// A transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// Blocks of metadata that have changed.
    pub(crate) blocks: BTreeSet<u32>,
    /// Blocks of metadata that were freed.
    pub(crate) revoked: BTreeSet<u32>,
    /// Runs of blocks that were freed.
    pub(crate) freed: Vec<(u32, u32)>,
    /// Writes of data that end before the commit: to blocks that are new, and to the ends of files.
    pub(crate) ordered: BTreeSet<u64>,
    /// Inodes that have changed, or whose names have.
    pub(crate) touched: FxHashSet<u32>,
    /// The blocks at the instant of the commit, by their places.
    pub(crate) images: BTreeMap<u32, Box<Bytes>>,
}

impl Transaction {
    /// Whether nothing has changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.revoked.is_empty() && self.freed.is_empty()
    }
}

impl Core {
    /// A block of metadata that is changed, and that gather has seen.
    pub(crate) fn block_mut(&mut self, address: u32) -> &mut Bytes {
        self.running.blocks.insert(address);
        let entry = self.cache.entry_mut(Key::block(address)).expect("gather has seen the block");
        entry.is_dirty = true;
        match &mut entry.body {
            Body::Block(block) => &mut block.bytes,
            Body::Page(_) => panic!("{address} is a block of metadata"),
        }
    }

    /// A block of metadata that comes into being.
    pub(crate) fn new_block(&mut self, address: u32, role: Role) {
        self.cache.insert(Key::block(address), Body::Block(Block { bytes: zeroes(), role }));
        self.take_blocks(address, 1);
        self.block_mut(address);
    }

    /// A block of metadata is freed. What the journal has of it is not replayed over what the block holds next.
    pub(crate) fn free_metadata(&mut self, address: u32) {
        let key = Key::block(address);
        self.cache.remove(key);
        self.cancelled.push(super::core::Cancel::One(key));
        self.running.blocks.remove(&address);
        self.running.revoked.insert(address);
        self.free_blocks(address, 1);
    }

    /// An inode, which gather has seen.
    pub(crate) fn inode(&self, number: u32) -> Inode {
        super::view::View::of(self).inode(number).expect("gather has seen the inode")
    }

    /// Puts an inode back that was changed.
    pub(crate) fn put_inode(&mut self, inode: &Inode) {
        self.running.touched.insert(inode.number);
        let volume = self.superblock.volume;
        inode.encode(volume, self.inode_bytes_mut(inode.number));
    }

    /// Changes an inode.
    pub(crate) fn change(&mut self, number: u32, change: impl FnOnce(&mut Inode)) {
        let mut inode = self.inode(number);
        change(&mut inode);
        self.put_inode(&inode);
    }

    fn inode_bytes_mut(&mut self, number: u32) -> &mut [u8] {
        let (address, place) = self.superblock.place_of_inode(number);
        &mut self.block_mut(address)[place * inode::SIZE..(place + 1) * inode::SIZE]
    }

    /// The generation of the next inode of a number.
    pub(crate) fn next_generation(&self, number: u32) -> u32 {
        let bytes = super::view::View::of(self).inode_bytes(number).expect("gather has seen its place");
        inode::generation_at(bytes).wrapping_add(1).max(1)
    }

    /// An inode is freed.
    pub(crate) fn clear_inode(&mut self, number: u32, kind: FileKind) {
        let volume = self.superblock.volume;
        Inode::clear(volume, number, self.inode_bytes_mut(number));
        self.give_inode(number, kind);
    }

    /// The list of orphans begins with another inode.
    fn set_first_orphan(&mut self) {
        self.superblock.first_orphan = self.orphans.first().copied().unwrap_or(0);
        self.running.blocks.insert(0);
    }

    /// Puts an inode at the head of the list of orphans, where it is not there.
    pub(crate) fn add_orphan(&mut self, inode: &mut Inode) {
        if self.orphans.contains(&inode.number) || seeded(FsBug::OrphanNotListed) {
            return;
        }
        inode.next_orphan = self.orphans.first().copied().unwrap_or(0);
        self.orphans.insert(0, inode.number);
        self.set_first_orphan();
    }

    /// Takes an inode out of the list of orphans. What is in front of it is at hand ([`View::orphan`](super::view::View::orphan)).
    pub(crate) fn remove_orphan(&mut self, number: u32) {
        let Some(at) = self.orphans.iter().position(|other| *other == number) else { return };
        self.orphans.remove(at);
        let next = self.orphans.get(at).copied().unwrap_or(0);
        match at.checked_sub(1) {
            None => self.set_first_orphan(),
            Some(before) => {
                let before = self.orphans[before];
                self.change(before, |inode| inode.next_orphan = next);
            }
        }
    }

    /// The instant of a commit: the transaction is as it is now, and the next one begins.
    pub(crate) fn close_transaction(&mut self) {
        let mut closing = std::mem::take(&mut self.running);
        let volume = self.superblock.volume;
        let mut blocks: Vec<u32> = closing.blocks.iter().copied().collect();
        let mut first_orphan = self.superblock.first_orphan;
        for address in &blocks {
            let Some(entry) = self.cache.entry_mut(Key::block(*address)) else { continue };
            entry.is_dirty = false;
            let Body::Block(Block { bytes, role }) = &mut entry.body else { continue };
            let role = *role;
            match role {
                Role::Directory { inode, generation, index } => {
                    directory::seal_block(bytes, volume, inode, generation, index);
                }
                Role::Extents(inode) => extents::seal(volume, inode, &mut bytes[..]),
                _ => {}
            }
            let mut image = bytes.clone();
            match role {
                Role::BlockBitmap(group) => {
                    self.space.groups[group as usize].told.block_sum = group::bitmap_sum(volume, group, false, &image);
                }
                Role::InodeBitmap(group) => {
                    self.space.groups[group as usize].told.inode_sum = group::bitmap_sum(volume, group, true, &image);
                }
                Role::Table(group) => {
                    let first = self.superblock.first_inode_of(group, *address);
                    self.set_durable_sizes(first, &mut image, &mut first_orphan);
                }
                _ => {}
            }
            closing.images.insert(*address, image);
        }
        if first_orphan != self.superblock.first_orphan {
            self.running.blocks.insert(0);
            closing.blocks.insert(0);
            blocks.push(0);
        }
        // Descriptors have the checksums of bitmaps.
        for address in blocks {
            match self.superblock.fixed(address) {
                Some(Fixed::Superblock) => {
                    closing.images.insert(address, Superblock { first_orphan, ..self.superblock }.encode());
                }
                Some(Fixed::Descriptors(part)) => {
                    let first = (part * DESCRIPTORS) as usize;
                    let told: Vec<Descriptor> = self
                        .space
                        .groups
                        .iter()
                        .skip(first)
                        .take(DESCRIPTORS as usize)
                        .map(|group| group.told)
                        .collect();
                    closing.images.insert(address, group::encode(&self.superblock, part, &told));
                }
                _ => {}
            }
        }
        self.committing = Some(closing);
    }

    /// Gives the inodes of a block the sizes up to which their data is there or on its way. Those with blocks behind that are put into the
    /// list of orphans, as far as this commit goes: a mount that finds it frees those blocks.
    fn set_durable_sizes(&mut self, first: u32, image: &mut Bytes, first_orphan: &mut u32) {
        let volume = self.superblock.volume;
        for index in 0..INODES {
            let number = first + index;
            let Some((size, has_more)) = self.durable_size(number) else { continue };
            let at = index as usize * inode::SIZE;
            let bytes = &mut image[at..at + inode::SIZE];
            Inode::set_size(volume, number, bytes, size);
            if has_more && !self.orphans.contains(&number) {
                Inode::set_next_orphan(volume, number, bytes, *first_orphan);
                *first_orphan = number;
                // The next commit may leave it out.
                self.block_mut(self.superblock.place_of_inode(number).0);
            }
        }
    }

    /// The block as the commit at work or an earlier one has it, where it is not at its place yet.
    pub(crate) fn image(&self, address: u32) -> Option<&Bytes> {
        let committing = self.committing.as_ref().and_then(|committing| committing.images.get(&address));
        committing.map(|image| &**image).or_else(|| self.homes.image(address))
    }
}

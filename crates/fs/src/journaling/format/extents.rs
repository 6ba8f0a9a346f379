//! Extents: runs of blocks of a file, in the inode or in a tree of blocks, as ext4 has them.
//!
//! ```text
//!   header (12 bytes)   magic, entries, most entries, depth
//!   leaf   (12 bytes)   first block of the file, blocks, where they are
//!   index  (12 bytes)   first block of the file, the block below
//! ```
//!
//! An inode has 4 entries, a block 340 and a checksum behind them.

use super::{get_u16, put_u16, sum32};
use crate::format::{BLOCK, Bad, get_u32, put_u32};

const MAGIC: u16 = 0xf30a;
const HEADER: usize = 12;
const ENTRY: usize = 12;

/// Entries of a block.
pub const FAN: usize = (BLOCK - HEADER - 4) / ENTRY;

/// Entries of an inode.
pub const ROOT_FAN: usize = (super::inode::ROOT_BYTES - HEADER) / ENTRY;

/// Blocks of an extent at most.
pub const MOST_LENGTH: u32 = 32768;

/// Levels below an inode at most.
pub const MOST_DEPTH: u16 = 5;

/// A run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block of the file.
    pub first: u32,
    /// Blocks.
    pub length: u32,
    /// Where they are.
    pub start: u32,
}

impl Extent {
    /// The block behind the last.
    pub const fn end(&self) -> u32 {
        self.first + self.length
    }

    /// Where a block of it is.
    pub const fn address(&self, block: u32) -> u32 {
        self.start + (block - self.first)
    }
}

/// Begins an empty node.
pub fn begin(node: &mut [u8], depth: u16) {
    node.fill(0);
    put_u16(node, 0, MAGIC);
    put_u16(node, 6, depth);
}

/// Entries of a node.
pub fn count(node: &[u8]) -> usize {
    usize::from(get_u16(node, 2))
}

/// Levels below a node.
pub fn depth(node: &[u8]) -> u16 {
    get_u16(node, 6)
}

/// Entries that a node can have.
pub const fn fan(node: &[u8]) -> usize {
    if node.len() < BLOCK { ROOT_FAN } else { FAN }
}

/// Whether a node can be one: its header, and entries in their order.
///
/// # Errors
/// What cannot be.
pub fn check(node: &[u8]) -> Result<(), Bad> {
    if get_u16(node, 0) != MAGIC {
        return Err(Bad::Magic("node of extents"));
    }
    if count(node) > fan(node) || depth(node) > MOST_DEPTH {
        return Err(Bad::Field("number of extents"));
    }
    let mut end = 0_u64;
    for index in 0..count(node) {
        let first = u64::from(first_of(node, index));
        if first < end {
            return Err(Bad::Field("order of extents"));
        }
        end = first + if depth(node) == 0 { u64::from(extent(node, index).length) } else { 1 };
        if depth(node) == 0 && (extent(node, index).length == 0 || end > u64::from(u32::MAX)) {
            return Err(Bad::Field("length of an extent"));
        }
    }
    Ok(())
}

fn at(index: usize) -> usize {
    HEADER + index * ENTRY
}

/// The first block of the file that an entry leads to.
pub fn first_of(node: &[u8], index: usize) -> u32 {
    get_u32(node, at(index))
}

/// An entry of a leaf.
pub fn extent(node: &[u8], index: usize) -> Extent {
    let at = at(index);
    Extent { first: get_u32(node, at), length: u32::from(get_u16(node, at + 4)), start: get_u32(node, at + 8) }
}

/// The block below an entry of an index node.
pub fn child(node: &[u8], index: usize) -> u32 {
    get_u32(node, at(index) + 4)
}

/// The last entry that begins at or before a block of the file; `None` if all are behind it.
pub fn search(node: &[u8], block: u32) -> Option<usize> {
    let (mut low, mut high) = (0, count(node));
    while low < high {
        let middle = (low + high) / 2;
        if first_of(node, middle) <= block { low = middle + 1 } else { high = middle }
    }
    low.checked_sub(1)
}

/// Changes an entry of a leaf.
pub fn set_extent(node: &mut [u8], index: usize, extent: Extent) {
    let at = at(index);
    put_u32(node, at, extent.first);
    put_u16(node, at + 4, extent.length as u16);
    put_u16(node, at + 6, 0);
    put_u32(node, at + 8, extent.start);
}

/// Changes an entry of an index node.
pub fn set_child(node: &mut [u8], index: usize, first: u32, below: u32) {
    let at = at(index);
    put_u32(node, at, first);
    put_u32(node, at + 4, below);
    put_u32(node, at + 8, 0);
}

/// Changes where an entry begins.
pub fn set_first(node: &mut [u8], index: usize, first: u32) {
    put_u32(node, at(index), first);
}

/// Makes room for an entry at a place.
pub fn open_gap(node: &mut [u8], index: usize) {
    let entries = count(node);
    node.copy_within(at(index)..at(entries), at(index + 1));
    put_u16(node, 2, entries as u16 + 1);
}

/// Takes an entry out.
pub fn remove(node: &mut [u8], index: usize) {
    let entries = count(node);
    node.copy_within(at(index + 1)..at(entries), at(index));
    node[at(entries - 1)..at(entries)].fill(0);
    put_u16(node, 2, entries as u16 - 1);
}

/// Moves the entries from one on to the beginning of an empty node.
pub fn move_tail(node: &mut [u8], from: usize, to: &mut [u8]) {
    let entries = count(node);
    let moved = entries - from;
    to[at(0)..at(moved)].copy_from_slice(&node[at(from)..at(entries)]);
    put_u16(to, 2, moved as u16);
    node[at(from)..at(entries)].fill(0);
    put_u16(node, 2, from as u16);
}

/// Writes the checksum of a block of extents of an inode.
pub fn seal(volume: u64, inode: u32, block: &mut [u8]) {
    let sum = sum32(volume, u64::from(inode) | 1 << 33, &block[..BLOCK - 4]);
    put_u32(block, BLOCK - 4, sum);
}

/// Checks a block of extents of an inode.
///
/// # Errors
/// It is another, or says what cannot be.
pub fn check_block(volume: u64, inode: u32, block: &[u8]) -> Result<(), Bad> {
    if get_u32(block, BLOCK - 4) != sum32(volume, u64::from(inode) | 1 << 33, &block[..BLOCK - 4]) {
        return Err(Bad::Checksum);
    }
    check(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_go_in_and_out_in_their_order() {
        assert_eq!((FAN, ROOT_FAN), (340, 4));
        let mut node = [0; BLOCK];
        begin(&mut node, 0);
        for first in (0..FAN as u32).rev() {
            open_gap(&mut node, 0);
            set_extent(&mut node, 0, Extent { first: first * 10, length: 3, start: 1000 + first });
        }
        assert_eq!((count(&node), check(&node)), (FAN, Ok(())));
        assert_eq!((search(&node, 25), search(&node, 30)), (Some(2), Some(3)));
        assert_eq!(extent(&node, 2).address(21), 1003);
        let mut other = [0; BLOCK];
        begin(&mut other, 0);
        move_tail(&mut node, 200, &mut other);
        assert_eq!((count(&node), count(&other), first_of(&other, 0)), (200, 140, 2000));
        assert_eq!(search(&other, 5), None);
        remove(&mut node, 0);
        assert_eq!((count(&node), first_of(&node, 0), check(&node)), (199, 10, Ok(())));
        seal(1, 5, &mut node);
        assert_eq!(check_block(1, 5, &node), Ok(()));
        assert_eq!(check_block(1, 6, &node), Err(Bad::Checksum));
        set_first(&mut node, 3, 1);
        assert!(check(&node).is_err(), "entries out of their order");
    }
}

//! Blocks of a directory: hash buckets in levels, as in F2FS.
//!
//! ```text
//!   level 0   bucket 0                         2 blocks a bucket
//!   level 1   bucket 0   bucket 1
//!   level 2   bucket 0   1   2   3             a name is in the bucket of its hash, in any level
//! ```
//!
//! A block has 126 slots of 32 bytes. A name takes one slot, or several that follow each other, and never moves. So its slot is a
//! position that stays right whatever else changes.

use super::{Bad, Bytes, HEADER, Header, expect, get_u32, hash, open, put_u32, seal};
use crate::call::FileKind;

pub(crate) const MAGIC: [u8; 4] = *b"DIRE";

/// Slots of a block.
pub const SLOTS: usize = 126;

/// Blocks of a bucket.
pub const BUCKET: u32 = 2;

/// Most levels; the last one alone has room for more names than there are inodes at 1 TB.
pub const MOST_LEVELS: u8 = 24;

const SLOT: usize = 32;
const BITMAP: usize = HEADER;
const FIRST: usize = 64;
const NAME: usize = 12;

/// An entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its first slot.
    pub slot: usize,
    /// Slots that it takes.
    pub slots: usize,
    /// Number of the inode.
    pub number: u32,
    /// What that is.
    pub kind: FileKind,
    /// Hash of the name.
    pub hash: u32,
    /// The name.
    pub name: &'a [u8],
}

/// The hash of a name.
pub fn hash_of(name: &[u8]) -> u32 {
    hash(0x6469_7265, name) as u32
}

/// The blocks of the bucket of a hash in a level.
pub const fn bucket(hash: u32, level: u8) -> std::ops::Range<u32> {
    let first = ((1_u32 << level) - 1 + (hash & ((1 << level) - 1))) * BUCKET;
    first..first + BUCKET
}

/// Blocks of the first levels.
pub const fn blocks_of(levels: u8) -> u32 {
    ((1_u32 << levels) - 1) * BUCKET
}

/// Slots that a name takes.
pub const fn slots_of(name: &[u8]) -> usize {
    (NAME + name.len()).div_ceil(SLOT)
}

fn is_used(block: &Bytes, slot: usize) -> bool {
    block[BITMAP + slot / 8] & 1 << (slot % 8) != 0
}

fn set_used(block: &mut Bytes, slot: usize, used: bool) {
    let bit = 1 << (slot % 8);
    let byte = &mut block[BITMAP + slot / 8];
    *byte = if used { *byte | bit } else { *byte & !bit };
}

/// The entries of a block, which [`check`] has accepted, from a slot on.
pub fn entries(block: &Bytes, from: usize) -> impl Iterator<Item = Found<'_>> {
    let mut slot = 0;
    std::iter::from_fn(move || {
        while slot < SLOTS {
            if !is_used(block, slot) {
                slot += 1;
                continue;
            }
            let found = entry(block, slot).ok()?;
            slot += found.slots;
            if found.slot >= from {
                return Some(found);
            }
        }
        None
    })
}

fn entry(block: &Bytes, slot: usize) -> Result<Found<'_>, Bad> {
    let at = FIRST + slot * SLOT;
    let (length, slots) = (block[at + 8] as usize, block[at + 10] as usize);
    let name = block.get(at + NAME..at + NAME + length).ok_or(Bad::Field("name"))?;
    if slots != slots_of(name) || slot + slots > SLOTS || !(slot..slot + slots).all(|slot| is_used(block, slot)) {
        return Err(Bad::Field("slots of a name"));
    }
    let kind = match block[at + 9] {
        1 => FileKind::File,
        2 => FileKind::Directory,
        _ => return Err(Bad::Field("kind of a name")),
    };
    let (number, hash) = (get_u32(block, at), get_u32(block, at + 4));
    Ok(Found { slot, slots, number, kind, hash, name })
}

/// The first slot of as many free ones as a name needs.
pub fn room(block: &Bytes, slots: usize) -> Option<usize> {
    let mut free = 0;
    for slot in 0..SLOTS {
        free = if is_used(block, slot) { 0 } else { free + 1 };
        if free == slots {
            return Some(slot + 1 - slots);
        }
    }
    None
}

/// Whether no name is left.
pub fn is_empty(block: &Bytes) -> bool {
    block[BITMAP..BITMAP + SLOTS.div_ceil(8)].iter().all(|byte| *byte == 0)
}

/// Puts a name at free slots.
pub fn put(block: &mut Bytes, slot: usize, name: &[u8], number: u32, kind: FileKind) {
    let (at, slots) = (FIRST + slot * SLOT, slots_of(name));
    block[at..at + slots * SLOT].fill(0);
    put_u32(block, at, number);
    put_u32(block, at + 4, hash_of(name));
    block[at + 8] = name.len() as u8;
    block[at + 9] = match kind {
        FileKind::File => 1,
        FileKind::Directory => 2,
    };
    block[at + 10] = slots as u8;
    block[at + NAME..at + NAME + name.len()].copy_from_slice(name);
    (slot..slot + slots).for_each(|slot| set_used(block, slot, true));
}

/// Changes what the name at a slot leads to.
pub fn lead(block: &mut Bytes, slot: usize, number: u32) {
    put_u32(block, FIRST + slot * SLOT, number);
}

/// Removes the name at a slot.
pub fn remove(block: &mut Bytes, slot: usize) {
    let (at, slots) = (FIRST + slot * SLOT, block[FIRST + slot * SLOT + 10] as usize);
    block[at..at + slots * SLOT].fill(0);
    (slot..slot + slots).for_each(|slot| set_used(block, slot, false));
}

/// Writes the header of block `index` of a directory.
pub fn seal_block(block: &mut Bytes, volume: u64, inode: u32, generation: u32, index: u32) {
    seal(block, volume, MAGIC, Header { a: inode, b: index, generation, version: 0 });
}

/// Checks block `index` of a directory, all that it says included.
///
/// # Errors
/// It is another, or says what cannot be.
pub fn check(block: &Bytes, volume: u64, inode: u32, generation: u32, index: u32) -> Result<(), Bad> {
    let header = open(block, volume, MAGIC, "directory block")?;
    expect("directory", header.a, inode)?;
    expect("generation", header.generation, generation)?;
    expect("place", header.b, index)?;
    let mut slot = 0;
    while slot < SLOTS {
        if is_used(block, slot) {
            let found = entry(block, slot)?;
            if crate::call::check_name(found.name).is_err() || found.number == 0 || found.hash != hash_of(found.name) {
                return Err(Bad::Field("name"));
            }
            let level = (index / BUCKET + 1).ilog2() as u8;
            if !bucket(found.hash, level).contains(&index) {
                return Err(Bad::Field("bucket of a name"));
            }
            slot += found.slots;
        } else {
            slot += 1;
        }
    }
    Ok(())
}

//! Blocks of metadata of a journaling file system, as the drive has them. Sizes are those of ext3 and ext4: 256-byte inodes, 32-byte
//! group descriptors, 12-byte extents, 4-byte addresses.
//!
//! Blocks of directories are those of all kinds ([`crate::format::directory`]). A bitmap and an indirect block are numbers alone: a bitmap
//! has its checksum in the descriptor of its group, an indirect block has none, as in ext3.

pub mod extents;
pub mod group;
pub mod inode;
pub mod log;
pub mod superblock;

use crate::format::{Bytes, hash};
use superblock::{Fixed, Superblock};

/// Makes the checksums of inodes or descriptors in a block right again whose contents were changed on purpose. For tests of what then refuses
/// it.
pub fn mend(superblock: &Superblock, place: u32, block: &mut Bytes) {
    match superblock.fixed(place) {
        Some(Fixed::Table(group)) => {
            let first = superblock.first_inode_of(group, place);
            for (number, bytes) in (first..).zip(block.chunks_exact_mut(inode::SIZE)) {
                if bytes.iter().any(|byte| *byte != 0) {
                    inode::seal(superblock.volume, number, bytes);
                }
            }
        }
        Some(Fixed::Descriptors(part)) => group::mend(superblock, part, block),
        _ => {}
    }
}

/// A checksum in 32 bits.
pub(crate) fn sum32(volume: u64, what: u64, bytes: &[u8]) -> u32 {
    hash(volume ^ what.rotate_left(32), bytes) as u32
}

/// A checksum in 16 bits.
pub(crate) fn sum16(volume: u64, what: u64, bytes: &[u8]) -> u16 {
    let sum = sum32(volume, what, bytes);
    (sum ^ sum >> 16) as u16
}

pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

//! Descriptors of block groups, 32 bytes each: free blocks and inodes, and the checksums of the group's bitmaps.

use super::{get_u16, put_u16, sum16};
use crate::format::{Bad, Bytes, get_u32, put_u32, zeroes};
use crate::journaling::format::superblock::{DESCRIPTORS, Superblock};

const SIZE: usize = 32;
/// The most that 16 bits say.
const MOST: u16 = 0xffff;

/// What a descriptor says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Blocks that nothing has.
    pub free_blocks: u32,
    /// Inodes that nothing has.
    pub free_inodes: u32,
    /// Inodes of directories.
    pub directories: u32,
    /// Inodes at the end of the table that were never used: their blocks say nothing.
    pub unused_inodes: u32,
    /// Checksum of the bitmap of blocks.
    pub block_sum: u16,
    /// Checksum of the bitmap of inodes.
    pub inode_sum: u16,
}

fn slot(group: u32) -> usize {
    (group % DESCRIPTORS) as usize * SIZE
}

/// A block of descriptors, of the groups from the first one of that block on.
pub fn encode(superblock: &Superblock, part: u32, groups: &[Descriptor]) -> Box<Bytes> {
    let mut block = zeroes();
    for (group, one) in (part * DESCRIPTORS..).zip(groups) {
        let bytes = &mut block[slot(group)..slot(group) + SIZE];
        put_u32(bytes, 0, superblock.block_bitmap(group));
        put_u32(bytes, 4, superblock.inode_bitmap(group));
        put_u32(bytes, 8, superblock.table(group));
        put_u16(bytes, 12, one.free_blocks.min(MOST.into()) as u16);
        put_u16(bytes, 14, one.free_inodes.min(MOST.into()) as u16);
        put_u16(bytes, 16, one.directories.min(MOST.into()) as u16);
        put_u16(bytes, 24, one.block_sum);
        put_u16(bytes, 26, one.inode_sum);
        put_u16(bytes, 28, one.unused_inodes.min(MOST.into()) as u16);
        let sum = sum16(superblock.volume, group.into(), &bytes[..30]);
        put_u16(bytes, 30, sum);
    }
    block
}

/// Writes the checksums of a block of descriptors.
pub(crate) fn mend(superblock: &Superblock, part: u32, block: &mut Bytes) {
    for group in part * DESCRIPTORS..superblock.groups().min((part + 1) * DESCRIPTORS) {
        let bytes = &mut block[slot(group)..slot(group) + SIZE];
        let sum = sum16(superblock.volume, group.into(), &bytes[..30]);
        put_u16(bytes, 30, sum);
    }
}

/// The descriptor of a group from its block.
///
/// # Errors
/// Its checksum is another, or it says what cannot be.
pub fn decode(superblock: &Superblock, group: u32, block: &Bytes) -> Result<Descriptor, Bad> {
    let bytes = &block[slot(group)..slot(group) + SIZE];
    if get_u16(bytes, 30) != sum16(superblock.volume, group.into(), &bytes[..30]) {
        return Err(Bad::Checksum);
    }
    let places = [superblock.block_bitmap(group), superblock.inode_bitmap(group), superblock.table(group)];
    if (0..3).any(|index| get_u32(bytes, 4 * index) != places[index]) {
        return Err(Bad::Field("place of a bitmap or table"));
    }
    let one = Descriptor {
        free_blocks: get_u16(bytes, 12).into(),
        free_inodes: get_u16(bytes, 14).into(),
        directories: get_u16(bytes, 16).into(),
        unused_inodes: get_u16(bytes, 28).into(),
        block_sum: get_u16(bytes, 24),
        inode_sum: get_u16(bytes, 26),
    };
    let free = superblock.blocks_of(group) - superblock.prefix(group);
    let inodes = superblock.group_inodes;
    if one.free_blocks > free || one.free_inodes > inodes || one.unused_inodes > one.free_inodes {
        return Err(Bad::Field("count"));
    }
    Ok(one)
}

/// Checksum of a bitmap of a group.
pub fn bitmap_sum(volume: u64, group: u32, of_inodes: bool, bitmap: &Bytes) -> u16 {
    sum16(volume, u64::from(group) << 1 | u64::from(of_inodes) | 1 << 40, bitmap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journaling::Rules;

    #[test]
    fn descriptors_come_back_and_others_are_refused() {
        let superblock = Superblock {
            volume: 5,
            blocks: 20_000,
            group_blocks: 128,
            group_inodes: 32,
            flex: 16,
            journal: 256,
            rules: Rules::Ext4,
            first_orphan: 0,
        };
        let groups: Vec<Descriptor> = (0..superblock.groups())
            .map(|group| Descriptor {
                free_blocks: group % 30,
                free_inodes: 20,
                directories: 1,
                unused_inodes: 9,
                block_sum: 3,
                inode_sum: 4,
            })
            .collect();
        for part in 0..superblock.descriptor_blocks() {
            let first = (part * DESCRIPTORS) as usize;
            let end = groups.len().min(first + DESCRIPTORS as usize);
            let block = encode(&superblock, part, &groups[first..end]);
            for (group, one) in (first as u32..).zip(&groups[first..end]) {
                assert_eq!(decode(&superblock, group, &block), Ok(*one));
                let mut torn = block.clone();
                torn[slot(group) + 12] ^= 1;
                assert_eq!(decode(&superblock, group, &torn), Err(Bad::Checksum));
            }
        }
    }
}

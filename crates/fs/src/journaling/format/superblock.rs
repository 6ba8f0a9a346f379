//! The superblock, and the places of all metadata that follow from it.
//!
//! ```text
//!   group 0   superblock, descriptors | bitmaps and inode tables of its flex group | blocks
//!   group 1   superblock, descriptors (a copy)                                     | blocks
//!   group 2   blocks
//!   ...       copies are in groups 1 and powers of 3, 5 and 7 (sparse_super)
//! ```
//!
//! All that can change lies in the first sector, so a cut leaves the old superblock or the new one.

use crate::format::{Bad, Bytes, HEADER, Header, expect, get_u32, get_u64, hash, open, put_u32, put_u64, seal, zeroes};
use crate::journaling::Rules;

pub(crate) const MAGIC: [u8; 4] = *b"JFSS";

/// The format that this code writes and reads.
pub const FORMAT: u32 = 1;

/// Inodes of a block.
pub const INODES: u32 = 16;

/// Descriptors of a block.
pub const DESCRIPTORS: u32 = 128;

/// What is fixed when a file system is made, and the first orphan. Counts are of blocks of 4 KB unless they say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Number that tells apart file systems on one drive.
    pub volume: u64,
    /// All blocks.
    pub blocks: u32,
    /// Blocks of a group; the last may have less.
    pub group_blocks: u32,
    /// Inodes of a group, whole blocks of them.
    pub group_inodes: u32,
    /// Groups whose bitmaps and inode tables lie together.
    pub flex: u32,
    /// Blocks of the journal.
    pub journal: u32,
    /// How files are mapped and blocks are allocated.
    pub rules: Rules,
    /// The first inode of the list of those without a name and of those that are being truncated; 0 for none.
    pub first_orphan: u32,
}

impl Superblock {
    /// The block.
    pub fn encode(&self) -> Box<Bytes> {
        let mut block = zeroes();
        put_u32(&mut *block, HEADER, FORMAT);
        put_u64(&mut *block, 40, self.volume);
        let rules = match self.rules {
            Rules::Ext3 => 3,
            Rules::Ext4 => 4,
        };
        let fields =
            [self.blocks, self.group_blocks, self.group_inodes, self.flex, self.journal, rules, self.first_orphan];
        fields.iter().enumerate().for_each(|(index, field)| put_u32(&mut *block, 48 + 4 * index, *field));
        seal(&mut block, 0, MAGIC, Header::default());
        block
    }

    /// Reads the block.
    ///
    /// # Errors
    /// It is none, of another format, or its numbers contradict each other.
    pub fn decode(block: &Bytes) -> Result<Superblock, Bad> {
        open(block, 0, MAGIC, "superblock of a journaling file system")?;
        expect("format", get_u32(block, HEADER), FORMAT)?;
        let field = |index: usize| get_u32(block, 48 + 4 * index);
        let superblock = Superblock {
            volume: get_u64(block, 40),
            blocks: field(0),
            group_blocks: field(1),
            group_inodes: field(2),
            flex: field(3),
            journal: field(4),
            rules: match field(5) {
                3 => Rules::Ext3,
                4 => Rules::Ext4,
                _ => return Err(Bad::Field("rules")),
            },
            first_orphan: field(6),
        };
        superblock.check()?;
        Ok(superblock)
    }

    fn check(&self) -> Result<(), Bad> {
        if !(64..=32768).contains(&self.group_blocks) || !self.group_blocks.is_multiple_of(8) {
            return Err(Bad::Field("blocks of a group"));
        }
        let most_inodes = 8 * self.group_blocks.min(4096);
        if self.group_inodes == 0 || self.group_inodes > most_inodes || !self.group_inodes.is_multiple_of(INODES) {
            return Err(Bad::Field("inodes of a group"));
        }
        if self.flex == 0 || self.flex > 256 || self.blocks < 64 || self.blocks == u32::MAX {
            return Err(Bad::Field("number of blocks"));
        }
        if u64::from(self.groups()) * u64::from(self.group_inodes) >= u64::from(u32::MAX) {
            return Err(Bad::Field("number of inodes"));
        }
        if (0..self.groups()).any(|group| self.prefix(group) >= self.blocks_of(group)) {
            return Err(Bad::Field("share of metadata"));
        }
        if self.journal < 8 || self.journal_runs().is_none() {
            return Err(Bad::Field("journal"));
        }
        if self.first_orphan > self.inodes() {
            return Err(Bad::Field("orphan"));
        }
        Ok(())
    }

    /// A number that differs for file systems whose numbers differ.
    pub fn volume_of(&self, seed: u64) -> u64 {
        let mut bytes = Superblock { volume: 0, ..*self }.encode();
        put_u64(&mut *bytes, 8, seed);
        hash(seed, &bytes[..]) | 1
    }

    /// Groups.
    pub const fn groups(&self) -> u32 {
        self.blocks.div_ceil(self.group_blocks)
    }

    /// Inodes of all groups.
    pub const fn inodes(&self) -> u32 {
        self.groups() * self.group_inodes
    }

    /// The first block of a group.
    pub const fn first_of(&self, group: u32) -> u32 {
        group * self.group_blocks
    }

    /// Blocks of a group.
    pub const fn blocks_of(&self, group: u32) -> u32 {
        let left = self.blocks - self.first_of(group);
        if left < self.group_blocks { left } else { self.group_blocks }
    }

    /// The group of a block.
    pub const fn group_of(&self, block: u32) -> u32 {
        block / self.group_blocks
    }

    /// The group of an inode, which count from 1.
    pub const fn group_of_inode(&self, number: u32) -> u32 {
        (number - 1) / self.group_inodes
    }

    /// Blocks of descriptors.
    pub const fn descriptor_blocks(&self) -> u32 {
        self.groups().div_ceil(DESCRIPTORS)
    }

    /// Blocks of the inode table of a group.
    pub const fn table_blocks(&self) -> u32 {
        self.group_inodes / INODES
    }

    /// Whether a group begins with the superblock and the descriptors, or copies of them.
    pub const fn has_copy(group: u32) -> bool {
        if group <= 1 {
            return true;
        }
        let mut base = 3;
        while base <= 7 {
            let mut power = base;
            while power < group {
                power *= base;
            }
            if power == group {
                return true;
            }
            base += 2;
        }
        false
    }

    const fn copy_blocks(&self, group: u32) -> u32 {
        if Superblock::has_copy(group) { 1 + self.descriptor_blocks() } else { 0 }
    }

    /// The first group of the flex group of a group, and the groups that it has.
    const fn flex_of(&self, group: u32) -> (u32, u32) {
        let first = group / self.flex * self.flex;
        let left = self.groups() - first;
        (first, if left < self.flex { left } else { self.flex })
    }

    /// Blocks at the beginning of a group that hold metadata at fixed places.
    pub const fn prefix(&self, group: u32) -> u32 {
        let (first, count) = self.flex_of(group);
        let own = if first == group { count * (2 + self.table_blocks()) } else { 0 };
        self.copy_blocks(group) + own
    }

    const fn flex_begin(&self, group: u32) -> (u32, u32, u32) {
        let (first, count) = self.flex_of(group);
        (self.first_of(first) + self.copy_blocks(first), count, group - first)
    }

    /// The block of descriptors of a group.
    pub const fn descriptor_block(&self, group: u32) -> u32 {
        1 + group / DESCRIPTORS
    }

    /// The bitmap of a group's blocks.
    pub const fn block_bitmap(&self, group: u32) -> u32 {
        let (begin, _, index) = self.flex_begin(group);
        begin + index
    }

    /// The bitmap of a group's inodes.
    pub const fn inode_bitmap(&self, group: u32) -> u32 {
        let (begin, count, index) = self.flex_begin(group);
        begin + count + index
    }

    /// The first block of a group's inode table.
    pub const fn table(&self, group: u32) -> u32 {
        let (begin, count, index) = self.flex_begin(group);
        begin + 2 * count + index * self.table_blocks()
    }

    /// The block that has an inode, and its place among those of the block.
    pub const fn place_of_inode(&self, number: u32) -> (u32, usize) {
        let index = (number - 1) % self.group_inodes;
        (self.table(self.group_of_inode(number)) + index / INODES, (index % INODES) as usize)
    }

    /// The first inode of a block of an inode table.
    pub const fn first_inode_of(&self, group: u32, block: u32) -> u32 {
        group * self.group_inodes + (block - self.table(group)) * INODES + 1
    }

    /// What a fixed block holds; `None` for a block of files or the journal.
    pub fn fixed(&self, block: u32) -> Option<Fixed> {
        let group = self.group_of(block);
        let at = block - self.first_of(group);
        if at >= self.prefix(group) {
            return None;
        }
        let copies = self.copy_blocks(group);
        if at < copies {
            return Some(match (group, at) {
                (0, 0) => Fixed::Superblock,
                (0, at) => Fixed::Descriptors(at - 1),
                _ => Fixed::Copy,
            });
        }
        let (first, count) = self.flex_of(group);
        let at = at - copies;
        Some(if at < count {
            Fixed::BlockBitmap(first + at)
        } else if at < 2 * count {
            Fixed::InodeBitmap(first + at - count)
        } else {
            Fixed::Table(first + (at - 2 * count) / self.table_blocks())
        })
    }

    /// Where the journal is: runs of blocks in their order, from the middle of the device on, as mke2fs has it; `None` where there is not
    /// that much room.
    pub fn journal_runs(&self) -> Option<Vec<(u32, u32)>> {
        let mut begin = self.groups() / 2;
        loop {
            let (mut runs, mut left) = (Vec::new(), self.journal);
            for group in begin..self.groups() {
                let (first, prefix) = (self.first_of(group), self.prefix(group));
                let count = self.blocks_of(group).saturating_sub(prefix).min(left);
                if count > 0 {
                    runs.push((first + prefix, count));
                    left -= count;
                }
                if left == 0 {
                    return Some(runs);
                }
            }
            begin = begin.checked_sub(1)?;
        }
    }
}

/// What a block at a fixed place holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// The superblock.
    Superblock,
    /// This block of the group descriptors.
    Descriptors(u32),
    /// A copy of the superblock or of descriptors, which nothing changes.
    Copy,
    /// The bitmap of this group's blocks.
    BlockBitmap(u32),
    /// The bitmap of this group's inodes.
    InodeBitmap(u32),
    /// Inodes of this group.
    Table(u32),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn of(blocks: u32, group_blocks: u32, flex: u32) -> Superblock {
        let group_inodes = group_blocks / 4;
        let (journal, rules) = (blocks / 8, Rules::Ext4);
        Superblock { volume: 9, blocks, group_blocks, group_inodes, flex, journal, rules, first_orphan: 0 }
    }

    #[test]
    fn every_fixed_block_is_told_once_and_at_the_place_that_is_computed() {
        for superblock in [of(3000, 128, 16), of(2064, 64, 1), of(300_000, 32768, 16), of(40_000, 512, 4)] {
            assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
            let mut seen = BTreeSet::new();
            for group in 0..superblock.groups() {
                assert_eq!(superblock.fixed(superblock.block_bitmap(group)), Some(Fixed::BlockBitmap(group)));
                assert_eq!(superblock.fixed(superblock.inode_bitmap(group)), Some(Fixed::InodeBitmap(group)));
                let table = superblock.table(group);
                for block in table..table + superblock.table_blocks() {
                    assert_eq!(superblock.fixed(block), Some(Fixed::Table(group)));
                    assert!(seen.insert(block));
                }
                let first = superblock.first_inode_of(group, table);
                assert_eq!(superblock.place_of_inode(first), (table, 0));
                assert_eq!(superblock.group_of_inode(first), group);
                let end = superblock.first_of(group) + superblock.prefix(group);
                assert_eq!(superblock.fixed(end), None, "group {group}");
            }
            let runs = superblock.journal_runs().expect("there is room");
            assert_eq!(runs.iter().map(|(_, count)| count).sum::<u32>(), superblock.journal);
            assert!(runs.iter().all(|(first, count)| (*first..first + count).all(|at| superblock.fixed(at).is_none())));
        }
    }

    #[test]
    fn copies_are_in_groups_1_and_powers_of_3_5_and_7() {
        let groups: Vec<u32> = (0..130).filter(|group| Superblock::has_copy(*group)).collect();
        assert_eq!(groups, [0, 1, 3, 5, 7, 9, 25, 27, 49, 81, 125]);
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        let good = of(3000, 128, 16);
        let bad = [
            Superblock { group_blocks: 0, ..good },
            Superblock { group_blocks: 60, ..good },
            Superblock { group_inodes: 7, ..good },
            Superblock { flex: 0, ..good },
            Superblock { journal: 4000, ..good },
            Superblock { journal: 0, ..good },
            Superblock { first_orphan: 1 << 20, ..good },
        ];
        // Encoding asks nothing of the numbers.
        for bad in bad {
            assert!(Superblock::decode(&bad.encode()).is_err(), "{bad:?}");
        }
    }
}

//! What a block of metadata says that it is, for pictures and diagnoses. The file system finds nothing by it.

use super::{Bytes, get_u32, open};
use super::{checkpoint, directory, inode, map, summary, superblock, usage};

/// What a block says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// The superblock.
    Superblock,
    /// A block of the check-point of this version.
    Checkpoint {
        /// The version.
        version: u64,
        /// Its place in the check-point, from 0.
        part: u32,
    },
    /// The inode of this number.
    Inode(u32),
    /// The index block of this number.
    Index(u32),
    /// A block of a directory.
    Directory {
        /// Number of its inode.
        inode: u32,
        /// Which block of it.
        index: u32,
    },
    /// A block of the summary of this segment.
    Summary(u32),
    /// This block of the usage table.
    Usage(u32),
    /// This block of the inode map.
    Map(u32),
    /// It says nothing: a TIMB block, data of a file, or what fills up a write unit.
    Unsaid,
}

impl Identity {
    /// What `block` says that it is in the file system with the number `volume`. A block of another file system says nothing.
    pub fn of(block: &Bytes, volume: u64) -> Identity {
        let part = get_u32(block, 0) / map::ENTRIES as u32;
        if map::decode(block, part, u32::MAX).is_ok() {
            return Identity::Map(part);
        }
        let is_superblock = |magic| open(block, 0, magic, "superblock").is_ok();
        if is_superblock(superblock::MAGIC) || is_superblock(superblock::AREAS_MAGIC) {
            return Identity::Superblock;
        }
        let says = |magic| open(block, volume, magic, "block").ok();
        if let Some(header) = says(checkpoint::MAGIC) {
            return Identity::Checkpoint { version: header.version, part: header.a };
        }
        if let Some(header) = says(directory::MAGIC) {
            return Identity::Directory { inode: header.a, index: header.b };
        }
        let number = |magic| says(magic).map(|header| header.a);
        let inode = number(inode::INODE).map(Identity::Inode);
        let index = || number(inode::INDEX).map(Identity::Index);
        let summary = || number(summary::MAGIC).map(Identity::Summary);
        let usage = || number(usage::MAGIC).map(Identity::Usage);
        inode.or_else(index).or_else(summary).or_else(usage).unwrap_or(Identity::Unsaid)
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_base::Nanos;

    use super::super::{mend, zeroes};
    use super::*;
    use crate::call::FileKind;

    #[test]
    fn each_kind_of_block_is_told_and_only_in_its_own_file_system() {
        let volume = 77;
        let own = inode::Inode::new(5, 1, FileKind::File, 1, Nanos::ZERO);
        let checkpoint = checkpoint::Checkpoint { version: 9, table: vec![3; 2000], ..Default::default() };
        let mut names = zeroes();
        directory::seal_block(&mut names, volume, 1, 1, 4);
        let mut blocks = vec![
            (own.encode(volume, 0), Identity::Inode(5)),
            (inode::Index::new(6, 5, 1, 1, 920).encode(volume), Identity::Index(6)),
            (names, Identity::Directory { inode: 1, index: 4 }),
            (summary::encode(volume, 12, 0, &[], summary::Link::default()), Identity::Summary(12)),
            (usage::encode(volume, 3, &[]), Identity::Usage(3)),
        ];
        let parts = checkpoint.encode(volume).into_iter().enumerate();
        blocks.extend(parts.map(|(at, block)| (block, Identity::Checkpoint { version: 9, part: at as u32 })));
        for (block, expected) in &blocks {
            assert_eq!(Identity::of(block, volume), *expected);
            assert_eq!(Identity::of(block, volume + 1), Identity::Unsaid, "{expected:?}");
            let mut torn = block.clone();
            torn[4000] ^= 1;
            assert_eq!(Identity::of(&torn, volume), Identity::Unsaid, "{expected:?}");
            mend(&mut torn, volume);
            assert_eq!(Identity::of(&torn, volume), *expected);
        }
        // The inode map and its table have no header: entries of the map say their numbers.
        assert_eq!(Identity::of(&map::encode(2, &[0; map::ENTRIES]), volume), Identity::Map(2));
        assert_eq!(Identity::of(&map::encode_table(&[8, 9]), volume), Identity::Unsaid);
        assert_eq!(Identity::of(&zeroes(), volume), Identity::Unsaid);
    }
}

//! Inodes, 256 bytes each and 16 a block, with a checksum of their own. A free inode keeps its generation, so the next file of that number
//! has another.

use ssdlab_base::Nanos;

use super::sum32;
use crate::call::{FileKind, MOST_FILE_BYTES};
use crate::format::directory::MOST_LEVELS;
use crate::format::{Bad, get_u32, get_u64, put_u32, put_u64};

/// Bytes of an inode.
pub const SIZE: usize = 256;

/// Bytes in which an inode says where its blocks are: 15 addresses, or 4 extents.
pub const ROOT_BYTES: usize = 60;

const ROOT_AT: usize = 96;
const SUM: usize = SIZE - 4;

/// An inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub number: u32,
    /// Tells apart the inodes that have had the number.
    pub generation: u32,
    /// What it is.
    pub kind: FileKind,
    /// Number of the directory that a directory is in; its own for the root.
    pub parent: u32,
    /// Names; of a directory also its own and those of its directories.
    pub links: u32,
    /// Bytes.
    pub size: u64,
    /// Blocks of data.
    pub blocks: u64,
    /// Blocks that say where those are.
    pub index_blocks: u32,
    /// When its data changed last.
    pub modified: Nanos,
    /// When anything of it changed last.
    pub changed: Nanos,
    /// Levels of hash buckets that a directory has.
    pub depth: u8,
    /// Names in a directory.
    pub entries: u32,
    /// The next one in the list of orphans; 0 at its end.
    pub next_orphan: u32,
    /// Where its blocks are.
    pub root: [u8; ROOT_BYTES],
}

impl Inode {
    /// An empty one.
    pub fn new(number: u32, generation: u32, kind: FileKind, parent: u32, now: Nanos) -> Inode {
        Inode {
            number,
            generation,
            kind,
            parent,
            links: if kind == FileKind::Directory { 2 } else { 1 },
            size: 0,
            blocks: 0,
            index_blocks: 0,
            modified: now,
            changed: now,
            depth: 0,
            entries: 0,
            next_orphan: 0,
            root: [0; ROOT_BYTES],
        }
    }

    /// Writes it to its place in a block.
    pub fn encode(&self, volume: u64, bytes: &mut [u8]) {
        bytes[..SIZE].fill(0);
        bytes[0] = match self.kind {
            FileKind::File => 1,
            FileKind::Directory => 2,
        };
        bytes[1] = self.depth;
        let words =
            [self.generation, self.parent, self.links, self.entries, self.next_orphan, self.index_blocks, self.number];
        words.iter().enumerate().for_each(|(index, word)| put_u32(bytes, 4 + 4 * index, *word));
        let longs = [self.size, self.blocks, self.modified.0, self.changed.0];
        longs.iter().enumerate().for_each(|(index, long)| put_u64(bytes, 40 + 8 * index, *long));
        bytes[ROOT_AT..ROOT_AT + ROOT_BYTES].copy_from_slice(&self.root);
        seal(volume, self.number, bytes);
    }

    /// Reads inode `number` from its place in a block; `None` if it is free.
    ///
    /// # Errors
    /// Its checksum is another, or it says what cannot be.
    pub fn decode(volume: u64, number: u32, bytes: &[u8]) -> Result<Option<Inode>, Bad> {
        if bytes[..SIZE].iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if get_u32(bytes, SUM) != sum32(volume, number.into(), &bytes[..SUM]) {
            return Err(Bad::Checksum);
        }
        let kind = match bytes[0] {
            0 => return Ok(None),
            1 => FileKind::File,
            2 => FileKind::Directory,
            _ => return Err(Bad::Field("kind")),
        };
        let (word, long) =
            (|index: usize| get_u32(bytes, 4 + 4 * index), |index: usize| get_u64(bytes, 40 + 8 * index));
        let mut root = [0; ROOT_BYTES];
        root.copy_from_slice(&bytes[ROOT_AT..ROOT_AT + ROOT_BYTES]);
        let inode = Inode {
            number,
            generation: word(0),
            kind,
            parent: word(1),
            links: word(2),
            entries: word(3),
            next_orphan: word(4),
            index_blocks: word(5),
            size: long(0),
            blocks: long(1),
            modified: Nanos(long(2)),
            changed: Nanos(long(3)),
            depth: bytes[1],
            root,
        };
        if inode.size > MOST_FILE_BYTES {
            return Err(Bad::Field("size"));
        }
        if inode.depth > MOST_LEVELS {
            return Err(Bad::Field("number of levels"));
        }
        Ok(Some(inode))
    }

    /// Changes the size of the inode at its place in a block.
    pub(crate) fn set_size(volume: u64, number: u32, bytes: &mut [u8], size: u64) {
        put_u64(bytes, 40, size);
        seal(volume, number, bytes);
    }

    /// Changes what follows the inode at its place in a block in the list of orphans.
    pub(crate) fn set_next_orphan(volume: u64, number: u32, bytes: &mut [u8], next: u32) {
        put_u32(bytes, 20, next);
        seal(volume, number, bytes);
    }

    /// Frees the inode at its place in a block: the generation stays.
    pub(crate) fn clear(volume: u64, number: u32, bytes: &mut [u8]) {
        let generation = generation_at(bytes);
        bytes[..SIZE].fill(0);
        put_u32(bytes, 4, generation);
        seal(volume, number, bytes);
    }
}

/// The generation of the inode at a place, free or not.
pub(crate) fn generation_at(bytes: &[u8]) -> u32 {
    get_u32(bytes, 4)
}

/// Writes the checksum of the inode at its place in a block.
pub(crate) fn seal(volume: u64, number: u32, bytes: &mut [u8]) {
    let sum = sum32(volume, number.into(), &bytes[..SUM]);
    put_u32(bytes, SUM, sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_come_back_and_a_free_one_keeps_its_generation() {
        let mut inode = Inode::new(77, 5, FileKind::Directory, 3, Nanos(9));
        (inode.size, inode.blocks, inode.index_blocks, inode.entries) = (4096, 7, 1, 12);
        (inode.next_orphan, inode.depth) = (8, 3);
        inode.root[59] = 4;
        let mut bytes = [0; SIZE];
        assert_eq!(Inode::decode(1, 77, &bytes), Ok(None));
        inode.encode(1, &mut bytes);
        assert_eq!(Inode::decode(1, 77, &bytes), Ok(Some(inode)));
        assert_eq!(Inode::decode(2, 77, &bytes), Err(Bad::Checksum));
        assert_eq!(Inode::decode(1, 78, &bytes), Err(Bad::Checksum));
        Inode::set_size(1, 77, &mut bytes, 1 << 60);
        assert_eq!(Inode::decode(1, 77, &bytes), Err(Bad::Field("size")));
        Inode::clear(1, 77, &mut bytes);
        assert_eq!((Inode::decode(1, 77, &bytes), generation_at(&bytes)), (Ok(None), 5));
        for at in 0..SIZE {
            let mut torn = bytes;
            torn[at] ^= 1;
            assert_eq!(Inode::decode(1, 77, &torn), Err(Bad::Checksum), "byte {at}");
        }
    }
}

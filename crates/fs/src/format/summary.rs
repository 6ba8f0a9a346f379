//! The summary of a segment: for each block what it was written for, in the last blocks of the segment (F2FS has the same).

use super::{Bad, Bytes, HEADER, Header, expect, get_u32, open, put_u32, seal, zeroes};

pub(crate) const MAGIC: [u8; 4] = *b"SUMM";

/// Entries of a block.
pub const ENTRIES: usize = (super::BLOCK - HEADER) / 8;

/// Entries of a block of a summary that has an area of its own. Such a block has entries alone: where a segment is written again in part, a
/// cut may leave some sectors of its summary as they were before, and those say the same of every block that the check-point needs.
pub const PLAIN_ENTRIES: usize = super::BLOCK / 8;

/// What a block of a log was written for. Whether it is still valid, only the block's owner says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Fills up a write unit.
    Nothing,
    /// A block of a file or directory.
    Data {
        /// Number of its inode.
        inode: u32,
        /// Which block of it.
        index: u32,
    },
    /// An inode or an index block.
    Node(u32),
}

impl Owner {
    /// Its two numbers.
    pub const fn encode(self) -> (u32, u32) {
        match self {
            Owner::Nothing => (0, 0),
            Owner::Data { inode, index } => (inode, index),
            Owner::Node(number) => (number, u32::MAX),
        }
    }

    /// The reverse.
    pub const fn decode(numbers: (u32, u32)) -> Owner {
        match numbers {
            (0, _) => Owner::Nothing,
            (number, u32::MAX) => Owner::Node(number),
            (inode, index) => Owner::Data { inode, index },
        }
    }
}

/// Where a log goes on behind a segment, for who follows it from a check-point on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The segment; 0 for none.
    pub next: u32,
    /// The version of the newest check-point then.
    pub version: u64,
}

/// One block of the summary of a segment: number `part`, with the entries that are its.
pub fn encode(volume: u64, segment: u32, part: u32, entries: &[Owner], link: Link) -> Box<Bytes> {
    let mut block = zeroes();
    for (index, owner) in entries.iter().take(ENTRIES).enumerate() {
        let (first, second) = owner.encode();
        put_u32(&mut *block, HEADER + 8 * index, first);
        put_u32(&mut *block, HEADER + 8 * index + 4, second);
    }
    seal(&mut block, volume, MAGIC, Header { a: segment, b: part, generation: link.next, version: link.version });
    block
}

/// The entries of a block of the summary.
///
/// # Errors
/// It is another.
pub fn decode(block: &Bytes, volume: u64, segment: u32, part: u32) -> Result<Vec<Owner>, Bad> {
    let header = open(block, volume, MAGIC, "summary")?;
    expect("segment", header.a, segment)?;
    expect("part", header.b, part)?;
    let at = |index: usize| HEADER + 8 * index;
    let owner = |index| Owner::decode((get_u32(block, at(index)), get_u32(block, at(index) + 4)));
    Ok((0..ENTRIES).map(owner).collect())
}

/// One block of a summary that has an area of its own, with the entries that are its.
pub fn encode_plain(entries: &[Owner]) -> Box<Bytes> {
    let mut block = zeroes();
    for (index, owner) in entries.iter().take(PLAIN_ENTRIES).enumerate() {
        let (first, second) = owner.encode();
        put_u32(&mut *block, 8 * index, first);
        put_u32(&mut *block, 8 * index + 4, second);
    }
    block
}

/// The entries of a block of a summary that has an area of its own.
pub fn decode_plain(block: &Bytes) -> Vec<Owner> {
    let owner = |index: usize| Owner::decode((get_u32(block, 8 * index), get_u32(block, 8 * index + 4)));
    (0..PLAIN_ENTRIES).map(owner).collect()
}

/// Where the log goes on behind a segment, as a block of its summary says.
///
/// # Errors
/// It is another.
pub fn link(block: &Bytes, volume: u64, segment: u32) -> Result<Link, Bad> {
    let header = open(block, volume, MAGIC, "summary")?;
    expect("segment", header.a, segment)?;
    Ok(Link { next: header.generation, version: header.version })
}

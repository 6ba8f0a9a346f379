//! The usage table: how many blocks of each segment are valid, and what the segment is for. Its blocks are logged beside the inode map.

use super::{Bad, Bytes, HEADER, Header, expect, get_u32, get_u64, open, put_u32, put_u64, seal, zeroes};

pub(crate) const MAGIC: [u8; 4] = *b"USAG";

/// Entries of a block.
pub const ENTRIES: usize = (super::BLOCK - HEADER) / 16;

/// What a check-point says of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentUse {
    /// It holds nothing that the check-point needs.
    #[default]
    Free,
    /// It is fixed: superblock and check-points.
    Fixed,
    /// The log of this number writes it.
    Open(u8),
    /// It is full or left, and its summary is at its end. The log of this number wrote it.
    Sealed(u8),
    /// It is left, and check-points have its summary. The log of this number wrote it.
    Loose(u8),
}

/// An entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// What it is for.
    pub segment_use: SegmentUse,
    /// Valid blocks of data and nodes; 0 for segments of the inode map, whose table says it.
    pub valid: u32,
    /// When it was opened or written last, in blocks that all logs had written.
    pub age: u64,
}

/// The highest number of a log: that of the inode map.
pub const MAP_LOG: u8 = 6;

/// One block of the table: number `part`.
pub fn encode(volume: u64, part: u32, entries: &[Usage]) -> Box<Bytes> {
    let mut block = zeroes();
    for (index, usage) in entries.iter().take(ENTRIES).enumerate() {
        let at = HEADER + 16 * index;
        let (state, log) = match usage.segment_use {
            SegmentUse::Free => (0, 0),
            SegmentUse::Fixed => (1, 0),
            SegmentUse::Open(log) => (2, log),
            SegmentUse::Sealed(log) => (3, log),
            SegmentUse::Loose(log) => (4, log),
        };
        put_u32(&mut *block, at, usage.valid);
        (block[at + 4], block[at + 5]) = (state, log);
        put_u64(&mut *block, at + 8, usage.age);
    }
    seal(&mut block, volume, MAGIC, Header { a: part, ..Header::default() });
    block
}

/// The entries of a block of the table.
///
/// # Errors
/// It is another, or says what cannot be.
pub fn decode(block: &Bytes, volume: u64, part: u32, segment_blocks: u32) -> Result<Vec<Usage>, Bad> {
    let header = open(block, volume, MAGIC, "block of the usage table")?;
    expect("part", header.a, part)?;
    let entry = |index: usize| {
        let at = HEADER + 16 * index;
        let log = block[at + 5];
        let segment_use = match block[at + 4] {
            0 => SegmentUse::Free,
            1 => SegmentUse::Fixed,
            2 => SegmentUse::Open(log),
            3 => SegmentUse::Sealed(log),
            4 => SegmentUse::Loose(log),
            _ => return Err(Bad::Field("state of a segment")),
        };
        let valid = get_u32(block, at);
        if log > MAP_LOG {
            return Err(Bad::Field("log of a segment"));
        }
        if valid > segment_blocks || (segment_use == SegmentUse::Free && valid > 0) {
            return Err(Bad::Field("number of valid blocks"));
        }
        Ok(Usage { segment_use, valid, age: get_u64(block, at + 8) })
    };
    (0..ENTRIES).map(entry).collect()
}

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

/// Bytes of an entry without bits.
pub(crate) const ENTRY: usize = 16;

impl Usage {
    /// Writes the entry.
    pub(crate) fn put(&self, bytes: &mut [u8], at: usize) {
        let (state, log) = match self.segment_use {
            SegmentUse::Free => (0, 0),
            SegmentUse::Fixed => (1, 0),
            SegmentUse::Open(log) => (2, log),
            SegmentUse::Sealed(log) => (3, log),
            SegmentUse::Loose(log) => (4, log),
        };
        put_u32(bytes, at, self.valid);
        (bytes[at + 4], bytes[at + 5]) = (state, log);
        put_u64(bytes, at + 8, self.age);
    }

    /// Reads the entry.
    pub(crate) fn get(bytes: &[u8], at: usize, segment_blocks: u32) -> Result<Usage, Bad> {
        let log = bytes[at + 5];
        let segment_use = match bytes[at + 4] {
            0 => SegmentUse::Free,
            1 => SegmentUse::Fixed,
            2 => SegmentUse::Open(log),
            3 => SegmentUse::Sealed(log),
            4 => SegmentUse::Loose(log),
            _ => return Err(Bad::Field("state of a segment")),
        };
        let valid = get_u32(bytes, at);
        if log > MAP_LOG {
            return Err(Bad::Field("log of a segment"));
        }
        if valid > segment_blocks || (segment_use == SegmentUse::Free && valid > 0) {
            return Err(Bad::Field("number of valid blocks"));
        }
        Ok(Usage { segment_use, valid, age: get_u64(bytes, at + 8) })
    }
}

/// One block of the table: number `part`.
pub fn encode(volume: u64, part: u32, entries: &[Usage]) -> Box<Bytes> {
    let mut block = zeroes();
    entries.iter().take(ENTRIES).enumerate().for_each(|(index, usage)| usage.put(&mut *block, HEADER + ENTRY * index));
    seal(&mut block, volume, MAGIC, Header { a: part, ..Header::default() });
    block
}

/// Words of the bits of a segment.
pub const fn words_of(segment_blocks: u32) -> usize {
    segment_blocks.div_ceil(64) as usize
}

/// Entries of a block of the table where each entry has a bit for each block of its segment (F2FS's SIT); 0 where none fits.
pub const fn entries_with_bits(segment_blocks: u32) -> u32 {
    ((super::BLOCK - HEADER) / (ENTRY + 8 * words_of(segment_blocks))) as u32
}

/// An entry with a bit for each block of the segment that is valid, the lowest bit of the first word for the first block.
pub type WithBits = (Usage, Vec<u64>);

/// Writes an entry with its bits.
pub(crate) fn put_with_bits(bytes: &mut [u8], at: usize, (usage, bits): &WithBits) {
    usage.put(bytes, at);
    bits.iter().enumerate().for_each(|(index, word)| put_u64(bytes, at + ENTRY + 8 * index, *word));
}

/// Reads an entry with its bits: they agree with its count.
pub(crate) fn get_with_bits(bytes: &[u8], at: usize, segment_blocks: u32) -> Result<WithBits, Bad> {
    let usage = Usage::get(bytes, at, segment_blocks)?;
    let bits: Vec<u64> = (0..words_of(segment_blocks)).map(|index| get_u64(bytes, at + ENTRY + 8 * index)).collect();
    let beyond = segment_blocks % 64;
    let is_within = beyond == 0 || bits.last().is_none_or(|last| last >> beyond == 0);
    let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
    if count != usage.valid || !is_within {
        return Err(Bad::Field("bits of valid blocks"));
    }
    Ok((usage, bits))
}

/// One block of the table with bits: number `part`.
pub fn encode_with_bits(volume: u64, part: u32, segment_blocks: u32, entries: &[WithBits]) -> Box<Bytes> {
    let (mut block, bytes) = (zeroes(), ENTRY + 8 * words_of(segment_blocks));
    let fitting = entries.iter().take(entries_with_bits(segment_blocks) as usize);
    fitting.enumerate().for_each(|(index, entry)| put_with_bits(&mut *block, HEADER + bytes * index, entry));
    seal(&mut block, volume, MAGIC, Header { a: part, ..Header::default() });
    block
}

/// The entries of a block of the table with bits.
///
/// # Errors
/// It is another, or says what cannot be.
pub fn decode_with_bits(block: &Bytes, volume: u64, part: u32, segment_blocks: u32) -> Result<Vec<WithBits>, Bad> {
    let header = open(block, volume, MAGIC, "block of the usage table")?;
    expect("part", header.a, part)?;
    let bytes = ENTRY + 8 * words_of(segment_blocks);
    let entries = 0..entries_with_bits(segment_blocks) as usize;
    entries.map(|index| get_with_bits(&block[..], HEADER + bytes * index, segment_blocks)).collect()
}

/// The entries of a block of the table.
///
/// # Errors
/// It is another, or says what cannot be.
pub fn decode(block: &Bytes, volume: u64, part: u32, segment_blocks: u32) -> Result<Vec<Usage>, Bad> {
    let header = open(block, volume, MAGIC, "block of the usage table")?;
    expect("part", header.a, part)?;
    (0..ENTRIES).map(|index| Usage::get(&block[..], HEADER + ENTRY * index, segment_blocks)).collect()
}

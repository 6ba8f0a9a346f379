//! A check-point (AMF, section 3.2): everything that is needed to find all else. It takes one block, or several that follow each other.
//!
//! Each block has the version of the check-point, its place in it and the number of blocks; the contents have a checksum over all. So
//! a check-point of several blocks is there as a whole, or not at all.

use super::summary::Owner;
use super::usage::{self, ENTRY, WithBits};
use super::{BLOCK, Bad, Bytes, HEADER, Header, get_u32, get_u64, hash, open, put_u64, seal, zeroes};

pub(crate) const MAGIC: [u8; 4] = *b"CHPT";
const ROOM: usize = BLOCK - HEADER;

/// Logs that there can be: six for data and nodes, and that of the inode map.
pub const LOGS: usize = 7;

/// Most blocks of a check-point that is read.
pub const MOST_BLOCKS: u32 = 1 << 16;

/// Where a log goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The segment; 0 if the log has none.
    pub segment: u32,
    /// The next block of it.
    pub next: u32,
}

/// A part of the summary of a segment that is not at the segment's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The segment.
    pub segment: u32,
    /// The block of it that the first entry is for.
    pub first: u32,
    /// What the blocks were written for.
    pub owners: Vec<Owner>,
}

/// What a check-point says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its version.
    pub version: u64,
    /// Nothing was written after it: the file system was unmounted.
    pub is_clean: bool,
    /// Its parts of summaries are all that there are; else they follow those of the check-points before it in its segment.
    pub is_first: bool,
    /// The generation of the next inode.
    pub next_generation: u32,
    /// Nodes that there are.
    pub nodes_used: u32,
    /// Blocks of the inode map before this one are full.
    pub first_free: u32,
    /// Blocks that all logs have written.
    pub clock: u64,
    /// Virtual time.
    pub time: u64,
    /// Where each log goes on.
    pub logs: [Position; LOGS],
    /// Addresses of TIMB blocks; where the map is overwritten, which place of each of its blocks is the newest ([`pack_places`]).
    pub table: Vec<u32>,
    /// Addresses of the blocks of the usage table; where that is overwritten, which place of each is the newest ([`pack_places`]).
    pub usage: Vec<u32>,
    /// Inodes without a name, and those that are being truncated.
    pub orphans: Vec<u32>,
    /// Parts of summaries.
    pub parts: Vec<Part>,
    /// Entries that the map and the usage table do not have yet, where these are overwritten.
    pub journal: Option<Journal>,
}

/// Entries that are newer than those of the tables (F2FS's journals of NAT and SIT).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// Nodes with their addresses; 0 for one that is not there.
    pub nodes: Vec<(u32, u32)>,
    /// Segments with their entries.
    pub usage: Vec<(u32, WithBits)>,
}

/// Places of a word: 0 for a block that was never written, 1 and 2.
const PLACES: usize = 16;

/// Which place of each block has its newest version, as a check-point says it: 16 blocks a word, 2 bits each.
pub fn pack_places(places: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| (0..).zip(chunk).fold(0, |word, (index, place)| word | u32::from(*place) << (2 * index));
    places.chunks(PLACES).map(word).collect()
}

/// The reverse, for so many blocks.
///
/// # Errors
/// There are more or fewer words, or a place that is none.
pub fn unpack_places(words: &[u32], count: u32) -> Result<Vec<u8>, Bad> {
    if words.len() != (count as usize).div_ceil(PLACES) {
        return Err(Bad::Field("length"));
    }
    let place = |index: usize| (words[index / PLACES] >> (2 * (index % PLACES)) & 3) as u8;
    let places: Vec<u8> = (0..count as usize).map(place).collect();
    if places.contains(&3) { Err(Bad::Field("place of a block")) } else { Ok(places) }
}

impl Checkpoint {
    /// The blocks.
    pub fn encode(&self, volume: u64) -> Vec<Box<Bytes>> {
        let mut bytes = vec![0; 8];
        let mut word = |value: u32| bytes.extend_from_slice(&value.to_le_bytes());
        word(u32::from(self.is_clean) | u32::from(self.is_first) << 1 | u32::from(self.journal.is_some()) << 2);
        word(self.next_generation);
        word(self.nodes_used);
        word(self.first_free);
        for long in [self.clock, self.time] {
            word(long as u32);
            word((long >> 32) as u32);
        }
        for log in &self.logs {
            word(log.segment);
            word(log.next);
        }
        for list in [&self.table, &self.usage, &self.orphans] {
            word(list.len() as u32);
            list.iter().for_each(|value| word(*value));
        }
        word(self.parts.len() as u32);
        for part in &self.parts {
            word(part.segment);
            word(part.first);
            word(part.owners.len() as u32);
            for owner in &part.owners {
                let (first, second) = owner.encode();
                word(first);
                word(second);
            }
        }
        if let Some(journal) = &self.journal {
            journal.encode(&mut bytes);
        }
        let checksum = hash(volume ^ self.version, &bytes[8..]);
        put_u64(&mut bytes, 0, checksum);
        let count = bytes.len().div_ceil(ROOM) as u32;
        let chunk = |(index, chunk): (usize, &[u8])| {
            let mut block = zeroes();
            block[HEADER..HEADER + chunk.len()].copy_from_slice(chunk);
            let header = Header { a: index as u32, b: count, generation: bytes.len() as u32, version: self.version };
            seal(&mut block, volume, MAGIC, header);
            block
        };
        bytes.chunks(ROOM).enumerate().map(chunk).collect()
    }

    /// What the first block of a check-point says: its version, and how many blocks it has.
    ///
    /// # Errors
    /// It is not the first block of one.
    pub fn begins(block: &Bytes, volume: u64) -> Result<(u64, u32), Bad> {
        let header = open(block, volume, MAGIC, "check-point")?;
        if header.a != 0 || header.b == 0 || header.b > MOST_BLOCKS {
            return Err(Bad::Field("number of blocks"));
        }
        Ok((header.version, header.b))
    }

    /// The version that any block of a check-point says.
    pub fn version_of(block: &Bytes, volume: u64) -> Option<u64> {
        open(block, volume, MAGIC, "check-point").ok().map(|header| header.version)
    }

    /// Reads all blocks of a check-point.
    ///
    /// # Errors
    /// One is not whole or belongs to another check-point, or they say what cannot be.
    pub fn decode(blocks: &[&Bytes], volume: u64) -> Result<Checkpoint, Bad> {
        let (mut bytes, mut first) = (Vec::new(), None);
        for (index, block) in blocks.iter().enumerate() {
            let header = open(block, volume, MAGIC, "check-point")?;
            let first = *first.get_or_insert(header);
            let expected = Header { a: index as u32, ..first };
            if header != expected || header.b as usize != blocks.len() {
                return Err(Bad::Field("place in the check-point"));
            }
            bytes.extend_from_slice(&block[HEADER..]);
        }
        let first = first.ok_or(Bad::Short)?;
        let length = first.generation as usize;
        if length < 8 || length > bytes.len() {
            return Err(Bad::Field("length"));
        }
        bytes.truncate(length);
        if get_u64(&bytes, 0) != hash(volume ^ first.version, &bytes[8..]) {
            return Err(Bad::Checksum);
        }
        read(Words { bytes: &bytes, at: 8 }, first.version)
    }
}

impl Journal {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let mut word = |value: u32| bytes.extend_from_slice(&value.to_le_bytes());
        word(self.nodes.len() as u32);
        for (number, address) in &self.nodes {
            word(*number);
            word(*address);
        }
        word(self.usage.len() as u32);
        let words = self.usage.first().map_or(0, |(_, (_, bits))| bits.len());
        word(words as u32);
        for (segment, entry) in &self.usage {
            bytes.extend_from_slice(&segment.to_le_bytes());
            let at = bytes.len();
            bytes.resize(at + ENTRY + 8 * words, 0);
            usage::put_with_bits(bytes, at, entry);
        }
    }

    fn read(words: &mut Words<'_>) -> Result<Journal, Bad> {
        let mut journal = Journal::default();
        for _ in 0..words.count(8)? {
            journal.nodes.push((words.next()?, words.next()?));
        }
        let (count, bits) = (words.count(4 + ENTRY)?, words.next()? as usize);
        if bits > BLOCK / 8 {
            return Err(Bad::Field("bits of a segment"));
        }
        let bytes = ENTRY + 8 * bits;
        for _ in 0..count {
            let segment = words.next()?;
            let entry = words.bytes.get(words.at..words.at + bytes).ok_or(Bad::Short)?;
            words.at += bytes;
            journal.usage.push((segment, usage::get_with_bits(entry, 0, bits as u32 * 64)?));
        }
        Ok(journal)
    }
}

struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<u32, Bad> {
        if self.at + 4 > self.bytes.len() {
            return Err(Bad::Short);
        }
        self.at += 4;
        Ok(get_u32(self.bytes, self.at - 4))
    }

    fn long(&mut self) -> Result<u64, Bad> {
        Ok(u64::from(self.next()?) | u64::from(self.next()?) << 32)
    }

    /// A count of things of so many bytes each; the bytes that are left hold them all.
    fn count(&mut self, bytes: usize) -> Result<usize, Bad> {
        let count = self.next()? as usize;
        if count.saturating_mul(bytes) > self.bytes.len() - self.at { Err(Bad::Short) } else { Ok(count) }
    }

    fn list(&mut self) -> Result<Vec<u32>, Bad> {
        let count = self.count(4)?;
        (0..count).map(|_| self.next()).collect()
    }
}

fn read(mut words: Words<'_>, version: u64) -> Result<Checkpoint, Bad> {
    let flags = words.next()?;
    let mut checkpoint = Checkpoint {
        version,
        is_clean: flags & 1 != 0,
        is_first: flags & 2 != 0,
        next_generation: words.next()?,
        nodes_used: words.next()?,
        first_free: words.next()?,
        clock: words.long()?,
        time: words.long()?,
        ..Checkpoint::default()
    };
    for log in &mut checkpoint.logs {
        *log = Position { segment: words.next()?, next: words.next()? };
    }
    checkpoint.table = words.list()?;
    checkpoint.usage = words.list()?;
    checkpoint.orphans = words.list()?;
    for _ in 0..words.count(12)? {
        let (segment, first) = (words.next()?, words.next()?);
        let count = words.count(8)?;
        let mut owners = Vec::with_capacity(count);
        for _ in 0..count {
            owners.push(Owner::decode((words.next()?, words.next()?)));
        }
        checkpoint.parts.push(Part { segment, first, owners });
    }
    if flags & 4 != 0 {
        checkpoint.journal = Some(Journal::read(&mut words)?);
    }
    Ok(checkpoint)
}

/// Sets the version of one block, for tests of what is refused.
pub fn set_version(block: &mut Bytes, volume: u64, version: u64) {
    put_u64(block, 24, version);
    super::mend(block, volume);
}

#[cfg(test)]
mod tests {
    use super::super::usage::{SegmentUse, Usage};
    use super::*;

    #[test]
    fn places_are_packed_sixteen_to_a_word_and_come_back() {
        for count in [0, 1, 15, 16, 17, 100] {
            let places: Vec<u8> = (0..count).map(|index| (index % 3) as u8).collect();
            let words = pack_places(&places);
            assert_eq!(words.len(), (count as usize).div_ceil(16));
            assert_eq!(unpack_places(&words, count), Ok(places));
            assert_eq!(unpack_places(&words, count + 16), Err(Bad::Field("length")));
        }
        assert_eq!(unpack_places(&[3], 1), Err(Bad::Field("place of a block")));
    }

    /// Journals of full size beside parts of six segments take several blocks, which are read as one, or not at all.
    #[test]
    fn a_check_point_with_journals_comes_back() {
        let volume = 77;
        let usage = Usage { segment_use: SegmentUse::Sealed(3), valid: 65, age: 9 };
        let bits = vec![u64::MAX, 1, 0, 0, 0, 0, 0, 0];
        let journal = Journal {
            nodes: (1..=38).map(|node| (node, node * 7)).collect(),
            usage: (100..106).map(|segment| (segment, (usage, bits.clone()))).collect(),
        };
        let parts = (0..6).map(|segment| Part { segment, first: 0, owners: vec![Owner::Node(5); 400] });
        let checkpoint = Checkpoint {
            version: 12,
            is_first: true,
            table: pack_places(&[1, 2, 0]),
            usage: pack_places(&[2]),
            parts: parts.collect(),
            journal: Some(journal),
            ..Checkpoint::default()
        };
        let blocks = checkpoint.encode(volume);
        assert_eq!(blocks.len(), 5);
        let all: Vec<&Bytes> = blocks.iter().map(|block| &**block).collect();
        assert_eq!(Checkpoint::decode(&all, volume), Ok(checkpoint.clone()));
        assert!(Checkpoint::decode(&all[..4], volume).is_err());
        let empty = Checkpoint { journal: Some(Journal::default()), parts: Vec::new(), ..checkpoint };
        let blocks = empty.encode(volume);
        assert_eq!(Checkpoint::decode(&[&blocks[0]], volume), Ok(empty));
    }
}

//! Blocks of the journal. A transaction is written as one run of them:
//!
//! ```text
//!   | descriptor | blocks as they are after it | descriptor ... | revoke | commit |
//! ```
//!
//! A descriptor says where the blocks behind it belong. A revoke block lists freed blocks of metadata: what transactions up to this one have
//! of them is not replayed. The commit has a checksum of all blocks of the transaction before it, so one that is not all there is none.
//! Each block says the epoch of the log, which begins anew with a mount: blocks that an earlier one left are not taken for this one's.

use crate::format::{Bad, Bytes, HEADER, Header, get_u32, get_u64, hash, open, put_u32, put_u64, seal, zeroes};

const SUPERBLOCK: [u8; 4] = *b"JRNS";
const DESCRIPTOR: [u8; 4] = *b"JRND";
const REVOKE: [u8; 4] = *b"JRNR";
const COMMIT: [u8; 4] = *b"JRNC";

/// Blocks that a descriptor places: tags have 8 bytes.
pub const TAGS: usize = (crate::format::BLOCK - HEADER) / 8;

/// Blocks that a revoke block lists.
pub const REVOKES: usize = (crate::format::BLOCK - HEADER) / 4;

/// Where the log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The first block of the oldest transaction that is needed; 0 if none is.
    pub start: u32,
    /// Number of that transaction, or of the next one.
    pub sequence: u64,
    /// Of the log from here on.
    pub epoch: u32,
}

impl Tail {
    /// The superblock of the journal. What can change lies in its first sector.
    pub fn encode(&self, volume: u64) -> Box<Bytes> {
        let mut block = zeroes();
        seal(
            &mut block,
            volume,
            SUPERBLOCK,
            Header { a: self.epoch, b: self.start, generation: 0, version: self.sequence },
        );
        block
    }

    /// Reads the superblock of a journal of so many blocks.
    ///
    /// # Errors
    /// It is none, or says what cannot be.
    pub fn decode(block: &Bytes, volume: u64, blocks: u32) -> Result<Tail, Bad> {
        let header = open(block, volume, SUPERBLOCK, "superblock of the journal")?;
        if header.b >= blocks {
            return Err(Bad::Field("beginning of the log"));
        }
        Ok(Tail { start: header.b, sequence: header.version, epoch: header.a })
    }
}

/// A block of a transaction that says what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Where the blocks behind it belong.
    Descriptor(Vec<u32>),
    /// Blocks that are not replayed.
    Revoke(Vec<u32>),
    /// The end, with the checksum of what came before.
    Commit(u64),
}

/// The log and the transaction that a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    /// Number of the volume.
    pub volume: u64,
    /// Epoch of the log.
    pub epoch: u32,
    /// Number of the transaction.
    pub sequence: u64,
}

impl Record {
    /// The block.
    pub fn encode(&self, of: Of) -> Box<Bytes> {
        let mut block = zeroes();
        let (magic, count) = match self {
            Record::Descriptor(places) => {
                places.iter().enumerate().for_each(|(index, place)| put_u32(&mut *block, HEADER + 8 * index, *place));
                (DESCRIPTOR, places.len())
            }
            Record::Revoke(places) => {
                places.iter().enumerate().for_each(|(index, place)| put_u32(&mut *block, HEADER + 4 * index, *place));
                (REVOKE, places.len())
            }
            Record::Commit(sum) => {
                put_u64(&mut *block, HEADER, *sum);
                (COMMIT, 0)
            }
        };
        let header = Header { a: of.epoch, b: count as u32, generation: 0, version: of.sequence };
        seal(&mut block, of.volume, magic, header);
        block
    }

    /// Reads a block of a transaction.
    ///
    /// # Errors
    /// It is none of this transaction.
    pub fn decode(block: &Bytes, of: Of) -> Result<Record, Bad> {
        let (magic, width, most) = match &block[8..12] {
            magic if magic == DESCRIPTOR => (DESCRIPTOR, 8, TAGS),
            magic if magic == REVOKE => (REVOKE, 4, REVOKES),
            _ => (COMMIT, 8, 0),
        };
        let header = open(block, of.volume, magic, "block of a transaction")?;
        crate::format::expect("epoch", header.a, of.epoch)?;
        crate::format::expect("number of its transaction", header.version, of.sequence)?;
        let count = header.b as usize;
        if count > most {
            return Err(Bad::Field("count"));
        }
        let places = (0..count).map(|index| get_u32(block, HEADER + width * index)).collect();
        Ok(match magic {
            DESCRIPTOR => Record::Descriptor(places),
            REVOKE => Record::Revoke(places),
            _ => Record::Commit(get_u64(block, HEADER)),
        })
    }
}

/// Checksum of the blocks of a transaction, in their order.
pub struct Sum(u64);

impl Sum {
    /// Of none.
    pub const fn new(volume: u64) -> Sum {
        Sum(volume)
    }

    /// Adds a block.
    pub fn add(&mut self, block: &Bytes) {
        self.0 = hash(self.0, block);
    }

    /// The checksum.
    pub const fn end(self) -> u64 {
        self.0
    }
}

/// Blocks that a transaction takes in the log, which has so many blocks of metadata and revokes so many.
pub const fn blocks_of(metadata: usize, revokes: usize) -> u32 {
    (metadata + metadata.div_ceil(TAGS) + revokes.div_ceil(REVOKES) + 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_those_of_another_transaction_do_not() {
        let of = Of { volume: 4, epoch: 7, sequence: 99 };
        let places: Vec<u32> = (5..5 + TAGS as u32).collect();
        let all = [Record::Descriptor(places), Record::Revoke((1..=REVOKES as u32).collect()), Record::Commit(123)];
        for record in all {
            let block = record.encode(of);
            assert_eq!(Record::decode(&block, of), Ok(record));
            for other in [Of { volume: 5, ..of }, Of { epoch: 6, ..of }, Of { sequence: 98, ..of }] {
                assert!(Record::decode(&block, other).is_err());
            }
            let mut torn = block.clone();
            torn[4095] ^= 1;
            assert!(Record::decode(&torn, of).is_err());
        }
        let tail = Tail { start: 9, sequence: 1 << 40, epoch: 3 };
        assert_eq!(Tail::decode(&tail.encode(8), 8, 10), Ok(tail));
        assert!(Tail::decode(&tail.encode(8), 8, 9).is_err());
        assert_eq!((blocks_of(1, 0), blocks_of(TAGS + 1, 1)), (3, TAGS as u32 + 5));
    }
}

//! The set `shrd`: a host writes small requests one behind the other into a log behind the drive's capacity, and gives them their
//! own addresses back later (SHRD, sections 4.2 to 4.5).
//!
//! The log is the *random-write log buffer* (RWLB). Its unit number n is the *tLPN* n, and its sectors are those from
//! `capacity + n * sectors of a unit` on; an *oLPN* is a unit of the host's own.
//!
//! A command travels as the paper sends it: an ordinary write, which SATA queues, to an address behind the log, with a block of
//! 4 KB that says what is asked. The block is the words of the command, in every contents mode. The same commands exist as
//! *vendor commands*, for which SATA empties its queue first. Data goes to the log, and is read from it, by
//! [`TWRITE_DATA`] and [`READ_LOG`].
//!
//! The block of 4 KB, in little-endian numbers:
//!
//! | command | bytes 0 to 7 | from byte 8 on |
//! | --- | --- | --- |
//! | twrite-header | first tLPN (4 bytes), number of units (4 bytes) | an oLPN (4 bytes) a unit |
//! | remap | number of entries (8 bytes) | tLPN (4 bytes), oLPN (4 bytes) an entry, by oLPN |
//! | trim-log | number of runs (8 bytes) | first tLPN (4 bytes), number of units (4 bytes) a run |
//!
//! What is behind that is 0.

use thiserror::Error;

use crate::Op;
use crate::command_set::{AddressSpace, CommandSet, CommandSpec, DataPhase, Merging, Opcode, Refusal, Role, Words};

/// Bytes of the block that says what is asked (section 4.2).
pub const BLOCK_BYTES: usize = 4096;
/// Words of 64 bits of the block that says what is asked.
pub const BLOCK_WORDS: usize = BLOCK_BYTES / 8;
/// Most units of a twrite: 512 KB in units of 4 KB (section 4.2).
pub const MOST_UNITS: u32 = 128;
/// Most entries of a remap, and most runs of a trim (section 4.4).
pub const MOST_ENTRIES: usize = BLOCK_WORDS - 1;

/// Says which units the next [`TWRITE_DATA`] from a tLPN on brings.
pub const TWRITE_HEADER: Opcode = Opcode(1);
/// Writes units to the log.
pub const TWRITE_DATA: Opcode = Opcode(2);
/// Reads from the log.
pub const READ_LOG: Opcode = Opcode(3);
/// Moves entries of the map from tLPNs to oLPNs.
pub const REMAP: Opcode = Opcode(4);
/// Says that tLPNs are not needed any more.
pub const TRIM_LOG: Opcode = Opcode(5);
/// Gives all that is in the log its own addresses back: of a host that lost its table.
pub const RESTORE: Opcode = Opcode(6);
/// [`TWRITE_HEADER`] as a vendor command: says which units the next [`TWRITE_DATA`] from a tLPN on brings.
pub const VENDOR_TWRITE_HEADER: Opcode = Opcode(7);
/// [`REMAP`] as a vendor command: moves entries of the map from tLPNs to oLPNs.
pub const VENDOR_REMAP: Opcode = Opcode(8);
/// [`TRIM_LOG`] as a vendor command: says that tLPNs are not needed any more.
pub const VENDOR_TRIM_LOG: Opcode = Opcode(9);

/// The block's numbers cannot be: none or too many units or entries, or bytes behind them that are not 0.
pub const BAD_BLOCK: Refusal = Refusal(0);
/// A tLPN is behind the log's end.
pub const BEHIND_LOG: Refusal = Refusal(1);
/// An oLPN is behind the drive's capacity.
pub const BEHIND_CAPACITY: Refusal = Refusal(2);
/// A tLPN or an oLPN is named twice.
pub const NAMED_TWICE: Refusal = Refusal(3);
/// Data comes without a header of the same tLPN and length.
pub const NO_HEADER: Refusal = Refusal(4);
/// A tLPN that is to be moved holds nothing.
pub const HOLDS_NOTHING: Refusal = Refusal(5);
/// A tLPN is to be moved to another oLPN than its header said.
pub const ANOTHER_OLPN: Refusal = Refusal(6);
/// A range of the log is not of whole units.
pub const PART_OF_A_UNIT: Refusal = Refusal(7);
/// The log's blocks are full, and none of them can become a data block: tLPNs were not written in turn.
pub const NO_ROOM: Refusal = Refusal(8);

const fn command(opcode: Opcode, name: &'static str, summary: &'static str) -> CommandSpec {
    CommandSpec {
        opcode,
        name,
        summary,
        carrier: Op::Write,
        address: AddressSpace::Nothing,
        merging: Merging::Never,
        words_in: Words::Exactly(BLOCK_WORDS as u16),
        words_out: Words::NONE,
        data: DataPhase::Nothing,
        role: Role::Design,
    }
}

/// The set.
pub static SHRD: CommandSet = CommandSet {
    name: "shrd",
    summary: "small writes go to a log beyond the capacity, and later get their own addresses",
    commands: &[
        command(TWRITE_HEADER, "twrite-header", "announces the oLPNs of the next twrite-data that starts at a tLPN"),
        CommandSpec {
            address: AddressSpace::Reserved,
            words_in: Words::NONE,
            data: DataPhase::Range,
            ..command(TWRITE_DATA, "twrite-data", "writes units to the log; their oLPNs are those of the header")
        },
        CommandSpec {
            carrier: Op::Read,
            address: AddressSpace::Reserved,
            words_in: Words::NONE,
            data: DataPhase::Range,
            ..command(READ_LOG, "read-log", "reads sectors of the log")
        },
        CommandSpec {
            address: AddressSpace::Everything,
            ..command(REMAP, "remap", "moves entries of the map from tLPNs to oLPNs")
        },
        command(TRIM_LOG, "trim-log", "tells the drive that runs of tLPNs are no longer needed"),
        CommandSpec {
            carrier: Op::Flush,
            address: AddressSpace::Everything,
            words_in: Words::NONE,
            ..command(RESTORE, "restore", "moves everything in the log to its own addresses")
        },
        CommandSpec {
            carrier: Op::Flush,
            ..command(VENDOR_TWRITE_HEADER, "vendor-twrite-header", "twrite-header as a vendor command")
        },
        CommandSpec {
            carrier: Op::Flush,
            address: AddressSpace::Everything,
            ..command(VENDOR_REMAP, "vendor-remap", "remap as a vendor command")
        },
        CommandSpec {
            carrier: Op::Flush,
            ..command(VENDOR_TRIM_LOG, "vendor-trim-log", "trim-log as a vendor command")
        },
    ],
    events: &[],
    refusals: &[
        "bad-block",
        "behind-log",
        "behind-capacity",
        "named-twice",
        "no-header",
        "holds-nothing",
        "another-olpn",
        "part-of-a-unit",
        "no-room",
    ],
};

/// Why a block of 4 KB says nothing that can be done.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BlockError {
    /// Its length.
    #[error("a block of {found} words, expected {BLOCK_WORDS}")]
    Length {
        /// What it is.
        found: usize,
    },
    /// The number of its units, entries or runs.
    #[error("{found} of them, expected 1 to {most}")]
    Count {
        /// What it says.
        found: u64,
        /// Most that there may be.
        most: u64,
    },
    /// Bytes behind the last one that means anything.
    #[error("word {word} behind the last entry is not 0")]
    Trailing {
        /// The first that is not 0.
        word: usize,
    },
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwriteHeader {
    /// The first tLPN.
    pub first: u32,
    /// The oLPN of each unit: 1 to [`MOST_UNITS`].
    pub units: Vec<u32>,
}

impl TwriteHeader {
    /// The block, in words.
    ///
    /// # Panics
    /// There are no units, or more than [`MOST_UNITS`].
    pub fn encode(&self) -> Vec<u64> {
        assert!((1..=MOST_UNITS as usize).contains(&self.units.len()), "a header of {} units", self.units.len());
        let numbers = [self.first, self.units.len() as u32].into_iter().chain(self.units.iter().copied());
        words_of(numbers)
    }

    /// What a block says.
    ///
    /// # Errors
    /// It is not a block of 4 KB, says 0 or over [`MOST_UNITS`] units, or has other numbers than 0 behind them.
    pub fn decode(block: &[u64]) -> Result<TwriteHeader, BlockError> {
        let mut numbers = numbers_of(block)?;
        let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if !(1..=MOST_UNITS).contains(&count) {
            return Err(BlockError::Count { found: u64::from(count), most: u64::from(MOST_UNITS) });
        }
        let units: Vec<u32> = numbers.by_ref().take(count as usize).collect();
        expect_zeroes(numbers, 2 + units.len())?;
        Ok(TwriteHeader { first, units })
    }
}

/// Pairs of numbers: of a remap, tLPN and oLPN; of a trim, first tLPN and number of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs(pub Vec<(u32, u32)>);

impl Pairs {
    /// The block, in words.
    ///
    /// # Panics
    /// There are no pairs, or more than [`MOST_ENTRIES`].
    pub fn encode(&self) -> Vec<u64> {
        assert!((1..=MOST_ENTRIES).contains(&self.0.len()), "a block of {} pairs", self.0.len());
        let pairs = self.0.iter().flat_map(|(first, second)| [*first, *second]);
        words_of([self.0.len() as u32, 0].into_iter().chain(pairs))
    }

    /// What a block says.
    ///
    /// # Errors
    /// It is not a block of 4 KB, says 0 or over [`MOST_ENTRIES`] pairs, or has other numbers than 0 behind them.
    pub fn decode(block: &[u64]) -> Result<Pairs, BlockError> {
        let mut numbers = numbers_of(block)?;
        let count = u64::from(numbers.next().unwrap_or(0)) | u64::from(numbers.next().unwrap_or(0)) << 32;
        if !(1..=MOST_ENTRIES as u64).contains(&count) {
            return Err(BlockError::Count { found: count, most: MOST_ENTRIES as u64 });
        }
        let mut pairs = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (Some(first), Some(second)) = (numbers.next(), numbers.next()) else { break };
            pairs.push((first, second));
        }
        expect_zeroes(numbers, 2 + 2 * pairs.len())?;
        Ok(Pairs(pairs))
    }
}

/// Numbers of 4 bytes as a block of 4 KB.
fn words_of(numbers: impl Iterator<Item = u32>) -> Vec<u64> {
    let mut words = vec![0; BLOCK_WORDS];
    for (index, number) in numbers.enumerate() {
        words[index / 2] |= u64::from(number) << (32 * (index % 2));
    }
    words
}

fn numbers_of(block: &[u64]) -> Result<impl Iterator<Item = u32>, BlockError> {
    if block.len() != BLOCK_WORDS {
        return Err(BlockError::Length { found: block.len() });
    }
    Ok(block.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]))
}

/// Number `first` of the block is the first of those that are left.
fn expect_zeroes(mut numbers: impl Iterator<Item = u32>, first: usize) -> Result<(), BlockError> {
    match numbers.position(|number| number != 0) {
        Some(behind) => Err(BlockError::Trailing { word: (first + behind) / 2 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn the_block_of_a_header_is_as_documented() {
        let block = bytes(&TwriteHeader { first: 0x0102, units: vec![7, 0xa0b0_c0d0, 9] }.encode());
        assert_eq!(block.len(), BLOCK_BYTES);
        assert_eq!(&block[..24], [2, 1, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0xd0, 0xc0, 0xb0, 0xa0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert!(block[24..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_block_of_a_remap_is_as_documented() {
        let block = bytes(&Pairs(vec![(1, 0x0203), (4, 5)]).encode());
        assert_eq!(&block[..24], [2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 2, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0]);
        assert!(block[24..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut block = TwriteHeader { first: 0, units: vec![1] }.encode();
        assert_eq!(TwriteHeader::decode(&block[1..]), Err(BlockError::Length { found: BLOCK_WORDS - 1 }));
        block[511] = 1 << 32;
        assert_eq!(TwriteHeader::decode(&block), Err(BlockError::Trailing { word: 511 }));
        for count in [0, 129, u64::from(u32::MAX)] {
            block[0] = count << 32;
            assert_eq!(TwriteHeader::decode(&block), Err(BlockError::Count { found: count, most: 128 }));
        }
        for count in [0, 512, 1 << 32 | 1] {
            block[0] = count;
            assert_eq!(Pairs::decode(&block), Err(BlockError::Count { found: count, most: 511 }));
        }
    }

    proptest! {
        #[test]
        fn blocks_say_what_they_were_given(
            first: u32,
            units in prop::collection::vec(any::<u32>(), 1..=128),
            pairs in prop::collection::vec(any::<(u32, u32)>(), 1..=511),
        ) {
            let header = TwriteHeader { first, units };
            prop_assert_eq!(TwriteHeader::decode(&header.encode()), Ok(header));
            let pairs = Pairs(pairs);
            prop_assert_eq!(Pairs::decode(&pairs.encode()), Ok(pairs));
        }

        /// Whatever a block holds, it is told apart or gives the same block again.
        #[test]
        fn a_block_is_refused_or_comes_back(mut block in prop::collection::vec(any::<u64>(), BLOCK_WORDS), count in 0u64..600, rest: bool) {
            block[0] = count;
            if rest {
                block[1 + (count as usize).min(MOST_ENTRIES)..].fill(0);
            }
            if let Ok(pairs) = Pairs::decode(&block) {
                prop_assert_eq!(pairs.encode(), block.clone());
            }
            block[0] = count << 32;
            if let Ok(header) = TwriteHeader::decode(&block) {
                prop_assert_eq!(header.encode(), block);
            }
        }
    }
}

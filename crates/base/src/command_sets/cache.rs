//! The set `cache`: a drive that caches a disk, at the disk's own addresses (FlashTier; Getting Real, sections 2.2 and 3.3.1).
//!
//! A *block* is a mapping unit of the drive. It is absent, clean (the disk has the same data, so the drive may drop it unasked)
//! or dirty (the drive alone has it). Block I/O is part of the set: a read is `read`, a write is `write-dirty`, a trim evicts.
//!
//! Commands that bring data are carried by writes, all others by reads, and the two that let the drive rest by flushes. On a board
//! with four codes for each queue the set fits: `read` and the block read share a code, since they do the same, and differ in
//! what comes back with the data.
//!
//! `read` answers with a bit for each block of its range, and `exists` with as many in place of data: block n is bit n % 64 of
//! word n / 64, counted from the first block that the range touches. [`BlockBits`] encodes them.
//!
//! Where words do not travel, `read` tells of absent blocks in another way ([`Miss`]): by a pattern in the data, or by an error. The
//! pattern of a sector is what a write of the stamp [`MISS_STAMP`] puts there: eight bytes that depend on its address, and zeroes. It
//! is never all ones, as erased flash is. A simulated drive that keeps no contents has no pattern, so the bits come back with it in
//! every case; they cross no link then.

use thiserror::Error;

use crate::Op;
use crate::command_set::{AddressSpace, CommandSet, CommandSpec, DataPhase, Merging, Opcode, Refusal, Role, Words};

/// Most blocks of a command that answers with bits.
pub const MOST_BLOCKS: u32 = 32_768;

/// Most words that hold the bits of a command.
pub const MOST_WORDS: u16 = (MOST_BLOCKS / 64) as u16;

/// The stamp whose data is the pattern of an absent block.
pub const MISS_STAMP: u64 = 0x4d49_5353_4d49_5353;

/// How `read` tells of absent blocks: its one word, without which it is by words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Miss {
    /// It ends as absent, with a bit for each block in words. If all are, no data comes back.
    #[default]
    Words,
    /// It succeeds, and brings the pattern in place of absent blocks.
    Pattern,
    /// It ends with an error, as if the data were lost.
    Error,
}

impl Miss {
    /// The words of a command that asks for it.
    pub const fn words(self) -> &'static [u64] {
        match self {
            Miss::Words => &[],
            Miss::Pattern => &[1],
            Miss::Error => &[2],
        }
    }

    /// What the words of a command ask for; `None` if they mean nothing.
    pub fn of_words(words: &[u64]) -> Option<Miss> {
        match words {
            [] | [0] => Some(Miss::Words),
            [1] => Some(Miss::Pattern),
            [2] => Some(Miss::Error),
            _ => None,
        }
    }
}

/// Writes blocks that the disk does not have.
pub const WRITE_DIRTY: Opcode = Opcode(1);
/// Writes blocks that the disk has as well.
pub const WRITE_CLEAN: Opcode = Opcode(2);
/// Reads, and says which blocks are absent.
pub const READ: Opcode = Opcode(3);
/// Takes blocks out of the cache.
pub const EVICT: Opcode = Opcode(4);
/// Says that the disk has the data of dirty blocks now.
pub const CLEAN: Opcode = Opcode(5);
/// Tells which blocks are dirty.
pub const EXISTS: Opcode = Opcode(6);
/// Makes all changes of the map durable, before the drive sleeps.
pub const STANDBY: Opcode = Opcode(7);
/// Makes all changes of the map durable, before the drive is idle.
pub const IDLE: Opcode = Opcode(8);

/// A write finds no place: all that the drive can hold is dirty.
pub const NO_ROOM: Refusal = Refusal(0);
/// A range that does not begin and end with a block.
pub const PART_OF_A_BLOCK: Refusal = Refusal(1);
/// A range of more than [`MOST_BLOCKS`] blocks.
pub const TOO_LONG: Refusal = Refusal(2);

const fn command(opcode: Opcode, name: &'static str, summary: &'static str) -> CommandSpec {
    CommandSpec {
        opcode,
        name,
        summary,
        carrier: Op::Read,
        address: AddressSpace::Logical,
        merging: Merging::Neighbours,
        words_in: Words::NONE,
        words_out: Words::NONE,
        data: DataPhase::Nothing,
        role: Role::Design,
    }
}

/// A command that brings the data of its blocks.
const fn write(opcode: Opcode, name: &'static str, summary: &'static str) -> CommandSpec {
    CommandSpec { carrier: Op::Write, data: DataPhase::Range, ..command(opcode, name, summary) }
}

/// A command of the slow path, without an address.
const fn rest(opcode: Opcode, name: &'static str, summary: &'static str) -> CommandSpec {
    CommandSpec {
        carrier: Op::Flush,
        address: AddressSpace::Nothing,
        merging: Merging::Never,
        words_out: Words::Exactly(1),
        ..command(opcode, name, summary)
    }
}

/// The set.
pub static CACHE: CommandSet = CommandSet {
    name: "cache",
    summary: "blocks of a disk, clean or dirty; the drive may drop clean ones",
    commands: &[
        write(WRITE_DIRTY, "write-dirty", "writes blocks that the disk does not have"),
        write(WRITE_CLEAN, "write-clean", "writes blocks that the disk has as well"),
        CommandSpec {
            merging: Merging::Never,
            words_in: Words::UpTo(1),
            words_out: Words::UpTo(MOST_WORDS),
            data: DataPhase::Range,
            ..command(
                READ,
                "read",
                "reads sectors; absent where a block is missing, with a bit for each block that is. A word asks for another way to say so: 1 a \
                 pattern in the data, 2 an error",
            )
        },
        command(EVICT, "evict", "takes blocks out of the cache, dirty ones as well"),
        command(CLEAN, "clean", "dirty blocks become clean: the disk has their data"),
        CommandSpec {
            merging: Merging::Never,
            data: DataPhase::Answer,
            ..command(EXISTS, "exists", "answers with a bit for each block of a range that is dirty")
        },
        rest(
            STANDBY,
            "standby",
            "makes all changes of the map durable, and answers with the pages that this programmed",
        ),
        rest(IDLE, "idle", "makes all changes of the map durable, and answers with the pages that this programmed"),
    ],
    events: &[],
    refusals: &["no-room", "part-of-a-block", "too-long"],
};

/// Why words or bytes are not the bits of so many blocks.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BitsError {
    /// There are not as many words, or the bytes are not whole words.
    #[error("found {found} bytes, expected {expected}")]
    Length {
        /// Bytes that there are.
        found: usize,
        /// Bytes that the bits of the blocks take.
        expected: usize,
    },
    /// A bit behind the last block is set.
    #[error("bit {bit} behind the last block is set")]
    Trailing {
        /// The first such bit.
        bit: usize,
    },
}

/// A bit for each block of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockBits(pub Vec<bool>);

impl BlockBits {
    /// The bits in words of 64.
    pub fn words(&self) -> Vec<u64> {
        let word = |bits: &[bool]| (0..).zip(bits).fold(0, |word, (bit, set)| word | u64::from(*set) << bit);
        self.0.chunks(64).map(word).collect()
    }

    /// The words as little-endian bytes: what `exists` answers with.
    pub fn bytes(&self) -> Vec<u8> {
        self.words().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The bits of `blocks` blocks in words.
    ///
    /// # Errors
    /// There are fewer or more words than the blocks need, or a bit behind the last block is set.
    pub fn from_words(words: &[u64], blocks: usize) -> Result<BlockBits, BitsError> {
        let expected = blocks.div_ceil(64);
        if words.len() != expected {
            return Err(BitsError::Length { found: words.len() * 8, expected: expected * 8 });
        }
        let is_set = |bit: &usize| words[bit / 64] >> (bit % 64) & 1 != 0;
        if let Some(bit) = (blocks..expected * 64).find(is_set) {
            return Err(BitsError::Trailing { bit });
        }
        Ok(BlockBits((0..blocks).map(|bit| is_set(&bit)).collect()))
    }

    /// The bits of `blocks` blocks in bytes.
    ///
    /// # Errors
    /// There are fewer or more bytes than the blocks need, or a bit behind the last block is set.
    pub fn from_bytes(bytes: &[u8], blocks: usize) -> Result<BlockBits, BitsError> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(BitsError::Length { found: bytes.len(), expected: blocks.div_ceil(64) * 8 });
        }
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        BlockBits::from_words(&words, blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_are_as_documented() {
        let mut blocks = vec![false; 66];
        (blocks[0], blocks[5], blocks[65]) = (true, true, true);
        let bits = BlockBits(blocks);
        assert_eq!(bits.words(), [0x21, 2]);
        assert_eq!(bits.bytes(), [0x21, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(BlockBits::default().words(), Vec::<u64>::new());
    }

    #[test]
    fn a_read_asks_for_a_way_to_tell_of_absent_blocks() {
        for miss in [Miss::Words, Miss::Pattern, Miss::Error] {
            assert_eq!(Miss::of_words(miss.words()), Some(miss));
            assert!(CACHE.command(READ).is_some_and(|read| read.words_in.allow(miss.words().len())));
        }
        assert_eq!([&[0][..], &[3], &[1, 1]].map(Miss::of_words), [Some(Miss::Words), None, None]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let length = |found, expected| Err(BitsError::Length { found, expected });
        assert_eq!(BlockBits::from_words(&[0], 65), length(8, 16));
        assert_eq!(BlockBits::from_words(&[0, 0], 64), length(16, 8));
        assert_eq!(BlockBits::from_words(&[0, 4], 66), Err(BitsError::Trailing { bit: 66 }));
        assert_eq!(BlockBits::from_bytes(&[0; 9], 64), length(9, 8));
        assert_eq!(BlockBits::from_bytes(&[0xff; 8], 63), Err(BitsError::Trailing { bit: 63 }));
    }

    #[test]
    fn the_set_fits_four_codes_a_queue() {
        // The first code of a queue is block I/O's, and the set's `read` shares that of reads.
        let of_queue = |carrier| CACHE.commands.iter().filter(move |command| command.carrier == carrier);
        assert_eq!(1 + of_queue(Op::Write).count(), 3, "block write, write-dirty, write-clean");
        assert_eq!(of_queue(Op::Read).count(), 4, "read, evict, clean, exists");
        assert_eq!(CACHE.refusal(NO_ROOM), Some("no-room"));
    }

    proptest! {
        #[test]
        fn bits_come_back(blocks in prop::collection::vec(any::<bool>(), 0..300)) {
            let bits = BlockBits(blocks);
            prop_assert_eq!(BlockBits::from_words(&bits.words(), bits.0.len()), Ok(bits.clone()));
            prop_assert_eq!(BlockBits::from_bytes(&bits.bytes(), bits.0.len()), Ok(bits));
        }

        #[test]
        fn words_are_refused_or_come_back(words in prop::collection::vec(any::<u64>(), 0..5), blocks in 0_usize..300) {
            if let Ok(bits) = BlockBits::from_words(&words, blocks) {
                prop_assert_eq!(bits.words(), words);
            }
        }
    }
}

//! Log blocks: what a write unit of the log says.
//!
//! ```text
//!   word 0    magic, kind, flags, count
//!   word 1    hash of the block before, serial of the area: it rises from checkpoint to checkpoint
//!   word 2    number of the block in its area, number of the map page
//!   then      entries, a word each, or the places of a map page, two a word
//! ```
//!
//! The hash ties a block to those before it. A crash of the host may give a serial a second time, and a power cut undoes the TRIM of
//! a part of an area: blocks that another checkpoint of that serial left there are not taken for the next ones of this.
//!
//! An entry is a unit and its place, or the first of units that were trimmed and how many.

use twox_hash::XxHash3_64;

/// Words before the payload.
const HEADER: usize = 3;
const MAGIC: u64 = 0x4150_4c32;
const ENTRIES: u64 = 1;
const MAP_PAGE: u64 = 2;
/// The last block of a commit: what it and those before it say counts.
pub(super) const LAST: u64 = 1;
/// The checkpoint of the area is whole with this commit.
pub(super) const WHOLE: u64 = 2;
/// Set in the place of an entry that trims; the other bits are the number of units.
const TRIM: u32 = 1 << 31;
/// Set beside it in the place of an entry that says which sectors of a unit are lost.
const SECTORS: u32 = 1 << 30;

/// Entries that fit into a block of so many words.
pub(super) const fn entries_in(words: usize) -> usize {
    words - HEADER
}

/// Units whose places fit into one.
pub(super) const fn mapped_in(words: usize) -> usize {
    (words - HEADER) * 2
}

/// What changed in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A unit is at a place.
    Mapped { unit: u32, place: u32 },
    /// Units hold nothing any more.
    Trimmed { first: u32, count: u32 },
    /// Of 16 sectors of a unit these are lost, and no others.
    Lost { unit: u32, part: u8, bits: u16 },
}

impl Entry {
    const fn encode(self) -> u64 {
        let (unit, place) = match self {
            Entry::Mapped { unit, place } => (unit, place),
            Entry::Trimmed { first, count } => (first, TRIM | count),
            Entry::Lost { unit, part, bits } => (unit, TRIM | SECTORS | (part as u32) << 16 | bits as u32),
        };
        (unit as u64) << 32 | place as u64
    }

    const fn decode(word: u64) -> Entry {
        let (unit, place) = ((word >> 32) as u32, word as u32);
        match place & (TRIM | SECTORS) {
            TRIM => Entry::Trimmed { first: unit, count: place & !TRIM },
            both if both == TRIM | SECTORS => Entry::Lost { unit, part: (place >> 16) as u8, bits: place as u16 },
            _ => Entry::Mapped { unit, place },
        }
    }
}

/// Which block it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) serial: u32,
    /// Counted from the first block of the area.
    pub(super) block: u32,
    /// Of the block before it, 0 for the first.
    hash: u32,
}

impl Position {
    /// The first of an area.
    pub(super) const fn first(serial: u32) -> Position {
        Position { serial, block: 0, hash: 0 }
    }

    /// The one behind the block of these words.
    pub(super) fn behind(self, words: &[u64]) -> Position {
        Position { block: self.block + 1, hash: hash(words) as u32, ..self }
    }
}

/// What tells blocks apart.
pub(super) fn hash(words: &[u64]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    XxHash3_64::oneshot(&bytes)
}

/// What a block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Says {
    Entries { flags: u64, entries: Vec<Entry> },
    MapPage { page: u32, places: Vec<u32> },
}

/// A block of so many words with entries.
pub(super) fn entries_block(words: usize, at: Position, flags: u64, entries: &[Entry]) -> Vec<u64> {
    let payload = entries.iter().map(|entry| entry.encode());
    block(words, at, ENTRIES << 24 | flags << 16 | entries.len() as u64, 0, payload)
}

/// A block of so many words with a page of the map.
pub(super) fn map_block(words: usize, at: Position, page: u32, places: &[u32]) -> Vec<u64> {
    let pair = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
    block(words, at, MAP_PAGE << 24 | places.len() as u64, page, places.chunks(2).map(pair))
}

fn block(words: usize, at: Position, what: u64, page: u32, payload: impl Iterator<Item = u64>) -> Vec<u64> {
    let (hash, serial) = (u64::from(at.hash), u64::from(at.serial));
    let header = [MAGIC << 32 | what, hash << 32 | serial, u64::from(at.block) << 32 | u64::from(page)];
    let mut block: Vec<u64> = header.into_iter().chain(payload).collect();
    assert!(block.len() <= words, "a log block of {} words in a unit of {words}", block.len());
    block.resize(words, 0);
    block
}

/// The serial of the area that a block is of.
pub(super) fn serial_of(words: &[u64]) -> Option<u32> {
    (words.len() > HEADER && words[0] >> 32 == MAGIC).then(|| words[1] as u32)
}

/// What a block says; `None` where it is another one than expected, or none.
pub(super) fn read(words: &[u64], at: Position) -> Option<Says> {
    let (kind, flags, count) = (words[0] >> 24 & 0xff, words[0] >> 16 & 0xff, (words[0] & 0xffff) as usize);
    let is_next = words[1] >> 32 == u64::from(at.hash) && words[2] >> 32 == u64::from(at.block);
    if serial_of(words)? != at.serial || !is_next {
        return None;
    }
    let payload = &words[HEADER..];
    match kind {
        ENTRIES => {
            let entries = payload.get(..count)?.iter().map(|word| Entry::decode(*word)).collect();
            Some(Says::Entries { flags, entries })
        }
        MAP_PAGE if count <= payload.len() * 2 => {
            let places = payload.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).take(count).collect();
            Some(Says::MapPage { page: words[2] as u32, places })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn a_block_is_read_as_it_was_written_and_as_no_other() {
        let mut rng = rng(1, "log blocks");
        for words in [64, 512, 4096] {
            for _ in 0..200 {
                let serial = rng.random_range(1..1 << 31);
                let at = Position { serial, block: rng.random_range(0..1 << 20), hash: rng.random() };
                let entries: Vec<Entry> = (0..rng.random_range(0..=entries_in(words)))
                    .map(|_| match rng.random_range(0..3) {
                        0 => Entry::Mapped { unit: rng.random_range(0..1 << 31), place: rng.random_range(0..1 << 31) },
                        1 => Entry::Trimmed { first: rng.random(), count: rng.random_range(0..1 << 30) },
                        _ => Entry::Lost { unit: rng.random(), part: rng.random_range(0..4), bits: rng.random() },
                    })
                    .collect();
                let flags = rng.random_range(0..4);
                let written = entries_block(words, at, flags, &entries);
                assert_eq!(read(&written, at), Some(Says::Entries { flags, entries }));
                assert_eq!(read(&written, Position { serial: at.serial + 1, ..at }), None);
                assert_eq!(read(&written, Position { block: at.block + 1, ..at }), None);
                assert_eq!(read(&written, Position { hash: at.hash ^ 1, ..at }), None);
                let places: Vec<u32> = (0..rng.random_range(1..=mapped_in(words))).map(|_| rng.random()).collect();
                let written = map_block(words, at, 7, &places);
                assert_eq!(read(&written, at), Some(Says::MapPage { page: 7, places }));
                assert_eq!(serial_of(&written), Some(at.serial));
            }
        }
        assert_eq!(serial_of(&[0; 64]), None);
    }
}

//! What the layer keeps on its devices in `write-back`, as words: the superblock and the entries of slots on the cache, the label
//! on the disk.
//!
//! An entry has 16 bytes: the disk's sector at which the slot's block begins, and flags with a check. All entries of a sector get
//! to flash together, since a power cut leaves a sector whole; entries of different sectors stand for themselves.

use super::layout::{BLOCK_SECTORS, ENTRY_BYTES, Layout};
use crate::caching::hash;
use ssdlab_base::SECTOR_BYTES;

/// Words of a sector, and of an entry.
pub(super) const SECTOR_WORDS: usize = (SECTOR_BYTES / 8) as usize;
pub(super) const ENTRY_WORDS: usize = (ENTRY_BYTES / 8) as usize;

/// Tells the superblock from other contents; the last byte is the version.
const MAGIC: u64 = 0x5d46_4c43_4143_4801;
/// Tells a label: the upper bits of its word.
const LABEL: u64 = 0x5d4c;
/// Bits of the identity that a cache and its disk share.
const IDENTITY_BITS: u32 = 48;
/// Flags of an entry.
const VALID: u64 = 1;
const DIRTY: u64 = 2;
/// Words of the superblock before its check.
const SUPERBLOCK_WORDS: usize = 9;

/// How the cache was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It was being made: it holds nothing.
    New,
    /// In use: its clean blocks do not count.
    InUse,
    /// In good order.
    Closed,
}

impl Left {
    const ALL: [Left; 3] = [Left::New, Left::InUse, Left::Closed];
}

/// What the cache's first sector says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) left: Left,
    pub(super) sets: u64,
    pub(super) set_blocks: u64,
    pub(super) metadata_sectors: u64,
    /// The disk's blocks.
    pub(super) disk_blocks: u64,
    /// Who cache and disk are together.
    pub(super) identity: u64,
    /// Hashes of the names of the cache and the disk.
    pub(super) names: [u64; 2],
}

impl Superblock {
    /// That of a cache of this layout.
    pub(super) fn of(layout: &Layout, names: [u64; 2], left: Left) -> Superblock {
        let mut superblock = Superblock {
            left,
            sets: layout.sets.into(),
            set_blocks: layout.set_blocks.into(),
            metadata_sectors: layout.metadata_sectors,
            disk_blocks: layout.disk_blocks.into(),
            identity: 0,
            names,
        };
        let words = Superblock { left: Left::New, ..superblock }.to_words();
        superblock.identity = (hash(&words) >> (64 - IDENTITY_BITS)).max(1);
        superblock
    }

    pub(super) fn to_words(self) -> [u64; SECTOR_WORDS] {
        let left = Left::ALL.iter().position(|left| *left == self.left).map_or(0, |at| at as u64);
        let mut words = [0; SECTOR_WORDS];
        words[..SUPERBLOCK_WORDS].copy_from_slice(&[
            MAGIC,
            left,
            self.sets,
            self.set_blocks,
            self.metadata_sectors,
            self.disk_blocks,
            self.identity,
            self.names[0],
            self.names[1],
        ]);
        words[SUPERBLOCK_WORDS] = hash(&words[..SUPERBLOCK_WORDS]);
        words
    }

    /// `None` where the words are no superblock.
    pub(super) fn from_words(words: &[u64]) -> Option<Superblock> {
        let (own, check) = (words.get(..SUPERBLOCK_WORDS)?, words.get(SUPERBLOCK_WORDS)?);
        let &[MAGIC, left, sets, set_blocks, metadata_sectors, disk_blocks, identity, cache, disk] = own else {
            return None;
        };
        let left = *Left::ALL.get(usize::try_from(left).ok()?)?;
        let names = [cache, disk];
        let superblock = Superblock { left, sets, set_blocks, metadata_sectors, disk_blocks, identity, names };
        (hash(own) == *check).then_some(superblock)
    }

    /// How a cache of these settings and devices differs from the one that is there: what it is, what was found, what was expected.
    pub(super) fn difference(&self, expected: &Superblock) -> Option<(&'static str, String, String)> {
        let numbers = [
            ("the number of sets", self.sets, expected.sets),
            ("set", self.set_blocks, expected.set_blocks),
            ("metadata_block, in sectors of 512 bytes", self.metadata_sectors, expected.metadata_sectors),
            ("the size of the disk, in blocks of 4 KiB", self.disk_blocks, expected.disk_blocks),
        ];
        if let Some((what, found, expected)) = numbers.into_iter().find(|(_, found, expected)| found != expected) {
            return Some((what, found.to_string(), expected.to_string()));
        }
        let shown = |identity: u64| format!("{identity:#014x}");
        (self.names != expected.names || self.identity != expected.identity)
            .then(|| ("the identity", shown(self.identity), shown(expected.identity)))
    }
}

/// The word on the disk that names its cache.
pub(super) const fn label(identity: u64) -> u64 {
    LABEL << IDENTITY_BITS | identity
}

/// The identity in a label; `None` where the word is none.
pub(super) const fn identity_in(word: u64) -> Option<u64> {
    if word >> IDENTITY_BITS == LABEL { Some(word & ((1 << IDENTITY_BITS) - 1)) } else { None }
}

/// A slot as the metadata says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) block: u32,
    pub(super) is_dirty: bool,
}

/// An entry's words: none of a slot that holds nothing.
pub(super) fn entry_words(entry: Option<Entry>) -> [u64; ENTRY_WORDS] {
    let Some(Entry { block, is_dirty }) = entry else { return [0; ENTRY_WORDS] };
    let (sector, flags) = (u64::from(block) * BLOCK_SECTORS, VALID | if is_dirty { DIRTY } else { 0 });
    [sector, hash(&[sector, flags]) << 32 | flags]
}

/// What an entry says.
///
/// # Errors
/// The words are no entry.
pub(super) fn read_entry(words: [u64; ENTRY_WORDS]) -> Result<Option<Entry>, ()> {
    if words == [0; ENTRY_WORDS] {
        return Ok(None);
    }
    let (sector, flags) = (words[0], words[1] & u64::from(u32::MAX));
    let block = u32::try_from(sector / BLOCK_SECTORS).map_err(|_| ())?;
    let entry = Entry { block, is_dirty: flags & DIRTY != 0 };
    if entry_words(Some(entry)) == words { Ok(Some(entry)) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back_and_nothing_else_is_one() {
        for entry in [Entry { block: 0, is_dirty: false }, Entry { block: u32::MAX - 1, is_dirty: true }] {
            let words = entry_words(Some(entry));
            assert_eq!(read_entry(words), Ok(Some(entry)));
            for bit in 0..64 {
                assert_eq!(read_entry([words[0] ^ 1 << bit, words[1]]), Err(()), "{entry:?}, sector, bit {bit}");
                assert_eq!(read_entry([words[0], words[1] ^ 1 << bit]), Err(()), "{entry:?}, flags, bit {bit}");
            }
        }
        assert_eq!(read_entry(entry_words(None)), Ok(None));
        assert_eq!((read_entry([u64::MAX; 2]), read_entry([0, VALID])), (Err(()), Err(())));
    }

    #[test]
    fn a_superblock_reads_back_and_says_how_another_differs() {
        let layout = Layout {
            sets: 3,
            set_blocks: 512,
            per_metadata_block: 256,
            metadata_sectors: 8,
            data: 64,
            disk_blocks: 1000,
        };
        let superblock = Superblock::of(&layout, [1, 2], Left::InUse);
        let words = superblock.to_words();
        assert_eq!(Superblock::from_words(&words), Some(superblock));
        for word in 0..=SUPERBLOCK_WORDS {
            let mut other = words;
            other[word] ^= 2;
            assert_eq!(Superblock::from_words(&other), None, "word {word}");
        }
        assert_eq!((Superblock::from_words(&[0; 64]), Superblock::from_words(&[MAGIC; 4])), (None, None));
        assert_eq!(superblock.difference(&Superblock { left: Left::Closed, ..superblock }), None);
        let smaller = Superblock::of(&Layout { disk_blocks: 999, ..layout }, [1, 2], Left::InUse);
        let (what, found, expected) = superblock.difference(&smaller).expect("another disk");
        assert!(what.contains("size of the disk") && found == "1000" && expected == "999", "{what} {found} {expected}");
        assert!(superblock.difference(&Superblock::of(&layout, [1, 3], Left::InUse)).is_some(), "another name");
        assert_eq!((identity_in(label(superblock.identity)), identity_in(7)), (Some(superblock.identity), None));
    }
}

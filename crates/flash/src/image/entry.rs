//! What an image says of a page and of a block, as bytes.
//!
//! Every entry carries a check over itself, its number, its file and the image, so that damage and misplaced entries show.
//! That an entry is missing or of an earlier life of its block shows in the block's entry, which counts the pages that are
//! written.

use crate::{Block, BlockId, Ppn, UnitId};
use twox_hash::XxHash3_64;

/// Bytes of a page's entry before its units.
const PAGE_HEAD: usize = 40;

/// Bytes of each unit in a page's entry.
const UNIT: usize = 8;

/// Bytes of each unit's origin behind these, where origins are kept.
const ORIGIN: usize = 8;

/// Bytes of a block's entry.
pub(super) const BLOCK_BYTES: usize = 32;

/// Low 32 bits of a hash over `bytes`: enough to notice damage.
pub(super) fn check_of(bytes: &[u8], seed: u64) -> u32 {
    XxHash3_64::oneshot_with_seed(seed, bytes) as u32
}

/// The check of a unit's data: of the bytes, moved by the unit's number, so that data in a wrong place shows too.
pub(super) fn unit_check(sector_data: &[u8], unit: UnitId) -> u32 {
    moved(check_of(sector_data, 0), UnitId(0), unit)
}

/// The check of the same data in another unit.
pub(super) const fn moved(check: u32, from: UnitId, to: UnitId) -> u32 {
    check.wrapping_add(to.0.wrapping_sub(from.0).wrapping_mul(0x9e37_79b1))
}

/// The checks of one image's entries: another image's do not agree with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal(pub(super) u64);

impl Seal {
    /// A page's entry.
    fn page(self, ppn: Ppn, bytes: &[u8]) -> u32 {
        check_of(bytes, self.0 ^ 1 << 56 ^ u64::from(ppn.0))
    }

    /// A block's entry.
    fn block(self, block: BlockId, bytes: &[u8]) -> u32 {
        check_of(bytes, self.0 ^ 2 << 56 ^ u64::from(block.0))
    }

    /// The records of a page, which name it.
    pub(super) fn records(self, bytes: &[u8]) -> u32 {
        check_of(bytes, self.0 ^ 3 << 56)
    }
}

/// How far the program of a page got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageState {
    /// Begun: torn, unless a later entry says that it ended.
    Begun,
    /// Programmed.
    Written,
    /// Its program failed.
    Failed,
}

/// A page's out-of-band area as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageEntry {
    pub(super) state: PageState,
    /// Erases of the block when this was programmed: an entry of an earlier life of the block says nothing.
    pub(super) erases: u32,
    pub(super) sequence: u64,
    /// Units whose data was lost, a bit each.
    pub(super) poisoned: u64,
    /// Units of metadata, a bit each: their words are in the log of records.
    pub(super) records: u64,
    /// The check of these records in the log, which are no others than that; 0 without any.
    pub(super) records_check: u32,
    /// LPN and the check of the data, for each unit.
    pub(super) units: Vec<[u32; 2]>,
    /// For each unit its other LPN and the number of the host's write; empty where origins are not kept.
    pub(super) origins: Vec<[u32; 2]>,
}

/// Bytes of a page's entry without padding.
const fn page_bytes(units_per_page: u32, origins: bool) -> usize {
    PAGE_HEAD + units_per_page as usize * (UNIT + if origins { ORIGIN } else { 0 })
}

/// Bytes from one page's entry to the next: a power of two, so that no entry lies across the boundary at which the kernel
/// cuts the write of a killed process short.
pub(super) const fn page_stride(units_per_page: u32, origins: bool) -> usize {
    page_bytes(units_per_page, origins).next_power_of_two()
}

impl PageEntry {
    /// The entry of page `ppn` as `stride` bytes, appended to nothing: `to` is overwritten.
    pub(super) fn encode(&self, seal: Seal, ppn: Ppn, stride: usize, to: &mut Vec<u8>) {
        to.clear();
        to.extend([0; 4]);
        to.extend((self.state as u32 + 1).to_le_bytes());
        to.extend(self.erases.to_le_bytes());
        to.extend(self.records_check.to_le_bytes());
        to.extend(self.sequence.to_le_bytes());
        to.extend(self.poisoned.to_le_bytes());
        to.extend(self.records.to_le_bytes());
        for unit in self.units.iter().chain(&self.origins) {
            to.extend(unit[0].to_le_bytes());
            to.extend(unit[1].to_le_bytes());
        }
        assert!(to.len() <= stride, "the entry of page {ppn} has {} bytes of {stride}", to.len());
        to.resize(stride, 0);
        let check = seal.page(ppn, &to[4..]);
        to[..4].copy_from_slice(&check.to_le_bytes());
    }

    /// The entry in `bytes`: `Ok(None)` where none was ever written, `Err` where it is damaged.
    pub(super) fn decode(
        bytes: &[u8],
        seal: Seal,
        ppn: Ppn,
        units_per_page: u32,
        origins: bool,
    ) -> Result<Option<PageEntry>, ()> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if word(bytes, 0) != seal.page(ppn, &bytes[4..]) {
            return Err(());
        }
        let state = match word(bytes, 4) {
            1 => PageState::Begun,
            2 => PageState::Written,
            3 => PageState::Failed,
            _ => return Err(()),
        };
        let bytes = &bytes[..page_bytes(units_per_page, origins)];
        let mut units: Vec<[u32; 2]> =
            bytes[PAGE_HEAD..].chunks_exact(UNIT).map(|unit| [word(unit, 0), word(unit, 4)]).collect();
        let origins = units.split_off(units_per_page as usize);
        Ok(Some(PageEntry {
            state,
            erases: word(bytes, 8),
            records_check: word(bytes, 12),
            sequence: long(bytes, 16),
            poisoned: long(bytes, 24),
            records: long(bytes, 32),
            units,
            origins,
        }))
    }
}

/// What is kept of a block beside its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) erases: u32,
    pub(super) bad: bool,
    pub(super) suspect: bool,
    /// An erase was begun and has not ended.
    pub(super) erasing: bool,
    /// The block stands in this place of its plane in a superblock, and not in its own.
    pub(super) stands_in: Option<u32>,
    /// Pages that have an entry since the last erase, at least: one that lacks it was damaged.
    pub(super) programmed: u32,
}

impl BlockEntry {
    /// The entry of a block in this state, of which so many pages have entries.
    pub(super) const fn of(block: &Block, programmed: u32, stands_in: Option<u32>) -> BlockEntry {
        let Block { erases, bad, suspect, torn, .. } = *block;
        BlockEntry { erases, bad, suspect, erasing: torn, stands_in, programmed }
    }

    pub(super) fn encode(self, seal: Seal, block: BlockId) -> [u8; BLOCK_BYTES] {
        let mut bytes = [0; BLOCK_BYTES];
        let flags = u32::from(self.bad) | u32::from(self.suspect) << 1 | u32::from(self.erasing) << 2;
        let words = [self.erases, flags, self.stands_in.map_or(0, |index| index + 1), self.programmed];
        for (word, to) in words.iter().zip(bytes[4..].chunks_exact_mut(4)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let check = seal.block(block, &bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The entry in `bytes`; each block has one from the start.
    pub(super) fn decode(bytes: &[u8], seal: Seal, block: BlockId) -> Result<BlockEntry, ()> {
        let flags = word(bytes, 8);
        if word(bytes, 0) != seal.block(block, &bytes[4..]) || flags > 7 {
            return Err(());
        }
        Ok(BlockEntry {
            erases: word(bytes, 4),
            bad: flags & 1 != 0,
            suspect: flags & 2 != 0,
            erasing: flags & 4 != 0,
            stands_in: word(bytes, 12).checked_sub(1),
            programmed: word(bytes, 16),
        })
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEAL: Seal = Seal(77);

    fn page() -> PageEntry {
        PageEntry {
            state: PageState::Written,
            erases: 3,
            sequence: 1 << 40,
            poisoned: 2,
            records: 1,
            records_check: 99,
            units: vec![[7, 8], [u32::MAX, 9]],
            origins: Vec::new(),
        }
    }

    #[test]
    fn no_entry_lies_where_the_kernel_may_cut_a_write() {
        for (units, origins) in (1..=64).flat_map(|units| [(units, false), (units, true)]) {
            let stride = page_stride(units, origins);
            assert!(stride >= page_bytes(units, origins));
            let boundary = super::super::lifeline::CUT_BYTES as usize;
            assert!(boundary.is_multiple_of(stride) || stride.is_multiple_of(boundary), "{units} units: {stride}");
            assert!(stride <= boundary, "{units} units: an entry is longer than what is written at once");
        }
        const { assert!(4096 % BLOCK_BYTES == 0) };
    }

    #[test]
    fn any_flipped_bit_any_other_place_and_any_other_image_shows() {
        let mut bytes = Vec::new();
        page().encode(SEAL, Ppn(11), 64, &mut bytes);
        assert_eq!(bytes.len(), 64);
        let decode = |bytes: &[u8], seal, page| PageEntry::decode(bytes, seal, Ppn(page), 2, false);
        assert_eq!(decode(&bytes, SEAL, 11), Ok(Some(page())));
        assert_eq!(decode(&bytes, SEAL, 12), Err(()), "the entry of another page");
        assert_eq!(decode(&bytes, Seal(78), 11), Err(()), "the entry of another image");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bytes, SEAL, 11), Err(()), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let block =
            BlockEntry { erases: 5, bad: false, suspect: true, erasing: true, stands_in: Some(7), programmed: 9 };
        let mut bytes = block.encode(SEAL, BlockId(4));
        assert_eq!(BlockEntry::decode(&bytes, SEAL, BlockId(4)), Ok(block));
        assert_eq!(BlockEntry::decode(&bytes, SEAL, BlockId(5)), Err(()));
        assert_eq!(BlockEntry::decode(&bytes, Seal(78), BlockId(4)), Err(()));
        assert_eq!(BlockEntry::decode(&[0; BLOCK_BYTES], SEAL, BlockId(4)), Err(()), "each block has an entry");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockEntry::decode(&bytes, SEAL, BlockId(4)), Err(()), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

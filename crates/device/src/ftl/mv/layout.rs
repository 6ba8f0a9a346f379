//! What a page says of itself: the pattern in its out-of-band area (section 3.2), or the layout of compacted partial
//! pages at its head (section 3.3, Figure 7).
//!
//! ```text
//! plain      | sectors of one LPN, those of the pattern |                       OOB: LPN, version number, pattern
//! compacted  | 0xFFFF, <LPN, offset, len> ... | data | data | data | ... |      OOB: as of a page without an LPN
//!              first sector
//!            | data | data | data | ... |      OOB: 0xFFFF, <LPN, offset, len> ...      (section 5.6, the other way)
//! ```
//!
//! A version's number is the sequence number of the program that first wrote it; a page that is programmed again, or a
//! compacted page that is moved, keeps the numbers of its versions, so that their order is known whatever was programmed
//! when. A full page of which nothing else is said has the number of its program.

use ssdlab_flash::{Lpn, Ppn};

use super::keys::CompactionIndex;
use super::pattern::Patterns;
use crate::media::Media;

/// The identifier of a compacted page.
const COMPACTED: u64 = 0xffff;
/// A version of one logical page.
const VERSION: u64 = 1;
/// A full page that was programmed again.
const FULL: u64 = 2;

/// In place of a pattern's number: the mask itself follows.
const NO_PATTERN: u64 = u64::MAX;

/// In a triple: nothing older than this version shows through.
const FLOOR: u64 = 1 << 63;

/// Bytes of the OOB area that any page needs: LPN, the program's sequence number, a version's number.
pub(super) const OOB_BYTES: u32 = 20;

/// What the index of a compacted page takes of the page, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageIndex {
    /// Sectors at the head of the page.
    pub(super) head: u32,
    /// Triples.
    pub(super) triples: u32,
}

impl PageIndex {
    pub(super) const fn of(index: CompactionIndex, oob_bytes: u32) -> PageIndex {
        let (head, bytes) = match index {
            CompactionIndex::Page => (1, 512),
            CompactionIndex::Oob => (0, oob_bytes.saturating_sub(OOB_BYTES)),
        };
        PageIndex { head, triples: bytes.saturating_sub(IDENTIFIER_BYTES) / TRIPLE_BYTES }
    }
}

/// Bytes of the identifier, and of a triple: four of LPN, one each of offset and length.
pub(super) const IDENTIFIER_BYTES: u32 = 2;
pub(super) const TRIPLE_BYTES: u32 = 6;

/// What one page holds of one logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) lpn: Lpn,
    /// Its place in the order of versions.
    pub(super) number: u64,
    /// The sectors it holds.
    pub(super) mask: u64,
    /// Where the first of them is in a compacted page; the others follow.
    pub(super) offset: Option<u32>,
    /// Nothing older shows through: a full page, or the first that was ever written.
    pub(super) floor: bool,
}

impl Version {
    /// The sector of the physical page that holds a sector of the logical one.
    pub(super) fn place_of(&self, sector: u32) -> u32 {
        debug_assert!(self.mask >> sector & 1 != 0, "sector {sector} of LPN {} is in no place", self.lpn);
        let before = self.mask & ((1 << sector) - 1);
        self.offset.map_or(sector, |offset| offset + before.count_ones())
    }
}

/// Runs of sectors in a mask: each has a triple.
pub(super) const fn runs(mask: u64) -> u32 {
    (mask & !(mask << 1)).count_ones()
}

/// The OOB of a version of one logical page.
pub(super) fn plain_words(number: u64, mask: u64, patterns: Patterns) -> Box<[u64]> {
    let pattern = patterns.number(mask).map_or(NO_PATTERN, u64::from);
    Box::new([VERSION, number, pattern, if pattern == NO_PATTERN { mask } else { 0 }])
}

/// The OOB of a full page that keeps its number.
pub(super) fn full_words(number: u64) -> Box<[u64]> {
    Box::new([FULL, number])
}

/// The head of a compacted page.
pub(super) fn compacted_words(versions: &[Version]) -> Box<[u64]> {
    let mut words = vec![COMPACTED];
    for version in versions {
        debug_assert_ne!(version.mask, 0, "a version of no sectors is laid out");
        let offset = u64::from(version.offset.expect("a compacted version has an offset"));
        let floor = if version.floor { FLOOR } else { 0 };
        words.extend([u64::from(version.lpn.0) | offset << 32 | floor, version.number, version.mask]);
    }
    words.into()
}

/// Whether a page holds versions of several logical pages.
pub(super) fn is_compacted(media: &Media, ppn: Ppn) -> bool {
    media.flash.oob.lpn(ppn.sole_unit()) == Lpn::NONE
}

/// Whether a page holds less than a full page: a version beside which another one is valid.
pub(super) fn is_partial(media: &Media, ppn: Ppn, user_units: u32) -> bool {
    let lpn = media.flash.oob.lpn(ppn.sole_unit());
    lpn == Lpn::NONE
        || lpn.0 < user_units
            && media.flash.oob.record(ppn.sole_unit()).is_some_and(|words| words.first() == Some(&VERSION))
}

/// The versions that a page holds, of user pages: one, or those of a compacted page. None if its words are damaged.
pub(super) fn versions(media: &Media, ppn: Ppn, patterns: Patterns, full: u64) -> Vec<Version> {
    let lpn = media.flash.oob.lpn(ppn.sole_unit());
    let words = media.flash.oob.record(ppn.sole_unit());
    if lpn != Lpn::NONE {
        return plain(media, ppn, lpn, words, patterns, full).into_iter().collect();
    }
    let Some([COMPACTED, triples @ ..]) = words else { return Vec::new() };
    let (triples, _) = triples.as_chunks::<3>();
    let version = |[triple, number, mask]: &[u64; 3]| Version {
        lpn: Lpn(*triple as u32),
        number: *number,
        mask: *mask,
        offset: Some(((triple & !FLOOR) >> 32) as u32),
        floor: triple & FLOOR != 0,
    };
    triples.iter().map(version).collect()
}

fn plain(media: &Media, ppn: Ppn, lpn: Lpn, words: Option<&[u64]>, patterns: Patterns, full: u64) -> Option<Version> {
    let whole = |number| Version { lpn, number, mask: full, offset: None, floor: true };
    match words {
        None => {
            let place = media.place_of_page(ppn);
            Some(whole(media.flash.oob.sequence(place.block, place.page)))
        }
        Some([FULL, number]) => Some(whole(*number)),
        Some([VERSION, number, NO_PATTERN, mask]) => {
            Some(Version { lpn, number: *number, mask: *mask, offset: None, floor: false })
        }
        Some([VERSION, number, pattern, _]) if *pattern < u64::from(patterns.count()) => {
            Some(Version { lpn, number: *number, mask: patterns.mask(*pattern as u32), offset: None, floor: false })
        }
        Some(_) => None,
    }
}

/// What a page holds of a logical page.
pub(super) fn version_of(media: &Media, ppn: Ppn, lpn: Lpn, patterns: Patterns, full: u64) -> Option<Version> {
    let owner = media.flash.oob.lpn(ppn.sole_unit());
    if owner == lpn {
        return plain(media, ppn, lpn, media.flash.oob.record(ppn.sole_unit()), patterns, full);
    }
    versions(media, ppn, patterns, full).into_iter().find(|version| version.lpn == lpn)
}

//! The first page of a block: what the block is for, and which pages on flash a merge has made meaningless.
//!
//! Every page of data names its LPN in the OOB area, with the number of its program. Of all pages of an LPN the newest
//! counts, unless the header of a newer data block says that the LPN held nothing when its merge began: so trims are
//! durable, and a merge may be cut anywhere.

use ssdlab_flash::{BlockId, NONE};

use crate::media::{Media, Place};

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A logical block, each page at its place.
    Data,
    /// A logical block, each page at its place, of a merge that says nothing new: what it copies is where it was, too,
    /// until all of it is written.
    Copy,
    /// Pages in the order in which they were written.
    Log,
}

/// What a header says.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) role: Role,
    /// The logical block; `NONE` for a log block of any.
    pub(super) logical: u32,
    /// Pages that the merge writes.
    pub(super) pages: u32,
    /// The number of the header's program: it says nothing of pages with higher ones.
    pub(super) sequence: u64,
    /// Offsets that held nothing before a program that had not ended, and the number of that program: what is older is trimmed.
    pub(super) revived: Vec<(u32, u64)>,
    /// Of a copy: the numbers of the first pages of the blocks that it copies from.
    pub(super) sources: Vec<u64>,
    /// One bit a page: held data when the merge began. Of a log block none: it says nothing of other blocks.
    pub(super) held: Vec<u64>,
}

/// Words before the lists.
const FIXED: usize = 4;
/// Bits of a program's number in a revived entry; the offset is above.
const SEQUENCE_BITS: u32 = 48;

impl Header {
    /// The most bytes of a header over so many pages. Of a copy all pages are on flash: it has revived none.
    pub(super) const fn bytes(pages: u32) -> u64 {
        (FIXED as u64 + pages as u64 + 1 + pages.div_ceil(64) as u64) * 8
    }

    pub(super) fn words(&self) -> Box<[u64]> {
        let role = match self.role {
            Role::Data => 0,
            Role::Copy => 1,
            Role::Log => 2,
        };
        let is_copy = self.role == Role::Copy;
        assert!(if is_copy { self.revived.is_empty() } else { self.sources.is_empty() }, "a header has one list");
        let listed = self.revived.len() + self.sources.len();
        let fixed = [role, self.logical.into(), self.pages.into(), listed as u64];
        let revived = self.revived.iter().map(|(offset, since)| {
            assert!(since >> SEQUENCE_BITS == 0, "program {since} has a number of {SEQUENCE_BITS} bits");
            u64::from(*offset) << SEQUENCE_BITS | since
        });
        let sources = self.sources.iter().copied();
        fixed.into_iter().chain(revived).chain(sources).chain(self.held.iter().copied()).collect()
    }

    /// The header of a block, whether it is on flash or on its way; `None` where there is none that is whole.
    pub(super) fn of(media: &Media, block: BlockId, data_pages: u32) -> Option<Header> {
        let words = media.flash.oob.record(media.unit_at(Place { block, page: 0 }))?;
        let (fixed, rest) = words.split_at_checked(FIXED)?;
        let role = match fixed[0] {
            0 => Role::Data,
            1 => Role::Copy,
            2 => Role::Log,
            _ => return None,
        };
        let (logical, pages) = (u32::try_from(fixed[1]).ok()?, u32::try_from(fixed[2]).ok()?);
        let (listed, held) = rest.split_at_checked(usize::try_from(fixed[3]).ok()?)?;
        let bits = if role == Role::Log { 0 } else { data_pages.div_ceil(64) as usize };
        let fits = held.len() == bits && pages <= data_pages && (logical != NONE || role == Role::Log);
        let (revived, sources) = if role == Role::Copy { (&[][..], listed) } else { (listed, &[][..]) };
        fits.then(|| Header {
            role,
            logical,
            pages,
            sequence: media.flash.oob.sequence(block, 0),
            revived: revived
                .iter()
                .map(|word| ((word >> SEQUENCE_BITS) as u32, word & ((1 << SEQUENCE_BITS) - 1)))
                .collect(),
            sources: sources.to_vec(),
            held: held.to_vec(),
        })
    }

    /// Whether a page of this offset with this number is meaningless.
    pub(super) fn hides(&self, offset: u32, sequence: u64) -> bool {
        let was_trimmed = |(other, since): &(u32, u64)| *other == offset && sequence < *since;
        self.role != Role::Log
            && sequence < self.sequence
            && (!self.has_held(offset) || self.revived.iter().any(was_trimmed))
    }

    /// Whether a page held data when the merge began.
    pub(super) fn has_held(&self, offset: u32) -> bool {
        self.held[offset as usize / 64] >> (offset % 64) & 1 != 0
    }
}

/// The bits of those of `count` pages that `is_set` holds for.
pub(super) fn bits(count: u32, is_set: impl Fn(u32) -> bool) -> Vec<u64> {
    let mut words = vec![0; count.div_ceil(64) as usize];
    for offset in (0..count).filter(|offset| is_set(*offset)) {
        words[offset as usize / 64] |= 1 << (offset % 64);
    }
    words
}

//! The first page of a block: which logical block it holds, and what of older blocks still counts.
//!
//! A page of a logical block is looked for from its newest block on. A block has it if the page is there, readable, and
//! `written`, or behind the pages that the merge wrote: then it was appended. If not, the header decides: an `inherited`
//! page is looked for in the block before, and every other one holds nothing. So a header alone makes trims durable, and
//! a merge may be cut anywhere.

use ssdlab_flash::{BlockId, NONE};

use crate::media::{Media, Place};

/// What a header says.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Rises from header to header: of two blocks of one logical block the higher one is newer.
    pub(super) sequence: u64,
    pub(super) logical: u32,
    /// Pages that the merge writes.
    pub(super) pages: u32,
    /// The merge says nothing new: what it copies is where it was, too, until all of it is written.
    pub(super) is_copy: bool,
    /// One bit a page: held data that would be found when the merge began.
    pub(super) inherited: Vec<u64>,
    /// One bit a page: the merge writes data there, and no padding.
    pub(super) written: Vec<u64>,
}

/// Words before the bits.
const FIXED: usize = 4;

impl Header {
    /// Bytes of a header over so many pages.
    pub(super) const fn bytes(pages: u32) -> u64 {
        (FIXED as u64 + 2 * pages.div_ceil(64) as u64) * 8
    }

    pub(super) fn words(&self) -> Box<[u64]> {
        assert_eq!(self.inherited.len(), self.written.len(), "both have a bit a page");
        assert_ne!(self.logical, NONE, "a header names a logical block");
        let fixed = [self.sequence, self.logical.into(), self.pages.into(), self.is_copy.into()];
        [&fixed[..], &self.inherited, &self.written].concat().into()
    }

    /// The header of a block, whether it is on flash or on its way; `None` where there is none that is whole.
    pub(super) fn of(media: &Media, block: BlockId, data_pages: u32) -> Option<Header> {
        let words = media.flash.oob.record(media.unit_at(Place { block, page: 0 }))?;
        let bits = data_pages.div_ceil(64) as usize;
        let (fixed, rest) = words.split_at_checked(FIXED)?;
        let (logical, pages) = (u32::try_from(fixed[1]).ok()?, u32::try_from(fixed[2]).ok()?);
        let fits = rest.len() == 2 * bits && logical != NONE && pages <= data_pages && fixed[3] <= 1;
        fits.then(|| Header {
            sequence: fixed[0],
            logical,
            pages,
            is_copy: fixed[3] == 1,
            inherited: rest[..bits].to_vec(),
            written: rest[bits..].to_vec(),
        })
    }

    /// Whether page `offset` holds data if it is there.
    pub(super) fn has_data(&self, offset: u32) -> bool {
        offset >= self.pages || bit(&self.written, offset)
    }

    /// Whether page `offset` is looked for in the block before if it is not there.
    pub(super) fn inherits(&self, offset: u32) -> bool {
        bit(&self.inherited, offset)
    }
}

fn bit(words: &[u64], offset: u32) -> bool {
    words[offset as usize / 64] >> (offset % 64) & 1 != 0
}

/// The bits of those of `count` pages that `is_set` holds for.
pub(super) fn bits(count: u32, is_set: impl Fn(u32) -> bool) -> Vec<u64> {
    let mut words = vec![0; count.div_ceil(64) as usize];
    for offset in (0..count).filter(|offset| is_set(*offset)) {
        words[offset as usize / 64] |= 1 << (offset % 64);
    }
    words
}

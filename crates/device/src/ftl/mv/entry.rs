//! The 32-bit map entry, split into PPN and PT/F (section 3.2, Figure 5).
//!
//! ```text
//!  31     30 ...     n n - 1                 0
//! |  F  |     PT      |          PPN          |     F only with compaction
//! ```
//!
//! PPN names the oldest valid version, PT where the newest is: 0 if there is no newer one. F says that the newest
//! version is one of several in a compacted page. With PT/F all zeroes the entry is that of a full page. All ones are
//! the entry of a page that holds nothing, so PT is never all ones.

use ssdlab_flash::Ppn;

/// The entry of a logical page that holds nothing.
pub(super) const UNMAPPED: u32 = u32::MAX;

/// Where the fields of an entry are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    ppn_bits: u32,
    pt_bits: u32,
    flag: bool,
}

impl Split {
    /// The fields for so many physical pages. `bits` are given to PT/F; `None`: all that are left.
    pub(super) fn new(pages: u64, bits: Option<u32>, compaction: bool) -> Option<Split> {
        let ppn_bits = 64 - (pages.max(2) - 1).leading_zeros();
        let left = 32_u32.checked_sub(ppn_bits)?;
        let field = bits.unwrap_or(left).min(left);
        let pt_bits = field.checked_sub(u32::from(compaction))?;
        (pt_bits >= 2 && bits.is_none_or(|bits| bits <= left)).then_some(Split { ppn_bits, pt_bits, flag: compaction })
    }

    /// The largest PT.
    pub(super) const fn most(self) -> u32 {
        (u32::MAX >> (32 - self.pt_bits)) - 1
    }

    #[inline]
    pub(super) const fn pack(self, ppn: Ppn, pt: u32, compacted: bool) -> u32 {
        debug_assert!(ppn.0 >> self.ppn_bits == 0, "a page's number fits beside PT and F");
        debug_assert!(pt <= self.most(), "PT fits, and is never all ones");
        debug_assert!(self.flag || !compacted, "an entry without F says nothing of compacted pages");
        let flag = if compacted { 1 << (self.ppn_bits + self.pt_bits) } else { 0 };
        ppn.0 | pt << self.ppn_bits | flag
    }

    /// The oldest version's page.
    #[inline]
    pub(super) const fn ppn(self, entry: u32) -> Ppn {
        Ppn(entry & (u32::MAX >> (32 - self.ppn_bits)))
    }

    /// Where the newest version is.
    #[inline]
    pub(super) const fn pt(self, entry: u32) -> u32 {
        (entry >> self.ppn_bits) & (u32::MAX >> (32 - self.pt_bits))
    }

    /// Whether the newest version is in a compacted page.
    #[inline]
    pub(super) const fn compacted(self, entry: u32) -> bool {
        self.flag && (entry >> (self.ppn_bits + self.pt_bits)) & 1 != 0
    }

    /// Whether an entry is one that [`Split::pack`] gives, or none: PT is in its range and no bit beside the fields is set.
    pub(super) const fn is_packed(self, entry: u32) -> bool {
        let bits = self.ppn_bits + self.pt_bits + if self.flag { 1 } else { 0 };
        entry == UNMAPPED || (entry as u64) >> bits == 0 && self.pt(entry) <= self.most()
    }

    /// Whether the entry is that of a full page.
    #[inline]
    pub(super) const fn is_full(self, entry: u32) -> bool {
        entry >> self.ppn_bits == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_drive_has_26_bits_of_ppn_and_6_of_pt() {
        let split = Split::new((256 << 30) / 4096, None, false).expect("bits are left");
        assert_eq!((split.ppn_bits, split.pt_bits), (26, 6));
        assert_eq!(split.most(), 62);
        let split = Split::new((256 << 30) / 16384, None, true).expect("bits are left");
        assert_eq!((split.ppn_bits, split.pt_bits), (24, 7));
    }

    #[test]
    fn what_is_packed_is_found_again_and_is_never_unmapped() {
        for (pages, bits, compaction) in [(2, None, false), (1 << 29, None, true), (1000, Some(2), false)] {
            let split = Split::new(pages, bits, compaction).expect("bits are left");
            for ppn in [0, 1, pages as u32 - 1].map(Ppn) {
                for pt in [0, 1, split.most()] {
                    for flag in [false, compaction] {
                        let entry = split.pack(ppn, pt, flag);
                        assert_eq!((split.ppn(entry), split.pt(entry), split.compacted(entry)), (ppn, pt, flag));
                        assert_eq!(split.is_full(entry), pt == 0 && !flag);
                        assert_ne!(entry, UNMAPPED);
                        assert!(split.is_packed(entry));
                    }
                }
            }
        }
    }

    #[test]
    fn an_entry_with_a_bit_beside_its_fields_is_not_packed() {
        let split = Split::new(1000, Some(4), false).expect("bits are left");
        assert!(split.is_packed(UNMAPPED));
        assert!(split.is_packed(1 << 13), "PT 8");
        assert!(!split.is_packed(1 << 14), "a bit above PT");
        assert!(!split.is_packed(15 << 10), "PT is never all ones");
    }

    #[test]
    fn an_entry_without_bits_for_pt_is_refused() {
        assert_eq!(Split::new(1 << 32, None, false), None);
        assert_eq!(Split::new(1 << 31, None, false), None);
        assert!(Split::new(1 << 30, None, false).is_some());
        assert_eq!(Split::new(1 << 30, None, true), None);
        assert_eq!(Split::new(1 << 30, Some(3), false), None);
    }
}

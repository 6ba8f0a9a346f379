//! What a mirror keeps on each side, behind the user's sectors: a record of which sides are in sync, and the words of the
//! write-intent bitmap, a sector each.
//!
//! Of records that differ the one of the highest generation is believed: a side that was left behind keeps an older one.

/// Tells a record from other contents.
const MAGIC: u64 = 0x5d1b;

/// Most sides.
pub(super) const SIDES_MAX: usize = 8;

/// Which sides hold everything that completed, but for the regions of the bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) generation: u32,
    /// A bit a side.
    pub(super) in_sync: u64,
    pub(super) sides: usize,
}

impl Record {
    pub(super) fn to_word(self) -> u64 {
        MAGIC << 48 | u64::from(self.generation) << 16 | self.in_sync << 8 | self.sides as u64
    }

    /// `None` where the word is no record of a mirror of so many sides.
    pub(super) fn from_word(word: u64, sides: usize) -> Option<Record> {
        let record =
            Record { generation: (word >> 16) as u32, in_sync: word >> 8 & 0xff, sides: (word & 0xff) as usize };
        let known = record.in_sync != 0 && record.in_sync >> sides == 0;
        (word >> 48 == MAGIC && record.sides == sides && known).then_some(record)
    }
}

/// Where everything is, in sectors of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The user's sectors.
    pub(super) sectors: u64,
    /// Sectors of a region.
    pub(super) region: u64,
    pub(super) regions: u64,
    pub(super) record: u64,
    pub(super) bitmap: u64,
}

impl Layout {
    /// On sides of `sectors` sectors, which like to be written in units of `unit` sectors.
    pub(super) fn new(sectors: u64, region: u64, unit: u64) -> Option<Layout> {
        let words = sectors.div_ceil(region).div_ceil(64);
        let user = sectors.checked_sub(1 + words)? / unit * unit;
        let regions = user.div_ceil(region);
        (user > 0).then_some(Layout { sectors: user, region, regions, record: user, bitmap: user + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_nothing_else_is_one() {
        let record = Record { generation: 0xdead_beef, in_sync: 0b10, sides: 2 };
        assert_eq!(Record::from_word(record.to_word(), 2), Some(record));
        assert_eq!(Record::from_word(record.to_word(), 3), None);
        for word in [0, u64::MAX, record.to_word() ^ 1 << 60, Record { in_sync: 0, ..record }.to_word()] {
            assert_eq!(Record::from_word(word, 2), None);
        }
        let layout = Layout::new(1000, 16, 8).expect("there is room");
        assert_eq!((layout.sectors, layout.regions, layout.bitmap), (992, 62, 993));
        assert_eq!(Layout::new(2, 16, 8), None);
    }
}

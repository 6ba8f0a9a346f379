//! What the layer keeps at the end of the disk's addresses: a record on both devices that says that they belong together, and on the
//! cache the words of the write-intent bitmap, a block each.
//!
//! Both devices have the record, a word in the first sector of its block. A start counts the generation on: it writes the record to the
//! cache, as one that has begun, then to the disk, and then to the cache again, as one that both have. So the two differ only where the
//! cache says that a start has begun; else one of them is of another pair, or missed a start.

use ssdlab_base::SECTOR_BYTES;

/// Tells a record from other contents.
const MAGIC: u64 = 0xcac4;

/// The record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Of the pair.
    pub(super) identity: u32,
    /// Starts of the pair, modulo 2^15.
    pub(super) generation: u16,
    /// The disk may not have it yet.
    pub(super) has_begun: bool,
}

/// Marks the record of a start that has begun.
const BEGUN: u16 = 1 << 15;

impl Record {
    pub(super) fn to_word(self) -> u64 {
        let mark = if self.has_begun { BEGUN } else { 0 };
        MAGIC << 48 | u64::from(self.identity) << 16 | u64::from(self.generation | mark)
    }

    pub(super) fn from_word(word: u64) -> Option<Record> {
        let (generation, has_begun) = (word as u16 & !BEGUN, word as u16 & BEGUN != 0);
        (word >> 48 == MAGIC).then_some(Record { identity: (word >> 16) as u32, generation, has_begun })
    }

    /// Whether a cache with this record belongs to a disk with the other one.
    pub(super) fn belongs_to(self, disk: Record) -> bool {
        let begun_after = self.has_begun && self.generation == disk.next().generation;
        self.identity == disk.identity && (self.generation == disk.generation || begun_after)
    }

    /// The record of the next start.
    #[must_use]
    pub(super) fn next(self) -> Record {
        Record { generation: self.generation.wrapping_add(1) & !BEGUN, ..self }
    }
}

/// Where everything is, in sectors of both devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The user's sectors.
    pub(super) sectors: u64,
    /// Sectors of a block.
    pub(super) per_block: u64,
    /// Sectors of a region.
    pub(super) region: u64,
    /// Regions, and words that have a bit for each.
    pub(super) regions: u64,
    pub(super) words: u64,
    /// The record's block, and the bitmap's first one.
    pub(super) record: u64,
    pub(super) bitmap: u64,
}

impl Layout {
    /// On a disk of `sectors` sectors. Without a `region` there is one region, which covers everything.
    pub(super) fn new(sectors: u64, block_bytes: u32, region: Option<u64>) -> Option<Layout> {
        let per_block = u64::from(block_bytes) / SECTOR_BYTES;
        let blocks = sectors / per_block;
        let region = region.unwrap_or(u64::MAX).min((blocks * per_block).max(1));
        let words = (blocks * per_block).div_ceil(region).div_ceil(64);
        let user = blocks.checked_sub(1 + words).filter(|user| *user > 0)? * per_block;
        Some(Layout {
            sectors: user,
            per_block,
            region,
            regions: user.div_ceil(region),
            words: user.div_ceil(region).div_ceil(64),
            record: user,
            bitmap: user + per_block,
        })
    }

    /// Blocks of the user.
    pub(super) const fn blocks(&self) -> u32 {
        (self.sectors / self.per_block) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_and_belongs_to_that_of_this_start_or_where_one_has_begun_of_the_one_before() {
        let record = Record { identity: 0xdead_beef, generation: 0x7fff, has_begun: false };
        assert_eq!(Record::from_word(record.to_word()), Some(record));
        for word in [0, u64::MAX, record.to_word() ^ 1 << 60] {
            assert_eq!(Record::from_word(word), None);
        }
        let next = record.next();
        let begun = Record { has_begun: true, ..next };
        assert_eq!((next.generation, Record::from_word(begun.to_word())), (0, Some(begun)));
        assert!(begun.belongs_to(record) && begun.belongs_to(next) && next.belongs_to(next));
        assert!(!next.belongs_to(record) && !record.belongs_to(next) && !begun.next().belongs_to(record));
        assert!(!Record { identity: 1, ..begun }.belongs_to(record));
    }

    #[test]
    fn the_record_and_the_bitmap_are_behind_the_users_blocks() {
        let layout = Layout::new(1000, 4096, Some(64)).expect("there is room");
        let Layout { sectors, regions, words, record, bitmap, .. } = layout;
        assert_eq!((sectors, regions, words, record, bitmap), (984, 16, 1, 984, 992));
        assert_eq!(Layout::new(1000, 4096, None).map(|layout| (layout.regions, layout.region)), Some((1, 1000)));
        assert_eq!(Layout::new(16, 4096, None), None);
    }
}

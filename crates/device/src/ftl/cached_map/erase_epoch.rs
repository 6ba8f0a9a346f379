//! A superblock from one erase to the next: what recovery and a log remember of one holds until its erase.

use ssdlab_base::saved;

use crate::media::Media;

/// A superblock from one erase to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::ftl) struct EraseEpoch {
    pub(in crate::ftl) superblock: u32,
    /// The number of its first program.
    opened: u64,
}

impl EraseEpoch {
    /// What a superblock is in now; its first page was programmed.
    pub(in crate::ftl) fn of(media: &Media, superblock: u32) -> EraseEpoch {
        let place = media.pool.superblocks.place(superblock, 0);
        EraseEpoch { superblock, opened: media.flash.oob.sequence(place.block, place.page) }
    }

    /// Whether the superblock was not erased since.
    pub(in crate::ftl) fn is_current(self, media: &Media) -> bool {
        media.pool.superblocks.is_whole(self.superblock) && EraseEpoch::of(media, self.superblock) == self
    }
}

// When it was opened is on flash.
saved!(EraseEpoch: superblock);

//! Where the layer keeps what, in sectors: on the cache a superblock, metadata of all slots and the slots; on the disk the user's
//! blocks and, behind them, a label.
//!
//! ```text
//!   cache   | superblock, 4 KB | metadata, 16 bytes a slot | slots of 4 KB, set after set |
//!   disk    | user's blocks of 4 KB                                        | label, 4 KB |
//! ```

use ssdlab_base::{SECTOR_BYTES, format_size};

use super::config::FlashCacheConfig;
use crate::LayerError;

/// Sectors of a block.
pub(super) const BLOCK_SECTORS: u64 = 8;

/// Bytes of a block.
pub(super) const BLOCK_BYTES: u64 = BLOCK_SECTORS * SECTOR_BYTES;

/// Bytes that the metadata has of a slot (FlashCache, doc/flashcache-doc.txt).
pub(super) const ENTRY_BYTES: u64 = 16;

/// Bytes as a size that is not rounded to less than a KiB.
pub(super) fn exact_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format_size(bytes) } else { format!("{} KiB", bytes / 1024) }
}

/// Where everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(super) sets: u32,
    pub(super) set_blocks: u32,
    /// Slots and sectors of a metadata block.
    pub(super) per_metadata_block: u32,
    pub(super) metadata_sectors: u64,
    /// The first slot's first sector.
    pub(super) data: u64,
    /// The user's blocks.
    pub(super) disk_blocks: u32,
}

impl Layout {
    /// On a cache and a disk of so many sectors.
    pub(super) fn new(config: &FlashCacheConfig, cache: u64, disk: u64) -> Result<Layout, LayerError> {
        let size = |sectors: u64| exact_size(sectors.saturating_mul(SECTOR_BYTES));
        let set = u64::from(config.set_blocks);
        let per_metadata_block = config.slots_of_metadata_block();
        let data_of = |sets: u64| {
            let blocks = (sets * set).div_ceil(u64::from(per_metadata_block));
            (BLOCK_SECTORS + blocks * config.metadata_sectors()).next_multiple_of(BLOCK_SECTORS)
        };
        let fits = |sets: u64| sets > 0 && data_of(sets) + sets * set * BLOCK_SECTORS <= cache;
        let small = |what, found, least| Err(LayerError::SmallCache { what, found, least });
        let most = cache / BLOCK_SECTORS / set;
        let (sets, asked) = match config.size {
            Some(bytes) if bytes < set * BLOCK_BYTES => {
                let least = format!("{}, one set of {set} blocks", format_size(set * BLOCK_BYTES));
                return small("size", format_size(bytes), least);
            }
            Some(bytes) => (bytes / BLOCK_BYTES / set, bytes / BLOCK_BYTES / set),
            // Metadata takes less than a hundredth, and a little for small sets.
            None => ((0..=most).rev().find(|sets| fits(*sets)).unwrap_or(0), 1),
        };
        if !fits(sets) {
            let all = size(data_of(asked) + asked * set * BLOCK_SECTORS);
            let blocks = size(asked * set * BLOCK_SECTORS);
            return small("the cache drive", size(cache), format!("{all}, for {blocks} of blocks and their metadata"));
        }
        let too_large = |sectors: u64| LayerError::TooLarge {
            size: size(sectors),
            most: size(u64::from(u32::MAX) * BLOCK_SECTORS),
        };
        u32::try_from(sets * set).map_err(|_| too_large(cache))?;
        // The label stands behind the last of the user's blocks.
        let blocks = (disk / BLOCK_SECTORS).saturating_sub(1);
        if blocks == 0 {
            return small("the disk", size(disk), format!("{}, one block and a label", size(2 * BLOCK_SECTORS)));
        }
        let disk_blocks =
            u32::try_from(blocks).ok().filter(|blocks| *blocks < u32::MAX).ok_or_else(|| too_large(disk))?;
        Ok(Layout {
            sets: sets as u32,
            set_blocks: config.set_blocks,
            per_metadata_block,
            metadata_sectors: config.metadata_sectors(),
            data: data_of(sets),
            disk_blocks,
        })
    }

    pub(super) const fn slots(&self) -> u32 {
        self.sets * self.set_blocks
    }

    pub(super) const fn metadata_blocks(&self) -> u32 {
        self.slots().div_ceil(self.per_metadata_block)
    }

    /// The first sector of a metadata block.
    pub(super) const fn metadata_sector(&self, block: u32) -> u64 {
        BLOCK_SECTORS + block as u64 * self.metadata_sectors
    }

    /// The first sector of a slot.
    pub(super) const fn slot_sector(&self, slot: u32) -> u64 {
        self.data + slot as u64 * BLOCK_SECTORS
    }

    /// The sector of the label on the disk.
    pub(super) const fn label(&self) -> u64 {
        self.disk_blocks as u64 * BLOCK_SECTORS
    }
}

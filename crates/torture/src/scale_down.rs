//! A drive of one's own made small: its policies, timing, page and unit stay, only counts go down, so that all of it
//! can be compared after every power cut.

use ssdlab_device::DriveConfig;

use crate::configs::most_user_units;
use crate::script::describable;

/// A drive of at most so many bytes is tortured as it is.
pub const SMALL_ENOUGH: u64 = 1 << 20;

/// Pages of a block, at most.
const PAGES_PER_BLOCK: u32 = 8;

/// The drive itself if it is small enough, else one of the same kind; `None` if no such drive is accepted.
pub fn small_like(config: &DriveConfig) -> Option<DriveConfig> {
    if config.user_bytes <= SMALL_ENOUGH {
        return describable(config);
    }
    let full = config.user_bytes as f64 / config.flash.geometry.bytes() as f64;
    let mut small = config.clone();
    let geometry = &mut small.flash.geometry;
    geometry.channels = geometry.channels.min(2);
    geometry.chips_per_channel = 1;
    geometry.dies_per_chip = 1;
    geometry.planes_per_die = geometry.planes_per_die.min(2);
    geometry.pages_per_block = geometry.pages_per_block.min(PAGES_PER_BLOCK);
    let blocks = geometry.blocks();
    small.flash.faults.script.retain(|fault| fault.block.0 < blocks);
    small.gc.background_free_blocks = small.gc.background_free_blocks.min(small.gc.free_blocks + 2);
    let unit = u64::from(small.ftl.mapping_unit);
    small.user_bytes = unit;
    // What garbage collection keeps, the frontiers, and as many blocks again for data.
    let kept = small.gc.free_blocks + small.ftl.streams + 1;
    // A host that appends needs segments for its log as well.
    let (step, tries) = match small.segment_units() {
        Some(units) => (u64::from(units), [kept * 8, kept * 12, kept * 16]),
        None => (1, [kept * 2, kept * 3, kept * 6]),
    };
    for blocks in tries {
        small.flash.geometry.blocks_per_plane = blocks.min(config.flash.geometry.blocks_per_plane);
        let Some(most) = most_user_units(&small) else { continue };
        let wanted = (full * small.flash.geometry.bytes() as f64 / unit as f64) as u64;
        small.user_bytes = (wanted.clamp(1, most) / step).max(1) * step * unit;
        let buffer = (small.user_bytes / 8).next_multiple_of(u64::from(small.flash.geometry.page_bytes));
        small.buffer.bytes = small.buffer.bytes.min(buffer);
        return describable(&small);
    }
    None
}

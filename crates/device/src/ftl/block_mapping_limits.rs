//! The drives that designs take which map blocks, with a header in the first page of each.

use rand::RngExt;
use ssdlab_base::Rng;

use crate::{Allocation, DriveConfig, DriveError, Pacing, Parity, Superblock};

/// Refuses what cannot work for the design `name`, with the numbers; `header` is the bytes of a header over so many pages.
pub(super) fn check(config: &DriveConfig, name: &str, header: fn(u32) -> u64) -> Result<(), DriveError> {
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    let geometry = &config.flash.geometry;
    if config.ftl.mapping_unit != geometry.page_bytes {
        let (unit, page) = (config.ftl.mapping_unit, geometry.page_bytes);
        return refuse("ftl.mapping_unit", format!("{unit}: the design '{name}' maps pages, here of {page} bytes"));
    }
    if geometry.pages_per_block < 2 {
        let found = geometry.pages_per_block;
        let reason = format!("{found}: the design '{name}' needs 2, one for the header of the block");
        return refuse("flash.pages_per_block", reason);
    }
    let header = header(geometry.pages_per_block - 1);
    if header > u64::from(geometry.page_bytes) {
        let reason = format!(
            "{}: the header of a block takes up to {header} bytes, more than a page of {}",
            geometry.pages_per_block, geometry.page_bytes
        );
        return refuse("flash.pages_per_block", reason);
    }
    if config.ftl.allocation != Allocation::Dynamic {
        let reason = format!("the design '{name}' opens blocks where there are most free ones: use \"dynamic\"");
        return refuse("ftl.allocation", reason);
    }
    if config.ftl.superblock != Superblock::None {
        let found = config.ftl.superblock.word();
        return refuse("ftl.superblock", format!("\"{found}\": the design '{name}' maps blocks: use \"none\""));
    }
    if config.gc.pacing != Pacing::Off {
        let reason = format!("the design '{name}' merges when it needs a block, at no pace: use \"off\"");
        return refuse("gc.pacing", reason);
    }
    if config.gc.static_wear_threshold > 0 {
        let found = config.gc.static_wear_threshold;
        let reason = format!("{found}: the design '{name}' has no static wear levelling: use 0");
        return refuse("gc.static_wear_threshold", reason);
    }
    Ok(())
}

/// Makes a drawn drive one that [`check`] accepts.
pub(super) fn draw(config: &mut DriveConfig, rng: &mut Rng, header: fn(u32) -> u64) {
    let geometry = &mut config.flash.geometry;
    geometry.pages_per_block = geometry.pages_per_block.max(rng.random_range(2..6));
    let header = header(geometry.pages_per_block - 1) as u32;
    geometry.page_bytes = geometry.page_bytes.max(header).next_power_of_two();
    let units = config.buffer.bytes / u64::from(config.ftl.mapping_unit);
    config.buffer.bytes = units * u64::from(geometry.page_bytes);
    config.ftl.mapping_unit = geometry.page_bytes;
    config.ftl.allocation = Allocation::Dynamic;
    config.ftl.superblock = Superblock::None;
    config.ftl.parity = Parity::None;
    config.gc.pacing = Pacing::Off;
    config.gc.static_wear_threshold = 0;
}

/// A block of one page of data, or of three.
pub(super) fn handful(config: &mut DriveConfig, other: bool) {
    config.flash.geometry.page_bytes = config.ftl.mapping_unit;
    config.flash.geometry.pages_per_block = if other { 4 } else { 2 };
}

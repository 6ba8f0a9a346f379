//! How much memory a drive takes in the simulator, known before it is taken.
//!
//! Each part says so itself, beside where it takes it; `crates/device/tests/memory.rs` holds the sum against what is taken.

use ssdlab_flash::{Contents, Flash};

use super::{Drive, DriveError};
use crate::DriveConfig;
use crate::block_pool::BlockPool;
use crate::buffer::WriteBuffer;
use crate::ftl::DESIGNS;
use crate::media::summary_bytes;
use crate::placement::Placement;
use crate::registry::pick;

/// What commands in flight, their data and the lists of them take whatever the drive's size.
const IN_FLIGHT: u64 = 2 << 20;

impl Drive {
    /// Bytes that a drive takes at most once all of it has been written, with a thirty-second part and 2 MiB for commands
    /// in flight: of a design that maps pages up to 15 % more than is taken, of one that keeps versions up to twice as
    /// much as it takes with few of them. Not in it are queues of thousands of commands, and records of trims that were
    /// superseded. The operating system gives most of it only as the drive is written.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn simulator_bytes(config: &DriveConfig, contents: Contents) -> Result<u64, DriveError> {
        let flash = Flash::simulator_bytes(&config.flash.geometry, units_per_page(config), contents);
        whole(config, flash, contents)
    }

    /// Bytes that a drive whose contents are in an image takes at most once all of it has been written, with the
    /// additions and exceptions that [`Drive::simulator_bytes`] names.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn simulator_bytes_on_image(config: &DriveConfig) -> Result<u64, DriveError> {
        let flash = Flash::simulator_bytes_on_image(&config.flash.geometry, units_per_page(config));
        whole(config, flash, Contents::Bytes)
    }
}

fn units_per_page(config: &DriveConfig) -> u32 {
    config.flash.geometry.page_bytes / config.ftl.mapping_unit
}

/// The chips and the controller.
fn whole(config: &DriveConfig, flash: u64, contents: Contents) -> Result<u64, DriveError> {
    let design = pick("ftl.design", &config.ftl.design, DESIGNS)?;
    let buffer = match config.buffer.policy.as_str() {
        "none" => 0,
        _ => WriteBuffer::simulator_bytes(config.buffer.bytes, config.ftl.mapping_unit, contents.sector_data_bytes()),
    };
    let pool = BlockPool::simulator_bytes(&config.flash.geometry);
    let lists = summary_bytes(config);
    let tables = flash + pool + lists + (design.simulator_bytes)(config) + buffer + Placement::simulator_bytes(config);
    Ok(tables + tables / 32 + IN_FLIGHT)
}

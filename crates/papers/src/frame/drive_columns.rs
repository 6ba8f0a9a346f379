//! What tables of drives read from descriptions.

use ssdlab_device::DriveConfig;
use ssdlab_flash::Latency;

use super::table::Column;

/// Bytes of a GB, as papers count flash.
pub(crate) const GB: f64 = 1_073_741_824.0;

/// Bytes of all chips.
pub(crate) const CAPACITY: Column<DriveConfig> =
    ("capacity", "GB", |drive| Some(drive.flash.geometry.bytes() as f64 / GB));

/// Bytes that the host has.
pub(crate) const USER_SPACE: Column<DriveConfig> = ("user space", "GB", |drive| Some(drive.user_bytes as f64 / GB));

/// Channels of the drive.
pub(crate) const CHANNELS: Column<DriveConfig> = ("channels", "", |drive| Some(drive.flash.geometry.channels.into()));

/// Chips on each channel.
pub(crate) const CHIPS: Column<DriveConfig> =
    ("chips/channel", "", |drive| Some(drive.flash.geometry.chips_per_channel.into()));

/// Dies of each chip.
pub(crate) const DIES: Column<DriveConfig> = ("dies/chip", "", |drive| Some(drive.flash.geometry.dies_per_chip.into()));

/// Planes of each die.
pub(crate) const PLANES: Column<DriveConfig> =
    ("planes/die", "", |drive| Some(drive.flash.geometry.planes_per_die.into()));

/// Pages of each block.
pub(crate) const PAGES: Column<DriveConfig> =
    ("pages/block", "", |drive| Some(drive.flash.geometry.pages_per_block.into()));

/// Bytes of a page.
pub(crate) const PAGE: Column<DriveConfig> =
    ("page", "KB", |drive| Some(f64::from(drive.flash.geometry.page_bytes) / 1024.0));

/// The longest read of an array.
pub(crate) const READ: Column<DriveConfig> = ("read", "us", |drive| longest_us(&drive.flash.timing.read));

/// The longest erase.
pub(crate) const ERASE: Column<DriveConfig> =
    ("erase", "ms", |drive| Some(drive.flash.timing.erase.max.0 as f64 / 1e6));

/// The longest of the latencies of a chip's pages.
pub(crate) fn longest_us(latencies: &[Latency]) -> Option<f64> {
    latencies.iter().map(|latency| latency.max.0 as f64 / 1e3).max_by(f64::total_cmp)
}

/// The shortest of the latencies of a chip's pages.
pub(crate) fn shortest_us(latencies: &[Latency]) -> Option<f64> {
    latencies.iter().map(|latency| latency.min.0 as f64 / 1e3).min_by(f64::total_cmp)
}

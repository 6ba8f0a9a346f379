//! The keys of `[ftl]` that log-block designs read, and the drives that they take.

use rand::RngExt;
use ssdlab_base::Rng;

use super::header::Header;
use crate::description::{Default, Key, Kind};
use crate::ftl::block_mapping_limits;
use crate::{DriveConfig, Settings};

/// The table.
pub(super) const KEYS: &[Key] = &[LOG_BLOCKS];

const LOG_BLOCKS: Key = Key::new(
    "log_blocks",
    Kind::Percent(1),
    Default::number(15),
    "Log blocks, in percent of all blocks (Application-Managed Flash, section 5.1: 15 %); at least as many as the design needs.",
);

/// Log blocks at most, of a design that needs `least`.
pub(super) fn log_blocks(config: &DriveConfig, least: u32) -> u32 {
    let percent = config.ftl.own.number(&LOG_BLOCKS, &config.flash.geometry);
    let blocks = u64::from(config.flash.geometry.blocks()) * percent / 100;
    u32::try_from(blocks).unwrap_or(u32::MAX).max(least)
}

/// Makes a drawn drive one that a design of this folder takes.
pub(super) fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    block_mapping_limits::draw(config, rng, Header::bytes);
    config.ftl.own = Settings::default().with("log_blocks", [1_u32, 5, 15, 30][rng.random_range(0..4)]);
}

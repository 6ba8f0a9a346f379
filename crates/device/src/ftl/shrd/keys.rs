//! The keys of `[ftl]` that this design reads beside those of a cached map.

use rand::RngExt;
use ssdlab_base::{Rng, format_size};
use ssdlab_flash::Oob;

use crate::description::{Default, Key, Kind};
use crate::ftl::cached_map::keys::{
    self as map_keys, MAP_CACHE, MAP_CACHE_BY, MAP_LOADS, MAP_LOG, MAP_PACKING, MAP_PAGE, Sizes,
};
use crate::ftl::demand_paged;
use crate::{Allocation, DriveConfig, DriveError, Parity};

/// The table.
pub(super) const KEYS: &[Key] = &[MAP_CACHE, MAP_CACHE_BY, MAP_PAGE, MAP_PACKING, MAP_LOADS, MAP_LOG, RWLB];

const RWLB: Key = Key::new(
    "rwlb",
    Kind::Size { least: 512, most: 1 << 40, step: 512 },
    Default::number(64 << 20),
    "Bytes of the random-write log buffer (SHRD, section 4.2): as many mapping units beyond the user's, at least four pages. Each \
     group of blocks sets blocks aside for it: what two rounds of it take if every unit has a page of its own, and two more.",
);

/// Rounds of the log that blocks are set aside for: what was written in the round before may not be settled yet.
const ROUNDS: u64 = 2;

/// Units of the log.
pub(super) fn rwlb_units(config: &DriveConfig) -> u32 {
    let bytes = config.ftl.own.number(&RWLB, &config.flash.geometry);
    u32::try_from(bytes / u64::from(config.ftl.mapping_unit.max(512))).unwrap_or(u32::MAX >> 2)
}

/// Superblocks of each group that are set aside for it.
pub(super) fn log_blocks(config: &DriveConfig) -> u32 {
    let geometry = &config.flash.geometry;
    let width = config.ftl.superblock.planes(geometry).max(1);
    let groups = u64::from(geometry.planes() / width).max(1);
    let pages = u64::from(geometry.pages_per_block) * u64::from(width);
    let needed = (ROUNDS * u64::from(rwlb_units(config))).div_ceil((groups * pages).max(1));
    u32::try_from(needed + 2).unwrap_or(u32::MAX)
}

pub(super) fn simulator_bytes(config: &DriveConfig) -> u64 {
    let geometry = &config.flash.geometry;
    let units = geometry.pages() * u64::from(geometry.page_bytes / config.ftl.mapping_unit);
    demand_paged::simulator_bytes(config) + Oob::origins_bytes(units) + u64::from(rwlb_units(config)) * 32
}

/// Refuses what cannot work, with the numbers.
pub(super) fn check(config: &DriveConfig) -> Result<(), DriveError> {
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    if config.ftl.parity != Parity::None {
        let reason = "the design 'shrd' has no parity over its map blocks: use \"none\"";
        return refuse("ftl.parity", reason.to_string());
    }
    if matches!(config.ftl.allocation, Allocation::Static(_)) {
        let reason = "the design 'shrd' has no static allocation: a log block becomes a data block wherever it is, so an LPN \
                      does not decide the plane; use \"dynamic\" or \"round-robin\"";
        return refuse("ftl.allocation", reason.to_string());
    }
    let geometry = &config.flash.geometry;
    let (bytes, unit) = (config.ftl.own.number(&RWLB, geometry), u64::from(config.ftl.mapping_unit));
    let least = 4 * u64::from(geometry.page_bytes);
    if bytes < least {
        let reason = format!(
            "{} for the random-write log buffer: at least four pages of flash are needed, {}",
            format_size(bytes),
            format_size(least)
        );
        return refuse("ftl.rwlb", reason);
    }
    if !bytes.is_multiple_of(unit) {
        let reason = format!("{} is not a whole number of mapping units of {}", format_size(bytes), format_size(unit));
        return refuse("ftl.rwlb", reason);
    }
    let log = log_blocks(config);
    if log >= geometry.blocks_per_plane {
        let (noun, group) = (config.ftl.superblock.noun(), config.ftl.superblock.group());
        let reason = format!(
            "two rounds of {} take {log} of the {} {noun} {group}: nothing is left for data",
            format_size(bytes),
            geometry.blocks_per_plane
        );
        return refuse("ftl.rwlb", reason);
    }
    if geometry.pages() * u64::from(geometry.page_bytes) / unit >= 1 << 31 {
        let reason = format!("{} of flash in mapping units of {unit} bytes: more than 2^31", geometry.bytes());
        return refuse("ftl.mapping_unit", reason);
    }
    Sizes::of(config).check(config)
}

/// Draws logs from the smallest on, and what a cached map draws.
pub(super) fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    config.ftl.parity = Parity::None;
    if matches!(config.ftl.allocation, Allocation::Static(_)) {
        config.ftl.allocation = Allocation::Dynamic;
    }
    map_keys::draw(config, rng);
    let pages = if rng.random_bool(0.5) { 4 } else { rng.random_range(4..=24) };
    set_rwlb(config, pages);
}

/// The smallest log, or one for two pages more.
pub(super) fn handful(config: &mut DriveConfig, other: bool) {
    map_keys::handful(config, other);
    set_rwlb(config, 4 + 2 * u32::from(other));
}

fn set_rwlb(config: &mut DriveConfig, pages: u32) {
    config.ftl.own.set(RWLB.name, u64::from(pages) * u64::from(config.flash.geometry.page_bytes));
    config.flash.geometry.blocks_per_plane += log_blocks(config);
}

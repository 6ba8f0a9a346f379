//! The keys of `[ftl]` that the cache reads, and the drives that it takes.

use rand::RngExt;
use ssdlab_base::Rng;

use super::CLEAN;
use super::checkpoints::slots_per_page;
use super::log::Log;
use super::table::Table;
use crate::description::{Default, Key, Kind, Words, words};
use crate::{Allocation, DriveConfig, DriveError, Pacing, Parity, Settings, Superblock};

/// The table.
pub(super) const KEYS: &[Key] = &[ADDRESSES, CHECKPOINT, SILENT_EVICTION, VICTIMS_BY];

const ADDRESSES: Key = Key::new(
    "addresses",
    Kind::ANY_SIZE,
    Default::Means("`capacity.user`"),
    "How far the addresses of the drive go: the capacity of the disk that it caches, in whole mapping units. `capacity.user` is how much \
     data it has room for, and the map takes memory by that and not by this.",
);

const CHECKPOINT: Key = Key::new(
    "map_checkpoint",
    Kind::Word(words::<Checkpoint>),
    Default::word("log"),
    "What a flush, `standby` and `idle` write of the map (Getting Real, section 3.3.2), beside the log of changes: all of it, the pages \
     that changed, or nothing. After a power cut, the map comes from owners and log, and those that are older than the checkpoint are not \
     read.",
);

const SILENT_EVICTION: Key = Key::new(
    "silent_eviction",
    Kind::Boolean,
    Default::ON,
    "Whether collection drops the clean blocks of a victim (Getting Real, section 3.3.2). With `false` it moves them, as any other FTL would.",
);

const VICTIMS_BY: Key = Key::new(
    "victims_by",
    Kind::Word(words::<VictimsBy>),
    Default::word("valid"),
    "What victim policies take for a block's valid units: clean and dirty ones (Getting Real, section 3.3.2), or dirty ones alone.",
);

/// What a flush writes of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checkpoint {
    Full,
    Changed,
    Log,
}

impl Words for Checkpoint {
    const WORDS: &'static [(&'static str, Checkpoint)] =
        &[("full", Checkpoint::Full), ("changed", Checkpoint::Changed), ("log", Checkpoint::Log)];
}

/// What victim policies count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VictimsBy {
    Valid,
    Dirty,
}

impl Words for VictimsBy {
    const WORDS: &'static [(&'static str, VictimsBy)] = &[("valid", VictimsBy::Valid), ("dirty", VictimsBy::Dirty)];
}

/// Gives a cache the addresses of a disk of so many bytes (Getting Real, section 2.2).
pub fn set_addresses(config: &mut DriveConfig, bytes: u64) {
    config.ftl.own.set(ADDRESSES.name, bytes);
}

/// The overrides that give a cache the addresses of a disk of so many bytes, as `--set` takes them.
pub fn overrides_for_addresses(bytes: u64) -> String {
    format!("ftl.{}={bytes} and ftl.allocation=dynamic", ADDRESSES.name)
}

/// Whether collection of a cache drops clean blocks (Getting Real, section 3.3.2).
pub fn drops_clean(config: &DriveConfig) -> bool {
    config.ftl.own.flag(&SILENT_EVICTION, &config.flash.geometry)
}

/// Whether victim policies count clean units as well.
pub(super) fn counts_clean(config: &DriveConfig) -> bool {
    config.ftl.own.choice::<VictimsBy>(&VICTIMS_BY, &config.flash.geometry) == VictimsBy::Valid
}

/// Bytes of the disk's addresses.
pub(super) fn logical_bytes(config: &DriveConfig) -> u64 {
    config.ftl.own.some_number(&ADDRESSES, &config.flash.geometry).unwrap_or(config.user_bytes)
}

/// Units on flash.
pub(super) fn units_on_flash(config: &DriveConfig) -> u64 {
    let geometry = &config.flash.geometry;
    geometry.pages() * u64::from(geometry.page_bytes / config.ftl.mapping_unit)
}

/// Refuses what cannot work, with the numbers.
pub(super) fn check(config: &DriveConfig) -> Result<(), DriveError> {
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    if config.ftl.superblock != Superblock::None {
        let found = config.ftl.superblock.word();
        let reason = format!(
            "found \"{found}\", expected \"none\": the design 'ssc' drops and moves the units of single blocks"
        );
        return refuse("ftl.superblock", reason);
    }
    if config.gc.pacing != Pacing::Off {
        let found = crate::description::word(config.gc.pacing);
        let reason = format!(
            "found \"{found}\", expected \"off\": paced collection counts on what a victim gives back, and a clean block costs nothing"
        );
        return refuse("gc.pacing", reason);
    }
    if config.gc.free_blocks < 3 {
        let found = config.gc.free_blocks;
        let reason = format!(
            "found {found}, expected at least 3: notes on dropped blocks go to the reserve before a victim is erased"
        );
        return refuse("gc.free_blocks", reason);
    }
    check_area(config)?;
    check_addresses(config)
}

/// The blocks that hold checkpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct AreaSizes {
    /// Pages that all slots of the map fill.
    pub(super) map_pages: u64,
    /// Blocks of each plane that one half takes.
    pub(super) half_blocks: u32,
    /// Each checkpoint is the whole map.
    pub(super) writes_all: bool,
}

/// The blocks that hold checkpoints, where there are any: each half takes a whole map and what is beside it, and a record of the erase of
/// one in sixteen blocks; where checkpoints are of what changed, as many pages of the map again.
pub(super) fn area(config: &DriveConfig) -> Option<AreaSizes> {
    let checkpoint = config.ftl.own.choice::<Checkpoint>(&CHECKPOINT, &config.flash.geometry);
    if checkpoint == Checkpoint::Log {
        return None;
    }
    let geometry = &config.flash.geometry;
    let units = units_on_flash(config);
    let map_pages = Table::slots_for(units).div_ceil(slots_per_page(geometry.page_bytes) as u64);
    let open = u64::from(config.ftl.streams + 1) * u64::from(geometry.planes()) * u64::from(geometry.pages_per_block);
    let hidden = open * u64::from(geometry.page_bytes / config.ftl.mapping_unit);
    let log_units = u64::from(Log::units_for(units, config.ftl.mapping_unit));
    let state_bytes = u64::from(geometry.blocks()) / 8 + 8 * log_units + 12 * hidden;
    let state_pages = state_bytes.div_ceil(u64::from(geometry.page_bytes) / 2) + 1;
    let again = if checkpoint == Checkpoint::Changed { map_pages } else { 0 };
    let pages = map_pages + state_pages + u64::from(geometry.blocks()) / 16 + again + 1;
    let row = u64::from(geometry.planes()) * u64::from(geometry.pages_per_block);
    let half_blocks = u32::try_from(pages.div_ceil(row)).unwrap_or(u32::MAX / 2);
    Some(AreaSizes { map_pages, half_blocks, writes_all: checkpoint == Checkpoint::Full })
}

/// Refuses an area that leaves no blocks for data.
fn check_area(config: &DriveConfig) -> Result<(), DriveError> {
    let Some(AreaSizes { map_pages, half_blocks, .. }) = area(config) else { return Ok(()) };
    let blocks = config.flash.geometry.blocks_per_plane;
    if u64::from(half_blocks) * 2 + u64::from(config.gc.free_blocks) < u64::from(blocks) {
        return Ok(());
    }
    let found = crate::description::word(config.ftl.own.choice::<Checkpoint>(&CHECKPOINT, &config.flash.geometry));
    let reason = format!(
        "found \"{found}\", expected \"log\": two checkpoints of a map of {map_pages} pages take {} of the {blocks} blocks of each plane, \
         beside gc.free_blocks = {}",
        u64::from(half_blocks) * 2,
        config.gc.free_blocks
    );
    Err(DriveError { key: format!("ftl.{}", CHECKPOINT.name), reason })
}

/// Says beside a refusal for want of space what checkpoints take of it.
pub(super) fn with_area(config: &DriveConfig, why: DriveError) -> DriveError {
    let Some(AreaSizes { map_pages, half_blocks, .. }) = area(config) else { return why };
    let reason = format!(
        "{}; {} blocks of each plane hold checkpoints of a map of {map_pages} pages (ftl.map_checkpoint)",
        why.reason,
        2 * half_blocks
    );
    DriveError { reason, ..why }
}

/// Refuses addresses that the map cannot have.
fn check_addresses(config: &DriveConfig) -> Result<(), DriveError> {
    let (user, logical, unit) = (config.user_bytes, logical_bytes(config), u64::from(config.ftl.mapping_unit));
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    if !logical.is_multiple_of(unit) {
        return refuse("ftl.addresses", format!("found {logical} bytes, expected a whole number of units of {unit}"));
    }
    if logical < user {
        let reason = format!(
            "found {logical} bytes, expected at least capacity.user = {user}: a cache that is larger than its disk has room that no address \
             names"
        );
        return refuse("ftl.addresses", reason);
    }
    let log_units = u64::from(Log::units_for(units_on_flash(config), config.ftl.mapping_unit));
    let most = u64::from(CLEAN) - 3;
    if logical / unit + log_units > most {
        let reason = format!(
            "found {logical} bytes, which are {} units, beside {log_units} units of the log: the design 'ssc' numbers at most {most} of both, \
             which with this ftl.mapping_unit ({unit}) leaves {} bytes",
            logical / unit,
            most.saturating_sub(log_units) * unit
        );
        return refuse("ftl.addresses", reason);
    }
    if logical == user {
        return Ok(());
    }
    if let Allocation::Static(_) = config.ftl.allocation {
        let reason = format!(
            "an order in which the LPN decides the plane, but ftl.addresses = {logical} is more than capacity.user = {user}: dirty blocks could \
             all be those of one plane, which has no room for them; expected \"dynamic\" or \"round-robin:...\""
        );
        return refuse("ftl.allocation", reason);
    }
    if config.placement.policy != crate::placement::DEFAULT {
        let reason = format!(
            "found \"{}\", expected \"{}\" beside ftl.addresses = {logical}: it keeps the age of each address, and there are more of them than \
             capacity.user = {user}",
            config.placement.policy,
            crate::placement::DEFAULT
        );
        return refuse("placement.policy", reason);
    }
    Ok(())
}

/// Makes a drawn drive one that [`check`] accepts, all but its capacity.
pub(super) fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    config.ftl.superblock = Superblock::None;
    config.ftl.parity = Parity::None;
    config.gc.pacing = Pacing::Off;
    config.gc.free_blocks = config.gc.free_blocks.max(3);
    config.flash.geometry.blocks_per_plane += 2;
    let by = ["valid", "dirty"][rng.random_range(0..2)];
    config.ftl.own = Settings::default().with("victims_by", by).with("silent_eviction", rng.random_bool(0.8));
    // Taken from what is drawn already.
    let number = config.flash.geometry.blocks_per_plane + config.flash.geometry.pages_per_block;
    let checkpoint = ["log", "full", "changed"][number as usize % 3];
    config.ftl.own.set(CHECKPOINT.name, checkpoint);
    make_room(config);
}

/// Gives a drive as many more blocks as checkpoints take.
fn make_room(config: &mut DriveConfig) {
    let blocks = config.flash.geometry.blocks_per_plane;
    // The map of more blocks is larger.
    while let Some(AreaSizes { half_blocks, .. }) = area(config)
        && config.flash.geometry.blocks_per_plane < blocks + 2 * half_blocks
    {
        config.flash.geometry.blocks_per_plane = blocks + 2 * half_blocks;
    }
}

/// Makes a drive of a handful of pages one that [`check`] accepts.
pub(super) fn handful(config: &mut DriveConfig, other: bool) {
    config.gc.free_blocks = 3;
    config.flash.geometry.blocks_per_plane += 4;
    config.ftl.own.set("victims_by", if other { "dirty" } else { "valid" });
    config.ftl.own.set(CHECKPOINT.name, if other { "changed" } else { "log" });
    make_room(config);
}

//! The keys of `[ftl]` that AFTL reads, and the drives that it takes.

use rand::RngExt;
use ssdlab_base::command_sets::segments::SegmentShape;
use ssdlab_base::command_sets::zoned::ZoneShape;
use ssdlab_base::{Rng, SECTOR_BYTES};
use ssdlab_flash::Geometry;

use super::layout::{Layout, Levels};
use crate::description::{Default, Key, Kind, Setting, Words, word, words};
use crate::{Allocation, DriveConfig, DriveError, Pacing, Parity, Settings, Superblock};

/// The table.
pub(super) const KEYS: &[Key] = &[SEGMENT_LEVELS];

/// The table of a drive with zones.
pub(super) const ZONED_KEYS: &[Key] = &[SEGMENT_LEVELS, ZONE_SIZE, MAX_OPEN_ZONES, MAX_ACTIVE_ZONES];

const SEGMENT_LEVELS: Key = Key::new(
    "segment_levels",
    Kind::Word(words::<Levels>),
    Default::word("ways"),
    "What a segment takes one block of: each channel, each way of each channel (each die), or each plane \
     (Application-Managed Flash, section 4).",
);

const ZONE_SIZE: Key = Key::new(
    "zone_size",
    Kind::ANY_SIZE,
    Default::Follows("the smallest power of two that holds a segment", smallest_zone),
    "Bytes from the start of a zone to the start of the next: a power of two. The capacity of a zone is a segment.",
);

const MAX_OPEN_ZONES: Key = Key::new(
    "max_open_zones",
    Kind::Count { unit: "zones", least: 0, most: u32::MAX },
    Default::number(0),
    "Most zones that can be open at one time; `0` is no limit. At the limit, the drive closes a zone that a write opened, to open \
     another.",
);

const MAX_ACTIVE_ZONES: Key = Key::new(
    "max_active_zones",
    Kind::Count { unit: "zones", least: 0, most: u32::MAX },
    Default::number(0),
    "Most zones that can be open or closed (written in part) at one time, at least `max_open_zones`; `0` is no limit.",
);

impl Words for Levels {
    const WORDS: &'static [(&'static str, Levels)] =
        &[("channels", Levels::Channels), ("ways", Levels::Ways), ("planes", Levels::Planes)];
}

/// Which levels a segment is over.
pub(super) fn levels(config: &DriveConfig) -> Levels {
    config.ftl.own.choice(&SEGMENT_LEVELS, &config.flash.geometry)
}

/// Units of a segment.
pub(super) fn segment_units(config: &DriveConfig) -> u32 {
    Layout::new(&config.flash.geometry, levels(config), 0).segment_pages
}

/// The segments of a drive.
pub(super) fn segments(config: &DriveConfig) -> SegmentShape {
    let write_unit = u64::from(config.ftl.mapping_unit) / SECTOR_BYTES;
    let sectors = u64::from(segment_units(config)) * write_unit;
    SegmentShape { sectors, count: config.user_bytes / SECTOR_BYTES / sectors, write_unit }
}

/// Bytes of a segment.
fn segment_bytes(geometry: &Geometry, levels: Levels) -> u64 {
    u64::from(Layout::new(geometry, levels, 0).segment_pages) * u64::from(geometry.page_bytes)
}

fn smallest_zone(geometry: &Geometry, own: &Settings) -> Setting {
    let levels = own.choice(&SEGMENT_LEVELS, geometry);
    Setting::Number(segment_bytes(geometry, levels).next_power_of_two())
}

/// The zones of a drive that has them.
pub(super) fn zones(config: &DriveConfig) -> ZoneShape {
    let (geometry, own) = (&config.flash.geometry, &config.ftl.own);
    let capacity = segment_bytes(geometry, levels(config)) / SECTOR_BYTES;
    ZoneShape {
        size: own.number(&ZONE_SIZE, geometry) / SECTOR_BYTES,
        capacity,
        count: config.user_bytes / SECTOR_BYTES / capacity,
        write_unit: u64::from(config.ftl.mapping_unit) / SECTOR_BYTES,
        max_open: own.count(&MAX_OPEN_ZONES, geometry),
        max_active: own.count(&MAX_ACTIVE_ZONES, geometry),
    }
}

/// Refuses what cannot work, with the numbers.
pub(super) fn check_zoned(config: &DriveConfig) -> Result<(), DriveError> {
    check(config)?;
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    let size = config.ftl.own.number(&ZONE_SIZE, &config.flash.geometry);
    let segment = segment_bytes(&config.flash.geometry, levels(config));
    if !size.is_power_of_two() || size < segment {
        let least = segment.next_power_of_two();
        return refuse(
            "ftl.zone_size",
            format!(
                "{size} bytes: expected a power of two of at least {least}, so that it holds a segment of {segment} bytes"
            ),
        );
    }
    let zones = config.user_bytes / segment;
    if size.checked_mul(zones).is_none_or(|bytes| bytes > i64::MAX as u64) {
        return refuse("ftl.zone_size", format!("{size} bytes: {zones} zones of that size are more than 2^63 bytes"));
    }
    let (open, active) = (
        config.ftl.own.count(&MAX_OPEN_ZONES, &config.flash.geometry),
        config.ftl.own.count(&MAX_ACTIVE_ZONES, &config.flash.geometry),
    );
    if active > 0 && (open == 0 || open > active) {
        let open = if open == 0 { "no limit on open zones".to_string() } else { format!("max_open_zones = {open}") };
        return refuse(
            "ftl.max_active_zones",
            format!("{active}: expected at least ftl.max_open_zones, because open zones are active; found {open}"),
        );
    }
    Ok(())
}

/// Refuses what cannot work, with the numbers.
pub(super) fn check(config: &DriveConfig) -> Result<(), DriveError> {
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    let (geometry, design) = (&config.flash.geometry, &config.ftl.design);
    if config.ftl.mapping_unit != geometry.page_bytes {
        let (unit, page) = (config.ftl.mapping_unit, geometry.page_bytes);
        return refuse(
            "ftl.mapping_unit",
            format!("found {unit} bytes, expected {page}: the design '{design}' writes whole pages"),
        );
    }
    if config.buffer.policy != "none" {
        let found = &config.buffer.policy;
        return refuse(
            "buffer.policy",
            format!("\"{found}\": the design '{design}' has no write buffer: use \"none\""),
        );
    }
    if config.ftl.superblock != Superblock::None {
        let found = config.ftl.superblock.word();
        let reason = format!(
            "\"{found}\": the design '{design}' has segments in place of superblocks, and replaces single blocks: use \"none\""
        );
        return refuse("ftl.superblock", reason);
    }
    if config.ftl.allocation != Allocation::Dynamic {
        let found = match config.ftl.allocation {
            Allocation::Static(_) => "a static order",
            Allocation::RoundRobin(_) => "a round-robin order",
            Allocation::Dynamic => "dynamic",
        };
        let reason = format!(
            "{found}: the design '{design}' distributes pages over the blocks of a segment (ftl.segment_levels): use \"dynamic\""
        );
        return refuse("ftl.allocation", reason);
    }
    if config.ftl.streams != 1 {
        let found = config.ftl.streams;
        let reason = format!("{found}: the design '{design}' has a stream for each open segment: use 1");
        return refuse("ftl.streams", reason);
    }
    if config.gc.pacing != Pacing::Off {
        let found = word(config.gc.pacing);
        let reason = format!("\"{found}\": the design '{design}' has no garbage collection: use \"off\"");
        return refuse("gc.pacing", reason);
    }
    let units = config.user_units();
    let layout = Layout::new(geometry, levels(config), units);
    if layout.segments == 0 || layout.segments * layout.segment_pages != units {
        let segment = u64::from(layout.segment_pages) * u64::from(geometry.page_bytes);
        let (user, whole) = (config.user_bytes, u64::from(layout.segments));
        let reason = format!(
            "{user} bytes are {whole} segments of {segment} bytes and {} bytes: a segment is {} blocks of {} pages; expected \
             whole segments, such as capacity.user = {} (ftl.segment_levels says what a segment is)",
            user - whole * segment,
            layout.lanes,
            layout.pages_per_block,
            whole.max(1) * segment,
        );
        return refuse("capacity.user", reason);
    }
    Ok(())
}

/// Makes a drawn drive one that [`check`] accepts, all but its capacity.
pub(super) fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    let geometry = &mut config.flash.geometry;
    geometry.page_bytes = geometry.page_bytes.next_power_of_two();
    config.ftl.mapping_unit = geometry.page_bytes;
    config.buffer.policy = "none".to_string();
    config.ftl.allocation = Allocation::Dynamic;
    config.ftl.superblock = Superblock::None;
    config.ftl.parity = Parity::None;
    config.ftl.streams = 1;
    config.gc.pacing = Pacing::Off;
    config.gc.static_wear_threshold = [0, 0, 1, 3][rng.random_range(0..4)];
    let levels = ["channels", "ways", "planes"][rng.random_range(0..3)];
    config.ftl.own = Settings::default().with("segment_levels", levels);
    config.user_bytes = u64::from(segment_units(config)) * u64::from(config.ftl.mapping_unit);
}

/// A page of a few sectors.
pub(super) fn handful(config: &mut DriveConfig, _: bool) {
    config.flash.geometry.page_bytes = config.ftl.mapping_unit;
}

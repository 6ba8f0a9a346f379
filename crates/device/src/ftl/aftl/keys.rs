//! The key of `[ftl]` that AFTL reads, and the drives that it takes.

use rand::RngExt;
use ssdlab_base::Rng;

use super::layout::{Layout, Levels};
use crate::description::{Default, Key, Kind, Words, words};
use crate::{Allocation, DriveConfig, DriveError, Pacing, Parity, Settings, Superblock};

/// The table.
pub(super) const KEYS: &[Key] = &[SEGMENT_LEVELS];

const SEGMENT_LEVELS: Key = Key::new(
    "segment_levels",
    Kind::Word(words::<Levels>),
    Default::word("ways"),
    "A segment is a block of each channel, of each way of each channel (each die), or of each plane \
     (Application-Managed Flash, section 4).",
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

/// Refuses what cannot work, with the numbers.
pub(super) fn check(config: &DriveConfig) -> Result<(), DriveError> {
    let refuse = |key: &str, reason: String| Err(DriveError { key: key.to_string(), reason });
    let geometry = &config.flash.geometry;
    if config.ftl.mapping_unit != geometry.page_bytes {
        let (unit, page) = (config.ftl.mapping_unit, geometry.page_bytes);
        return refuse(
            "ftl.mapping_unit",
            format!("{unit}: the design 'aftl' writes whole pages, here of {page} bytes"),
        );
    }
    if config.buffer.policy != "none" {
        let found = &config.buffer.policy;
        return refuse(
            "buffer.policy",
            format!(
                "\"{found}\": the design 'aftl' has no write buffer, what a host appends goes to flash: use \"none\""
            ),
        );
    }
    if config.ftl.superblock != Superblock::None {
        let found = config.ftl.superblock.word();
        let reason = format!(
            "\"{found}\": the design 'aftl' has segments, and replaces each block of one by itself: use \"none\""
        );
        return refuse("ftl.superblock", reason);
    }
    if config.ftl.allocation != Allocation::Dynamic {
        let reason = "the design 'aftl' deals pages over the blocks of a segment (ftl.segment_levels): use \"dynamic\"";
        return refuse("ftl.allocation", reason.to_string());
    }
    if config.ftl.streams != 1 {
        let found = config.ftl.streams;
        let reason = format!("{found}: the design 'aftl' has a stream for each open segment: use 1");
        return refuse("ftl.streams", reason);
    }
    if config.gc.pacing != Pacing::Off {
        return refuse("gc.pacing", "the design 'aftl' collects nothing: use \"off\"".to_string());
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

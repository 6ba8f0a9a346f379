//! The keys of `[ftl]` of a cached map, and what they say of a drive.

use rand::RngExt;
use ssdlab_base::{Rng, format_size};

use crate::description::{Default, Key, Kind, Words, words};
use crate::ftl::cached_map::{LOG_ENTRY_BYTES, Shape};
use crate::{DriveConfig, DriveError};

/// The table.
pub(in crate::ftl) const KEYS: &[Key] = &[MAP_CACHE, MAP_CACHE_BY, MAP_PAGE, MAP_PACKING, MAP_LOADS, MAP_LOG];

pub(in crate::ftl) const MAP_CACHE: Key = Key::new(
    "map_cache",
    Kind::SizeOrShare { least: 16 },
    Default::number(1 << 20),
    "RAM for the cached part of the map, in bytes or as a percentage of the bytes of all map pages. At least two map pages or \
     entries, and as many as there are mapping units in a page; more than the whole map takes is not used.",
);

pub(in crate::ftl) const MAP_CACHE_BY: Key = Key::new(
    "map_cache_by",
    Kind::Word(words::<CacheBy>),
    Default::word("page"),
    "What the cache holds: `page`: map pages (SHRD, section 2). `entry`: single entries, of 8 bytes each since the cache keeps \
     their numbers; a map page of which entries are dirty is read before it is programmed (the original DFTL).",
);

/// What a cache of the map holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ftl) enum CacheBy {
    /// Map pages.
    Page,
    /// Entries.
    Entry,
}

impl Words for CacheBy {
    const WORDS: &'static [(&'static str, CacheBy)] = &[("page", CacheBy::Page), ("entry", CacheBy::Entry)];
}

pub(in crate::ftl) const MAP_PAGE: Key = Key::new(
    "map_page",
    Kind::Size { least: 512, most: 64 << 10, step: 512 },
    Default::number(4096),
    "Bytes of a map page, of 4 bytes an entry: a power of two, at most a page.",
);

pub(in crate::ftl) const MAP_PACKING: Key = Key::new(
    "map_packing",
    Kind::Boolean,
    Default::ON,
    "Program several dirty map pages together into a page of flash: as many as it has bytes for. Map pages smaller than \
     `ftl.mapping_unit` share one. `false`: one map page a page of flash.",
);

pub(in crate::ftl) const MAP_LOADS: Key = Key::new(
    "map_loads",
    Kind::count("loads", 0),
    Default::number(0),
    "Most map pages that are loaded at one time, whoever misses them; `0` is no limit. A load takes from the program of the dirty \
     page that leaves for it to the end of its read (SHRD, section 2), so with 1 the controller handles one miss after another. Other \
     misses wait in the order in which they came.",
);

pub(in crate::ftl) const MAP_LOG: Key = Key::new(
    "map_log",
    Kind::Size { least: 0, most: u64::MAX, step: 8 },
    Default::number(0),
    "RAM for a log of map entries that relocation changes in map pages that are not cached, of 8 bytes an entry (SHRD, section \
     4.5). `0`: none, relocation loads these pages. At least as many entries as there are mapping units in a page; more than \
     the drive has mapping units are not used.",
);

/// What the keys say.
pub(in crate::ftl) struct Sizes {
    map_cache: u64,
    by_entry: bool,
    map_page: u32,
    packing: bool,
    loads: u32,
    map_log: u64,
}

impl Sizes {
    pub(in crate::ftl) fn of(config: &DriveConfig) -> Sizes {
        let (own, geometry) = (&config.ftl.own, &config.flash.geometry);
        let map_page = own.count(&MAP_PAGE, geometry);
        Sizes {
            map_cache: own.bytes_of(&MAP_CACHE, geometry, map_bytes(config, map_page)),
            by_entry: own.choice::<CacheBy>(&MAP_CACHE_BY, geometry) == CacheBy::Entry,
            map_page,
            packing: own.flag(&MAP_PACKING, geometry),
            loads: own.count(&MAP_LOADS, geometry),
            map_log: own.number(&MAP_LOG, geometry),
        }
    }

    pub(in crate::ftl) fn shape(&self, config: &DriveConfig) -> Shape {
        let shape = Shape { by_entry: self.by_entry, ..Shape::new(config, self.map_page, self.packing) };
        let fit = u32::try_from(self.map_cache / u64::from(shape.line_bytes())).unwrap_or(u32::MAX);
        let capacity = fit.min(shape.lines().max(least_lines(config)));
        let log_entries =
            (self.map_log / u64::from(LOG_ENTRY_BYTES)).min(config.mapped_units().max(units_per_page(config)).into());
        let loads = if self.loads == 0 { u32::MAX } else { self.loads };
        Shape { capacity, loads, log_entries: log_entries as u32, ..shape }
    }

    /// Whether there is a map of this shape at all.
    pub(in crate::ftl) fn is_possible(&self, config: &DriveConfig) -> bool {
        self.check_page(config).is_ok()
    }

    fn check_page(&self, config: &DriveConfig) -> Result<(), DriveError> {
        let page = config.flash.geometry.page_bytes;
        let reason = if !self.map_page.is_power_of_two() {
            format!("{} bytes: a map page is a power of two, from 512 bytes to 64 KB", self.map_page)
        } else if self.map_page.div_ceil(config.ftl.mapping_unit) * config.ftl.mapping_unit > page {
            format!("{} bytes: a map page is programmed at once, and flash.page_size is {page}", self.map_page)
        } else {
            return Ok(());
        };
        Err(DriveError { key: "ftl.map_page".to_string(), reason })
    }

    /// Refuses what cannot work, with the numbers.
    pub(in crate::ftl) fn check(&self, config: &DriveConfig) -> Result<(), DriveError> {
        self.check_page(config)?;
        let line =
            u64::from(Shape { by_entry: self.by_entry, ..Shape::new(config, self.map_page, false) }.line_bytes());
        let (least, cached) = (u64::from(least_lines(config)), self.map_cache / line);
        if cached < least {
            let reason = format!(
                "{} of a map of {} holds {cached} map {} of {}: a command needs up to {least} at once, {}",
                format_size(self.map_cache),
                format_size(map_bytes(config, self.map_page)),
                match (self.by_entry, cached) {
                    (true, 1) => "entry",
                    (true, _) => "entries",
                    (false, 1) => "page",
                    (false, _) => "pages",
                },
                format_size(line),
                format_size(least * line)
            );
            return Err(DriveError { key: "ftl.map_cache".to_string(), reason });
        }
        if self.map_log > 0 && self.by_entry {
            let reason = format!(
                "{} for a log of map pages that are not cached: with ftl.map_cache_by = \"entry\" only 0 works, no log",
                format_size(self.map_log)
            );
            return Err(DriveError { key: "ftl.map_log".to_string(), reason });
        }
        let (units, entries) = (units_per_page(config), self.map_log / u64::from(LOG_ENTRY_BYTES));
        if self.map_log > 0 && entries < u64::from(units) {
            let needed = units * LOG_ENTRY_BYTES;
            let reason = format!(
                "{} holds {entries} entries of {LOG_ENTRY_BYTES} bytes: relocation moves a page of up to {units} units at \
                 once, {}; 0 is no log",
                format_size(self.map_log),
                format_size(needed.into())
            );
            return Err(DriveError { key: "ftl.map_log".to_string(), reason });
        }
        Ok(())
    }
}

/// Bytes of all map pages.
fn map_bytes(config: &DriveConfig, map_page: u32) -> u64 {
    u64::from(config.mapped_units().div_ceil(map_page / 4)) * u64::from(map_page)
}

/// Map pages or entries that one page of data may need at once, and those at both ends of a command.
fn least_lines(config: &DriveConfig) -> u32 {
    units_per_page(config).max(2)
}

fn units_per_page(config: &DriveConfig) -> u32 {
    config.flash.geometry.page_bytes / config.ftl.mapping_unit
}

/// Draws caches from the smallest to one for the whole map, logs from none to a larger one, and one load at a time to all.
pub(in crate::ftl) fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    let (page, unit) = (config.flash.geometry.page_bytes, config.ftl.mapping_unit);
    // Mostly the smallest: on a small drive only these are more than fit into the cache.
    let mut map_page = 512_u32 << rng.random_range(0_u32..8).saturating_sub(4);
    while map_page.div_ceil(unit) * unit > page {
        map_page /= 2;
    }
    if map_page < 512 {
        map_page = 512;
    }
    let least = least_lines(config);
    let lines = if rng.random_bool(0.5) { least } else { least + rng.random_range(0..=2 * least) };
    let by_entry = rng.random_bool(0.3);
    let (line, by) = if by_entry { (8, "entry") } else { (map_page, "page") };
    config.ftl.own.set(MAP_PAGE.name, map_page);
    config.ftl.own.set(MAP_CACHE_BY.name, by);
    config.ftl.own.set(MAP_CACHE.name, u64::from(lines) * u64::from(line));
    config.ftl.own.set(MAP_PACKING.name, rng.random_bool(0.7));
    let log_entries = match rng.random_range(0..4) {
        0 | 1 => 0,
        _ if by_entry => 0,
        2 => units_per_page(config),
        _ => units_per_page(config) * rng.random_range(2..=16),
    };
    config.ftl.own.set(MAP_LOG.name, u64::from(log_entries * LOG_ENTRY_BYTES));
    let loads = if rng.random_bool(0.5) { 0 } else { rng.random_range(1..=4_u32) };
    config.ftl.own.set(MAP_LOADS.name, loads);
    // Map blocks take some of every plane.
    config.flash.geometry.blocks_per_plane += 5;
    config.gc.free_blocks = config.gc.free_blocks.max(3);
}

/// The smallest cache of a drive of a handful of pages, or one for a page more, the smallest log, and one load at a time.
pub(in crate::ftl) fn handful(config: &mut DriveConfig, other: bool) {
    config.flash.geometry.blocks_per_plane += 6;
    config.ftl.own.set(MAP_PAGE.name, 512_u32);
    config.ftl.own.set(MAP_CACHE.name, u64::from(least_lines(config) + u32::from(other)) * 512);
    config.ftl.own.set(MAP_LOG.name, u64::from(u32::from(other) * units_per_page(config) * LOG_ENTRY_BYTES));
    config.ftl.own.set(MAP_LOADS.name, u32::from(other));
}

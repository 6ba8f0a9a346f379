//! The keys of `[ftl]` that only this design reads, and what they say of a drive.

use rand::RngExt;
use ssdlab_base::{Rng, format_size};

use crate::description::{Default, Key, Kind};
use crate::ftl::cached_map::Shape;
use crate::{DriveConfig, DriveError};

/// The table.
pub(super) const KEYS: &[Key] = &[MAP_CACHE, MAP_PAGE, MAP_PACKING];

const MAP_CACHE: Key = Key::new(
    "map_cache",
    Kind::Size { least: 512, most: u64::MAX, step: 1 },
    Default::number(1 << 20),
    "RAM for cached map pages. At least two map pages, and as many as there are mapping units in a page; more than the \
     whole map takes is not used.",
);

const MAP_PAGE: Key = Key::new(
    "map_page",
    Kind::Size { least: 512, most: 64 << 10, step: 512 },
    Default::number(4096),
    "Bytes of a map page, of 4 bytes an entry: a power of two, at most a page.",
);

const MAP_PACKING: Key = Key::new(
    "map_packing",
    Kind::Boolean,
    Default::ON,
    "Program as many dirty map pages together as fit into a page of flash. `false`: one.",
);

/// What the keys say.
pub(super) struct Sizes {
    map_cache: u64,
    map_page: u32,
    packing: bool,
}

impl Sizes {
    pub(super) fn of(config: &DriveConfig) -> Sizes {
        let (own, geometry) = (&config.ftl.own, &config.flash.geometry);
        Sizes {
            map_cache: own.number(&MAP_CACHE, geometry),
            map_page: own.count(&MAP_PAGE, geometry),
            packing: own.flag(&MAP_PACKING, geometry),
        }
    }

    pub(super) fn shape(&self, config: &DriveConfig) -> Shape {
        let whole = config.user_units().div_ceil(self.map_page / 4);
        let fit = u32::try_from(self.map_cache / u64::from(self.map_page)).unwrap_or(u32::MAX);
        Shape::new(config, self.map_page, fit.min(whole.max(least_pages(config))), self.packing)
    }

    /// Whether there is a map of this shape at all.
    pub(super) fn is_possible(&self, config: &DriveConfig) -> bool {
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
    pub(super) fn check(&self, config: &DriveConfig) -> Result<(), DriveError> {
        self.check_page(config)?;
        let (least, cached) = (least_pages(config), self.map_cache / u64::from(self.map_page));
        if cached < u64::from(least) {
            let needed = u64::from(least) * u64::from(self.map_page);
            let reason = format!(
                "{} holds {cached} map pages of {}: a command needs up to {least} at once, {}",
                format_size(self.map_cache),
                format_size(self.map_page.into()),
                format_size(needed)
            );
            return Err(DriveError { key: "ftl.map_cache".to_string(), reason });
        }
        Ok(())
    }
}

/// Map pages that one page of data may need at once, and those at both ends of a command.
fn least_pages(config: &DriveConfig) -> u32 {
    (config.flash.geometry.page_bytes / config.ftl.mapping_unit).max(2)
}

/// Draws caches from the smallest to one for the whole map.
pub(super) fn draw(config: &mut DriveConfig, rng: &mut Rng) {
    let (page, unit) = (config.flash.geometry.page_bytes, config.ftl.mapping_unit);
    let mut map_page = 512_u32 << rng.random_range(0..4);
    while map_page.div_ceil(unit) * unit > page {
        map_page /= 2;
    }
    if map_page < 512 {
        map_page = 512;
    }
    let least = least_pages(config);
    let pages = least + rng.random_range(0..=2 * least);
    config.ftl.own.set(MAP_PAGE.name, map_page);
    config.ftl.own.set(MAP_CACHE.name, u64::from(pages) * u64::from(map_page));
    config.ftl.own.set(MAP_PACKING.name, rng.random_bool(0.7));
    // Map blocks take some of every plane.
    config.flash.geometry.blocks_per_plane += 5;
    config.gc.free_blocks = config.gc.free_blocks.max(3);
}

/// The smallest cache of a drive of a handful of pages, or one for a page more.
pub(super) fn handful(config: &mut DriveConfig, other: bool) {
    config.flash.geometry.blocks_per_plane += 6;
    config.ftl.own.set(MAP_PAGE.name, 512_u32);
    config.ftl.own.set(MAP_CACHE.name, u64::from(least_pages(config) + u32::from(other)) * 512);
}

//! Units in the buffer by logical block: what BPLRU and FAB evict.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use ssdlab_flash::Lpn;

use super::Slot;
use crate::DriveConfig;
use crate::description::{Default, Key, Kind};

/// Pages of a logical block.
pub(super) const BLOCK_PAGES: Key = Key::new(
    "block_pages",
    Kind::Count { unit: "pages", least: 1, most: 1 << 16 },
    Default::Follows("`flash.pages_per_block`", |geometry, _| geometry.pages_per_block.into()),
    "Pages of the logical blocks that are evicted as a whole.",
);

/// Mapping units of a logical block.
pub(super) fn block_units(config: &DriveConfig) -> u32 {
    let geometry = &config.flash.geometry;
    geometry.page_bytes / config.ftl.mapping_unit * config.buffer.own.count(&BLOCK_PAGES, geometry)
}

/// The units of one block, by LPN.
pub(super) type Units = BTreeMap<Lpn, Slot>;

/// Blocks that have units in the buffer.
pub(super) struct Blocks {
    block_units: u32,
    blocks: FxHashMap<u32, Units>,
    units: u32,
    most_units: u32,
}

impl Blocks {
    pub(super) fn new(block_units: u32) -> Blocks {
        Blocks { block_units: block_units.max(1), blocks: FxHashMap::default(), units: 0, most_units: 0 }
    }

    /// The block of a unit.
    pub(super) fn of(&self, lpn: Lpn) -> u32 {
        lpn / self.block_units
    }

    /// Units of a block.
    pub(super) fn block_units(&self) -> u32 {
        self.block_units
    }

    /// A unit came in; returns how many of its block are there now.
    pub(super) fn insert(&mut self, lpn: Lpn, slot: Slot) -> u32 {
        self.units += 1;
        self.most_units = self.most_units.max(self.units);
        let units = self.blocks.entry(lpn / self.block_units).or_default();
        let before = units.insert(lpn, slot);
        assert_eq!(before, None, "unit {lpn} comes in twice");
        units.len() as u32
    }

    /// A unit left; returns how many of its block are still there.
    pub(super) fn remove(&mut self, lpn: Lpn) -> u32 {
        let block = self.of(lpn);
        let Some(units) = self.blocks.get_mut(&block) else { return 0 };
        let known = units.remove(&lpn);
        assert!(known.is_some(), "unit {lpn} leaves block {block}, and is not there");
        self.units -= 1;
        let left = units.len() as u32;
        if left == 0 {
            self.blocks.remove(&block);
        }
        left
    }

    /// How many units of a block are there.
    pub(super) fn count(&self, block: u32) -> u32 {
        self.blocks.get(&block).map_or(0, |units| units.len() as u32)
    }

    /// The slots of a block in the order of their addresses.
    pub(super) fn slots(&self, block: u32) -> impl Iterator<Item = Slot> + '_ {
        self.blocks.get(&block).into_iter().flat_map(|units| units.values().copied())
    }

    /// RAM: two links a unit within its block.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.most_units) * 8
    }
}

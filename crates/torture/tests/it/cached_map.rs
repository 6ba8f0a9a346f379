//! Drives whose map has more pages than their cache, and commands that let every kind of work on the map come up.

use rand::RngExt;
use ssdlab_base::{Op, Request, rng};
use ssdlab_device::DriveConfig;
use ssdlab_torture::Case;
use ssdlab_torture::configs::handful;
use ssdlab_torture::single_drive::SingleDrive;
use ssdlab_torture::step::{BlockCommand, Step};

/// Map pages of a drive, and entries of each.
const MAP_PAGES: u64 = 8;
const ENTRIES: u64 = 128;

/// What differs between drives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) by: &'static str,
    /// Entries of the log.
    pub(crate) log: u64,
    /// Loads at a time; 0: no limit.
    pub(crate) loads: u32,
    pub(crate) buffer: &'static str,
    pub(crate) channels: u32,
}

pub(crate) const VARIANTS: [Variant; 5] = [
    Variant { name: "pages", by: "page", log: 0, loads: 0, buffer: "none", channels: 2 },
    Variant { name: "pages with a log", by: "page", log: 6, loads: 0, buffer: "none", channels: 2 },
    Variant { name: "pages behind a buffer", by: "page", log: 0, loads: 0, buffer: "lru", channels: 1 },
    Variant { name: "entries", by: "entry", log: 0, loads: 0, buffer: "none", channels: 2 },
    Variant { name: "pages, one load at a time", by: "page", log: 0, loads: 1, buffer: "none", channels: 2 },
];

/// A drive of one unit a sector, with two map pages cached, or as many entries as a page has.
pub(crate) fn drive(variant: Variant) -> DriveConfig {
    let mut config = handful();
    config.flash.geometry.channels = variant.channels;
    config.flash.geometry.pages_per_block = 4;
    config.flash.geometry.page_bytes = 512;
    config.flash.geometry.blocks_per_plane = 300 / variant.channels;
    config.ftl.mapping_unit = 512;
    config.user_bytes = MAP_PAGES * ENTRIES * 512;
    config.buffer.policy = variant.buffer.to_string();
    config.gc.free_blocks = 3;
    // Relocation has much to move.
    config.gc.victim = "fifo".to_string();
    config.ftl.design = "dftl".to_string();
    config.ftl.own.set("map_page", 512_u32);
    config.ftl.own.set("map_cache", if variant.by == "entry" { 24 * 8_u64 } else { 1024 });
    config.ftl.own.set("map_cache_by", variant.by);
    config.ftl.own.set("map_log", variant.log * 8);
    config.ftl.own.set("map_loads", variant.loads);
    config
}

/// The drive written full, then `count` commands; and how many steps come before these.
pub(crate) fn case(variant: Variant, seed: u64, count: usize) -> (Case, usize) {
    let sectors = MAP_PAGES * ENTRIES;
    let fill = (0..sectors / 32).map(|index| Request::new(Op::Write, index * 32, 32));
    let mut steps: Vec<Step<BlockCommand>> =
        fill.map(|request| Step::Command(BlockCommand { request, depth: 8 })).collect();
    steps.push(Step::Drain);
    let before = steps.len();
    let mut rng = rng(seed, "commands");
    steps.extend((0..count).map(|_| {
        // Map pages that are seldom asked for are moved.
        let within = if rng.random_bool(0.8) { 3 * ENTRIES } else { sectors };
        let first = rng.random_range(0..within - 48);
        let request = match rng.random_range(0..20) {
            0..=2 => Request::new(Op::Trim, first, rng.random_range(1..16)),
            3..=5 => Request::new(Op::Flush, 0, 0),
            6..=7 => Request::new(Op::Read, first, 1),
            8 => Request { fua: true, ..Request::new(Op::Write, first, 1) },
            _ => Request::new(Op::Write, first, rng.random_range(1..=3)),
        };
        Step::Command(BlockCommand { request, depth: 4 })
    }));
    (Case { seed, drive: drive(variant), subject: SingleDrive, steps }, before)
}

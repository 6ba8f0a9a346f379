//! The layer's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::{Nanos, SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};

use super::PageCache;
use super::pages::BLOCK_SECTORS;
use crate::layers::{Below, LayerConfig, LayerKind, only, shown_time};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "page-cache",
    summary: "buffered I/O: a cache of blocks in RAM with read-ahead and write-back",
    keys: KEYS,
    devices: (1, 1),
    hands_on: false,
    read,
};

/// Bytes of a block.
pub(super) const BLOCK_BYTES: u64 = BLOCK_SECTORS * SECTOR_BYTES;

/// Bytes that the simulator keeps of a cached block beside its contents, at most.
pub(super) const BOOKKEEPING_BYTES: u64 = 64;

/// A day: the longest time of a key.
const LONGEST: Nanos = Nanos(86_400_000_000_000);

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "ram",
        Kind::Size { least: 16 * BLOCK_BYTES, most: 1 << 40, step: BLOCK_BYTES },
        Default::number(256 << 20),
        "RAM for cached blocks of 4 KB. Every limit below is a share of it. The default is ours: Linux takes the RAM that nothing else \
         uses.",
    ),
    Key::new(
        "read_ahead",
        Kind::Size { least: 0, most: 16 << 20, step: BLOCK_BYTES },
        Default::number(128 << 10),
        "Most bytes that are read ahead at a time; `0` reads nothing ahead (Linux 2.6.33, Documentation/block/queue-sysfs.txt, \
         read_ahead_kb: 128).",
    ),
    Key::new(
        "dirty",
        Kind::Percent(1),
        Default::number(20),
        "With this share of the RAM dirty or on its way down, writers wait (Linux 2.6.33, Documentation/sysctl/vm.txt, dirty_ratio: \
         20 %, mm/page-writeback.c).",
    ),
    Key::new(
        "background",
        Kind::Percent(0),
        Default::number(10),
        "While more than this share of the RAM is dirty, blocks are written back (the same files, dirty_background_ratio: 10 %); at \
         most `dirty`.",
    ),
    Key::new(
        "expire",
        Kind::Time(LONGEST),
        Default::number(30_000_000_000),
        "A block that has been dirty for this long is written back at the next `period` (the same files, dirty_expire_centisecs: 30 s).",
    ),
    Key::new(
        "period",
        Kind::Time(LONGEST),
        Default::number(5_000_000_000),
        "Time between looks for blocks that have expired, above 0 (the same files, dirty_writeback_centisecs: 5 s).",
    ),
    Key::new(
        "write_size",
        Kind::Size { least: BLOCK_BYTES, most: 16 << 20, step: BLOCK_BYTES },
        Default::number(512 << 10),
        "Most bytes of a write-back request: blocks that follow one another (Linux 2.6.33, Documentation/block/queue-sysfs.txt, \
         max_sectors_kb: 512).",
    ),
    Key::new(
        "writes",
        Kind::Count { unit: "requests", least: 1, most: 65_536 },
        Default::number(128),
        "Write-back requests in flight at most (the same page, nr_requests: 128).",
    ),
    Key::new(
        "copy_time",
        Kind::Time(Nanos(1_000_000_000)),
        Default::number(1_000),
        "Time to copy a block between the cache and the program, above 0. Copies take place one after the other. The default is ours.",
    ),
];

/// What the layer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheConfig {
    /// RAM for blocks, in bytes; whole blocks.
    pub ram: u64,
    /// Most bytes that are read ahead at a time; 0 is none.
    pub read_ahead: u64,
    /// Share of the RAM in percent from which on writers wait.
    pub dirty: u32,
    /// Share of the RAM in percent above which blocks are written back.
    pub background: u32,
    /// Age at which dirty blocks are written back.
    pub expire: Nanos,
    /// Time between two looks for such blocks.
    pub period: Nanos,
    /// Most bytes of a write-back request.
    pub write_size: u64,
    /// Write-back requests in flight at most.
    pub writes: u32,
    /// Time to copy a block.
    pub copy_time: Nanos,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    let above_zero = |key: &'static str| match (keys.number(key)?, keys.get(key)) {
        (0, Some(field)) => Err(field.expected("a time above 0")),
        (time, _) => Ok(Nanos(time)),
    };
    let (dirty, background) = (keys.count("dirty")?, keys.count("background")?);
    if background > dirty {
        return Err(match (keys.get("background"), keys.get("dirty")) {
            (Some(field), _) => field.expected(&format!("at most the limit dirty = {dirty}%")),
            (None, Some(field)) => field.expected(&format!("at least the limit background = {background}%")),
            (None, None) => unreachable!("the defaults are in order"),
        });
    }
    Ok(Arc::new(PageCacheConfig {
        ram: keys.number("ram")?,
        read_ahead: keys.number("read_ahead")?,
        dirty,
        background,
        expire: Nanos(keys.number("expire")?),
        period: above_zero("period")?,
        write_size: keys.number("write_size")?,
        writes: keys.count("writes")?,
        copy_time: above_zero("copy_time")?,
    }))
}

impl PageCacheConfig {
    /// Blocks of the RAM.
    pub(super) fn blocks(&self) -> u32 {
        (self.ram / BLOCK_BYTES) as u32
    }

    /// So many percent of the blocks, at least `least`.
    pub(super) fn share(&self, percent: u32, least: u32) -> u32 {
        ((u64::from(self.blocks()) * u64::from(percent) / 100) as u32).max(least)
    }

    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        [
            ("ram", format_size(self.ram)),
            ("read_ahead", format_size(self.read_ahead)),
            ("dirty", format!("{}%", self.dirty)),
            ("background", format!("{}%", self.background)),
            ("expire", shown_time(self.expire)),
            ("period", shown_time(self.period)),
            ("write_size", format_size(self.write_size)),
            ("writes", self.writes.to_string()),
            ("copy_time", shown_time(self.copy_time)),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }
}

impl LayerConfig for PageCacheConfig {
    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        let sectors = below.iter().map(|below| below.sectors).sum::<u64>();
        let most = u64::from(u32::MAX) * BLOCK_SECTORS;
        if sectors > most {
            let size = |sectors: u64| format_size(sectors * SECTOR_BYTES);
            return Err(LayerError::TooLarge { size: size(sectors), most: size(most) });
        }
        Ok(sectors)
    }

    fn memory(&self) -> Option<(&'static str, u64)> {
        Some(("ram", self.ram + u64::from(self.blocks()) * BOOKKEEPING_BYTES))
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = only(below, LAYER.name)?;
        self.sectors(&[Below::of(&*below)])?;
        Ok(Box::new(PageCache::new(below, *self)))
    }
}

//! The layer's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::{Nanos, SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section, Setting, Words, word, words};

use super::FlashCache;
use super::layout::{BLOCK_BYTES, BLOCK_SECTORS, ENTRY_BYTES, Layout, exact_size};
use crate::layers::{Below, LayerConfig, LayerKind, shown_time};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "flashcache",
    summary: "FlashCache: a plain drive, the first device below, keeps blocks of the second, a disk",
    keys: KEYS,
    devices: (2, 2),
    hands_on: false,
    read,
};

/// Bytes that the simulator keeps of a cached block, at most.
const BOOKKEEPING_BYTES: u64 = 40;

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To the cache, and later to the disk.
    Back,
    /// To both.
    Through,
    /// To the disk alone.
    Around,
}

impl Words for Mode {
    const WORDS: &'static [(&'static str, Mode)] =
        &[("write-back", Mode::Back), ("write-through", Mode::Through), ("write-around", Mode::Around)];
}

/// Which block of a set is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The one that came first.
    Fifo,
    /// The one that was used longest ago.
    Lru,
}

impl Words for Replacement {
    const WORDS: &'static [(&'static str, Replacement)] = &[("fifo", Replacement::Fifo), ("lru", Replacement::Lru)];
}

/// What a flush does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushes {
    /// It completes at once, and FUA counts for nothing: neither device hears of it.
    Refused,
    /// It goes to both devices.
    Passed,
}

impl Words for Flushes {
    const WORDS: &'static [(&'static str, Flushes)] = &[("refused", Flushes::Refused), ("passed", Flushes::Passed)];
}

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "mode",
        Kind::Word(words::<Mode>),
        Default::Is(Setting::Word("write-back")),
        "Where a write goes: to the cache and later to the disk (`write-back`), to both (`write-through`), to the disk alone \
         (`write-around`).",
    ),
    Key::new(
        "size",
        Kind::Size { least: BLOCK_BYTES, most: 1 << 44, step: BLOCK_BYTES },
        Default::Means("as much as the cache drive holds"),
        "Bytes of cached blocks, rounded down to whole sets.",
    ),
    Key::new(
        "set",
        Kind::Count { unit: "blocks", least: 1, most: 65_536 },
        Default::number(512),
        "Blocks of a set (FlashCache, doc/flashcache-doc.txt: 512). A block has 4 KB.",
    ),
    Key::new(
        "replacement",
        Kind::Word(words::<Replacement>),
        Default::Is(Setting::Word("fifo")),
        "Which clean block of a set is replaced (doc/flashcache-sa-guide.txt, reclaim_policy: FIFO).",
    ),
    Key::new(
        "metadata_block",
        Kind::Size { least: SECTOR_BYTES, most: 8192, step: SECTOR_BYTES },
        Default::number(4096),
        "Bytes of a metadata block, which is written as a whole, with 16 bytes for each cached block (doc/flashcache-sa-guide.txt, \
         Cache Metadata Blocksize selection: 4 KB).",
    ),
    Key::new(
        "dirty_threshold",
        Kind::Percent(0),
        Default::number(20),
        "With `write-back`: dirty blocks of a set are cleaned while they are more than this share of it (dirty_thresh_pct: 20 %).",
    ),
    Key::new(
        "clean_writes_set",
        Kind::Count { unit: "writes", least: 1, most: 4096 },
        Default::number(2),
        "Writes to the disk at most that clean a set at one time, each of blocks that follow one another (max_clean_ios_set: 2).",
    ),
    Key::new(
        "clean_writes_total",
        Kind::Count { unit: "writes", least: 1, most: 65_536 },
        Default::number(4),
        "The same for all sets together (max_clean_ios_total: 4).",
    ),
    Key::new(
        "fallow_delay",
        Kind::Time(Nanos(86_400_000_000_000)),
        Default::number(900_000_000_000),
        "A dirty block that was not used for this long is cleaned; `0` cleans none for its age (fallow_delay: 900 s).",
    ),
    Key::new(
        "skip_sequential",
        Kind::Size { least: 0, most: 1 << 40, step: SECTOR_BYTES },
        Default::number(1 << 20),
        "Requests of a run that is longer than this go past the cache; `0` caches all (skip_seq_thresh_kb: 0; the guide suggests 1 MB \
         to begin with, and Getting Real, 4.2, has it on).",
    ),
    Key::new(
        "flushes",
        Kind::Word(words::<Flushes>),
        Default::Is(Setting::Word("passed")),
        "A flush goes to both devices, and metadata is written with FUA (`passed`); or it completes at once and reaches neither \
         (`refused`), as FlashCache refused barriers: then what was flushed may be lost.",
    ),
    Key::new(
        "trim",
        Kind::Boolean,
        Default::Is(Setting::Flag(false)),
        "Whether the cache drive is told of slots that hold nothing any more (doc/flashcache-doc.txt names it as future work).",
    ),
    Key::new(
        "fast_remove",
        Kind::Boolean,
        Default::Is(Setting::Flag(false)),
        "Whether dirty blocks stay in the cache when the host stops; otherwise they are cleaned first (fast_remove: 0).",
    ),
];

/// What the layer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashCacheConfig {
    /// Where a write goes.
    pub mode: Mode,
    /// Bytes of cached blocks; `None` is as many as the drive holds.
    pub size: Option<u64>,
    /// Blocks of a set, at least 1.
    pub set_blocks: u32,
    /// Which block of a set is replaced.
    pub replacement: Replacement,
    /// Bytes of a metadata block: whole sectors.
    pub metadata_block: u64,
    /// Share of a set in percent above which its dirty blocks are cleaned.
    pub dirty_threshold: u32,
    /// Writes that clean a set at one time, at least 1.
    pub clean_writes_set: u32,
    /// Writes that clean sets at one time, at least 1.
    pub clean_writes_total: u32,
    /// Age at which dirty blocks are cleaned; 0 is never.
    pub fallow_delay: Nanos,
    /// Bytes of a run's beginning, which are cached; 0 caches all.
    pub skip_sequential: u64,
    /// What a flush does.
    pub flushes: Flushes,
    /// The cache drive is told of slots that hold nothing any more.
    pub trim: bool,
    /// Dirty blocks stay in the cache when the host stops.
    pub fast_remove: bool,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    Ok(Arc::new(FlashCacheConfig {
        mode: keys.choice("mode")?,
        size: if keys.get("size").is_some() { Some(keys.number("size")?) } else { None },
        set_blocks: keys.count("set")?,
        replacement: keys.choice("replacement")?,
        metadata_block: keys.number("metadata_block")?,
        dirty_threshold: keys.count("dirty_threshold")?,
        clean_writes_set: keys.count("clean_writes_set")?,
        clean_writes_total: keys.count("clean_writes_total")?,
        fallow_delay: Nanos(keys.number("fallow_delay")?),
        skip_sequential: keys.number("skip_sequential")?,
        flushes: keys.choice("flushes")?,
        trim: keys.flag("trim")?,
        fast_remove: keys.flag("fast_remove")?,
    }))
}

impl FlashCacheConfig {
    /// Where everything is on a cache and a disk.
    pub(super) fn layout(&self, below: &[Below]) -> Result<Layout, LayerError> {
        let [cache, disk] = below else { return Err(LayerError::NoDevice { layer: LAYER.name }) };
        Layout::new(self, cache.sectors, disk.sectors)
    }

    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self, layout: &Layout) -> BTreeMap<String, String> {
        [
            ("mode", word(self.mode).to_string()),
            ("size", exact_size(u64::from(layout.slots()) * BLOCK_BYTES)),
            ("set", self.set_blocks.to_string()),
            ("replacement", word(self.replacement).to_string()),
            ("metadata_block", format_size(self.metadata_block)),
            ("dirty_threshold", format!("{}%", self.dirty_threshold)),
            ("clean_writes_set", self.clean_writes_set.to_string()),
            ("clean_writes_total", self.clean_writes_total.to_string()),
            ("fallow_delay", shown_time(self.fallow_delay)),
            ("skip_sequential", format_size(self.skip_sequential)),
            ("flushes", word(self.flushes).to_string()),
            ("trim", self.trim.to_string()),
            ("fast_remove", self.fast_remove.to_string()),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }

    /// Slots that a metadata block describes.
    pub(super) const fn slots_of_metadata_block(&self) -> u32 {
        (self.metadata_block / ENTRY_BYTES) as u32
    }

    /// Sectors of a metadata block.
    pub(super) const fn metadata_sectors(&self) -> u64 {
        self.metadata_block / SECTOR_BYTES
    }
}

impl LayerConfig for FlashCacheConfig {
    fn places(&self) -> String {
        let size = self.size.map_or_else(|| "the whole cache".to_string(), format_size);
        let set = self.set_blocks;
        format!("mode {}, size {size}, set {set}, metadata_block {}", word(self.mode), format_size(self.metadata_block))
    }

    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        self.layout(below).map(|layout| u64::from(layout.disk_blocks) * BLOCK_SECTORS)
    }

    fn memory(&self) -> Option<(&'static str, u64)> {
        self.size.map(|bytes| ("size", bytes / BLOCK_BYTES * BOOKKEEPING_BYTES))
    }

    /// The first is the cache, and the second the disk.
    fn needs_drives(&self, place: usize) -> bool {
        place == 0
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        Ok(Box::new(FlashCache::new(below, *self)?))
    }
}

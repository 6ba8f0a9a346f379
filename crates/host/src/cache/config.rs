//! The layer's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::command_sets::cache::{CACHE, Miss};
use ssdlab_base::{CommandSet, SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section, Setting, Words, word, words};
use ssdlab_device::overrides_for_addresses;

use super::CacheManager;
use super::records::Layout;
use crate::layers::{Below, LayerConfig, LayerKind};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "cache",
    summary: "FlashTier's manager: a drive with the command set cache, the first device, caches a disk, the second",
    keys: KEYS,
    devices: (2, 2),
    hands_on: false,
    read,
};

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To the cache, and from there to the disk later.
    WriteBack,
    /// To the disk, and then to the cache.
    WriteThrough,
}

impl Words for Mode {
    const WORDS: &'static [(&'static str, Mode)] =
        &[("write-back", Mode::WriteBack), ("write-through", Mode::WriteThrough)];
}

/// Which clean blocks a start drops after a crash, or the layer when a device below has lost its power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropClean {
    /// Those of regions that were written on the disk since both devices were flushed.
    Regions,
    /// All of them.
    All,
    /// None: a block may go back to an older state, and forth again.
    None,
}

impl Words for DropClean {
    const WORDS: &'static [(&'static str, DropClean)] =
        &[("regions", DropClean::Regions), ("all", DropClean::All), ("none", DropClean::None)];
}

/// How the cache tells of a miss, as descriptions say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ToldBy(Miss);

impl Words for ToldBy {
    const WORDS: &'static [(&'static str, ToldBy)] =
        &[("words", ToldBy(Miss::Words)), ("pattern", ToldBy(Miss::Pattern)), ("error", ToldBy(Miss::Error))];
}

/// What a block that holds the read-miss pattern is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissCheck {
    /// The table of dirty blocks: a dirty block is no miss.
    DirtyTable,
    /// Nothing: a dirty block that holds the pattern is read from the disk, which has older data.
    None,
}

impl Words for MissCheck {
    const WORDS: &'static [(&'static str, MissCheck)] =
        &[("dirty-table", MissCheck::DirtyTable), ("none", MissCheck::None)];
}

const REGION_BYTES: u64 = 64 << 20;
const SEQUENTIAL_BYTES: u64 = 256 << 10;

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "mode",
        Kind::Word(words::<Mode>),
        Default::Is(Setting::Word("write-back")),
        "Writes go to the cache alone and to the disk later, or to the disk and then to the cache (Getting Real, section 4.1).",
    ),
    Key::new(
        "dirty_limit",
        Kind::Percent(0),
        Default::number(20),
        "With more than this share of the cache dirty, the blocks that were not written for the longest time are copied to the disk \
         (FlashTier, section 4.4; the share is FlashCache's dirty_thresh_pct). In mode `write-through` all dirty blocks are copied.",
    ),
    Key::new(
        "clean_size",
        Kind::Size { least: 4096, most: 16 << 20, step: SECTOR_BYTES },
        Default::number(512 << 10),
        "Most bytes of a copy: dirty blocks that follow one another, at least one. The default is ours.",
    ),
    Key::new(
        "clean_batch",
        Kind::Size { least: 4096, most: 1 << 30, step: SECTOR_BYTES },
        Default::number(4 << 20),
        "Least bytes that are copied in the disk's order before a flush of the disk makes them clean. The default is ours.",
    ),
    Key::new(
        "copies",
        Kind::Count { unit: "copies", least: 1, most: 1024 },
        Default::number(4),
        "Copies in flight at most. The default is ours.",
    ),
    Key::new(
        "sequential",
        Kind::Size { least: 0, most: 1 << 40, step: SECTOR_BYTES },
        Default::number(SEQUENTIAL_BYTES),
        "A write goes to the disk when the run that it continues has more than so many bytes with it; `0` caches all (Getting Real, \
         section 4.1: sequential writes use the disk; FlashCache's skip_seq_thresh_kb; the default is ours).",
    ),
    Key::new(
        "streams",
        Kind::Count { unit: "runs", least: 1, most: 1024 },
        Default::number(8),
        "Runs of writes that are remembered at one time. The default is ours.",
    ),
    Key::new(
        "miss",
        Kind::Word(words::<ToldBy>),
        Default::Is(Setting::Word("pattern")),
        "How the cache tells of blocks that it does not have: by a `pattern` in the data that it returns (Getting Real, section 3.2.2), by \
         `words` beside the data, or by an `error`, which a layer `ata` below handles as lost data.",
    ),
    Key::new(
        "miss_check",
        Kind::Word(words::<MissCheck>),
        Default::Is(Setting::Word("dirty-table")),
        "With `miss = \"pattern\"`, whether the table of dirty blocks is asked about a block that holds the pattern (`dirty-table`, ours), or it \
         counts as a miss in any case (`none`, as published: a dirty block that holds the pattern is lost).",
    ),
    Key::new(
        "drop_clean",
        Kind::Word(words::<DropClean>),
        Default::Is(Setting::Word("regions")),
        "Clean blocks that are dropped after a crash, since the disk may hold another state: those of `regions` that were written on the \
         disk since both devices were flushed, `all` after any start without a shutdown before it, or `none`, as published (ours; Getting \
         Real, section 3.3.2, keeps them).",
    ),
    Key::new(
        "region",
        Kind::Size { least: SECTOR_BYTES, most: 1 << 40, step: SECTOR_BYTES },
        Default::number(REGION_BYTES),
        "Bytes of the disk that a bit covers, with `drop_clean = \"regions\"`.",
    ),
    Key::new(
        "cache_flush",
        Kind::Size { least: 0, most: 1 << 40, step: SECTOR_BYTES },
        Default::number(0),
        "Bytes that go to the disk, past or through the cache, before the next flush goes to the cache as well, though no dirty block waits for it. \
         `0` sends it each flush (Getting Real, section 3.3.1). More spares the cache in write-through, and a crash costs the clean blocks \
         of regions that were written since (ours).",
    ),
    Key::new(
        "identity",
        Kind::Count { unit: "", least: 0, most: u32::MAX },
        Default::number(0),
        "A number of the pair, for pairs that are alike otherwise: a cache is not used with another pair's disk.",
    ),
];

/// What the layer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Where a write goes.
    pub mode: Mode,
    /// Share of the cache in percent that may be dirty.
    pub dirty_limit: u32,
    /// Most bytes of a copy to the disk.
    pub clean_size: u64,
    /// Least bytes of a batch of copies, where there are as many.
    pub clean_batch: u64,
    /// Copies in flight at most.
    pub copies: u32,
    /// Bytes of a run of writes that are cached; 0 caches all.
    pub sequential: u64,
    /// Runs that are remembered.
    pub streams: u32,
    /// How the cache tells of blocks that it does not have.
    pub miss: Miss,
    /// What a block that holds the pattern of a miss is compared with.
    pub miss_check: MissCheck,
    /// What is dropped after a crash.
    pub drop_clean: DropClean,
    /// Bytes to a bit of the write-intent bitmap.
    pub region: u64,
    /// Bytes that go to the disk before a flush goes to the cache though nothing dirty waits for it.
    pub cache_flush: u64,
    /// A number of the pair.
    pub identity: u32,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    Ok(Arc::new(CacheConfig {
        mode: keys.choice("mode")?,
        dirty_limit: keys.count("dirty_limit")?,
        clean_size: keys.number("clean_size")?,
        clean_batch: keys.number("clean_batch")?,
        copies: keys.count("copies")?,
        sequential: keys.number("sequential")?,
        streams: keys.count("streams")?,
        miss: keys.choice::<ToldBy>("miss")?.0,
        miss_check: keys.choice("miss_check")?,
        drop_clean: keys.choice("drop_clean")?,
        region: keys.number("region")?,
        cache_flush: keys.number("cache_flush")?,
        identity: keys.count("identity")?,
    }))
}

impl CacheConfig {
    /// Where everything is, with the cache and the disk below.
    pub(super) fn layout(&self, below: &[Below]) -> Result<Layout, LayerError> {
        let [cache, disk] = below else { return Err(LayerError::NoDevice { layer: LAYER.name }) };
        if disk.sectors > cache.sectors {
            return Err(LayerError::FewAddresses {
                disk: format_size(disk.sectors * SECTOR_BYTES),
                cache: format_size(cache.sectors * SECTOR_BYTES),
                overrides: overrides_for_addresses(
                    (disk.sectors * SECTOR_BYTES).next_multiple_of(u64::from(cache.unit_bytes)),
                ),
            });
        }
        let region = (self.drop_clean == DropClean::Regions).then_some(self.region / SECTOR_BYTES);
        Layout::new(disk.sectors, cache.unit_bytes, region).ok_or_else(|| LayerError::TooSmall {
            size: format!("{} sectors", disk.sectors),
            lacking: "and the record and bitmap of the cache leave nothing of them".to_string(),
        })
    }

    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        [
            ("mode", word(self.mode).to_string()),
            ("dirty_limit", format!("{}%", self.dirty_limit)),
            ("clean_size", format_size(self.clean_size)),
            ("clean_batch", format_size(self.clean_batch)),
            ("copies", self.copies.to_string()),
            ("sequential", format_size(self.sequential)),
            ("streams", self.streams.to_string()),
            ("miss", word(ToldBy(self.miss)).to_string()),
            ("miss_check", word(self.miss_check).to_string()),
            ("drop_clean", word(self.drop_clean).to_string()),
            ("region", format_size(self.region)),
            ("cache_flush", format_size(self.cache_flush)),
            ("identity", self.identity.to_string()),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }
}

impl LayerConfig for CacheConfig {
    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        self.layout(below).map(|layout| layout.sectors)
    }

    fn places(&self) -> String {
        let drops = word(self.drop_clean);
        format!("drop_clean {drops}, region {}, identity {}", format_size(self.region), self.identity)
    }

    fn commands(&self) -> &'static [&'static CommandSet] {
        static SETS: [&CommandSet; 1] = [&CACHE];
        &SETS
    }

    /// The disk takes block I/O.
    fn commands_of(&self, place: usize) -> &'static [&'static CommandSet] {
        if place == 0 { self.commands() } else { &[] }
    }

    /// The first is the cache, and the second the disk.
    fn needs_drives(&self, place: usize) -> bool {
        place == 0
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        Ok(Box::new(CacheManager::new(below, *self)?))
    }
}

//! The keys of `[ftl]` that only this design reads, and what they say of a drive.

use ssdlab_flash::Geometry;

use crate::DriveConfig;
use crate::description::{Default, Key, Kind, Setting, Settings, Words, words};

/// The table.
pub(super) const KEYS: &[Key] = &[
    VERSION_INDEX,
    VERSION_BITS,
    VERSION_CHAIN,
    VERSION_GROUP,
    VERSION_SPARE,
    VERSION_MASKS,
    IDLE_MERGE,
    MERGE_LOAD,
    COMPACTION,
    COMPACTION_INDEX,
    REGION,
];

const VERSION_INDEX: Key = Key::new(
    "version_index",
    Kind::Word(words::<VersionIndex>),
    Default::word("indirect"),
    "What the pointer in a map entry holds. `\"indirect\"`: a slot in the table of the page's group. `\"direct\"`: the \
     distance from the older page to the newer one, in the order in which frontiers in step allocate pages; the design \
     takes a page within reach if there is one.",
);

const VERSION_BITS: Key = Key::new(
    "version_bits",
    Kind::Count { unit: "bits", least: 1, most: 32 },
    Default::Means("all that are left"),
    "Bits of the 32-bit map entry for PT/F. With 2^n physical pages, a page number takes n bits, so at most 32 - n are \
     left. At least 2, with compaction 3 (one is F).",
);

const VERSION_CHAIN: Key = Key::new(
    "version_chain",
    Kind::Count { unit: "versions", least: 2, most: 64 },
    Default::Follows("`4`, direct `2`", most_versions),
    "Most valid versions of a page, the full one included: 2 to 64. A direct index supports 2.",
);

const VERSION_GROUP: Key = Key::new(
    "version_group",
    Kind::count("pages", 1),
    Default::number(64),
    "Logical pages that share a table of versions, of at most 2^bits - 2 slots.",
);

const VERSION_SPARE: Key = Key::new(
    "version_spare",
    Kind::Percent(0),
    Default::number(50),
    "Share of the over-provisioned pages that versions may take, beyond those that collection and open blocks need; \
     whole percent.",
);

const VERSION_MASKS: Key = Key::new(
    "version_masks",
    Kind::Word(words::<VersionMasks>),
    Default::word("patterns"),
    "Which partial writes become versions. `\"patterns\"`: runs of more than half the page. `\"any\"`: all; the \
     out-of-band area holds the mask.",
);

const IDLE_MERGE: Key =
    Key::new("idle_merge", Kind::Boolean, Default::ON, "Merge versions after `gc.idle_after` without commands.");

const MERGE_LOAD: Key = Key::new(
    "merge_load",
    Kind::count("commands", 0),
    Default::number(0),
    "For merging, at most this many commands in flight count as idle.",
);

const COMPACTION: Key = Key::new(
    "compaction",
    Kind::Boolean,
    Default::OFF,
    "Compact small partial pages (at most half a page) of a region into one physical page when they leave the write \
     buffer. Needs pages of at least 2 KB.",
);

const COMPACTION_INDEX: Key = Key::new(
    "compaction_index",
    Kind::Word(words::<CompactionIndex>),
    Default::word("page"),
    "Where a compacted page keeps its layout. `\"page\"`: in its first sector. `\"oob\"`: in its out-of-band area, six \
     bytes for each run of sectors beside 22 others, so that two half pages fit into one page.",
);

const REGION: Key =
    Key::new("region", Kind::Pages, Default::number(1 << 20), "Bytes of a region, a whole number of pages.");

/// Versions of a page, unless the description says otherwise.
fn most_versions(geometry: &Geometry, own: &Settings) -> Setting {
    match own.choice(&VERSION_INDEX, geometry) {
        VersionIndex::Direct => Setting::Number(2),
        VersionIndex::Indirect => Setting::Number(4),
    }
}

/// What the keys say.
pub(super) struct Versions {
    /// How a map entry finds the newer versions.
    pub(super) index: VersionIndex,
    /// Bits of a map entry for PT/F; `None`: all that the physical page number leaves.
    pub(super) bits: Option<u32>,
    /// Most valid versions of a logical page, the full one included; at least 2.
    pub(super) chain: u32,
    /// Logical pages that share a table of version slots (indirect index).
    pub(super) group_pages: u32,
    /// Percent of the over-provisioned pages that versions may take: 0 to 100.
    pub(super) spare_percent: u64,
    /// Which partial writes become versions.
    pub(super) masks: VersionMasks,
    /// Versions are merged while the drive is idle.
    pub(super) idle_merge: bool,
    /// Most commands in flight with which the drive counts as idle for merging.
    pub(super) merge_load: u32,
    /// Small partial pages of a region are compacted into one physical page.
    pub(super) compaction: bool,
    /// Where a compacted page has the index of what is in it.
    pub(super) compaction_index: CompactionIndex,
    /// Bytes of a region.
    pub(super) region_bytes: u64,
}

impl Versions {
    pub(super) fn of(config: &DriveConfig) -> Versions {
        let (own, geometry) = (&config.ftl.own, &config.flash.geometry);
        Versions {
            index: own.choice(&VERSION_INDEX, geometry),
            bits: own.some_count(&VERSION_BITS, geometry),
            chain: own.count(&VERSION_CHAIN, geometry),
            group_pages: own.count(&VERSION_GROUP, geometry),
            spare_percent: own.number(&VERSION_SPARE, geometry),
            masks: own.choice(&VERSION_MASKS, geometry),
            idle_merge: own.flag(&IDLE_MERGE, geometry),
            merge_load: own.count(&MERGE_LOAD, geometry),
            compaction: own.flag(&COMPACTION, geometry),
            compaction_index: own.choice(&COMPACTION_INDEX, geometry),
            region_bytes: own.number(&REGION, geometry),
        }
    }
}

/// What the pointer in a map entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionIndex {
    /// The distance from the older page to the newer one.
    Direct,
    /// A slot in the table of the logical page's group.
    Indirect,
}

impl Words for VersionIndex {
    const WORDS: &'static [(&'static str, VersionIndex)] =
        &[("direct", VersionIndex::Direct), ("indirect", VersionIndex::Indirect)];
}

/// Which masks a version may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionMasks {
    /// Runs of more than half the page (Figure 6); others are completed by a read-modify-write.
    Patterns,
    /// Any: the mask itself is kept in the out-of-band area.
    Any,
}

impl Words for VersionMasks {
    const WORDS: &'static [(&'static str, VersionMasks)] =
        &[("patterns", VersionMasks::Patterns), ("any", VersionMasks::Any)];
}

/// Where the triples of a compacted page are (WAFLASH, 5.6: either will do).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompactionIndex {
    /// In the page's first sector (Figure 7).
    Page,
    /// In its out-of-band area: all sectors are for data, and two halves of pages fit.
    Oob,
}

impl Words for CompactionIndex {
    const WORDS: &'static [(&'static str, CompactionIndex)] =
        &[("page", CompactionIndex::Page), ("oob", CompactionIndex::Oob)];
}

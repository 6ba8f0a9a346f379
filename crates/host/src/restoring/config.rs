//! The layer's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::{SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section, Setting, Words, word, words};

use super::Restoring;
use super::layout::Layout;
use crate::layers::{Below, LayerConfig, LayerKind, only};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "restoring",
    summary: "ReSSD and LSDM: small writes go to a log in reserved space, and the host copies them back later",
    keys: KEYS,
    devices: (1, 1),
    hands_on: false,
    read,
};

/// How places of a full log become free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    /// What is in them is written to its own address, in the order of addresses.
    Ressd,
    /// The oldest segment is cleaned: what is in it goes to the head of the log if that is little, else to its own address.
    Lsdm,
}

impl Words for Restore {
    const WORDS: &'static [(&'static str, Restore)] = &[("ressd", Restore::Ressd), ("lsdm", Restore::Lsdm)];
}

/// What happens to a small write when the log is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits for places.
    Wait,
    /// It goes to its own address.
    Direct,
}

impl Words for WhenFull {
    const WORDS: &'static [(&'static str, WhenFull)] = &[("wait", WhenFull::Wait), ("direct", WhenFull::Direct)];
}

/// Where the redirection table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableIn {
    /// In RAM, and on the device with every flush.
    Drive,
    /// In RAM alone, as published.
    Ram,
}

impl Words for TableIn {
    const WORDS: &'static [(&'static str, TableIn)] = &[("drive", TableIn::Drive), ("ram", TableIn::Ram)];
}

const LOG_BYTES: u64 = 64 << 20;

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "log",
        Kind::Size { least: 1024, most: 1 << 40, step: SECTOR_BYTES },
        Default::number(LOG_BYTES),
        "The log, in space that the layer takes from the capacity.",
    ),
    Key::new(
        "threshold",
        Kind::Size { least: 0, most: 512 << 10, step: SECTOR_BYTES },
        Default::number(128 << 10),
        "The largest write that goes to the log, in whole sectors and at most a quarter of the log; larger ones go to their own address.",
    ),
    Key::new(
        "pack",
        Kind::Size { least: 4096, most: 512 << 10, step: SECTOR_BYTES },
        Default::number(512 << 10),
        "The largest write to the log, which several requests share, and the largest copy from it.",
    ),
    Key::new(
        "writes",
        Kind::Count { unit: "writes", least: 0, most: 65_536 },
        Default::number(0),
        "Writes to the log that are below at once; `0` is no limit. While there are so many, requests are packed.",
    ),
    Key::new(
        "restore",
        Kind::Word(words::<Restore>),
        Default::Is(Setting::Word("ressd")),
        "How places of a full log become free: the host copies what is in them to its own address (`ressd`), or cleans the log (`lsdm`).",
    ),
    Key::new(
        "range",
        Kind::Size { least: 512, most: 1 << 40, step: SECTOR_BYTES },
        Default::Means("the whole log; a sixteenth of it with `lsdm`"),
        "Bytes of the log that are made free at a time, the oldest first; with `lsdm` a segment, at most half of the log.",
    ),
    Key::new(
        "live",
        Kind::Percent(0),
        Default::number(75),
        "With `lsdm`: a segment of which more than this is live goes to its own addresses, and not to the head of the log.",
    ),
    Key::new(
        "copies",
        Kind::Count { unit: "copies", least: 1, most: 1024 },
        Default::number(16),
        "Copies out of the log that are made at once, each of consecutive units.",
    ),
    Key::new(
        "when_full",
        Kind::Word(words::<WhenFull>),
        Default::Is(Setting::Word("wait")),
        "What a small write does when the log is full: it waits for places, or goes to its own address.",
    ),
    Key::new(
        "table",
        Kind::Word(words::<TableIn>),
        Default::Is(Setting::Word("drive")),
        "Where the redirection table is: on the device too, written with each flush and FUA write, or in RAM alone, as published.",
    ),
];

/// What the layer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoringConfig {
    /// Bytes of the log.
    pub log: u64,
    /// Most bytes of a write that goes to the log.
    pub threshold: u64,
    /// Most bytes of a write to the log, and of a copy.
    pub pack: u64,
    /// Writes to the log below at once; 0 is no limit.
    pub writes: u32,
    /// How places become free.
    pub restore: Restore,
    /// Bytes of the log that are made free at a time.
    pub range: u64,
    /// Percent of a segment that may be live for it to go to the head of the log.
    pub live: u32,
    /// Copies made at once, at least 1.
    pub copies: u32,
    /// What a small write does when the log is full.
    pub when_full: WhenFull,
    /// Where the table is.
    pub table: TableIn,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    let (log, restore) = (keys.number("log")?, keys.choice("restore")?);
    let (most, part) = match restore {
        Restore::Ressd => (log, "the log"),
        Restore::Lsdm => (log / 2, "half of the log"),
    };
    let range = match keys.get("range") {
        None if restore == Restore::Lsdm => log / 16,
        None => log,
        Some(range) => match keys.number("range")? {
            bytes if bytes <= most => bytes,
            _ => return Err(range.expected(&format!("at most {part}, {}", format_size(most)))),
        },
    };
    Ok(Arc::new(RestoringConfig {
        log,
        threshold: keys.number("threshold")?,
        pack: keys.number("pack")?,
        writes: keys.count("writes")?,
        restore,
        range,
        live: keys.count("live")?,
        copies: keys.count("copies")?,
        when_full: keys.choice("when_full")?,
        table: keys.choice("table")?,
    }))
}

impl RestoringConfig {
    /// Where everything is on a device of so many sectors, which likes to be written in units of so many bytes.
    pub(super) fn layout(&self, sectors: u64, unit_bytes: u32) -> Result<Layout, LayerError> {
        Layout::new(sectors, unit_bytes, self.log)
    }

    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        [
            ("log", format_size(self.log)),
            ("threshold", format_size(self.threshold)),
            ("pack", format_size(self.pack)),
            ("writes", self.writes.to_string()),
            ("restore", word(self.restore).to_string()),
            ("range", format_size(self.range)),
            ("live", format!("{}%", self.live)),
            ("copies", self.copies.to_string()),
            ("when_full", word(self.when_full).to_string()),
            ("table", word(self.table).to_string()),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }
}

impl LayerConfig for RestoringConfig {
    fn places(&self) -> String {
        format!("log {}, table {}", format_size(self.log), word(self.table))
    }

    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        let Below { sectors, unit_bytes, .. } = *below.first().ok_or(LayerError::NoDevice { layer: LAYER.name })?;
        self.layout(sectors, unit_bytes).map(|layout| layout.sectors)
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = only(below, LAYER.name)?;
        Ok(Box::new(Restoring::new(below, *self)?))
    }
}

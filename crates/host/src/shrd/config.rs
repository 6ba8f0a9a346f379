//! The driver's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::command_sets::shrd::{
    MOST_ENTRIES, MOST_UNITS, REMAP, SHRD, TRIM_LOG, TWRITE_HEADER, VENDOR_REMAP, VENDOR_TRIM_LOG, VENDOR_TWRITE_HEADER,
};
use ssdlab_base::{CommandSet, Opcode, SECTOR_BYTES, format_size};
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section, Setting, Words, word, words};

use super::Shrd;
use crate::layers::{LayerConfig, LayerKind, only};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "shrd",
    summary: "SHRD's driver: small writes go to a log in the drive, which gives them their own addresses back later",
    keys: KEYS,
    devices: (1, 1),
    hands_on: false,
    read,
};

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

/// Who keeps the data of a twrite behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// The host: data goes when the header has completed.
    Host,
    /// The drive: both go at once.
    Drive,
}

impl Words for Ordering {
    const WORDS: &'static [(&'static str, Ordering)] = &[("host", Ordering::Host), ("drive", Ordering::Drive)];
}

/// How commands travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// As writes, which SATA queues.
    Writes,
    /// As vendor commands, for which SATA empties its queue.
    Vendor,
}

impl Words for Carrier {
    const WORDS: &'static [(&'static str, Carrier)] = &[("writes", Carrier::Writes), ("vendor", Carrier::Vendor)];
}

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "threshold",
        Kind::Size { least: 0, most: 512 << 10, step: SECTOR_BYTES },
        Default::number(128 << 10),
        "The largest write that goes to the log, in whole sectors; larger ones go to their own address.",
    ),
    Key::new(
        "pack",
        Kind::Size { least: 4096, most: 512 << 10, step: SECTOR_BYTES },
        Default::number(512 << 10),
        "The largest write to the log, which several requests share.",
    ),
    Key::new(
        "twrites",
        Kind::Count { unit: "twrites", least: 0, most: 65_536 },
        Default::number(0),
        "Writes to the log that are in the drive at once; `0` is no limit. While there are so many, requests are packed.",
    ),
    Key::new(
        "remap_entries",
        Kind::Count { unit: "entries", least: 1, most: MOST_ENTRIES as u32 },
        Default::number(128),
        "Entries of a remap.",
    ),
    Key::new(
        "remaps",
        Kind::Count { unit: "remaps", least: 1, most: 64 },
        Default::number(1),
        "Remaps that are in the drive at once.",
    ),
    Key::new(
        "range",
        Kind::Size { least: 4096, most: u64::MAX, step: SECTOR_BYTES },
        Default::Means("the whole log"),
        "Bytes of the log that are remapped when it is full, the oldest first.",
    ),
    Key::new(
        "when_full",
        Kind::Word(words::<WhenFull>),
        Default::Is(Setting::Word("wait")),
        "What a small write does when the log is full: it waits for places, or goes to its own address.",
    ),
    Key::new(
        "trim_tlpn",
        Kind::Boolean,
        Default::Is(Setting::Flag(true)),
        "Whether the drive is told of copies in the log that are not needed any more.",
    ),
    Key::new(
        "ordering",
        Kind::Word(words::<Ordering>),
        Default::Is(Setting::Word("host")),
        "Who keeps data behind its header: the host, which waits for the header, or the drive.",
    ),
    Key::new(
        "commands",
        Kind::Word(words::<Carrier>),
        Default::Is(Setting::Word("writes")),
        "How commands travel: as writes, which SATA queues, or as vendor commands, for which it empties its queue.",
    ),
    Key::new(
        "list_commands",
        Kind::Count { unit: "commands", least: 0, most: 16_777_216 },
        Default::number(0),
        "Commands that results list with their times and addresses: the first ones of the run; `0` lists none.",
    ),
];

/// What the driver is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShrdConfig {
    /// Most bytes of a write that goes to the log.
    pub threshold: u64,
    /// Most bytes of a twrite.
    pub pack: u64,
    /// Twrites in the drive at once; 0 is no limit.
    pub twrites: u32,
    /// Entries of a remap, 1 to [`MOST_ENTRIES`].
    pub remap_entries: u32,
    /// Remaps in the drive at once, at least 1.
    pub remaps: u32,
    /// Bytes of the log that are remapped when it is full.
    pub range: u64,
    /// What a small write does then.
    pub when_full: WhenFull,
    /// Whether the drive is told of what is not needed any more.
    pub trim_tlpn: bool,
    /// Who keeps data behind its header.
    pub ordering: Ordering,
    /// How commands travel.
    pub commands: Carrier,
    /// Commands that results list.
    pub list_commands: u32,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    Ok(Arc::new(ShrdConfig {
        threshold: keys.number("threshold")?,
        pack: keys.number("pack")?,
        twrites: keys.count("twrites")?,
        remap_entries: keys.count("remap_entries")?,
        remaps: keys.count("remaps")?,
        range: match keys.get("range") {
            None => u64::MAX,
            Some(_) => keys.number("range")?,
        },
        when_full: keys.choice("when_full")?,
        trim_tlpn: keys.flag("trim_tlpn")?,
        ordering: keys.choice("ordering")?,
        commands: keys.choice("commands")?,
        list_commands: keys.count("list_commands")?,
    }))
}

impl ShrdConfig {
    /// Units of the largest twrite.
    pub(super) fn pack_units(&self, unit_bytes: u32) -> u32 {
        ((self.pack / u64::from(unit_bytes)) as u32).clamp(1, MOST_UNITS)
    }

    /// A command as it travels.
    pub(super) fn carried(&self, opcode: Opcode) -> Opcode {
        match (self.commands, opcode) {
            (Carrier::Vendor, TWRITE_HEADER) => VENDOR_TWRITE_HEADER,
            (Carrier::Vendor, REMAP) => VENDOR_REMAP,
            (Carrier::Vendor, TRIM_LOG) => VENDOR_TRIM_LOG,
            (Carrier::Writes | Carrier::Vendor, opcode) => opcode,
        }
    }

    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        let range = if self.range == u64::MAX { "whole log".to_string() } else { format_size(self.range) };
        [
            ("threshold", format_size(self.threshold)),
            ("pack", format_size(self.pack)),
            ("twrites", self.twrites.to_string()),
            ("remap_entries", self.remap_entries.to_string()),
            ("remaps", self.remaps.to_string()),
            ("range", range),
            ("when_full", word(self.when_full).to_string()),
            ("trim_tlpn", self.trim_tlpn.to_string()),
            ("ordering", word(self.ordering).to_string()),
            ("commands", word(self.commands).to_string()),
            ("list_commands", self.list_commands.to_string()),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }
}

impl LayerConfig for ShrdConfig {
    fn commands(&self) -> &'static [&'static CommandSet] {
        static SETS: [&CommandSet; 1] = [&SHRD];
        &SETS
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = only(below, LAYER.name)?;
        Ok(Box::new(Shrd::new(below, *self)?))
    }
}

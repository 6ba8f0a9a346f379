//! The layer's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::{CommandSet, format_size};
use ssdlab_device::Pacing;
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section, Setting, Words, word, words};

use super::Append;
use super::layout::Layout;
use super::target::SETS;
use crate::layers::{Below, LayerConfig, LayerKind, only};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "append",
    summary: "a block device on append-only segments or zones: page map, cleaning and journal in the host",
    keys: KEYS,
    devices: (1, 1),
    hands_on: false,
    read,
};

/// Which segment is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// The one with the least valid units.
    Greedy,
    /// The one with the highest (1 - u) * age / (1 + u), where u is the valid share (Rosenblum and Ousterhout, 1992).
    CostBenefit,
}

impl Words for Cleaning {
    const WORDS: &'static [(&'static str, Cleaning)] =
        &[("greedy", Cleaning::Greedy), ("cost-benefit", Cleaning::CostBenefit)];
}

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "over_provisioning",
        Kind::Percent(1),
        Default::number(7),
        "Space for data beyond the layer's capacity, in percent of the capacity.",
    ),
    Key::new(
        "cleaning",
        Kind::Word(words::<Cleaning>),
        Default::Is(Setting::Word("greedy")),
        "Which segment is cleaned. `greedy`: the one with the fewest valid units. `cost-benefit`: the one with the highest \
         (1 - u) * age / (1 + u), where u is its valid share and age the number of units written since it became full.",
    ),
    Key::new(
        "free_segments",
        Kind::Count { unit: "segments", least: 2, most: 65_536 },
        Default::number(2),
        "Cleaning begins when this many segments are free, and ends when more are free.",
    ),
    Key::new(
        "pacing",
        Kind::Word(words::<Pacing>),
        Default::word("off"),
        "How cleaning and host writes share the drive. `off`: cleaning runs at full speed while at most `free_segments` segments \
         are free, and host writes can wait for a whole segment. `proportional`: cleaning copies a share of units for each unit \
         that the host writes, and a host that is too fast waits for single copies.",
    ),
    Key::new(
        "copies",
        Kind::Count { unit: "copies", least: 1, most: 1024 },
        Default::number(8),
        "Most cleaning writes in flight at one time.",
    ),
    Key::new(
        "copy_size",
        Kind::Size { least: 512, most: 1 << 20, step: 512 },
        Default::number(128 << 10),
        "Most bytes of a cleaning write, rounded down to write units; at least one.",
    ),
];

/// What the layer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendConfig {
    /// Space for data beyond the capacity, in percent of the capacity.
    pub over_provisioning: u32,
    /// Which segment is cleaned.
    pub cleaning: Cleaning,
    /// Free segments at which cleaning begins, at least 2.
    pub free_segments: u32,
    /// How cleaning and writes share the drive.
    pub pacing: Pacing,
    /// Writes of cleaning in flight at most, at least 1.
    pub copies: u32,
    /// Most bytes of such a write.
    pub copy_size: u64,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    Ok(Arc::new(AppendConfig {
        over_provisioning: keys.count("over_provisioning")?,
        cleaning: keys.choice("cleaning")?,
        free_segments: keys.count("free_segments")?,
        pacing: keys.choice("pacing")?,
        copies: keys.count("copies")?,
        copy_size: keys.number("copy_size")?,
    }))
}

impl AppendConfig {
    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        [
            ("over_provisioning", format!("{}%", self.over_provisioning)),
            ("cleaning", word(self.cleaning).to_string()),
            ("free_segments", self.free_segments.to_string()),
            ("pacing", word(self.pacing).to_string()),
            ("copies", self.copies.to_string()),
            ("copy_size", format_size(self.copy_size)),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }
}

impl LayerConfig for AppendConfig {
    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        let below = below.first().ok_or(LayerError::NoDevice { layer: LAYER.name })?;
        Layout::new(below, self).map(|layout| u64::from(layout.units) * layout.per_unit)
    }

    fn commands(&self) -> &'static [&'static CommandSet] {
        &SETS
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = only(below, LAYER.name)?;
        Ok(Box::new(Append::new(below, *self)?))
    }
}

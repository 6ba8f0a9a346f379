//! The layers that there are. To add one is to add its file or folder, and its line in [`LAYERS`].

use std::fmt::Debug;
use std::sync::Arc;

use ssdlab_base::{CommandSet, Nanos};
use ssdlab_device::description::{DescriptionError, Key, Kind, Section, Setting};

use crate::{
    Device, LayerError, append, ata, cache, flashcache, mirror, page_cache, restoring, scheduler, shrd, stripe,
};

/// Every layer.
pub const LAYERS: &[LayerKind] = &[
    scheduler::LAYER,
    page_cache::LAYER,
    ata::LAYER,
    stripe::LAYER,
    mirror::LAYER,
    shrd::LAYER,
    restoring::LAYER,
    append::LAYER,
    cache::LAYER,
    flashcache::LAYER,
];

/// What the registry knows of a layer.
#[derive(Debug)]
pub struct LayerKind {
    /// Its name in descriptions.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its own keys in descriptions.
    pub keys: &'static [Key],
    /// The least and the most devices that it may stand on.
    pub devices: (usize, usize),
    /// Commands of the set of the one device below, and its events, pass through it. A layer that needs the set may stand on it.
    pub hands_on: bool,
    /// Reads its keys.
    pub read: fn(&Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError>,
}

/// A device that a layer is to stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Below {
    /// Capacity in sectors.
    pub sectors: u64,
    /// The unit in which it likes to be written, in bytes.
    pub unit_bytes: u32,
    /// Sectors of an append-only segment, where it has segments or zones; sectors count what can be written.
    pub segment: Option<u64>,
    /// Most segments that may be written in part at one time; 0 is no limit.
    pub most_active: u32,
}

impl Below {
    /// A device that takes block I/O.
    pub(crate) fn of(device: &dyn Device) -> Below {
        Below { sectors: device.sectors(), unit_bytes: device.identify().unit_bytes, segment: None, most_active: 0 }
    }
}

/// A layer as its description says it.
pub trait LayerConfig: Debug + Send + Sync {
    /// Its capacity in sectors over devices; by default all that they have.
    ///
    /// # Errors
    /// Why it cannot stand on them.
    fn sectors(&self, below: &[Below]) -> Result<u64, LayerError> {
        Ok(below.iter().map(|below| below.sectors).sum())
    }

    /// Whether every sector of the one device below is the sector of that number above, and the layer keeps nothing.
    fn is_transparent(&self) -> bool {
        false
    }

    /// The settings that decide where data is on the devices below, in words; empty where the layer finds that there itself.
    fn places(&self) -> String {
        String::new()
    }

    /// The command sets that the layer can use: a drive below has one of them. None if the layer sends block I/O, or what it is sent.
    fn commands(&self) -> &'static [&'static CommandSet] {
        &[]
    }

    /// The command sets that the layer can use of the device at this place below it; by default those of every device.
    fn commands_of(&self, place: usize) -> &'static [&'static CommandSet] {
        let _ = place;
        self.commands()
    }

    /// Whether what stands at this place below it is a drive, or layers above drives: no disk is below it.
    fn needs_drives(&self, place: usize) -> bool {
        let _ = place;
        false
    }

    /// The key that says how much memory of the host it takes, and how much a run of it takes at most, in bytes; `None` if it takes
    /// little.
    fn memory(&self) -> Option<(&'static str, u64)> {
        None
    }

    /// Puts it above devices: new ones, or those that it stood on before, where it finds what it kept there.
    ///
    /// # Errors
    /// Why it cannot stand on them.
    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError>;
}

/// The layers that hand commands of a set on, as a message lists them.
pub(crate) fn handing_on() -> String {
    let all: Vec<&str> = LAYERS.iter().filter(|kind| kind.hands_on).map(|kind| kind.name).collect();
    all.join(", ")
}

/// A time as descriptions say it.
pub(crate) fn shown_time(time: Nanos) -> String {
    let value = Kind::Time(time).toml(Setting::Number(time.0));
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The device of a layer that stands on one.
pub(crate) fn only(below: Vec<Box<dyn Device>>, layer: &'static str) -> Result<Box<dyn Device>, LayerError> {
    below.into_iter().next().ok_or(LayerError::NoDevice { layer })
}

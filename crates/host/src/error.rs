//! Why a host cannot be described, or a stack cannot be made of it.

use std::path::PathBuf;

use ssdlab_base::TextError;
use ssdlab_device::Status;
use ssdlab_device::description::DescriptionError;

/// Why the description of a host is refused.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its file cannot be read, or is no text.
    #[error("--host {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: TextError,
    },
    /// What it says: file, line, column and key, what was found and what was expected.
    #[error(transparent)]
    Description(#[from] DescriptionError),
}

/// Why a drive that a host's description names cannot be had, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownDrive(pub String);

/// Why a stack cannot be made: a layer of it cannot stand on its devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: the layer {layer}: {source}")]
pub struct StackError {
    /// Where the host's description names it.
    pub place: String,
    /// The layer's name in descriptions.
    pub layer: &'static str,
    /// Why.
    pub source: LayerError,
}

/// Why a layer cannot stand on its devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayerError {
    /// It was given fewer devices than it needs.
    #[error("the layer {layer} needs a device below it")]
    NoDevice {
        /// The layer's name in descriptions.
        layer: &'static str,
    },
    /// The smallest of its devices is too small.
    #[error("the smallest device has {size}, {lacking}")]
    TooSmall {
        /// The size of the device, with its unit.
        size: String,
        /// What it does not suffice for, as the rest of the sentence.
        lacking: String,
    },
    /// Its log has too few places.
    #[error("a log of {log} has {places} places of {unit}, the device's unit; expected at least {least}")]
    SmallLog {
        /// The size of the log, with its unit.
        log: String,
        /// The device's unit.
        unit: String,
        /// Places that it has.
        places: u64,
        /// Places that it needs.
        least: u64,
    },
    /// Its device is larger than its table can say.
    #[error("the device has {size}, expected at most {most}: the layer's table can number no more units")]
    TooLarge {
        /// The size of the device, with its unit.
        size: String,
        /// The largest that it can stand on.
        most: String,
    },
    /// The device has the log of a layer with other settings.
    #[error("the device has a log with {found} places, which may hold data; the description says {expected}")]
    OtherLog {
        /// Places of the log that is there.
        found: u64,
        /// Places that the description gives it.
        expected: u64,
    },
    /// What the layer keeps on a device cannot be read back.
    #[error("device {device}: the metadata of the layer {layer} cannot be read: {status:?}")]
    Unreadable {
        /// The layer's name in descriptions.
        layer: &'static str,
        /// The device, counted from 0.
        device: usize,
        /// How the read ended.
        status: Status,
    },
    /// A cache has fewer addresses than its disk.
    #[error(
        "the disk has {disk}, and the cache addresses {cache}: expected a cache whose addresses go as far as the disk's; set {overrides} \
         on the cache"
    )]
    FewAddresses {
        /// Capacity of the disk.
        disk: String,
        /// Bytes that the cache's addresses cover.
        cache: String,
        /// What gives it as many addresses as the disk.
        overrides: String,
    },
    /// A cache and a disk do not belong together.
    #[error(
        "the cache has the record {cache} and the disk {disk} (pair.starts), expected those of one pair with as many starts: each is used \
         with the other of its pair, or both are new"
    )]
    OtherPair {
        /// What the cache's record says.
        cache: String,
        /// What the disk's record says.
        disk: String,
    },
    /// A cache without a record holds data.
    #[error("the cache has no record of a disk, but {blocks} dirty blocks; expected a new drive")]
    ForeignCache {
        /// Dirty blocks.
        blocks: usize,
    },
    /// None of the devices that are there was in sync.
    #[error("no side that was in sync is there")]
    NoneInSync,
    /// It needs a drive's command set, and stands on a layer that does not hand it on.
    #[error(
        "found {found}, expected a drive below the layer {layer}, with no layer between them but those that hand on its commands \
         ({handing_on})"
    )]
    NoDrive {
        /// The layer's name in descriptions.
        layer: &'static str,
        /// What is below it.
        found: String,
        /// The layers that may stand between them.
        handing_on: String,
    },
    /// The drive below does not know the layer's commands.
    #[error("found a drive of the design {design}, expected one with the command set {sets} below the layer {layer}")]
    UnknownSet {
        /// The layer's name in descriptions.
        layer: &'static str,
        /// The set that it needs, or the sets of which it needs one.
        sets: String,
        /// The design of the drive.
        design: String,
    },
    /// The drive below takes appends to segments, and the layer does not append.
    #[error(
        "the layer {layer} sends block I/O, but the drive below accepts only appends: put a layer 'append' between them"
    )]
    NoBlockIo {
        /// The layer's name in descriptions.
        layer: &'static str,
    },
    /// The drive lets too few zones be written in part at one time.
    #[error(
        "it writes up to {needed} zones at one time, and the drive lets {found} be active: expected ftl.max_active_zones = {needed} \
         or more, or 0 (no limit)"
    )]
    FewActive {
        /// The drive's limit.
        found: u32,
        /// Zones that the layer may have active.
        needed: u32,
    },
    /// Segments hold data, and nothing on the drive says what.
    #[error(
        "{segments} segments of the drive hold data that no layer {layer} wrote; trim them first, or use a new drive"
    )]
    Foreign {
        /// The layer's name in descriptions.
        layer: &'static str,
        /// Segments that hold data.
        segments: usize,
    },
    /// A cache of a disk has no room for a set, or its disk none for a block.
    #[error("{what}: found {found}, expected at least {least}")]
    SmallCache {
        /// What is too small.
        what: &'static str,
        /// Its size, with its unit.
        found: String,
        /// The least size, with its unit, and what for.
        least: String,
    },
    /// The devices hold another cache than the one that is described.
    #[error("{what}: found {found}, expected {expected}")]
    OtherCache {
        /// What differs.
        what: &'static str,
        /// What the devices say.
        found: String,
        /// What the description, or the other device, says.
        expected: String,
    },
    /// The metadata of a cache contradicts itself.
    #[error(
        "the cache's metadata in sector {sector} is damaged: found {what}; blocks of the disk may be in the cache alone"
    )]
    DamagedCache {
        /// The sector of the cache drive.
        sector: u64,
        /// What was found.
        what: String,
    },
    /// A device keeps stamps of contents, and not what stamps of metadata mean.
    #[error("the first device below the layer {layer} keeps no metadata in a run without contents: expected a drive")]
    NoMeaning {
        /// The layer's name in descriptions.
        layer: &'static str,
    },
    /// A device does not complete a command.
    #[error("device {device} never answers")]
    Silent {
        /// The device, counted from 0.
        device: usize,
    },
}

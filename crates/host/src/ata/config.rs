//! The layer's keys in descriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdlab_base::Nanos;
use ssdlab_device::description::{Default, DescriptionError, Key, Kind, Section};

use super::Ata;
use crate::layers::{LayerConfig, LayerKind, only, shown_time};
use crate::{Device, LayerError};

/// What the registry knows of it.
pub(crate) const LAYER: LayerKind = LayerKind {
    name: "ata",
    summary: "tags and error handling of an ATA host: after an error everything in flight is sent again",
    keys: KEYS,
    devices: (1, 1),
    hands_on: true,
    read,
};

/// An hour: the longest time of a key.
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// Its keys in descriptions.
const KEYS: &[Key] = &[
    Key::new(
        "tags",
        Kind::Count { unit: "commands", least: 1, most: 32 },
        Default::number(31),
        "Commands in the device at one time; others wait (Linux 2.6.33, drivers/ata/libata-scsi.c: ATA_MAX_QUEUE less the tag that error \
         handling keeps).",
    ),
    Key::new(
        "retries",
        Kind::Count { unit: "times", least: 0, most: 1000 },
        Default::number(5),
        "How often a command that failed is sent again before the link is reset and the command fails (Linux 2.6.33, \
         drivers/scsi/sd.h: SD_MAX_RETRIES, 5).",
    ),
    Key::new(
        "timeout",
        Kind::Time(LONGEST),
        Default::number(30_000_000_000),
        "A command that has been in the device for this long counts as failed, and the link is reset; above 0 (the same file: \
         SD_TIMEOUT, 30 s).",
    ),
    Key::new(
        "error_time",
        Kind::Time(LONGEST),
        Default::number(0),
        "Time from the end of what was in flight until it is sent again: the error log is read. The default is ours.",
    ),
    Key::new(
        "reset_time",
        Kind::Time(LONGEST),
        Default::number(150_000_000),
        "Time that a reset of the link takes (Linux 2.6.33, drivers/ata/libata-core.c, ata_wait_after_reset: 150 ms, the least).",
    ),
];

/// What the layer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtaConfig {
    /// Commands in the device at one time, at least 1.
    pub tags: u32,
    /// How often a failed command is sent again.
    pub retries: u32,
    /// Time in the device after which a command counts as failed.
    pub timeout: Nanos,
    /// Time until commands are sent again after an error.
    pub error_time: Nanos,
    /// Time of a reset of the link.
    pub reset_time: Nanos,
}

fn read(keys: &Section<'_>) -> Result<Arc<dyn LayerConfig>, DescriptionError> {
    let timeout = match (keys.number("timeout")?, keys.get("timeout")) {
        (0, Some(field)) => return Err(field.expected("a time above 0")),
        (time, _) => Nanos(time),
    };
    Ok(Arc::new(AtaConfig {
        tags: keys.count("tags")?,
        retries: keys.count("retries")?,
        timeout,
        error_time: Nanos(keys.number("error_time")?),
        reset_time: Nanos(keys.number("reset_time")?),
    }))
}

impl AtaConfig {
    /// As descriptions say it, everything filled in.
    pub(super) fn shown(&self) -> BTreeMap<String, String> {
        [
            ("tags", self.tags.to_string()),
            ("retries", self.retries.to_string()),
            ("timeout", shown_time(self.timeout)),
            ("error_time", shown_time(self.error_time)),
            ("reset_time", shown_time(self.reset_time)),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }
}

impl LayerConfig for AtaConfig {
    fn is_transparent(&self) -> bool {
        true
    }

    fn make(&self, below: Vec<Box<dyn Device>>) -> Result<Box<dyn Device>, LayerError> {
        let below = only(below, LAYER.name)?;
        Ok(Box::new(Ata::new(below, *self)))
    }
}

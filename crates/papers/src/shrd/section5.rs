//! Section 5.1: the drive, as the description that ships resolves.

use ssdlab_device::DriveConfig;

use super::common::DRIVE;
use crate::frame::drive_columns::{CAPACITY, CHANNELS, USER_SPACE};
use crate::frame::{Column, Content, Figure, names};

const COLUMNS: [Column<DriveConfig>; 5] = [
    CHANNELS,
    ("banks/channel", "", |drive| Some(drive.flash.geometry.chips_per_channel.into())),
    ("planes/bank", "", |drive| Some(drive.flash.geometry.planes_per_die.into())),
    CAPACITY,
    USER_SPACE,
];

pub(super) static FIGURE: Figure = Figure {
    id: "section5",
    title: "the drive",
    about: "A Samsung SM843 with a part of its parallel units. Its pages, blocks and latencies are not in the paper; \
            what our description assumes stands in it. GB are of 2^30 bytes.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Drives { drives: &[DRIVE], of: "section 5.1", columns: &COLUMNS },
};

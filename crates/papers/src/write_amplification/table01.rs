//! Table I: the tested drives, as the descriptions that ship resolve.

use ssdlab_device::DriveConfig;

use super::common::DRIVES;
use crate::frame::drive_columns::{
    CAPACITY, CHANNELS, CHIPS, DIES, ERASE, PAGE, PAGES, PLANES, READ, USER_SPACE, longest_us, shortest_us,
};
use crate::frame::{Column, Content, Figure, names};

const COLUMNS: [Column<DriveConfig>; 13] = [
    CAPACITY,
    USER_SPACE,
    ("cache", "KB", |drive| Some(drive.buffer.bytes as f64 / 1024.0)),
    CHANNELS,
    CHIPS,
    DIES,
    PLANES,
    PAGE,
    READ,
    ("program from", "us", |drive| shortest_us(&drive.flash.timing.program)),
    ("program to", "us", |drive| longest_us(&drive.flash.timing.program)),
    ERASE,
    PAGES,
];

pub(super) static FIGURE: Figure = Figure {
    id: "table01",
    title: "the tested drives",
    about: "Chips x chip size of the table is the capacity. Program times are the tested ranges, drawn uniformly; the \
            table's datasheet times span columns in the text at hand and are read as the descriptions say. Pages a \
            block, the cache's policy, the FTL and the interface are not in the paper.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Drives { drives: &DRIVES, of: "Table I", columns: &COLUMNS },
};

//! Table 1: the drive at each page size, as the descriptions that ship resolve.

use ssdlab_device::DriveConfig;

use crate::frame::drive_columns::{CAPACITY, CHANNELS, CHIPS, DIES, ERASE, PAGES, PLANES, READ, longest_us};
use crate::frame::{Column, Content, Figure, names};

const COLUMNS: [Column<DriveConfig>; 11] = [
    CAPACITY,
    CHANNELS,
    CHIPS,
    DIES,
    PLANES,
    ("blocks/plane", "", |drive| Some(drive.flash.geometry.blocks_per_plane.into())),
    PAGES,
    READ,
    ("program", "us", |drive| longest_us(&drive.flash.timing.program)),
    ("transfer", "us", |drive| Some(drive.flash.timing.transfer.0 as f64 / 1e3)),
    ERASE,
];

pub(super) static FIGURE: Figure = Figure {
    id: "table01",
    title: "the simulated drive",
    about: "Table 1 gives 256 GB and 4096 blocks a plane for every page size; only one can hold for pages of 8 and 16 \
            KB. The capacity is kept, and a plane has 2048 and 1024 blocks there. Table 1 gives one page transfer \
            time, 51.2 us, for all three: it is used for all three, so a channel moves 80 MB/s at 4 KB and 320 MB/s at \
            16 KB. What the paper leaves open is in the descriptions.",
    differs: "Table 1 gives one number of blocks for all page sizes; 256 GB has it for one of them alone.",
    series: &names(&COLUMNS),
    content: Content::Drives { drives: &["4k", "8k", "16k"], of: "Table 1", columns: &COLUMNS },
};

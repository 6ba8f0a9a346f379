//! Table 1: the board, as its description resolves.

use ssdlab_device::DriveConfig;

use crate::frame::drive_columns::{CAPACITY, CHANNELS, PAGE, PAGES, longest_us};
use crate::frame::run_columns::MB;
use crate::frame::{Column, Content, Figure, names};

const COLUMNS: [Column<DriveConfig>; 13] = [
    CAPACITY,
    CHANNELS,
    ("ways", "", |drive| Some(drive.flash.geometry.chips_per_channel.into())),
    ("banks", "", |drive| Some(f64::from(drive.flash.geometry.dies()))),
    PAGE,
    PAGES,
    ("block", "MB", |drive| {
        let geometry = &drive.flash.geometry;
        Some(f64::from(geometry.page_bytes) * f64::from(geometry.pages_per_block) / MB)
    }),
    ("transfer of a page", "us", |drive| Some(drive.flash.timing.transfer.0 as f64 / 1e3)),
    ("program", "us", |drive| longest_us(&drive.flash.timing.program)),
    ("over-provisioning", "%", |drive| {
        let physical = drive.flash.geometry.bytes() as f64;
        Some(100.0 * (physical - drive.user_bytes as f64) / physical)
    }),
    ("clock", "MHz", |drive| Some(drive.controller.clock as f64 / 1e6)),
    ("DRAM", "MB", |drive| Some(drive.controller.dram as f64 / MB)),
    ("SRAM", "KB", |drive| Some(drive.controller.sram as f64 / 1024.0)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "table01",
    title: "the OpenSSD board",
    about: "The board as its description resolves. A bank is two planes of two chips in lock step, one die of one plane here, and a \
            virtual page and block are its page and block (section 2.1). Over-provisioning is the share of the flash that the host does not \
            have: the firmware gives it 93 %. DRAM is what its ECC, 4 bytes for 128, leaves of 64 MB.",
    differs: "The paper gives the size of the DRAM with its ECC.",
    series: &names(&COLUMNS),
    content: Content::Drives { drives: &["256 GB"], of: "Table 1", columns: &COLUMNS },
};

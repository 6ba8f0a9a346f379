//! Section 5.1: the drive, as the description that ships resolves.

use ssdlab_device::DriveConfig;

use super::common::DRIVE;
use crate::frame::{Drawn, Figure, Outcomes, PaperContext, Point, Run, names};

pub(super) struct Section5;

/// A column, its unit, and how it is read.
type Column = (&'static str, &'static str, fn(&DriveConfig) -> f64);

const COLUMNS: [Column; 5] = [
    ("channels", "", |drive| drive.flash.geometry.channels.into()),
    ("banks/channel", "", |drive| drive.flash.geometry.chips_per_channel.into()),
    ("planes/bank", "", |drive| drive.flash.geometry.planes_per_die.into()),
    ("capacity", "GB", |drive| drive.flash.geometry.bytes() as f64 / f64::from(1 << 30)),
    ("user space", "GB", |drive| drive.user_bytes as f64 / f64::from(1 << 30)),
];

impl Figure for Section5 {
    fn id(&self) -> &'static str {
        "section5"
    }

    fn title(&self) -> &'static str {
        "the drive"
    }

    fn about(&self) -> &'static str {
        "A Samsung SM843 with a part of its parallel units. Its pages, blocks and latencies are not in the paper; what our \
         description assumes stands in it. GB are of 2^30 bytes."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, _scene: &PaperContext) -> Vec<Run> {
        Vec::new()
    }

    fn draw(&self, context: &PaperContext, _outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        let Ok(drive) = context.drive(DRIVE) else { return drawn };
        let points = COLUMNS.into_iter().map(|(series, unit, read)| Point {
            workload: drive.name.clone(),
            page_size: String::new(),
            setting: String::new(),
            series,
            value: read(&drive),
            unit,
            input: "description".to_string(),
            stands_for: "section 5.1".to_string(),
            events: None,
        });
        drawn.points.extend(points);
        drawn
    }
}

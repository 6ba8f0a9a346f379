//! Table I: the tested drives, as the descriptions that ship resolve.

use crate::frame::{Drawn, Figure, Outcomes, PaperContext, Point, Run, names};
use ssdlab_device::DriveConfig;

pub(super) struct Table01;

/// A column, its unit, and how it is read.
type Column = (&'static str, &'static str, fn(&DriveConfig) -> f64);

const GB: f64 = 1_073_741_824.0;

const COLUMNS: [Column; 13] = [
    ("capacity", "GB", |drive| drive.flash.geometry.bytes() as f64 / GB),
    ("user space", "GB", |drive| drive.user_bytes as f64 / GB),
    ("cache", "KB", |drive| drive.buffer.bytes as f64 / 1024.0),
    ("channels", "", |drive| drive.flash.geometry.channels.into()),
    ("chips/channel", "", |drive| drive.flash.geometry.chips_per_channel.into()),
    ("dies/chip", "", |drive| drive.flash.geometry.dies_per_chip.into()),
    ("planes/die", "", |drive| drive.flash.geometry.planes_per_die.into()),
    ("page", "KB", |drive| f64::from(drive.flash.geometry.page_bytes) / 1024.0),
    ("read", "us", |drive| longest(&drive.flash.timing.read) / 1e3),
    ("program from", "us", |drive| shortest(&drive.flash.timing.program) / 1e3),
    ("program to", "us", |drive| longest(&drive.flash.timing.program) / 1e3),
    ("erase", "ms", |drive| drive.flash.timing.erase.max.0 as f64 / 1e6),
    ("pages/block", "", |drive| drive.flash.geometry.pages_per_block.into()),
];

fn longest(latencies: &[ssdlab_flash::Latency]) -> f64 {
    latencies.iter().map(|latency| latency.max.0).max().unwrap_or(0) as f64
}

fn shortest(latencies: &[ssdlab_flash::Latency]) -> f64 {
    latencies.iter().map(|latency| latency.min.0).min().unwrap_or(0) as f64
}

impl Figure for Table01 {
    fn id(&self) -> &'static str {
        "table01"
    }

    fn title(&self) -> &'static str {
        "the tested drives"
    }

    fn about(&self) -> &'static str {
        "Chips x chip size of the table is the capacity. Program times are the tested ranges, drawn uniformly; the \
         table's datasheet times span columns in the text at hand and are read as the descriptions say. Pages a block, \
         the cache's policy, the FTL and the interface are not in the paper."
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
        for name in ["SSD-v", "SSD-I", "SSD-M", "SSD-S"] {
            let Ok(drive) = context.drive(name) else { continue };
            drawn.points.extend(COLUMNS.iter().map(|&(series, unit, read)| Point {
                workload: drive.name.clone(),
                page_size: name.to_string(),
                setting: String::new(),
                series,
                value: read(&drive),
                unit,
                input: "description".to_string(),
                stands_for: "Table I".to_string(),
                events: None,
            }));
        }
        drawn
    }
}

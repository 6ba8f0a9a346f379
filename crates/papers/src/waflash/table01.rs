//! Table 1: the drive at each page size, as the descriptions that ship resolve.

use crate::frame::{Drawn, Figure, Outcomes, PaperContext, Point, Run, names};

pub(super) struct Table01;

/// A column, its unit, and how it is read.
type Column = (&'static str, &'static str, fn(&ssdlab_device::DriveConfig) -> f64);

const COLUMNS: [Column; 11] = [
    ("capacity", "GB", |drive| drive.flash.geometry.bytes() as f64 / f64::from(1 << 30)),
    ("channels", "", |drive| drive.flash.geometry.channels.into()),
    ("chips/channel", "", |drive| drive.flash.geometry.chips_per_channel.into()),
    ("dies/chip", "", |drive| drive.flash.geometry.dies_per_chip.into()),
    ("planes/die", "", |drive| drive.flash.geometry.planes_per_die.into()),
    ("blocks/plane", "", |drive| drive.flash.geometry.blocks_per_plane.into()),
    ("pages/block", "", |drive| drive.flash.geometry.pages_per_block.into()),
    ("read", "us", |drive| longest(&drive.flash.timing.read) / 1e3),
    ("program", "us", |drive| longest(&drive.flash.timing.program) / 1e3),
    ("transfer", "us", |drive| drive.flash.timing.transfer.0 as f64 / 1e3),
    ("erase", "ms", |drive| drive.flash.timing.erase.max.0 as f64 / 1e6),
];

fn longest(latencies: &[ssdlab_flash::Latency]) -> f64 {
    latencies.iter().map(|latency| latency.max.0).max().unwrap_or(0) as f64
}

impl Figure for Table01 {
    fn id(&self) -> &'static str {
        "table01"
    }

    fn title(&self) -> &'static str {
        "the simulated drive"
    }

    fn about(&self) -> &'static str {
        "Table 1 gives 256 GB and 4096 blocks a plane for every page size; only one can hold for pages of 8 and 16 KB. The \
         capacity is kept, and a plane has 2048 and 1024 blocks there. Table 1 gives one page transfer time, 51.2 us, for \
         all three: it is used for all three, so a channel moves 80 MB/s at 4 KB and 320 MB/s at 16 KB. What the paper \
         leaves open is in the descriptions."
    }

    fn differs(&self) -> &'static str {
        "Table 1 gives one number of blocks for all page sizes; 256 GB has it for one of them alone."
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
        for page in ["4k", "8k", "16k"] {
            let Ok(drive) = context.drive(page) else { continue };
            for (series, unit, read) in COLUMNS {
                drawn.points.push(Point {
                    workload: context.experiment.drives.get(page).cloned().unwrap_or_default(),
                    page_size: page.to_string(),
                    setting: String::new(),
                    series,
                    value: read(&drive),
                    unit,
                    input: "description".to_string(),
                    stands_for: "Table 1".to_string(),
                    events: None,
                });
            }
        }
        drawn
    }
}

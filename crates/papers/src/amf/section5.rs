//! Section 5.3: the prototype, as the descriptions that ship have it, and its raw performance, measured.

use ssdlab_device::DriveConfig;

use super::common::{drive_of, fact};
use crate::frame::{Drawn, Figure, Measured, Outcomes, PaperContext, Point, Preparation, Run, names};

pub(super) struct Section5;

/// A column, its unit, and how it is read: of a description, and of a run.
type Fact = (&'static str, &'static str, fn(&DriveConfig) -> f64);
type Rate = (&'static str, &'static str, fn(&Measured) -> Option<f64>);

const FACTS: [Fact; 5] = [
    ("channels", "", |drive| drive.flash.geometry.channels.into()),
    ("ways", "", |drive| drive.flash.geometry.chips_per_channel.into()),
    ("pages a block", "", |drive| drive.flash.geometry.pages_per_block.into()),
    ("page", "KB", |drive| f64::from(drive.flash.geometry.page_bytes) / 1024.0),
    ("flash", "GB", |drive| drive.flash.geometry.bytes() as f64 / f64::from(1 << 30)),
];

const RATES: [Rate; 2] = [
    ("rate", "K IOPS", |run| run.number("throughput.iops").map(|rate| rate / 1e3)),
    ("throughput", "MB/s", |run| {
        Some((run.number("throughput.read_bytes_per_s")? + run.number("throughput.write_bytes_per_s")?) / 1_048_576.0)
    }),
];

/// What is measured: the experiment's drives, and its inputs with the age of the drive.
const DRIVES: [&str; 2] = ["PFTL", "AFTL"];
const INPUTS: [(&str, Preparation); 2] = [("raw reads", Preparation::Fill), ("raw writes", Preparation::None)];

fn run(context: &PaperContext, drive: &str, (input, preparation): (&str, Preparation)) -> Option<Run> {
    let input = context.input(input)?;
    Some(context.run(&drive_of(drive, "16 GB"), drive, input, "").prepared(preparation))
}

impl Figure for Section5 {
    fn id(&self) -> &'static str {
        "section5-3"
    }

    fn title(&self) -> &'static str {
        "the prototype"
    }

    fn about(&self) -> &'static str {
        "The drive that the paper built, from the description amf-512g, and the raw rates of 4 KB reads and writes on 16 GB of it. The times of a \
         program and of a page on its channel are derived from the paper's rates. So the rates show only whether the drive keeps its chips and \
         channels busy. AFTL is below the layer append. MB are of 2^20 bytes."
    }

    fn differs(&self) -> &'static str {
        "A die takes the next page's data after its program here: 32 dies in 478 + 33.3 us are 62.6 K a second. Reads differ by \
         the beginning and the end of the run."
    }

    fn series(&self) -> &'static [&'static str] {
        const FACT_NAMES: [&str; 5] = names(&FACTS);
        const RATE_NAMES: [&str; 2] = names(&RATES);
        &[FACT_NAMES[0], FACT_NAMES[1], FACT_NAMES[2], FACT_NAMES[3], FACT_NAMES[4], RATE_NAMES[0], RATE_NAMES[1]]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let pairs = DRIVES.into_iter().flat_map(|drive| INPUTS.into_iter().map(move |input| (drive, input)));
        pairs.filter_map(|(drive, input)| run(context, drive, input)).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        if let Ok(drive) = context.drive("PFTL") {
            let points = FACTS
                .into_iter()
                .map(|(series, unit, read)| fact((&drive.name, "", ""), series, (read(&drive), unit), "description"));
            drawn.points.extend(points);
        }
        for drive in DRIVES {
            for (name, preparation) in INPUTS {
                let (Some(input), Some(run)) = (context.input(name), run(context, drive, (name, preparation))) else {
                    continue;
                };
                let Some(measured) = outcomes.get(&run) else { continue };
                for (series, unit, read) in RATES {
                    let Some(value) = read(measured) else { continue };
                    let row = (name, "", drive);
                    let of_input = fact(row, series, (value, unit), &input.shown);
                    drawn.points.push(Point { stands_for: input.stands_for.clone(), ..of_input });
                }
            }
        }
        for (series, unit, _) in RATES {
            drawn.bars(format!("raw {series}"), ["", unit], |point| {
                (point.series == series).then(|| (point.setting.clone(), point.workload.clone()))
            });
        }
        drawn
    }
}

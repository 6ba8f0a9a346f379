//! Section 5.3: the prototype, as the descriptions that ship have it, and its raw performance, measured.

use ssdlab_device::DriveConfig;

use super::common::{PAPER, drive_of};
use crate::frame::drive_columns::{CAPACITY, CHANNELS, PAGE, PAGES};
use crate::frame::run_columns::THROUGHPUT;
use crate::frame::{
    Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Preparation, Reading, Row, own_runs,
};

const FACTS: [Column<DriveConfig>; 5] = [
    CHANNELS,
    ("ways", "", |drive| Some(drive.flash.geometry.chips_per_channel.into())),
    ("pages a block", PAGES.1, PAGES.2),
    PAGE,
    ("flash", CAPACITY.1, CAPACITY.2),
];

const RATES: [Column<Reading>; 2] =
    [("rate", "K IOPS", |run| run.number("throughput.iops").map(|rate| rate / 1e3)), THROUGHPUT];

/// What is measured: the experiment's drives, and its inputs with the age of the drive.
const DRIVES: [&str; 2] = ["PFTL", "AFTL"];
const INPUTS: [(&str, Preparation); 2] = [("raw reads", Preparation::Fill), ("raw writes", Preparation::None)];

pub(super) static FIGURE: Figure = Figure {
    id: "section5-3",
    title: "the prototype",
    about: "The drive that the paper built, from the description amf-512g, and the raw rates of 4 KB reads and writes \
            on 16 GB of it. The times of a program and of a page on its channel are derived from the paper's rates. So \
            the rates show only whether the drive keeps its chips and channels busy. AFTL is below the layer append. \
            MB are of 2^20 bytes.",
    differs: "A die takes the next page's data after its program here: 32 dies in 478 + 33.3 us are 62.6 K a second. \
              Reads differ by the beginning and the end of the run.",
    series: &[FACTS[0].0, FACTS[1].0, FACTS[2].0, FACTS[3].0, FACTS[4].0, RATES[0].0, RATES[1].0],
    content: Content::Own { runs: |context| own_runs(rows(context)), draw },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let row = |(drive, (name, preparation)): (&str, (&str, Preparation))| {
        let input = context.input(name)?;
        let run = context.run(&drive_of(drive, "16 GB"), drive, input, "").prepared(preparation);
        Some(Label::of(input, "", drive).row(&run, &RATES))
    };
    let pairs = DRIVES.into_iter().flat_map(|drive| INPUTS.into_iter().map(move |input| (drive, input)));
    pairs.filter_map(row).collect()
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    if let Ok(drive) = context.drive("PFTL") {
        drawn.columns(&Label::described(&drive.name, "", PAPER), &drive, &FACTS);
    }
    drawn.rows(outcomes, &rows(context));
    for (series, unit, _) in RATES {
        drawn.bars(format!("raw {series}"), ["", unit], |point| {
            (point.series == series).then(|| (point.setting.clone(), point.workload.clone()))
        });
    }
    drawn
}

//! What Figures 5 and 6 owe to the die that is watched, and to chance: the same recorder on every die, with other seeds.

use super::common::{self, level, percent};
use crate::frame::{Column, Content, Figure, Label, Measured, PaperContext, Reading, Row, names};

/// A bar of Figure 5 and one of Figure 6.
const INPUTS: [&str; 2] = ["4KiB-SQ-100%-W-Y", "4KiB-RD-100%-W-Y"];

/// SSD-v has so many, one on each channel.
const DIES: u32 = 4;

const SEEDS: u64 = 3;

/// As in Figures 5 and 6.
const VOLUME: u64 = 2 << 30;

/// The watched die's share of the drive, whatever level it is lost at.
fn die(run: &Measured) -> Option<f64> {
    let factor = |level: &str| run.number(&format!("ready_busy.levels.{level}"));
    percent(Some(factor("die")? * factor("chip")? * factor("channel")? - 1.0))
}

const COLUMNS: [Column<Reading>; 5] = [
    ("PEN", "%", |run| percent(run.number("ready_busy.recorders.0.percentage_error"))),
    ("PEN, 100 ns", "%", |run| percent(run.number("ready_busy.recorders.1.percentage_error"))),
    ("sampling", "%", |run| level(run, "sampling")),
    ("classification", "%", |run| level(run, "classification")),
    ("die", "%", |run| die(run)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "dies",
    title: "what Figures 5 and 6 owe to the watched die and to chance",
    about: "One bar of Figure 5 and one of Figure 6 with the recorder on each of SSD-v's four dies and with three \
            seeds, ageing included. PEN with its sign: what sampling, classification and the die's share of the \
            programs come to together.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for input in INPUTS.iter().filter_map(|input| context.input(input)) {
        // Quick runs have one of each.
        let (seeds, dies) = if context.is_quick() { (1, 1) } else { (SEEDS, DIES) };
        for seed in 1..=seeds {
            for die in 0..dies {
                let run = common::steady(context, "SSD-v", input, VOLUME).recorded(die).seeded(seed);
                rows.push(Label::of(input, "SSD-v", format!("die {die}, seed {seed}")).row(&run, &COLUMNS));
            }
        }
    }
    rows
}

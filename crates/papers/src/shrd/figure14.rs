//! Figure 14: SHRD's rate by the threshold of requests that go to the log.

use super::common::{DRIVE, MAP_PAGES_A_REMAP, MISSES, WRITE_AMPLIFICATION, WRITE_RATE};
use crate::frame::{
    Column, Content, Drawn, Figure, Input, Label, Outcomes, PaperContext, Reading, Row, Run, Scale, leading_number,
    names,
};

/// Thresholds, and the description of the driver with each.
const THRESHOLDS: [(&str, &str); 4] = [
    ("4 KB", "threshold-4k.toml"),
    ("32 KB", "threshold-32k.toml"),
    ("128 KB", "shrd.toml"),
    ("512 KB", "threshold-512k.toml"),
];

const COLUMNS: [Column<Reading>; 4] = [WRITE_RATE, MISSES, MAP_PAGES_A_REMAP, WRITE_AMPLIFICATION];

pub(super) static FIGURE: Figure = Figure {
    id: "figure14",
    title: "SHRD's rate, by the threshold of requests that go to the log",
    about: "A cache of 1 MB. The paper: the rate rises with the threshold, and falls when it is too large.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    // fio writes 4 KB only: recordings with larger requests, too.
    let inputs = ["fio", "filebench", "recording"].into_iter().flat_map(|group| context.inputs(group));
    let row = |input: &Input, (name, host): (&str, &str)| {
        let replay = if input.group == "fio" { "" } else { "closed:32" };
        let run = Run { host: Some(host.to_string()), ..context.run(DRIVE, "SHRD", input, replay) };
        Label::of(input, "", name).row(&run, &COLUMNS)
    };
    inputs.flat_map(|input| THRESHOLDS.map(|threshold| row(input, threshold))).collect()
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    drawn.lines("write IOPS", Scale::Log, ["threshold, KB", "write IOPS, thousands"], |point| {
        let threshold = leading_number(&point.setting).filter(|_| point.series == "write IOPS")?;
        Some((point.workload.clone(), threshold))
    });
}

//! Figure 12: execution times of what stands for Hadoop.

use super::systems::{HADOOP, SYSTEMS, bars, rate, rows};
use crate::frame::{Column, Content, Drawn, Figure, Measured, Outcomes, PaperContext, Reading, names};

const TIME: &str = "execution time";

/// Megabytes that are read or written in what counts as one execution.
const MEGABYTES: f64 = 10e3;

const COLUMNS: [Column<Reading>; 3] = [
    (TIME, "s", |run| execution_time(run)),
    ("by EXT4+PFTL", "x", |run| run.ratio(execution_time)),
    ("rate", "MB/s", |run| rate(run)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure12",
    title: "execution times of Hadoop's workloads",
    about: "Virtual time in which the workloads that stand for Hadoop read and write 10 GB: streams of files of 128 MB with check-sum files of 1 MB, written \
            in order, read whole, and deleted. Each runs for a minute, whatever it does in it, so its rate is what says how long an execution takes. \
            Sizes are ours; the paper's bars have no numbers.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows: |context| rows(context, &HADOOP, &SYSTEMS, &COLUMNS, true), panels },
};

/// Seconds for a fixed amount of reads and writes.
pub(super) fn execution_time(run: &Measured) -> Option<f64> {
    Some(MEGABYTES / rate(run)?)
}

fn panels(_: &PaperContext, _: &Outcomes, drawn: &mut Drawn) {
    bars(drawn, "execution time", TIME, "s");
}

//! Figure 12: execution times of what stands for Hadoop.

use super::systems::{HADOOP, SYSTEMS, bars, rows};
use crate::frame::{Column, Content, Drawn, Figure, Outcomes, PaperContext, Reading, names};

const TIME: &str = "execution time";

const COLUMNS: [Column<Reading>; 2] =
    [(TIME, "s", |run| run.number("seconds")), ("by EXT4+PFTL", "x", |run| run.relative("seconds"))];

pub(super) static FIGURE: Figure = Figure {
    id: "figure12",
    title: "execution times of Hadoop's workloads",
    about: "Virtual time of the workloads that stand for Hadoop: streams of files of 128 MB with check-sum files of 1 MB, written in order, read whole, and \
            deleted. Their sizes are ours; the paper's bars have no numbers.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows: |context| rows(context, &HADOOP, &SYSTEMS, &COLUMNS, true), panels },
};

fn panels(_: &PaperContext, _: &Outcomes, drawn: &mut Drawn) {
    bars(drawn, "execution time", TIME, "s");
}

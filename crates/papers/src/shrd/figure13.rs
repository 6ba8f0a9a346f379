//! Figure 13: SHRD's rate by the size of the log.

use super::common::{DRIVE, MAP_PAGES_A_REMAP, MISSES, WRITE_AMPLIFICATION, WRITE_RATE, sized};
use crate::frame::{
    Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Reading, Row, Scale, leading_number, names,
};

/// Sizes of the random-write log buffer, MB; the text says 1 to 256.
const SIZES: [u64; 5] = [1, 4, 16, 64, 256];

const COLUMNS: [Column<Reading>; 4] = [WRITE_RATE, MISSES, MAP_PAGES_A_REMAP, WRITE_AMPLIFICATION];

pub(super) static FIGURE: Figure = Figure {
    id: "figure13",
    title: "SHRD's rate, by the size of the random-write log buffer",
    about: "fio's random writes. The paper: the rate rises with the log, and saturates.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let row = |input, size| {
        let run = context.run(DRIVE, "SHRD", input, "").with(format!("ftl.rwlb={}", sized(context, size)));
        Label::of(input, "", format!("{size} MB")).row(&run, &COLUMNS)
    };
    context.inputs("fio").flat_map(|input| SIZES.map(|size| row(input, size))).collect()
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for (series, y) in [(WRITE_RATE.0, "write IOPS, thousands"), (MISSES.0, MISSES.0)] {
        drawn.lines(series, Scale::Log, ["random-write log buffer, MB", y], |point| {
            let size = leading_number(&point.setting).filter(|_| point.series == series)?;
            Some((point.workload.clone(), size))
        });
    }
}

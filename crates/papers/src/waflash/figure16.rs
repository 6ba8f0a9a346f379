//! Figure 16: SLC and TLC chips.

use super::common::{PAGE, SETTINGS, mean_latency, partial_page_writes, sent_papers};
use crate::frame::{Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Reading, Row, names};

/// Section 5.4: SLC is Table 1's; TLC reads in 75 us, programs in 1200 us, erases in 4500 us.
const CELLS: [(&str, &[&str]); 2] =
    [("SLC", &[]), ("TLC", &["flash.timing.read=75us", "flash.timing.program=1200us", "flash.timing.erase=4500us"])];

const COLUMNS: [Column<Reading>; 1] = [("gain of WAFLASH", "%", |run| run.less(mean_latency))];

pub(super) static FIGURE: Figure = Figure {
    id: "figure16",
    title: "reduction of the mean latency on SLC and TLC, pages of 8 KB",
    about: "WAFLASH against the baseline on the same chips. The paper's 32.6 and 38.5 % are of a workload that it does \
            not name, so ours beside them is the best one. The page size is our choice.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for (input, replay, how) in sent_papers(context) {
        for (cell, sets) in CELLS {
            let run = |variant| context.run(PAGE, variant, input, &replay).with_all(sets);
            let [base, ours] = ["Baseline", "WAFLASH"].map(run);
            let label = Label::of(input, PAGE, format!("{cell}, {how}"));
            rows.push(label.row(&ours, &COLUMNS).against(&base).judged_by(&base, partial_page_writes));
        }
    }
    rows
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for how in SETTINGS {
        drawn.bars(format!("gain of WAFLASH, {how}"), ["", "mean latency reduced by, %"], |point| {
            let (cell, setting) = point.setting.split_once(", ")?;
            (setting == how).then(|| (cell.to_string(), point.workload.clone()))
        });
    }
}

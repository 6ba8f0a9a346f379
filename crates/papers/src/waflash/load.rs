//! Beyond the paper: the gain by how much of the channels' time a trace asks for.

use super::common::{PAGE, loaded, mean_latency};
use crate::frame::{
    Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Reading, Row, Scale, leading_number,
};

/// Per cent of the channels' time; the last is `half loaded` of the other figures.
const LOADS: [u32; 6] = [2, 5, 10, 20, 35, 50];

/// Each variant with its column.
const VARIANTS: [(&str, &[Column<Reading>]); 3] = [
    ("PC-LRU", &[("PC-LRU", "%", |run| run.less(mean_latency))]),
    ("MV-FTL", &[("MV-FTL", "%", |run| run.less(mean_latency))]),
    ("WAFLASH", &[("WAFLASH", "%", |run| run.less(mean_latency))]),
];

pub(super) static FIGURE: Figure = Figure {
    id: "load",
    title: "reduction of the mean latency by load, pages of 8 KB",
    about: "Not in the paper, which replays at one rate that it does not give in terms of the drive. All times of a \
            trace are shrunk alike until the pages that it asks for, one transfer each, take so much of the channels' \
            time.",
    differs: "",
    series: &["PC-LRU", "MV-FTL", "WAFLASH"],
    content: Content::Runs { rows, panels },
};

/// Models at each load that is above their own.
fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for input in context.inputs("paper") {
        for load in LOADS {
            let Some(factor) = loaded(context, input, f64::from(load) / 100.0) else { continue };
            let run = |variant| context.run(PAGE, variant, input, &format!("timed*{factor:.6}"));
            let label = Label::of(input, PAGE, format!("{load} %"));
            rows.extend(VARIANTS.map(|(variant, column)| label.row(&run(variant), column).against(&run("Baseline"))));
        }
    }
    rows
}

fn panels(context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for input in context.inputs("paper") {
        let axes = ["load, % of the channels' time", "mean latency reduced by, %"];
        drawn.lines(input.name.clone(), Scale::Linear, axes, |point| {
            let load = leading_number(&point.setting).filter(|_| point.workload == input.name)?;
            Some((point.series.to_string(), load))
        });
    }
}

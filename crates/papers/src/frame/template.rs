//! Figure 5: the mean latency of writes, by the policy of the write buffer.
//!
//! A template to copy. Say here which figure or table it is, and of which section.

use crate::frame::{Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Reading, Row, names};

/// What is compared, by the names of the experiment's variants.
const VARIANTS: [&str; 3] = ["none", "fifo", "lru"];

/// Columns with their units, and where a result has them (docs/results.md).
const COLUMNS: [Column<Reading>; 2] = [
    ("mean latency", "us", |run| run.number("latency_ns.write.mean").map(|ns| ns / 1e3)),
    ("less than without a buffer", "%", |run| run.less(|run| run.number("latency_ns.write.mean"))),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure05",
    title: "mean latency of writes, by buffer",
    about: "How its values are to be read, and what the paper's text leaves open.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

/// A row for each input and variant, compared with the run without a buffer.
fn rows(context: &PaperContext) -> Vec<Row> {
    let row = |input, variant| {
        let [none, run] = ["none", variant].map(|variant| context.run("toy", variant, input, ""));
        Label::of(input, "", variant).row(&run, &COLUMNS).against(&none)
    };
    context.inputs("paper").flat_map(|input| VARIANTS.map(|variant| row(input, variant))).collect()
}

/// Bars of the first column: one colour for each variant, side by side for each input.
fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    drawn.bars("mean latency of writes", ["", "us"], |point| {
        (point.series == COLUMNS[0].0).then(|| (point.setting.clone(), point.workload.clone()))
    });
}

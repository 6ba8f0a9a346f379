//! Figure 9: the distribution of latencies at 8 KB.

use super::common::{PAGE, SETTINGS, mean_latency, p95_latency, partial_page_writes, sent};
use crate::frame::{Column, Content, Curve, Drawn, Figure, Label, Outcomes, PaperContext, Reading, Row, Scale, names};

const VARIANTS: [&str; 3] = ["Baseline", "PC-LRU", "WAFLASH"];

const COLUMNS: [Column<Reading>; 3] = [
    ("mean gain", "%", |run| run.less(mean_latency)),
    ("p95 gain", "%", |run| run.less(p95_latency)),
    ("p95 gain over mean gain", "%", |run| Some(run.less(p95_latency)? - run.less(mean_latency)?)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure09",
    title: "latencies of all requests, pages of 8 KB",
    about: "From the runs of Figure 8. The first columns are by how much less WAFLASH's mean and 95th percentile are \
            than the baseline's; the third is their difference in per cent points, which is what the text gives.",
    differs: "At the true times nobody waits, and the tail is made of waiting; in MSNFS's bursts all requests wait \
              alike.",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for (input, replay, setting) in sent(context) {
        let [base, pc_lru, ours] = VARIANTS.map(|variant| context.run(PAGE, variant, input, &replay));
        let label = Label::of(input, PAGE, setting);
        // Of PC-LRU there is a curve alone.
        rows.extend([label.row(&base, &[]), label.row(&pc_lru, &[])]);
        rows.push(label.row(&ours, &COLUMNS).against(&base).judged_by(&base, partial_page_writes));
    }
    rows
}

fn panels(context: &PaperContext, outcomes: &Outcomes, drawn: &mut Drawn) {
    for (input, replay, setting) in sent(context) {
        let curves = VARIANTS.into_iter().filter_map(|variant| {
            let measured = outcomes.get(&context.run(PAGE, variant, input, &replay))?;
            Some(Curve { name: variant.to_string(), points: measured.distribution("all")? })
        });
        let axes = ["latency (us)", "requests (%)"];
        drawn.chart(format!("{}, {setting}", input.name), Scale::Log, axes, &input.shown, curves);
    }
    for setting in SETTINGS {
        drawn.bars_of(format!("gain of WAFLASH, {setting}"), "latency reduced by, %", |point| point.setting == setting);
    }
}

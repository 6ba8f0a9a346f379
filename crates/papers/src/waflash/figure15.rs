//! Figure 15: buffers of 16 to 256 MB.

use super::common::{PAGE, SETTINGS, buffer, mean_latency, mean_us, partial_page_writes, sent_papers};
use crate::frame::{
    Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Point, Reading, Row, Scale, leading_number, names,
};

/// MB.
const SIZES: [u64; 5] = [16, 32, 64, 128, 256];

const COLUMNS: [Column<Reading>; 3] = [
    ("Baseline", "us", |run| mean_us(run)),
    ("PC-LRU", "us", |run| mean_us(run)),
    ("gain of PC-LRU", "%", |run| run.less(mean_latency)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure15",
    title: "mean latency by buffer size, pages of 8 KB",
    about: "Baseline and PC-LRU. The page size is our choice. A buffer that is larger than all that a run writes never \
            destages: both are the same there.",
    differs: "A small buffer is soon full of partial pages, and full ones leave that would have been written again.",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for (input, replay, how) in sent_papers(context) {
        for size in SIZES {
            let run = |variant| context.run(PAGE, variant, input, &replay).with(buffer(context, size));
            let [base, ours] = ["Baseline", "PC-LRU"].map(run);
            let label = Label::of(input, PAGE, format!("{how}, {size}MB"));
            rows.extend([label.row(&base, &COLUMNS[..1]), label.row(&ours, &COLUMNS[1..2])]);
            rows.push(label.row(&ours, &COLUMNS[2..]).against(&base).judged_by(&base, partial_page_writes));
        }
    }
    rows
}

fn panels(context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for how in SETTINGS {
        let size = |point: &Point, unit: &str| {
            let (setting, size) = point.setting.split_once(", ")?;
            leading_number(size).filter(|_| setting == how && point.unit == unit)
        };
        for input in context.inputs("paper") {
            let axes = ["buffer, MB", "mean latency, us"];
            drawn.lines(format!("{}, {how}", input.name), Scale::Log, axes, |point| {
                let size = size(point, "us").filter(|_| point.workload == input.name)?;
                Some((point.series.to_string(), size))
            });
        }
        let axes = ["buffer, MB", "mean latency reduced by, %"];
        drawn.lines(format!("gain of PC-LRU, {how}"), Scale::Log, axes, |point| {
            Some((point.workload.clone(), size(point, "%")?))
        });
    }
}

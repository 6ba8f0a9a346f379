//! Figure 10: the share of partial pages in the buffer over time.

use super::common::{PAGE, SETTINGS, partial_page_writes, sent};
use crate::frame::{
    Column, Content, Curve, Drawn, Figure, Label, Measured, Outcomes, PaperContext, Reading, Row, Scale, names,
};

const VARIANTS: [&str; 2] = ["Baseline", "PC-LRU"];

const COLUMNS: [Column<Reading>; 3] = [
    ("Baseline", "%", |run| share(run)?.mean),
    ("PC-LRU", "%", |run| share(run)?.mean),
    ("PC-LRU over Baseline", "%", |run| Some(share(run)?.mean? - share(run.base()?)?.mean?)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure10",
    title: "share of partial pages in the buffer over time, pages of 8 KB",
    about: "Pages in the buffer that hold some and not all of their sectors, per cent of the pages in it. The values \
            are means over the run's time from the moment on at which the buffer first was as full as it became; the \
            difference is in per cent points.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for (input, replay, setting) in sent(context) {
        let [base, ours] = VARIANTS.map(|variant| context.run(PAGE, variant, input, &replay));
        let label = Label::of(input, PAGE, setting);
        rows.extend([label.row(&base, &COLUMNS[..1]), label.row(&ours, &COLUMNS[1..2])]);
        rows.push(label.row(&ours, &COLUMNS[2..]).against(&base).judged_by(&base, partial_page_writes));
    }
    rows
}

fn panels(context: &PaperContext, outcomes: &Outcomes, drawn: &mut Drawn) {
    for (input, replay, setting) in sent(context) {
        let curves = VARIANTS.into_iter().filter_map(|variant| {
            let share = share(outcomes.get(&context.run(PAGE, variant, input, &replay))?)?;
            Some(Curve { name: variant.to_string(), points: share.points })
        });
        let axes = ["virtual time (s)", "partial pages (%)"];
        drawn.chart(format!("{}, {setting}", input.name), Scale::Linear, axes, &input.shown, curves);
    }
    for setting in SETTINGS {
        drawn.bars_of(format!("mean once the buffer is full, {setting}"), "partial pages, %", |point| {
            point.setting == setting && VARIANTS.contains(&point.series)
        });
    }
}

/// A run's share of partial pages over time, and its mean once the buffer is full.
struct Share {
    points: Vec<(f64, f64)>,
    mean: Option<f64>,
}

fn share(measured: &Measured) -> Option<Share> {
    let time = measured.column("timeline.time_ns")?;
    let pages = measured.column("timeline.buffer_pages")?;
    let partial = measured.column("timeline.buffer_partial_pages")?;
    let most = pages.iter().flatten().copied().fold(0.0, f64::max);
    let mut points = Vec::new();
    let (mut full, mut sum, mut count) = (false, 0.0, 0);
    for ((time, pages), partial) in time.into_iter().zip(pages).zip(partial) {
        let (time, pages, partial) = (time?, pages?, partial?);
        if pages == 0.0 {
            continue;
        }
        let share = 100.0 * partial / pages;
        points.push((time / 1e9, share));
        // Partial pages take fewer sectors, so a full buffer's number of pages varies.
        full |= pages >= 0.9 * most;
        if full {
            sum += share;
            count += 1;
        }
    }
    Some(Share { points, mean: (count > 0).then(|| sum / f64::from(count)) })
}

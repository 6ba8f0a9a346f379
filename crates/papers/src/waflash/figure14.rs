//! Figure 14: PC-LRU against MCA, the buffer that also knows partial pages (section 5.3).

use super::common::{PAGE, SETTINGS, mean_latency, partial_page_writes, sent};
use crate::frame::{
    Column, Content, Drawn, Figure, Input, Label, Measured, Outcomes, PaperContext, Reading, Row, Run, names,
};

const COLUMNS: [Column<Reading>; 13] = [
    ("gain of PC-LRU", "%", |run| run.less(mean_latency)),
    ("gain of MCA", "%", |run| run.less(mean_latency)),
    ("delayed by PC-LRU", "pages", |run| delayed(run)),
    ("delayed by MCA", "pages", |run| delayed(run)),
    ("delayed by PC-LRU against MCA", "x", |run| run.ratio(delayed)),
    ("delays by PC-LRU", "pages", |run| run.number("buffer.delayed_pages")),
    ("delays by MCA", "pages", |run| run.number("buffer.delayed_pages")),
    ("delays by PC-LRU against MCA", "x", |run| run.relative("buffer.delayed_pages")),
    ("operations, Baseline", "operations", |run| operations(run)),
    ("operations, PC-LRU", "operations", |run| operations(run)),
    ("operations, MCA", "operations", |run| operations(run)),
    ("converted by PC-LRU", "%", |run| converted(run)),
    ("converted by MCA", "%", |run| converted(run)),
];

/// A panel: its title, what stands on y, and the columns with what the legend calls them.
type PanelOf = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PANELS: [PanelOf; 5] = [
    ("(a) mean latency", "reduced by, %", &[(COLUMNS[0].0, "PC-LRU"), (COLUMNS[1].0, "MCA")]),
    ("(b) partial pages delayed", "pages", &[(COLUMNS[2].0, "PC-LRU"), (COLUMNS[3].0, "MCA")]),
    ("(b) delays by PC-LRU relative to MCA", "relative to MCA", &[(COLUMNS[4].0, "pages"), (COLUMNS[7].0, "times")]),
    (
        "(c) operations of a channel",
        "operations",
        &[(COLUMNS[8].0, "Baseline"), (COLUMNS[9].0, "PC-LRU"), (COLUMNS[10].0, "MCA")],
    ),
    ("(d) partial pages made full", "%", &[(COLUMNS[11].0, "PC-LRU"), (COLUMNS[12].0, "MCA")]),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure14",
    title: "PC-LRU against MCA, pages of 8 KB",
    about: "(a) reduction of the mean latency; (b) partial pages that stayed when they would have left, each once \
            until its next write, and how often that happened (the paper does not say which it plots); (c) operations \
            that a channel served, the mean of the four (the paper plots the mean number of sub-requests on the \
            channels for CFS and gives no number); (d) of the partial pages, those that overwrites made full in the \
            buffer before they left. The page size is our choice. MCA is built after its description in sections 5.3 \
            and 7.",
    differs: "At the true times there is little congestion; half loaded, PC-LRU keeps partial pages at the cost of \
              write hits. The paper does not say which count of delays it plots.",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let of_input = |(input, replay, setting): (&Input, String, &str)| {
        let label = Label::of(input, PAGE, setting);
        let [base, ours, mca] = ["Baseline", "PC-LRU", "MCA"].map(|variant| context.run(PAGE, variant, input, &replay));
        let row = |run: &Run, column: usize| label.row(run, &COLUMNS[column..=column]);
        [
            row(&ours, 0).against(&base).judged_by(&base, partial_page_writes),
            row(&mca, 1).against(&base).judged_by(&base, partial_page_writes),
            row(&ours, 2),
            row(&mca, 3),
            // However often a page stayed, it is one page.
            row(&ours, 4).against(&mca).judged_by(&mca, delayed),
            row(&ours, 5),
            row(&mca, 6),
            row(&ours, 7).against(&mca).judged_by(&mca, delayed),
            row(&base, 8),
            row(&ours, 9),
            row(&mca, 10),
            row(&ours, 11),
            row(&mca, 12),
        ]
    };
    sent(context).into_iter().flat_map(of_input).collect()
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for setting in SETTINGS {
        for (title, y, columns) in PANELS {
            drawn.bars(format!("{title}, {setting}"), ["", y], |point| {
                let mut of_setting = columns.iter().filter(|_| point.setting == setting);
                let (_, name) = of_setting.find(|(series, _)| *series == point.series)?;
                Some(((*name).to_string(), point.workload.clone()))
            });
        }
    }
}

/// Partial pages that stayed, each once until its next write.
fn delayed(measured: &Measured) -> Option<f64> {
    measured.number("design.buffer_pages_delayed")
}

/// Reads and programs a channel served.
fn operations(measured: &Measured) -> Option<f64> {
    let channels = measured.column("utilization.channels")?.len() as f64;
    Some(((measured.number("flash.reads.total")? + measured.number("flash.programs.total")?) / channels).round())
}

/// Of the partial pages that came to an end, those that overwrites made full before they left, per cent.
fn converted(measured: &Measured) -> Option<f64> {
    let converted = measured.number("buffer.converted_pages")?;
    let ended = converted + measured.number("buffer.partial_pages")?;
    (ended > 0.0).then_some(100.0 * converted / ended)
}

//! Figure 8: how much less the mean latency is, by page size, as WAFLASH's features are added.

use super::common::{SETTINGS, half_loaded, mean_latency, partial_page_writes, sent, workloads};
use crate::frame::{
    Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Reading, Row, Run, names, number, runs_of,
};

/// The features, by their variants.
const COLUMNS: [Column<Reading>; 3] = [
    ("PC-LRU", "%", |run| run.less(mean_latency)),
    ("MV-FTL", "%", |run| run.less(mean_latency)),
    ("WAFLASH", "%", |run| run.less(mean_latency)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure08",
    title: "reduction of the mean latency against the baseline, by page size and feature",
    about: "Of all reads and writes; more is better. MV-FTL is PC-LRU with several versions but without compaction, \
            WAFLASH is all. The drive holds data wherever the workload goes, and its buffer is empty at first. Most of \
            these traces are too slow to congest a drive of 64 planes, so each is shown at its true times, and sped up \
            until the pages it asks for take half of the channels' time at 8 KB.",
    differs: "At the true times these traces leave a drive of 64 planes idle; half loaded, PC-LRU lets full pages \
              leave for partial ones that would have been written again.",
    series: &names(&COLUMNS),
    content: Content::Own { runs, draw },
};

fn runs(context: &PaperContext) -> Vec<Run> {
    ["8k", "4k", "16k"].into_iter().flat_map(|page| runs_of(&rows(context, page))).collect()
}

fn rows(context: &PaperContext, page: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (input, replay, setting) in sent(context) {
        let run = |variant| context.run(page, variant, input, &replay);
        let (label, base) = (Label::of(input, page, setting), run("Baseline"));
        let row = |index: usize| label.row(&run(COLUMNS[index].0), &COLUMNS[index..=index]).against(&base);
        rows.extend([0, 1, 2].map(|index| row(index).judged_by(&base, partial_page_writes)));
    }
    rows
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    let factors: Vec<String> = workloads(context)
        .filter_map(|input| Some(format!("{} {}", input.name, number(1.0 / half_loaded(context, input)?, ""))))
        .collect();
    if !factors.is_empty() {
        drawn.remark(format!("half loaded is so many times as fast as the true times: {}", factors.join(", ")));
    }
    for page in ["4k", "8k", "16k"] {
        drawn.rows(outcomes, &rows(context, page));
    }
    for setting in SETTINGS {
        for page in ["4k", "8k", "16k"] {
            let title = format!("pages of {} KB, {setting}", page.trim_end_matches('k'));
            drawn.bars_of(title, "mean latency reduced by, %", |point| {
                point.page_size == page && point.setting == setting
            });
        }
    }
    drawn
}

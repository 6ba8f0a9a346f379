//! Figures 11 to 13: pages that the drive counts, for each part of WAFLASH.

use super::common::{PAGE, SETTINGS, additional_reads, flash_writes, partial_page_writes, sent};
use crate::frame::{Column, Content, Drawn, Figure, Label, PaperContext, Reading, Row, names};

/// Partial pages written to flash, which PC-LRU makes fewer.
pub(super) static FIGURE11: Figure = Figure {
    id: "figure11",
    title: "partial pages written to flash, pages of 8 KB",
    about: "Of the runs of Figure 8. A page counts that leaves the buffer with some of its sectors missing. Only the \
            buffer differs.",
    series: &names(&PARTIAL),
    differs: "PC-LRU delays where chips are busy: hardly at the true times, nearly always half loaded. Most of Web's \
              are halves of a page whose other half soon comes.",
    content: Content::Runs {
        rows: |context| rows(context, &PARTIAL, ["Baseline", "PC-LRU"]),
        panels: |_, _, drawn| panels(drawn, PARTIAL[4].0),
    },
};

/// Reads that unaligned writes cause, which several versions make fewer.
pub(super) static FIGURE12: Figure = Figure {
    id: "figure12",
    title: "additional reads of flash, pages of 8 KB",
    about: "Of the runs of Figure 8: reads that a drive of aligned writes would not do. In the baseline the reads of \
            read-modify-writes; with several versions those at merging and overwriting, and the second and further \
            reads that a read of the host needs. The column PC-LRU tells what the buffer does alone.",
    series: &names(&READS),
    differs: "Without compaction only a run of more than half a page can be a version, so other partial pages are read \
              and merged as in the baseline; all of WAFLASH saves 53.8 to 88.8 % on five of six models.",
    content: Content::Runs {
        rows: |context| rows(context, &READS, ["Baseline", "MV-FTL"]),
        panels: |_, _, drawn| panels(drawn, READS[4].0),
    },
};

/// Pages written, which compaction makes fewer.
pub(super) static FIGURE13: Figure = Figure {
    id: "figure13",
    title: "pages written to flash, pages of 8 KB",
    about: "Of the runs of Figure 8: all pages programmed, for whatever cause. The paper compares the FTL with \
            compaction with the one without; the last column compares all of WAFLASH with the baseline.",
    series: &names(&WRITES),
    differs: "At the true times the drive is idle after nearly every request and merges each version, with two reads \
              and a program. MSNFS has few small partial pages, Web none that fit together.",
    content: Content::Runs {
        rows: |context| rows(context, &WRITES, ["MV-FTL", "WAFLASH"]),
        panels: |_, _, drawn| panels(drawn, WRITES[4].0),
    },
};

const VARIANTS: [&str; 4] = ["Baseline", "PC-LRU", "MV-FTL", "WAFLASH"];

type Read = fn(&Reading) -> Option<f64>;

const PARTIAL: [Column<Reading>; 6] =
    columns("fewer with PC-LRU", |run| partial_page_writes(run), |run| run.less(partial_page_writes));
const READS: [Column<Reading>; 6] =
    columns("fewer with MV-FTL", |run| additional_reads(run), |run| run.less(additional_reads));
const WRITES: [Column<Reading>; 6] =
    columns("fewer with compaction", |run| flash_writes(run), |run| run.less(flash_writes));

/// What each variant counts, by how much less it is in what the paper compares, and in all of WAFLASH.
const fn columns(compared: &'static str, count: Read, less: Read) -> [Column<Reading>; 6] {
    [
        (VARIANTS[0], "pages", count),
        (VARIANTS[1], "pages", count),
        (VARIANTS[2], "pages", count),
        (VARIANTS[3], "pages", count),
        (compared, "%", less),
        ("WAFLASH against Baseline", "%", less),
    ]
}

fn rows(context: &PaperContext, columns: &'static [Column<Reading>; 6], [without, with]: [&str; 2]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (input, replay, setting) in sent(context) {
        let run = |variant| context.run(PAGE, variant, input, &replay);
        let label = Label::of(input, PAGE, setting);
        rows.extend([0, 1, 2, 3].map(|index| label.row(&run(VARIANTS[index]), &columns[index..=index])));
        let compared = [
            label.row(&run(with), &columns[4..5]).against(&run(without)),
            label.row(&run("WAFLASH"), &columns[5..]).against(&run("Baseline")),
        ];
        rows.extend(compared.map(|row| row.judged_by(&run("Baseline"), partial_page_writes)));
    }
    rows
}

fn panels(drawn: &mut Drawn, compared: &'static str) {
    for setting in SETTINGS {
        drawn.bars_of(format!("pages, {setting}"), "pages", |point| {
            point.setting == setting && VARIANTS.contains(&point.series)
        });
        drawn.bars_of(format!("{compared}, {setting}"), "reduced by, %", |point| {
            point.setting == setting && point.series == compared
        });
    }
}

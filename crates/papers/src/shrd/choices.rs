//! What our choices do to fio's rate, where the paper is silent.

use super::common::{BUSY_DIES, DRIVE, MISSES, WRITE_AMPLIFICATION, WRITE_RATE};
use crate::frame::{Column, Content, Figure, Input, Label, PaperContext, Reading, Row, names};

const COLUMNS: [Column<Reading>; 4] = [WRITE_RATE, MISSES, BUSY_DIES, WRITE_AMPLIFICATION];

/// A choice: what it is called, the variant, and what it sets.
type Choice = (&'static str, &'static str, &'static [&'static str]);

const BUFFERS: [Choice; 3] =
    [("no buffer", "DFTL", &[]), ("LRU, 16 MB", "DFTL, buffer", &[]), ("FIFO, 1 MB", "DFTL, FIFO", &[])];

const DRIVES: [Choice; 4] = [
    ("map pages of 8 KB", "DFTL", &["ftl.map_page=8k"]),
    ("one map page a page of flash", "DFTL", &["ftl.map_packing=false"]),
    ("cache by entry", "DFTL", &["ftl.map_cache_by=entry"]),
    ("10 us of processing a command", "DFTL", &["interface.processing=10us"]),
];

pub(super) static FIGURE: Figure = Figure {
    id: "choices",
    title: "what our choices do to fio's random writes, with a cache of 1 MB",
    about: "Each row changes one choice from the first row's: no data buffer, map pages of 4 KB, several of them in a \
            page of flash, cached by page, and no processing time.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let of = |input: &Input, (name, variant, set): Choice| {
        Label::of(input, "", name).row(&context.run(DRIVE, variant, input, "").with_all(set), &COLUMNS)
    };
    let depths = context.inputs("fio depth").flat_map(|input| BUFFERS.map(|choice| of(input, choice)));
    let of_fio = |input| BUFFERS.into_iter().chain(DRIVES).map(move |choice| of(input, choice));
    context.inputs("fio").flat_map(of_fio).chain(depths).collect()
}

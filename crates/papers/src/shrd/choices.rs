//! What our choices do to fio's rate, where the paper is silent.

use super::common::{Column, DRIVE, busy_dies, columns, misses_a_write, write_rate};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run, names};

pub(super) struct Choices;

const COLUMNS: [Column; 4] = [
    ("write IOPS", "K", write_rate),
    ("map misses per write", "", misses_a_write),
    ("busy dies", "%", busy_dies),
    ("write amplification", "", |run| run.number("write_amplification.total")),
];

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

fn runs<'s>(context: &'s PaperContext) -> Vec<(&'s Input, &'static str, Run)> {
    let of = |input: &'s Input, (name, variant, set): Choice| {
        let run = set.iter().fold(context.run(DRIVE, variant, input, ""), |run, set| run.with(*set));
        (input, name, run)
    };
    let depths = context.inputs("fio depth").flat_map(|input| BUFFERS.map(|choice| of(input, choice)));
    let fio =
        context.inputs("fio").flat_map(|input| BUFFERS.into_iter().chain(DRIVES).map(move |choice| of(input, choice)));
    fio.chain(depths).collect()
}

impl Figure for Choices {
    fn id(&self) -> &'static str {
        "choices"
    }

    fn title(&self) -> &'static str {
        "what our choices do to fio's random writes, with a cache of 1 MB"
    }

    fn about(&self) -> &'static str {
        "Each row changes one choice from the first row's: no data buffer, map pages of 4 KB, several of them in a page of flash, cached by \
         page, and no processing time."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        runs(context).into_iter().map(|(_, _, run)| run).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, setting, run) in runs(context) {
            columns(&mut drawn, outcomes, (&run, input, setting), &COLUMNS);
        }
        drawn
    }
}

//! Ours beside Figure 7: what silent eviction costs in hits, what FlashCache gains by other settings, and where an SSC pays.

use super::cache_columns::{ALONE, BOARD_IN_USE, OVER_SSD};
use super::common::bars_by_setting;
use crate::frame::{Content, Drawn, Figure, Label, Outcomes, PaperContext, Preparation, Row, joined, names};

/// Settings: what they are called, their variant, and what else is set.
const SETTINGS: [(&str, &str, &[&str]); 9] = [
    ("SSD", SSD, &[]),
    ("SSD with LRU", "SSD, LRU", &[]),
    ("SSD with trim", "SSD, trim", &[]),
    ("SSD, flushes passed on", "SSD, flushes passed", &[]),
    ("SSC", "SSC, write-back", &[]),
    ("SSC, victims with the fewest dirty blocks", "SSC, fewest dirty", &[]),
    ("SSC without silent eviction", "SSC, collection as usual", &[]),
    ("SSC, misses by words", "SSC, misses by words", &[]),
    ("SSC, misses by errors", "SSC, misses by errors", &[]),
];

/// Settings of an SSC that begins empty: a checkpoint takes as long for a map that is not full.
const CHECKPOINTS: [(&str, &[&str]); 3] = [
    ("SSC that begins empty", &[FOR_CHECKPOINTS]),
    ("SSC that begins empty, checkpoints of the whole map", &[FOR_CHECKPOINTS, "ftl.map_checkpoint=full"]),
    ("SSC that begins empty, checkpoints of what changed", &[FOR_CHECKPOINTS, "ftl.map_checkpoint=changed"]),
];

const SSD: &str = "SSD, write-back";

/// Checkpoints take up to four blocks of each plane.
const FOR_CHECKPOINTS: &str = "capacity.over_provisioning=14%";

/// Inputs that are looked at: one where reads and writes mix, one with flushes.
const INPUTS: [&str; 2] = ["fileserver, 8 GB", "varmail, 4 GB"];

/// The columns.
const SERIES: [&str; 13] = joined(names(&ALONE), names(&OVER_SSD));

pub(super) static FIGURE: Figure = Figure {
    id: "caches",
    title: "where a solid-state cache pays",
    about: "Rows of one input differ in one setting; all are write-back, and the first is what the others are compared with. FlashCache replaces by FIFO, \
            tells the drive nothing, and refuses flushes, unless the row says otherwise. Rows of an SSC that begins empty have 14 % over-provisioning, \
            room for checkpoints, and are compared with the first of them. How the set's size, the share of writes and the recordings change the \
            comparison is in Figure 7.",
    differs: "",
    series: &SERIES,
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let is_warm = !context.is_quick();
    let preparation = if is_warm { Preparation::WarmedUp } else { Preparation::None };
    let mut rows = Vec::new();
    for input in INPUTS.into_iter().filter_map(|name| context.input(name)) {
        let run = |variant: &str, set: &[&str]| {
            context.run(BOARD_IN_USE, variant, input, "").with_all(set).prepared(preparation)
        };
        for (name, variant, set) in SETTINGS {
            let label = Label::of(input, "", name);
            rows.push(label.row(&run(variant, set), &ALONE));
            if variant != SSD {
                rows.push(label.row(&run(variant, set), &OVER_SSD).against(&run(SSD, &[])));
            }
        }
        for (name, set) in CHECKPOINTS {
            let run = context.run(BOARD_IN_USE, "SSC, write-back", input, "").with_all(set);
            rows.push(Label::of(input, "", name).row(&run.prepared(Preparation::None), &ALONE));
        }
    }
    rows
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    bars_by_setting(drawn, &[("IOPS", ""), ("read hits", "%"), ("erases", "")]);
}

//! Sweeps beside Table 2 and Figures 3 and 4: boards, parts of the new firmware switched on alone, depths, cycles, volumes.

use super::common::{BOARD, BUSY_BANKS, BUSY_CHANNELS, IOPS, THROUGHPUT, WRITE_AMPLIFICATION};
use crate::frame::{Column, Content, Figure, Input, Label, PaperContext, Preparation, Reading, Row, names};

const COLUMNS: [Column<Reading>; 5] = [IOPS, THROUGHPUT, WRITE_AMPLIFICATION, BUSY_BANKS, BUSY_CHANNELS];

/// Boards, and the blocks of a bank of theirs that make 16 GB: what a map of 4 KB units in their DRAM is for.
const BOARDS: [(&str, (&str, &str)); 3] = [
    ("64 GB", ("16 GB in use", "flash.blocks_per_plane=512")),
    ("128 GB", ("16 GB in use", "flash.blocks_per_plane=256")),
    (BOARD, ("16 GB in use", "flash.blocks_per_plane=128")),
];

/// Parts of the new firmware, each alone, by their variants.
const PARTS: [&str; 4] = ["baseline, direct", "4 KB map, direct", "merge buffer, direct", "new, direct"];

/// The processor's clock: half and twice as fast is twice and half the cycles.
const CYCLES: [(&str, &str); 2] =
    [("cycles halved", "controller.clock=175MHz"), ("cycles doubled", "controller.clock=43.75MHz")];

pub(super) static FIGURE: Figure = Figure {
    id: "sweeps",
    title: "boards, parts of the new firmware, depths, cycles and volumes",
    about: "Each row changes one thing. Cycles are halved and doubled by the clock. Volumes are those of 4 KB writes at random in 8 GB of an empty board: a \
            write of a part reads the page only where the page holds data.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |board: &str, variant: &str, input: &Input, set: Option<(&str, &str)>| {
        let is_read = input.group.ends_with("reads");
        let preparation = if is_read { Preparation::Footprint } else { Preparation::None };
        let run = context.run(board, variant, input, "").prepared(preparation);
        let run = set.map_or(run.clone(), |(_, key)| run.with(key));
        let name = set.map_or(variant.to_string(), |(name, _)| format!("{variant}, {name}"));
        rows.push(Label::of(input, board, name).row(&run, &COLUMNS));
    };
    for (board, in_use) in BOARDS {
        for input in context.inputs("deep writes").chain(context.inputs("deep reads")) {
            row(board, PARTS[0], input, None);
            row(board, PARTS[3], input, Some(in_use));
        }
    }
    for input in context.inputs("deep writes").chain(context.inputs("deep reads")) {
        PARTS.into_iter().for_each(|part| row(BOARD, part, input, None));
        CYCLES.into_iter().for_each(|cycles| row(BOARD, "baseline, direct", input, Some(cycles)));
        CYCLES.into_iter().for_each(|cycles| row(BOARD, "new, direct", input, Some(cycles)));
    }
    for input in context.inputs("volumes") {
        row(BOARD, "baseline, buffered", input, None);
    }
    rows
}

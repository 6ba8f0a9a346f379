//! Table 2: writes to 8 GB of an empty drive, by their size, and what the board loses with each.

use super::common::{
    BOARD, BUSY_BANKS, BUSY_CHANNELS, FILLED_UP, HEAD_WAITS, HELD_UP, IOPS, MISALIGNED, PARTIAL, SECTORS, THROUGHPUT,
    WRITE_AMPLIFICATION, bars_by_setting,
};
use crate::frame::{Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Preparation, Reading, Row, names};

const COLUMNS: [Column<Reading>; 11] = [
    IOPS,
    THROUGHPUT,
    SECTORS,
    MISALIGNED,
    PARTIAL,
    FILLED_UP,
    WRITE_AMPLIFICATION,
    BUSY_BANKS,
    BUSY_CHANNELS,
    HEAD_WAITS,
    HELD_UP,
];

/// Rows: what they are called, their variant, and the groups of inputs.
const ROWS: [(&str, &str, &[&str]); 6] = [
    ("baseline", "baseline, buffered", &["random writes", "sequential writes"]),
    ("baseline, merged to 32 KB", "baseline, merged to 32 KB", &["sequential writes"]),
    ("disk", "disk, buffered", &["random writes", "sequential writes"]),
    ("disk, merged to 32 KB", "disk, merged to 32 KB", &["sequential writes"]),
    ("direct", "baseline, direct", &["random writes", "sequential writes"]),
    ("direct, depth 32", "baseline, direct", &["deep writes"]),
];

pub(super) static FIGURE: Figure = Figure {
    id: "table02",
    title: "writes to 8 GB of an empty drive",
    about: "Each row writes 8 GB once, one write after another, and a flush at the end belongs to its time. IOPS are those of the program, as the \
            paper's bandwidths show. Its sectors a request are those of writes that passed a page cache: of 4 KB written at random with a share d \
            of the blocks dirty, those at write-back are 1/(1-d) blocks long on average, and 20 % of 3 GB give 8.6 sectors. Direct writes are beside \
            them. Each loss has its counter: requests that begin or end inside a page, pages written in part and read to be completed, \
            and idle banks whose operation is behind one for a busy bank. MB are of 2^20 bytes.",
    differs: "The channels of this board carry 254 MB/s, where the paper's board peaks at 90. Requests that passed the page cache come in \
              the order of addresses: the longer they are, the less of the time banks are idle behind a busy one. At random, direct writes of 32 \
              KB with 32 in flight do 3,113 a second for 2,912. With 4 KB the volume decides: 2 GB in place of 8 give 2,546 a second. Our \
              largest request has 1,024 sectors. The paper's requests of 257 and 266 sectors are no whole pages: with a limit of 264 sectors 512 KB \
              do 132 a second for 132, and sequential 4 KB 16,016 for 15,616 (choices). At random our disk does about twice what the paper's does at every \
              size: it chooses among 64 runs of cached data the one that the heads reach first. With its write cache off and one command at a time \
              it does 808, 594 and 100 writes of 4, 32 and 512 KB a second, for 1,497, 419 and 98. In order it writes at the outer edge, 131 MB/s; the \
              paper's 95 are those of a place further in.",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let row = |name, variant, input| {
        let run = context.run(BOARD, variant, input, "").prepared(Preparation::None);
        Label::of(input, "", name).row(&run, &COLUMNS)
    };
    ROWS.into_iter()
        .flat_map(|(name, variant, groups)| {
            groups.iter().flat_map(move |group| context.inputs(group).map(move |input| row(name, variant, input)))
        })
        .collect()
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    bars_by_setting(drawn, &[IOPS, THROUGHPUT, SECTORS].map(|(series, unit, _)| (series, unit)));
}

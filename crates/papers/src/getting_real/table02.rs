//! Table 2: writes to 8 GB of an empty drive, by their size, and what the board loses with each.

use super::common::{
    BOARD, BUSY_BANKS, BUSY_CHANNELS, FILLED_UP, IOPS, PARTIAL, SECTORS, THROUGHPUT, WRITE_AMPLIFICATION,
};
use crate::frame::{Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Preparation, Reading, Row, names};

const COLUMNS: [Column<Reading>; 8] =
    [IOPS, THROUGHPUT, SECTORS, PARTIAL, FILLED_UP, WRITE_AMPLIFICATION, BUSY_BANKS, BUSY_CHANNELS];

/// Rows: what they are called, their variant, and the groups of inputs.
const ROWS: [(&str, &str, &[&str]); 3] = [
    ("baseline", "baseline, buffered", &["random writes", "sequential writes"]),
    ("baseline, merged to 32 KB", "baseline, merged to 32 KB", &["sequential writes"]),
    ("direct", "baseline, direct", &["random writes", "sequential writes"]),
];

pub(super) static FIGURE: Figure = Figure {
    id: "table02",
    title: "writes to 8 GB of an empty drive",
    about: "Each row writes 8 GB once, one write after another, and a flush at the end belongs to its time. IOPS are those of the program, as the \
            paper's bandwidths show. Its sectors a request are those of writes that passed a page cache: of 4 KB written at random with a share d \
            of the blocks dirty, those at write-back are 1/(1-d) blocks long on average, and 20 % of 3 GB give 8.6 sectors. Direct writes are beside \
            them. MB are of 2^20 bytes.",
    differs: "The channels of this board carry 254 MB/s, where the paper's board peaks at 90. Requests that passed the page cache come in \
              the order of addresses and go to the banks in turn: large ones meet no busy bank, as they do at random (direct writes of 32 \
              KB with 32 in flight: 3,113 a second for 2,912). With 4 KB the volume decides: 2 GB in place of 8 give 2,546 a second. Our \
              largest request has 1,024 sectors; the paper's kernel stopped at some 256.",
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
    for (series, unit, _) in [IOPS, THROUGHPUT, SECTORS] {
        drawn.bars(series, ["", unit], |point| {
            (point.series == series).then(|| (point.setting.clone(), point.workload.clone()))
        });
    }
}

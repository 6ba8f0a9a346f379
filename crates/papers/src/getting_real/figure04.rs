//! Figure 4: 4 KB reads with the baseline firmware and with the read buffer.

use super::common::{BOARD, BUSY_BANKS, BUSY_CHANNELS, BY_BASELINE, IOPS, THROUGHPUT};
use crate::frame::{Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Reading, Row};

/// Firmware: what it is called, its variant with read-ahead and under direct I/O.
const FIRMWARE: [(&str, &str); 6] = [
    ("baseline", "baseline, read-ahead"),
    ("sectors", "sectors, read-ahead"),
    ("new", "new, read-ahead"),
    ("baseline, direct", "baseline, direct"),
    ("sectors, direct", "sectors, direct"),
    ("new, direct", "new, direct"),
];

const COLUMNS: [Column<Reading>; 4] = [IOPS, THROUGHPUT, BUSY_BANKS, BUSY_CHANNELS];

pub(super) static FIGURE: Figure = Figure {
    id: "figure04",
    title: "4 KB reads with the baseline firmware and with the read buffer",
    about: "Reads of 8 GB that were written in order, through a small page cache with read-ahead and direct, one at a time and 32 in flight. The paper says that the baseline waits for a whole page on each \
            read, and that it does 2,340 reads a second: a whole page takes 250 + 491.52 us, at most 1,349 a second one at a time. The public \
            firmware reads the sectors asked for. Both readings are here. MB are of 2^20 bytes.",
    differs: "A page takes 250 + 491.52 us and the sectors of 4 KB 311 us; with the firmware's cycles that is 1,306 and 2,981 reads a second one at \
              a time, and the paper's 2,340 lies between. The new firmware is not slower in order: a copy at 339 MB/s holds nothing up, and \
              the baseline waits for the four whole pages that a read-ahead covers.",
    series: &[COLUMNS[0].0, COLUMNS[1].0, COLUMNS[2].0, COLUMNS[3].0, BY_BASELINE.0],
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for input in context.inputs("reads").chain(context.inputs("deep reads")) {
        for (name, variant) in FIRMWARE {
            let label = Label::of(input, "", name);
            let run = context.run(BOARD, variant, input, "");
            let baseline = if variant.ends_with("direct") { FIRMWARE[3].1 } else { FIRMWARE[0].1 };
            rows.push(label.row(&run, &COLUMNS));
            rows.push(label.row(&run, &[BY_BASELINE]).against(&context.run(BOARD, baseline, input, "")));
        }
    }
    rows
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for (series, unit, _) in [IOPS, THROUGHPUT] {
        drawn.bars(series, ["", unit], |point| {
            (point.series == series).then(|| (point.setting.clone(), point.workload.clone()))
        });
    }
}

//! What other readings of the paper give, where it is open.

use super::common::{
    BOARD, BUSY_BANKS, HEAD_WAITS, HELD_UP, IOPS, MISALIGNED, SECTORS, THROUGHPUT, WRITE_AMPLIFICATION,
};
use crate::frame::{Column, Content, Figure, Label, PaperContext, Preparation, Reading, Row, names};

const COLUMNS: [Column<Reading>; 8] =
    [IOPS, THROUGHPUT, SECTORS, MISALIGNED, WRITE_AMPLIFICATION, BUSY_BANKS, HEAD_WAITS, HELD_UP];

/// A reading: what it is called, the variant, and what it sets.
type Reads = (&'static str, &'static str, &'static [&'static str]);

/// A partition that begins behind a page boundary, with the largest request that the host sends.
const MISALIGNED_PARTITION: [(&str, &str); 3] = [
    ("up to 1,024 sectors", "baseline, buffered"),
    ("up to 264 sectors", "baseline, requests of 264"),
    ("up to 64 sectors", "baseline, merged to 32 KB"),
];

/// Readings of one input: its name, the board, how that is prepared, and the readings, ours first.
type Choice = (&'static str, &'static str, Preparation, &'static [Reads]);

const NEW: &str = "new, direct";
const DIRECT: &str = "baseline, direct";

/// The largest request that the host sends.
const SECTORS_A_REQUEST: [Reads; 3] = [
    ("ours, up to 1,024 sectors a request", "baseline, buffered", &[]),
    ("up to 256 sectors", "baseline, requests of 256", &[]),
    ("up to 264 sectors", "baseline, requests of 264", &[]),
];

const CHOICES: [Choice; 10] = [
    (
        "random 32 KB, depth 32",
        BOARD,
        Preparation::None,
        &[
            ("ours", DIRECT, &[]),
            ("25 ns a cycle of the channel", DIRECT, &["flash.timing.transfer=409.6us"]),
            ("a queue for each bank", DIRECT, &["flash.scheduler=fifo"]),
            ("one operation at a time", DIRECT, &["flash.scheduler=single-fifo"]),
            ("cycles of an instruction doubled", DIRECT, &["controller.clock=43.75MHz"]),
        ],
    ),
    ("random 128 KB", BOARD, Preparation::None, &SECTORS_A_REQUEST),
    ("random 256 KB", BOARD, Preparation::None, &SECTORS_A_REQUEST),
    ("random 512 KB", BOARD, Preparation::None, &SECTORS_A_REQUEST),
    ("sequential 4 KB", BOARD, Preparation::None, &SECTORS_A_REQUEST),
    (
        "random 4 KB, 2 GB",
        BOARD,
        Preparation::None,
        &[("ours, deadline", "baseline, buffered", &[]), ("NOOP", "baseline, NOOP", &[])],
    ),
    (
        "random reads of 4 KB, depth 32",
        BOARD,
        Preparation::Footprint,
        &[
            ("ours, copies at 339 MB/s", NEW, &[]),
            ("copies at half the rate", NEW, &["controller.copy_bandwidth=169.5MB/s"]),
            ("copies at twice the rate", NEW, &["controller.copy_bandwidth=678MB/s"]),
        ],
    ),
    (
        "sequential reads of 4 KB",
        BOARD,
        Preparation::Footprint,
        &[
            ("ours, copies at 339 MB/s", "new, read-ahead", &[]),
            ("copies at half the rate", "new, read-ahead", &["controller.copy_bandwidth=169.5MB/s"]),
            ("copies at a quarter", "new, read-ahead", &["controller.copy_bandwidth=84.75MB/s"]),
        ],
    ),
    (
        "overwrites of 32 KB",
        "8 GB",
        Preparation::Fill,
        &[
            ("ours", DIRECT, &[]),
            ("7 % of the user capacity", DIRECT, &["capacity.over_provisioning=7%"]),
            ("copyback inside the bank", DIRECT, &["flash.copyback=true"]),
            ("no copyback", DIRECT, &["flash.copyback=false"]),
        ],
    ),
    (
        "reads of 32 KB, overwrites of 4 KB",
        "8 GB",
        Preparation::Fill,
        &[
            ("ours, half of a page", NEW, &[]),
            ("a quarter of a page", NEW, &["controller.gather_share=25%"]),
            ("all of a page", NEW, &["controller.gather_share=100%"]),
        ],
    ),
];

pub(super) static FIGURE: Figure = Figure {
    id: "choices",
    title: "what other readings of the paper give",
    about: "Rows of one input differ in one reading. The first row of an input is what the other pages use.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let of = |(input, board, preparation, readings): Choice| {
        let input = context.input(input)?;
        let row = move |(name, variant, set): &Reads| {
            let run = context.run(board, variant, input, "").with_all(set).prepared(preparation);
            Label::of(input, board, *name).row(&run, &COLUMNS)
        };
        Some(readings.iter().map(row))
    };
    let misaligned = context.inputs("misaligned writes").flat_map(|input| {
        MISALIGNED_PARTITION.map(|(name, variant)| {
            let run = context.run(BOARD, variant, input, "").prepared(Preparation::None);
            Label::of(input, BOARD, name).row(&run, &COLUMNS)
        })
    });
    CHOICES.into_iter().filter_map(of).flatten().chain(misaligned).collect()
}

//! Figure 9: FIO on the five systems.

use super::systems::{FIO, FIO_DIRECT, SYSTEMS, bars, rate, rows};
use crate::frame::{Column, Content, Drawn, Figure, Outcomes, PaperContext, Reading, names};

const RATE: &str = "rate";

const COLUMNS: [Column<Reading>; 4] = [
    (RATE, "MB/s", |run| rate(run)),
    ("by EXT4+PFTL", "x", |run| run.relative("operations_per_second")),
    ("map misses", "%", |run| Some((1.0 - run.number("drives.0.map_cache.by_asker.host.hit_ratio")?) * 100.0)),
    ("read from the cache", "%", |run| Some(run.number("file_system.cache.hit_ratio")? * 100.0)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure09",
    title: "FIO",
    about: "4 KB reads and writes of one file of 10 GB by 8 jobs, in order and at random, as many bytes as the file has. Buffered, as fio \
            does by default, a job has one call at a time, whatever its depth; direct, 128 calls each. A rate does not include the sync at the \
            end. Map misses are those of reads and writes of the host in the cache of DFTL's map.",
    differs: "A cache of a fifth of the map misses 73 % of random reads in a file of this size. Sequential requests ask for one map page each, \
              and a miss loads the whole page; the paper does not say what it counts as a miss.",
    series: &names(&COLUMNS),
    content: Content::Runs {
        rows: |context| {
            let works: Vec<&str> = FIO.into_iter().chain(FIO_DIRECT).collect();
            rows(context, &works, &SYSTEMS, &COLUMNS, true)
        },
        panels,
    },
};

fn panels(_: &PaperContext, _: &Outcomes, drawn: &mut Drawn) {
    bars(drawn, "FIO", RATE, "MB/s");
}

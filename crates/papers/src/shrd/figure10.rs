//! Figure 10: what a log of map entries saves when collection moves pages.

use super::common::{BY_DFTL, DRIVE, ERASES, WRITE_AMPLIFICATION, WRITE_RATE, misses_by};
use crate::frame::{Column, Content, Drawn, Figure, Label, Outcomes, PaperContext, Preparation, Reading, Row, names};

const SYSTEMS: [&str; 6] = ["DFTL", "DFTL, map log", "SHRD", "SHRD, map log", "ReSSD", "LSDM"];

/// The columns of every system; the last is of those with a map log alone.
const COLUMNS: [Column<Reading>; 9] = [
    WRITE_RATE,
    ("map misses per write, host", "", |run| misses_by(run, &["host", "buffer"])),
    ("map misses per write, GC", "", |run| misses_by(run, &["gc"])),
    ("map misses per write, log", "", |run| misses_by(run, &["log"])),
    WRITE_AMPLIFICATION,
    ERASES,
    ("victims", "", |run| Some(run.number("gc.foreground_victims")? + run.number("gc.background_victims")?)),
    (BY_DFTL, "x", |run| run.relative("throughput.write_iops")),
    (BY_SAME, "x", |run| run.relative("throughput.write_iops")),
];

/// A system's rate by that of the same without a map log.
const BY_SAME: &str = "IOPS relative to no map log";

pub(super) static FIGURE: Figure = Figure {
    id: "figure10",
    title: "map logging in collection, on an aged drive",
    about: "Ageing (section 5.2): 60 % of the user's space written in order, then 80 % of that overwritten at random; \
            then fio. A log of 96 KB takes the entries of relocated pages whose map page is not cached. Misses by who \
            asked: the host's commands, relocation, and flushes of the log. SHRD and restoring in the host are aged \
            through their layers.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for input in context.inputs("fio") {
        let run = |system| context.run(DRIVE, system, input, "").prepared(Preparation::Aged);
        let row = |system, by, columns| Label::of(input, "", system).row(&run(system), columns).against(&run(by));
        rows.extend(SYSTEMS.map(|system| row(system, "DFTL", &COLUMNS[..8])));
        let with_log = [("DFTL, map log", "DFTL"), ("SHRD, map log", "SHRD")];
        rows.extend(with_log.map(|(system, without)| row(system, without, &COLUMNS[8..])));
    }
    rows
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for (series, title) in
        [(BY_DFTL, "(a) IOPS relative to DFTL"), (BY_SAME, "(a) IOPS relative to the same without a map log")]
    {
        drawn.bars(title, ["", series], |point| {
            (point.series == series).then(|| (point.workload.clone(), point.setting.clone()))
        });
    }
    drawn.bars("(b) map misses per write, by who asks", ["", "map misses per write"], |point| {
        let asker = point.series.strip_prefix("map misses per write, ")?;
        Some((asker.to_string(), point.setting.clone()))
    });
}

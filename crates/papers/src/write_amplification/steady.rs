//! Figures 7 and 8: write amplification of three products in steady state, by request size, access and alignment.

use super::common::{self, CAUSES, micro};
use super::walvd;
use crate::frame::{Column, Content, Drawn, Figure, Input, Label, Outcomes, PaperContext, Reading, Row, Run, names};

/// Sub-tests of a run, as in section V.B.2 for the next experiment; V.B.1 says no volume. An eighth of its 5 GiB each.
const COUNT: u64 = 15;
const EIGHTH_OF_5_GIB: u64 = 640 << 20;

/// The products.
const DRIVES: [&str; 3] = ["SSD-I", "SSD-M", "SSD-S"];

/// The other reading: so much and no more, on the whole drive. Four times the largest cache, which is full when the run
/// begins.
const SHORT: u64 = 512 << 20;

/// The setting of mixes, and that of writes alone.
pub(super) const MIX: &str = "50 % write";
pub(super) const WRITES: &str = "100 % write";

/// The figure of mixes.
pub(super) static FIGURE07: Figure = figure(
    "figure07",
    "write amplification in steady state, 50 % writes",
    |context| rows(context, MIX),
    |_, _, drawn| panels(drawn, MIX),
);

/// The figure of writes alone.
pub(super) static FIGURE08: Figure = figure(
    "figure08",
    "write amplification in steady state, 100 % writes",
    |context| rows(context, WRITES),
    |_, _, drawn| panels(drawn, WRITES),
);

/// Columns: first those of the sub-tests, then those of the short run.
const COLUMNS: [Column<Reading>; 11] = [
    ("WA", "", |run| walvd::mean(&walvd::sub_tests(run), |test| test.recorded)),
    ("true WA", "", |run| walvd::mean(&walvd::sub_tests(run), |test| test.real)),
    ("true WA, first", "", |run| walvd::sub_tests(run).first().map(|test| test.real)),
    ("true WA, last", "", |run| walvd::sub_tests(run).last().map(|test| test.real)),
    ("run", "sub-tests", |run| Some(walvd::sub_tests(run).len() as f64)),
    ("WA, 512 MiB", "", |run| run.number("ready_busy.recorders.0.write_amplification")),
    ("true WA, 512 MiB", "", |run| run.number("ready_busy.real.write_amplification")),
    CAUSES[2],
    CAUSES[3],
    CAUSES[4],
    ("M_p / pages a program", "x", |run| run.number("ready_busy.levels.plane")),
];
const OF_SUB_TESTS: usize = 5;

const fn figure(
    id: &'static str,
    title: &'static str,
    rows: fn(&PaperContext) -> Vec<Row>,
    panels: fn(&PaperContext, &Outcomes, &mut Drawn),
) -> Figure {
    Figure {
        id,
        title,
        about: "WA: each run begins in the random steady state and is divided into 15 sub-tests, as in section V.B.2 \
                (V.B.1 gives no volume), on an eighth of each drive and of the 5 GiB; the value is the mean of the 15. \
                A level that three sub-tests in a row have, within 1 %, stands for those after it, which are not run; \
                sequential mixes, whose level changes, run all 15. First and last: the true WA of the first and the \
                last sub-test that ran. 512 MiB: the other reading, one sub-test of that size on the whole drive, with \
                what its true WA is made of. WA is the recorder's count through equation 2, with M_p = 1 for SSD-I and \
                2 for SSD-M and SSD-S; the last column says by how much M_p is too large: with 2, planes that did not \
                program together are counted twice.",
        differs: "Greedy collection with this over-provisioning costs 7.3 by theory and here; what the products do \
                  beyond that is not in the paper.",
        series: const { &names(&COLUMNS) },
        content: Content::Runs { rows, panels },
    }
}

/// The runs of a share of writes: drive, input, the run in sub-tests, the short one.
pub(super) fn runs<'s>(context: &'s PaperContext, writes: &str) -> Vec<(&'static str, &'s Input, Run, Run)> {
    let of_drive = |drive: &'static str| {
        let both = ["SQ", "RD"].into_iter().flat_map(|access| micro(context, access));
        let written = both.filter(|(_, setting)| *setting == writes);
        written.map(move |(input, _)| {
            // The writes of a sequential mix go over the first half of the drive again and again, and two levels
            // follow each other for as long: none stands for what comes after it.
            let until = if writes == MIX && input.stands_for.starts_with("SQ") { "" } else { ":level" };
            let volumes = format!("{}{until}", common::volumes(context, COUNT, EIGHTH_OF_5_GIB));
            let long = common::eighth(context, drive, common::steady(context, drive, input, EIGHTH_OF_5_GIB));
            (drive, input, long.divided(volumes), common::steady(context, drive, input, SHORT))
        })
    };
    DRIVES.into_iter().flat_map(of_drive).collect()
}

fn rows(context: &PaperContext, writes: &str) -> Vec<Row> {
    let both = |(drive, input, long, short): (_, _, _, _)| {
        let label = Label::of(input, drive, "");
        [label.row(&long, &COLUMNS[..OF_SUB_TESTS]), label.row(&short, &COLUMNS[OF_SUB_TESTS..])]
    };
    runs(context, writes).into_iter().flat_map(both).collect()
}

fn panels(drawn: &mut Drawn, writes: &str) {
    for (access, title) in [("SQ", "sequential"), ("RD", "random")] {
        drawn.bars(format!("{title}, {writes}"), ["", "write amplification"], |point| {
            let shown = point.series == COLUMNS[0].0 && point.stands_for.starts_with(access);
            shown.then(|| (point.page_size.clone(), point.workload.clone()))
        });
    }
}

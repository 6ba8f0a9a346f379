//! Figures 7 and 8: write amplification of three products in steady state, by request size, access and alignment.

use super::common::{self, Column, columns, micro, point};
use super::walvd;
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run, names};

/// Sub-tests of a run, as in section V.B.2 for the next experiment; V.B.1 says no volume. An eighth of its 5 GiB each.
const COUNT: u64 = 15;
const EIGHTH_OF_5_GIB: u64 = 640 << 20;

/// The products.
const DRIVES: [&str; 3] = ["SSD-I", "SSD-M", "SSD-S"];

/// The other reading: so much and no more, on the whole drive. Four times the largest cache, which is full when the run
/// begins.
const SHORT: u64 = 512 << 20;

/// The setting of mixes.
const MIX: &str = "50 % write";

/// The figure of mixes.
pub(super) static FIGURE07: Steady =
    Steady { id: "figure07", title: "write amplification in steady state, 50 % writes", writes: MIX };

/// The figure of writes alone.
pub(super) static FIGURE08: Steady =
    Steady { id: "figure08", title: "write amplification in steady state, 100 % writes", writes: "100 % write" };

pub(super) struct Steady {
    id: &'static str,
    title: &'static str,
    writes: &'static str,
}

/// Columns: first those of the sub-tests, then those of the short run.
const COLUMNS: [Column; 11] = [
    ("WA", "", |run| walvd::mean(&walvd::sub_tests(run), |test| test.recorded)),
    ("true WA", "", |run| walvd::mean(&walvd::sub_tests(run), |test| test.real)),
    ("true WA, first", "", |run| walvd::sub_tests(run).first().map(|test| test.real)),
    ("true WA, last", "", |run| walvd::sub_tests(run).last().map(|test| test.real)),
    ("run", "sub-tests", |run| Some(walvd::sub_tests(run).len() as f64)),
    ("WA, 512 MiB", "", |run| run.number("ready_busy.recorders.0.write_amplification")),
    ("true WA, 512 MiB", "", |run| run.number("ready_busy.real.write_amplification")),
    ("host and padding", "", |run| run.number("write_amplification.by_cause.host")),
    ("read-modify-write", "", |run| run.number("write_amplification.by_cause.rmw")),
    ("GC", "", |run| run.number("write_amplification.by_cause.gc")),
    ("M_p / pages a program", "x", |run| run.number("ready_busy.levels.plane")),
];
const OF_SUB_TESTS: usize = 5;

/// A row: drive, input, the run in sub-tests, the short one.
type Row<'s> = (&'static str, &'s Input, Run, Run);

impl Steady {
    /// The rows in their order.
    pub(super) fn rows<'s>(&self, context: &'s PaperContext) -> Vec<Row<'s>> {
        let of_drive = |drive: &'static str| {
            let both = ["SQ", "RD"].into_iter().flat_map(|access| micro(context, access));
            let written = both.filter(|(_, setting)| *setting == self.writes);
            written.map(move |(input, _)| {
                // The writes of a sequential mix go over the first half of the drive again and again, and two levels
                // follow each other for as long: none stands for what comes after it.
                let until = if self.writes == MIX && input.stands_for.starts_with("SQ") { "" } else { ":level" };
                let volumes = format!("{}{until}", common::volumes(context, COUNT, EIGHTH_OF_5_GIB));
                let long = common::eighth(context, drive, common::steady(context, drive, input, EIGHTH_OF_5_GIB));
                (drive, input, long.divided(volumes), common::steady(context, drive, input, SHORT))
            })
        };
        DRIVES.into_iter().flat_map(of_drive).collect()
    }
}

impl Figure for Steady {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn about(&self) -> &'static str {
        "WA: each run begins in the random steady state and is divided into 15 sub-tests, as in section V.B.2 (V.B.1 gives no \
         volume), on an eighth of each drive and of the 5 GiB; the value is the mean of the 15. A level that three sub-tests in \
         a row have, within 1 %, stands for those after it, which are not run; sequential mixes, whose level changes, run all \
         15. First and last: the true WA of the first and the last sub-test that ran. 512 MiB: the other reading, one sub-test \
         of that size on the whole drive, with what its true WA is made of. WA is the recorder's count through equation 2, with \
         M_p = 1 for SSD-I and 2 for SSD-M and SSD-S; the last column says by how much M_p is too large: with 2, planes that did \
         not program together are counted twice."
    }

    fn differs(&self) -> &'static str {
        "Greedy collection with this over-provisioning costs 7.3 by theory and here; what the products do beyond that is not in \
         the paper."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        self.rows(context).into_iter().flat_map(|(.., long, short)| [long, short]).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (drive, input, long, short) in self.rows(context) {
            let at = |series, value, unit| point(input, drive, "", series, value, unit);
            let (of_sub_tests, of_short) = COLUMNS.split_at(OF_SUB_TESTS);
            columns(&mut drawn, outcomes, &long, of_sub_tests, at);
            columns(&mut drawn, outcomes, &short, of_short, at);
        }
        for (access, title) in [("SQ", "sequential"), ("RD", "random")] {
            drawn.bars(format!("{title}, {}", self.writes), ["", "write amplification"], |point| {
                let shown = point.series == COLUMNS[0].0 && point.stands_for.starts_with(access);
                shown.then(|| (point.page_size.clone(), point.workload.clone()))
            });
        }
        drawn
    }
}

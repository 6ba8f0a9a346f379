//! What the paper leaves open, and what it changes: never instead of a figure's value, always beside it.

use super::common::{self, CAUSES, point};
use super::walvd::{self, SubTest};
use crate::frame::{
    Content, Drawn, Figure, Input, Label, Outcomes, PaperContext, Preparation, Row, Run, names, own_runs,
};

/// A choice: its name, what it sets, the age.
type Choice = (&'static str, &'static [&'static str], Preparation);

/// On SSD-I: its mapping and its collection are not in the paper.
const CHOICES: [Choice; 6] = [
    ("as everywhere", &[], Preparation::Steady),
    ("pages of 8 KB (planes tied)", &["flash.page_size=8k", "flash.planes_per_die=1"], Preparation::Steady),
    ("FIFO victims", &["gc.victim=fifo"], Preparation::Steady),
    ("random victims", &["gc.victim=random"], Preparation::Steady),
    ("no cache", &["buffer.policy=none"], Preparation::Steady),
    ("written once, in order", &[], Preparation::Fill),
];

/// The corners of the figures.
const INPUTS: [&str; 4] = ["512B-RD-100%-W-N", "4KiB-RD-100%-W-Y", "4KiB-SQ-100%-W-Y", "32KiB-SQ-100%-W-Y"];

/// The sub-tests of Figures 7 and 8 on whole drives: 75 GiB, long enough for a sequence to renew each.
const LONG_DRIVES: [&str; 3] = ["SSD-I", "SSD-M", "SSD-S"];
const LONG: &str = "32KiB-SQ-100%-W-Y";
const LONG_COUNT: u64 = 15;
const LONG_VOLUME: u64 = 5 << 30;

const VOLUME: u64 = 512 << 20;

pub(super) static FIGURE: Figure = Figure {
    id: "choices",
    title: "what the paper leaves open, and what it changes",
    about: "Runs of 512 MiB on SSD-I, as those that stand beside Figure 8. Planes tied: a die programs both planes as \
            one page of 8 KB, which is what a two-plane drive with a coarser map does, and a write of 4 KB is then a \
            read-modify-write. Written once in order instead of 12 hours of random writes. The sub-tests at the end \
            are those of Figure 8 on whole drives: 15 of 5 GiB, until a level stands for the rest. How much of a \
            sequence is measured decides what it costs after random writes.",
    differs: "",
    series: &names(&CAUSES),
    content: Content::Own { runs, draw },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, set, age) in CHOICES {
        for input in INPUTS.iter().filter_map(|input| context.input(input)) {
            let run = common::steady(context, "SSD-I", input, VOLUME).prepared(age).with_all(set);
            rows.push(Label::of(input, "SSD-I", name).row(&run, &CAUSES));
        }
    }
    rows
}

/// The long runs, by drive.
fn long(context: &PaperContext) -> Vec<(&Input, &'static str, Run)> {
    let Some(input) = context.input(LONG) else { return Vec::new() };
    let volumes = format!("{}:level", common::volumes(context, LONG_COUNT, LONG_VOLUME));
    let run = |drive| common::steady(context, drive, input, LONG_VOLUME).divided(volumes.clone());
    LONG_DRIVES.map(|drive| (input, drive, run(drive))).to_vec()
}

fn runs(context: &PaperContext) -> Vec<Run> {
    own_runs(rows(context)).into_iter().chain(long(context).into_iter().map(|(_, _, run)| run)).collect()
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    drawn.rows(outcomes, &rows(context));
    for (input, drive, run) in long(context) {
        let Some(measured) = outcomes.get(&run) else { continue };
        let tests = walvd::sub_tests(measured);
        let mut row = |setting: &str, tests: &[SubTest]| {
            let values =
                [("WA", walvd::mean(tests, |test| test.recorded)), ("true WA", walvd::mean(tests, |test| test.real))];
            let points =
                values.into_iter().filter_map(|(series, value)| Some(point(input, drive, setting, series, value?, "")));
            drawn.points.extend(points);
        };
        for (index, test) in tests.iter().enumerate() {
            row(&format!("{} to {} GiB", 5 * index, 5 * (index + 1)), std::slice::from_ref(test));
        }
        row("mean of 15 sub-tests", &tests);
    }
    drawn
}

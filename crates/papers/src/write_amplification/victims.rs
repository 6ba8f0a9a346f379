//! Beyond the paper: how the choice of victims decides whether write amplification falls under F1 and F2.

use super::common::{DIE, eighth, point, volumes};
use super::financial::REPLAY;
use super::walvd;
use crate::frame::{Content, Drawn, Figure, Input, Outcomes, PaperContext, Preparation, Run, Scale, leading_number};

/// A policy: as `gc.victim`, and the columns that it has.
type Policy = (&'static str, &'static str, &'static str);

const POLICIES: [Policy; 3] = [
    ("greedy", "true WA, greedy", "write, greedy"),
    ("cost-benefit", "true WA, cost-benefit", "write, cost-benefit"),
    ("fifo", "true WA, fifo", "write, fifo"),
];

/// Sub-tests, as in Figures 10 and 11, and an eighth of their volumes.
const COUNT: u64 = 15;
const GROUPS: [(&str, u64); 2] = [("F1 eighth", 640 << 20), ("F2 eighth", 230 << 20)];

/// An input with the run of each policy.
fn rows(context: &PaperContext) -> Vec<(&Input, Vec<(Policy, Run)>)> {
    let of_input = |input, volume| {
        let run = |policy: Policy| {
            let run = context.run("SSD-I", "described", input, REPLAY).prepared(Preparation::Steady);
            let run = eighth(context, "SSD-I", run).with(format!("gc.victim={}", policy.0));
            (policy, run.recorded(DIE).divided(volumes(context, COUNT, volume)))
        };
        (input, POLICIES.map(run).to_vec())
    };
    let of_group =
        |(group, volume)| context.inputs(group).map(move |input| of_input(input, volume)).collect::<Vec<_>>();
    GROUPS.into_iter().flat_map(of_group).collect()
}

pub(super) static FIGURE: Figure = Figure {
    id: "victims",
    title: "beyond the paper: victims of collection under F1 and F2, on an eighth of SSD-I",
    about: "The runs of Figures 10 and 11 on an eighth of the blocks, the model's footprint and the sub-test's volume, \
            at the same effective over-provisioning, with three policies of gc.victim, each in its own steady state. \
            The cache is not scaled, so the levels are lower than in the figures. True WA: the chips' own count.",
    differs: "",
    series: &[POLICIES[0].1, POLICIES[1].1, POLICIES[2].1, POLICIES[0].2, POLICIES[1].2, POLICIES[2].2],
    content: Content::Own { runs, draw },
};

fn runs(context: &PaperContext) -> Vec<Run> {
    rows(context).into_iter().flat_map(|(_, runs)| runs).map(|(_, run)| run).collect()
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    for (input, runs) in rows(context) {
        let tests = runs.into_iter().filter_map(|(policy, run)| Some((policy, walvd::sub_tests(outcomes.get(&run)?))));
        let tests: Vec<(Policy, Vec<walvd::SubTest>)> = tests.collect();
        let mut add = |series, unit, read: fn(&walvd::SubTest) -> f64, tests: &[walvd::SubTest]| {
            let each = tests
                .iter()
                .map(|test| point(input, "SSD-I, 1/8", &format!("sub-test {}", test.name), series, read(test), unit));
            drawn.points.extend(each);
        };
        for ((_, series, _), tests) in &tests {
            add(series, "", |test| test.real, tests);
        }
        for ((_, _, series), tests) in &tests {
            add(series, "MB/s", |test| test.rate, tests);
        }
        drawn.lines(input.name.clone(), Scale::Linear, ["sub-test", "true write amplification"], |point| {
            let policy = point.series.strip_prefix("true WA, ").filter(|_| point.workload == input.name)?;
            Some((policy.to_string(), leading_number(point.setting.strip_prefix("sub-test ")?)?))
        });
    }
    drawn
}

//! Figure 16: SLC and TLC chips.

use super::common::{PAGE, SETTINGS, events, less, mean_latency, point, sent_papers};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run};

pub(super) struct Figure16;

/// Section 5.4: SLC is Table 1's; TLC reads in 75 us, programs in 1200 us, erases in 4500 us.
const CELLS: [(&str, &[&str]); 2] =
    [("SLC", &[]), ("TLC", &["flash.timing.read=75us", "flash.timing.program=1200us", "flash.timing.erase=4500us"])];

impl Figure for Figure16 {
    fn id(&self) -> &'static str {
        "figure16"
    }

    fn title(&self) -> &'static str {
        "reduction of the mean latency on SLC and TLC, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "WAFLASH against the baseline on the same chips. The paper's 32.6 and 38.5 % are of a workload that it does not \
         name, so ours beside them is the best one. The page size is our choice."
    }

    fn series(&self) -> &'static [&'static str] {
        &["gain of WAFLASH"]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let mut runs = Vec::new();
        for (input, replay, _, sets) in cases(context) {
            runs.extend(["Baseline", "WAFLASH"].map(|variant| run(context, variant, input, &replay, sets)));
        }
        runs
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting, sets) in cases(context) {
            let run = |variant| run(context, variant, input, &replay, sets);
            if let Some(value) = less(outcomes, &run("Baseline"), &run("WAFLASH"), mean_latency) {
                let point = point(input, PAGE, &setting, "gain of WAFLASH", value, "%");
                drawn.points.push(point.of_events(events(outcomes, &run("Baseline"))));
            }
        }
        for how in SETTINGS {
            drawn.bars(format!("gain of WAFLASH, {how}"), ["", "mean latency reduced by, %"], |point| {
                let (cell, setting) = point.setting.split_once(", ")?;
                (setting == how).then(|| (cell.to_string(), point.workload.clone()))
            });
        }
        drawn
    }
}

fn cases(context: &PaperContext) -> Vec<(&Input, String, String, &'static [&'static str])> {
    let mut cases = Vec::new();
    for (input, replay, how) in sent_papers(context) {
        cases.extend(CELLS.map(|(cell, sets)| (input, replay.clone(), format!("{cell}, {how}"), sets)));
    }
    cases
}

fn run(context: &PaperContext, variant: &str, input: &Input, replay: &str, sets: &[&str]) -> Run {
    sets.iter().fold(context.run(PAGE, variant, input, replay), |run, set| run.with(*set))
}

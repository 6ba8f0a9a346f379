//! Beyond the paper: the gain by how much of the channels' time a trace asks for.

use super::common::{PAGE, less, loaded, mean_latency, point};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run, Scale, leading_number};

pub(super) struct Load;

/// Per cent of the channels' time; the last is `half loaded` of the other figures.
const LOADS: [u32; 6] = [2, 5, 10, 20, 35, 50];

const SERIES: [&str; 3] = ["PC-LRU", "MV-FTL", "WAFLASH"];

impl Figure for Load {
    fn id(&self) -> &'static str {
        "load"
    }

    fn title(&self) -> &'static str {
        "reduction of the mean latency by load, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "Not in the paper, which replays at one rate that it does not give in terms of the drive. All times of a trace are \
         shrunk alike until the pages that it asks for, one transfer each, take so much of the channels' time."
    }

    fn series(&self) -> &'static [&'static str] {
        &SERIES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let mut runs = Vec::new();
        for (input, _, replay) in cases(context) {
            runs.extend(["Baseline"].iter().chain(&SERIES).map(|variant| context.run(PAGE, variant, input, &replay)));
        }
        runs
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, load, replay) in cases(context) {
            let base = context.run(PAGE, "Baseline", input, &replay);
            for series in SERIES {
                let ours = context.run(PAGE, series, input, &replay);
                let Some(gain) = less(outcomes, &base, &ours, mean_latency) else { continue };
                drawn.points.push(point(input, PAGE, &format!("{load} %"), series, gain, "%"));
            }
        }
        for input in context.inputs("paper") {
            let axes = ["load, % of the channels' time", "mean latency reduced by, %"];
            drawn.lines(input.name.clone(), Scale::Linear, axes, |point| {
                let load = leading_number(&point.setting).filter(|_| point.workload == input.name)?;
                Some((point.series.to_string(), load))
            });
        }
        drawn
    }
}

/// Models at each load that is above their own.
fn cases(context: &PaperContext) -> Vec<(&Input, u32, String)> {
    let mut cases = Vec::new();
    for input in context.inputs("paper") {
        for load in LOADS {
            if let Some(factor) = loaded(context, input, f64::from(load) / 100.0) {
                cases.push((input, load, format!("timed*{factor:.6}")));
            }
        }
    }
    cases
}

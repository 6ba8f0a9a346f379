//! Figure 15: buffers of 16 to 256 MB.

use super::common::{PAGE, SETTINGS, buffer, events, figure, less, mean_latency, point, sent_papers};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Point, Run, Scale, leading_number};

pub(super) struct Figure15;

/// MB.
const SIZES: [u64; 5] = [16, 32, 64, 128, 256];

impl Figure for Figure15 {
    fn id(&self) -> &'static str {
        "figure15"
    }

    fn title(&self) -> &'static str {
        "mean latency by buffer size, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "Baseline and PC-LRU. The page size is our choice. A buffer that is larger than all that a run writes never destages: \
         both are the same there."
    }

    fn differs(&self) -> &'static str {
        "A small buffer is soon full of partial pages, and full ones leave that would have been written again."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "PC-LRU", "gain of PC-LRU"]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let mut runs = Vec::new();
        for (input, replay, size, _) in cases(context) {
            runs.extend(["Baseline", "PC-LRU"].map(|variant| run(context, variant, input, &replay, size)));
        }
        runs
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, size, setting) in cases(context) {
            let run = |variant| run(context, variant, input, &replay, size);
            for series in ["Baseline", "PC-LRU"] {
                if let Some(value) = figure(outcomes, &run(series), mean_latency) {
                    drawn.points.push(point(input, PAGE, &setting, series, value / 1e3, "us"));
                }
            }
            if let Some(value) = less(outcomes, &run("Baseline"), &run("PC-LRU"), mean_latency) {
                let point = point(input, PAGE, &setting, "gain of PC-LRU", value, "%");
                drawn.points.push(point.of_events(events(outcomes, &run("Baseline"))));
            }
        }
        for how in SETTINGS {
            let size = |point: &Point, unit: &str| {
                let (setting, size) = point.setting.split_once(", ")?;
                leading_number(size).filter(|_| setting == how && point.unit == unit)
            };
            for input in context.inputs("paper") {
                let axes = ["buffer, MB", "mean latency, us"];
                drawn.lines(format!("{}, {how}", input.name), Scale::Log, axes, |point| {
                    let size = size(point, "us").filter(|_| point.workload == input.name)?;
                    Some((point.series.to_string(), size))
                });
            }
            let axes = ["buffer, MB", "mean latency reduced by, %"];
            drawn.lines(format!("gain of PC-LRU, {how}"), Scale::Log, axes, |point| {
                Some((point.workload.clone(), size(point, "%")?))
            });
        }
        drawn
    }
}

/// An input, how it is sent, the buffer in MB, and the setting.
type Case<'s> = (&'s Input, String, u64, String);

fn cases(context: &PaperContext) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for (input, replay, how) in sent_papers(context) {
        cases.extend(SIZES.map(|size| (input, replay.clone(), size, format!("{how}, {size}MB"))));
    }
    cases
}

fn run(context: &PaperContext, variant: &str, input: &Input, replay: &str, size: u64) -> Run {
    context.run(PAGE, variant, input, replay).with(buffer(context, size))
}

//! Figure 9: the distribution of latencies at 8 KB.

use super::common::{PAGE, SETTINGS, events, less, mean_latency, p95_latency, point, runs_at, sent};
use crate::frame::{Curve, Curves, Drawn, Figure, Outcomes, PaperContext, Run};

pub(super) struct Figure09;

const VARIANTS: [&str; 3] = ["Baseline", "PC-LRU", "WAFLASH"];

impl Figure for Figure09 {
    fn id(&self) -> &'static str {
        "figure09"
    }

    fn title(&self) -> &'static str {
        "latencies of all requests, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "From the runs of Figure 8. The first columns are by how much less WAFLASH's mean and 95th percentile are than the \
         baseline's; the third is their difference in per cent points, which is what the text gives."
    }

    fn differs(&self) -> &'static str {
        "At the true times nobody waits, and the tail is made of waiting; in MSNFS's bursts all requests wait alike."
    }

    fn series(&self) -> &'static [&'static str] {
        &["mean gain", "p95 gain", "p95 gain over mean gain"]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        runs_at(context, PAGE, &VARIANTS)
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting) in sent(context) {
            let base = context.run(PAGE, "Baseline", input, &replay);
            let ours = context.run(PAGE, "WAFLASH", input, &replay);
            let mean = less(outcomes, &base, &ours, mean_latency);
            let p95 = less(outcomes, &base, &ours, p95_latency);
            if let (Some(mean), Some(p95)) = (mean, p95) {
                let gains = [("mean gain", mean), ("p95 gain", p95), ("p95 gain over mean gain", p95 - mean)];
                let events = events(outcomes, &base);
                let gains =
                    gains.map(|(series, gain)| point(input, PAGE, setting, series, gain, "%").of_events(events));
                drawn.points.extend(gains);
            }
            let curves: Vec<Curve> = VARIANTS
                .into_iter()
                .filter_map(|variant| {
                    let measured = outcomes.get(&context.run(PAGE, variant, input, &replay))?;
                    Some(Curve { name: variant.to_string(), points: measured.distribution("all")? })
                })
                .collect();
            if !curves.is_empty() {
                drawn.curves.push(Curves {
                    title: format!("{}, {setting}", input.name),
                    x: "latency (us)",
                    x_log: true,
                    y: "requests (%)",
                    is_scattered: false,
                    input: input.shown.clone(),
                    curves,
                });
            }
        }
        for setting in SETTINGS {
            drawn.bars(format!("gain of WAFLASH, {setting}"), ["", "latency reduced by, %"], |point| {
                (point.setting == setting).then(|| (point.series.to_string(), point.workload.clone()))
            });
        }
        drawn
    }
}

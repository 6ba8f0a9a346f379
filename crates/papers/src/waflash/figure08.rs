//! Figure 8: how much less the mean latency is, by page size, as WAFLASH's features are added.

use super::common::{SETTINGS, events, half_loaded, less, mean_latency, point, runs_at, sent, workloads};
use crate::frame::number;
use crate::frame::{Drawn, Figure, Outcomes, PaperContext, Run};

pub(super) struct Figure08;

const FEATURES: [&str; 3] = ["PC-LRU", "MV-FTL", "WAFLASH"];
const VARIANTS: [&str; 4] = ["Baseline", "PC-LRU", "MV-FTL", "WAFLASH"];

impl Figure for Figure08 {
    fn id(&self) -> &'static str {
        "figure08"
    }

    fn title(&self) -> &'static str {
        "reduction of the mean latency against the baseline, by page size and feature"
    }

    fn about(&self) -> &'static str {
        "Of all reads and writes; more is better. MV-FTL is PC-LRU with several versions but without compaction, WAFLASH is \
         all. The drive holds data wherever the workload goes, and its buffer is empty at first. Most of these traces are \
         too slow to congest a drive of 64 planes, so each is shown at its true times, and sped up until the pages it asks for \
         take half of the channels' time at 8 KB."
    }

    fn differs(&self) -> &'static str {
        "At the true times these traces leave a drive of 64 planes idle; half loaded, PC-LRU lets full pages leave for partial \
         ones that would have been written again."
    }

    fn series(&self) -> &'static [&'static str] {
        &FEATURES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        ["8k", "4k", "16k"].into_iter().flat_map(|page| runs_at(context, page, &VARIANTS)).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        let factors: Vec<String> = workloads(context)
            .filter_map(|input| Some(format!("{} {}", input.name, number(1.0 / half_loaded(context, input)?, ""))))
            .collect();
        if !factors.is_empty() {
            drawn.remark(format!("half loaded is so many times as fast as the true times: {}", factors.join(", ")));
        }
        for page in ["4k", "8k", "16k"] {
            for (input, replay, setting) in sent(context) {
                let base = context.run(page, "Baseline", input, &replay);
                for feature in FEATURES {
                    let run = context.run(page, feature, input, &replay);
                    if let Some(value) = less(outcomes, &base, &run, mean_latency) {
                        let point = point(input, page, setting, feature, value, "%");
                        drawn.points.push(point.of_events(events(outcomes, &base)));
                    }
                }
            }
        }
        for setting in SETTINGS {
            for page in ["4k", "8k", "16k"] {
                let title = format!("pages of {} KB, {setting}", page.trim_end_matches('k'));
                drawn.bars(title, ["", "mean latency reduced by, %"], |point| {
                    let shown = point.page_size == page && point.setting == setting;
                    shown.then(|| (point.series.to_string(), point.workload.clone()))
                });
            }
        }
        drawn
    }
}

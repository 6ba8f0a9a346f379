//! Figure 13: pages written, which compaction makes fewer.

use super::common::{PAGE, figure, flash_writes, less, point, runs_at, sent};
use crate::reproduce::{Drawn, Figure, Outcomes, Run, Scene};

pub(super) struct Figure13;

const VARIANTS: [&str; 4] = ["Baseline", "PC-LRU", "MV-FTL", "WAFLASH"];

impl Figure for Figure13 {
    fn id(&self) -> &'static str {
        "figure13"
    }

    fn title(&self) -> &'static str {
        "pages written to flash, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "Of the runs of Figure 8: all pages programmed, for whatever cause. The paper compares the FTL with \
         compaction with the one without; the last column compares all of WAFLASH with the baseline."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "PC-LRU", "MV-FTL", "WAFLASH", "fewer with compaction", "WAFLASH against Baseline"]
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        runs_at(scene, PAGE, &VARIANTS)
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting) in sent(scene) {
            let run = |variant| scene.run(PAGE, variant, input, &replay);
            for variant in VARIANTS {
                if let Some(value) = figure(outcomes, &run(variant), flash_writes) {
                    drawn.points.push(point(input, PAGE, setting, variant, value, "pages"));
                }
            }
            for (series, base, ours) in
                [("fewer with compaction", "MV-FTL", "WAFLASH"), ("WAFLASH against Baseline", "Baseline", "WAFLASH")]
            {
                if let Some(value) = less(outcomes, &run(base), &run(ours), flash_writes) {
                    drawn.points.push(point(input, PAGE, setting, series, value, "%"));
                }
            }
        }
        drawn
    }
}

//! Figure 11: partial pages written to flash, which PC-LRU makes fewer.

use super::common::{PAGE, figure, less, partial_page_writes, point, runs_at, sent};
use crate::reproduce::{Drawn, Figure, Outcomes, Run, Scene};

pub(super) struct Figure11;

const VARIANTS: [&str; 4] = ["Baseline", "PC-LRU", "MV-FTL", "WAFLASH"];

impl Figure for Figure11 {
    fn id(&self) -> &'static str {
        "figure11"
    }

    fn title(&self) -> &'static str {
        "partial pages written to flash, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "Of the runs of Figure 8. A page counts that leaves the buffer with some of its sectors missing. Only the \
         buffer differs."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "PC-LRU", "MV-FTL", "WAFLASH", "fewer with PC-LRU", "WAFLASH against Baseline"]
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        runs_at(scene, PAGE, &VARIANTS)
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting) in sent(scene) {
            let run = |variant| scene.run(PAGE, variant, input, &replay);
            for variant in VARIANTS {
                if let Some(value) = figure(outcomes, &run(variant), partial_page_writes) {
                    drawn.points.push(point(input, PAGE, setting, variant, value, "pages"));
                }
            }
            for (series, base, ours) in
                [("fewer with PC-LRU", "Baseline", "PC-LRU"), ("WAFLASH against Baseline", "Baseline", "WAFLASH")]
            {
                if let Some(value) = less(outcomes, &run(base), &run(ours), partial_page_writes) {
                    drawn.points.push(point(input, PAGE, setting, series, value, "%"));
                }
            }
        }
        drawn
    }
}

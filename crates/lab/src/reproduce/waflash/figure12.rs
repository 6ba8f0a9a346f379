//! Figure 12: reads that unaligned writes cause, which several versions make fewer.

use super::common::{PAGE, additional_reads, figure, less, point, runs_at, sent};
use crate::reproduce::{Drawn, Figure, Outcomes, Run, Scene};

pub(super) struct Figure12;

const VARIANTS: [&str; 4] = ["Baseline", "PC-LRU", "MV-FTL", "WAFLASH"];

impl Figure for Figure12 {
    fn id(&self) -> &'static str {
        "figure12"
    }

    fn title(&self) -> &'static str {
        "additional reads of flash, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "Of the runs of Figure 8: reads that a drive of aligned writes would not do. In the baseline the reads of \
         read-modify-writes; with several versions those at merging and overwriting, and the second and further reads \
         that a read of the host needs. The column PC-LRU tells what the buffer does alone."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "PC-LRU", "MV-FTL", "WAFLASH", "fewer with MV-FTL", "WAFLASH against Baseline"]
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        runs_at(scene, PAGE, &VARIANTS)
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting) in sent(scene) {
            let run = |variant| scene.run(PAGE, variant, input, &replay);
            for variant in VARIANTS {
                if let Some(value) = figure(outcomes, &run(variant), additional_reads) {
                    drawn.points.push(point(input, PAGE, setting, variant, value, "pages"));
                }
            }
            for (series, base, ours) in
                [("fewer with MV-FTL", "Baseline", "MV-FTL"), ("WAFLASH against Baseline", "Baseline", "WAFLASH")]
            {
                if let Some(value) = less(outcomes, &run(base), &run(ours), additional_reads) {
                    drawn.points.push(point(input, PAGE, setting, series, value, "%"));
                }
            }
        }
        drawn
    }
}

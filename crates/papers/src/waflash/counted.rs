//! Figures 11 to 13: pages that the drive counts, for each part of WAFLASH.

use super::common::{
    PAGE, SETTINGS, additional_reads, events, figure, flash_writes, less, partial_page_writes, point, runs_at, sent,
};
use crate::frame::{Drawn, Figure, Measured, Outcomes, PaperContext, Run};

/// Partial pages written to flash, which PC-LRU makes fewer.
pub(super) static FIGURE11: Counted = Counted {
    id: "figure11",
    title: "partial pages written to flash, pages of 8 KB",
    about: "Of the runs of Figure 8. A page counts that leaves the buffer with some of its sectors missing. Only the \
            buffer differs.",
    series: &["Baseline", "PC-LRU", "MV-FTL", "WAFLASH", "fewer with PC-LRU", ALL.0],
    differs: "PC-LRU delays where chips are busy: hardly at the true times, nearly always half loaded. Most of Web's are halves of a page \
              whose other half soon comes.",
    compared: ("fewer with PC-LRU", "Baseline", "PC-LRU"),
    read: partial_page_writes,
};

/// Reads that unaligned writes cause, which several versions make fewer.
pub(super) static FIGURE12: Counted = Counted {
    id: "figure12",
    title: "additional reads of flash, pages of 8 KB",
    about: "Of the runs of Figure 8: reads that a drive of aligned writes would not do. In the baseline the reads of \
            read-modify-writes; with several versions those at merging and overwriting, and the second and further reads \
            that a read of the host needs. The column PC-LRU tells what the buffer does alone.",
    series: &["Baseline", "PC-LRU", "MV-FTL", "WAFLASH", "fewer with MV-FTL", ALL.0],
    differs: "Without compaction only a run of more than half a page can be a version, so other partial pages are read and merged as in \
              the baseline; all of WAFLASH saves 53.8 to 88.8 % on five of six models.",
    compared: ("fewer with MV-FTL", "Baseline", "MV-FTL"),
    read: additional_reads,
};

/// Pages written, which compaction makes fewer.
pub(super) static FIGURE13: Counted = Counted {
    id: "figure13",
    title: "pages written to flash, pages of 8 KB",
    about: "Of the runs of Figure 8: all pages programmed, for whatever cause. The paper compares the FTL with \
            compaction with the one without; the last column compares all of WAFLASH with the baseline.",
    series: &["Baseline", "PC-LRU", "MV-FTL", "WAFLASH", "fewer with compaction", ALL.0],
    differs: "At the true times the drive is idle after nearly every request and merges each version, with two reads and a program. MSNFS has \
              few small partial pages, Web none that fit together.",
    compared: ("fewer with compaction", "MV-FTL", "WAFLASH"),
    read: flash_writes,
};

const VARIANTS: [&str; 4] = ["Baseline", "PC-LRU", "MV-FTL", "WAFLASH"];

/// A column: its name, the variant that is compared with, and the one compared.
type Comparison = (&'static str, &'static str, &'static str);

const ALL: Comparison = ("WAFLASH against Baseline", "Baseline", "WAFLASH");

pub(super) struct Counted {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    series: &'static [&'static str],
    /// Why values lie outside what the paper says.
    differs: &'static str,
    /// What the paper compares.
    compared: Comparison,
    read: fn(&Measured) -> Option<f64>,
}

impl Figure for Counted {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn differs(&self) -> &'static str {
        self.differs
    }

    fn series(&self) -> &'static [&'static str] {
        self.series
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        runs_at(context, PAGE, &VARIANTS)
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, replay, setting) in sent(context) {
            let run = |variant| context.run(PAGE, variant, input, &replay);
            for variant in VARIANTS {
                if let Some(value) = figure(outcomes, &run(variant), self.read) {
                    drawn.points.push(point(input, PAGE, setting, variant, value, "pages"));
                }
            }
            for (series, base, ours) in [self.compared, ALL] {
                if let Some(value) = less(outcomes, &run(base), &run(ours), self.read) {
                    let point = point(input, PAGE, setting, series, value, "%");
                    drawn.points.push(point.of_events(events(outcomes, &run("Baseline"))));
                }
            }
        }
        let reduction = self.compared.0;
        for setting in SETTINGS {
            drawn.bars(format!("pages, {setting}"), ["", "pages"], |point| {
                let shown = point.setting == setting && VARIANTS.contains(&point.series);
                shown.then(|| (point.series.to_string(), point.workload.clone()))
            });
            drawn.bars(format!("{reduction}, {setting}"), ["", "reduced by, %"], |point| {
                let shown = point.setting == setting && point.series == reduction;
                shown.then(|| (reduction.to_string(), point.workload.clone()))
            });
        }
        drawn
    }
}

//! What the paper leaves open, and what difference it makes: the drive's age, the transfer time of larger pages, the
//! queue, and how MV-FTL merges and compacts.

use super::common::{figure, flash_writes, less, mean_latency, point, replays};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Preparation, Run};

pub(super) struct Choices;

/// A choice. The first of a page size is the one that all figures have.
struct Choice {
    name: &'static str,
    page: &'static str,
    age: Preparation,
    /// What it sets on both drives.
    drive: &'static [&'static str],
    /// What it sets on WAFLASH alone.
    waflash: &'static [&'static str],
}

const USUAL: Choice = Choice { name: "as everywhere", page: "8k", age: Preparation::Touched, drive: &[], waflash: &[] };

const CHOICES: [Choice; 11] = [
    USUAL,
    Choice { name: "drive empty", age: Preparation::None, ..USUAL },
    Choice { name: "drive full", age: Preparation::Fill, ..USUAL },
    Choice { name: "transfer 102.4 us", drive: &["flash.timing.transfer=102.4us"], ..USUAL },
    Choice { name: "depth 256", drive: &["interface.queue_depth=256"], ..USUAL },
    Choice { name: "no merges when idle", waflash: &["ftl.idle_merge=false"], ..USUAL },
    Choice { name: "any mask a version", waflash: &["ftl.version_masks=any"], ..USUAL },
    Choice { name: "index out of band", waflash: &["ftl.compaction_index=oob"], ..USUAL },
    Choice { name: "regions of 64 KB", waflash: &["ftl.region=64k"], ..USUAL },
    Choice { page: "16k", ..USUAL },
    Choice { name: "transfer 204.8 us", page: "16k", drive: &["flash.timing.transfer=204.8us"], ..USUAL },
];

/// What is chosen of the paper's workloads: one with few unaligned writes, one where most are, and one of half pages.
const TOLD_BY: [&str; 3] = ["MSNFS model", "RA model", "Web model"];

impl Figure for Choices {
    fn id(&self) -> &'static str {
        "choices"
    }

    fn title(&self) -> &'static str {
        "what the paper leaves open, and what it changes"
    }

    fn about(&self) -> &'static str {
        "The drive's age: everywhere else all that a trace touches was written before, so that a partial page has an old \
         version; on an empty drive the first write of a page needs no read, and on a full one all other pages hold data, \
         too. The transfer time: Table 1 has one for all page sizes; here larger pages take longer in proportion. The \
         commands that the drive takes at a time, 32 everywhere else. Of MV-FTL: whether versions are merged when the drive \
         is idle; whether a mask that is none of the patterns may be a version, too; whether a compacted page has its index in \
         its first sector (Figure 7) or in its OOB area (section 5.6 allows both); how large a region is, 1 MB everywhere else."
    }

    fn series(&self) -> &'static [&'static str] {
        &["Baseline", "gain of WAFLASH", "flash writes more"]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let mut runs = Vec::new();
        for (input, choice, replay, _) in cases(context) {
            runs.extend(["Baseline", "WAFLASH"].map(|variant| run(context, variant, input, choice, &replay)));
        }
        runs
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (input, choice, replay, how) in cases(context) {
            let setting = format!("{how}, {}", choice.name);
            let run = |variant| run(context, variant, input, choice, &replay);
            if let Some(value) = figure(outcomes, &run("Baseline"), mean_latency) {
                drawn.points.push(point(input, choice.page, &setting, "Baseline", value / 1e3, "us"));
            }
            if let Some(value) = less(outcomes, &run("Baseline"), &run("WAFLASH"), mean_latency) {
                drawn.points.push(point(input, choice.page, &setting, "gain of WAFLASH", value, "%"));
            }
            if let Some(value) = less(outcomes, &run("Baseline"), &run("WAFLASH"), flash_writes) {
                // Not minus zero.
                drawn.points.push(point(input, choice.page, &setting, "flash writes more", 0.0 - value, "%"));
            }
        }
        drawn
    }
}

fn cases(context: &PaperContext) -> Vec<(&Input, &'static Choice, String, &'static str)> {
    let mut cases = Vec::new();
    for input in TOLD_BY.iter().filter_map(|name| context.input(name)).chain(context.inputs("excerpt").take(1)) {
        for (replay, how) in replays(context, input) {
            cases.extend(CHOICES.iter().map(|choice| (input, choice, replay.clone(), how)));
        }
    }
    cases
}

fn run(context: &PaperContext, variant: &str, input: &Input, choice: &Choice, replay: &str) -> Run {
    let run = context.run(choice.page, variant, input, replay).prepared(choice.age);
    let alone = if variant == "WAFLASH" { choice.waflash } else { &[] };
    choice.drive.iter().chain(alone).fold(run, |run, set| run.with(*set))
}

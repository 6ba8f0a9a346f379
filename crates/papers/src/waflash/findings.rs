//! Our own finding: where WAFLASH does not pay, and what it costs in flash writes, memory and the latency of reads.

use super::common::{PAGE, figure, flash_writes, less, mean_latency, point, sent};
use crate::frame::{Drawn, Figure, Input, Measured, Outcomes, PaperContext, Run};

pub(super) struct Findings;

/// Table 1's dies with fewer blocks, so that recordings of a device of 8 GiB keep garbage collection at work. (With so few
/// blocks a plane, 7 % of spare would leave collection nothing.)
const SMALL: [&str; 2] = ["flash.blocks_per_plane=80", "capacity.over_provisioning=15%"];

/// A column, what it is made of, and whether more than the baseline is meant.
type Column = (&'static str, fn(&Measured) -> Option<f64>);

const LESS: [Column; 4] = [
    ("mean latency less", mean_latency),
    ("read latency less", |measured| measured.number("latency_ns.read.mean")),
    ("write latency less", |measured| measured.number("latency_ns.write.mean")),
    ("flush latency less", |measured| measured.number("latency_ns.flush.mean")),
];

const MORE: [Column; 3] = [
    ("flash writes more", flash_writes),
    ("flash reads more", |measured| measured.number("flash.reads.total")),
    ("memory more", |measured| Some(measured.total("memory")? - measured.number("memory.buffer_bytes").unwrap_or(0.0))),
];

impl Figure for Findings {
    fn id(&self) -> &'static str {
        "findings"
    }

    fn title(&self) -> &'static str {
        "where WAFLASH pays and what it costs, pages of 8 KB"
    }

    fn about(&self) -> &'static str {
        "All of WAFLASH against the baseline. The recordings are of real programs and run in a closed loop of 8 on a small \
         drive: Table 1's dies with so few blocks that blocks are erased and used again; `index out of band` is WAFLASH \
         with ftl.compaction_index=oob, `any mask` with ftl.version_masks=any, which is not the paper's. The others run as in Figure 8, where nothing is ever collected. Memory \
         is all that the drive's controller needs besides the buffer's data."
    }

    fn series(&self) -> &'static [&'static str] {
        &[
            "mean latency less",
            "read latency less",
            "write latency less",
            "flush latency less",
            "flash writes more",
            "flash reads more",
            "memory more",
            "write amplification",
            "of the baseline",
        ]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let runs = cases(context).into_iter();
        runs.flat_map(|case| ["Baseline", "WAFLASH"].map(|variant| run(context, variant, &case))).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for case in cases(context) {
            let (input, _, setting, ..) = case;
            let (base, ours) = (run(context, "Baseline", &case), run(context, "WAFLASH", &case));
            for (series, read) in LESS {
                if let Some(value) = less(outcomes, &base, &ours, read) {
                    drawn.points.push(point(input, PAGE, setting, series, value, "%"));
                }
            }
            for (series, read) in MORE {
                if let Some(value) = less(outcomes, &base, &ours, read) {
                    // Not minus zero.
                    drawn.points.push(point(input, PAGE, setting, series, 0.0 - value, "%"));
                }
            }
            for (series, run) in [("write amplification", &ours), ("of the baseline", &base)] {
                if let Some(value) = figure(outcomes, run, |run| run.number("write_amplification.total")) {
                    drawn.points.push(point(input, PAGE, setting, series, value, "x"));
                }
            }
        }
        drawn
    }
}

/// Input, replay, what tables call it, whether the drive is small, and what is set on WAFLASH besides.
type Case<'s> = (&'s Input, String, &'static str, bool, &'static [&'static str]);

fn cases(context: &PaperContext) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> =
        sent(context).into_iter().map(|(input, replay, setting)| (input, replay, setting, false, &[][..])).collect();
    for input in context.inputs("recording") {
        cases.push((input, "closed:8".to_string(), "small drive", true, &[]));
        let out_of_band: &[&str] = &["ftl.compaction_index=oob"];
        cases.push((input, "closed:8".to_string(), "small drive, index out of band", true, out_of_band));
        cases.push((input, "closed:8".to_string(), "small drive, any mask", true, &["ftl.version_masks=any"]));
    }
    cases
}

fn run(context: &PaperContext, variant: &str, case: &Case<'_>) -> Run {
    let (input, replay, _, small, besides) = case;
    let besides = if variant == "WAFLASH" { *besides } else { &[] };
    let run = besides.iter().fold(context.run(PAGE, variant, input, replay), |run, set| run.with(*set));
    if !*small || context.is_quick() {
        return run;
    }
    let run = SMALL.iter().fold(run, |run, set| run.with(*set));
    run.prepared(crate::frame::Preparation::Fill)
}

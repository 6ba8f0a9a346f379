//! Figure 17: Filebench at pages of 16 KB, recorded once and replayed on both drives.

use super::common::{additional_reads, figure, flash_writes, less, partial_page_writes, point};
use crate::frame::{Drawn, Figure, Input, Measured, Outcomes, PaperContext, Point, Run};

pub(super) struct Figure17;

/// The emulated drive has 48 GB (section 5.1); what the page size leaves of Table 1's 4096 blocks a plane.
const CAPACITY: &str = "flash.blocks_per_plane=192";

/// How the personalities did their I/O: the group of the recordings, and what tables call it.
const SETTINGS: [(&str, &str); 2] = [("filebench", "page cache"), ("filebench-direct", "direct I/O")];

/// Requests in flight: all that the drive takes, but a thread with direct I/O has one, and randomwrite has 3 threads.
fn depth(input: &Input) -> &'static str {
    match (input.group.as_str(), input.stands_for.as_str()) {
        ("filebench-direct", "Random Write") => "closed:3",
        _ => "closed:32",
    }
}

impl Figure for Figure17 {
    fn id(&self) -> &'static str {
        "figure17"
    }

    fn title(&self) -> &'static str {
        "Filebench's throughput, pages of 16 KB"
    }

    fn about(&self) -> &'static str {
        "Block requests of each personality on ext4, through the page cache and past it, recorded once and sent to both \
         drives in a closed loop of 32 (3 for randomwrite's threads past the page cache), in virtual time. The baseline is \
         VSSIM's: FIFO buffer, page FTL. The paper measured operations a second of Filebench itself, with kernel and QEMU, on \
         a drive in real time; ours are the drive's requests a second, without a file system that waits for them."
    }

    fn differs(&self) -> &'static str {
        "Half a page is no version and two halves do not share a page with the index where Figure 7 draws it (with the index \
         out of band: 94.5 %); webserver and webproxy leave hardly a partial page. The paper measured in a QEMU guest."
    }

    fn series(&self) -> &'static [&'static str] {
        &[
            "Baseline",
            "WAFLASH",
            "gain of WAFLASH",
            "gain, index out of band",
            "partial of flash writes",
            "partial pages less",
            "additional reads less",
            "flash writes less",
        ]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let inputs = SETTINGS.iter().flat_map(|(group, _)| context.inputs(group));
        let runs = inputs.flat_map(|input| {
            let paper = ["VSSIM", "WAFLASH"].map(|variant| run(context, variant, input));
            paper.into_iter().chain([out_of_band(context, input)])
        });
        runs.collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (group, setting) in SETTINGS {
            for input in context.inputs(group) {
                drawn.points.extend(points(context, outcomes, input, setting).into_iter().flatten());
            }
        }
        for (_, setting) in SETTINGS {
            drawn.bars(format!("IOPS, {setting}"), ["", "IOPS"], |point| {
                let shown = point.setting == setting && point.unit == "requests/s";
                shown.then(|| (point.series.to_string(), point.workload.clone()))
            });
            drawn.bars(format!("gain over the baseline, {setting}"), ["", "IOPS more, %"], |point| {
                let shown = point.setting == setting && point.series.starts_with("gain");
                shown.then(|| (point.series.to_string(), point.workload.clone()))
            });
        }
        drawn
    }
}

/// A row: the requests a second, and where a difference comes from.
fn points(context: &PaperContext, outcomes: &Outcomes, input: &Input, setting: &str) -> [Option<Point>; 8] {
    let (base, ours) = (run(context, "VSSIM", input), run(context, "WAFLASH", input));
    let of_row = |series, value: Option<f64>, unit| {
        let workload = input.stands_for.clone();
        Some(Point { workload, ..point(input, "16k", setting, series, value?, unit) })
    };
    let [base_rate, our_rate] = [&base, &ours].map(|run| figure(outcomes, run, rate));
    let gained = |ours: Option<f64>| {
        base_rate.zip(ours).filter(|(base, _)| *base > 0.0).map(|(base, ours)| 100.0 * (ours / base - 1.0))
    };
    let other = figure(outcomes, &out_of_band(context, input), rate);
    let saved = |read| less(outcomes, &base, &ours, read);
    [
        of_row("Baseline", base_rate.map(f64::round), "requests/s"),
        of_row("WAFLASH", our_rate.map(f64::round), "requests/s"),
        of_row("gain of WAFLASH", gained(our_rate), "%"),
        of_row("gain, index out of band", gained(other), "%"),
        of_row("partial of flash writes", figure(outcomes, &base, partial_share), "%"),
        of_row("partial pages less", saved(partial_page_writes), "%"),
        of_row("additional reads less", saved(additional_reads), "%"),
        of_row("flash writes less", saved(flash_writes), "%"),
    ]
}

/// WAFLASH with the index of compacted pages in their OOB area, as section 5.6 allows: two halves of pages fit into one.
fn out_of_band(context: &PaperContext, input: &Input) -> Run {
    run(context, "WAFLASH", input).with("ftl.compaction_index=oob")
}

fn rate(run: &Measured) -> Option<f64> {
    run.number("throughput.iops")
}

/// Of the pages that were written to flash, those that hold a part of a logical page; per cent.
fn partial_share(run: &Measured) -> Option<f64> {
    let writes = flash_writes(run).filter(|writes| *writes > 0.0)?;
    Some(100.0 * partial_page_writes(run)? / writes)
}

fn run(context: &PaperContext, variant: &str, input: &Input) -> Run {
    let run = context.run("16k", variant, input, depth(input));
    if context.is_quick() { run } else { run.with(CAPACITY) }
}

//! What the paper leaves open, and what difference it makes: the drive's age, the transfer time of larger pages, the
//! queue, and how MV-FTL merges and compacts.

use super::common::{flash_writes, mean_latency, mean_us, replays};
use crate::frame::{Column, Content, Figure, Label, PaperContext, Preparation, Reading, Row, names};

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

const USUAL: Choice =
    Choice { name: "as everywhere", page: "8k", age: Preparation::Footprint, drive: &[], waflash: &[] };

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

/// Columns; the first is of the baseline alone.
const COLUMNS: [Column<Reading>; 3] = [
    ("Baseline", "us", |run| mean_us(run)),
    ("gain of WAFLASH", "%", |run| run.less(mean_latency)),
    ("flash writes more", "%", |run| run.more(flash_writes)),
];

pub(super) static FIGURE: Figure = Figure {
    id: "choices",
    title: "what the paper leaves open, and what it changes",
    about: "The drive's age: everywhere else all that a trace touches was written before, so that a partial page has \
            an old version; on an empty drive the first write of a page needs no read, and on a full one all other \
            pages hold data, too. The transfer time: Table 1 has one for all page sizes; here larger pages take longer \
            in proportion. The commands that the drive takes at a time, 32 everywhere else. Of MV-FTL: whether \
            versions are merged when the drive is idle; whether a mask that is none of the patterns may be a version, \
            too; whether a compacted page has its index in its first sector (Figure 7) or in its OOB area (section 5.6 \
            allows both); how large a region is, 1 MB everywhere else.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for input in TOLD_BY.iter().filter_map(|name| context.input(name)).chain(context.inputs("excerpt").take(1)) {
        for (replay, how) in replays(context, input) {
            for choice in &CHOICES {
                let [base, ours] = ["Baseline", "WAFLASH"].map(|variant| {
                    let alone = if variant == "WAFLASH" { choice.waflash } else { &[] };
                    let run = context.run(choice.page, variant, input, &replay).prepared(choice.age);
                    run.with_all(choice.drive).with_all(alone)
                });
                let label = Label::of(input, choice.page, format!("{how}, {}", choice.name));
                rows.extend([label.row(&base, &COLUMNS[..1]), label.row(&ours, &COLUMNS[1..]).against(&base)]);
            }
        }
    }
    rows
}

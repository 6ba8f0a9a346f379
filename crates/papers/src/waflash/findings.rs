//! Our own finding: where WAFLASH does not pay, and what it costs in flash writes, memory and the latency of reads.

use super::common::{PAGE, flash_writes, mean_latency, sent};
use crate::frame::{
    Column, Content, Figure, Input, Label, Measured, PaperContext, Preparation, Reading, Row, Run, names,
};

/// Table 1's dies with fewer blocks, so that recordings of a device of 8 GiB keep garbage collection at work. (With so few
/// blocks a plane, 7 % of spare would leave collection nothing.)
const SMALL: [&str; 2] = ["flash.blocks_per_plane=80", "capacity.over_provisioning=15%"];

/// What is set on WAFLASH on the small drive, and what tables call it.
const SETTINGS: [(&str, &[&str]); 3] = [
    ("small drive", &[]),
    ("small drive, index out of band", &["ftl.compaction_index=oob"]),
    ("small drive, any mask", &["ftl.version_masks=any"]),
];

/// Columns; the last is of the baseline alone.
const COLUMNS: [Column<Reading>; 9] = [
    ("mean latency less", "%", |run| run.less(mean_latency)),
    ("read latency less", "%", |run| run.less(|run| run.number("latency_ns.read.mean"))),
    ("write latency less", "%", |run| run.less(|run| run.number("latency_ns.write.mean"))),
    ("flush latency less", "%", |run| run.less(|run| run.number("latency_ns.flush.mean"))),
    ("flash writes more", "%", |run| run.more(flash_writes)),
    ("flash reads more", "%", |run| run.more(|run| run.number("flash.reads.total"))),
    ("memory more", "%", |run| run.more(memory)),
    ("write amplification", "x", |run| run.number("write_amplification.total")),
    ("of the baseline", "x", |run| run.number("write_amplification.total")),
];

/// Bytes of all that the controller needs besides the buffer's data.
fn memory(run: &Measured) -> Option<f64> {
    Some(run.total("memory")? - run.number("memory.buffer_bytes").unwrap_or(0.0))
}

pub(super) static FIGURE: Figure = Figure {
    id: "findings",
    title: "where WAFLASH pays and what it costs, pages of 8 KB",
    about: "All of WAFLASH against the baseline. The recordings are of real programs and run in a closed loop of 8 on \
            a small drive: Table 1's dies with so few blocks that blocks are erased and used again; `index out of \
            band` is WAFLASH with ftl.compaction_index=oob, `any mask` with ftl.version_masks=any, which is not the \
            paper's. The others run as in Figure 8, where nothing is ever collected. Memory is all that the drive's \
            controller needs besides the buffer's data.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels: |_, _, _| {} },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |input: &Input, setting: &str, [base, ours]: [Run; 2]| {
        let label = Label::of(input, PAGE, setting);
        rows.extend([label.row(&ours, &COLUMNS[..8]).against(&base), label.row(&base, &COLUMNS[8..])]);
    };
    for (input, replay, setting) in sent(context) {
        add(input, setting, ["Baseline", "WAFLASH"].map(|variant| context.run(PAGE, variant, input, &replay)));
    }
    for input in context.inputs("recording") {
        for (setting, besides) in SETTINGS {
            let run = |variant, besides: &[&str]| {
                let run = context.run(PAGE, variant, input, "closed:8").with_all(besides);
                if context.is_quick() { run } else { run.with_all(&SMALL).prepared(Preparation::Fill) }
            };
            add(input, setting, [run("Baseline", &[]), run("WAFLASH", besides)]);
        }
    }
    rows
}

//! Figure 17: Filebench at pages of 16 KB, recorded once and replayed on both drives.

use super::common::{additional_reads, flash_writes, partial_page_writes};
use crate::frame::{
    Column, Content, Drawn, Figure, Input, Label, Measured, Outcomes, PaperContext, Reading, Row, names,
};

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

const RATE: &str = "throughput.iops";

/// Columns of the baseline, of WAFLASH, of WAFLASH with the index out of band, and where a difference comes from.
const COLUMNS: [Column<Reading>; 8] = [
    ("Baseline", "requests/s", |run| run.number(RATE).map(f64::round)),
    ("WAFLASH", "requests/s", |run| run.number(RATE).map(f64::round)),
    ("gain of WAFLASH", "%", gain),
    ("gain, index out of band", "%", gain),
    ("partial of flash writes", "%", |run| partial_share(run)),
    ("partial pages less", "%", |run| run.less(partial_page_writes)),
    ("additional reads less", "%", |run| run.less(additional_reads)),
    ("flash writes less", "%", |run| run.less(flash_writes)),
];

fn gain(run: &Reading) -> Option<f64> {
    Some(100.0 * (run.relative(RATE)? - 1.0))
}

/// Of the pages that were written to flash, those that hold a part of a logical page; per cent.
fn partial_share(run: &Measured) -> Option<f64> {
    let writes = flash_writes(run).filter(|writes| *writes > 0.0)?;
    Some(100.0 * partial_page_writes(run)? / writes)
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure17",
    title: "Filebench's throughput, pages of 16 KB",
    about: "Block requests of each personality on ext4, through the page cache and past it, recorded once and sent to \
            both drives in a closed loop of 32 (3 for randomwrite's threads past the page cache), in virtual time. The \
            baseline is VSSIM's: FIFO buffer, page FTL. The paper measured operations a second of Filebench itself, \
            with kernel and QEMU, on a drive in real time; ours are the drive's requests a second, without a file \
            system that waits for them.",
    differs: "Half a page is no version and two halves do not share a page with the index where Figure 7 draws it \
              (with the index out of band: 94.5 %); webserver and webproxy leave hardly a partial page. The paper \
              measured in a QEMU guest.",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    for (group, setting) in SETTINGS {
        for input in context.inputs(group) {
            let [base, ours] = ["VSSIM", "WAFLASH"].map(|variant| {
                let run = context.run("16k", variant, input, depth(input));
                if context.is_quick() { run } else { run.with(CAPACITY) }
            });
            // As section 5.6 allows: two halves of pages fit into one.
            let out_of_band = ours.clone().with("ftl.compaction_index=oob");
            let label = Label { workload: input.stands_for.clone(), ..Label::of(input, "16k", setting) };
            rows.extend([
                label.row(&base, &COLUMNS[..1]),
                label.row(&ours, &COLUMNS[1..3]).against(&base),
                label.row(&out_of_band, &COLUMNS[3..4]).against(&base),
                label.row(&base, &COLUMNS[4..5]),
                label.row(&ours, &COLUMNS[5..]).against(&base),
            ]);
        }
    }
    rows
}

fn panels(_context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for (_, setting) in SETTINGS {
        drawn.bars_of(format!("IOPS, {setting}"), "IOPS", |point| {
            point.setting == setting && point.unit == "requests/s"
        });
        drawn.bars_of(format!("gain over the baseline, {setting}"), "IOPS more, %", |point| {
            point.setting == setting && point.series.starts_with("gain")
        });
    }
}

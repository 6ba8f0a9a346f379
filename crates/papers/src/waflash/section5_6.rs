//! Section 5.6: what WAFLASH costs in memory and in flash.

use ssdlab_device::DriveConfig;

use super::common::buffer;
use crate::frame::{Column, Content, Drawn, Figure, Input, Label, Measured, Outcomes, PaperContext, Run};

/// What the published values are of.
const SECTION: &str = "section 5.6";

/// Section 3.3: an LPN, an offset and a length.
const TRIPLE_BYTES: f64 = 6.0;

/// Section 3.2: a mapping entry.
const ENTRY_BITS: f64 = 32.0;

/// The buffer of section 5.6, MB.
const BUFFER: u64 = 256;

const LAYOUT: [Column<DriveConfig>; 4] = [
    ("PPN bits", "bits", |drive| Some(ppn_bits(drive))),
    ("PT/F bits", "bits", |drive| Some(ENTRY_BITS - ppn_bits(drive))),
    ("a triple", "bytes", |_| Some(TRIPLE_BYTES)),
    ("triples of a page", "%", |drive| Some(100.0 * TRIPLE_BYTES / f64::from(drive.flash.geometry.page_bytes))),
];

/// Bytes that the buffer keeps of its pages, shown by the buffer's size.
const TRACKED: [Column<Measured>; 2] = [
    ("PC-LRU's tracking", "%", |run| run.number("memory.buffer_distance_bytes")),
    ("all of the buffer's bookkeeping", "%", |run| {
        Some(run.number("memory.buffer_distance_bytes")? + run.number("memory.buffer_order_bytes")?)
    }),
];

fn ppn_bits(drive: &DriveConfig) -> f64 {
    let geometry = &drive.flash.geometry;
    (geometry.bytes() as f64 / f64::from(geometry.page_bytes)).log2().ceil()
}

pub(super) static FIGURE: Figure = Figure {
    id: "section5-6",
    title: "overheads",
    about: "What follows from the layout is computed from the description: an entry of 32 bits has log2(capacity / \
            page) bits of PPN, the rest is PT/F; a triple takes 6 bytes, and the paper's worst case is one triple a \
            page. What PC-LRU tracks is read from a run with a buffer of 256 MB, per cent of the buffer: as much as \
            the buffer came to need.",
    differs: "Ours takes a bit, a number and half a counter for each tick of a clock with twice as many ticks as \
              pages; the paper does not say how it tracks distances.",
    series: &[LAYOUT[0].0, LAYOUT[1].0, LAYOUT[2].0, LAYOUT[3].0, TRACKED[0].0, TRACKED[1].0],
    content: Content::Own { runs, draw },
};

fn runs(context: &PaperContext) -> Vec<Run> {
    input(context).into_iter().flat_map(|input| ["4k", "16k"].map(|page| run(context, page, input))).collect()
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    for page in ["4k", "8k", "16k"] {
        let Ok(drive) = context.drive(page) else { continue };
        let label = Label { setting: "layout".to_string(), ..Label::described(&drive.name, page, SECTION) };
        drawn.columns(&label, &drive, &LAYOUT);
    }
    let Some(input) = input(context) else { return drawn };
    for page in ["4k", "16k"] {
        let run = run(context, page, input);
        let Ok(drive) = context.config(&run) else { continue };
        let label = Label { stands_for: SECTION.to_string(), ..Label::of(input, page, "256 MB buffer") };
        for (series, unit, read) in TRACKED {
            let share = outcomes.get(&run).and_then(read).map(|bytes| 100.0 * bytes / drive.buffer.bytes as f64);
            drawn.points.extend(share.map(|share| label.point(series, share, unit)));
        }
    }
    drawn
}

/// A workload with many partial pages.
fn input(context: &PaperContext) -> Option<&Input> {
    context.input("unaligned fio").or_else(|| super::common::workloads(context).next())
}

fn run(context: &PaperContext, page: &str, input: &Input) -> Run {
    context.run(page, "PC-LRU", input, "timed").with(buffer(context, BUFFER))
}

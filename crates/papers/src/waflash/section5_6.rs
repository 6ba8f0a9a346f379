//! Section 5.6: what WAFLASH costs in memory and in flash.

use super::common::{buffer, figure, point};
use crate::frame::{Drawn, Figure, Input, Measured, Outcomes, PaperContext, Point, Run};

pub(super) struct Section56;

/// Section 3.3: an LPN, an offset and a length.
const TRIPLE_BYTES: f64 = 6.0;

/// Section 3.2: a mapping entry.
const ENTRY_BITS: f64 = 32.0;

/// A column, and how it is read.
type Column = (&'static str, fn(&Measured) -> Option<f64>);

/// The buffer of section 5.6, MB.
const BUFFER: u64 = 256;

impl Figure for Section56 {
    fn id(&self) -> &'static str {
        "section5-6"
    }

    fn title(&self) -> &'static str {
        "overheads"
    }

    fn about(&self) -> &'static str {
        "What follows from the layout is computed from the description: an entry of 32 bits has log2(capacity / page) bits of \
         PPN, the rest is PT/F; a triple takes 6 bytes, and the paper's worst case is one triple a page. What PC-LRU \
         tracks is read from a run with a buffer of 256 MB, per cent of the buffer: as much as the buffer came to need."
    }

    fn differs(&self) -> &'static str {
        "Ours takes a bit, a number and half a counter for each tick of a clock with twice as many ticks as pages; the paper \
         does not say how it tracks distances."
    }

    fn series(&self) -> &'static [&'static str] {
        &[
            "PPN bits",
            "PT/F bits",
            "a triple",
            "triples of a page",
            "PC-LRU's tracking",
            "all of the buffer's bookkeeping",
        ]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        input(context).into_iter().flat_map(|input| ["4k", "16k"].map(|page| run(context, page, input))).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for page in ["4k", "8k", "16k"] {
            let Ok(drive) = context.drive(page) else { continue };
            let page_bytes = f64::from(drive.flash.geometry.page_bytes);
            let ppn = (drive.flash.geometry.bytes() as f64 / page_bytes).log2().ceil();
            let mut add = |series, value, unit| {
                drawn.points.push(Point {
                    workload: drive.name.clone(),
                    page_size: page.to_string(),
                    setting: "layout".to_string(),
                    series,
                    value,
                    unit,
                    input: "description".to_string(),
                    stands_for: "section 5.6".to_string(),
                    events: None,
                });
            };
            add("PPN bits", ppn, "bits");
            add("PT/F bits", ENTRY_BITS - ppn, "bits");
            add("a triple", TRIPLE_BYTES, "bytes");
            add("triples of a page", 100.0 * TRIPLE_BYTES / page_bytes, "%");
        }
        let Some(input) = input(context) else { return drawn };
        for page in ["4k", "16k"] {
            let run = run(context, page, input);
            let Ok(drive) = context.config(&run) else { continue };
            let keys: [Column; 2] = [
                ("PC-LRU's tracking", |run| run.number("memory.buffer_distance_bytes")),
                ("all of the buffer's bookkeeping", |run| {
                    Some(run.number("memory.buffer_distance_bytes")? + run.number("memory.buffer_order_bytes")?)
                }),
            ];
            for (series, read) in keys {
                if let Some(bytes) = figure(outcomes, &run, read) {
                    let share = 100.0 * bytes / drive.buffer.bytes as f64;
                    let mut point = point(input, page, "256 MB buffer", series, share, "%");
                    point.stands_for = "section 5.6".to_string();
                    drawn.points.push(point);
                }
            }
        }
        drawn
    }
}

/// A workload with many partial pages.
fn input(context: &PaperContext) -> Option<&Input> {
    context.input("unaligned fio").or_else(|| super::common::workloads(context).next())
}

fn run(context: &PaperContext, page: &str, input: &Input) -> Run {
    context.run(page, "PC-LRU", input, "timed").with(buffer(context, BUFFER))
}

//! Figure 13: SHRD's rate by the size of the log.

use super::common::{Column, DRIVE, columns, misses_a_write, share_of_driver, sized, write_rate};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run, Scale, leading_number, names};

pub(super) struct Figure13;

/// Sizes of the random-write log buffer, MB; the text says 1 to 256.
const SIZES: [u64; 5] = [1, 4, 16, 64, 256];

const COLUMNS: [Column; 4] = [
    ("write IOPS", "K", write_rate),
    ("map misses per write", "", misses_a_write),
    ("map pages per remap", "", |run| share_of_driver(run, "remapped_map_pages", "remaps")),
    ("write amplification", "", |run| run.number("write_amplification.total")),
];

fn run(context: &PaperContext, input: &Input, size: u64) -> Run {
    context.run(DRIVE, "SHRD", input, "").with(format!("ftl.rwlb={}", sized(context, size)))
}

impl Figure for Figure13 {
    fn id(&self) -> &'static str {
        "figure13"
    }

    fn title(&self) -> &'static str {
        "SHRD's rate, by the size of the random-write log buffer"
    }

    fn about(&self) -> &'static str {
        "fio's random writes. The paper: the rate rises with the log, and saturates."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        context.inputs("fio").flat_map(|input| SIZES.map(|setting| run(context, input, setting))).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in context.inputs("fio") {
            for setting in SIZES {
                let name = format!("{setting} MB");
                columns(&mut drawn, outcomes, (&run(context, input, setting), input, &name), &COLUMNS);
            }
        }
        for (series, y) in [("write IOPS", "write IOPS, thousands"), ("map misses per write", "map misses per write")] {
            drawn.lines(series, Scale::Log, ["random-write log buffer, MB", y], |point| {
                let size = leading_number(&point.setting).filter(|_| point.series == series)?;
                Some((point.workload.clone(), size))
            });
        }
        drawn
    }
}

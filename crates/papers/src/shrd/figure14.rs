//! Figure 14: SHRD's rate by the threshold of requests that go to the log.

use super::common::{Column, DRIVE, columns, misses_a_write, share_of_driver, write_rate};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run, Scale, leading_number, names};

pub(super) struct Figure14;

/// Thresholds, and the description of the driver with each.
const THRESHOLDS: [(&str, &str); 4] = [
    ("4 KB", "threshold-4k.toml"),
    ("32 KB", "threshold-32k.toml"),
    ("128 KB", "shrd.toml"),
    ("512 KB", "threshold-512k.toml"),
];

const COLUMNS: [Column; 4] = [
    ("write IOPS", "K", write_rate),
    ("map misses per write", "", misses_a_write),
    ("map pages per remap", "", |run| share_of_driver(run, "remapped_map_pages", "remaps")),
    ("write amplification", "", |run| run.number("write_amplification.total")),
];

fn run(context: &PaperContext, input: &Input, (_, host): (&str, &str)) -> Run {
    let replay = if input.group == "fio" { "" } else { "closed:32" };
    Run { host: Some(host.to_string()), ..context.run(DRIVE, "SHRD", input, replay) }
}

/// fio writes 4 KB only: recordings with larger requests, too.
fn inputs(context: &PaperContext) -> impl Iterator<Item = &Input> {
    ["fio", "filebench", "recording"].into_iter().flat_map(|group| context.inputs(group))
}

impl Figure for Figure14 {
    fn id(&self) -> &'static str {
        "figure14"
    }

    fn title(&self) -> &'static str {
        "SHRD's rate, by the threshold of requests that go to the log"
    }

    fn about(&self) -> &'static str {
        "A cache of 1 MB. The paper: the rate rises with the threshold, and falls when it is too large."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        inputs(context).flat_map(|input| THRESHOLDS.map(|setting| run(context, input, setting))).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in inputs(context) {
            for setting in THRESHOLDS {
                let name = setting.0.to_string();
                columns(&mut drawn, outcomes, (&run(context, input, setting), input, &name), &COLUMNS);
            }
        }
        drawn.lines("write IOPS", Scale::Log, ["threshold, KB", "write IOPS, thousands"], |point| {
            let threshold = leading_number(&point.setting).filter(|_| point.series == "write IOPS")?;
            Some((point.workload.clone(), threshold))
        });
        drawn
    }
}

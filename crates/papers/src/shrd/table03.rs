//! Table 3: why packing stops.

use super::common::{Column, SHRD, columns, share_of_driver, workloads};
use super::figure08;
use crate::frame::{Drawn, Figure, Input, Measured, Outcomes, PaperContext, Run, names};

pub(super) struct Table03;

const COLUMNS: [Column; 4] = [
    ("no request", "%", |run| of_packs(run, "packs_closed_idle")),
    ("flush", "%", |run| of_packs(run, "packs_closed_flush")),
    ("full", "%", |run| of_packs(run, "packs_closed_full")),
    ("twrites below 32 KB", "%", |run| of_packs(run, "packs_below_32k")),
];

fn of_packs(run: &Measured, name: &str) -> Option<f64> {
    share_of_driver(run, name, "twrites").map(|share| 100.0 * share)
}

/// SHRD's run of a workload, which is that of Figure 8.
fn run(context: &PaperContext, input: &Input) -> Option<Run> {
    figure08::rows(context, input).into_iter().find(|row| row.name == SHRD).map(|row| row.run)
}

impl Figure for Table03 {
    fn id(&self) -> &'static str {
        "table03"
    }

    fn title(&self) -> &'static str {
        "why packing stops"
    }

    fn about(&self) -> &'static str {
        "Counted by the driver in Figure 8's runs, of all packs. No request: the instant was over. Our requests of one instant are packed \
         together; the paper's driver packs what waits in the block layer's queue."
    }

    fn differs(&self) -> &'static str {
        "Recordings are replayed with 32 requests in flight and no block layer in between, so a pack ends when no request of \
         its instant is left."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        workloads(context).into_iter().filter_map(|input| run(context, input)).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in workloads(context) {
            if let Some(run) = run(context, input) {
                columns(&mut drawn, outcomes, (&run, input, ""), &COLUMNS);
            }
        }
        drawn
    }
}

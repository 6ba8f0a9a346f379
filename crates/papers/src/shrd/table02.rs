//! Table 2: what the driver packs, and what a remap touches.

use super::common::{Column, SHRD, columns, of_driver, share_of_driver, workloads};
use super::figure08;
use crate::frame::{Drawn, Figure, Input, Measured, Outcomes, PaperContext, Run, names};

pub(super) struct Table02;

const COLUMNS: [Column; 4] = [
    ("small requests", "%", small),
    ("requests per twrite", "", |run| share_of_driver(run, "packed_requests", "twrites")),
    ("pages per twrite", "", |run| share_of_driver(run, "packed_units", "twrites")),
    ("map pages per remap", "", |run| share_of_driver(run, "remapped_map_pages", "remaps")),
];

/// Writes that went to the log, of all writes.
fn small(run: &Measured) -> Option<f64> {
    let writes = run.number("latency_ns.write.count").filter(|&writes| writes > 0.0)?;
    of_driver(run, "small_writes").map(|small| 100.0 * small / writes)
}

/// SHRD's run of a workload, which is that of Figure 8.
fn run(context: &PaperContext, input: &Input) -> Option<Run> {
    figure08::rows(context, input).into_iter().find(|row| row.name == SHRD).map(|row| row.run)
}

impl Figure for Table02 {
    fn id(&self) -> &'static str {
        "table02"
    }

    fn title(&self) -> &'static str {
        "small requests, packs and remaps"
    }

    fn about(&self) -> &'static str {
        "Counted by the driver in Figure 8's runs. Small requests: writes that went to the log, of all writes. Map pages a remap: the map pages of \
         4 KB of its 128 oLPNs. Uniform writes over 32 GB are on 8,192 map pages, so 128 neighbours of 16,384 sorted entries are on \
         1 + 127 * (8192 / 16384) * (1 - e^-2) = 55.9 of them: the paper's 5.74 needs map pages of 64 KB, or a smaller space."
    }

    fn differs(&self) -> &'static str {
        "The workloads are other ones (Table 1). Uniform writes over 32 GB cannot give fio 5.74 map pages per remap with map \
         pages of 4 KB."
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

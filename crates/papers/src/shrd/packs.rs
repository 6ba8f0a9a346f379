//! Tables 2 and 3, counted by the driver in Figure 8's runs: what it packs and what a remap touches, and why packing stops.

use super::common::{MAP_PAGES_A_REMAP, SHRD, of_driver, share_of_driver, workloads};
use super::figure08;
use crate::frame::{Column, Content, Figure, Label, Measured, PaperContext, Reading, Row, names};

const PACKS: [Column<Reading>; 4] = [
    ("small requests", "%", |run| small(run)),
    ("requests per twrite", "", |run| share_of_driver(run, "packed_requests", "twrites")),
    ("pages per twrite", "", |run| share_of_driver(run, "packed_units", "twrites")),
    MAP_PAGES_A_REMAP,
];

const ENDS: [Column<Reading>; 4] = [
    ("no request", "%", |run| of_packs(run, "packs_closed_idle")),
    ("flush", "%", |run| of_packs(run, "packs_closed_flush")),
    ("full", "%", |run| of_packs(run, "packs_closed_full")),
    ("twrites below 32 KB", "%", |run| of_packs(run, "packs_below_32k")),
];

/// Writes that went to the log, of all writes.
fn small(run: &Measured) -> Option<f64> {
    let writes = run.number("latency_ns.write.count").filter(|&writes| writes > 0.0)?;
    of_driver(run, "small_writes").map(|small| 100.0 * small / writes)
}

fn of_packs(run: &Measured, name: &str) -> Option<f64> {
    share_of_driver(run, name, "twrites").map(|share| 100.0 * share)
}

/// SHRD's run of each workload, which is that of Figure 8.
fn rows(context: &PaperContext, columns: &'static [Column<Reading>]) -> Vec<Row> {
    let row = |input| {
        let shrd = figure08::systems_of(context, input).into_iter().find(|one| one.name == SHRD)?;
        Some(Label::of(input, "", "").row(&shrd.run, columns))
    };
    workloads(context).into_iter().filter_map(row).collect()
}

pub(super) static TABLE02: Figure = Figure {
    id: "table02",
    title: "small requests, packs and remaps",
    about: "Counted by the driver in Figure 8's runs. Small requests: writes that went to the log, of all writes. Map \
            pages a remap: the map pages of 4 KB of its 128 oLPNs. Uniform writes over 32 GB are on 8,192 map pages, \
            so 128 neighbours of 16,384 sorted entries are on 1 + 127 * (8192 / 16384) * (1 - e^-2) = 55.9 of them: \
            the paper's 5.74 needs map pages of 64 KB, or a smaller space.",
    differs: "The workloads are other ones (Table 1). Uniform writes over 32 GB cannot give fio 5.74 map pages per \
              remap with map pages of 4 KB.",
    series: &names(&PACKS),
    content: Content::Runs { rows: |context| rows(context, &PACKS), panels: |_, _, _| {} },
};

pub(super) static TABLE03: Figure = Figure {
    id: "table03",
    title: "why packing stops",
    about: "Counted by the driver in Figure 8's runs, of all packs. No request: the instant was over. Our requests of \
            one instant are packed together; the paper's driver packs what waits in the block layer's queue.",
    differs: "Recordings are replayed with 32 requests in flight and no block layer in between, so a pack ends when no \
              request of its instant is left.",
    series: &names(&ENDS),
    content: Content::Runs { rows: |context| rows(context, &ENDS), panels: |_, _, _| {} },
};

//! Table 1: the workloads, counted from their requests.

use super::common::workloads;
use crate::frame::{Column, Content, Figure, Input, PaperContext, Survey, names};

const COLUMNS: [Column<Survey>; 4] = [
    ("space", "GB", |survey| Some(survey.space_bytes as f64 / f64::from(1 << 30))),
    ("mean write", "KB", |survey| survey.mean_write_bytes().map(|bytes| bytes / 1024.0)),
    ("writes", "%", Survey::write_percent),
    ("writes per flush", "", Survey::writes_a_flush),
];

pub(super) static FIGURE: Figure = Figure {
    id: "table01",
    title: "workload characteristics",
    about: "Counted from the requests as they reach the drive. Space: the pages of 4 KB that reads and writes touch, \
            each once; the paper calls its own 'logical space'. Recordings are of a device of 8 GB (Filebench: 48 GB), \
            and of other sizes and hosts than the paper's. Those of MariaDB are of the clients' run, without the load.",
    differs: "Our recordings are of smaller databases and file sets, and fio's is 1 GB of the paper's 32.",
    series: &names(&COLUMNS),
    content: Content::Inputs { inputs, columns: &COLUMNS },
};

fn inputs(context: &PaperContext) -> Vec<(&Input, &'static str)> {
    workloads(context).into_iter().map(|input| (input, "")).collect()
}

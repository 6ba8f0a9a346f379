//! Table 1: the workloads, counted from their requests.

use super::common::workloads;
use crate::frame::{Drawn, Figure, Outcomes, PaperContext, Run, Survey, names, point};

pub(super) struct Table01;

/// A column, its unit, and how it is read.
type Column = (&'static str, &'static str, fn(&Survey) -> Option<f64>);

const COLUMNS: [Column; 4] = [
    ("space", "GB", |survey| Some(survey.space_bytes as f64 / f64::from(1 << 30))),
    ("mean write", "KB", |survey| survey.mean_write_bytes().map(|bytes| bytes / 1024.0)),
    ("writes", "%", Survey::write_percent),
    ("writes per flush", "", Survey::writes_a_flush),
];

impl Figure for Table01 {
    fn id(&self) -> &'static str {
        "table01"
    }

    fn title(&self) -> &'static str {
        "workload characteristics"
    }

    fn about(&self) -> &'static str {
        "Counted from the requests as they reach the drive. Space: the pages of 4 KB that reads and writes touch, each once; the \
         paper calls its own 'logical space'. Recordings are of a device of 8 GB (Filebench: 48 GB), and of other sizes and hosts than the \
         paper's. Those of MariaDB are of the clients' run, without the load."
    }

    fn differs(&self) -> &'static str {
        "Our recordings are of smaller databases and file sets, and fio's is 1 GB of the paper's 32."
    }

    fn series(&self) -> &'static [&'static str] {
        const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);
        &NAMES
    }

    fn runs(&self, _scene: &PaperContext) -> Vec<Run> {
        Vec::new()
    }

    fn draw(&self, context: &PaperContext, _outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in workloads(context) {
            let Some(survey) = &input.survey else { continue };
            for (series, unit, read) in COLUMNS {
                drawn.points.extend(read(survey).map(|value| point(input, "", "", series, value, unit)));
            }
        }
        drawn
    }
}

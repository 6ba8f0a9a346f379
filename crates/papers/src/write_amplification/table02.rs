//! Table II: the workloads, as the generators send them.

use super::common::{micro, point};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Run, Survey, names};

pub(super) struct Table02;

/// A column, its unit, and how it is read.
type Column = (&'static str, &'static str, fn(&Survey) -> Option<f64>);

const COLUMNS: [Column; 8] = [
    ("writes", "%", |survey| share(survey.writes, survey.reads + survey.writes)),
    ("mean write", "KB", |survey| mean(survey.write_bytes, survey.writes)),
    ("mean read", "KB", |survey| mean(survey.read_bytes, survey.reads)),
    ("largest write", "KB", |survey| mean(survey.write_bytes_max, u64::from(survey.writes > 0))),
    ("largest read", "KB", |survey| mean(survey.read_bytes_max, u64::from(survey.reads > 0))),
    ("sequential", "%", |survey| share(survey.sequential, survey.reads + survey.writes)),
    ("writes begin and end on 4 KB", "%", |survey| Some(100.0 - survey.unaligned_percent("4k")?)),
    ("pages of 4 KB a request", "", |survey| {
        let requests = survey.reads + survey.writes;
        (requests > 0).then(|| survey.pages[0] as f64 / requests as f64)
    }),
];

fn share(of: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| 100.0 * of as f64 / all as f64)
}

fn mean(bytes: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| bytes as f64 / count as f64 / 1024.0)
}

impl Figure for Table02 {
    fn id(&self) -> &'static str {
        "table02"
    }

    fn title(&self) -> &'static str {
        "the workloads, as they are sent"
    }

    fn about(&self) -> &'static str {
        "Counted over the first 100,000 requests of a micro-benchmark and the first million of a trace's model, as SSD-I \
         is sent them. Sequential: begins where the request before ended. Aligned (Y) sequences of 512 bytes leave the \
         rest of each 4 KiB out, so they are not sequential in that sense."
    }

    fn differs(&self) -> &'static str {
        "A read of 8.3 KB is no whole number of sectors."
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
        let mut add = |input: &Input, setting: &str| {
            let Some(survey) = &input.survey else { return };
            for (series, unit, read) in COLUMNS {
                drawn.points.extend(read(survey).map(|value| point(input, "", setting, series, value, unit)));
            }
        };
        for (input, setting) in ["SQ", "RD"].iter().flat_map(|access| micro(context, access)) {
            add(input, setting);
        }
        for group in ["F1", "F1 excerpt", "F2"] {
            context.inputs(group).for_each(|input| add(input, "trace"));
        }
        drawn
    }
}

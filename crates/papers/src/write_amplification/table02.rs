//! Table II: the workloads, as the generators send them.

use super::common::micro;
use crate::frame::{Column, Content, Figure, Input, PaperContext, Survey, names};

const COLUMNS: [Column<Survey>; 8] = [
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

pub(super) static FIGURE: Figure = Figure {
    id: "table02",
    title: "the workloads, as they are sent",
    about: "Counted over the first 100,000 requests of a micro-benchmark and the first million of a trace's model, as \
            SSD-I is sent them. Sequential: begins where the request before ended. Aligned (Y) sequences of 512 bytes \
            leave the rest of each 4 KiB out, so they are not sequential in that sense.",
    differs: "A read of 8.3 KB is no whole number of sectors.",
    series: &names(&COLUMNS),
    content: Content::Inputs { inputs, columns: &COLUMNS },
};

fn inputs(context: &PaperContext) -> Vec<(&Input, &'static str)> {
    let of_group = |group| context.inputs(group).map(|input| (input, "trace"));
    let traces = ["F1", "F1 excerpt", "F2"].into_iter().flat_map(of_group);
    ["SQ", "RD"].into_iter().flat_map(|access| micro(context, access)).chain(traces).collect()
}

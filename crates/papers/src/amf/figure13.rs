//! Figure 13: blocks that the systems erase.

use super::systems::{AMF, SYSTEMS, System, TABLE4, bars, label, rows, run};
use crate::frame::{Column, Content, Drawn, Figure, Label, Measured, Outcomes, PaperContext, Reading};

const BY_BASE: &str = "by EXT4+PFTL";
pub(super) const LESS: &str = "fewer erasures of AMF";
const FEWER_PROGRAMS: &str = "fewer programs of AMF";

const COLUMNS: [Column<Reading>; 3] = [
    ("erasures", "", |run| erasures(run)),
    (BY_BASE, "x", |run| run.ratio(|run| each_byte(run, erasures))),
    ("programs", "", |run| programs(run)),
];

/// The workloads of the paper: 40,000 files are ours.
const WORKS: [&str; 7] = [TABLE4[0], TABLE4[1], TABLE4[2], TABLE4[3], TABLE4[5], TABLE4[6], TABLE4[7]];

pub(super) static FIGURE: Figure = Figure {
    id: "figure13",
    title: "erasures",
    about: "Blocks erased and pages programmed in the runs of Table 4, which begin on new drives. The last rows are over the seven workloads of the \
            paper's ten that need no database: by how many per cent AMF has less than each other system, as a sum, and as the mean of the workloads in \
            which both have any. What is compared is of as many bytes written by calls.",
    differs: "The drives are new: AFTL erases a trimmed segment soon, while PFTL and DFTL use up free blocks first. Programs do not depend on that, and AMF \
              has fewer than F2FS. The paper's workloads with the most copies (Non-Trans, OLTP and TPC-C) are missing.",
    series: &[COLUMNS[0].0, BY_BASE, COLUMNS[2].0, LESS, FEWER_PROGRAMS],
    content: Content::Runs { rows: |context| rows(context, &TABLE4, &SYSTEMS, &COLUMNS, true), panels },
};

/// Blocks erased.
pub(super) fn erasures(run: &Measured) -> Option<f64> {
    run.number("drives.0.flash.erases.total")
}

/// Some number of a run by the bytes that its calls write: Hadoop's workloads run for a time, and do not write alike in it.
fn each_byte(run: &Measured, read: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
    Some(read(run)? / run.number("bytes_written")?)
}

/// Pages programmed, also by copies inside a chip.
fn programs(run: &Measured) -> Option<f64> {
    Some(run.number("drives.0.flash.programs.total")? + run.number("drives.0.flash.copybacks.total")?)
}

fn panels(context: &PaperContext, outcomes: &Outcomes, drawn: &mut Drawn) {
    bars(drawn, "erasures by those of EXT4+PFTL", BY_BASE, "x");
    for system in SYSTEMS.into_iter().filter(|system| system.name != AMF.name) {
        fewer(context, outcomes, drawn, system, (LESS, erasures));
        fewer(context, outcomes, drawn, system, (FEWER_PROGRAMS, programs));
    }
}

/// By how many per cent AMF has less of something than a system, over all workloads.
pub(super) fn fewer(
    context: &PaperContext,
    outcomes: &Outcomes,
    drawn: &mut Drawn,
    system: System,
    (series, read): (&'static str, fn(&Measured) -> Option<f64>),
) {
    let pair = |work: &&str| {
        let (ours, theirs) = (outcomes.get(&run(context, work, AMF))?, outcomes.get(&run(context, work, system))?);
        let bytes = ours.number("bytes_written")?;
        Some((read(ours)?, each_byte(theirs, read)? * bytes))
    };
    let pairs: Option<Vec<(f64, f64)>> = WORKS.iter().map(pair).collect();
    let Some(pairs) = pairs else { return };
    let (ours, theirs) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let both = pairs.iter().filter(|pair| pair.0 > 0.0 && pair.1 > 0.0);
    let ratios: Vec<f64> = both.map(|pair| pair.0 / pair.1).collect();
    let mut point = |workload: &str, ratio: f64| {
        let (stands_for, of) = (workload.to_string(), label(context, "all", system));
        let label = Label { workload: workload.to_string(), stands_for, ..of };
        drawn.points.push(label.point(series, (1.0 - ratio) * 100.0, "%"));
    };
    if theirs > 0.0 {
        point("all, as a sum", ours / theirs);
    }
    if !ratios.is_empty() {
        point("all, as a mean", ratios.iter().sum::<f64>() / ratios.len() as f64);
    }
}

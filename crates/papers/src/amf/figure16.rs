//! Figure 16: write latencies at the drive under Postmark(H).

use super::systems::{POSTMARK, SYSTEMS, label, rows, run};
use crate::frame::{Column, Content, Curve, Drawn, Figure, Outcomes, PaperContext, Reading, Scale, names};

/// Mean write latencies of the intervals of a run.
const MEANS: &str = "drives.0.timeline.latency_by_op.write.latency_mean_ns";

const COLUMNS: [Column<Reading>; 5] = [
    ("mean", "ms", |run| milliseconds(run, "mean")),
    ("median", "ms", |run| milliseconds(run, "p50")),
    ("99 %", "ms", |run| milliseconds(run, "p99")),
    ("longest", "ms", |run| milliseconds(run, "max")),
    ("variation", "", variation),
];

/// With the paper's number of files, and as full as the paper says.
const WORKS: [&str; 2] = [POSTMARK[1], POSTMARK[3]];

pub(super) static FIGURE: Figure = Figure {
    id: "figure16",
    title: "write latencies at the drive under Postmark(H)",
    about: "Times of write commands at the drive, from their submission to their end; the variation is the standard deviation of the means of all \
            intervals of the run, by their mean. The charts have these means over time.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows: |context| rows(context, &WORKS, &SYSTEMS, &COLUMNS, false), panels },
};

fn milliseconds(run: &Reading, what: &str) -> Option<f64> {
    Some(run.number(&format!("drives.0.latency_ns.write.{what}"))? / 1e6)
}

/// The standard deviation of means of intervals, by their mean.
fn variation(run: &Reading) -> Option<f64> {
    let means: Vec<f64> = run.column(MEANS)?.into_iter().flatten().collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

fn panels(context: &PaperContext, outcomes: &Outcomes, drawn: &mut Drawn) {
    for work in WORKS {
        let curves = SYSTEMS.into_iter().filter_map(|system| {
            let measured = outcomes.get(&run(context, work, system))?;
            let times = measured.column("drives.0.timeline.time_ns")?;
            let means = measured.column(MEANS)?;
            let points = times.into_iter().zip(means).filter_map(|(at, mean)| Some((at? / 1e9, mean? / 1e6))).collect();
            Some(Curve { name: system.name.to_string(), points })
        });
        let input = label(context, work, SYSTEMS[0]).input;
        drawn.chart(work, Scale::Linear, ["time (s)", "write latency (ms)"], &input, curves);
    }
}

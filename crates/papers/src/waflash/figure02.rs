//! Figure 2: the latency of reads and of writes against the share of unaligned writes.

use super::common::{PAGE, replays};
use crate::frame::{
    Column, Content, Curve, Drawn, Figure, Input, Label, Outcomes, PaperContext, Reading, Row, Run, Scale,
    leading_number, names,
};

const COLUMNS: [Column<Reading>; 6] = [
    ("read p90", "us", |run| Some(run.number("latency_ns.read.p90")? / 1e3)),
    ("read p95", "us", |run| Some(run.number("latency_ns.read.p95")? / 1e3)),
    ("write p90", "us", |run| Some(run.number("latency_ns.write.p90")? / 1e3)),
    ("write p95", "us", |run| Some(run.number("latency_ns.write.p95")? / 1e3)),
    ("p90 against none", "x", |run| run.relative("latency_ns.write.p90")),
    ("p95 against none", "x", |run| run.relative("latency_ns.write.p95")),
];

pub(super) static FIGURE: Figure = Figure {
    id: "figure02",
    title: "latency against the share of unaligned writes",
    about: "120,000 requests of 8 KB at MSNFS's arrival times, 30 % aligned reads, writes moved by 1 KB in a share of \
            0 to 100 %; pages of 8 KB, LRU buffer, page FTL. The ratios are those of writes. The paper does not say \
            whether this experiment had a write buffer, which requests of MSNFS gave the times, nor where the writes \
            go.",
    differs: "The ratio depends on how close the drive is to saturation, and the paper does not give its rate.",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

/// How inputs are sent, whether the drive has its buffer, and what tables call both.
type Case = (String, bool, String);

/// The input without unaligned writes, and the cases of all inputs: they are sent at one rate, that of this one.
fn cases(context: &PaperContext) -> Option<(&Input, Vec<Case>)> {
    let none = context.input("0 %")?;
    let of_replay = |(replay, how): (String, &str)| {
        [(true, "64 MB buffer"), (false, "no buffer")]
            .map(|(buffered, name)| (replay.clone(), buffered, format!("{how}, {name}")))
    };
    Some((none, replays(context, none).into_iter().flat_map(of_replay).collect()))
}

fn rows(context: &PaperContext) -> Vec<Row> {
    let mut rows = Vec::new();
    let Some((none, cases)) = cases(context) else { return rows };
    for (replay, buffered, setting) in cases {
        let base = run(context, none, &replay, buffered);
        for input in context.inputs("figure2") {
            // A row is a share, and the paper's values name it.
            let label = Label { stands_for: input.name.clone(), ..Label::of(input, PAGE, &setting) };
            rows.push(label.row(&run(context, input, &replay, buffered), &COLUMNS).against(&base));
        }
    }
    rows
}

fn panels(context: &PaperContext, outcomes: &Outcomes, drawn: &mut Drawn) {
    let Some((none, cases)) = cases(context) else { return };
    for (replay, buffered, setting) in cases {
        let axes = ["unaligned writes, %", "relative to no unaligned writes"];
        drawn.lines(format!("write latency, {setting}"), Scale::Linear, axes, |point| {
            let percentile = point.series.strip_suffix(" against none")?;
            let share = leading_number(&point.workload).filter(|_| point.setting == setting)?;
            Some((percentile.to_string(), share))
        });
        for (kind, title) in [("read", "(a) reads"), ("write", "(b) writes")] {
            let curves = context.inputs("figure2").filter_map(|input| {
                let measured = outcomes.get(&run(context, input, &replay, buffered))?;
                Some(Curve { name: input.name.clone(), points: measured.distribution(kind)? })
            });
            let axes = ["latency (us)", "requests (%)"];
            drawn.chart(format!("{title}, {setting}"), Scale::Log, axes, &none.shown, curves);
        }
    }
}

fn run(context: &PaperContext, input: &Input, replay: &str, buffered: bool) -> Run {
    let run = context.run(PAGE, "Baseline", input, replay);
    if buffered { run } else { run.with("buffer.policy=none") }
}

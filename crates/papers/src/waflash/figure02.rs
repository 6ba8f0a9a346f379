//! Figure 2: the latency of reads and of writes against the share of unaligned writes.

use super::common::{PAGE, figure, point, replays};
use crate::frame::{Curve, Curves, Drawn, Figure, Measured, Outcomes, PaperContext, Run, Scale, leading_number};

pub(super) struct Figure02;

/// A column, and how it is read.
type Column = (&'static str, &'static str, fn(&Measured) -> Option<f64>);

const COLUMNS: [Column; 4] = [
    ("read p90", "us", |measured| Some(measured.number("latency_ns.read.p90")? / 1e3)),
    ("read p95", "us", |measured| Some(measured.number("latency_ns.read.p95")? / 1e3)),
    ("write p90", "us", |measured| Some(measured.number("latency_ns.write.p90")? / 1e3)),
    ("write p95", "us", |measured| Some(measured.number("latency_ns.write.p95")? / 1e3)),
];

const RATIOS: [Column; 2] = [
    ("p90 against none", "x", |measured| measured.number("latency_ns.write.p90")),
    ("p95 against none", "x", |measured| measured.number("latency_ns.write.p95")),
];

impl Figure for Figure02 {
    fn id(&self) -> &'static str {
        "figure02"
    }

    fn title(&self) -> &'static str {
        "latency against the share of unaligned writes"
    }

    fn about(&self) -> &'static str {
        "120,000 requests of 8 KB at MSNFS's arrival times, 30 % aligned reads, writes moved by 1 KB in a share of 0 to 100 %; \
         pages of 8 KB, LRU buffer, page FTL. The ratios are those of writes. The paper does not say whether this experiment \
         had a write buffer, which requests of MSNFS gave the times, nor where the writes go."
    }

    fn differs(&self) -> &'static str {
        "The ratio depends on how close the drive is to saturation, and the paper does not give its rate."
    }

    fn series(&self) -> &'static [&'static str] {
        &["read p90", "read p95", "write p90", "write p95", "p90 against none", "p95 against none"]
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        let mut runs = Vec::new();
        let Some(none) = context.input("0 %") else { return runs };
        for (replay, _) in replays(context, none) {
            for buffered in [true, false] {
                runs.extend(context.inputs("figure2").map(|input| run(context, input, &replay, buffered)));
            }
        }
        runs
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        let Some(none) = context.input("0 %") else { return drawn };
        // All shares at one rate: that of the one without unaligned writes.
        for (replay, how) in replays(context, none) {
            for buffered in [true, false] {
                let setting = format!("{how}, {}", if buffered { "64 MB buffer" } else { "no buffer" });
                let base = run(context, none, &replay, buffered);
                for input in context.inputs("figure2") {
                    let of_share = run(context, input, &replay, buffered);
                    for (series, unit, read) in COLUMNS {
                        if let Some(value) = figure(outcomes, &of_share, read) {
                            drawn.points.push(row(input, &setting, series, value, unit));
                        }
                    }
                    for (series, unit, read) in RATIOS {
                        if let (Some(base), Some(value)) =
                            (figure(outcomes, &base, read), figure(outcomes, &of_share, read))
                            && base > 0.0
                        {
                            drawn.points.push(row(input, &setting, series, value / base, unit));
                        }
                    }
                }
                let title = format!("write latency, {setting}");
                let axes = ["unaligned writes, %", "relative to no unaligned writes"];
                drawn.lines(title, Scale::Linear, axes, |point| {
                    let percentile = point.series.strip_suffix(" against none")?;
                    let share = leading_number(&point.workload).filter(|_| point.setting == setting)?;
                    Some((percentile.to_string(), share))
                });
                for (kind, title) in [("read", "(a) reads"), ("write", "(b) writes")] {
                    let curves: Vec<Curve> = context
                        .inputs("figure2")
                        .filter_map(|input| {
                            let measured = outcomes.get(&run(context, input, &replay, buffered))?;
                            Some(Curve { name: input.name.clone(), points: measured.distribution(kind)? })
                        })
                        .collect();
                    if !curves.is_empty() {
                        drawn.curves.push(Curves {
                            title: format!("{title}, {setting}"),
                            x: "latency (us)",
                            x_log: true,
                            y: "requests (%)",
                            is_scattered: false,
                            input: none.shown.clone(),
                            curves,
                        });
                    }
                }
            }
        }
        drawn
    }
}

fn run(context: &PaperContext, input: &crate::frame::Input, replay: &str, buffered: bool) -> Run {
    let run = context.run(PAGE, "Baseline", input, replay);
    if buffered { run } else { run.with("buffer.policy=none") }
}

fn row(
    input: &crate::frame::Input,
    setting: &str,
    series: &'static str,
    value: f64,
    unit: &'static str,
) -> crate::frame::Point {
    // A row is a share, and the paper's values name it.
    let mut point = point(input, PAGE, setting, series, value, unit);
    point.stands_for = input.name.clone();
    point
}

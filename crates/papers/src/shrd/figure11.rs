//! Figure 11: reads beside writes, and what reads wait for.

use super::common::{DRIVE, WRITE_RATE, of_driver, over_time, rate_over_time};
use crate::frame::{
    Column, Content, Curve, Drawn, Figure, Input, Label, Measured, Outcomes, PaperContext, Reading, Row, Run, Scale,
    names,
};

const SYSTEMS: [&str; 2] = ["DFTL", "SHRD"];

const COLUMNS: [Column<Reading>; 12] = [
    WRITE_RATE,
    ("read IOPS", "K", |run| run.number("throughput.read_iops").map(|rate| rate / 1e3)),
    ("read, mean", "us", |run| read_latency(run, "mean")),
    ("read, p99", "us", |run| read_latency(run, "p99")),
    ("read, p99.9", "us", |run| read_latency(run, "p999")),
    ("of the mean: map pages", "us", |run| mean_of(run, is_map_wait)),
    ("of the mean: behind map traffic", "us", |run| mean_of(run, is_behind_map)),
    ("of the mean: in the driver", "us", |run| mean_of(run, is_in_driver)),
    ("of the slowest 1 %: map pages and traffic", "us", |run| {
        part_of_reads(run, "tails.p99", |part| is_map_wait(part) || is_behind_map(part))
    }),
    ("waited for remaps", "%", |run| waited_for_remaps(run)),
    (WRITES_BY, "x", |run| run.relative("throughput.write_iops")),
    (READS_BY, "x", |run| run.relative("throughput.read_iops")),
];

/// SHRD's rates by DFTL's.
const WRITES_BY: &str = "write IOPS relative to DFTL";
const READS_BY: &str = "read IOPS relative to DFTL";

fn read_latency(run: &Measured, key: &str) -> Option<f64> {
    run.number(&format!("latency_ns.read.{key}")).map(|ns| ns / 1e3)
}

/// Time of reads in parts that are asked for, of all reads (`mean`) or a tail of them, microseconds.
fn part_of_reads(run: &Measured, of: &str, asked: impl Fn(&str) -> bool) -> Option<f64> {
    run.total_of(&format!("latency_breakdown.ops.read.{of}.parts_ns"), asked).map(|ns| ns / 1e3)
}

fn mean_of(run: &Measured, asked: fn(&str) -> bool) -> Option<f64> {
    part_of_reads(run, "mean", asked)
}

/// The read waited for a page of the map of its own.
fn is_map_wait(part: &str) -> bool {
    part.starts_with("map/")
}

/// The read waited for a die or a channel that worked on the map, but not for this read.
fn is_behind_map(part: &str) -> bool {
    !part.contains('/') && part.ends_with("_mapping")
}

/// It waited in the driver, most of all for a command or a remap on its page.
fn is_in_driver(part: &str) -> bool {
    part == "host_layers" || part.starts_with("layer_")
}

/// Commands that the driver held back for a remap of one of their pages, of all.
fn waited_for_remaps(run: &Measured) -> Option<f64> {
    let requests = run.number("latency_ns.all.count").filter(|&requests| requests > 0.0)?;
    of_driver(run, "waited_for_remaps").map(|waited| 100.0 * waited / requests)
}

fn run(context: &PaperContext, system: &str, input: &Input) -> Run {
    context.run(DRIVE, system, input, "").broken_down()
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure11",
    title: "reads and writes of one workload",
    about: "Four threads, 4 KB at random, 80 % of them writes; 8 in flight each, as in Figure 7. Parts of a read's \
            latency, from the critical path: map pages that it waits for itself; dies and channels that work on the \
            map for others, which in SHRD are remaps above all; and the driver. Waited for remaps: commands that the \
            driver holds back since a remap moves their page.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let row = |input, system| {
        let baseline = run(context, SYSTEMS[0], input);
        Label::of(input, "", system).row(&run(context, system, input), &COLUMNS).against(&baseline)
    };
    context.inputs("fio mixed").flat_map(|input| SYSTEMS.map(|system| row(input, system))).collect()
}

fn panels(context: &PaperContext, outcomes: &Outcomes, drawn: &mut Drawn) {
    drawn.bars("(a), (b) IOPS relative to DFTL", ["", "IOPS relative to DFTL"], |point| {
        let kinds = [(WRITES_BY, "writes"), (READS_BY, "reads")];
        let (_, kind) = kinds.into_iter().find(|(name, _)| *name == point.series)?;
        Some((point.setting.clone(), kind.to_string()))
    });
    for input in context.inputs("fio mixed") {
        let mut chart = |title: &str, y, read: fn(&Measured) -> Vec<(f64, f64)>| {
            let curves = SYSTEMS.into_iter().filter_map(|system| {
                let points = read(outcomes.get(&run(context, system, input))?);
                Some(Curve { name: system.to_string(), points })
            });
            drawn.chart(title, Scale::Linear, ["time, s", y], &input.shown, curves);
        };
        chart("(a) writes over time", "write IOPS, thousands", |run| rate_over_time(run, "write"));
        chart("(b) reads over time", "read IOPS, thousands", |run| rate_over_time(run, "read"));
        chart("(c) slowest read of each interval", "read latency, ms", |run| {
            over_time(run, "latency_by_op.read.latency_max_ns").into_iter().map(|(at, ns)| (at, ns / 1e6)).collect()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_of_reads_are_told_apart_by_what_they_wait_for() {
        let parts = json!({
            "map/array_read": 1000.0, "map/behind_program_mapping": 2000.0, "behind_read_mapping": 4000.0,
            "channel_mapping": 8000.0, "behind_program_host": 16000.0, "host_layers": 32000.0, "array_read": 64000.0,
        });
        let reads = json!({ "mean": { "parts_ns": parts } });
        let result = json!({ "devices": [{ "complete": true, "latency_breakdown": { "ops": { "read": reads } } }] });
        let measured = Measured::of(&result).expect("it is complete");
        assert_eq!(mean_of(&measured, is_map_wait), Some(3.0));
        assert_eq!(mean_of(&measured, is_behind_map), Some(12.0));
        assert_eq!(mean_of(&measured, is_in_driver), Some(32.0));
    }
}

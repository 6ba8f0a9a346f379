//! What several figures need: volumes, runs under the recorder, and what they left.

use crate::reproduce::{Drawn, Input, Measured, Outcomes, Point, Preparation, Run, Scene};

pub(super) use crate::reproduce::point;

/// The die whose line the recorder is on: the paper watches one and does not say which.
pub(super) const DIE: u32 = 0;

/// The shares of writes, as settings: what the paper's figures are divided by.
pub(super) const WRITES: [(&str, &str); 2] = [("100%", "100 % write"), ("50%", "50 % write")];

/// What is written in a quick run, whatever the figure says.
const QUICK: u64 = 512 << 10;

/// `--subtests` of so many volumes of so many bytes.
pub(super) fn volumes(scene: &Scene, count: u64, bytes: u64) -> String {
    let mib = if scene.quick { format!("{}k", QUICK >> 10) } else { format!("{}m", bytes >> 20) };
    if count == 1 { mib } else { format!("{count}x{mib}") }
}

/// The micro-benchmarks of an access (`SQ`, `RD`) and a share of writes, with the setting that tables have for it.
pub(super) fn micro<'s>(scene: &'s Scene, access: &str) -> Vec<(&'s Input, &'static str)> {
    let of = |(share, setting): (&str, &'static str)| {
        let group = format!("{access} {share}");
        let all: Vec<_> = scene.inputs.iter().filter(|input| input.group == group && input.is_there()).collect();
        all.into_iter().map(move |input| (input, setting))
    };
    WRITES.into_iter().flat_map(of).collect()
}

/// A run of a micro-benchmark in steady state under the recorder, until so many bytes are written.
pub(super) fn steady(scene: &Scene, drive: &str, input: &Input, bytes: u64) -> Run {
    let run = scene.run(drive, "described", input, "");
    run.prepared(Preparation::Steady).recorded(DIE).divided(volumes(scene, 1, bytes))
}

/// A column: its name, its unit, and how it is read from a run.
pub(super) type Column = (&'static str, &'static str, fn(&Measured) -> Option<f64>);

/// Draws columns of a run; what it does not have is left out.
pub(super) fn columns(
    drawn: &mut Drawn,
    outcomes: &Outcomes,
    run: &Run,
    columns: &[Column],
    at: impl Fn(&'static str, f64, &'static str) -> Point,
) {
    let Some(measured) = outcomes.get(run) else { return };
    for &(series, unit, read) in columns {
        drawn.points.extend(read(measured).map(|value| at(series, value, unit)));
    }
}

/// A share, per cent.
pub(super) fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

/// The magnitude of a share, per cent.
pub(super) fn magnitude(share: Option<f64>) -> Option<f64> {
    percent(share).map(f64::abs)
}

/// A factor of the recorder's WA, as what it adds or takes away, per cent.
pub(super) fn level(run: &Measured, level: &str) -> Option<f64> {
    percent(run.number(&format!("ready_busy.levels.{level}")).map(|factor| factor - 1.0))
}

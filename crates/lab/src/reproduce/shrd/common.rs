//! What several figures need: the systems that are compared, and how columns are read from a run.

use crate::reproduce::{Drawn, Input, Measured, Outcomes, Run, Scene, point};

/// The paper's drive.
pub(super) const DRIVE: &str = "SM843";

/// The systems that Figures 7 and 8 compare, by their variants: the paper's, and restoring in the host.
pub(super) const SYSTEMS: [&str; 5] = ["DFTL", "DFTL, buffer", "SHRD", "ReSSD", "LSDM"];

/// Bytes of data that a byte of the map is for: an entry of 4 bytes for 4 KB (section 1).
pub(super) const DATA_BY_MAP: u64 = 1024;

/// Bytes of a map page (section 2).
pub(super) const MAP_PAGE: u64 = 4096;

/// A column: its name, its unit, and how it is read from a run.
pub(super) type Column = (&'static str, &'static str, Read);

/// How a value is read from a run.
pub(super) type Read = fn(&Measured) -> Option<f64>;

/// Draws columns of a run; what it does not have is left out.
pub(super) fn columns(
    drawn: &mut Drawn,
    outcomes: &Outcomes,
    (run, input, setting): (&Run, &Input, &str),
    columns: &[Column],
) {
    let Some(measured) = outcomes.get(run) else { return };
    for &(series, unit, read) in columns {
        drawn.points.extend(read(measured).map(|value| point(input, "", setting, series, value, unit)));
    }
}

/// Writes of a second, thousands.
pub(super) fn write_rate(run: &Measured) -> Option<f64> {
    run.number("throughput.write_iops").map(|rate| rate / 1e3)
}

/// Pages of flash that were programmed, by the pages that the workload wrote.
pub(super) fn write_amplification(run: &Measured) -> Option<f64> {
    run.number("write_amplification.total")
}

/// Blocks that were erased, by thousand writes of the workload.
pub(super) fn erases_of_thousand_writes(run: &Measured) -> Option<f64> {
    let writes = run.number("latency_ns.write.count").filter(|&writes| writes > 0.0)?;
    run.number("erases.total").map(|erases| 1e3 * erases / writes)
}

/// A system's rate by DFTL's of the same load and cache.
pub(super) const BY_DFTL: &str = "rate, by DFTL's";

/// Draws the rate of a run by that of another, `path` in both results, if both have one.
pub(super) fn rate_by(
    drawn: &mut Drawn,
    outcomes: &Outcomes,
    (run, by, path): (&Run, &Run, &str),
    (input, setting, series): (&Input, &str, &'static str),
) {
    let rate = |run: &Run| outcomes.get(run)?.number(path).filter(|&rate| rate > 0.0);
    let ratio = rate(run).zip(rate(by)).map(|(ours, theirs)| ours / theirs);
    drawn.points.extend(ratio.map(|ratio| point(input, "", setting, series, ratio, "x")));
}

/// Map pages that were loaded for the host, by its writes.
pub(super) fn misses_a_write(run: &Measured) -> Option<f64> {
    misses_by(run, &["host", "buffer"])
}

/// Map pages that were loaded for these, by the host's writes: what asks for a page that is on its way shares its load.
pub(super) fn misses_by(run: &Measured, askers: &[&str]) -> Option<f64> {
    let writes = run.number("latency_ns.write.count").filter(|&writes| writes > 0.0)?;
    let misses = askers.iter().map(|asker| run.number(&format!("map_cache.by_asker.{asker}.loads")));
    Some(misses.sum::<Option<f64>>()? / writes)
}

/// A figure of SHRD's driver, by its name.
pub(super) fn of_driver(run: &Measured, name: &str) -> Option<f64> {
    run.number(&format!("host_layers.0.metrics.{name}"))
}

/// One of the driver's figures by another, if there is any of that.
pub(super) fn share_of_driver(run: &Measured, name: &str, by: &str) -> Option<f64> {
    let by = of_driver(run, by).filter(|&by| by > 0.0)?;
    of_driver(run, name).map(|count| count / by)
}

/// The share of time in which a die works, per cent, on average over the dies.
pub(super) fn busy_dies(run: &Measured) -> Option<f64> {
    run.mean("utilization.dies").map(|share| 100.0 * share)
}

/// Misses a write of uniform writes over data whose map takes `map` bytes, `cache` of them cached: the share that is not.
pub(super) fn misses_of_uniform(cache: u64, map: u64) -> f64 {
    1.0 - (cache as f64 / map as f64).min(1.0)
}

/// The share of the map that 1 MB is for the paper's workload of `paper_space_gb`, of the map of what `input` touches: a map takes
/// 1 MB for each GB. Whole map pages, and at least as many as a cache can work with.
pub(super) fn cache_of(input: &Input, paper_space_gb: u64) -> Option<u64> {
    const LEAST: u64 = 16;
    let map = input.survey.as_ref()?.space_bytes / DATA_BY_MAP;
    Some((map / paper_space_gb / MAP_PAGE).max(LEAST) * MAP_PAGE)
}

/// A column of the timeline over its time in seconds, without the intervals that have no value.
pub(super) fn over_time(run: &Measured, column: &str) -> Vec<(f64, f64)> {
    let times = run.column("timeline.time_ns").unwrap_or_default();
    let values = run.column(&format!("timeline.{column}")).unwrap_or_default();
    let points = times.into_iter().zip(values).filter_map(|(time, value)| Some((time? / 1e9, value?)));
    points.collect()
}

/// Completions of a kind, thousands a second. The last interval may be shorter than the others, and is left out.
pub(super) fn rate_over_time(run: &Measured, kind: &str) -> Vec<(f64, f64)> {
    let Some(interval) = run.number("timeline.interval").filter(|&interval| interval > 0.0) else { return Vec::new() };
    let mut points = over_time(run, &format!("latency_by_op.{kind}.requests"));
    points.pop();
    points.into_iter().map(|(at, requests)| (at, requests / interval * 1e6)).collect()
}

/// The inputs of Table 1 and Figure 8: fio, and the programs that were recorded.
pub(super) fn workloads(scene: &Scene) -> Vec<&Input> {
    ["fio", "filebench", "recording", "at hand"].into_iter().flat_map(|group| scene.inputs(group)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_closed_form_of_misses_is_the_share_of_the_map_that_is_not_cached() {
        let misses: Vec<f64> = [1, 2, 4, 8, 16, 32, 64].map(|mb| misses_of_uniform(mb << 20, 32 << 20)).to_vec();
        let wanted = [0.969, 0.938, 0.875, 0.75, 0.5, 0.0, 0.0];
        assert!(misses.iter().zip(wanted).all(|(ours, wanted)| (ours - wanted).abs() < 6e-4), "{misses:?}");
    }

    #[test]
    fn rates_over_time_are_those_of_whole_intervals() {
        let timeline = json!({
            "interval": 500_000, "time_ns": [500_000, 1_000_000, 1_200_000],
            "latency_by_op": { "read": { "requests": [1, 3, 1], "latency_max_ns": [5e6, null, 7e6] } },
        });
        let result = json!({ "devices": [{ "complete": true, "timeline": timeline }] });
        let measured = Measured::of(&result).expect("it is complete");
        assert_eq!(rate_over_time(&measured, "read"), [(0.0005, 2.0), (0.001, 6.0)]);
        assert_eq!(over_time(&measured, "latency_by_op.read.latency_max_ns"), [(0.0005, 5e6), (0.0012, 7e6)]);
        assert_eq!(rate_over_time(&measured, "trim"), []);
    }
}

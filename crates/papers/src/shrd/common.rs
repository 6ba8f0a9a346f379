//! What several figures need: the systems that are compared, and columns that are read from a run.

use crate::frame::run_columns::busy_dies;
use crate::frame::{Column, Input, Measured, PaperContext, Reading, Run, number};

pub(super) use crate::frame::run_columns::WRITE_AMPLIFICATION;

/// The paper's drive.
pub(super) const DRIVE: &str = "SM843";

/// The paper's system.
pub(super) const SHRD: &str = "SHRD";

/// The systems that Figures 7 and 8 compare, by their variants: the paper's, and restoring in the host.
const SYSTEMS: [&str; 5] = ["DFTL", "DFTL, buffer", SHRD, "ReSSD", "LSDM"];

/// Firmware that handles so many map misses at a time: what it is called, and the limit.
pub(super) type Limit = (&'static str, u32);

/// The limits that Figures 7 and 8 sweep, and the systems that they are put on.
pub(super) const LIMITS: [Limit; 3] =
    [("1 map load at a time", 1), ("4 map loads at a time", 4), ("16 map loads at a time", 16)];
pub(super) const LIMITED: [&str; 3] = ["DFTL", "DFTL, buffer", SHRD];

/// A system that Figures 7 and 8 compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct System {
    pub(super) variant: &'static str,
    /// Where its firmware handles few misses at a time: what that is called, and how many.
    pub(super) limit: Option<Limit>,
}

impl System {
    /// What tables call it.
    pub(super) fn name(&self) -> String {
        self.limit.map_or_else(|| self.variant.to_string(), |(limit, _)| format!("{}, {limit}", self.variant))
    }

    /// DFTL with the same firmware.
    pub(super) fn dftl(&self) -> System {
        System { variant: "DFTL", ..self.clone() }
    }

    /// Its run of an input.
    pub(super) fn run(&self, context: &PaperContext, input: &Input, replay: &str) -> Run {
        let run = context.run(DRIVE, self.variant, input, replay);
        match self.limit {
            Some((_, loads)) => run.with(format!("ftl.map_loads={loads}")),
            None => run,
        }
    }
}

/// A system's name as its variant, and the number of map loads at a time.
pub(super) fn variant_and_limit(system: &str) -> (&str, &str) {
    let limited = |(limit, _): Limit| Some((system.strip_suffix(limit)?.strip_suffix(", ")?, limit));
    let found = LIMITS.into_iter().find_map(limited);
    found.map_or((system, "no limit"), |(variant, limit)| (variant, limit.split(' ').next().unwrap_or(limit)))
}

/// All systems without a limit, and some with each.
pub(super) fn systems() -> Vec<System> {
    let all = SYSTEMS.map(|variant| System { variant, limit: None });
    let limited = LIMITS.into_iter().flat_map(|limit| LIMITED.map(|variant| System { variant, limit: Some(limit) }));
    all.into_iter().chain(limited).collect()
}

/// Says which of several readings of the firmware brings `ours`, a ratio of each, closest to the paper's `published`.
pub(super) fn closest(what: &str, published: f64, ours: &[(String, f64)]) -> Option<String> {
    let off = |value: f64| (value / published).ln().abs();
    let (name, value) = ours.iter().min_by(|a, b| off(a.1).total_cmp(&off(b.1)))?;
    let others = ours.iter().filter(|(other, _)| other != name);
    let others: Vec<String> = others.map(|(name, value)| format!("{name}: {}", number(*value, "x"))).collect();
    Some(format!(
        "{what}: {name} comes closest to the paper's {published}, with {}; {}",
        number(*value, "x"),
        others.join("; ")
    ))
}

/// Bytes of data that a byte of the map is for: an entry of 4 bytes for 4 KB (section 1).
pub(super) const DATA_BY_MAP: u64 = 1024;

/// A size of so many MB, in proportion to the size of the runs, as a description has it.
pub(super) fn sized(context: &PaperContext, mb: u64) -> String {
    match context.sized(mb << 20) {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes => format!("{}k", bytes >> 10),
    }
}

/// Bytes of a map page (section 2).
pub(super) const MAP_PAGE: u64 = 4096;

/// Writes of a second.
pub(super) const WRITE_RATE: Column<Reading> =
    ("write IOPS", "K", |run| run.number("throughput.write_iops").map(|rate| rate / 1e3));

/// Map pages that were loaded for the host, by its writes.
pub(super) const MISSES: Column<Reading> = ("map misses per write", "", |run| misses_by(run, &["host", "buffer"]));

/// Blocks that were erased, by thousand writes of the workload.
pub(super) const ERASES: Column<Reading> = ("erases", "per 1,000 writes", |run| {
    let writes = run.number("latency_ns.write.count").filter(|&writes| writes > 0.0)?;
    run.number("erases.total").map(|erases| 1e3 * erases / writes)
});

/// Map pages that a remap of the driver changes.
pub(super) const MAP_PAGES_A_REMAP: Column<Reading> =
    ("map pages per remap", "", |run| share_of_driver(run, "remapped_map_pages", "remaps"));

/// The share of time in which a die works, on average over the dies.
pub(super) const BUSY_DIES: Column<Reading> = ("busy dies", "%", |run| busy_dies(run));

/// A system's rate by DFTL's of the same load and cache.
pub(super) const BY_DFTL: &str = "IOPS relative to DFTL";

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
pub(super) fn workloads(context: &PaperContext) -> Vec<&Input> {
    ["fio", "filebench", "recording", "at hand"].into_iter().flat_map(|group| context.inputs(group)).collect()
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
    fn the_closest_reading_is_the_one_with_the_least_ratio_to_the_papers_value() {
        let ours = [("no limit", 2.0), ("1", 12.0), ("4", 40.0)].map(|(name, value)| (name.to_string(), value));
        let said = closest("at 1 MB", 18.0, &ours).expect("there are values");
        assert_eq!(said, "at 1 MB: 1 comes closest to the paper's 18, with 12.00; no limit: 2.00; 4: 40.00");
        assert_eq!(closest("at 1 MB", 18.0, &[]), None);
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

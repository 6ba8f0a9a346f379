//! Figure 8: rate and map misses of the recorded workloads.

use super::common::{
    BY_DFTL, Column, DRIVE, SYSTEMS, cache_of, columns, erases_of_thousand_writes, misses_a_write, rate_by, workloads,
    write_amplification, write_rate,
};
use crate::reproduce::{Drawn, Figure, Input, Outcomes, Run, Scene, names};

pub(super) struct Figure08;

/// The space of each of the paper's workloads, GB (Table 1): 1 MB of cache is one part in so many of its map.
const SPACES: [(&str, u64); 6] =
    [("fio(RW)", 32), ("tpcc", 16), ("YCSB", 24), ("postmark", 20), ("fileserver", 24), ("varmail", 10)];

/// That of a workload which stands for none of the paper's: its database.
const OTHER: u64 = 16;

/// The paper's log of 64 MB by its cache of 1 MB.
const LOG_BY_CACHE: u64 = 64;

/// SHRD with a log that is as much smaller than the paper's as the cache.
const IN_PROPORTION: &str = "SHRD, log in proportion";

const COLUMNS: [Column; 6] = [
    ("cache", "KB", |run| run.number("memory.map_cache_bytes").map(|bytes| bytes / 1024.0)),
    ("requests", "K/s", |run| run.number("throughput.iops").map(|rate| rate / 1e3)),
    ("writes", "K/s", write_rate),
    ("misses a write", "", misses_a_write),
    ("write amplification", "", write_amplification),
    ("erases", "a thousand writes", erases_of_thousand_writes),
];

/// The run of each system, with what its row is called.
pub(super) fn runs(scene: &Scene, input: &Input) -> Vec<(String, Run)> {
    let space = SPACES.into_iter().find(|(name, _)| *name == input.stands_for).map_or(OTHER, |(_, space)| space);
    // fio writes a part of its 32 GB only, and its map is that of all of them.
    let cache = if input.group == "fio" { Some(1 << 20) } else { cache_of(input, space) };
    let Some(cache) = cache else { return Vec::new() };
    let replay = if input.group == "fio" { "" } else { "closed:32" };
    let of_system = |system: &str| {
        let run = scene.run(DRIVE, system, input, replay).with(format!("ftl.map_cache={cache}"));
        (system.to_string(), run)
    };
    let mut runs: Vec<_> = SYSTEMS.into_iter().map(of_system).collect();
    // The tLPNs of a log of 64 MB are in 16 map pages: a cache that is scaled down to as many has no room for others.
    let log = ((cache * LOG_BY_CACHE) >> 20).max(1);
    if cache < 1 << 20 {
        let (_, run) = of_system("SHRD");
        runs.push((IN_PROPORTION.to_string(), run.with(format!("ftl.rwlb={log}m"))));
    }
    runs
}

impl Figure for Figure08 {
    fn id(&self) -> &'static str {
        "figure08"
    }

    fn title(&self) -> &'static str {
        "rate and map misses of the workloads"
    }

    fn about(&self) -> &'static str {
        "The paper's cache of 1 MB holds one part in 10 to 32 of its workloads' maps (1 MB for each GB of Table 1's space). Ours are \
         smaller: the cache holds the same share of the map of what the workload touches, and one in 16 for a workload \
         that stands for none of the paper's. Recordings are replayed with 32 requests in flight. Misses are those of reads and writes, by \
         writes."
    }

    fn series(&self) -> &'static [&'static str] {
        const OWN: [&str; COLUMNS.len()] = names(&COLUMNS);
        const NAMES: [&str; COLUMNS.len() + 1] = [OWN[0], OWN[1], BY_DFTL, OWN[2], OWN[3], OWN[4], OWN[5]];
        &NAMES
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        workloads(scene).into_iter().flat_map(|input| runs(scene, input)).map(|(_, run)| run).collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in workloads(scene) {
            let runs = runs(scene, input);
            let Some((_, dftl)) = runs.first() else { continue };
            for (setting, run) in &runs {
                columns(&mut drawn, outcomes, (run, input, setting), &COLUMNS);
                rate_by(&mut drawn, outcomes, (run, dftl, "throughput.iops"), (input, setting, BY_DFTL));
            }
        }
        drawn
    }
}

//! Figure 8: rate and map misses of the recorded workloads.

use super::common::{
    BY_DFTL, Column, SHRD, System, cache_of, closest, columns, erases_of_thousand_writes, misses_a_write, rate_by,
    systems, variant_and_limit, workloads, write_amplification, write_rate,
};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Point, Run, names};

pub(super) struct Figure08;

/// The space of each of the paper's workloads, GB (Table 1): 1 MB of cache is one part in so many of its map.
const SPACES: [(&str, u64); 6] =
    [("fio(RW)", 32), ("tpcc", 16), ("YCSB", 24), ("postmark", 20), ("fileserver", 24), ("varmail", 10)];

/// That of a workload which stands for none of the paper's: its database.
const OTHER: u64 = 16;

/// The paper's log of 64 MB by its cache of 1 MB.
const LOG_BY_CACHE: u64 = 64;

/// SHRD with a log that is as much smaller than the paper's as the cache.
const IN_PROPORTION: &str = "log in proportion";

/// What section 1 gives: a workload of the paper, and SHRD's rate by DFTL's.
const PUBLISHED: (&str, f64) = ("tpcc", 3.5);

const MISSES: &str = "map misses per write";

const COLUMNS: [Column; 6] = [
    ("cache", "KB", |run| run.number("memory.map_cache_bytes").map(|bytes| bytes / 1024.0)),
    ("IOPS", "K", |run| run.number("throughput.iops").map(|rate| rate / 1e3)),
    ("write IOPS", "K", write_rate),
    (MISSES, "", misses_a_write),
    ("write amplification", "", write_amplification),
    ("erases", "per 1,000 writes", erases_of_thousand_writes),
];

/// A row: what it is called, its system, and its run.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) system: System,
    pub(super) run: Run,
}

/// The rows of an input.
pub(super) fn rows(context: &PaperContext, input: &Input) -> Vec<Row> {
    let space = SPACES.into_iter().find(|(name, _)| *name == input.stands_for).map_or(OTHER, |(_, space)| space);
    // fio writes a part of its 32 GB only, and its map is that of all of them.
    let cache = if input.group == "fio" { Some(context.sized(1 << 20)) } else { cache_of(input, space) };
    let Some(cache) = cache else { return Vec::new() };
    let replay = if input.group == "fio" { "" } else { "closed:32" };
    let of_system = |system: System| Row {
        name: system.name(),
        run: system.run(context, input, replay).with(format!("ftl.map_cache={cache}")),
        system,
    };
    // The tLPNs of a log of 64 MB are in 16 map pages: a cache that is scaled down to as many has no room for others.
    let log = ((cache * LOG_BY_CACHE) >> 20).max(1);
    let in_proportion = |row: &Row| {
        let limit = row.system.limit.map_or(String::new(), |(limit, _)| format!(", {limit}"));
        let name = format!("{SHRD}, {IN_PROPORTION}{limit}");
        Row { name, system: row.system.clone(), run: row.run.clone().with(format!("ftl.rwlb={log}m")) }
    };
    let mut rows: Vec<Row> = systems().into_iter().map(of_system).collect();
    if cache < 1 << 20 {
        let scaled: Vec<Row> = rows.iter().filter(|row| row.system.variant == SHRD).map(in_proportion).collect();
        rows.extend(scaled);
    }
    rows
}

/// Draws the panels: the paper's two, and what the firmware's limit does.
fn panels(drawn: &mut Drawn) {
    let unlimited = |point: &Point, series: &str| {
        let (variant, _) = variant_and_limit(&point.setting);
        (point.series == series && variant == point.setting).then(|| (point.setting.clone(), point.workload.clone()))
    };
    drawn.bars("(a) IOPS relative to DFTL", ["", "IOPS relative to DFTL"], |point| unlimited(point, BY_DFTL));
    drawn.bars("(b) map misses per write", ["", MISSES], |point| unlimited(point, MISSES));
    drawn.bars("SHRD, by map loads at a time", ["", "IOPS relative to DFTL"], |point| {
        let (variant, limit) = variant_and_limit(&point.setting);
        (point.series == BY_DFTL && variant == SHRD).then(|| (limit.to_string(), point.workload.clone()))
    });
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
         writes. Beside no limit stand 1, 4 and 16 map loads at a time (`ftl.map_loads`), each relative to DFTL with the same firmware."
    }

    fn differs(&self) -> &'static str {
        "The workloads are smaller than the paper's, and DFTL loads map pages side by side, unless the firmware limits that \
         (`ftl.map_loads`). The fileserver's bursts wait for passes over a full log."
    }

    fn series(&self) -> &'static [&'static str] {
        const OWN: [&str; COLUMNS.len()] = names(&COLUMNS);
        const NAMES: [&str; COLUMNS.len() + 1] = [OWN[0], OWN[1], BY_DFTL, OWN[2], OWN[3], OWN[4], OWN[5]];
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        workloads(context).into_iter().flat_map(|input| rows(context, input)).map(|row| row.run).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in workloads(context) {
            let rows = rows(context, input);
            for Row { name, system, run } in &rows {
                columns(&mut drawn, outcomes, (run, input, name), &COLUMNS);
                let Some(dftl) = rows.iter().find(|row| row.system == system.dftl()) else { continue };
                rate_by(&mut drawn, outcomes, (run, &dftl.run, "throughput.iops"), (input, name, BY_DFTL));
            }
        }
        panels(&mut drawn);
        let is_published = |point: &&Point| point.series == BY_DFTL && point.stands_for == PUBLISHED.0;
        let of_shrd = drawn.points.iter().filter(is_published).filter_map(|point| {
            let (variant, limit) = variant_and_limit(&point.setting);
            (variant == SHRD).then(|| (limit.to_string(), point.value))
        });
        let what = format!("SHRD's IOPS relative to DFTL on {}, by map loads at a time", PUBLISHED.0);
        let said = closest(&what, PUBLISHED.1, &of_shrd.collect::<Vec<_>>());
        if let Some(said) = said.filter(|_| !context.is_quick()) {
            drawn.remark(said);
        }
        drawn
    }
}

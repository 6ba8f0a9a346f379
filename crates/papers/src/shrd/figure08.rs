//! Figure 8: rate and map misses of the recorded workloads.

use super::common::{
    BY_DFTL, ERASES, MISSES, SHRD, System, WRITE_AMPLIFICATION, WRITE_RATE, cache_of, closest, systems,
    variant_and_limit, workloads,
};
use crate::frame::{
    Column, Content, Drawn, Figure, Input, Label, Outcomes, PaperContext, Point, Reading, Row, Run, names,
};

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

const COLUMNS: [Column<Reading>; 7] = [
    ("cache", "KB", |run| run.number("memory.map_cache_bytes").map(|bytes| bytes / 1024.0)),
    ("IOPS", "K", |run| run.number("throughput.iops").map(|rate| rate / 1e3)),
    WRITE_RATE,
    MISSES,
    WRITE_AMPLIFICATION,
    ERASES,
    (BY_DFTL, "x", |run| run.relative("throughput.iops")),
];

/// What is compared on an input: what it is called, its system, and its run.
pub(super) struct OfSystem {
    pub(super) name: String,
    pub(super) system: System,
    pub(super) run: Run,
}

/// The systems of an input.
pub(super) fn systems_of(context: &PaperContext, input: &Input) -> Vec<OfSystem> {
    let space = SPACES.into_iter().find(|(name, _)| *name == input.stands_for).map_or(OTHER, |(_, space)| space);
    // fio writes a part of its 32 GB only, and its map is that of all of them.
    let cache = if input.group == "fio" { Some(context.sized(1 << 20)) } else { cache_of(input, space) };
    let Some(cache) = cache else { return Vec::new() };
    let replay = if input.group == "fio" { "" } else { "closed:32" };
    let of_system = |system: System| OfSystem {
        name: system.name(),
        run: system.run(context, input, replay).with(format!("ftl.map_cache={cache}")),
        system,
    };
    // The tLPNs of a log of 64 MB are in 16 map pages: a cache that is scaled down to as many has no room for others.
    let log = ((cache * LOG_BY_CACHE) >> 20).max(1);
    let in_proportion = |row: &OfSystem| {
        let limit = row.system.limit.map_or(String::new(), |(limit, _)| format!(", {limit}"));
        let name = format!("{SHRD}, {IN_PROPORTION}{limit}");
        OfSystem { name, system: row.system.clone(), run: row.run.clone().with(format!("ftl.rwlb={log}m")) }
    };
    let mut rows: Vec<OfSystem> = systems().into_iter().map(of_system).collect();
    if cache < 1 << 20 {
        let scaled: Vec<OfSystem> = rows.iter().filter(|row| row.system.variant == SHRD).map(in_proportion).collect();
        rows.extend(scaled);
    }
    rows
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure08",
    title: "rate and map misses of the workloads",
    about: "The paper's cache of 1 MB holds one part in 10 to 32 of its workloads' maps (1 MB for each GB of Table 1's \
            space). Ours are smaller: the cache holds the same share of the map of what the workload touches, and one \
            in 16 for a workload that stands for none of the paper's. Recordings are replayed with 32 requests in \
            flight. Misses are those of reads and writes, by writes. Beside no limit stand 1, 4 and 16 map loads at a \
            time (`ftl.map_loads`), each relative to DFTL with the same firmware.",
    differs: "The workloads are smaller than the paper's, and DFTL loads map pages side by side, unless the firmware \
              limits that (`ftl.map_loads`). The fileserver's bursts wait for passes over a full log.",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

fn rows(context: &PaperContext) -> Vec<Row> {
    let of_input = |input| {
        let systems = systems_of(context, input);
        let row = |one: &OfSystem| {
            let row = Label::of(input, "", &one.name).row(&one.run, &COLUMNS);
            match systems.iter().find(|other| other.system == one.system.dftl()) {
                Some(dftl) => row.against(&dftl.run),
                None => row,
            }
        };
        systems.iter().map(row).collect::<Vec<Row>>()
    };
    workloads(context).into_iter().flat_map(of_input).collect()
}

/// The paper's two panels, and what the firmware's limit does.
fn panels(context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    let unlimited = |point: &Point, series: &str| {
        let (variant, _) = variant_and_limit(&point.setting);
        (point.series == series && variant == point.setting).then(|| (point.setting.clone(), point.workload.clone()))
    };
    drawn.bars("(a) IOPS relative to DFTL", ["", "IOPS relative to DFTL"], |point| unlimited(point, BY_DFTL));
    drawn.bars("(b) map misses per write", ["", MISSES.0], |point| unlimited(point, MISSES.0));
    drawn.bars("SHRD, by map loads at a time", ["", "IOPS relative to DFTL"], |point| {
        let (variant, limit) = variant_and_limit(&point.setting);
        (point.series == BY_DFTL && variant == SHRD).then(|| (limit.to_string(), point.workload.clone()))
    });
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
}

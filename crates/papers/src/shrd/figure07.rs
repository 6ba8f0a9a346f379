//! Figure 7: fio's rate and map misses by the size of the cache.

use super::common::{
    BY_DFTL, DATA_BY_MAP, ERASES, LIMITED, MISSES, SHRD, System, WRITE_AMPLIFICATION, WRITE_RATE, closest,
    misses_of_uniform, sized, systems, variant_and_limit,
};
use crate::frame::{
    Column, Content, Drawn, Figure, Input, Label, Outcomes, PaperContext, Point, Reading, Row, Run, Scale,
    leading_number, own_runs, point,
};

/// Sizes of the cache, MB: the whole map of 32 GB at most (section 5.2).
const CACHES: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// fio's space (section 5.1).
const SPACE: u64 = 32 << 30;

/// The ratio that section 1 gives, which is that of the smallest cache.
const PUBLISHED: f64 = 18.0;

const CLOSED_FORM: &str = "closed form";

/// A system's columns.
const COLUMNS: [Column<Reading>; 5] =
    [WRITE_RATE, MISSES, WRITE_AMPLIFICATION, ERASES, (BY_DFTL, "x", |run| run.relative("throughput.write_iops"))];

/// The rows of an input with a cache of so many MB.
fn rows(context: &PaperContext, input: &Input, cache: u64) -> Vec<Row> {
    let run = |system: &System| system.run(context, input, "").with(format!("ftl.map_cache={}", sized(context, cache)));
    let row = |system: System| {
        let label = Label::of(input, "", format!("{}, {cache} MB", system.name()));
        label.row(&run(&system), &COLUMNS).against(&run(&system.dftl()))
    };
    systems().into_iter().map(row).collect()
}

/// The system and the MB of cache of a row.
fn place(point: &Point) -> Option<(&str, f64)> {
    let (system, cache) = point.setting.rsplit_once(", ")?;
    Some((system, leading_number(cache)?))
}

/// Whether a system's firmware limits loads.
fn is_limited(system: &str) -> bool {
    variant_and_limit(system).0 != system
}

/// The system and the place on x of a row whose value is of the column `series`; nothing of other rows.
fn place_of<'p>(point: &'p Point, series: &str) -> Option<(&'p str, f64)> {
    place(point).filter(|_| point.series == series)
}

/// Draws the panels: the paper's two, and what the firmware's limit does.
fn panels(drawn: &mut Drawn) {
    const CACHE: &str = "map cache, MB";
    drawn.lines("(a) write IOPS", Scale::Log, [CACHE, "write IOPS, thousands"], |point| {
        let (system, cache) = place_of(point, WRITE_RATE.0).filter(|(system, _)| !is_limited(system))?;
        Some((system.to_string(), cache))
    });
    drawn.lines("(b) map misses per write", Scale::Log, [CACHE, "map misses per write"], |point| {
        if point.series == CLOSED_FORM {
            return Some((CLOSED_FORM.to_string(), leading_number(&point.setting)?));
        }
        let (system, cache) = place_of(point, MISSES.0).filter(|(system, _)| !is_limited(system))?;
        Some((system.to_string(), cache))
    });
    drawn.lines(
        "SHRD relative to DFTL, by map loads at a time",
        Scale::Log,
        [CACHE, "IOPS relative to DFTL"],
        |point| {
            let (system, cache) = place_of(point, BY_DFTL)?;
            let (variant, limit) = variant_and_limit(system);
            (variant == SHRD).then(|| (limit.to_string(), cache))
        },
    );
    drawn.bars("write IOPS with a map cache of 1 MB", ["map loads at a time", "write IOPS, thousands"], |point| {
        let (system, _) = place_of(point, WRITE_RATE.0).filter(|(_, cache)| *cache == CACHES[0] as f64)?;
        let (variant, limit) = variant_and_limit(system);
        LIMITED.contains(&variant).then(|| (variant.to_string(), limit.to_string()))
    });
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure07",
    title: "fio's random writes: IOPS and map misses per write, by the size of the map's cache",
    about: "The whole drive, 32 GB written once before, then 1 GB of the paper's 32 at random. Closed form: of uniform \
            writes over a map of 32 MB the share that is not cached misses. Map cached: the cache by the map of 32 GB. \
            Write amplification counts what the drive writes for the workload's writes, copies of the host among them. \
            The paper does not say how many map misses its firmware handles at a time; beside no limit stand 1, 4 and \
            16 (`ftl.map_loads`), each relative to DFTL with the same firmware.",
    differs: "A remap changes 55 map pages here and 5.74 in the paper (Table 2), so SHRD saves half of the misses and \
              no more; and DFTL loads the map pages of all waiting writes side by side, unless the firmware limits \
              that (`ftl.map_loads`).",
    series: &["map cached", CLOSED_FORM, WRITE_RATE.0, BY_DFTL, MISSES.0, WRITE_AMPLIFICATION.0, ERASES.0],
    content: Content::Own { runs, draw },
};

fn runs(context: &PaperContext) -> Vec<Run> {
    let of_input = |input| CACHES.into_iter().flat_map(move |cache| rows(context, input, cache));
    own_runs(context.inputs("fio").flat_map(of_input).collect())
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    for input in context.inputs("fio") {
        for cache in CACHES {
            let setting = format!("{cache} MB");
            let mut add = |series, value, unit| drawn.points.push(point(input, "", &setting, series, value, unit));
            let misses = misses_of_uniform(cache << 20, SPACE / DATA_BY_MAP);
            add("map cached", 100.0 * (1.0 - misses), "%");
            add(CLOSED_FORM, misses, "");
            drawn.rows(outcomes, &rows(context, input, cache));
        }
    }
    panels(&mut drawn);
    let of_shrd = drawn.points.iter().filter(|point| point.series == BY_DFTL);
    let ratios: Vec<(String, f64)> = of_shrd
        .filter_map(|point| {
            let (system, cache) = place(point)?;
            let (variant, limit) = variant_and_limit(system);
            (variant == SHRD && cache == CACHES[0] as f64).then(|| (limit.to_string(), point.value))
        })
        .collect();
    let what = "SHRD's write IOPS relative to DFTL with a cache of 1 MB, by map loads at a time";
    if let Some(said) = closest(what, PUBLISHED, &ratios).filter(|_| !context.is_quick()) {
        drawn.remark(said);
    }
    drawn
}

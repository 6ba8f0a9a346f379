//! Figure 2: what a buffer that sorts requests would do for DFTL.

use super::common::{BUSY_DIES, DRIVE};
use crate::frame::{
    Column, Content, Drawn, Figure, Input, Label, Measured, Outcomes, PaperContext, Reading, Row, Scale, names,
};

/// Sizes of the buffer; the text does not give the axis. Without one: the trace as it is.
const SIZES: [&str; 7] = ["64k", "256k", "1m", "4m", "16m", "64m", "256m"];

/// Section 3.
const CACHE: &str = "ftl.map_cache=128k";

const COLUMNS: [Column<Reading>; 2] = [("map misses", "%", |run| misses(run)), BUSY_DIES];

/// Map pages loaded, per cent of those asked for. Sorted requests ask for one page together and share its load, which the cache
/// counts as a miss of each.
fn misses(run: &Measured) -> Option<f64> {
    let asked = run.number("map_cache.hits")? + run.number("map_cache.misses")?;
    (asked > 0.0).then_some(100.0 * run.number("map_cache.loads")? / asked)
}

/// MSR's excerpts, then recordings: two that hardly flush, and one that does.
fn inputs(context: &PaperContext) -> impl Iterator<Item = &Input> {
    let flushing = context.inputs("recording").filter(|input| ["PostgreSQL"].contains(&input.name.as_str()));
    context.inputs("msr").chain(context.inputs("filebench")).chain(flushing)
}

/// A buffer's size on x: without one, a step before the first.
fn kilobytes(size: &str) -> f64 {
    let step = SIZES.iter().position(|known| *known == size).map_or(0, |step| step + 1);
    f64::from(16 << (2 * step))
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure02",
    title: "map misses of DFTL and busy dies, by the size of a buffer that sorts requests by address",
    about: "A cache of 128 KB and 64 planes (section 3), on the drive of section 5 without a data buffer, 32 requests \
            in flight. Groups of the buffer's size are sorted by address before they are sent (`reorder=`). Map \
            misses: map pages loaded, of those asked for. Busy dies: the mean over 16 dies of four planes; results do \
            not tell planes apart. A flush ends a group. The paper uses MSR Cambridge and does not name the volumes.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Runs { rows, panels },
};

/// A row for each size of the buffer; the first is without one.
fn rows(context: &PaperContext) -> Vec<Row> {
    let of_input = |input| {
        let plain = context.run(DRIVE, "DFTL", input, "closed:32").with(CACHE);
        let sorted = SIZES.map(|size| Label::of(input, "", size).row(&plain.clone().reordered(size), &COLUMNS));
        [Label::of(input, "", "none").row(&plain, &COLUMNS)].into_iter().chain(sorted)
    };
    inputs(context).flat_map(of_input).collect()
}

fn panels(context: &PaperContext, _outcomes: &Outcomes, drawn: &mut Drawn) {
    for (series, title, y) in [
        ("map misses", "map miss ratio", "map misses, %"),
        ("busy dies", "utilization of parallel units", "busy dies, %"),
    ] {
        drawn.lines(title, Scale::Log, ["buffer, KB (16: none)", y], |point| {
            (point.series == series).then(|| (point.workload.clone(), kilobytes(&point.setting)))
        });
    }
    if context.inputs("msr").next().is_none() {
        drawn.remark("no excerpt of MSR Cambridge is at hand (--traces): the recordings stand alone");
    }
}

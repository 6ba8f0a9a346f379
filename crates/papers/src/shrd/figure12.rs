//! Figure 12: aged ext4 and F2FS, random writes over time and rates of four workloads.

use std::ops::Range;

use super::common::{DRIVE, MAP_PAGE, cache_of, over_time as timeline};
use crate::frame::{Content, Curve, Drawn, Figure, Input, Measured, Outcomes, PaperContext, Phase, Run, Scale, point};

/// A system that is compared.
struct System {
    name: &'static str,
    variant: &'static str,
    /// What of it is in proportion to the map.
    scaled: Scaled,
}

/// What of a system is in proportion to the map of what a recording touches.
enum Scaled {
    /// The cache.
    Cache,
    /// The cache, and the log: 64 times as large, as in the paper.
    CacheAndLog,
    /// Nothing: it caches no map.
    Nothing,
}

const SYSTEMS: [System; 4] = [
    System { name: "DFTL", variant: "DFTL", scaled: Scaled::Cache },
    System { name: "SHRD", variant: "SHRD", scaled: Scaled::CacheAndLog },
    System { name: "SHRD, log of 64 MB", variant: "SHRD", scaled: Scaled::Cache },
    System { name: "map in RAM", variant: "map in RAM", scaled: Scaled::Nothing },
];

/// The paper's log by its cache (section 5.1): 64 MB and 1 MB.
const LOG_BY_CACHE: u64 = 64;

/// The inputs: one programme, recorded on each file system.
const GROUP: &str = "file systems";

/// What the others are held against.
const BASELINE: &str = "ext4";

/// Space of the paper's fio, GB (Table 1); the cache holds that share of the map.
const SPACE: u64 = 32;

/// The phase of part (a).
const RANDOM_WRITE: &str = "random write";

/// The phases, as their rates are called.
const PHASES: [&str; 4] = [RANDOM_WRITE, "sequential write", "sequential read", "random read"];

/// Of the 20 parts of the random writes, those in which F2FS has free segments, and those in which it reuses slack space (SSR):
/// by its own counters when it was recorded (examples/recordings/README.md).
const PARTS: usize = 20;
const BEFORE_SSR: Range<usize> = 0..12;
const IN_SSR: Range<usize> = 13..PARTS;

/// Random writes of the last parts, in which F2FS reuses slack space, by those of the first ones; ext4 as a control.
const SSR_BY_BEFORE: &str = "random write in SSR relative to before";

/// Random writes by DFTL's on the same file system.
const BY_DFTL: &str = "random write relative to DFTL";

/// Rates by those on ext4 with the same system.
const BY_EXT4: [(&str, &str); 3] = [
    (RANDOM_WRITE, "random write relative to ext4"),
    ("sequential write", "sequential write relative to ext4"),
    ("sequential read", "sequential read relative to ext4"),
];

/// Flash reads for the map while fio writes at random, by its writes; in the first parts, and in those of SSR.
const MAP_READS: &str = "map reads per random write";
const MAP_READS_SSR: &str = "map reads per random write in SSR";

/// All requests of the recording.
const REQUESTS: &str = "IOPS";

/// Intervals of the timeline, milliseconds: the shortest phase takes some hundreds.
const INTERVAL_MS: u64 = 10;

/// When so many requests had completed, seconds; between two intervals of the timeline as if all went at one rate.
fn completed_at(run: &Measured, requests: u64) -> Option<f64> {
    let times = run.column("timeline.time_ns")?;
    let totals = run.column("timeline.requests_total")?;
    let wanted = requests as f64;
    let mut before = (0.0, 0.0);
    for (time, total) in times.into_iter().zip(totals) {
        let (time, total) = (time? / 1e9, total?);
        if total >= wanted {
            let share = if total > before.1 { (wanted - before.1) / (total - before.1) } else { 1.0 };
            return Some(before.0 + share * (time - before.0));
        }
        before = (time, total);
    }
    None
}

/// The program's rate in some parts of a phase, MB/s.
fn rate(run: &Measured, phase: &Phase, parts: Range<usize>) -> Option<f64> {
    let (first, end) = (phase.parts.get(parts.start)?, phase.parts.get(parts.end)?);
    let seconds = completed_at(run, *end)? - completed_at(run, *first)?;
    let bytes = phase.bytes.unwrap_or(0) as f64 * parts.len() as f64 / count(phase) as f64;
    (seconds > 0.0).then(|| bytes / 1e6 / seconds)
}

/// Parts of a phase.
fn count(phase: &Phase) -> usize {
    phase.parts.len().saturating_sub(1)
}

fn whole(run: &Measured, phase: &Phase) -> Option<f64> {
    rate(run, phase, 0..count(phase))
}

/// The rate in F2FS's SSR by that before it.
fn ssr_by_before(run: &Measured, phase: &Phase) -> Option<f64> {
    Some(rate(run, phase, IN_SSR)? / rate(run, phase, BEFORE_SSR)?)
}

/// Flash reads for the map in some parts of a phase, by the program's pages of 4 KB.
fn map_reads(run: &Measured, phase: &Phase, parts: Range<usize>) -> Option<f64> {
    let (first, end) = (phase.parts.get(parts.start)?, phase.parts.get(parts.end)?);
    let (from, to) = (completed_at(run, *first)?, completed_at(run, *end)?);
    let within = timeline(run, "reads.mapping").into_iter().filter(|&(end, _)| from < end && end <= to);
    let pages = phase.bytes.unwrap_or(0) as f64 * parts.len() as f64 / count(phase) as f64 / MAP_PAGE as f64;
    Some(within.map(|(_, reads)| reads).sum::<f64>() / pages)
}

/// The rate of each part over the time since the phase began, at the part's middle.
fn over_time(run: &Measured, phase: &Phase) -> Vec<(f64, f64)> {
    let at = |part: usize| completed_at(run, phase.parts[part]);
    let Some(began) = phase.parts.first().and_then(|_| at(0)) else { return Vec::new() };
    let point = |part: usize| Some(((at(part)? + at(part + 1)?) / 2.0 - began, rate(run, phase, part..part + 1)?));
    (0..count(phase)).filter_map(point).collect()
}

fn phase<'a>(input: &'a Input, name: &str) -> Option<&'a Phase> {
    input.phases.iter().find(|phase| phase.name == name)
}

fn run(context: &PaperContext, system: &System, input: &Input) -> Option<Run> {
    let cache = cache_of(input, SPACE)?;
    let run = context.run(DRIVE, system.variant, input, "closed:32").every_ms(INTERVAL_MS);
    let cached = |run: Run| run.with(format!("ftl.map_cache={cache}"));
    Some(match system.scaled {
        Scaled::Cache => cached(run),
        Scaled::CacheAndLog => cached(run).with(format!("ftl.rwlb={}", LOG_BY_CACHE * cache)),
        Scaled::Nothing => run,
    })
}

pub(super) static FIGURE: Figure = Figure {
    id: "figure12",
    title: "ext4 and F2FS",
    about: "One programme, recorded on each file system: 1,024 files are written and a fifth of their data is updated \
            at random; then fio writes 4 KB at random with a sync every 64 writes, 256 files are written and 256 \
            others read in order, and all are read at random. Each recording is replayed whole with 32 requests in \
            flight. Rates are the program's: its bytes by the time that the file system's requests took. The cache \
            holds one part in 32 of the map, as in the paper's fio, and at least 64 KB. The log is 64 times as large, \
            as in the paper (4 MB beside 64 KB); with 64 MB it is out of proportion. SSR: F2FS has no free segments \
            left and reuses slack space, from the 14th of 20 parts on. Map in RAM is not in the paper.",
    differs: "",
    series: &[
        PHASES[0],
        BY_DFTL,
        SSR_BY_BEFORE,
        MAP_READS,
        MAP_READS_SSR,
        PHASES[1],
        PHASES[2],
        PHASES[3],
        REQUESTS,
        BY_EXT4[0].1,
        BY_EXT4[1].1,
        BY_EXT4[2].1,
    ],
    content: Content::Own { runs, draw },
};

fn runs(context: &PaperContext) -> Vec<Run> {
    context
        .inputs(GROUP)
        .flat_map(|input| SYSTEMS.iter().filter_map(move |system| run(context, system, input)))
        .collect()
}

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    let measured = |system: &System, input: &Input| outcomes.get(&run(context, system, input)?);
    let baseline = context.inputs(GROUP).find(|input| input.stands_for == BASELINE);
    let rate_of = |system: &System, input: &Input, name: &str| whole(measured(system, input)?, phase(input, name)?);
    let (mut curves, mut files) = (Vec::new(), Vec::new());
    for input in context.inputs(GROUP) {
        files.push(input.shown.clone());
        for system in &SYSTEMS {
            let Some(run) = measured(system, input) else { continue };
            let mut draw = |series: &'static str, value: Option<f64>, unit: &'static str| {
                drawn.points.extend(value.map(|value| point(input, "", system.name, series, value, unit)));
            };
            let by = |name: &str, other: Option<f64>| Some(rate_of(system, input, name)? / other?);
            let random_write = phase(input, RANDOM_WRITE);
            draw(PHASES[0], rate_of(system, input, PHASES[0]), "MB/s");
            draw(BY_DFTL, by(RANDOM_WRITE, rate_of(&SYSTEMS[0], input, RANDOM_WRITE)), "x");
            draw(SSR_BY_BEFORE, random_write.and_then(|phase| ssr_by_before(run, phase)), "x");
            draw(MAP_READS, random_write.and_then(|phase| map_reads(run, phase, BEFORE_SSR)), "");
            draw(MAP_READS_SSR, random_write.and_then(|phase| map_reads(run, phase, IN_SSR)), "");
            for name in &PHASES[1..] {
                draw(name, rate_of(system, input, name), "MB/s");
            }
            draw(REQUESTS, run.number("throughput.iops").map(|rate| rate / 1e3), "K");
            for (name, series) in BY_EXT4 {
                let ext4 = baseline.filter(|ext4| ext4.name != input.name);
                draw(series, by(name, ext4.and_then(|ext4| rate_of(system, ext4, name))), "x");
            }
            let points = random_write.map(|phase| over_time(run, phase)).unwrap_or_default();
            curves.push(Curve { name: format!("{}, {}", input.name, system.name), points });
        }
    }
    drawn.bars("(b) rates of the four phases", ["", "MB/s"], |point| {
        let system = format!("{}, {}", point.workload, point.setting);
        PHASES.contains(&point.series).then(|| (system, point.series.to_string()))
    });
    drawn.bars("random writes relative to DFTL", ["", "relative to DFTL"], |point| {
        (point.series == BY_DFTL).then(|| (point.setting.clone(), point.workload.clone()))
    });
    drawn.bars("F2FS relative to ext4", ["", "relative to ext4"], |point| {
        let phase = point.series.strip_suffix(" relative to ext4")?;
        Some((point.setting.clone(), phase.to_string()))
    });
    let axes = ["time, s", "written by fio, MB/s"];
    drawn.chart("(a) random writes over time", Scale::Linear, axes, &files.join(", "), curves);
    drawn
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured() -> Measured {
        let timeline = json!({ "time_ns": [1e9, 2e9, 3e9, 3.5e9], "requests_total": [10, 10, 30, 34] });
        let result = json!({ "devices": [{ "complete": true, "timeline": timeline }] });
        Measured::of(&result).expect("it is complete")
    }

    fn phase_of(parts: &[u64]) -> Phase {
        Phase { name: "random write".to_string(), bytes: Some(12_000_000), parts: parts.to_vec() }
    }

    #[test]
    fn a_request_completes_between_the_ends_of_two_intervals() {
        let run = measured();
        let at = [0, 5, 10, 15, 20, 30, 34].map(|requests| completed_at(&run, requests));
        assert_eq!(at, [0.0, 0.5, 1.0, 2.25, 2.5, 3.0, 3.5].map(Some));
        assert_eq!(completed_at(&run, 35), None);
    }

    #[test]
    fn a_rate_is_the_programs_bytes_by_the_time_of_its_requests() {
        let run = measured();
        let two = phase_of(&[5, 10, 30]);
        assert_eq!(whole(&run, &two), Some(12.0 / 2.5));
        assert_eq!(rate(&run, &two, 1..2), Some(6.0 / 2.0));
        assert_eq!(over_time(&run, &two), [(0.25, 12.0), (1.5, 3.0)]);
        assert_eq!(whole(&run, &phase_of(&[5, 35])), None);
    }

    #[test]
    fn parts_in_ssr_are_held_against_those_before() {
        let times: Vec<f64> =
            (1..=PARTS).map(|part| if part <= 13 { part as f64 } else { (2 * part - 13) as f64 } * 1e9).collect();
        let totals: Vec<usize> = (1..=PARTS).map(|part| 10 * part).collect();
        let reads: Vec<u64> = (1..=PARTS).map(|part| if part <= 12 { 3 } else { 6 }).collect();
        let timeline = json!({ "time_ns": times, "requests_total": totals, "reads": { "mapping": reads } });
        let result = json!({ "devices": [{ "complete": true, "timeline": timeline }] });
        let run = Measured::of(&result).expect("it is complete");
        let parts: Vec<u64> = (0..=PARTS as u64).map(|part| 10 * part).collect();
        let phase = Phase { bytes: Some(PARTS as u64 * 3 * MAP_PAGE), ..phase_of(&parts) };
        let close = |ours: Option<f64>, wanted: f64| (ours.expect("a value") - wanted).abs() < 1e-9;
        assert!(close(ssr_by_before(&run, &phase), 0.5), "{:?}", ssr_by_before(&run, &phase));
        assert!(close(map_reads(&run, &phase, BEFORE_SSR), 1.0), "{:?}", map_reads(&run, &phase, BEFORE_SSR));
        assert!(close(map_reads(&run, &phase, IN_SSR), 2.0), "{:?}", map_reads(&run, &phase, IN_SSR));
    }
}

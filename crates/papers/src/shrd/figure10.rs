//! Figure 10: what a log of map entries saves when collection moves pages.

use super::common::{
    BY_DFTL, Column, DRIVE, columns, erases_of_thousand_writes, misses_by, rate_by, write_amplification, write_rate,
};
use crate::frame::{Drawn, Figure, Input, Outcomes, PaperContext, Preparation, Run, names};

pub(super) struct Figure10;

const SYSTEMS: [&str; 6] = ["DFTL", "DFTL, map log", "SHRD", "SHRD, map log", "ReSSD", "LSDM"];

const COLUMNS: [Column; 7] = [
    ("write IOPS", "K", write_rate),
    ("map misses per write, host", "", |run| misses_by(run, &["host", "buffer"])),
    ("map misses per write, GC", "", |run| misses_by(run, &["gc"])),
    ("map misses per write, log", "", |run| misses_by(run, &["log"])),
    ("write amplification", "", write_amplification),
    ("erases", "per 1,000 writes", erases_of_thousand_writes),
    ("victims", "", |run| Some(run.number("gc.foreground_victims")? + run.number("gc.background_victims")?)),
];

/// The rate that is compared.
const PATH: &str = "throughput.write_iops";

/// A system's rate by that of the same without a map log.
const BY_SAME: &str = "IOPS relative to no map log";

fn run(context: &PaperContext, system: &str, input: &Input) -> Run {
    context.run(DRIVE, system, input, "").prepared(Preparation::Aged)
}

impl Figure for Figure10 {
    fn id(&self) -> &'static str {
        "figure10"
    }

    fn title(&self) -> &'static str {
        "map logging in collection, on an aged drive"
    }

    fn about(&self) -> &'static str {
        "Ageing (section 5.2): 60 % of the user's space written in order, then 80 % of that overwritten at random; then fio. A log of \
         96 KB takes the entries of relocated pages whose map page is not cached. Misses by who asked: the host's commands, relocation, and \
         flushes of the log. SHRD and restoring in the host are aged through their layers."
    }

    fn series(&self) -> &'static [&'static str] {
        const OWN: [&str; COLUMNS.len()] = names(&COLUMNS);
        const NAMES: [&str; COLUMNS.len() + 2] =
            [OWN[0], BY_DFTL, BY_SAME, OWN[1], OWN[2], OWN[3], OWN[4], OWN[5], OWN[6]];
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        context.inputs("fio").flat_map(|input| SYSTEMS.map(|system| run(context, system, input))).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for input in context.inputs("fio") {
            for system in SYSTEMS {
                let [run, dftl] = [system, SYSTEMS[0]].map(|system| run(context, system, input));
                columns(&mut drawn, outcomes, (&run, input, system), &COLUMNS);
                rate_by(&mut drawn, outcomes, (&run, &dftl, PATH), (input, system, BY_DFTL));
            }
            for [without, with] in [["DFTL", "DFTL, map log"], ["SHRD", "SHRD, map log"]] {
                let [by, run] = [without, with].map(|system| run(context, system, input));
                rate_by(&mut drawn, outcomes, (&run, &by, PATH), (input, with, BY_SAME));
            }
        }
        for (series, title) in
            [(BY_DFTL, "(a) IOPS relative to DFTL"), (BY_SAME, "(a) IOPS relative to the same without a map log")]
        {
            drawn.bars(title, ["", series], |point| {
                (point.series == series).then(|| (point.workload.clone(), point.setting.clone()))
            });
        }
        drawn.bars("(b) map misses per write, by who asks", ["", "map misses per write"], |point| {
            let asker = point.series.strip_prefix("map misses per write, ")?;
            Some((asker.to_string(), point.setting.clone()))
        });
        drawn
    }
}

//! What the paper could not see: write amplification by cause, and the recorder's error by level.

use super::common::{Column, columns, level, point};
use super::runs::rows;
use crate::frame::{Drawn, Figure, Measured, Outcomes, PaperContext, Run, names};

/// A cause's part of write amplification.
fn cause(run: &Measured, cause: &str) -> Option<f64> {
    run.number(&format!("write_amplification.by_cause.{cause}"))
}

const LEVELS: [Column; 12] = [
    ("WA", "", |run| run.number("ready_busy.recorders.0.write_amplification")),
    ("true WA", "", |run| run.number("ready_busy.real.write_amplification")),
    ("host and padding", "", |run| cause(run, "host")),
    ("read-modify-write", "", |run| cause(run, "rmw")),
    ("GC", "", |run| cause(run, "gc")),
    ("wear levelling", "", |run| cause(run, "wear_levelling")),
    ("sampling", "%", |run| level(run, "sampling")),
    ("classification", "%", |run| level(run, "classification")),
    ("plane", "%", |run| level(run, "plane")),
    ("die", "%", |run| level(run, "die")),
    ("chip", "%", |run| level(run, "chip")),
    ("channel", "%", |run| level(run, "channel")),
];

const LEVEL_NAMES: [&str; LEVELS.len()] = names(&LEVELS);

/// By level and cause.
pub(super) struct Levels;

impl Figure for Levels {
    fn id(&self) -> &'static str {
        "levels"
    }

    fn title(&self) -> &'static str {
        "beyond the paper: write amplification by cause, and the recorder's error by level"
    }

    fn about(&self) -> &'static str {
        "Every run of Figures 5 to 11, of Figures 7 and 8 those of 512 MiB. The true WA is the sum of its causes. The \
         recorder's WA is the true one times six factors, shown as what each adds or takes away: what sampling misses or \
         merges, what the window takes for a program that is none, M_p against the pages that a program of the die really \
         was, and how the watched die, its chip and its channel stand to their neighbours. Runs in sub-tests are taken as a \
         whole, initial data included."
    }

    fn series(&self) -> &'static [&'static str] {
        &LEVEL_NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        rows(context).into_iter().map(|(_, _, _, run)| run).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (drive, input, figure, run) in rows(context) {
            columns(&mut drawn, outcomes, &run, &LEVELS, |series, value, unit| {
                point(input, drive, figure, series, value, unit)
            });
        }
        drawn
    }
}

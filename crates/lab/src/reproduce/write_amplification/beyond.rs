//! What the paper could not see: write amplification by cause, the recorder's error by level, and other classifiers.

use super::common::{Column, columns, point};
use super::{figure09, financial, steady, verification};
use crate::reproduce::{Drawn, Figure, Input, Measured, Outcomes, Run, Scene, names};

/// Every run of Figures 5 to 11, once, with its drive, its input and the figure that it is of.
fn rows(scene: &Scene) -> Vec<(&'static str, &Input, &'static str, Run)> {
    let mut rows = Vec::new();
    for (figure, name) in [(&verification::FIGURE05, "Figure 5"), (&verification::FIGURE06, "Figure 6")] {
        rows.extend(figure.rows(scene).into_iter().map(|(input, _, run)| ("SSD-v", input, name, run)));
    }
    for (figure, name) in [(&steady::FIGURE07, "Figure 7"), (&steady::FIGURE08, "Figure 8")] {
        rows.extend(figure.rows(scene).into_iter().map(|(drive, input, run)| (drive, input, name, run)));
    }
    rows.extend(figure09::rows(scene).into_iter().map(|(input, run)| ("SSD-I", input, "Figure 9", run)));
    for (figure, name) in [(&financial::FIGURE10, "Figure 10"), (&financial::FIGURE11, "Figure 11")] {
        rows.extend(figure.rows(scene).into_iter().map(|(input, run)| ("SSD-I", input, name, run)));
    }
    rows
}

fn off(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

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
    ("sampling", "x", |run| run.number("ready_busy.levels.sampling")),
    ("classification", "x", |run| run.number("ready_busy.levels.classification")),
    ("plane", "x", |run| run.number("ready_busy.levels.plane")),
    ("die", "x", |run| run.number("ready_busy.levels.die")),
    ("chip", "x", |run| run.number("ready_busy.levels.chip")),
    ("channel", "x", |run| run.number("ready_busy.levels.channel")),
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
        "Every run of Figures 5 to 11. The true WA is the sum of its causes. The recorder's WA is the true one times the six \
         factors behind it: what sampling misses or merges, what the window takes for a program that is none, M_p against the \
         pages that a program of the die really was, and how the watched die, its chip and its channel stand to their \
         neighbours. Runs in sub-tests are taken as a whole, initial data included."
    }

    fn series(&self) -> &'static [&'static str] {
        &LEVEL_NAMES
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        rows(scene).into_iter().map(|(_, _, _, run)| run).collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (drive, input, figure, run) in rows(scene) {
            columns(&mut drawn, outcomes, &run, &LEVELS, |series, value, unit| {
                point(input, drive, figure, series, value, unit)
            });
        }
        drawn
    }
}

const ERRORS: [Column; 5] = [
    ("recorder", "%", |run| off(run.number("ready_busy.recorders.0.percentage_error"))),
    ("window", "%", |run| off(run.number("ready_busy.estimates.0.percentage_error"))),
    ("all-dies", "%", |run| off(run.number("ready_busy.estimates.1.percentage_error"))),
    ("read-filter", "%", |run| off(run.number("ready_busy.estimates.2.percentage_error"))),
    ("mixture", "%", |run| off(run.number("ready_busy.estimates.3.percentage_error"))),
];

const ERROR_NAMES: [&str; ERRORS.len()] = names(&ERRORS);

/// By classifier.
pub(super) struct Classifiers;

impl Figure for Classifiers {
    fn id(&self) -> &'static str {
        "classifiers"
    }

    fn title(&self) -> &'static str {
        "beyond the paper: the error of other ways to count, beside the recorder's"
    }

    fn about(&self) -> &'static str {
        "Every run of Figures 5 to 11: how far each estimate of the pages programmed is off, with its sign. All scale lows to \
         pages by the same M_p, so where that is wrong all of them are."
    }

    fn series(&self) -> &'static [&'static str] {
        &ERROR_NAMES
    }

    fn runs(&self, scene: &Scene) -> Vec<Run> {
        rows(scene).into_iter().map(|(_, _, _, run)| run).collect()
    }

    fn draw(&self, scene: &Scene, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for (drive, input, figure, run) in rows(scene) {
            columns(&mut drawn, outcomes, &run, &ERRORS, |series, value, unit| {
                point(input, drive, figure, series, value, unit)
            });
        }
        for (name, index) in ERROR_NAMES.into_iter().zip(0..) {
            let (_, _, read) = ERRORS[index];
            let errors = rows(scene).into_iter().filter_map(|(_, _, _, run)| outcomes.get(&run).and_then(read));
            let errors: Vec<f64> = errors.map(f64::abs).collect();
            if let Some(most) = errors.iter().copied().max_by(f64::total_cmp) {
                let mean = errors.iter().sum::<f64>() / errors.len() as f64;
                drawn.remark(format!(
                    "{name}: off by {mean:.2} % on average over {} runs, by {most:.2} % at most",
                    errors.len()
                ));
            }
        }
        drawn
    }
}

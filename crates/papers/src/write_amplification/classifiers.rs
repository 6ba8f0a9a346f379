//! What the paper could not see: how far other ways to count are off, of the programs on the lines and of the drive's pages.

use super::common::{Column, columns, percent, point};
use super::runs::rows;
use crate::frame::{Drawn, Figure, Measured, Outcomes, PaperContext, Point, Run, names};

/// A way to count: its two columns, and where a run has it: the recorder, or an estimate by its place.
type Way = (&'static str, &'static str, Option<usize>);

const WAYS: [Way; 5] = [
    ("programs, recorder", "pages, recorder", None),
    ("programs, window", "pages, window", Some(0)),
    ("programs, all-dies", "pages, all-dies", Some(1)),
    ("programs, read-filter", "pages, read-filter", Some(2)),
    ("programs, mixture", "pages, mixture", Some(3)),
];

const COLUMNS: [Column; 2 * WAYS.len()] = [
    (WAYS[0].0, "%", |run| programs(run, WAYS[0].2)),
    (WAYS[1].0, "%", |run| programs(run, WAYS[1].2)),
    (WAYS[2].0, "%", |run| programs(run, WAYS[2].2)),
    (WAYS[3].0, "%", |run| programs(run, WAYS[3].2)),
    (WAYS[4].0, "%", |run| programs(run, WAYS[4].2)),
    (WAYS[0].1, "%", |run| pages(run, WAYS[0].2)),
    (WAYS[1].1, "%", |run| pages(run, WAYS[1].2)),
    (WAYS[2].1, "%", |run| pages(run, WAYS[2].2)),
    (WAYS[3].1, "%", |run| pages(run, WAYS[3].2)),
    (WAYS[4].1, "%", |run| pages(run, WAYS[4].2)),
];

const NAMES: [&str; COLUMNS.len()] = names(&COLUMNS);

/// By how much the programs that were counted are off those of the very lines that were looked at: what telling programs
/// from the rest does, and nothing else.
fn programs(run: &Measured, estimate: Option<usize>) -> Option<f64> {
    let programs = run.column("ready_busy.real.programs_by_die")?;
    let (counted, lines) = match estimate {
        None => (run.number("ready_busy.recorders.0.programs")?, 1.0),
        Some(place) => {
            let number = |key: &str| run.number(&format!("ready_busy.estimates.{place}.{key}"));
            (number("programs_a_line")?, number("lines")?)
        }
    };
    let real = match lines {
        1.0 => programs.get(run.number("ready_busy.die")? as usize).copied()??,
        _ => run.mean("ready_busy.real.programs_by_die")?,
    };
    (real > 0.0).then(|| 100.0 * (counted - real) / real)
}

/// By how much the drive's pages are off that follow: with the lines that were not looked at, and M_p.
fn pages(run: &Measured, estimate: Option<usize>) -> Option<f64> {
    let of = estimate.map_or("recorders.0".to_string(), |place| format!("estimates.{place}"));
    percent(run.number(&format!("ready_busy.{of}.percentage_error")))
}

/// Below so many programs of the watched die a share of them says nothing, and is in no mean.
const PROGRAMS_MIN: f64 = 1000.0;

fn programs_of_die(run: &Measured) -> Option<f64> {
    let die = run.number("ready_busy.die")? as usize;
    run.column("ready_busy.real.programs_by_die")?.get(die).copied()?
}

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
        "Every run of Figures 5 to 11, first by drive: the mean of the errors without their sign, and the largest. `programs`: what \
         was counted against the programs of the lines that were looked at (one for recorder and window, all for the others), \
         which is what a way to tell programs from the rest is worth. `pages`: what follows for the drive, with the lines that \
         were not looked at and M_p. Then run by run, with signs. A run in which the watched die programmed less than a \
         thousand times is in no mean."
    }

    fn series(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn runs(&self, context: &PaperContext) -> Vec<Run> {
        rows(context).into_iter().map(|(_, _, _, run)| run).collect()
    }

    fn draw(&self, context: &PaperContext, outcomes: &Outcomes) -> Drawn {
        let mut drawn = Drawn::default();
        for drive in ["SSD-v", "SSD-I", "SSD-M", "SSD-S"] {
            let of_drive = rows(context).into_iter().filter(|(of, ..)| *of == drive);
            let measured = of_drive.filter_map(|(_, _, _, run)| outcomes.get(&run));
            let told: Vec<&Measured> =
                measured.filter(|run| programs_of_die(run).is_some_and(|programs| programs >= PROGRAMS_MIN)).collect();
            for (series, unit, read) in COLUMNS {
                let errors: Vec<f64> = told.iter().filter_map(|run| read(run)).map(f64::abs).collect();
                let Some(most) = errors.iter().copied().max_by(f64::total_cmp) else { continue };
                let mean = errors.iter().sum::<f64>() / errors.len() as f64;
                let runs = format!("{} runs", errors.len());
                for (name, value) in [("mean, no sign", mean), ("largest, no sign", most)] {
                    drawn.points.push(Point {
                        workload: name.to_string(),
                        page_size: drive.to_string(),
                        setting: runs.clone(),
                        series,
                        value,
                        unit,
                        input: "all of the figures".to_string(),
                        stands_for: String::new(),
                        events: None,
                    });
                }
            }
        }
        for (drive, input, figure, run) in rows(context) {
            columns(&mut drawn, outcomes, &run, &COLUMNS, |series, value, unit| {
                point(input, drive, figure, series, value, unit)
            });
        }
        drawn
    }
}

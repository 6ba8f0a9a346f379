//! What the paper could not see: how far other ways to count are off, of the programs on the lines and of the drive's pages.

use super::common::{DRIVES, percent};
use super::runs::rows;
use crate::frame::{Column, Content, Drawn, Figure, Label, Measured, Outcomes, PaperContext, Reading, names, own_runs};

/// Each way to count: the recorder, or an estimate by its place in a run.
const COLUMNS: [Column<Reading>; 10] = [
    ("programs, recorder", "%", |run| programs(run, None)),
    ("programs, window", "%", |run| programs(run, Some(0))),
    ("programs, all-dies", "%", |run| programs(run, Some(1))),
    ("programs, read-filter", "%", |run| programs(run, Some(2))),
    ("programs, mixture", "%", |run| programs(run, Some(3))),
    ("pages, recorder", "%", |run| pages(run, None)),
    ("pages, window", "%", |run| pages(run, Some(0))),
    ("pages, all-dies", "%", |run| pages(run, Some(1))),
    ("pages, read-filter", "%", |run| pages(run, Some(2))),
    ("pages, mixture", "%", |run| pages(run, Some(3))),
];

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
pub(super) static FIGURE: Figure = Figure {
    id: "classifiers",
    title: "beyond the paper: the error of other ways to count, beside the recorder's",
    about: "Every run of Figures 5 to 11, first by drive: the mean of the errors without their sign, and the largest. \
            `programs`: what was counted against the programs of the lines that were looked at (one for recorder and \
            window, all for the others), which is what a way to tell programs from the rest is worth. `pages`: what \
            follows for the drive, with the lines that were not looked at and M_p. Then run by run, with signs. A run \
            in which the watched die programmed less than a thousand times is in no mean.",
    differs: "",
    series: &names(&COLUMNS),
    content: Content::Own { runs: |context| own_runs(rows(context, &COLUMNS)), draw },
};

fn draw(context: &PaperContext, outcomes: &Outcomes) -> Drawn {
    let mut drawn = Drawn::default();
    let rows = rows(context, &COLUMNS);
    for drive in DRIVES {
        let of_drive = rows.iter().filter(|row| row.label().page_size == drive);
        let measured = of_drive.filter_map(|row| row.reading(outcomes));
        let told: Vec<Reading> =
            measured.filter(|run| programs_of_die(run).is_some_and(|programs| programs >= PROGRAMS_MIN)).collect();
        for (series, unit, read) in COLUMNS {
            let errors: Vec<f64> = told.iter().filter_map(read).map(f64::abs).collect();
            let Some(most) = errors.iter().copied().max_by(f64::total_cmp) else { continue };
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            for (name, value) in [("mean, no sign", mean), ("largest, no sign", most)] {
                let label = Label {
                    setting: format!("{} runs", errors.len()),
                    input: "all of the figures".to_string(),
                    ..Label::described(name, drive, "")
                };
                drawn.points.push(label.point(series, value, unit));
            }
        }
    }
    drawn.rows(outcomes, &rows);
    drawn
}

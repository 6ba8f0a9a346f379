//! Tables as data: rows that say what they are about, and columns that say how they are read.

use std::collections::HashSet;
use std::ops::Deref;

use super::figure_data::{Drawn, Point};
use super::input::Input;
use super::plan::Run;
use super::result_reader::Measured;
use super::runner::Outcomes;

/// A column: its name, its unit, and how it is read. What cannot be read leaves a gap.
pub type Column<T> = (&'static str, &'static str, fn(&T) -> Option<f64>);

/// How a number is read from what a run left.
pub(crate) type Read = fn(&Measured) -> Option<f64>;

/// The names of columns.
pub(crate) const fn names<const N: usize, R: Copy>(
    columns: &[(&'static str, &'static str, R); N],
) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = columns[index].0;
        index += 1;
    }
    names
}

/// Two lists of names, one behind the other.
pub(crate) const fn joined<const A: usize, const B: usize, const N: usize>(
    first: [&'static str; A],
    second: [&'static str; B],
) -> [&'static str; N] {
    assert!(A + B == N, "the lists fill what they are joined to");
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = if index < A { first[index] } else { second[index - A] };
        index += 1;
    }
    names
}

/// What a row is about: all of a [`Point`] but its column and value.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The workload, or what else the row is about.
    pub workload: String,
    /// The page size as in `8k`, or the drive; empty where the row has none.
    pub page_size: String,
    /// What else tells this row from others; may be empty.
    pub setting: String,
    /// The input behind it.
    pub input: String,
    /// The paper's workload that the input stands for; may be empty.
    pub stands_for: String,
}

impl Label {
    /// A row of an input.
    pub(crate) fn of(input: &Input, page_size: &str, setting: impl Into<String>) -> Label {
        Label {
            workload: input.name.clone(),
            page_size: page_size.to_string(),
            setting: setting.into(),
            input: input.shown.clone(),
            stands_for: input.stands_for.clone(),
        }
    }

    /// A row of a drive's description.
    pub(crate) fn described(drive: &str, page_size: &str, of: &str) -> Label {
        Label {
            workload: drive.to_string(),
            page_size: page_size.to_string(),
            setting: String::new(),
            input: "description".to_string(),
            stands_for: of.to_string(),
        }
    }

    /// A value in this row.
    pub(crate) fn point(&self, series: &'static str, value: f64, unit: &'static str) -> Point {
        Point {
            workload: self.workload.clone(),
            page_size: self.page_size.clone(),
            setting: self.setting.clone(),
            series,
            value,
            unit,
            input: self.input.clone(),
            stands_for: self.stands_for.clone(),
            events: None,
        }
    }

    /// A row with columns that are read from a run.
    pub(crate) fn row(&self, run: &Run, columns: &'static [Column<Reading>]) -> Row {
        Row { label: self.clone(), run: run.clone(), base: None, columns, events: None }
    }
}

/// Columns of one row that are read from a run. Several of these may make one row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    label: Label,
    run: Run,
    base: Option<Run>,
    columns: &'static [Column<Reading>],
    events: Option<(Run, Read)>,
}

impl Row {
    /// Compared with another run, which columns read through [`Reading`].
    pub(crate) fn against(mut self, base: &Run) -> Row {
        self.base = Some(base.clone());
        self
    }

    /// Judged by the number of events that `read` finds in `run`.
    pub(crate) fn judged_by(mut self, run: &Run, read: Read) -> Row {
        self.events = Some((run.clone(), read));
        self
    }

    /// What it is about.
    pub(crate) fn label(&self) -> &Label {
        &self.label
    }

    /// What its run left, if it has ended.
    pub(crate) fn reading(&self, outcomes: &Outcomes) -> Option<Reading> {
        let base = self.base.as_ref().and_then(|base| outcomes.get(base));
        Some(Reading { run: outcomes.get(&self.run)?.clone(), base: base.cloned() })
    }
}

/// The runs of rows, each once, a run that others are compared with before them.
pub(crate) fn runs_of(rows: &[Row]) -> Vec<Run> {
    let mut seen = HashSet::new();
    let runs = rows.iter().flat_map(|row| row.base.iter().chain([&row.run]));
    runs.filter(|run| seen.insert(*run)).cloned().collect()
}

/// The runs of rows alone, without those that they are compared with.
pub(crate) fn own_runs(rows: Vec<Row>) -> Vec<Run> {
    rows.into_iter().map(|row| row.run).collect()
}

/// What a run left, and what the run left that it is compared with.
#[derive(Clone, Debug)]
pub struct Reading {
    run: Measured,
    base: Option<Measured>,
}

impl Deref for Reading {
    type Target = Measured;

    fn deref(&self) -> &Measured {
        &self.run
    }
}

impl Reading {
    /// What the run left that this one is compared with.
    pub(crate) fn base(&self) -> Option<&Measured> {
        self.base.as_ref()
    }

    /// By how much less this run has of something than the other, per cent of the other.
    pub(crate) fn less(&self, read: Read) -> Option<f64> {
        let (base, ours) = (read(self.base()?)?, read(&self.run)?);
        (base > 0.0).then(|| 100.0 * (base - ours) / base)
    }

    /// By how much more this run has of something than the other, per cent of the other.
    pub(crate) fn more(&self, read: Read) -> Option<f64> {
        // Not minus zero.
        self.less(read).map(|less| 0.0 - less)
    }

    /// A number of this run by that of the other, if both are there.
    pub(crate) fn relative(&self, path: &str) -> Option<f64> {
        self.ratio(|run| run.number(path))
    }

    /// What is read from this run by what is read from the other, if that is not zero.
    pub(crate) fn ratio(&self, read: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
        let (ours, base) = (read(&self.run)?, read(self.base()?)?);
        (base > 0.0).then(|| ours / base)
    }
}

impl Drawn {
    /// Adds a row: those of `columns` that `subject` has.
    pub(crate) fn columns<T>(&mut self, label: &Label, subject: &T, columns: &[Column<T>]) {
        let read = |&(series, unit, read): &Column<T>| Some(label.point(series, read(subject)?, unit));
        self.points.extend(columns.iter().filter_map(read));
    }

    /// Adds a row of values: column, value and unit of each.
    pub(crate) fn values<const N: usize>(&mut self, label: &Label, values: [(&'static str, f64, &'static str); N]) {
        self.points.extend(values.map(|(series, value, unit)| label.point(series, value, unit)));
    }

    /// Adds rows of runs; a run that is missing leaves a gap.
    pub(crate) fn rows(&mut self, outcomes: &Outcomes, rows: &[Row]) {
        for row in rows {
            let Some(reading) = row.reading(outcomes) else { continue };
            let events = row.events.as_ref().and_then(|(run, read)| read(outcomes.get(run)?));
            let from = self.points.len();
            self.columns(&row.label, &reading, row.columns);
            self.points[from..].iter_mut().for_each(|point| point.events = events.map(|events| events as u64));
        }
    }
}

//! What a reproduction leaves behind: `report.html`, `report.json`, and a CSV for each figure, beside `runs/`.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::compare::{Compared, compare};
use super::context::PaperContext;
use super::experiment::Size;
use super::figure::Figure;
use super::figure_data::{Curves, Drawn, EVENTS_MIN, Point};
use super::grid::Grid;
use super::input::Input;
use super::panel::Panel;
use super::picture::Picture;
use super::published::Published;
use super::runner::{Outcomes, RunFailure};
use super::verdict::Verdict;
use ssdlab_lab::output::{OutputError, Staging, csv_field};
use ssdlab_lab::result::VERSION;

/// A reproduction, drawn.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The paper's name.
    pub paper: String,
    /// Its title.
    pub title: String,
    /// The version of ssdlab.
    pub version: String,
    /// How large runs were: `quick`, `middle` or `full`.
    pub size: Size,
    /// What holds at that size; nothing where it is the whole.
    pub about_size: Option<String>,
    /// Figures whose published values mean something at that size, where it is not the whole.
    pub judged: Vec<&'static str>,
    /// The host description whose layers stood above every drive.
    pub host: Option<String>,
    /// Whether it has all of the paper's figures.
    pub whole: bool,
    /// Whether every run was done.
    pub complete: bool,
    /// Runs that ended, failed, and were not done.
    pub runs: (usize, usize, usize),
    /// Of the runs that ended, those whose results were kept from before.
    pub kept: usize,
    /// How much of what the paper says was found.
    pub verdict: Verdict,
    /// The figures.
    pub figures: Vec<FigureReport>,
    /// The inputs behind it, also those that are missing.
    pub inputs: Vec<Input>,
    /// The runs that failed.
    pub failures: Vec<RunFailure>,
    /// Checks that did not hold: the run and the sentence.
    pub broken_checks: Vec<(String, String)>,
}

/// One figure, drawn.
#[derive(Clone, Debug, Serialize)]
pub struct FigureReport {
    /// Its name.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// How it is to be read.
    pub about: &'static str,
    /// Why values of it lie outside what the paper says, as far as known.
    pub differs: &'static str,
    /// Its values.
    pub points: Vec<Point>,
    /// The panels that show them, with what the paper says.
    pub panels: Vec<Panel>,
    /// Its charts of lines that are made of more than the values.
    pub curves: Vec<Curves>,
    /// Its pictures.
    pub pictures: Vec<Picture>,
    /// What a reader must know of this execution.
    pub remarks: Vec<String>,
    /// Published values and ours.
    pub compared: Vec<Compared>,
    /// The commands of its runs.
    pub commands: Vec<String>,
    /// What the drives are called by.
    pub drives_are: &'static str,
    #[serde(skip)]
    pub(crate) grid: Grid,
}

impl Report {
    /// Draws the figures from what the runs left.
    pub fn of(context: &PaperContext, figures: &[&Figure], outcomes: &Outcomes) -> Report {
        let (done, failed, stopped) = outcomes.counts();
        let drawn: Vec<FigureReport> =
            figures.iter().map(|figure| FigureReport::of(context, figure, outcomes)).collect();
        let whole = figures.len() == context.paper.figures.len();
        let used = used(&context.lacking_nothing(), figures);
        let matters = |input: &&Input| (whole && input.is_there()) || used.contains(&input.name);
        Report {
            paper: context.paper.name.to_string(),
            title: context.paper.title.to_string(),
            version: VERSION.to_string(),
            size: context.size,
            about_size: context.about_size().map(str::to_string),
            judged: figures
                .iter()
                .map(|figure| figure.id)
                .filter(|id| !context.is_full() && context.is_judged(id))
                .collect(),
            host: context.host.as_ref().map(|(file, _)| file.clone()),
            whole,
            complete: stopped == 0 && failed == 0,
            runs: (done, failed, stopped),
            kept: outcomes.kept(),
            inputs: context.inputs.iter().filter(matters).cloned().collect(),
            verdict: Verdict::of(&drawn),
            figures: drawn,
            failures: outcomes.failures(),
            broken_checks: outcomes.broken_checks(),
        }
    }

    /// Whether all was done and every run kept its laws.
    pub fn is_sound(&self) -> bool {
        self.complete && self.broken_checks.is_empty()
    }
}

/// The names of the inputs that figures run or draw from.
fn used(context: &PaperContext, figures: &[&Figure]) -> HashSet<String> {
    let mut used = HashSet::new();
    for figure in figures {
        for run in figure.runs(context) {
            used.extend([Some(run.input), run.initial].into_iter().flatten());
        }
        // Without results, what is drawn comes from the inputs themselves.
        used.extend(figure.draw(context, &Outcomes::default()).points.into_iter().map(|point| point.workload));
    }
    used
}

impl FigureReport {
    fn of(context: &PaperContext, figure: &Figure, outcomes: &Outcomes) -> FigureReport {
        let Drawn { points, mut panels, mut curves, pictures, mut remarks } = figure.draw(context, outcomes);
        // A line without points, and a chart without lines, show nothing.
        curves.iter_mut().for_each(|chart| chart.curves.retain(|curve| !curve.points.is_empty()));
        curves.retain(|chart| !chart.curves.is_empty());
        // Values that mean nothing at this size are held against nothing.
        let is_judged = context.is_judged(figure.id);
        let of_figure = |published: &&Published| is_judged && published.figure == figure.id;
        let published: Vec<Published> = context.published.iter().filter(of_figure).cloned().collect();
        let runs = figure.runs(context);
        let missing = runs.iter().filter(|run| outcomes.get(run).is_none()).count();
        if missing > 0 {
            remarks.push(format!("{missing} of its {} runs have no result: see the list of failures", runs.len()));
        }
        let compared = compare(&published, &points);
        panels.iter_mut().for_each(|panel| panel.mark(&points, &published));
        let few: BTreeSet<(&str, &str, u64)> = compared
            .iter()
            .flat_map(|one| one.too_few.iter().map(|(name, events)| (name.as_str(), one.our_setting.as_str(), *events)))
            .collect();
        if !few.is_empty() {
            let each = few.iter().map(|(name, setting, events)| format!("{name}, {setting} ({events})"));
            remarks.push(format!(
                "left out of ranges over workloads, because fewer than {EVENTS_MIN} events are behind it: {}",
                each.collect::<Vec<_>>().join("; ")
            ));
        }
        let mut commands: Vec<String> = Vec::new();
        for run in &runs {
            let command = run.command(context);
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        FigureReport {
            id: figure.id,
            title: figure.title,
            about: figure.about,
            differs: figure.differs,
            grid: Grid::of(&points, &published, context.paper.drives_are),
            drives_are: context.paper.drives_are,
            compared,
            points,
            panels,
            curves,
            pictures,
            remarks,
            commands,
        }
    }

    /// `figureNN.csv`: the values, with the published ones beside them, and the inputs behind them.
    fn write_points(&self, published: &[Published], mut to: impl Write) -> io::Result<()> {
        writeln!(
            to,
            "figure,workload,page_size,setting,series,value,unit,input,published_low,published_high,where,events"
        )?;
        for point in &self.points {
            let of_paper = published.iter().find(|published| super::compare::answers(point, published));
            let end = |end: Option<f64>| end.map_or_else(String::new, |end| end.to_string());
            let (low, high, place) = of_paper.map_or_else(Default::default, |published| {
                (end(published.value.low), end(published.value.high), published.place.clone())
            });
            let fields = [&point.workload, &point.page_size, &point.setting, point.series];
            let fields: Vec<String> = fields.iter().map(|field| csv_field(field)).collect();
            let (input, place) = (csv_field(&point.input), csv_field(&place));
            let (fields, value, unit) = (fields.join(","), point.value, point.unit);
            let events = point.events.map_or_else(String::new, |events| events.to_string());
            writeln!(to, "{},{fields},{value},{unit},{input},{low},{high},{place},{events}", self.id)?;
        }
        to.flush()
    }

    /// `figureNN-curves.csv`: the lines.
    fn write_curves(&self, mut to: impl Write) -> io::Result<()> {
        writeln!(to, "figure,chart,curve,x,y,x_is,y_is,input")?;
        for chart in &self.curves {
            let of_chart = [chart.x, chart.y, &chart.input].map(csv_field).join(",");
            for curve in &chart.curves {
                let (title, name) = (csv_field(&chart.title), csv_field(&curve.name));
                for (x, y) in &curve.points {
                    writeln!(to, "{},{title},{name},{x},{y},{of_chart}", self.id)?;
                }
            }
        }
        to.flush()
    }
}

/// Tries whether files can be made in `out`, so that a wrong folder does not cost the runs.
///
/// # Errors
/// What the system says against it.
pub fn try_out(out: &Path) -> Result<(), OutputError> {
    Staging::new(out)?.try_out()
}

/// Writes everything into `out`; files of figures that were not asked for stay as they are.
///
/// # Errors
/// What cannot be written; no file is left half.
pub fn write(report: &Report, context: &PaperContext, out: &Path) -> Result<(), OutputError> {
    let mut staging = Staging::new(out)?;
    for figure in &report.figures {
        let published: Vec<Published> =
            context.published.iter().filter(|published| published.figure == figure.id).cloned().collect();
        staging.write(&format!("{}.csv", figure.id), |to| figure.write_points(&published, to))?;
        if !figure.curves.is_empty() {
            staging.write(&format!("{}-curves.csv", figure.id), |to| figure.write_curves(to))?;
        }
    }
    staging.write("report.html", |to| to.write_all(super::page::render(report).as_bytes()))?;
    staging.write("report.json", |to| {
        serde_json::to_writer_pretty(&mut *to, report)?;
        to.write_all(b"\n")
    })?;
    staging.commit()
}

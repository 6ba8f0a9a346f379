//! What a figure draws: points for tables and CSV, panels of them, curves, and pictures.

use serde::Serialize;

use super::input::Input;
use super::panel::{At, Panel, Scale};
use super::picture::Picture;
use super::table::Label;

/// One value of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The workload, or what else the row is about.
    pub workload: String,
    /// The page size as in `8k`, or empty where it has none.
    pub page_size: String,
    /// What else tells this row from others: the replay, a buffer size; may be empty.
    pub setting: String,
    /// The column.
    pub series: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// Its unit: `%`, `us`, `x`, `pages`...
    pub unit: &'static str,
    /// The input behind it: a file, a model, or `description` where no request was sent.
    pub input: String,
    /// The paper's workload that the input stands for; empty where it stands for none, and the paper has no value for it.
    pub stands_for: String,
    /// How many events the value is made of, where a figure counts them; below [`EVENTS_MIN`] it is shown and not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

/// A value of fewer events says nothing: by chance alone a count of a hundred is off by a tenth.
pub const EVENTS_MIN: u64 = 100;

impl Point {
    /// Whether it is made of too few events to be judged.
    pub fn says_nothing(&self) -> bool {
        self.events.is_some_and(|events| events < EVENTS_MIN)
    }
}

/// A point of an input.
pub(crate) fn point(
    input: &Input,
    page_size: &str,
    setting: &str,
    series: &'static str,
    value: f64,
    unit: &'static str,
) -> Point {
    Label::of(input, page_size, setting).point(series, value, unit)
}

/// A line of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its points, x rising.
    pub points: Vec<(f64, f64)>,
}

/// A chart of lines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curves {
    /// What it shows, in a line.
    pub title: String,
    /// Quantity and unit of x.
    pub x: &'static str,
    /// Whether x is logarithmic.
    pub x_log: bool,
    /// Quantity and unit of y.
    pub y: &'static str,
    /// The input behind it.
    pub input: String,
    /// Whether it has points in place of lines.
    pub is_scattered: bool,
    /// The lines.
    pub curves: Vec<Curve>,
}

/// All that a figure shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drawn {
    /// The values, in the order of the rows.
    pub points: Vec<Point>,
    /// The panels that show them; a table has none.
    pub panels: Vec<Panel>,
    /// The charts of lines that are made of more than the values.
    pub curves: Vec<Curves>,
    /// The pictures.
    pub pictures: Vec<Picture>,
    /// What a reader must know that only this execution could tell, a sentence each.
    pub remarks: Vec<String>,
}

impl Drawn {
    /// Adds a panel of bars: `place` says of a point its series and its name on x, or that it is not shown. `axes`: what stands on
    /// x and on y.
    pub fn bars(
        &mut self,
        title: impl Into<String>,
        axes: [&'static str; 2],
        place: impl Fn(&Point) -> Option<(String, String)>,
    ) {
        let named = |point: &Point| place(point).map(|(series, name)| (series, At::Name(name)));
        self.panels.extend(Panel::of(&self.points, (title.into(), Scale::Names), axes, named));
    }

    /// Adds a panel of bars, of the points for which `is_shown` holds: a colour for each column, the workloads on x.
    pub fn bars_of(&mut self, title: impl Into<String>, y: &'static str, is_shown: impl Fn(&Point) -> bool) {
        self.bars(title, ["", y], |point| is_shown(point).then(|| (point.series.to_string(), point.workload.clone())));
    }

    /// Adds a panel of lines over numbers; each has its points in the order of x.
    pub fn lines(
        &mut self,
        title: impl Into<String>,
        scale: Scale,
        axes: [&'static str; 2],
        place: impl Fn(&Point) -> Option<(String, f64)>,
    ) {
        let numbered = |point: &Point| place(point).map(|(series, x)| (series, At::Number(x)));
        self.panels.extend(Panel::of(&self.points, (title.into(), scale), axes, numbered));
    }

    /// A chart of lines over x, with the quantities and units of both axes.
    pub fn chart(
        &mut self,
        title: impl Into<String>,
        scale: Scale,
        [x, y]: [&'static str; 2],
        input: &str,
        curves: impl IntoIterator<Item = Curve>,
    ) {
        self.curves.push(Curves {
            title: title.into(),
            x,
            x_log: scale == Scale::Log,
            y,
            input: input.to_string(),
            is_scattered: false,
            curves: curves.into_iter().collect(),
        });
    }

    /// A remark, once.
    pub fn remark(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.remarks.contains(&sentence) {
            self.remarks.push(sentence);
        }
    }
}

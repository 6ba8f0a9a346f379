//! A panel of a figure: what stands on x, what has bars or a line of its own, and which of the figure's values those are.
//!
//! A figure states its panels in terms of its points; the report draws them and decides nothing. What the paper says of a
//! value stands beside it, and is drawn as a mark.

use serde::Serialize;

use super::compare::{answers, is_of_several_rows};
use super::figure_data::Point;
use super::published::{Published, Span};

/// A panel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// What it shows, in a line: `(a) IOPS`.
    pub title: String,
    /// What stands on x, with its unit.
    pub x: &'static str,
    /// How x is divided.
    pub scale: Scale,
    /// What stands on y, with its unit.
    pub y: &'static str,
    /// Its bars or lines, in the order of the legend.
    pub series: Vec<Series>,
}

/// How x is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Names, in their order: each has a bar of every series.
    Names,
    /// Numbers: each series is a line.
    Linear,
    /// Numbers on a logarithmic axis: each series is a line.
    Log,
}

/// The bars of one colour, or a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its values.
    pub values: Vec<Value>,
}

/// A value of a figure in its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Value {
    /// Where on x.
    pub x: At,
    /// What was measured.
    pub y: f64,
    /// What the paper says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Span>,
    /// The point of the figure.
    #[serde(skip)]
    point: usize,
}

/// A place on x.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum At {
    /// One of its names.
    Name(String),
    /// A number.
    Number(f64),
}

impl Panel {
    /// Those of `points` for which `place` says the series and the place on x; nothing where it is none.
    pub(super) fn of(
        points: &[Point],
        (title, scale): (String, Scale),
        [x, y]: [&'static str; 2],
        place: impl Fn(&Point) -> Option<(String, At)>,
    ) -> Option<Panel> {
        let mut series: Vec<Series> = Vec::new();
        for (index, point) in points.iter().enumerate() {
            let Some((name, at)) = place(point).filter(|_| point.value.is_finite()) else { continue };
            let value = Value { x: at, y: point.value, published: None, point: index };
            match series.iter_mut().find(|one| one.name == name) {
                Some(one) => one.values.push(value),
                None => series.push(Series { name, values: vec![value] }),
            }
        }
        // A line goes from left to right.
        let place = |value: &Value| if let At::Number(x) = value.x { x } else { 0.0 };
        series.iter_mut().for_each(|one| one.values.sort_by(|a, b| place(a).total_cmp(&place(b))));
        // A line has two points; a single one stands in the table.
        let is_drawn = |one: &Series| scale == Scale::Names || one.values.len() > 1;
        series.iter().any(is_drawn).then_some(Panel { title, x, scale, y, series })
    }

    /// Puts what the paper says beside each value of which it says something: a range of all workloads is said of each.
    pub(super) fn mark(&mut self, points: &[Point], published: &[Published]) {
        for value in self.series.iter_mut().flat_map(|series| &mut series.values) {
            let point = &points[value.point];
            let mut said = published.iter().filter(|published| !is_of_several_rows(published));
            value.published = said.find(|published| answers(point, published)).map(|published| published.value);
        }
    }
}

/// The number that a text begins with: `64` of `64 MB`.
pub(crate) fn leading_number(text: &str) -> Option<f64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(workload: &str, setting: &str, value: f64) -> Point {
        Point {
            workload: workload.to_string(),
            page_size: String::new(),
            setting: setting.to_string(),
            series: "rate",
            value,
            unit: "K/s",
            input: String::new(),
            stands_for: workload.to_string(),
            events: None,
        }
    }

    fn published(workload: &str, setting: &str, value: Span) -> Published {
        Published {
            figure: "figure07".to_string(),
            workload: workload.to_string(),
            page_size: "any".to_string(),
            setting: setting.to_string(),
            series: "rate".to_string(),
            value,
            unit: "K/s".to_string(),
            place: "section 5".to_string(),
        }
    }

    #[test]
    fn a_panel_has_a_line_for_each_series_and_the_papers_values_in_their_places() {
        let points = [point("A", "one, 1 MB", 3.0), point("A", "one, 2 MB", 4.0), point("A", "two, 1 MB", 5.0)];
        let place = |point: &Point| {
            let (system, size) = point.setting.split_once(", ")?;
            Some((system.to_string(), At::Number(leading_number(size)?)))
        };
        let mut panel =
            Panel::of(&points, ("(a)".to_string(), Scale::Log), ["cache, MB", "K/s"], place).expect("it has values");
        let lines: Vec<(&str, usize)> = panel.series.iter().map(|one| (&one.name[..], one.values.len())).collect();
        assert_eq!(lines, [("one", 2), ("two", 1)]);
        let (most, range) = (Span { low: None, high: Some(9.0) }, Span { low: Some(3.0), high: Some(4.0) });
        panel.mark(&points, &[published("best", "any", most), published("A", "one, 2 MB", range)]);
        let marks: Vec<Option<Span>> =
            panel.series.iter().flat_map(|one| &one.values).map(|one| one.published).collect();
        assert_eq!(marks, [None, Some(range), None], "a best of all is no value's");
    }

    #[test]
    fn a_panel_without_values_is_none() {
        let points = [point("A", "", f64::NAN), point("B", "", 1.0)];
        let nan = |point: &Point| (point.workload == "A").then(|| (String::new(), At::Name("A".to_string())));
        assert_eq!(Panel::of(&points, (String::new(), Scale::Names), ["", ""], nan), None);
    }

    #[test]
    fn a_panel_of_lines_has_a_line_of_two_points() {
        let points = [point("A", "1", 2.0), point("B", "1", 3.0), point("B", "2", 4.0)];
        let series = |workloads: &[&str], scale| {
            let place = |point: &Point| {
                let at = At::Number(leading_number(&point.setting)?);
                workloads.contains(&&point.workload[..]).then(|| (point.workload.clone(), at))
            };
            Panel::of(&points, (String::new(), scale), ["", ""], place).map(|panel| panel.series.len())
        };
        assert_eq!([series(&["A"], Scale::Linear), series(&["A"], Scale::Log)], [None, None]);
        assert_eq!(series(&["A", "B"], Scale::Linear), Some(2), "a point beside a line is seen");
    }

    #[test]
    fn numbers_are_read_from_settings() {
        let texts = ["64 MB", "16m", "2.5 x", "none", "1"];
        assert_eq!(texts.map(leading_number), [Some(64.0), Some(16.0), Some(2.5), None, Some(1.0)]);
    }
}

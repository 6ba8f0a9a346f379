//! A figure's points as a table: a row for each workload, page size and setting, a column for each series, and beside a
//! series what the paper says of that row.

use ssdlab_lab::text::columns;

use super::compare::{answers, is_of_several_rows};
use super::figure_data::Point;
use super::published::Published;

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Heads of the columns; the first `labels` are text, the others numbers.
    pub(crate) heads: Vec<String>,
    pub(crate) labels: usize,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A number in its unit, as precise as it is worth: from 1 on a tenth of a per cent, a hundredth of a factor, three digits
/// of anything else and all digits of what is whole; below 1 two digits that count, but nothing below a thousandth.
pub(crate) fn number(value: f64, unit: &str) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    if let Some(text) = small(value) {
        return text;
    }
    match unit {
        "%" => format!("{value:.1}"),
        "x" => format!("{value:.2}"),
        _ if value.fract() == 0.0 && value.abs() < 1e15 => grouped(value as i64),
        _ => {
            let whole = value.abs().log10().floor() as usize + 1;
            format!("{value:.*}", 3_usize.saturating_sub(whole))
        }
    }
}

/// A value between -1 and 1, unless it is 1 when rounded.
fn small(value: f64) -> Option<String> {
    const FINEST: usize = 3;
    if value == 0.0 || value.is_nan() || value.abs() >= 1.0 {
        return None;
    }
    // The first digit that counts, and one more.
    let decimals = (1 - value.abs().log10().floor() as i32).clamp(0, FINEST as i32) as usize;
    let text = format!("{value:.decimals$}");
    match text.trim_start_matches('-') {
        rounded if rounded.starts_with('1') => None,
        // What rounds to nothing has no sign.
        zero if zero.chars().all(|letter| matches!(letter, '0' | '.')) => Some(zero.to_string()),
        _ => Some(text),
    }
}

fn grouped(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", ssdlab_base::grouped(&value.unsigned_abs().to_string(), ','))
}

impl Grid {
    /// Lays the points out; `published` are those of the figure, and `drives_are` is what the paper's drives are called by.
    pub(crate) fn of(points: &[Point], published: &[Published], drives_are: &str) -> Grid {
        let key = |point: &Point| (point.workload.clone(), point.page_size.clone(), point.setting.clone());
        let mut rows: Vec<(String, String, String)> = Vec::new();
        let mut series: Vec<(&str, &str)> = Vec::new();
        for point in points {
            if !rows.contains(&key(point)) {
                rows.push(key(point));
            }
            if !series.iter().any(|(name, _)| *name == point.series) {
                series.push((point.series, point.unit));
            }
        }
        let paged = rows.iter().any(|(_, page, _)| !page.is_empty());
        let set = rows.iter().any(|(_, _, setting)| !setting.is_empty());
        let mut heads = vec![String::new()];
        heads.extend(paged.then(|| drives_are.to_string()));
        heads.extend(set.then(|| "setting".to_string()));
        let labels = heads.len();
        let papers = |point: &Point| {
            let mut single = published.iter().filter(|published| !is_of_several_rows(published));
            single.find(|published| answers(point, published))
        };
        let columns: Vec<(&str, bool)> = series
            .iter()
            .map(|(name, unit)| {
                heads.push(if unit.is_empty() { (*name).to_string() } else { format!("{name}, {unit}") });
                let beside = points.iter().any(|point| point.series == *name && papers(point).is_some());
                heads.extend(beside.then(|| "paper".to_string()));
                (*name, beside)
            })
            .collect();
        let cells = rows.iter().map(|row| {
            let mut cells = vec![row.0.clone()];
            cells.extend(paged.then(|| row.1.clone()));
            cells.extend(set.then(|| row.2.clone()));
            for (name, beside) in &columns {
                let point = points.iter().find(|point| point.series == *name && key(point) == *row);
                cells.push(point.map_or_else(|| "-".to_string(), |point| number(point.value, point.unit)));
                if *beside {
                    let paper = point.and_then(papers);
                    cells.push(paper.map_or_else(String::new, |published| published.value.to_string()));
                }
            }
            cells
        });
        let rows = cells.collect();
        Grid { heads, labels, rows }
    }

    /// Columns below each other for a terminal, indented by two.
    pub(crate) fn plain(&self) -> String {
        let rows: Vec<Vec<String>> = std::iter::once(&self.heads).chain(&self.rows).cloned().collect();
        columns(&rows, self.labels).lines().map(|line| format!("{}\n", format!("  {line}").trim_end())).collect()
    }

    /// A Markdown table.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let escape = |cells: &[String]| cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>();
        let mut text = line(&escape(&self.heads));
        let marks = (0..self.heads.len()).map(|column| if column < self.labels { "---" } else { "---:" }.to_string());
        text.push_str(&line(&marks.collect::<Vec<_>>()));
        for row in &self.rows {
            text.push_str(&line(&escape(row)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::published::Span;

    fn point(workload: &str, series: &'static str, value: f64) -> Point {
        Point {
            workload: workload.to_string(),
            page_size: String::new(),
            setting: String::new(),
            series,
            value,
            unit: "%",
            input: String::new(),
            stands_for: workload.to_string(),
            events: None,
        }
    }

    #[test]
    fn a_series_with_published_values_has_the_papers_beside_it_and_a_gap_is_a_dash() {
        let published = Published {
            figure: "f".to_string(),
            workload: "A".to_string(),
            page_size: "any".to_string(),
            setting: "any".to_string(),
            series: "two".to_string(),
            value: Span { low: Some(1.0), high: Some(2.5) },
            unit: "%".to_string(),
            place: "p".to_string(),
        };
        let points = [point("A", "one", 1.0), point("A", "two", 2.25), point("B", "one", -3.0)];
        let grid = Grid::of(&points, &[published], "page");
        assert_eq!(grid.heads, ["", "one, %", "two, %", "paper"]);
        assert_eq!(grid.rows, [["A", "1.0", "2.2", "1 to 2.5"], ["B", "-3.0", "-", ""]]);
        assert_eq!(grid.plain(), "     one, %  two, %     paper\n  A     1.0     2.2  1 to 2.5\n  B    -3.0       -\n");
        assert!(grid.markdown().starts_with("|  | one, % | two, % | paper |\n| --- | ---: | ---: | ---: |\n"));
    }

    #[test]
    fn numbers_are_as_precise_as_they_are_worth() {
        assert_eq!(number(12_345.0, "pages"), "12,345");
        assert_eq!(number(-1234.0, ""), "-1,234");
        assert_eq!(number(0.1234, "ms"), "0.12");
        assert_eq!(number(12.34, "us"), "12.3");
        assert_eq!(number(1234.5, "us"), "1234");
        assert_eq!(number(8.0, "x"), "8.00");
        assert_eq!(number(0.996, "%"), "1.0");
        assert_eq!(number(0.996, "x"), "1.00");
        assert_eq!(number(99.96, "%"), "100.0");
    }

    #[test]
    fn below_one_two_digits_count_and_nothing_below_a_thousandth() {
        assert_eq!(number(0.146, "%"), "0.15");
        assert_eq!(number(0.5, "%"), "0.50");
        assert_eq!(number(-0.04, "%"), "-0.040");
        assert_eq!(number(-0.0046, "x"), "-0.005");
        assert_eq!(number(0.000_4, "%"), "0.000");
        assert_eq!(number(-0.000_4, "%"), "0.000");
        assert_eq!((number(0.0, "%"), number(-0.0, "x")), ("0".to_string(), "0".to_string()));
        assert_eq!(number(0.0999, "%"), "0.100");
        assert_eq!(number(f64::NAN, "%"), "NaN");
    }
}

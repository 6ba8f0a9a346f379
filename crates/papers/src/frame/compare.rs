//! Ours beside the paper's: each published value with the points that answer to it.

use serde::Serialize;

use super::figure_data::Point;
use super::published::{Published, Span};

/// A published value and what this execution found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What the paper says.
    #[serde(flatten)]
    pub published: Published,
    /// The setting of our points.
    pub our_setting: String,
    /// From the least of our values to the greatest; for a best, least or mean that value alone.
    pub ours: Option<Span>,
    /// Whose values the ends are: workloads' names.
    pub ends: Vec<String>,
    /// Whether ours lie in what the paper says.
    pub within: Option<bool>,
    /// Workloads that have a value and are not judged, because too few events are behind it; with their number.
    pub too_few: Vec<(String, u64)>,
}

/// Words for a workload that stand for several.
const SEVERAL: [&str; 4] = ["all", "best", "least", "mean"];

/// Whether a published value is a best, least or mean of workloads, and so no row's.
pub(super) fn is_of_several_rows(published: &Published) -> bool {
    ["best", "least", "mean"].contains(&published.workload.as_str())
}

/// Whether a point answers to a published value.
pub(super) fn answers(point: &Point, published: &Published) -> bool {
    let matches = |asked: &str, found: &str| asked == "any" || asked == found;
    let workload = match published.workload.as_str() {
        several if SEVERAL.contains(&several) => !point.stands_for.is_empty(),
        one => one == point.stands_for,
    };
    workload
        && published.series == point.series
        && matches(&published.page_size, &point.page_size)
        && matches(&published.setting, &point.setting)
}

/// Every published value of a figure, once for each setting of the points that answer to it.
pub(super) fn compare(published: &[Published], points: &[Point]) -> Vec<Compared> {
    let mut compared = Vec::new();
    for published in published {
        let answering: Vec<&Point> = points.iter().filter(|point| answers(point, published)).collect();
        let mut settings: Vec<&str> = Vec::new();
        for point in &answering {
            if !settings.contains(&point.setting.as_str()) {
                settings.push(&point.setting);
            }
        }
        if settings.is_empty() {
            compared.push(one(published, "", &[]));
        }
        for setting in settings {
            let of_setting: Vec<&Point> = answering.iter().copied().filter(|point| point.setting == setting).collect();
            let (mut few, mut told): (Vec<&Point>, Vec<&Point>) =
                of_setting.into_iter().partition(|point| point.says_nothing());
            // What the paper says of one workload is held against that one, whatever it is made of.
            if told.is_empty() && !SEVERAL.contains(&published.workload.as_str()) {
                told = std::mem::take(&mut few);
            }
            let few = few.iter().map(|point| (point.workload.clone(), point.events.unwrap_or(0))).collect();
            compared.push(Compared { too_few: few, ..one(published, setting, &told) });
        }
    }
    compared
}

fn one(published: &Published, setting: &str, points: &[&Point]) -> Compared {
    let least = points.iter().min_by(|a, b| a.value.total_cmp(&b.value));
    let most = points.iter().max_by(|a, b| a.value.total_cmp(&b.value));
    let (ours, ends) = match (least, most) {
        (Some(least), Some(most)) => {
            let single = |value: f64| Span { low: Some(value), high: Some(value) };
            match published.workload.as_str() {
                "best" => (Some(single(most.value)), vec![most.workload.clone()]),
                "least" => (Some(single(least.value)), vec![least.workload.clone()]),
                "mean" => {
                    let mean = points.iter().map(|point| point.value).sum::<f64>() / points.len() as f64;
                    (Some(single(mean)), Vec::new())
                }
                _ => {
                    let span = Span { low: Some(least.value), high: Some(most.value) };
                    (Some(span), vec![least.workload.clone(), most.workload.clone()])
                }
            }
        }
        _ => (None, Vec::new()),
    };
    let within = ours.map(|ours| [ours.low, ours.high].into_iter().flatten().all(|end| published.value.holds(end)));
    Compared { published: published.clone(), our_setting: setting.to_string(), ours, ends, within, too_few: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(stands_for: &str, setting: &str, value: f64) -> Point {
        Point {
            workload: format!("{stands_for} model"),
            page_size: "8k".to_string(),
            setting: setting.to_string(),
            series: "s",
            value,
            unit: "%",
            input: "a file".to_string(),
            stands_for: stands_for.to_string(),
            events: None,
        }
    }

    fn published(workload: &str, low: f64, high: f64) -> Published {
        Published {
            figure: "figure01".to_string(),
            workload: workload.to_string(),
            page_size: "any".to_string(),
            setting: "any".to_string(),
            series: "s".to_string(),
            value: Span { low: Some(low), high: Some(high) },
            unit: "%".to_string(),
            place: "section 1".to_string(),
        }
    }

    #[test]
    fn a_range_is_held_against_every_workload_that_stands_for_one_of_the_papers() {
        let points = [point("A", "", 3.0), point("B", "", 5.0), point("", "", 99.0)];
        let all = &compare(&[published("all", 3.0, 5.0)], &points)[0];
        assert_eq!(all.ours, Some(Span { low: Some(3.0), high: Some(5.0) }));
        assert_eq!(all.ends, ["A model", "B model"]);
        assert_eq!(all.within, Some(true));
        assert_eq!(compare(&[published("all", 4.0, 5.0)], &points)[0].within, Some(false));
        let single = |word: &str| compare(&[published(word, 0.0, 9.0)], &points)[0].ours.and_then(|span| span.low);
        assert_eq!(single("best"), Some(5.0));
        assert_eq!(single("least"), Some(3.0));
        assert_eq!(single("mean"), Some(4.0));
        assert_eq!(single("B"), Some(5.0));
    }

    #[test]
    fn a_value_of_too_few_events_is_not_judged_unless_the_paper_speaks_of_nothing_else() {
        let of = |point: Point, events: u64| Point { events: Some(events), ..point };
        let points = [of(point("A", "", 3.0), 100), of(point("B", "", 50.0), 99), of(point("C", "", 0.0), 0)];
        let all = &compare(&[published("all", 3.0, 5.0)], &points)[0];
        assert_eq!((all.within, &all.ends[..]), (Some(true), &["A model".to_string(), "A model".to_string()][..]));
        assert_eq!(all.too_few, [("B model".to_string(), 99), ("C model".to_string(), 0)]);
        assert_eq!(compare(&[published("best", 3.0, 5.0)], &points)[0].within, Some(true));
        // Aligned requests are no reason for a gain: that there is none is what the paper says of them.
        let alone = &compare(&[published("C", 0.0, 0.0)], &points)[0];
        assert_eq!((alone.within, alone.too_few.len()), (Some(true), 0));
        let none = &compare(&[published("all", 3.0, 5.0)], &points[1..])[0];
        assert_eq!((none.within, none.ours, none.too_few.len()), (None, None, 2));
    }

    #[test]
    fn settings_are_compared_one_by_one_and_what_nobody_answers_stays_open() {
        let points = [point("A", "timed", 3.0), point("A", "timed*0.1", 8.0)];
        let compared = compare(&[published("A", 3.0, 3.0), published("C", 0.0, 1.0)], &points);
        assert_eq!(compared.len(), 3);
        assert_eq!((compared[0].within, compared[1].within, compared[2].within), (Some(true), Some(false), None));
    }
}

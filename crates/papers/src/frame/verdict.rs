//! How much of what a paper says was found: so many of its values within, and of each figure what lies outside and why.

use serde::Serialize;

use super::compare::Compared;
use super::grid::number;
use super::output::FigureReport;
use super::published::Span;

/// The verdict on a reproduction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// Published values that ours lie in.
    pub within: usize,
    /// Published values that ours were held against.
    pub judged: usize,
    /// Published values without one of ours, or with too few events behind it.
    pub open: usize,
    /// Figures with values outside, in their order.
    pub outside: Vec<Outside>,
}

/// What of a figure lies outside what the paper says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outside {
    /// The figure's name.
    pub figure: &'static str,
    /// Values outside, and values judged.
    pub values: (usize, usize),
    /// The first of them: what the paper says of it, and ours.
    pub first: String,
    /// Why, as far as known; may be empty.
    pub why: &'static str,
}

impl Verdict {
    /// Of all figures.
    pub(super) fn of(figures: &[FigureReport]) -> Verdict {
        let mut verdict = Verdict::default();
        for figure in figures {
            let judged: Vec<&Compared> = figure.compared.iter().filter(|one| one.within.is_some()).collect();
            let outside: Vec<&Compared> = judged.iter().copied().filter(|one| one.within == Some(false)).collect();
            verdict.judged += judged.len();
            verdict.within += judged.len() - outside.len();
            verdict.open += figure.compared.len() - judged.len();
            if let Some(first) = outside.first() {
                let values = (outside.len(), judged.len());
                verdict.outside.push(Outside { figure: figure.id, values, first: said(first), why: figure.differs });
            }
        }
        verdict
    }

    /// The first line; nothing where no value was judged.
    pub(crate) fn headline(&self) -> Option<String> {
        let open = match self.open {
            0 => String::new(),
            open => format!("; {open} without a value of ours to judge"),
        };
        let all = if self.outside.is_empty() { "" } else { "; these are not" };
        let (within, judged) = (self.within, self.judged);
        (judged > 0).then(|| format!("{within} of {judged} published values within{open}{all}"))
    }
}

impl Outside {
    /// A line: how many, the first of them where there are more, and why.
    pub(crate) fn line(&self) -> String {
        let (outside, judged) = self.values;
        let which = if outside == 1 { &self.first } else { &format!("first {}", self.first) };
        let why = if self.why.is_empty() { String::new() } else { format!(" {}", self.why) };
        format!("{outside} of {judged} outside: {which}.{why}")
    }
}

/// A published value and ours, in a line.
fn said(compared: &Compared) -> String {
    let published = &compared.published;
    let of = [&published.workload, &published.page_size, &compared.our_setting];
    let of: Vec<&str> = of.into_iter().map(String::as_str).filter(|word| !["", "any", "all"].contains(word)).collect();
    let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
    let unit = &published.unit;
    let ours = match compared.ours {
        Some(Span { low: Some(low), high: Some(high) }) if low != high => {
            format!("{} to {}", number(low, unit), number(high, unit))
        }
        Some(Span { low: Some(low), .. }) => number(low, unit),
        _ => "-".to_string(),
    };
    format!("{}{of} {ours} for {} {unit}", published.series, published.value).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::super::published::Published;
    use super::*;

    fn compared(workload: &str, ours: f64, within: Option<bool>) -> Compared {
        let single = |value| Span { low: Some(value), high: Some(value) };
        Compared {
            published: Published {
                figure: "figure07".to_string(),
                workload: workload.to_string(),
                page_size: "any".to_string(),
                setting: "any".to_string(),
                series: "IOPS relative to DFTL".to_string(),
                value: single(18.0),
                unit: "x".to_string(),
                place: "section 1".to_string(),
            },
            our_setting: "SHRD, 1 MB".to_string(),
            ours: within.map(|_| single(ours)),
            ends: Vec::new(),
            within,
            too_few: Vec::new(),
        }
    }

    fn figure(id: &'static str, compared: Vec<Compared>) -> FigureReport {
        FigureReport {
            id,
            title: "",
            about: "",
            differs: "DFTL is faster here.",
            points: Vec::new(),
            panels: Vec::new(),
            curves: Vec::new(),
            pictures: Vec::new(),
            remarks: Vec::new(),
            compared,
            commands: Vec::new(),
            drives_are: "drive",
            grid: Grid::default(),
        }
    }

    #[test]
    fn it_counts_what_is_within_and_says_of_each_figure_what_is_not_and_why() {
        let one = figure("figure07", vec![compared("fio", 1.96, Some(false)), compared("all", 18.0, Some(true))]);
        let two = figure("figure08", vec![compared("a", 1.0, Some(false)), compared("b", 2.0, Some(false))]);
        let verdict = Verdict::of(&[one, two, figure("figure09", vec![compared("lost", 0.0, None)])]);
        assert_eq!(
            verdict.headline().as_deref(),
            Some("1 of 4 published values within; 1 without a value of ours to judge; these are not")
        );
        let lines: Vec<String> = verdict.outside.iter().map(Outside::line).collect();
        assert_eq!(
            lines,
            [
                "1 of 2 outside: IOPS relative to DFTL (fio, SHRD, 1 MB) 1.96 for 18 x. DFTL is faster here.",
                "2 of 2 outside: first IOPS relative to DFTL (a, SHRD, 1 MB) 1.00 for 18 x. DFTL is faster here.",
            ]
        );
        assert_eq!(Verdict::of(&[]).headline(), None);
    }
}

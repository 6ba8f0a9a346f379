//! What all papers share: opening a paper, finding its inputs, doing runs once and keeping them, comparing with published values, and
//! the report as text, files and a page.

mod compare;
mod context;
pub mod docs;
pub(crate) mod drive_columns;
mod experiment;
mod figure;
mod figure_data;
mod file_work;
mod grid;
mod input;
mod input_stats;
mod output;
mod page;
mod panel;
mod picture;
mod plan;
pub(crate) mod published;
mod result_reader;
pub(crate) mod run_columns;
mod runner;
mod store;
mod svg;
mod table;
#[cfg(test)]
mod template;
#[cfg(test)]
mod tests;
mod text;
mod verdict;

pub use compare::Compared;
pub use context::PaperContext;
pub use experiment::{Experiment, Phase, Size, Smaller, Variant};
pub use figure::{Content, Figure, Made, Paper};
pub(crate) use figure::{text, texts};
pub(crate) use figure_data::point;
pub use figure_data::{Curve, Curves, Drawn, EVENTS_MIN, Point};
pub use file_work::{FileWorkText, OnFiles};
pub(crate) use grid::number;
pub use input::{Input, InputKind, Library};
pub use input_stats::Survey;
pub use output::{FigureReport, Report, try_out, write};
pub(crate) use panel::leading_number;
pub use panel::{At, Panel, Scale, Series, Value};
pub use picture::{Lane, Mark, Picture};
pub use plan::{Preparation, Run};
pub use published::{Published, PublishedError, Span};
pub use result_reader::Measured;
pub use runner::{Outcome, Outcomes, RunFailure, Settings, Watch, execute, largest};
pub use table::{Column, Label, Reading, Row};
pub(crate) use table::{joined, names, own_runs, runs_of};
pub use text::render;
pub use verdict::{Outside, Verdict};

use ssdlab_base::closest;

/// Why a reproduction cannot begin or go on; the input was wrong.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub struct ReproduceError {
    /// What is wrong.
    pub sentence: String,
    /// What could be written instead.
    pub hint: Option<String>,
}

impl ReproduceError {
    pub(crate) fn new(sentence: impl std::fmt::Display) -> ReproduceError {
        ReproduceError { sentence: sentence.to_string(), hint: None }
    }
}

/// What `PAPER` or `PAPER/FIGURE` names among `papers`.
///
/// # Errors
/// A name that is not known, with the one that was probably meant.
pub(crate) fn find_in(
    papers: &'static [&'static Paper],
    name: &str,
) -> Result<(&'static Paper, Vec<&'static Figure>), ReproduceError> {
    let unknown = |what: &str, written: &str, names: Vec<&str>| ReproduceError {
        sentence: format!("no {what} is called '{written}'"),
        hint: Some(match closest(written, names.iter().copied()) {
            Some(name) => format!("did you mean '{name}'? There are {}", names.join(", ")),
            None => format!("there are {}", names.join(", ")),
        }),
    };
    let (paper_name, figure_name) = match name.split_once('/') {
        Some((paper, figure)) => (paper, Some(figure)),
        None => (name, None),
    };
    let Some(paper) = papers.iter().find(|paper| paper.name == paper_name) else {
        return Err(unknown("paper", paper_name, papers.iter().map(|paper| paper.name).collect()));
    };
    let Some(figure_name) = figure_name else {
        return Ok((paper, paper.figures.to_vec()));
    };
    // "8", "figure8" and "figure08" are the same figure.
    let wanted = figure_name.strip_prefix("figure").unwrap_or(figure_name);
    let wanted = match wanted.parse::<u32>() {
        Ok(number) => format!("figure{number:02}"),
        Err(_) => figure_name.to_string(),
    };
    match paper.figures.iter().find(|figure| figure.id == wanted) {
        Some(&figure) => Ok((paper, vec![figure])),
        None => {
            let ids = paper.figures.iter().map(|figure| figure.id).collect();
            Err(unknown(&format!("figure of {paper_name}"), figure_name, ids))
        }
    }
}

//! Reproductions: a paper's figures and tables, ours beside the published values.
//!
//! ```text
//!   Paper (experiment.toml, published/*.csv, figures)
//!     | PaperContext::open: inputs are found and looked through
//!     | Figure::runs --> Plan: every distinct run once --> runner: all cores, kept under OUT/runs
//!     | Figure::draw: points, panels of them, curves and pictures from results
//!     v
//!   Report: tables on the terminal, report.html, CSV, JSON, the numbers in papers/PAPER/*.md
//! ```
//!
//! The folder `papers/` of the source tree has what a paper's experiments read and what readers see: `experiment.toml`, published
//! values, pages. This crate has the code: a module for each paper, one line for it in [`PAPERS`], and `frame`, which all share. A
//! figure is one file: it states the runs it needs and how it is made of their results, and decides nothing else. A number never
//! stands without the input behind it, and no figure reads anything but results and published values.

mod amf;
mod frame;
mod getting_real;
mod shrd;
#[cfg(test)]
mod tests;
mod waflash;
mod write_amplification;

pub use frame::*;

/// Every paper that is reproduced.
pub const PAPERS: &[&Paper] =
    &[&waflash::PAPER, &write_amplification::PAPER, &shrd::PAPER, &amf::PAPER, &getting_real::PAPER];

/// What `PAPER` or `PAPER/FIGURE` names: the paper, and the figure or all that belong to a whole reproduction.
///
/// # Errors
/// A name that is not known, with the one that was probably meant.
pub fn find(name: &str) -> Result<(&'static Paper, Vec<&'static Figure>), ReproduceError> {
    frame::find_in(PAPERS, name)
}

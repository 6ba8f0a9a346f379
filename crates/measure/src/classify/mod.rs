//! From lows to page programs: the paper's window on one line, and classifiers that use more.
//!
//! | method | looks at | takes for a program |
//! | --- | --- | --- |
//! | `window` | one line | what lasts between a and b |
//! | `all-dies` | every line of the capture | the same |
//! | `read-filter` | every line | the same, without what belongs to the fitted cluster of reads |
//! | `mixture` | every line | each low by its probability in a mixture fitted to the durations |
//!
//! Each gives the number of pages with an interval. What is in the interval, and what is not, is said at [`Estimate`].

mod estimate;
mod expected;
mod hidden;
mod mixture;
mod survey;

pub use estimate::{Estimate, Method, estimates};
pub use expected::{Expected, ProgramWindow};
pub use mixture::{Component, Fit, Operation, Shape};
pub use survey::Survey;

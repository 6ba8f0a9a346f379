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
mod mixture;
mod survey;

pub use estimate::{Estimate, Method, estimates};
pub use mixture::{Component, Fit, Operation, Shape};
pub use survey::Survey;

use ssdlab_base::Nanos;
use ssdlab_flash::{FlashConfig, Latency};

use crate::histogram::Window;

/// How long operations are expected to last, from a datasheet or a guess; what is not known is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Page read.
    pub read: Option<Window>,
    /// Page program.
    pub program: Option<Window>,
    /// Block erase.
    pub erase: Option<Window>,
}

impl Expected {
    /// The durations that a description gives, a nanosecond wider: windows are open.
    pub fn of(flash: &FlashConfig) -> Expected {
        let window = |latencies: &[Latency]| {
            let above = latencies.iter().map(|latency| latency.min.0).min()?;
            let below = latencies.iter().map(|latency| latency.max.0).max()?;
            Some(Window { above: Nanos(above.saturating_sub(1)), below: Nanos(below.saturating_add(1)) })
        };
        let timing = &flash.timing;
        Expected { read: window(&timing.read), program: window(&timing.program), erase: window(&[timing.erase]) }
    }
}

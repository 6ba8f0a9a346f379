//! Lows of an operation for which a fit found no component: how many of them may be among the programs all the same.
//!
//! A component is added to a fit when that pays, so a few erases that last as long as programs do get none. The count then
//! is of all lows, and the fit alone would leave nothing open. What is open is asked of the likelihood instead: a component
//! of the operation's expected durations is put beside the fit, and its share raised until the lows speak against it (the
//! interval by the profile of the likelihood ratio, 95 %). Where in the expected durations the operation lies is not known, so
//! the place that hides the most counts.

use super::mixture::Cell;
use super::{Expected, Fit, Operation};
use crate::Window;
use crate::histogram::Durations;

/// Half of the 95th percentile of chi square with one degree of freedom: the log-likelihood that a share may cost.
const COST: f64 = 1.920_729;
/// Halvings of a share: its last place is below any number of lows.
const HALVINGS: u32 = 60;

impl Fit {
    /// Of the lows counted as programs, how many may be of expected operations for which the fit has no component: at most
    /// so many (95 %). Nothing is said of operations whose durations are not expected.
    pub fn hidden(&self, durations: &Durations, expected: &Expected) -> f64 {
        let bins: Vec<(Cell, f64, f64)> = durations
            .bins()
            .map(|bin| {
                let cell = Cell::of(bin);
                let fitted = self.components.iter().map(|part| part.weight * part.shape.mass(&cell)).sum();
                (cell, fitted, self.probability(bin, Operation::Program))
            })
            .collect();
        let missing = |operation| self.components.iter().all(|component| component.operation != operation);
        let of = |operation, window: Option<Window>| match window {
            Some(window) if missing(operation) => most_hidden(&bins, window),
            _ => 0.0,
        };
        of(Operation::Read, expected.read) + of(Operation::Erase, expected.erase)
    }
}

/// The most that stretches of the window, of one bin and of twice as many each time, can hide.
fn most_hidden(bins: &[(Cell, f64, f64)], window: Window) -> f64 {
    let first = bins.partition_point(|(cell, ..)| cell.to <= window.above.0 as f64 + 1.0);
    let last = bins.partition_point(|(cell, ..)| cell.from < window.below.0 as f64);
    let Some(inside) = bins.get(first..last).filter(|inside| !inside.is_empty()) else { return 0.0 };
    let mut most = 0.0;
    let mut length = 1;
    loop {
        for stretch in inside.windows(length) {
            most = f64::max(most, hidden_in(bins, stretch));
        }
        if length == inside.len() {
            return most;
        }
        length = (2 * length).min(inside.len());
    }
}

/// What an operation whose durations are spread evenly over a stretch of bins can hide.
fn hidden_in(bins: &[(Cell, f64, f64)], stretch: &[(Cell, f64, f64)]) -> f64 {
    let (Some((shortest, ..)), Some((longest, ..))) = (stretch.first(), stretch.last()) else { return 0.0 };
    let (from, to) = (shortest.from, longest.to);
    let elsewhere: f64 = bins.iter().map(|(cell, ..)| cell.count).sum::<f64>()
        - stretch.iter().map(|(cell, ..)| cell.count).sum::<f64>();
    let mass = |cell: &Cell| (cell.to - cell.from) / (to - from);
    // Against the fit without it; concave in the share.
    let gain = |share: f64| {
        let inside = stretch.iter().map(|(cell, fitted, _)| {
            cell.count * ((1.0 - share) + share * mass(cell) / fitted.max(f64::MIN_POSITIVE)).ln()
        });
        elsewhere * (1.0 - share).ln() + inside.sum::<f64>()
    };
    let slope = |share: f64| {
        let inside = stretch.iter().map(|(cell, fitted, _)| {
            let times = mass(cell) / fitted.max(f64::MIN_POSITIVE) - 1.0;
            cell.count * times / (1.0 + share * times)
        });
        inside.sum::<f64>() - elsewhere / (1.0 - share)
    };
    let likeliest = if slope(0.0) > 0.0 { halve(0.0, 1.0, |share| slope(share) > 0.0) } else { 0.0 };
    let least = gain(likeliest) - COST;
    let share = halve(likeliest, 1.0, |share| gain(share) > least);
    // Of the lows that are there, and of those that were counted as programs.
    let taken = stretch.iter().map(|(cell, fitted, program)| {
        let (of_it, of_others) = (share * mass(cell), (1.0 - share) * fitted);
        cell.count * program * of_it / (of_it + of_others)
    });
    taken.sum()
}

/// Where what holds at `low` and not at `high` stops to hold.
fn halve(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

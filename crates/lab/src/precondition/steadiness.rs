//! When write amplification has settled: windows, passes or spans of windows agree.

use serde::{Deserialize, Serialize};

use crate::result::Settled;

/// A window holds at least this many mapping units: fewer leave more than 1 % to chance.
const WINDOW_UNITS_MIN: u64 = 1 << 18;

/// Windows that must agree.
const WINDOWS_AGREEING: usize = 4;

/// Passes that must agree, where whole passes are compared.
const PASSES_AGREEING: usize = 3;

/// Spans that must agree, where windows alternate, and windows of a span: a multiple of nearly every shorter period.
const SPANS_AGREEING: usize = 3;
const SPAN_WINDOWS: std::ops::RangeInclusive<usize> = 8..=12;

/// How close they must be: 1 % of their mean from the least to the most.
const AGREEMENT: f64 = 0.01;

/// Overwriting ends here, steady or not, in user capacities; and not before so many windows.
const CAPACITIES_MAX: u64 = 40;
const WINDOWS_MAX: u64 = 12;

/// Before one whole pass, windows count only after so many user capacities.
const CAPACITIES_MIN: u64 = 3;

/// When write amplification has settled.
///
/// Host writes are counted in windows of half the user capacity (of at least 262,144 mapping units, so that chance
/// stays below the 1 % that is asked for). It has settled when the last four windows lie within 1 % of their mean,
/// from the least to the most: a slow drift shows between the first and the fourth. Windows count only when the
/// workload has been sent once in full, or three user capacities were written: a phase of a trace is not its steady
/// state. A workload that varies over its length and writes at least a window's worth settles also when three
/// whole passes lie within 1 %.
///
/// Windows may alternate for ever, or scatter by more than 1 %, while what they alternate about stays: under a skewed
/// workload whose hot blocks lie elsewhere in each pass, or where a window collects few large victims. So it has settled
/// also when the means of three spans, one after the other and each of the same 8 to 12 windows, lie within 1 %. A drift
/// must be slower to pass this than to pass for four windows that agree.
///
/// After 40 user capacities (or 12 windows, if that is more) the search ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    pub(super) window_bytes: u64,
    pub(super) user_bytes: u64,
    pub(super) windows: Vec<f64>,
    passes: Vec<f64>,
    whole_passes: u64,
    written_bytes: u64,
}

impl Steadiness {
    /// For a drive of `user_bytes` that maps `unit_bytes` at a time.
    pub fn new(user_bytes: u64, unit_bytes: u64) -> Steadiness {
        let window_bytes = (user_bytes / 2).max(WINDOW_UNITS_MIN * unit_bytes);
        Steadiness {
            window_bytes,
            user_bytes,
            windows: Vec::new(),
            passes: Vec::new(),
            whole_passes: 0,
            written_bytes: 0,
        }
    }

    /// A window of `bytes` ended with this write amplification.
    pub fn window(&mut self, bytes: u64, write_amplification: f64) {
        self.written_bytes += bytes;
        self.windows.push(write_amplification);
    }

    /// A pass of `bytes` ended with this write amplification.
    pub fn pass(&mut self, bytes: u64, write_amplification: f64) {
        self.whole_passes += 1;
        if bytes >= self.window_bytes {
            self.passes.push(write_amplification);
        }
    }

    /// Whether it has settled.
    pub fn is_steady(&self) -> bool {
        self.settled().is_some()
    }

    /// What agrees where it has settled: windows, passes or spans, in this order.
    pub fn settled(&self) -> Option<Settled> {
        let seen_enough = self.whole_passes > 0 || self.written_bytes >= CAPACITIES_MIN * self.user_bytes;
        if seen_enough && agree(&self.windows, WINDOWS_AGREEING) {
            Some(Settled::Windows)
        } else if agree(&self.passes, PASSES_AGREEING) {
            Some(Settled::Passes)
        } else {
            SPAN_WINDOWS.into_iter().find_map(|windows| {
                let last = &self.windows[self.windows.len().checked_sub(SPANS_AGREEING * windows)?..];
                let means: Vec<f64> = last.chunks_exact(windows).map(mean).collect();
                let settled = Settled::Spans { windows: windows as u64, apart: spread(last) / mean(last) };
                agree(&means, SPANS_AGREEING).then_some(settled)
            })
        }
    }

    /// Bytes after which the search ends, steady or not.
    pub(super) fn most_bytes(&self) -> u64 {
        (CAPACITIES_MAX * self.user_bytes).max(WINDOWS_MAX * self.window_bytes)
    }

    /// Whether the search has gone on for long enough.
    pub fn is_exhausted(&self) -> bool {
        self.written_bytes >= self.most_bytes()
    }

    /// The write amplification of the last windows, as many as must agree.
    pub(super) fn last_windows(&self) -> &[f64] {
        &self.windows[self.windows.len().saturating_sub(WINDOWS_AGREEING)..]
    }
}

fn agree(values: &[f64], count: usize) -> bool {
    let Some(start) = values.len().checked_sub(count) else {
        return false;
    };
    let last = &values[start..];
    spread(last) <= AGREEMENT * mean(last)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// From the least to the most.
fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - least
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;
    use ssdlab_base::rng;

    use super::*;

    const USER: u64 = 1 << 40;

    fn fed(values: &[f64]) -> Steadiness {
        let mut steadiness = Steadiness::new(USER, 4096);
        for &value in values {
            steadiness.window(USER / 2, value);
        }
        steadiness
    }

    #[test]
    fn four_windows_within_a_percent_are_steady_but_not_before_three_capacities() {
        assert!(!fed(&[3.0; 4]).is_steady());
        assert!(fed(&[3.0; 6]).is_steady());
        assert!(!fed(&[1.0, 2.0, 3.0, 3.01, 3.02, 3.05]).is_steady());
        assert!(fed(&[1.0, 2.0, 3.0, 3.01, 3.02, 3.02]).is_steady());
    }

    #[test]
    fn a_slow_drift_is_not_steady_though_neighbours_agree() {
        let drift: Vec<f64> = (0..20).map(|step| 2.0 * 1.005_f64.powi(step)).collect();
        assert!(!fed(&drift).is_steady());
    }

    #[test]
    fn windows_count_after_one_whole_pass() {
        let mut steadiness = fed(&[3.0; 4]);
        steadiness.pass(USER / 4, 3.0);
        assert!(steadiness.is_steady());
    }

    #[test]
    fn a_workload_in_phases_is_steady_when_its_passes_agree() {
        let mut steadiness = Steadiness::new(USER, 4096);
        for _ in 0..3 {
            for value in [1.0, 5.0, 2.0, 4.0] {
                steadiness.window(USER / 2, value);
            }
            assert!(!steadiness.is_steady());
            steadiness.pass(2 * USER, 3.0);
        }
        assert!(steadiness.is_steady());
    }

    /// Feeds a series to its end; the windows after which it was steady, and by what.
    fn search(value: impl Fn(usize) -> f64) -> Option<(usize, Settled)> {
        let mut steadiness = Steadiness::new(USER, 4096);
        for window in 0.. {
            match steadiness.settled() {
                Some(settled) => return Some((window, settled)),
                None if steadiness.is_exhausted() => break,
                None => steadiness.window(USER / 2, value(window)),
            }
        }
        None
    }

    /// What a window of a drawn series has beside 1, from -1 to 1.
    fn drawn(seed: u64) -> Vec<f64> {
        let mut rng = rng(seed, "noise");
        (0..80).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    #[test]
    fn the_search_ends() {
        let mut steadiness = Steadiness::new(USER, 4096);
        let mut windows = 0;
        while !steadiness.is_exhausted() {
            steadiness.window(USER / 2, 1.01_f64.powi(windows));
            windows += 1;
        }
        assert_eq!(windows, 80);
        assert!(!steadiness.is_steady());
    }

    /// Found where a pass wrote the capacity and had hot blocks of its own: two windows for each, for ever.
    #[test]
    fn windows_that_alternate_are_steady_when_spans_of_them_agree() {
        for seed in 0..50 {
            let noise = drawn(seed);
            for period in 2..=4 {
                let high = |window: usize| if window.is_multiple_of(period) { 1.3 } else { 1.0 };
                let found = search(|window| high(window) * (1.0 + 0.004 * noise[window]));
                let Some((windows, Settled::Spans { windows: span, apart })) = found else {
                    panic!("period {period}, seed {seed}: {found:?}")
                };
                assert!(windows >= 24 && (8..=12).contains(&span), "period {period}, seed {seed}: {found:?}");
                assert!((0.2..0.35).contains(&apart), "period {period}, seed {seed}: {found:?}");
            }
        }
    }

    #[test]
    fn what_ends_by_its_windows_ends_as_soon_as_before() {
        for seed in 0..50 {
            let noise = drawn(seed);
            let found = search(|window| 3.0 + 0.01 * noise[window]);
            assert_eq!(found, Some((6, Settled::Windows)), "seed {seed}");
        }
    }

    #[test]
    fn noise_about_a_constant_is_steady_and_a_drift_in_it_is_not() {
        let mut refused = 0;
        for seed in 0..50 {
            let noise = drawn(seed);
            for alternation in [0.0, 0.05] {
                let high = |window: usize| if window.is_multiple_of(2) { 1.0 + alternation } else { 1.0 };
                let around = |window: usize| high(window) * (1.0 + 0.04 * noise[window]);
                assert!(search(around).is_some(), "seed {seed}");
                for drift in [0.004, -0.004] {
                    let found = search(|window| (1.0 + drift * window as f64) * around(window));
                    refused += u32::from(!matches!(found, Some((_, Settled::Spans { .. }))));
                }
            }
        }
        // Of 200 series: noise that hides a drift over the whole span is rare.
        assert!(refused >= 195, "{refused}");
    }

    #[test]
    fn a_drift_under_an_alternation_is_not_steady() {
        for drift in [0.002, -0.002, 0.01, -0.01] {
            for period in 2..5 {
                let high = |window: usize| if window.is_multiple_of(period) { 1.3 } else { 1.0 };
                let found = search(|window| high(window) * (1.0 + drift * window as f64));
                assert_eq!(found, None, "drift {drift}, period {period}");
            }
        }
    }
}

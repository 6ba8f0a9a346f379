//! When requests arrive: an open loop with gaps of a given variation, in calm and in bursts.
//!
//! Gaps are exponential, or hyperexponential of two phases with balanced means where their squared coefficient of
//! variation is above 1. Time runs faster in bursts: calm and bursts take turns, both of exponential length, and in a
//! burst `burst_factor` times as many requests arrive as on average.

use serde::Deserialize;
use ssdlab_base::{Rng, rng};

use crate::WorkloadError;
use crate::draw::unit;

/// What a description says of arrivals.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Mean rate.
    pub requests_per_second: f64,
    /// Squared coefficient of variation of the gaps, apart from bursts; 1 is exponential.
    #[serde(default = "one")]
    pub gap_variation: f64,
    /// Rate in bursts over the mean rate.
    #[serde(default = "one")]
    pub burst_factor: f64,
    /// Share of time in bursts, 0 to 1.
    #[serde(default)]
    pub burst_share: f64,
    /// Mean length of a burst, in seconds.
    #[serde(default)]
    pub burst_seconds: f64,
    /// Where these numbers come from.
    pub source: String,
}

fn one() -> f64 {
    1.0
}

impl Arrivals {
    /// Whether the numbers make sense.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let refused = |key: &str, value: f64, expected: &str| {
            Err(WorkloadError(format!("[arrivals] {key}: found {value}, expected {expected}")))
        };
        if !(1e-6..=1e9).contains(&self.requests_per_second) {
            return refused("requests_per_second", self.requests_per_second, "a rate above 0, at most 1e9");
        }
        if !(1.0..=1e6).contains(&self.gap_variation) {
            return refused("gap_variation", self.gap_variation, "1 (exponential gaps) or more, at most 1e6");
        }
        if !(0.0..1.0).contains(&self.burst_share) {
            return refused("burst_share", self.burst_share, "a share of time from 0 to below 1");
        }
        if self.burst_share > 0.0 {
            if !(1.0..=1.0 / self.burst_share).contains(&self.burst_factor) {
                let most = 1.0 / self.burst_share;
                return refused(
                    "burst_factor",
                    self.burst_factor,
                    &format!("1 to {most}, which leaves the calm nothing"),
                );
            }
            if !(1e-6..=1e9).contains(&self.burst_seconds) {
                return refused("burst_seconds", self.burst_seconds, "a length above 0");
            }
        }
        Ok(())
    }
}

/// Draws arrival times.
pub(super) struct Clock {
    arrivals: Arrivals,
    rng: Rng,
    now_s: f64,
    in_burst: bool,
    phase_ends_s: f64,
    /// Hyperexponential: the chance of the first phase, and the means of both for a mean of 1.
    first: f64,
    means: [f64; 2],
}

impl Clock {
    pub(super) fn new(arrivals: &Arrivals, seed: u64) -> Clock {
        let c = arrivals.gap_variation;
        let first = 0.5 * (1.0 + libm::sqrt((c - 1.0) / (c + 1.0)));
        let means = [0.5 / first, if first < 1.0 { 0.5 / (1.0 - first) } else { 0.0 }];
        let mut clock = Clock {
            arrivals: arrivals.clone(),
            rng: rng(seed, "model arrivals"),
            now_s: 0.0,
            in_burst: false,
            phase_ends_s: f64::INFINITY,
            first,
            means,
        };
        if arrivals.burst_share > 0.0 {
            clock.in_burst = unit(&mut clock.rng) < arrivals.burst_share;
            clock.phase_ends_s = clock.phase_length();
        }
        clock
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - unit(&mut self.rng)) * mean
    }

    fn phase_length(&mut self) -> f64 {
        let Arrivals { burst_share, burst_seconds, .. } = self.arrivals;
        let mean = if self.in_burst { burst_seconds } else { burst_seconds * (1.0 - burst_share) / burst_share };
        self.exponential(mean)
    }

    /// Requests a second now.
    fn rate(&self) -> f64 {
        let Arrivals { requests_per_second, burst_factor, burst_share, .. } = self.arrivals;
        if self.in_burst {
            requests_per_second * burst_factor
        } else {
            requests_per_second * (1.0 - burst_share * burst_factor) / (1.0 - burst_share)
        }
    }

    /// The next arrival, in nanoseconds from the start.
    pub(super) fn next_ns(&mut self) -> u64 {
        let phase = usize::from(unit(&mut self.rng) >= self.first);
        let mut left = self.exponential(self.means[phase]);
        loop {
            let rate = self.rate();
            let in_phase = (self.phase_ends_s - self.now_s) * rate;
            if left <= in_phase {
                // In a calm without any request there is nothing to divide by, and nothing left.
                self.now_s += if rate > 0.0 { left / rate } else { 0.0 };
                return (self.now_s * 1e9) as u64;
            }
            left -= in_phase;
            self.now_s = self.phase_ends_s;
            self.in_burst = !self.in_burst;
            self.phase_ends_s = self.now_s + self.phase_length();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(arrivals: &Arrivals, count: usize) -> Vec<f64> {
        let mut clock = Clock::new(arrivals, 7);
        let times: Vec<u64> = (0..count).map(|_| clock.next_ns()).collect();
        times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect()
    }

    fn plain(gap_variation: f64) -> Arrivals {
        Arrivals {
            requests_per_second: 500.0,
            gap_variation,
            burst_factor: 1.0,
            burst_share: 0.0,
            burst_seconds: 0.0,
            source: String::new(),
        }
    }

    /// Mean, and squared coefficient of variation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance / (mean * mean))
    }

    #[test]
    fn gaps_have_the_mean_and_the_variation_that_were_asked_for() {
        for variation in [1.0, 3.0, 20.0] {
            let (mean, found) = moments(&gaps(&plain(variation), 400_000));
            assert!((mean * 500.0 - 1.0).abs() < 5.0 * (variation / 400_000.0).sqrt(), "{variation}: mean {mean}");
            assert!((found / variation - 1.0).abs() < 0.1, "{variation}: {found}");
        }
    }

    #[test]
    fn bursts_keep_the_mean_rate_and_have_their_own() {
        let arrivals = Arrivals { burst_factor: 3.0, burst_share: 0.2, burst_seconds: 0.05, ..plain(1.0) };
        let gaps = gaps(&arrivals, 1_000_000);
        let (mean, variation) = moments(&gaps);
        assert!((mean * 500.0 - 1.0).abs() < 0.03, "{mean}");
        assert!(variation > 1.5, "{variation}");
        // In windows much shorter than a phase the counts vary as the rates do: their variation is 1 over Poisson's.
        let mut counts = vec![0_u32; 200_000];
        let mut now = 0.0;
        for gap in &gaps {
            now += gap;
            if let Some(count) = counts.get_mut((now / 0.01) as usize) {
                *count += 1;
            }
        }
        let counts: Vec<f64> = counts.into_iter().map(f64::from).collect();
        let (mean, variation) = moments(&counts[..190_000]);
        let of_rates = variation - 1.0 / mean;
        // 3 for a fifth of the time and 0.5 for the rest: 1; windows across a change take some of it away.
        assert!((0.75..1.05).contains(&of_rates), "{of_rates}");
    }
}

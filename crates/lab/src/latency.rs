//! Latencies of one kind of request: an HDR histogram for percentiles, and exact mean, least and most.

use hdrhistogram::Histogram;

use crate::result::{Cdf, LatencySummary};

/// Percentiles are within 0.1 % of the true ones.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Longest latency told apart, in nanoseconds (36 years); longer ones count as this in percentiles only.
const HIGHEST_NS: u64 = 1 << 60;

/// Points that [`Latencies::cdf`] gives for each halving of the distance to 100 %.
const CDF_POINTS_PER_HALVING: u32 = 10;

/// The latencies of one kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Latencies {
    pub(crate) fn new() -> Latencies {
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS);
        Latencies {
            histogram: histogram.expect("the bounds and digits are constants that the histogram accepts"),
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one request.
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all of `other`.
    pub(crate) fn add(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("both histograms have the same bounds");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Requests counted.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// All latencies together.
    pub(crate) fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The few numbers of results; `None` without a request.
    pub(crate) fn summary(&self) -> Option<LatencySummary> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        // A bucket's upper end may lie above the largest value in it.
        let percentile = |quantile: f64| self.histogram.value_at_quantile(quantile).clamp(self.min_ns, self.max_ns);
        Some(LatencySummary {
            count,
            mean: self.sum_ns as f64 / count as f64,
            min: self.min_ns,
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p999: percentile(0.999),
            p9999: percentile(0.9999),
            max: self.max_ns,
        })
    }

    /// The cumulative distribution, finer towards the tail: down to single requests.
    pub(crate) fn cdf(&self) -> Cdf {
        let mut cdf = Cdf::default();
        if self.count() == 0 {
            return cdf;
        }
        let total = self.count() as f64;
        let mut below = 0;
        for step in self.histogram.iter_quantiles(CDF_POINTS_PER_HALVING) {
            below += step.count_since_last_iteration();
            if step.count_since_last_iteration() == 0 {
                continue;
            }
            cdf.latency_ns.push(step.value_iterated_to().clamp(self.min_ns, self.max_ns));
            cdf.fraction.push(below as f64 / total);
        }
        cdf
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_recorded_is_no_summary() {
        assert_eq!(Latencies::new().summary(), None);
        assert_eq!(Latencies::new().cdf(), Cdf::default());
    }

    #[test]
    fn a_zero_latency_of_an_untimed_drive_stays_zero() {
        let mut latencies = Latencies::new();
        latencies.record(0);
        let summary = latencies.summary().expect("one request");
        assert_eq!((summary.min, summary.p50, summary.max), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn summaries_agree_with_a_sorted_list(mut values in prop::collection::vec(0_u64..10_000_000_000, 1..2000)) {
            let mut half = Latencies::new();
            let mut other = Latencies::new();
            for (index, &value) in values.iter().enumerate() {
                if index % 3 == 0 { half.record(value) } else { other.record(value) }
            }
            half.add(&other);
            values.sort_unstable();
            let summary = half.summary().expect("values");
            let exact: u128 = values.iter().map(|&v| u128::from(v)).sum();
            prop_assert_eq!(half.sum_ns(), exact);
            prop_assert_eq!(summary.min, values[0]);
            prop_assert_eq!(summary.max, values[values.len() - 1]);
            for (quantile, found) in [(0.5, summary.p50), (0.9, summary.p90), (0.99, summary.p99)] {
                let rank = ((quantile * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let wanted = values[rank - 1] as f64;
                prop_assert!(found as f64 >= wanted - 1.0, "p{} is {} but must be {}", quantile, found, wanted);
                prop_assert!(found as f64 <= wanted * 1.001 + 1.0, "p{} is {} but must be {}", quantile, found, wanted);
            }
        }

        #[test]
        fn a_distribution_rises_to_one_and_never_understates(values in prop::collection::vec(1_u64..1_000_000_000, 1..3000)) {
            let mut latencies = Latencies::new();
            values.iter().for_each(|&value| latencies.record(value));
            let cdf = latencies.cdf();
            prop_assert!(cdf.latency_ns.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(cdf.fraction.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(cdf.fraction.last(), Some(&1.0));
            for (&latency, &fraction) in cdf.latency_ns.iter().zip(&cdf.fraction) {
                let below = values.iter().filter(|&&value| value <= latency).count();
                prop_assert!(below as f64 / values.len() as f64 >= fraction - 1e-12);
            }
        }
    }
}

//! Counts by size on a logarithmic scale, in constant memory.

use serde::Serialize;

/// Steps to a doubling.
const STEPS: u64 = 8;
const STEP_BITS: u32 = 3;

/// A histogram with eight steps to a doubling: a percentile is exact up to 8 and at most an eighth too high above.
#[derive(Clone, Debug)]
pub(super) struct LogHistogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    max: u64,
}

/// What a distribution looks like: its mean and percentiles, in the unit of the field that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Values counted.
    pub count: u64,
    /// Mean; 0 where nothing was counted.
    pub mean: f64,
    /// Half of the values are at most this.
    pub p50: u64,
    /// Nine of ten are.
    pub p90: u64,
    /// 99 of a hundred are.
    pub p99: u64,
    /// The largest, exactly.
    pub max: u64,
}

/// One bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Values up to and including this, above the bar before.
    pub up_to: u64,
    /// How many.
    pub count: u64,
}

impl LogHistogram {
    pub(super) fn new() -> LogHistogram {
        LogHistogram { counts: vec![0; bucket(u64::MAX) + 1], total: 0, sum: 0, max: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, value: u64, count: u64) {
        // A trace made for it names more pages than there are numbers.
        let bucket = &mut self.counts[bucket(value)];
        *bucket = bucket.saturating_add(count);
        self.total = self.total.saturating_add(count);
        self.sum = self.sum.saturating_add(u128::from(value) * u128::from(count));
        self.max = self.max.max(value);
    }

    /// The smallest bucket bound that `share` of the values do not exceed.
    fn percentile(&self, share: f64) -> u64 {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            seen = count.saturating_add(seen);
            if seen >= wanted {
                return bound(at).min(self.max);
            }
        }
        self.max
    }

    pub(super) fn distribution(&self) -> Distribution {
        if self.total == 0 {
            return Distribution::default();
        }
        Distribution {
            count: self.total,
            mean: self.sum as f64 / self.total as f64,
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            max: self.max,
        }
    }

    /// The histogram by powers of two, from the first bar that holds something to the last.
    pub(super) fn bars(&self) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        for (at, &count) in self.counts.iter().enumerate() {
            // Every value up to 2^n lies in a bucket whose bound is below 2^n or is 2^n - 1 and one.
            let up_to = match bound(at) {
                0 => 0,
                bound => bound.checked_next_power_of_two().unwrap_or(u64::MAX),
            };
            match bars.last_mut() {
                Some(bar) if bar.up_to == up_to => bar.count = bar.count.saturating_add(count),
                _ => bars.push(Bar { up_to, count }),
            }
        }
        let first = bars.iter().position(|bar| bar.count > 0).unwrap_or(bars.len());
        let last = bars.iter().rposition(|bar| bar.count > 0).map_or(first, |last| last + 1);
        bars[first..last].to_vec()
    }
}

/// The first bucket is zero's alone. Buckets are closed above: a power of two is the last value of its bucket.
fn bucket(value: u64) -> usize {
    let Some(value) = value.checked_sub(1) else { return 0 };
    if value < STEPS {
        return value as usize + 1;
    }
    let exponent = value.ilog2();
    let step = value >> (exponent - STEP_BITS) & (STEPS - 1);
    ((u64::from(exponent - STEP_BITS + 1) << STEP_BITS) + step) as usize + 1
}

/// The last value of a bucket.
fn bound(bucket: usize) -> u64 {
    let Some(bucket) = bucket.checked_sub(1) else { return 0 };
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket + 1;
    }
    let exponent = (bucket >> STEP_BITS) - 1;
    let base = u128::from(STEPS + (bucket & (STEPS - 1)) + 1) << exponent;
    u64::try_from(base).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_at_its_bound_and_no_more_than_an_eighth_above() {
        for value in (0..5_000).chain([u64::MAX - 1, u64::MAX, 1 << 40, (1 << 40) + 1]) {
            let bound = bound(bucket(value));
            assert!(bound >= value, "{value} {bound}");
            assert!(bound - value <= value / 8 + 1, "{value} {bound}");
            if value > 0 {
                assert!(bucket(value) >= bucket(value - 1), "{value}");
            }
        }
    }

    /// Where most distances are zero, their median is zero, not a byte.
    #[test]
    fn zero_is_a_value_of_its_own() {
        let mut histogram = LogHistogram::new();
        histogram.add(0, 3);
        histogram.add(1, 1);
        histogram.add(4096, 1);
        let distribution = histogram.distribution();
        assert_eq!((distribution.p50, distribution.p90, distribution.max), (0, 4096, 4096));
        assert_eq!(histogram.bars()[..2], [Bar { up_to: 0, count: 3 }, Bar { up_to: 1, count: 1 }]);
        assert_eq!(bound(bucket(0)), 0);
    }

    #[test]
    fn powers_of_two_close_their_bars() {
        let mut histogram = LogHistogram::new();
        for value in [4096, 4096, 4097, 8192, 16384] {
            histogram.add(value, 1);
        }
        let bars: Vec<(u64, u64)> = histogram.bars().iter().map(|bar| (bar.up_to, bar.count)).collect();
        assert_eq!(bars, [(4096, 2), (8192, 2), (16384, 1)]);
        let distribution = histogram.distribution();
        assert_eq!(distribution.max, 16384);
        assert_eq!(distribution.p50, 4608);
        assert_eq!(distribution.mean, 36865.0 / 5.0);
    }
}

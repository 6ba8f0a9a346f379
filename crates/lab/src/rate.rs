//! How evenly a drive serves: the completions of a run in intervals of equal length, as a coefficient of variation.

use crate::result::RateVariation;

/// The intervals, unless a run asks for others: 100 ms.
const INTERVAL_NS: u64 = 100_000_000;

/// Counts completions interval by interval, in constant memory. As in the timeline, one at the very end of an interval
/// belongs to it.
#[derive(Debug)]
pub(crate) struct RateCounter {
    interval_ns: u64,
    /// Where the current interval ends.
    end_ns: u64,
    current: u64,
    intervals: u64,
    sum: u128,
    squares: u128,
}

impl RateCounter {
    /// From time zero on, with intervals of 100 ms or of this length.
    pub(crate) fn new(interval_ns: Option<u64>) -> RateCounter {
        let interval_ns = interval_ns.unwrap_or(INTERVAL_NS).max(1);
        RateCounter { interval_ns, end_ns: interval_ns, current: 0, intervals: 0, sum: 0, squares: 0 }
    }

    /// A request completed.
    #[inline]
    pub(crate) fn completed(&mut self, at_ns: u64) {
        if at_ns > self.end_ns {
            self.close_until(at_ns);
        }
        self.current += 1;
    }

    /// Closes all intervals that end before `at_ns`.
    #[cold]
    fn close_until(&mut self, at_ns: u64) {
        let done = std::mem::take(&mut self.current);
        self.sum += u128::from(done);
        self.squares += u128::from(done) * u128::from(done);
        // Nothing completed in the others.
        let passed = (at_ns - self.end_ns).div_ceil(self.interval_ns);
        self.intervals += passed;
        self.end_ns = self.end_ns.saturating_add(passed.saturating_mul(self.interval_ns));
    }

    /// What the whole intervals up to the last completion, at `now_ns`, show.
    pub(crate) fn variation(&self, now_ns: u64) -> RateVariation {
        let (mut intervals, mut sum, mut squares) = (u128::from(self.intervals), self.sum, self.squares);
        if now_ns >= self.end_ns {
            intervals += 1;
            sum += u128::from(self.current);
            squares += u128::from(self.current) * u128::from(self.current);
        }
        // Standard deviation over mean, both over all intervals; the difference is an integer and not below zero.
        let cv = (intervals > 1 && sum > 0).then(|| ((intervals * squares - sum * sum) as f64).sqrt() / sum as f64);
        RateVariation { interval_ns: self.interval_ns, intervals: intervals as u64, cv }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(interval_ns: u64, completions: &[u64]) -> RateVariation {
        let mut counter = RateCounter::new(Some(interval_ns));
        completions.iter().for_each(|&at| counter.completed(at));
        counter.variation(completions.last().copied().unwrap_or(0))
    }

    #[test]
    fn an_even_rate_does_not_vary_and_a_swinging_one_varies_by_the_closed_form() {
        let even: Vec<u64> = (1..=1000).map(|at| at * 10).collect();
        assert_eq!(counted(100, &even), RateVariation { interval_ns: 100, intervals: 100, cv: Some(0.0) });
        // 15 and 5 in turns: the mean is 10, the standard deviation 5.
        let swinging: Vec<u64> = (0..100_u64)
            .flat_map(|interval| (1..=if interval % 2 == 0 { 15 } else { 5 }).map(move |at| interval * 100 + at))
            .chain([10_000])
            .collect();
        let varied = counted(100, &swinging);
        assert_eq!(varied.intervals, 100);
        // The last one is at the end of the last interval, which has six for it.
        let cv = varied.cv.expect("two intervals and more");
        assert!((cv - 0.498).abs() < 0.002, "{cv}");
    }

    #[test]
    fn intervals_without_a_completion_count_and_the_unfinished_last_one_does_not() {
        // One in the first interval, three empty ones, one in the fifth, which is not over.
        assert_eq!(counted(100, &[50, 450]).intervals, 4);
        // Of 1, 0, 0, 0: the mean is 1/4, the variance 3/16.
        let cv = counted(100, &[50, 450]).cv.expect("intervals");
        assert!((cv - 3_f64.sqrt()).abs() < 1e-12, "{cv}");
        // At an interval's very end it still belongs to it, and the interval is over.
        assert_eq!(counted(100, &[100, 200]), RateVariation { interval_ns: 100, intervals: 2, cv: Some(0.0) });
    }

    #[test]
    fn too_little_has_no_variation() {
        assert_eq!(counted(100, &[]).cv, None);
        assert_eq!(counted(100, &[30, 150]).cv, None, "one whole interval");
        assert_eq!(RateCounter::new(None).variation(0).interval_ns, 100_000_000);
        assert_eq!(counted(1, &[u64::MAX]).intervals, u64::MAX);
    }
}

//! How evenly a drive serves: the completions of a run in intervals of equal length, as a coefficient of variation.

use crate::result::RateVariation;

/// The intervals, unless a run asks for others: 100 ms.
const INTERVAL_NS: u64 = 100_000_000;

/// Intervals that are kept; after so many neighbours are merged, as in the timeline.
const INTERVALS: usize = 1 << 16;

/// The part of a run that counts not: a drive begins it with room in the write buffer and with free blocks to use up.
const BEGINNING: usize = 10;

/// Counts completions interval by interval. As in the timeline, one at the very end of an interval belongs to it.
#[derive(Debug)]
pub(crate) struct RateCounter {
    interval_ns: u64,
    /// Where the current interval ends.
    end_ns: u64,
    current: u64,
    /// Those that are over.
    counts: Vec<u64>,
}

impl RateCounter {
    /// From time zero on, with intervals of 100 ms or of this length.
    pub(crate) fn new(interval_ns: Option<u64>) -> RateCounter {
        let interval_ns = interval_ns.unwrap_or(INTERVAL_NS).max(1);
        RateCounter { interval_ns, end_ns: interval_ns, current: 0, counts: Vec::new() }
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
        while at_ns > self.end_ns {
            if self.counts.len() == INTERVALS {
                self.merge();
                continue;
            }
            self.counts.push(std::mem::take(&mut self.current));
            self.end_ns = self.end_ns.saturating_add(self.interval_ns);
        }
    }

    /// Two intervals become one. Their number is even, so the current one begins where it did and is twice as long.
    fn merge(&mut self) {
        self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.end_ns = self.end_ns.saturating_add(self.interval_ns);
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// What the whole intervals up to the last completion, at `now_ns`, show.
    pub(crate) fn variation(&self, now_ns: u64) -> RateVariation {
        let last = (now_ns >= self.end_ns).then_some(self.current);
        let intervals = self.counts.len() + usize::from(last.is_some());
        let counted: Vec<f64> =
            self.counts.iter().copied().chain(last).skip(intervals / BEGINNING).map(|count| count as f64).collect();
        let mean = counted.iter().sum::<f64>() / counted.len() as f64;
        let squares = counted.iter().map(|count| (count - mean).powi(2)).sum::<f64>();
        let cv = (counted.len() > 1 && mean > 0.0).then(|| (squares / counted.len() as f64).sqrt() / mean);
        RateVariation { interval_ns: self.interval_ns, intervals: counted.len() as u64, cv }
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
        assert_eq!(counted(100, &even), RateVariation { interval_ns: 100, intervals: 90, cv: Some(0.0) });
        // 15 and 5 in turns: the mean is 10, the standard deviation 5.
        let swinging: Vec<u64> = (0..100_u64)
            .flat_map(|interval| (1..=if interval % 2 == 0 { 15 } else { 5 }).map(move |at| interval * 100 + at))
            .chain([10_000])
            .collect();
        let varied = counted(100, &swinging);
        assert_eq!(varied.intervals, 90);
        // The last one is at the end of the last interval, which has six for it.
        let cv = varied.cv.expect("two intervals and more");
        assert!((cv - 0.498).abs() < 0.002, "{cv}");
    }

    #[test]
    fn the_first_tenth_counts_not() {
        // A hundred in each of the first two intervals, then one in each of eighteen.
        let beginning = (1..=200).map(|number| number * 2);
        let completions: Vec<u64> = beginning.chain((3..=20).map(|interval| interval * 200)).collect();
        assert_eq!(counted(200, &completions), RateVariation { interval_ns: 200, intervals: 18, cv: Some(0.0) });
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
    fn a_long_run_has_longer_intervals() {
        let completions: Vec<u64> = (1..=5 * INTERVALS as u64).map(|at| at * 10).collect();
        let found = counted(10, &completions);
        assert_eq!((found.interval_ns, found.cv), (80, Some(0.0)));
        assert_eq!(found.intervals, 5 * INTERVALS as u64 / 8 - 5 * INTERVALS as u64 / 80);
    }

    #[test]
    fn too_little_has_no_variation() {
        assert_eq!(counted(100, &[]).cv, None);
        assert_eq!(counted(100, &[30, 150]).cv, None, "one whole interval");
        assert_eq!(RateCounter::new(None).variation(0).interval_ns, 100_000_000);
        assert!(counted(1, &[u64::MAX]).interval_ns > 1 << 40, "an interval of the end of time");
    }
}

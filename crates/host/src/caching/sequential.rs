//! Sequential runs: requests that begin where an earlier one ended.
//!
//! A cache that leaves sequential I/O to the disk learns of a run only while it goes on, so the beginning of each is cached
//! (FlashCache, doc/flashcache-sa-guide.txt, skip_seq_thresh_kb). Programs read and write several files at one time, so the last
//! runs are remembered; a request that continues none of them takes the place of the one that has waited longest.

use std::collections::VecDeque;

/// A run: the sector behind its last request, and its length in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    end: u64,
    sectors: u64,
}

/// The runs that requests have followed last.
#[derive(Debug)]
pub(crate) struct Sequential {
    /// The one that was continued last in front.
    runs: VecDeque<Run>,
    most: usize,
}

impl Sequential {
    /// Remembers so many runs, at least one.
    ///
    /// # Panics
    /// It would remember none.
    pub(crate) fn new(most: usize) -> Sequential {
        assert!(most > 0, "a request follows a run that is remembered");
        Sequential { runs: VecDeque::with_capacity(most), most }
    }

    /// A request comes: how many sectors of its run were before it, 0 where it begins one. A request without sectors is in no run.
    pub(crate) fn follow(&mut self, sector: u64, sectors: u64) -> u64 {
        if sectors == 0 {
            return 0;
        }
        let known = self.runs.iter().position(|run| run.end == sector);
        let before = known.and_then(|at| self.runs.remove(at)).map_or(0, |run| run.sectors);
        if self.runs.len() == self.most {
            self.runs.pop_back();
        }
        self.runs.push_front(Run { end: sector.saturating_add(sectors), sectors: before.saturating_add(sectors) });
        assert!(self.runs.len() <= self.most, "{} runs of at most {}", self.runs.len(), self.most);
        before
    }

    /// A request comes: how many of its sectors, counted from its first, still belong to the beginning of a run, which has
    /// `threshold` sectors. All of them with a threshold of 0: nothing counts as sequential then.
    pub(crate) fn random_sectors(&mut self, sector: u64, sectors: u64, threshold: u64) -> u64 {
        if threshold == 0 {
            return sectors;
        }
        let before = self.follow(sector, sectors);
        threshold.saturating_sub(before).min(sectors)
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn a_run_is_random_up_to_its_threshold_and_sequential_behind_it() {
        let mut runs = Sequential::new(4);
        assert_eq!([0, 8, 16, 24].map(|sector| runs.random_sectors(sector, 8, 20)), [8, 8, 4, 0]);
        // One large request has its beginning, too, and goes on where another ended.
        assert_eq!((runs.random_sectors(1000, 64, 20), runs.random_sectors(1064, 8, 20)), (20, 0));
        // A gap or a step back begins anew.
        assert_eq!((runs.random_sectors(33, 8, 20), runs.random_sectors(1060, 8, 20)), (8, 8));
        assert_eq!(runs.random_sectors(32, 8, 0), 8, "nothing is sequential without a threshold");
    }

    #[test]
    fn the_run_that_waited_longest_is_forgotten() {
        let mut runs = Sequential::new(2);
        runs.follow(0, 8);
        runs.follow(100, 8);
        assert_eq!(runs.follow(8, 8), 8, "it is the one continued last now");
        runs.follow(200, 8);
        assert_eq!((runs.follow(16, 8), runs.follow(108, 8)), (16, 0));
        assert_eq!(runs.follow(24, 0), 0, "a request without sectors changes nothing");
        assert_eq!(runs.follow(24, 8), 24);
    }

    #[test]
    fn sums_stay_in_range() {
        let mut runs = Sequential::new(1);
        assert_eq!((runs.follow(u64::MAX - 1, 9), runs.follow(u64::MAX, u64::MAX)), (0, 9));
        assert_eq!(runs.follow(u64::MAX, 1), u64::MAX);
    }

    /// Against a list of all requests: the newest that ended here, unless it was continued or as many others came later.
    #[test]
    fn runs_are_what_a_list_of_all_requests_says() {
        let mut rng = rng(38, "sequential runs");
        for most in [1, 2, 7] {
            let mut runs = Sequential::new(most);
            // End, sectors of the run, whether it was continued.
            let mut all = Vec::<(u64, u64, bool)>::new();
            let mut continued = 0;
            for _ in 0..20_000 {
                let (sector, sectors) = match all.last() {
                    Some(_) if rng.random_bool(0.6) => {
                        (all[all.len() - rng.random_range(1..=all.len().min(9))].0, rng.random_range(0..6))
                    }
                    _ => (rng.random_range(0..200), rng.random_range(0..6)),
                };
                let mut expected = 0;
                if sectors > 0 {
                    let open = all.iter_mut().rev().filter(|(_, _, is_over)| !is_over).take(most);
                    if let Some(run) = open.into_iter().find(|(end, ..)| *end == sector) {
                        (expected, run.2) = (run.1, true);
                        continued += 1;
                    }
                    all.push((sector + sectors, expected + sectors, false));
                }
                assert_eq!(runs.follow(sector, sectors), expected, "{sectors} sectors from {sector}, {most} runs");
            }
            assert!(continued > 1000, "{continued} requests continued one of {most} runs");
        }
    }
}

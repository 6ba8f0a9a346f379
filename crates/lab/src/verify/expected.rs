//! What each sector must hold: an array over all sectors, or, of a drive with far more addresses than room, what was written.

use rustc_hash::FxHashMap;
use ssdlab_flash::HugeArray;

/// Sectors that are kept together where few of many are.
const RUN: u64 = 8;

/// A word for each sector; 0 where nothing was written.
#[derive(Debug)]
pub(super) enum Expected {
    All(HugeArray<u64>),
    /// By the number of a run of sectors.
    Written(FxHashMap<u64, [u64; RUN as usize]>),
}

impl Expected {
    pub(super) fn get(&self, sector: u64) -> u64 {
        match self {
            Expected::All(sectors) => sectors.get(sector as usize),
            Expected::Written(runs) => runs.get(&(sector / RUN)).map_or(0, |run| run[(sector % RUN) as usize]),
        }
    }

    pub(super) fn set(&mut self, sector: u64, cell: u64) {
        match self {
            Expected::All(sectors) => sectors.set(sector as usize, cell),
            Expected::Written(runs) => {
                let run = runs.entry(sector / RUN).or_default();
                run[(sector % RUN) as usize] = cell;
                if cell == 0 && run.iter().all(|cell| *cell == 0) {
                    runs.remove(&(sector / RUN));
                }
            }
        }
    }

    /// The runs of sectors that hold something, in order, where few of many do.
    pub(super) fn written(&self) -> Option<Written> {
        let Expected::Written(runs) = self else { return None };
        let mut numbers: Vec<u64> = runs.keys().copied().collect();
        numbers.sort_unstable();
        Some(Written(numbers))
    }
}

/// Runs of sectors in order, by number.
#[derive(Debug)]
pub(super) struct Written(Vec<u64>);

impl Written {
    /// The first sectors from `sector` on, in one run, that hold something.
    pub(super) fn from(&self, sector: u64) -> Option<(u64, u64)> {
        let at = self.0.partition_point(|run| (run + 1) * RUN <= sector);
        self.0.get(at).map(|run| ((run * RUN).max(sector), (run + 1) * RUN))
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn few_sectors_of_many_are_kept_as_all_are() {
        let mut rng = rng(1, "expected");
        let (mut all, mut written) = (Expected::All(HugeArray::new(400)), Expected::Written(FxHashMap::default()));
        for step in 0..5_000 {
            let (sector, cell) = (rng.random_range(0..400), if rng.random_bool(0.6) { 0 } else { step + 1 });
            all.set(sector, cell);
            written.set(sector, cell);
        }
        let holds = |sector: u64| all.get(sector) != 0;
        for sector in 0..400 {
            assert_eq!(written.get(sector), all.get(sector), "sector {sector}");
        }
        let runs = written.written().expect("only what was written is kept");
        assert!(all.written().is_none());
        let mut sector = 0;
        while let Some((first, end)) = runs.from(sector) {
            assert!(!(sector..first).any(holds), "sectors {sector} to {first} hold something");
            assert!((first / RUN * RUN..end).any(holds), "the run of sectors {first} to {end} holds something");
            sector = end;
        }
        assert!(!(sector..400).any(holds), "sectors from {sector} on hold something");
    }
}

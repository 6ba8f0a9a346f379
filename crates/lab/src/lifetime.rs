//! How long a drive lasts at what a run did to it, where its description states the erases that a block endures.

use crate::result::{Capacity, Erases, Lifetime};

/// Seconds of a year and of a day.
const YEAR_S: f64 = 31_557_600.0;
const DAY_S: f64 = 86_400.0;

/// Years of the usual warranty, over which drive writes a day are counted.
const WARRANTY_YEARS: f64 = 5.0;

/// Mean erases of a block over the drive's life from which the most worn block says something: below, chance decides.
const ERASES_TO_JUDGE: f64 = 10.0;

/// What a lifetime is computed from.
pub(crate) struct Wear<'a> {
    /// Bytes that all blocks take over their rated erases.
    pub(crate) rated_bytes: f64,
    /// Bytes programmed for each byte that the host wrote.
    pub(crate) write_amplification: f64,
    /// Bytes that the host writes a second; nothing for a drive that takes no time.
    pub(crate) write_bytes_per_s: Option<f64>,
    pub(crate) capacity: &'a Capacity,
    /// Erases of the drive's whole life.
    pub(crate) erases: &'a Erases,
}

/// `rated_bytes / write_amplification` bytes of the host wear all blocks out; the most worn block is worn out `max / mean`
/// times earlier.
pub(crate) fn lifetime(wear: &Wear<'_>) -> Lifetime {
    let of = |rated_bytes: f64| {
        let written_bytes = rated_bytes / wear.write_amplification;
        let drives = written_bytes / wear.capacity.user_bytes.max(1) as f64;
        let rate = wear.write_bytes_per_s.filter(|&rate| rate > 0.0);
        (written_bytes, drives / (WARRANTY_YEARS * YEAR_S / DAY_S), rate.map(|rate| written_bytes / rate / YEAR_S))
    };
    let (written_bytes, drive_writes_per_day, years) = of(wear.rated_bytes);
    let Erases { mean, max, .. } = *wear.erases;
    let worst = (mean >= ERASES_TO_JUDGE).then(|| of(wear.rated_bytes * mean / f64::from(max)));
    Lifetime {
        written_bytes,
        drive_writes_per_day,
        years,
        worst_written_bytes: worst.map(|(bytes, ..)| bytes),
        worst_drive_writes_per_day: worst.map(|(_, writes, _)| writes),
        worst_years: worst.and_then(|(.., years)| years),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rated_bytes_by_write_amplification_are_the_host_s() {
        let capacity = Capacity { user_bytes: 1_000_000_000, drive_bytes: 1_000_000_000, flash_bytes: 1_100_000_000 };
        let rated_bytes = 3_000.0 * 1.1e9;
        let erases = Erases { total: 0, mean: 100.0, min: 90, max: 125, stddev: 5.0 };
        let wear = |erases| Wear {
            rated_bytes,
            write_amplification: 3.0,
            write_bytes_per_s: Some(1e6),
            capacity: &capacity,
            erases,
        };
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, {expected}");
        let lasts = lifetime(&wear(&erases));
        // 1.1 TB of the host: 1,100 drive writes in 1,826.25 days, and 1.1 million seconds.
        close(lasts.written_bytes, 1.1e12);
        close(lasts.drive_writes_per_day, 1_100.0 / 1_826.25);
        close(lasts.years.expect("it takes time"), 1.1e6 / YEAR_S);
        close(lasts.worst_written_bytes.expect("a worn drive"), 0.88e12);
        close(lasts.worst_years.expect("it takes time"), 0.88e6 / YEAR_S);
        // Of a drive that is almost new the most worn block says nothing.
        let new = Erases { mean: 1.5, max: 9, ..erases };
        let lasts = lifetime(&wear(&new));
        assert_eq!((lasts.worst_written_bytes, lasts.worst_years), (None, None));
        close(lasts.written_bytes, 1.1e12);
        let untimed = Wear { write_bytes_per_s: None, ..wear(&erases) };
        assert_eq!(lifetime(&untimed).years, None);
    }
}

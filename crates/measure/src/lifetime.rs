//! How long a drive lasts at what was done to it, where the erases that a block endures are stated.

use serde::{Deserialize, Serialize};

/// Seconds of a year and of a day.
const YEAR_S: f64 = 31_557_600.0;
const DAY_S: f64 = 86_400.0;

/// Years of the usual warranty, over which drive writes a day are counted.
const WARRANTY_YEARS: f64 = 5.0;

/// Mean erases of a block over the drive's life from which the most worn block says something: below, chance decides.
const ERASES_TO_JUDGE: f64 = 10.0;

/// How long a drive lasts: what the host can write until all blocks have had their rated erases, by the write amplification that
/// was measured, and, as `worst_`, until the most worn block has, by how uneven the wear of the drive's life is (absent below ten
/// erases of a block on average).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifetime {
    /// Bytes that the host can write: what a data sheet calls TBW.
    pub written_bytes: f64,
    /// As writes of the whole user capacity a day over five years: DWPD.
    pub drive_writes_per_day: f64,
    /// Years at the rate that was measured; `null` without one.
    pub years: Option<f64>,
    /// Bytes, by the most worn block.
    pub worst_written_bytes: Option<f64>,
    /// Drive writes a day, by the most worn block.
    pub worst_drive_writes_per_day: Option<f64>,
    /// Years, by the most worn block.
    pub worst_years: Option<f64>,
}

/// What a lifetime is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Bytes that all blocks take over their rated erases.
    pub rated_bytes: f64,
    /// Bytes programmed for each byte that the host wrote.
    pub write_amplification: f64,
    /// Bytes that the host writes a second; nothing for a drive that takes no time.
    pub write_bytes_per_s: Option<f64>,
    /// What the host can address.
    pub user_bytes: u64,
    /// Erases of a block over the drive's whole life, on average and of the most worn, as far as they are known.
    pub erases: Option<(f64, f64)>,
}

impl Lifetime {
    /// `rated_bytes / write_amplification` bytes of the host wear all blocks out; the most worn block is worn out `most / mean`
    /// times earlier.
    pub fn of(usage: &Usage) -> Lifetime {
        let of = |rated_bytes: f64| {
            let written_bytes = rated_bytes / usage.write_amplification;
            let drives = written_bytes / usage.user_bytes.max(1) as f64;
            let rate = usage.write_bytes_per_s.filter(|&rate| rate > 0.0);
            (written_bytes, drives / (WARRANTY_YEARS * YEAR_S / DAY_S), rate.map(|rate| written_bytes / rate / YEAR_S))
        };
        let (written_bytes, drive_writes_per_day, years) = of(usage.rated_bytes);
        let known = usage.erases.filter(|&(mean, most)| mean >= ERASES_TO_JUDGE && most >= mean);
        let worst = known.map(|(mean, most)| of(usage.rated_bytes * mean / most));
        Lifetime {
            written_bytes,
            drive_writes_per_day,
            years,
            worst_written_bytes: worst.map(|(bytes, ..)| bytes),
            worst_drive_writes_per_day: worst.map(|(_, writes, _)| writes),
            worst_years: worst.and_then(|(.., years)| years),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rated_bytes_by_write_amplification_are_the_host_s() {
        let usage = Usage {
            rated_bytes: 3_000.0 * 1.1e9,
            write_amplification: 3.0,
            write_bytes_per_s: Some(1e6),
            user_bytes: 1_000_000_000,
            erases: Some((100.0, 125.0)),
        };
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, {expected}");
        let lasts = Lifetime::of(&usage);
        // 1.1 TB of the host: 1,100 drive writes in 1,826.25 days, and 1.1 million seconds.
        close(lasts.written_bytes, 1.1e12);
        close(lasts.drive_writes_per_day, 1_100.0 / 1_826.25);
        close(lasts.years.expect("it takes time"), 1.1e6 / YEAR_S);
        close(lasts.worst_written_bytes.expect("a worn drive"), 0.88e12);
        close(lasts.worst_years.expect("it takes time"), 0.88e6 / YEAR_S);
        // Of a drive that is almost new the most worn block says nothing.
        let lasts = Lifetime::of(&Usage { erases: Some((1.5, 9.0)), ..usage });
        assert_eq!((lasts.worst_written_bytes, lasts.worst_years), (None, None));
        close(lasts.written_bytes, 1.1e12);
        assert_eq!(Lifetime::of(&Usage { write_bytes_per_s: None, ..usage }).years, None);
        assert_eq!(Lifetime::of(&Usage { erases: None, ..usage }).worst_written_bytes, None);
    }
}

//! A moment of the wall clock as people write it, in UTC: `2026-11-26 06:12 UTC`.

use std::time::SystemTime;

use chrono::{DateTime, Utc};

/// The moment to the minute, by the Gregorian calendar; a clock before 1970 counts as 1970.
///
/// ```
/// let noon = std::time::UNIX_EPOCH + std::time::Duration::from_secs(951_825_600);
/// assert_eq!(ssdlab_lab::utc(noon), "2000-02-29 12:00 UTC");
/// ```
pub fn utc(moment: SystemTime) -> String {
    DateTime::<Utc>::from(moment.max(SystemTime::UNIX_EPOCH)).format("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn first_and_last_days_of_months_and_years_are_named() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(68_255_999), "1972-02-29 23:59 UTC");
        assert_eq!(at(68_256_000), "1972-03-01 00:00 UTC");
        assert_eq!(at(1_798_761_599), "2026-12-31 23:59 UTC");
        assert_eq!(at(1_798_761_600), "2027-01-01 00:00 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}

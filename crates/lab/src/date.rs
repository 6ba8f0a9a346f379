//! A moment of the wall clock as people write it, in UTC: `2026-11-26 06:12 UTC`.

use std::time::SystemTime;

/// The moment to the minute, by the Gregorian calendar; a clock before 1970 counts as 1970.
///
/// ```
/// let noon = std::time::UNIX_EPOCH + std::time::Duration::from_secs(951_825_600);
/// assert_eq!(ssdlab_lab::utc(noon), "2000-02-29 12:00 UTC");
/// ```
pub fn utc(moment: SystemTime) -> String {
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let (mut year, mut day) = (1970, days);
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    let february = days_of(year) - 337;
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02} {:02}:{:02} UTC", day + 1, minutes / 60, minutes % 60)
}

fn days_of(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    365 + u64::from(leap)
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

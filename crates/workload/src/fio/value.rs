//! Numbers as fio 3.33 reads them: suffixes, `kb_base`, percentages, triples and ranges.
//!
//! Every reader refuses what it does not understand. Where fio would misread silently (`1.5k` is one byte to fio,
//! because it stops at the point), this is an error too, so a job never means something else here than it says.

use ssdlab_base::Nanos;

/// A size in bytes, or a share of something that the key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// So many bytes.
    Bytes(u64),
    /// Millionths of a percent, so that `12.5%` is exact.
    Percent(u64),
    /// So many zones, of the job's zone size.
    Zones(u64),
}

/// A share of one percent, in millionths of a percent.
pub(crate) const ONE_PERCENT: u64 = 1_000_000;

impl Extent {
    /// Bytes when the whole is `whole` bytes, rounded down.
    pub(crate) fn of(self, whole: u64) -> u64 {
        match self {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(share) => {
                let bytes = u128::from(whole) * u128::from(share) / u128::from(100 * ONE_PERCENT);
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
            Extent::Zones(_) => unreachable!("zones are bytes as soon as their size is known"),
        }
    }

    /// The extent in bytes where it is a number of zones, of `zone_size` bytes each; any other extent as it is.
    pub(crate) fn with_zones_of(self, zone_size: u64) -> Extent {
        match self {
            Extent::Zones(zones) => Extent::Bytes(zones.saturating_mul(zone_size)),
            other => other,
        }
    }

    /// Whether this is a share above the whole.
    pub(crate) fn exceeds_whole(self) -> bool {
        matches!(self, Extent::Percent(share) if share > 100 * ONE_PERCENT)
    }
}

/// Splits digits (decimal or `0x` hexadecimal) from the suffix behind them.
fn number_and_suffix(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        return Some((u64::from_str_radix(&hex[..end], 16).ok()?, hex[end..].trim()));
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// A plain count: digits, or `k m g` multiples as fio allows for every integer.
pub(crate) fn count(text: &str, kb_base: u64) -> Option<u64> {
    size(text, kb_base)
}

/// A size in bytes. With `kb_base=1024`, fio's default, `4k`, `4kb` and `4ki` are 4096 and `4kib` is 4000.
///
/// ```
/// use ssdlab_workload::fio::parse_size;
/// assert_eq!(parse_size("4kB", 1024), Some(4096));
/// assert_eq!(parse_size("4kB", 1000), Some(4000));
/// ```
pub fn size(text: &str, kb_base: u64) -> Option<u64> {
    let (number, suffix) = number_and_suffix(text)?;
    let suffix = suffix.to_ascii_lowercase();
    let other_base = if kb_base == 1000 { 1024 } else { 1000 };
    let (base, unit): (u64, &str) = match suffix.strip_suffix("ib") {
        Some(prefix) if !prefix.is_empty() => (other_base, prefix),
        _ => {
            let prefix = suffix.strip_suffix('b').unwrap_or(&suffix);
            (kb_base, prefix.strip_suffix('i').unwrap_or(prefix))
        }
    };
    let power = match unit {
        "" if suffix.is_empty() || suffix == "b" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    number.checked_mul(base.pow(power))
}

/// A size that may be negative, for the holes of `rw=write:-4k`.
pub(crate) fn signed_size(text: &str, kb_base: u64) -> Option<i64> {
    match text.trim().strip_prefix('-') {
        Some(rest) => i64::try_from(size(rest, kb_base)?).ok().map(|value| -value),
        None => i64::try_from(size(text, kb_base)?).ok(),
    }
}

/// A share such as `50%` or `12.5%`, in millionths of a percent.
fn percent(text: &str) -> Option<u64> {
    percent_of(text.trim().strip_suffix('%')?)
}

/// A number of percent such as `50` or `12.5`, in millionths of a percent.
pub(crate) fn percent_of(number: &str) -> Option<u64> {
    let number = number.trim();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.parse::<u64>().ok()? * 10_u64.pow(6 - fraction.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(ONE_PERCENT)?.checked_add(fraction)
}

/// A size, a percentage, or a number of zones such as `4z`.
pub(crate) fn extent(text: &str, kb_base: u64) -> Option<Extent> {
    if text.contains('%') {
        return percent(text).map(Extent::Percent);
    }
    if let Some(zones) = text.trim().strip_suffix(['z', 'Z']) {
        return zones.trim().parse().ok().map(Extent::Zones);
    }
    size(text, kb_base).map(Extent::Bytes)
}

/// A share from 0 to 1 such as `0.25`, in millionths.
pub(crate) fn millionths(text: &str) -> Option<u32> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let fraction = fraction.parse::<u32>().ok()? * 10_u32.pow(6 - fraction.len() as u32);
    let share = whole.parse::<u32>().ok()?.checked_mul(1_000_000)?.checked_add(fraction)?;
    (share <= 1_000_000).then_some(share)
}

/// A span of time; a bare number counts `bare_ns` nanoseconds each.
pub(crate) fn time(text: &str, bare_ns: u64) -> Option<Nanos> {
    let (number, suffix) = number_and_suffix(text)?;
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" => bare_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(scale).map(Nanos)
}

/// One nanosecond count per bare second.
pub(crate) const SECONDS: u64 = 1_000_000_000;
/// One nanosecond count per bare microsecond.
pub(crate) const MICROSECONDS: u64 = 1_000;

/// A flag: present without a value, or `0`, `1`, `true`, `false`.
pub(crate) fn flag(text: Option<&str>) -> Option<bool> {
    match text.map(str::trim) {
        None | Some("1") => Some(true),
        Some("0") => Some(false),
        Some(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Some(word) if word.eq_ignore_ascii_case("false") => Some(false),
        Some(_) => None,
    }
}

/// Values for reads, writes and trims: one value is for all three, two are reads and the rest, three are one each.
/// An empty place keeps `None`, fio's default.
pub(crate) fn triple<T: Copy>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<[Option<T>; 3]> {
    let mut values = [None; 3];
    let mut parts = 0;
    for (index, part) in text.split(',').enumerate() {
        if index > 2 {
            return None;
        }
        if !part.trim().is_empty() {
            values[index] = Some(read(part)?);
        }
        parts = index + 1;
    }
    match parts {
        1 => {
            // A single empty value says nothing at all.
            values[0]?;
            values[1] = values[0];
            values[2] = values[0];
        }
        2 => values[2] = values[1],
        _ => {}
    }
    Some(values)
}

/// A range `low-high` (or `low:high`) of sizes; the ends are swapped when they come in the wrong order, as fio does.
pub(crate) fn size_range(text: &str, kb_base: u64) -> Option<(u64, u64)> {
    let (low, high) = text.split_once(['-', ':'])?;
    let (low, high) = (size(low, kb_base)?, size(high, kb_base)?);
    Some((low.min(high), low.max(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_fio_3_33_reads_them() {
        // Each of these was compared with the requests that fio 3.33 sends for it.
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kB", 4096),
            ("4ki", 4096),
            ("4kib", 4000),
            ("0x1000", 4096),
            ("2m", 2 << 20),
            ("3g", 3 << 30),
            ("1t", 1 << 40),
            ("512b", 512),
        ] {
            assert_eq!(size(text, 1024), Some(bytes), "{text}");
        }
        assert_eq!(size("4k", 1000), Some(4000));
        assert_eq!(size("4kib", 1000), Some(4096));
        for text in ["", "k", "1.5k", "4q", "4 kilos", "-4k", "ib", "99999999999t", "4z", "bb", "4bb"] {
            assert_eq!(size(text, 1024), None, "{text}");
        }
    }

    #[test]
    fn percentages_are_exact() {
        assert_eq!(extent("12.5%", 1024).map(|e| e.of(1 << 20)), Some(1 << 17));
        assert_eq!(extent("100%", 1024).map(|e| e.of(u64::MAX)), Some(u64::MAX));
        assert_eq!(extent("%", 1024), None);
        assert_eq!(extent("-5%", 1024), None);
    }

    #[test]
    fn zones_and_shares_are_read() {
        assert_eq!(extent("4z", 1024), Some(Extent::Zones(4)));
        assert_eq!(extent("4z", 1024).map(|extent| extent.with_zones_of(1 << 20).of(0)), Some(4 << 20));
        assert_eq!(extent("z", 1024), None);
        assert_eq!(extent("1.5z", 1024), None);
        for (text, share) in [("0", 0), ("1", 1_000_000), ("0.25", 250_000), ("1.0", 1_000_000), (" 0.000001", 1)] {
            assert_eq!(millionths(text), Some(share), "{text}");
        }
        for text in ["", ".", "1.1", "2", "-0.5", "0.0000001", "half"] {
            assert_eq!(millionths(text), None, "{text}");
        }
    }

    #[test]
    fn a_bare_time_has_the_unit_of_its_key() {
        assert_eq!(time("10", SECONDS), Some(Nanos(10_000_000_000)));
        assert_eq!(time("10", MICROSECONDS), Some(Nanos(10_000)));
        assert_eq!(time("5m", SECONDS), Some(Nanos(300_000_000_000)));
        assert_eq!(time("5ms", SECONDS), Some(Nanos(5_000_000)));
        assert_eq!(time("5 weeks", SECONDS), None);
    }

    #[test]
    fn triples_fill_their_places_as_the_manual_says() {
        let read = |text: &str| triple(text, |part| size(part, 1024));
        assert_eq!(read("4k"), Some([Some(4096); 3]));
        assert_eq!(read("4k,8k"), Some([Some(4096), Some(8192), Some(8192)]));
        assert_eq!(read(",8k"), Some([None, Some(8192), Some(8192)]));
        assert_eq!(read("4k,"), Some([Some(4096), None, None]));
        assert_eq!(read("4k,8k,16k"), Some([Some(4096), Some(8192), Some(16384)]));
        assert_eq!(read("4k,8k,16k,32k"), None);
        assert_eq!(read(""), None);
    }
}

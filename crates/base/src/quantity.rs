//! Sizes, spans and shares as people write them: `4k`, `51.2us`, `7%`.

use std::borrow::Cow;

use crate::Nanos;

/// Why a quantity was refused, as a sentence for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' {}{expected}", if self.ambiguous { "has two readings, write " } else { "is not " })]
pub struct QuantityError {
    /// What was written.
    pub found: String,
    /// What was expected, with an example; of an ambiguous size both readings, in bytes.
    pub expected: Cow<'static, str>,
    /// The unit is written in a way that some read as a power of 1000 and others as one of 1024.
    pub ambiguous: bool,
}

impl QuantityError {
    fn new(found: &str, expected: &'static str) -> QuantityError {
        let expected = match is_negative(found) {
            true => Cow::Owned(format!("at least 0, expected {expected}")),
            false => Cow::Borrowed(expected),
        };
        QuantityError { found: found.to_string(), expected, ambiguous: false }
    }
}

/// Whether text begins as a number below 0 does.
pub fn is_negative(text: &str) -> bool {
    text.trim_start().strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A size in bytes or a share of something larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// So many percent of a whole that the context names.
    Percent(f64),
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

/// Digits with an optional fraction, times `scale`, exactly; `None` if malformed or too large.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 18 || number.ends_with('.') {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let mut value = whole.checked_mul(u128::from(scale))?;
    if !fraction.is_empty() {
        let digits: u128 = fraction.parse().ok()?;
        // Rounded down: a fraction of a byte or of a nanosecond does not exist.
        value = value.checked_add(digits * u128::from(scale) / 10_u128.pow(fraction.len() as u32))?;
    }
    u64::try_from(value).ok()
}

/// What a unit of a size multiplies with.
enum Unit {
    Times(u64),
    /// `KB`, `kb`, `Mb`...: the power of 1000 or of 1024 of this prefix.
    Ambiguous(char, u32),
}

/// `k m g t` and `KiB MiB GiB TiB` in any case are powers of 1024, `kB MB GB TB` as written here powers of 1000.
fn unit_of(unit: &str) -> Option<Unit> {
    if unit.is_empty() || unit.eq_ignore_ascii_case("b") {
        return Some(Unit::Times(1));
    }
    let mut letters = unit.chars();
    let prefix = letters.next()?;
    let power = 1 + "kmgt".find(prefix.to_ascii_lowercase())? as u32;
    let (binary, decimal) = (1 << (10 * power), 1000_u64.pow(power));
    let is_si = matches!(prefix, 'k' | 'M' | 'G' | 'T');
    match letters.as_str() {
        "" => Some(Unit::Times(binary)),
        "B" if is_si => Some(Unit::Times(decimal)),
        rest if rest.eq_ignore_ascii_case("b") => Some(Unit::Ambiguous(prefix, power)),
        rest if rest.eq_ignore_ascii_case("ib") => Some(Unit::Times(binary)),
        _ => None,
    }
}

/// Both readings of a size whose unit has two.
fn both_readings(text: &str, number: &str, prefix: char, power: u32) -> QuantityError {
    let (large, si) = (prefix.to_ascii_uppercase(), if power == 1 { 'k' } else { prefix.to_ascii_uppercase() });
    let bytes =
        |base: u64| scaled(number, base.pow(power)).map_or("more than 64 bits of".to_string(), |b| b.to_string());
    let expected = format!("{number}{si}B ({} bytes) or {number}{large}iB ({} bytes)", bytes(1000), bytes(1024));
    QuantityError { found: text.to_string(), expected: Cow::Owned(expected), ambiguous: true }
}

/// Reads a size: digits, then nothing or `B` for bytes; `k m g t` or `KiB MiB GiB TiB` (powers of 1024, any case); or
/// `kB MB GB TB` (powers of 1000, in this case only).
///
/// # Errors
/// What is no size, or is beyond 64 bits; with [`QuantityError::ambiguous`] units such as `KB`, `gb` and `Tb`, which
/// are read both ways.
///
/// ```
/// use ssdlab_base::parse_size;
/// assert_eq!(parse_size("4k"), Ok(4096));
/// assert_eq!(parse_size("1.5MiB"), Ok(1_572_864));
/// assert_eq!(parse_size("1TB"), Ok(1_000_000_000_000));
/// assert!(parse_size("1tb").is_err_and(|error| error.ambiguous));
/// assert!(parse_size("4 kilos").is_err());
/// ```
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let expected = "a size such as 512, 4k, 16m or 1.5g (powers of 1024, also KiB MiB GiB TiB) or 960GB (powers of \
                    1000: kB MB GB TB)";
    let error = || QuantityError::new(text, expected);
    let (number, unit) = split_unit(text.trim());
    match unit_of(unit).ok_or_else(error)? {
        Unit::Times(scale) => scaled(number, scale).ok_or_else(error),
        Unit::Ambiguous(..) if scaled(number, 1).is_none() => Err(error()),
        Unit::Ambiguous(prefix, power) => Err(both_readings(text, number, prefix, power)),
    }
}

/// Reads a size or a percentage.
///
/// ```
/// use ssdlab_base::{Amount, parse_amount};
/// assert_eq!(parse_amount("7%"), Ok(Amount::Percent(7.0)));
/// assert_eq!(parse_amount("238g"), Ok(Amount::Bytes(238 << 30)));
/// ```
pub fn parse_amount(text: &str) -> Result<Amount, QuantityError> {
    let error = || QuantityError::new(text, "a size such as 16m or a share such as 7%");
    if let Some(number) = text.trim().strip_suffix('%') {
        let percent: f64 = number.trim().parse().map_err(|_| error())?;
        if !percent.is_finite() || percent < 0.0 {
            return Err(error());
        }
        return Ok(Amount::Percent(percent));
    }
    parse_size(text).map(Amount::Bytes).map_err(|why| if why.ambiguous { why } else { error() })
}

/// Reads a span of time: `20us`, `1.5ms`, `3s`, `250ns`; a bare number has no unit and is refused, except 0; so is what
/// is not before [`Nanos::HORIZON`].
///
/// ```
/// use ssdlab_base::{Nanos, parse_duration};
/// assert_eq!(parse_duration("51.2us"), Ok(Nanos(51_200)));
/// assert!(parse_duration("20").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Nanos, QuantityError> {
    let error = || {
        QuantityError::new(
            text,
            "a time with its unit, such as 250ns, 20us, 1.5ms, 3s, 2min or 1h, of less than 73 years",
        )
    };
    let (number, unit) = split_unit(text.trim());
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if number == "0" => 1,
        _ => return Err(error()),
    };
    scaled(number, scale).and_then(|ns| Nanos(ns).before_horizon()).ok_or_else(error)
}

/// A whole number's digits with `separator` between thousands.
///
/// ```
/// assert_eq!(ssdlab_base::grouped("1234567", ','), "1,234,567");
/// assert_eq!(ssdlab_base::grouped("999", ','), "999");
/// ```
#[must_use]
pub fn grouped(digits: &str, separator: char) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * separator.len_utf8());
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// Prints a size in the largest binary unit that divides it, or with one decimal.
///
/// ```
/// assert_eq!(ssdlab_base::format_size(4096), "4 KiB");
/// assert_eq!(ssdlab_base::format_size(1_600_000_000), "1.5 GiB");
/// ```
pub fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 { format!("{value:.0} {}", UNITS[unit]) } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_are_told_apart() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("4_096 b", 4096),
            ("4k", 4 << 10),
            ("4K", 4 << 10),
            ("4KiB", 4 << 10),
            ("4 kib", 4 << 10),
            ("4kB", 4_000),
            ("1m", 1 << 20),
            ("1M", 1 << 20),
            ("1MiB", 1 << 20),
            ("1MB", 1_000_000),
            ("1.5 GB", 1_500_000_000),
            ("1.5g", 3 << 29),
            ("1GIB", 1 << 30),
            ("1TB", 1_000_000_000_000),
            ("1t", 1 << 40),
            ("1TiB", 1 << 40),
            ("18446744TB", 18_446_744_000_000_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["4KB", "4kb", "1mb", "1Mb", "1mB", "1gb", "1gB", "1Tb", "1tb", "1.5 tB"] {
            let error = parse_size(text).expect_err("two readings");
            assert!(error.ambiguous, "{text}: {error}");
        }
        for text in ["", "k", "kB", "tb", "4 kilos", "1PB", "4kk", "4ki", "4iB", "-4k", "1e3", "1.k", "18446745TB"] {
            let error = parse_size(text).expect_err("no size");
            assert!(!error.ambiguous, "{text}: {error}");
        }
    }

    #[test]
    fn a_time_behind_the_horizon_is_refused() {
        assert_eq!(parse_duration("2305843009213693951ns"), Ok(Nanos(Nanos::HORIZON.0 - 1)));
        for text in ["2305843009213693952ns", "641000h", "18446744073709551us", "99999999999999999999s"] {
            assert!(parse_duration(text).is_err_and(|error| error.to_string().contains("73 years")), "{text}");
        }
    }

    #[test]
    fn an_ambiguous_size_is_refused_with_both_readings_in_bytes() {
        let message = |text| parse_size(text).map_or_else(|error| error.to_string(), |bytes| bytes.to_string());
        assert_eq!(
            message("1.5tb"),
            "'1.5tb' has two readings, write 1.5TB (1500000000000 bytes) or 1.5TiB (1649267441664 bytes)"
        );
        assert_eq!(message("64KB"), "'64KB' has two readings, write 64kB (64000 bytes) or 64KiB (65536 bytes)");
        assert!(message("17000000TiB").contains("is not a size"));
        assert!(message("18000000tb").contains("more than 64 bits of bytes"));
        let amount = parse_amount("1gb").expect_err("two readings").to_string();
        assert!(amount.contains("1GB (1000000000 bytes) or 1GiB (1073741824 bytes)"), "{amount}");
    }
}

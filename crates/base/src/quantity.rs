//! Sizes, spans and shares as people write them: `4k`, `51.2us`, `7%`.

use crate::Nanos;

/// Why a quantity was refused, as a sentence for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is not {expected}")]
pub struct QuantityError {
    /// What was written.
    pub found: String,
    /// What was expected, with an example.
    pub expected: &'static str,
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

/// Reads a size: digits, then nothing or `b` for bytes, or `k m g t` (powers of 1024, `kib` and `kb` alike).
///
/// ```
/// assert_eq!(ssdlab_base::parse_size("4k"), Ok(4096));
/// assert_eq!(ssdlab_base::parse_size("1.5m"), Ok(1_572_864));
/// assert!(ssdlab_base::parse_size("4 kilos").is_err());
/// ```
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let error = || QuantityError {
        found: text.to_string(),
        expected: "a size such as 512, 4k, 16m, 1.5g or 2t (powers of 1024)",
    };
    let (number, unit) = split_unit(text.trim());
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(error()),
    };
    scaled(number, 1 << shift).ok_or_else(error)
}

/// Reads a size or a percentage.
///
/// ```
/// use ssdlab_base::{Amount, parse_amount};
/// assert_eq!(parse_amount("7%"), Ok(Amount::Percent(7.0)));
/// assert_eq!(parse_amount("238g"), Ok(Amount::Bytes(238 << 30)));
/// ```
pub fn parse_amount(text: &str) -> Result<Amount, QuantityError> {
    let error = || QuantityError { found: text.to_string(), expected: "a size such as 16m or a share such as 7%" };
    if let Some(number) = text.trim().strip_suffix('%') {
        let percent: f64 = number.trim().parse().map_err(|_| error())?;
        if !percent.is_finite() || percent < 0.0 {
            return Err(error());
        }
        return Ok(Amount::Percent(percent));
    }
    parse_size(text).map(Amount::Bytes).map_err(|_| error())
}

/// Reads a span of time: `20us`, `1.5ms`, `3s`, `250ns`; a bare number has no unit and is refused, except 0.
///
/// ```
/// use ssdlab_base::{Nanos, parse_duration};
/// assert_eq!(parse_duration("51.2us"), Ok(Nanos(51_200)));
/// assert!(parse_duration("20").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Nanos, QuantityError> {
    let error = || QuantityError {
        found: text.to_string(),
        expected: "a time with its unit, such as 250ns, 20us, 1.5ms, 3s, 2min or 1h",
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
    scaled(number, scale).map(Nanos).ok_or_else(error)
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

//! Quantities only descriptions use, read exactly and printed so that they read back the same.

use std::borrow::Cow;

use ssdlab_base::{Nanos, QuantityError, parse_size};
use ssdlab_flash::Latency;

/// Billionths in a unit: what shares are counted in.
pub(super) const BILLION: u64 = 1_000_000_000;

/// What a number of a quantity looks like, as a regular expression.
macro_rules! number {
    () => {
        r"^\s*[0-9_]*[0-9][0-9_]*(\.[0-9_]+)?\s*"
    };
}

/// What a size in text looks like.
pub(super) const SIZE: &str = concat!(number!(), r"([bB]|[kKmMgGtT]([iI][bB])?|kB|[MGT]B)?\s*$");
/// What a bandwidth looks like that is not written as a size.
pub(super) const BANDWIDTH: &str = concat!(number!(), r"([bB]|[kKmMgGtT][iI][bB]|kB|[MGT]B)/s\s*$");
/// What a capacity in bits looks like.
pub(super) const BITS: &str = r"^\s*[0-9]+(\.[0-9]{1,9})?\s*[MGT]b(it)?\s*$";
/// What a frequency in text looks like.
pub(super) const FREQUENCY: &str = concat!(number!(), r"([kMG]?Hz)\s*$");
/// What a time in text looks like.
pub(super) const TIME: &str = concat!(number!(), r"(ns|us|µs|ms|s|min|h)\s*$|^\s*0\s*$");
/// What a range of times looks like.
pub(super) const RANGE: &str = r"^.*[0-9].*\.\..*[0-9].*$";
/// What an exact percentage looks like.
pub(super) const SHARE: &str = r"^\s*[0-9]+(\.[0-9]{1,9})?\s*%\s*$";
/// What an exact percentage up to 100 looks like.
pub(super) const SHARE_UP_TO_100: &str = r"^\s*0*(100(\.0{1,9})?|[1-9]?[0-9](\.[0-9]{1,9})?)\s*%\s*$";
/// What whole percent look like.
pub(super) const PERCENT: &str = r"^\s*\+?0*(100|[1-9]?[0-9])\s*%\s*$";
/// What whole percent from 1 look like.
pub(super) const PERCENT_FROM_1: &str = r"^\s*\+?0*(100|[1-9][0-9]?)\s*%\s*$";

/// Digits with an optional fraction of at most nine digits, times `scale` (a multiple of a power of ten is exact).
fn decimal(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (number, "0"),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let fraction = u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale) / 10_u128.pow(fraction.len() as u32);
    whole.checked_add(u64::try_from(fraction).ok()?)
}

/// `128Gb`, a capacity as the datasheets of dies have it: bits, with the powers of 1024 that their pages and blocks multiply to.
pub(super) fn parse_bits(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix("it").unwrap_or(text).strip_suffix('b')?;
    let scale = match text.chars().next_back()? {
        'M' => 1 << 20,
        'G' => 1 << 30,
        'T' => 1 << 40,
        _ => return None,
    };
    decimal(text[..text.len() - 1].trim(), scale)
}

/// Bits as text that [`parse_bits`] reads: terabits or gigabits where they are a whole number of these, else whole megabits.
pub(super) fn bits(bits: u64) -> toml::Value {
    let (unit, scale) = [("Tb", 1_u64 << 40), ("Gb", 1 << 30)]
        .into_iter()
        .find(|(_, scale)| bits > 0 && bits.is_multiple_of(*scale))
        .unwrap_or(("Mb", 1 << 20));
    toml::Value::String(format!("{}{unit}", bits / scale))
}

/// `7%` as billionths of a percent.
pub(super) fn parse_share(text: &str) -> Option<u64> {
    decimal(text.trim().strip_suffix('%')?.trim(), BILLION)
}

/// Billionths of a percent as [`parse_share`] reads them.
pub(super) fn share(billionths: u64) -> toml::Value {
    let (whole, rest) = (billionths / BILLION, billionths % BILLION);
    let fraction = format!(".{rest:09}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    toml::Value::String(format!("{whole}{fraction}%"))
}

/// `560MB/s` (powers of 1000), `534MiB/s` (powers of 1024), or a size a second: the units of [`parse_size`].
pub(super) fn parse_bandwidth(text: &str) -> Result<u64, QuantityError> {
    let text = text.trim();
    let Some(amount) = text.strip_suffix("/s") else {
        return parse_size(text);
    };
    if amount.ends_with(['B', 'b']) {
        return parse_size(amount);
    }
    let expected = Cow::Borrowed("a bandwidth with its unit, such as 560MB/s");
    Err(QuantityError { found: text.to_string(), expected, ambiguous: false })
}

/// A number as TOML can hold it: an integer, or text beyond 63 bits.
pub(super) fn plain(number: u64) -> toml::Value {
    match i64::try_from(number) {
        Ok(number) => toml::Value::Integer(number),
        Err(_) => toml::Value::String(number.to_string()),
    }
}

/// A size in its largest whole unit.
pub(super) fn size(bytes: u64) -> toml::Value {
    let units = [("t", 40), ("g", 30), ("m", 20), ("k", 10)];
    match units.iter().find(|(_, shift)| bytes != 0 && bytes.trailing_zeros() >= *shift) {
        Some((unit, shift)) => toml::Value::String(format!("{}{unit}", bytes >> shift)),
        None => plain(bytes),
    }
}

/// A bandwidth as a datasheet writes it, where that is exact.
pub(super) fn bandwidth(bytes_per_second: u64) -> toml::Value {
    if bytes_per_second != 0 && bytes_per_second.is_multiple_of(1_000_000) {
        toml::Value::String(format!("{}MB/s", bytes_per_second / 1_000_000))
    } else {
        plain(bytes_per_second)
    }
}

/// `87.5MHz` as cycles a second.
pub(super) fn parse_frequency(text: &str) -> Option<u64> {
    let number = text.trim().strip_suffix("Hz")?;
    let (number, scale) = match number.chars().next_back()? {
        'k' => (&number[..number.len() - 1], 1_000),
        'M' => (&number[..number.len() - 1], 1_000_000),
        'G' => (&number[..number.len() - 1], BILLION),
        _ => (number, 1),
    };
    decimal(&number.trim().replace('_', ""), scale)
}

/// Cycles a second in the unit that suits them, exactly.
pub(super) fn frequency(hertz: u64) -> toml::Value {
    let units = [("GHz", BILLION), ("MHz", 1_000_000), ("kHz", 1_000)];
    let Some((unit, scale)) = units.into_iter().find(|(_, scale)| hertz >= *scale) else {
        return toml::Value::String(format!("{hertz}Hz"));
    };
    let digits = scale.ilog10() as usize;
    let fraction = format!(".{:0digits$}", hertz % scale);
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    toml::Value::String(format!("{}{fraction}{unit}", hertz / scale))
}

fn span_text(span: Nanos) -> String {
    let (scale, unit) = match span.0 {
        0 => return "0".to_string(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (span.0 / scale, span.0 % scale);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// A span of time in the unit that suits it, exactly.
pub(super) fn span(span: Nanos) -> toml::Value {
    toml::Value::String(span_text(span))
}

/// A latency or a range.
pub(super) fn latency(latency: Latency) -> toml::Value {
    if latency.min == latency.max {
        span(latency.min)
    } else {
        toml::Value::String(format!("{}..{}", span_text(latency.min), span_text(latency.max)))
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_base::parse_duration;

    use super::*;

    #[test]
    fn shares_and_bandwidths_are_exact() {
        assert_eq!(parse_share("7%"), Some(7 * BILLION));
        assert_eq!(parse_share(" 7.37 %"), Some(7_370_000_000));
        for wrong in ["7", "%", "-7%", "7.%", ".5%", "1e3%", "99999999999999999999%", "7.1234567891%"] {
            assert_eq!(parse_share(wrong), None, "{wrong}");
        }
        assert_eq!(parse_bandwidth("560MB/s"), Ok(560_000_000));
        assert_eq!(parse_bandwidth("3.5 GB/s"), Ok(3_500_000_000));
        assert_eq!(parse_bandwidth("1.5MiB/s"), Ok(1_572_864));
        assert_eq!(parse_bandwidth("400m"), Ok(400 << 20));
        assert_eq!(parse_bandwidth("400MB"), Ok(400_000_000));
        for wrong in ["MB/s", "5/s", "5 mb/s", "5m/s", "/s", "18446744073709551615GB/s", "é/s"] {
            assert!(parse_bandwidth(wrong).is_err(), "{wrong}");
        }
        assert!(parse_bandwidth("5 mb/s").is_err_and(|error| error.ambiguous));
    }

    #[test]
    fn bits_are_counted_in_powers_of_1024() {
        for (text, expected) in [
            ("128Gb", 128 << 30),
            ("1Tb", 1 << 40),
            ("1.33 Tbit", 1_462_350_464_942),
            (" 512 Mb ", 512 << 20),
            ("0.5Gb", 512 << 20),
        ] {
            assert_eq!(parse_bits(text), Some(expected), "{text}");
        }
        for wrong in ["128GB", "128gb", "128", "Gb", "b", "it", "", "128Gib", "-1Gb", "é", "1.Gb", "99999999999Tb"] {
            assert_eq!(parse_bits(wrong), None, "{wrong}");
        }
        for text in ["128Gb", "1Tb", "3Mb", "0Mb"] {
            assert_eq!(bits(parse_bits(text).expect("bits")).as_str(), Some(text));
        }
    }

    #[test]
    fn frequencies_are_exact_and_read_back() {
        for (text, expected) in
            [("87.5MHz", 87_500_000), ("1 GHz", BILLION), ("175_000 kHz", 175_000_000), ("12Hz", 12), ("0.5kHz", 500)]
        {
            assert_eq!(parse_frequency(text), Some(expected), "{text}");
        }
        for wrong in ["87.5", "87.5mhz", "MHz", "Hz", "-1MHz", "1e3Hz", "87.5 MH", "é", ""] {
            assert_eq!(parse_frequency(wrong), None, "{wrong}");
        }
        for hertz in [1, 999, 1_000, 87_500_000, 1_500_000_001, 175_000_000] {
            assert_eq!(parse_frequency(frequency(hertz).as_str().expect("text")), Some(hertz));
        }
    }

    #[test]
    fn what_is_printed_reads_back_the_same() {
        for billionths in [1, BILLION, 20 * BILLION, 7_370_000_000, 12_500_000_001, 100 * BILLION] {
            let text = share(billionths);
            assert_eq!(parse_share(text.as_str().expect("text")), Some(billionths), "{text}");
        }
        assert_eq!(share(7_370_000_000), toml::Value::String("7.37%".to_string()));
        for ns in [0, 1, 999, 1_000, 51_200, 1_500_000, 20_480, 999_999_999, 1_000_000_001, Nanos::HORIZON.0 - 1] {
            assert_eq!(parse_duration(&span_text(Nanos(ns))), Ok(Nanos(ns)));
        }
        for bytes in [0, 1, 512, 4096, 6144, 238 << 30, 5 << 40, u64::MAX] {
            let read = match size(bytes) {
                toml::Value::Integer(integer) => integer as u64,
                toml::Value::String(text) => parse_size(&text).expect("a size"),
                other => panic!("{other} is no size"),
            };
            assert_eq!(read, bytes);
        }
    }
}

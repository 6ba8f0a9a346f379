//! Numbers out of bytes, in integers: a stamp keeps every digit a nanosecond can hold, and no float is involved.

/// A whole number without a sign, or nothing if it has other characters, none at all, or more than 64 bits.
#[inline]
pub(super) fn uint(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut value: u64 = 0;
    // Nineteen digits cannot overflow; only the twentieth has to be watched.
    let (safe, last) = text.split_at(text.len().min(19));
    for &byte in safe {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    for &byte in last {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A hexadecimal number, with or without `0x`.
pub(super) fn hex(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in digits {
        let digit = char::from(byte).to_digit(16)?;
        value = value << 4 | u64::from(digit);
    }
    Some(value)
}

/// A decimal number of units of `unit_ns` nanoseconds (a power of ten), in nanoseconds.
///
/// Fraction digits are taken exactly; digits below a nanosecond are cut off. Nothing if it is not a plain decimal
/// number or does not fit 64 bits of nanoseconds.
#[inline]
pub(super) fn stamp(text: &[u8], unit_ns: u64) -> Option<u64> {
    let mut whole: u64 = 0;
    let mut position = 0;
    while let Some(digit) = text.get(position).map(|byte| byte.wrapping_sub(b'0')).filter(|&d| d <= 9) {
        // Up to eighteen digits are free of overflow checks.
        whole = if position < 18 {
            whole * 10 + u64::from(digit)
        } else {
            whole.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        position += 1;
    }
    if position == 0 {
        return None;
    }
    let whole_ns = whole.checked_mul(unit_ns)?;
    if position == text.len() {
        return Some(whole_ns);
    }
    if text[position] != b'.' {
        return None;
    }
    let digits = &text[position + 1..];
    if digits.is_empty() {
        return None;
    }
    let mut scale = unit_ns;
    let mut fraction = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        scale /= 10;
        fraction += u64::from(digit) * scale;
    }
    whole_ns.checked_add(fraction)
}

/// Whether the text is a plain decimal number, with or without a fraction, exponents allowed.
pub(super) fn is_decimal(text: &[u8]) -> bool {
    !text.is_empty()
        && text[0].is_ascii_digit()
        && text.iter().all(|&byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+'))
}

/// A 64-bit little- or big-endian number at `at` in a record that is known to be long enough.
pub(super) fn word64(bytes: &[u8], at: usize, big_endian: bool) -> u64 {
    fold(&bytes[at..at + 8], big_endian)
}

/// A 32-bit little- or big-endian number at `at` in a record that is known to be long enough.
pub(super) fn word32(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    fold(&bytes[at..at + 4], big_endian) as u32
}

/// A 16-bit little- or big-endian number at `at` in a record that is known to be long enough.
pub(super) fn word16(bytes: &[u8], at: usize, big_endian: bool) -> u16 {
    fold(&bytes[at..at + 2], big_endian) as u16
}

fn fold(bytes: &[u8], big_endian: bool) -> u64 {
    let push = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    if big_endian { bytes.iter().fold(0, push) } else { bytes.iter().rev().fold(0, push) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stop_at_64_bits() {
        assert_eq!(uint(b"0"), Some(0));
        assert_eq!(uint(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(uint(b"18446744073709551616"), None);
        assert_eq!(uint(b"99999999999999999999"), None);
        assert_eq!(uint(b"123456789012345678901"), None);
        assert_eq!(uint(b""), None);
        assert_eq!(uint(b"-1"), None);
        assert_eq!(uint(b"1a"), None);
    }

    #[test]
    fn a_stamp_keeps_every_nanosecond_a_float_would_lose() {
        assert_eq!(stamp(b"1456095145.133076001", 1_000_000_000), Some(1_456_095_145_133_076_001));
        assert_eq!(stamp(b"0.000000001", 1_000_000_000), Some(1));
        assert_eq!(stamp(b"0.0000000019", 1_000_000_000), Some(1));
        assert_eq!(stamp(b"26.214000", 1_000_000), Some(26_214_000));
        assert_eq!(stamp(b"110.391", 1_000), Some(110_391));
        assert_eq!(stamp(b"128166385295514663", 100), Some(12_816_638_529_551_466_300));
        assert_eq!(stamp(b"1.25", 1), Some(1));
    }

    #[test]
    fn what_is_not_a_stamp_is_refused() {
        for bad in ["", ".5", "5.", "1e3", "-1", "1.2.3", "nan", "18446744073709551615", "99999999999999999999"] {
            assert_eq!(stamp(bad.as_bytes(), 1_000), None, "{bad}");
        }
    }

    #[test]
    fn words_come_in_both_byte_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(word64(&bytes, 0, true), 0x0102_0304_0506_0708);
        assert_eq!(word64(&bytes, 0, false), 0x0807_0605_0403_0201);
        assert_eq!(word32(&bytes, 2, true), 0x0304_0506);
        assert_eq!(word16(&bytes, 6, false), 0x0807);
        assert_eq!(hex(b"0x0ea84e4000"), Some(0x0e_a84e_4000));
        assert_eq!(hex(b"2a"), Some(42));
        assert_eq!(hex(b"0x"), None);
    }
}

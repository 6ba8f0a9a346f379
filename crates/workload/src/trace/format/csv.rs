//! ssdlab's own CSV: `time_us,op,offset_bytes,length_bytes`.
//!
//! Times in microseconds with any number of fraction digits. Operations: R read, W write, T trim, Z write zeroes, the
//! last three with F behind them where they are forced (FUA); F flush (its offset and length are 0 or empty). The header line may be missing; lines that begin
//! with `#` are comments.

use ssdlab_base::Op;

use crate::trace::number::{stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{Decoded, Decoder, Flaw, Record, quote};

/// The first line of a file.
pub(crate) const HEADER: &str = "time_us,op,offset_bytes,length_bytes";
const LINE: &str = "`time_us,op,offset_bytes,length_bytes`, such as `12.5,W,4096,8192`, op one of R W WF T TF Z ZF F";

/// Digits of an offset, at most: so many cannot overflow.
const DIGITS: usize = 19;

struct Csv {
    unit_ns: u64,
    first: bool,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Csv { unit_ns: options.time_unit.unwrap_or(1_000), first: true })
}

impl Decoder for Csv {
    #[inline]
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        match parse(line, self.unit_ns) {
            Some(record) => {
                self.first = false;
                Ok(Decoded::One(record))
            }
            None => self.other(line),
        }
    }
}

impl Csv {
    #[cold]
    fn other(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        if line.starts_with(b"#") {
            return Ok(Decoded::Nothing);
        }
        let header = std::mem::replace(&mut self.first, false);
        if header && line.trim_ascii() == HEADER.as_bytes() {
            return Ok(Decoded::Nothing);
        }
        let second = line.trim_ascii() == HEADER.as_bytes();
        Err(wrong_field(line).filter(|_| !second).unwrap_or_else(|| Flaw::new(line, LINE)))
    }
}

/// Which of the four fields keeps the line from being a request; nothing if there are not four, or it is a second head.
#[cold]
fn wrong_field(line: &[u8]) -> Option<Flaw> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
    let &[time, op, offset, length] = fields.as_slice() else { return None };
    let flaw = |name: &str, value: &[u8], expected: &str| {
        Some(Flaw::told(format!("{name} {} in {}", quote(value), quote(line)), expected))
    };
    if stamp(time.trim_ascii(), 1).is_none() {
        return flaw("time_us", time, "a decimal number such as 12.5, without a sign or an exponent");
    }
    match op {
        b"R" | b"W" | b"WF" | b"T" | b"TF" | b"Z" | b"ZF" => {}
        b"F" => return flaw("offset_bytes and length_bytes", &line[time.len() + 3..], "0,0 or nothing at a flush"),
        _ => return flaw("op", op, "one of R W WF T TF Z ZF F"),
    }
    if offset.len() > DIGITS || uint(offset).is_none() {
        return flaw("offset_bytes", offset, "a whole number of bytes, of at most 19 digits");
    }
    if uint(length.trim_ascii()).is_none() {
        return flaw("length_bytes", length, "a whole number of bytes below 2^64");
    }
    flaw("time_us", time, "a time whose nanoseconds are below 2^64 (584 years)")
}

/// A number up to a comma, and what is behind the comma.
#[inline]
fn number_to_comma(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    for (at, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 && at < DIGITS {
            value = value * 10 + u64::from(digit);
        } else if byte == b',' && at > 0 {
            return Some((value, &text[at + 1..]));
        } else {
            return None;
        }
    }
    None
}

/// The line as a request; nothing where it is anything else, however slightly.
#[inline]
fn parse(line: &[u8], unit_ns: u64) -> Option<Record> {
    let comma = line.iter().position(|&byte| byte == b',')?;
    let at_ns = stamp(line[..comma].trim_ascii(), unit_ns)?;
    let (op, fua, rest) = match &line[comma + 1..] {
        [b'R', b',', rest @ ..] => (Op::Read, false, rest),
        [b'W', b',', rest @ ..] => (Op::Write, false, rest),
        [b'W', b'F', b',', rest @ ..] => (Op::Write, true, rest),
        [b'T', b',', rest @ ..] => (Op::Trim, false, rest),
        [b'T', b'F', b',', rest @ ..] => (Op::Trim, true, rest),
        [b'Z', b',', rest @ ..] => (Op::WriteZeroes, false, rest),
        [b'Z', b'F', b',', rest @ ..] => (Op::WriteZeroes, true, rest),
        [b'F', b',', rest @ ..] => {
            return matches!(rest.trim_ascii_end(), b"0,0" | b",").then(|| Record::flush(at_ns, 0));
        }
        _ => return None,
    };
    let (offset, length) = number_to_comma(rest)?;
    let length = uint(length).or_else(|| uint(length.trim_ascii()))?;
    Some(Record { at_ns, op, fua, device: 0, offset, length })
}

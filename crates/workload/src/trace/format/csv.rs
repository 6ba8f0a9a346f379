//! ssdlab's own CSV: `time_us,op,offset_bytes,length_bytes`.
//!
//! A command of a set is its set's name, a colon and its own, with `!` behind where it is forced; a fifth column has its
//! words, apart by blanks: `12.5,tags:write-tagged,4096,8192,7 9`.
//!
//! Times in microseconds with any number of fraction digits. Operations: R read, W write, T trim, Z write zeroes, the
//! last three with F behind them where they are forced (FUA); F flush (its offset and length are 0 or empty). The header line may be missing; lines that begin
//! with `#` are comments.

use ssdlab_base::command_set::Words;
use ssdlab_base::{COMMAND_SETS, Op, SECTOR_BYTES, command_sets};

use super::FormatSpec;
use crate::trace::arrange::SPAN_EXPECTED;
use crate::trace::number::{stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{CommandRecord, Decoded, Decoder, Flaw, Record, TimeColumn, quote};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    aliases: &["ssdlab"],
    devices: false,
    time: Some(TimeColumn { column: 1, commas: true, unit_ns: 1_000 }),
    ..FormatSpec::new("csv", "ssdlab CSV", build)
};

/// The first line of a file.
pub const HEADER: &str = "time_us,op,offset_bytes,length_bytes";
const LINE: &str = "`time_us,op,offset_bytes,length_bytes`, such as `12.5,W,4096,8192`, op one of R W WF T TF Z ZF F";

const COMMAND: &str = "`time_us,SET:COMMAND,offset_bytes,length_bytes`, and words apart by blanks in a fifth column, such as \
     `12.5,tags:write-tagged,4096,8192,7 9`";

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
        if let Some(command) = command(line, self.unit_ns)? {
            self.first = false;
            return Ok(Decoded::Command(Box::new(command)));
        }
        let header = std::mem::replace(&mut self.first, false);
        if header && line.trim_ascii() == HEADER.as_bytes() {
            return Ok(Decoded::Nothing);
        }
        let second = line.trim_ascii() == HEADER.as_bytes();
        Err(wrong_field(line).filter(|_| !second).unwrap_or_else(|| Flaw::new(line, LINE)))
    }
}

/// A command of a set; nothing where the line is no such thing.
#[cold]
fn command(line: &[u8], unit_ns: u64) -> Result<Option<CommandRecord>, Flaw> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
    let Some(name) = fields.get(1).and_then(|name| str::from_utf8(name).ok()) else { return Ok(None) };
    let Some((set_name, name)) = name.trim().split_once(':') else { return Ok(None) };
    let (name, fua) = name.strip_suffix('!').map_or((name, false), |name| (name, true));
    let (&[time, _, offset, length], words) = fields.split_at(fields.len().min(4)) else {
        return Err(Flaw::new(line, COMMAND));
    };
    let words: &[u8] = match words {
        [] => &[],
        [words] => words,
        _ => return Err(Flaw::new(line, COMMAND)),
    };
    let known = || COMMAND_SETS.iter().map(|set| set.name).collect::<Vec<_>>().join(", ");
    let Some(set) = command_sets::named(set_name) else {
        return Err(Flaw::in_words(
            format!("the command set '{set_name}' in {}", quote(line)),
            format!("one of {}", known()),
        ));
    };
    let Some(spec) = set.find(name) else {
        let names: Vec<&str> = set.commands.iter().map(|command| command.name).collect();
        let expected = format!("one of {}", names.join(", "));
        return Err(Flaw::in_words(
            format!("the command '{name}' of the set '{set_name}' in {}", quote(line)),
            expected,
        ));
    };
    let Some(at_ns) = stamp(time.trim_ascii(), unit_ns) else {
        return Err(Flaw::in_words(
            format!("time_us {} in {}", quote(time), quote(line)),
            "a decimal number such as 12.5",
        ));
    };
    let bytes = |name: &str, field: &[u8]| {
        let field = field.trim_ascii();
        let number = if field.is_empty() { Some(0) } else { uint(field) };
        number.filter(|number| number.is_multiple_of(SECTOR_BYTES) && *number <= i64::MAX as u64).ok_or_else(|| {
            Flaw::in_words(format!("{name} {} in {}", quote(field), quote(line)), "a multiple of 512 bytes below 2^63")
        })
    };
    let (offset, length) = (bytes("offset_bytes", offset)?, bytes("length_bytes", length)?);
    let words: Option<Vec<u64>> =
        words.split(|byte| *byte == b' ').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty()).map(uint).collect();
    let Some(words) = words.filter(|words| spec.words_in.allow(words.len())) else {
        let many = match spec.words_in {
            Words::Exactly(exactly) => exactly.to_string(),
            Words::UpTo(most) => format!("up to {most}"),
        };
        return Err(Flaw::in_words(
            format!("the words of {}", quote(line)),
            format!("{many} whole numbers below 2^64"),
        ));
    };
    let record = Record { at_ns, op: spec.carrier, fua, device: 0, offset, length };
    Ok(Some(CommandRecord { record, set: set.name, opcode: spec.opcode, words }))
}

/// Which of the four fields keeps the line from being a request; nothing if there are not four, or it is a second head.
#[cold]
fn wrong_field(line: &[u8]) -> Option<Flaw> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
    let &[time, op, offset, length] = fields.as_slice() else { return None };
    let flaw = |name: &str, value: &[u8], expected: &str| {
        Some(Flaw::in_words(format!("{name} {} in {}", quote(value), quote(line)), expected))
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
    flaw("time_us", time, SPAN_EXPECTED)
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

//! blkparse's default text: `maj,min cpu seq time_s pid action RWBS sector + sectors [process]`.
//!
//! A request passes several events; one kind counts as its arrival (`event=`, else Q, else D where there is no Q).
//! In RWBS an F before the letter of the operation is a flush ahead of it, an F behind is FUA. A flush ahead of a write
//! with data counts as two requests. Messages, plugs, other events and the summary at the end are no requests;
//! passthrough commands and zone operations are left out and counted.

use ssdlab_base::{Op, SECTOR_BYTES};

use super::FormatSpec;
use crate::trace::number::{stamp, uint};
use crate::trace::options::{Event, Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    events: true,
    wild_clock: true,
    order: Order::Time,
    time: Some(TimeColumn { column: 4, commas: false, unit_ns: 1_000_000_000 }),
    ..FormatSpec::new("blkparse", "blkparse text", build)
};

const LINE: &str = "`major,minor cpu sequence time_s pid action RWBS sector + sectors [process]`";

/// How lines of the summary begin.
const SUMMARY: [&[u8]; 8] = [b"CPU", b"Total", b"Read", b"Write", b"IO unplugs", b"Throughput", b"Events", b"Skips"];

struct Blkparse {
    unit_ns: u64,
    letter: u8,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Blkparse {
        unit_ns: options.time_unit.unwrap_or(1_000_000_000),
        letter: options.event.unwrap_or(Event::Queue).letter() as u8,
    })
}

/// Major and minor number in one.
pub(super) fn device(major: u64, minor: u64) -> Option<u64> {
    (major < 1 << 32 && minor < 1 << 32).then_some(major << 32 | minor)
}

/// `8,16`, as blkparse prints it.
pub(super) fn device_name(device: u64) -> String {
    format!("{},{}", device >> 32, device & 0xffff_ffff)
}

/// The meaning of an RWBS column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rwbs {
    preflush: bool,
    /// Nothing for a passthrough or a zone operation.
    op: Option<Op>,
    fua: bool,
}

fn rwbs(text: &[u8]) -> Option<Rwbs> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let preflush = text[0] == b'F';
    let rest = &text[usize::from(preflush)..];
    let (op, flags) = match rest {
        [b'R', flags @ ..] => (Some(Op::Read), flags),
        [b'W', b'Z', flags @ ..] => (Some(Op::WriteZeroes), flags),
        [b'W', flags @ ..] => (Some(Op::Write), flags),
        [b'D', flags @ ..] => (Some(Op::Trim), flags),
        [b'F', flags @ ..] => (Some(Op::Flush), flags),
        // `F` alone, `FN`, `FS`: a flush and nothing else.
        _ if preflush => (Some(Op::Flush), rest),
        _ => (None, rest),
    };
    Some(Rwbs { preflush, op, fua: flags.contains(&b'F') })
}

impl Decoder for Blkparse {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let mut columns = Columns::blanks(line);
        let first = columns.need(line, LINE)?;
        if !first[0].is_ascii_digit() {
            let text = line.trim_ascii_start();
            return if SUMMARY.iter().any(|start| text.starts_with(start)) {
                Ok(Decoded::Nothing)
            } else {
                Err(Flaw::new(line, LINE))
            };
        }
        let flaw = || Flaw::new(line, LINE);
        let comma = first.iter().position(|&byte| byte == b',').ok_or_else(flaw)?;
        let major = uint(&first[..comma]).ok_or_else(flaw)?;
        let minor = uint(&first[comma + 1..]).ok_or_else(flaw)?;
        let device = device(major, minor).ok_or_else(flaw)?;
        uint(columns.need(line, LINE)?).ok_or_else(flaw)?;
        uint(columns.need(line, LINE)?).ok_or_else(flaw)?;
        let at_ns = stamp(columns.need(line, LINE)?, self.unit_ns).ok_or_else(flaw)?;
        uint(columns.need(line, LINE)?).ok_or_else(flaw)?;
        let action = columns.need(line, LINE)?;
        if action != [self.letter] {
            return if action.len() <= 2 && action.iter().all(u8::is_ascii_alphabetic) {
                Ok(Decoded::Nothing)
            } else {
                Err(flaw())
            };
        }
        let kind = rwbs(columns.need(line, LINE)?).ok_or_else(flaw)?;
        let Some(op) = kind.op else {
            return Ok(Decoded::Ignored);
        };
        let (sector, plus) = match columns.next() {
            None => (None, None),
            Some(column) => (uint(column), columns.next()),
        };
        let extent = match (sector, plus) {
            (Some(sector), Some(b"+")) => {
                let sectors = columns.next().and_then(uint).ok_or_else(flaw)?;
                Some((sector, sectors))
            }
            // `36 (12 00 ..)`: a passthrough command with its bytes.
            (Some(_), Some(column)) if column.starts_with(b"(") => return Ok(Decoded::Ignored),
            _ => None,
        };
        if op == Op::Flush || (kind.preflush && extent.is_none_or(|(_, sectors)| sectors == 0)) {
            return Ok(Decoded::One(Record::flush(at_ns, device)));
        }
        let Some((sector, sectors)) = extent else {
            return Ok(Decoded::Ignored);
        };
        let record = Record {
            at_ns,
            op,
            fua: kind.fua,
            device,
            offset: sector.checked_mul(SECTOR_BYTES).ok_or_else(flaw)?,
            length: sectors.checked_mul(SECTOR_BYTES).ok_or_else(flaw)?,
        };
        Ok(if kind.preflush { Decoded::Two(Record::flush(at_ns, device), record) } else { Decoded::One(record) })
    }

    fn device_name(&self, device: u64) -> String {
        device_name(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_f_tells_a_flush_from_fua() {
        let is = |text: &str, preflush, op, fua| {
            assert_eq!(rwbs(text.as_bytes()), Some(Rwbs { preflush, op, fua }), "{text}");
        };
        is("R", false, Some(Op::Read), false);
        is("RSM", false, Some(Op::Read), false);
        is("WS", false, Some(Op::Write), false);
        is("WFS", false, Some(Op::Write), true);
        is("WFSM", false, Some(Op::Write), true);
        is("FWS", true, Some(Op::Write), false);
        is("FWFS", true, Some(Op::Write), true);
        is("FF", true, Some(Op::Flush), false);
        is("F", true, Some(Op::Flush), false);
        is("FN", true, Some(Op::Flush), false);
        is("D", false, Some(Op::Trim), false);
        is("DS", false, Some(Op::Trim), false);
        is("DE", false, Some(Op::Trim), false);
        is("WZ", false, Some(Op::WriteZeroes), false);
        is("N", false, None, false);
        is("ZA", false, None, false);
        assert_eq!(rwbs(b"w"), None);
        assert_eq!(rwbs(b""), None);
    }
}

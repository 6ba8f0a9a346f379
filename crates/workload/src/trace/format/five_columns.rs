//! The traces of five columns `time device address length kind`, separated by blanks or tabs.
//!
//! | format | time | address | length | kind |
//! | --- | --- | --- | --- | --- |
//! | `ssdsim` (MQSim writes the same) | ns, whole | sectors | sectors | 1 read, 0 write |
//! | `tracetracker` | 100 ns, whole | sectors | sectors | 1 read, 0 write |
//! | `disksim` (UCARE's Microsoft traces are a case of it) | ms | sectors | sectors | hex flags, bit 0 = read |
//! | `disksim-pages` | ms | sectors | 4 KB pages | hex flags, bit 0 = read |
//! | `linnos` | ms | bytes | bytes | 1 read, 0 write |
//!
//! Nothing in a line says which it is, so [`recognise`] looks at many lines and tells what else they could be.

use ssdlab_base::{Nanos, Op, SECTOR_BYTES};

use super::{FormatSpec, Told, TraceFormat};
use crate::trace::number::{hex, stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static SSDSIM: FormatSpec = FormatSpec {
    aliases: &["mqsim"],
    told: Told::OfManyLines,
    time: Some(TimeColumn { column: 1, commas: false, unit_ns: 1 }),
    ..FormatSpec::new("ssdsim", "SSDSim/MQSim ASCII", ssdsim)
};

pub(super) static TRACETRACKER: FormatSpec = FormatSpec {
    told: Told::OfManyLines,
    time: Some(TimeColumn { column: 1, commas: false, unit_ns: 100 }),
    ..FormatSpec::new("tracetracker", "TraceTracker", tracetracker)
};

pub(super) static DISKSIM: FormatSpec = FormatSpec {
    aliases: &["ucare"],
    told: Told::OfManyLines,
    time: Some(TimeColumn { column: 1, commas: false, unit_ns: 1_000_000 }),
    ..FormatSpec::new("disksim", "DiskSim ASCII", disksim)
};

pub(super) static DISKSIM_PAGES: FormatSpec = FormatSpec {
    told: Told::OfManyLines,
    time: Some(TimeColumn { column: 1, commas: false, unit_ns: 1_000_000 }),
    ..FormatSpec::new("disksim-pages", "DiskSim ASCII with lengths in 4 KB pages", disksim_pages)
};

pub(super) static LINNOS: FormatSpec = FormatSpec {
    aliases: &["heimdall"],
    told: Told::OfManyLines,
    time: Some(TimeColumn { column: 1, commas: false, unit_ns: 1_000_000 }),
    ..FormatSpec::new("linnos", "LinnOS/Heimdall replay input", linnos)
};

const MS: u64 = 1_000_000;

struct FiveColumns {
    time_ns: u64,
    address_bytes: u64,
    length_bytes: u64,
    flags: bool,
    line: &'static str,
}

fn boxed(options: &Options, columns: FiveColumns) -> Box<dyn Decoder> {
    Box::new(FiveColumns { time_ns: options.time_unit.unwrap_or(columns.time_ns), ..columns })
}

pub(super) fn ssdsim(options: &Options) -> Box<dyn Decoder> {
    boxed(
        options,
        FiveColumns {
            time_ns: 1,
            address_bytes: SECTOR_BYTES,
            length_bytes: SECTOR_BYTES,
            flags: false,
            line: "`time_ns device sector sectors 1|0`, 1 a read and 0 a write",
        },
    )
}

pub(super) fn tracetracker(options: &Options) -> Box<dyn Decoder> {
    boxed(
        options,
        FiveColumns {
            time_ns: 100,
            address_bytes: SECTOR_BYTES,
            length_bytes: SECTOR_BYTES,
            flags: false,
            line: "`time_100ns device sector sectors 1|0`, 1 a read and 0 a write",
        },
    )
}

pub(super) fn disksim(options: &Options) -> Box<dyn Decoder> {
    boxed(
        options,
        FiveColumns {
            time_ns: MS,
            address_bytes: SECTOR_BYTES,
            length_bytes: SECTOR_BYTES,
            flags: true,
            line: "`time_ms device sector sectors flags`, flags hexadecimal with bit 0 set for a read",
        },
    )
}

pub(super) fn disksim_pages(options: &Options) -> Box<dyn Decoder> {
    boxed(
        options,
        FiveColumns {
            time_ns: MS,
            address_bytes: SECTOR_BYTES,
            length_bytes: 4096,
            flags: true,
            line: "`time_ms device sector pages flags`, flags hexadecimal with bit 0 set for a read",
        },
    )
}

pub(super) fn linnos(options: &Options) -> Box<dyn Decoder> {
    boxed(
        options,
        FiveColumns {
            time_ns: MS,
            address_bytes: 1,
            length_bytes: 1,
            flags: false,
            line: "`time_ms device offset_bytes length_bytes 1|0`, 1 a read and 0 a write",
        },
    )
}

impl Decoder for FiveColumns {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let [time, device, address, length, kind] = Columns::blanks(line).exactly(line, self.line)?;
        let parse = || {
            let read = if self.flags {
                hex(kind).filter(|&flags| flags <= u64::from(u32::MAX))? & 1 == 1
            } else {
                match kind {
                    b"0" => false,
                    b"1" => true,
                    _ => return None,
                }
            };
            Some(Record {
                at_ns: stamp(time, self.time_ns)?,
                op: if read { Op::Read } else { Op::Write },
                fua: false,
                device: uint(device)?,
                offset: uint(address)?.checked_mul(self.address_bytes)?,
                length: uint(length)?.checked_mul(self.length_bytes)?,
            })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, self.line))
    }
}

/// Which of the five it is, from the first lines, and what to tell the user where it could be another.
///
/// Fractions in the stamps mean milliseconds. Then addresses and lengths that are all multiples of 512 are bytes;
/// tabs with lengths that are mostly no multiple of 8 are 4 KB pages; everything else is in sectors. Whole stamps are
/// TraceTracker's where columns are separated by tabs, else SSDSim's. The unit of time is therefore a guess from the
/// numbers, which a note says.
pub(in crate::trace) fn recognise(lines: &[&[u8]]) -> Option<(TraceFormat, Vec<String>)> {
    let (mut seen, mut fractions, mut tabs, mut bytes, mut partial) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    let (mut first_time, mut last_time): (Option<&[u8]>, &[u8]) = (None, b"");
    for line in lines {
        let Ok([time, device, address, length, kind]) = Columns::blanks(line).exactly(line, "") else {
            continue;
        };
        let (Some(_), Some(_), Some(address), Some(length), Some(_)) =
            (stamp(time, 1), uint(device), uint(address), uint(length), hex(kind))
        else {
            continue;
        };
        seen += 1;
        fractions += u64::from(time.contains(&b'.'));
        tabs += u64::from(line.contains(&b'\t'));
        bytes += u64::from(address % 512 == 0 && length % 512 == 0 && length > 0);
        partial += u64::from(length % 8 != 0);
        first_time.get_or_insert(time);
        last_time = time;
    }
    if seen == 0 || seen * 2 < lines.len() as u64 {
        return None;
    }
    let tabs = tabs == seen;
    let mostly_partial = partial * 2 > seen;
    // The format, why, and what else it could be.
    let (format, other) = if fractions > 0 {
        if bytes == seen {
            let why = "addresses and lengths are multiples of 512, so bytes";
            (TraceFormat(&LINNOS), (seen < 8).then_some((why, "disksim")))
        } else if tabs && mostly_partial {
            let why = "tabs, and lengths mostly no multiples of 8, so 4 KB pages";
            (TraceFormat(&DISKSIM_PAGES), Some((why, "disksim with lengths in sectors")))
        } else {
            let pages = mostly_partial.then_some(("lengths taken as sectors", "disksim-pages"));
            (TraceFormat(&DISKSIM), pages)
        }
    } else if tabs {
        (TraceFormat(&TRACETRACKER), Some(("whole times between tabs", "ssdsim")))
    } else {
        (TraceFormat(&SSDSIM), None)
    };
    let mut notes: Vec<String> = other
        .map(|(why, other)| {
            format!("recognised as {format} ({why}); it could also be {other}, say `format=` before the path if so")
        })
        .into_iter()
        .collect();
    let unit_ns = format.spec().time.map_or(1, |time| time.unit_ns);
    let (numbers, unit) = match unit_ns {
        MS => ("have fractions, so they are", "milliseconds"),
        100 => ("are whole between tabs, so they are", "units of 100 ns"),
        _ => ("are whole, so they are", "nanoseconds"),
    };
    let at = |time: &[u8]| stamp(time, unit_ns).unwrap_or(0);
    let every = match (at(last_time).saturating_sub(first_time.map_or(0, at)), seen - 1) {
        (0, _) | (_, 0) => String::new(),
        (span, gaps) => format!(", which gives a request every {} at the start", Nanos(span / gaps)),
    };
    notes.push(format!(
        "the times {numbers} taken as {unit}{every}: the unit is a guess from the numbers, say `time=` before the path if it \
         is another (such as `time=us`)"
    ));
    Some((format, notes))
}

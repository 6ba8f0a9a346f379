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

use ssdlab_base::{Op, SECTOR_BYTES};

use super::TraceFormat;
use crate::trace::number::{hex, stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record};

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
            time_ns: 1_000_000,
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
            time_ns: 1_000_000,
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
            time_ns: 1_000_000,
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
/// TraceTracker's where columns are separated by tabs, else SSDSim's.
pub(in crate::trace) fn recognise(lines: &[&[u8]]) -> Option<(TraceFormat, Vec<String>)> {
    let (mut seen, mut fractions, mut tabs, mut bytes, mut partial) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    let (mut first_time, mut last_time) = (None, 0);
    for line in lines {
        let Ok([time, device, address, length, kind]) = Columns::blanks(line).exactly(line, "") else {
            continue;
        };
        let (Some(at), Some(_), Some(address), Some(length), Some(_)) =
            (stamp(time, 1_000_000), uint(device), uint(address), uint(length), hex(kind))
        else {
            continue;
        };
        seen += 1;
        fractions += u64::from(time.contains(&b'.'));
        tabs += u64::from(line.contains(&b'\t'));
        bytes += u64::from(address % 512 == 0 && length % 512 == 0 && length > 0);
        partial += u64::from(length % 8 != 0);
        first_time.get_or_insert(at);
        last_time = at;
    }
    if seen == 0 || seen * 2 < lines.len() as u64 {
        return None;
    }
    let could = |format: TraceFormat, other: &str, why: &str| {
        vec![format!("recognised as {format} ({why}); it could also be {other}, say `format=` before the path if so")]
    };
    let tabs = tabs == seen;
    let mostly_partial = partial * 2 > seen;
    Some(if fractions > 0 {
        if bytes == seen {
            let notes = if seen < 8 {
                could(TraceFormat::Linnos, "disksim", "addresses and lengths are multiples of 512, so bytes")
            } else {
                Vec::new()
            };
            (TraceFormat::Linnos, notes)
        } else if tabs && mostly_partial {
            let why = "tabs, and lengths mostly no multiples of 8, so 4 KB pages";
            (TraceFormat::DisksimPages, could(TraceFormat::DisksimPages, "disksim with lengths in sectors", why))
        } else if mostly_partial {
            let why = "lengths taken as sectors";
            (TraceFormat::Disksim, could(TraceFormat::Disksim, "disksim-pages", why))
        } else {
            (TraceFormat::Disksim, Vec::new())
        }
    } else if tabs {
        let why = "whole stamps between tabs, taken as 100 ns";
        (TraceFormat::TraceTracker, could(TraceFormat::TraceTracker, "ssdsim with stamps in ns", why))
    } else {
        // Stamps were read as if in ms: a unit of the trace is 1,000,000 here.
        let span = last_time.saturating_sub(first_time.unwrap_or(0)) / 1_000_000;
        let notes = if seen >= 8 && span / seen < 5_000 {
            vec![format!(
                "recognised as ssdsim with stamps in ns, but then requests come every {} ns; if the unit is another, \
                 say `time=us` or `time=ms` before the path",
                span / seen
            )]
        } else {
            Vec::new()
        };
        (TraceFormat::Ssdsim, notes)
    })
}

//! A line for each request: `R sector sectors time`, in sectors of 512 bytes and microseconds; `W` is a write.

use ssdlab_base::{Op, SECTOR_BYTES};

use super::FormatSpec;
use crate::trace::number::{stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

/// Nanoseconds in a stamp's unit.
const UNIT_NS: u64 = 1_000;

/// What a line must look like, for the error.
const LINE: &str = "`R|W sector sectors time_us`";

pub(super) static FORMAT: FormatSpec = FormatSpec {
    // One drive, so a device cannot be chosen.
    devices: false,
    time: Some(TimeColumn { column: 4, commas: false, unit_ns: UNIT_NS }),
    ..FormatSpec::new("template", "the template of docs/adding-a-design.md", build)
};

struct Template {
    unit_ns: u64,
}

fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Template { unit_ns: options.time_unit.unwrap_or(UNIT_NS) })
}

impl Decoder for Template {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        if line.starts_with(b"#") {
            return Ok(Decoded::Nothing);
        }
        let mut columns = Columns::blanks(line);
        let mut parse = || {
            Some(Record {
                device: 0,
                op: match columns.next()? {
                    b"R" => Op::Read,
                    b"W" => Op::Write,
                    _ => return None,
                },
                offset: uint(columns.next()?)?.checked_mul(SECTOR_BYTES)?,
                length: uint(columns.next()?)?.checked_mul(SECTOR_BYTES)?,
                fua: false,
                at_ns: stamp(columns.next()?, self.unit_ns)?,
            })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, LINE))
    }
}

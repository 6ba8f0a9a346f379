//! UMass and SPC: `ASU, LBA (512 B), size bytes, r|R|w|W, time s`, optional fields behind.

use ssdlab_base::{Op, SECTOR_BYTES};

use super::FormatSpec;
use crate::trace::number::{stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    aliases: &["umass"],
    time: Some(TimeColumn { column: 5, commas: true, unit_ns: 1_000_000_000 }),
    ..FormatSpec::new("spc", "UMass/SPC", build)
};

const LINE: &str = "`ASU,LBA,Size,r|w,Timestamp s`, LBA in 512-byte sectors and Size in bytes";

struct Spc {
    unit_ns: u64,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Spc { unit_ns: options.time_unit.unwrap_or(1_000_000_000) })
}

impl Decoder for Spc {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let mut columns = Columns::commas(line);
        let mut parse = || {
            Some(Record {
                device: uint(columns.next()?)?,
                offset: uint(columns.next()?)?.checked_mul(SECTOR_BYTES)?,
                length: uint(columns.next()?)?,
                op: match columns.next()? {
                    b"r" | b"R" => Op::Read,
                    b"w" | b"W" => Op::Write,
                    _ => return None,
                },
                fua: false,
                at_ns: stamp(columns.next()?, self.unit_ns)?,
            })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, LINE))
    }
}

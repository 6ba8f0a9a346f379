//! Tencent CBS: `Timestamp (unix s), Offset (512 B), Size (512 B), 0 read | 1 write, VolumeID`.

use ssdlab_base::{Op, SECTOR_BYTES};

use super::FormatSpec;
use crate::trace::number::{stamp, uint};
use crate::trace::options::{Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    order: Order::Time,
    time: Some(TimeColumn { column: 1, commas: true, unit_ns: 1_000_000_000 }),
    ..FormatSpec::new("tencent", "Tencent CBS", build)
};

const LINE: &str = "`Timestamp,Offset,Size,0|1,VolumeID`, offset and size in 512-byte sectors";

struct Tencent {
    unit_ns: u64,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Tencent { unit_ns: options.time_unit.unwrap_or(1_000_000_000) })
}

impl Decoder for Tencent {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let [time, offset, size, op, volume] = Columns::commas(line).exactly(line, LINE)?;
        let parse = || {
            Some(Record {
                at_ns: stamp(time, self.unit_ns)?,
                op: match op {
                    b"0" => Op::Read,
                    b"1" => Op::Write,
                    _ => return None,
                },
                fua: false,
                device: uint(volume)?,
                offset: uint(offset)?.checked_mul(SECTOR_BYTES)?,
                length: uint(size)?.checked_mul(SECTOR_BYTES)?,
            })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, LINE))
    }
}

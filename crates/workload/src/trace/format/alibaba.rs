//! Alibaba block traces 2020: `device_id, R|W, offset bytes, length bytes, timestamp us`.

use ssdlab_base::Op;

use super::FormatSpec;
use crate::trace::number::{stamp, uint};
use crate::trace::options::{Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    order: Order::Time,
    time: Some(TimeColumn { column: 5, commas: true, unit_ns: 1_000 }),
    ..FormatSpec::new("alibaba", "Alibaba block traces 2020", build)
};

const LINE: &str = "`device_id,R|W,offset,length,timestamp us`";

struct Alibaba {
    unit_ns: u64,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Alibaba { unit_ns: options.time_unit.unwrap_or(1_000) })
}

impl Decoder for Alibaba {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        if line == b"device_id,opcode,offset,length,timestamp" {
            return Ok(Decoded::Nothing);
        }
        let [device, op, offset, length, time] = Columns::commas(line).exactly(line, LINE)?;
        let parse = || {
            Some(Record {
                at_ns: stamp(time, self.unit_ns)?,
                op: match op {
                    b"R" => Op::Read,
                    b"W" => Op::Write,
                    _ => return None,
                },
                fua: false,
                device: uint(device)?,
                offset: uint(offset)?,
                length: uint(length)?,
            })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, LINE))
    }
}

//! SYSTOR '17: `Timestamp s, Response s, R|W, LUN, Offset bytes, Size bytes`, with a header line.
//!
//! Lines are in order of completion, so requests are put in order of their stamps.

use ssdlab_base::Op;

use super::FormatSpec;
use crate::trace::number::{stamp, uint};
use crate::trace::options::{Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    order: Order::Time,
    time: Some(TimeColumn { column: 1, commas: true, unit_ns: 1_000_000_000 }),
    ..FormatSpec::new("systor17", "SYSTOR '17", build)
};

const LINE: &str = "`Timestamp,Response,R|W,LUN,Offset,Size`";

struct Systor17 {
    unit_ns: u64,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Systor17 { unit_ns: options.time_unit.unwrap_or(1_000_000_000) })
}

impl Decoder for Systor17 {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        if line == b"Timestamp,Response,IOType,LUN,Offset,Size" {
            return Ok(Decoded::Nothing);
        }
        let [time, response, op, lun, offset, size] = Columns::commas(line).exactly(line, LINE)?;
        let parse = || {
            // A response may be missing; if there is one it is a number.
            if !response.is_empty() && stamp(response, self.unit_ns).is_none() {
                return None;
            }
            Some(Record {
                at_ns: stamp(time, self.unit_ns)?,
                op: match op {
                    b"R" => Op::Read,
                    b"W" => Op::Write,
                    _ => return None,
                },
                fua: false,
                device: uint(lun)?,
                offset: uint(offset)?,
                length: uint(size)?,
            })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, LINE))
    }
}

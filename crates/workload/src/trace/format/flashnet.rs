//! FlashNet and LinnOS replay logs: `time ms, latency us, 1 read | 0 write, length bytes, offset bytes, submit time ms,
//! returned bytes`.
//!
//! The arrival is the submit time, when the request reached the drive; the first column is the time the replayed
//! trace asked for, often at a coarser grain. Lines are in order of completion, so requests are put in order.

use ssdlab_base::Op;

use super::FormatSpec;
use crate::trace::number::{is_decimal, stamp, uint};
use crate::trace::options::{Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    aliases: &["linnos-result"],
    devices: false,
    order: Order::Time,
    time: Some(TimeColumn { column: 6, commas: true, unit_ns: 1_000_000 }),
    ..FormatSpec::new("flashnet", "FlashNet/LinnOS replay log", build)
};

const LINE: &str = "`time ms,latency us,1|0,length,offset,submit time ms,returned bytes`";

struct Flashnet {
    unit_ns: u64,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Flashnet { unit_ns: options.time_unit.unwrap_or(1_000_000) })
}

impl Decoder for Flashnet {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let [time, latency, op, length, offset, submit, returned] = Columns::commas(line).exactly(line, LINE)?;
        let parse = || {
            stamp(time, self.unit_ns)?;
            uint(returned)?;
            if !is_decimal(latency) {
                return None;
            }
            Some(Record {
                at_ns: stamp(submit, self.unit_ns)?,
                op: match op {
                    b"0" => Op::Write,
                    b"1" => Op::Read,
                    _ => return None,
                },
                fua: false,
                device: 0,
                offset: uint(offset)?,
                length: uint(length)?,
            })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, LINE))
    }
}

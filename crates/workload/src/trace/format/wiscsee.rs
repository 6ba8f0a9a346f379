//! WiscSee events: `pid D|C read|write|discard offset length time_s latency sync`, bytes, separated by blanks.
//!
//! Each request has a line when it is dispatched (D) and one when it completes (C); D is the request unless `event=C`.

use ssdlab_base::Op;

use super::FormatSpec;
use crate::trace::number::{is_decimal, stamp, uint};
use crate::trace::options::{Event, Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    devices: false,
    events: true,
    only_event: Some(Event::Dispatch),
    order: Order::Time,
    time: Some(TimeColumn { column: 6, commas: false, unit_ns: 1_000_000_000 }),
    ..FormatSpec::new("wiscsee", "WiscSee events", build)
};

const LINE: &str = "`pid D|C read|write|discard|flush offset length time_s latency True|False`";

struct Wiscsee {
    unit_ns: u64,
    letter: u8,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Wiscsee {
        unit_ns: options.time_unit.unwrap_or(1_000_000_000),
        letter: options.event.unwrap_or(Event::Dispatch).letter() as u8,
    })
}

impl Decoder for Wiscsee {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let [pid, action, op, offset, length, time, latency, sync] = Columns::blanks(line).exactly(line, LINE)?;
        let parse = || {
            uint(pid)?;
            if !is_decimal(latency) && latency != b"None" {
                return None;
            }
            if !matches!(sync, b"True" | b"False" | b"None") {
                return None;
            }
            let at_ns = stamp(time, self.unit_ns)?;
            let op = match op {
                b"read" => Op::Read,
                b"write" => Op::Write,
                b"discard" => Op::Trim,
                b"flush" => Op::Flush,
                _ => return None,
            };
            let (offset, length) = (uint(offset)?, uint(length)?);
            match action {
                [letter] if *letter == self.letter => {}
                b"D" | b"C" => return Some(Decoded::Nothing),
                _ => return None,
            }
            if op == Op::Flush {
                return Some(Decoded::One(Record::flush(at_ns, 0)));
            }
            Some(Decoded::One(Record { at_ns, op, fua: false, device: 0, offset, length }))
        };
        parse().ok_or_else(|| Flaw::new(line, LINE))
    }
}

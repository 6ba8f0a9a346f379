//! Microsoft event tracing as text: the SNIA Production, Exchange and TPC traces.
//!
//! Columns are separated by commas and padded. A header between `BeginHeader` and `EndHeader` describes every event;
//! of the events behind it `DiskRead`, `DiskWrite` and `DiskFlush` are requests and all others are left out. Lines are
//! in order of completion, so requests are put in order of their stamps.

use ssdlab_base::Op;

use super::FormatSpec;
use crate::trace::number::{hex, stamp, uint};
use crate::trace::options::{Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    aliases: &["etw"],
    order: Order::Time,
    time: Some(TimeColumn { column: 2, commas: true, unit_ns: 1_000 }),
    ..FormatSpec::new("ms-etw", "Microsoft ETW text", build)
};

const LINE: &str = "an event such as `DiskRead, TimeStamp us, Process, ThreadID, IrpPtr, ByteOffset 0x.., IOSize 0x.., \
                    ElapsedTime, DiskNum, ...`";

struct Etw {
    unit_ns: u64,
    header: bool,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Etw { unit_ns: options.time_unit.unwrap_or(1_000), header: false })
}

impl Decoder for Etw {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let mut columns = Columns::commas(line);
        let event = columns.next().unwrap_or_default();
        match event {
            b"BeginHeader" => self.header = true,
            b"EndHeader" => self.header = false,
            _ if self.header => {}
            b"DiskRead" | b"DiskWrite" | b"DiskFlush" => {
                let mut column = [&[] as &[u8]; 8];
                for slot in &mut column {
                    *slot = columns.need(line, LINE)?;
                }
                let [time, _, _, _, offset, size, _, disk] = column;
                let at_ns = stamp(time, self.unit_ns).ok_or_else(|| Flaw::new(line, LINE))?;
                let device = uint(disk).ok_or_else(|| Flaw::new(line, LINE))?;
                if event == b"DiskFlush" {
                    return Ok(Decoded::One(Record::flush(at_ns, device)));
                }
                return Ok(Decoded::One(Record {
                    at_ns,
                    op: if event == b"DiskRead" { Op::Read } else { Op::Write },
                    fua: false,
                    device,
                    offset: hex(offset).ok_or_else(|| Flaw::new(line, LINE))?,
                    length: hex(size).ok_or_else(|| Flaw::new(line, LINE))?,
                }));
            }
            _ => {
                let named = event.first().is_some_and(u8::is_ascii_alphabetic)
                    && event.iter().all(|b| b.is_ascii_alphanumeric() || b"-/_".contains(b));
                if !named || columns.next().is_none() {
                    return Err(Flaw::new(line, LINE));
                }
            }
        }
        Ok(Decoded::Nothing)
    }
}

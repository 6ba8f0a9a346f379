//! MSR Cambridge: `filetime (100 ns), hostname, disk, Read|Write, offset bytes, size bytes, response time`.

use ssdlab_base::Op;

use super::FormatSpec;
use super::names::Names;
use crate::trace::number::{stamp, uint};
use crate::trace::options::{Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    aliases: &["msr-cambridge"],
    order: Order::Time,
    time: Some(TimeColumn { column: 1, commas: true, unit_ns: 100 }),
    ..FormatSpec::new("msr", "MSR Cambridge", build)
};

const LINE: &str = "`Timestamp,Hostname,DiskNumber,Read|Write,Offset,Size,ResponseTime`";

struct Msr {
    unit_ns: u64,
    names: Names,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Msr { unit_ns: options.time_unit.unwrap_or(100), names: Names::default() })
}

impl Decoder for Msr {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        if line == b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime" {
            return Ok(Decoded::Nothing);
        }
        let [time, host, disk, op, offset, size, _] = Columns::commas(line).exactly(line, LINE)?;
        let parsed = (|| {
            uint(disk)?;
            Some(Record {
                at_ns: stamp(time, self.unit_ns)?,
                op: match op {
                    b"Read" | b"read" => Op::Read,
                    b"Write" | b"write" => Op::Write,
                    _ => return None,
                },
                fua: false,
                device: 0,
                offset: uint(offset)?,
                length: uint(size)?,
            })
        })();
        let mut record = parsed.ok_or_else(|| Flaw::new(line, LINE))?;
        // The volume is `host.disk`, put together without allocating.
        let both = host.len() + 1 + disk.len();
        let mut name = [0; 128];
        if host.is_empty() || both > name.len() {
            return Err(Flaw::new(line, LINE));
        }
        name[..host.len()].copy_from_slice(host);
        name[host.len()] = b'.';
        name[host.len() + 1..both].copy_from_slice(disk);
        record.device = self.names.number(&name[..both])?;
        Ok(Decoded::One(record))
    }

    fn device_name(&self, device: u64) -> String {
        self.names.name(device)
    }
}

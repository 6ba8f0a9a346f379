//! FIU IODedup: `time ns, pid, process, LBA (512 B), sectors, R|W, major, minor, MD5`, separated by blanks.
//!
//! A process name may hold blanks, so the columns behind it are counted from the end of the line.

use ssdlab_base::{Op, SECTOR_BYTES};

use super::FormatSpec;
use super::blkparse::{device, device_name};
use crate::trace::number::{stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    aliases: &["iodedup"],
    time: Some(TimeColumn { column: 1, commas: false, unit_ns: 1 }),
    ..FormatSpec::new("fiu", "FIU IODedup", build)
};

const LINE: &str = "`time_ns pid process lba sectors R|W major minor md5`";

struct Fiu {
    unit_ns: u64,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    Box::new(Fiu { unit_ns: options.time_unit.unwrap_or(1) })
}

/// The last blank-separated column, and the text before it.
fn pop<'a>(text: &mut &'a [u8]) -> Option<&'a [u8]> {
    let trimmed = text.trim_ascii_end();
    if trimmed.is_empty() {
        return None;
    }
    let start = trimmed.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    let column = &trimmed[start..];
    *text = &trimmed[..start];
    Some(column)
}

impl Decoder for Fiu {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        let parse = || {
            let mut columns = Columns::blanks(line);
            let at_ns = stamp(columns.next()?, self.unit_ns)?;
            uint(columns.next()?)?;
            let mut rest = columns.remainder();
            let hash = pop(&mut rest)?;
            if !hash.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let minor = uint(pop(&mut rest)?)?;
            let major = uint(pop(&mut rest)?)?;
            let op = match pop(&mut rest)? {
                b"R" => Op::Read,
                b"W" => Op::Write,
                _ => return None,
            };
            let length = uint(pop(&mut rest)?)?.checked_mul(SECTOR_BYTES)?;
            let offset = uint(pop(&mut rest)?)?.checked_mul(SECTOR_BYTES)?;
            pop(&mut rest)?;
            Some(Record { at_ns, op, fua: false, device: device(major, minor)?, offset, length })
        };
        parse().map(Decoded::One).ok_or_else(|| Flaw::new(line, LINE))
    }

    fn device_name(&self, device: u64) -> String {
        device_name(device)
    }
}

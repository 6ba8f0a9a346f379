//! CloudPhysics vscsi traces: binary records, little endian, and libCacheSim's CSV of them.
//!
//! Version 1, 32 bytes: u32 serial, u32 length bytes, u32 scatter-gather, u16 SCSI command, u16 version (1 in the high
//! byte), u64 block (512 B), u64 time us. Version 2, 40 bytes: u16 command, u16 version (2 in the high byte), u32
//! serial, u32 length, u32 scatter-gather, u64 block, u64 time us, u64 response time. No sample of version 2 was at
//! hand; its layout is the one libCacheSim reads.
//!
//! SCSI commands that neither read, write nor flush are left out and counted. WRITE SAME is among them: the record does
//! not say how far it reaches.

use ssdlab_base::{Op, SECTOR_BYTES};

use super::{FormatSpec, Told};
use crate::trace::number::{hex, stamp, uint, word16, word32, word64};
use crate::trace::options::{Options, Order};
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Frame, Record, TimeColumn};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    aliases: &["cloudphysics"],
    devices: false,
    stamps: false,
    order: Order::Time,
    told: Told::Binary,
    ..FormatSpec::new("vscsi", "CloudPhysics vscsi binary", build)
};

pub(super) static CSV: FormatSpec = FormatSpec {
    devices: false,
    time: Some(TimeColumn { column: 2, commas: true, unit_ns: 1_000_000_000 }),
    ..FormatSpec::new("vscsi-csv", "vscsi as libCacheSim's CSV", build_csv)
};

const LINE: &str = "`version,time s,SCSI command in hex,size bytes,lbn`";

/// The version of a binary vscsi trace that begins with these bytes, if it is one.
pub(in crate::trace) fn version(head: &[u8]) -> Option<u8> {
    let is = |size: usize, at: usize, version: u8| {
        head.len() >= size
            && head.chunks_exact(size).take(16).all(|record| record[at + 1] == version && record[at] == 0)
    };
    if is(40, 2, 2) {
        Some(2)
    } else if is(32, 14, 1) {
        Some(1)
    } else {
        None
    }
}

struct Vscsi {
    /// Told by the first record.
    version: Option<u8>,
}

pub(super) fn build(_: &Options) -> Box<dyn Decoder> {
    Box::new(Vscsi { version: None })
}

/// What a SCSI command asks of the drive, if a model can take it.
fn op(command: u64) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

fn request(at_ns: u64, command: u64, block: u64, length: u64) -> Result<Decoded, Flaw> {
    Ok(match op(command) {
        None => Decoded::Ignored,
        Some(Op::Flush) => Decoded::One(Record::flush(at_ns, 0)),
        Some(op) => Decoded::One(Record {
            at_ns,
            op,
            fua: false,
            device: 0,
            offset: block
                .checked_mul(SECTOR_BYTES)
                .ok_or_else(|| Flaw::in_words(format!("block {block}"), "a block below 2^55"))?,
            length,
        }),
    })
}

impl Decoder for Vscsi {
    fn frame(&self) -> Frame {
        // Version 2 begins with 32 bytes too; its last eight are a tail.
        Frame::Record(32)
    }

    fn decode(&mut self, record: &[u8]) -> Result<Decoded, Flaw> {
        let (first, second) = (word16(record, 14, false), word16(record, 2, false));
        let version = *self.version.get_or_insert(if second == 0x0200 { 2 } else { 1 });
        let (stamped, wanted) = if version == 2 { (second, 0x0200) } else { (first, 0x0100) };
        if stamped != wanted {
            return Err(Flaw::in_words(
                format!("version field {stamped:#06x}"),
                format!("{wanted:#06x} in every record of a version {version} vscsi trace"),
            ));
        }
        let (command, length, block, time_us) = if version == 2 {
            (word16(record, 0, false), word32(record, 8, false), word64(record, 16, false), word64(record, 24, false))
        } else {
            (word16(record, 12, false), word32(record, 4, false), word64(record, 16, false), word64(record, 24, false))
        };
        let at_ns = time_us
            .checked_mul(1_000)
            .ok_or_else(|| Flaw::in_words(format!("the time {time_us} us"), "a time of fewer than 2^64 nanoseconds"))?;
        request(at_ns, u64::from(command), block, u64::from(length))
    }

    fn tail(&self) -> usize {
        if self.version == Some(2) { 8 } else { 0 }
    }
}

struct VscsiCsv {
    unit_ns: u64,
}

pub(super) fn build_csv(options: &Options) -> Box<dyn Decoder> {
    Box::new(VscsiCsv { unit_ns: options.time_unit.unwrap_or(1_000_000_000) })
}

impl Decoder for VscsiCsv {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        if line == b"version,time,op,size,lbn" {
            return Ok(Decoded::Nothing);
        }
        let [version, time, command, size, block] = Columns::commas(line).exactly(line, LINE)?;
        let parse = || {
            if !matches!(version, b"1" | b"2") {
                return None;
            }
            let command = hex(command).filter(|&command| command <= 0xff)?;
            Some((stamp(time, self.unit_ns)?, command, uint(block)?, uint(size)?))
        };
        let (at_ns, command, block, size) = parse().ok_or_else(|| Flaw::new(line, LINE))?;
        request(at_ns, command, block, size)
    }
}

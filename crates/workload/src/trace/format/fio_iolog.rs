//! fio's iologs, versions 2 and 3.
//!
//! Version 2 is `file action [offset length]` and has no stamps, only `wait` actions that say how many microseconds
//! after the previous `wait` the next requests come. Version 3 is `time file action [offset length]`; its stamps are
//! microseconds, as fio 3.33 writes and replays them. Actions: read, write, trim, sync, datasync, sync_file_range
//! (all three a flush), and the file actions add, open, close, unlink, which are no requests. Every file is a device.

use ssdlab_base::{Nanos, Op};

use super::names::Names;
use super::{FormatSpec, Told};
use crate::trace::number::{stamp, uint};
use crate::trace::options::Options;
use crate::trace::record::{Columns, Decoded, Decoder, Flaw, Record, TimeColumn};

pub(super) static V2: FormatSpec = FormatSpec {
    aliases: &["fio-iolog-v2"],
    stamps: false,
    told: Told::ByHeader,
    ..FormatSpec::new("fio-v2", "fio iolog version 2", build_v2)
};

pub(super) static V3: FormatSpec = FormatSpec {
    aliases: &["fio-iolog-v3"],
    told: Told::ByHeader,
    time: Some(TimeColumn { column: 1, commas: false, unit_ns: 1_000 }),
    ..FormatSpec::new("fio-v3", "fio iolog version 3", build_v3)
};

const LINE_V2: &str = "`file action` or `file action offset length`, action one of add open close unlink read write trim \
                  sync datasync sync_file_range wait";
const LINE_V3: &str = "`time_us file action` or `time_us file action offset length`, action one of add open close unlink \
                  read write trim sync datasync sync_file_range";

struct FioIolog {
    version: u8,
    unit_ns: u64,
    names: Names,
    started: bool,
    /// Version 2: the sum of the waits so far.
    waited_ns: u64,
}

fn build(version: u8, options: &Options) -> Box<dyn Decoder> {
    Box::new(FioIolog {
        version,
        unit_ns: options.time_unit.unwrap_or(1_000),
        names: Names::default(),
        started: false,
        waited_ns: 0,
    })
}

pub(super) fn build_v2(options: &Options) -> Box<dyn Decoder> {
    build(2, options)
}

pub(super) fn build_v3(options: &Options) -> Box<dyn Decoder> {
    build(3, options)
}

impl FioIolog {
    fn expected(&self) -> &'static str {
        if self.version == 2 { LINE_V2 } else { LINE_V3 }
    }
}

impl Decoder for FioIolog {
    fn decode(&mut self, line: &[u8]) -> Result<Decoded, Flaw> {
        if !self.started {
            let header = format!("fio version {} iolog", self.version);
            if line.trim_ascii() != header.as_bytes() {
                return Err(Flaw::new(line, format!("`{header}` in the first line")));
            }
            self.started = true;
            return Ok(Decoded::Nothing);
        }
        let expected = self.expected();
        let flaw = || Flaw::new(line, expected);
        let mut columns = Columns::blanks(line);
        let at_ns = if self.version == 3 {
            stamp(columns.need(line, expected)?, self.unit_ns).ok_or_else(flaw)?
        } else {
            self.waited_ns
        };
        let file = columns.need(line, expected)?;
        let action = columns.need(line, expected)?;
        let numbers = match (columns.next(), columns.next(), columns.next()) {
            (None, _, _) => None,
            (Some(offset), Some(length), None) => {
                Some((uint(offset).ok_or_else(flaw)?, uint(length).ok_or_else(flaw)?))
            }
            // fio writes a wait with its microseconds alone.
            (Some(offset), None, _) if action == b"wait" => Some((uint(offset).ok_or_else(flaw)?, 0)),
            _ => return Err(flaw()),
        };
        let op = match action {
            b"add" | b"open" | b"close" | b"unlink" => return Ok(Decoded::Nothing),
            b"wait" if self.version == 2 => {
                let (wait, _) = numbers.ok_or_else(flaw)?;
                let waited = wait.checked_mul(1_000).and_then(|ns| self.waited_ns.checked_add(ns));
                self.waited_ns = waited.filter(|ns| *ns < Nanos::HORIZON.0).ok_or_else(|| {
                    Flaw::in_words(
                        format!("a wait of {wait} us in column 3, after others of {}", Nanos(self.waited_ns)),
                        "waits of less than 2^61 ns (73 years) in all",
                    )
                })?;
                return Ok(Decoded::Nothing);
            }
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"sync_file_range" => Op::Flush,
            _ => return Err(flaw()),
        };
        let device = self.names.number(file)?;
        if op == Op::Flush {
            return Ok(Decoded::One(Record::flush(at_ns, device)));
        }
        let (offset, length) = numbers.ok_or_else(flaw)?;
        Ok(Decoded::One(Record { at_ns, op, fua: false, device, offset, length }))
    }

    fn device_name(&self, device: u64) -> String {
        self.names.name(device)
    }
}

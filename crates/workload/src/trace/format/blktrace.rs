//! blktrace's binary: `struct blk_io_trace` records of 48 bytes (magic 0x65617407) in either byte order, each with data
//! behind it.
//!
//! One processor's file (`sda.blktrace.3`), the merged output of `blkparse -d`, or several processors' files put
//! behind one another. Requests are put in order of their stamps within a window, so the last kind is in order only as
//! far as the window reaches; `blkparse -d` sorts it. One kind of event counts as a request's arrival: `event=`, else
//! Q, else D where there is no Q.

use ssdlab_base::{Op, SECTOR_BYTES};

use super::blkparse::device_name;
use super::{FormatSpec, Told};
use crate::trace::number::{word16, word32, word64};
use crate::trace::options::{Event, Options, Order};
use crate::trace::record::{Decoded, Decoder, Flaw, Frame, Record};

pub(super) static FORMAT: FormatSpec = FormatSpec {
    events: true,
    stamps: false,
    wild_clock: true,
    order: Order::Time,
    told: Told::Binary,
    ..FormatSpec::new("blktrace", "blktrace binary", build)
};

const HEAD: usize = 48;
/// The magic's upper three bytes and the version below.
const MAGIC: u32 = 0x6561_7407;

// Categories, in the upper half of the action.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const PASSTHROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

struct Blktrace {
    action: u32,
    tail: usize,
}

pub(super) fn build(options: &Options) -> Box<dyn Decoder> {
    let action = match options.event.unwrap_or(Event::Queue) {
        Event::Queue => 1,
        Event::Get => 4,
        Event::Dispatch => 7,
        Event::Complete => 8,
        Event::Insert => 12,
    };
    Box::new(Blktrace { action, tail: 0 })
}

/// Whether a file that begins so is a blktrace.
pub(in crate::trace) fn is_blktrace(head: &[u8]) -> bool {
    big_endian(head).is_some()
}

fn big_endian(head: &[u8]) -> Option<bool> {
    if head.len() < 4 {
        return None;
    }
    [false, true].into_iter().find(|&order| word32(head, 0, order) == MAGIC)
}

impl Decoder for Blktrace {
    fn frame(&self) -> Frame {
        Frame::Record(HEAD)
    }

    fn decode(&mut self, record: &[u8]) -> Result<Decoded, Flaw> {
        self.tail = 0;
        let Some(order) = big_endian(record) else {
            let found = word32(record, 0, false);
            return Err(Flaw::in_words(
                format!("the magic {found:#010x}"),
                format!("{MAGIC:#010x} at the start of every record (version 7, either byte order)"),
            ));
        };
        self.tail = usize::from(word16(record, 46, order));
        let action = word32(record, 28, order);
        let category = action >> 16;
        if category & NOTIFY != 0 || action & 0xffff != self.action {
            return Ok(Decoded::Nothing);
        }
        if category & PASSTHROUGH != 0 {
            return Ok(Decoded::Ignored);
        }
        let at_ns = word64(record, 8, order);
        let sector = word64(record, 16, order);
        let length = u64::from(word32(record, 24, order));
        let number = word32(record, 36, order);
        let device = u64::from(number >> 20) << 32 | u64::from(number & 0xf_ffff);
        if length == 0 {
            return Ok(if category & FLUSH != 0 {
                Decoded::One(Record::flush(at_ns, device))
            } else {
                Decoded::Ignored
            });
        }
        let op = if category & DISCARD != 0 {
            Op::Trim
        } else if category & WRITE != 0 {
            Op::Write
        } else {
            Op::Read
        };
        let request = Record {
            at_ns,
            op,
            fua: category & FUA != 0,
            device,
            offset: sector
                .checked_mul(SECTOR_BYTES)
                .ok_or_else(|| Flaw::in_words(format!("sector {sector}"), "a sector below 2^55"))?,
            length,
        };
        Ok(if category & FLUSH != 0 {
            Decoded::Two(Record::flush(at_ns, device), request)
        } else {
            Decoded::One(request)
        })
    }

    fn tail(&self) -> usize {
        self.tail
    }

    fn device_name(&self, device: u64) -> String {
        device_name(device)
    }
}

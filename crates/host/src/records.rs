//! Records by address: the bytes of a host's metadata, beside a drive that keeps none of its own.

use std::collections::BTreeMap;
use std::ops::Range;

use ssdlab_base::{Op, Request};

/// Bytes of memory that a record takes beside its own: key, pointer and length in a tree that is two thirds full.
const BESIDE: u64 = 36;

/// The records of what stands on a drive or a layer, by the sector at which each begins.
#[derive(Debug, Default)]
pub(crate) struct Records {
    by_sector: BTreeMap<u64, Box<[u8]>>,
    bytes: u64,
}

impl Records {
    /// Keeps a record without the zeroes at its end; most of a metadata block is zeroes.
    pub(crate) fn keep(&mut self, sector: u64, bytes: &[u8]) {
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.bytes += length as u64;
        if let Some(before) = self.by_sector.insert(sector, bytes[..length].into()) {
            self.bytes -= before.len() as u64;
        }
    }

    /// The record at a sector.
    pub(crate) fn get(&self, sector: u64) -> Option<&[u8]> {
        self.by_sector.get(&sector).map(|bytes| &**bytes)
    }

    /// A command was submitted: records that it overwrites or trims are gone.
    #[inline]
    pub(crate) fn submitted(&mut self, request: &Request) {
        if !self.is_empty() && request.opcode.is_block() && !matches!(request.op, Op::Read | Op::Flush) {
            while self.take(request.sector..request.end()).is_some() {}
        }
    }

    /// Takes out the first record that begins in these sectors.
    pub(crate) fn take(&mut self, sectors: Range<u64>) -> Option<(u64, Box<[u8]>)> {
        let (&sector, _) = self.by_sector.range(sectors).next()?;
        let record = self.by_sector.remove(&sector).expect("it was found");
        self.bytes -= record.len() as u64;
        Some((sector, record))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_sector.is_empty()
    }

    /// Memory that all of them take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes + self.by_sector.len() as u64 * BESIDE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lives_until_its_sector_is_written_or_trimmed() {
        let mut records = Records::default();
        records.keep(8, &[1, 0, 2, 0, 0]);
        records.keep(16, &[0; 4096]);
        records.keep(24, &[7]);
        assert_eq!(records.get(8), Some(&[1, 0, 2][..]), "zeroes at the end are not kept");
        assert_eq!(records.get(16), Some(&[][..]));
        assert_eq!(records.memory_bytes(), 4 + 3 * BESIDE);
        records.submitted(&Request::new(Op::Read, 0, 64));
        records.submitted(&Request::new(Op::Write, 8, 8));
        assert_eq!((records.get(8), records.get(16).is_some()), (None, true));
        records.submitted(&Request::new(Op::Trim, 16, 64));
        assert_eq!((records.get(16), records.get(24), records.memory_bytes()), (None, None, 0));
    }
}

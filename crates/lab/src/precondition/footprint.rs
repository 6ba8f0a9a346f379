//! The preconditioning `footprint`: writes all that the workload will access, and nothing else.
//!
//! Every extent of 64 KiB of which the measured workload touches any part is written whole, once, in order of address.
//! So a read finds data and a partial page has an old version, as on a drive written full, and collection has as little
//! to do as on a fresh one; it takes seconds where a fill of a large drive takes minutes.

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::DriveConfig;
use ssdlab_workload::{Next, Workload, WorkloadError};

use crate::source::WorkloadSource;
use crate::source::walk;

/// An extent: a multiple of every page size, so that the age is the same for all of them.
const EXTENT_SECTORS: u64 = (64 << 10) / SECTOR_BYTES;

/// One request writes at most this much: 1 MiB.
const REQUEST_EXTENTS: u64 = 16;

/// The extents of a workload's footprint, to be written in order.
pub(super) struct Footprint {
    /// A bit for each extent of the drive.
    bits: Vec<u64>,
    user_sectors: u64,
    next: u64,
}

impl Footprint {
    /// Walks through the measured run of `source` on this drive.
    pub(super) fn of(source: &dyn WorkloadSource, drive: &DriveConfig) -> Result<Footprint, WorkloadError> {
        let user_sectors = drive.logical_bytes() / SECTOR_BYTES;
        let extents = user_sectors.div_ceil(EXTENT_SECTORS);
        let mut bits = vec![0_u64; usize::try_from(extents.div_ceil(64)).unwrap_or(usize::MAX)];
        let mut workload = source.open(drive, 0)?;
        walk(&mut *workload, |request| {
            // What lies behind the drive's end is the run's to refuse.
            let end = request.end().min(user_sectors);
            for extent in request.sector / EXTENT_SECTORS..end.div_ceil(EXTENT_SECTORS) {
                bits[(extent / 64) as usize] |= 1 << (extent % 64);
            }
            true
        })?;
        Ok(Footprint { bits, user_sectors, next: 0 })
    }

    fn contains(&self, extent: u64) -> bool {
        self.bits.get((extent / 64) as usize).is_some_and(|word| word >> (extent % 64) & 1 == 1)
    }
}

impl Workload for Footprint {
    fn next(&mut self, _now: Nanos) -> Result<Next, WorkloadError> {
        let extents = self.user_sectors.div_ceil(EXTENT_SECTORS);
        while self.next < extents && !self.contains(self.next) {
            // Whole words of extents outside it are passed at once.
            self.next += if self.bits[(self.next / 64) as usize] == 0 { 64 - self.next % 64 } else { 1 };
        }
        if self.next >= extents {
            return Ok(Next::Done);
        }
        let first = self.next;
        while self.next < extents && self.next - first < REQUEST_EXTENTS && self.contains(self.next) {
            self.next += 1;
        }
        let start = first * EXTENT_SECTORS;
        let end = (self.next * EXTENT_SECTORS).min(self.user_sectors);
        Ok(Next::Request(Request::new(Op::Write, start, end - start)))
    }

    fn completed(&mut self, _now: Nanos, _tag: u32) {}

    fn progress(&self) -> (u64, Option<u64>) {
        (self.next, Some(self.user_sectors.div_ceil(EXTENT_SECTORS)))
    }

    fn rewind(&mut self) -> Result<(), WorkloadError> {
        self.next = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bits: &[u64], user_sectors: u64) -> Vec<(u64, u64)> {
        let mut footprint = Footprint { bits: bits.to_vec(), user_sectors, next: 0 };
        let mut requests = Vec::new();
        walk(&mut footprint, |request| {
            requests.push((request.sector, request.sectors));
            true
        })
        .expect("no request waits");
        requests
    }

    #[test]
    fn extents_of_a_footprint_are_written_once_in_order_and_the_last_ends_with_the_drive() {
        let extent = EXTENT_SECTORS;
        assert_eq!(
            written(&[0b1011, 0, 1], 129 * extent),
            [(0, 2 * extent), (3 * extent, extent), (128 * extent, extent)]
        );
        assert_eq!(written(&[u64::MAX], 17 * extent + 8), [(0, 16 * extent), (16 * extent, extent + 8)]);
        assert_eq!(written(&[0, 0], 128 * extent), []);
    }
}

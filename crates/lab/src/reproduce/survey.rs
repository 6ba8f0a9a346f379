//! What an input looks like: the numbers that stand beside its name in a report.

use serde::Serialize;
use ssdlab_base::{Op, SECTOR_BYTES};
use ssdlab_workload::{Workload, WorkloadError};

use crate::source::walk::walk;

/// Page sizes whose alignment is looked at, in bytes.
const PAGES: [u64; 3] = [4096, 8192, 16384];

/// An input in a few numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Survey {
    /// Requests of all kinds.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// From the first request to the last, nanoseconds; 0 for a closed loop, which has no times of its own.
    pub span_ns: u64,
    /// The largest read, bytes.
    pub read_bytes_max: u64,
    /// The largest write, bytes.
    pub write_bytes_max: u64,
    /// Reads and writes that begin where the one before ended.
    pub sequential: u64,
    /// Writes that begin or end inside a page of 4, 8 and 16 KB, in number.
    pub unaligned: [u64; 3],
    /// Pages of 4, 8 and 16 KB that reads and writes touch any part of, one after the other.
    pub pages: [u64; 3],
}

impl Survey {
    /// Walks through a workload, or through its first `most` requests.
    pub(super) fn of(workload: &mut dyn Workload, most: Option<u64>) -> Result<Survey, WorkloadError> {
        let mut survey = Survey::default();
        let mut first = None;
        let mut ended = None;
        walk(workload, |request| {
            survey.requests += 1;
            survey.span_ns = request.at.0 - first.get_or_insert(request.at).0;
            if matches!(request.op, Op::Read | Op::Write) && request.sectors > 0 {
                survey.sequential += u64::from(ended.replace(request.end()) == Some(request.sector));
                for (count, page) in survey.pages.iter_mut().zip(PAGES) {
                    let sectors = page / SECTOR_BYTES;
                    *count += (request.end() - 1) / sectors - request.sector / sectors + 1;
                }
            }
            match request.op {
                Op::Read => {
                    survey.reads += 1;
                    survey.read_bytes += request.bytes();
                    survey.read_bytes_max = survey.read_bytes_max.max(request.bytes());
                }
                Op::Write => {
                    survey.writes += 1;
                    survey.write_bytes += request.bytes();
                    survey.write_bytes_max = survey.write_bytes_max.max(request.bytes());
                    for (count, page) in survey.unaligned.iter_mut().zip(PAGES) {
                        let sectors = page / SECTOR_BYTES;
                        let whole = request.sector.is_multiple_of(sectors) && request.sectors.is_multiple_of(sectors);
                        *count += u64::from(!whole);
                    }
                }
                Op::Trim | Op::WriteZeroes | Op::Flush => {}
            }
            most.is_none_or(|most| survey.requests < most)
        })?;
        Ok(survey)
    }

    /// Unaligned writes for pages of `4k`, `8k` or `16k`, per cent of the writes; nothing without writes.
    pub fn unaligned_percent(&self, page_size: &str) -> Option<f64> {
        let index = index(page_size)?;
        (self.writes > 0).then(|| 100.0 * self.unaligned[index] as f64 / self.writes as f64)
    }

    /// Pages of `4k`, `8k` or `16k` that it asks for in a second; nothing for a closed loop.
    pub fn pages_per_second(&self, page_size: &str) -> Option<f64> {
        let pages = self.pages[index(page_size)?] as f64;
        (self.span_ns > 0).then(|| pages / (self.span_ns as f64 / 1e9))
    }

    /// Requests a second over the span; nothing for a closed loop.
    pub fn rate(&self) -> Option<f64> {
        (self.span_ns > 0).then(|| self.requests as f64 / (self.span_ns as f64 / 1e9))
    }
}

/// The place of a page size in the lists.
fn index(page_size: &str) -> Option<usize> {
    ["4k", "8k", "16k"].iter().position(|&name| name == page_size)
}

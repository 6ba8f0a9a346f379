//! What an input looks like: the numbers that stand beside its name in a report.

use std::collections::HashMap;

use serde::Serialize;
use ssdlab_base::{Op, SECTOR_BYTES};
use ssdlab_workload::{Workload, WorkloadError};

use ssdlab_lab::source::walk;

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
    /// Flushes.
    pub flushes: u64,
    /// Pages of 4 KB that reads and writes touch any part of, each counted once, in bytes.
    pub space_bytes: u64,
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
        let mut space = Space::default();
        walk(workload, |request| {
            survey.requests += 1;
            survey.span_ns = request.at.0 - first.get_or_insert(request.at).0;
            if matches!(request.op, Op::Read | Op::Write) && request.sectors > 0 {
                survey.sequential += u64::from(ended.replace(request.end()) == Some(request.sector));
                space.touch(request.sector, request.end());
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
                Op::Flush => survey.flushes += 1,
                Op::Trim | Op::WriteZeroes => {}
            }
            most.is_none_or(|most| survey.requests < most)
        })?;
        survey.space_bytes = space.bytes();
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

    /// The mean length of a write in bytes; nothing without writes.
    pub fn mean_write_bytes(&self) -> Option<f64> {
        (self.writes > 0).then(|| self.write_bytes as f64 / self.writes as f64)
    }

    /// Writes, per cent of reads and writes; nothing without either.
    pub fn write_percent(&self) -> Option<f64> {
        let both = self.reads + self.writes;
        (both > 0).then(|| 100.0 * self.writes as f64 / both as f64)
    }

    /// Writes by flushes; nothing without a flush.
    pub fn writes_a_flush(&self) -> Option<f64> {
        (self.flushes > 0).then(|| self.writes as f64 / self.flushes as f64)
    }

    /// Requests a second over the span; nothing for a closed loop.
    pub fn rate(&self) -> Option<f64> {
        (self.span_ns > 0).then(|| self.requests as f64 / (self.span_ns as f64 / 1e9))
    }
}

/// Which pages of 4 KB were touched: words of 64, by the place of the word.
#[derive(Default)]
struct Space {
    words: HashMap<u64, u64>,
}

impl Space {
    fn touch(&mut self, sector: u64, end: u64) {
        let sectors = PAGES[0] / SECTOR_BYTES;
        for page in sector / sectors..=(end - 1) / sectors {
            *self.words.entry(page / 64).or_default() |= 1 << (page % 64);
        }
    }

    fn bytes(&self) -> u64 {
        self.words.values().map(|word| u64::from(word.count_ones())).sum::<u64>() * PAGES[0]
    }
}

/// The place of a page size in the lists.
fn index(page_size: &str) -> Option<usize> {
    ["4k", "8k", "16k"].iter().position(|&name| name == page_size)
}

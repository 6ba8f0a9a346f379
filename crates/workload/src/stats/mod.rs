//! What a trace looks like: the numbers one wants before replaying it.
//!
//! One pass, in memory that follows the number of requests and never the addresses that they name. A page is 4 KiB throughout; a page is live when the last
//! thing that happened to any part of it was a write and no trim covered all of it since.

mod histogram;
mod pages;
mod report;

use serde::Serialize;
use ssdlab_base::{Op, Request, SECTOR_BYTES};

pub use histogram::{Bar, Distribution};

use crate::WorkloadError;
use crate::trace::Trace;
use histogram::LogHistogram;
use pages::{PAGE_BYTES, Pages};

/// Version of the keys in [`TraceStats`]; keys only grow.
pub const STATS_FORMAT: u32 = 1;

/// The numbers of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceStats {
    /// Version of these keys.
    pub format: u32,
    /// Requests in all.
    pub requests: u64,
    /// From the first request to the last, nanoseconds.
    pub span_ns: u64,
    /// Requests a second over the span; 0 where the span is zero.
    pub requests_per_second: f64,
    /// The most requests in any whole second from the start.
    pub requests_per_second_peak: u64,
    /// Writes as a percentage of reads and writes.
    pub write_percent: f64,
    /// End of the addresses touched by anything, in bytes.
    pub end_bytes: u64,
    /// Reads.
    pub read: OpStats,
    /// Writes.
    pub write: OpStats,
    /// Trims.
    pub trim: OpStats,
    /// Write zeroes.
    pub write_zeroes: OpStats,
    /// Flushes.
    pub flushes: u64,
    /// Writes with FUA.
    pub fua_writes: u64,
    /// Distinct pages.
    pub footprint: Footprint,
    /// How writes lie in pages of 4, 8 and 16 KiB.
    pub unaligned: Vec<Unaligned>,
    /// Writes that start where the write before ended, percent of writes.
    pub sequential_write_percent: f64,
    /// Reads that start where the read before ended, percent of reads.
    pub sequential_read_percent: f64,
    /// Writes that touch live pages only, percent of writes.
    pub overwrite_percent: f64,
    /// Bytes written between two writes to the same page, for every page written again. Exact to a page and modulo
    /// 16 TiB; percentiles at most an eighth too high.
    pub overwrite_distance_bytes: Distribution,
    /// Bytes written between two writes to the same page, counted by powers of two.
    pub overwrite_distance_histogram: Vec<Bar>,
    /// Writes for each flush; 0 where nothing is flushed.
    pub writes_per_flush: f64,
    /// Writes between one flush and the next, from the start of the trace.
    pub writes_between_flushes: Distribution,
    /// Bytes of live pages that trims freed.
    pub trimmed_live_bytes: u64,
    /// Live pages: the most at any time, and at the end.
    pub live: Live,
    /// Reads of pages that nothing in the trace wrote before, percent of reads.
    pub read_before_write_percent: f64,
}

/// One kind of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OpStats {
    /// How many.
    pub requests: u64,
    /// Bytes together.
    pub bytes: u64,
    /// Bytes together for each second of the span, 0 where the span is zero.
    pub bytes_per_second: f64,
    /// Lengths in bytes; percentiles at most an eighth too high.
    pub length_bytes: Distribution,
    /// Lengths by powers of two.
    pub length_histogram: Vec<Bar>,
}

/// Distinct 4 KiB pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Read or written.
    pub pages: u64,
    /// Written.
    pub pages_written: u64,
    /// Read.
    pub pages_read: u64,
}

/// Writes that do not lie on whole pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unaligned {
    /// The page size.
    pub page_bytes: u64,
    /// Writes whose start or end is inside a page, percent of writes.
    pub percent: f64,
    /// Writes whose start is inside a page, percent of writes.
    pub start_percent: f64,
}

/// Pages whose content the drive has to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Live {
    /// The most at any time.
    pub pages_peak: u64,
    /// At the end.
    pub pages_end: u64,
}

impl TraceStats {
    /// Reads all of `trace`, from its start.
    pub fn of(trace: &mut Trace) -> Result<TraceStats, WorkloadError> {
        trace.rewind()?;
        let mut gather = Gather::new();
        let mut batch = Vec::new();
        while trace.read(&mut batch)? > 0 {
            for request in &batch {
                gather.add(request);
            }
        }
        Ok(gather.finish())
    }
}

/// Page sizes whose alignment is looked at.
const ALIGNMENTS: [u64; 3] = [4096, 8192, 16384];

struct Kind {
    requests: u64,
    bytes: u64,
    lengths: LogHistogram,
}

impl Kind {
    fn new() -> Kind {
        Kind { requests: 0, bytes: 0, lengths: LogHistogram::new() }
    }

    fn add(&mut self, bytes: u64) {
        self.requests += 1;
        // Trims may add up to more than 2^64 bytes in a trace made to do so.
        self.bytes = self.bytes.saturating_add(bytes);
        self.lengths.add(bytes, 1);
    }

    fn finish(&self, seconds: f64) -> OpStats {
        OpStats {
            requests: self.requests,
            bytes: self.bytes,
            bytes_per_second: if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 },
            length_bytes: self.lengths.distribution(),
            length_histogram: self.lengths.bars(),
        }
    }
}

/// Gathers the numbers of a stream of requests whose times never decrease, such as one that is being recorded.
pub struct Gather {
    requests: u64,
    last_ns: u64,
    second: u64,
    in_second: u64,
    peak: u64,
    end_sector: u64,
    read: Kind,
    write: Kind,
    trim: Kind,
    zeroes: Kind,
    flushes: u64,
    fua: u64,
    unaligned: [(u64, u64); ALIGNMENTS.len()],
    write_ended: Option<u64>,
    read_ended: Option<u64>,
    sequential_writes: u64,
    sequential_reads: u64,
    overwrites: u64,
    distances: LogHistogram,
    since_flush: u64,
    between_flushes: LogHistogram,
    trimmed_live_pages: u64,
    reads_of_nothing: u64,
    pages: Pages,
}

impl Default for Gather {
    fn default() -> Gather {
        Gather::new()
    }
}

impl Gather {
    /// Nothing gathered yet.
    pub fn new() -> Gather {
        Gather {
            requests: 0,
            last_ns: 0,
            second: 0,
            in_second: 0,
            peak: 0,
            end_sector: 0,
            read: Kind::new(),
            write: Kind::new(),
            trim: Kind::new(),
            zeroes: Kind::new(),
            flushes: 0,
            fua: 0,
            unaligned: [(0, 0); ALIGNMENTS.len()],
            write_ended: None,
            read_ended: None,
            sequential_writes: 0,
            sequential_reads: 0,
            overwrites: 0,
            distances: LogHistogram::new(),
            since_flush: 0,
            between_flushes: LogHistogram::new(),
            trimmed_live_pages: 0,
            reads_of_nothing: 0,
            pages: Pages::default(),
        }
    }

    /// Takes the next request.
    pub fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.last_ns = self.last_ns.max(request.at.0);
        let second = request.at.0 / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.in_second = 0;
        }
        self.in_second += 1;
        self.peak = self.peak.max(self.in_second);
        let end = request.sector.saturating_add(request.sectors);
        let bytes = request.sectors.saturating_mul(SECTOR_BYTES);
        self.end_sector = self.end_sector.max(end);
        let page_sectors = PAGE_BYTES / SECTOR_BYTES;
        let (from, to) = (request.sector / page_sectors, end.div_ceil(page_sectors));
        match request.op {
            Op::Read => {
                self.read.add(bytes);
                self.sequential_reads += u64::from(self.read_ended == Some(request.sector));
                self.read_ended = Some(end);
                self.reads_of_nothing += u64::from(!self.pages.any_written(from, to));
                self.pages.read(from, to);
            }
            Op::Write => self.add_write(request, end, bytes, from, to),
            Op::Trim | Op::WriteZeroes => {
                if request.op == Op::Trim {
                    self.trim.add(bytes);
                } else {
                    self.zeroes.add(bytes);
                }
                // Only a page that is covered as a whole loses its content.
                let (from, to) = (request.sector.div_ceil(page_sectors), end / page_sectors);
                self.trimmed_live_pages = self.trimmed_live_pages.saturating_add(self.pages.trim(from, to));
            }
            Op::Flush => {
                self.flushes += 1;
                self.between_flushes.add(self.since_flush, 1);
                self.since_flush = 0;
            }
        }
    }

    fn add_write(&mut self, request: &Request, end: u64, bytes: u64, from: u64, to: u64) {
        let before = self.write.bytes;
        self.write.add(bytes);
        self.since_flush += 1;
        self.fua += u64::from(request.fua);
        self.sequential_writes += u64::from(self.write_ended == Some(request.sector));
        self.write_ended = Some(end);
        for (&page, (either, start)) in ALIGNMENTS.iter().zip(&mut self.unaligned) {
            let sectors = page / SECTOR_BYTES;
            let start_inside = !request.sector.is_multiple_of(sectors);
            *start += u64::from(start_inside);
            *either += u64::from(start_inside || !end.is_multiple_of(sectors));
        }
        let distances = &mut self.distances;
        let found =
            self.pages.write(from, to, before, self.write.bytes, |distance, pages| distances.add(distance, pages));
        self.overwrites += u64::from(found.all_live);
    }

    /// The numbers of everything taken.
    pub fn finish(&self) -> TraceStats {
        let seconds = self.last_ns as f64 / 1e9;
        let percent = |part: u64, whole: u64| {
            if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
        };
        let writes = self.write.requests;
        let (pages, pages_written, pages_read) = self.pages.footprint();
        TraceStats {
            format: STATS_FORMAT,
            requests: self.requests,
            span_ns: self.last_ns,
            requests_per_second: if seconds > 0.0 { self.requests as f64 / seconds } else { 0.0 },
            requests_per_second_peak: self.peak,
            write_percent: percent(writes, writes + self.read.requests),
            end_bytes: self.end_sector.saturating_mul(SECTOR_BYTES),
            read: self.read.finish(seconds),
            write: self.write.finish(seconds),
            trim: self.trim.finish(seconds),
            write_zeroes: self.zeroes.finish(seconds),
            flushes: self.flushes,
            fua_writes: self.fua,
            footprint: Footprint { pages, pages_written, pages_read },
            unaligned: ALIGNMENTS
                .iter()
                .zip(&self.unaligned)
                .map(|(&page_bytes, &(either, start))| Unaligned {
                    page_bytes,
                    percent: percent(either, writes),
                    start_percent: percent(start, writes),
                })
                .collect(),
            sequential_write_percent: percent(self.sequential_writes, writes),
            sequential_read_percent: percent(self.sequential_reads, self.read.requests),
            overwrite_percent: percent(self.overwrites, writes),
            overwrite_distance_bytes: self.distances.distribution(),
            overwrite_distance_histogram: self.distances.bars(),
            writes_per_flush: if self.flushes == 0 { 0.0 } else { writes as f64 / self.flushes as f64 },
            writes_between_flushes: self.between_flushes.distribution(),
            trimmed_live_bytes: self.trimmed_live_pages.saturating_mul(PAGE_BYTES),
            live: Live { pages_peak: self.pages.live_peak, pages_end: self.pages.live },
            read_before_write_percent: percent(self.reads_of_nothing, self.read.requests),
        }
    }
}

//! Requests in the order of their addresses, group by group, as a buffer of a size would send them on (SHRD, Kim et al.,
//! FAST 2017, section 3).
//!
//! A group is as many reads and writes, in the order of the trace, as fit the size; the one that does not fit begins the
//! next. Requests of one address keep their order. The first request of a sorted group takes the time that the first one
//! had before, and so on, so times never decrease. What is neither a read nor a write ends a group and keeps its place.

use ssdlab_base::{Nanos, Op, Request};

/// The least and the largest group, in bytes: what a request has at least, and what can be held in memory.
pub(super) const BYTES: std::ops::RangeInclusive<u64> = 512..=1 << 30;

/// Requests that wait for the end of their group.
pub(super) struct Reorder {
    /// Bytes of a group.
    most: u64,
    group: Vec<Request>,
    bytes: u64,
    times: Vec<Nanos>,
}

impl Reorder {
    pub(super) fn new(most: u64) -> Reorder {
        assert!(BYTES.contains(&most), "a group of {most} bytes");
        Reorder { most, group: Vec::new(), bytes: 0, times: Vec::new() }
    }

    /// Takes the next request of the trace; groups that end go to `out`.
    pub(super) fn push(&mut self, request: Request, out: &mut Vec<Request>) {
        if !matches!(request.op, Op::Read | Op::Write) {
            self.end_group(out);
            out.push(request);
            return;
        }
        let bytes = request.bytes();
        if self.bytes + bytes > self.most {
            self.end_group(out);
        }
        self.bytes += bytes;
        self.times.push(request.at);
        self.group.push(request);
    }

    /// No request follows the group.
    pub(super) fn end_group(&mut self, out: &mut Vec<Request>) {
        // Stable, so that of two writes of one address the later one stays the later one.
        self.group.sort_by_key(|request| request.sector);
        for (request, at) in self.group.drain(..).zip(self.times.drain(..)) {
            out.push(Request { at, ..request });
        }
        self.bytes = 0;
    }
}

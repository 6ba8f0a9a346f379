//! A request to the device below: one or several commands from above, one behind the other.

use std::collections::VecDeque;

use ssdlab_base::{Op, Request, SECTOR_BYTES};

/// Most commands that are joined to one request.
pub(super) const PARTS_MAX: u64 = 1 << 12;

/// Bytes of a segment: a page of the host's memory. What one command brings may lie anywhere in memory, page by page.
const SEGMENT_BYTES: u64 = 4096;

/// A request to the device below.
pub(crate) struct Joined {
    pub(super) request: Request,
    pub(super) first: u32,
    /// Those that follow the first, in the order of sectors.
    pub(super) more: VecDeque<u32>,
    /// Words of the commands, where they are of a set.
    pub(super) words: Vec<u64>,
    pub(super) segments: u64,
}

impl Joined {
    pub(super) fn new(request: Request, slot: u32, words: Vec<u64>) -> Joined {
        let segments = request.sectors.saturating_mul(SECTOR_BYTES).div_ceil(SEGMENT_BYTES);
        Joined { request, first: slot, more: VecDeque::new(), words, segments }
    }

    /// Commands of it.
    pub(super) fn parts(&self) -> u64 {
        1 + self.more.len() as u64
    }

    /// Its commands, in the order of sectors.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.first).chain(self.more.iter().copied())
    }

    /// The request that begins where this one ends becomes part of it.
    pub(super) fn append(&mut self, next: Joined) {
        assert_eq!(self.request.end(), next.request.sector, "a request is joined where this one ends");
        self.request.sectors += next.request.sectors;
        self.segments += next.segments;
        self.more.push_back(next.first);
        self.more.extend(next.more);
        self.words.extend_from_slice(&next.words);
    }

    /// The request that ends where this one begins becomes part of it.
    pub(super) fn prepend(&mut self, mut before: Joined) {
        assert_eq!(before.request.end(), self.request.sector, "a request is joined where this one begins");
        self.request.sector = before.request.sector;
        self.request.sectors += before.request.sectors;
        self.segments += before.segments;
        // Most often one command comes before many.
        self.more.push_front(self.first);
        while let Some(slot) = before.more.pop_back() {
            self.more.push_front(slot);
        }
        self.first = before.first;
        before.words.append(&mut self.words);
        self.words = before.words;
    }
}

/// What may become one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Most bytes of a request of several commands.
    pub(super) bytes: u64,
    /// Most segments of a request of several commands.
    pub(super) segments: u64,
    /// Sectors of the device.
    pub(super) capacity: u64,
    /// Sectors of a segment or zone of the device, which no request crosses.
    pub(super) zone: Option<u64>,
}

impl Rules {
    /// Whether the second request may follow the first in one. What the command set says of them, and the queue that they came on,
    /// the caller looks at.
    pub(super) fn join(&self, first: &Joined, second: &Joined) -> bool {
        let (before, after) = (&first.request, &second.request);
        matches!(after.op, Op::Read | Op::Write)
            && before.op == after.op
            && before.opcode == after.opcode
            && before.fua == after.fua
            && before.stream == after.stream
            && before.end() == after.sector
            && before.bytes() + after.bytes() <= self.bytes
            && first.segments + second.segments <= self.segments
            && after.end() <= self.capacity
            && self.zone.is_none_or(|sectors| before.sector / sectors == (after.end() - 1) / sectors)
            && first.parts() + second.parts() <= PARTS_MAX
    }
}

//! What the layer did, as results name it.

use std::collections::BTreeMap;

use ssdlab_base::Op;

use super::PageCache;
use super::config::BLOCK_BYTES;
use super::write_back::Cause;

/// The share of the bytes written, in percent, from which dirty blocks are mentioned.
const DIRTY_TO_MENTION: u64 = 1;

/// What it did beside what it was asked for, in blocks where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) read_ahead: u64,
    /// By cause.
    pub(super) written_back: [u64; Cause::ALL.len()],
    /// Requests.
    pub(super) writes: u64,
    pub(super) written_through: u64,
    pub(super) read_for_parts: u64,
    /// Commands.
    pub(super) writers_held: u64,
    pub(super) held_ns: u64,
    pub(super) dirty_max: u64,
}

impl PageCache {
    /// Whether rates count writes that have not reached the device.
    pub(super) fn notes(&self) -> Vec<String> {
        let (dirty, written) = (u64::from(self.pages.dirty()), self.io.taken.bytes[Op::Write as usize]);
        if dirty * BLOCK_BYTES * 100 <= written * DIRTY_TO_MENTION {
            return Vec::new();
        }
        vec![format!(
            "{dirty} blocks of 4 KB are dirty at the end: rates count their writes, which have not reached the drive; fio's end_fsync=1 \
             makes the run write them"
        )]
    }

    /// Its counters by name (docs/host.md).
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let (counts, pages) = (&self.counts, &self.pages.counts);
        let own = [
            ("activated", pages.activated),
            ("cached", u64::from(self.pages.len())),
            ("dirty", u64::from(self.pages.dirty())),
            ("dirty_max", counts.dirty_max),
            ("evicted", pages.evicted),
            ("hits", counts.hits),
            ("misses", counts.misses),
            ("read_ahead", counts.read_ahead),
            ("read_ahead_unused", pages.ahead_unused),
            ("read_ahead_used", pages.ahead_used),
            ("read_for_parts", counts.read_for_parts),
            ("waited_for_overlaps", self.io.waited_for_overlaps),
            ("write_back_requests", counts.writes),
            ("writers_held", counts.writers_held),
            ("writers_held_ns", counts.held_ns),
            ("written_through", counts.written_through),
        ];
        let own = own.map(|(name, count)| (name.to_string(), count as f64));
        let by_cause = Cause::ALL.map(|cause| {
            let name = format!("written_back_{}", cause.name());
            (name, counts.written_back[cause as usize] as f64)
        });
        own.into_iter().chain(by_cause).collect()
    }
}

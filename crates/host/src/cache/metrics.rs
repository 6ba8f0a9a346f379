//! What the manager counts.

use std::collections::BTreeMap;

use ssdlab_device::Status;

use super::CacheManager;
use crate::caching::hit_ratio;

/// Counters. Those of reads and writes count blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) read_hits: u64,
    pub(super) misses_absent: u64,
    pub(super) misses_unreadable: u64,
    pub(super) misses_read_only: u64,
    /// Clean blocks that the cache has and that were taken for absent, since they hold the pattern.
    pub(super) misses_needless: u64,
    /// Blocks that held the pattern, and were looked up in the table; those of them that were dirty.
    pub(super) pattern_looked_up: u64,
    pub(super) pattern_dirty: u64,
    pub(super) fills: u64,
    /// Blocks that were not filled: a command waited that changes them; the cache had no room.
    pub(super) fills_overtaken: u64,
    pub(super) fills_refused: u64,
    pub(super) written_dirty: u64,
    pub(super) written_through: u64,
    pub(super) written_direct: u64,
    /// Commands that the cache refused for lack of room.
    pub(super) no_room: u64,
    pub(super) evicted: u64,
    /// Sequential writes that went to the disk, and those that did not, since they changed dirty blocks.
    pub(super) sequential: u64,
    pub(super) sequential_over_dirty: u64,
    pub(super) batches: u64,
    pub(super) copied: u64,
    pub(super) cleaned: u64,
    pub(super) unreadable: u64,
    /// Requests.
    pub(super) cache_flushes: u64,
    pub(super) disk_reads: u64,
    pub(super) disk_writes: u64,
    pub(super) disk_flushes: u64,
    pub(super) bitmap_writes: u64,
    pub(super) recoveries: u64,
    pub(super) dropped_ranges: u64,
}

impl CacheManager {
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let counts = &self.counts;
        let misses = counts.misses_absent + counts.misses_unreadable + counts.misses_read_only;
        let own = [
            ("batches", counts.batches),
            ("bitmap_writes", counts.bitmap_writes),
            ("blocks_cleaned", counts.cleaned),
            ("blocks_copied", counts.copied),
            ("blocks_evicted", counts.evicted),
            ("blocks_written_direct", counts.written_direct),
            ("blocks_written_dirty", counts.written_dirty),
            ("blocks_written_through", counts.written_through),
            ("cache_flushes", counts.cache_flushes),
            ("copies_unreadable", counts.unreadable),
            ("dirty", self.table.len() as u64),
            ("disk_flushes", counts.disk_flushes),
            ("disk_reads", counts.disk_reads),
            ("disk_writes", counts.disk_writes),
            ("dropped_ranges", counts.dropped_ranges),
            ("fills", counts.fills),
            ("fills_overtaken", counts.fills_overtaken),
            ("fills_refused", counts.fills_refused),
            ("misses_absent", counts.misses_absent),
            ("misses_needless", counts.misses_needless),
            ("misses_read_only", counts.misses_read_only),
            ("misses_unreadable", counts.misses_unreadable),
            ("no_room", counts.no_room),
            ("pattern_dirty", counts.pattern_dirty),
            ("pattern_looked_up", counts.pattern_looked_up),
            ("read_hits", counts.read_hits),
            ("read_misses", misses),
            ("recoveries", counts.recoveries),
            ("sequential", counts.sequential),
            ("sequential_over_dirty", counts.sequential_over_dirty),
            ("waited_for_overlaps", self.io.waited_for_overlaps),
        ];
        let own = own.map(|(name, count)| (name.to_string(), count as f64));
        let ratio = ("read_hit_ratio".to_string(), hit_ratio(counts.read_hits, misses));
        own.into_iter().chain([ratio]).collect()
    }

    /// What is not as it should be, a sentence each.
    pub(super) fn degraded(&self) -> Vec<String> {
        let why = |status: Status| match status {
            Status::StorageFull => "there was no space for its image".to_string(),
            Status::ReadOnly => "it became read-only".to_string(),
            other => format!("it ended a write or a flush with {other:?}"),
        };
        let cache =
            self.read_only.map(|status| format!("the cache takes no writes, so the stack takes none: {}", why(status)));
        let copies =
            self.uncopied.map(|status| format!("dirty blocks are copied to the disk no more: {}", why(status)));
        cache.into_iter().chain(copies).collect()
    }
}

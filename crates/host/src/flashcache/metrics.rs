//! What the layer did, as results name it.

use std::collections::BTreeMap;

use super::FlashCache;
use super::cleaning::Cause;
use super::config::{Flushes, Mode};
use crate::caching::hit_ratio;

/// What it did beside what it was asked for, in blocks where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) read_hits: u64,
    pub(super) read_misses: u64,
    pub(super) write_hits: u64,
    pub(super) write_misses: u64,
    pub(super) dirty_write_hits: u64,
    pub(super) fills: u64,
    /// Blocks that went past the cache: parts of blocks, sequential ones, with no slot to replace, and all others.
    pub(super) past_parts: u64,
    pub(super) past_sequential: u64,
    pub(super) past_no_room: u64,
    pub(super) past_others: u64,
    pub(super) replaced: u64,
    pub(super) invalidated: u64,
    pub(super) trims: u64,
    /// By cause.
    pub(super) cleaned: [u64; Cause::ALL.len()],
    /// Requests.
    pub(super) metadata_writes: u64,
    /// Entries.
    pub(super) metadata_updates: u64,
    /// Requests, and sectors.
    pub(super) disk_reads: u64,
    pub(super) disk_read_sectors: u64,
    pub(super) disk_writes: u64,
    pub(super) disk_written_sectors: u64,
    /// Requests.
    pub(super) cache_errors: u64,
    pub(super) flushes_refused: u64,
    pub(super) lost_clean: u64,
}

impl FlashCache {
    /// Its counters by name (docs/host.md).
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let counts = &self.counts;
        let own = [
            ("cache_errors", counts.cache_errors),
            ("cached", u64::from(self.sets.cached())),
            ("dirty", u64::from(self.sets.dirty())),
            ("dirty_write_hits", counts.dirty_write_hits),
            ("disk_read_sectors", counts.disk_read_sectors),
            ("disk_reads", counts.disk_reads),
            ("disk_writes", counts.disk_writes),
            ("disk_written_sectors", counts.disk_written_sectors),
            ("fills", counts.fills),
            ("flushes_refused", counts.flushes_refused),
            ("invalidated", counts.invalidated),
            ("lost_clean", counts.lost_clean),
            ("metadata_updates", counts.metadata_updates),
            ("metadata_writes", counts.metadata_writes),
            ("past_no_room", counts.past_no_room),
            ("past_others", counts.past_others),
            ("past_parts", counts.past_parts),
            ("past_sequential", counts.past_sequential),
            ("read_hits", counts.read_hits),
            ("read_misses", counts.read_misses),
            ("replaced", counts.replaced),
            ("trims", counts.trims),
            ("waited_for_overlaps", self.io.waited_for_overlaps),
            ("write_hits", counts.write_hits),
            ("write_misses", counts.write_misses),
        ];
        let own = own.map(|(name, count)| (name.to_string(), count as f64));
        let cleaned =
            Cause::ALL.map(|cause| (format!("cleaned_{}", cause.name()), counts.cleaned[cause as usize] as f64));
        let ratio = ("read_hit_ratio".to_string(), hit_ratio(counts.read_hits, counts.read_misses));
        own.into_iter().chain(cleaned).chain([ratio]).collect()
    }

    /// What is not as it should be.
    pub(super) fn degraded(&self) -> Vec<String> {
        let refuses = self.refuses.map(|status| {
            format!("it takes no writes: the cache answered a write of metadata with {status:?}, and could not know of them at its next start")
        });
        let disk = self.disk_refuses.map(|status| {
            format!("dirty blocks stay in the cache: the disk answered the write of a cleaned block with {status:?}")
        });
        refuses.into_iter().chain(disk).collect()
    }

    /// What a reader of a run's rates has to know.
    pub(super) fn notes(&self) -> Vec<String> {
        let refused = (self.config.flushes == Flushes::Refused && self.counts.flushes_refused > 0).then(|| {
            format!(
                "{} flushes were answered at once and reached neither device (flushes = \"refused\")",
                self.counts.flushes_refused
            )
        });
        let dirty = (self.config.mode == Mode::Back && self.sets.dirty() > 0).then(|| {
            format!("{} blocks of 4 KB are dirty at the end: their writes have not reached the disk", self.sets.dirty())
        });
        refused.into_iter().chain(dirty).collect()
    }
}

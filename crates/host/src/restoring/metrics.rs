//! What the layer did, as results name it.

use std::collections::BTreeMap;

use ssdlab_base::SECTOR_BYTES;

use super::Restoring;
use crate::COPIED_BYTES;

/// What it did beside what it was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) commits: u64,
    pub(super) copied_runs: u64,
    pub(super) copied_units: u64,
    pub(super) direct_when_full: u64,
    pub(super) flushes: u64,
    pub(super) log_writes: u64,
    pub(super) log_writes_refused: u64,
    pub(super) moved_units: u64,
    pub(super) packed_requests: u64,
    pub(super) packed_units: u64,
    pub(super) passes: u64,
    pub(super) reads_of_log: u64,
    pub(super) reads_split: u64,
    pub(super) sent_home_instead: u64,
    pub(super) small_writes: u64,
    pub(super) table_sectors: u64,
    pub(super) table_writes: u64,
    pub(super) unreadable_places: u64,
    pub(super) waited_for_copies: u64,
    pub(super) waited_for_places: u64,
}

impl Restoring {
    /// Its counters by name (docs/host.md).
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let counts = self.counts;
        let [full, flush, idle] = self.packing.closed_for;
        let (entries, most) = self.table.len();
        [
            ("commits", counts.commits),
            (COPIED_BYTES, (counts.copied_units + counts.moved_units) * self.layout.per_unit * SECTOR_BYTES),
            ("copied_runs", counts.copied_runs),
            ("copied_units", counts.copied_units),
            ("direct_when_full", counts.direct_when_full),
            ("flushes", counts.flushes),
            ("log_places", u64::from(self.layout.places)),
            ("log_writes", counts.log_writes),
            ("log_writes_refused", counts.log_writes_refused),
            ("moved_units", counts.moved_units),
            ("packed_requests", counts.packed_requests),
            ("packed_units", counts.packed_units),
            ("packs_below_32k", self.packing.below_32k),
            ("packs_closed_flush", flush),
            ("packs_closed_full", full),
            ("packs_closed_idle", idle),
            ("passes", counts.passes),
            ("reads_of_log", counts.reads_of_log),
            ("reads_split", counts.reads_split),
            ("sent_home_instead", counts.sent_home_instead),
            ("small_writes", counts.small_writes),
            ("table_bytes", self.table.bytes()),
            ("table_entries", entries as u64),
            ("table_entries_max", most as u64),
            ("table_sectors", counts.table_sectors),
            ("table_writes", counts.table_writes),
            ("unreadable_places", counts.unreadable_places),
            ("waited_for_copies", counts.waited_for_copies),
            ("waited_for_overlaps", self.io.waited_for_overlaps),
            ("waited_for_places", counts.waited_for_places),
        ]
        .map(|(name, count)| (name.to_string(), count as f64))
        .into()
    }
}

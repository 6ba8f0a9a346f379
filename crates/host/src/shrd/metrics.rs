//! What the driver did, as results name it.

use std::collections::BTreeMap;

use super::Shrd;

/// What it did beside what it was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) direct_when_full: u64,
    pub(super) flushes: u64,
    pub(super) packed_requests: u64,
    pub(super) packed_units: u64,
    pub(super) passes: u64,
    pub(super) reads_of_log: u64,
    pub(super) reads_split: u64,
    pub(super) remapped_entries: u64,
    pub(super) remapped_map_pages: u64,
    pub(super) remaps: u64,
    pub(super) remaps_refused: u64,
    pub(super) sent_home_instead: u64,
    pub(super) small_writes: u64,
    pub(super) trimmed_units: u64,
    pub(super) trims: u64,
    pub(super) twrites: u64,
    pub(super) twrites_refused: u64,
    pub(super) waited_for_places: u64,
    pub(super) waited_for_remaps: u64,
}

impl Shrd {
    /// Its counters by name (docs/host.md).
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let counts = self.counts;
        let [full, flush, idle] = self.packing.closed_for;
        let (entries, most) = self.table.len();
        [
            ("direct_when_full", counts.direct_when_full),
            ("flushes", counts.flushes),
            ("packed_requests", counts.packed_requests),
            ("packed_units", counts.packed_units),
            ("packs_below_32k", self.packing.below_32k),
            ("packs_closed_flush", flush),
            ("packs_closed_full", full),
            ("packs_closed_idle", idle),
            ("passes", counts.passes),
            ("reads_of_log", counts.reads_of_log),
            ("reads_split", counts.reads_split),
            ("remapped_entries", counts.remapped_entries),
            ("remapped_map_pages", counts.remapped_map_pages),
            ("remaps", counts.remaps),
            ("remaps_refused", counts.remaps_refused),
            ("sent_home_instead", counts.sent_home_instead),
            ("small_writes", counts.small_writes),
            ("table_bytes", self.table.bytes()),
            ("table_entries", entries as u64),
            ("table_entries_max", most as u64),
            ("trimmed_units", counts.trimmed_units),
            ("trims", counts.trims),
            ("twrites", counts.twrites),
            ("twrites_refused", counts.twrites_refused),
            ("waited_for_overlaps", self.io.waited_for_overlaps),
            ("waited_for_places", counts.waited_for_places),
            ("waited_for_remaps", counts.waited_for_remaps),
        ]
        .map(|(name, count)| (name.to_string(), count as f64))
        .into()
    }
}

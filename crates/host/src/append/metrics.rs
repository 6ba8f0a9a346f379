//! What the layer did, as results name it.

use std::collections::BTreeMap;

use ssdlab_base::SECTOR_BYTES;

use super::Append;
use crate::COPIED_BYTES;

/// What it did beside what it was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) checkpoints: u64,
    pub(super) cleaned_segments: u64,
    pub(super) commits: u64,
    pub(super) copied_in_vain: u64,
    pub(super) copied_units: u64,
    pub(super) finished_segments: u64,
    pub(super) flushes: u64,
    pub(super) log_blocks: u64,
    pub(super) lost_units: u64,
    pub(super) map_blocks: u64,
    pub(super) sent_early: u64,
    pub(super) trims: u64,
    pub(super) units_read_for_parts: u64,
    pub(super) waited_for_room: u64,
    pub(super) written_units: u64,
}

impl Append {
    /// What its segments for data hold beyond the units that it offers, by those.
    fn over_provisioning(&self) -> f64 {
        let (segments, units) = (self.layout.data_segments().len() as f64, f64::from(self.layout.units));
        (segments * f64::from(self.layout.segment_units) - units) / units
    }

    /// Its counters by name (docs/host.md).
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let counts = self.counts;
        let written = counts.written_units.max(1) as f64;
        let ratio = |units: u64| (counts.written_units + units) as f64 / written;
        [
            ("checkpoints", counts.checkpoints as f64),
            ("cleaned_segments", counts.cleaned_segments as f64),
            ("commits", counts.commits as f64),
            (COPIED_BYTES, (counts.copied_units * self.layout.per_unit * SECTOR_BYTES) as f64),
            ("copied_in_vain", counts.copied_in_vain as f64),
            ("copied_units", counts.copied_units as f64),
            ("data_segments", self.layout.data_segments().len() as f64),
            ("finished_segments", counts.finished_segments as f64),
            ("flushes", counts.flushes as f64),
            ("free_segments", f64::from(self.space.free())),
            ("log_blocks", counts.log_blocks as f64),
            ("lost_units", counts.lost_units as f64),
            ("map_blocks", counts.map_blocks as f64),
            ("map_bytes", self.map.bytes() as f64),
            ("over_provisioning", self.over_provisioning()),
            ("segment_units", f64::from(self.layout.segment_units)),
            ("sent_early", counts.sent_early as f64),
            ("trims", counts.trims as f64),
            ("units", f64::from(self.layout.units)),
            ("units_read_for_parts", counts.units_read_for_parts as f64),
            ("waited_for_overlaps", self.io.waited_for_overlaps as f64),
            ("waited_for_room", counts.waited_for_room as f64),
            ("write_amplification", ratio(counts.copied_units + counts.log_blocks + counts.map_blocks)),
            ("write_amplification_data", ratio(counts.copied_units)),
            ("written_units", counts.written_units as f64),
        ]
        .map(|(name, figure)| (name.to_string(), figure))
        .into()
    }
}

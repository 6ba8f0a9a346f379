//! Where everything is: two areas of the log in the first segments, data in all others.

use ssdlab_base::{Divider, SECTOR_BYTES, format_size};

use super::config::{AppendConfig, LAYER};
use super::log::{entries_in, mapped_in};
use super::target::MOST_ACTIVE;
use crate::LayerError;
use crate::layers::{Below, handing_on};

/// A place that is none: the unit holds nothing.
pub(super) const NOWHERE: u32 = u32::MAX;
/// A place that is none: what the unit held cannot be read.
pub(super) const LOST: u32 = u32::MAX >> 2;

/// Numbers of the layer. A *place* is a write unit of the drive, counted from the first segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Sectors of a write unit.
    pub(super) per_unit: u64,
    /// Write units of a segment.
    pub(super) segment_units: u32,
    pub(super) segments: u32,
    /// Segments of each of the two areas of the log.
    pub(super) area_segments: u32,
    /// Log blocks of an area that are left to entries, where all map pages are written.
    pub(super) journal: u32,
    /// Entries that may be pending because of the host's writes.
    pub(super) most_pending: usize,
    /// Units of the capacity.
    pub(super) units: u32,
    by_segment_units: Divider,
}

impl Layout {
    pub(super) fn new(below: &Below, config: &AppendConfig) -> Result<Layout, LayerError> {
        let Below { sectors, unit_bytes, segment, most_active } = *below;
        let segment = segment.ok_or_else(|| {
            let found = "a device without segments".to_string();
            LayerError::NoDrive { layer: LAYER.name, found, handing_on: handing_on() }
        })?;
        if (1..MOST_ACTIVE).contains(&most_active) {
            return Err(LayerError::FewActive { found: most_active, needed: MOST_ACTIVE });
        }
        let per_unit = u64::from(unit_bytes) / SECTOR_BYTES;
        let all_units = sectors / per_unit;
        if all_units >= u64::from(LOST) {
            return Err(LayerError::TooLarge {
                size: format_size(sectors * SECTOR_BYTES),
                most: format_size(u64::from(LOST) * u64::from(unit_bytes)),
            });
        }
        let (segments, segment_units) = ((sectors / segment) as u32, (segment / per_unit) as u32);
        let words = unit_bytes as usize / 8;
        let map_pages = all_units.div_ceil(mapped_in(words) as u64);
        let most_pending = (segment_units as usize).max(entries_in(words));
        // Six times what one commit may bring: cleaning a segment, and the host's writes.
        let least = (6 * (segment_units as usize + most_pending)).div_ceil(entries_in(words)) as u64 + 6;
        let journal = map_pages.max(least);
        let area_segments = (map_pages + journal).div_ceil(segment_units.into());
        let data = u64::from(segments).saturating_sub(2 * area_segments);
        // One for cleaning beside those that are kept free.
        let kept = u64::from(config.free_segments) + 1;
        let provisioned = data * u64::from(segment_units) * 100 / (100 + u64::from(config.over_provisioning));
        let units = provisioned.min(data.saturating_sub(kept) * u64::from(segment_units));
        if units == 0 {
            return Err(LayerError::TooSmall {
                size: format!("{segments} segments"),
                lacking: format!(
                    "and the log of the layer {1} takes {0}, cleaning {kept} (free_segments and one more): none is left \
                     for data; use a drive with at least {2}, or a smaller free_segments",
                    2 * area_segments,
                    LAYER.name,
                    2 * area_segments + kept + 1
                ),
            });
        }
        Ok(Layout {
            per_unit,
            segment_units,
            segments,
            area_segments: area_segments as u32,
            journal: journal as u32,
            most_pending,
            units: units as u32,
            by_segment_units: Divider::new(segment_units),
        })
    }

    /// Words of a write unit.
    pub(super) const fn words(&self) -> usize {
        (self.per_unit * SECTOR_BYTES / 8) as usize
    }

    /// Pages of the map.
    pub(super) fn map_pages(&self) -> u32 {
        self.units.div_ceil(mapped_in(self.words()) as u32)
    }

    /// Segments for data.
    pub(super) const fn data_segments(&self) -> std::ops::Range<u32> {
        2 * self.area_segments..self.segments
    }

    /// Segments of an area of the log.
    pub(super) const fn log_segments(&self, area: u32) -> std::ops::Range<u32> {
        area * self.area_segments..(area + 1) * self.area_segments
    }

    /// Log blocks of an area.
    pub(super) const fn area_blocks(&self) -> u32 {
        self.area_segments * self.segment_units
    }

    /// The place of a log block.
    pub(super) const fn block_place(&self, area: u32, block: u32) -> u32 {
        area * self.area_blocks() + block
    }

    pub(super) const fn segment_of(&self, place: u32) -> u32 {
        self.by_segment_units.div(place)
    }

    pub(super) const fn sector_of(&self, place: u32) -> u64 {
        place as u64 * self.per_unit
    }
}

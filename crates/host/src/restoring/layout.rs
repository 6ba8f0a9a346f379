//! Where the layer keeps what on the device below: the user's sectors, the log, a slot for each of its places, and the header.
//!
//! ```text
//!   0          sectors              slots             header
//!   | user's   | log, unit by unit  | a sector a place | 2 sectors |
//! ```
//!
//! Every part begins with a unit of the device's, so that no write of the layer's own covers a part of one.

use ssdlab_base::{SECTOR_BYTES, format_size};

use crate::LayerError;

/// Sectors of the header: how much of the log was made free, and how large the log is.
pub(super) const HEADER_SECTORS: u64 = 2;

/// Fewest places of a log.
const LEAST_PLACES: u64 = 4;

/// Where everything is, in sectors of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The user's sectors, before which nothing is and behind which the log begins.
    pub(super) sectors: u64,
    /// Sectors of a unit.
    pub(super) per_unit: u64,
    /// Places of the log, a unit each.
    pub(super) places: u32,
    /// The first of the slots.
    pub(super) slots: u64,
    pub(super) header: u64,
}

impl Layout {
    /// On a device of `sectors` sectors with a log of `log` bytes.
    pub(super) fn new(sectors: u64, unit_bytes: u32, log: u64) -> Result<Layout, LayerError> {
        let per_unit = (u64::from(unit_bytes) / SECTOR_BYTES).max(1);
        let whole = |sectors: u64| sectors.next_multiple_of(per_unit);
        let places = log / (per_unit * SECTOR_BYTES);
        if places < LEAST_PLACES {
            return Err(LayerError::SmallLog {
                log: format_size(log),
                unit: format_size(u64::from(unit_bytes)),
                places,
                least: LEAST_PLACES,
            });
        }
        let reserved = places * per_unit + whole(places) + whole(HEADER_SECTORS);
        let user = (sectors / per_unit * per_unit).saturating_sub(reserved);
        let too_small = || LayerError::TooSmall {
            size: format_size(sectors * SECTOR_BYTES),
            lacking: format!("of which a log and its table of {} leave nothing", format_size(reserved * SECTOR_BYTES)),
        };
        let places = u32::try_from(places).ok().filter(|_| user > 0).ok_or_else(too_small)?;
        let units = user / per_unit;
        if units >= u64::from(u32::MAX) {
            return Err(LayerError::TooLarge {
                size: format_size(sectors * SECTOR_BYTES),
                most: format_size(u64::from(u32::MAX) * per_unit * SECTOR_BYTES),
            });
        }
        let slots = user + u64::from(places) * per_unit;
        let header = slots + whole(u64::from(places));
        assert!(header + HEADER_SECTORS <= sectors, "the header is on the device");
        Ok(Layout { sectors: user, per_unit, places, slots, header })
    }

    /// The first sector of a place.
    pub(super) const fn sector_of(&self, place: u32) -> u64 {
        self.sectors + place as u64 * self.per_unit
    }

    /// The place that a sector of the log is in; `None` for the user's sectors.
    pub(super) fn place_at(&self, sector: u64) -> Option<u32> {
        let within = sector.checked_sub(self.sectors)?;
        let place = within / self.per_unit;
        assert!(place < u64::from(self.places), "sector {sector} is behind the log");
        Some(place as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_in_whole_units_or_are_refused() {
        let layout = Layout::new(1003, 4096, 64 << 10).expect("there is room");
        // 16 places of 8 sectors, 16 slots, 8 sectors of header.
        assert_eq!((layout.sectors, layout.slots, layout.header), (1000 - 128 - 16 - 8, 976, 992));
        assert_eq!((layout.sector_of(2), layout.place_at(863), layout.place_at(848)), (864, Some(1), Some(0)));
        assert_eq!(layout.place_at(847), None);
        assert!(matches!(Layout::new(152, 4096, 64 << 10), Err(LayerError::TooSmall { .. })));
        assert!(matches!(Layout::new(1000, 4096, 12 << 10), Err(LayerError::SmallLog { places: 3, .. })));
        assert!(matches!(Layout::new(1 << 34, 512, 64 << 10), Err(LayerError::TooLarge { .. })));
    }
}

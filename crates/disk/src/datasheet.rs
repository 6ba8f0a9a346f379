//! What follows from a description of a disk: its rates and times, as a data sheet has them.

use ssdlab_base::{Nanos, SECTOR_BYTES, format_size, grouped};

use crate::config::{DiskConfig, Zone};
use crate::mechanism::Mechanism;

/// One line of a data sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasheetLine {
    /// What programs call it, with its unit.
    pub key: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// The value, in the unit of the key.
    pub value: u64,
    /// The value with its unit, for people.
    pub shown: String,
}

impl DiskConfig {
    /// The rate of a zone in bytes a second, rounded down, when whole cylinders pass one after the other. A skew that is too short for
    /// its switch is not charged with the rotation that it costs.
    pub fn zone_rate(&self, zone: &Zone) -> u64 {
        let heads = u128::from(self.heads);
        let bytes = heads * u128::from(zone.sectors) * u128::from(SECTOR_BYTES);
        let rpm = u128::from(self.rpm);
        let skews = (heads - 1) * u128::from(self.head_skew.0) + u128::from(self.cylinder_skew.0);
        // A cylinder takes as many rotations as there are heads, and the skews.
        (bytes * 1_000_000_000 * rpm / (heads * 60_000_000_000 + skews * rpm)) as u64
    }

    /// The mean time of a seek between two cylinders that are drawn at random, rounded down. A seek to the same cylinder is none.
    pub fn mean_seek(&self) -> Nanos {
        let mechanism = Mechanism::new(self);
        let cylinders = self.cylinders();
        let of = |distance: u32| u128::from(mechanism.seek(distance).0) * 2 * u128::from(cylinders - distance);
        let sum: u128 = (1..cylinders).map(of).sum();
        Nanos((sum / u128::from(cylinders) / u128::from(cylinders)) as u64)
    }

    /// Rates and times that follow from the description.
    pub fn datasheet(&self) -> Vec<DatasheetLine> {
        let size = |key, name, value| DatasheetLine { key, name, value, shown: format_size(value) };
        let count = |key, name, value: u64| DatasheetLine { key, name, value, shown: grouped(&value.to_string(), ',') };
        let time = |key, name, value: Nanos| DatasheetLine { key, name, value: value.0, shown: value.to_string() };
        let rate =
            |key, name, value: u64| DatasheetLine { key, name, value, shown: format!("{} MB/s", value / 1_000_000) };
        let mechanism = Mechanism::new(self);
        let cylinders = self.cylinders();
        let seek = |distance: u32| if cylinders > 1 { mechanism.seek(distance) } else { Nanos::ZERO };
        let (outer, inner) = (&self.zones[0], &self.zones[self.zones.len() - 1]);
        vec![
            size("capacity_bytes", "capacity", self.bytes()),
            count("rpm", "rotations a minute", self.rpm.into()),
            count("heads", "heads", self.heads.into()),
            count("cylinders", "cylinders", cylinders.into()),
            count("zones", "zones", self.zones.len() as u64),
            rate("outer_bytes_per_second", "rate of the outer zone", self.zone_rate(outer)),
            rate("inner_bytes_per_second", "rate of the inner zone", self.zone_rate(inner)),
            time("half_rotation_ns", "half a rotation", Nanos(30_000_000_000 / u64::from(self.rpm))),
            time("single_seek_ns", "seek over one cylinder", seek(1)),
            time("mean_seek_ns", "mean seek", self.mean_seek()),
            time("full_seek_ns", "seek over all cylinders", seek(cylinders.saturating_sub(1).max(1))),
            size("write_cache_bytes", "write cache", if self.write_cache.enabled { self.write_cache.bytes } else { 0 }),
            size("read_cache_bytes", "read cache", u64::from(self.read_cache.segments) * self.read_cache.segment_bytes),
        ]
    }
}

//! The directions of a job and the sizes of its requests.

use ssdlab_base::SECTOR_BYTES;

/// Directions of transfer, as indexes: fio orders its triples read, write, trim.
pub(crate) const READ: usize = 0;
/// See [`READ`].
pub(crate) const WRITE: usize = 1;
/// See [`READ`].
pub(crate) const TRIM: usize = 2;

/// What `rw=` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) kind: Kind,
    pub(crate) random: bool,
}

/// The directions of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One direction only.
    One(usize),
    /// Reads and writes, drawn by `rwmixread`.
    Mixed,
    /// A trim, then a write of the same blocks.
    TrimThenWrite,
}

impl Mode {
    /// Whether the job ever goes in `direction`.
    pub(crate) fn uses(self, direction: usize) -> bool {
        match self.kind {
            Kind::One(only) => only == direction,
            Kind::Mixed => direction != TRIM,
            Kind::TrimThenWrite => direction != READ,
        }
    }
}

/// How block sizes of one direction come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Always the same.
    Fixed(u64),
    /// Between two ends.
    Range(u64, u64),
    /// Size and percent, adding up to 100.
    Split(Vec<(u64, u32)>),
}

impl Sizes {
    /// The smallest size.
    pub(crate) fn min(&self) -> u64 {
        match self {
            Sizes::Fixed(size) | Sizes::Range(size, _) => *size,
            Sizes::Split(entries) => entries.iter().map(|(size, _)| *size).min().unwrap_or(SECTOR_BYTES),
        }
    }

    /// The largest size.
    pub(crate) fn max(&self) -> u64 {
        match self {
            Sizes::Fixed(size) | Sizes::Range(_, size) => *size,
            Sizes::Split(entries) => entries.iter().map(|(size, _)| *size).max().unwrap_or(SECTOR_BYTES),
        }
    }
}

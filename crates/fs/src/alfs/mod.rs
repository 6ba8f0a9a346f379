//! ALFS (AMF, section 3): how it is made, found again and started.
//!
//! ```text
//!   segment 0     the superblock
//!   segments 1, 2 check-points, in turn
//!   the others    data and nodes in up to six logs; inode map, TIMB and usage table in another
//! ```

use ssdlab_device::description::Key;

use crate::config;

pub(crate) mod chain;
pub(crate) mod make;
pub(crate) mod mount;
pub(crate) mod tables;

/// The keys of the kind.
pub(crate) const KEYS: &[Key] = &[
    config::LOGS,
    config::OVER_PROVISIONING,
    config::MAP_FACTOR,
    config::CACHE,
    config::DIRTY_BACKGROUND,
    config::DIRTY_LIMIT,
    config::DIRTY_EXPIRY,
    config::DIRTY_PERIOD,
    config::READ_AHEAD,
    config::CHECKPOINT_PERIOD,
    config::CLEANING_PERIOD,
    config::FSYNC,
];

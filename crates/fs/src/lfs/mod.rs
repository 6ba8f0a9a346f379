//! LFS: F2FS as Linux 3.13 had it (Lee et al., FAST 2015, section 2): the log-structured core above metadata that is overwritten.
//!
//! ```text
//!   segment 0      the superblock, and a copy of it
//!   segments 1, 2  check-points, in turn
//!   usage table    SIT, each block in two places
//!   node map       NAT, each block in two places
//!   summaries      SSA, one for each segment
//!   main area      data and nodes in up to six logs
//! ```
//!
//! Nothing that the newest check-point needs is overwritten: a block of SIT or NAT goes to its other place, and the check-point says which
//! one counts. Few changed entries go to journals in the check-point in place of a block (section 2.2).

use ssdlab_device::description::Key;

use crate::config;

pub(crate) mod make;
pub(crate) mod mount;
pub(crate) mod tables;

/// The keys of the kind.
pub(crate) const KEYS: &[Key] = &[
    config::SEGMENT,
    config::LOGS,
    config::OVER_PROVISIONING,
    config::CACHE,
    config::DIRTY_BACKGROUND,
    config::DIRTY_LIMIT,
    config::DIRTY_EXPIRY,
    config::DIRTY_PERIOD,
    config::READ_AHEAD,
    config::CHECKPOINT_PERIOD,
    config::CLEANING_PERIOD,
    config::FSYNC,
    config::THREADED_LOGGING,
    config::IN_PLACE,
];

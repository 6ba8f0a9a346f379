//! The log of a drive before and after its measured run, as real drives keep one.
//!
//! Its counters begin with the measured run, as all counters of a result do; erases are those of the drive's whole life.

use serde_json::Value;

/// A log before the run and one after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SmartLogs {
    /// At the start of the measured run.
    pub before: Value,
    /// At its last completion.
    pub after: Value,
}

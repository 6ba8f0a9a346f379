//! The log of a drive before and after its measured run, as real drives keep one.
//!
//! Its counters begin with the measured run, as all counters of a result do; erases are those of the drive's whole life.

use serde_json::Value;
use ssdlab_device::Drive;
use ssdlab_measure::smart::SmartLog;

/// A log before the run and one after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SmartLogs {
    /// At the start of the measured run.
    pub before: Value,
    /// At its last completion.
    pub after: Value,
}

/// What the drive says of itself now.
pub(crate) fn log(drive: &Drive) -> Value {
    let (config, counters, wear) = (drive.config(), drive.counters(), drive.wear());
    let log = SmartLog {
        model: config.name.clone(),
        capacity: config.user_bytes,
        now: drive.now(),
        geometry: config.flash.geometry,
        commands: (counters.commands[0], counters.commands[1]),
        host_bytes: (counters.bytes[0], counters.bytes[1]),
        flash: counters.flash,
        erases: (wear.min.into(), wear.mean, wear.max.into()),
        rated_erases: config.flash.faults.endurance,
        bad_blocks: counters.grown_bad_blocks,
    };
    log.to_json()
}

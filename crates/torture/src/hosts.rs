//! What hosts share that know a drive by their own commands: when they stop, and how a drive comes back.

use ssdlab_device::{Drive, DriveConfig, Options, Recovered};
use ssdlab_flash::Flash;

/// Why a host stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The power is to go now.
    Cut,
    /// The drive takes no more writes.
    ReadOnly,
}

/// The drive behind a power cut. Each number of `again` is one more cut, after so many flash operations of the recovery, or
/// right behind a recovery that has fewer.
///
/// # Panics
/// The drive does not accept its own description.
pub fn recover_after(config: &DriveConfig, options: Options, mut flash: Flash, again: &[u64]) -> Drive {
    for operations in again {
        flash = match Drive::recover_until(config, options, flash, *operations).expect("an accepted drive") {
            Recovered::Cut(chips) => *chips,
            Recovered::Whole(drive, _) => drive.power_cut(),
        };
    }
    Drive::recover(config, options, flash).expect("an accepted drive").0
}

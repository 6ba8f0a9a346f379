//! How much memory a run takes, known before it is taken.

use ssdlab_base::SECTOR_BYTES;
use ssdlab_device::{Drive, DriveConfig, DriveError};
use ssdlab_flash::Contents;

use crate::experiment::{Experiment, RunError};
use crate::verify::Verifier;

/// What the program, a workload and its results take beside a drive, in bytes: 32 MiB.
pub const BESIDES: u64 = 32 << 20;

/// Memory of one drive's run at most, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What the drive is called in the results.
    pub label: String,
    /// The drive's tables, and the stamps that it keeps in a verified run.
    pub drive: u64,
    /// What a verified run expects of each sector.
    pub expected: u64,
}

impl Memory {
    /// Of a drive called `label`, in a run that is verified or not.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn of(label: &str, config: &DriveConfig, verify: bool) -> Result<Memory, DriveError> {
        let contents = if verify { Contents::Stamps } else { Contents::Nothing };
        let expected = if verify { Verifier::simulator_bytes(config.user_bytes / SECTOR_BYTES) } else { 0 };
        Ok(Memory { label: label.to_string(), drive: Drive::simulator_bytes(config, contents)?, expected })
    }

    /// All of it.
    pub const fn total(&self) -> u64 {
        self.drive.saturating_add(self.expected)
    }
}

impl Experiment<'_> {
    /// Memory that each drive takes while it is run, in their order, beside [`BESIDES`]. A snapshot takes no more: it is
    /// read into the drive that runs, and written from it.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn memory(&self) -> Result<Vec<Memory>, RunError> {
        let of = |entrant: &crate::Entrant| {
            let refused = |source| RunError::Drive { label: entrant.label.clone(), source };
            Memory::of(&entrant.label, &entrant.config, self.verify).map_err(refused)
        };
        self.drives.iter().map(of).collect()
    }
}

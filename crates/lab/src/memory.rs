//! How much memory a run takes, known before it is taken.

use ssdlab_base::SECTOR_BYTES;
use ssdlab_device::{Drive, DriveConfig, DriveError};
use ssdlab_flash::Contents;
use ssdlab_host::Host;

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
        let expected = if verify { Verifier::simulator_bytes(config.address_bytes() / SECTOR_BYTES) } else { 0 };
        Ok(Memory { label: label.to_string(), drive: Drive::simulator_bytes(config, contents)?, expected })
    }

    /// Of the stack of a host above drives, where the command names `config`.
    ///
    /// # Errors
    /// A design that is not known.
    pub fn of_stack(label: &str, config: &DriveConfig, host: &Host, verify: bool) -> Result<Memory, DriveError> {
        let mut memory = Memory { label: label.to_string(), drive: 0, expected: 0 };
        for (_, config) in host.drives(config) {
            let of = Memory::of(label, &config, verify)?;
            memory.drive = memory.drive.saturating_add(of.drive);
            memory.expected = memory.expected.saturating_add(of.expected);
        }
        Ok(memory)
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
            self.memory_of(entrant).map_err(refused)
        };
        self.drives.iter().map(of).collect()
    }

    pub(crate) fn memory_of(&self, entrant: &crate::Entrant) -> Result<Memory, DriveError> {
        match self.host {
            Some(host) => Memory::of_stack(&entrant.label, &entrant.config, host, self.verify),
            None => Memory::of(&entrant.label, &entrant.config, self.verify),
        }
    }
}

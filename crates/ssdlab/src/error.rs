//! Why there is no such device, and why a run fails.

use ssdlab_device::DescriptionError;
use ssdlab_host::HostError;
use ssdlab_lab::output::OutputError;
use ssdlab_lab::variants::AxisError;
use ssdlab_lab::{RunError, SourceError};
use ssdlab_workload::WorkloadError;

use crate::shipped;

/// Why a text names no device, or a description is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// It is the name of a hard disk.
    #[error("{}; {}", self.sentence(), self.hint().unwrap_or_default())]
    Disk {
        /// The name.
        name: String,
    },
    /// No drive that ships has the name.
    #[error("{}; {}", self.sentence(), self.hint().unwrap_or_default())]
    NotShipped {
        /// The name.
        name: String,
    },
    /// No file and no drive that ships has the name.
    #[error("{}; {}", self.sentence(), self.hint().unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The description: file, line, column and key, what was found and what was expected.
    #[error(transparent)]
    Description(#[from] Box<DescriptionError>),
}

impl From<DescriptionError> for DeviceError {
    fn from(error: DescriptionError) -> DeviceError {
        DeviceError::Description(Box::new(error))
    }
}

impl DeviceError {
    /// What is wrong, without the hint.
    pub fn sentence(&self) -> String {
        match self {
            DeviceError::Disk { name } => format!("'{name}' is a hard disk, expected a drive"),
            DeviceError::NotShipped { name } => format!("no drive that ships is called '{name}'"),
            DeviceError::Unknown { name } => format!("'{name}' is neither a file nor a drive that ships"),
            DeviceError::Description(error) => error.to_string(),
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            DeviceError::Disk { .. } => Some("a disk that ships is shown by 'ssdlab devices NAME'".to_string()),
            DeviceError::NotShipped { name } | DeviceError::Unknown { name } => Some(shipped::names(name)),
            DeviceError::Description(_) => None,
        }
    }
}

/// Why a run cannot begin, or its files cannot be written. All but [`Error::Output`] are wrong input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The host's description.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The workload, or the way to precondition.
    #[error("{}", .0.with_hint())]
    Workload(#[from] SourceError),
    /// The text given to [`crate::Run::replay`].
    #[error("--replay: {0}")]
    Replay(#[source] WorkloadError),
    /// The texts given to [`crate::Run::vary`].
    #[error("--vary: {0}")]
    Vary(#[from] AxisError),
    /// The text given to [`crate::Run::env`].
    #[error("--env: {0}")]
    Env(#[source] WorkloadError),
    /// The drives, their host and the workload do not go together.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The files.
    #[error(transparent)]
    Output(#[from] OutputError),
}

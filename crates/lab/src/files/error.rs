//! Why a file run cannot be made. In most cases the input is wrong.

use ssdlab_fs::{Errno, MakeError, MountError};
use ssdlab_workload::WorkloadError;
use ssdlab_workload::files::PrepareError;

use crate::experiment::RunError;
use crate::replay::ReplayError;

/// Why a file run cannot be made, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The drive or the layers of the host are refused.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file system cannot be made on the device.
    #[error("{label}: {kind}: {source}")]
    Make {
        /// The drive.
        label: String,
        /// The kind of file system.
        kind: &'static str,
        /// The reason.
        source: MakeError,
    },
    /// The file system cannot be mounted again after the run.
    #[error("{label}: the file system cannot be mounted after the run: {source}")]
    Mount {
        /// The drive.
        label: String,
        /// The reason.
        source: MountError,
    },
    /// The files do not fit, or were not wanted any more.
    #[error("{label}: {source}")]
    Prepare {
        /// The drive.
        label: String,
        /// The reason.
        source: PrepareError,
    },
    /// A call failed while files were made.
    #[error("{label}: cannot {call} {path} while files are made: {errno}{reason}")]
    Call {
        /// The drive.
        label: String,
        /// The call, as a verb.
        call: &'static str,
        /// The path.
        path: String,
        /// How it ended.
        errno: Errno,
        /// Why the file system takes no changes, if so, in parentheses.
        reason: String,
    },
    /// A workload cannot be read, or does not fit.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A workload cannot go on.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Time would never pass.
    #[error(
        "--host-time call=0: calls of cached files would take no time, and a run that ends by its runtime would never end; \
         expected a time above 0, or a number of operations"
    )]
    NoTime,
    /// Nothing will ever happen again.
    #[error("{calls} calls are in the file system, and nothing will ever happen in it or in its drive")]
    Silent {
        /// How many calls.
        calls: usize,
    },
}

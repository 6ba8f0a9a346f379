//! Where an experiment's requests come from, as the lab sees it.

use ssdlab_device::DriveConfig;
use ssdlab_workload::{Demand, Workload, WorkloadError};

mod pointers;
mod text;
mod walk;

pub use text::{ReplayOptions, SourceError, TextSource};
pub use walk::walk;

/// Whether a workload writes at the write pointers of a drive's zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InZones {
    /// It does, or says itself what is wrong.
    Yes,
    /// It knows nothing of zones.
    No,
    /// It does not: the first write elsewhere, in words.
    Off(String),
}

/// A workload that can be opened for one drive after another, and for several at a time.
pub trait WorkloadSource: Sync {
    /// The workload from its beginning, for this drive. Pass 0 is the measured run; the passes of preconditioning to the steady
    /// state count from 1, and a generator must draw other numbers in each (a trace is the same in all).
    fn open(&self, drive: &DriveConfig, pass: u64) -> Result<Box<dyn Workload>, WorkloadError>;

    /// Everything that decides what is sent, for the name of a snapshot: a specification's text and seed, or a trace's
    /// [`crate::snapshot::file_identity`], with the options of both.
    fn identity(&self) -> String;

    /// What results call it where nothing else is said: the text that it was read from, if there is one.
    fn name(&self) -> String {
        self.identity()
    }

    /// What it takes on this drive while it is sent, as far as that is known before.
    fn demand(&self, drive: &DriveConfig) -> Demand {
        let _ = drive;
        Demand::default()
    }

    /// What a person should know of how it was read for this drive so far, a sentence each.
    fn notes(&self, drive: &DriveConfig) -> Vec<String> {
        let _ = drive;
        Vec::new()
    }

    /// Whether requests arrive by a clock of the workload's own, as those of a trace do that is replayed `timed`, so that
    /// a drive can fall behind it.
    fn is_clocked(&self) -> bool {
        true
    }

    /// Whether it is a trace, which has no more requests than it has.
    fn is_trace(&self) -> bool {
        false
    }

    /// Whether it writes at the write pointers of this drive's zones.
    fn writes_in_zones(&self, drive: &DriveConfig) -> InZones {
        let _ = drive;
        InZones::No
    }

    /// Whether it is uniform random overwrites of single mapping units over the drive's whole user capacity, so that
    /// theory has something to say.
    fn is_uniform_overwrites(&self, drive: &DriveConfig) -> bool {
        let _ = drive;
        false
    }
}

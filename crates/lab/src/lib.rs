//! An experiment: devices under test, a workload and a preconditioning, run to results, tables and reports.
//!
//! ```text
//!   DeviceUnderTest + WorkloadSource + Preconditioning --experiment::run--> RunResult --+-- table   a person reads it
//!                     |                |                                                +-- output  result.json, CSV, Parquet
//!                     |                +-- precondition, snapshot: the drive's state    +-- report  report.html
//!                     +-- replay: the loop, with checks
//!   a personality or jobs, a file system above the device under test --files::run_files--> DeviceFilesResult
//! ```
//!
//! This crate drives [`ssdlab_device::Drive`]s and reads their counters; it decides nothing about them. It promises
//! that the same experiment gives the same result but for wall-clock times, and that a result that breaks an invariant says so.

pub mod breakdown;
mod by_cause;
mod checks;
pub mod conclusions;
pub mod datasheet;
mod date;
pub mod experiment;
pub mod files;
mod headline;
mod jobs;
mod latency;
pub mod memory;
mod observers;
pub mod output;
pub mod perfetto;
pub mod precondition;
pub mod progress;
mod rate;
pub mod ready_busy;
pub mod replay;
pub mod report;
pub mod result;
mod smart;
pub mod snapshot;
pub mod source;
mod standstill;
pub mod subtests;
pub mod table;
pub mod text;
pub mod theory;
mod timeline;
pub mod variants;
mod verify;
mod warnings;

pub use breakdown::Breakdown;
pub use date::utc;
pub use experiment::{
    DeviceUnderTest, Experiment, Observe, Outcome, Provenance, RunError, RunIntoError, run, run_into, run_into_observed,
};
pub use memory::Memory;
pub use precondition::{Preconditioning, TextPreconditioning};
pub use progress::{Control, NoProgress, Phase, Progress};
pub use ready_busy::{ReadyBusy, Recording};
pub use result::{DeviceResult, RunResult};
pub use smart::SmartLogs;
pub use snapshot::SnapshotCache;
pub use source::{InZones, ReplayOptions, SourceError, TextSource, WorkloadSource};
pub use subtests::Subtests;

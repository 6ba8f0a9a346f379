//! Where requests come from: trace formats, fio's job files, generators, replay disciplines.
//!
//! A [`Workload`] is asked for the next request at a point in virtual time and told of completions; it decides
//! whether to send, to wait until a time, or to wait for a completion. It never sees the drive.

mod archive;
mod draw;
pub mod files;
pub mod fio;
pub mod model;
mod open;
pub mod replay;
pub mod stats;
pub mod trace;
mod workload;

pub use archive::{Archive, Compression};
pub use open::{OpenOptions, WorkloadKind, file_of, open, open_trace};
pub use workload::{Demand, Next, Workload, WorkloadError};

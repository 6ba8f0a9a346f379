//! File-level workloads: what servers do to a directory tree, as published benchmarks say it.
//!
//! ```text
//! Personality (data) -> Thread (what comes next; no clock, no file system) -> Call -> executor -> FileSystem
//!       ^ --set               ^ shared FileSets: which files exist                 ^ run: threads and a clock
//! ```
//!
//! A [`Thread`] is a state machine: [`Thread::next`] gives the next call, [`Thread::completed`] takes its outcome; both
//! are told the time. So the same operations run on a real directory in wall-clock time ([`run`]) and on a simulated
//! file system in virtual time. What a thread draws (sizes, offsets, what to do) is a stream of its own of the seed;
//! which file it gets is for the order in which threads ask, and so the same again wherever that order is.

mod call;
mod directory;
mod engine;
mod file_set;
mod file_system;
mod flowop;
mod looped;
mod measure;
mod memory;
mod parameters;
mod personality;
mod postmark;
mod prepare;
mod result;
mod run;
mod size;
mod thread;
mod tree;

pub use call::{Call, Descriptor};
pub use directory::Directory;
pub use engine::{Engine, Limits};
pub use file_set::{FileSets, Planned};
pub use file_system::{Access, FileSystem, FsError, FsErrorKind, Status};
pub use flowop::{Flowop, OpKind, SetName};
pub use measure::{Done, Latency, Measures, OpMeasure};
pub use memory::MemoryFileSystem;
pub use parameters::Parameters;
pub use personality::{Personality, Script, shipped};
pub use prepare::{PrepareError, Prepared, Removed, prepare, remove};
pub use result::{FILES_FORMAT, FilesResult, OpResult, Phase, PreparedResult};
pub use run::{Outcome, Watch, run};
pub use size::SizeDistribution;
pub use thread::{Next, Thread};

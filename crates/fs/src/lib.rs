//! File systems on a drive, in the same virtual time.
//!
//! A file system is the topmost part of a stack: it owns a device, and takes calls in place of sectors ([`call`]). It has no clock,
//! no thread and no executor, as little as a layer has. The same code runs in virtual time and serves.
//!
//! ```text
//!   call         what is asked and answered            file_system     calls and time, for all kinds
//!   kinds        the registry                          log_structured  the engine of alfs and lfs
//!   core         pages, nodes, inode map, space, logs  calls           gather and apply of each call
//!   jobs         write-out, cleaning, check-points     restore         what fsyncs wrote behind a check-point
//!   journaling   the engine of a file system that updates in place behind a journal
//!   format       blocks as the drive has them          alfs, lfs       what these do not share
//!   check        walks a device by decoding of its own
//! ```

mod alfs;
pub mod call;
mod calls;
pub mod check;
pub mod config;
mod core;
mod error;
mod file_system;
pub mod format;
mod jobs;
pub mod journaling;
pub mod kinds;
mod lfs;
mod log_structured;
mod make;
mod metrics;
mod mount;
mod periods;
mod reader;
mod restore;
pub mod seeded;
mod tasks;

pub use call::{Answer, Call, Content, Errno, FileId, FileKind, ROOT, Reply};
pub use config::{MakeOptions, Options};
pub use error::{MakeError, MountError};
pub use file_system::FileSystem;
pub use jobs::Job;
pub use metrics::{Levels, Memory, Metrics, Shape};

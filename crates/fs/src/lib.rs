//! File systems on a drive, in the same virtual time.
//!
//! A file system is the topmost part of a stack: it owns a device, and takes calls in place of sectors ([`call`]). It has no clock,
//! no thread and no executor, as little as a layer has.

pub mod call;

pub use call::{Answer, Call, Content, Errno, FileId, ROOT, Reply};

//! A [`Target`](crate::Target) as one file, by FUSE.
//!
//! ```text
//! read, write, fsync, fallocate ── kernel ──> worker threads ──> Target::submit
//!                                    ^                               │
//!                                    └───────── Sink::answers <──────┘   (whichever thread has the answer)
//! ```
//!
//! | on the file                                | command                                              |
//! | ------------------------------------------ | ---------------------------------------------------- |
//! | read, any offset and length                | Read of the sectors around it                        |
//! | write of whole sectors                     | Write; FUA with `O_DSYNC` or `O_SYNC`                |
//! | write that covers a part of a sector       | Read of the sector, Write of it as a whole           |
//! | fsync, fdatasync                           | Flush                                                |
//! | fallocate: punch hole                      | Trim                                                 |
//! | fallocate: zero range                      | WriteZeroes                                          |
//! | fallocate of a part of a sector            | refused with `EINVAL`, as by a block device          |
//! | lseek: `SEEK_DATA`, `SEEK_HOLE`            | none: [`Target::extents`](crate::Target::extents)    |
//!
//! A target that takes appends to segments alone ([`Target::appends`](crate::Target::appends)) gets what the kernel sends or
//! nothing: a write of a part of a sector, and one that goes on behind the end, are refused as a whole, as is zero range. One
//! thread takes requests from the kernel, in order. The file's extended attributes tell of the segments.
//!
//! Nothing is cached in the kernel; writes run in parallel; a write behind the end is short, one that begins there is
//! `ENOSPC`. From Linux 6.6 on the file can be mapped as shared memory, unless it takes appends alone: pages that are mapped
//! are the kernel's until they are written back, at the latest by msync or fsync, and reads and writes of the file are
//! coherent with them. Older kernels refuse such maps (`ENODEV`).
//!
//! The flag `RWF_DSYNC` of a single write does not arrive (Linux 6.18 drops it for files without a cache): a flush has to
//! follow.
//!
//! libfuse is not needed: root mounts by itself, others through `fusermount3`.

mod attributes;
mod filesystem;
mod merge;
mod pending;
mod serve;

pub(crate) use serve::{BUSY_PATIENCE, End, unmount};
pub use serve::{FuseError, FuseFile};

/// The file's name in the directory that it is served in.
pub const FILE_NAME: &str = "drive";

/// What the mount is called in the kernel's table.
pub(crate) const SOURCE_NAME: &str = "ssdlab";

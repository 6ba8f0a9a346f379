//! A hard disk in virtual time: zones, heads, seeks and rotation, NCQ, a volatile write cache, and read-ahead.
//!
//! ```text
//!   config      the description, TOML with the table [disk]
//!   datasheet   rates and times that follow from it
//!   mechanism   where sectors are, and how long the heads take to reach and pass them
//!   contents    what sectors hold, a sparse map
//!   medium      what is on the medium, in memory or in the file of an image
//!   cache       written data that is not on the medium yet
//!   segments    what was read and is read ahead
//!   link        the link and the controller's time
//!   disk        the commands, and what the heads do next
//! ```
//!
//! A [`Disk`] takes [`ssdlab_base::Request`]s at points in virtual time and gives back
//! [`ssdlab_device::Completion`]s, and a power cut leaves on it what the heads had written. The mechanism follows Ruemmler and
//! Wilkes, "An introduction to disk drive modeling" (IEEE Computer, 1994).

mod cache;
mod config;
mod contents;
mod counters;
mod datasheet;
mod disk;
mod link;
mod mechanism;
mod medium;
pub mod seeded;
mod segments;
#[cfg(test)]
mod tests;

pub use config::{DiskConfig, KEYS, QueueConfig, ReadCacheConfig, SeekConfig, WriteCacheConfig, Zone};
pub use counters::DiskCounters;
pub use datasheet::DatasheetLine;
pub use disk::Disk;
pub use medium::SECTORS;

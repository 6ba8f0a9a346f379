//! What a file run on a simulated drive leaves behind: the structure of `files.json`.
//!
//! It has the keys of a run in a directory, and what the file system and the drive below it did. Everything here is read from their
//! counters, never computed twice. docs/results.md describes every key.

use std::collections::BTreeMap;

use serde::Serialize;
use ssdlab_workload::files::FilesResult;

use super::timeline::FilesTimeline;
use crate::result::{Check, DeviceResult, JobResult};

/// A file run on a simulated drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceFilesResult {
    /// What the workload did.
    #[serde(flatten)]
    pub run: FilesResult,
    /// The jobs, where the workload is jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobResult>,
    /// What the file system did.
    pub file_system: FileSystemResult,
    /// The drive, or the stack, below it.
    pub drives: Vec<DeviceResult>,
    /// The invariants of the run, those of the drive apart.
    pub checks: Vec<Check>,
    /// Contradictions that the check of the file system found, a thousand at most.
    pub problems: Vec<String>,
}

impl DeviceFilesResult {
    /// Whether every invariant held, here and in the drive.
    pub fn checks_held(&self) -> bool {
        let of_drives = self.drives.iter().flat_map(|drive| &drive.checks);
        self.checks.iter().chain(of_drives).all(|check| check.passed)
    }
}

/// What a file system is and did. Its counters are of the run from its begin to the end of the last sync; bytes are whole blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileSystemResult {
    /// The kind of file system.
    pub kind: String,
    /// Its keys, everything filled in.
    pub keys: BTreeMap<String, String>,
    /// Host time.
    pub host_time: HostTimeResult,
    /// What it is made of.
    pub capacity: FileSystemCapacity,
    /// Calls by name, and what they moved.
    pub calls: CallsResult,
    /// Bytes that it wrote to the drive.
    pub written_bytes: BytesByKind,
    /// Bytes that it read from the drive.
    pub read_bytes: u64,
    /// Bytes written for each byte of data.
    pub write_amplification: FileWriteAmplification,
    /// Cleaning.
    pub cleaning: CleaningResult,
    /// Check-points.
    pub checkpoints: CheckpointsResult,
    /// The cache.
    pub cache: CacheResult,
    /// RAM of its tables.
    pub memory: FileSystemMemory,
    /// From the end of the last thread to that of a sync of everything, which is part of all counters and of no rate.
    pub sync_ns: u64,
    /// Whether the caches were dropped before the run.
    pub cold: bool,
    /// Why it takes no changes any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// The run over time.
    pub timeline: FilesTimeline,
}

/// Host time of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostTimeResult {
    /// Of each call.
    pub call_ns: u64,
    /// Of each 4 KB that is copied.
    pub copy_ns: u64,
    /// Of all calls together, over all threads.
    pub total_ns: u64,
}

/// Space of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileSystemCapacity {
    /// Segments of the device.
    pub segments: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Segments of the inode map.
    pub map_segments: u64,
    /// Bytes for data and nodes.
    pub user_bytes: u64,
    /// Of these, valid when the run began.
    pub used_bytes_before: u64,
    /// Of these, valid at its end.
    pub used_bytes: u64,
    /// Inodes and index blocks that there can be.
    pub nodes: u64,
}

/// Calls of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CallsResult {
    /// By name.
    pub by_name: BTreeMap<String, u64>,
    /// Bytes that reads gave.
    pub read_bytes: u64,
    /// Bytes that writes and appends brought.
    pub written_bytes: u64,
    /// Blocks that writes and appends changed, each call by itself.
    pub written_blocks: u64,
    /// Times that a block of a file became dirty: the others of these found it dirty.
    pub dirtied_blocks: u64,
    /// Dirty blocks that were deleted before they were written.
    pub dropped_blocks: u64,
    /// Calls that waited because there were too few free segments.
    pub waited_for_room: u64,
    /// Calls that waited because too much was dirty.
    pub waited_for_write_out: u64,
}

/// Bytes that were written, by kind; their sum is what the drive was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BytesByKind {
    /// All of them.
    pub total: u64,
    /// Blocks of files that calls made dirty.
    pub data: u64,
    /// Blocks of files that cleaning moved.
    pub cleaning: u64,
    /// Blocks of directories.
    pub directory: u64,
    /// Inodes and index blocks.
    pub node: u64,
    /// Blocks of the inode map.
    pub inode_map: u64,
    /// TIMB blocks.
    pub timb: u64,
    /// Blocks of the usage table.
    pub usage: u64,
    /// Check-points.
    pub checkpoint: u64,
    /// The journal.
    pub journal: u64,
    /// Blocks at their places, after their commit.
    pub home: u64,
    /// Summaries of segments.
    pub summary: u64,
    /// What fills up write units.
    pub padding: u64,
}

/// Write amplification of a file system, and below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FileWriteAmplification {
    /// Bytes written to the drive by bytes of data; `null` where no data was written.
    pub total: Option<f64>,
    /// Bytes written to the drive by those that were not written for cleaning: what AMF's Table 4 has for a file system.
    pub cleaning: Option<f64>,
    /// Bytes programmed by bytes that the drive was sent.
    pub drive: Option<f64>,
    /// Bytes programmed by bytes of data.
    pub all: Option<f64>,
}

/// Cleaning of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CleaningResult {
    /// Segments of data and nodes that were cleaned.
    pub segments: u64,
    /// Share of valid blocks in them, a mean; `null` where none was cleaned.
    pub valid_share: Option<f64>,
    /// Blocks of files that it moved.
    pub copied_data_blocks: u64,
    /// Nodes and blocks of directories that were written for it alone.
    pub copied_metadata_blocks: u64,
    /// Segments of the inode map that were cleaned.
    pub map_segments: u64,
    /// Blocks of the inode map that were written for that alone.
    pub copied_map_blocks: u64,
    /// Segments that were trimmed.
    pub trimmed_segments: u64,
    /// Blocks of files that could not be read when they were to be moved.
    pub lost_blocks: u64,
}

/// Check-points of a file system, or commits of its journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CheckpointsResult {
    /// How many.
    pub count: u64,
    /// Blocks of a check-point itself, or of the journal by commits, a mean.
    pub blocks_each: Option<f64>,
    /// TIMB blocks with each, a mean.
    pub timb_blocks_each: Option<f64>,
    /// Blocks of the inode map with each, a mean.
    pub inode_map_blocks_each: Option<f64>,
    /// Switches to the other check-point segment.
    pub switches: u64,
    /// Fsyncs that wrote nodes of their file in place of a check-point.
    pub rolled_fsyncs: u64,
}

/// What a cache did, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CacheResult {
    /// Bytes that it may have.
    pub budget_bytes: u64,
    /// The most blocks that were in it, whatever they hold.
    pub blocks_max: u64,
    /// Blocks that reads of files needed.
    pub read_blocks: u64,
    /// Of these, those that were not in it.
    pub missed_blocks: u64,
    /// Of these, those that were, as a share; `null` without reads.
    pub hit_ratio: Option<f64>,
    /// Blocks that were read ahead.
    pub ahead_blocks: u64,
    /// Blocks that were read from the drive, for whatever.
    pub loaded_blocks: u64,
}

/// RAM of a file system at the end of a run, by table, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileSystemMemory {
    /// TIMB, with the lists of its blocks and of usage blocks.
    pub timb_bytes: u64,
    /// States of segments.
    pub segment_bytes: u64,
    /// Summaries of segments that are open or have none at their end.
    pub summary_bytes: u64,
    /// The cache.
    pub cache_bytes: u64,
}

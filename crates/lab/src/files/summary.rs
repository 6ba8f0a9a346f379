//! From counters of a file system and what was asked of it to its entry in the results.

use ssdlab_base::Nanos;
use ssdlab_fs::call::BLOCK_BYTES;
use ssdlab_fs::{FileSystem, Levels, Metrics, config};
use ssdlab_workload::files::{FILES_FORMAT, FilesResult, PreparedResult};

use super::counts::CallCounts;
use super::result::{
    BytesByKind, CacheResult, CallsResult, CheckpointsResult, CleaningResult, DeviceFilesResult, FileSystemCapacity,
    FileSystemMemory, FileSystemResult, FileWriteAmplification, HostTimeResult,
};
use super::timeline::FilesTimeline;
use super::{FilesRun, Measured};
use crate::result::{DeviceResult, VERSION};

/// What was seen of a run.
pub(super) struct Seen {
    pub(super) counts: CallCounts,
    pub(super) metrics: Metrics,
    /// What the file system had when the run began.
    pub(super) begun: Levels,
    pub(super) timeline: FilesTimeline,
    pub(super) sync: Nanos,
}

/// Bytes that were written, by kind.
pub(super) fn written(metrics: &Metrics) -> BytesByKind {
    let bytes = |blocks: u64| blocks * BLOCK_BYTES;
    BytesByKind {
        total: bytes(metrics.all_blocks()),
        data: bytes(metrics.data_blocks),
        cleaning: bytes(metrics.moved_blocks),
        directory: bytes(metrics.directory_blocks),
        node: bytes(metrics.node_blocks),
        inode_map: bytes(metrics.map_blocks),
        timb: bytes(metrics.table_blocks),
        usage: bytes(metrics.usage_blocks),
        checkpoint: bytes(metrics.checkpoint_blocks),
        journal: bytes(metrics.journal_blocks),
        home: bytes(metrics.home_blocks),
        summary: bytes(metrics.summary_blocks),
        padding: bytes(metrics.padding_blocks),
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The file system's entry; its write amplification comes with the drive's.
pub(super) fn file_system(run: &FilesRun<'_>, fs: &FileSystem, seen: &Seen) -> FileSystemResult {
    let Seen { counts, metrics, begun, timeline, sync } = seen;
    let (shape, memory, levels) = (fs.shape(), fs.memory(), fs.levels());
    let bytes = |blocks: u64| blocks * BLOCK_BYTES;
    let keys = config::values(&run.make, &run.options);
    FileSystemResult {
        kind: run.kind.name.to_string(),
        keys: keys.into_iter().map(|(key, value)| (key.to_string(), value)).collect(),
        host_time: HostTimeResult {
            call_ns: run.host_time.call.0,
            copy_ns: run.host_time.copy.0,
            total_ns: counts.host.0,
        },
        capacity: FileSystemCapacity {
            segments: shape.segments,
            segment_bytes: bytes(shape.segment_blocks),
            map_segments: shape.map_segments,
            user_bytes: bytes(shape.user_blocks),
            used_bytes_before: bytes(begun.valid_blocks),
            used_bytes: bytes(levels.valid_blocks),
            nodes: shape.nodes,
        },
        calls: CallsResult {
            by_name: counts.by_name(),
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
            written_blocks: counts.written_blocks,
            dirtied_blocks: metrics.dirtied_blocks,
            dropped_blocks: metrics.dropped_blocks,
            waited_for_room: metrics.room_waits,
            waited_for_write_out: metrics.dirty_waits,
        },
        written_bytes: written(metrics),
        read_bytes: bytes(metrics.loaded_blocks),
        write_amplification: FileWriteAmplification::default(),
        cleaning: CleaningResult {
            segments: metrics.cleaned_segments,
            valid_share: ratio(metrics.cleaned_valid_blocks, metrics.cleaned_segments * shape.data_blocks),
            copied_data_blocks: metrics.moved_blocks,
            copied_metadata_blocks: metrics.moved_metadata_blocks,
            map_segments: metrics.cleaned_map_segments,
            copied_map_blocks: metrics.moved_map_blocks,
            trimmed_segments: metrics.trimmed_segments,
            lost_blocks: metrics.lost_blocks,
        },
        checkpoints: CheckpointsResult {
            count: metrics.checkpoints,
            blocks_each: ratio(metrics.checkpoint_blocks + metrics.journal_blocks, metrics.checkpoints),
            timb_blocks_each: ratio(metrics.table_blocks, metrics.checkpoints),
            inode_map_blocks_each: ratio(metrics.map_blocks, metrics.checkpoints),
            switches: metrics.checkpoint_switches,
            rolled_fsyncs: metrics.rolled_fsyncs,
        },
        cache: CacheResult {
            budget_bytes: run.options.cache,
            blocks_max: memory.cached_blocks_max as u64,
            read_blocks: metrics.read_blocks,
            missed_blocks: metrics.missed_blocks,
            hit_ratio: ratio(metrics.read_blocks.saturating_sub(metrics.missed_blocks), metrics.read_blocks),
            ahead_blocks: metrics.ahead_blocks,
            loaded_blocks: metrics.loaded_blocks,
        },
        memory: FileSystemMemory {
            timb_bytes: memory.table_bytes as u64,
            segment_bytes: memory.segment_bytes as u64,
            summary_bytes: memory.summary_bytes as u64,
            cache_bytes: bytes(memory.cached_blocks as u64),
        },
        sync_ns: sync.0,
        cold: run.is_cold,
        read_only: fs.read_only_reason().map(str::to_string),
        timeline: timeline.clone(),
    }
}

/// Write amplification of a file system, and of the drive below it.
pub(super) fn write_amplification(file_system: &FileSystemResult, drive: &DeviceResult) -> FileWriteAmplification {
    let (written, cleaning) = (&file_system.written_bytes, &file_system.cleaning);
    let copied = cleaning.copied_data_blocks + cleaning.copied_metadata_blocks + cleaning.copied_map_blocks;
    let total = ratio(written.total, written.data);
    let below = drive.write_amplification.as_ref().map(|amplification| amplification.total);
    FileWriteAmplification {
        total,
        cleaning: ratio(written.total, written.total.saturating_sub(copied * BLOCK_BYTES)),
        drive: below,
        all: total.zip(below).map(|(total, below)| total * below),
    }
}

/// The result, but for what only the source of calls knows.
pub(super) fn result(
    run: &FilesRun<'_>,
    name: &str,
    source: &str,
    prepared: PreparedResult,
    measured: Measured,
) -> DeviceFilesResult {
    let Measured { ran, file_system, drive, checks, problems, .. } = measured;
    let mut notes = Vec::new();
    if ran.is_stopped {
        notes.push("the run was interrupted: these are the results up to then".to_string());
    }
    let base = FilesResult {
        format: FILES_FORMAT,
        version: VERSION.to_string(),
        command: run.command.clone(),
        personality: name.to_string(),
        source: source.to_string(),
        parameters: None,
        seed: run.seed,
        directory: None,
        prepared,
        seconds: ran.end.0 as f64 / 1e9,
        operations: 0,
        operations_per_second: 0.0,
        turns: 0,
        skipped: 0,
        bytes_read: 0,
        bytes_written: 0,
        by_operation: Vec::new(),
        complete: !ran.is_stopped && ran.error.is_none(),
        error: ran.error,
        notes,
    };
    DeviceFilesResult { run: base, jobs: Vec::new(), file_system, drives: vec![drive], checks, problems }
}

//! Invariants of a file run: what calls asked, what the file system says that it did, and what the drive was sent agree.

use ssdlab_fs::call::BLOCK_BYTES;
use ssdlab_fs::check::Found;
use ssdlab_fs::{FileSystem, MountError};

use super::summary::{Seen, written};
use crate::replay::Recorder;
use crate::result::Check;
use crate::text::counted;

/// Problems that a check's sentence names.
const NAMED: usize = 3;

fn check(name: &str, passed: bool, detail: String) -> Check {
    Check { name: name.to_string(), passed, detail }
}

/// Invariants of a run that ended with a sync; without an error only where `is_well`.
pub(super) fn invariants(seen: &Seen, fs: &FileSystem, recorder: &Recorder, is_well: bool) -> Vec<Check> {
    let (counts, metrics) = (&seen.counts, &seen.metrics);
    let levels = fs.levels();
    let (before, after) = (seen.begun.dirty_blocks, levels.dirty_blocks);
    let mut checks = vec![
        check(
            "blocks_of_calls_equal_file_system",
            counts.written_blocks == metrics.written_blocks && counts.read_blocks == metrics.read_blocks,
            format!(
                "calls wrote {} blocks and read {}; the file system counted {} and {}",
                counts.written_blocks, counts.read_blocks, metrics.written_blocks, metrics.read_blocks
            ),
        ),
        check(
            "dirty_blocks_conserved",
            before + metrics.dirtied_blocks
                == metrics.data_blocks + metrics.moved_blocks + metrics.dropped_blocks + after,
            format!(
                "{before} blocks of files were dirty and {} became so; {} were written for calls and {} for cleaning, {} were deleted \
                 before, and {after} are dirty",
                metrics.dirtied_blocks, metrics.data_blocks, metrics.moved_blocks, metrics.dropped_blocks
            ),
        ),
    ];
    let [read, sent, trimmed, _] = recorder.completed_bytes;
    let by_kind = written(metrics);
    let trims = metrics.trimmed_blocks * BLOCK_BYTES;
    checks.push(check(
        "bytes_of_file_system_equal_device",
        by_kind.total == sent && metrics.loaded_blocks * BLOCK_BYTES == read && trims == trimmed,
        format!(
            "the file system wrote {} bytes over all kinds, read {} and trimmed {trims}; the device took {sent}, {read} and {trimmed}",
            by_kind.total,
            metrics.loaded_blocks * BLOCK_BYTES
        ),
    ));
    if is_well {
        let is_clean = after == 0;
        checks.push(check(
            "a_sync_leaves_nothing_dirty",
            is_clean,
            format!("{} dirty at the end", counted(after, "block of files is", "blocks of files are")),
        ));
    }
    checks
}

/// What a walk of the device found, as a check and a list.
pub(super) fn walked(found: Result<Found, MountError>) -> (Check, Vec<String>) {
    const NAME: &str = "file_system_is_whole";
    match found {
        Err(error) => {
            let told = error.to_string();
            (check(NAME, false, format!("it cannot be walked: {told}")), vec![told])
        }
        Ok(found) => {
            let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
            let first = problems.iter().take(NAMED).map(|problem| format!("; {problem}")).collect::<String>();
            let detail = format!(
                "{} in {} and {} directories, {} nodes and {} blocks of data{first}",
                counted(problems.len() as u64, "contradiction", "contradictions"),
                counted(found.files, "file", "files"),
                found.directories,
                found.nodes,
                found.data_blocks
            );
            (check(NAME, problems.is_empty(), detail), problems)
        }
    }
}

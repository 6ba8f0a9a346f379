//! What a run asked of a file system, counted where it asked.

use std::collections::BTreeMap;

use ssdlab_base::Nanos;
use ssdlab_fs::call::BLOCK_BYTES;
use ssdlab_fs::{Call, Reply};

use super::calls::{Way, Work};

/// Names of calls, in the order of their counts.
const NAMES: [&str; 18] = [
    "lookup",
    "create",
    "mkdir",
    "unlink",
    "rmdir",
    "rename",
    "list",
    "open",
    "close",
    "read",
    "write",
    "append",
    "truncate",
    "stat",
    "statfs",
    "fsync",
    "fdatasync",
    "sync",
];

const fn place(call: &Call) -> usize {
    match call {
        Call::Lookup { .. } => 0,
        Call::Create { .. } => 1,
        Call::Mkdir { .. } => 2,
        Call::Unlink { .. } => 3,
        Call::Rmdir { .. } => 4,
        Call::Rename { .. } => 5,
        Call::List { .. } => 6,
        Call::Open { .. } => 7,
        Call::Close { .. } => 8,
        Call::Read { .. } => 9,
        Call::Write { .. } => 10,
        Call::Append { .. } => 11,
        Call::Truncate { .. } => 12,
        Call::Stat { .. } => 13,
        Call::StatFs => 14,
        Call::Fsync { .. } => 15,
        Call::Fdatasync { .. } => 16,
        Call::Sync => 17,
    }
}

/// Blocks that bytes from an offset on lie in.
const fn blocks(offset: u64, length: u64) -> u64 {
    if length == 0 { 0 } else { (offset + length).div_ceil(BLOCK_BYTES) - offset / BLOCK_BYTES }
}

/// Calls of a run, what they moved, and the host's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallCounts {
    calls: [u64; 18],
    /// Host time of all lanes.
    pub(super) host: Nanos,
    /// Bytes that reads gave, and that writes and appends brought.
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// Blocks that reads, and writes and appends, lie in, each call by itself.
    pub(super) read_blocks: u64,
    pub(super) written_blocks: u64,
}

impl CallCounts {
    /// A call is made.
    pub(super) fn add(&mut self, call: &Call) {
        self.calls[place(call)] += 1;
    }

    /// A call of some work has been answered.
    pub(super) fn moved(&mut self, work: &Work, reply: &Reply) {
        let Work::Move { way, offset, left, .. } = work else { return };
        let asked = (*left).min(ssdlab_fs::call::MOST_BYTES.into());
        match (way, reply) {
            (Way::Read, Reply::Read { length, .. }) => {
                self.read_bytes += u64::from(*length);
                self.read_blocks += blocks(*offset, (*length).into());
            }
            (Way::Append, Reply::Appended { offset }) => {
                self.written_bytes += asked;
                self.written_blocks += blocks(*offset, asked);
            }
            (Way::Write, _) => {
                self.written_bytes += asked;
                self.written_blocks += blocks(*offset, asked);
            }
            _ => {}
        }
    }

    /// Calls by name, those that were made.
    pub(super) fn by_name(&self) -> BTreeMap<String, u64> {
        let made = NAMES.iter().zip(self.calls).filter(|(_, count)| *count > 0);
        made.map(|(name, count)| ((*name).to_string(), count)).collect()
    }
}

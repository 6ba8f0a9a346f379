//! Tasks: calls and steps of jobs that may have to wait, each with a number.

use std::collections::VecDeque;

use ssdlab_base::Nanos;

use crate::call::{Call, Errno, FileId, Reply};
use crate::core::cache::Key;
use crate::restore::Step;

/// Where a call is that has more than one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not taken effect.
    Begin,
    /// Pages are to be sent: those of a file from a block to another, or all.
    Place(Pages),
    /// Writes up to this number are to end.
    Written(u64, Pages),
    /// Nodes of a file are to be sent.
    Nodes(FileId),
    /// The file's pages that were written in place, up to this count of writes in place, are to be flushed. Then come nodes on their way.
    Flushed(u64, u32),
    /// Writes up to this number are to end, which have the nodes of a file.
    Durable(u64, u32),
    /// A check-point is to be durable.
    Checkpoint(Option<u32>),
}

/// Pages of a call with stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    /// The file; `None` for all files.
    pub(crate) file: Option<FileId>,
    /// From this block on.
    pub(crate) from: u32,
    /// Before this one.
    pub(crate) end: u32,
    /// They leave the cache.
    pub(crate) is_direct: bool,
    /// A check-point follows.
    pub(crate) then_checkpoint: bool,
}

/// What a task does.
#[derive(Debug)]
pub(crate) enum Work {
    Call(Box<Calling>),
    /// Frees the blocks of an inode.
    Free(u32),
    /// Moves what is valid in a segment, from a block of it on.
    Clean {
        segment: u32,
        next: u32,
    },
    /// Gets ready the segment that a log writes again next.
    Thread {
        log: u8,
        segment: u32,
    },
    /// Gets ready what a check-point writes of segments of the map that it cleans.
    Checkpoint,
    /// Goes on with files that a mount found behind the check-point, in this order.
    Restore(VecDeque<Step>),
}

/// A call on its way.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) call: Call,
    pub(crate) tag: u32,
    pub(crate) submitted: Nanos,
    pub(crate) stage: Stage,
    /// Number of its apply, when it has taken effect.
    pub(crate) order: Option<u64>,
    pub(crate) result: Result<Reply, Errno>,
    /// It has waited for free segments, and for write-out.
    pub(crate) has_waited: [bool; 2],
}

/// A task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) work: Work,
    /// What it has loaded stays until it ends.
    pub(crate) pins: Vec<Key>,
    /// What it could not load.
    pub(crate) failed: Vec<Key>,
    /// Loads that it waits for.
    pub(crate) waits: u32,
}

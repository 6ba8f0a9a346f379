//! Between a transport and what it serves.

use std::sync::Arc;

use ssdlab_base::command_sets::segments::{Segment, SegmentShape};
use ssdlab_base::{Refusal, Request};

/// A client's command on its way to a target.
///
/// The transport has checked that it lies within [`Target::bytes`]; sectors are of 512 bytes. The request's `at` and
/// `tag` are the target's to fill in.
pub struct Command {
    /// What is asked: operation, FUA, sectors.
    pub request: Request,
    /// A write's bytes, as many as the request says; empty for everything else.
    pub data: Vec<u8>,
    /// The transport's own, given back with the answer.
    pub cookie: u64,
    /// Where the answer goes.
    pub sink: Arc<dyn Sink>,
}

/// What became of a command.
pub struct Answer {
    /// The command's cookie.
    pub cookie: u64,
    /// A read's bytes, empty for everything else; or why the command failed.
    pub result: Result<Vec<u8>, Failure>,
}

/// Why a target could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The drive could not do it: an uncorrectable read, a failed program.
    #[error("input/output error")]
    Io,
    /// There is no space for the drive's image.
    #[error("no space left for the image")]
    NoSpace,
    /// The drive has no spare blocks left and takes no more writes.
    #[error("the drive is read-only")]
    ReadOnly,
    /// The request is not one that the target takes.
    #[error("invalid request")]
    Invalid,
    /// The target refused it for a reason of its command set.
    #[error("refused: {0}")]
    Refused(&'static str),
    /// The target has no such operation.
    #[error("not supported")]
    Unsupported,
    /// The target is going down.
    #[error("shutting down")]
    Shutdown,
}

/// Takes the answers of one connection.
pub trait Sink: Send + Sync {
    /// Takes answers, in any order and from any thread, also from within [`Target::submit`]. It must not block: what
    /// the client does not take yet is the sink's to keep.
    fn answers(&self, answers: &mut Vec<Answer>);
}

/// A run of sectors that are all mapped or all unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes.
    pub bytes: u64,
    /// Whether the drive holds data there; what is unmapped reads as zeroes, unless [`Appends::zeroes`] says otherwise.
    pub mapped: bool,
}

/// The rules of a target that takes appends to segments and no other writes (the command set `segments`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appends {
    /// Its segments.
    pub shape: SegmentShape,
    /// Sectors that are not written read as zeroes. Otherwise a read of them is refused.
    pub zeroes: bool,
}

/// What can be served.
pub trait Target: Send + Sync {
    /// Capacity in bytes, a multiple of 512.
    fn bytes(&self) -> u64;

    /// The unit in which the drive likes to be written, in bytes: a power of two, at least 512.
    fn preferred_bytes(&self) -> u32;

    /// One line about what is served.
    fn description(&self) -> String;

    /// Takes commands, in order; the vector is empty afterwards. Every command is answered exactly once.
    fn submit(&self, commands: &mut Vec<Command>);

    /// What is mapped between two byte offsets, from the first on: at least one extent, at most `limit`, together not
    /// longer than the range.
    fn extents(&self, offset: u64, bytes: u64, limit: usize) -> Vec<Extent>;

    /// Whether it takes trims and writes of zeroes.
    fn trims(&self) -> bool {
        true
    }

    /// The rules of a target that takes appends to segments alone; `None` of a block device.
    fn appends(&self) -> Option<Appends> {
        None
    }

    /// The segments of such a target from the number `first` on, at most `count`.
    fn segments(&self, first: u64, count: u64) -> Vec<Segment> {
        let _ = (first, count);
        Vec::new()
    }

    /// Counts a request that breaks a rule of such a target and that a transport cannot pass on, because it is not whole
    /// sectors.
    fn count_refused(&self, reason: Refusal) {
        let _ = reason;
    }
}

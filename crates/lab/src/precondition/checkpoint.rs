//! Preconditioning that can be interrupted: where it is, and when that is written down.
//!
//! A checkpoint is the drive between two requests, bit for bit, and the position of its preconditioning. The next run that
//! wants the same drive restores both, lets the workload draw the requests of its pass up to there once more without
//! sending them, and goes on; what it ends with is what an uninterrupted run ends with.
//!
//! Checkpoints follow each other at [`SnapshotCache::checkpoint_every`], or later if writing one takes long: not more than
//! one part in [`SHARE`] of the time goes into them. A new one replaces the one before by renaming.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use ssdlab_base::format_size;
use ssdlab_device::Drive;

use super::{Mark, Steadiness};
use crate::snapshot::{Identity, SnapshotCache};

/// Between checkpoints lies at least so many times what the last one took.
const SHARE: u32 = 25;

/// Work of this long is worth a checkpoint when the run is stopped, even if none is due.
const WORTH_AT_STOP: Duration = Duration::from_secs(5);

/// Where preconditioning is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Sectors filled, while the drive is being filled; nothing afterwards, and for ages that do not begin so.
    pub(crate) filled: Option<u64>,
    /// Turns of the replay loop in the current pass of a workload.
    pub(crate) turns: u64,
    pub(crate) written_bytes: u64,
    /// Pages programmed and copied back so far.
    pub(crate) programmed: u64,
    /// Requests since the last write.
    pub(crate) unsent_reads: u64,
    pub(crate) search: Option<Search>,
}

impl Position {
    /// What a run says that goes on from here, as a sentence.
    pub(crate) fn resumed(&self) -> String {
        format!("preconditioning goes on from a checkpoint: {} were written before", format_size(self.written_bytes))
    }
}

/// The search for the steady state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Search {
    pub(crate) steadiness: Steadiness,
    /// The pass, from 1.
    pub(crate) pass: u64,
    /// Counters at the start of the search, of the window and of the pass.
    pub(crate) start: Mark,
    pub(crate) window: Mark,
    pub(crate) pass_start: Mark,
}

/// Writes checkpoints into the cache.
pub(crate) struct Keeper<'a> {
    cache: &'a SnapshotCache,
    identity: Identity<'a>,
    since: Instant,
    every: Duration,
    /// Why there are no more, as a sentence.
    off: Option<String>,
    /// Why the last one was put off.
    later: Option<String>,
    /// Bytes written at the last checkpoint of this run or the one it began with.
    kept_bytes: Option<u64>,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(cache: &'a SnapshotCache, identity: Identity<'a>, resumed: Option<&Position>) -> Keeper<'a> {
        let kept_bytes = resumed.map(|position| position.written_bytes);
        Keeper {
            cache,
            identity,
            since: Instant::now(),
            every: cache.checkpoint_interval(),
            off: None,
            later: None,
            kept_bytes,
        }
    }

    /// Whether a checkpoint should be written now; `stopped` says that there will be no other occasion.
    pub(crate) fn is_due(&self, stopped: bool) -> bool {
        let after = if stopped { self.every.min(WORTH_AT_STOP) } else { self.every };
        self.off.is_none() && self.since.elapsed() >= after
    }

    /// Writes one. What goes wrong ends the checkpoints and not the run.
    pub(crate) fn keep(&mut self, drive: &Drive, position: &Position) {
        let began = Instant::now();
        match self.cache.keep_checkpoint(&self.identity, drive, position) {
            Ok(()) => {
                self.kept_bytes = Some(position.written_bytes);
                self.later = None;
            }
            // It stays due.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.later = Some(error.to_string());
                return;
            }
            Err(error) => self.off = Some(error.to_string()),
        }
        self.every = self.cache.checkpoint_interval().max(began.elapsed() * SHARE);
        self.since = Instant::now();
    }

    /// Checkpoints end here: the requests of this pass cannot be drawn again as they were.
    pub(crate) fn give_up(&mut self, why: &str) {
        self.off.get_or_insert_with(|| why.to_string());
    }

    /// What a stopped run leaves, as a sentence.
    pub(crate) fn left(&self) -> String {
        match (self.kept_bytes, self.off.as_ref().or(self.later.as_ref())) {
            (Some(bytes), _) => format!(
                "preconditioning was stopped; its first {} written are kept, and the same command goes on from there",
                format_size(bytes)
            ),
            (None, Some(why)) => format!("preconditioning was stopped and nothing of it is kept: {why}"),
            (None, None) => {
                "preconditioning was stopped before its first checkpoint: nothing of it is kept, and the same command \
                 begins anew"
                    .to_string()
            }
        }
    }
}

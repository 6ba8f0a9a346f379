//! The state of a die, of its queues, and of a channel.

use ssdlab_base::Nanos;

use super::operation::NONE;
use crate::DieId;
use crate::schedule::CLASSES;

/// Most planes a die may have: its non-empty queues are bits of one word.
pub const MAX_PLANES_PER_DIE: u32 = 12;

const _: () = assert!(CLASSES * MAX_PLANES_PER_DIE as usize <= 64, "a die's queues are the bits of one word");

#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) head: u32,
    pub(super) tail: u32,
    /// The head's place in the order of arrival, or `NOT_READY`: what choosing looks at, without going to the head.
    pub(super) order: u64,
}

pub(super) const NOT_READY: u64 = u64::MAX;

pub(super) const EMPTY: Queue = Queue { head: NONE, tail: NONE, order: NOT_READY };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// The running group waits for the channel, for its commands and data.
    AwaitChannel,
    /// The array is (or, from `array_start` on, will be) busy until `until`.
    Array,
    /// Read data waits for the channel.
    AwaitDataOut,
    /// Read data is on the channel until `until`.
    DataOut,
    /// The program before the running one is done; the running one's data, that was staged, is on the channel until `until`.
    AwaitStaged,
    /// The array stops for a read at `until`.
    Suspending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Staged {
    Waiting,
    Transferring { until: Nanos },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Die {
    pub(super) channel: u32,
    /// Which queues hold something: bit `class * planes + plane`.
    pub(super) waiting: u64,
    /// Operations queued, not counting the running group.
    pub(super) queued: u32,
    pub(super) phase: Phase,
    pub(super) running: u32,
    pub(super) array_start: Nanos,
    pub(super) until: Nanos,
    /// Channel time the die is waiting for, and the next die waiting for the same channel.
    pub(super) wants: Nanos,
    pub(super) next_waiter: DieId,
    pub(super) staged: u32,
    pub(super) staged_state: Staged,
    pub(super) suspended: u32,
    /// What a suspended operation has still to do, without the time to resume.
    pub(super) remaining: Nanos,
    /// Host reads that the running or suspended program or erase has given way to.
    pub(super) reads_let_pass: u32,
    /// It runs a checked copyback whose page has not gone through the ECC.
    pub(super) copy_unchecked: bool,
    /// The queue that had the last turn.
    pub(super) last_queue: u32,
    pub(super) busy: Nanos,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) free_at: Nanos,
    /// The dies that wait for it, in order.
    pub(super) head: DieId,
    pub(super) tail: DieId,
    /// The last waiting die that has only command cycles to send; these go before data.
    pub(super) last_command: DieId,
    pub(super) busy: Nanos,
}

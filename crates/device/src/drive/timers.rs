//! What happens at a time of the controller's own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ssdlab_base::Nanos;

use super::Timer;

/// What happens at a time of the controller's own.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Nanos, u64, Timer)>>,
    serial: u64,
}

impl Timers {
    /// Of timers for one time the first set is the first to come.
    pub(super) fn set(&mut self, at: Nanos, timer: Timer) {
        self.serial += 1;
        self.heap.push(Reverse((at, self.serial, timer)));
    }

    /// When the next one is due.
    #[inline]
    pub(super) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next one out if it is due at `at`.
    #[inline]
    pub(super) fn take_due(&mut self, at: Nanos) -> Option<Timer> {
        if self.next() != Some(at) {
            return None;
        }
        debug_assert!(self.next().is_none_or(|next| next >= at), "a timer is in the past of {at}");
        self.heap.pop().map(|Reverse((.., timer))| timer)
    }
}

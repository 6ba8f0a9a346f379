//! Flushes: what was dirty when a flush came goes down, what is on its way ends, and then the flush goes down.

use ssdlab_base::{Nanos, Op, Request};

use super::{PageCache, Purpose};
use crate::seeded::{LayerBug, seeded};

/// A flush before it goes down.
pub(super) struct Flush {
    slot: u32,
    /// When it came.
    at: Nanos,
    /// Nothing is dirty that was dirty then: the newest write-back that it waits for.
    last_job: Option<u64>,
}

impl PageCache {
    /// A flush comes.
    pub(super) fn flush(&mut self, slot: u32) {
        if !self.a_flush_waits_for_dirty() {
            // It writes from the first block on, as fsync does.
            self.cursor = 0;
        }
        self.flushes.push(Flush { slot, at: self.io.array.now(), last_job: None });
    }

    /// Whether a flush waits for dirty blocks to go down.
    pub(super) fn a_flush_waits_for_dirty(&self) -> bool {
        self.flushes.iter().any(|flush| flush.last_job.is_none() && self.dirty_until(flush.at))
    }

    /// Sends the flushes below that wait for nothing any more.
    pub(super) fn advance_flushes(&mut self) {
        if let Some(status) = self.refuses {
            for flush in std::mem::take(&mut self.flushes) {
                self.io.answer(flush.slot, status);
            }
            return;
        }
        let mut flushes = std::mem::take(&mut self.flushes);
        flushes.retain_mut(|flush| {
            if flush.last_job.is_none() && !self.dirty_until(flush.at) {
                flush.last_job = Some(self.newest_job);
            }
            let Some(last) = flush.last_job else { return true };
            let in_flight = self.in_flight.first().is_some_and(|first| *first <= last);
            if in_flight && !seeded(LayerBug::FlushBeforeWriteBack) {
                return true;
            }
            // A copy that did not get down is dirty again, for as long as before.
            if self.dirty_until(flush.at) {
                flush.last_job = None;
                return true;
            }
            let request = self.io.command(flush.slot).request;
            let below = Request { fua: request.fua, queue: request.queue, ..Request::new(Op::Flush, 0, 0) };
            self.io.array.send(0, below, &[], Purpose::Flush(flush.slot));
            false
        });
        self.flushes = flushes;
    }
}

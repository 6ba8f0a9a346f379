//! In-place updates (F2FS, `ipu_policy`): a changed page of a file is written to the place that it has. No block is taken, and no node
//! changes.
//!
//! A page goes to its log all the same where its place cannot be overwritten now ([`Core::may_overwrite`]). An fsync waits for writes in
//! place, and flushes where neither nodes nor a check-point do that for it.

use rustc_hash::FxHashMap;
use ssdlab_base::{Op, Request};

use crate::config::InPlace;
use crate::core::Core;
use crate::core::cache::{Of, Page};
use crate::core::log::Placed;
use crate::format::{LOST, NOWHERE};
use crate::log_structured::{LogStructured, Purpose};

/// Share of the space of files, in percent, above which pages are written in place (`min_ipu_util`).
const MOST_USED: u64 = 70;

impl Core {
    /// Whether an fsync writes no node of a file whose pages keep their places. With fsyncs that are check-points, each write leads to one.
    pub(crate) fn spares_nodes(&self) -> bool {
        self.options.in_place != InPlace::Off && self.rolling.is_on()
    }

    /// Whether the policy wants pages to be written in place now.
    fn updates_in_place(&self) -> bool {
        let is_full =
            || self.space.used.saturating_mul(100) > u64::from(self.superblock.user_blocks).saturating_mul(MOST_USED);
        match self.options.in_place {
            InPlace::Off => false,
            InPlace::Always => true,
            InPlace::Short => self.is_short_of_segments(),
            InPlace::Full => is_full(),
            InPlace::ShortAndFull => self.is_short_of_segments() && is_full(),
        }
    }

    /// Whether a dirty page of a file is written to the place that it has. Not where
    ///
    /// - a write of the page is on its way, which this one could overtake,
    /// - cleaning moves the page, or has to empty its segment,
    /// - the place is not valid any more, or a log is about to write its segment again,
    /// - the next check-point would find no segment for the inode, which the page may make dirty with its size.
    pub(crate) fn may_overwrite(&self, page: &Page) -> bool {
        if !self.updates_in_place() || page.writing != 0 || page.is_moved || matches!(page.address, NOWHERE | LOST) {
            return false;
        }
        let segment = self.space.segment_of(page.address);
        let is_thread = || self.logs.threads.iter().flatten().any(|thread| thread.segment == segment);
        self.space.is_valid(page.address)
            && self.cleaning != Some(segment)
            && !self.cleaned.contains(&segment)
            && !is_thread()
            && self.free_segments() > self.checkpoint_segments(0)
    }
}

/// Pages that were written in place, as far as a drive with a write cache may still lose them.
#[derive(Debug, Default)]
pub(crate) struct InPlaceWrites {
    /// Writes in place that have ended, and those of them that are flushed.
    ended: u64,
    flushed: u64,
    /// Inodes with such writes that are not flushed: the last.
    inodes: FxHashMap<u32, u64>,
    /// Tasks that wait for a flush. One is on its way where there are any.
    waiting: Vec<u32>,
}

impl InPlaceWrites {
    /// Writes in place that have ended.
    pub(crate) const fn ended(&self) -> u64 {
        self.ended
    }

    /// A command with pages in place has ended well.
    pub(crate) fn end(&mut self, placed: &[Placed]) {
        self.ended += 1;
        for one in placed {
            if let Of::Page { inode, .. } = one.page.of() {
                self.inodes.insert(inode, self.ended);
            }
        }
    }

    /// So many of them are flushed.
    pub(crate) fn are_flushed(&mut self, writes: u64) {
        if writes > self.flushed {
            self.flushed = writes;
            self.inodes.retain(|_, last| *last > writes);
        }
    }

    pub(crate) const fn is_flushed(&self, writes: u64) -> bool {
        writes <= self.flushed
    }

    /// The last write in place of an inode, or of all, that is not flushed; 0 if there is none.
    pub(crate) fn unflushed(&self, inode: Option<u32>) -> u64 {
        match inode {
            Some(number) => self.inodes.get(&number).copied().unwrap_or(0),
            None if self.inodes.is_empty() => 0,
            None => self.ended,
        }
    }
}

impl LogStructured {
    /// A task waits for a flush. That on its way may be too early for it: the task looks again.
    pub(crate) fn flush_in_place(&mut self, task: u32) {
        if self.in_place.waiting.is_empty() {
            let purpose = Purpose::FlushInPlace(self.in_place.ended);
            self.below.send(Request::new(Op::Flush, 0, 0), &[], purpose);
        }
        self.in_place.waiting.push(task);
    }

    /// A flush for tasks has ended.
    pub(crate) fn in_place_flush_ended(&mut self) {
        self.runnable.extend(std::mem::take(&mut self.in_place.waiting));
    }
}

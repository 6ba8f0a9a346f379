//! Write-out: dirty pages of files go to their logs, in batches of a segment when nothing forces less (AMF, section 3.4).

use crate::core::Core;
use crate::core::cache::{Body, Key};
use crate::core::log::{Kind, log_of};
use crate::log_structured::LogStructured;

/// Segments that only cleaning may take.
pub(crate) const FOR_CLEANING: u32 = 5;

/// Pages in flight for write-out, in segments.
const SEGMENTS_IN_FLIGHT: usize = 2;

/// Pages of a file that are looked at together.
const LOOKED_AT: usize = 256;

impl Core {
    /// Whether a page may go to its log, so that the next check-point still finds segments for all that is dirty then.
    fn may_place(&self, is_moved: bool, for_cleaning: bool) -> bool {
        let log = log_of(if is_moved { Kind::MovedData } else { Kind::Data }, self.superblock.logs);
        if !for_cleaning && self.waits_for_thread(log) {
            return false;
        }
        let takes = u32::from(self.logs.room(log) == 0);
        let for_nodes = 1;
        let kept = if for_cleaning { 0 } else { FOR_CLEANING };
        self.free_segments() >= takes + kept + for_nodes + self.checkpoint_segments(0)
    }

    /// Sends dirty pages of a file from a block to another, `most` at most. How many; and whether room was lacking.
    pub(crate) fn place_pages(&mut self, number: u32, from: u32, end: u32, most: usize) -> (usize, bool) {
        self.place(number, from..end, most, false)
    }

    /// Sends dirty pages of a file; those that cleaning needs on the drive may take its segments.
    fn place(&mut self, number: u32, range: std::ops::Range<u32>, most: usize, for_cleaning: bool) -> (usize, bool) {
        let (mut placed, mut next) = (0, range.start);
        while placed < most {
            // Placing changes what the file has of pages, and may end at once: few are looked at together.
            let Some(file) = self.files.get(&number) else { break };
            let blocks: Vec<u32> = file.pages.range(next..range.end).take(most.min(LOOKED_AT)).copied().collect();
            let Some(last) = blocks.last() else { break };
            next = last + 1;
            for block in blocks {
                let key = Key::page(number, block);
                let Some(entry) = self.cache.entry(key).filter(|entry| entry.is_dirty) else { continue };
                let Body::Page(page) = &entry.body else { continue };
                let is_moved = page.is_moved;
                if !for_cleaning && self.may_overwrite(page) {
                    self.overwrite_page(number, block);
                } else if !self.may_place(is_moved, for_cleaning || is_moved) || !self.place_page(number, block) {
                    return (placed, true);
                }
                if let Some(file) = self.files.get_mut(&number) {
                    file.next_out = block + 1;
                }
                placed += 1;
                if placed == most {
                    break;
                }
            }
        }
        (placed, false)
    }

    /// Sends dirty pages of a file, `most` at most, from behind the last one that was sent so, and round to it again (as Linux does, with
    /// `range_cyclic`): who overwrites a file at random finds no part of it written out more often than others.
    fn place_in_turn(&mut self, number: u32, most: usize) -> (usize, bool) {
        let start = self.files.get(&number).map_or(0, |file| file.next_out);
        let (mut placed, mut is_full) = self.place(number, start..u32::MAX, most, false);
        if placed < most && !is_full && start > 0 {
            let (more, full) = self.place(number, 0..start, most - placed, false);
            (placed, is_full) = (placed + more, full);
        }
        (placed, is_full)
    }

    /// Sends what waits of the logs of files.
    pub(crate) fn flush_data(&mut self) {
        for kind in [Kind::Data, Kind::MovedData] {
            let log = log_of(kind, self.superblock.logs);
            self.logs.flush(&mut self.space, log);
        }
    }
}

impl LogStructured {
    /// Sends dirty pages where too many are dirty, or they are too old; true if any.
    pub(crate) fn write_out(&mut self) -> bool {
        if self.core.read_only.is_some() || self.core.dirty_pages == 0 {
            return false;
        }
        let options = &self.core.options;
        let background = options.background_pages().min(options.limit_pages() / 2);
        let data = self.core.superblock.data_blocks() as usize;
        let in_flight = SEGMENTS_IN_FLIGHT * data;
        let mut any = false;
        if self.core.dirty_pages > background && self.core.writing_pages < in_flight {
            let room = self.core.logs.room(log_of(Kind::Data, self.core.superblock.logs)) as usize;
            let batch = if room == 0 { data } else { room };
            let mut left = (self.core.dirty_pages - background).max(batch).min(in_flight);
            while left > 0
                && let Some((_, number)) = self.core.dirty_files.first().copied()
            {
                let (placed, is_full) = self.core.place_in_turn(number, left);
                any |= placed > 0;
                left -= placed;
                self.wants_room |= is_full;
                if is_full || placed == 0 {
                    break;
                }
            }
        }
        if let Some(before) = self.expired.take() {
            while let Some((since, number)) = self.core.dirty_files.first().copied()
                && since <= before
            {
                let (placed, is_full) = self.core.place_pages(number, 0, u32::MAX, usize::MAX);
                any |= placed > 0;
                self.wants_room |= is_full;
                if is_full || placed == 0 {
                    self.looked_in_vain = true;
                    break;
                }
            }
        }
        if any {
            self.went_on();
            self.core.flush_data();
            self.send_outbox();
        }
        any
    }

    /// Puts pages that cleaning has moved into their log; true if any. They are sent together, since each command ends with a whole write
    /// unit: [`LogStructured::send_moved`].
    pub(crate) fn place_moved(&mut self) -> bool {
        let mut any = false;
        while let Some((number, block)) = self.moved.front().copied() {
            let (placed, is_full) = self.core.place(number, block..block + 1, 1, true);
            if is_full {
                self.wants_room = true;
                break;
            }
            any |= placed > 0;
            self.moved.pop_front();
        }
        self.has_unsent |= any;
        any
    }

    /// Sends what cleaning has put into its log, when no segment is being cleaned; true if any.
    pub(crate) fn send_moved(&mut self) -> bool {
        self.core.cleaning.is_none() && self.send_unsent()
    }

    /// Sends what cleaning has put into its log; true if any.
    pub(crate) fn send_unsent(&mut self) -> bool {
        if !std::mem::take(&mut self.has_unsent) {
            return false;
        }
        self.core.flush_data();
        self.send_outbox();
        true
    }
}

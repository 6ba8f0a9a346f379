//! What is in memory of a file beside its inode: opens, dirty pages, and the size that a check-point may give it.
//!
//! A check-point must not hold a size that is ahead of the data: after a crash the bytes between would be zeroes that no call wrote.
//! So it holds the size as it was after some call, all of whose pages and those before are on the drive. [`File::durable_size`] finds it.

use std::collections::{BTreeMap, BTreeSet};

use super::Core;
use crate::call::BLOCK_BYTES;
use crate::seeded::{FsBug, seeded};

/// Most streams of a file that are known at a time.
const STREAMS: usize = 16;

/// How many times a file becomes shorter before those are forgotten that nothing needs any more.
const SHORTENINGS: usize = 64;

/// Pages of the first window of read-ahead, where it may take so many.
const FIRST: u32 = 4;

/// A stream of reads that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    /// The page behind the last read.
    next: u32,
    /// Pages that are read ahead.
    window: u32,
    /// The page behind the last one that was read ahead.
    end: u32,
}

impl Stream {
    /// Pages that are read ahead now behind a read of a file of so many, where a window has `most`; `None` while half of the last one is
    /// left.
    pub(crate) fn window(
        &mut self,
        read: &std::ops::Range<u32>,
        most: u32,
        pages: u32,
    ) -> Option<std::ops::Range<u32>> {
        self.next = read.end;
        self.end = self.end.max(read.end);
        if self.end - read.end > self.window / 2 {
            return None;
        }
        self.window = (self.window * 2).clamp(FIRST.min(most), most);
        let (from, end) = (self.end, (read.end + self.window).min(pages));
        self.end = end.max(from);
        Some(from..end)
    }
}

/// How a file is being read. Calls do not say which open they belong to, so a stream is known by where it goes on: the one that was
/// used last stands first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadAhead {
    streams: Vec<Stream>,
}

impl ReadAhead {
    /// The stream that a read of these pages belongs to; `None` if it begins one within the file.
    pub(crate) fn stream(&mut self, range: &std::ops::Range<u32>) -> Option<&mut Stream> {
        // Reads of parts of a page stay on it.
        let follows = |stream: &Stream| range.start == stream.next || range.start + 1 == stream.next;
        match self.streams.iter().position(follows) {
            Some(place) => {
                self.streams[..=place].rotate_right(1);
                self.streams.first_mut()
            }
            None => {
                self.streams.truncate(STREAMS - 1);
                self.streams.insert(0, Stream { next: range.end, window: 0, end: range.end });
                // Who begins at the start is taken to go on.
                if range.start == 0 { self.streams.first_mut() } else { None }
            }
        }
    }
}

/// A file that is open, or has pages that are dirty or being written.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Opens without a close.
    pub(crate) opens: u32,
    /// Pages that are dirty or being written.
    pub(crate) pages: BTreeSet<u32>,
    /// Dirty ones of them.
    pub(crate) dirty: usize,
    /// The page behind the last one that was sent: where write-out goes on.
    pub(crate) next_out: u32,
    /// Pages to which space is promised.
    pub(crate) new_pages: u64,
    /// When its first dirty page became so.
    pub(crate) dirty_since: Option<ssdlab_base::Nanos>,
    /// Sizes after calls, from which a check-point chooses.
    sizes: BTreeSet<u64>,
    /// The size that the last check-point holds, or that needs no page any more.
    durable: u64,
    /// The newest size that a page goes with: it stays among the sizes.
    needed: u64,
    /// The last check-point holds a size before the last.
    pub(crate) is_behind: bool,
    /// It has blocks behind that size, which are freed after a crash.
    pub(crate) has_more: bool,
    /// When the file became shorter: the last write of a page that was sent before, and the least size that the file had since. Later
    /// ones have larger sizes.
    shortenings: Vec<(u32, u64)>,
    /// By page and write: the size that a write goes with whose page was changed and sent again before it ended.
    sent_again: BTreeMap<(u32, u32), u64>,
    pub(crate) read_ahead: ReadAhead,
}

impl File {
    /// Whether nothing is to be kept of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.opens == 0 && self.pages.is_empty()
    }

    /// Pages begin to be dirty, where the size is `size`.
    fn begin(&mut self, size: u64) {
        if self.pages.is_empty() {
            (self.durable, self.needed) = (size, size);
            self.shortenings.clear();
            self.sizes.clear();
        }
    }

    /// A call made the file longer.
    fn grow(&mut self, size: u64) {
        // Of the sizes within one page the last is enough, unless a page goes with another.
        if let Some(last) = self.sizes.last().copied()
            && last != self.needed
            && last.div_ceil(BLOCK_BYTES) == size.div_ceil(BLOCK_BYTES)
        {
            self.sizes.remove(&last);
        }
        self.sizes.insert(size);
    }

    /// A call made the file shorter; `last` is the last write of a page that was sent before.
    fn shrink(&mut self, size: u64, last: u32) {
        while self.shortenings.pop_if(|(_, least)| *least >= size).is_some() {}
        self.shortenings.push((last, size));
        self.sizes.split_off(&size);
        self.sizes.insert(size);
        self.durable = self.durable.min(size);
        self.needed = self.needed.min(size);
    }

    /// The size that a page goes with, whose write of a number was sent when the size was `size`. What lies before the place where the
    /// file was cut since is on the drive.
    pub(crate) fn covered(&self, write: u32, size: u64) -> u64 {
        // The first one behind the write has the least size of all behind it.
        let behind = self.shortenings.partition_point(|(last, _)| *last < write);
        self.shortenings.get(behind).map_or(size, |(_, least)| size.min(*least))
    }

    /// Forgets when the file became shorter before this write was sent: none that was sent before is on its way.
    fn forget_before(&mut self, write: u32) {
        self.shortenings.retain(|(last, _)| *last >= write);
    }

    /// A page goes with the size that the file has now: it is sent, or changed after it was.
    pub(crate) fn needs(&mut self, size: u64) {
        self.needed = size;
    }

    /// A page is sent again whose write before goes with a size, and has not ended.
    pub(crate) fn sends_again(&mut self, block: u32, before: u32, goes_with: u64) {
        self.sent_again.insert((block, before), goes_with);
    }

    /// A write of a page has ended. The size that it goes with, if the page was sent again meanwhile.
    pub(crate) fn write_ends(&mut self, block: u32, write: u32) -> Option<u64> {
        self.sent_again.remove(&(block, write))
    }
}

impl Core {
    /// What is in memory of a file; it comes into being with this.
    pub(crate) fn file_mut(&mut self, number: u32) -> &mut File {
        self.files.entry(number).or_default()
    }

    /// Forgets a file that is neither open nor has anything in memory.
    pub(crate) fn drop_idle(&mut self, number: u32) {
        if self.files.get(&number).is_some_and(File::is_idle) {
            self.files.remove(&number);
        }
    }

    /// Pages of a file begin to be dirty now.
    pub(crate) fn begin_dirty(&mut self, number: u32) {
        let size = self.inode(number).size;
        self.file_mut(number).begin(size);
    }

    /// Sets the size of a file.
    pub(crate) fn set_size(&mut self, number: u32, size: u64) {
        let before = self.inode(number).size;
        let last = self.last_write_number();
        if let Some(file) = self.files.get_mut(&number)
            && !file.pages.is_empty()
        {
            if size < before {
                file.shrink(size, last);
                if file.shortenings.len().is_multiple_of(SHORTENINGS) {
                    let oldest = self.oldest_write(number);
                    self.file_mut(number).forget_before(oldest);
                }
            } else {
                file.grow(size);
            }
        }
        if size < before
            && let Some(page) = self.cache.page_mut(number, (size / BLOCK_BYTES) as u32)
        {
            page.covers = page.covers.min(size);
        }
        self.inode_mut(number).size = size;
    }

    /// The oldest write of a file's pages that has not ended; the next one if all have.
    fn oldest_write(&self, number: u32) -> u32 {
        let Some(file) = self.files.get(&number) else { return self.next_write };
        let newest = file.pages.iter().filter_map(|page| self.cache.page(number, *page).map(|page| page.writing));
        let before = file.sent_again.keys().map(|(_, write)| *write);
        newest.chain(before).filter(|write| *write > 0).min().unwrap_or(self.next_write)
    }

    /// The size of a file for a check-point that is made now.
    pub(crate) fn durable_size(&mut self, number: u32) -> u64 {
        let size = self.inode(number).size;
        if let Some(file) = self.files.get_mut(&number) {
            (file.is_behind, file.has_more) = (false, false);
        }
        let Some(file) = self.files.get(&number).filter(|file| !file.pages.is_empty()) else { return size };
        if seeded(FsBug::SizeAheadOfData) {
            return size;
        }
        let mut limit = u64::MAX;
        for page in file.pages.range((file.durable / BLOCK_BYTES) as u32..) {
            let first = u64::from(*page) * BLOCK_BYTES;
            if first >= limit {
                break;
            }
            let Some(page) = self.cache.page(number, *page) else { continue };
            if !page.is_moved {
                limit = limit.min(first.max(page.covers));
            }
        }
        let durable = match limit {
            u64::MAX => size,
            limit => file.durable.max(file.sizes.range(..=limit).next_back().copied().unwrap_or(0)),
        };
        let has_more = durable < size && self.inode(number).leads_behind(durable);
        let file = self.file_mut(number);
        file.durable = durable;
        (file.is_behind, file.has_more) = (durable < size, has_more);
        file.sizes = file.sizes.split_off(&durable);
        durable
    }
}

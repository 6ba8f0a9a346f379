//! What is in memory of a file beside its inode: opens, dirty pages, and the size that a commit may give it.
//!
//! A commit must not hold a size that is ahead of the data. It holds the size as it was after some call, all of whose pages and those before
//! are on the drive, or on their way: the commit waits for these.

use std::collections::BTreeSet;

use ssdlab_base::Nanos;

use super::core::Core;
use crate::call::BLOCK_BYTES;
use crate::core::cache::Key;
use crate::core::file::ReadAhead;
use crate::seeded::{FsBug, seeded};

/// A file that is open, or has pages that are dirty or being written.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Opens without a close.
    pub(crate) opens: u32,
    /// Dirty pages.
    pub(crate) pages: BTreeSet<u32>,
    /// Of these, the ones that limit the size that a commit may hold.
    pub(crate) growing: BTreeSet<u32>,
    /// Pages that are being written.
    pub(crate) writing: usize,
    /// Dirty pages that have no block yet.
    pub(crate) new_pages: u64,
    /// Blocks that are reserved for them, and for what says where they are.
    pub(crate) reserved: u64,
    /// When its first dirty page became so.
    pub(crate) dirty_since: Option<Nanos>,
    /// The page behind the last one that was sent: where write-out goes on.
    pub(crate) next_out: u32,
    /// The page behind the last one that got a block since a page became dirty.
    pub(crate) placed_end: u32,
    /// Sizes after calls, from which a commit chooses.
    sizes: BTreeSet<u64>,
    /// The size that the last commit holds, or that needs no page any more.
    durable: u64,
    /// The newest size that a page goes with: it stays among the sizes.
    needed: u64,
    pub(crate) read_ahead: ReadAhead,
}

impl File {
    /// Whether nothing is to be kept of it.
    fn is_idle(&self) -> bool {
        self.opens == 0 && self.pages.is_empty() && self.writing == 0 && self.reserved == 0
    }

    /// A page becomes dirty, where the size is `size`.
    pub(crate) fn begin(&mut self, size: u64) {
        if self.pages.is_empty() {
            (self.durable, self.placed_end) = (size, 0);
            self.sizes.clear();
        }
        self.needed = size;
    }

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

    fn shrink(&mut self, size: u64) {
        self.sizes.split_off(&size);
        self.sizes.insert(size);
        self.durable = self.durable.min(size);
        self.needed = self.needed.min(size);
        self.placed_end = self.placed_end.min(size.div_ceil(BLOCK_BYTES) as u32);
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

    /// Notes the size of a file whose inode gets it.
    pub(crate) fn note_size(&mut self, number: u32, before: u64, size: u64) {
        let Some(file) = self.files.get_mut(&number).filter(|file| !file.pages.is_empty()) else { return };
        if size >= before {
            return file.grow(size);
        }
        file.shrink(size);
        let tail = (size / BLOCK_BYTES) as u32;
        if file.pages.contains(&tail)
            && let Some(page) = self.cache.entry_mut(Key::page(number, tail)).and_then(super::pages::of_entry)
        {
            page.covers = page.covers.min(size);
            file.growing.insert(tail);
        }
    }

    /// The size that a commit of this instant may give a file, where it is not that of its inode; and whether the file has blocks behind it.
    pub(crate) fn durable_size(&mut self, number: u32) -> Option<(u64, bool)> {
        let file = self.files.get(&number).filter(|file| !file.growing.is_empty())?;
        let size = self.inode(number).size;
        if seeded(FsBug::SizeAheadOfData) {
            return None;
        }
        let limit = self.size_limit(number);
        let durable = file.durable.max(file.sizes.range(..=limit).next_back().copied().unwrap_or(0));
        let file = self.file_mut(number);
        file.durable = durable;
        file.sizes = file.sizes.split_off(&durable);
        let has_more = u64::from(file.placed_end) * BLOCK_BYTES > durable.next_multiple_of(BLOCK_BYTES);
        (durable < size).then_some((durable, has_more))
    }

    /// The size beyond which dirty pages of a file are needed.
    fn size_limit(&self, number: u32) -> u64 {
        let Some(file) = self.files.get(&number) else { return u64::MAX };
        let limit = |page: &u32| {
            let first = u64::from(*page) * BLOCK_BYTES;
            self.page(number, *page).map_or(u64::MAX, |found| first.max(found.covers))
        };
        file.growing.iter().map(limit).min().unwrap_or(u64::MAX)
    }
}

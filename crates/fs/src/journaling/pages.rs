//! Pages of files: how they become dirty, are sent, and become clean again.

use super::core::{Body, Core};
use crate::call::{BLOCK_BYTES, Content};
use crate::core::cache::{Entry, Key};

/// Bytes of a sector.
const SECTOR: usize = 512;

/// A block of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// What is kept of its sectors.
    pub(crate) cells: Box<[u8]>,
    /// Its block; 0 if it has none yet.
    pub(crate) address: u32,
    /// Number of the write command that it is in, or 0.
    pub(crate) writing: u64,
    /// While it is dirty: the size of the file that its block as it was sent last goes with.
    pub(crate) covers: u64,
    /// It is dirty and was never sent to its block.
    pub(crate) is_new: bool,
    /// It leaves the cache with its last pin: direct I/O brought it.
    pub(crate) is_passing: bool,
}

/// The page of an entry.
pub(crate) fn of_entry(entry: &mut Entry<Body>) -> Option<&mut Page> {
    match &mut entry.body {
        Body::Page(page) => Some(page),
        Body::Block(_) => None,
    }
}

impl Core {
    /// A page in the cache.
    pub(crate) fn page(&self, number: u32, block: u32) -> Option<&Page> {
        match &self.cache.entry(Key::page(number, block))?.body {
            Body::Page(page) => Some(page),
            Body::Block(_) => None,
        }
    }

    pub(crate) fn page_mut(&mut self, number: u32, block: u32) -> Option<&mut Page> {
        self.cache.entry_mut(Key::page(number, block)).and_then(of_entry)
    }

    /// A page is changed, where the file has size `size` so far. `is_new`: its block was never written.
    pub(crate) fn set_page_dirty(&mut self, number: u32, block: u32, size: u64, is_new: bool) {
        let key = Key::page(number, block);
        let entry = self.cache.entry_mut(key).expect("the page is there");
        if std::mem::replace(&mut entry.is_dirty, true) {
            return;
        }
        let delays = matches!(self.superblock.rules, super::Rules::Ext4);
        let page = of_entry(entry).expect("it is a page");
        page.covers = size;
        page.is_new = is_new;
        let lacks = delays && page.address == 0;
        let now = self.now;
        let file = self.files.entry(number).or_default();
        file.begin(size);
        let is_first = file.pages.is_empty();
        file.pages.insert(block);
        if size < (u64::from(block) + 1) * BLOCK_BYTES {
            file.growing.insert(block);
        }
        file.new_pages += u64::from(lacks);
        if file.dirty_since.is_none() {
            file.dirty_since = Some(now);
            self.dirty_files.insert((now, number));
        }
        self.dirty_pages += 1;
        self.metrics.dirtied_blocks += 1;
        if is_first {
            self.hold_inode(number, 1);
        }
    }

    /// The inode of a file with dirty pages stays at hand: it has the file's size.
    fn hold_inode(&mut self, number: u32, change: i32) {
        let (address, _) = self.superblock.place_of_inode(number);
        if let Some(entry) = self.cache.entry_mut(Key::block(address)) {
            entry.holds = entry.holds.saturating_add_signed(change);
        }
    }

    /// A page is not dirty any more: it is sent, or dropped.
    pub(crate) fn end_dirty(&mut self, number: u32, block: u32, lacked: bool) {
        self.dirty_pages -= 1;
        let file = self.files.entry(number).or_default();
        file.pages.remove(&block);
        file.growing.remove(&block);
        file.new_pages -= u64::from(lacked);
        if file.pages.is_empty() {
            if let Some(since) = file.dirty_since.take() {
                self.dirty_files.remove(&(since, number));
            }
            self.hold_inode(number, -1);
        }
    }

    /// A page is dropped with what it says.
    pub(crate) fn drop_page(&mut self, number: u32, block: u32) {
        let Some(entry) = self.cache.remove(Key::page(number, block)) else { return };
        let is_dirty = entry.is_dirty;
        let Body::Page(page) = entry.body else { return };
        if page.writing != 0 {
            self.end_writing(number);
        }
        if is_dirty {
            self.metrics.dropped_blocks += 1;
            self.end_dirty(number, block, self.delays() && page.address == 0);
        }
        self.drop_idle(number);
    }

    fn end_writing(&mut self, number: u32) {
        if let Some(file) = self.files.get_mut(&number) {
            file.writing -= 1;
        }
        self.drop_idle(number);
    }

    /// A write of a page has ended.
    pub(crate) fn page_is_written(&mut self, key: Key, write: u64) {
        let crate::core::cache::Of::Page { inode, index } = key.of() else { return };
        // It may have been dropped, and another have its name by now.
        let Some(page) = self.page_mut(inode, index).filter(|page| page.writing == write) else { return };
        page.writing = 0;
        self.end_writing(inode);
    }

    /// Writes into a page from a byte of it on.
    pub(crate) fn fill(&mut self, number: u32, block: u32, at: usize, length: usize, content: &Content, from: usize) {
        let cell = self.cell;
        let page = self.page_mut(number, block).expect("the page is there");
        let sectors = at / SECTOR..(at + length).div_ceil(SECTOR);
        match (cell, content) {
            (SECTOR, Content::Bytes(bytes)) => {
                page.cells[at..at + length].copy_from_slice(&bytes[from..from + length]);
            }
            (SECTOR, _) => page.cells[at..at + length].fill(0),
            (8, Content::Stamp(stamp)) => {
                for sector in sectors {
                    page.cells[sector * 8..][..8].copy_from_slice(&stamp.to_le_bytes());
                }
            }
            (8, _) => page.cells[sectors.start * 8..sectors.end * 8].fill(0),
            _ => {}
        }
    }

    /// Makes zeroes of a page from a byte of it on. Of stamps, those of whole sectors.
    pub(crate) fn clear_from(&mut self, number: u32, block: u32, at: usize) {
        let cell = self.cell;
        let Some(page) = self.page_mut(number, block) else { return };
        match cell {
            SECTOR => page.cells[at..].fill(0),
            cell => page.cells[at.div_ceil(SECTOR) * cell..].fill(0),
        }
    }
}

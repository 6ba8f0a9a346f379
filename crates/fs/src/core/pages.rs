//! Pages: how they become dirty, are sent, and become clean again; and what they hold at hand meanwhile.

use super::Core;
use super::cache::{Body, Entry, Key, Page};
use super::log::{Contents, Kind, Placed, log_of};
use crate::call::{BLOCK_BYTES, Content, FileKind};
use crate::format::summary::Owner;
use crate::format::{BLOCK, Bytes, NOWHERE};
use crate::seeded::{FsBug, seeded};

/// Bytes of a sector.
const SECTOR: usize = 512;

/// A page is sent with a write: the write that it was sent with before, and what that one goes with.
fn sent(entry: &mut Entry, write: u32) -> (u32, u64) {
    entry.is_dirty = false;
    let Body::Page(page) = &mut entry.body else { panic!("{:?} is a page", entry.key.of()) };
    let before = (page.writing, page.goes_with);
    (page.writing, page.goes_with) = (write, 0);
    before
}

impl Core {
    /// A page that is not in the cache and holds nothing on the drive.
    pub(crate) fn insert_page(&mut self, number: u32, block: u32, cells: Box<[u8]>, address: u32) {
        let written = self.last_write_number();
        let page = Page {
            cells,
            address,
            leaf: 0,
            writing: 0,
            written,
            covers: 0,
            goes_with: 0,
            is_new: false,
            is_moved: false,
            is_passing: false,
        };
        self.cache.insert(Key::page(number, block), Body::Page(page));
    }

    /// A page is changed: `leaf` is the node with its address.
    pub(crate) fn set_page_dirty(&mut self, number: u32, block: u32, leaf: u32, kind: FileKind) {
        let key = Key::page(number, block);
        let size = self.inode(number).size;
        let entry = self.cache.entry_mut(key).expect("the page is there");
        let Body::Page(page) = &mut entry.body else { panic!("{:?} is a page", key.of()) };
        let was_busy = entry.is_dirty || page.writing != 0;
        if !was_busy {
            // As the drive has the page, or its hole, it goes with the size that the file has before this.
            page.covers = size;
        } else if !entry.is_dirty {
            page.goes_with = size;
        }
        let was_dirty = std::mem::replace(&mut entry.is_dirty, true);
        (page.is_moved, page.leaf) = (false, leaf);
        let becomes_new = page.address == NOWHERE && !page.is_new;
        page.is_new |= becomes_new;
        let may_keep_place = page.address != NOWHERE && kind == FileKind::File;
        self.space.reserved += u64::from(becomes_new);
        if kind == FileKind::Directory {
            if !was_dirty {
                self.dirty_directories.insert(key);
                let log = self.directory_log();
                self.dirty_by_log[log as usize] += 1;
            }
        } else {
            if !was_busy {
                self.begin_dirty(number);
            }
            self.metrics.dirtied_blocks += u64::from(!was_dirty);
            let now = self.now;
            let file = self.file_mut(number);
            if !was_dirty {
                file.needs(size);
            }
            file.new_pages += u64::from(becomes_new);
            file.pages.insert(block);
            file.dirty += usize::from(!was_dirty);
            if file.dirty_since.is_none() {
                file.dirty_since = Some(now);
                self.dirty_files.insert((now, number));
            }
            self.dirty_pages += usize::from(!was_dirty);
        }
        if !was_busy {
            self.hold_node(leaf);
            self.hold_node(number);
        }
        // A page that gets another place changes its node then.
        if !may_keep_place || !self.spares_nodes() {
            self.touched.insert(number);
        }
    }

    /// A page is not dirty any more: it is sent, or dropped.
    fn end_dirty(&mut self, number: u32, block: u32, kind: FileKind) {
        let key = Key::page(number, block);
        if kind == FileKind::Directory {
            if self.dirty_directories.remove(&key) {
                let log = self.directory_log();
                self.dirty_by_log[log as usize] -= 1;
            }
            return;
        }
        self.dirty_pages -= 1;
        let file = self.file_mut(number);
        file.dirty -= 1;
        if file.dirty == 0
            && let Some(since) = file.dirty_since.take()
        {
            self.dirty_files.remove(&(since, number));
        }
    }

    /// A page holds nothing at hand any more.
    fn end_busy(&mut self, number: u32, block: u32, leaf: u32, kind: FileKind) {
        if kind == FileKind::File
            && let Some(file) = self.files.get_mut(&number)
        {
            file.pages.remove(&block);
            self.drop_idle(number);
        }
        self.release_node(leaf);
        self.release_node(number);
    }

    /// A page is dropped with what it says.
    pub(crate) fn drop_page(&mut self, number: u32, block: u32, kind: FileKind) {
        let Some(entry) = self.cache.remove(Key::page(number, block)) else { return };
        let Body::Page(page) = entry.body else { return };
        if page.is_new {
            self.space.reserved -= 1;
            if kind == FileKind::File {
                self.file_mut(number).new_pages -= 1;
            }
        }
        if entry.is_dirty {
            self.metrics.dropped_blocks += u64::from(kind == FileKind::File);
            self.end_dirty(number, block, kind);
        }
        if entry.is_dirty || page.writing != 0 {
            self.end_busy(number, block, page.leaf, kind);
        }
    }

    /// Puts a dirty page of a file into its log. False if there is no segment for it.
    pub(crate) fn place_page(&mut self, number: u32, block: u32) -> bool {
        let key = Key::page(number, block);
        let size = self.inode(number).size;
        let write = self.write_number();
        let entry = self.cache.entry_mut(key).expect("the page is there");
        let Body::Page(page) = &mut entry.body else { panic!("{:?} is a page", key.of()) };
        let kind = if page.is_moved { Kind::MovedData } else { Kind::Data };
        let log = log_of(kind, self.superblock.logs);
        let owner = Owner::Data { inode: number, index: block };
        let contents = Contents::Page(&page.cells, key, write, size);
        if self.logs.append(&mut self.space, log, owner, contents).is_none() {
            return false;
        }
        let before = sent(entry, write);
        self.metrics.count(kind, 1);
        self.page_is_sent(number, block, before, size);
        true
    }

    /// Writes a dirty page of a file to the place that it has ([`Core::may_overwrite`]). What lies behind the end of the file goes as zeroes, as
    /// in F2FS: after a crash the file may be as long as before a truncation.
    pub(crate) fn overwrite_page(&mut self, number: u32, block: u32) {
        let size = self.inode(number).size;
        let write = self.write_number();
        let inside = size.saturating_sub(u64::from(block) * BLOCK_BYTES);
        if inside < BLOCK_BYTES {
            self.clear_from(number, block, inside as usize);
        }
        let entry = self.cache.entry_mut(Key::page(number, block)).expect("the page is there");
        let Body::Page(page) = &entry.body else { panic!("block {block} of file {number} is a page") };
        debug_assert_eq!(page.writing, 0, "block {block} of file {number} is on its way");
        let placed = Placed { page: Key::page(number, block), address: page.address, write, size };
        self.logs.write_in_place(&mut self.space, placed, &page.cells);
        let before = sent(entry, write);
        self.metrics.count(Kind::Data, 1);
        self.metrics.in_place_blocks += 1;
        self.page_is_sent(number, block, before, size);
    }

    /// A dirty page of a file was sent when the file had a size; `before` is what [`sent`] said.
    fn page_is_sent(&mut self, number: u32, block: u32, before: (u32, u64), size: u64) {
        self.end_dirty(number, block, FileKind::File);
        let file = self.file_mut(number);
        file.needs(size);
        if let (1.., goes_with) = before {
            file.sends_again(block, before.0, goes_with);
        }
        self.writing_pages += 1;
    }

    /// A write of a page has ended well.
    pub(crate) fn page_is_written(&mut self, number: u32, block: u32, write: u32, address: u32, size: u64) {
        let sent_again = self.files.get_mut(&number).and_then(|file| file.write_ends(block, write));
        let file = self.files.get(&number);
        let Some(entry) = self.cache.entry_mut(Key::page(number, block)) else { return };
        let is_dirty = entry.is_dirty;
        let Body::Page(page) = &mut entry.body else { return };
        // It may belong to another file by now, or a later write may have ended before.
        if write <= page.written {
            return;
        }
        page.written = write;
        let is_last = page.writing == write;
        if is_last {
            page.writing = 0;
        }
        let size = size.max(if is_last { page.goes_with } else { sent_again.unwrap_or(0) });
        page.covers = file.map_or(size, |file| file.covered(write, size));
        let before = std::mem::replace(&mut page.address, address);
        let (leaf, was_new) = (page.leaf, std::mem::take(&mut page.is_new));
        // A page that was written in place changes no node.
        if before != address {
            self.move_block(number, leaf, block, address);
        }
        let file = self.file_mut(number);
        file.new_pages -= u64::from(was_new);
        // The inode is to be written again where a check-point came between.
        let is_behind = std::mem::take(&mut file.is_behind);
        self.space.reserved -= u64::from(was_new);
        if is_behind {
            self.inode_mut(number);
        }
        let mut is_dirty = is_dirty;
        if is_dirty && seeded(FsBug::OldWriteOverNewer) {
            if let Some(entry) = self.cache.entry_mut(Key::page(number, block)) {
                entry.is_dirty = false;
            }
            self.end_dirty(number, block, FileKind::File);
            is_dirty = false;
        }
        if !is_dirty && is_last {
            self.end_busy(number, block, leaf, FileKind::File);
        }
    }

    /// Writes into a page from a byte of it on.
    pub(crate) fn fill(&mut self, number: u32, block: u32, at: usize, length: usize, content: &Content, from: usize) {
        let cell = self.cell;
        let page = self.cache.page_mut(number, block).expect("the page is there");
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
        let Some(page) = self.cache.page_mut(number, block) else { return };
        match cell {
            SECTOR => page.cells[at..].fill(0),
            cell => page.cells[at.div_ceil(SECTOR) * cell..].fill(0),
        }
    }

    /// An empty page for a block.
    pub(crate) fn empty_cells(&self) -> Box<[u8]> {
        vec![0; self.page_cells()].into()
    }

    /// The bytes of a block of a directory that is changed.
    pub(crate) fn directory_block_mut(&mut self, number: u32, block: u32) -> &mut Bytes {
        let page = self.cache.page_mut(number, block).expect("gather has seen the directory");
        (&mut page.cells[..]).try_into().expect("a directory keeps all bytes")
    }

    /// A new block of a directory.
    pub(crate) fn insert_directory_block(&mut self, number: u32, block: u32) {
        self.insert_page(number, block, vec![0; BLOCK].into(), NOWHERE);
    }

    /// Puts a dirty block of a directory into its log. False if there is no segment for it.
    pub(crate) fn place_directory_block(&mut self, number: u32, block: u32) -> bool {
        let (volume, generation) = (self.superblock.volume, self.inode(number).generation);
        let bytes = self.directory_block_mut(number, block);
        crate::format::directory::seal_block(bytes, volume, number, generation, block);
        let bytes = Box::new(*bytes);
        let owner = Owner::Data { inode: number, index: block };
        let log = self.directory_log();
        let Some(address) = self.logs.append(&mut self.space, log, owner, Contents::Metadata(bytes)) else {
            return false;
        };
        self.metrics.count(Kind::Directory, 1);
        let key = Key::page(number, block);
        let entry = self.cache.entry_mut(key).expect("the page is there");
        entry.is_dirty = false;
        let Body::Page(page) = &mut entry.body else { return false };
        page.address = address;
        let (leaf, was_new) = (page.leaf, std::mem::take(&mut page.is_new));
        self.space.reserved -= u64::from(was_new);
        self.end_dirty(number, block, FileKind::Directory);
        self.cache.set_sent(key);
        self.move_block(number, leaf, block, address);
        self.end_busy(number, block, leaf, FileKind::Directory);
        true
    }

    /// Blocks of a file up to a size.
    pub(crate) const fn blocks_of(size: u64) -> u32 {
        size.div_ceil(BLOCK_BYTES) as u32
    }
}

//! Writes: blocks are changed in RAM, one after the other; at the dirty limit the writer waits.

use ssdlab_base::Nanos;

use super::pages::{BLOCK_SECTORS, DIRTY, READING};
use super::{PageCache, State};
use crate::layer::Command;
use crate::seeded::{LayerBug, seeded};

impl PageCache {
    /// A write goes on as far as it can. With `has_read` the block that it needs next was just fetched.
    pub(super) fn write(&mut self, slot: u32, mut has_read: bool) {
        let request = self.io.command(slot).request;
        let blocks = PageCache::blocks_of(&request);
        loop {
            let block = blocks.start + self.io.command(slot).state.done;
            if block >= blocks.end {
                return self.copy(slot);
            }
            if let Some(status) = self.refuses {
                return self.answer(slot, status);
            }
            let mut page = self.pages.find(block);
            if !has_read && !page.is_some_and(|page| self.pages.has(page, DIRTY)) && self.is_at_limit() {
                return self.hold(slot);
            }
            let all = self.sectors_of(&(block..block + 1));
            let shared = self.shared(&request, &(block..block + 1));
            let is_whole = shared == all || seeded(LayerBug::PartOfUnreadBlock);
            if !is_whole {
                match page {
                    Some(page) if !self.pages.has(page, READING) => {}
                    Some(page) => return self.wait_for_fetch(slot, self.pages.since(page)),
                    None => return self.read_for_part(slot, block),
                }
            }
            if page.is_none() {
                page = self.pages.insert(block);
            }
            let Some(page) = page else { return self.for_space.push_back(slot) };
            self.fill(slot, page, shared.start, shared.end);
            self.pages.make_dirty(page, self.io.array.now());
            self.pages.touch(page);
            self.io.command(slot).state.done += 1;
            has_read = false;
        }
    }

    /// Whether so much is dirty or on its way that writers wait.
    fn is_at_limit(&self) -> bool {
        self.pages.dirty() + self.pages.writing() >= self.dirty_limit
    }

    /// A writer waits until less is dirty.
    fn hold(&mut self, slot: u32) {
        let now = self.io.array.now();
        let state = &mut self.io.command(slot).state;
        if state.held_since.is_none() {
            self.counts.writers_held += 1;
        }
        state.held_since.get_or_insert(now);
        self.held.push_back(slot);
    }

    /// A write needs the rest of a block.
    fn read_for_part(&mut self, slot: u32, block: u32) {
        let Some(page) = self.pages.insert(block) else { return self.for_space.push_back(slot) };
        let number = self.io.next_number();
        self.pages.begin_reading(page, number, 0);
        self.counts.read_for_parts += 1;
        let queue = self.io.command(slot).request.queue;
        self.send_fetch(block..block + 1, number, queue, Some(slot), Vec::new());
    }

    /// Sectors of a write are copied to a cached block.
    pub(super) fn fill(&mut self, slot: u32, page: u32, from: u64, to: u64) {
        let cell = self.io.cell;
        let Command { request, cells, .. } = self.io.commands.get(slot);
        if cells.is_empty() {
            return;
        }
        let found = &cells[(from - request.sector) as usize * cell..(to - request.sector) as usize * cell];
        let at = (from % BLOCK_SECTORS) as usize * cell;
        self.pages.contents_mut(page)[at..at + found.len()].copy_from_slice(found);
    }

    /// Writers go on that waited for less to be dirty, or for a block to leave.
    pub(super) fn release_writers(&mut self) {
        let now = self.io.array.now();
        while !self.held.is_empty() && (self.refuses.is_some() || !self.is_at_limit()) {
            let slot = self.held.pop_front().expect("it was there");
            let State { held_since, .. } = &mut self.io.command(slot).state;
            let since = held_since.take().unwrap_or(now);
            self.counts.held_ns += now.0 - since.0;
            self.write(slot, false);
        }
        for _ in 0..self.for_space.len() {
            if !self.pages.has_space() && self.refuses.is_none() {
                return;
            }
            let slot = self.for_space.pop_front().expect("it was there");
            self.write(slot, false);
        }
    }

    /// Whether a writer waits.
    pub(super) fn any_writer_waits(&self) -> bool {
        !self.held.is_empty() || !self.for_space.is_empty()
    }

    /// The time at which a block became dirty that is dirty now.
    pub(super) fn dirty_until(&self, at: Nanos) -> bool {
        self.pages.oldest_dirty().is_some_and(|oldest| oldest <= at)
    }
}

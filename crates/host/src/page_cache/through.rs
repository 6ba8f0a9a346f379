//! Commands that go through: FUA writes, trims, write zeroes, and writes that the cache cannot complete.
//!
//! They wait until no copy of their blocks is on its way down. Their dirty blocks are not written back before they have ended, so
//! that nothing older comes after them; then they take effect on cached blocks.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::pages::{BLOCK_SECTORS, DIRTY, READING};
use super::{PageCache, Purpose};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

impl PageCache {
    /// A command goes through.
    pub(super) fn go_through(&mut self, slot: u32) {
        let request = self.io.command(slot).request;
        let blocks = PageCache::blocks_of(&request);
        if self.wait_for_write_back(slot, &blocks) {
            return;
        }
        for block in blocks.clone() {
            let Some(page) = self.pages.find(block) else { continue };
            if self.pages.has(page, READING) {
                // What is on its way up was there before.
                self.pages.remove(page);
            } else if !seeded(LayerBug::TrimOvertaken) {
                self.pages.hold_back(page, true);
            }
        }
        self.counts.written_through += blocks.len() as u64;
        self.going_through.push(blocks);
        let cells = std::mem::take(&mut self.io.command(slot).cells);
        self.io.array.send(0, request, &cells, Purpose::Through(slot));
        self.io.command(slot).cells = cells;
    }

    /// A command that went through has ended.
    pub(super) fn went_through(&mut self, slot: u32, part: Ended<Purpose>) {
        let command = self.io.command(slot);
        command.note(part.status, part.path);
        let request = command.request;
        let blocks = PageCache::blocks_of(&request);
        let at = self.going_through.iter().position(|other| *other == blocks);
        self.going_through.swap_remove(at.expect("a command goes through once"));
        for block in blocks {
            let Some(page) = self.pages.find(block) else { continue };
            if part.status != Status::Success && !self.pages.has(page, DIRTY) {
                // A part of a command that failed may be below: the next read looks there.
                self.pages.remove(page);
            } else if part.status == Status::Success && !self.pages.has(page, READING) {
                self.take_effect_on(slot, &request, block, page);
            }
            if let Some(page) = self.pages.find(block) {
                self.pages.hold_back(page, false);
            }
        }
        self.io.answer(slot, part.status);
    }

    /// A cached block is as a command left it below.
    fn take_effect_on(&mut self, slot: u32, request: &Request, block: u32, page: u32) {
        let all = self.sectors_of(&(block..block + 1));
        let shared = self.shared(request, &(block..block + 1));
        let is_whole = shared == all;
        if request.op == Op::Write {
            self.fill(slot, page, shared.start, shared.end);
            if is_whole {
                self.pages.clean(page);
            }
        } else if is_whole || !self.pages.has(page, DIRTY) {
            self.pages.remove(page);
        } else {
            let cell = self.io.cell;
            let begin = all.start / BLOCK_SECTORS * BLOCK_SECTORS;
            let zeroes = (shared.start - begin) as usize * cell..(shared.end - begin) as usize * cell;
            self.pages.contents_mut(page)[zeroes].fill(0);
        }
    }
}

//! Blocks that a design keeps for checkpoints of its map, and programs and erases by itself: they are in no superblock that is used, and
//! nothing collects them.

use ssdlab_flash::{BlockId, Cause, Class, OpKind, Ppn, Submit};

use super::{Media, Place};
use crate::block_pool::BlockState;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

impl Media {
    /// Programs words into a page of such a block. Without time: whether that failed.
    pub(crate) fn program_checkpoint(&mut self, place: Place, words: Box<[u64]>) -> Option<bool> {
        assert!(self.pool.is_kept_apart(place.block.0), "{place:?} takes a checkpoint, and holds data");
        assert!(!self.flash.is_written(place.block, place.page), "{place:?} takes a checkpoint, and is written");
        let page_bytes = self.flash.geometry().page_bytes as usize;
        assert!(words.len() * 8 <= page_bytes, "{} words go to a page of {page_bytes} bytes", words.len());
        let first = self.unit_at(place);
        let sequence = self.take_sequence(1);
        self.flash.oob.write(place.block, place.page, &[], sequence);
        self.flash.oob.put_record(first, words);
        let cause = Cause::Metadata;
        if !self.flash.timed() {
            return Some(self.flash.execute(OpKind::Program, cause, place.block, place.page));
        }
        let token = self.metadata.begin();
        self.metadata.travel(token);
        let bytes = self.unit_bytes * self.units_per_page;
        let op = self.send_for_checkpoint(OpKind::Program, Class::HostWrite, place, bytes);
        if self.units_per_page > 1 {
            self.remember_pins(op, &[]);
        }
        None
    }

    /// Erases such a block. Without time: whether that failed.
    pub(crate) fn erase_checkpoint(&mut self, block: BlockId) -> Option<bool> {
        assert!(self.pool.is_kept_apart(block.0), "block {block} is erased for a checkpoint, and holds data");
        if !self.flash.timed() {
            return Some(self.flash.execute(OpKind::Erase, Cause::Metadata, block, 0));
        }
        self.send_for_checkpoint(OpKind::Erase, Class::Erase, Place { block, page: 0 }, 0);
        None
    }

    fn send_for_checkpoint(&mut self, kind: OpKind, class: Class, place: Place, bytes: u32) -> ssdlab_flash::OpId {
        self.issue(Submit {
            kind,
            cause: Cause::Metadata,
            class,
            block: place.block,
            page: place.page,
            source: Ppn::NONE,
            bytes,
            token: Waiter::Checkpoint.pack(),
            pin: BlockId::NONE,
            waits_for: 0,
        })
    }

    /// The words that can be read in a page of such a block; `None` where the page cannot be read.
    pub(crate) fn checkpoint_words(&self, place: Place) -> Option<&[u64]> {
        let is_readable = self.flash.blocks.readable(self.ppn_at(place));
        is_readable.then(|| self.flash.oob.record(self.unit_at(place)).unwrap_or(&[]))
    }

    /// Whether a block is written from end to end, all of it is found again after a power cut, and nothing that is not on flash yet
    /// supersedes what it holds.
    pub(crate) fn is_settled(&self, block: u32) -> bool {
        let state = self.flash.blocks.get(BlockId(block));
        self.pool.state(block) == BlockState::Closed
            && (self.pool.pins(block) == 0 || seeded(Bug::PinnedBlockSettled))
            && !self.pool.is_retiring(block)
            && !state.suspect
            && state.programmed == self.pages_per_block
            && self.summary.as_ref().is_none_or(|summary| summary.is_listed(BlockId(block), self.pages_per_block - 1))
    }
}

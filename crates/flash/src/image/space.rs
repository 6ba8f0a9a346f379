//! The space that the host's file system has promised an image: for blocks that are opened, and for the log of records.

use std::collections::VecDeque;
use std::io;

use super::Image;
use super::files::{give_back, provide};
use crate::BlockId;

/// One block in so many may keep its space when it is erased.
const HELD_SHARE: usize = 16;

/// The host's promises of space.
pub(super) struct Space {
    /// Blocks whose space the host's file system has promised.
    pub(super) provided: Vec<bool>,
    /// Erased blocks that still have it, the longest erased first: most are opened again soon.
    pub(super) held: VecDeque<BlockId>,
    /// Up to where the log of records has space.
    pub(super) records: u64,
    /// The host's file system was full when a block was to be opened.
    pub(super) full: bool,
    /// It had no space for the block that was asked for last.
    pub(super) refused: bool,
}

impl Image {
    /// Whether a block was refused since the last call because the host's file system is full.
    pub fn take_full(&self) -> bool {
        std::mem::take(&mut self.space.borrow_mut().full)
    }

    /// Whether the host's file system had no space when the image last asked for some.
    pub fn is_full(&self) -> bool {
        self.full || self.space.borrow().refused
    }

    /// An erased block keeps its space, and the longest erased one gives its back where too many do.
    pub(super) fn hold(&mut self, block: BlockId) {
        let space = self.space.get_mut();
        space.held.push_back(block);
        if space.held.len() > self.geometry.blocks() as usize / HELD_SHARE {
            self.give_back_held(1);
        }
    }

    /// Gives the space of so many erased blocks back to the host.
    pub(super) fn give_back_held(&mut self, count: usize) {
        for _ in 0..count {
            let Some(block) = self.space.get_mut().held.pop_front() else { return };
            self.space.get_mut().provided[block.index()] = false;
            let (offset, bytes) = self.place_of(block);
            if self.lifeline.passes() {
                match give_back(&self.files.pages, offset, bytes) {
                    // A full file system may lack the space to note that some is free.
                    Err(error) if is_full(&error) => {}
                    given => self.note(given, "pages"),
                }
            }
        }
    }

    /// Where a block's data is in the file, and how much.
    pub(super) fn place_of(&self, block: BlockId) -> (u64, u64) {
        let bytes = u64::from(self.geometry.pages_per_block) * u64::from(self.geometry.page_bytes);
        (u64::from(block.0) * bytes, bytes)
    }

    /// Whether a block may be opened: the host's file system has promised the space for it.
    pub fn provide(&self, number: BlockId) -> bool {
        let mut space = self.space.borrow_mut();
        let already = space.provided[number.index()];
        space.held.retain(|held| *held != number);
        // What is behind gets the next space that there is.
        if self.full {
            space.full = true;
            return false;
        }
        let (offset, bytes) = self.place_of(number);
        let entries = u64::from(self.geometry.pages_per_block) * self.files.entry_bytes as u64;
        let try_it = |records: &mut u64| {
            self.log.provide(&self.files.records, records)?;
            if already {
                return Ok(());
            }
            provide(&self.files.pages, offset, bytes)?;
            provide(&self.files.oob, u64::from(number.0) * entries, entries)
        };
        let mut provided = try_it(&mut space.records);
        // What erased blocks still have comes before a full disk.
        while provided.is_err()
            && let Some(held) = space.held.pop_front()
        {
            space.provided[held.index()] = false;
            let (offset, bytes) = self.place_of(held);
            provided = give_back(&self.files.pages, offset, bytes).and_then(|()| try_it(&mut space.records));
        }
        // Whatever the host's reason, nothing was written yet: the drive has no block to open.
        space.provided[number.index()] = already || provided.is_ok();
        space.full |= provided.is_err();
        space.refused = provided.is_err();
        provided.is_ok()
    }
}

/// Whether an error says that the host's file system, or its user's share of it, is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

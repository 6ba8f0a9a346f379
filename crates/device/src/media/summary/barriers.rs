//! What waits for lists: commands, pins and emptied blocks.

use ssdlab_flash::BlockId;

use super::{AfterLists, Barrier, Promised, Summary, Unlisted};
use crate::media::{Media, Place};
use crate::seeded::{Bug, seeded};

impl Media {
    /// `then` follows when lists name so many pages of these blocks.
    pub(super) fn await_lists(&mut self, blocks: &[(BlockId, u32)], then: AfterLists) {
        if blocks.is_empty() {
            return self.lists_are_there(then);
        }
        let id = self.new_barrier(then);
        self.await_also(id, blocks);
    }

    pub(super) fn new_barrier(&mut self, then: AfterLists) -> u32 {
        let summary = self.summary();
        let id = summary.next_barrier;
        summary.next_barrier = id.wrapping_add(1);
        summary.barriers.insert(id, Barrier { left: 0, then });
        id
    }

    /// A barrier waits for the lists of more blocks.
    pub(super) fn await_also(&mut self, id: u32, blocks: &[(BlockId, u32)]) {
        let summary = self.summary();
        summary.barriers.get_mut(&id).expect("a barrier is there until it ends").left += blocks.len() as u32;
        for (block, pages) in blocks {
            let unlisted = summary.unlisted.get_mut(block).expect("a block that is waited for has pages to list");
            unlisted.waiting.push((*pages, id));
        }
    }

    /// A barrier waits for a block less.
    pub(super) fn one_less(&mut self, id: u32) {
        let summary = self.summary();
        let barrier = summary.barriers.get_mut(&id).expect("what waits for a list is there");
        assert!(barrier.left > 0, "barrier {id} ({:?}) waits for nothing", barrier.then);
        barrier.left -= 1;
        if barrier.left == 0 {
            let then = barrier.then;
            summary.barriers.remove(&id);
            if let AfterLists::Unpin(superblock) = then {
                assert!(summary.pins[superblock as usize] > 0, "a barrier held a pin of block {superblock}");
                summary.pins[superblock as usize] -= 1;
            }
            self.lists_are_there(then);
        }
    }

    pub(super) fn lists_are_there(&mut self, then: AfterLists) {
        match then {
            AfterLists::Unpin(superblock) => self.unpin(BlockId(superblock)),
            AfterLists::End(command) => {
                self.summary().ended.push(command);
                self.wakes.space_freed = true;
            }
            AfterLists::Room => self.wakes.room_may_be_free(),
            AfterLists::Forget(block) => self.forget_emptied(block),
        }
    }

    /// All blocks with pages that no list names, and how many pages have to be named.
    pub(super) fn all_unlisted(&self) -> Vec<(BlockId, u32)> {
        let summary = self.summary.as_ref().expect("the drive lists owners");
        let unlisted = summary.unlisted.iter().filter(|(_, unlisted)| !unlisted.emptied);
        unlisted.map(|(block, unlisted)| (*block, unlisted.pages)).collect()
    }

    /// Takes a pin from the superblock of each block as soon as lists name all that was written up to now; at once where OOB
    /// areas do.
    pub(crate) fn unpin_when_listed(&mut self, blocks: impl IntoIterator<Item = BlockId>) {
        if self.summary.is_none() || seeded(Bug::ReplacedBeforeList) {
            return blocks.into_iter().for_each(|block| self.unpin(block));
        }
        let wanted = self.all_unlisted();
        for block in blocks {
            if !wanted.is_empty() {
                self.summary().pins[block.index()] += 1;
            }
            self.await_lists(&wanted, AfterLists::Unpin(block.0));
        }
    }

    /// Whether a record of trims may be on flash that no list names.
    pub(crate) fn has_unlisted(&self) -> bool {
        !seeded(Bug::TrimRecordNotListed) && self.summary.as_ref().is_some_and(|summary| !summary.unlisted.is_empty())
    }

    /// A command ends when what it promises is listed: lists of open blocks are written early for it. Returns whether it waits.
    pub(crate) fn list_for_command(&mut self, command: u32, promised: Promised) -> bool {
        let wanted = self.promised_pages(promised);
        if wanted.is_empty() {
            return false;
        }
        self.await_lists(&wanted, AfterLists::End(command));
        for (block, _) in wanted {
            self.list_early(block);
        }
        self.list_for_emptied();
        true
    }

    /// Lists of all that was written are written early, as a command waits for room. They are awaited once at a time.
    pub(crate) fn list_for_room(&mut self) {
        let is_awaited = |summary: &Summary| summary.barriers.values().any(|barrier| barrier.then == AfterLists::Room);
        if self.summary.as_deref().is_none_or(is_awaited) {
            return;
        }
        let wanted = self.all_unlisted();
        if wanted.is_empty() {
            return;
        }
        self.await_lists(&wanted, AfterLists::Room);
        for (block, _) in wanted {
            self.list_early(block);
        }
        self.list_for_emptied();
    }

    /// Where a command waits for blocks whose own lists failed, lists of what was moved out of them do not wait until their
    /// blocks are full.
    pub(super) fn list_for_emptied(&mut self) {
        if !self.commands_await_lists() {
            return;
        }
        let summary = self.summary();
        let forgets = |id: &u32| matches!(summary.barriers[id].then, AfterLists::Forget(_));
        let is_awaited = |unlisted: &Unlisted| unlisted.waiting.iter().any(|(_, id)| forgets(id));
        let awaited = summary.unlisted.iter().filter(|(_, unlisted)| is_awaited(unlisted));
        let blocks: Vec<BlockId> = awaited.map(|(block, _)| *block).collect();
        for block in blocks {
            self.list_early(block);
        }
    }

    /// The blocks and pages that have to be named for a command.
    pub(super) fn promised_pages(&self, promised: Promised) -> Vec<(BlockId, u32)> {
        let summary = self.summary.as_ref().expect("the drive lists owners");
        let mut wanted = Vec::new();
        for (block, unlisted) in &summary.unlisted {
            let named = summary.listed_of(*block);
            let pages = match promised {
                Promised::Everything => unlisted.of_host,
                Promised::Units(first, end) => {
                    let of_page = |page: u32| {
                        self.flash.oob.lpns(self.unit_at(Place { block: *block, page }), self.units_per_page)
                    };
                    let holds = |page: &u32| of_page(*page).iter().any(|lpn| (first..end).contains(lpn));
                    (named..unlisted.of_host).rev().find(holds).map_or(0, |page| page + 1)
                }
            };
            if pages > named {
                wanted.push((*block, pages));
            }
        }
        wanted
    }

    /// Commands whose lists are on flash since the last call.
    pub(crate) fn take_listed_commands(&mut self) -> Vec<u32> {
        self.summary.as_mut().map_or_else(Vec::new, |summary| std::mem::take(&mut summary.ended))
    }

    /// Commands that wait for lists, which will not come: they wait no longer.
    pub(crate) fn give_up_lists(&mut self) -> Vec<u32> {
        let Some(summary) = &mut self.summary else { return Vec::new() };
        let waits = |barrier: &Barrier| match barrier.then {
            AfterLists::End(command) => Some(command),
            _ => None,
        };
        let given_up: Vec<(u32, u32)> =
            summary.barriers.iter().filter_map(|(id, barrier)| waits(barrier).map(|command| (*id, command))).collect();
        for (id, _) in &given_up {
            summary.barriers.remove(id);
            summary.unlisted.values_mut().for_each(|unlisted| unlisted.waiting.retain(|(_, other)| other != id));
        }
        given_up.into_iter().map(|(_, command)| command).collect()
    }

    /// Whether a command waits for lists.
    pub(crate) fn commands_await_lists(&self) -> bool {
        let waits = |barrier: &Barrier| matches!(barrier.then, AfterLists::End(_) | AfterLists::Room);
        self.summary.as_ref().is_some_and(|summary| summary.barriers.values().any(waits))
    }
}

//! What has no name any more, and the ends of truncated files: their blocks are freed, at once or in steps of a few runs.

use super::super::core::{Cancel, Core, Op, Stop};
use super::super::format::inode::Inode;
use super::super::map::{self, Freed};
use super::super::view::View;
use crate::call::{BLOCK_BYTES, FileKind};

/// Blocks of metadata that a step changes at most: for each run a bitmap and a descriptor, and for each level a block with its bitmap.
const CREDITS: usize = 40;

impl View<'_> {
    /// Sees that an inode can leave the list of orphans: the one in front of it changes.
    pub(crate) fn orphan(&self, number: u32) -> Result<(), Stop> {
        let before = self.core.orphans.iter().take_while(|other| **other != number).last();
        match before {
            Some(before) => self.inode(*before).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sees that an inode can lose its name: it is freed at once if nothing needs it and it is small.
    pub(crate) fn unlinkable(&self, number: u32) -> Result<(), Stop> {
        let inode = self.inode(number)?;
        self.orphan(number)?;
        self.inode_bitmap(number)?;
        if map::is_small(self, &inode) {
            map::last(self, &inode, 0)?;
        }
        Ok(())
    }
}

impl Core {
    /// An inode has lost its name.
    pub(crate) fn unlinked(&mut self, number: u32) {
        let mut inode = self.inode(number);
        (inode.links, inode.changed) = (0, self.now);
        self.add_orphan(&mut inode);
        self.put_inode(&inode);
        if self.files.get(&number).is_none_or(|file| file.opens == 0) {
            self.free_inode(number);
        }
    }

    /// Nothing needs an inode without a name any more.
    pub(crate) fn free_inode(&mut self, number: u32) {
        let inode = self.inode(number);
        if inode.kind == FileKind::File {
            self.drop_pages(number, 0, inode.size);
        }
        let view = View::of(self);
        let freed = if map::is_small(&view, &inode) { map::last(&view, &inode, 0) } else { Err(Stop::Commit) };
        match freed {
            Ok(freed) if freed.as_ref().is_none_or(|freed| !has_more(freed)) => {
                self.end_inode(inode, freed.as_ref());
            }
            _ => {
                self.freeing.entry(number).or_insert(false);
            }
        }
    }

    /// Frees the last blocks of an inode, and the inode.
    fn end_inode(&mut self, mut inode: Inode, freed: Option<&Freed>) {
        if let Some(freed) = freed {
            self.unmap(&mut inode, freed);
        }
        self.remove_orphan(inode.number);
        self.freeing.remove(&inode.number);
        self.free_from.remove(&inode.number);
        self.running.touched.insert(inode.number);
        self.clear_inode(inode.number, inode.kind);
    }

    pub(crate) fn drop_pages(&mut self, number: u32, from: u32, size: u64) {
        let end = size.div_ceil(BLOCK_BYTES) as u32;
        for block in self.cache.pages_from(number, from, end.max(from)) {
            self.drop_page(number, block);
        }
        self.promise(number);
        self.cancelled.push(Cancel::Pages(number, from));
    }

    /// A file of size `before` ends before block `from`: its pages behind are dropped, and its blocks freed now or by a job.
    pub(crate) fn cut_blocks(&mut self, number: u32, from: u32, before: u64) {
        self.drop_pages(number, from, before);
        let mut inode = self.inode(number);
        let view = View::of(self);
        let freed = if map::is_small(&view, &inode) { map::last(&view, &inode, from) } else { Err(Stop::Commit) };
        match freed {
            Ok(None) => {}
            Ok(Some(freed)) if !has_more(&freed) => {
                self.unmap(&mut inode, &freed);
                self.put_inode(&inode);
            }
            _ => {
                self.free_from.insert(number, from);
                self.freeing.entry(number).or_insert(false);
                self.add_orphan(&mut inode);
                self.put_inode(&inode);
            }
        }
    }
}

/// Whether a step may leave blocks behind: it frees as many runs as a step does at most.
const fn has_more(freed: &Freed) -> bool {
    freed.runs.len() >= map::MOST_RUNS
}

/// One step of freeing. It says whether it was the last.
pub(crate) struct FreeStep {
    pub(crate) number: u32,
}

/// What a step frees.
pub(crate) enum Plan {
    /// The inode is not there any more.
    Gone,
    Blocks(Freed),
    /// No block is left: the inode goes, or the truncation has ended.
    End,
}

impl Op for FreeStep {
    type Plan = Plan;
    type Output = bool;

    fn gather(&self, view: &View<'_>) -> Result<Plan, Stop> {
        view.writable()?;
        let Some(inode) = view.inode_numbered(self.number)? else { return Ok(Plan::Gone) };
        view.credits(CREDITS)?;
        let from = if view.is_gone(&inode) { 0 } else { view.free_from(&inode) };
        if let Some(freed) = map::last(view, &inode, from)? {
            return Ok(Plan::Blocks(freed));
        }
        view.orphan(self.number)?;
        view.inode_bitmap(self.number)?;
        Ok(Plan::End)
    }

    fn apply(self, core: &mut Core, plan: Plan) -> bool {
        let number = self.number;
        match plan {
            Plan::Gone => {
                core.orphans.retain(|other| *other != number);
                core.freeing.remove(&number);
                core.free_from.remove(&number);
                true
            }
            Plan::Blocks(freed) => {
                let mut inode = core.inode(number);
                core.unmap(&mut inode, &freed);
                core.put_inode(&inode);
                false
            }
            Plan::End => {
                let mut inode = core.inode(number);
                if View::of(core).is_gone(&inode) {
                    if inode.kind == FileKind::File {
                        core.drop_pages(number, 0, inode.size);
                    }
                    core.end_inode(inode, None);
                } else {
                    core.freeing.remove(&number);
                    core.free_from.remove(&number);
                    if inode.links > 0 {
                        core.remove_orphan(number);
                        inode = core.inode(number);
                        inode.next_orphan = 0;
                        core.put_inode(&inode);
                    }
                }
                true
            }
        }
    }
}

impl View<'_> {
    fn is_gone(&self, inode: &Inode) -> bool {
        inode.links == 0 && !self.is_open(inode.number)
    }

    /// The first block of a file that is to be freed: where a truncation of this mount began, or behind the end, where a crash came between.
    fn free_from(&self, inode: &Inode) -> u32 {
        let behind = inode.size.div_ceil(BLOCK_BYTES) as u32;
        self.core.free_from.get(&inode.number).copied().unwrap_or(behind)
    }
}

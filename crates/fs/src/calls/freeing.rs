//! What has no name any more, and the ends of truncated files: their blocks are freed, at once or in steps.

use crate::call::{Errno, FileKind};
use crate::core::cache::Key;
use crate::core::{Cancel, Core, Op, Stop, View};
use crate::format::directory::blocks_of;
use crate::format::inode::{DIRECT, FAN, Inode, LEVELS, span};
use crate::format::{LOST, NOWHERE};

/// The first block of an index slot, and the block behind its last.
fn range(slot: usize) -> (u64, u64) {
    let size = |slot: usize| span(LEVELS[slot]) * FAN as u64;
    let first = DIRECT as u64 + (0..slot).map(size).sum::<u64>();
    (first, first + size(slot))
}

/// The highest index slot of an inode that leads to blocks from `from` on.
fn indexed(inode: &Inode, from: u32) -> Option<usize> {
    (0..LEVELS.len()).rev().find(|slot| inode.index[*slot] != 0 && range(*slot).1 > u64::from(from))
}

impl Core {
    /// An inode has lost its name.
    pub(crate) fn unlinked(&mut self, number: u32) {
        let now = self.now;
        let inode = self.inode_mut(number);
        inode.links = 0;
        inode.changed = now;
        self.orphans.insert(number);
        if self.files.get(&number).is_none_or(|file| file.opens == 0) {
            self.free_inode(number);
        }
    }

    /// Nothing needs an inode without a name any more.
    pub(crate) fn free_inode(&mut self, number: u32) {
        let inode = self.inode(number);
        let (kind, end) = (inode.kind, self.page_end(number));
        let is_small = indexed(inode, 0).is_none();
        self.drop_pages(number, 0, end, kind);
        if is_small {
            self.free_direct(number, 0);
            self.orphans.remove(&number);
            self.freeing.remove(&number);
            self.free_node(number);
        } else {
            self.freeing.entry(number).or_insert(false);
        }
    }

    /// The block behind the last that can have a page.
    fn page_end(&self, number: u32) -> u32 {
        let inode = self.inode(number);
        match inode.kind {
            FileKind::File => Core::blocks_of(inode.size),
            FileKind::Directory => blocks_of(inode.depth),
        }
    }

    fn drop_pages(&mut self, number: u32, from: u32, end: u32, kind: FileKind) {
        for block in self.cache.pages_from(number, from, end.max(from)) {
            self.drop_page(number, block, kind);
        }
        self.cancelled.push(Cancel::Pages(number, from));
    }

    /// Frees the blocks that the inode itself addresses, from one on.
    fn free_direct(&mut self, number: u32, from: u32) {
        let addresses: Vec<u32> = self.inode(number).direct.iter().skip(from as usize).copied().collect();
        if addresses.is_empty() {
            return;
        }
        let count = addresses.iter().filter(|address| **address != NOWHERE).count() as u64;
        for address in addresses {
            if address != NOWHERE && address != LOST {
                self.remove_block(number, address);
            }
        }
        let inode = self.inode_mut(number);
        let used = (0..from as usize).rev().find(|block| inode.direct[*block] != 0).map_or(0, |last| last + 1);
        inode.direct.truncate(used);
        inode.blocks = inode.blocks.saturating_sub(count);
    }

    /// A file ends before block `from`: its pages behind are dropped, and its blocks freed now or by a job.
    pub(crate) fn cut_blocks(&mut self, number: u32, from: u32) {
        let end = self.page_end(number);
        self.drop_pages(number, from, end, FileKind::File);
        if indexed(self.inode(number), from).is_some() {
            self.inode_mut(number).free_from = Some(from);
            self.orphans.insert(number);
            self.freeing.entry(number).or_insert(false);
        } else {
            self.free_direct(number, from);
        }
    }
}

/// One step of freeing: at most one index block. It says whether it was the last.
pub(crate) struct FreeStep {
    pub(crate) number: u32,
}

/// What a step frees.
pub(crate) enum Plan {
    /// The inode is not there any more.
    Gone,
    /// Entries of an index block, and the block itself if none is left.
    Index(Target),
    /// What the inode addresses itself, and the end.
    Direct,
}

/// Entries of an index block that are to be freed, from one on. `above` names it in an entry, or the inode in a slot.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    node: u32,
    from: usize,
    above: u32,
    entry: usize,
}

/// Where an index block of a file is named.
#[derive(Clone, Copy)]
struct Place {
    file: u32,
    level: u8,
    above: u32,
    entry: usize,
    node: u32,
}

/// The last thing below an index block of a file that lies behind block `from`. A damaged index block may name any other: one of another
/// file or level is refused, so that no path is longer than the levels are.
fn target(view: &View<'_>, place: Place, from: u32) -> Result<Option<Target>, Stop> {
    let Place { file, level, above, entry, node } = place;
    let index = view.index(node)?;
    if index.inode != file || index.level != level {
        return Err(Errno::Io.into());
    }
    view.may_change(node)?;
    let part = (u64::from(from).saturating_sub(index.first.into()) / span(index.level)) as usize;
    let this = Target { node, from: part, above, entry };
    let mut behind = (part.min(FAN)..FAN).rev().filter(|entry| index.entries[*entry] != 0);
    if index.level == 1 {
        return Ok((behind.next().is_some() || is_unused(view.core, node)).then_some(this));
    }
    // Only the first of them may have nothing behind.
    for entry in behind {
        let below = Place { level: level - 1, above: node, entry, node: index.entries[entry], ..place };
        if let Some(found) = target(view, below, from)? {
            return Ok(Some(found));
        }
    }
    Ok(is_unused(view.core, node).then_some(this))
}

/// Whether an index block leads nowhere. One whose blocks are yet to be written leads to these.
fn is_unused(core: &Core, node: u32) -> bool {
    let is_held = core.cache.entry(Key::node(node)).is_some_and(|entry| entry.holds > 0);
    core.index(node).used == 0 && !is_held
}

impl Op for FreeStep {
    type Plan = Plan;
    type Output = bool;

    fn gather(&self, view: &View<'_>) -> Result<Plan, Stop> {
        view.writable()?;
        let Some(inode) = view.inode_numbered(self.number)? else { return Ok(Plan::Gone) };
        view.may_change(self.number)?;
        view.metadata_room(4)?;
        let is_gone = inode.links == 0 && !view.is_open(self.number);
        let from = if is_gone { 0 } else { inode.free_from.unwrap_or(u32::MAX) };
        for slot in (0..LEVELS.len()).rev() {
            let (file, node) = (self.number, inode.index[slot]);
            let place = Place { file, level: LEVELS[slot], above: file, entry: slot, node };
            if node != 0
                && range(slot).1 > u64::from(from)
                && let Some(target) = target(view, place, from)?
            {
                return Ok(Plan::Index(target));
            }
        }
        Ok(Plan::Direct)
    }

    fn apply(self, core: &mut Core, plan: Plan) -> bool {
        let number = self.number;
        match plan {
            Plan::Gone => {
                core.orphans.remove(&number);
                core.freeing.remove(&number);
                true
            }
            Plan::Index(target) => {
                core.free_entries(number, target);
                false
            }
            Plan::Direct => {
                let is_unlinked = core.inode(number).links == 0;
                if is_unlinked && !View::of(core).is_open(number) {
                    core.free_inode(number);
                } else {
                    let from = core.inode(number).free_from.unwrap_or(u32::MAX);
                    core.free_direct(number, from.min(DIRECT as u32));
                    core.inode_mut(number).free_from = None;
                    if !is_unlinked {
                        core.orphans.remove(&number);
                    }
                    core.freeing.remove(&number);
                }
                true
            }
        }
    }
}

impl Core {
    /// Frees the blocks that an index block of level 1 names from an entry on, and the index block if it names nothing then.
    fn free_entries(&mut self, number: u32, target: Target) {
        let Target { node, from, above, entry } = target;
        let index = self.index(node);
        if index.level == 1 {
            let addresses: Vec<(usize, u32)> = (from.min(FAN)..FAN)
                .map(|entry| (entry, index.entries[entry]))
                .filter(|(_, address)| *address != NOWHERE)
                .collect();
            for (entry, address) in &addresses {
                self.index_mut(node).set(*entry, NOWHERE);
                if *address != LOST {
                    self.remove_block(number, *address);
                }
            }
            let inode = self.inode_mut(number);
            inode.blocks = inode.blocks.saturating_sub(addresses.len() as u64);
        }
        if is_unused(self, node) {
            self.free_node(node);
            if self.inode(number).links > 0 {
                // A mount that finds the file behind the check-point does not look for nodes that it has no more.
                self.rolling.bar(number);
            }
            if above == number {
                self.inode_mut(number).index[entry] = 0;
            } else {
                self.index_mut(above).set(entry, 0);
            }
        }
    }
}

//! Trees of extents.

use super::super::core::{Core, Role, Stop};
use super::super::format::extents::{
    self, Extent, FAN, MOST_DEPTH, MOST_LENGTH, ROOT_FAN, begin, child, count, depth, extent, first_of, search,
    set_child, set_extent, set_first,
};
use super::super::format::inode::Inode;
use super::super::view::View;
use super::{Freed, MOST_RUNS};
use crate::call::Errno;
use crate::format::BLOCK;

/// A node on the way to a block: its block, or 0 for the inode, and the entry that leads on.
type Step = (u32, usize);

/// The node of a block below the inode, which must be so deep.
fn node<'a>(view: &View<'a>, inode: &Inode, address: u32, expected: u16) -> Result<&'a [u8], Stop> {
    if !view.is_for_files(address, 1) {
        return Err(Errno::Io.into());
    }
    let bytes = &view.block(address, Role::Extents(inode.number))?[..];
    if depth(bytes) == expected { Ok(bytes) } else { Err(Errno::Io.into()) }
}

fn root(inode: &Inode) -> Result<&[u8], Stop> {
    match extents::check(&inode.root) {
        Ok(()) => Ok(&inode.root),
        Err(_) => Err(Errno::Io.into()),
    }
}

/// The way to the leaf that has a block or would have it: in each node the entry, in the leaf the last one at or before the block.
fn path(view: &View<'_>, inode: &Inode, block: u32) -> Result<(Vec<Step>, Option<Extent>), Stop> {
    let mut steps = Vec::new();
    let mut at = root(inode)?;
    let (mut address, mut left) = (0, depth(at));
    loop {
        let found = search(at, block);
        if left == 0 {
            let extent = found.map(|index| extent(at, index));
            steps.push((address, found.map_or(0, |index| index + 1)));
            return Ok((steps, extent));
        }
        if count(at) == 0 {
            return Err(Errno::Io.into());
        }
        let index = found.unwrap_or(0);
        steps.push((address, index));
        address = child(at, index);
        left -= 1;
        at = node(view, inode, address, left)?;
    }
}

pub(super) fn find(view: &View<'_>, inode: &Inode, block: u32) -> Result<Option<Extent>, Stop> {
    let (_, found) = path(view, inode, block)?;
    Ok(found.filter(|extent| block < extent.end()))
}

/// Blocks that an entry for a block needs: a split of each full node from the leaf up, and a level more if the inode is full, too.
pub(super) fn spares(view: &View<'_>, inode: &Inode, block: u32) -> Result<usize, Stop> {
    let (steps, _) = path(view, inode, block)?;
    let mut full = 0;
    for (address, _) in steps.iter().rev() {
        let is_full = match address {
            0 => count(&inode.root) == ROOT_FAN,
            address => count(view.block(*address, Role::Extents(inode.number))?) == FAN,
        };
        if !is_full {
            return Ok(full);
        }
        full += 1;
    }
    if depth(&inode.root) >= MOST_DEPTH { Err(Errno::NoSpace.into()) } else { Ok(full) }
}

pub(super) fn worst(inode: &Inode, pages: u64) -> u64 {
    let levels = u64::from(depth(&inode.root));
    match pages {
        0 => 0,
        pages if levels == 0 && count(&inode.root) as u64 + pages <= ROOT_FAN as u64 => 0,
        pages => pages * levels.max(1) + u64::from(MOST_DEPTH) + 1,
    }
}

pub(super) fn last(view: &View<'_>, inode: &Inode, from: u32) -> Result<Option<Freed>, Stop> {
    let mut freed = Freed::default();
    let mut at = root(inode)?;
    let (mut address, mut left) = (0, depth(at));
    while left > 0 {
        let Some(index) = count(at).checked_sub(1) else { return Err(Errno::Io.into()) };
        freed.path.push((address, index));
        address = child(at, index);
        left -= 1;
        at = node(view, inode, address, left)?;
    }
    freed.path.push((address, 0));
    for index in (0..count(at)).rev() {
        let one = extent(at, index);
        if one.end() <= from || freed.runs.len() == MOST_RUNS {
            break;
        }
        let kept = from.saturating_sub(one.first);
        freed.runs.push((one.start + kept, one.length - kept));
        freed.entries.push((index, kept));
    }
    Ok((!freed.runs.is_empty()).then_some(freed))
}

impl Core {
    /// Changes a node: the inode's own bytes, or a block.
    fn with_node<T>(&mut self, inode: &mut Inode, address: u32, change: impl FnOnce(&mut [u8]) -> T) -> T {
        match address {
            0 => change(&mut inode.root),
            address => change(&mut self.block_mut(address)[..]),
        }
    }

    /// The first block that an entry leads to has changed.
    fn fix_first(&mut self, inode: &mut Inode, steps: &[Step], first: u32) {
        for (address, index) in steps.iter().rev() {
            let is_other = self.with_node(inode, *address, |node| {
                let is_other = first_of(node, *index) > first;
                if is_other {
                    set_first(node, *index, first);
                }
                is_other
            });
            if !is_other || *index > 0 {
                return;
            }
        }
    }

    pub(super) fn map_extent(&mut self, inode: &mut Inode, run: Extent, spares: &mut Vec<u32>) {
        loop {
            let (steps, before) = path(&View::of(self), inode, run.first).expect("gather has walked here");
            let (leaf, index) = steps[steps.len() - 1];
            if let Some(before) = before
                && before.end() == run.first
                && before.start + before.length == run.start
                && before.length + run.length <= MOST_LENGTH
            {
                let whole = Extent { length: before.length + run.length, ..before };
                return self.with_node(inode, leaf, |node| set_extent(node, index - 1, whole));
            }
            let is_full = self.with_node(inode, leaf, |node| count(node) == extents::fan(node));
            if !is_full {
                self.with_node(inode, leaf, |node| {
                    extents::open_gap(node, index);
                    set_extent(node, index, run);
                });
                return self.fix_first(inode, &steps[..steps.len() - 1], run.first);
            }
            self.make_room(inode, &steps, run.first, spares);
        }
    }

    /// Makes room below the lowest node on a way that is not full, or puts a level below the inode.
    fn make_room(&mut self, inode: &mut Inode, steps: &[Step], block: u32, spares: &mut Vec<u32>) {
        let new = spares.pop().expect("gather has picked blocks");
        self.new_block(new, Role::Extents(inode.number));
        inode.index_blocks += 1;
        let has_room = |core: &mut Core, inode: &mut Inode, address: u32| {
            core.with_node(inode, address, |node| count(node) < extents::fan(node))
        };
        let above = (0..steps.len() - 1).rev().find(|level| has_room(self, inode, steps[*level].0));
        let Some(level) = above else {
            // All that the inode has goes one level down.
            let levels = depth(&inode.root);
            let old = inode.root;
            let first = first_of(&old, 0);
            let to = &mut self.block_mut(new)[..BLOCK - 4];
            begin(to, levels);
            let mut old = old;
            extents::move_tail(&mut old, 0, to);
            begin(&mut inode.root, levels + 1);
            extents::open_gap(&mut inode.root, 0);
            set_child(&mut inode.root, 0, first, new);
            return;
        };
        let (parent, index) = steps[level];
        let (full, next) = steps[level + 1];
        let mut old = *self.block_mut(full);
        let entries = count(&old);
        let is_leaf = depth(&old) == 0;
        // Who appends leaves full leaves behind.
        let split = if is_leaf && next == entries { entries } else { entries / 2 };
        let first = if split == entries { block } else { first_of(&old, split) };
        let to = &mut self.block_mut(new)[..];
        begin(to, depth(&old));
        extents::move_tail(&mut old, split, to);
        *self.block_mut(full) = old;
        self.with_node(inode, parent, |node| {
            extents::open_gap(node, index + 1);
            set_child(node, index + 1, first, new);
        });
    }

    pub(super) fn unmap_extents(&mut self, inode: &mut Inode, freed: &Freed) {
        let Some(((leaf, _), above)) = freed.path.split_last() else { return };
        let mut is_empty = self.with_node(inode, *leaf, |node| {
            for (index, kept) in &freed.entries {
                match kept {
                    0 => extents::remove(node, *index),
                    kept => set_extent(node, *index, Extent { length: *kept, ..extent(node, *index) }),
                }
            }
            count(node) == 0
        });
        let mut below = *leaf;
        for (address, index) in above.iter().rev() {
            if !is_empty {
                return;
            }
            self.free_node(inode, below);
            is_empty = self.with_node(inode, *address, |node| {
                extents::remove(node, *index);
                count(node) == 0
            });
            below = *address;
        }
        if is_empty {
            begin(&mut inode.root, 0);
        }
    }
}

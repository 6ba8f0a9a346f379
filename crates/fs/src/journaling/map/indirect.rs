//! Indirect blocks: an inode has 12 addresses, and one each of an indirect, a double and a triple indirect block of 1,024.

use super::super::core::{Core, Role, Stop};
use super::super::format::extents::Extent;
use super::super::format::inode::Inode;
use super::super::view::View;
use super::{Freed, MOST_RUNS};
use crate::call::Errno;
use crate::format::{get_u32, put_u32};

/// Addresses of blocks that an inode has.
const DIRECT: u32 = 12;

/// Addresses of a block.
const FAN: u32 = 1024;

/// Blocks of a file that an entry leads to, so many levels above the blocks.
const fn span(level: u32) -> u64 {
    (FAN as u64).pow(level)
}

/// Indirect blocks of a file of so many blocks without a hole.
pub(super) fn of_blocks(blocks: u64) -> u64 {
    let mut left = blocks.saturating_sub(DIRECT.into());
    let mut all = 0;
    for level in 1..=3 {
        let here = left.min(span(level));
        all += (1..=level).map(|below| here.div_ceil(span(below))).sum::<u64>();
        left -= here;
    }
    all
}

/// The entry of the inode that leads to a block, levels of indirect blocks below it, and the first block of the file there.
fn slot(block: u32) -> (usize, u32, u64) {
    if block < DIRECT {
        return (block as usize, 0, block.into());
    }
    let mut first = u64::from(DIRECT);
    for level in 1..=3 {
        if u64::from(block) < first + span(level) {
            return (DIRECT as usize + level as usize - 1, level, first);
        }
        first += span(level);
    }
    unreachable!("a file has at most 2^30 blocks")
}

fn node<'a>(view: &View<'a>, address: u32) -> Result<&'a [u8], Stop> {
    if view.is_for_files(address, 1) { Ok(&view.block(address, Role::Index)?[..]) } else { Err(Errno::Io.into()) }
}

/// The entries that lead to a block: node, or 0 for the inode, and entry; down to the first that leads nowhere. How many levels are missing.
fn path(view: &View<'_>, inode: &Inode, block: u32) -> Result<(Vec<(u32, usize)>, u32), Stop> {
    let (entry, levels, first) = slot(block);
    let mut steps = vec![(0, entry)];
    let (mut to, mut within) = (get_u32(&inode.root, 4 * entry), u64::from(block) - first);
    for level in (0..levels).rev() {
        if to == 0 {
            return Ok((steps, level + 1));
        }
        let entry = (within / span(level)) as usize;
        within %= span(level);
        let bytes = node(view, to)?;
        steps.push((to, entry));
        to = get_u32(bytes, 4 * entry);
    }
    Ok((steps, 0))
}

pub(super) fn find(view: &View<'_>, inode: &Inode, block: u32) -> Result<Option<Extent>, Stop> {
    let (steps, missing) = path(view, inode, block)?;
    let (address, entry) = steps[steps.len() - 1];
    let start = match address {
        _ if missing > 0 => 0,
        0 => get_u32(&inode.root, 4 * entry),
        address => get_u32(node(view, address)?, 4 * entry),
    };
    Ok((start != 0).then_some(Extent { first: block, length: 1, start }))
}

pub(super) fn spares(view: &View<'_>, inode: &Inode, block: u32) -> Result<usize, Stop> {
    path(view, inode, block).map(|(_, missing)| missing as usize)
}

pub(super) fn is_small(inode: &Inode) -> bool {
    (DIRECT as usize..15).all(|entry| get_u32(&inode.root, 4 * entry) == 0)
}

/// Blocks that a node names, from an entry on, as runs; the last entries first.
fn runs(bytes: &[u8], from: usize, end: usize, freed: &mut Freed) {
    for entry in (from..end).rev() {
        let address = get_u32(bytes, 4 * entry);
        if address == 0 {
            continue;
        }
        let is_full = freed.runs.len() == MOST_RUNS;
        match freed.runs.last_mut() {
            Some((first, count)) if *first == address + 1 => (*first, *count) = (address, *count + 1),
            _ if is_full => return,
            _ => freed.runs.push((address, 1)),
        }
        freed.entries.push((entry, 0));
    }
}

/// The last blocks below an entry, so many levels above the blocks, whose first block is `first`.
fn below(
    view: &View<'_>,
    address: u32,
    (level, first, from): (u32, u64, u32),
    path: &mut Vec<(u32, usize)>,
) -> Result<Option<Freed>, Stop> {
    let bytes = node(view, address)?;
    let part = (u64::from(from).saturating_sub(first) / span(level - 1)).min(FAN.into()) as usize;
    if level == 1 {
        let mut freed = Freed::default();
        runs(bytes, part, FAN as usize, &mut freed);
        path.push((address, 0));
        freed.path.clone_from(path);
        path.pop();
        let is_used = (0..FAN as usize).any(|entry| get_u32(bytes, 4 * entry) != 0);
        return Ok((!freed.runs.is_empty() || !is_used).then_some(freed));
    }
    for entry in (part..FAN as usize).rev() {
        let to = get_u32(bytes, 4 * entry);
        if to == 0 {
            continue;
        }
        path.push((address, entry));
        let found = below(view, to, (level - 1, first + entry as u64 * span(level - 1), from), path)?;
        path.pop();
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

pub(super) fn last(view: &View<'_>, inode: &Inode, from: u32) -> Result<Option<Freed>, Stop> {
    let firsts = [u64::from(DIRECT), u64::from(DIRECT) + span(1), u64::from(DIRECT) + span(1) + span(2)];
    for level in (1..=3_u32).rev() {
        let entry = (DIRECT + level - 1) as usize;
        let (to, first) = (get_u32(&inode.root, 4 * entry), firsts[level as usize - 1]);
        if to == 0 || first + span(level) <= u64::from(from) {
            continue;
        }
        if let Some(found) = below(view, to, (level, first, from), &mut vec![(0, entry)])? {
            return Ok(Some(found));
        }
    }
    let mut freed = Freed { path: vec![(0, 0)], ..Freed::default() };
    runs(&inode.root, from.min(DIRECT) as usize, DIRECT as usize, &mut freed);
    Ok((!freed.runs.is_empty()).then_some(freed))
}

impl Core {
    fn set_entry(&mut self, inode: &mut Inode, (address, entry): (u32, usize), to: u32) {
        match address {
            0 => put_u32(&mut inode.root, 4 * entry, to),
            address => put_u32(&mut self.block_mut(address)[..], 4 * entry, to),
        }
    }

    pub(super) fn map_indirect(&mut self, inode: &mut Inode, run: Extent, spares: &mut Vec<u32>) {
        let mut block = run.first;
        while block < run.end() {
            let (steps, missing) = path(&View::of(self), inode, block).expect("gather has walked here");
            let last = steps[steps.len() - 1];
            if missing == 0 {
                self.set_entry(inode, last, run.address(block));
                block += 1;
                continue;
            }
            let new = spares.pop().expect("gather has picked blocks");
            self.new_block(new, Role::Index);
            inode.index_blocks += 1;
            self.set_entry(inode, last, new);
        }
    }

    pub(super) fn unmap_indirect(&mut self, inode: &mut Inode, freed: &Freed) {
        let Some(((leaf, _), above)) = freed.path.split_last() else { return };
        for (entry, _) in &freed.entries {
            self.set_entry(inode, (*leaf, *entry), 0);
        }
        let mut below = *leaf;
        for step in above.iter().rev() {
            let is_used = (0..FAN as usize).any(|entry| get_u32(&self.block_mut(below)[..], 4 * entry) != 0);
            if is_used {
                return;
            }
            self.free_node(inode, below);
            self.set_entry(inode, *step, 0);
            below = step.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first block behind what an entry leads to brings a block for each level of the next one.
    #[test]
    fn indirect_blocks_are_those_of_each_level() {
        let (one, two) = (12 + 1024, 12 + 1024 + (1 << 20));
        let counts = [(0, 0), (12, 0), (13, 1), (one, 1), (one + 1, 3), (one + 1024, 3), (one + 1025, 4)];
        let large = [(two, 1 + 1 + 1024), (two + 1, 1 + 1 + 1024 + 3)];
        for (blocks, expected) in counts.into_iter().chain(large) {
            assert_eq!(of_blocks(blocks), expected, "{blocks} blocks");
        }
    }
}

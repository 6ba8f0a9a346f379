//! Block groups: which blocks and inodes are free, and which are next.
//!
//! A block that a transaction frees is free in its bitmap at once, and *held* until that transaction is durable and the drive has trimmed
//! the block: before, a crash would bring back what names it.

use super::core::{Core, Role, Stop};
use super::format::group::Descriptor;
use super::format::superblock::Superblock;
use super::view::View;
use crate::call::{Errno, FileKind};
use crate::format::Bytes;
use crate::seeded::{FsBug, seeded};

/// Groups that are looked at for a longer run than the first one has.
const LOOKED_AT: usize = 4;

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    /// What its descriptor says.
    pub(crate) told: Descriptor,
    /// Bits of the blocks that are held; empty where none is.
    held: Vec<u64>,
    held_count: u32,
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) groups: Vec<Group>,
    /// Blocks that can be allocated.
    pub(crate) free: u64,
    /// Blocks that are held.
    pub(crate) held: u64,
    /// Blocks that are promised to pages, and to what will say where they are.
    pub(crate) reserved: u64,
    /// Blocks that files and directories can have.
    pub(crate) user_blocks: u64,
    /// Something was to be freed that is free, or to be taken that is not: metadata contradicts itself.
    pub(crate) contradiction: Option<u32>,
}

impl Space {
    pub(crate) fn new(superblock: &Superblock, told: Vec<Descriptor>) -> Space {
        let free = told.iter().map(|group| u64::from(group.free_blocks)).sum();
        let prefixes: u64 = (0..superblock.groups()).map(|group| u64::from(superblock.prefix(group))).sum();
        Space {
            groups: told.into_iter().map(|told| Group { told, held: Vec::new(), held_count: 0 }).collect(),
            free,
            held: 0,
            reserved: 0,
            user_blocks: u64::from(superblock.blocks) - prefixes - u64::from(superblock.journal),
            contradiction: None,
        }
    }

    /// Inodes that nothing has.
    pub(crate) fn free_inodes(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.told.free_inodes)).sum()
    }

    /// Memory of the groups, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.groups.iter().map(|group| size_of::<Group>() + 8 * group.held.len()).sum()
    }
}

/// Whether a bit of a bitmap is set.
pub(crate) fn is_set(bitmap: &Bytes, at: u32) -> bool {
    bitmap[at as usize / 8] & 1 << (at % 8) != 0
}

/// Sets a bit of a bitmap, or clears it; what it was.
pub(crate) fn replace(bitmap: &mut Bytes, at: u32, set: bool) -> bool {
    let (byte, bit) = (&mut bitmap[at as usize / 8], 1 << (at % 8));
    let was = *byte & bit != 0;
    *byte = if set { *byte | bit } else { *byte & !bit };
    was
}

/// Chooses blocks for one call: none twice.
pub(crate) struct Picker<'v, 'a> {
    view: &'v View<'a>,
    taken: Vec<(u32, u32)>,
}

impl<'v, 'a> Picker<'v, 'a> {
    pub(crate) const fn new(view: &'v View<'a>) -> Picker<'v, 'a> {
        Picker { view, taken: Vec::new() }
    }

    /// Groups of what was chosen.
    pub(crate) fn groups(&self) -> usize {
        let superblock = &self.view.core.superblock;
        let mut groups: Vec<u32> = self.taken.iter().map(|(first, _)| superblock.group_of(*first)).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.len()
    }

    /// A run of `want` free blocks at most, near `goal`: its first block, and how many.
    pub(crate) fn pick(&mut self, goal: u32, want: u32) -> Result<(u32, u32), Stop> {
        let core = self.view.core;
        let count = core.space.groups.len() as u32;
        let goal = goal.min(core.superblock.blocks - 1);
        let begin = core.superblock.group_of(goal);
        let (mut best, mut looked) = ((0, 0), 0);
        for step in 0..count {
            let group = (begin + step) % count;
            let at = if step == 0 { goal - core.superblock.first_of(group) } else { 0 };
            let Some(found) = self.in_group(group, at, want)? else { continue };
            if found.1 > best.1 {
                best = found;
            }
            looked += 1;
            if best.1 >= want || looked == LOOKED_AT {
                break;
            }
        }
        if best.1 == 0 {
            return Err(Errno::NoSpace.into());
        }
        self.taken.push(best);
        Ok(best)
    }

    /// Single blocks near `goal`.
    pub(crate) fn each(&mut self, goal: u32, count: usize) -> Result<Vec<u32>, Stop> {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let (first, length) = self.pick(all.last().map_or(goal, |last| last + 1), (count - all.len()) as u32)?;
            all.extend(first..first + length);
        }
        Ok(all)
    }

    fn in_group(&self, group: u32, goal: u32, want: u32) -> Result<Option<(u32, u32)>, Stop> {
        let core = self.view.core;
        let (superblock, space) = (&core.superblock, &core.space.groups[group as usize]);
        let (first, blocks) = (superblock.first_of(group), superblock.blocks_of(group));
        let taken = || self.taken.iter().filter(|(at, _)| superblock.group_of(*at) == group);
        let taken_count: u32 = taken().map(|(_, count)| *count).sum();
        if space.told.free_blocks <= space.held_count + taken_count {
            return Ok(None);
        }
        let bitmap = self.view.block(superblock.block_bitmap(group), Role::BlockBitmap(group))?;
        let is_held = |at: u32| space.held.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        let is_taken = |at: u32| taken().any(|(begin, count)| (*begin..begin + count).contains(&(first + at)));
        let is_free =
            |at: u32| !is_set(bitmap, at) && (!is_held(at) || seeded(FsBug::FreedBlockUsedAgain)) && !is_taken(at);
        let mut best = (0, 0);
        // From the goal to the end, and then from the beginning.
        for range in [goal..blocks, 0..goal] {
            let mut at = range.start;
            while at < range.end {
                if at.is_multiple_of(8) && at + 8 <= range.end && bitmap[at as usize / 8] == 0xff {
                    at += 8;
                    continue;
                }
                if !is_free(at) {
                    at += 1;
                    continue;
                }
                let begin = at;
                while at < range.end && at - begin < want && is_free(at) {
                    at += 1;
                }
                if at - begin > best.1 {
                    best = (first + begin, at - begin);
                }
                if best.1 >= want {
                    return Ok(Some(best));
                }
            }
        }
        Ok((best.1 > 0).then_some(best))
    }
}

impl View<'_> {
    /// Fails where so many blocks more would not fit; what write-out and a commit may free is waited for.
    pub(crate) fn room(&self, blocks: u64) -> Result<(), Stop> {
        let core = self.core;
        if core.space.free >= core.space.reserved + blocks {
            return Ok(());
        }
        let may_win = core.space.reserved > 0 || core.space.held > 0 || !core.freeing.is_empty();
        // What is promised may be less in the end than the worst that is reserved for it.
        if may_win { Err(Stop::Space) } else { Err(Errno::NoSpace.into()) }
    }

    /// A free inode for a new file or directory in a directory: files in the group of their directory, directories in one with few of
    /// them and much room (Orlov, as ext4 does).
    pub(crate) fn new_inode(&self, parent: u32, kind: FileKind) -> Result<u32, Stop> {
        let (superblock, groups) = (&self.core.superblock, &self.core.space.groups);
        let count = groups.len() as u32;
        let near = superblock.group_of_inode(parent);
        let begin = if kind == FileKind::Directory {
            let inodes = self.core.space.free_inodes() / u64::from(count);
            let blocks = groups.iter().map(|group| u64::from(group.told.free_blocks)).sum::<u64>() / u64::from(count);
            let is_roomy = |group: &&u32| {
                let told = &groups[**group as usize].told;
                u64::from(told.free_inodes) >= inodes.max(1) && u64::from(told.free_blocks) >= blocks
            };
            let order: Vec<u32> = (0..count).map(|step| (near + step) % count).collect();
            let least = order.iter().filter(is_roomy).min_by_key(|group| groups[**group as usize].told.directories);
            least.copied().unwrap_or(near)
        } else {
            near
        };
        for step in 0..count {
            let group = (begin + step) % count;
            if groups[group as usize].told.free_inodes == 0 {
                continue;
            }
            let bitmap = self.block(superblock.inode_bitmap(group), Role::InodeBitmap(group))?;
            if let Some(index) = (0..superblock.group_inodes).find(|index| !is_set(bitmap, *index)) {
                return Ok(group * superblock.group_inodes + index + 1);
            }
        }
        Err(Errno::NoSpace.into())
    }

    /// Sees that an inode can be given back.
    pub(crate) fn inode_bitmap(&self, number: u32) -> Result<(), Stop> {
        let group = self.core.superblock.group_of_inode(number);
        self.block(self.core.superblock.inode_bitmap(group), Role::InodeBitmap(group)).map(|_| ())
    }

    /// Sees that blocks can be given back.
    pub(crate) fn block_bitmaps(&self, first: u32, count: u32) -> Result<(), Stop> {
        let superblock = &self.core.superblock;
        for group in superblock.group_of(first)..=superblock.group_of(first + count.max(1) - 1) {
            self.block(superblock.block_bitmap(group), Role::BlockBitmap(group))?;
        }
        Ok(())
    }

    /// Whether blocks are ones that files can have.
    pub(crate) fn is_for_files(&self, first: u32, count: u32) -> bool {
        let superblock = &self.core.superblock;
        let Some(end) = first.checked_add(count).filter(|end| *end <= superblock.blocks && count > 0) else {
            return false;
        };
        let groups = superblock.group_of(first)..=superblock.group_of(end - 1);
        let is_free = |group: u32| superblock.first_of(group) + superblock.prefix(group);
        groups.into_iter().all(|group| first.max(superblock.first_of(group)) >= is_free(group))
    }
}

impl Core {
    /// Blocks are used from now on.
    pub(crate) fn take_blocks(&mut self, first: u32, count: u32) {
        self.space.free = self.space.free.saturating_sub(count.into());
        self.mark(first, count, true);
    }

    /// Blocks are free, and held until this is durable.
    pub(crate) fn free_blocks(&mut self, first: u32, count: u32) {
        self.mark(first, count, false);
        for at in first..first + count {
            let group = self.superblock.group_of(at);
            let (bit, blocks) = (at - self.superblock.first_of(group), self.superblock.blocks_of(group));
            let group = &mut self.space.groups[group as usize];
            group.held.resize((blocks as usize).div_ceil(64), 0);
            group.held[bit as usize / 64] |= 1 << (bit % 64);
            group.held_count += 1;
        }
        self.space.held += u64::from(count);
        self.running.freed.push((first, count));
    }

    /// Blocks are not held any more.
    pub(crate) fn release_blocks(&mut self, first: u32, count: u32) {
        for at in first..first + count {
            let group = self.superblock.group_of(at);
            let bit = at - self.superblock.first_of(group);
            let group = &mut self.space.groups[group as usize];
            group.held[bit as usize / 64] &= !(1 << (bit % 64));
            group.held_count -= 1;
            if group.held_count == 0 {
                group.held = Vec::new();
            }
        }
        self.space.held -= u64::from(count);
        self.space.free += u64::from(count);
    }

    fn mark(&mut self, first: u32, count: u32, is_used: bool) {
        for at in first..first + count {
            let group = self.superblock.group_of(at);
            let bit = at - self.superblock.first_of(group);
            let bitmap = self.block_mut(self.superblock.block_bitmap(group));
            if replace(bitmap, bit, is_used) == is_used {
                self.space.contradiction = Some(at);
                continue;
            }
            let told = &mut self.space.groups[group as usize].told;
            told.free_blocks =
                if is_used { told.free_blocks.saturating_sub(1) } else { told.free_blocks.saturating_add(1) };
            self.running.blocks.insert(self.superblock.descriptor_block(group));
        }
    }

    /// An inode is used from now on.
    pub(crate) fn take_inode(&mut self, number: u32, kind: FileKind) {
        let (group, index) = self.mark_inode(number, true);
        let inodes = self.superblock.group_inodes;
        let told = &mut self.space.groups[group as usize].told;
        told.free_inodes = told.free_inodes.saturating_sub(1);
        told.unused_inodes = told.unused_inodes.min(inodes - index - 1);
        told.directories += u32::from(kind == FileKind::Directory);
    }

    /// An inode is free.
    pub(crate) fn give_inode(&mut self, number: u32, kind: FileKind) {
        let (group, _) = self.mark_inode(number, false);
        let told = &mut self.space.groups[group as usize].told;
        told.free_inodes = (told.free_inodes + 1).min(self.superblock.group_inodes);
        told.directories = told.directories.saturating_sub(u32::from(kind == FileKind::Directory));
    }

    fn mark_inode(&mut self, number: u32, is_used: bool) -> (u32, u32) {
        let group = self.superblock.group_of_inode(number);
        let index = (number - 1) % self.superblock.group_inodes;
        let bitmap = self.superblock.inode_bitmap(group);
        if replace(self.block_mut(bitmap), index, is_used) == is_used {
            self.space.contradiction = Some(bitmap);
        }
        self.running.blocks.insert(self.superblock.descriptor_block(group));
        (group, index)
    }
}

//! Where the blocks of a file are: extents by the rules of ext4, indirect blocks by those of ext3.

mod extents;
mod indirect;

use super::Rules;
use super::core::{Core, Stop};
use super::format::extents::Extent;
use super::format::inode::Inode;
use super::space::Picker;
use super::view::View;
use crate::call::FileKind;
use crate::config::MakeOptions;

/// Runs of blocks that one step of freeing gives back at most.
pub(crate) const MOST_RUNS: usize = 8;

/// An empty map.
pub(crate) fn begin(rules: Rules, inode: &mut Inode) {
    inode.root.fill(0);
    if rules == Rules::Ext4 {
        super::format::extents::begin(&mut inode.root, 0);
    }
}

/// The run of blocks that has a block of a file; `None` for a hole.
pub(crate) fn find(view: &View<'_>, inode: &Inode, block: u32) -> Result<Option<Extent>, Stop> {
    let found = match view.core.superblock.rules {
        Rules::Ext4 => extents::find(view, inode, block)?,
        Rules::Ext3 => indirect::find(view, inode, block)?,
    };
    match found {
        Some(run) if !view.is_for_files(run.start, run.length) => Err(crate::call::Errno::Io.into()),
        found => Ok(found),
    }
}

/// Sees that a block of a file can be mapped. Blocks that come into being for that at most.
pub(crate) fn spares(view: &View<'_>, inode: &Inode, block: u32) -> Result<usize, Stop> {
    match view.core.superblock.rules {
        Rules::Ext4 => extents::spares(view, inode, block),
        Rules::Ext3 => indirect::spares(view, inode, block),
    }
}

/// Blocks that say where those of a file are which has so many and no hole; inodes have room of their own. Extents of a file that is written
/// in order are few.
pub(crate) fn file_metadata(blocks: u64, make: &MakeOptions) -> u64 {
    match make.rules {
        Rules::Ext4 => 0,
        Rules::Ext3 => indirect::of_blocks(blocks),
    }
}

/// The most blocks that come into being for pages of a file that are not mapped, however they fall.
pub(crate) fn worst(inode: &Inode, pages: u64) -> u64 {
    extents::worst(inode, pages)
}

/// Near which block the first blocks of a file are: behind the one before, or in the group of the inode.
pub(crate) fn goal(view: &View<'_>, inode: &Inode, block: u32) -> Result<u32, Stop> {
    let before = match block.checked_sub(1) {
        Some(before) => find(view, inode, before)?.map(|run| run.address(before) + 1),
        None => None,
    };
    let superblock = &view.core.superblock;
    Ok(before.unwrap_or_else(|| superblock.first_of(superblock.group_of_inode(inode.number))))
}

/// Blocks for one block of a directory that has none: its own, and those that say where it is.
pub(crate) fn pick_one(view: &View<'_>, inode: &Inode, block: u32) -> Result<(u32, Vec<u32>), Stop> {
    let mut picker = Picker::new(view);
    let (address, _) = picker.pick(goal(view, inode, block)?, 1)?;
    let spares = spares(view, inode, block)?;
    Ok((address, picker.each(address, spares)?))
}

/// What a step of freeing gives back: runs of blocks of the file, and where they stand.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// Runs of blocks: where, and how many.
    pub(crate) runs: Vec<(u32, u32)>,
    /// Nodes from the inode down to the one that names them: the node's block, or 0 for the inode, and the entry.
    path: Vec<(u32, usize)>,
    /// For each run the entry, and what of it stays.
    entries: Vec<(usize, u32)>,
}

/// The last blocks of a file from a block on; `None` if it has none there.
pub(crate) fn last(view: &View<'_>, inode: &Inode, from: u32) -> Result<Option<Freed>, Stop> {
    let found = match view.core.superblock.rules {
        Rules::Ext4 => extents::last(view, inode, from)?,
        Rules::Ext3 => indirect::last(view, inode, from)?,
    };
    let Some(found) = found else { return Ok(None) };
    for (first, count) in &found.runs {
        if !view.is_for_files(*first, *count) {
            return Err(crate::call::Errno::Io.into());
        }
        view.block_bitmaps(*first, *count)?;
    }
    for (address, _) in found.path.iter().filter(|(address, _)| *address != 0) {
        view.block_bitmaps(*address, 1)?;
    }
    Ok(Some(found))
}

/// Whether a file is freed from a block on in one step: nothing but its inode says where its blocks are.
pub(crate) fn is_small(view: &View<'_>, inode: &Inode) -> bool {
    match view.core.superblock.rules {
        Rules::Ext4 => super::format::extents::depth(&inode.root) == 0,
        Rules::Ext3 => indirect::is_small(inode),
    }
}

impl Core {
    /// A run of blocks of a file is at a place from now on; what it needs beside comes from `spares`.
    pub(crate) fn map_blocks(&mut self, inode: &mut Inode, run: Extent, spares: &mut Vec<u32>) {
        match self.superblock.rules {
            Rules::Ext4 => self.map_extent(inode, run, spares),
            Rules::Ext3 => self.map_indirect(inode, run, spares),
        }
        inode.blocks += u64::from(run.length);
    }

    /// Frees what a step found.
    pub(crate) fn unmap(&mut self, inode: &mut Inode, freed: &Freed) {
        for (first, count) in &freed.runs {
            if inode.kind == FileKind::Directory {
                (*first..first + count).for_each(|address| self.free_metadata(address));
            } else {
                self.free_blocks(*first, *count);
            }
            inode.blocks = inode.blocks.saturating_sub(u64::from(*count));
        }
        match self.superblock.rules {
            Rules::Ext4 => self.unmap_extents(inode, freed),
            Rules::Ext3 => self.unmap_indirect(inode, freed),
        }
    }

    fn free_node(&mut self, inode: &mut Inode, address: u32) {
        self.free_metadata(address);
        inode.index_blocks = inode.index_blocks.saturating_sub(1);
    }
}

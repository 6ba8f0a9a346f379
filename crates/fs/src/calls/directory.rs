//! Names in a directory: finding one, finding room for one, putting it in and taking it out. Calls are made of these.

use crate::call::{Errno, FileKind};
use crate::core::cache::Key;
use crate::core::view::{Leaf, Looks};
use crate::core::{Cancel, Core, Stop, View};
use crate::format::directory::{self, MOST_LEVELS, blocks_of, bucket, hash_of, slots_of};
use crate::format::inode::Inode;
use crate::format::{BLOCK, Bytes, NOWHERE};

/// Where a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) block: u32,
    pub(crate) slot: usize,
    pub(crate) number: u32,
    pub(crate) kind: FileKind,
}

/// Where a name goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) block: u32,
    slot: usize,
    /// The block comes into being.
    is_new: bool,
    /// Levels of the directory then.
    depth: u8,
    /// Index blocks that come into being.
    pub(crate) nodes: u32,
}

impl Spot {
    /// Blocks that it takes.
    pub(crate) fn blocks(&self) -> u32 {
        u32::from(self.is_new) + self.nodes
    }
}

/// The bytes of a block of a directory; `None` if it has none.
pub(crate) fn block<'a>(view: &View<'a>, inode: &Inode, index: u32) -> Result<Option<&'a Bytes>, Stop> {
    if !view.page(inode, index)? {
        return Ok(None);
    }
    let page = view.core.cache.page(inode.number, index).ok_or(Stop::Failed(Errno::Io))?;
    let bytes: &[u8; BLOCK] = page.cells[..].try_into().map_err(|_| Stop::Failed(Errno::Io))?;
    Ok(Some(bytes))
}

/// Finds a name.
pub(crate) fn find(view: &View<'_>, inode: &Inode, name: &[u8]) -> Result<Option<Found>, Stop> {
    let (hash, mut looks) = (hash_of(name), Looks::default());
    for level in 0..inode.depth {
        for index in bucket(hash, level) {
            let Some(Some(bytes)) = looks.at(block(view, inode, index))? else { continue };
            let same = |found: &directory::Found<'_>| found.hash == hash && found.name == name;
            if let Some(found) = directory::entries(bytes, 0).find(same) {
                return Ok(Some(Found { block: index, slot: found.slot, number: found.number, kind: found.kind }));
            }
        }
    }
    looks.end()?;
    Ok(None)
}

/// Finds room for a name that is not there, and sees that all is at hand that putting it there changes.
pub(crate) fn spot(view: &View<'_>, inode: &Inode, name: &[u8]) -> Result<Spot, Stop> {
    let (hash, slots) = (hash_of(name), slots_of(name));
    let mut depth = inode.depth;
    let mut found = None;
    'levels: for level in 0..inode.depth {
        for index in bucket(hash, level) {
            let (slot, is_new) = match block(view, inode, index)? {
                Some(bytes) => (directory::room(bytes, slots), false),
                None => (Some(0), true),
            };
            if let Some(slot) = slot {
                found = Some((index, slot, is_new));
                break 'levels;
            }
        }
    }
    let (index, slot, is_new) = match found {
        Some(found) => found,
        None if depth == MOST_LEVELS => return Err(Errno::NoSpace.into()),
        None => {
            depth += 1;
            (bucket(hash, depth - 1).start, 0, true)
        }
    };
    let nodes = changeable(view, inode, index)?;
    Ok(Spot { block: index, slot, is_new, depth, nodes })
}

/// Sees that a block of a directory may become dirty. Index blocks that are missing before that.
pub(crate) fn changeable(view: &View<'_>, inode: &Inode, index: u32) -> Result<u32, Stop> {
    view.may_change(inode.number)?;
    match view.leaf(inode, index)? {
        Leaf::In(leaf) => view.may_change(leaf).map(|()| 0),
        Leaf::Absent { below, missing } => view.may_change(below).map(|()| missing),
    }
}

impl Core {
    /// Puts a name into a directory.
    pub(crate) fn put_name(
        &mut self,
        parent: u32,
        spot: &Spot,
        numbers: &mut Vec<u32>,
        name: &[u8],
        to: (u32, FileKind),
    ) {
        if spot.is_new {
            self.insert_directory_block(parent, spot.block);
        }
        let leaf = self.leaf_or_new(parent, spot.block, numbers);
        self.set_page_dirty(parent, spot.block, leaf, FileKind::Directory);
        directory::put(self.directory_block_mut(parent, spot.block), spot.slot, name, to.0, to.1);
        let now = self.now;
        let inode = self.inode_mut(parent);
        inode.depth = inode.depth.max(spot.depth);
        inode.size = inode.size.max(u64::from(blocks_of(spot.depth)) * BLOCK as u64);
        inode.entries = inode.entries.saturating_add(1);
        (inode.modified, inode.changed) = (now, now);
    }

    /// A directory has one subdirectory more or less. A damaged inode may have any count.
    pub(crate) fn count_link(&mut self, directory: u32, change: i32) {
        let inode = self.inode_mut(directory);
        inode.links = inode.links.saturating_add_signed(change);
    }

    /// Takes a name out of a directory.
    pub(crate) fn take_name(&mut self, parent: u32, found: &Found) {
        let leaf = self.leaf_or_new(parent, found.block, &mut Vec::new());
        self.set_page_dirty(parent, found.block, leaf, FileKind::Directory);
        let bytes = self.directory_block_mut(parent, found.block);
        directory::remove(bytes, found.slot);
        if directory::is_empty(bytes) {
            self.drop_page(parent, found.block, FileKind::Directory);
            self.cancelled.push(Cancel::One(Key::page(parent, found.block)));
            self.move_block(parent, leaf, found.block, NOWHERE);
        }
        let now = self.now;
        let inode = self.inode_mut(parent);
        inode.entries = inode.entries.saturating_sub(1);
        (inode.modified, inode.changed) = (now, now);
    }

    /// A name leads to another inode.
    pub(crate) fn lead_name(&mut self, parent: u32, found: &Found, number: u32) {
        let leaf = self.leaf_or_new(parent, found.block, &mut Vec::new());
        self.set_page_dirty(parent, found.block, leaf, FileKind::Directory);
        directory::lead(self.directory_block_mut(parent, found.block), found.slot, number);
        let now = self.now;
        let inode = self.inode_mut(parent);
        (inode.modified, inode.changed) = (now, now);
    }
}

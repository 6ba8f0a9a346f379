//! Names in a directory: finding one, finding room for one, putting it in and taking it out. Calls are made of these. Blocks of directories
//! are those of all kinds, and metadata here: a transaction has them.

use super::super::core::{Core, Role, Stop};
use super::super::format::extents::Extent;
use super::super::format::inode::Inode;
use super::super::map;
use super::super::view::{Looks, View};
use crate::call::{Errno, FileKind};
use crate::format::BLOCK;
use crate::format::directory::{self, MOST_LEVELS, blocks_of, bucket, hash_of, slots_of};

/// Where a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    address: u32,
    slot: usize,
    pub(crate) number: u32,
    pub(crate) kind: FileKind,
}

/// Where a name goes.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    block: u32,
    slot: usize,
    address: u32,
    /// Levels of the directory then.
    depth: u8,
    /// The block comes into being, and these blocks that say where it is.
    new: Option<Vec<u32>>,
}

/// Finds a name.
pub(crate) fn find(view: &View<'_>, inode: &Inode, name: &[u8]) -> Result<Option<Found>, Stop> {
    let (hash, mut looks) = (hash_of(name), Looks::default());
    for level in 0..inode.depth {
        for index in bucket(hash, level) {
            let Some(Some((address, bytes))) = looks.at(view.directory_block(inode, index))? else { continue };
            let same = |found: &directory::Found<'_>| found.hash == hash && found.name == name;
            if let Some(found) = directory::entries(bytes, 0).find(same) {
                return Ok(Some(Found { address, slot: found.slot, number: found.number, kind: found.kind }));
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
    let mut new = None;
    for level in 0..inode.depth {
        for index in bucket(hash, level) {
            match view.directory_block(inode, index)? {
                Some((address, bytes)) => {
                    if let Some(slot) = directory::room(bytes, slots) {
                        return Ok(Spot { block: index, slot, address, depth, new: None });
                    }
                }
                None => new = new.or(Some(index)),
            }
        }
        if new.is_some() {
            break;
        }
    }
    let block = match new {
        Some(block) => block,
        None if depth == MOST_LEVELS => return Err(Errno::NoSpace.into()),
        None => {
            depth += 1;
            bucket(hash, depth - 1).start
        }
    };
    let spares = map::spares(view, inode, block)?;
    view.room(1 + spares as u64)?;
    let (address, spares) = map::pick_one(view, inode, block)?;
    Ok(Spot { block, slot: 0, address, depth, new: Some(spares) })
}

impl Core {
    /// Puts a name into a directory.
    pub(crate) fn put_name(&mut self, parent: u32, spot: Spot, name: &[u8], to: (u32, FileKind)) {
        let Spot { block, slot, address, depth, new } = spot;
        let mut inode = self.inode(parent);
        if let Some(mut spares) = new {
            self.new_block(address, Role::Directory { inode: parent, generation: inode.generation, index: block });
            self.map_blocks(&mut inode, Extent { first: block, length: 1, start: address }, &mut spares);
        }
        directory::put(self.block_mut(address), slot, name, to.0, to.1);
        inode.depth = inode.depth.max(depth);
        inode.size = inode.size.max(u64::from(blocks_of(depth)) * BLOCK as u64);
        inode.entries = inode.entries.saturating_add(1);
        (inode.modified, inode.changed) = (self.now, self.now);
        self.put_inode(&inode);
    }

    /// A directory has one subdirectory more or less. A damaged inode may have any count.
    pub(crate) fn count_link(&mut self, directory: u32, change: i32) {
        self.change(directory, |inode| inode.links = inode.links.saturating_add_signed(change));
    }

    /// Takes a name out of a directory. Its block stays, as in ext4.
    pub(crate) fn take_name(&mut self, parent: u32, found: &Found) {
        directory::remove(self.block_mut(found.address), found.slot);
        let now = self.now;
        self.change(parent, |inode| {
            inode.entries = inode.entries.saturating_sub(1);
            (inode.modified, inode.changed) = (now, now);
        });
    }

    /// A name leads to another inode.
    pub(crate) fn lead_name(&mut self, parent: u32, found: &Found, number: u32) {
        directory::lead(self.block_mut(found.address), found.slot, number);
        let now = self.now;
        self.change(parent, |inode| (inode.modified, inode.changed) = (now, now));
    }
}

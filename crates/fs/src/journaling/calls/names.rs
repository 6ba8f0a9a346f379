//! Lookup, create, mkdir, unlink, rmdir, list.

use super::super::core::{Core, Op, Stop};
use super::super::format::inode::Inode;
use super::super::map;
use super::super::view::{Looks, View};
use super::CREDITS;
use super::directory::{self as dir, Found, Spot};
use crate::call::{Entry, Errno, FileId, FileKind, Reply, check_name};
use crate::format::directory::{MOST_LEVELS, SLOTS, blocks_of, entries};

/// Blocks of a directory that a listing asks for together.
const LISTED_AHEAD: u32 = 8;

/// [`Call::Lookup`](crate::call::Call::Lookup).
pub(crate) struct Lookup<'a> {
    pub(crate) directory: FileId,
    pub(crate) name: &'a [u8],
}

impl Op for Lookup<'_> {
    type Plan = u32;
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<u32, Stop> {
        check_name(self.name)?;
        let inode = view.directory(self.directory)?;
        let found = dir::find(view, &inode, self.name)?.ok_or(Stop::Failed(Errno::NotFound))?;
        view.inode(found.number).map(|inode| inode.number)
    }

    fn apply(self, core: &mut Core, number: u32) -> Reply {
        Reply::Found(core.attributes(number))
    }
}

/// [`Call::Create`](crate::call::Call::Create) and [`Call::Mkdir`](crate::call::Call::Mkdir).
pub(crate) struct Create<'a> {
    pub(crate) directory: FileId,
    pub(crate) name: &'a [u8],
    pub(crate) kind: FileKind,
}

impl Op for Create<'_> {
    type Plan = (Spot, u32);
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<(Spot, u32), Stop> {
        check_name(self.name)?;
        let inode = view.directory(self.directory)?;
        if inode.links == 0 {
            return Err(Errno::NotFound.into());
        }
        if dir::find(view, &inode, self.name)?.is_some() {
            return Err(Errno::Exists.into());
        }
        view.credits(CREDITS)?;
        let spot = dir::spot(view, &inode, self.name)?;
        let number = view.new_inode(inode.number, self.kind)?;
        view.inode_bytes(number)?;
        Ok((spot, number))
    }

    fn apply(self, core: &mut Core, (spot, number): (Spot, u32)) -> Reply {
        let parent = self.directory.number;
        let mut inode = Inode::new(number, core.next_generation(number), self.kind, parent, core.now);
        map::begin(core.superblock.rules, &mut inode);
        core.take_inode(number, self.kind);
        core.put_inode(&inode);
        core.put_name(parent, spot, self.name, (number, self.kind));
        if self.kind == FileKind::Directory {
            core.count_link(parent, 1);
        }
        Reply::Found(core.attributes(number))
    }
}

/// [`Call::Unlink`](crate::call::Call::Unlink) of a file, and [`Call::Rmdir`](crate::call::Call::Rmdir) of a directory.
pub(crate) struct Remove<'a> {
    pub(crate) directory: FileId,
    pub(crate) name: &'a [u8],
    pub(crate) kind: FileKind,
}

impl Op for Remove<'_> {
    type Plan = Found;
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<Found, Stop> {
        check_name(self.name)?;
        let inode = view.directory(self.directory)?;
        let found = dir::find(view, &inode, self.name)?.ok_or(Stop::Failed(Errno::NotFound))?;
        match (self.kind, found.kind) {
            (FileKind::File, FileKind::Directory) => return Err(Errno::IsDirectory.into()),
            (FileKind::Directory, FileKind::File) => return Err(Errno::NotDirectory.into()),
            (FileKind::Directory, _) if view.inode(found.number)?.entries > 0 => return Err(Errno::NotEmpty.into()),
            _ => {}
        }
        view.credits(CREDITS)?;
        view.unlinkable(found.number)?;
        Ok(found)
    }

    fn apply(self, core: &mut Core, found: Found) -> Reply {
        core.take_name(self.directory.number, &found);
        if self.kind == FileKind::Directory {
            core.count_link(self.directory.number, -1);
        }
        core.unlinked(found.number);
        Reply::Done
    }
}

/// [`Call::List`](crate::call::Call::List).
pub(crate) struct List {
    pub(crate) directory: FileId,
    pub(crate) position: u64,
    pub(crate) most: u32,
}

impl Op for List {
    type Plan = (Vec<Entry>, bool);
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<(Vec<Entry>, bool), Stop> {
        if self.most == 0 || self.position > u64::from(blocks_of(MOST_LEVELS)) * SLOTS as u64 {
            return Err(Errno::Invalid.into());
        }
        let inode = view.directory(self.directory)?;
        let mut list = Vec::new();
        let (first, slot) = ((self.position / SLOTS as u64) as u32, (self.position % SLOTS as u64) as usize);
        let end = blocks_of(inode.depth);
        for index in first..end {
            let bytes = match view.directory_block(&inode, index) {
                Ok(bytes) => bytes,
                Err(Stop::Missing(_)) => {
                    let mut looks = Looks::default();
                    for ahead in index..end.min(index + LISTED_AHEAD) {
                        looks.at(view.directory_block(&inode, ahead))?;
                    }
                    looks.end()?;
                    None
                }
                Err(stop) => return Err(stop),
            };
            let from = if index == first { slot } else { 0 };
            for found in bytes.into_iter().flat_map(|(_, bytes)| entries(bytes, from)) {
                if list.len() == self.most as usize {
                    return Ok((list, false));
                }
                let next = u64::from(index) * SLOTS as u64 + found.slot as u64 + 1;
                list.push(Entry { name: found.name.to_vec(), number: found.number, kind: found.kind, next });
            }
        }
        Ok((list, true))
    }

    fn apply(self, _: &mut Core, (entries, is_end): (Vec<Entry>, bool)) -> Reply {
        Reply::Listed { entries, is_end }
    }
}

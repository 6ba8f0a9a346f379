//! Lookup, create, mkdir, unlink, rmdir, list.

use super::directory::{self as dir, Found, Spot};
use crate::call::{Entry, Errno, FileId, FileKind, Reply, check_name};
use crate::core::cache::{Body, Key};
use crate::core::view::Looks;
use crate::core::{Core, Op, Stop, View};
use crate::format::directory::{MOST_LEVELS, SLOTS, blocks_of, entries};
use crate::format::inode::Inode;
use crate::seeded::{FsBug, seeded};

/// Blocks of a directory that a listing asks for together.
const LISTED_AHEAD: u32 = 8;

/// Most metadata blocks that a call with one directory makes dirty.
const METADATA: u32 = 8;

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
        let found = dir::find(view, inode, self.name)?.ok_or(Stop::Failed(Errno::NotFound))?;
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
    type Plan = (Spot, Vec<u32>);
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<(Spot, Vec<u32>), Stop> {
        check_name(self.name)?;
        let inode = view.directory(self.directory)?;
        if inode.links == 0 {
            return Err(Errno::NotFound.into());
        }
        if dir::find(view, inode, self.name)?.is_some() {
            return Err(Errno::Exists.into());
        }
        view.writable()?;
        view.may_dirty_metadata()?;
        let spot = dir::spot(view, inode, self.name)?;
        view.room(spot.blocks() + 1, METADATA)?;
        Ok((spot, view.new_nodes(spot.nodes as usize + 1)?))
    }

    fn apply(self, core: &mut Core, (spot, mut numbers): (Spot, Vec<u32>)) -> Reply {
        let (parent, number) = (self.directory.number, numbers.remove(0));
        let generation = core.next_generation;
        core.next_generation = generation.wrapping_add(1).max(1);
        let generation = if seeded(FsBug::GenerationKept) { 7 } else { generation };
        let inode = Inode::new(number, generation, self.kind, parent, core.now);
        core.take_number(number);
        core.cache.insert(Key::node(number), Body::Inode(Box::new(inode)));
        core.set_node_dirty(number);
        core.touched.insert(number);
        core.rolling.makes(number, parent, self.name);
        core.put_name(parent, &spot, &mut numbers, self.name, (number, self.kind));
        if self.kind == FileKind::Directory {
            core.count_link(parent, 1);
        }
        Reply::Found(core.attributes(number))
    }
}

/// Sees that an inode can lose its name: it is freed at once if nothing needs it and it is small.
pub(crate) fn unlinkable(view: &View<'_>, number: u32) -> Result<(), Stop> {
    view.inode(number)?;
    view.may_change(number)
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
        let found = dir::find(view, inode, self.name)?.ok_or(Stop::Failed(Errno::NotFound))?;
        match (self.kind, found.kind) {
            (FileKind::File, FileKind::Directory) => return Err(Errno::IsDirectory.into()),
            (FileKind::Directory, FileKind::File) => return Err(Errno::NotDirectory.into()),
            (FileKind::Directory, _) if view.inode(found.number)?.entries > 0 => return Err(Errno::NotEmpty.into()),
            _ => {}
        }
        view.writable()?;
        view.may_dirty_metadata()?;
        dir::changeable(view, inode, found.block)?;
        unlinkable(view, found.number)?;
        view.metadata_room(METADATA)?;
        Ok(found)
    }

    fn apply(self, core: &mut Core, found: Found) -> Reply {
        core.take_name(self.directory.number, &found);
        if self.kind == FileKind::Directory {
            core.count_link(self.directory.number, -1);
            // The check-point may have names in the directory that is removed.
            core.rolling.bar(self.directory.number);
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
            let bytes = match dir::block(view, inode, index) {
                Ok(bytes) => bytes,
                Err(Stop::Missing(_)) => {
                    let mut looks = Looks::default();
                    for ahead in index..end.min(index + LISTED_AHEAD) {
                        looks.at(dir::block(view, inode, ahead))?;
                    }
                    looks.end()?;
                    None
                }
                Err(stop) => return Err(stop),
            };
            let from = if index == first { slot } else { 0 };
            for found in bytes.into_iter().flat_map(|bytes| entries(bytes, from)) {
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

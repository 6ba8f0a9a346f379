//! Open, close, stat, statfs, and the beginning of fsync and sync.

use super::super::core::{Core, Op, Stop};
use super::super::view::View;
use super::CREDITS;
use crate::call::{Attributes, Errno, FileId, Reply, SpaceStatus};

impl Core {
    /// What a call is told of an inode.
    pub(crate) fn attributes(&self, number: u32) -> Attributes {
        let inode = self.inode(number);
        let promised = self.files.get(&number).map_or(0, |file| file.new_pages);
        Attributes {
            file: FileId { number, generation: inode.generation },
            kind: inode.kind,
            size: inode.size,
            blocks: inode.blocks + promised,
            links: inode.links,
            modified: inode.modified,
            changed: inode.changed,
        }
    }

    /// The space of the file system.
    pub(crate) fn space_status(&self) -> SpaceStatus {
        let free = self.space.free + self.space.held;
        SpaceStatus {
            blocks: self.space.user_blocks,
            blocks_free: free.saturating_sub(self.space.reserved),
            nodes: self.superblock.inodes().into(),
            nodes_free: self.space.free_inodes(),
        }
    }
}

/// [`Call::Open`](crate::call::Call::Open).
pub(crate) struct Open {
    pub(crate) file: FileId,
}

impl Op for Open {
    type Plan = ();
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<(), Stop> {
        view.named(self.file).map(|_| ())
    }

    fn apply(self, core: &mut Core, (): ()) -> Reply {
        core.file_mut(self.file.number).opens += 1;
        Reply::Done
    }
}

/// [`Call::Close`](crate::call::Call::Close).
pub(crate) struct Close {
    pub(crate) file: FileId,
}

impl Op for Close {
    /// Whether the inode is freed.
    type Plan = bool;
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<bool, Stop> {
        let inode = view.named(self.file)?;
        let opens = view.core.files.get(&inode.number).map_or(0, |file| file.opens);
        if opens == 0 {
            return Err(Errno::Invalid.into());
        }
        let is_freed = opens == 1 && inode.links == 0 && view.core.read_only.is_none();
        if is_freed {
            view.credits(CREDITS)?;
            view.unlinkable(inode.number)?;
        }
        Ok(is_freed)
    }

    fn apply(self, core: &mut Core, is_freed: bool) -> Reply {
        let number = self.file.number;
        core.file_mut(number).opens -= 1;
        if is_freed {
            core.free_inode(number);
        }
        core.drop_idle(number);
        Reply::Done
    }
}

/// [`Call::Stat`](crate::call::Call::Stat).
pub(crate) struct Stat {
    pub(crate) file: FileId,
}

impl Op for Stat {
    type Plan = ();
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<(), Stop> {
        view.named(self.file).map(|_| ())
    }

    fn apply(self, core: &mut Core, (): ()) -> Reply {
        Reply::Found(core.attributes(self.file.number))
    }
}

/// [`Call::StatFs`](crate::call::Call::StatFs).
pub(crate) struct StatFs;

impl Op for StatFs {
    type Plan = ();
    type Output = Reply;

    fn gather(&self, _: &View<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn apply(self, core: &mut Core, (): ()) -> Reply {
        Reply::Space(core.space_status())
    }
}

/// The beginning of [`Call::Fsync`](crate::call::Call::Fsync).
pub(crate) struct BeginSync {
    /// A file; `None` for everything.
    pub(crate) file: Option<FileId>,
}

impl Op for BeginSync {
    type Plan = ();
    type Output = ();

    fn gather(&self, view: &View<'_>) -> Result<(), Stop> {
        match self.file {
            Some(file) => view.named(file).map(|_| ()),
            None => Ok(()),
        }
    }

    fn apply(self, _: &mut Core, (): ()) {}
}

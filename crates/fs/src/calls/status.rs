//! Open, close, stat, statfs, and the beginning of fsync and sync.

use crate::call::{Attributes, Errno, FileId, FileKind, Reply, SpaceStatus};
use crate::core::{Core, Op, Stop, View};
use crate::seeded::{FsBug, seeded};

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
        let blocks = u64::from(self.superblock.user_blocks);
        let nodes = u64::from(self.superblock.nodes) - 1;
        SpaceStatus {
            blocks,
            blocks_free: blocks.saturating_sub(self.space.used + self.space.reserved),
            nodes,
            nodes_free: nodes.saturating_sub(self.map.nodes_used.into()),
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
            view.may_change(inode.number)?;
            view.metadata_room(4)?;
        }
        Ok(is_freed)
    }

    fn apply(self, core: &mut Core, is_freed: bool) -> Reply {
        let number = self.file.number;
        core.file_mut(number).opens -= 1;
        if is_freed && !seeded(FsBug::OrphanNotListed) {
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

/// The beginning of [`Call::Fsync`](crate::call::Call::Fsync): what of the file is to be waited for.
pub(crate) struct BeginSync {
    /// A file; `None` for everything.
    pub(crate) file: Option<FileId>,
}

impl Op for BeginSync {
    type Plan = bool;
    type Output = bool;

    /// Whether it has data of its own.
    fn gather(&self, view: &View<'_>) -> Result<bool, Stop> {
        let Some(file) = self.file else { return Ok(true) };
        Ok(view.named(file)?.kind == FileKind::File)
    }

    fn apply(self, _: &mut Core, has_data: bool) -> bool {
        has_data
    }
}

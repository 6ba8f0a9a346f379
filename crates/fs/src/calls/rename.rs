//! Rename.

use super::directory::{self as dir, Found, Spot};
use super::names::unlinkable;
use crate::call::{Errno, FileId, FileKind, Reply, check_name};
use crate::core::{Core, Op, Stop, View};
use crate::format::inode::Inode;

/// Most metadata blocks that it makes dirty.
const METADATA: u32 = 14;

/// [`Call::Rename`](crate::call::Call::Rename).
pub(crate) struct Rename<'a> {
    pub(crate) from_directory: FileId,
    pub(crate) from: &'a [u8],
    pub(crate) to_directory: FileId,
    pub(crate) to: &'a [u8],
    pub(crate) no_replace: bool,
}

/// What it changes; nothing where the two names are one.
pub(crate) enum Plan {
    Nothing,
    Replace(Found, Found),
    Move(Found, Spot, Vec<u32>),
}

impl Rename<'_> {
    /// Whether a directory is `number` or lies below it.
    fn is_inside(view: &View<'_>, directory: &Inode, number: u32) -> Result<bool, Stop> {
        let (mut at, mut steps) = (directory, 0_u32);
        loop {
            if at.number == number {
                return Ok(true);
            }
            if at.parent == at.number || at.parent == 0 {
                return Ok(false);
            }
            // Damaged parents may go round.
            steps += 1;
            if steps > 1 << 20 {
                return Err(Errno::Io.into());
            }
            at = view.inode(at.parent)?;
        }
    }
}

impl Op for Rename<'_> {
    type Plan = Plan;
    type Output = Reply;

    fn gather(&self, view: &View<'_>) -> Result<Plan, Stop> {
        check_name(self.from)?;
        check_name(self.to)?;
        let (source, target) = (view.named(self.from_directory)?, view.named(self.to_directory)?);
        if source.kind == FileKind::File || target.kind == FileKind::File {
            return Err(Errno::NotDirectory.into());
        }
        let found = dir::find(view, source, self.from)?.ok_or(Stop::Failed(Errno::NotFound))?;
        if target.links == 0 {
            return Err(Errno::NotFound.into());
        }
        let replaced = dir::find(view, target, self.to)?;
        if self.no_replace && replaced.is_some() {
            return Err(Errno::Exists.into());
        }
        if replaced.is_some_and(|replaced| replaced.number == found.number) {
            return Ok(Plan::Nothing);
        }
        if found.kind == FileKind::Directory && Rename::is_inside(view, target, found.number)? {
            return Err(Errno::Invalid.into());
        }
        if let Some(replaced) = replaced {
            match (found.kind, replaced.kind) {
                (FileKind::File, FileKind::Directory) => return Err(Errno::IsDirectory.into()),
                (FileKind::Directory, FileKind::File) => return Err(Errno::NotDirectory.into()),
                (FileKind::Directory, FileKind::Directory) if view.inode(replaced.number)?.entries > 0 => {
                    return Err(Errno::NotEmpty.into());
                }
                _ => {}
            }
        }
        view.writable()?;
        view.may_dirty_metadata()?;
        view.inode(found.number)?;
        view.may_change(found.number)?;
        dir::changeable(view, source, found.block)?;
        match replaced {
            Some(replaced) => {
                dir::changeable(view, target, replaced.block)?;
                unlinkable(view, replaced.number)?;
                view.metadata_room(METADATA)?;
                Ok(Plan::Replace(found, replaced))
            }
            None => {
                let spot = dir::spot(view, target, self.to)?;
                view.room(spot.blocks(), METADATA)?;
                Ok(Plan::Move(found, spot, view.new_nodes(spot.nodes as usize)?))
            }
        }
    }

    fn apply(self, core: &mut Core, plan: Plan) -> Reply {
        let (source, target) = (self.from_directory.number, self.to_directory.number);
        let found = match plan {
            Plan::Nothing => return Reply::Done,
            Plan::Replace(found, replaced) => {
                core.lead_name(target, &replaced, found.number);
                if replaced.kind == FileKind::Directory {
                    core.count_link(target, -1);
                }
                core.unlinked(replaced.number);
                found
            }
            Plan::Move(found, spot, mut numbers) => {
                core.put_name(target, &spot, &mut numbers, self.to, (found.number, found.kind));
                found
            }
        };
        core.take_name(source, &found);
        if found.kind == FileKind::Directory {
            core.count_link(source, -1);
            core.count_link(target, 1);
            core.inode_mut(found.number).parent = target;
            core.rolling.bar_all();
        }
        [source, target, found.number].into_iter().for_each(|number| core.rolling.bar(number));
        let now = core.now;
        core.inode_mut(found.number).changed = now;
        Reply::Done
    }
}

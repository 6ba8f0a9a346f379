//! Rename.

use super::super::core::{Core, Op, Stop};
use super::super::format::inode::Inode;
use super::super::view::View;
use super::CREDITS;
use super::directory::{self as dir, Found, Spot};
use crate::call::{Errno, FileId, FileKind, Reply, check_name};

/// Directories above one that are walked at most: damaged parents may go round.
const MOST_PARENTS: u32 = 1 << 20;

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
    Move(Found, Spot),
}

/// Whether a directory is `number` or lies below it.
fn is_inside(view: &View<'_>, directory: &Inode, number: u32) -> Result<bool, Stop> {
    let mut at = *directory;
    for _ in 0..MOST_PARENTS {
        if at.number == number {
            return Ok(true);
        }
        if at.parent == at.number || at.parent == 0 {
            return Ok(false);
        }
        at = view.inode(at.parent)?;
    }
    Err(Errno::Io.into())
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
        let found = dir::find(view, &source, self.from)?.ok_or(Stop::Failed(Errno::NotFound))?;
        if target.links == 0 {
            return Err(Errno::NotFound.into());
        }
        let replaced = dir::find(view, &target, self.to)?;
        if self.no_replace && replaced.is_some() {
            return Err(Errno::Exists.into());
        }
        if replaced.is_some_and(|replaced| replaced.number == found.number) {
            return Ok(Plan::Nothing);
        }
        if found.kind == FileKind::Directory && is_inside(view, &target, found.number)? {
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
        view.credits(2 * CREDITS)?;
        view.inode(found.number)?;
        match replaced {
            Some(replaced) => {
                view.unlinkable(replaced.number)?;
                Ok(Plan::Replace(found, replaced))
            }
            None => Ok(Plan::Move(found, dir::spot(view, &target, self.to)?)),
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
            Plan::Move(found, spot) => {
                core.put_name(target, spot, self.to, (found.number, found.kind));
                found
            }
        };
        core.take_name(source, &found);
        if found.kind == FileKind::Directory {
            core.count_link(source, -1);
            core.count_link(target, 1);
        }
        let now = core.now;
        core.change(found.number, |inode| {
            inode.changed = now;
            if inode.kind == FileKind::Directory {
                inode.parent = target;
            }
        });
        Reply::Done
    }
}

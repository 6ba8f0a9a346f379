//! A mount goes on with what fsyncs wrote behind the newest check-point (F2FS, roll-forward recovery).
//!
//! ```text
//!   find    the log of fsyncs, from where the check-point says       -> files as their last fsyncs left them
//!   nodes   inode and index blocks, in memory, beside the check-point's: blocks change their owners by the difference
//!   name    of a new file, in its directory; what had the name since the check-point loses it
//! ```
//!
//! Nothing is written: all of it is dirty in memory as if calls had just done it, and the next check-point has it. A crash before that
//! finds the same check-point and the same nodes behind it.

pub(crate) mod find;

use std::collections::BTreeMap;

use self::find::{File, Rolled};
use crate::call::{Errno, FileKind};
use crate::calls::directory::{self as dir, Found, Spot};
use crate::calls::names::unlinkable;
use crate::core::cache::{Body, Key};
use crate::core::space::State;
use crate::core::{Core, Op, Stop, View};
use crate::error::MountError;
use crate::format::inode::{Index, Inode};
use crate::format::summary::Owner;
use crate::format::usage::MAP_LOG;
use crate::format::{Bad, LOST, NOWHERE};
use crate::log_structured::LogStructured;
use crate::seeded::{FsBug, seeded};
use crate::tasks::Work;

/// What the blocks of segments were written for, by segment, as files that follow a check-point name them.
pub(crate) fn owners_by_segment(
    core: &Core,
    owners: BTreeMap<u32, Owner>,
) -> Result<BTreeMap<u32, Vec<Owner>>, MountError> {
    let superblock = &core.superblock;
    let mut by_segment: BTreeMap<u32, Vec<Owner>> = BTreeMap::new();
    for (address, owner) in owners {
        let (segment, block) = (address / superblock.segment_blocks, address % superblock.segment_blocks);
        let is_data =
            !matches!(core.space.get(segment).state, State::Fixed | State::Open(MAP_LOG) | State::Sealed(MAP_LOG));
        if !is_data || block >= superblock.data_blocks() {
            let what = "block that a node of an fsync names";
            return Err(MountError::Metadata { block: address, what, bad: Bad::Field("segment") });
        }
        let list = by_segment.entry(segment).or_default();
        list.resize(block as usize, Owner::Nothing);
        list.push(owner);
    }
    Ok(by_segment)
}

/// A step for a file.
#[derive(Debug)]
pub(crate) enum Step {
    Nodes(Box<File>),
    Name { directory: u32, name: Vec<u8>, number: u32 },
}

/// The nodes of a file take the place of those that the check-point has.
pub(crate) struct Nodes<'a> {
    pub(crate) file: &'a File,
}

impl Op for Nodes<'_> {
    type Plan = ();
    type Output = ();

    fn gather(&self, view: &View<'_>) -> Result<(), Stop> {
        let inode = &self.file.inode;
        view.may_change(inode.number)?;
        let is_known = view.node(inode.number)?;
        let is_same = match view.inode_numbered(inode.number)? {
            Some(before) => (before.generation, before.kind) == (inode.generation, inode.kind),
            None => !is_known && self.file.name.is_some(),
        };
        if !is_same {
            return Err(Errno::Io.into());
        }
        for index in self.file.indexes.values() {
            view.may_change(index.number)?;
            if view.node(index.number)? {
                let before = view.index(index.number)?;
                let same = (before.inode, before.generation, before.level, before.first)
                    == (index.inode, index.generation, index.level, index.first);
                if !same {
                    return Err(Errno::Io.into());
                }
            }
        }
        Ok(())
    }

    fn apply(self, core: &mut Core, (): ()) {
        let inode = &self.file.inode;
        core.restore_inode(inode);
        self.file.indexes.values().for_each(|index| core.restore_index(index));
        core.next_generation = core.next_generation.max(inode.generation.wrapping_add(1));
        core.metrics.rolled_files += 1;
    }
}

impl Core {
    fn restore_inode(&mut self, inode: &Inode) {
        let number = inode.number;
        let key = Key::node(number);
        if !self.cache.has(key) {
            self.take_number(number);
            let empty = Inode { direct: Vec::new(), ..inode.clone() };
            self.cache.insert(key, Body::Inode(Box::new(empty)));
        }
        let before = std::mem::replace(self.inode_mut(number), inode.clone());
        self.differ(&before.direct, &inode.direct);
        let is_cut = inode.free_from.is_some();
        if is_cut || inode.links == 0 {
            self.orphans.insert(number);
            self.freeing.insert(number, false);
        } else {
            self.orphans.remove(&number);
            self.freeing.remove(&number);
        }
    }

    fn restore_index(&mut self, index: &Index) {
        let number = index.number;
        let key = Key::node(number);
        if !self.cache.has(key) {
            self.take_number(number);
            let empty = Index::new(number, index.inode, index.generation, index.level, index.first);
            self.cache.insert(key, Body::Index(Box::new(empty)));
        }
        let before = std::mem::replace(self.index_mut(number), index.clone());
        if index.level == 1 {
            self.differ(&before.entries[..], &index.entries[..]);
        }
    }

    /// Addresses of blocks of a file take the place of others.
    fn differ(&mut self, before: &[u32], after: &[u32]) {
        let at = |list: &[u32], index: usize| list.get(index).copied().unwrap_or(NOWHERE);
        for index in 0..before.len().max(after.len()) {
            let (before, after) = (at(before, index), at(after, index));
            if before == after {
                continue;
            }
            if !matches!(after, NOWHERE | LOST) {
                self.space.add(after);
            }
            if !matches!(before, NOWHERE | LOST) {
                self.space.remove(before);
            }
        }
    }
}

/// A new file has its name.
pub(crate) struct Name<'a> {
    pub(crate) directory: u32,
    pub(crate) name: &'a [u8],
    pub(crate) number: u32,
}

/// What is to be done for it.
pub(crate) enum Plan {
    Nothing,
    /// Another file had the name.
    Lead(Found),
    Put(Spot, Vec<u32>),
}

impl Op for Name<'_> {
    type Plan = Plan;
    type Output = ();

    fn gather(&self, view: &View<'_>) -> Result<Plan, Stop> {
        crate::call::check_name(self.name)?;
        let inode = view.inode(self.directory)?;
        if inode.kind != FileKind::Directory || inode.links == 0 {
            return Err(Errno::Io.into());
        }
        match dir::find(view, inode, self.name)? {
            Some(found) if found.number == self.number => Ok(Plan::Nothing),
            Some(found) if found.kind == FileKind::File => {
                dir::changeable(view, inode, found.block)?;
                unlinkable(view, found.number)?;
                Ok(Plan::Lead(found))
            }
            Some(_) => Err(Errno::Io.into()),
            None => {
                let spot = dir::spot(view, inode, self.name)?;
                Ok(Plan::Put(spot, view.new_nodes(spot.nodes as usize)?))
            }
        }
    }

    fn apply(self, core: &mut Core, plan: Plan) {
        match plan {
            Plan::Nothing => {}
            Plan::Lead(found) => {
                core.lead_name(self.directory, &found, self.number);
                core.unlinked(found.number);
            }
            Plan::Put(spot, mut numbers) => {
                core.put_name(self.directory, &spot, &mut numbers, self.name, (self.number, FileKind::File));
            }
        }
    }
}

impl Core {
    /// Takes a step of going on with files.
    pub(crate) fn restore(&mut self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Nodes(file) => self.attempt(Nodes { file }),
            Step::Name { directory, name, number } => {
                self.attempt(Name { directory: *directory, name, number: *number })
            }
        }
    }
}

impl LogStructured {
    /// Goes on with files as their last fsyncs left them, before anything else is at work.
    ///
    /// # Errors
    /// The device does not complete a command.
    pub(crate) fn restore(&mut self, rolled: Rolled) -> Result<(), MountError> {
        self.core.metrics.unreadable_fsync_blocks = rolled.unreadable;
        let files = rolled.into_files();
        let names = files.iter().filter_map(|file| {
            let (directory, number) = (file.inode.parent, file.inode.number);
            file.name.clone().map(|name| Step::Name { directory, name, number })
        });
        let names: Vec<Step> = if seeded(FsBug::NameNotRolledForward) { Vec::new() } else { names.collect() };
        let steps = files.into_iter().map(|file| Step::Nodes(Box::new(file))).chain(names);
        if self.run_alone(Work::Restore(steps.collect())) { Ok(()) } else { Err(MountError::Silent) }
    }
}

//! Calls with stages: direct writes, fsync, sync. They take effect, then their pages are sent, then a commit or a flush follows.

use ssdlab_base::{Op, Request};

use super::super::calls::data::{Append, Read, Truncate, Write};
use super::super::calls::names::{Create, List, Lookup, Remove};
use super::super::calls::rename::Rename;
use super::super::calls::status::{BeginSync, Close, Open, Stat, StatFs};
use super::super::core::{Core, Stop};
use super::super::pages::of_entry;
use super::super::write_out::Place;
use super::{Journaling, Purpose};
use crate::call::{Call, Errno, FileId, FileKind, Reply, Sync};
use crate::calls::data::blocks;
use crate::core::cache::Key;
use crate::seeded::{FsBug, seeded};

/// Rounds in which pages are sent for a call: those that were on their way in one round go in the next.
const MOST_ROUNDS: u8 = 16;

/// Where a call is that has more than one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not taken effect.
    Begin,
    /// Pages are to be sent.
    Place(Pages),
    /// Writes up to this number are to end.
    Written(u64, Pages),
    /// What has changed is to be committed: of a file or directory, or of all.
    Commit(Option<u32>),
}

/// Pages of a call with stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    /// The file; `None` for all files.
    file: Option<FileId>,
    /// From this block on.
    from: u32,
    /// Before this one.
    end: u32,
    /// They leave the cache.
    is_direct: bool,
    /// A commit follows.
    then_commit: bool,
    /// Rounds that are over.
    round: u8,
}

/// What a call leads to once it has taken effect.
pub(crate) enum Effect {
    /// It is answered.
    Ends(Reply),
    /// It goes on.
    Goes(Reply, Stage),
}

impl Core {
    /// Runs a call up to its effect.
    pub(crate) fn take_effect(&mut self, call: &Call) -> Result<Effect, Stop> {
        let ends = |reply| Ok(Effect::Ends(reply));
        if self.is_shut {
            return Err(Errno::Io.into());
        }
        match call {
            Call::Lookup { directory, name } => ends(self.attempt(Lookup { directory: *directory, name })?),
            Call::Create { directory, name } => {
                ends(self.attempt(Create { directory: *directory, name, kind: FileKind::File })?)
            }
            Call::Mkdir { directory, name } => {
                ends(self.attempt(Create { directory: *directory, name, kind: FileKind::Directory })?)
            }
            Call::Unlink { directory, name } => {
                ends(self.attempt(Remove { directory: *directory, name, kind: FileKind::File })?)
            }
            Call::Rmdir { directory, name } => {
                ends(self.attempt(Remove { directory: *directory, name, kind: FileKind::Directory })?)
            }
            Call::Rename { from_directory, from, to_directory, to, no_replace } => ends(self.attempt(Rename {
                from_directory: *from_directory,
                from,
                to_directory: *to_directory,
                to,
                no_replace: *no_replace,
            })?),
            Call::List { directory, position, most } => {
                ends(self.attempt(List { directory: *directory, position: *position, most: *most })?)
            }
            Call::Open { file } => ends(self.attempt(Open { file: *file })?),
            Call::Close { file } => ends(self.attempt(Close { file: *file })?),
            Call::Read { file, offset, length, is_direct } => {
                let read = Read { file: *file, offset: *offset, length: *length, is_direct: *is_direct };
                let reply = self.attempt(read)?;
                if *is_direct {
                    self.let_pass(file.number, blocks(*offset, u64::from(*length)));
                }
                ends(reply)
            }
            Call::Write { file, offset, length, content, mode } => {
                let is_direct = mode.is_direct;
                let reply =
                    self.attempt(Write { file: *file, offset: *offset, length: *length, content, is_direct })?;
                Ok(written(reply, *file, *offset, *length, is_direct, mode.sync))
            }
            Call::Append { file, length, content, mode } => {
                let is_direct = mode.is_direct;
                let reply = self.attempt(Append { file: *file, length: *length, content, is_direct })?;
                let offset = if let Reply::Appended { offset } = reply { offset } else { 0 };
                Ok(written(reply, *file, offset, *length, is_direct, mode.sync))
            }
            Call::Truncate { file, size } => ends(self.attempt(Truncate { file: *file, size: *size })?),
            Call::Stat { file } => ends(self.attempt(Stat { file: *file })?),
            Call::StatFs => ends(self.attempt(StatFs)?),
            Call::Fsync { file } | Call::Fdatasync { file } => {
                self.attempt(BeginSync { file: Some(*file) })?;
                Ok(Effect::Goes(Reply::Done, all_of(Some(*file))))
            }
            Call::Sync => {
                self.attempt(BeginSync { file: None })?;
                Ok(Effect::Goes(Reply::Done, all_of(None)))
            }
        }
    }

    /// Pages that direct I/O brought, or has written, leave the cache.
    pub(crate) fn let_pass(&mut self, number: u32, range: std::ops::Range<u32>) {
        for block in range {
            let key = Key::page(number, block);
            let Some(entry) = self.cache.entry_mut(key) else { continue };
            let can_leave = entry.pins == 0 && !entry.is_dirty;
            let Some(page) = of_entry(entry) else { continue };
            page.is_passing = true;
            if can_leave && page.writing == 0 {
                self.cache.remove(key);
            }
        }
    }
}

const fn all_of(file: Option<FileId>) -> Stage {
    Stage::Place(Pages { file, from: 0, end: u32::MAX, is_direct: false, then_commit: true, round: 0 })
}

/// How a write goes on that has taken effect in memory.
fn written(reply: Reply, file: FileId, offset: u64, length: u32, is_direct: bool, sync: Sync) -> Effect {
    let then_commit = sync != Sync::No;
    if !is_direct && !then_commit {
        return Effect::Ends(reply);
    }
    let range = if is_direct && !then_commit { blocks(offset, length.into()) } else { 0..u32::MAX };
    let (from, end) = (range.start, range.end);
    Effect::Goes(reply, Stage::Place(Pages { file: Some(file), from, end, is_direct, then_commit, round: 0 }))
}

impl Journaling {
    fn files_of(&self, pages: &Pages) -> Vec<u32> {
        match pages.file {
            Some(file) => vec![file.number],
            None => self.core.dirty_files.iter().map(|(_, number)| *number).collect(),
        }
    }

    /// Sends the pages of a call.
    fn place_for(&mut self, pages: &Pages) -> Result<(), Stop> {
        for number in self.files_of(pages) {
            let (from, end, most) = (pages.from, pages.end, u32::MAX);
            while self.place(Place { number, from, end, most })? > 0 {}
        }
        Ok(())
    }

    /// Goes on with a call that has taken effect. The result when it ends; the stage where it waits.
    pub(super) fn go_on(&mut self, task: u32, stage: Stage) -> Option<Result<(), Errno>> {
        let mut stage = stage;
        loop {
            if self.core.read_only.is_some() {
                return Some(Err(Errno::ReadOnly));
            }
            match stage {
                Stage::Begin => return None,
                Stage::Place(pages) => {
                    if let Err(stop) = self.place_for(&pages) {
                        self.set_stage(task, Stage::Place(pages));
                        match stop {
                            Stop::Missing(needs) => self.load(needs, Some(task)),
                            Stop::Commit => self.wait_for_commit(task),
                            Stop::Failed(errno) => {
                                self.without_room += u64::from(errno == Errno::NoSpace);
                                return Some(Err(errno));
                            }
                            Stop::Space | Stop::Throttled | Stop::Busy(_) => self.wait_for_space(task),
                        }
                        return None;
                    }
                    let is_busy = match pages.file {
                        Some(file) => self.core.files.get(&file.number).is_some_and(|file| file.writing > 0),
                        None => self.core.writing_pages > 0,
                    };
                    stage = Stage::Written(if is_busy { self.core.last_write } else { 0 }, pages);
                }
                Stage::Written(last, pages) => {
                    if self.core.writes_are_open(last) {
                        self.set_stage(task, Stage::Written(last, pages));
                        self.for_writes.push((last, task));
                        return None;
                    }
                    // Pages that were on their way, and dirty again, go now.
                    let files = self.files_of(&pages);
                    let is_left = |number: &u32| self.core.has_dirty(*number, pages.from, pages.end);
                    if last > 0 && pages.round < MOST_ROUNDS && files.iter().any(is_left) {
                        stage = Stage::Place(Pages { round: pages.round + 1, ..pages });
                        continue;
                    }
                    if pages.is_direct
                        && let Some(file) = pages.file
                        && pages.end != u32::MAX
                    {
                        self.core.let_pass(file.number, pages.from..pages.end);
                    }
                    if !pages.then_commit || seeded(FsBug::FsyncWithoutCheckpoint) {
                        return Some(Ok(()));
                    }
                    stage = Stage::Commit(pages.file.map(|file| file.number));
                }
                Stage::Commit(inode) => {
                    let committing = self.core.committing.as_ref();
                    let (is_new, is_on_its_way) = match inode {
                        Some(number) => (
                            self.core.running.touched.contains(&number),
                            committing.is_some_and(|closed| closed.touched.contains(&number)),
                        ),
                        None => (self.core.is_changed(), committing.is_some()),
                    };
                    // Called again when the commit is durable: then there is nothing more to wait for.
                    self.set_stage(task, Stage::Begin);
                    if is_new {
                        self.commit.next.push(task);
                        self.commit.is_wanted = true;
                    } else if is_on_its_way {
                        self.commit.joined.push(task);
                    } else if self.has_write_cache {
                        self.core.homes.flushes += 1;
                        self.below.send(Request::new(Op::Flush, 0, 0), &[], Purpose::Flush(task));
                    } else {
                        return Some(Ok(()));
                    }
                    return None;
                }
            }
        }
    }
}

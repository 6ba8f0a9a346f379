//! Calls with stages: direct writes, fsync, sync. They take effect, then their pages are sent, then nodes or a check-point follow.

use crate::call::{Call, Errno, FileId, FileKind, Reply, Sync};
use crate::calls::data::{Append, Read, Truncate, Write, blocks};
use crate::calls::names::{Create, List, Lookup, Remove};
use crate::calls::rename::Rename;
use crate::calls::status::{BeginSync, Close, Open, Stat, StatFs};
use crate::core::cache::Body;
use crate::core::cache::Key;
use crate::core::roll_forward::Roll;
use crate::core::{Core, Stop};
use crate::log_structured::LogStructured;
use crate::seeded::{FsBug, seeded};
use crate::tasks::{Pages, Stage};

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
            let can_leave = entry.pins == 0 && !entry.is_dirty && entry.holds == 0;
            let Body::Page(page) = &mut entry.body else { continue };
            page.is_passing = true;
            if can_leave && page.writing == 0 {
                self.cache.remove(key);
            }
        }
    }
}

const fn all_of(file: Option<FileId>) -> Stage {
    Stage::Place(Pages { file, from: 0, end: u32::MAX, is_direct: false, then_checkpoint: true })
}

/// How a write goes on that has taken effect in memory.
fn written(reply: Reply, file: FileId, offset: u64, length: u32, is_direct: bool, sync: Sync) -> Effect {
    let then_checkpoint = sync != Sync::No;
    if !is_direct && !then_checkpoint {
        return Effect::Ends(reply);
    }
    let range = if is_direct && !then_checkpoint { blocks(offset, length.into()) } else { 0..u32::MAX };
    let (from, end) = (range.start, range.end);
    Effect::Goes(reply, Stage::Place(Pages { file: Some(file), from, end, is_direct, then_checkpoint }))
}

impl LogStructured {
    /// Sends the pages of a call. False if room was lacking.
    fn place_for(&mut self, pages: &Pages) -> bool {
        let files: Vec<u32> = match pages.file {
            Some(file) => vec![file.number],
            None => self.core.dirty_files.iter().map(|(_, number)| *number).collect(),
        };
        let (mut any, mut is_full) = (false, false);
        for number in files {
            let (placed, full) = self.core.place_pages(number, pages.from, pages.end, usize::MAX);
            (any, is_full) = (any || placed > 0, full);
            if is_full {
                break;
            }
        }
        if any {
            self.went_on();
        }
        self.core.flush_data();
        self.send_outbox();
        !is_full
    }

    /// Sends the nodes of a file, where these are all that an fsync of it promises, and says what is to be waited for.
    fn roll(&mut self, file: FileId) -> Result<Stage, Stop> {
        let number = file.number;
        if !self.core.touched.contains(&number) {
            return Ok(Stage::Flushed(self.in_place.unflushed(Some(number)), number));
        }
        if !self.core.attempt(Roll { file })? {
            return Ok(Stage::Checkpoint(Some(number)));
        }
        self.send_nodes();
        self.core.rolling.sends_with(number, self.last_write);
        Ok(Stage::Durable(self.last_write, number))
    }

    /// Goes on with a call that has taken effect. The result when it ends; the stage where it waits.
    pub(crate) fn go_on(&mut self, task: u32, stage: Stage) -> Option<Result<(), Errno>> {
        let mut stage = stage;
        loop {
            if self.core.read_only.is_some() {
                return Some(Err(Errno::ReadOnly));
            }
            match stage {
                Stage::Begin => return None,
                Stage::Place(pages) => {
                    if !self.place_for(&pages) {
                        self.set_stage(task, Stage::Place(pages));
                        self.wait_for_room(task);
                        return None;
                    }
                    let is_busy = match pages.file {
                        Some(file) => self.core.files.get(&file.number).is_some_and(|file| !file.pages.is_empty()),
                        None => self.core.writing_pages > 0,
                    };
                    stage = Stage::Written(if is_busy { self.last_write } else { 0 }, pages);
                }
                Stage::Written(last, pages) => {
                    if self.writes_are_open(last) {
                        self.set_stage(task, Stage::Written(last, pages));
                        self.for_writes.push((last, task));
                        return None;
                    }
                    if pages.is_direct
                        && let Some(file) = pages.file
                        && pages.end != u32::MAX
                    {
                        self.core.let_pass(file.number, pages.from..pages.end);
                    }
                    if !pages.then_checkpoint || seeded(FsBug::FsyncWithoutCheckpoint) {
                        return Some(Ok(()));
                    }
                    stage = match pages.file {
                        Some(file) if self.core.rolling.is_on() => Stage::Nodes(file),
                        file => Stage::Checkpoint(file.map(|file| file.number)),
                    };
                }
                Stage::Nodes(file) => {
                    // Nodes that follow a check-point are found when that is durable.
                    if self.checkpoints.is_encoded() && !seeded(FsBug::FsyncBesideCheckpoint) {
                        self.set_stage(task, Stage::Nodes(file));
                        self.checkpoints.join(task);
                        return None;
                    }
                    stage = match self.roll(file) {
                        Ok(stage) => stage,
                        Err(Stop::Missing(needs)) => {
                            self.set_stage(task, Stage::Nodes(file));
                            self.load(needs, Some(task));
                            return None;
                        }
                        Err(Stop::Failed(errno)) => return Some(Err(errno)),
                        Err(_) => Stage::Checkpoint(Some(file.number)),
                    };
                }
                Stage::Flushed(writes, number) => {
                    if self.in_place.is_flushed(writes) || seeded(FsBug::InPlaceNotFlushed) {
                        stage = Stage::Durable(self.core.rolling.last_write(number), number);
                        continue;
                    }
                    self.set_stage(task, Stage::Flushed(writes, number));
                    self.flush_in_place(task);
                    return None;
                }
                Stage::Durable(last, number) => {
                    if self.writes_are_open(last) && !seeded(FsBug::NodesNotWaitedFor) {
                        self.set_stage(task, Stage::Durable(last, number));
                        self.for_writes.push((last, task));
                        return None;
                    }
                    self.core.nodes_are_written(number, last);
                    return Some(Ok(()));
                }
                Stage::Checkpoint(inode) => {
                    let is_new = match inode {
                        Some(number) => self.core.touched.contains(&number),
                        None => self.core.is_changed(),
                    };
                    // Called again when the check-point is durable: then there is nothing more to wait for, unless it was on its way when pages
                    // were written in place.
                    self.set_stage(task, Stage::Begin);
                    let writes = self.in_place.unflushed(inode);
                    let flushed = Stage::Flushed(writes, inode.unwrap_or(0));
                    if is_new {
                        self.checkpoints.next.push(task);
                        self.checkpoints.is_wanted = true;
                    } else if self.checkpoints.is_encoded() {
                        if writes > 0 {
                            self.set_stage(task, flushed);
                        }
                        self.checkpoints.join(task);
                    } else if writes > 0 {
                        stage = flushed;
                        continue;
                    } else {
                        return Some(Ok(()));
                    }
                    return None;
                }
            }
        }
    }
}

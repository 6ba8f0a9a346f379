//! Tasks: calls and jobs run until they end or miss something, and wait for it.

use ssdlab_base::Nanos;

use super::super::calls::freeing::FreeStep;
use super::super::core::Stop;
use super::Journaling;
use super::stages::{Effect, Stage};
use crate::call::{Answer, Call, Errno, Reply};
use crate::core::cache::{Key, Of};

/// Times that a call is tried again when nothing more could be won, before it is told that there are no blocks.
const LAST_TRIES: u32 = 3;

/// What a task does.
#[derive(Debug)]
pub(crate) enum Work {
    Call(Box<Calling>),
    /// Frees the blocks of an inode.
    Free(u32),
    /// Write-out waits for something.
    WriteOut,
}

/// A call on its way.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) call: Call,
    pub(crate) tag: u32,
    pub(crate) submitted: Nanos,
    pub(crate) stage: Stage,
    /// Number of its apply, when it has taken effect.
    pub(crate) order: Option<u64>,
    pub(crate) result: Result<Reply, Errno>,
    /// Times that it was tried when no more blocks could be won.
    pub(crate) last_tries: u32,
    /// It has waited for blocks, and for write-out.
    pub(crate) has_waited: [bool; 2],
}

/// A task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) work: Work,
    /// What it has loaded stays until it ends.
    pub(crate) pins: Vec<Key>,
    /// What it could not load.
    pub(crate) failed: Vec<Key>,
    /// Loads that it waits for.
    pub(crate) waits: u32,
}

impl Journaling {
    /// A task that runs when something wakes it.
    pub(super) fn start_quietly(&mut self, work: Work) -> u32 {
        self.tasks.put(Task { work, pins: Vec::new(), failed: Vec::new(), waits: 0 })
    }

    /// A new task.
    pub(super) fn start(&mut self, work: Work) {
        let task = self.start_quietly(work);
        self.runnable.push_back(task);
    }

    pub(super) fn run_tasks(&mut self) -> bool {
        let mut any = false;
        while let Some(task) = self.runnable.pop_front() {
            any = true;
            self.run_task(task);
            self.cancel_loads();
            if let Some(block) = self.core.space.contradiction {
                self.core.set_read_only(format!("block {block}: its bitmap contradicts what names it"));
            }
        }
        any
    }

    fn run_task(&mut self, task: u32) {
        match &mut self.tasks.get_mut(task).work {
            Work::Call(_) => self.run_call(task),
            Work::WriteOut => {
                self.is_loading = false;
                self.loaded.push(task);
            }
            Work::Free(number) => {
                let number = *number;
                match self.core.attempt(FreeStep { number }) {
                    Ok(true) => {
                        self.free_ended(number);
                        self.end_task(task);
                    }
                    Ok(false) => {
                        self.unpin(task);
                        self.runnable.push_back(task);
                    }
                    Err(stop) => self.stopped(task, stop),
                }
            }
        }
    }

    /// A job waits for what it lacks.
    fn stopped(&mut self, task: u32, stop: Stop) {
        match stop {
            Stop::Missing(needs) => self.load(needs, Some(task)),
            Stop::Commit => self.wait_for_commit(task),
            Stop::Space | Stop::Throttled => self.wait_for_space(task),
            Stop::Busy(inode) => self.busy.push((inode, task)),
            Stop::Failed(errno) => self.job_failed(task, errno),
        }
    }

    pub(super) fn job_failed(&mut self, task: u32, errno: Errno) {
        if errno == Errno::NoSpace {
            self.without_room += 1;
        }
        self.core.set_read_only(format!("a job cannot go on: {errno}"));
        match self.tasks.get_mut(task).work {
            Work::Free(number) => self.free_ended(number),
            Work::WriteOut => self.is_loading = false,
            Work::Call(_) => {}
        }
        self.end_task(task);
    }

    fn run_call(&mut self, task: u32) {
        let Work::Call(calling) = &mut self.tasks.get_mut(task).work else { return };
        if calling.order.is_some() {
            let stage = std::mem::replace(&mut calling.stage, Stage::Begin);
            let result = match stage {
                Stage::Begin if self.core.read_only.is_some() => Some(Err(Errno::ReadOnly)),
                Stage::Begin => Some(Ok(())),
                stage => self.go_on(task, stage),
            };
            if let Some(result) = result {
                self.answer(task, result);
            }
            return;
        }
        // A call is looked at in its place; the box goes back before anything else happens.
        let mut calling = std::mem::replace(&mut self.tasks.get_mut(task).work, Work::WriteOut);
        let Work::Call(inner) = &mut calling else { return };
        let is_first = self.tasks.get_mut(task).pins.is_empty();
        let mut effect = self.core.take_effect(&inner.call);
        if matches!(effect, Err(Stop::Space)) && inner.last_tries == LAST_TRIES {
            effect = Err(Stop::Failed(Errno::NoSpace));
        }
        let is_read = matches!(inner.call, Call::Read { .. });
        let read = match inner.call {
            Call::Read { file, offset, length, is_direct: false } => Some((file.number, offset, length)),
            _ => None,
        };
        let had_waited = inner.has_waited;
        inner.has_waited[0] |= matches!(effect, Err(Stop::Space));
        inner.has_waited[1] |= matches!(effect, Err(Stop::Throttled));
        if matches!(effect, Ok(_) | Err(Stop::Failed(_))) {
            inner.order = Some(self.order);
            self.order += 1;
        }
        let outcome = match effect {
            Ok(Effect::Ends(reply)) => {
                inner.result = Ok(reply);
                Ok(None)
            }
            Ok(Effect::Goes(reply, stage)) => {
                inner.result = Ok(reply);
                Ok(Some(stage))
            }
            Err(Stop::Failed(errno)) => {
                inner.result = Err(errno);
                Ok(None)
            }
            Err(stop) => Err(stop),
        };
        self.tasks.get_mut(task).work = calling;
        match outcome {
            Ok(None) => self.answer(task, Ok(())),
            Ok(Some(stage)) => {
                if let Some(result) = self.go_on(task, stage) {
                    self.answer(task, result);
                }
            }
            Err(Stop::Missing(needs)) => {
                if is_read {
                    let is_page = |need: &&super::super::core::Need| matches!(need.key.of(), Of::Page { .. });
                    self.core.metrics.missed_blocks += needs.iter().filter(is_page).count() as u64;
                }
                self.load(needs, Some(task));
            }
            Err(Stop::Commit) => self.wait_for_commit(task),
            Err(Stop::Space) => {
                self.core.metrics.room_waits += u64::from(!had_waited[0]);
                self.wait_for_space(task);
            }
            Err(Stop::Throttled) => {
                self.core.metrics.dirty_waits += u64::from(!had_waited[1]);
                self.throttled.push_back(task);
            }
            Err(Stop::Busy(inode)) => self.busy.push((inode, task)),
            Err(Stop::Failed(_)) => {}
        }
        if let Some((number, offset, length)) = read.filter(|_| is_first) {
            self.read_ahead(number, offset, length);
        }
    }

    pub(super) fn set_stage(&mut self, task: u32, stage: Stage) {
        if let Work::Call(calling) = &mut self.tasks.get_mut(task).work {
            calling.stage = stage;
        }
    }

    fn answer(&mut self, task: u32, ended: Result<(), Errno>) {
        let Work::Call(calling) = self.end_task(task) else { return };
        let Calling { tag, submitted, order, result, .. } = *calling;
        let took_effect = result.is_ok();
        let (result, order) = (ended.and(result), order.unwrap_or(0));
        self.answers.push(Answer { tag, submitted, at: self.core.now, order, took_effect, result });
    }

    /// Write-out has got on, and needs no more what it had waited for.
    pub(super) fn end_loaded(&mut self) {
        if !self.is_loading {
            std::mem::take(&mut self.loaded).into_iter().for_each(|task| drop(self.end_task(task)));
        }
    }

    fn unpin(&mut self, task: u32) {
        let one = self.tasks.get_mut(task);
        let (pins, failed) = (std::mem::take(&mut one.pins), std::mem::take(&mut one.failed));
        pins.into_iter().for_each(|key| self.core.cache.unpin(key));
        for key in failed {
            self.core.failed.remove(&key);
        }
    }

    fn end_task(&mut self, task: u32) -> Work {
        self.unpin(task);
        self.tasks.take(task).work
    }

    /// A task waits for a commit, which is made.
    pub(super) fn wait_for_commit(&mut self, task: u32) {
        self.for_commit.push_back(task);
        self.commit.is_wanted = true;
    }

    /// A task waits for blocks that write-out and a commit may free.
    pub(super) fn wait_for_space(&mut self, task: u32) {
        self.for_space.push_back(task);
    }

    /// The transaction is another one: what did not fit goes on.
    pub(crate) fn transaction_began(&mut self) {
        self.runnable.append(&mut self.for_commit);
    }

    /// A commit has ended.
    pub(crate) fn commit_ended(&mut self) {
        self.runnable.append(&mut self.for_commit);
    }

    /// Blocks may have come free.
    pub(crate) fn room_came(&mut self) {
        self.runnable.append(&mut self.for_space);
    }

    /// Makes room for who waits for blocks: all dirty pages are sent, a commit is made, and what it frees is trimmed.
    pub(super) fn make_room(&mut self) -> bool {
        if self.for_space.is_empty() {
            return false;
        }
        if self.core.read_only.is_some() {
            self.room_came();
            return true;
        }
        if self.core.dirty_pages > 0 && self.core.delays() && self.send_all(false) == Ok(true) {
            return true;
        }
        let is_quiet =
            self.core.open_writes.is_empty() && self.commit.is_idle() && !self.commit.is_wanted && !self.is_loading;
        if !is_quiet || self.trims > 0 || !self.releases.is_empty() || !self.core.freeing.is_empty() {
            return false;
        }
        if !self.core.running.freed.is_empty() {
            self.commit.is_wanted = true;
            return true;
        }
        // Nothing more can be won.
        for task in self.for_space.iter().copied() {
            if let Work::Call(calling) = &mut self.tasks.get_mut(task).work {
                calling.last_tries += 1;
            }
        }
        self.room_came();
        true
    }

    pub(super) fn wake_throttled(&mut self) -> bool {
        let pages = self.core.dirty_pages + self.core.writing_pages;
        let is_below = pages < self.core.options.limit_pages() && !self.core.is_closing;
        let any = (is_below || self.core.read_only.is_some()) && !self.throttled.is_empty();
        if any {
            self.runnable.append(&mut self.throttled);
        }
        any
    }

    pub(super) fn start_freeing(&mut self) -> bool {
        if self.core.read_only.is_some() {
            let waiting = std::mem::take(&mut self.busy);
            self.runnable.extend(waiting.iter().map(|(_, task)| *task));
            return !waiting.is_empty();
        }
        let waiting: Vec<u32> =
            self.core.freeing.iter().filter(|(_, is_running)| !**is_running).map(|(number, _)| *number).collect();
        for number in &waiting {
            self.core.freeing.insert(*number, true);
            self.start(Work::Free(*number));
        }
        !waiting.is_empty()
    }

    fn free_ended(&mut self, number: u32) {
        self.core.freeing.remove(&number);
        let (ready, waiting) = std::mem::take(&mut self.busy).into_iter().partition(|(inode, _)| *inode == number);
        self.busy = waiting;
        let ready: Vec<(u32, u32)> = ready;
        self.runnable.extend(ready.into_iter().map(|(_, task)| task));
    }
}

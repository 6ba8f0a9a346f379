//! Tasks: calls and jobs run until they end or miss something, and wait for it: blocks, room, write-out, the freeing of an inode.

use super::LogStructured;
use crate::call::{Answer, Call, Errno};
use crate::calls::freeing::FreeStep;
use crate::core::Stop;
use crate::core::cache::Of;
use crate::jobs::cleaning::{CleanStep, Progress};
use crate::jobs::stages::Effect;
use crate::jobs::threading::Prepare;
use crate::tasks::{Calling, Stage, Task, Work};

impl LogStructured {
    /// A new task.
    pub(crate) fn start(&mut self, work: Work) {
        let is_clean = matches!(work, Work::Clean { .. });
        let task = self.tasks.put(Task { work, pins: Vec::new(), failed: Vec::new(), waits: 0 });
        if is_clean {
            self.cleaning_task = Some(task);
        }
        self.runnable.push_back(task);
    }

    pub(super) fn run_tasks(&mut self) -> bool {
        let mut any = false;
        while let Some(task) = self.runnable.pop_front() {
            any = true;
            self.run_task(task);
            self.cancel_loads();
            if let Some(block) = self.core.space.contradiction {
                self.core.set_read_only(format!("block {block} is named and is in a segment without valid blocks"));
            }
        }
        any
    }

    pub(super) fn run_task(&mut self, task: u32) {
        let result = match &mut self.tasks.get_mut(task).work {
            Work::Call(_) => return self.run_call(task),
            Work::Free(number) => {
                let number = *number;
                match self.core.attempt(FreeStep { number }) {
                    Ok(is_last) => {
                        self.went_on();
                        if is_last {
                            self.free_ended(number);
                            self.end_task(task);
                        } else {
                            self.runnable.push_back(task);
                        }
                        return;
                    }
                    Err(stop) => stop,
                }
            }
            Work::Clean { segment, next } => {
                let step = CleanStep { segment: *segment, next: *next };
                match self.core.attempt(step) {
                    Ok((pages, end)) => return self.cleaned_some(task, pages, end),
                    Err(stop) => stop,
                }
            }
            Work::Restore(steps) => {
                let Some(step) = steps.front() else {
                    self.end_task(task);
                    return;
                };
                match self.core.restore(step) {
                    Ok(()) => {
                        steps.pop_front();
                        self.unpin(task);
                        self.runnable.push_back(task);
                        return;
                    }
                    Err(stop) => stop,
                }
            }
            Work::Thread { log, segment } => {
                let (log, segment) = (*log, *segment);
                match self.core.attempt(Prepare { log, segment }) {
                    Ok(()) => {
                        self.thread_ended(log);
                        self.end_task(task);
                        return;
                    }
                    Err(stop) => stop,
                }
            }
            Work::Checkpoint => match self.make_checkpoint() {
                Ok(()) => {
                    self.end_task(task);
                    return;
                }
                Err(stop) => stop,
            },
        };
        match result {
            Stop::Missing(needs) => self.load(needs, Some(task)),
            Stop::Room | Stop::Throttled => self.wait_for_room(task),
            Stop::Busy(inode) => self.busy.push((inode, task)),
            Stop::Failed(errno) => self.job_failed(task, errno),
        }
    }

    pub(super) fn job_failed(&mut self, task: u32, errno: Errno) {
        self.core.set_read_only(format!("a job cannot go on: {errno}"));
        match self.tasks.get_mut(task).work {
            Work::Free(number) => self.free_ended(number),
            Work::Clean { .. } => (self.core.cleaning, self.cleaning_task) = (None, None),
            Work::Checkpoint => self.abandon_checkpoint(),
            Work::Thread { log, .. } => self.thread_ended(log),
            Work::Call(_) | Work::Restore(_) => {}
        }
        self.end_task(task);
    }

    pub(super) fn cleaned_some(&mut self, task: u32, pages: Vec<(u32, u32)>, end: u32) {
        self.moved.extend(pages);
        self.place_moved();
        if end < self.core.superblock.data_blocks() {
            if let Work::Clean { next, .. } = &mut self.tasks.get_mut(task).work {
                *next = end;
            }
            // What this chunk needed is not needed for the next.
            self.unpin(task);
            self.runnable.push_back(task);
            return;
        }
        (self.core.cleaning, self.cleaning_task) = (None, None);
        self.end_task(task);
    }

    pub(super) fn run_call(&mut self, task: u32) {
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
        let mut calling = std::mem::replace(&mut self.tasks.get_mut(task).work, Work::Checkpoint);
        let Work::Call(inner) = &mut calling else { return };
        let is_first = self.tasks.get_mut(task).pins.is_empty();
        let effect = self.core.take_effect(&inner.call);
        let is_read = matches!(inner.call, Call::Read { .. });
        let read = match inner.call {
            Call::Read { file, offset, length, is_direct: false } => Some((file.number, offset, length)),
            _ => None,
        };
        if !matches!(effect, Err(Stop::Missing(_) | Stop::Room | Stop::Throttled | Stop::Busy(_))) {
            inner.order = Some(self.order);
            self.order += 1;
            if inner.has_waited[0] {
                self.progress = Progress::since_now(&self.core);
            }
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
                    let is_page = |need: &&crate::core::Need| matches!(need.key.of(), Of::Page { .. });
                    self.core.metrics.missed_blocks += needs.iter().filter(is_page).count() as u64;
                }
                self.load(needs, Some(task));
            }
            Err(Stop::Room) => {
                self.core.metrics.room_waits += u64::from(self.waits_first(task, 0));
                self.wait_for_room(task);
            }
            Err(Stop::Throttled) => {
                self.core.metrics.dirty_waits += u64::from(self.waits_first(task, 1));
                self.throttled.push_back(task);
            }
            Err(Stop::Busy(inode)) => self.busy.push((inode, task)),
            Err(Stop::Failed(_)) => {}
        }
        if let Some((number, offset, length)) = read.filter(|_| is_first) {
            self.read_ahead(number, offset, length);
        }
    }

    /// Notes that a call waits for something; false if it has before.
    pub(super) fn waits_first(&mut self, task: u32, what: usize) -> bool {
        match &mut self.tasks.get_mut(task).work {
            Work::Call(calling) => !std::mem::replace(&mut calling.has_waited[what], true),
            _ => false,
        }
    }

    pub(crate) fn set_stage(&mut self, task: u32, stage: Stage) {
        if let Work::Call(calling) = &mut self.tasks.get_mut(task).work {
            calling.stage = stage;
        }
    }

    pub(super) fn answer(&mut self, task: u32, ended: Result<(), Errno>) {
        let Work::Call(calling) = self.end_task(task) else { return };
        let Calling { tag, submitted, order, result, .. } = *calling;
        let took_effect = result.is_ok();
        let (result, order) = (ended.and(result), order.unwrap_or(0));
        self.answers.push(Answer { tag, submitted, at: self.core.now, order, took_effect, result });
    }

    pub(super) fn unpin(&mut self, task: u32) {
        let one = self.tasks.get_mut(task);
        let (pins, failed) = (std::mem::take(&mut one.pins), std::mem::take(&mut one.failed));
        pins.into_iter().for_each(|key| self.core.cache.unpin(key));
        for key in failed {
            self.core.failed.remove(&key);
        }
    }

    pub(super) fn end_task(&mut self, task: u32) -> Work {
        self.unpin(task);
        self.tasks.take(task).work
    }

    /// A task waits until there may be more free segments.
    pub(crate) fn wait_for_room(&mut self, task: u32) {
        self.for_room.push_back(task);
        self.wants_room = true;
    }

    /// There may be more free segments.
    pub(crate) fn room_may_have_come(&mut self) {
        self.note_progress();
        (self.wants_room, self.has_written) = (false, false);
        self.runnable.append(&mut self.for_room);
    }

    /// There will be no segment for a task.
    pub(crate) fn fail_for_room(&mut self, task: u32) {
        match &mut self.tasks.get_mut(task).work {
            Work::Call(calling) if calling.order.is_none() => {
                (calling.order, calling.result) = (Some(self.order), Err(Errno::NoSpace));
                self.order += 1;
                self.answer(task, Ok(()));
            }
            Work::Call(_) => {
                self.core.set_read_only("no segment is free for what calls have written".to_string());
                self.answer(task, Err(Errno::ReadOnly));
            }
            // The segment stays as it is.
            Work::Clean { .. } => {
                (self.core.cleaning, self.cleaning_task) = (None, None);
                self.end_task(task);
            }
            _ => self.job_failed(task, Errno::NoSpace),
        }
    }

    pub(super) fn wake_throttled(&mut self) -> bool {
        let pages = self.core.dirty_pages + self.core.writing_pages;
        let is_below = pages < self.core.options.limit_pages() && !self.core.has_much_metadata();
        let any = (is_below || self.core.read_only.is_some()) && !self.throttled.is_empty();
        if any {
            self.runnable.append(&mut self.throttled);
        }
        any
    }

    /// A check-point is made where so much metadata is dirty that it would crowd out all else.
    pub(super) fn limit_metadata(&mut self) -> bool {
        let is_much = self.core.dirty_metadata() > self.core.metadata_limit();
        if is_much && self.checkpoints.is_idle() && !self.checkpoints.is_wanted && self.core.read_only.is_none() {
            self.checkpoints.is_wanted = true;
            return true;
        }
        false
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

    pub(super) fn free_ended(&mut self, number: u32) {
        self.core.freeing.remove(&number);
        let (ready, waiting) = std::mem::take(&mut self.busy).into_iter().partition(|(inode, _)| *inode == number);
        self.busy = waiting;
        let ready: Vec<(u32, u32)> = ready;
        self.runnable.extend(ready.into_iter().map(|(_, task)| task));
    }
}

//! A file system at work: what it owns, and its main path.
//!
//! ```text
//!   submit -> run: gather -> (missing: load, and again) -> apply -> answer
//!                                                              \-> stages: place pages, write, check-point -> answer
//! ```
//!
//! It has the shape of a block device: it takes calls now, runs until a time, says when something happens next, and gives answers. It
//! owns the device below and nothing else: no clock, no thread. [`FileSystem::proceed`] is all that it does at one instant.

use std::collections::{BTreeSet, VecDeque};

use ssdlab_base::Nanos;
use ssdlab_device::Status;
use ssdlab_host::standing::{Below, Done, Slots};
use ssdlab_host::{Again, Device, Loss};

use crate::call::{Answer, Call, Errno, Reply};
use crate::calls::freeing::FreeStep;
use crate::core::cache::Of;
use crate::core::log::{Outgoing, Placed};
use crate::core::{Core, Stop};
use crate::format::superblock::Superblock;
use crate::jobs::Job;
use crate::jobs::checkpoint::Checkpoints;
use crate::jobs::cleaning::CleanStep;
use crate::jobs::loads::Loads;
use crate::jobs::stages::Effect;
use crate::metrics::{Levels, Memory, Metrics};
use crate::tasks::{Calling, Stage, Task, Work};

/// What a command below was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Load(u32),
    Write(u32),
    Flush,
    Checkpoint,
    Trim(u32, u32),
    TrimCheckpoints,
}

/// A write command of a log on its way.
#[derive(Debug)]
struct Writing {
    number: u64,
    segment: u32,
    placed: Vec<Placed>,
}

/// A file system on a device.
pub struct FileSystem {
    pub(crate) core: Core,
    pub(crate) below: Below<Purpose>,
    pub(crate) tasks: Slots<Task>,
    pub(crate) runnable: VecDeque<u32>,
    /// Tasks that wait for free segments, for write-out, for the freeing of an inode, and for writes up to a number.
    pub(crate) for_room: VecDeque<u32>,
    throttled: VecDeque<u32>,
    busy: Vec<(u32, u32)>,
    pub(crate) for_writes: Vec<(u64, u32)>,
    pub(crate) loads: Loads,
    writing: Slots<Writing>,
    /// Numbers of writes that have not ended, and of the last one.
    open_writes: BTreeSet<u64>,
    pub(crate) last_write: u64,
    pub(crate) checkpoints: Checkpoints,
    /// The segment that is being cleaned, its task, and those cleaned since the last check-point.
    pub(crate) cleaning: Option<u32>,
    pub(crate) cleaning_task: Option<u32>,
    pub(crate) cleaned: Vec<u32>,
    pub(crate) clean_in_background: bool,
    /// Pages that cleaning has moved and that are to be sent.
    pub(crate) moved: VecDeque<(u32, u32)>,
    /// Some of those are in their log and not sent.
    pub(crate) has_unsent: bool,
    /// Something was not sent, since there are too few free segments.
    pub(crate) wants_room: bool,
    /// Pages that are dirty since then, or longer, are to be sent.
    pub(crate) expired: Option<Nanos>,
    pub(crate) checkpoint_at: Nanos,
    pub(crate) expire_at: Nanos,
    pub(crate) clean_at: Nanos,
    order: u64,
    answers: Vec<Answer>,
    done: Vec<Done<Purpose>>,
}

impl FileSystem {
    /// A file system that is mounted.
    pub(crate) fn of(core: Core, below: Below<Purpose>, checkpoints: Checkpoints) -> FileSystem {
        let mut system = FileSystem {
            core,
            below,
            tasks: Slots::new(),
            runnable: VecDeque::new(),
            for_room: VecDeque::new(),
            throttled: VecDeque::new(),
            busy: Vec::new(),
            for_writes: Vec::new(),
            loads: Loads::new(),
            writing: Slots::new(),
            open_writes: BTreeSet::new(),
            last_write: 0,
            checkpoints,
            cleaning: None,
            cleaning_task: None,
            cleaned: Vec::new(),
            clean_in_background: false,
            moved: VecDeque::new(),
            has_unsent: false,
            wants_room: false,
            expired: None,
            checkpoint_at: Nanos::MAX,
            expire_at: Nanos::MAX,
            clean_at: Nanos::MAX,
            order: 0,
            answers: Vec::new(),
            done: Vec::new(),
        };
        system.core.now = system.below.now();
        system.set_timers();
        system
    }

    fn set_timers(&mut self) {
        self.checkpoint_at = self.after(self.core.options.checkpoint_period);
        self.expire_at = self.after(self.core.options.dirty_period);
        self.clean_at = self.after(self.core.options.cleaning_period);
    }

    /// Takes a call now.
    pub fn submit(&mut self, call: Call, tag: u32) {
        let submitted = self.core.now;
        self.clean_at = self.after(self.core.options.cleaning_period);
        let calling = Calling {
            call,
            tag,
            submitted,
            stage: Stage::Begin,
            order: None,
            result: Ok(Reply::Done),
            has_waited: [false; 2],
        };
        self.start(Work::Call(Box::new(calling)));
        self.proceed();
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.core.now
    }

    /// When something happens next; `None` when nothing will.
    pub fn next_event(&self) -> Option<Nanos> {
        // A timer that had nothing to do when its time came is due as soon as there is something.
        let timer = self.timer().map(|at| at.max(self.core.now));
        let below = self.below.next_event();
        if self.below.in_flight() > 0 && below.is_none() {
            return Some(self.core.now);
        }
        below.into_iter().chain(timer).min()
    }

    /// Runs every event up to and including `until`; virtual time is `until` then.
    pub fn run_until(&mut self, until: Nanos) {
        while self.step(until) {}
        self.below.advance(until);
        self.core.now = self.below.now();
        self.proceed();
    }

    /// Runs events up to `until` but stops as soon as an answer is there; true if one is.
    pub fn run_to_completion(&mut self, until: Nanos) -> bool {
        while self.answers.is_empty() {
            if !self.step(until) {
                return false;
            }
        }
        true
    }

    /// Answers since the last drain; the caller clears it.
    pub fn answers(&mut self) -> &mut Vec<Answer> {
        &mut self.answers
    }

    /// Calls without an answer.
    pub fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    /// Calls that took effect and have no answer yet: the tag of each, and the number of its apply.
    pub fn unanswered(&self) -> Vec<(u32, u64)> {
        let of = |task: &Task| match &task.work {
            Work::Call(calling) if calling.result.is_ok() => calling.order.map(|order| (calling.tag, order)),
            _ => None,
        };
        self.tasks.all().filter_map(|(_, task)| of(task)).collect()
    }

    /// Work of its own that is in flight now.
    pub fn jobs(&self) -> Vec<Job> {
        let checkpoints = &self.checkpoints;
        let all = [
            (Job::Cleaning, self.cleaning.is_some() || !self.moved.is_empty()),
            (Job::Checkpoint, !checkpoints.is_idle()),
            (Job::Switch, checkpoints.is_switching),
            (Job::MapCleaning, checkpoints.is_cleaning_map),
            (Job::Freeing, !self.core.freeing.is_empty()),
            (Job::Trim, checkpoints.trims > 0),
        ];
        all.into_iter().filter(|(_, is_in_flight)| *is_in_flight).map(|(job, _)| job).collect()
    }

    /// Why nothing can be changed any more, if so.
    pub fn read_only_reason(&self) -> Option<&str> {
        self.core.read_only.as_deref()
    }

    /// What it did.
    pub fn metrics(&self) -> Metrics {
        let (logs, own) = (&self.core.logs, self.core.metrics);
        let padding_blocks = own.padding_blocks + logs.padding_blocks;
        Metrics { summary_blocks: logs.summary_blocks, padding_blocks, ..own }
    }

    /// Counters begin anew.
    pub fn reset_metrics(&mut self) {
        self.core.metrics = Metrics::default();
        (self.core.logs.summary_blocks, self.core.logs.padding_blocks) = (0, 0);
    }

    /// What was decided when it was made.
    pub fn superblock(&self) -> &Superblock {
        &self.core.superblock
    }

    /// Counters and virtual time begin anew, here and in the device.
    ///
    /// # Panics
    /// Something is in flight, or a file has dirty blocks: [`Call::Sync`] and [`settle`](FileSystem::settle) come before.
    pub fn reset_statistics(&mut self) {
        assert!(self.tasks.is_empty() && self.below.is_idle(), "nothing is in flight when statistics begin anew");
        assert!(self.core.dirty_files.is_empty(), "no file has dirty blocks when time begins anew");
        self.reset_metrics();
        self.below.reset_statistics();
        self.core.now = self.below.now();
        self.expired = None;
        self.set_timers();
    }

    /// Runs until every call has its answer, no job is at work, and nothing is in flight in the device. Timers wait.
    pub fn settle(&mut self) {
        self.run_all();
    }

    /// Whether every call has its answer, no job is at work, and nothing is in flight in the device.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.checkpoints.is_idle() && self.below.is_idle()
    }

    /// What it has now.
    pub fn levels(&self) -> Levels {
        let core = &self.core;
        Levels {
            cached_blocks: core.cache.len() as u64,
            dirty_blocks: core.dirty_pages as u64,
            dirty_metadata_blocks: core.dirty_metadata() as u64,
            free_segments: core.space.free().into(),
            valid_blocks: core.space.used,
            log_segments: core.space.by_log(),
        }
    }

    /// RAM by table.
    pub fn memory(&self) -> Memory {
        let owners = self.core.logs.loose.values().map(|loose| loose.owners.len()).sum::<usize>();
        Memory {
            table_bytes: self.core.map.table_bytes(),
            list_bytes: self.core.map.list_bytes(),
            number_bytes: self.core.map.number_bytes(),
            segment_bytes: self.core.space.memory_bytes(),
            summary_bytes: owners * 12,
            cached_blocks: self.core.cache.len(),
            cached_blocks_max: self.core.cache.most,
        }
    }

    /// Drops everything from the cache that the drive has.
    pub fn drop_caches(&mut self) {
        self.core.cache.drop_all();
    }

    /// The device, to look at.
    pub fn device(&self) -> &dyn Device {
        self.below.device()
    }

    /// The device, to set its clocks and observers.
    pub fn device_mut(&mut self) -> &mut dyn Device {
        self.below.device_mut()
    }

    /// The power of a part of the device goes and comes back now, while the host goes on. What was being written ends the changes.
    pub fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        let loss = self.below.cut(part, again);
        self.core.now = self.below.now();
        self.proceed();
        loss
    }

    /// Functional fast-forward of the device.
    pub fn set_timed(&mut self, timed: bool) {
        self.below.set_timed(timed);
        self.core.now = self.below.now();
    }

    /// The host has crashed: the device as it is, with what is in flight in it.
    pub fn into_device(self) -> Box<dyn Device> {
        self.below.into_device()
    }

    /// Writes everything, and a check-point behind which nothing follows. The device.
    ///
    /// # Errors
    /// The file system takes no changes any more, and why; the device with it.
    pub fn unmount(mut self) -> Result<Box<dyn Device>, (String, Box<dyn Device>)> {
        self.end_opens();
        self.run_all();
        self.answers.clear();
        self.submit(Call::Sync, 0);
        self.run_all();
        self.checkpoints.is_last = true;
        self.checkpoints.is_wanted = true;
        self.proceed();
        self.run_all();
        match self.core.read_only.take() {
            Some(reason) => Err((reason, self.below.into_device())),
            None => Ok(self.below.into_device()),
        }
    }

    /// Files without a name that are open are freed.
    fn end_opens(&mut self) {
        let open: Vec<u32> =
            self.core.files.iter().filter(|(_, file)| file.opens > 0).map(|(number, _)| *number).collect();
        for number in open {
            self.core.file_mut(number).opens = 0;
            if self.core.orphans.contains(&number) {
                self.core.freeing.entry(number).or_insert(false);
            }
            self.core.drop_idle(number);
        }
    }

    /// Runs until no task is left and nothing is on its way.
    fn run_all(&mut self) {
        while !self.is_idle() {
            if !self.step_below(Nanos::MAX) {
                break;
            }
        }
    }

    /// The next event up to `until`; false if there is none.
    fn step(&mut self, until: Nanos) -> bool {
        let Some(timer) = self.timer().map(|at| at.max(self.core.now)) else { return self.step_below(until) };
        if self.below.next_event().is_none_or(|at| at > timer) && timer <= until && !self.is_stuck() {
            self.below.advance(timer);
            self.core.now = self.below.now();
            self.timers();
            self.proceed();
            return true;
        }
        self.step_below(until.min(timer)) || (timer <= until && self.step(until))
    }

    fn is_stuck(&self) -> bool {
        self.below.in_flight() > 0 && self.below.next_event().is_none()
    }

    fn step_below(&mut self, until: Nanos) -> bool {
        let any = self.below.run(until) || (self.is_stuck() && self.below.run_stuck());
        self.core.now = self.below.now();
        if any {
            self.proceed();
        }
        any
    }

    /// Everything that is to be done now.
    pub(crate) fn proceed(&mut self) {
        loop {
            let mut any = self.take_ended();
            any |= self.run_tasks();
            any |= self.wake_throttled();
            any |= self.start_freeing();
            any |= self.place_moved();
            any |= self.write_out();
            any |= self.clean();
            any |= self.send_moved();
            any |= self.limit_metadata();
            any |= self.run_checkpoint();
            any |= self.trim();
            any |= self.make_room();
            if !any {
                break;
            }
        }
        self.look_in_next_period();
        self.core.cache.fit();
    }

    /// A new task.
    pub(crate) fn start(&mut self, work: Work) {
        let is_clean = matches!(work, Work::Clean { .. });
        let task = self.tasks.put(Task { work, pins: Vec::new(), failed: Vec::new(), waits: 0 });
        if is_clean {
            self.cleaning_task = Some(task);
        }
        self.runnable.push_back(task);
    }

    fn run_tasks(&mut self) -> bool {
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

    fn run_task(&mut self, task: u32) {
        let result = match &mut self.tasks.get_mut(task).work {
            Work::Call(_) => return self.run_call(task),
            Work::Free(number) => {
                let number = *number;
                match self.core.attempt(FreeStep { number }) {
                    Ok(true) => {
                        self.free_ended(number);
                        self.end_task(task);
                        return;
                    }
                    Ok(false) => {
                        self.runnable.push_back(task);
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

    fn job_failed(&mut self, task: u32, errno: Errno) {
        self.core.set_read_only(format!("a job cannot go on: {errno}"));
        match self.tasks.get_mut(task).work {
            Work::Free(number) => self.free_ended(number),
            Work::Clean { .. } => (self.cleaning, self.cleaning_task) = (None, None),
            Work::Checkpoint => self.abandon_checkpoint(),
            Work::Call(_) => {}
        }
        self.end_task(task);
    }

    fn cleaned_some(&mut self, task: u32, pages: Vec<(u32, u32)>, end: u32) {
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
        (self.cleaning, self.cleaning_task) = (None, None);
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
    fn waits_first(&mut self, task: u32, what: usize) -> bool {
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

    fn answer(&mut self, task: u32, ended: Result<(), Errno>) {
        let Work::Call(calling) = self.end_task(task) else { return };
        let Calling { tag, submitted, order, result, .. } = *calling;
        let took_effect = result.is_ok();
        let (result, order) = (ended.and(result), order.unwrap_or(0));
        self.answers.push(Answer { tag, submitted, at: self.core.now, order, took_effect, result });
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

    /// A task waits until there may be more free segments.
    pub(crate) fn wait_for_room(&mut self, task: u32) {
        self.for_room.push_back(task);
        self.wants_room = true;
    }

    /// There may be more free segments.
    pub(crate) fn room_may_have_come(&mut self) {
        self.wants_room = false;
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
                (self.cleaning, self.cleaning_task) = (None, None);
                self.end_task(task);
            }
            _ => self.job_failed(task, Errno::NoSpace),
        }
    }

    fn wake_throttled(&mut self) -> bool {
        let pages = self.core.dirty_pages + self.core.writing_pages;
        let is_below = pages < self.core.options.limit_pages() && !self.core.has_much_metadata();
        let any = (is_below || self.core.read_only.is_some()) && !self.throttled.is_empty();
        if any {
            self.runnable.append(&mut self.throttled);
        }
        any
    }

    /// A check-point is made where so much metadata is dirty that it would crowd out all else.
    fn limit_metadata(&mut self) -> bool {
        let is_much = self.core.dirty_metadata() > self.core.metadata_limit();
        if is_much && self.checkpoints.is_idle() && !self.checkpoints.is_wanted && self.core.read_only.is_none() {
            self.checkpoints.is_wanted = true;
            return true;
        }
        false
    }

    fn start_freeing(&mut self) -> bool {
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

    /// Sends what the logs have ready.
    pub(crate) fn send_outbox(&mut self) {
        for Outgoing { request, cells, records, placed, segment } in std::mem::take(&mut self.core.logs.outbox) {
            self.last_write += 1;
            self.open_writes.insert(self.last_write);
            let number = self.writing.put(Writing { number: self.last_write, segment, placed });
            self.below.send(request, &cells, Purpose::Write(number));
            for (address, bytes) in records {
                let sector = u64::from(address) * crate::format::BLOCK_SECTORS;
                self.below.device_mut().keep_record(sector, &bytes[..]);
            }
        }
    }

    /// Whether a write up to this number has not ended.
    pub(crate) fn writes_are_open(&self, last: u64) -> bool {
        self.open_writes.first().is_some_and(|first| *first <= last)
    }

    fn take_ended(&mut self) -> bool {
        let mut done = std::mem::take(&mut self.done);
        self.below.take(&mut done);
        let any = !done.is_empty();
        for one in done.drain(..) {
            self.ended(&one);
        }
        self.done = done;
        any
    }

    fn ended(&mut self, done: &Done<Purpose>) {
        let is_well = done.status == Status::Success;
        if !is_well && !matches!(done.purpose, Purpose::Load(_)) {
            let (sector, status) = (done.request.sector, done.status);
            self.core.set_read_only(format!("{:?} of sector {sector} ended with {status:?}", done.request.op));
        }
        match done.purpose {
            Purpose::Load(number) => self.load_ended(done, number),
            Purpose::Write(number) => self.write_ended(number, is_well),
            Purpose::Flush if is_well => self.commit(),
            Purpose::Checkpoint if is_well => self.commit_ended(),
            Purpose::Flush | Purpose::Checkpoint => self.abandon_checkpoint(),
            Purpose::Trim(first, count) if is_well => self.trim_ended(first, count),
            Purpose::Trim(..) | Purpose::TrimCheckpoints => {}
        }
        if self.core.read_only.is_some() {
            self.runnable.append(&mut self.for_room);
        }
    }

    fn write_ended(&mut self, number: u32, is_well: bool) {
        let Writing { number, segment, placed } = self.writing.take(number);
        self.open_writes.remove(&number);
        self.core.space.write_ends(segment);
        self.core.writing_pages -= placed.len();
        if is_well {
            for Placed { page, address, write, size } in placed {
                if let Of::Page { inode, index } = page.of() {
                    self.core.page_is_written(inode, index, write, address, size);
                }
            }
        }
        let open = self.open_writes.first().copied().unwrap_or(u64::MAX);
        let (ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.for_writes).into_iter().partition(|(last, _)| *last < open);
        self.for_writes = waiting;
        self.runnable.extend(ready.into_iter().map(|(_, task)| task));
    }
}

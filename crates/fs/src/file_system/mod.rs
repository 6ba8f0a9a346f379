//! A file system at work: what it owns, and its main path.
//!
//! ```text
//!   submit -> run: gather -> (missing: load, and again) -> apply -> answer
//!                                                              \-> stages: place pages, write, check-point -> answer
//! ```
//!
//! It has the shape of a block device: it takes calls now, runs until a time, says when something happens next, and gives answers. It
//! owns the device below and nothing else: no clock, no thread. [`FileSystem::proceed`] is all that it does at one instant.
//!
//! `tasks.rs` runs calls and jobs, `commands.rs` sends what they have ready to the device, `observe.rs` says what is there.

mod commands;
mod observe;
mod tasks;

use std::collections::{BTreeSet, VecDeque};

use ssdlab_base::Nanos;
use ssdlab_host::standing::{Below, Done, Slots};
use ssdlab_host::{Again, Device, Loss};

use crate::call::{Answer, Call, Reply};
use crate::core::Core;
use crate::core::log::{Outgoing, Placed};
use crate::format::checkpoint::LOGS;
use crate::jobs::checkpoint::Checkpoints;
use crate::jobs::cleaning::Progress;
use crate::jobs::loads::Loads;
use crate::tasks::{Calling, Stage, Task, Work};

/// What a command below was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Load(u32),
    Write(u32),
    Flush,
    /// Nodes of fsyncs wait for it.
    FlushData,
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

/// Commands with nodes of fsyncs that are not sent before the device has flushed the data that they name.
#[derive(Debug, Default)]
struct Held {
    /// Each with the number of its write.
    commands: VecDeque<(u64, Outgoing)>,
    /// How many of them the flush on its way is for; 0 if there is none.
    flushed: usize,
}

/// A file system on a device.
pub struct FileSystem {
    pub(crate) core: Core,
    pub(crate) below: Below<Purpose>,
    pub(crate) tasks: Slots<Task>,
    pub(crate) runnable: VecDeque<u32>,
    /// Tasks that wait for free segments, for write-out, for the freeing of an inode, and for writes up to a number.
    pub(crate) for_room: VecDeque<u32>,
    pub(crate) throttled: VecDeque<u32>,
    pub(crate) busy: Vec<(u32, u32)>,
    pub(crate) for_writes: Vec<(u64, u32)>,
    pub(crate) loads: Loads,
    writing: Slots<Writing>,
    /// Numbers of writes that have not ended, and of the last one.
    open_writes: BTreeSet<u64>,
    pub(crate) last_write: u64,
    held: Held,
    pub(crate) checkpoints: Checkpoints,
    /// The segment that is being cleaned, its task, and those cleaned since the last check-point.
    pub(crate) cleaning: Option<u32>,
    pub(crate) cleaning_task: Option<u32>,
    pub(crate) cleaned: Vec<u32>,
    /// By log, the segment that is got ready for it to write again.
    pub(crate) threading: [Option<u32>; LOGS],
    /// What cleaning for room has won.
    pub(crate) progress: Progress,
    /// Calls and jobs that failed since cleaning won no more room.
    pub(crate) without_room: u64,
    pub(crate) clean_in_background: bool,
    /// There was no segment to clean, and since then no call came and no check-point became durable.
    pub(crate) has_no_victim: bool,
    /// Pages that cleaning has moved and that are to be sent.
    pub(crate) moved: VecDeque<(u32, u32)>,
    /// Some of those are in their log and not sent.
    pub(crate) has_unsent: bool,
    /// Something was not sent, since there are too few free segments.
    pub(crate) wants_room: bool,
    /// A write has ended since tasks that wait for room looked last.
    pub(crate) has_written: bool,
    /// Pages that are dirty since then, or longer, are to be sent.
    pub(crate) expired: Option<Nanos>,
    /// The last look for such pages sent none of them, and nothing has happened since.
    pub(crate) looked_in_vain: bool,
    pub(crate) checkpoint_at: Nanos,
    pub(crate) expire_at: Nanos,
    pub(crate) clean_at: Nanos,
    order: u64,
    answers: Vec<Answer>,
    done: Vec<Done<Purpose>>,
}

impl FileSystem {
    /// A file system that is mounted.
    pub(crate) fn of(core: Core, below: Below<Purpose>, mut checkpoints: Checkpoints) -> FileSystem {
        let identity = below.device().identify();
        checkpoints.has_write_cache = identity.has_write_cache || identity.has_host_cache;
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
            held: Held::default(),
            checkpoints,
            cleaning: None,
            cleaning_task: None,
            cleaned: Vec::new(),
            threading: [None; LOGS],
            progress: Progress::default(),
            without_room: 0,
            clean_in_background: false,
            has_no_victim: false,
            moved: VecDeque::new(),
            has_unsent: false,
            wants_room: false,
            has_written: false,
            expired: None,
            looked_in_vain: false,
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
        self.has_no_victim = false;
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
        self.run_all(Nanos::MAX);
    }

    /// Drops everything from the cache that the drive has.
    pub fn drop_caches(&mut self) {
        self.core.cache.drop_all();
    }

    /// The power of a part of the device goes and comes back now, while the host goes on. What was being written ends the changes. Where the
    /// device has forgotten what completed, every call fails from then on.
    pub fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        let has_cache = self.below.device().identify().has_write_cache;
        let loss = self.below.cut(part, again);
        if has_cache && loss == Loss::Unflushed {
            self.core.is_shut = true;
            self.core.set_read_only("the device lost its power, and with it what it had not flushed".to_string());
        }
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
    pub fn unmount(self) -> Result<Box<dyn Device>, (String, Box<dyn Device>)> {
        self.unmount_by(Nanos::MAX)
    }

    /// Unmounts, and gives up at a time: a file system that never comes to rest is found so.
    ///
    /// # Errors
    /// The file system takes no changes any more, or has not come to rest by then; the device with it.
    pub fn unmount_by(mut self, until: Nanos) -> Result<Box<dyn Device>, (String, Box<dyn Device>)> {
        self.end_opens();
        self.run_all(until);
        self.answers.clear();
        self.submit(Call::Sync, 0);
        self.run_all(until);
        self.checkpoints.is_last = true;
        self.checkpoints.is_wanted = true;
        self.proceed();
        self.run_all(until);
        if !self.is_idle() {
            self.core.set_read_only(format!("it has not come to rest by {until}, jobs {:?}", self.jobs()));
        }
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

    /// Runs until no task is left and nothing is on its way, or up to a time.
    fn run_all(&mut self, until: Nanos) {
        while !self.is_idle() && self.core.now < until {
            if !self.step_below(until) {
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
        let any = self.run_device(until);
        if any {
            self.proceed();
        }
        any
    }

    fn run_device(&mut self, until: Nanos) -> bool {
        let any = self.below.run(until) || (self.is_stuck() && self.below.run_stuck());
        self.core.now = self.below.now();
        any
    }

    /// Runs a task to its end before anything else is at work. False if the device does not complete a command.
    pub(crate) fn run_alone(&mut self, work: Work) -> bool {
        self.start(work);
        loop {
            while self.take_ended() | self.run_tasks() {}
            if self.tasks.is_empty() {
                return true;
            }
            if !self.run_device(Nanos::MAX) {
                return false;
            }
        }
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
            any |= self.thread();
            any |= self.send_moved();
            any |= self.limit_metadata();
            any |= self.run_checkpoint();
            any |= self.trim();
            any |= self.make_room();
            if !any {
                break;
            }
            self.look_again();
        }
        self.look_in_next_period();
        self.core.cache.fit();
    }
}

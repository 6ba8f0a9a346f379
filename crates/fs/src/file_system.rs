//! A file system as its users see it: it takes calls now, runs until a time, says when something happens next, and gives answers.
//!
//! ```text
//!   FileSystem     time, answers, unmount          the same for all kinds
//!     Engine       calls, jobs, what is on a drive
//!                    LogStructured                 kinds alfs and lfs
//!                    Journaling                    kind journaling
//! ```
//!
//! It has the shape of a block device, and owns the device below and nothing else: no clock, no thread.

use ssdlab_base::Nanos;
use ssdlab_host::standing::Below;
use ssdlab_host::{Again, Device, Loss};

use crate::call::{Answer, Call};
use crate::format::superblock::Superblock;
use crate::jobs::Job;
use crate::metrics::{Levels, Memory, Metrics, Shape};

/// The device below an engine, whatever its commands were sent for.
pub(crate) trait Station {
    /// [`Below::next_event`].
    fn next_event(&self) -> Option<Nanos>;
    /// [`Below::in_flight`].
    fn in_flight(&self) -> u64;
    /// [`Below::is_idle`].
    fn is_idle(&self) -> bool;
    /// Runs events up to `until` and stops when a command has ended, also where none has a time; true if anything went on.
    fn run(&mut self, until: Nanos) -> bool;
    /// [`Below::advance`].
    fn advance(&mut self, to: Nanos);
    /// [`Below::now`].
    fn now(&self) -> Nanos;
    /// [`Below::device`].
    fn device(&self) -> &dyn Device;
    /// [`Below::device_mut`].
    fn device_mut(&mut self) -> &mut dyn Device;
    /// [`Below::set_timed`].
    fn set_timed(&mut self, timed: bool);
    /// [`Below::reset_statistics`].
    fn reset_statistics(&mut self);
    /// [`Below::cut`].
    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss;
}

impl<P> Station for Below<P> {
    fn next_event(&self) -> Option<Nanos> {
        Below::next_event(self)
    }

    fn in_flight(&self) -> u64 {
        Below::in_flight(self)
    }

    fn is_idle(&self) -> bool {
        Below::is_idle(self)
    }

    fn run(&mut self, until: Nanos) -> bool {
        Below::run(self, until) || (is_stuck(self) && self.run_stuck())
    }

    fn advance(&mut self, to: Nanos) {
        Below::advance(self, to);
    }

    fn now(&self) -> Nanos {
        Below::now(self)
    }

    fn device(&self) -> &dyn Device {
        Below::device(self)
    }

    fn device_mut(&mut self) -> &mut dyn Device {
        Below::device_mut(self)
    }

    fn set_timed(&mut self, timed: bool) {
        Below::set_timed(self, timed);
    }

    fn reset_statistics(&mut self) {
        Below::reset_statistics(self);
    }

    fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        Below::cut(self, part, again)
    }
}

/// Whether commands are in the device and none has a time.
fn is_stuck(below: &(impl Station + ?Sized)) -> bool {
    below.in_flight() > 0 && below.next_event().is_none()
}

/// What takes calls and has jobs: all that a kind of file systems does at one instant. [`FileSystem`] drives it through time.
pub(crate) trait Engine: Send {
    /// The device.
    fn below(&self) -> &dyn Station;

    /// The device, to run it.
    fn below_mut(&mut self) -> &mut dyn Station;

    /// The device with what is in flight in it.
    fn into_device(self: Box<Self>) -> Box<dyn Device>;

    /// Virtual time.
    fn now(&self) -> Nanos;

    /// Virtual time is that of the device.
    fn set_now(&mut self, now: Nanos);

    /// Takes a call; [`Engine::proceed`] follows.
    fn take_call(&mut self, call: Call, tag: u32);

    /// Does everything that is to be done now.
    fn proceed(&mut self);

    /// The time of the next timer that has anything to do.
    fn timer(&self) -> Option<Nanos>;

    /// The time of a timer is there.
    fn timers(&mut self);

    /// All timers begin anew.
    fn set_timers(&mut self);

    /// Answers since the last drain.
    fn answers(&mut self) -> &mut Vec<Answer>;

    /// Whether every call has its answer, and no job is at work.
    fn is_at_rest(&self) -> bool;

    /// Calls without an answer, and jobs that wait.
    fn outstanding(&self) -> usize;

    /// [`FileSystem::unanswered`].
    fn unanswered(&self) -> Vec<(u32, u64)>;

    /// [`FileSystem::jobs`].
    fn jobs(&self) -> Vec<Job>;

    /// [`FileSystem::read_only_reason`].
    fn read_only_reason(&self) -> Option<&str>;

    /// The file system takes no changes any more. The first reason stays.
    fn set_read_only(&mut self, reason: String);

    /// The device has forgotten what it completed.
    fn shut(&mut self);

    /// [`FileSystem::is_shut_down`].
    fn is_shut(&self) -> bool;

    /// [`FileSystem::without_room`].
    fn without_room(&self) -> u64;

    /// Files that are open are closed.
    fn end_opens(&mut self);

    /// What is in memory is durable: the file system on the device becomes one that was unmounted.
    fn begin_unmount(&mut self);

    /// Whether files have dirty blocks.
    fn has_dirty_files(&self) -> bool;

    /// [`FileSystem::drop_caches`].
    fn drop_caches(&mut self);

    /// [`FileSystem::metrics`].
    fn metrics(&self) -> Metrics;

    /// [`FileSystem::reset_metrics`].
    fn reset_metrics(&mut self);

    /// [`FileSystem::superblock`].
    fn superblock(&self) -> Option<&Superblock>;

    /// [`FileSystem::shape`].
    fn shape(&self) -> Shape;

    /// [`FileSystem::levels`].
    fn levels(&self) -> Levels;

    /// [`FileSystem::memory`].
    fn memory(&self) -> Memory;
}

/// A file system on a device.
pub struct FileSystem {
    engine: Box<dyn Engine>,
}

impl FileSystem {
    /// A file system that is mounted.
    pub(crate) fn of(engine: Box<dyn Engine>) -> FileSystem {
        FileSystem { engine }
    }

    /// Takes a call now.
    pub fn submit(&mut self, call: Call, tag: u32) {
        self.engine.take_call(call, tag);
        self.engine.proceed();
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.engine.now()
    }

    /// When something happens next; `None` when nothing will.
    pub fn next_event(&self) -> Option<Nanos> {
        // A timer that had nothing to do when its time came is due as soon as there is something.
        let timer = self.engine.timer().map(|at| at.max(self.engine.now()));
        let below = self.engine.below();
        if is_stuck(below) {
            return Some(self.engine.now());
        }
        below.next_event().into_iter().chain(timer).min()
    }

    /// Runs every event up to and including `until`; virtual time is `until` then.
    pub fn run_until(&mut self, until: Nanos) {
        while self.step(until) {}
        self.advance(until);
        self.engine.proceed();
    }

    /// Runs events up to `until` but stops as soon as an answer is there; true if one is.
    pub fn run_to_completion(&mut self, until: Nanos) -> bool {
        while self.engine.answers().is_empty() {
            if !self.step(until) {
                return false;
            }
        }
        true
    }

    /// Answers since the last drain; the caller clears it.
    pub fn answers(&mut self) -> &mut Vec<Answer> {
        self.engine.answers()
    }

    /// Counters and virtual time begin anew, here and in the device.
    ///
    /// # Panics
    /// Something is in flight, or a file has dirty blocks: [`Call::Sync`] and [`settle`](FileSystem::settle) come before.
    pub fn reset_statistics(&mut self) {
        let is_quiet = self.engine.outstanding() == 0 && self.engine.below().is_idle();
        assert!(is_quiet, "nothing is in flight when statistics begin anew");
        assert!(!self.engine.has_dirty_files(), "no file has dirty blocks when time begins anew");
        self.reset_metrics();
        self.engine.below_mut().reset_statistics();
        self.take_now();
        self.engine.set_timers();
    }

    /// Runs until every call has its answer, no job is at work, and nothing is in flight in the device. Timers wait.
    pub fn settle(&mut self) {
        self.run_all(Nanos::MAX);
    }

    /// Drops everything from the cache that the drive has.
    pub fn drop_caches(&mut self) {
        self.engine.drop_caches();
    }

    /// The power of a part of the device goes and comes back now, while the host goes on. What was being written ends the changes. Where the
    /// device has forgotten what completed, every call fails from then on.
    pub fn cut(&mut self, part: usize, again: &mut Again<'_>) -> Loss {
        let has_cache = self.device().identify().has_write_cache;
        let loss = self.engine.below_mut().cut(part, again);
        if has_cache && loss == Loss::Unflushed {
            self.engine.shut();
            self.engine.set_read_only("the device lost its power, and with it what it had not flushed".to_string());
        }
        self.take_now();
        self.engine.proceed();
        loss
    }

    /// Functional fast-forward of the device.
    pub fn set_timed(&mut self, timed: bool) {
        self.engine.below_mut().set_timed(timed);
        self.take_now();
    }

    /// The host has crashed: the device as it is, with what is in flight in it.
    pub fn into_device(self) -> Box<dyn Device> {
        self.engine.into_device()
    }

    /// Writes everything, and what says that nothing follows. The device.
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
        self.engine.end_opens();
        self.run_all(until);
        self.answers().clear();
        self.submit(Call::Sync, 0);
        self.run_all(until);
        self.engine.begin_unmount();
        self.engine.proceed();
        self.run_all(until);
        if !self.is_idle() {
            let jobs = self.jobs();
            self.engine.set_read_only(format!("it has not come to rest by {until}, jobs {jobs:?}"));
        }
        match self.engine.read_only_reason().map(str::to_string) {
            Some(reason) => Err((reason, self.into_device())),
            None => Ok(self.into_device()),
        }
    }

    /// Runs until no task is left and nothing is on its way, or up to a time.
    fn run_all(&mut self, until: Nanos) {
        while !self.is_idle() && self.now() < until {
            if !self.step_below(until) {
                break;
            }
        }
    }

    /// The next event up to `until`; false if there is none.
    fn step(&mut self, until: Nanos) -> bool {
        let Some(timer) = self.engine.timer().map(|at| at.max(self.engine.now())) else {
            return self.step_below(until);
        };
        let below = self.engine.below();
        if below.next_event().is_none_or(|at| at > timer) && timer <= until && !is_stuck(below) {
            self.advance(timer);
            self.engine.timers();
            self.engine.proceed();
            return true;
        }
        self.step_below(until.min(timer)) || (timer <= until && self.step(until))
    }

    fn step_below(&mut self, until: Nanos) -> bool {
        let any = self.engine.below_mut().run(until);
        self.take_now();
        if any {
            self.engine.proceed();
        }
        any
    }

    fn advance(&mut self, to: Nanos) {
        self.engine.below_mut().advance(to);
        self.take_now();
    }

    fn take_now(&mut self) {
        let now = self.engine.below().now();
        self.engine.set_now(now);
    }

    /// Calls without an answer.
    pub fn outstanding(&self) -> usize {
        self.engine.outstanding()
    }

    /// Calls that took effect and have no answer yet: the tag of each, and the number of its apply.
    pub fn unanswered(&self) -> Vec<(u32, u64)> {
        self.engine.unanswered()
    }

    /// Work of its own that is in flight now.
    pub fn jobs(&self) -> Vec<Job> {
        self.engine.jobs()
    }

    /// Why nothing can be changed any more, if so.
    pub fn read_only_reason(&self) -> Option<&str> {
        self.engine.read_only_reason()
    }

    /// Whether every call fails, since the device lost its power under the host, and with it what it had completed and not flushed.
    pub fn is_shut_down(&self) -> bool {
        self.engine.is_shut()
    }

    /// Calls and jobs that failed since no more room could be won. The space that is promised to files is chosen so that there are none.
    pub fn without_room(&self) -> u64 {
        self.engine.without_room()
    }

    /// What it did.
    pub fn metrics(&self) -> Metrics {
        self.engine.metrics()
    }

    /// Counters begin anew.
    pub fn reset_metrics(&mut self) {
        self.engine.reset_metrics();
    }

    /// What was decided when a log-structured file system was made; `None` for another kind.
    pub fn superblock(&self) -> Option<&Superblock> {
        self.engine.superblock()
    }

    /// Into what its device is divided.
    pub fn shape(&self) -> Shape {
        self.engine.shape()
    }

    /// Whether every call has its answer, no job is at work, and nothing is in flight in the device.
    pub fn is_idle(&self) -> bool {
        self.engine.is_at_rest() && self.engine.below().is_idle()
    }

    /// What it has now.
    pub fn levels(&self) -> Levels {
        self.engine.levels()
    }

    /// RAM by table.
    pub fn memory(&self) -> Memory {
        self.engine.memory()
    }

    /// The device, to look at.
    pub fn device(&self) -> &dyn Device {
        self.engine.below().device()
    }

    /// The device, to set its clocks and observers.
    pub fn device_mut(&mut self) -> &mut dyn Device {
        self.engine.below_mut().device_mut()
    }
}

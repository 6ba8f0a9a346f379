//! Who waits for which lines of the cache.
//!
//! A waiter that needs several lines at once has a *job*. A job is granted when the lines of all granted jobs fit in
//! the cache side by side; its lines stay in the cache from then on until the waiter has used them. So two jobs never
//! wait for each other's lines, however small the cache is. Jobs are granted in the order in which they came. A job is
//! found by waiter and by line: no list of all of them is walked.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::slots::Slots;
use crate::waiter::Waiter;

/// Lines that are asked for together.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) waiter: Waiter,
    pub(super) lines: Vec<u32>,
    pub(super) granted: bool,
    /// Lines that are not cached yet.
    pub(super) missing: u32,
}

/// All jobs.
#[derive(Default)]
pub(super) struct Jobs {
    all: Slots<Job>,
    by_waiter: FxHashMap<Waiter, u32>,
    /// Jobs that are not granted, in order.
    queue: VecDeque<u32>,
    /// By line: granted jobs that wait for it.
    waiting: FxHashMap<u32, Vec<u32>>,
    /// Lines of all granted jobs.
    reserved: u32,
}

impl Jobs {
    pub(super) fn is_empty(&self) -> bool {
        self.by_waiter.is_empty()
    }

    pub(super) fn of(&self, waiter: Waiter) -> Option<&Job> {
        self.by_waiter.get(&waiter).map(|job| &self.all[*job])
    }

    /// A new job, at the end of the queue.
    pub(super) fn push(&mut self, waiter: Waiter, lines: Vec<u32>) {
        let job = self.all.insert(Job { waiter, lines, granted: false, missing: 0 });
        let before = self.by_waiter.insert(waiter, job);
        assert!(before.is_none(), "{waiter:?} asks for lines twice");
        self.queue.push_back(job);
    }

    /// The next job that fits beside those that are granted: from now on it is.
    pub(super) fn grant(&mut self, capacity: u32) -> Option<u32> {
        let job = *self.queue.front()?;
        let size = self.all[job].lines.len() as u32;
        assert!(size <= capacity, "{:?} asks for {size} lines of a cache for {capacity}", self.all[job].waiter);
        if self.reserved + size > capacity {
            return None;
        }
        debug_assert!(!self.all[job].granted, "job {job} is granted twice");
        self.queue.pop_front();
        self.reserved += size;
        self.all[job].granted = true;
        Some(job)
    }

    pub(super) fn job(&self, job: u32) -> &Job {
        &self.all[job]
    }

    /// A granted job waits for a line; true if it is the first.
    pub(super) fn wait(&mut self, job: u32, line: u32) -> bool {
        debug_assert!(self.all[job].granted, "job {job} waits for line {line}, and is not granted");
        self.all[job].missing += 1;
        let waiting = self.waiting.entry(line).or_default();
        waiting.push(job);
        waiting.len() == 1
    }

    /// Whether a waiter of a kind waits for a line.
    pub(super) fn waits_for(&self, line: u32, kind: impl Fn(Waiter) -> bool) -> bool {
        self.waiting.get(&line).is_some_and(|jobs| jobs.iter().any(|job| kind(self.all[*job].waiter)))
    }

    /// A line is cached: tells `ready` of every waiter that waits for no other.
    pub(super) fn cached(&mut self, line: u32, mut ready: impl FnMut(Waiter)) {
        for job in self.waiting.remove(&line).unwrap_or_default() {
            let job = &mut self.all[job];
            assert!(job.missing > 0, "{:?} waits for line {line}, and for none", job.waiter);
            job.missing -= 1;
            if job.missing == 0 {
                ready(job.waiter);
            }
        }
    }

    /// The job of a waiter is over; its lines, if it was granted, may leave the cache.
    pub(super) fn end(&mut self, waiter: Waiter) -> Option<Job> {
        let number = self.by_waiter.remove(&waiter)?;
        let ended = &mut self.all[number];
        let job = Job { lines: std::mem::take(&mut ended.lines), ..*ended };
        if job.granted {
            let size = job.lines.len() as u32;
            assert!(self.reserved >= size, "{waiter:?} gives {size} lines back, of {} in all", self.reserved);
            self.reserved -= size;
            for line in job.lines.iter().filter(|_| job.missing > 0) {
                if let Some(waiting) = self.waiting.get_mut(line) {
                    waiting.retain(|other| *other != number);
                    if waiting.is_empty() {
                        self.waiting.remove(line);
                    }
                }
            }
        } else {
            self.queue.retain(|other| *other != number);
        }
        self.all.release(number);
        Some(job)
    }
}

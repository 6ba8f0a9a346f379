//! A journaling file system at work: what it owns, and what it does at one instant.

mod commands;
mod engine;
mod loads;
mod stages;
mod tasks;
mod timers;

use std::collections::VecDeque;
use std::ops::Bound;

use ssdlab_base::Nanos;
use ssdlab_host::standing::{Below, Done, Slots};

use super::commit::{Commit, Release};
use super::core::{Core, Stop};
use super::home::{self, HomeWrite};
use super::log::Log;
use super::write_out::Place;
use crate::call::Answer;
use crate::core::cache::Key;
use loads::Loads;
use tasks::{Task, Work};

/// What a command below was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Load(u32),
    /// Data.
    Write(u32),
    /// Blocks of a transaction to the journal.
    Log,
    FlushLog(u64),
    /// A commit block.
    Commit,
    /// Committed blocks to their places.
    Home(u32),
    FlushHome(u64),
    /// The superblock of the journal.
    Tail,
    /// A call waits for it that has nothing to commit.
    Flush(u32),
    Trim(u32, u32),
}

/// A write command of data on its way.
#[derive(Debug)]
struct Writing {
    number: u64,
    pages: Vec<Key>,
}

/// Pages that background write-out sends between two looks, at least.
const BATCH: usize = 256;

/// A journaling file system on a device.
pub(crate) struct Journaling {
    pub(crate) core: Core,
    pub(crate) below: Below<Purpose>,
    pub(super) has_write_cache: bool,
    pub(super) log: Log,
    pub(super) commit: Commit,
    pub(super) home: home::Step,
    pub(super) home_writes: Slots<HomeWrite>,
    /// Committed blocks that are as old as this, or older, go to their places.
    pub(super) home_expired: Option<Nanos>,
    /// Blocks of the log that a commit lacks; 0 if none does.
    pub(super) wants_log: u32,
    pub(super) releases: Vec<Release>,
    trims: usize,
    tasks: Slots<Task>,
    pub(super) runnable: VecDeque<u32>,
    /// Tasks that wait for a commit, for blocks, for write-out, for the freeing of an inode, and for writes up to a number.
    for_commit: VecDeque<u32>,
    for_space: VecDeque<u32>,
    throttled: VecDeque<u32>,
    busy: Vec<(u32, u32)>,
    for_writes: Vec<(u64, u32)>,
    loads: Loads,
    writing: Slots<Writing>,
    /// Write-out waits for what it misses.
    is_loading: bool,
    /// Its tasks that have what they waited for, which stays until write-out has got on.
    loaded: Vec<u32>,
    /// Pages that are dirty since then, or longer, are to be sent.
    expired: Option<Nanos>,
    /// The last look for such pages could not send all of them, and nothing has happened since.
    looked_in_vain: bool,
    pub(super) commit_at: Nanos,
    expire_at: Nanos,
    pub(super) is_unmounting: bool,
    /// Calls and jobs that failed for lack of blocks that were promised.
    without_room: u64,
    order: u64,
    answers: Vec<Answer>,
    done: Vec<Done<Purpose>>,
}

impl Journaling {
    /// A file system that is mounted.
    pub(crate) fn of(core: Core, below: Below<Purpose>, log: Log) -> Journaling {
        let mut system = Journaling {
            has_write_cache: below.device().identify().may_lose_completed(),
            core,
            below,
            log,
            commit: Commit::default(),
            home: home::Step::default(),
            home_writes: Slots::new(),
            home_expired: None,
            wants_log: 0,
            releases: Vec::new(),
            trims: 0,
            tasks: Slots::new(),
            runnable: VecDeque::new(),
            for_commit: VecDeque::new(),
            for_space: VecDeque::new(),
            throttled: VecDeque::new(),
            busy: Vec::new(),
            for_writes: Vec::new(),
            loads: Loads::new(),
            writing: Slots::new(),
            is_loading: false,
            loaded: Vec::new(),
            expired: None,
            looked_in_vain: false,
            commit_at: Nanos::MAX,
            expire_at: Nanos::MAX,
            is_unmounting: false,
            without_room: 0,
            order: 0,
            answers: Vec::new(),
            done: Vec::new(),
        };
        system.core.now = system.below.now();
        system.begin_timers();
        system
    }

    /// Everything that is to be done now.
    fn run(&mut self) {
        loop {
            let mut any = self.take_ended();
            any |= self.run_tasks();
            any |= self.wake_throttled();
            any |= self.start_freeing();
            any |= self.write_out();
            any |= self.run_commit();
            any |= self.run_home();
            any |= self.release();
            any |= self.make_room();
            self.end_loaded();
            if !any {
                break;
            }
            self.look_again();
        }
        self.set_commit_timer();
        self.core.cache.fit();
    }

    /// Sends pages, and says how many; a task goes on with what is missing.
    fn place(&mut self, place: Place) -> Result<u32, Stop> {
        let placed = self.core.attempt(place)?;
        self.send_outbox();
        Ok(placed)
    }

    /// Sends dirty pages where too many are dirty, or they are too old; true if any.
    fn write_out(&mut self) -> bool {
        if self.core.read_only.is_some() || self.core.dirty_pages == 0 || self.is_loading {
            return false;
        }
        let options = &self.core.options;
        let background = options.background_pages().min(options.limit_pages() / 2);
        let mut any = false;
        if self.core.dirty_pages > background && self.core.writing_pages < 2 * BATCH {
            let mut left = (self.core.dirty_pages - background).clamp(BATCH, 2 * BATCH) as u32;
            let mut next = self.core.dirty_files.first().copied();
            while left > 0
                && let Some(file) = next
            {
                next = self.core.dirty_files.range((Bound::Excluded(file), Bound::Unbounded)).next().copied();
                let Ok(placed) = self.place_in_turn(file.1, left) else { return true };
                any |= placed > 0;
                left = left.saturating_sub(placed);
            }
        }
        if let Some(before) = self.expired.take() {
            let old = self.core.dirty_files.iter().take_while(|(since, _)| *since <= before);
            for number in old.map(|(_, number)| *number).collect::<Vec<u32>>() {
                let Ok(placed) = self.place_file(number, 0, u32::MAX, u32::MAX) else { return true };
                any |= placed > 0;
                self.looked_in_vain |= placed == 0;
            }
        }
        any
    }

    /// Sends dirty pages of a file, `most` at most, from behind the last one that was sent so, and round to it again (as Linux does, with
    /// `range_cyclic`).
    fn place_in_turn(&mut self, number: u32, most: u32) -> Result<u32, ()> {
        let start = self.core.files.get(&number).map_or(0, |file| file.next_out);
        let placed = self.place_file(number, start, u32::MAX, most)?;
        let more = if placed < most && start > 0 { self.place_file(number, 0, start, most - placed)? } else { 0 };
        Ok(placed + more)
    }

    /// Sends dirty pages of a file for no call. What is missing is read, and the next look goes on.
    fn place_file(&mut self, number: u32, from: u32, end: u32, most: u32) -> Result<u32, ()> {
        let mut all = 0;
        while all < most {
            match self.place(Place { number, from, end, most: most - all }) {
                Ok(0) => break,
                Ok(placed) => all += placed,
                Err(stop) => {
                    self.wait_for_write_out(stop);
                    return Err(());
                }
            }
        }
        Ok(all)
    }

    /// Write-out goes on when what it misses is there, or a commit has made room.
    fn wait_for_write_out(&mut self, stop: Stop) {
        let task = self.start_quietly(Work::WriteOut);
        self.is_loading = true;
        match stop {
            Stop::Missing(needs) => self.load(needs, Some(task)),
            Stop::Commit => self.wait_for_commit(task),
            Stop::Failed(errno) => self.job_failed(task, errno),
            Stop::Space | Stop::Throttled | Stop::Busy(_) => self.wait_for_space(task),
        }
    }

    /// Sends all dirty pages that can be sent; true if any. Unless a commit waits for it, not while write-out waits for something.
    pub(super) fn send_all(&mut self, for_commit: bool) -> Result<bool, ()> {
        if self.is_loading && !for_commit {
            return Err(());
        }
        let mut any = false;
        for number in self.core.dirty_files.iter().map(|(_, number)| *number).collect::<Vec<u32>>() {
            any |= self.place_file(number, 0, u32::MAX, u32::MAX)? > 0;
        }
        Ok(any)
    }
}

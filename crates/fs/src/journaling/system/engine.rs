//! What the front sees of a journaling file system: calls go in, time passes, and what is there is said.

use ssdlab_base::Nanos;
use ssdlab_host::Device;

use super::stages::Stage;
use super::tasks::{Calling, Task, Work};
use super::{Journaling, home};
use crate::call::{Answer, Call, Reply};
use crate::file_system::{Engine, Station};
use crate::format::superblock;
use crate::jobs::Job;
use crate::metrics::{Levels, Memory, Metrics, Shape};

impl Engine for Journaling {
    fn below(&self) -> &dyn Station {
        &self.below
    }

    fn below_mut(&mut self) -> &mut dyn Station {
        &mut self.below
    }

    fn into_device(self: Box<Self>) -> Box<dyn Device> {
        self.below.into_device()
    }

    fn now(&self) -> Nanos {
        self.core.now
    }

    fn set_now(&mut self, now: Nanos) {
        self.core.now = now;
    }

    fn take_call(&mut self, call: Call, tag: u32) {
        let calling = Calling {
            call,
            tag,
            submitted: self.core.now,
            stage: Stage::Begin,
            order: None,
            result: Ok(Reply::Done),
            last_tries: 0,
            has_waited: [false; 2],
        };
        self.start(Work::Call(Box::new(calling)));
    }

    fn proceed(&mut self) {
        self.run();
    }

    fn timer(&self) -> Option<Nanos> {
        self.next_timer()
    }

    fn timers(&mut self) {
        self.run_timers();
    }

    fn set_timers(&mut self) {
        self.begin_timers();
    }

    fn answers(&mut self) -> &mut Vec<Answer> {
        &mut self.answers
    }

    fn is_at_rest(&self) -> bool {
        let is_ending = self.is_unmounting && self.core.read_only.is_none();
        let has_more = self.core.is_changed() || !self.core.homes.is_empty() || !self.log.has_none();
        self.tasks.is_empty() && self.commit.is_idle() && self.home == home::Step::Idle && !(is_ending && has_more)
    }

    fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    fn unanswered(&self) -> Vec<(u32, u64)> {
        let of = |task: &Task| match &task.work {
            Work::Call(calling) if calling.result.is_ok() => calling.order.map(|order| (calling.tag, order)),
            _ => None,
        };
        self.tasks.all().filter_map(|(_, task)| of(task)).collect()
    }

    fn jobs(&self) -> Vec<Job> {
        let all = [
            (Job::Commit, !self.commit.is_idle()),
            (Job::Home, self.home != home::Step::Idle || !self.home_writes.is_empty()),
            (Job::Freeing, !self.core.freeing.is_empty()),
            (Job::Trim, self.trims > 0),
        ];
        all.into_iter().filter(|(_, is_in_flight)| *is_in_flight).map(|(job, _)| job).collect()
    }

    fn read_only_reason(&self) -> Option<&str> {
        self.core.read_only.as_deref()
    }

    fn set_read_only(&mut self, reason: String) {
        self.core.set_read_only(reason);
        self.abandon_commit();
    }

    fn shut(&mut self) {
        self.core.is_shut = true;
    }

    fn is_shut(&self) -> bool {
        self.core.is_shut
    }

    fn without_room(&self) -> u64 {
        self.without_room
    }

    /// Files without a name that are open are freed.
    fn end_opens(&mut self) {
        let open: Vec<u32> =
            self.core.files.iter().filter(|(_, file)| file.opens > 0).map(|(number, _)| *number).collect();
        for number in open {
            self.core.file_mut(number).opens = 0;
            let is_gone = self.core.orphans.contains(&number);
            if is_gone {
                self.core.freeing.entry(number).or_insert(false);
            }
            self.core.drop_idle(number);
        }
    }

    /// Committed blocks go to their places, and the journal is empty then.
    fn begin_unmount(&mut self) {
        self.is_unmounting = true;
        self.commit.is_wanted = self.core.is_changed();
    }

    fn has_dirty_files(&self) -> bool {
        !self.core.dirty_files.is_empty()
    }

    fn drop_caches(&mut self) {
        self.core.cache.drop_all();
    }

    fn metrics(&self) -> Metrics {
        self.core.metrics
    }

    fn reset_metrics(&mut self) {
        self.core.metrics = Metrics::default();
    }

    fn superblock(&self) -> Option<&superblock::Superblock> {
        None
    }

    fn shape(&self) -> Shape {
        let superblock = &self.core.superblock;
        Shape {
            segments: superblock.groups().into(),
            segment_blocks: superblock.group_blocks.into(),
            data_blocks: superblock.group_blocks.into(),
            map_segments: 0,
            user_blocks: self.core.space.user_blocks,
            nodes: superblock.inodes().into(),
        }
    }

    fn levels(&self) -> Levels {
        let core = &self.core;
        Levels {
            cached_blocks: core.cache.len() as u64,
            dirty_blocks: core.dirty_pages as u64,
            dirty_metadata_blocks: (core.running.blocks.len() + core.homes.len()) as u64,
            free_segments: 0,
            valid_blocks: core.space.user_blocks.saturating_sub(core.space.free + core.space.held),
            log_segments: Default::default(),
        }
    }

    fn memory(&self) -> Memory {
        Memory {
            segment_bytes: self.core.space.memory_bytes(),
            cached_blocks: self.core.cache.len(),
            cached_blocks_max: self.core.cache.most,
            ..Memory::default()
        }
    }
}

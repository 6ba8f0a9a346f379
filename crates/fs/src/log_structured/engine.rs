//! What the front sees of a log-structured file system: calls go in, time passes, and what is there is said.

use ssdlab_base::Nanos;
use ssdlab_host::Device;

use super::LogStructured;
use crate::call::{Answer, Call, Reply};
use crate::file_system::{Engine, Station};
use crate::format::superblock::Superblock;
use crate::jobs::Job;
use crate::metrics::{Levels, Memory, Metrics, Shape};
use crate::tasks::{Calling, Stage, Task, Work};

impl Engine for LogStructured {
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
    }

    fn proceed(&mut self) {
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

    fn timer(&self) -> Option<Nanos> {
        self.next_timer()
    }

    fn timers(&mut self) {
        self.run_timers();
    }

    fn set_timers(&mut self) {
        self.expired = None;
        self.checkpoint_at = self.after(self.core.options.checkpoint_period);
        self.expire_at = self.after(self.core.options.dirty_period);
        self.clean_at = self.after(self.core.options.cleaning_period);
    }

    fn answers(&mut self) -> &mut Vec<Answer> {
        &mut self.answers
    }

    fn is_at_rest(&self) -> bool {
        self.tasks.is_empty() && self.checkpoints.is_idle()
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
        let checkpoints = &self.checkpoints;
        let all = [
            (Job::Cleaning, self.core.cleaning.is_some() || !self.moved.is_empty()),
            (Job::Checkpoint, !checkpoints.is_idle()),
            (Job::Switch, checkpoints.is_switching),
            (Job::MapCleaning, checkpoints.is_cleaning_map),
            (Job::Freeing, !self.core.freeing.is_empty()),
            (Job::Trim, checkpoints.trims > 0),
        ];
        all.into_iter().filter(|(_, is_in_flight)| *is_in_flight).map(|(job, _)| job).collect()
    }

    fn read_only_reason(&self) -> Option<&str> {
        self.core.read_only.as_deref()
    }

    fn set_read_only(&mut self, reason: String) {
        self.core.set_read_only(reason);
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
            if self.core.orphans.contains(&number) {
                self.core.freeing.entry(number).or_insert(false);
            }
            self.core.drop_idle(number);
        }
    }

    /// A check-point is wanted behind which nothing follows.
    fn begin_unmount(&mut self) {
        self.checkpoints.is_last = true;
        self.checkpoints.is_wanted = true;
    }

    fn has_dirty_files(&self) -> bool {
        !self.core.dirty_files.is_empty()
    }

    fn drop_caches(&mut self) {
        self.core.cache.drop_all();
    }

    fn metrics(&self) -> Metrics {
        let (logs, own) = (&self.core.logs, self.core.metrics);
        let padding_blocks = own.padding_blocks + logs.padding_blocks;
        let (summary_blocks, threaded_segments) = (logs.summary_blocks, logs.threaded_segments);
        let trims = own.trimmed_segments + own.checkpoint_switches;
        let trimmed_blocks = trims * u64::from(self.core.superblock.segment_blocks);
        Metrics { summary_blocks, padding_blocks, threaded_segments, trimmed_blocks, ..own }
    }

    fn reset_metrics(&mut self) {
        self.core.metrics = Metrics::default();
        (self.core.logs.summary_blocks, self.core.logs.padding_blocks, self.core.logs.threaded_segments) = (0, 0, 0);
    }

    fn superblock(&self) -> Option<&Superblock> {
        Some(&self.core.superblock)
    }

    fn shape(&self) -> Shape {
        let superblock = &self.core.superblock;
        Shape {
            segments: superblock.segments.into(),
            segment_blocks: superblock.segment_blocks.into(),
            data_blocks: superblock.data_blocks().into(),
            map_segments: superblock.map_segments.into(),
            user_blocks: superblock.user_blocks.into(),
            nodes: superblock.nodes.into(),
        }
    }

    fn levels(&self) -> Levels {
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

    fn memory(&self) -> Memory {
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
}

//! What a file system says of itself: what is outstanding, what it has counted, what it holds in memory.

use ssdlab_host::Device;

use super::FileSystem;
use crate::format::superblock::Superblock;
use crate::jobs::Job;
use crate::metrics::{Levels, Memory, Metrics};
use crate::tasks::{Task, Work};

impl FileSystem {
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

    /// Whether every call fails, since the device lost its power under the host, and with it what it had completed and not flushed.
    pub const fn is_shut_down(&self) -> bool {
        self.core.is_shut
    }

    /// Calls and jobs that failed since cleaning won no more room. The space that is promised to files is chosen so that there are none.
    pub const fn without_room(&self) -> u64 {
        self.without_room
    }

    /// What it did.
    pub fn metrics(&self) -> Metrics {
        let (logs, own) = (&self.core.logs, self.core.metrics);
        let padding_blocks = own.padding_blocks + logs.padding_blocks;
        let (summary_blocks, threaded_segments) = (logs.summary_blocks, logs.threaded_segments);
        Metrics { summary_blocks, padding_blocks, threaded_segments, ..own }
    }

    /// Counters begin anew.
    pub fn reset_metrics(&mut self) {
        self.core.metrics = Metrics::default();
        (self.core.logs.summary_blocks, self.core.logs.padding_blocks, self.core.logs.threaded_segments) = (0, 0, 0);
    }

    /// What was decided when it was made.
    pub fn superblock(&self) -> &Superblock {
        &self.core.superblock
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

    /// The device, to look at.
    pub fn device(&self) -> &dyn Device {
        self.below.device()
    }

    /// The device, to set its clocks and observers.
    pub fn device_mut(&mut self) -> &mut dyn Device {
        self.below.device_mut()
    }
}

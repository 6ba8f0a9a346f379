//! A file system over time: counters at the ends of equal intervals, in constant memory.
//!
//! A run begins with intervals of a millisecond. When there are 1,024 of them, every second one is dropped, and intervals are twice
//! as long. Counters only rise, so what happened in an interval is the difference of its ends.

use serde::{Deserialize, Serialize};
use ssdlab_base::Nanos;
use ssdlab_fs::{FileSystem, Levels, Metrics};

/// The first interval.
const FIRST_NS: u64 = 1_000_000;

/// Most intervals.
const MOST: usize = 1024;

/// The end of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    moved: [u64; 3],
    metrics: Metrics,
    levels: Levels,
}

/// Takes the samples.
#[derive(Debug)]
pub(super) struct FilesSampler {
    begin: Sample,
    samples: Vec<Sample>,
    interval: u64,
    boundary: u64,
}

/// A file system over time, in columns: an entry for each interval, in order. Blocks are of 4 KB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilesTimeline {
    /// Length of an interval; the last may be shorter.
    pub interval_ns: u64,
    /// Where it ends.
    pub time_ns: Vec<u64>,
    /// Operations that ended in it.
    pub operations: Vec<u64>,
    /// Bytes that they read.
    pub bytes_read: Vec<u64>,
    /// Bytes that they wrote.
    pub bytes_written: Vec<u64>,
    /// Blocks of files that were written for calls.
    pub data_blocks: Vec<u64>,
    /// Blocks of files that cleaning moved.
    pub moved_blocks: Vec<u64>,
    /// Nodes and blocks of directories that were written; of a journaling file system, blocks at their places.
    pub node_blocks: Vec<u64>,
    /// Blocks of the inode map, TIMB blocks, blocks of the usage table, of check-points and of the journal.
    pub map_blocks: Vec<u64>,
    /// Check-points.
    pub checkpoints: Vec<u64>,
    /// Segments that were cleaned.
    pub cleaned_segments: Vec<u64>,
    /// Blocks that reads needed and that were not in the cache.
    pub missed_blocks: Vec<u64>,
    /// Dirty blocks of files at its end.
    pub dirty_blocks: Vec<u64>,
    /// Blocks in the cache at its end.
    pub cached_blocks: Vec<u64>,
    /// Free segments at its end.
    pub free_segments: Vec<u64>,
}

impl FilesSampler {
    /// Begins now.
    pub(super) fn new(fs: &FileSystem) -> FilesSampler {
        let at = fs.now().0;
        let begin = Sample { at, moved: [0; 3], metrics: fs.metrics(), levels: fs.levels() };
        FilesSampler { begin, samples: Vec::new(), interval: FIRST_NS, boundary: at + FIRST_NS }
    }

    /// When the current interval ends.
    pub(super) const fn next_tick(&self) -> Nanos {
        Nanos(self.boundary)
    }

    /// Closes intervals that have ended; `moved` are operations, bytes read and bytes written up to now.
    pub(super) fn tick_if_due(&mut self, fs: &FileSystem, moved: [u64; 3]) {
        if fs.now().0 >= self.boundary {
            self.close(fs, moved);
            if self.samples.len() == MOST {
                let mut is_second = true;
                self.samples.retain(|_| {
                    is_second = !is_second;
                    is_second
                });
                self.interval *= 2;
            }
            let since = fs.now().0 - self.begin.at;
            self.boundary = self.begin.at + (since / self.interval + 1) * self.interval;
        }
    }

    fn close(&mut self, fs: &FileSystem, moved: [u64; 3]) {
        self.samples.push(Sample { at: fs.now().0, moved, metrics: fs.metrics(), levels: fs.levels() });
    }

    /// Closes the last interval and gives the columns.
    pub(super) fn finish(mut self, fs: &FileSystem, moved: [u64; 3]) -> FilesTimeline {
        if self.samples.last().is_none_or(|last| last.at < fs.now().0) {
            self.close(fs, moved);
        }
        let mut timeline = FilesTimeline { interval_ns: self.interval, ..FilesTimeline::default() };
        let mut before = self.begin;
        for sample in self.samples {
            let (now, was, levels) = (&sample.metrics, &before.metrics, &sample.levels);
            let nodes = |of: &Metrics| of.node_blocks + of.directory_blocks + of.home_blocks;
            let fixed = |of: &Metrics| of.table_blocks + of.usage_blocks + of.checkpoint_blocks + of.journal_blocks;
            let map = |of: &Metrics| of.map_blocks + fixed(of);
            let moved = |which: usize| sample.moved[which] - before.moved[which];
            let columns = [
                (&mut timeline.time_ns, sample.at),
                (&mut timeline.operations, moved(0)),
                (&mut timeline.bytes_read, moved(1)),
                (&mut timeline.bytes_written, moved(2)),
                (&mut timeline.data_blocks, now.data_blocks - was.data_blocks),
                (&mut timeline.moved_blocks, now.moved_blocks - was.moved_blocks),
                (&mut timeline.node_blocks, nodes(now) - nodes(was)),
                (&mut timeline.map_blocks, map(now) - map(was)),
                (&mut timeline.checkpoints, now.checkpoints - was.checkpoints),
                (&mut timeline.cleaned_segments, now.cleaned_segments - was.cleaned_segments),
                (&mut timeline.missed_blocks, now.missed_blocks - was.missed_blocks),
                (&mut timeline.dirty_blocks, levels.dirty_blocks),
                (&mut timeline.cached_blocks, levels.cached_blocks),
                (&mut timeline.free_segments, levels.free_segments),
            ];
            columns.into_iter().for_each(|(column, value)| column.push(value));
            before = sample;
        }
        timeline
    }
}

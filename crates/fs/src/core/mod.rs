//! The state of a file system in memory, and how calls look at it and change it.
//!
//! A call has two phases ([`Op`]). *Gather* has shared access, so it can change nothing: it looks at what is in memory, names what it
//! misses, and finds every error, lack of room included. What is missing is read, and gather runs again from its beginning. *Apply*
//! follows at the same instant: it changes memory and takes the room. It cannot wait, and it cannot fail.

pub(crate) mod cache;
pub(crate) mod file;
pub(crate) mod free_segments;
pub(crate) mod inode_map;
pub(crate) mod layout;
pub(crate) mod log;
pub(crate) mod pages;
pub(crate) mod roll_forward;
pub(crate) mod space;
pub(crate) mod tree;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};
use ssdlab_base::Nanos;

use cache::{Body, Cache, Key};
use file::File;
use inode_map::InodeMap;
use layout::Layout;
use log::{Kind, Logs, log_of};
use roll_forward::RollForward;
use space::Space;
pub(crate) use view::View;

use crate::call::{Errno, FileKind};
use crate::config::{Fsync, Options};
use crate::format::checkpoint::{Checkpoint, LOGS};
use crate::format::inode::{Index, Inode};
use crate::format::superblock::Superblock;
use crate::metrics::Metrics;

/// Something that gather misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    /// Where the drive has it.
    pub(crate) address: u32,
    /// What it is.
    pub(crate) key: Key,
    /// Generation of the directory, where it is a block of one.
    pub(crate) directory: Option<u32>,
}

/// What is being read and is not wanted any more, since it belongs to nothing or to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// One entry.
    One(Key),
    /// Pages of an inode from a block on.
    Pages(u32, u32),
}

/// Why gather cannot come to an end now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// These are to be read first.
    Missing(Vec<Need>),
    /// There are too few free segments; a check-point and cleaning make more.
    Room,
    /// Too much is dirty.
    Throttled,
    /// The blocks of this inode are being freed.
    Busy(u32),
    /// The call fails.
    Failed(Errno),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Failed(errno)
    }
}

/// A call, or a step of what the file system does by itself, in two phases.
pub(crate) trait Op {
    /// What gather finds and apply needs.
    type Plan;

    /// What comes of it.
    type Output;

    /// Looks.
    fn gather(&self, view: &View<'_>) -> Result<Self::Plan, Stop>;

    /// Changes.
    fn apply(self, core: &mut Core, plan: Self::Plan) -> Self::Output;
}

/// Everything in memory.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) superblock: Superblock,
    pub(crate) layout: &'static dyn Layout,
    pub(crate) options: Options,
    /// Bytes that the drive keeps of a sector.
    pub(crate) cell: usize,
    pub(crate) now: Nanos,
    pub(crate) cache: Cache,
    pub(crate) map: InodeMap,
    pub(crate) space: Space,
    pub(crate) logs: Logs,
    /// Files that are open, or have pages that are dirty or being written.
    pub(crate) files: FxHashMap<u32, File>,
    /// Files with dirty pages by when the first of these became dirty.
    pub(crate) dirty_files: BTreeSet<(Nanos, u32)>,
    /// Dirty pages of files.
    pub(crate) dirty_pages: usize,
    /// Logs for which there was no segment to write again when it was looked for, and no check-point became durable since.
    pub(crate) without_thread: [bool; LOGS],
    /// The segment that is being cleaned, and those cleaned since the last check-point.
    pub(crate) cleaning: Option<u32>,
    pub(crate) cleaned: Vec<u32>,
    /// Pages of files that are being written, one for each write.
    pub(crate) writing_pages: usize,
    /// Dirty blocks of directories.
    pub(crate) dirty_directories: BTreeSet<Key>,
    /// Dirty nodes.
    pub(crate) dirty_nodes: BTreeSet<u32>,
    /// Dirty nodes and blocks of directories by the log that they go to.
    pub(crate) dirty_by_log: [u32; 6],
    /// Inodes that have changed since the last check-point, in more than contents and times of a file whose pages keep their places.
    pub(crate) touched: FxHashSet<u32>,
    /// Inodes without a name, and those that are being truncated.
    pub(crate) orphans: BTreeSet<u32>,
    /// Of these, the ones whose blocks can be freed, and whether a job frees them now.
    pub(crate) freeing: BTreeMap<u32, bool>,
    /// Reads that failed, for the tasks that wait for them.
    pub(crate) failed: FxHashMap<Key, Errno>,
    /// What is being read no longer belongs to its key.
    pub(crate) cancelled: Vec<Cancel>,
    pub(crate) next_generation: u32,
    /// What fsyncs do without a check-point.
    pub(crate) rolling: RollForward,
    /// Number of the next write of a page.
    next_write: u32,
    /// Why nothing can be changed any more.
    pub(crate) read_only: Option<String>,
    /// The device has forgotten what it completed: nothing that it says counts.
    pub(crate) is_shut: bool,
    pub(crate) metrics: Metrics,
}

impl Core {
    pub(crate) fn new(layout: &'static dyn Layout, superblock: Superblock, options: Options, cell: usize) -> Core {
        let rolls = options.fsync == Fsync::RollForward;
        let budget = (options.cache / crate::call::BLOCK_BYTES) as usize;
        Core {
            layout,
            map: InodeMap::new(&superblock),
            space: Space::new(&superblock, cell != 512),
            logs: Logs::new(superblock, cell, rolls),
            superblock,
            options,
            cell,
            now: Nanos::ZERO,
            cache: Cache::new(budget),
            files: FxHashMap::default(),
            dirty_files: BTreeSet::new(),
            dirty_pages: 0,
            without_thread: [false; LOGS],
            cleaning: None,
            cleaned: Vec::new(),
            writing_pages: 0,
            dirty_directories: BTreeSet::new(),
            dirty_nodes: BTreeSet::new(),
            dirty_by_log: [0; 6],
            touched: FxHashSet::default(),
            orphans: BTreeSet::new(),
            freeing: BTreeMap::new(),
            failed: FxHashMap::default(),
            cancelled: Vec::new(),
            next_generation: 2,
            rolling: RollForward::new(rolls),
            next_write: 1,
            read_only: None,
            is_shut: false,
            metrics: Metrics::default(),
        }
    }

    /// What a check-point says in numbers.
    pub(crate) fn take_counters(&mut self, checkpoint: &Checkpoint) {
        let superblock = &self.superblock;
        self.space.clock = checkpoint.clock;
        self.map.nodes_used = checkpoint.nodes_used;
        self.map.first_free = checkpoint.first_free.min(superblock.map_blocks());
        self.next_generation = checkpoint.next_generation.max(2);
        self.orphans = checkpoint.orphans.iter().copied().filter(|number| *number < superblock.nodes).collect();
        self.freeing = self.orphans.iter().map(|number| (*number, false)).collect();
    }

    /// Runs an operation as far as it goes.
    pub(crate) fn attempt<O: Op>(&mut self, op: O) -> Result<O::Output, Stop> {
        let plan = op.gather(&View::of(self))?;
        Ok(op.apply(self, plan))
    }

    /// The file system takes no changes any more. The first reason stays.
    pub(crate) fn set_read_only(&mut self, reason: String) {
        self.read_only.get_or_insert(reason);
    }

    /// Blocks of a page as it is kept.
    pub(crate) const fn page_cells(&self) -> usize {
        crate::format::BLOCK_SECTORS as usize * self.cell
    }

    /// A number for a write of a page.
    pub(crate) fn write_number(&mut self) -> u32 {
        let number = self.next_write;
        self.next_write = number.checked_add(1).unwrap_or(1);
        number
    }

    /// The number of the last write of a page.
    pub(crate) const fn last_write_number(&self) -> u32 {
        self.next_write - 1
    }

    /// The log of a node in memory.
    fn log_of_node(&self, number: u32) -> u8 {
        let kind = match self.cache.entry(Key::node(number)).map(|entry| &entry.body) {
            Some(Body::Inode(inode)) if inode.kind == FileKind::Directory => Kind::DirectoryNode,
            Some(Body::Index(index)) if index.level > 1 => Kind::UpperNode,
            _ => Kind::FileNode,
        };
        log_of(kind, self.superblock.logs)
    }

    /// The log of blocks of directories.
    pub(crate) const fn directory_log(&self) -> u8 {
        log_of(Kind::Directory, self.superblock.logs)
    }

    /// An inode, which gather has seen.
    pub(crate) fn inode(&self, number: u32) -> &Inode {
        self.cache.inode(number).expect("gather has seen the inode")
    }

    /// An index block, which gather has seen.
    pub(crate) fn index(&self, number: u32) -> &Index {
        self.cache.index(number).expect("gather has seen the index block")
    }

    /// An inode that is changed.
    pub(crate) fn inode_mut(&mut self, number: u32) -> &mut Inode {
        self.touched.insert(number);
        self.untouched_inode_mut(number)
    }

    /// An inode that is changed in what no fsync needs: the next check-point has it.
    pub(crate) fn untouched_inode_mut(&mut self, number: u32) -> &mut Inode {
        self.set_node_dirty(number);
        match self.cache.entry_mut(Key::node(number)).map(|entry| &mut entry.body) {
            Some(Body::Inode(inode)) => inode,
            _ => panic!("gather has seen the inode {number}"),
        }
    }

    /// An index block that is changed.
    pub(crate) fn index_mut(&mut self, number: u32) -> &mut Index {
        self.set_node_dirty(number);
        match self.cache.entry_mut(Key::node(number)).map(|entry| &mut entry.body) {
            Some(Body::Index(index)) => index,
            _ => panic!("gather has seen the index block {number}"),
        }
    }

    /// A node is dirty from now on.
    pub(crate) fn set_node_dirty(&mut self, number: u32) {
        let entry = self.cache.entry_mut(Key::node(number)).expect("gather has seen the node");
        let was_held = entry.holds > 0;
        if std::mem::replace(&mut entry.is_dirty, true) {
            return;
        }
        self.dirty_nodes.insert(number);
        if let Body::Index(index) = &entry.body {
            self.rolling.index_is_dirty(index.inode, number);
        }
        let log = self.log_of_node(number);
        self.dirty_by_log[log as usize] += 1;
        if !was_held {
            self.hold_map(number);
        }
    }

    /// A node is as the drive has it from now on, or is about to be dropped.
    pub(crate) fn set_node_clean(&mut self, number: u32) {
        let log = self.log_of_node(number);
        let Some(entry) = self.cache.entry_mut(Key::node(number)) else { return };
        let is_held = entry.holds > 0;
        if !std::mem::replace(&mut entry.is_dirty, false) {
            return;
        }
        if let Body::Index(index) = &entry.body {
            self.rolling.index_is_clean(index.inode, number);
        }
        self.dirty_nodes.remove(&number);
        self.dirty_by_log[log as usize] -= 1;
        if !is_held {
            self.release_map(number);
        }
    }

    /// Something needs a node at hand.
    pub(crate) fn hold_node(&mut self, number: u32) {
        let entry = self.cache.entry_mut(Key::node(number)).expect("gather has seen the node");
        entry.holds += 1;
        if entry.holds == 1 && !entry.is_dirty {
            self.hold_map(number);
        }
    }

    /// Something does not need a node at hand any more.
    pub(crate) fn release_node(&mut self, number: u32) {
        let Some(entry) = self.cache.entry_mut(Key::node(number)) else { return };
        entry.holds -= 1;
        if entry.holds == 0 && !entry.is_dirty {
            self.release_map(number);
        }
    }

    /// A node that is dirty, or may become dirty at any time, needs its block of the inode map at hand.
    fn hold_map(&mut self, number: u32) {
        let part = inode_map::part_of(number);
        self.cache.entry_mut(Key::map(part)).expect("gather has seen the inode map").holds += 1;
    }

    fn release_map(&mut self, number: u32) {
        let part = inode_map::part_of(number);
        self.cache.entry_mut(Key::map(part)).expect("it was held").holds -= 1;
    }

    /// Free segments that the map does not need.
    pub(crate) fn free_segments(&self) -> u32 {
        let for_map = self.superblock.map_segments.saturating_sub(self.space.map_segments);
        self.space.free().saturating_sub(for_map)
    }

    /// Segments that the next check-point takes at most, if so much more metadata becomes dirty, in whatever logs.
    pub(crate) fn checkpoint_segments(&self, more: u32) -> u32 {
        let data = self.superblock.data_blocks();
        let (mut segments, mut slack) = (0, [0; 6]);
        for log in 0..6_u8 {
            let behind = self.dirty_by_log[log as usize].saturating_sub(self.logs.room(log));
            let room = self.logs.room(log).saturating_sub(self.dirty_by_log[log as usize]);
            // A log that fsyncs use takes its next segment when one is full, and never has none.
            let begins = u32::from(self.logs.is_chained(log) && room == 0 && behind.is_multiple_of(data));
            segments += behind.div_ceil(data) + begins;
            // Blocks that still fit into what the log has or takes.
            let left = room + behind.next_multiple_of(data) - behind + begins * data;
            slack[log as usize] = if self.is_metadata_log(log) { left } else { u32::MAX };
        }
        // Each page that is being written makes its node dirty when it is there. The worst is that each log just begins a segment.
        let mut more = more + self.writing_pages as u32;
        slack.sort_unstable();
        for left in slack.into_iter().filter(|left| *left < u32::MAX) {
            if more <= left {
                return segments;
            }
            (more, segments) = (more - left - 1, segments + 1);
        }
        segments + more.div_ceil(data)
    }

    const fn is_metadata_log(&self, log: u8) -> bool {
        match self.superblock.logs {
            2 => true,
            4 => matches!(log, 0 | 2 | 3),
            _ => matches!(log, 0 | 3 | 4 | 5),
        }
    }

    /// Dirty metadata in blocks.
    pub(crate) fn dirty_metadata(&self) -> usize {
        self.dirty_nodes.len() + self.dirty_directories.len()
    }

    /// Dirty metadata at which a check-point is made, since it would crowd out all else.
    pub(crate) fn metadata_limit(&self) -> usize {
        (self.options.limit_pages() / 2).max(64)
    }

    /// Whether so much metadata is dirty that calls which change names wait for the check-point.
    pub(crate) fn has_much_metadata(&self) -> bool {
        self.dirty_metadata() >= 2 * self.metadata_limit()
    }

    /// Whether the next check-point would say anything new.
    pub(crate) fn is_changed(&self) -> bool {
        !self.touched.is_empty() || self.dirty_metadata() > 0 || self.map.is_dirty() || !self.space.dirty.is_empty()
    }
}

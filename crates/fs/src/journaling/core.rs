//! The state of a journaling file system in memory. Calls look at it and change it in two phases, as those of all kinds do
//! ([`crate::core`]).

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use ssdlab_base::Nanos;

use super::Rules;
use super::file::File;
use super::format::superblock::Superblock;
use super::home::Homes;
use super::pages::Page;
use super::space::Space;
use super::transaction::Transaction;
use super::view::View;
use super::write_out::Outgoing;
use crate::call::Errno;
use crate::config::Options;
use crate::core::cache::{Cache, Hold, Key};
use crate::format::Bytes;
use crate::metrics::Metrics;

/// What a block of metadata is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The bitmap of a group's blocks.
    BlockBitmap(u32),
    /// The bitmap of a group's inodes.
    InodeBitmap(u32),
    /// Inodes of a group.
    Table(u32),
    /// Block `index` of a directory.
    Directory { inode: u32, generation: u32, index: u32 },
    /// Extents of an inode.
    Extents(u32),
    /// An indirect block.
    Index,
}

/// Something that gather misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    /// Where the drive has it.
    pub(crate) address: u32,
    /// What it is: a page of a file, or a block of metadata.
    pub(crate) key: Key,
    /// What it must be; `None` for a page of a file.
    pub(crate) role: Option<Role>,
}

/// What is being read and is not wanted any more.
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
    /// The transaction is full, or is being closed: a commit comes first.
    Commit,
    /// Blocks are free only after write-out and a commit.
    Space,
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

/// A block of metadata.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Box<Bytes>,
    pub(crate) role: Role,
}

/// What an entry of the cache holds.
#[derive(Debug)]
pub(crate) enum Body {
    Page(Page),
    Block(Block),
}

impl Hold for Body {
    fn is_being_written(&self) -> bool {
        matches!(self, Body::Page(page) if page.writing != 0)
    }

    fn is_passing(&self) -> bool {
        matches!(self, Body::Page(page) if page.is_passing)
    }
}

/// Everything in memory.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) superblock: Superblock,
    pub(crate) options: Options,
    /// Bytes that the drive keeps of a sector.
    pub(crate) cell: usize,
    pub(crate) now: Nanos,
    pub(crate) cache: Cache<Body>,
    pub(crate) space: Space,
    /// Files that are open, or have pages that are dirty or being written.
    pub(crate) files: FxHashMap<u32, File>,
    /// Files with dirty pages by when the first of these became dirty.
    pub(crate) dirty_files: BTreeSet<(Nanos, u32)>,
    pub(crate) dirty_pages: usize,
    /// Pages of files that are being written.
    pub(crate) writing_pages: usize,
    /// What has changed since the last commit began.
    pub(crate) running: Transaction,
    /// Inodes that the commit at work makes durable; `None` if none is at work.
    pub(crate) committing: Option<Transaction>,
    /// Committed blocks that are not at their places yet.
    pub(crate) homes: Homes,
    /// Blocks of metadata that a transaction has at most.
    pub(crate) most_blocks: usize,
    /// A commit is about to begin, and no page may become dirty before.
    pub(crate) is_closing: bool,
    /// Inodes of the list of orphans, the first one first.
    pub(crate) orphans: Vec<u32>,
    /// Of these, the ones whose blocks can be freed, and whether a job frees them now.
    pub(crate) freeing: BTreeMap<u32, bool>,
    /// Files that are being truncated, and the first block that is freed.
    pub(crate) free_from: FxHashMap<u32, u32>,
    /// Reads that failed, for the tasks that wait for them.
    pub(crate) failed: FxHashMap<Key, Errno>,
    pub(crate) cancelled: Vec<Cancel>,
    /// Data that is to be sent.
    pub(crate) outbox: Vec<Outgoing>,
    /// Number of the last write command, and those that have not ended.
    pub(crate) last_write: u64,
    pub(crate) open_writes: BTreeSet<u64>,
    /// Why nothing can be changed any more.
    pub(crate) read_only: Option<String>,
    /// The device has forgotten what it completed: nothing that it says counts.
    pub(crate) is_shut: bool,
    pub(crate) metrics: Metrics,
}

impl Core {
    pub(crate) fn new(superblock: Superblock, options: Options, cell: usize, space: Space) -> Core {
        Core {
            cache: Cache::new((options.cache / crate::call::BLOCK_BYTES) as usize),
            most_blocks: (superblock.journal as usize / 4).max(64),
            superblock,
            options,
            cell,
            now: Nanos::ZERO,
            space,
            files: FxHashMap::default(),
            dirty_files: BTreeSet::new(),
            dirty_pages: 0,
            writing_pages: 0,
            running: Transaction::default(),
            committing: None,
            homes: Homes::default(),
            is_closing: false,
            orphans: Vec::new(),
            freeing: BTreeMap::new(),
            free_from: FxHashMap::default(),
            failed: FxHashMap::default(),
            cancelled: Vec::new(),
            outbox: Vec::new(),
            last_write: 0,
            open_writes: BTreeSet::new(),
            read_only: None,
            is_shut: false,
            metrics: Metrics::default(),
        }
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

    /// Whether blocks are allocated when pages are written out.
    pub(crate) const fn delays(&self) -> bool {
        matches!(self.superblock.rules, Rules::Ext4)
    }

    /// Bytes of a page as it is kept.
    pub(crate) const fn page_cells(&self) -> usize {
        crate::format::BLOCK_SECTORS as usize * self.cell
    }

    /// A number for a write command, which is open from now on.
    pub(crate) fn number_write(&mut self) -> u64 {
        self.last_write += 1;
        self.open_writes.insert(self.last_write);
        self.last_write
    }

    /// Whether a write up to this number has not ended.
    pub(crate) fn writes_are_open(&self, last: u64) -> bool {
        self.open_writes.first().is_some_and(|first| *first <= last)
    }

    /// Whether the next commit would say anything new.
    pub(crate) fn is_changed(&self) -> bool {
        !self.running.is_empty()
    }
}

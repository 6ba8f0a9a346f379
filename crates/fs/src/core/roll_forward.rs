//! fsync without a check-point (F2FS, roll-forward recovery): the nodes of a file go to a log that a mount follows behind the newest
//! check-point. A file that was made since then goes with its name.
//!
//! ```text
//!   fsync -> the file's data is written -> dirty index blocks of the file, its inode -> answer
//!                                      \-> a check-point, where these would not be all
//! ```
//!
//! They would not be all where names or numbers lead elsewhere than they did in the check-point: see [`Core::can_roll`].

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cache::Key;
use super::{Core, Op, Stop, View};
use crate::call::{FileId, FileKind};
use crate::format::fsync::{self, Mark};
use crate::jobs::write_out::FOR_CLEANING;
use crate::seeded::{FsBug, seeded};

/// Where a file or directory was made.
#[derive(Clone, Debug)]
struct Made {
    directory: u32,
    name: Vec<u8>,
}

/// What has happened since the newest check-point.
#[derive(Debug)]
pub(crate) struct RollForward {
    is_on: bool,
    /// Fsyncs that wrote nodes.
    fsyncs: u32,
    /// Files and directories that the check-point does not have.
    made: FxHashMap<u32, Made>,
    /// Files whose next fsync is a check-point, and directories in which a new file's is.
    unfit: FxHashSet<u32>,
    /// Every fsync is a check-point.
    is_barred: bool,
    /// Dirty index blocks by their file.
    index_blocks: BTreeSet<(u32, u32)>,
    /// Nodes that fsyncs have written since the check-point: all of them would be dirty behind a crash.
    nodes: FxHashSet<u32>,
    /// By inode, the last command with nodes of it that may not have ended, and these nodes.
    sent: FxHashMap<u32, (u64, Vec<u32>)>,
}

impl RollForward {
    pub(crate) fn new(is_on: bool) -> RollForward {
        RollForward {
            is_on,
            fsyncs: 0,
            made: FxHashMap::default(),
            unfit: FxHashSet::default(),
            is_barred: true,
            index_blocks: BTreeSet::new(),
            nodes: FxHashSet::default(),
            sent: FxHashMap::default(),
        }
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// A check-point has everything.
    pub(crate) fn restart(&mut self) {
        self.fsyncs = 0;
        self.made.clear();
        self.unfit.clear();
        self.is_barred = false;
        self.nodes.clear();
    }

    /// The newest check-point says where the log goes on, and nothing has followed it.
    pub(crate) const fn goes_on(&mut self) {
        self.is_barred = false;
    }

    /// A file or directory is made.
    pub(crate) fn makes(&mut self, number: u32, directory: u32, name: &[u8]) {
        if self.is_on {
            self.made.insert(number, Made { directory, name: name.to_vec() });
        }
    }

    /// What the check-point says of an inode, or of the names in a directory, leads to something else now.
    pub(crate) fn bar(&mut self, number: u32) {
        if self.is_on && !seeded(FsBug::RenameRolledForward) {
            self.unfit.insert(number);
        }
    }

    /// A directory is at another place: every path through it leads to something else.
    pub(crate) const fn bar_all(&mut self) {
        self.is_barred = true;
    }

    /// A node is gone.
    pub(crate) fn forget(&mut self, number: u32) {
        self.made.remove(&number);
        self.unfit.remove(&number);
        self.sent.remove(&number);
    }

    pub(crate) fn index_is_dirty(&mut self, inode: u32, number: u32) {
        self.index_blocks.insert((inode, number));
    }

    pub(crate) fn index_is_clean(&mut self, inode: u32, number: u32) {
        self.index_blocks.remove(&(inode, number));
    }

    fn index_blocks_of(&self, inode: u32) -> Vec<u32> {
        self.index_blocks.range((inode, 0)..=(inode, u32::MAX)).map(|(_, number)| *number).collect()
    }

    /// The last command with nodes of an inode; 0 if it has ended.
    pub(crate) fn last_write(&self, number: u32) -> u64 {
        self.sent.get(&number).map_or(0, |(last, _)| *last)
    }

    /// Nodes of an inode that are sent go with commands up to this one.
    pub(crate) fn sends_with(&mut self, number: u32, last: u64) {
        if let Some((command, _)) = self.sent.get_mut(&number) {
            *command = last;
        }
    }
}

/// Puts the nodes of a file into the log of fsyncs. False if they would not be all that an fsync promises.
pub(crate) struct Roll {
    pub(crate) file: FileId,
}

impl Op for Roll {
    type Plan = Option<Vec<u32>>;
    type Output = bool;

    fn gather(&self, view: &View<'_>) -> Result<Option<Vec<u32>>, Stop> {
        let number = self.file.number;
        // A file that was deleted meanwhile is there behind a crash, older than this, until a check-point says otherwise. Another file may
        // have its number.
        let inode = view.inode_numbered(number)?.filter(|inode| inode.generation == self.file.generation);
        let Some(inode) = inode else { return Ok(None) };
        view.may_change(number)?;
        let core = view.core;
        if inode.kind == FileKind::Directory || inode.links != 1 || !core.can_roll(number) {
            return Ok(None);
        }
        let nodes = core.rolling.index_blocks_of(number);
        Ok(core.may_append_nodes(nodes.len() as u32 + 1).then_some(nodes))
    }

    fn apply(self, core: &mut Core, nodes: Option<Vec<u32>>) -> bool {
        let Some(nodes) = nodes else { return false };
        core.roll(self.file.number, &nodes);
        true
    }
}

impl Core {
    /// Whether the nodes of a file, and its name if it is new, say all that an fsync of it promises. Not where
    ///
    /// - the file was renamed, or a node of it was freed that the check-point has,
    /// - it is new, and its directory is new as well, or a name in that was taken by a rename or led to a directory,
    /// - a directory was moved, or the check-point does not say where the log goes on.
    fn can_roll(&self, number: u32) -> bool {
        let rolling = &self.rolling;
        if rolling.is_barred || self.logs.is_chain_broken || rolling.unfit.contains(&number) {
            return false;
        }
        rolling
            .made
            .get(&number)
            .is_none_or(|made| !rolling.made.contains_key(&made.directory) && !rolling.unfit.contains(&made.directory))
    }

    /// Whether so many nodes find segments, and the next check-point still finds its own.
    fn may_append_nodes(&self, nodes: u32) -> bool {
        let behind = nodes.saturating_sub(self.logs.room(self.logs.chained()));
        let takes = 1 + behind.div_ceil(self.superblock.data_blocks());
        let dirty_behind_a_crash = self.rolling.nodes.len() as u32 + nodes;
        self.free_segments() >= takes + FOR_CLEANING + self.checkpoint_segments(dirty_behind_a_crash)
    }

    /// Appends dirty index blocks of a file and its inode to the log of fsyncs, and sends them.
    fn roll(&mut self, number: u32, index_blocks: &[u32]) {
        let log = self.logs.chained();
        self.rolling.fsyncs += 1;
        let count = index_blocks.len() as u32 + 1;
        let mark = Mark { version: self.logs.version, fsync: self.rolling.fsyncs, place: 0, count, next: 0 };
        let name = self.rolling.made.get(&number).map(|made| made.name.clone());
        for (place, node) in (0..).zip(index_blocks.iter().copied().chain([number])) {
            let (mut bytes, kind) = self.encode_node(node).expect("gather has seen the node");
            let next = self.logs.take_upcoming(&mut self.space);
            fsync::set(&mut bytes, self.superblock.volume, Mark { place, next, ..mark }, name.as_deref());
            self.append_node(log, node, kind, bytes).expect("gather has seen to segments");
            self.cache.begin_send(Key::node(node));
            self.rolling.nodes.insert(node);
            self.rolling.sent.entry(number).or_default().1.push(node);
        }
        self.logs.flush(&mut self.space, log);
        self.touched.remove(&number);
        self.metrics.rolled_fsyncs += 1;
    }

    /// Commands up to this one have ended, with nodes of an inode.
    pub(crate) fn nodes_are_written(&mut self, number: u32, last: u64) {
        if self.rolling.last_write(number) > last {
            return;
        }
        let (_, nodes) = self.rolling.sent.remove(&number).unwrap_or_default();
        nodes.into_iter().for_each(|node| self.cache.end_send(Key::node(node)));
    }
}

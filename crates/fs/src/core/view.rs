//! What gather sees: everything in memory, with shared access.

use super::cache::{Body, Key};
use super::inode_map::{self, FREED, PENDING};
use super::{Core, Need, Stop};
use crate::call::{Errno, FileId, FileKind};
use crate::format::inode::{Index, Inode, LEVELS, MOST_BLOCKS, Route, route, span};
use crate::format::summary::Owner;
use crate::format::{LOST, NOWHERE};

/// Where the address of a block of a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// In this node: the inode or an index block.
    In(u32),
    /// In an index block that is not there: so many are missing on the way, below this node.
    Absent { below: u32, missing: u32 },
}

/// Shared access to what is in memory.
pub(crate) struct View<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> View<'a> {
    pub(crate) const fn of(core: &'a Core) -> View<'a> {
        View { core }
    }

    /// Fails where the file system takes no changes.
    pub(crate) fn writable(&self) -> Result<(), Stop> {
        if self.core.read_only.is_some() { Err(Errno::ReadOnly.into()) } else { Ok(()) }
    }

    /// Whether a call may make more metadata dirty: not where a check-point, which is on its way then, has so much to write already.
    pub(crate) fn may_dirty_metadata(&self) -> Result<(), Stop> {
        if self.core.has_much_metadata() { Err(Stop::Throttled) } else { Ok(()) }
    }

    fn missing(&self, key: Key, address: u32) -> Stop {
        match self.core.failed.get(&key) {
            Some(errno) => Stop::Failed(*errno),
            None => Stop::Missing(vec![Need { address, key, directory: None }]),
        }
    }

    /// A part of the summary of a segment.
    pub(crate) fn summary(&self, segment: u32, part: u32) -> Result<&'a [Owner], Stop> {
        let address = self.core.superblock.summary_address(segment, part);
        self.core.cache.summary(segment, part).ok_or_else(|| self.missing(Key::summary(segment, part), address))
    }

    /// Fails unless a node is at hand; `false` if it is not there.
    pub(crate) fn node(&self, number: u32) -> Result<bool, Stop> {
        let key = Key::node(number);
        if self.core.cache.has(key) {
            return Ok(true);
        }
        match self.node_address(number)? {
            Some(address) => Err(self.missing(key, address)),
            None => Ok(false),
        }
    }

    /// Addresses of 512 nodes.
    pub(crate) fn map(&self, part: u32) -> Result<&'a [u32; 512], Stop> {
        match self.core.cache.map(part) {
            Some(places) => Ok(places),
            None => Err(self.missing(Key::map(part), self.core.map.address(part))),
        }
    }

    /// Fails unless the block of the inode map for a node is at hand, so that the node may become dirty.
    pub(crate) fn may_change(&self, number: u32) -> Result<(), Stop> {
        self.map(inode_map::part_of(number)).map(|_| ())
    }

    /// Where the drive has a node; `None` if there is no such node.
    fn node_address(&self, number: u32) -> Result<Option<u32>, Stop> {
        if number == 0 || number >= self.core.superblock.nodes {
            return Ok(None);
        }
        let address = self.map(inode_map::part_of(number))?[number as usize % 512];
        Ok((!matches!(address, NOWHERE | PENDING | FREED)).then_some(address))
    }

    /// An inode of whatever generation; `None` if there is none of that number.
    pub(crate) fn inode_numbered(&self, number: u32) -> Result<Option<&'a Inode>, Stop> {
        let key = Key::node(number);
        match self.core.cache.entry(key).map(|entry| &entry.body) {
            Some(Body::Inode(inode)) => Ok(Some(inode)),
            Some(_) => Ok(None),
            None => match self.node_address(number)? {
                Some(address) => Err(self.missing(key, address)),
                None => Ok(None),
            },
        }
    }

    /// An inode that metadata names.
    pub(crate) fn inode(&self, number: u32) -> Result<&'a Inode, Stop> {
        self.inode_numbered(number)?.ok_or(Stop::Failed(Errno::Io))
    }

    /// What a call names.
    pub(crate) fn named(&self, file: FileId) -> Result<&'a Inode, Stop> {
        let inode = self.inode_numbered(file.number)?.filter(|inode| inode.generation == file.generation);
        let is_there = |inode: &&Inode| inode.links > 0 || self.is_open(inode.number);
        inode.filter(is_there).ok_or(Stop::Failed(Errno::Stale))
    }

    /// Whether something keeps a file without a name.
    pub(crate) fn is_open(&self, number: u32) -> bool {
        self.core.files.get(&number).is_some_and(|file| file.opens > 0)
    }

    /// The directory that a call names.
    pub(crate) fn directory(&self, file: FileId) -> Result<&'a Inode, Stop> {
        let inode = self.named(file)?;
        if inode.kind == FileKind::Directory { Ok(inode) } else { Err(Errno::NotDirectory.into()) }
    }

    /// The file that a call names, when none of its blocks are being freed; where nothing can be changed, none will be.
    pub(crate) fn file(&self, file: FileId) -> Result<&'a Inode, Stop> {
        let inode = self.named(file)?;
        if inode.kind == FileKind::Directory {
            return Err(Errno::IsDirectory.into());
        }
        if inode.free_from.is_none() || self.core.read_only.is_some() {
            return Ok(inode);
        }
        // Blocks behind the end that no job frees: the check-point that named the inode left it out.
        if self.core.freeing.contains_key(&inode.number) {
            Err(Stop::Busy(inode.number))
        } else {
            Err(Errno::Io.into())
        }
    }

    /// An index block that metadata names.
    pub(crate) fn index(&self, number: u32) -> Result<&'a Index, Stop> {
        let key = Key::node(number);
        match self.core.cache.entry(key).map(|entry| &entry.body) {
            Some(Body::Index(index)) => Ok(index),
            Some(_) => Err(Errno::Io.into()),
            None => match self.node_address(number)? {
                Some(address) => Err(self.missing(key, address)),
                None => Err(Errno::Io.into()),
            },
        }
    }

    /// Where the address of a block of a file stands.
    pub(crate) fn leaf(&self, inode: &Inode, block: u32) -> Result<Leaf, Stop> {
        debug_assert!(u64::from(block) < MOST_BLOCKS);
        let Route::Indexed { slot, .. } = route(block) else { return Ok(Leaf::In(inode.number)) };
        let (mut above, mut number, mut level) = (inode.number, inode.index[slot], LEVELS[slot]);
        loop {
            if number == 0 {
                return Ok(Leaf::Absent { below: above, missing: level.into() });
            }
            let index = self.index(number)?;
            if index.inode != inode.number || index.level != level || block < index.first {
                return Err(Errno::Io.into());
            }
            if level == 1 {
                return Ok(Leaf::In(number));
            }
            let entry = u64::from(block - index.first) / span(level);
            let next = index.entries.get(entry as usize).copied().ok_or(Stop::Failed(Errno::Io))?;
            (above, number, level) = (number, next, level - 1);
        }
    }

    /// Address of a block of a file; 0 if it has none.
    pub(crate) fn address(&self, inode: &Inode, block: u32) -> Result<u32, Stop> {
        match self.leaf(inode, block)? {
            Leaf::Absent { .. } => Ok(NOWHERE),
            Leaf::In(number) if number == inode.number => Ok(inode.direct(block)),
            Leaf::In(number) => {
                let index = self.index(number)?;
                let entry = (block - index.first) as usize;
                index.entries.get(entry).copied().ok_or(Stop::Failed(Errno::Io))
            }
        }
    }

    /// Whether a page has anything, in memory or on the drive. It is at hand then: `true`.
    pub(crate) fn page(&self, inode: &Inode, block: u32) -> Result<bool, Stop> {
        let key = Key::page(inode.number, block);
        if self.core.cache.has(key) {
            return Ok(true);
        }
        match self.address(inode, block)? {
            NOWHERE => Ok(false),
            LOST => Err(Errno::Io.into()),
            address => Err(match self.missing(key, address) {
                Stop::Missing(_) => {
                    let directory = (inode.kind == FileKind::Directory).then_some(inode.generation);
                    Stop::Missing(vec![Need { address, key, directory }])
                }
                stop => stop,
            }),
        }
    }

    /// Fails where so many blocks more would not fit, or where so much metadata more could not go into a check-point.
    pub(crate) fn room(&self, blocks: u32, metadata: u32) -> Result<(), Stop> {
        let core = self.core;
        if core.space.used + core.space.reserved + u64::from(blocks) > u64::from(core.superblock.user_blocks) {
            return Err(Errno::NoSpace.into());
        }
        self.metadata_room(metadata)
    }

    /// Fails where so much metadata more could not go into a check-point.
    pub(crate) fn metadata_room(&self, metadata: u32) -> Result<(), Stop> {
        let core = self.core;
        if core.checkpoint_segments(metadata) > core.free_segments() { Err(Stop::Room) } else { Ok(()) }
    }

    /// Numbers for new nodes.
    pub(crate) fn new_nodes(&self, count: usize) -> Result<Vec<u32>, Stop> {
        self.core.map.pick(self, count)
    }
}

/// Runs several looks and puts together all that they miss, so that it is read at once.
#[derive(Default)]
pub(crate) struct Looks {
    needs: Vec<Need>,
}

impl Looks {
    /// What a look found, unless it misses something.
    pub(crate) fn at<T>(&mut self, look: Result<T, Stop>) -> Result<Option<T>, Stop> {
        match look {
            Ok(found) => Ok(Some(found)),
            Err(Stop::Missing(needs)) => {
                self.needs.extend(needs);
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    /// Fails if anything is missing.
    pub(crate) fn end(mut self) -> Result<(), Stop> {
        self.needs.sort_unstable();
        self.needs.dedup();
        if self.needs.is_empty() { Ok(()) } else { Err(Stop::Missing(self.needs)) }
    }
}

//! The instant of a check-point: all dirty metadata gets places and is sent, and the check-point that points to it is encoded.
//!
//! ```text
//!   blocks of directories -> nodes -> what the layout has: node map, usage table -> check-point
//! ```
//!
//! Each makes the next dirty, so they go in this order, and nothing between them can come from a call.

use crate::call::FileKind;
use crate::core::Core;
use crate::core::cache::{Body, Key, Of};
use crate::core::inode_map::PENDING;
use crate::core::log::{Contents, Kind, log_of};
use crate::format::Bytes;
use crate::format::checkpoint::Checkpoint;
use crate::format::summary::Owner;
use crate::seeded::{FsBug, seeded};

/// What a log had no segment for: nothing that calls did allows it.
#[derive(Debug)]
pub(crate) struct NoSegment;

impl Core {
    /// Sends all dirty metadata. Segments that the check-point calls free, as they hold nothing any more.
    pub(crate) fn encode_metadata(&mut self, victims: &[u32]) -> Result<Vec<u32>, NoSegment> {
        self.encode_directories()?;
        self.encode_nodes()?;
        self.logs.begin_chain(&mut self.space);
        // Summaries of data and node segments that fill up are told here.
        self.logs.flush_all(&mut self.space);
        let layout = self.layout;
        let leaving = layout.encode(self, victims)?;
        self.logs.flush_all(&mut self.space);
        self.logs.forget(&leaving);
        self.touched.clear();
        self.map.freed = 0;
        self.rolling.restart();
        Ok(leaving)
    }

    fn encode_directories(&mut self) -> Result<(), NoSegment> {
        let mut keys: Vec<Key> = self.dirty_directories.iter().copied().collect();
        if seeded(FsBug::HalfRename) && keys.len() > 1 {
            keys.pop();
        }
        for key in keys {
            let Of::Page { inode, index } = key.of() else { continue };
            if !self.place_directory_block(inode, index) {
                return Err(NoSegment);
            }
        }
        Ok(())
    }

    fn encode_nodes(&mut self) -> Result<(), NoSegment> {
        for number in self.dirty_nodes.iter().copied().collect::<Vec<u32>>() {
            let Some((bytes, kind)) = self.encode_node(number) else { continue };
            self.append_node(log_of(kind, self.superblock.logs), number, kind, bytes)?;
            self.cache.set_sent(Key::node(number));
        }
        Ok(())
    }

    /// A node as the drive is to have it, and its kind; `None` if it is not at hand.
    pub(crate) fn encode_node(&mut self, number: u32) -> Option<(Box<Bytes>, Kind)> {
        let volume = self.superblock.volume;
        let size = if self.cache.inode(number).is_some() { self.durable_size(number) } else { 0 };
        match &self.cache.entry(Key::node(number))?.body {
            Body::Inode(inode) if inode.kind == FileKind::Directory => {
                Some((inode.encode(volume, inode.size), Kind::DirectoryNode))
            }
            Body::Inode(inode) => Some((inode.encode(volume, size), Kind::FileNode)),
            Body::Index(index) if index.level > 1 => Some((index.encode(volume), Kind::UpperNode)),
            Body::Index(index) => Some((index.encode(volume), Kind::FileNode)),
            _ => None,
        }
    }

    /// Appends a node to a log: it is there from now on, and where it was before holds nothing.
    pub(crate) fn append_node(&mut self, log: u8, number: u32, kind: Kind, bytes: Box<Bytes>) -> Result<(), NoSegment> {
        let appended = self.logs.append(&mut self.space, log, Owner::Node(number), Contents::Metadata(bytes));
        let address = appended.ok_or(NoSegment)?;
        self.metrics.count(kind, 1);
        match self.set_node_address(number, address) {
            PENDING => self.space.reserved -= 1,
            before => self.space.remove_metadata(before),
        }
        self.space.add(address);
        self.set_node_clean(number);
        Ok(())
    }

    /// The check-point for what was sent just before.
    pub(crate) fn checkpoint(&self, version: u64, is_first: bool, is_clean: bool) -> Checkpoint {
        let listed = |number: &u32| {
            let links = self.cache.inode(*number).map(|inode| inode.links);
            let is_hidden = (seeded(FsBug::OrphanNotListed) && links == Some(0))
                || (seeded(FsBug::TruncationForgotten) && links != Some(0));
            !is_hidden
        };
        // Blocks behind the size that this check-point gives a file are freed after a crash.
        let mut orphans = self.orphans.clone();
        orphans.extend(self.files.iter().filter(|(_, file)| file.has_more).map(|(number, _)| *number));
        let mut checkpoint = Checkpoint {
            version,
            is_clean,
            is_first,
            next_generation: self.next_generation,
            nodes_used: self.map.nodes_used,
            first_free: self.map.first_free,
            clock: self.space.clock,
            time: self.now.0,
            logs: self.logs.positions(),
            orphans: orphans.into_iter().filter(listed).collect(),
            parts: self.logs.parts(is_first),
            ..Checkpoint::default()
        };
        self.layout.tell(self, &mut checkpoint);
        checkpoint
    }
}

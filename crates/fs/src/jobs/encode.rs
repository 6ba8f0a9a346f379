//! The instant of a check-point: all dirty metadata gets places and is sent, and the check-point that points to it is encoded.
//!
//! ```text
//!   blocks of directories -> nodes -> inode map -> TIMB -> usage table -> check-point
//! ```
//!
//! Each makes the next dirty, so they go in this order, and nothing between them can come from a call.

use crate::call::FileKind;
use crate::core::Core;
use crate::core::cache::{Body, Key, Of};
use crate::core::inode_map::{FREED, PENDING};
use crate::core::log::{Contents, Kind, log_of};
use crate::core::space::State;
use crate::format::checkpoint::Checkpoint;
use crate::format::summary::Owner;
use crate::format::usage::{self, MAP_LOG};
use crate::format::{BLOCK, Bytes, NOWHERE, map};
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
        self.touch_map_of(victims);
        self.encode_map()?;
        let mut leaving = Vec::new();
        loop {
            leaving.extend(self.space.leave());
            let Some(part) = self.space.dirty.pop_first() else { break };
            self.encode_usage(part)?;
        }
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

    /// All that segments of the map have is written again with this check-point.
    fn touch_map_of(&mut self, victims: &[u32]) {
        if victims.is_empty() {
            return;
        }
        let blocks = self.superblock.segment_blocks;
        let is_there = |address: u32| address != NOWHERE && victims.contains(&(address / blocks));
        for part in self.map_parts_in(victims) {
            if self.map.dirty_parts.insert(part) {
                self.metrics.moved_map_blocks += 1;
            }
        }
        let tables = (0..).zip(&self.map.table_list).filter(|(_, address)| is_there(**address));
        self.map.dirty_table.extend(tables.map(|(part, _): (u32, &u32)| part).collect::<Vec<u32>>());
        let usages = (0..).zip(&self.map.usage_list).filter(|(_, address)| is_there(**address));
        self.space.dirty.extend(usages.map(|(part, _): (u32, &u32)| part).collect::<Vec<u32>>());
        self.metrics.cleaned_map_segments += victims.len() as u64;
    }

    /// Blocks of the inode map that segments have.
    pub(crate) fn map_parts_in(&self, segments: &[u32]) -> Vec<u32> {
        let blocks = self.superblock.segment_blocks;
        let is_there = |address: u32| address != NOWHERE && segments.contains(&(address / blocks));
        (0..).zip(self.map.table()).filter(|(_, address)| is_there(**address)).map(|(part, _)| part).collect()
    }

    fn append_map(&mut self, kind: Kind, bytes: Box<Bytes>, before: u32) -> Result<u32, NoSegment> {
        let contents = Contents::Metadata(bytes);
        let address = self.logs.append(&mut self.space, MAP_LOG, Owner::Nothing, contents).ok_or(NoSegment)?;
        self.metrics.count(kind, 1);
        self.space.add(address);
        if before != NOWHERE {
            self.space.remove_metadata(before);
        }
        Ok(address)
    }

    fn encode_map(&mut self) -> Result<(), NoSegment> {
        for part in std::mem::take(&mut self.map.dirty_parts) {
            let Some(entry) = self.cache.entry_mut(Key::map(part)) else { continue };
            let Body::Map(places) = &mut entry.body else { continue };
            places.iter_mut().filter(|place| **place == FREED).for_each(|place| *place = NOWHERE);
            debug_assert!(!places.contains(&PENDING), "all nodes of block {part} of the map have a place");
            let bytes = map::encode(part, places);
            entry.is_dirty = false;
            self.cache.set_sent(Key::map(part));
            self.note_loaded(part);
            let before = self.map.address(part);
            let address = self.append_map(Kind::Map, bytes, before)?;
            self.map.set_address(part, address);
        }
        let mut dirty = std::mem::take(&mut self.map.dirty_table);
        if seeded(FsBug::TableBlockLeftOut) && self.map.table_list.iter().any(|address| *address != NOWHERE) {
            dirty.pop_last();
        }
        for block in dirty {
            let first = block as usize * map::TABLE_ENTRIES;
            let end = self.map.table().len().min(first + map::TABLE_ENTRIES);
            let bytes = map::encode_table(&self.map.table()[first..end]);
            let address = self.append_map(Kind::Table, bytes, self.map.table_list[block as usize])?;
            self.map.table_list[block as usize] = address;
        }
        Ok(())
    }

    fn encode_usage(&mut self, part: u32) -> Result<(), NoSegment> {
        let first = part * usage::ENTRIES as u32;
        let end = self.superblock.segments.min(first + usage::ENTRIES as u32);
        // A segment may be opened for this block: then the block with that segment is dirty again, and written once more.
        let entries: Vec<usage::Usage> = (first..end).map(|segment| self.space.usage(segment)).collect();
        let bytes = usage::encode(self.superblock.volume, part, &entries);
        let address = self.append_map(Kind::Usage, bytes, self.map.usage_list[part as usize])?;
        self.map.usage_list[part as usize] = address;
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
        Checkpoint {
            version,
            is_clean,
            is_first,
            next_generation: self.next_generation,
            nodes_used: self.map.nodes_used,
            first_free: self.map.first_free,
            clock: self.space.clock,
            time: self.now.0,
            logs: self.logs.positions(),
            table: self.map.table_list.clone(),
            usage: self.map.usage_list.clone(),
            orphans: orphans.into_iter().filter(listed).collect(),
            parts: self.logs.parts(is_first),
        }
    }

    /// Blocks that the next check-point writes to the map at most, and all that the map has.
    pub(crate) fn map_demand(&self) -> (u32, u32) {
        let mut parts = self.map.dirty_parts.clone();
        parts.extend(self.dirty_nodes.iter().map(|number| crate::core::inode_map::part_of(*number)));
        // Blocks of directories make their inodes dirty, or index blocks that are near these.
        let directories = self.dirty_directories.len() as u32 * 2;
        let tables =
            parts.iter().map(|part| part / map::TABLE_ENTRIES as u32).collect::<std::collections::BTreeSet<_>>();
        let usage = self.superblock.usage_blocks();
        let valid: u32 = self.map_segments().map(|(_, valid)| valid).sum();
        let demand =
            parts.len() as u32 + directories + tables.len() as u32 + self.map.dirty_table.len() as u32 + usage + 2;
        (demand, valid)
    }

    /// Segments of the map that are not being written, with their valid blocks, the least recently written first.
    pub(crate) fn map_segments(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut sealed: Vec<(u64, u32, u32)> = self
            .space
            .all()
            .filter(|(_, one)| matches!(one.state, State::Sealed(MAP_LOG) | State::Open(MAP_LOG)))
            .map(|(segment, one)| (one.age, segment, one.valid))
            .collect();
        sealed.sort_unstable();
        sealed.into_iter().map(|(_, segment, valid)| (segment, valid))
    }
}

const _: () = assert!(BLOCK == 4096);

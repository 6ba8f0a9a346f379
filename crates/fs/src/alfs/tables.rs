//! What an ALFS check-point writes beside nodes (AMF, section 3.3): dirty blocks of the inode map, of TIMB and of the usage table, appended
//! to segments of their own, and all that segments of these have which are cleaned with it.

use std::collections::BTreeSet;

use crate::core::Core;
use crate::core::cache::Key;
use crate::core::inode_map::part_of;
use crate::core::layout::Layout;
use crate::core::log::{Contents, Kind};
use crate::core::space::State;
use crate::format::checkpoint::Checkpoint;
use crate::format::summary::Owner;
use crate::format::usage::{self, MAP_LOG};
use crate::format::{Bytes, NOWHERE, map};
use crate::jobs::encode::NoSegment;
use crate::seeded::{FsBug, seeded};

/// Metadata in segments that are only appended to.
#[derive(Debug)]
pub(crate) struct Appended;

impl Layout for Appended {
    fn appends_checkpoints(&self) -> bool {
        true
    }

    /// Segments of the map that this check-point cleans, so that the next ones have room.
    fn victims(&self, core: &Core) -> Vec<u32> {
        let (mut demand, valid) = core.map_demand();
        let segment = core.superblock.segment_blocks;
        let unopened = core.superblock.map_segments.saturating_sub(core.space.map_segments);
        let room = core.logs.room(MAP_LOG) + unopened * segment;
        let (mut gain, mut victims) = (0, Vec::new());
        for (victim, in_it) in core.map_segments() {
            if (room + gain).saturating_sub(demand) >= valid + segment {
                break;
            }
            let is_sealed = matches!(core.space.get(victim).state, State::Sealed(_));
            if is_sealed && core.space.get(victim).writing == 0 && demand + in_it <= room {
                (demand, gain) = (demand + in_it, gain + segment);
                victims.push(victim);
            }
        }
        victims
    }

    fn needs(&self, core: &Core, victims: &[u32]) -> Vec<u32> {
        core.map_parts_in(victims)
    }

    fn encode(&self, core: &mut Core, victims: &[u32]) -> Result<Vec<u32>, NoSegment> {
        core.touch_map_of(victims);
        core.encode_map()?;
        let mut leaving = Vec::new();
        loop {
            leaving.extend(core.space.leave());
            let Some(part) = core.space.dirty.pop_first() else { break };
            core.encode_usage(part)?;
        }
        Ok(leaving)
    }

    fn tell(&self, core: &Core, checkpoint: &mut Checkpoint) {
        checkpoint.table.clone_from(&core.map.table_list);
        checkpoint.usage.clone_from(&core.map.usage_list);
    }
}

impl Core {
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
            let Some(places) = self.settle_map(part) else { continue };
            let bytes = map::encode(part, places);
            self.cache.set_sent(Key::map(part));
            let before = self.map.address(part);
            let address = self.append_map(Kind::Map, bytes, before)?;
            self.map.set_address(part, address);
            self.map.dirty_table.insert(part / map::TABLE_ENTRIES as u32);
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

    /// Blocks that the next check-point writes to the map at most, and all that the map has.
    pub(crate) fn map_demand(&self) -> (u32, u32) {
        let mut parts = self.map.dirty_parts.clone();
        parts.extend(self.dirty_nodes.iter().map(|number| part_of(*number)));
        // Blocks of directories make their inodes dirty, or index blocks that are near these.
        let directories = self.dirty_directories.len() as u32 * 2;
        let tables = parts.iter().map(|part| part / map::TABLE_ENTRIES as u32).collect::<BTreeSet<_>>();
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

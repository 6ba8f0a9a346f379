//! The nodes of a file system, their index blocks, and the names in directories.

use super::decode::{Point, is_whole, long, named, word};
use super::{Check, bit, set};
use crate::error::MountError;
use crate::format::Bytes;

/// Address of a block whose contents are lost.
const LOST: u32 = u32::MAX;

/// Blocks below an index block of each level.
const BELOW: [u64; 4] = [1, 1008, 1008 * 1008, 1008 * 1008 * 1008];

/// What of an inode the walk needs.
struct Inode {
    number: u32,
    block: u32,
    generation: u32,
    /// The block behind the last that it may have.
    end: u64,
    /// Blocks that it says to have, and those that were found.
    blocks: u64,
    counted: u64,
}

impl Check {
    pub(super) fn nodes(&mut self, point: &Point) -> Result<(), MountError> {
        for number in 1..self.shape.nodes {
            let place = self.places[number as usize];
            if place == 0 {
                continue;
            }
            let Some(bytes) = self.read(place)? else { continue };
            let volume = self.shape.volume;
            if is_whole(&bytes[..], volume, b"INDX") {
                if word(&bytes[..], 12) != number {
                    self.problem(place, format!("it is not index block {number}"));
                }
                continue;
            }
            if !is_whole(&bytes[..], volume, b"INOD") || word(&bytes[..], 12) != number {
                self.problem(place, format!("it is not node {number}"));
                continue;
            }
            self.inode(number, place, &bytes, point)?;
        }
        let root = bit(&self.is_inode, 1) && bit(&self.is_directory, 1);
        if !root {
            self.problem(0, "there is no root directory");
        }
        for number in 1..self.shape.nodes {
            let place = self.places[number as usize];
            if place != 0 && !bit(&self.is_inode, number) && !bit(&self.is_reached, number) {
                self.problem(place, format!("no inode leads to index block {number}"));
            }
        }
        Ok(())
    }

    fn inode(&mut self, number: u32, block: u32, bytes: &Bytes, point: &Point) -> Result<(), MountError> {
        let bytes = &bytes[..];
        set(&mut self.is_inode, number);
        let (is_directory, depth) = (bytes[32] == 2, bytes[33]);
        if !matches!(bytes[32], 1 | 2) || depth > 24 {
            self.problem(block, format!("inode {number} has no kind that there is"));
            return Ok(());
        }
        if is_directory {
            set(&mut self.is_directory, number);
            self.parents[number as usize] = word(bytes, 16);
        }
        let (size, blocks, free_from) = (long(bytes, 56), long(bytes, 64), long(bytes, 88));
        if size > 4 << 40 {
            self.problem(block, format!("inode {number} has {size} bytes"));
        }
        let is_listed = point.orphans.contains(&number);
        // Of what is being truncated, blocks behind the end are still there.
        let end = if free_from != u64::MAX || is_listed { u64::MAX } else { size.div_ceil(4096) };
        if free_from != u64::MAX && !is_listed {
            self.problem(block, format!("inode {number} is being truncated, and the check-point does not say so"));
        }
        let generation = word(bytes, 20);
        let mut inode = Inode { number, block, generation, end, blocks, counted: 0 };
        for index in 0..984_u32 {
            self.data(&mut inode, block, u64::from(index), word(bytes, 160 + 4 * index as usize));
        }
        let mut first = 984;
        for (slot, level) in [1, 1, 2, 2, 3, 3].into_iter().enumerate() {
            let node = word(bytes, 128 + 4 * slot);
            if node != 0 {
                self.index(&mut inode, block, node, level, first)?;
            }
            first += BELOW[level];
        }
        if inode.counted != inode.blocks {
            let Inode { counted, blocks, .. } = inode;
            self.problem(inode.block, format!("inode {number} says {blocks} blocks and has {counted}"));
        }
        Ok(())
    }

    fn data(&mut self, inode: &mut Inode, from: u32, index: u64, address: u32) {
        if address == 0 {
            return;
        }
        inode.counted += 1;
        if index >= inode.end {
            self.problem(from, format!("inode {} has block {index} behind its end", inode.number));
        }
        let is_noted = address != LOST && self.note(from, address, (inode.number, index as u32), false);
        self.found.data_blocks += u64::from(is_noted);
    }

    fn index(&mut self, inode: &mut Inode, from: u32, node: u32, level: usize, first: u64) -> Result<(), MountError> {
        let place = self.places.get(node as usize).copied().unwrap_or(0);
        if place == 0 || bit(&self.is_reached, node) {
            self.problem(from, format!("it names index block {node}, which is not there or belongs elsewhere"));
            return Ok(());
        }
        set(&mut self.is_reached, node);
        let Some(bytes) = self.read(place)? else { return Ok(()) };
        let bytes = &bytes[..];
        let is_it = is_whole(bytes, self.shape.volume, b"INDX")
            && word(bytes, 12) == node
            && word(bytes, 16) == inode.number
            && word(bytes, 20) == inode.generation
            && word(bytes, 32) as usize == level
            && u64::from(word(bytes, 36)) == first;
        if !is_it {
            self.problem(place, format!("it is not index block {node} of inode {} from block {first}", inode.number));
            return Ok(());
        }
        for entry in 0..1008_usize {
            let (to, at) = (word(bytes, 64 + 4 * entry), first + entry as u64 * BELOW[level - 1]);
            match level {
                1 => self.data(inode, place, at, to),
                _ if to != 0 => self.index(inode, place, to, level - 1, at)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The names in all directories.
    pub(super) fn directories(&mut self) -> Result<(), MountError> {
        for number in 1..self.shape.nodes {
            if !bit(&self.is_directory, number) {
                continue;
            }
            let place = self.places[number as usize];
            let Some(bytes) = self.read(place)? else { continue };
            let (generation, links, entries) = (word(&bytes[..], 20), word(&bytes[..], 48), word(&bytes[..], 96));
            let (mut names, mut directories) = (0, 0);
            for index in 0..984_u32 {
                let address = word(&bytes[..], 160 + 4 * index as usize);
                self.names(number, generation, index, address, &mut names, &mut directories)?;
            }
            // Index blocks were found sound before; what was not is left out here.
            let mut stack: Vec<(u32, u64)> =
                (0..6).map(|slot| (word(&bytes[..], 128 + 4 * slot), 0)).filter(|(node, _)| *node != 0).collect();
            while let Some((node, _)) = stack.pop() {
                let place = self.places.get(node as usize).copied().unwrap_or(0);
                if place == 0 {
                    continue;
                }
                let Some(block) = self.read(place)? else { continue };
                let (level, first) = (word(&block[..], 32), word(&block[..], 36));
                if !is_whole(&block[..], self.shape.volume, b"INDX") || word(&block[..], 16) != number || level == 0 {
                    continue;
                }
                for entry in 0..1008_u32 {
                    let to = word(&block[..], 64 + 4 * entry as usize);
                    match level {
                        1 => self.names(number, generation, first + entry, to, &mut names, &mut directories)?,
                        // A level below its own, or it would go round.
                        _ if to != 0 && self.level_of(to)? < level => stack.push((to, 0)),
                        _ => {}
                    }
                }
            }
            if names != entries {
                self.problem(place, format!("directory {number} says {entries} names and has {names}"));
            }
            if links != 0 && links != directories + 2 {
                self.problem(place, format!("directory {number} says {links} links and has {directories} directories"));
            }
        }
        Ok(())
    }

    fn level_of(&mut self, node: u32) -> Result<u32, MountError> {
        let place = self.places.get(node as usize).copied().unwrap_or(0);
        if place == 0 {
            return Ok(u32::MAX);
        }
        Ok(self.read(place)?.map_or(u32::MAX, |block| word(&block[..], 32)))
    }

    fn names(
        &mut self,
        directory: u32,
        generation: u32,
        index: u32,
        address: u32,
        names: &mut u32,
        directories: &mut u32,
    ) -> Result<(), MountError> {
        if address == 0 || address == LOST || !bit(&self.valid, address) {
            return Ok(());
        }
        let Some(bytes) = self.read(address)? else { return Ok(()) };
        let bytes = &bytes[..];
        let is_it = is_whole(bytes, self.shape.volume, b"DIRE")
            && word(bytes, 12) == directory
            && word(bytes, 16) == index
            && word(bytes, 20) == generation;
        if !is_it {
            self.problem(address, format!("it is not block {index} of directory {directory}"));
            return Ok(());
        }
        let list = match named(bytes, index) {
            Ok(list) => list,
            Err(what) => {
                self.problem(address, what);
                return Ok(());
            }
        };
        for one in list {
            *names += 1;
            *directories += u32::from(one.is_directory);
            let name = String::from_utf8_lossy(&one.name).into_owned();
            if !bit(&self.is_inode, one.number) || bit(&self.is_directory, one.number) != one.is_directory {
                self.problem(address, format!("'{name}' leads to {}, which is no such inode", one.number));
                continue;
            }
            if self.named_by[one.number as usize] != 0 {
                self.problem(address, format!("'{name}' leads to {}, which has another name", one.number));
            }
            self.named_by[one.number as usize] = directory;
        }
        Ok(())
    }

    /// Each inode has a name, or is an orphan; each directory leads to the root.
    pub(super) fn links(&mut self, point: &Point) {
        let mut leads_up = super::bits(self.shape.nodes);
        set(&mut leads_up, 1);
        let mut orphans = super::bits(self.shape.nodes);
        for number in point.orphans.iter().filter(|number| **number < self.shape.nodes) {
            set(&mut orphans, *number);
        }
        for number in 1..self.shape.nodes {
            if !bit(&self.is_inode, number) {
                continue;
            }
            let (place, by) = (self.places[number as usize], self.named_by[number as usize]);
            let is_directory = bit(&self.is_directory, number);
            if by == 0 && number != 1 {
                self.found.orphans += 1;
                if !bit(&orphans, number) {
                    self.problem(place, format!("inode {number} has no name, and the check-point does not list it"));
                }
                continue;
            }
            if is_directory {
                self.found.directories += 1;
                let parent = self.parents[number as usize];
                if number != 1 && parent != by {
                    self.problem(place, format!("directory {number} is in {by} and says {parent}"));
                }
                self.lead_up(number, &mut leads_up);
            } else {
                self.found.files += 1;
            }
        }
    }

    fn lead_up(&mut self, number: u32, leads_up: &mut [u64]) {
        let (mut path, mut at) = (Vec::new(), number);
        while at != 0 && !bit(leads_up, at) && path.len() < 1 << 16 {
            path.push(at);
            at = self.named_by[at as usize];
            if path.first() == Some(&at) {
                break;
            }
        }
        if bit(leads_up, at) {
            path.iter().for_each(|directory| set(leads_up, *directory));
        } else if path.len() < 1 << 16 {
            let place = self.places[number as usize];
            self.problem(place, format!("directory {number} does not lead to the root"));
        }
    }
}

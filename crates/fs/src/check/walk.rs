//! The nodes of a file system, their index blocks, and the names in directories.

use super::decode::{Named, Point, is_whole, long, named, word};
use super::nodes::State;
use super::{Check, bit};
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

/// What of a directory the walk needs.
struct Directory {
    number: u32,
    generation: u32,
    /// The block behind the last of its levels.
    end: u32,
    names: u32,
    directories: u32,
}

impl Check {
    pub(super) fn nodes(&mut self, point: &Point) -> Result<(), MountError> {
        let mut next = 1;
        while let Some(number) = self.nodes.next(next) {
            next = number + 1;
            let place = self.place(number)?;
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
                self.nodes.set(number, State::Absent);
                continue;
            }
            self.inode(number, place, &bytes)?;
        }
        if self.nodes.get(1) == State::Directory {
            self.nodes.set(1, State::LeadsUp);
        } else {
            self.problem(point.block, "there is no root directory");
        }
        let mut next = 1;
        while let Some(number) = self.nodes.next(next) {
            next = number + 1;
            if self.nodes.get(number) == State::Placed {
                let place = self.place(number)?;
                self.problem(place, format!("no inode leads to index block {number}"));
            }
        }
        Ok(())
    }

    fn inode(&mut self, number: u32, block: u32, bytes: &Bytes) -> Result<(), MountError> {
        let bytes = &bytes[..];
        self.nodes.set(number, State::File);
        let (is_directory, depth) = (bytes[32] == 2, bytes[33]);
        if !matches!(bytes[32], 1 | 2) || depth > 24 {
            self.problem(block, format!("inode {number} has no kind that there is"));
            return Ok(());
        }
        if is_directory {
            self.nodes.set(number, State::Directory);
        }
        let (links, is_listed) = (word(bytes, 48), self.listed.binary_search(&number).is_ok());
        if links == 0 && !is_listed {
            self.problem(block, format!("inode {number} has no links, and the check-point does not list it"));
        }
        if !is_directory && links > 1 {
            self.problem(block, format!("file {number} says {links} links"));
        }
        let (size, blocks, free_from) = (long(bytes, 56), long(bytes, 64), long(bytes, 88));
        if size > 4 << 40 {
            self.problem(block, format!("inode {number} has {size} bytes"));
        }
        // Of what is being truncated, blocks behind the end are still there.
        let end = if free_from != u64::MAX || is_listed { u64::MAX } else { size.div_ceil(4096) };
        if free_from != u64::MAX && !is_listed {
            self.problem(block, format!("inode {number} is being truncated, and the check-point does not say so"));
        }
        let generation = word(bytes, 20);
        let mut inode = Inode { number, block, generation, end, blocks, counted: 0 };
        for index in 0..920_u32 {
            self.data(&mut inode, block, u64::from(index), word(bytes, 160 + 4 * index as usize));
        }
        let mut first = 920;
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
        if self.nodes.get(node) != State::Placed {
            self.problem(from, format!("it names index block {node}, which is not there or belongs elsewhere"));
            return Ok(());
        }
        let place = self.place(node)?;
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
        self.nodes.set(node, State::Reached);
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
        let mut next = 1;
        while let Some(number) = self.nodes.next(next) {
            next = number + 1;
            if self.nodes.get(number).is_directory() {
                self.directory(number)?;
            }
        }
        Ok(())
    }

    fn directory(&mut self, number: u32) -> Result<(), MountError> {
        let place = self.place(number)?;
        let Some(bytes) = self.read(place)? else { return Ok(()) };
        let (links, entries) = (word(&bytes[..], 48), word(&bytes[..], 96));
        let end = ((1_u32 << bytes[33].min(24)) - 1) * 2;
        let mut directory = Directory { number, generation: word(&bytes[..], 20), end, names: 0, directories: 0 };
        for index in 0..920_u32 {
            self.names(&mut directory, index, word(&bytes[..], 160 + 4 * index as usize))?;
        }
        // Index blocks were found sound before; what was not is left out here.
        let mut stack: Vec<u32> =
            (0..6).map(|slot| word(&bytes[..], 128 + 4 * slot)).filter(|node| *node != 0).collect();
        while let Some(node) = stack.pop() {
            let place = self.place(node)?;
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
                    1 => self.names(&mut directory, first.saturating_add(entry), to)?,
                    // A level below its own, or it would go round.
                    _ if to != 0 && self.level_of(to)? < level => stack.push(to),
                    _ => {}
                }
            }
        }
        let Directory { names, directories, .. } = directory;
        if names != entries {
            self.problem(place, format!("directory {number} says {entries} names and has {names}"));
        }
        if links != 0 && links != directories + 2 {
            self.problem(place, format!("directory {number} says {links} links and has {directories} directories"));
        }
        Ok(())
    }

    fn level_of(&mut self, node: u32) -> Result<u32, MountError> {
        let place = self.place(node)?;
        if place == 0 {
            return Ok(u32::MAX);
        }
        Ok(self.read(place)?.map_or(u32::MAX, |block| word(&block[..], 32)))
    }

    fn names(&mut self, directory: &mut Directory, index: u32, address: u32) -> Result<(), MountError> {
        if address == 0 || address == LOST || !bit(&self.valid, address) {
            return Ok(());
        }
        let Some(bytes) = self.read(address)? else { return Ok(()) };
        let (bytes, number) = (&bytes[..], directory.number);
        let is_it = is_whole(bytes, self.shape.volume, b"DIRE")
            && word(bytes, 12) == number
            && word(bytes, 16) == index
            && word(bytes, 20) == directory.generation;
        if !is_it {
            self.problem(address, format!("it is not block {index} of directory {number}"));
            return Ok(());
        }
        if index >= directory.end {
            self.problem(address, format!("block {index} of directory {number} is behind its levels"));
        }
        let list = match named(bytes, index) {
            Ok(list) => list,
            Err(what) => {
                self.problem(address, what);
                return Ok(());
            }
        };
        for one in list {
            directory.names += 1;
            directory.directories += u32::from(one.is_directory);
            self.name(number, address, &one)?;
        }
        Ok(())
    }

    /// A name leads to an inode that has no other name, and a directory says where its name is.
    fn name(&mut self, directory: u32, block: u32, one: &Named) -> Result<(), MountError> {
        let (number, state) = (one.number, self.nodes.get(one.number));
        let name = String::from_utf8_lossy(&one.name);
        let fits = if one.is_directory { state.is_directory() } else { state.is_file() };
        if !fits {
            self.problem(block, format!("'{name}' leads to {number}, which is no such inode"));
            return Ok(());
        }
        if state.is_named() {
            self.problem(block, format!("'{name}' leads to {number}, which has another name"));
            return Ok(());
        }
        self.nodes.set(number, if one.is_directory { State::NamedDirectory } else { State::NamedFile });
        if !one.is_directory && self.listed.binary_search(&number).is_err() {
            return Ok(());
        }
        let place = self.place(number)?;
        let Some(bytes) = self.read(place)? else { return Ok(()) };
        let (parent, links) = (word(&bytes[..], 16), word(&bytes[..], 48));
        if links == 0 {
            self.problem(block, format!("'{name}' leads to {number}, which says that it has no name"));
        }
        if one.is_directory && parent != directory {
            self.problem(place, format!("directory {number} is in {directory} and says {parent}"));
        }
        Ok(())
    }

    /// Each inode has a name, or is listed by the check-point; each directory leads to the root.
    pub(super) fn links(&mut self) -> Result<(), MountError> {
        let mut next = 1;
        while let Some(number) = self.nodes.next(next) {
            next = number + 1;
            match self.nodes.get(number) {
                State::File | State::Directory => {
                    self.found.orphans += 1;
                    if self.listed.binary_search(&number).is_err() {
                        let place = self.place(number)?;
                        self.problem(
                            place,
                            format!("inode {number} has no name, and the check-point does not list it"),
                        );
                    }
                }
                State::NamedFile => self.found.files += 1,
                State::NamedDirectory | State::LeadsUp => {
                    self.found.directories += 1;
                    if self.is_full() {
                        continue;
                    }
                    self.lead_up(number)?;
                }
                State::Absent | State::Placed | State::Reached => {}
            }
        }
        Ok(())
    }

    /// The directory that a directory says it is in.
    fn parent(&mut self, number: u32) -> Result<u32, MountError> {
        let place = self.place(number)?;
        if place == 0 {
            return Ok(0);
        }
        Ok(self.read(place)?.map_or(0, |bytes| word(&bytes[..], 16)))
    }

    /// Goes up from a directory to one that leads to the root. A circle comes back to a directory that was marked on the way (Brent).
    fn lead_up(&mut self, number: u32) -> Result<(), MountError> {
        let (mut at, mut marked, mut steps, mut limit) = (number, number, 0_u32, 1_u32);
        while self.nodes.get(at) == State::NamedDirectory {
            at = self.parent(at)?;
            steps += 1;
            if at == marked {
                break;
            }
            if steps == limit {
                (marked, steps, limit) = (at, 0, limit.saturating_mul(2));
            }
        }
        if self.nodes.get(at) != State::LeadsUp {
            let place = self.place(number)?;
            self.problem(place, format!("directory {number} does not lead to the root"));
            return Ok(());
        }
        let mut at = number;
        while self.nodes.get(at) == State::NamedDirectory {
            self.nodes.set(at, State::LeadsUp);
            at = self.parent(at)?;
        }
        Ok(())
    }
}

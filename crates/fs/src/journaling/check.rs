//! The check of a journaling file system: a walk from the superblock over all groups, inodes, maps and names, with what the journal has laid
//! over the blocks at their places. It writes nothing, and notes a bit for each block and some bytes for each inode.
//!
//! ```text
//!   groups -> bitmaps -> inodes -> blocks of each, names of directories
//!   names -> links, parents, orphans;   blocks of inodes -> bitmaps;   bitmaps -> counts of descriptors
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::format::extents;
use super::format::group::{self, Descriptor};
use super::format::inode::{self, Inode};
use super::format::superblock::{DESCRIPTORS, INODES, Superblock};
use super::mount::superblock;
use super::replay;
use super::space::is_set;
use crate::call::{BLOCK_BYTES, FileKind, ROOT};
use crate::check::{Found, Problem};
use crate::error::MountError;
use crate::format::directory::{self, blocks_of, entries};
use crate::format::{Bytes, get_u32};
use crate::reader::Reader;

/// Most problems that a check tells.
const MOST: usize = 1000;

/// What is noted of an inode.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    is_used: bool,
    is_directory: bool,
    is_orphan: bool,
    links: u32,
    /// Names that lead to it.
    names: u32,
    /// Directories in it.
    inner: u32,
    /// The directory that it says it is in, and the one that has its name.
    parent: u32,
    above: u32,
}

struct Check<'a> {
    reader: &'a mut Reader,
    superblock: Superblock,
    /// Blocks of the journal that are newer than those at their places.
    newer: BTreeMap<u32, Box<Bytes>>,
    /// Blocks that something has.
    seen: Vec<u64>,
    inodes: Vec<Noted>,
    found: Found,
}

/// Where a walk of a map is.
struct Walk {
    inode: Inode,
    blocks: u64,
    index_blocks: u32,
    /// Runs of a directory's blocks: block of the directory, and where it is.
    directory: Vec<(u32, u32)>,
    /// The block behind the last.
    end: u64,
}

/// Checks the file system on a device.
pub(crate) fn check(reader: &mut Reader) -> Result<Found, MountError> {
    let before = superblock(reader)?;
    let journal = replay::read(reader, &before)?;
    let newest = journal.blocks.get(&0).and_then(|block| Superblock::decode(block).ok());
    let superblock = newest.unwrap_or(before);
    let bits = vec![0; superblock.blocks as usize / 64 + 1];
    let inodes = vec![Noted::default(); superblock.inodes() as usize + 1];
    let found = Found { version: journal.next.sequence, ..Found::default() };
    let mut check = Check { reader, superblock, newer: journal.blocks, seen: bits, inodes, found };
    check.walk()?;
    Ok(check.found)
}

impl Check<'_> {
    fn problem(&mut self, block: u32, what: impl Into<String>) {
        if self.found.problems.len() < MOST {
            self.found.problems.push(Problem { block, what: what.into() });
        }
    }

    /// A block as the file system will find it; `None`, and a problem, if it cannot be read.
    fn block(&mut self, address: u32) -> Result<Option<Box<Bytes>>, MountError> {
        if let Some(newer) = self.newer.get(&address) {
            return Ok(Some(newer.clone()));
        }
        match self.reader.blocks(address, 1)?.pop() {
            Some(Ok(block)) => Ok(Some(block)),
            Some(Err(status)) => {
                self.problem(address, format!("it cannot be read ({status:?})"));
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Notes that something has a block; false if it cannot, or something else has it.
    fn take(&mut self, address: u32, what: &str) -> bool {
        let is_free = address < self.superblock.blocks && self.superblock.fixed(address).is_none();
        if !is_free {
            self.problem(address, format!("{what} is where metadata has its place, or behind the end"));
            return false;
        }
        let (word, bit) = (&mut self.seen[address as usize / 64], 1 << (address % 64));
        if *word & bit != 0 {
            self.problem(address, format!("{what} is a block that something else has"));
            return false;
        }
        *word |= bit;
        true
    }

    fn walk(&mut self) -> Result<(), MountError> {
        for (first, count) in self.superblock.journal_runs().unwrap_or_default() {
            for address in first..first + count {
                self.take(address, "a block of the journal");
            }
        }
        let groups = self.descriptors()?;
        self.orphans()?;
        for (group, told) in (0..).zip(&groups) {
            self.group_inodes(group, told)?;
        }
        self.names();
        for (group, told) in (0..).zip(&groups) {
            self.group_blocks(group, told)?;
        }
        Ok(())
    }

    fn descriptors(&mut self) -> Result<Vec<Option<Descriptor>>, MountError> {
        let mut groups = Vec::new();
        for part in 0..self.superblock.descriptor_blocks() {
            let block = self.block(1 + part)?;
            let end = self.superblock.groups().min((part + 1) * DESCRIPTORS);
            for group in part * DESCRIPTORS..end {
                let told = block.as_ref().map(|block| group::decode(&self.superblock, group, block));
                if let Some(Err(bad)) = &told {
                    self.problem(1 + part, format!("the descriptor of group {group}: {bad}"));
                }
                groups.push(told.and_then(Result::ok));
            }
        }
        Ok(groups)
    }

    /// The list of orphans.
    fn orphans(&mut self) -> Result<(), MountError> {
        let (mut number, mut steps) = (self.superblock.first_orphan, 0);
        while number != 0 {
            if number > self.superblock.inodes() || self.inodes[number as usize].is_orphan {
                self.problem(0, format!("the list of orphans leads to {number}, or goes round"));
                return Ok(());
            }
            self.inodes[number as usize].is_orphan = true;
            let Some(inode) = self.inode(number)? else {
                self.problem(0, format!("the orphan {number} is free"));
                return Ok(());
            };
            number = inode.next_orphan;
            steps += 1;
        }
        self.found.orphans = steps;
        Ok(())
    }

    fn inode(&mut self, number: u32) -> Result<Option<Inode>, MountError> {
        let (address, place) = self.superblock.place_of_inode(number);
        let Some(block) = self.block(address)? else { return Ok(None) };
        let bytes = &block[place * inode::SIZE..(place + 1) * inode::SIZE];
        match Inode::decode(self.superblock.volume, number, bytes) {
            Ok(inode) => Ok(inode),
            Err(bad) => {
                self.problem(address, format!("inode {number}: {bad}"));
                Ok(None)
            }
        }
    }

    /// Inodes of a group, by its bitmap.
    fn group_inodes(&mut self, group: u32, told: &Option<Descriptor>) -> Result<(), MountError> {
        let place = self.superblock.inode_bitmap(group);
        let (Some(told), Some(bitmap)) = (told, self.block(place)?) else { return Ok(()) };
        if group::bitmap_sum(self.superblock.volume, group, true, &bitmap) != told.inode_sum {
            self.problem(place, format!("the bitmap of the inodes of group {group}: its checksum does not match"));
        }
        let count = self.superblock.group_inodes;
        let used = (0..count).filter(|index| is_set(&bitmap, *index)).count() as u32;
        if count - used != told.free_inodes {
            self.problem(
                place,
                format!("group {group} has {} free inodes, its descriptor says {}", count - used, told.free_inodes),
            );
        }
        let known = count - told.unused_inodes.min(count);
        let mut directories = 0;
        for first in (0..count).step_by(INODES as usize) {
            let address = self.superblock.table(group) + first / INODES;
            let is_known = first < known;
            let block = if is_known { self.block(address)? } else { None };
            for index in first..first + INODES {
                let number = group * count + index + 1;
                let is_used = is_set(&bitmap, index);
                if index >= known && is_used {
                    self.problem(place, format!("inode {number} is used, and its descriptor says that it never was"));
                }
                let Some(block) = &block else { continue };
                let at = (index - first) as usize * inode::SIZE;
                match Inode::decode(self.superblock.volume, number, &block[at..at + inode::SIZE]) {
                    Err(bad) => self.problem(address, format!("inode {number}: {bad}")),
                    Ok(None) if is_used => {
                        self.problem(address, format!("inode {number} is free, and used in its bitmap"))
                    }
                    Ok(Some(_)) if !is_used => {
                        self.problem(address, format!("inode {number} is used, and free in its bitmap"));
                    }
                    Ok(Some(inode)) => {
                        directories += u32::from(inode.kind == FileKind::Directory);
                        self.one_inode(inode)?;
                    }
                    Ok(None) => {}
                }
            }
        }
        if directories != told.directories {
            self.problem(
                place,
                format!("group {group} has {directories} directories, its descriptor says {}", told.directories),
            );
        }
        Ok(())
    }

    fn one_inode(&mut self, inode: Inode) -> Result<(), MountError> {
        let number = inode.number;
        let is_directory = inode.kind == FileKind::Directory;
        let noted = &mut self.inodes[number as usize];
        (noted.is_used, noted.is_directory, noted.links, noted.parent) =
            (true, is_directory, inode.links, inode.parent);
        self.found.nodes += 1;
        let (place, _) = self.superblock.place_of_inode(number);
        let mut walk = Walk { inode, blocks: 0, index_blocks: 0, directory: Vec::new(), end: 0 };
        match self.superblock.rules {
            Rules::Ext4 => match extents::check(&inode.root) {
                Ok(()) => self.extents(&mut walk, &inode.root, extents::depth(&inode.root), place)?,
                Err(bad) => self.problem(place, format!("extents of inode {number}: {bad}")),
            },
            Rules::Ext3 => self.indirect(&mut walk)?,
        }
        self.found.nodes += u64::from(walk.index_blocks);
        if (walk.blocks, walk.index_blocks) != (inode.blocks, inode.index_blocks) {
            let (found, said) = ((walk.blocks, walk.index_blocks), (inode.blocks, inode.index_blocks));
            self.problem(place, format!("inode {number} has {found:?} blocks of data and index, and says {said:?}"));
        }
        let noted = self.inodes[number as usize];
        if is_directory {
            return self.directory(&walk);
        }
        self.found.data_blocks += walk.blocks;
        if walk.end > inode.size.div_ceil(BLOCK_BYTES) && !noted.is_orphan {
            self.problem(place, format!("file {number} of {} bytes has blocks up to {}", inode.size, walk.end));
        }
        Ok(())
    }

    /// A run of blocks of a file.
    fn run(&mut self, walk: &mut Walk, first: u32, count: u32, start: u32) {
        let what = format!("block {first} of inode {}", walk.inode.number);
        for step in 0..count {
            let Some(address) = start.checked_add(step) else { break };
            if !self.take(address, &what) {
                break;
            }
            walk.blocks += 1;
            if walk.inode.kind == FileKind::Directory {
                walk.directory.push((first.saturating_add(step), address));
            }
        }
        walk.end = walk.end.max(u64::from(first) + u64::from(count));
    }

    fn extents(&mut self, walk: &mut Walk, node: &[u8], depth: u16, place: u32) -> Result<(), MountError> {
        let number = walk.inode.number;
        if extents::depth(node) != depth {
            self.problem(
                place,
                format!("extents of inode {number} are {} levels above a leaf, expected {depth}", extents::depth(node)),
            );
            return Ok(());
        }
        for index in 0..extents::count(node) {
            if depth == 0 {
                let extent = extents::extent(node, index);
                self.run(walk, extent.first, extent.length, extent.start);
                continue;
            }
            let below = extents::child(node, index);
            if !self.take(below, &format!("a block of extents of inode {number}")) {
                continue;
            }
            walk.index_blocks += 1;
            let Some(block) = self.block(below)? else { continue };
            if let Err(bad) = extents::check_block(self.superblock.volume, number, &block[..]) {
                self.problem(below, format!("extents of inode {number}: {bad}"));
                continue;
            }
            if extents::count(&block[..]) == 0 || extents::first_of(&block[..], 0) < extents::first_of(node, index) {
                self.problem(below, format!("extents of inode {number} are not those that the node above says"));
            }
            self.extents(walk, &block[..], depth - 1, below)?;
        }
        Ok(())
    }

    fn indirect(&mut self, walk: &mut Walk) -> Result<(), MountError> {
        let root = walk.inode.root;
        for block in 0..12 {
            let address = get_u32(&root, 4 * block as usize);
            if address != 0 {
                self.run(walk, block, 1, address);
            }
        }
        let mut first = 12_u64;
        for level in 1..=3 {
            let address = get_u32(&root, 4 * (11 + level as usize));
            if address != 0 {
                self.indirect_block(walk, address, level, first)?;
            }
            first += 1024_u64.pow(level);
        }
        Ok(())
    }

    fn indirect_block(&mut self, walk: &mut Walk, at: u32, level: u32, first: u64) -> Result<(), MountError> {
        let number = walk.inode.number;
        if !self.take(at, &format!("an indirect block of inode {number}")) {
            return Ok(());
        }
        walk.index_blocks += 1;
        let Some(block) = self.block(at)? else { return Ok(()) };
        let mut is_used = false;
        for entry in 0..1024_u64 {
            let address = get_u32(&block[..], 4 * entry as usize);
            if address == 0 {
                continue;
            }
            is_used = true;
            let begin = first + entry * 1024_u64.pow(level - 1);
            match (level, u32::try_from(begin)) {
                (1, Ok(begin)) => self.run(walk, begin, 1, address),
                (_, Ok(_)) => self.indirect_block(walk, address, level - 1, begin)?,
                (_, Err(_)) => self.problem(at, format!("inode {number} has blocks behind the largest size")),
            }
        }
        if !is_used {
            self.problem(at, format!("an indirect block of inode {number} leads nowhere"));
        }
        Ok(())
    }

    fn directory(&mut self, walk: &Walk) -> Result<(), MountError> {
        let inode = &walk.inode;
        let (mut names, number) = (BTreeSet::new(), inode.number);
        for (index, address) in &walk.directory {
            let Some(block) = self.block(*address)? else { continue };
            let checked = directory::check(&block, self.superblock.volume, number, inode.generation, *index);
            if let Err(bad) = checked {
                self.problem(*address, format!("block {index} of directory {number}: {bad}"));
                continue;
            }
            if *index >= blocks_of(inode.depth) {
                self.problem(
                    *address,
                    format!("block {index} of directory {number} is behind its {} levels", inode.depth),
                );
            }
            for found in entries(&block, 0) {
                if !names.insert(found.name.to_vec()) {
                    self.problem(*address, format!("directory {number} has a name twice"));
                }
                let Some(noted) = self.inodes.get_mut(found.number as usize) else {
                    self.problem(*address, format!("a name in directory {number} leads to inode {}", found.number));
                    continue;
                };
                noted.names += 1;
                noted.above = number;
                if found.kind == FileKind::Directory {
                    self.inodes[number as usize].inner += 1;
                }
                let kind = (found.number, found.kind == FileKind::Directory);
                self.kinds_told(kind, *address)?;
            }
        }
        if names.len() as u64 != u64::from(inode.entries) {
            let (place, _) = self.superblock.place_of_inode(number);
            self.problem(place, format!("directory {number} has {} names, and says {}", names.len(), inode.entries));
        }
        Ok(())
    }

    /// A name leads to an inode of the kind that it says.
    fn kinds_told(&mut self, (number, is_directory): (u32, bool), place: u32) -> Result<(), MountError> {
        match self.inode(number)? {
            Some(inode) if (inode.kind == FileKind::Directory) == is_directory => {}
            Some(_) => self.problem(place, format!("a name leads to inode {number} of another kind")),
            None => self.problem(place, format!("a name leads to inode {number}, which is free")),
        }
        Ok(())
    }

    /// Names, links and parents.
    fn names(&mut self) {
        for number in 1..self.inodes.len() as u32 {
            let noted = self.inodes[number as usize];
            if !noted.is_used {
                continue;
            }
            let (place, _) = self.superblock.place_of_inode(number);
            let is_root = number == ROOT.number;
            let names = if is_root { noted.names + 1 } else { noted.names };
            if noted.links == 0 {
                if noted.names > 0 || !noted.is_orphan {
                    self.problem(
                        place,
                        format!(
                            "inode {number} has no links, {} names, and is in the list of orphans or not: {}",
                            noted.names, noted.is_orphan
                        ),
                    );
                }
                continue;
            }
            if names != 1 {
                self.problem(place, format!("inode {number} has {names} names"));
            }
            let links = if noted.is_directory { 2 + noted.inner } else { 1 };
            if noted.links != links {
                self.problem(place, format!("inode {number} has {links} links, and says {}", noted.links));
            }
            if noted.is_directory {
                self.found.directories += 1;
                let above = if is_root { ROOT.number } else { noted.above };
                if noted.parent != above {
                    self.problem(place, format!("directory {number} is in {above}, and says {}", noted.parent));
                }
                if !self.is_below_root(number) {
                    self.problem(place, format!("directory {number} is not below the root"));
                }
            } else {
                self.found.files += 1;
            }
        }
    }

    fn is_below_root(&self, number: u32) -> bool {
        let mut at = number;
        for _ in 0..self.inodes.len() {
            if at == ROOT.number {
                return true;
            }
            match self.inodes.get(at as usize) {
                Some(noted) if noted.above != 0 => at = noted.above,
                _ => return false,
            }
        }
        false
    }

    /// The bitmap of a group's blocks against what has them.
    fn group_blocks(&mut self, group: u32, told: &Option<Descriptor>) -> Result<(), MountError> {
        let place = self.superblock.block_bitmap(group);
        let (Some(told), Some(bitmap)) = (told, self.block(place)?) else { return Ok(()) };
        if group::bitmap_sum(self.superblock.volume, group, false, &bitmap) != told.block_sum {
            self.problem(place, format!("the bitmap of the blocks of group {group}: its checksum does not match"));
        }
        let (first, count) = (self.superblock.first_of(group), self.superblock.blocks_of(group));
        let mut free = 0;
        for bit in 0..count {
            let address = first + bit;
            let is_used = is_set(&bitmap, bit);
            let is_seen =
                bit < self.superblock.prefix(group) || self.seen[address as usize / 64] >> (address % 64) & 1 == 1;
            free += u32::from(!is_used);
            match (is_used, is_seen) {
                (true, false) => self.problem(address, "it is used in its bitmap, and nothing has it"),
                (false, true) => self.problem(address, "something has it, and it is free in its bitmap"),
                _ => {}
            }
        }
        if free != told.free_blocks {
            self.problem(
                place,
                format!("group {group} has {free} free blocks, its descriptor says {}", told.free_blocks),
            );
        }
        Ok(())
    }
}

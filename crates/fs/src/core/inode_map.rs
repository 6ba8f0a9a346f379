//! The node map: where each node is (AMF's inode map, section 3.3; F2FS's NAT). AMF's term is used for both.
//!
//! The table of its blocks is in memory as a whole; blocks of the map are in the cache. A block that was never written has no node.

use std::collections::{BTreeMap, BTreeSet};

use super::cache::{Body, Cache, Key};
use super::{Cancel, Core, Stop, View};
use crate::call::Errno;
use crate::format::superblock::Superblock;
use crate::format::{NOWHERE, map};
use crate::seeded::{FsBug, seeded};

/// Address, in memory alone, of a node that no check-point has written yet.
pub(crate) const PENDING: u32 = u32::MAX;

/// Address, in memory alone, of a node that is gone, and whose number the newest check-point or an fsync behind it knows: what is found
/// behind that check-point by this number must be that node.
pub(crate) const FREED: u32 = u32::MAX - 1;

/// The block of the map for a node.
pub(crate) const fn part_of(number: u32) -> u32 {
    number / map::ENTRIES as u32
}

/// Blocks of the map that are asked for together in the search for free numbers.
const SEARCHED: usize = 8;

/// Entries of nodes that the blocks of the map on the drive do not have.
#[derive(Debug, Default)]
pub(crate) struct NodeJournal {
    /// Those that the newest check-point has.
    pub(crate) entries: BTreeMap<u32, u32>,
    /// Nodes whose entry has changed since then.
    pub(crate) changed: BTreeSet<u32>,
}

/// What is in memory of the inode map beside its blocks.
#[derive(Debug)]
pub(crate) struct InodeMap {
    /// The address of each block of the map (TIMB).
    table: Vec<u32>,
    /// Where check-points have some entries in place of the map.
    pub(crate) journal: Option<NodeJournal>,
    /// The addresses of TIMB blocks, and of the blocks of the usage table.
    pub(crate) table_list: Vec<u32>,
    pub(crate) usage_list: Vec<u32>,
    /// Blocks of the map that may have a free number.
    open: Vec<u64>,
    /// No block before this one has a free number.
    pub(crate) first_free: u32,
    pub(crate) dirty_parts: BTreeSet<u32>,
    pub(crate) dirty_table: BTreeSet<u32>,
    /// Nodes that there are.
    pub(crate) nodes_used: u32,
    /// Numbers that are free from the next check-point on.
    pub(crate) freed: u32,
}

impl InodeMap {
    pub(crate) fn new(superblock: &Superblock) -> InodeMap {
        let parts = superblock.map_blocks() as usize;
        InodeMap {
            table: vec![NOWHERE; parts],
            journal: superblock.areas.map(|_| NodeJournal::default()),
            table_list: vec![NOWHERE; superblock.table_blocks() as usize],
            usage_list: vec![NOWHERE; superblock.usage_blocks() as usize],
            open: vec![u64::MAX; parts.div_ceil(64)],
            first_free: 0,
            dirty_parts: BTreeSet::new(),
            dirty_table: BTreeSet::new(),
            nodes_used: 0,
            freed: 0,
        }
    }

    /// Bytes of TIMB.
    pub(crate) const fn table_bytes(&self) -> usize {
        self.table.len() * 4
    }

    /// Bytes of the lists of TIMB blocks and of blocks of the usage table.
    pub(crate) const fn list_bytes(&self) -> usize {
        (self.table_list.len() + self.usage_list.len()) * 4
    }

    /// Bytes of the bits that say which blocks of the map may have a free number.
    pub(crate) const fn number_bytes(&self) -> usize {
        self.open.len() * 8
    }

    pub(crate) fn address(&self, part: u32) -> u32 {
        self.table[part as usize]
    }

    pub(crate) fn table(&self) -> &[u32] {
        &self.table
    }

    /// A TIMB block was read.
    pub(crate) fn load_table(&mut self, block: usize, places: &[u32]) {
        let first = block * map::TABLE_ENTRIES;
        let end = self.table.len().min(first + map::TABLE_ENTRIES);
        self.table[first..end].copy_from_slice(&places[..end - first]);
    }

    /// A block of the map is at an address.
    pub(crate) fn set_address(&mut self, part: u32, address: u32) {
        self.table[part as usize] = address;
    }

    /// What the map on the drive says of a block of it, with what check-points have in place of it.
    pub(crate) fn with_journal(&self, part: u32, mut places: Box<map::Places>) -> Box<map::Places> {
        let first = part * map::ENTRIES as u32;
        if let Some(journal) = &self.journal {
            for (number, address) in journal.entries.range(first..first + map::ENTRIES as u32) {
                places[(number - first) as usize] = *address;
            }
        }
        places
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty_parts.is_empty() || !self.dirty_table.is_empty()
    }

    fn may_have_free(&self, part: u32) -> bool {
        self.open[part as usize / 64] & 1 << (part % 64) != 0
    }

    /// Notes whether a block of the map has a free number.
    pub(crate) fn note(&mut self, part: u32, has_free: bool) {
        let bit = 1 << (part % 64);
        let word = &mut self.open[part as usize / 64];
        if has_free {
            *word |= bit;
            self.first_free = self.first_free.min(part);
        } else {
            *word &= !bit;
            if part == self.first_free {
                let parts = self.table.len() as u32;
                while self.first_free < parts && !self.may_have_free(self.first_free) {
                    self.first_free += 1;
                }
            }
        }
    }

    /// Free numbers of nodes, the lowest that there are.
    pub(crate) fn pick(&self, view: &View<'_>, count: usize) -> Result<Vec<u32>, Stop> {
        let mut numbers = Vec::with_capacity(count);
        if count == 0 {
            return Ok(numbers);
        }
        if self.nodes_used as usize + count > view.core.superblock.nodes as usize - 1 {
            return Err(Errno::NoSpace.into());
        }
        let mut needs = Vec::new();
        let mut part = self.first_free;
        while (part as usize) < self.table.len() && needs.len() < SEARCHED {
            let word = self.open[part as usize / 64] >> (part % 64);
            if word == 0 {
                part = (part / 64 + 1) * 64;
                continue;
            }
            part += word.trailing_zeros();
            match view.map(part) {
                // Numbers are taken in order: what comes behind a block that is to be read waits for it.
                Ok(places) if needs.is_empty() => {
                    let free = places.iter().enumerate().filter(|(_, place)| **place == NOWHERE);
                    let numbered = free.map(|(index, _)| part * map::ENTRIES as u32 + index as u32);
                    let left = count - numbers.len();
                    numbers.extend(numbered.filter(|number| *number != 0).take(left));
                    if numbers.len() == count {
                        return Ok(numbers);
                    }
                }
                Ok(_) => {}
                Err(Stop::Missing(missing)) => needs.extend(missing),
                Err(stop) => return Err(stop),
            }
            part += 1;
        }
        match (needs.is_empty(), self.freed) {
            (false, _) => Err(Stop::Missing(needs)),
            (true, 0) => Err(Errno::NoSpace.into()),
            (true, _) => Err(Stop::Room),
        }
    }
}

impl Core {
    /// Changes the address of a node in the map, and gives back the one before.
    pub(crate) fn set_node_address(&mut self, number: u32, address: u32) -> u32 {
        let (part, index) = (part_of(number), number as usize % map::ENTRIES);
        let entry = self.cache.entry_mut(Key::map(part)).expect("gather has seen the inode map");
        entry.is_dirty = true;
        let Body::Map(places) = &mut entry.body else { panic!("block {part} of the inode map is one") };
        let before = std::mem::replace(&mut places[index], address);
        let has_free = has_free(part, places);
        self.map.dirty_parts.insert(part);
        if let Some(journal) = &mut self.map.journal {
            journal.changed.insert(number);
        }
        self.map.note(part, has_free);
        before
    }

    /// A block of the map that was never written comes into being with its first node.
    pub(crate) fn note_loaded(&mut self, part: u32) {
        if let Some(places) = self.cache.map(part) {
            let has_free = has_free(part, places);
            self.map.note(part, has_free);
        }
    }

    /// The check-point that is being made has a block of the map as it is, in which freed numbers are free. The block; `None` if it is not
    /// in memory.
    pub(crate) fn settle_map(&mut self, part: u32) -> Option<&map::Places> {
        let entry = self.cache.entry_mut(Key::map(part))?;
        let Body::Map(places) = &mut entry.body else { return None };
        places.iter_mut().filter(|place| **place == FREED).for_each(|place| *place = NOWHERE);
        debug_assert!(!places.contains(&PENDING), "all nodes of block {part} of the map have a place");
        entry.is_dirty = false;
        self.note_loaded(part);
        self.cache.map(part)
    }

    /// A number belongs to a new node from now on.
    pub(crate) fn take_number(&mut self, number: u32) {
        let before = self.set_node_address(number, PENDING);
        assert_eq!(before, NOWHERE, "node {number} is free");
        self.map.nodes_used += 1;
        self.space.reserved += 1;
    }

    /// A node is gone, and its number free.
    pub(crate) fn free_node(&mut self, number: u32) {
        self.set_node_clean(number);
        let removed = self.cache.remove(Key::node(number));
        debug_assert!(removed.is_some_and(|entry| entry.holds == 0), "nothing needs node {number}");
        let is_pending =
            self.cache.map(part_of(number)).is_some_and(|places| places[number as usize % map::ENTRIES] == PENDING);
        let is_kept = !is_pending && self.rolling.is_on() && !seeded(FsBug::NumberUsedAgain);
        self.map.freed += u32::from(is_kept);
        match self.set_node_address(number, if is_kept { FREED } else { NOWHERE }) {
            PENDING => self.space.reserved -= 1,
            address => self.space.remove_metadata(address),
        }
        self.rolling.forget(number);
        self.map.nodes_used -= 1;
        self.cancelled.push(Cancel::One(Key::node(number)));
    }
}

/// Whether a block of the map has a free number. The number 0 is none.
fn has_free(part: u32, places: &map::Places) -> bool {
    places.iter().enumerate().any(|(index, place)| *place == NOWHERE && (part > 0 || index > 0))
}

/// Puts a block of the map that was never written into a cache.
pub(crate) fn insert_unwritten(cache: &mut Cache, map: &InodeMap, part: u32) {
    let places = map.with_journal(part, Box::new([NOWHERE; map::ENTRIES]));
    cache.insert(Key::map(part), Body::Map(places));
}

//! What is in memory of the drive: pages of files and directories, nodes, blocks of the inode map, summaries. All share one budget.
//!
//! An entry can be dropped when it says nothing that the drive does not say, and nothing needs it at hand. Dropping follows the clock
//! algorithm: an entry that was used since the hand passed it last stays for one more turn.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use crate::format::inode::{Index, Inode};
use crate::format::map::Places;
use crate::format::summary::Owner;

/// Names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(u64);

/// What an entry is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// A block of a file or directory.
    Page { inode: u32, index: u32 },
    /// An inode or index block.
    Node(u32),
    /// A block of the inode map.
    Map(u32),
    /// A block of the summary of a segment.
    Summary { segment: u32, part: u32 },
    /// A block of metadata that is named by its address.
    Block(u32),
}

const NODE: u32 = u32::MAX;
const MAP: u32 = u32::MAX - 1;
const BLOCK: u32 = u32::MAX - 2;
/// Above all blocks of a file.
const SUMMARY: u32 = 1 << 31;

impl Key {
    pub(crate) const fn page(inode: u32, index: u32) -> Key {
        Key((inode as u64) << 32 | index as u64)
    }

    pub(crate) const fn node(number: u32) -> Key {
        Key((number as u64) << 32 | NODE as u64)
    }

    pub(crate) const fn map(part: u32) -> Key {
        Key((part as u64) << 32 | MAP as u64)
    }

    pub(crate) const fn summary(segment: u32, part: u32) -> Key {
        Key((segment as u64) << 32 | (SUMMARY + part) as u64)
    }

    pub(crate) const fn block(address: u32) -> Key {
        Key((address as u64) << 32 | BLOCK as u64)
    }

    pub(crate) const fn of(self) -> Of {
        let (high, low) = ((self.0 >> 32) as u32, self.0 as u32);
        match low {
            NODE => Of::Node(high),
            MAP => Of::Map(high),
            BLOCK => Of::Block(high),
            low if low >= SUMMARY => Of::Summary { segment: high, part: low - SUMMARY },
            index => Of::Page { inode: high, index },
        }
    }
}

/// A block of a file or directory.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// What is kept of its sectors; of a directory always all bytes.
    pub(crate) cells: Box<[u8]>,
    /// Where the drive has it, or an older version of it; 0 if nowhere.
    pub(crate) address: u32,
    /// The node that has its address, while it is dirty or being written.
    pub(crate) leaf: u32,
    /// Number of its last write that has not ended, or 0.
    pub(crate) writing: u32,
    /// Number of its last write that has ended; writes before that are not this page's, or have been overtaken.
    pub(crate) written: u32,
    /// Size of the file that the page as the drive has it goes with.
    pub(crate) covers: u64,
    /// Size of the file up to which the version on its way is the page as it was, until the page was changed again.
    pub(crate) goes_with: u64,
    /// Space is promised to it that it does not have yet.
    pub(crate) is_new: bool,
    /// Cleaning made it dirty: it is as the drive has it.
    pub(crate) is_moved: bool,
    /// It leaves the cache with its last pin: direct I/O brought it.
    pub(crate) is_passing: bool,
}

/// What the cache asks of what an entry holds.
pub(crate) trait Hold {
    /// It is on its way to the drive.
    fn is_being_written(&self) -> bool;

    /// It leaves the cache with its last pin.
    fn is_passing(&self) -> bool;
}

/// What an entry of a log-structured file system holds.
#[derive(Debug)]
pub(crate) enum Body {
    Page(Page),
    Inode(Box<Inode>),
    Index(Box<Index>),
    Map(Box<Places>),
    Summary(Vec<Owner>),
}

impl Hold for Body {
    fn is_being_written(&self) -> bool {
        matches!(self, Body::Page(page) if page.writing != 0)
    }

    fn is_passing(&self) -> bool {
        matches!(self, Body::Page(page) if page.is_passing)
    }
}

/// An entry.
#[derive(Debug)]
pub(crate) struct Entry<B = Body> {
    pub(crate) key: Key,
    pub(crate) body: B,
    /// It says what the drive does not.
    pub(crate) is_dirty: bool,
    /// Tasks that loaded it and have not ended.
    pub(crate) pins: u32,
    /// Entries that need it at hand.
    pub(crate) holds: u32,
    /// Times that it was sent as metadata and the drive does not have it yet.
    sends: u32,
    used: Cell<bool>,
}

impl<B: Hold> Entry<B> {
    fn can_be_dropped(&self) -> bool {
        self.pins == 0 && self.holds == 0 && !self.is_dirty && self.sends == 0 && !self.body.is_being_written()
    }
}

/// Entries that the hand looks at for each one that is to be dropped: where nearly all cannot be, the budget is exceeded instead.
const LOOKS: usize = 64;

/// The most that the hand looks at without a pause: calls come often, and a cache in which nothing can be dropped is looked through once in
/// many of them.
const MOST_LOOKS: usize = 4096;

/// All entries.
#[derive(Debug)]
pub(crate) struct Cache<B = Body> {
    places: FxHashMap<Key, u32>,
    entries: Vec<Option<Entry<B>>>,
    free: Vec<u32>,
    hand: usize,
    /// Entries whose contents a check-point has sent.
    sent: Vec<Key>,
    /// Entries that there may be.
    budget: usize,
    /// The most that there were.
    pub(crate) most: usize,
}

impl<B: Hold> Cache<B> {
    pub(crate) fn new(budget: usize) -> Cache<B> {
        Cache {
            places: FxHashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            hand: 0,
            sent: Vec::new(),
            budget: budget.max(1),
            most: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.places.contains_key(&key)
    }

    pub(crate) fn entry(&self, key: Key) -> Option<&Entry<B>> {
        let entry = self.entries[*self.places.get(&key)? as usize].as_ref()?;
        entry.used.set(true);
        Some(entry)
    }

    pub(crate) fn entry_mut(&mut self, key: Key) -> Option<&mut Entry<B>> {
        let entry = self.entries[*self.places.get(&key)? as usize].as_mut()?;
        entry.used.set(true);
        Some(entry)
    }

    /// Puts an entry in that is not there.
    pub(crate) fn insert(&mut self, key: Key, body: B) {
        let entry = Entry { key, body, is_dirty: false, pins: 0, holds: 0, sends: 0, used: Cell::new(true) };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = Some(entry);
                place
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() as u32 - 1
            }
        };
        let before = self.places.insert(key, place);
        assert!(before.is_none(), "{:?} is in the cache once", key.of());
        self.most = self.most.max(self.places.len());
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Entry<B>> {
        let place = self.places.remove(&key)?;
        self.free.push(place);
        self.entries[place as usize].take()
    }

    /// A check-point sends metadata: it stays until the drive has it, or for ever if the drive does not take it.
    pub(crate) fn set_sent(&mut self, key: Key) {
        if self.begin_send(key) {
            self.sent.push(key);
        }
    }

    /// The drive has all that a check-point sent.
    pub(crate) fn sent_is_written(&mut self) {
        std::mem::take(&mut self.sent).into_iter().for_each(|key| self.end_send(key));
    }

    /// Metadata is sent: it stays until the drive has it. False if it is not there.
    pub(crate) fn begin_send(&mut self, key: Key) -> bool {
        self.entry_mut(key).map(|entry| entry.sends += 1).is_some()
    }

    /// The drive has what was sent, unless it was dropped meanwhile.
    pub(crate) fn end_send(&mut self, key: Key) {
        if let Some(entry) = self.entry_mut(key) {
            entry.sends = entry.sends.saturating_sub(1);
        }
    }

    pub(crate) fn pin(&mut self, key: Key) -> bool {
        self.entry_mut(key).map(|entry| entry.pins += 1).is_some()
    }

    pub(crate) fn unpin(&mut self, key: Key) {
        let Some(entry) = self.entry_mut(key) else { return };
        entry.pins = entry.pins.saturating_sub(1);
        if entry.body.is_passing() && entry.can_be_dropped() {
            self.remove(key);
        }
    }

    /// Drops entries until the budget suffices, as far as that can be.
    pub(crate) fn fit(&mut self) {
        let excess = self.places.len().saturating_sub(self.budget);
        if excess == 0 {
            return;
        }
        for _ in 0..(excess * LOOKS).min(2 * self.entries.len()).min(MOST_LOOKS) {
            if self.places.len() <= self.budget {
                return;
            }
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let Some(entry) = &self.entries[self.hand] else { continue };
            if entry.can_be_dropped() && !entry.used.replace(false) {
                let key = entry.key;
                self.remove(key);
            }
        }
    }

    /// Drops everything that can be dropped.
    pub(crate) fn drop_all(&mut self) {
        let can = |entry: &&Entry<B>| entry.can_be_dropped();
        let keys: Vec<Key> = self.entries.iter().flatten().filter(can).map(|entry| entry.key).collect();
        keys.into_iter().for_each(|key| drop(self.remove(key)));
    }

    /// The pages of an inode from a block on, in the order of their blocks.
    pub(crate) fn pages_from(&self, inode: u32, from: u32, to: u32) -> Vec<u32> {
        if u64::from(to - from) <= self.places.len() as u64 {
            return (from..to).filter(|index| self.has(Key::page(inode, *index))).collect();
        }
        let of = |key: &Key| match key.of() {
            Of::Page { inode: other, index } if other == inode && (from..to).contains(&index) => Some(index),
            _ => None,
        };
        let mut pages: Vec<u32> = self.places.keys().filter_map(of).collect();
        pages.sort_unstable();
        pages
    }
}

impl Cache {
    pub(crate) fn page(&self, inode: u32, index: u32) -> Option<&Page> {
        match &self.entry(Key::page(inode, index))?.body {
            Body::Page(page) => Some(page),
            _ => None,
        }
    }

    pub(crate) fn page_mut(&mut self, inode: u32, index: u32) -> Option<&mut Page> {
        match &mut self.entry_mut(Key::page(inode, index))?.body {
            Body::Page(page) => Some(page),
            _ => None,
        }
    }

    pub(crate) fn inode(&self, number: u32) -> Option<&Inode> {
        match &self.entry(Key::node(number))?.body {
            Body::Inode(inode) => Some(inode),
            _ => None,
        }
    }

    pub(crate) fn index(&self, number: u32) -> Option<&Index> {
        match &self.entry(Key::node(number))?.body {
            Body::Index(index) => Some(index),
            _ => None,
        }
    }

    pub(crate) fn map(&self, part: u32) -> Option<&Places> {
        match &self.entry(Key::map(part))?.body {
            Body::Map(places) => Some(places),
            _ => None,
        }
    }

    pub(crate) fn summary(&self, segment: u32, part: u32) -> Option<&[Owner]> {
        match &self.entry(Key::summary(segment, part))?.body {
            Body::Summary(owners) => Some(owners),
            _ => None,
        }
    }
}

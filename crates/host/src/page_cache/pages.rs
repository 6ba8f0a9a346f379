//! Cached blocks: where each is, which leaves next, and which have to be written.
//!
//! Two lists say which block leaves, as in Linux 2.6.33 (`mm/vmscan.c`, `mm/swap.c`): a block comes in at the head of the inactive
//! list; the second access moves it to the active one. While that is the longer one, its tail moves back. A block leaves
//! at the tail of the inactive list; one that cannot leave yet goes to its head.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use ssdlab_base::Nanos;

/// Sectors of a block: a page of host memory.
pub(super) const BLOCK_SECTORS: u64 = 8;

const NONE: u32 = u32::MAX;

/// In the active list.
const ACTIVE: u8 = 1;
/// Accessed since it came to its list.
const REFERENCED: u8 = 2;
/// Newer than below.
pub(super) const DIRTY: u8 = 4;
/// What it held is on its way down.
pub(super) const WRITING: u8 = 8;
/// What it will hold is on its way up; `since` is the number of the fetch.
pub(super) const READING: u8 = 16;
/// Read ahead, and not asked for yet.
pub(super) const AHEAD: u8 = 32;
/// A read of it starts reading further ahead.
pub(super) const MARK: u8 = 64;

const BUSY: u8 = DIRTY | WRITING | READING;

/// Links of the lists of recency, and of that of dirty blocks by age.
const RECENCY: usize = 0;
const AGE: usize = 1;

/// A cached block.
#[derive(Clone, Copy)]
struct Page {
    block: u32,
    links: [[u32; 2]; 2],
    /// The flags, and above them when it became dirty (see [`short`]); while it is read the number of its fetch. Two halves, so that a page
    /// takes 28 bytes.
    state: [u32; 2],
}

const _: () = assert!(size_of::<Page>() == 28);

/// Bits of the flags.
const FLAG_BITS: u32 = 8;

/// Times from here on, 14 months, are rounded down to [`COARSE`] bits less, so that every time has room above the flags.
const LATE: u64 = 1 << (63 - FLAG_BITS);
const COARSE: u32 = FLAG_BITS + 1;

/// A time in the bits that a page has for it. A later one is never smaller.
pub(super) const fn short(time: u64) -> u64 {
    if time < LATE { time } else { LATE | time >> COARSE }
}

/// The time that [`short`] made so.
pub(super) const fn long(short: u64) -> u64 {
    if short < LATE { short } else { (short & (LATE - 1)) << COARSE }
}

impl Page {
    const fn state(&self) -> u64 {
        self.state[0] as u64 | (self.state[1] as u64) << 32
    }

    const fn flags(&self) -> u8 {
        self.state[0] as u8
    }

    const fn since(&self) -> u64 {
        long(self.state() >> FLAG_BITS)
    }

    fn set_flags(&mut self, flags: u8) {
        self.state[0] = self.state[0] & !0xff | u32::from(flags);
    }

    fn set_since(&mut self, since: u64) {
        let state = short(since) << FLAG_BITS | u64::from(self.flags());
        self.state = [state as u32, (state >> 32) as u32];
    }
}

/// A doubly linked list over pages.
#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

/// What left, and what was accessed again.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) evicted: u64,
    pub(super) activated: u64,
    pub(super) ahead_used: u64,
    pub(super) ahead_unused: u64,
}

/// Cached blocks.
pub(super) struct Pages {
    /// Most pages.
    most: u32,
    pages: Vec<Page>,
    /// The first page that holds nothing; the links of recency lead to the others.
    free: u32,
    by_block: FxHashMap<u32, u32>,
    inactive: List,
    active: List,
    /// Dirty blocks, the oldest first.
    by_age: List,
    /// Dirty blocks whose older copy is not on its way, by address; without those that a command covers that goes through.
    to_write: BTreeSet<u32>,
    writing: u32,
    busy: u32,
    /// Bytes kept of a block.
    block_bytes: usize,
    contents: Vec<u8>,
    pub(super) counts: Counts,
}

impl Pages {
    pub(super) fn new(most: u32, cell: usize) -> Pages {
        Pages {
            most,
            // Of these no more is touched than is used.
            pages: Vec::with_capacity(most as usize),
            free: NONE,
            by_block: FxHashMap::with_capacity_and_hasher(most as usize, Default::default()),
            inactive: EMPTY,
            active: EMPTY,
            by_age: EMPTY,
            to_write: BTreeSet::new(),
            writing: 0,
            busy: 0,
            block_bytes: BLOCK_SECTORS as usize * cell,
            contents: Vec::with_capacity(most as usize * BLOCK_SECTORS as usize * cell),
            counts: Counts::default(),
        }
    }

    pub(super) fn find(&self, block: u32) -> Option<u32> {
        self.by_block.get(&block).copied()
    }

    /// How many blocks are cached.
    pub(super) fn len(&self) -> u32 {
        self.by_block.len() as u32
    }

    /// Blocks that are dirty.
    pub(super) fn dirty(&self) -> u32 {
        self.by_age.len
    }

    /// Blocks whose copy is on its way down.
    pub(super) fn writing(&self) -> u32 {
        self.writing
    }

    pub(super) fn has(&self, page: u32, flag: u8) -> bool {
        self.pages[page as usize].flags() & flag != 0
    }

    /// When a dirty page became dirty, or the number of the fetch of one that is read.
    pub(super) fn since(&self, page: u32) -> u64 {
        self.pages[page as usize].since()
    }

    pub(super) fn contents(&self, page: u32) -> &[u8] {
        &self.contents[page as usize * self.block_bytes..][..self.block_bytes]
    }

    pub(super) fn contents_mut(&mut self, page: u32) -> &mut [u8] {
        &mut self.contents[page as usize * self.block_bytes..][..self.block_bytes]
    }

    fn list(&mut self, links: usize, flags: u8) -> &mut List {
        match links {
            AGE => &mut self.by_age,
            _ if flags & ACTIVE != 0 => &mut self.active,
            _ => &mut self.inactive,
        }
    }

    fn push(&mut self, page: u32, links: usize, at_head: bool) {
        let flags = self.pages[page as usize].flags();
        let list = self.list(links, flags);
        let neighbour = if at_head { list.head } else { list.tail };
        if at_head {
            list.head = page;
        } else {
            list.tail = page;
        }
        if list.len == 0 {
            (list.head, list.tail) = (page, page);
        }
        list.len += 1;
        let (towards, away) = (usize::from(!at_head), usize::from(at_head));
        if neighbour != NONE {
            self.pages[neighbour as usize].links[links][towards] = page;
        }
        self.pages[page as usize].links[links][away] = neighbour;
        self.pages[page as usize].links[links][towards] = NONE;
    }

    fn unlink(&mut self, page: u32, links: usize) {
        let flags = self.pages[page as usize].flags();
        let [before, after] = self.pages[page as usize].links[links];
        if before != NONE {
            self.pages[before as usize].links[links][1] = after;
        }
        if after != NONE {
            self.pages[after as usize].links[links][0] = before;
        }
        let list = self.list(links, flags);
        assert!(list.len > 0, "page {page} is in a list");
        list.len -= 1;
        if list.head == page {
            list.head = after;
        }
        if list.tail == page {
            list.tail = before;
        }
    }

    fn set(&mut self, page: u32, on: u8, off: u8) {
        let before = self.pages[page as usize].flags();
        let flags = before & !off | on;
        self.pages[page as usize].set_flags(flags);
        match (before & BUSY != 0, flags & BUSY != 0) {
            (false, true) => self.busy += 1,
            (true, false) => self.busy -= 1,
            _ => {}
        }
    }

    /// Whether a block could come in now.
    pub(super) fn has_space(&self) -> bool {
        self.len() < self.most || self.busy < self.len()
    }

    /// A block that is not cached comes in; `None` if no other one can leave.
    pub(super) fn insert(&mut self, block: u32) -> Option<u32> {
        debug_assert!(self.find(block).is_none(), "block {block} is cached once");
        if self.len() >= self.most {
            self.evict()?;
        }
        let links = [[NONE; 2]; 2];
        let page = Page { block, links, state: [0; 2] };
        let number = match self.free {
            NONE => {
                self.pages.push(page);
                self.contents.resize(self.pages.len() * self.block_bytes, 0);
                self.pages.len() as u32 - 1
            }
            number => {
                [self.free, _] = self.pages[number as usize].links[RECENCY];
                self.pages[number as usize] = page;
                number
            }
        };
        self.contents_mut(number).fill(0);
        self.by_block.insert(block, number);
        self.push(number, RECENCY, true);
        Some(number)
    }

    /// The block leaves that is due.
    fn evict(&mut self) -> Option<()> {
        if self.busy >= self.len() {
            return None;
        }
        while self.active.len > self.inactive.len {
            self.deactivate(true);
        }
        let mut left = self.inactive.len;
        loop {
            if left == 0 {
                // All inactive blocks have to stay, and an active one does not.
                self.deactivate(false);
                left = 1;
            }
            left -= 1;
            let page = self.inactive.tail;
            if !self.has(page, BUSY) {
                self.remove(page);
                self.counts.evicted += 1;
                return Some(());
            }
            self.unlink(page, RECENCY);
            self.push(page, RECENCY, true);
        }
    }

    /// The active block that was accessed longest ago goes to the inactive list.
    fn deactivate(&mut self, to_head: bool) {
        let page = self.active.tail;
        self.unlink(page, RECENCY);
        self.set(page, 0, ACTIVE | REFERENCED);
        self.push(page, RECENCY, to_head);
    }

    /// A block is not cached any more. It is not on its way down.
    pub(super) fn remove(&mut self, page: u32) {
        let (block, flags) = (self.pages[page as usize].block, self.pages[page as usize].flags());
        assert!(flags & WRITING == 0, "block {block} stays while it is written");
        self.counts.ahead_unused += u64::from(flags & AHEAD != 0);
        self.clean(page);
        self.set(page, 0, READING);
        self.unlink(page, RECENCY);
        self.by_block.remove(&block);
        self.pages[page as usize].links[RECENCY][0] = self.free;
        self.free = page;
    }

    /// A command accesses a block.
    pub(super) fn touch(&mut self, page: u32) {
        let flags = self.pages[page as usize].flags();
        self.counts.ahead_used += u64::from(flags & AHEAD != 0);
        if flags & ACTIVE == 0 && flags & REFERENCED != 0 {
            self.unlink(page, RECENCY);
            self.set(page, ACTIVE, REFERENCED | AHEAD);
            self.push(page, RECENCY, true);
            self.counts.activated += 1;
        } else {
            self.set(page, REFERENCED, AHEAD);
        }
    }

    /// A block is read by this fetch from now on.
    pub(super) fn begin_reading(&mut self, page: u32, fetch: u64, flags: u8) {
        self.set(page, READING | flags, 0);
        self.pages[page as usize].set_since(fetch);
    }

    /// Whether a block is read by this fetch.
    pub(super) fn is_read_by(&self, page: u32, fetch: u64) -> bool {
        self.has(page, READING) && self.since(page) == fetch
    }

    /// A block is not read any more: it holds what it should.
    pub(super) fn end_reading(&mut self, page: u32) {
        self.set(page, 0, READING);
    }

    /// A read reaches a mark; true if there was one.
    pub(super) fn take_mark(&mut self, page: u32) -> bool {
        let had = self.has(page, MARK);
        self.set(page, 0, MARK);
        had
    }

    /// A block is newer than below from now on.
    pub(super) fn make_dirty(&mut self, page: u32, now: Nanos) {
        if self.has(page, DIRTY) {
            return;
        }
        self.set(page, DIRTY, READING);
        self.pages[page as usize].set_since(now.0);
        self.push(page, AGE, false);
        if !self.has(page, WRITING) {
            self.to_write.insert(self.pages[page as usize].block);
        }
    }

    /// A block is as it is below.
    pub(super) fn clean(&mut self, page: u32) {
        if self.has(page, DIRTY) {
            self.unlink(page, AGE);
            self.set(page, 0, DIRTY);
            self.to_write.remove(&self.pages[page as usize].block);
        }
    }

    /// A copy of a dirty block goes down.
    pub(super) fn begin_writing(&mut self, page: u32) {
        assert!(self.has(page, DIRTY) && !self.has(page, WRITING), "a dirty block is written once at a time");
        self.clean(page);
        self.set(page, WRITING, 0);
        self.writing += 1;
    }

    /// The copy is below. The block may be dirty again.
    pub(super) fn end_writing(&mut self, page: u32) {
        assert!(self.has(page, WRITING), "a block that was written is cached");
        self.set(page, 0, WRITING);
        self.writing -= 1;
        if self.has(page, DIRTY) {
            self.to_write.insert(self.pages[page as usize].block);
        }
    }

    /// The copy, which was dirty since `oldest`, did not get below: what the block holds has to be written.
    pub(super) fn undo_writing(&mut self, page: u32, oldest: Nanos) {
        self.end_writing(page);
        self.clean(page);
        let first = self.oldest_dirty().map_or(oldest, |first| first.min(oldest));
        self.set(page, DIRTY, 0);
        self.pages[page as usize].set_since(first.0);
        self.push(page, AGE, true);
        self.to_write.insert(self.pages[page as usize].block);
    }

    /// A dirty block waits for a command that goes through, or does not any longer.
    pub(super) fn hold_back(&mut self, page: u32, holds: bool) {
        let block = self.pages[page as usize].block;
        if holds {
            self.to_write.remove(&block);
        } else if self.has(page, DIRTY) && !self.has(page, WRITING) {
            self.to_write.insert(block);
        }
    }

    /// When the oldest dirty block became dirty.
    pub(super) fn oldest_dirty(&self) -> Option<Nanos> {
        (self.by_age.len > 0).then(|| Nanos(self.since(self.by_age.head)))
    }

    /// Dirty blocks that became dirty up to a time, in the order of addresses.
    pub(super) fn dirty_since(&self, until: Nanos) -> Vec<u32> {
        let mut blocks = Vec::new();
        let mut page = self.by_age.head;
        while page != NONE && self.since(page) <= until.0 {
            blocks.push(self.pages[page as usize].block);
            page = self.pages[page as usize].links[AGE][1];
        }
        blocks.sort_unstable();
        blocks
    }

    /// Since when the block has been dirty that has been so for longest.
    pub(super) fn oldest(&self) -> Option<u64> {
        (self.by_age.head != NONE).then(|| self.since(self.by_age.head))
    }

    /// Since when the block has been dirty that has been so for longest, of those that may be written.
    pub(super) fn oldest_to_write(&self) -> Option<u64> {
        let mut page = self.by_age.head;
        while page != NONE {
            if self.is_to_write(self.pages[page as usize].block) {
                return Some(self.since(page));
            }
            page = self.pages[page as usize].links[AGE][1];
        }
        None
    }

    /// The first block at or behind a place that may be written, or else the first one.
    pub(super) fn next_to_write(&self, from: u32) -> Option<u32> {
        self.to_write.range(from..).next().or_else(|| self.to_write.first()).copied()
    }

    /// Whether a block may be written.
    pub(super) fn is_to_write(&self, block: u32) -> bool {
        self.to_write.contains(&block)
    }

    /// How many blocks follow one another from this one on that may be written, at most so many.
    pub(super) fn run_to_write(&self, first: u32, most: u32) -> u32 {
        let behind = self.to_write.range(first..).zip(first..);
        behind.take(most as usize).take_while(|(block, expected)| *block == expected).count() as u32
    }

    /// The first dirty block in a range.
    pub(super) fn first_dirty(&self, blocks: std::ops::Range<u32>) -> Option<u32> {
        let is_dirty = |block: &u32| self.find(*block).is_some_and(|page| self.has(page, DIRTY | WRITING));
        if self.dirty() + self.writing == 0 { None } else { blocks.into_iter().find(is_dirty) }
    }

    /// Blocks that are as they are below leave: what is below may be older now.
    pub(super) fn drop_clean(&mut self) {
        let clean = (0..self.pages.len() as u32).filter(|page| {
            let known = self.pages[*page as usize];
            known.flags() & BUSY == 0 && self.find(known.block) == Some(*page)
        });
        clean.collect::<Vec<_>>().into_iter().for_each(|page| self.remove(page));
    }

    /// Time begins anew.
    pub(super) fn reset_time(&mut self) {
        let mut page = self.by_age.head;
        while page != NONE {
            self.pages[page as usize].set_since(0);
            page = self.pages[page as usize].links[AGE][1];
        }
    }
}

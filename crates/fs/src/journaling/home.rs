//! Committed blocks go to their places: when they are as old as dirty pages are written out at, and when the journal needs room. The log
//! then begins behind the transactions that are not needed any more.

use std::collections::{BTreeMap, BTreeSet};

use ssdlab_base::{Nanos, Op, Request};

use super::system::{Journaling, Purpose};
use super::write_out::MOST_BLOCKS;
use crate::format::Bytes;
use crate::seeded::{FsBug, seeded};

/// A block that was committed and is not durable at its place.
#[derive(Debug)]
pub(crate) struct Home {
    bytes: Box<Bytes>,
    /// The newest transaction that has it.
    sequence: u64,
    since: Nanos,
    /// The write that it is in, and the transaction of what is written.
    writing: Option<(u64, u64)>,
    /// The drive has it: the number of flushes that had begun then.
    written: Option<u64>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    /// By their places.
    blocks: BTreeMap<u32, Home>,
    /// Those that are not on their way, by transaction and so by time.
    waiting: BTreeSet<(u64, u32)>,
    /// Those that the drive does not have, and those that it has and that are not flushed.
    open: BTreeSet<(u64, u32)>,
    written: BTreeSet<(u64, u32)>,
    /// Flushes that have begun.
    pub(crate) flushes: u64,
}

impl Homes {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn image(&self, address: u32) -> Option<&Bytes> {
        self.blocks.get(&address).map(|home| &*home.bytes)
    }

    /// A transaction is durable.
    pub(crate) fn commit(&mut self, sequence: u64, now: Nanos, images: BTreeMap<u32, Box<Bytes>>) {
        for (address, bytes) in images {
            let writing = self.forget(address).and_then(|home| home.writing);
            self.open.insert((sequence, address));
            if writing.is_none() {
                self.waiting.insert((sequence, address));
            }
            self.blocks.insert(address, Home { bytes, sequence, since: now, writing, written: None });
        }
    }

    /// What was committed of a block is not needed any more.
    pub(crate) fn forget(&mut self, address: u32) -> Option<Home> {
        let home = self.blocks.remove(&address)?;
        let key = (home.sequence, address);
        self.waiting.remove(&key);
        self.open.remove(&key);
        self.written.remove(&key);
        Some(home)
    }

    /// When the oldest one that is not on its way was committed.
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.waiting.first().and_then(|(_, address)| self.blocks.get(address)).map(|home| home.since)
    }

    /// Those that are not on their way and `is_due` by their transaction and its time, in the order of their places.
    fn due(&self, is_due: impl Fn(u64, Nanos) -> bool) -> Vec<u32> {
        let due = |(sequence, address): &&(u64, u32)| {
            self.blocks.get(address).is_some_and(|home| is_due(*sequence, home.since))
        };
        let mut all: Vec<u32> = self.waiting.iter().take_while(due).map(|(_, address)| *address).collect();
        all.sort_unstable();
        all
    }

    /// A block goes to its place.
    fn send(&mut self, address: u32, write: u64) -> Option<Box<Bytes>> {
        let home = self.blocks.get_mut(&address)?;
        home.writing = Some((write, home.sequence));
        self.waiting.remove(&(home.sequence, address));
        Some(home.bytes.clone())
    }

    /// The oldest transaction that is needed.
    fn needed(&self) -> u64 {
        let first = |set: &BTreeSet<(u64, u32)>| set.first().map_or(u64::MAX, |(sequence, _)| *sequence);
        first(&self.open).min(first(&self.written))
    }

    /// Whether a transaction up to this one has blocks that the drive does not have.
    fn is_open(&self, limit: u64) -> bool {
        self.open.first().is_some_and(|(sequence, _)| *sequence <= limit)
    }

    fn is_written(&mut self, address: u32, write: u64) {
        let Some(home) = self.blocks.get_mut(&address) else { return };
        let Some((_, sequence)) = home.writing.take_if(|(number, _)| *number == write) else { return };
        let key = (home.sequence, address);
        if sequence == home.sequence || seeded(FsBug::OlderHomeCounts) {
            home.written = Some(self.flushes);
            self.open.remove(&key);
            self.written.insert(key);
        } else {
            self.waiting.insert(key);
        }
    }

    /// A flush that began as number `flush` has ended.
    pub(crate) fn is_flushed(&mut self, flush: u64) {
        let blocks = &mut self.blocks;
        self.written.retain(|(_, address)| {
            let is_flushed = |home: &Home| home.written.is_some_and(|before| before < flush);
            let goes = blocks.get(address).is_none_or(is_flushed);
            if goes {
                blocks.remove(address);
            }
            !goes
        });
    }
}

/// What the job is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    #[default]
    Idle,
    /// Blocks of transactions up to this one are written.
    Blocks(u64),
    /// Those are flushed.
    Flush,
    /// The superblock of the journal forgets so many transactions.
    Tail(usize),
}

/// A write of committed blocks to their places.
#[derive(Debug)]
pub(crate) struct HomeWrite {
    number: u64,
    addresses: Vec<u32>,
}

impl Journaling {
    /// Writes committed blocks to their places where that is due; true if anything went on.
    pub(super) fn run_home(&mut self) -> bool {
        if self.core.read_only.is_some() {
            return false;
        }
        match self.home {
            Step::Idle => {
                let mut any = false;
                if let Some(before) = self.home_expired.take() {
                    any |= self.send_home(|_, since| since <= before);
                }
                // What a file system that is unmounted has committed.
                let is_last = self.is_unmounting && self.commit.is_idle() && !self.core.is_changed();
                if is_last && (!self.core.homes.is_empty() || !self.log.has_none()) {
                    self.home = Step::Blocks(u64::MAX);
                    return true;
                }
                let needed = std::mem::take(&mut self.wants_log);
                let limit = if needed > 0 { self.log.half(needed) } else { 0 };
                if limit > 0 {
                    self.home = Step::Blocks(limit);
                    return true;
                }
                any
            }
            Step::Blocks(limit) => {
                let any = self.send_home(|sequence, _| sequence <= limit);
                let is_open = self.core.homes.is_open(limit);
                if is_open || self.commit.writes_superblock() {
                    return any;
                }
                if self.has_write_cache && self.core.homes.needed() <= limit {
                    self.core.homes.flushes += 1;
                    self.home = Step::Flush;
                    self.below.send(Request::new(Op::Flush, 0, 0), &[], Purpose::FlushHome(self.core.homes.flushes));
                    return true;
                }
                self.send_tail();
                true
            }
            Step::Flush | Step::Tail(_) => false,
        }
    }

    /// Sends committed blocks to their places that `is_due` by their transaction and the time of its commit.
    fn send_home(&mut self, is_due: impl Fn(u64, Nanos) -> bool) -> bool {
        let addresses = self.core.homes.due(is_due);
        for run in addresses.chunk_by(|a, b| a + 1 == *b) {
            for part in run.chunks(MOST_BLOCKS as usize) {
                let number = self.core.number_write();
                let sent = |address: &u32| self.core.homes.send(*address, number).map(|bytes| (*address, bytes));
                let blocks: Vec<(u32, Box<Bytes>)> = part.iter().filter_map(sent).collect();
                let write = self.home_writes.put(HomeWrite { number, addresses: part.to_vec() });
                self.core.metrics.home_blocks += blocks.len() as u64;
                self.send_metadata(&blocks, false, Purpose::Home(write));
            }
        }
        !addresses.is_empty()
    }

    /// A write of committed blocks has ended.
    pub(super) fn home_written(&mut self, write: u32, is_well: bool) {
        let HomeWrite { number, addresses } = self.home_writes.take(write);
        self.core.open_writes.remove(&number);
        if is_well {
            addresses.into_iter().for_each(|address| self.core.homes.is_written(address, number));
            if !self.has_write_cache {
                self.core.homes.flushes += 1;
                self.core.homes.is_flushed(self.core.homes.flushes);
            }
        }
        self.writes_ended();
    }

    /// A flush behind blocks at their places has ended.
    pub(super) fn home_flushed(&mut self, flush: u64) {
        self.core.homes.is_flushed(flush);
        if self.home == Step::Flush {
            self.send_tail();
        }
    }

    /// The log begins behind what is not needed any more.
    fn send_tail(&mut self) {
        let needed = self.core.homes.needed().min(self.commit.sequence());
        let (tail, gone) = self.log.tail(needed);
        let is_told = self.log.is_empty || !self.log.has_none();
        if gone == 0 && is_told {
            self.home = Step::Idle;
            return;
        }
        self.home = Step::Tail(gone);
        let block = tail.encode(self.core.superblock.volume);
        self.core.metrics.journal_blocks += 1;
        self.send_metadata(&[(self.log.address(0), block)], self.has_write_cache, Purpose::Tail);
    }

    /// The superblock of the journal is written.
    pub(super) fn tail_written(&mut self) {
        if let Step::Tail(gone) = self.home {
            self.log.forget(gone);
        }
        self.home = Step::Idle;
    }
}

//! A map on flash, partly cached in RAM: what DFTL is (Gupta et al., ASPLOS 2009), by map page as in the SHRD paper,
//! section 2, or by entry as in the original.
//!
//! The map is cut into *map pages* of `entries` entries, which are programmed into map blocks. Where the newest of each is, the
//! *directory* says, which is in RAM. The cache consists of *lines*: a line is a map page, or an entry. An entry changes in a
//! cached line alone. What is not cached equals what is on flash; so the mapping beside this, which has all entries as they
//! are, stands for the cached lines and for those on flash alike, and each load and each eviction asserts that it does. With a
//! log of what relocation changed, a page that is not cached is what is on flash and the log's entries of it.
//!
//! A map page is programmed only while all that its entries name is on flash: what is *unsettled*, data in flight, keeps its
//! page in the cache. So a map page on flash never names a page that a power cut kept from being written. With its entries it has
//! the number of its program: it knows of all programs and trims before that.
//!
//! - `geometry.rs`: sizes.
//! - `lru.rs`: the order of use.
//! - `keys.rs`: what descriptions say of it.
//! - `state.rs`: what is kept of each page and each line.
//! - `requests.rs`: who asks for which lines, and has them pinned until it uses them.
//! - `pending_loads.rs`: who waits for which lines.
//! - `load.rs`: misses: a line leaves, another one comes; how many at one time.
//! - `changes.rs`: entries that change, pages that settle.
//! - `contents.rs`: the words of map pages.
//! - `log.rs`: changes that relocation makes in pages that are not cached.
//! - `blocks.rs`: programs of map pages, and collection of their blocks.
//! - `flush.rs`: dirty pages that are programmed while they stay: for trims, when active blocks are full, and before dirty
//!   entries leave.
//! - `recovery.rs`: the map from map blocks, and from data blocks that were active.
//! - `shared.rs`: map pages that share a mapping unit.
//! - `saved.rs`: snapshots.
//! - `in_flight.rs`: what of this a power cut falls into.
//! - `erase_epoch.rs`: a superblock from one erase to the next.
//! - `check.rs`: invariants, and bytes of RAM.

mod blocks;
mod changes;
mod check;
mod contents;
mod erase_epoch;
mod flush;
mod geometry;
mod in_flight;
pub(super) mod keys;
mod load;
mod log;
mod lru;
mod pending_loads;
mod recovery;
mod requests;
mod saved;
mod shared;
mod state;

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use ssdlab_flash::{Lpn, UnitId};

use self::blocks::{Collection, Program};
use self::flush::{Change, Flush};
use self::log::Log;
use self::lru::Lru;
use self::pending_loads::Jobs;
use self::shared::Shared;
use self::state::{Changes, LineState, PageState};
use super::page::PageFtl;
use crate::media::Media;
use crate::slots::Slots;
use crate::{DriveConfig, MapCacheStats, MapUser};

pub(super) use blocks::quota;
pub(super) use erase_epoch::EraseEpoch;
pub(super) use geometry::Shape;
pub(super) use log::LOG_ENTRY_BYTES;
pub(super) use recovery::{Found, Logged};
pub(super) use state::LINE_STATE_BYTES;

/// An operation of the map in flight.
#[derive(Clone, Debug)]
enum MapOp {
    Load {
        line: u32,
    },
    /// The entries of a page that a program of dirty ones goes with.
    Base {
        page: u32,
    },
    /// Pages that are programmed, where they were before, and the page whose place one of them leaves free.
    Program(Program),
    /// The record of what is active.
    Record {
        before: Option<UnitId>,
    },
}

/// The cached part of a map, its directory, and map blocks.
pub(super) struct MapCache {
    pub(super) shape: Shape,
    lru: Lru,
    pages: Vec<PageState>,
    lines: Vec<LineState>,
    jobs: Jobs,
    /// Lines of the cache that a page is about to leave, or to take.
    in_transit: u32,
    /// Lines that are kept beside the cache, of a drive that takes no more writes.
    beside: u32,
    read_only: bool,
    /// Lines that wait for a place in the cache, for one in a map block, or for a program of their page.
    waiting: VecDeque<u32>,
    /// Lines that have not been asked for yet, and that are loaded when no other waits.
    ahead: VecDeque<u32>,
    /// Who needs them.
    ahead_for: MapUser,
    /// Lines that have a place, and wait for a program of their page, or for their turn after one that failed.
    placed: VecDeque<u32>,
    /// Lines whose place a page has not left yet, because its program failed.
    stuck: u32,
    /// By page: lines that come with a load in flight which another line asked for.
    joined: FxHashMap<u32, Vec<u32>>,
    /// By page: cached lines that jobs wait for while it is held.
    held_lines: FxHashMap<u32, Vec<u32>>,
    shared: Shared,
    ops: Slots<MapOp>,
    /// Operations in flight.
    in_flight: u32,
    flush: Flush,
    change: Option<Change>,
    log: Log,
    /// Superblocks that had been opened for data when dirty pages were flushed last, and that have been by now.
    changed_at: u64,
    opened: u64,
    collections: Vec<Collection>,
    /// The group that takes the next map page.
    next_group: u32,
    /// Lines that recovery changed, to be cached or programmed.
    found_dirty: Vec<u32>,
    /// By page: entries that changed since it was programmed.
    changes: Vec<Changes>,
    /// Words of map pages that were superseded, to be used again.
    spare_words: Vec<Box<[u64]>>,
    /// Units that hold nothing, and whose entries say since which write of the host: copies of them that no map page names
    /// are older.
    trimmed_since: BTreeMap<Lpn, u32>,
    /// Superblocks of a log of which all names were final when a change began that is on flash.
    settled_logs: Vec<EraseEpoch>,
    /// All such, also before, that were not erased since: to recovery they are data blocks already.
    data_on_flash: Vec<EraseEpoch>,
    /// A page settled, and no waiter went on since.
    any_settled: bool,
    pub(super) counters: MapCacheStats,
}

impl MapCache {
    pub(super) fn new(config: &DriveConfig, shape: Shape) -> MapCache {
        let groups = config.flash.geometry.planes() / config.ftl.superblock.planes(&config.flash.geometry);
        assert!(shape.entries.is_power_of_two(), "a map page has {} entries", shape.entries);
        assert!(shape.capacity > 0, "a cache holds a line");
        assert!(shape.in_page > 0, "a page of flash holds a map page");
        MapCache {
            shape,
            lru: Lru::new(shape.lines()),
            pages: vec![PageState::default(); shape.pages as usize],
            lines: vec![LineState::default(); shape.lines() as usize],
            jobs: Jobs::default(),
            in_transit: 0,
            beside: 0,
            read_only: false,
            waiting: VecDeque::new(),
            ahead: VecDeque::new(),
            ahead_for: MapUser::Buffer,
            placed: VecDeque::new(),
            stuck: 0,
            joined: FxHashMap::default(),
            held_lines: FxHashMap::default(),
            shared: Shared::new(&shape),
            ops: Slots::default(),
            in_flight: 0,
            flush: Flush::default(),
            change: None,
            log: Log::default(),
            changed_at: 0,
            opened: 0,
            collections: vec![Collection::default(); groups as usize],
            next_group: 0,
            found_dirty: Vec::new(),
            changes: vec![Changes::default(); shape.pages as usize],
            spare_words: Vec::new(),
            trimmed_since: BTreeMap::new(),
            settled_logs: Vec::new(),
            data_on_flash: Vec::new(),
            any_settled: false,
            counters: MapCacheStats::default(),
        }
    }

    /// To recovery a superblock of a log is a data block, and it is still one of the log.
    pub(super) fn is_data_on_flash(&mut self, epoch: EraseEpoch) {
        self.data_on_flash.push(epoch);
    }

    /// Superblocks of a log that may become data blocks: all that they hold has its final name, on flash.
    pub(super) fn take_settled_logs(&mut self) -> Vec<EraseEpoch> {
        std::mem::take(&mut self.settled_logs)
    }

    /// The drive takes no more writes: lines that can never leave the cache may be kept beside it, as
    /// [`super::CachedMap::set_read_only`] says.
    pub(super) fn set_read_only(&mut self) {
        self.read_only = true;
    }

    pub(in crate::ftl) const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// What waits for a place, or for settled pages, is tried again.
    pub(super) fn resume(&mut self, data: &mut PageFtl, media: &mut Media) {
        for group in 0..self.collections.len() as u32 {
            self.collect(data, media, group);
        }
        self.flush_pages(data, media);
        self.on_slot_free(data, media);
    }
}

//! Buffered I/O: the page cache of a host, with read-ahead and write-back.
//!
//! ```text
//!   read   -> cached blocks are copied; others are fetched, and more ahead of a reader in order
//!   write  -> blocks are changed in RAM; at the dirty limit the writer waits
//!   flush  -> what is dirty goes down, then the flush
//!                write-back, by address: above the background limit, at the dirty limit, of old blocks, for a flush
//! ```
//!
//! FUA writes, trims and write zeroes go through, and take effect on cached blocks when they have ended. A block whose copy is on its
//! way down can be changed again; it is written once more then. What was not flushed is lost with the host.
//!
//! The rules are those of Linux 2.6.33 (`mm/filemap.c`, `mm/readahead.c`, `mm/page-writeback.c`, `mm/vmscan.c`), for one file as
//! large as the device.

mod config;
mod flushes;
mod metrics;
mod pages;
mod read_ahead;
mod reads;
mod through;
mod write_back;
mod writes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use rustc_hash::FxHashMap;
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Status;

pub use config::PageCacheConfig;

use self::flushes::Flush;
use self::metrics::Counts;
use self::pages::{BLOCK_SECTORS, DIRTY, Pages, WRITING};
use self::read_ahead::Reader;
use self::reads::Fetch;
use self::write_back::Job;
use crate::layer::{Array, Command, Ended, Engine as _, Io, Layer, Slots, Turn, units_of, widened};
use crate::layers::LayerKind;
use crate::seeded::{LayerBug, seeded};
use crate::{Device, Identity, LayerMetrics, Loss};

pub(crate) use config::LAYER;

/// What a command below is for.
pub(crate) enum Purpose {
    /// Blocks come to the cache.
    Fetch(u32),
    /// Sectors of a read alone, since the blocks around them cannot be read: the read, and where they begin in it.
    Exact(u32, u64),
    /// Blocks are written back.
    Write(u32),
    /// A command goes through.
    Through(u32),
    /// A flush, after what was dirty.
    Flush(u32),
}

/// What is noted of a command.
#[derive(Default)]
pub(crate) struct State {
    /// A write: blocks of it that are in the cache.
    done: u32,
    /// A write waits at the limit since then.
    held_since: Option<Nanos>,
}

/// The page cache.
pub struct PageCache {
    io: Io<Purpose, State>,
    config: PageCacheConfig,
    pages: Pages,
    /// Blocks that may be dirty or on their way before writers wait, and before write-back begins.
    dirty_limit: u32,
    background_limit: u32,
    readers: FxHashMap<u16, Reader>,
    fetches: Slots<Fetch>,
    /// Blocks of commands that are going through: nothing is read ahead there.
    going_through: Vec<Range<u32>>,
    /// Write-back in flight, and the numbers of these requests.
    jobs: Slots<Job>,
    in_flight: BTreeSet<u64>,
    newest_job: u64,
    /// Where write-back goes on.
    cursor: u32,
    /// Blocks that have expired, by address.
    expired: VecDeque<u32>,
    flushes: Vec<Flush>,
    /// Writes that wait at the limit, and commands that wait until a block can leave.
    held: VecDeque<u32>,
    for_space: VecDeque<u32>,
    /// Commands whose blocks are copied, and when that is over.
    copies: VecDeque<(Nanos, u32)>,
    /// When it last looked for expired blocks.
    looked_at: Option<Nanos>,
    /// Why the device below takes no writes any more.
    refuses: Option<Status>,
    counts: Counts,
}

impl PageCache {
    /// A page cache above a device.
    pub fn new(below: Box<dyn Device>, config: PageCacheConfig) -> PageCache {
        let io: Io<Purpose, State> = Io::new(Array::new(vec![below]), &LAYER);
        PageCache {
            pages: Pages::new(config.blocks(), io.cell),
            io,
            dirty_limit: config.share(config.dirty, 1),
            background_limit: config.share(config.background, 0),
            config,
            readers: FxHashMap::default(),
            fetches: Slots::new(),
            going_through: Vec::new(),
            jobs: Slots::new(),
            in_flight: BTreeSet::new(),
            newest_job: 0,
            cursor: 0,
            expired: VecDeque::new(),
            flushes: Vec::new(),
            held: VecDeque::new(),
            for_space: VecDeque::new(),
            copies: VecDeque::new(),
            looked_at: None,
            refuses: None,
            counts: Counts::default(),
        }
    }

    /// The blocks that a command touches.
    fn blocks_of(request: &Request) -> Range<u32> {
        if request.sectors == 0 { 0..0 } else { units_of(request, BLOCK_SECTORS) }
    }

    /// Sectors of some blocks; the last one may be short.
    fn sectors_of(&self, blocks: &Range<u32>) -> Range<u64> {
        let end = (u64::from(blocks.end) * BLOCK_SECTORS).min(self.capacity());
        u64::from(blocks.start) * BLOCK_SECTORS..end
    }

    /// Sectors that a command shares with some blocks.
    fn shared(&self, request: &Request, blocks: &Range<u32>) -> Range<u64> {
        let Range { start, end } = self.sectors_of(blocks);
        start.max(request.sector)..end.min(request.end())
    }

    /// A command's data is where it should be: it is answered when that was copied.
    fn copy(&mut self, slot: u32) {
        let blocks = PageCache::blocks_of(&self.io.command(slot).request).len() as u64;
        if !self.io.is_timed || blocks == 0 {
            return self.copied(slot);
        }
        let now = self.io.array.now();
        let begins = self.copies.back().map_or(now, |(at, _)| now.max(*at));
        let ends = begins.0.saturating_add(blocks.saturating_mul(self.config.copy_time.0));
        self.copies.push_back((Nanos(ends), slot));
    }

    /// A command's data is copied.
    fn copied(&mut self, slot: u32) {
        let status = self.io.command(slot).status;
        self.answer(slot, status);
    }

    fn answer(&mut self, slot: u32, status: Status) {
        self.io.answer(slot, status);
    }

    /// Ends writes as aborted whose blocks may have been written back and lost before the write has ended.
    fn abort_begun_writes(&mut self) {
        let begun = |command: &Command<State>| command.request.op == Op::Write && command.state.done > 0;
        let slots: Vec<u32> =
            self.io.commands.all().filter(|(_, command)| begun(command)).map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.io.command(slot).status = Status::Aborted);
    }
}

impl Layer for PageCache {
    const KIND: LayerKind = LAYER;
    type Purpose = Purpose;
    type State = State;

    fn io(&self) -> &Io<Purpose, State> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<Purpose, State> {
        &mut self.io
    }

    /// Whole blocks: two commands change one block one after the other.
    fn extent(&self, request: &Request) -> Request {
        widened(request, BLOCK_SECTORS)
    }

    fn start(&mut self, slot: u32, _: Turn) {
        let Request { op, fua, .. } = self.io.command(slot).request;
        match op {
            Op::Read => self.read(slot),
            Op::Write if !fua || seeded(LayerBug::FuaStaysInCache) => self.write(slot, false),
            Op::Write | Op::Trim | Op::WriteZeroes => self.go_through(slot),
            Op::Flush => self.flush(slot),
        }
    }

    fn ended(&mut self, part: Ended<Purpose>) {
        match part.purpose {
            Purpose::Fetch(fetch) => self.fetched(fetch, part),
            Purpose::Exact(slot, offset) => self.exact_ended(slot, offset, part),
            Purpose::Write(job) => self.written(job, part.status),
            Purpose::Through(slot) => self.went_through(slot, part),
            Purpose::Flush(slot) => {
                self.io.command(slot).note_path(part.path);
                self.io.answer(slot, part.status);
            }
        }
    }

    fn proceed(&mut self) -> bool {
        self.start_ready();
        self.release_writers();
        // A flush may find that what it waited for has to be written again.
        self.advance_flushes();
        self.write_back();
        self.advance_flushes();
        if !self.flushes.is_empty() && !self.in_flight.is_empty() {
            self.io.array.unplug();
        }
        let dirty = self.pages.dirty();
        self.counts.dirty_max = self.counts.dirty_max.max(u64::from(dirty));
        false
    }

    fn wakes_at(&self) -> Option<Nanos> {
        self.copies.front().map(|(at, _)| *at).into_iter().chain(self.next_look()).min()
    }

    fn wake(&mut self) {
        let now = self.io.array.now();
        while let Some((at, slot)) = self.copies.front().copied()
            && at <= now
        {
            self.copies.pop_front();
            self.copied(slot);
        }
        if self.next_look().is_some_and(|at| at <= now) {
            self.looked_at = Some(now);
            self.look_for_expired(now);
        }
    }

    /// What was written back and not flushed may be lost below, so that blocks which count as clean may be newer than there. They leave,
    /// and are read again.
    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        if loss == Loss::Unflushed {
            self.io.abort_unacknowledged();
            self.abort_begun_writes();
            if !seeded(LayerBug::CleanKeptAfterLoss) {
                self.pages.drop_clean();
                self.fetches_are_stale();
            }
        }
        loss
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        let blocks = (sector / BLOCK_SECTORS) as u32..end.div_ceil(BLOCK_SECTORS) as u32;
        let first = blocks.start;
        match self.pages.first_dirty(blocks) {
            Some(block) if block == first => {
                let is_dirty =
                    |block: u32| self.pages.find(block).is_some_and(|page| self.pages.has(page, DIRTY | WRITING));
                let behind = (block..).find(|block| !is_dirty(*block)).unwrap_or(u32::MAX);
                (true, (u64::from(behind) * BLOCK_SECTORS).min(end))
            }
            Some(block) => self.io.array.device(0).mapped_run(sector, u64::from(block) * BLOCK_SECTORS),
            None => self.io.array.device(0).mapped_run(sector, end),
        }
    }

    fn identity(&self, below: Identity) -> Identity {
        Identity { has_write_cache: true, has_host_cache: true, ..below }
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics {
            configuration: self.config.shown(),
            figures: self.figures(),
            notes: self.notes(),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.pages.counts = pages::Counts::default();
        self.pages.reset_time();
        self.looked_at = None;
    }
}

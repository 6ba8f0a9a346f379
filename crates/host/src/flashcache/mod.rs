//! FlashCache, the block cache that Getting Real (FAST 2013, 4.2) compares with: a plain drive keeps blocks of a disk. After its
//! public documents, doc/flashcache-doc.txt and doc/flashcache-sa-guide.txt.
//!
//! ```text
//!   read    -> whole blocks: the cache, or the disk and then the cache (a fill) -> answer
//!   write   -> whole blocks: the cache -> metadata, where the block was not dirty -> answer   (write-back)
//!              the cache and the disk -> answer                                               (write-through)
//!   parts of blocks, sequential writes, trims
//!           -> dirty blocks are cleaned, the cache forgets them -> the disk -> answer
//!   clean   -> the cache -> the disk, on its medium -> metadata
//! ```
//!
//! A block is 4 KB. [`sets`] says which slot of the cache holds it, [`metadata`] what of that is on the cache drive. A command has
//! its blocks alone until it is answered, as a block of FlashCache that is being read or written takes no other request; so has
//! cleaning.
//!
//! With `flushes = "passed"`, which is ours, the layer promises what a drive with a volatile write cache does. Two rules make that
//! true on devices that have one. What makes a block dirty is on the cache's flash before the metadata that says so; later writes
//! of the dirty block need not be. And a block counts as clean when the disk has it on its medium, and the slot takes another when
//! the metadata says so on flash. A device that loses what it had buffered takes all clean blocks with it: the cache may have lost
//! them, or the disk may be older than they are.

mod cleaning;
mod command;
mod config;
mod layout;
mod metadata;
mod metadata_writes;
mod metrics;
mod recovery;
mod sets;

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Status;

use crate::caching::Sequential;
use crate::layer::{Array, Ended, Engine as _, Io, Layer, Overlaps, Slots, Turn, changes, widened};
use crate::layers::Below;
use crate::{Device, LayerError, LayerKind, LayerMetrics, Loss};

use cleaning::Job;
use command::{At, Phase, State};
pub use config::FlashCacheConfig;
pub(crate) use config::LAYER;
use config::{Flushes, Mode};
use layout::{BLOCK_SECTORS, Layout};
use metadata::{Left, Superblock};
use metadata_writes::MetadataBlock;
use metrics::Counts;
use recovery::Found;
use sets::Sets;

/// The devices below, by their place.
const CACHE: usize = 0;
const DISK: usize = 1;

/// Runs of sequential requests that are remembered. Ours: the documents give no number.
const RUNS: usize = 32;

/// What a command below is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// Pieces of a command from above, from `first` up to `end`.
    Data {
        slot: u32,
        first: usize,
        end: usize,
    },
    /// Pieces of a read, from `first` up to `end`, go to the cache.
    Fill {
        slot: u32,
        first: usize,
        end: usize,
    },
    Flush(u32),
    /// Blocks of a cleaning job leave the cache, from `first` up to `end`.
    Fetch {
        job: u32,
        first: usize,
        end: usize,
    },
    /// Blocks of a cleaning job go to the disk.
    Clean(u32),
    /// A metadata block.
    Metadata(u32),
    /// A slot that holds nothing any more.
    Trim(u32),
    /// The last flushes and the superblock when the host stops.
    Close,
}

/// The layer.
pub struct FlashCache {
    io: Io<Purpose, State>,
    config: FlashCacheConfig,
    layout: Layout,
    superblock: Superblock,
    sets: Sets,
    runs: Sequential,
    /// Blocks that commands and cleaning have for themselves.
    busy: Overlaps,
    /// Rises when a device loses what it had buffered: what was begun before counts for nothing.
    epoch: u64,
    /// The cache refused metadata: nothing is changed any more, since a layer that begins anew would not know of it.
    refuses: Option<Status>,
    /// The disk refused a cleaned block: dirty blocks stay.
    disk_refuses: Option<Status>,

    metadata: FxHashMap<u32, MetadataBlock>,
    /// Metadata blocks that are to be written.
    stale: BTreeSet<u32>,

    jobs: Slots<Job>,
    /// Writes of jobs that no command waits for.
    cleaning_writes: u32,
    /// Sets that may have blocks to clean, and sets that a job cleans.
    eligible: VecDeque<u32>,
    is_eligible: FxHashSet<u32>,
    is_cleaned: FxHashSet<u32>,
    /// Slots whose dirty blocks cannot be read: they stay, and are used where they are.
    stuck: FxHashSet<u32>,
    /// When dirty slots were used last, by time and by slot; those that were not for long.
    by_use: BTreeSet<(Nanos, u32)>,
    used: FxHashMap<u32, Nanos>,
    fallow: FxHashSet<u32>,
    /// Dirty blocks are cleaned whatever the threshold.
    closes: bool,
    /// How the last command of a stop in good order ended.
    close_failed: bool,

    counts: Counts,
}

impl FlashCache {
    /// A cache above two devices, the first to cache blocks of the second; with the blocks that one before it has left there.
    ///
    /// # Errors
    /// The devices are too small, belong to another cache or disk, or their metadata cannot be read.
    pub fn new(devices: Vec<Box<dyn Device>>, config: FlashCacheConfig) -> Result<FlashCache, LayerError> {
        let below: Vec<Below> = devices.iter().map(|device| Below::of(&**device)).collect();
        let layout = config.layout(&below)?;
        let cell = devices.first().map_or(0, |device| device.sector_data_bytes());
        let mut array = Array::new(devices);
        let Found { sets, superblock, refuses } = recovery::find(&mut array, &config, &layout, cell)?;
        let mut cache = FlashCache {
            io: Io::new(array, &LAYER),
            config,
            layout,
            superblock,
            sets,
            runs: Sequential::new(RUNS),
            busy: Overlaps::default(),
            epoch: 0,
            refuses,
            disk_refuses: None,
            metadata: FxHashMap::default(),
            stale: BTreeSet::new(),
            jobs: Slots::new(),
            cleaning_writes: 0,
            eligible: VecDeque::new(),
            is_eligible: FxHashSet::default(),
            is_cleaned: FxHashSet::default(),
            stuck: FxHashSet::default(),
            by_use: BTreeSet::new(),
            used: FxHashMap::default(),
            fallow: FxHashSet::default(),
            closes: false,
            close_failed: false,
            counts: Counts::default(),
        };
        for slot in 0..cache.sets.len() {
            if cache.sets.is_dirty(slot) {
                cache.is_used(slot);
            }
        }
        Ok(cache)
    }

    /// Whether flushes and FUA reach the devices.
    fn passes_flushes(&self) -> bool {
        self.config.flushes == Flushes::Passed
    }

    /// A block, as a request that has it for itself.
    const fn block_as_change(block: u32) -> Request {
        Request::new(Op::Write, block as u64 * BLOCK_SECTORS, BLOCK_SECTORS)
    }

    /// A clean block leaves the cache, if it is there.
    fn forget(&mut self, block: u32) {
        if self.sets.find(block).is_none_or(|slot| self.sets.is_dirty(slot)) {
            return;
        }
        let Some(slot) = self.sets.drop_clean(block) else { return };
        self.counts.invalidated += 1;
        if self.config.trim && self.refuses.is_none() {
            self.sets.hold(slot, true);
            self.counts.trims += 1;
            let trim = Request::new(Op::Trim, self.layout.slot_sector(slot), BLOCK_SECTORS);
            self.io.array.send(CACHE, trim, &[], Purpose::Trim(slot));
        }
    }

    /// The block in a slot becomes dirty or clean.
    fn set_dirty(&mut self, slot: u32, is_dirty: bool) {
        self.sets.set_dirty(slot, is_dirty);
        if is_dirty {
            self.is_used(slot);
        } else {
            self.stuck.remove(&slot);
            self.fallow.remove(&slot);
            if let Some(before) = self.used.remove(&slot) {
                self.by_use.remove(&(before, slot));
            }
        }
    }

    /// The block in a slot is read or written.
    fn is_used(&mut self, slot: u32) {
        self.sets.touch(slot);
        if self.sets.is_dirty(slot) && self.config.fallow_delay > Nanos::ZERO {
            let now = self.io.array.now();
            self.fallow.remove(&slot);
            if let Some(before) = self.used.insert(slot, now) {
                self.by_use.remove(&(before, slot));
            }
            self.by_use.insert((now, slot));
        }
    }

    /// A device below lost its power, and with it what was not flushed: no clean block counts any more.
    fn revert(&mut self) {
        self.io.abort_unacknowledged();
        self.epoch += 1;
        let mut kept = FxHashSet::default();
        for (_, command) in self.io.commands.all_mut() {
            if command.state.phase == Phase::Waits {
                continue;
            }
            // These leave when their commands end.
            kept.extend(command.state.pieces.iter().filter(|piece| piece.at != At::Disk).map(|piece| piece.block()));
            if changes(command.request.op) {
                command.status = Status::Aborted;
            }
        }
        kept.extend(self.jobs.all().flat_map(|(_, job)| job.blocks()));
        self.counts.lost_clean += u64::from(self.sets.drop_all_clean(|block| !kept.contains(&block)));
    }

    /// Brings what a stop in good order needs to the devices, one after the other.
    fn close_in_order(&mut self) {
        let closed = Superblock { left: Left::Closed, ..self.superblock };
        let flush = Request::new(Op::Flush, 0, 0);
        for device in [CACHE, DISK] {
            self.io.array.send(device, flush, &[], Purpose::Close);
        }
        self.come_to_rest();
        if self.close_failed || self.refuses.is_some() {
            return;
        }
        let array = &mut self.io.array;
        let (request, cells) = recovery::superblock_write(&closed, self.io.cell, |sector, stamp, words| {
            array.device_mut(CACHE).keep_meaning(sector, stamp, words);
        });
        self.io.array.send(CACHE, request, &cells, Purpose::Close);
        self.come_to_rest();
    }
}

impl Layer for FlashCache {
    const KIND: LayerKind = LAYER;
    type Purpose = Purpose;
    type State = State;

    fn io(&self) -> &Io<Purpose, State> {
        &self.io
    }

    fn io_mut(&mut self) -> &mut Io<Purpose, State> {
        &mut self.io
    }

    fn capacity(&self) -> u64 {
        u64::from(self.layout.disk_blocks) * BLOCK_SECTORS
    }

    /// Whole blocks: a slot has one command at a time.
    fn extent(&self, request: &Request) -> Request {
        widened(request, BLOCK_SECTORS)
    }

    fn start(&mut self, slot: u32, _: Turn) {
        self.take_blocks(slot);
    }

    fn ended(&mut self, part: Ended<Purpose>) {
        match part.purpose {
            Purpose::Data { slot, first, end } => self.data_ended(part, slot, first..end),
            Purpose::Fill { slot, first, end } => self.fill_ended(part.status, slot, first..end),
            Purpose::Flush(slot) => self.flush_ended(part, slot),
            Purpose::Fetch { job, first, end } => self.fetch_ended(part, job, first..end),
            Purpose::Clean(job) => self.clean_ended(part.status, job),
            Purpose::Metadata(block) => self.metadata_ended(part.status, block),
            Purpose::Trim(slot) => self.sets.hold(slot, false),
            Purpose::Close => self.close_failed |= part.status.is_error(),
        }
    }

    fn proceed(&mut self) -> bool {
        self.start_ready();
        while let Some(slot) = self.busy.next_ready() {
            self.begin(slot);
        }
        self.clean_eligible();
        self.send_metadata();
        self.busy.any_ready() || self.io.overlaps.any_ready()
    }

    fn wakes_at(&self) -> Option<Nanos> {
        let (oldest, _) = self.by_use.first()?;
        (self.io.is_timed && self.may_clean()).then(|| Nanos(oldest.0.saturating_add(self.config.fallow_delay.0)))
    }

    fn wake(&mut self) {
        self.look_for_fallow();
    }

    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        if loss == Loss::Unflushed {
            self.revert();
        }
        loss
    }

    /// Dirty blocks go to the disk, unless they are to stay; then all metadata is written, so that clean blocks are found, too.
    fn closes(&mut self) {
        if self.config.mode != Mode::Back || self.refuses.is_some() {
            return;
        }
        if !self.config.fast_remove {
            self.closes = true;
            (0..self.sets.sets()).for_each(|set| self.may_need_cleaning(set));
            self.come_to_rest();
            self.closes = false;
        }
        self.stale.extend(0..self.layout.metadata_blocks());
        self.come_to_rest();
        if self.refuses.is_none() {
            self.close_in_order();
        }
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        let below = |end: u64| self.io.array.device(DISK).mapped_run(sector, end);
        let (first, behind) = ((sector / BLOCK_SECTORS) as u32, end.div_ceil(BLOCK_SECTORS) as u32);
        let is_dirty = |block: u32| self.sets.find(block).is_some_and(|slot| self.sets.is_dirty(slot));
        match self.sets.first_dirty(first, behind) {
            Some(block) if block == first => {
                let clean = (first..behind).find(|block| !is_dirty(*block)).unwrap_or(behind);
                (true, (u64::from(clean) * BLOCK_SECTORS).min(end))
            }
            Some(block) => below((u64::from(block) * BLOCK_SECTORS).min(end)),
            None => below(end),
        }
    }

    fn expect(&mut self, requests: &[Request]) {
        let capacity = self.capacity();
        let inside: Vec<Request> = requests.iter().filter(|request| request.end() <= capacity).copied().collect();
        self.io.array.device_mut(DISK).prefetch(&inside);
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics {
            configuration: self.config.shown(&self.layout),
            figures: self.figures(),
            degraded: self.degraded(),
            notes: self.notes(),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
        // Time begins anew.
        let dirty: Vec<u32> = self.used.keys().copied().collect();
        self.by_use = dirty.iter().map(|slot| (Nanos::ZERO, *slot)).collect();
        self.used = dirty.into_iter().map(|slot| (slot, Nanos::ZERO)).collect();
    }
}

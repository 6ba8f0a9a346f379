//! The cache manager of FlashTier, as it was built for the OpenSSD board (Getting Real, sections 2.2, 3.2, 3.3 and 4.2): a drive with the
//! command set `cache` in front of a disk.
//!
//! ```text
//!   read    -> cache; blocks that it does not have come from the disk -> answer, and write-clean
//!   write   -> write-dirty -> answer                                            (write-back)
//!           -> bits of its regions -> disk -> write-clean -> answer             (write-through)
//!           -> bits of its regions -> disk -> evict -> answer                   (what is not cached)
//!   flush   -> cache, and the disk where it was written ([`Unflushed`]; with `cache_flush` the cache likewise) -> answer
//!                 above the dirty limit: flush of the cache -> read of dirty blocks -> disk -> flush of the disk -> clean
//! ```
//!
//! The host knows dirty blocks alone ([`dirty`]); of others it asks the cache. Commands that change a block take it one after the
//! other; a copy to the disk and a fill let reads pass. A part of a block goes to the disk, unless the block is dirty.
//!
//! A write of the disk over a dirty block is durable before the block is evicted. Clean blocks may be older or newer than the disk
//! after a crash: [`WriteIntent`](Intent) knows where, and [`recovery`] drops them there. [`records`] says that cache and disk belong
//! together.

mod cleaning;
mod config;
mod dirty;
mod metrics;
mod reads;
mod records;
mod recovery;
mod writes;

#[cfg(test)]
mod tests;

use std::ops::Range;

use ssdlab_base::command_sets::cache::CACHE;
use ssdlab_base::{Nanos, Op, Opcode, Request, SECTOR_BYTES};
use ssdlab_device::Status;

pub use config::CacheConfig;
pub(crate) use config::LAYER;

use self::cleaning::Batch;
use self::config::{DropClean, Mode};
use self::dirty::DirtyTable;
use self::metrics::Counts;
use self::records::Layout;
use self::recovery::Recovery;
use self::writes::Piece;
use crate::caching::Sequential;
use crate::layer::{Ended, Engine, Io, Layer, Turn, cells_of, units_of, widened};
use crate::layers::LayerKind;
use crate::seeded::{LayerBug, seeded};
use crate::write_intent::Intent;
use crate::{Device, Identity, LayerMetrics, Loss};

/// The devices below, by place.
const SSC: usize = 0;
const DISK: usize = 1;

/// What a command below is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// A part of a write or trim.
    Piece(u32, Piece),
    /// The cache is asked for sectors of a read.
    Lookup(u32),
    /// Sectors of a read that are known to be in the cache.
    Cached(u32),
    /// Blocks that a read misses, from the disk.
    Miss(u32),
    /// Blocks that a read missed go to the cache.
    Fill(u32),
    /// A flush for a command.
    Flush(u32, Covered),
    /// A copy of dirty blocks: the read, or the write.
    Copy(u32),
    /// The flush of the cache before the copies of a batch, and the one of the disk after them.
    BatchFlush(u64, Covered),
    /// Blocks become clean.
    Clean(u32),
    /// A word of the bitmap.
    Word(usize),
    /// The recovery of this epoch asks, evicts or flushes.
    Recovery(u64),
}

/// What a command is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// It came from above.
    #[default]
    FromAbove,
    Fill,
    /// A copy of dirty blocks to the disk.
    Copy,
    /// Dirty blocks whose copies were flushed become clean.
    Clean,
}

/// Changes of a device that only its flush makes durable.
///
/// Of the cache these are writes of dirty blocks, and what ends a dirty block: an older one may come back after a power cut. Clean blocks
/// need no flush. Of the disk they are the writes of commands.
#[derive(Clone, Copy, Debug, Default)]
struct Unflushed {
    changes: u64,
    /// How many of them flushes have covered.
    covered: u64,
}

impl Unflushed {
    const fn any(self) -> bool {
        self.changes > self.covered
    }
}

/// What a flush covers: everything before this time of the layer's, and so many changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    at: u64,
    changes: u64,
}

/// What is noted of a command.
#[derive(Default)]
pub(crate) struct State {
    kind: Kind,
    /// It has begun, and sends something or waits for bits.
    has_begun: bool,
    /// A device below has lost its power since it began.
    is_void: bool,
}

/// The manager.
pub struct CacheManager {
    io: Io<Purpose, State>,
    config: CacheConfig,
    layout: Layout,
    /// Blocks that may be dirty.
    dirty_limit: usize,
    table: DirtyTable,
    sequential: Sequential,
    intent: Intent,
    /// Parts of commands that wait for bits of their regions.
    for_bits: Vec<(u32, Piece)>,
    /// Numbers of the last flush of each device that has ended.
    flushed: [u64; 2],
    /// What only a flush of each device makes durable.
    unflushed: [Unflushed; 2],
    /// Sectors that went to the disk since the cache was flushed last.
    since_flush: u64,
    batch: Option<Batch>,
    /// Batches so far, and power cuts: what an earlier one flushed counts for nothing.
    batches: u64,
    /// The cache refused a write since everything was dirty.
    wants_room: bool,
    /// Why dirty blocks are copied to the disk no more.
    uncopied: Option<Status>,
    /// Why the cache takes no writes any more.
    read_only: Option<Status>,
    recovery: Option<Recovery>,
    epoch: u64,
    /// Commands that wait for the end of a recovery.
    parked: Vec<u32>,
    counts: Counts,
}

/// A command of the set.
fn of_set(opcode: Opcode, sectors: &Range<u64>) -> Request {
    let spec = CACHE.command(opcode).expect("the set has it");
    Request::of_set(spec, sectors.start, sectors.end - sectors.start)
}

/// A command of block I/O.
fn of_block(op: Op, sectors: &Range<u64>) -> Request {
    Request::new(op, sectors.start, sectors.end - sectors.start)
}

impl CacheManager {
    /// The blocks that sectors touch.
    fn blocks_of(&self, sectors: &Range<u64>) -> Range<u32> {
        if sectors.is_empty() { 0..0 } else { units_of(&of_block(Op::Read, sectors), self.layout.per_block) }
    }

    fn sectors_of(&self, blocks: &Range<u32>) -> Range<u64> {
        u64::from(blocks.start) * self.layout.per_block..u64::from(blocks.end) * self.layout.per_block
    }

    /// Whether the bitmap is kept.
    fn marks(&self) -> bool {
        self.config.drop_clean != DropClean::None
    }

    /// Sectors are about to be written on the disk. True if that is on flash: else the write waits.
    fn begin_on_disk(&mut self, sectors: &Range<u64>) -> bool {
        if !self.marks() {
            return true;
        }
        let now = self.io.newest();
        self.intent.begin(sectors, now);
        self.intent.is_durable(sectors) || seeded(LayerBug::DiskBeforeBit)
    }

    /// What was to be written there has ended, and so has all that follows in the cache.
    fn end_on_disk(&mut self, sectors: &Range<u64>) {
        if self.marks() {
            self.intent.end(sectors, self.io.newest());
        }
    }

    /// A flush of a device has ended: where both have covered everything the bits go.
    fn was_flushed(&mut self, device: usize, covered: Covered) {
        self.unflushed[device].covered = self.unflushed[device].covered.max(covered.changes);
        self.flushed[device] = self.flushed[device].max(covered.at);
        if self.config.drop_clean == DropClean::Regions {
            self.intent.flushed(self.flushed[SSC].min(self.flushed[DISK]));
        }
    }

    /// A change of the cache has failed, and may have been made in part. If it takes no more writes, what is dirty there is read there,
    /// and everything else on the disk.
    fn ssc_failed(&mut self, status: Status) {
        self.unflushed[SSC].changes += 1;
        if matches!(status, Status::ReadOnly | Status::StorageFull) {
            self.read_only.get_or_insert(status);
        }
    }

    /// A flush of the devices on which something waits for it, and of the cache when `cache_flush` says so.
    fn flush(&mut self, slot: u32) {
        self.io.take_effect(slot);
        let Request { fua, queue, .. } = self.io.command(slot).request;
        let flush = Request { fua, queue, ..Request::new(Op::Flush, 0, 0) };
        self.io.command(slot).left = 1;
        let is_due = self.since_flush * SECTOR_BYTES >= self.config.cache_flush;
        if self.unflushed[SSC].any() || is_due {
            self.io.command(slot).left += 1;
            let covered = self.covered(SSC);
            self.io.array.send(SSC, flush, &[], Purpose::Flush(slot, covered));
        }
        if self.unflushed[DISK].any() && !seeded(LayerBug::DiskNotFlushed) {
            self.io.command(slot).left += 1;
            let covered = self.covered(DISK);
            self.io.array.send(DISK, flush, &[], Purpose::Flush(slot, covered));
        }
        self.one_less(slot);
    }

    /// What a flush of a device covers that is sent now.
    fn covered(&mut self, device: usize) -> Covered {
        match device {
            SSC => {
                self.counts.cache_flushes += 1;
                self.since_flush = 0;
            }
            _ => self.counts.disk_flushes += 1,
        }
        Covered { at: self.io.newest(), changes: self.unflushed[device].changes }
    }

    fn flush_ended(&mut self, part: Ended<Purpose>, slot: u32, covered: Covered) {
        let is_void = self.io.command(slot).state.is_void;
        if part.status == Status::Success && !is_void {
            self.was_flushed(part.device, covered);
        }
        self.io.command(slot).note(part.status, part.path);
        self.one_less(slot);
    }

    /// A part of a command from above has ended; with the last one the command is done.
    fn one_less(&mut self, slot: u32) {
        let command = self.io.command(slot);
        if !command.ends() {
            return;
        }
        let (status, is_void) = (command.status, command.state.is_void);
        if command.request.op == Op::Read && (is_void || status == Status::Aborted) {
            // What it has found may be lost.
            command.state = State::default();
            command.status = Status::Success;
            self.parked.push(slot);
            return;
        }
        self.io.answer(slot, if is_void { Status::Aborted } else { status });
    }

    /// Begins commands that waited for the end of a recovery.
    fn unpark(&mut self) -> bool {
        if self.recovery.is_some() || self.parked.is_empty() {
            return false;
        }
        for slot in std::mem::take(&mut self.parked) {
            self.begin(slot);
        }
        true
    }

    /// Nothing before it is on its blocks.
    fn begin(&mut self, slot: u32) {
        self.io.end_wait(slot);
        let command = self.io.command(slot);
        command.state.has_begun = true;
        let (kind, op) = (command.state.kind, command.request.op);
        match (kind, op) {
            (Kind::Fill, _) => self.send_fill(slot),
            (Kind::Copy, _) => self.copy(slot),
            (Kind::Clean, _) => self.clean(slot),
            (Kind::FromAbove, Op::Flush) => self.flush(slot),
            (Kind::FromAbove, Op::Read) => self.read(slot),
            (Kind::FromAbove, Op::Write | Op::Trim | Op::WriteZeroes) => self.change(slot),
        }
    }

    /// Writes words of the bitmap that have changed to the cache.
    fn send_words(&mut self) -> bool {
        let (mut next, mut any) = (0, false);
        while let Some((index, word, at_once)) = self.intent.send(next, 1) {
            self.send_word(index, word, at_once);
            (next, any) = (index + 1, true);
        }
        any
    }

    fn send_word(&mut self, index: usize, word: u64, at_once: bool) {
        let first = self.layout.bitmap + index as u64 * self.layout.per_block;
        let request = of_block(Op::Write, &(first..first + self.layout.per_block));
        let cells = cells_of(word, self.io.cell, self.layout.per_block);
        self.counts.bitmap_writes += 1;
        self.io.array.send(SSC, Request { fua: at_once, ..request }, &cells, Purpose::Word(index));
    }

    fn word_ended(&mut self, part: &Ended<Purpose>, index: usize) {
        if part.status == Status::Aborted {
            // What it clears may be lost, what it adds may not.
            return self.send_word(index, self.intent.word(index), true);
        }
        if part.status != Status::Success {
            self.ssc_failed(part.status);
            self.fail_what_waits_for_bits(part.status);
        }
        if self.intent.written(index) {
            self.send_marked();
        }
    }

    /// Sends what waited for bits that are on flash now.
    fn send_marked(&mut self) {
        for (slot, piece) in std::mem::take(&mut self.for_bits) {
            if self.intent.is_durable(&piece.sectors()) {
                self.send_to_disk(slot, piece);
            } else {
                self.for_bits.push((slot, piece));
            }
        }
    }

    /// The bits do not come: what waits for them does not go to the disk.
    fn fail_what_waits_for_bits(&mut self, status: Status) {
        for (slot, piece) in std::mem::take(&mut self.for_bits) {
            self.io.command(slot).note(status, None);
            self.piece_done(slot, piece);
        }
    }
}

impl Layer for CacheManager {
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
        self.layout.sectors
    }

    /// Whole blocks: two commands change one block one after the other.
    fn extent(&self, request: &Request) -> Request {
        widened(request, self.layout.per_block)
    }

    fn start(&mut self, slot: u32, _: Turn) {
        let is_from_above = self.io.command(slot).state.kind == Kind::FromAbove;
        if is_from_above && self.recovery.is_some() {
            self.parked.push(slot);
        } else {
            self.begin(slot);
        }
    }

    fn ended(&mut self, part: Ended<Purpose>) {
        match part.purpose {
            Purpose::Piece(slot, piece) => self.piece_ended(part, slot, piece),
            Purpose::Lookup(slot) => self.looked_up(part, slot),
            Purpose::Cached(slot) => self.cached_ended(part, slot),
            Purpose::Miss(slot) => self.miss_ended(part, slot),
            Purpose::Fill(slot) => self.fill_ended(&part, slot),
            Purpose::Flush(slot, covered) => self.flush_ended(part, slot, covered),
            Purpose::Copy(slot) => self.copy_ended(part, slot),
            Purpose::BatchFlush(batch, covered) => self.batch_flushed(&part, batch, covered),
            Purpose::Clean(slot) => self.clean_ended(&part, slot),
            Purpose::Word(index) => self.word_ended(&part, index),
            Purpose::Recovery(epoch) => self.recovery_ended(part, epoch),
        }
    }

    fn proceed(&mut self) -> bool {
        self.start_ready();
        let words = self.send_words();
        words | self.recover() | self.unpark() | self.clean_in_turn()
    }

    /// What the cache and the disk have kept need not be equal, nor need the table say which blocks are dirty: both are put right before
    /// anything else begins. What was begun is void.
    fn power_lost(&mut self, _: usize, loss: Loss) -> Loss {
        if loss == Loss::Unflushed {
            self.begin_recovery();
        }
        loss
    }

    /// Both devices are flushed, and the bitmap is cleared: the next start drops nothing.
    fn closes(&mut self) {
        self.come_to_rest();
        if self.read_only.is_none() {
            self.end_in_order();
        }
    }

    fn mapped(&self, sector: u64, end: u64) -> (bool, u64) {
        let end = end.min(self.layout.sectors);
        let blocks = self.blocks_of(&(sector..end));
        match self.table.next(blocks.clone()) {
            Some(block) if block == blocks.start => {
                let behind = self.table.end_of_run(block);
                (true, (u64::from(behind) * self.layout.per_block).min(end))
            }
            Some(block) => self.io.array.device(DISK).mapped_run(sector, u64::from(block) * self.layout.per_block),
            None => self.io.array.device(DISK).mapped_run(sector, end),
        }
    }

    fn expect(&mut self, requests: &[Request]) {
        let inside: Vec<Request> =
            requests.iter().filter(|request| request.end() <= self.layout.sectors).copied().collect();
        self.io.array.devices_mut().for_each(|device| device.prefetch(&inside));
    }

    /// What the cache was told of evicted blocks is in its RAM until a flush, whatever the two buffer.
    fn identity(&self, below: Identity) -> Identity {
        let ssc = self.io.array.device(SSC).identify();
        Identity { has_write_cache: true, unit_bytes: ssc.unit_bytes, ..below }
    }

    fn metrics(&self) -> LayerMetrics {
        LayerMetrics {
            configuration: self.config.shown(),
            figures: self.figures(),
            degraded: self.degraded(),
            ..LayerMetrics::default()
        }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
    }
}

impl CacheManager {
    /// A manager above a cache and its disk: new ones, or a pair that one before it has left.
    ///
    /// # Errors
    /// The first device does not know the set; the disk is larger than the cache's addresses; the two are no pair; or what the layer
    /// keeps there cannot be read.
    pub fn new(devices: Vec<Box<dyn Device>>, config: CacheConfig) -> Result<CacheManager, crate::LayerError> {
        let found = recovery::find(devices, &config)?;
        let (layout, marked) = (found.layout, found.words);
        let was_there = marked.is_some();
        let mut intent = Intent::new(layout.region, layout.regions, marked);
        if config.drop_clean == DropClean::None {
            intent.settle();
        }
        let io = Io::new(found.array, &LAYER);
        let limit = if config.mode == Mode::WriteThrough { 0 } else { config.dirty_limit };
        let mut manager = CacheManager {
            io,
            dirty_limit: (found.cache_blocks * u64::from(limit) / 100) as usize,
            layout,
            table: DirtyTable::new(),
            sequential: Sequential::new(config.streams as usize),
            intent,
            for_bits: Vec::new(),
            flushed: [0; 2],
            unflushed: [Unflushed::default(); 2],
            since_flush: 0,
            batch: None,
            batches: 0,
            wants_room: false,
            uncopied: None,
            read_only: None,
            recovery: None,
            epoch: 0,
            parked: Vec::new(),
            counts: Counts::default(),
            config,
        };
        manager.begin_recovery();
        manager.settle()?;
        let is_new = !was_there && manager.io.cell > 0;
        if is_new && manager.table.len() > 0 {
            let blocks = manager.table.len();
            return Err(crate::LayerError::ForeignCache { blocks });
        }
        manager.counts = Counts::default();
        Ok(manager)
    }

    /// Runs until the recovery is over and the bitmap is on flash.
    fn settle(&mut self) -> Result<(), crate::LayerError> {
        self.work();
        while self.recovery.is_some() || !self.intent.is_at_rest() {
            if !self.step(Nanos::MAX) {
                return Err(crate::LayerError::Silent { device: SSC });
            }
        }
        let now = self.io.array.now();
        self.io.array.advance(now);
        match self.read_only {
            Some(status) if self.io.cell > 0 && status != Status::ReadOnly => {
                Err(crate::LayerError::Unreadable { layer: LAYER.name, device: SSC, status })
            }
            _ => Ok(()),
        }
    }
}

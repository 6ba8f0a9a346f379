//! Copies of dirty blocks to the disk, in batches: a flush of the cache, copies in the disk's order, one flush of the disk, and then the
//! blocks are clean.
//!
//! A copy lets reads of its blocks pass and no changes. Between copy and flush a block may change; it stays dirty then.
//!
//! Only what the cache has on flash is copied. After a crash such a block is dirty, or the same on the disk, so copies need no bits of
//! their regions, and a crash within a batch costs no clean blocks.

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_base::command_sets::cache::{CLEAN, READ};
use ssdlab_base::{Op, Request, SECTOR_BYTES};
use ssdlab_device::Status;

use super::{CacheManager, Covered, DISK, Kind, Purpose, SSC, of_block, of_set};
use crate::layer::{Ended, Engine};
use crate::seeded::{LayerBug, seeded};

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The cache is to be flushed, where dirty blocks are not on flash.
    CacheFlush,
    Copies,
    /// The disk is being flushed.
    DiskFlush,
    Clean,
}

/// Dirty blocks that are copied together.
#[derive(Debug)]
pub(super) struct Batch {
    step: Step,
    /// Runs that are to be copied, and those that the disk has taken.
    runs: VecDeque<Range<u32>>,
    copied: Vec<Range<u32>>,
    /// Commands of it that have not ended.
    in_flight: u32,
}

impl CacheManager {
    /// Begins a batch where too much is dirty, and goes on with the one that there is. True if it has sent anything.
    pub(super) fn clean_in_turn(&mut self) -> bool {
        if self.recovery.is_some() {
            return false;
        }
        if self.batch.is_none() && !self.begin_batch() {
            return false;
        }
        let Some(Batch { step, in_flight, .. }) = self.batch else { return false };
        if step == Step::Copies && in_flight < self.config.copies && self.send_next_copy() {
            return true;
        }
        if in_flight > 0 {
            return false;
        }
        let Some(batch) = &mut self.batch else { return false };
        match step {
            Step::CacheFlush if self.unflushed[SSC].any() && !seeded(LayerBug::CopyBeforeFlush) => {
                self.flush_for_batch(SSC);
            }
            Step::CacheFlush => batch.step = Step::Copies,
            Step::Copies if !batch.copied.is_empty() => {
                batch.step = Step::DiskFlush;
                if seeded(LayerBug::CleanBeforeFlush) {
                    self.clean_copied();
                    return true;
                }
                self.flush_for_batch(DISK);
            }
            Step::Copies | Step::Clean => self.batch = None,
            Step::DiskFlush => unreachable!("a flush is in flight"),
        }
        true
    }

    fn flush_for_batch(&mut self, device: usize) {
        if let Some(batch) = &mut self.batch {
            batch.in_flight = 1;
        }
        let covered = self.covered(device);
        self.io.array.send(device, Request::new(Op::Flush, 0, 0), &[], Purpose::BatchFlush(self.batches, covered));
    }

    /// The cache has chosen blocks on flash, or the disk has their copies on its medium.
    pub(super) fn batch_flushed(&mut self, part: &Ended<Purpose>, batch: u64, covered: Covered) {
        if batch != self.batches {
            return;
        }
        let Some(batch) = &mut self.batch else { return };
        batch.in_flight -= 1;
        let of_cache = part.device == SSC;
        if part.status != Status::Success {
            if of_cache {
                self.ssc_failed(part.status);
            }
            return self.end_batch(part.status);
        }
        if of_cache {
            batch.step = Step::Copies;
        }
        self.was_flushed(part.device, covered);
        if !of_cache {
            self.clean_copied();
        }
    }

    /// A flush has failed: no blocks become clean, and none are copied any more.
    fn end_batch(&mut self, status: Status) {
        self.uncopied.get_or_insert(status);
        let Some(batch) = self.batch.take() else { return };
        batch.runs.into_iter().chain(batch.copied).for_each(|blocks| self.table.not_copied(blocks));
    }

    fn begin_batch(&mut self) -> bool {
        let is_over = self.table.len() > self.dirty_limit || self.wants_room && self.table.len() > 0;
        if !is_over || self.uncopied.is_some() || self.read_only.is_some() {
            return false;
        }
        self.wants_room = false;
        let block_bytes = self.layout.per_block * SECTOR_BYTES;
        let blocks = |bytes: u64| (bytes / block_bytes).max(1);
        let over = self.table.len().saturating_sub(self.dirty_limit);
        let runs = self.table.choose(
            over.max(blocks(self.config.clean_batch) as usize),
            blocks(self.config.clean_size).min(u64::from(u32::MAX)) as u32,
        );
        if runs.is_empty() {
            return false;
        }
        self.batches += 1;
        self.counts.batches += 1;
        self.batch = Some(Batch { step: Step::CacheFlush, runs: runs.into(), copied: Vec::new(), in_flight: 0 });
        true
    }

    fn send_next_copy(&mut self) -> bool {
        let Some(batch) = &mut self.batch else { return false };
        while let Some(run) = batch.runs.pop_front() {
            // What has changed since it was chosen need not be on flash.
            let Some(chosen) = self.table.next_chosen(run.clone()) else { continue };
            if chosen.end < run.end {
                batch.runs.push_front(chosen.end..run.end);
            }
            batch.in_flight += 1;
            self.begin_own(&chosen, Kind::Copy);
            return true;
        }
        false
    }

    /// A command of the layer's own on dirty blocks, which waits for changes of them.
    fn begin_own(&mut self, blocks: &Range<u32>, kind: Kind) {
        let request = of_block(Op::Read, &self.sectors_of(blocks));
        let slot = self.io.add(request, request, Vec::new(), &[]);
        self.io.command(slot).state.kind = kind;
        self.admit(slot);
    }

    fn own_blocks(&mut self, slot: u32) -> Range<u32> {
        let request = self.io.command(slot).request;
        self.blocks_of(&(request.sector..request.end()))
    }

    /// A copy begins: no command changes its blocks now.
    pub(super) fn copy(&mut self, slot: u32) {
        let blocks = self.own_blocks(slot);
        // A later batch may have chosen the blocks of one that is void.
        if self.io.command(slot).state.is_void || self.table.next_chosen(blocks.clone()) != Some(blocks.clone()) {
            return self.copy_done(slot, false);
        }
        let read = of_set(READ, &self.sectors_of(&blocks));
        self.io.array.send(SSC, read, &[], Purpose::Copy(slot));
    }

    pub(super) fn send_copy(&mut self, slot: u32, cells: &[u8]) {
        let request = self.io.command(slot).request;
        self.counts.disk_writes += 1;
        let write = of_block(Op::Write, &(request.sector..request.end()));
        self.io.array.send(DISK, write, cells, Purpose::Copy(slot));
    }

    pub(super) fn copy_ended(&mut self, part: Ended<Purpose>, slot: u32) {
        let blocks = self.own_blocks(slot);
        let is_read = part.device == SSC;
        if self.io.command(slot).state.is_void {
            return self.copy_done(slot, false);
        }
        match part.status {
            Status::Success if is_read => {
                return self.send_copy(slot, &part.cells.unwrap_or_default());
            }
            Status::Success => {
                self.table.copied(blocks.clone());
                self.counts.copied += blocks.len() as u64;
                if let Some(batch) = &mut self.batch {
                    batch.copied.push(blocks);
                }
                return self.copy_done(slot, true);
            }
            // A fill took the place of a dirty block, and was dropped.
            Status::Absent if self.trusts_pattern() => {}
            Status::Absent => panic!("of the dirty blocks {blocks:?} one is absent"),
            Status::UncorrectableRead if is_read && blocks.len() == 1 => {
                self.counts.unreadable += 1;
                self.table.unreadable(blocks);
            }
            Status::UncorrectableRead if is_read => {
                let batch = self.batch.as_mut().expect("a copy that is not void is of a batch");
                batch.runs.extend(blocks.map(|block| block..block + 1));
                return self.own_done(slot);
            }
            status if !is_read => {
                self.uncopied.get_or_insert(status);
            }
            _ => {}
        }
        self.copy_done(slot, false);
    }

    /// A copy is over. Of one that failed or is void the blocks are as before.
    pub(super) fn copy_done(&mut self, slot: u32, has_copied: bool) {
        let blocks = self.own_blocks(slot);
        if !has_copied {
            self.table.not_copied(blocks);
        }
        self.own_done(slot);
    }

    fn own_done(&mut self, slot: u32) {
        let command = self.io.retire(slot);
        if !command.state.is_void {
            let batch = self.batch.as_mut().expect("a command that is not void is of a batch");
            batch.in_flight -= 1;
        }
    }

    /// The disk has flushed copies: blocks that were not changed meanwhile become clean.
    fn clean_copied(&mut self) {
        let Some(batch) = &mut self.batch else { return };
        assert_eq!((batch.step, batch.in_flight), (Step::DiskFlush, 0), "one flush ends a batch");
        batch.step = Step::Clean;
        let copied = std::mem::take(&mut batch.copied);
        batch.in_flight = copied.len() as u32;
        for blocks in copied {
            self.begin_own(&blocks, Kind::Clean);
        }
    }

    /// Blocks that were not changed since they were copied become clean. No command changes them now.
    pub(super) fn clean(&mut self, slot: u32) {
        // What is copied of the blocks of a batch that is void is of a later one, and not flushed.
        if self.io.command(slot).state.is_void {
            return self.own_done(slot);
        }
        let blocks = self.own_blocks(slot);
        let (mut from, mut runs) = (blocks.start, Vec::new());
        while let Some(run) = self.table.next_copied(from..blocks.end) {
            from = run.end;
            runs.push(run);
        }
        if seeded(LayerBug::CopyCleansNewer) && blocks.clone().all(|block| self.table.has(block)) {
            runs = vec![blocks];
        }
        self.io.command(slot).left = 1 + runs.len() as u32;
        for run in runs {
            let clean = of_set(CLEAN, &self.sectors_of(&run));
            self.io.array.send(SSC, clean, &[], Purpose::Clean(slot));
        }
        self.clean_part_done(slot);
    }

    pub(super) fn clean_ended(&mut self, part: &Ended<Purpose>, slot: u32) {
        let blocks = self.blocks_of(&(part.request.sector..part.request.end()));
        match part.status {
            Status::Success if !self.io.command(slot).state.is_void => {
                self.counts.cleaned += blocks.len() as u64;
                self.unflushed[SSC].changes += 1;
                self.table.remove(blocks);
            }
            status => {
                self.table.not_copied(blocks);
                self.ssc_failed(status);
            }
        }
        self.clean_part_done(slot);
    }

    fn clean_part_done(&mut self, slot: u32) {
        if self.io.command(slot).ends() {
            self.own_done(slot);
        }
    }
}

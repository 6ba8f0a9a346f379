//! Reads, and fills of what they miss.

use std::ops::Range;

use ssdlab_base::command_sets::cache::{BlockBits, MISS_STAMP, MOST_BLOCKS, Miss, NO_ROOM, READ, WRITE_CLEAN};
use ssdlab_base::{Op, Request};
use ssdlab_device::{Data, Status};

use super::config::MissCheck;
use super::{CacheManager, DISK, Kind, Purpose, SSC, of_block, of_set};
use crate::layer::{Ended, Engine};
use crate::seeded::{LayerBug, seeded};

/// Why blocks are read from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The cache does not have them.
    Absent,
    /// The cache cannot read them, and they are clean.
    Unreadable,
    /// The cache takes no writes, and clean blocks may be old.
    ReadOnly,
}

impl CacheManager {
    pub(super) fn read(&mut self, slot: u32) {
        self.io.take_effect(slot);
        let cell = self.io.cell;
        let command = self.io.command(slot);
        let request = command.request;
        if request.sectors == 0 {
            self.io.answer(slot, Status::Success);
            return;
        }
        command.cells = vec![0; request.sectors as usize * cell];
        let all = request.sector..request.end();
        if self.read_only.is_some() {
            return self.read_known(slot, all);
        }
        let per_block = self.layout.per_block;
        let most = u64::from(MOST_BLOCKS) * per_block;
        let first_end = (all.start / per_block * per_block + most).min(all.end);
        let mut from = all.start;
        self.io.command(slot).left = 1;
        while from < all.end {
            let to = if from == all.start { first_end } else { all.end.min(from + most) };
            self.look_up(slot, from..to);
            from = to;
        }
        self.one_less(slot);
    }

    fn look_up(&mut self, slot: u32, sectors: Range<u64>) {
        let command = self.io.command(slot);
        command.left += 1;
        let queue = command.request.queue;
        let request = Request { queue, ..of_set(READ, &sectors) };
        self.io.array.send_of_set(SSC, request, &[], self.config.miss.words(), Purpose::Lookup(slot));
    }

    /// Dirty blocks come from the cache, and all others from the disk.
    fn read_known(&mut self, slot: u32, all: Range<u64>) {
        self.io.command(slot).left = 1;
        let per_block = self.layout.per_block;
        let blocks = self.blocks_of(&all);
        let mut block = blocks.start;
        while block < blocks.end {
            let is_dirty = self.table.has(block);
            let end = match is_dirty {
                true => self.table.end_of_run(block).min(blocks.end),
                false => self.table.next(block..blocks.end).unwrap_or(blocks.end),
            };
            if is_dirty {
                let sectors = all.start.max(u64::from(block) * per_block)..all.end.min(u64::from(end) * per_block);
                self.io.command(slot).left += 1;
                self.io.array.send(SSC, of_block(Op::Read, &sectors), &[], Purpose::Cached(slot));
            } else {
                self.read_from_disk(slot, block..end, Cause::ReadOnly);
            }
            block = end;
        }
        self.one_less(slot);
    }

    fn read_from_disk(&mut self, slot: u32, blocks: Range<u32>, cause: Cause) {
        let count = blocks.len() as u64;
        match cause {
            Cause::Absent => self.counts.misses_absent += count,
            Cause::Unreadable => self.counts.misses_unreadable += count,
            Cause::ReadOnly => self.counts.misses_read_only += count,
        }
        self.counts.disk_reads += 1;
        let sectors = self.sectors_of(&blocks);
        let command = self.io.command(slot);
        command.left += 1;
        let request = Request { queue: command.request.queue, ..of_block(Op::Read, &sectors) };
        self.io.array.send(DISK, request, &[], Purpose::Miss(slot));
    }

    /// Puts what was read where it belongs; sectors beside the read are dropped.
    fn put(&mut self, slot: u32, sectors: &Range<u64>, found: &[u8]) {
        let cell = self.io.cell;
        let command = self.io.command(slot);
        let request = command.request;
        let (from, to) = (sectors.start.max(request.sector), sectors.end.min(request.end()));
        if found.is_empty() || from >= to {
            return;
        }
        let (source, target) = ((from - sectors.start) as usize * cell, (from - request.sector) as usize * cell);
        let length = (to - from) as usize * cell;
        command.cells[target..target + length].copy_from_slice(&found[source..source + length]);
    }

    pub(super) fn looked_up(&mut self, part: Ended<Purpose>, slot: u32) {
        let sectors = part.request.sector..part.request.end();
        let blocks = self.blocks_of(&sectors);
        let command = self.io.command(slot);
        command.note_path(part.path);
        if command.state.is_void {
            return self.one_less(slot);
        }
        match part.status {
            Status::Success | Status::Absent => {
                let cells = part.cells.unwrap_or_default();
                self.put(slot, &sectors, &cells);
                let words = part.answer.map_or(Vec::new(), |answer| answer.words);
                let absent = match words.is_empty() {
                    true => vec![part.status == Status::Absent; blocks.len()],
                    false => {
                        BlockBits::from_words(&words, blocks.len()).map_or(vec![true; blocks.len()], |bits| bits.0)
                    }
                };
                let missing = match self.config.miss {
                    Miss::Pattern if self.io.cell > 0 => self.hold_pattern(&sectors, &cells, &absent),
                    _ => absent,
                };
                let is_missing = |block: u32| missing.get((block - blocks.start) as usize) == Some(&true);
                let mut block = blocks.start;
                while block < blocks.end {
                    let kind = is_missing(block);
                    let end = (block..blocks.end).find(|other| is_missing(*other) != kind).unwrap_or(blocks.end);
                    if kind {
                        if self.trusts_pattern() {
                            self.table.remove(block..end);
                        }
                        assert!(!self.table.has_any(block..end), "a dirty block of {block}..{end} is absent");
                        self.read_from_disk(slot, block..end, Cause::Absent);
                    } else {
                        self.counts.read_hits += u64::from(end - block);
                    }
                    block = end;
                }
            }
            Status::UncorrectableRead if !self.table.has_any(blocks.clone()) || seeded(LayerBug::ErrorOverDirty) => {
                let is_miss = self.config.miss == Miss::Error;
                self.read_from_disk(slot, blocks, if is_miss { Cause::Absent } else { Cause::Unreadable });
            }
            Status::UncorrectableRead if blocks.len() > 1 => {
                for block in blocks {
                    let one = self.sectors_of(&(block..block + 1));
                    self.look_up(slot, one.start.max(sectors.start)..one.end.min(sectors.end));
                }
            }
            status => self.io.command(slot).status = status,
        }
        self.one_less(slot);
    }

    /// Whether any block that holds the pattern counts as absent.
    pub(super) fn trusts_pattern(&self) -> bool {
        self.config.miss == Miss::Pattern
            && (self.config.miss_check == MissCheck::None || seeded(LayerBug::PatternTrusted))
    }

    /// Which blocks of a read count as absent by what the cache returned of them: those that hold the pattern, and are not dirty. What is
    /// read of a clean one on the disk is the same. Which are `absent` the host of a real cache does not know.
    fn hold_pattern(&mut self, sectors: &Range<u64>, cells: &[u8], absent: &[bool]) -> Vec<bool> {
        let cell = self.io.cell;
        let pattern = Data::Stamp(MISS_STAMP).sector_data(&of_block(Op::Write, sectors), cell);
        let first = sectors.start / self.layout.per_block;
        let mut missing = Vec::with_capacity(absent.len());
        for (block, is_absent) in (first..).zip(absent) {
            let from = (block * self.layout.per_block).max(sectors.start) - sectors.start;
            let end = ((block + 1) * self.layout.per_block).min(sectors.end) - sectors.start;
            let bytes = from as usize * cell..end as usize * cell;
            let holds_pattern = cells.get(bytes.clone()).is_some_and(|cells| *cells == pattern[bytes]);
            assert!(holds_pattern || !is_absent, "block {block} is absent, and the data does not say so");
            let is_dirty = self.table.has(block as u32);
            assert!(!is_absent || !is_dirty || self.trusts_pattern(), "the dirty block {block} is absent");
            if holds_pattern && !self.trusts_pattern() {
                self.counts.pattern_looked_up += 1;
                self.counts.pattern_dirty += u64::from(is_dirty);
            }
            let is_missing = holds_pattern && (!is_dirty || self.trusts_pattern());
            self.counts.misses_needless += u64::from(is_missing && !is_absent && !is_dirty);
            missing.push(is_missing);
        }
        missing
    }

    /// Sectors of dirty blocks were read.
    pub(super) fn cached_ended(&mut self, part: Ended<Purpose>, slot: u32) {
        self.io.command(slot).note(part.status, part.path);
        if part.status == Status::Success {
            let sectors = part.request.sector..part.request.end();
            self.counts.read_hits += self.blocks_of(&sectors).len() as u64;
            self.put(slot, &sectors, &part.cells.unwrap_or_default());
        }
        self.one_less(slot);
    }

    pub(super) fn miss_ended(&mut self, part: Ended<Purpose>, slot: u32) {
        let sectors = part.request.sector..part.request.end();
        let command = self.io.command(slot);
        command.note(part.status, part.path);
        if part.status == Status::Success && !command.state.is_void {
            let cells = part.cells.unwrap_or_default();
            self.put(slot, &sectors, &cells);
            self.fill(sectors, cells);
        }
        self.one_less(slot);
    }

    /// Blocks that were read from the disk go to the cache, unless a command waits that changes them: what was read is older then.
    fn fill(&mut self, sectors: Range<u64>, cells: Vec<u8>) {
        if self.read_only.is_some() || self.recovery.is_some() {
            return;
        }
        let request = of_block(Op::Read, &sectors);
        let slot = self.io.add(request, request, cells, &[]);
        self.io.command(slot).state.kind = Kind::Fill;
        if seeded(LayerBug::FillOverWrite) {
            self.begin(slot);
        } else {
            self.admit(slot);
        }
        let has_begun = self.io.commands.find(slot).is_none_or(|command| command.state.has_begun);
        if !has_begun {
            self.counts.fills_overtaken += self.blocks_of(&sectors).len() as u64;
            self.io.retire(slot);
        }
    }

    pub(super) fn send_fill(&mut self, slot: u32) {
        let command = self.io.command(slot);
        let (request, cells) = (command.request, std::mem::take(&mut command.cells));
        command.left = 1;
        let write = of_set(WRITE_CLEAN, &(request.sector..request.end()));
        self.io.array.send(SSC, write, &cells, Purpose::Fill(slot));
    }

    pub(super) fn fill_ended(&mut self, part: &Ended<Purpose>, slot: u32) {
        let blocks = self.blocks_of(&(part.request.sector..part.request.end()));
        match part.status {
            Status::Success => self.counts.fills += blocks.len() as u64,
            Status::Refused(NO_ROOM) => self.counts.fills_refused += blocks.len() as u64,
            status => self.ssc_failed(status),
        }
        self.io.retire(slot);
    }
}

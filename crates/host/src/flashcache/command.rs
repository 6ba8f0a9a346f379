//! Commands on their way through the cache.

use std::ops::Range;

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;
use ssdlab_device::critical_path::Part;

use super::cleaning::Cause;
use super::config::Mode;
use super::layout::BLOCK_SECTORS;
use super::metadata_writes::Waiter;
use super::{CACHE, DISK, FlashCache, Purpose};
use crate::layer::{Ended, Turn, changes, units_of, widened};
use crate::seeded::{LayerBug, seeded};

/// How far a command is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for its blocks, or for cleaning of some of them.
    #[default]
    Waits,
    /// It is below.
    Begun,
}

/// Where a piece of a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// To or from the disk.
    Disk,
    /// To or from this slot.
    Cache(u32),
    /// From the disk, and then to this slot.
    Fill(u32),
    /// To the disk and this slot.
    Both(u32),
}

/// What a command has of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    sector: u64,
    sectors: u64,
    pub(super) at: At,
}

impl Piece {
    pub(super) const fn block(&self) -> u32 {
        (self.sector / BLOCK_SECTORS) as u32
    }

    const fn is_whole(&self) -> bool {
        self.sectors == BLOCK_SECTORS
    }
}

/// What is noted of a command.
#[derive(Default)]
pub(crate) struct State {
    /// Its number among those that have blocks for themselves.
    number: u64,
    /// The layer's epoch in which it began.
    epoch: u64,
    pub(super) phase: Phase,
    /// Sectors that belong to no sequential run, from its first on; `None` before that is known.
    random: Option<u64>,
    pub(super) pieces: Vec<Piece>,
}

impl FlashCache {
    /// A command begins as soon as it has its blocks for itself, and waits for them meanwhile.
    pub(super) fn take_blocks(&mut self, slot: u32) {
        let number = self.io.next_number();
        let command = self.io.command(slot);
        command.state.number = number;
        let blocks = Request { op: Op::Write, ..widened(&command.request, BLOCK_SECTORS) };
        if self.busy.add(number, slot, &blocks) == Turn::Waits {
            return self.io.begin_wait(slot, Part::LayerOverlap);
        }
        self.begin(slot);
    }

    /// A command has its blocks for itself. It comes here again when those that are in its way were cleaned.
    pub(super) fn begin(&mut self, slot: u32) {
        self.io.end_wait(slot);
        let (threshold, epoch) = (self.config.skip_sequential / ssdlab_base::SECTOR_BYTES, self.epoch);
        let command = self.io.command(slot);
        let request = command.request;
        if request.op == Op::Flush {
            return self.flush(slot);
        }
        if request.sectors == 0 {
            return self.finish(slot, Status::Success);
        }
        if changes(request.op)
            && let Some(status) = self.refuses
        {
            return self.finish(slot, status);
        }
        let random = match command.state.random {
            Some(random) => random,
            None if matches!(request.op, Op::Read | Op::Write) => {
                self.runs.random_sectors(request.sector, request.sectors, threshold)
            }
            None => request.sectors,
        };
        let state = &mut self.io.command(slot).state;
        (state.random, state.epoch) = (Some(random), epoch);
        let mut pieces = self.pieces_of(&request);
        let is_random = |piece: &Piece| piece.sector < request.sector + random;
        let mut dirty = Vec::new();
        for piece in &pieces {
            if !self.goes_past(request.op, piece, is_random(piece)) {
                continue;
            }
            match self.sets.find(piece.block()) {
                Some(slot)
                    if self.sets.is_dirty(slot)
                        && self.may_clean()
                        && !self.stuck.contains(&slot)
                        && !seeded(LayerBug::PastDirtyBlock) =>
                {
                    dirty.push((piece.block(), slot));
                }
                // One that is dirty stays: it cannot be cleaned.
                Some(_) if !seeded(LayerBug::OldBlockKept) => self.forget(piece.block()),
                _ => {}
            }
        }
        if !dirty.is_empty() {
            self.io.command(slot).state.phase = Phase::Waits;
            return self.clean(dirty, Some(slot), Cause::Invalidation);
        }
        for piece in &mut pieces {
            piece.at = self.place(request.op, piece, is_random(piece));
        }
        let state = &mut self.io.command(slot).state;
        (state.pieces, state.phase) = (pieces, Phase::Begun);
        self.send_data(slot);
    }

    /// A command's pieces, a block each.
    fn pieces_of(&self, request: &Request) -> Vec<Piece> {
        let piece = |block: u32| {
            let first = u64::from(block) * BLOCK_SECTORS;
            let sector = first.max(request.sector);
            Piece { sector, sectors: (first + BLOCK_SECTORS).min(request.end()) - sector, at: At::Disk }
        };
        units_of(request, BLOCK_SECTORS).map(piece).collect()
    }

    /// Whether a piece goes to the disk whatever the cache has, which forgets its block then: a part of a block, a write of a
    /// sequential run, a trim.
    fn goes_past(&self, op: Op, piece: &Piece, is_random: bool) -> bool {
        match op {
            Op::Read => !piece.is_whole(),
            Op::Write => !piece.is_whole() || !is_random || self.config.mode == Mode::Around,
            _ => true,
        }
    }

    /// Where a piece goes, with its place in the cache where it has or gets one.
    fn place(&mut self, op: Op, piece: &Piece, is_random: bool) -> At {
        let block = piece.block();
        let (is_read, goes_past) = (op == Op::Read, self.goes_past(op, piece, is_random));
        if let Some(slot) = self.sets.find(block) {
            // Of those that go past, blocks are left that cannot be cleaned: they are used where they are.
            let is_dirty = self.sets.is_dirty(slot);
            if !goes_past || is_dirty && !seeded(LayerBug::PastDirtyBlock) {
                self.is_used(slot);
                match op {
                    Op::Read => self.counts.read_hits += 1,
                    _ => self.counts.write_hits += 1,
                }
                self.counts.dirty_write_hits += u64::from(!is_read && is_dirty);
                let both = !is_read && !goes_past && self.config.mode == Mode::Through;
                return if both { At::Both(slot) } else { At::Cache(slot) };
            }
        }
        if is_read {
            self.counts.read_misses += 1;
        }
        if goes_past || is_read && !is_random {
            match (piece.is_whole(), op) {
                (false, Op::Read | Op::Write) => self.counts.past_parts += 1,
                (true, Op::Read | Op::Write) if !is_random => self.counts.past_sequential += 1,
                _ => self.counts.past_others += 1,
            }
            return At::Disk;
        }
        let busy = &self.busy;
        let is_busy = |block: u32| busy.has_change(&FlashCache::block_as_change(block));
        let Some((slot, replaced)) = self.sets.insert(block, is_busy) else {
            self.counts.past_no_room += 1;
            return At::Disk;
        };
        self.counts.replaced += u64::from(replaced.is_some());
        match (is_read, self.config.mode) {
            (true, _) => {
                self.counts.fills += 1;
                At::Fill(slot)
            }
            (false, Mode::Through) => {
                self.counts.write_misses += 1;
                At::Both(slot)
            }
            (false, _) => {
                self.counts.write_misses += 1;
                At::Cache(slot)
            }
        }
    }

    /// The sector of a device that a piece has, if it goes there.
    fn sector_on(&self, device: usize, piece: &Piece, fills: bool) -> Option<u64> {
        match (piece.at, device) {
            (At::Fill(slot), CACHE) if fills => Some(self.layout.slot_sector(slot)),
            (At::Cache(slot) | At::Both(slot), CACHE) if !fills => {
                Some(self.layout.slot_sector(slot) + piece.sector % BLOCK_SECTORS)
            }
            (At::Disk | At::Both(_) | At::Fill(_), DISK) if !fills => Some(piece.sector),
            _ => None,
        }
    }

    /// Pieces that one request to a device serves, with the request's first sector.
    fn runs_on(&self, device: usize, pieces: &[Piece], is_read: bool, fills: bool) -> Vec<(Range<usize>, u64)> {
        let dirty = |piece: &Piece| matches!(piece.at, At::Cache(slot) if self.sets.is_dirty(slot));
        let mut runs: Vec<(Range<usize>, u64)> = Vec::new();
        let mut behind = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let Some(sector) = self.sector_on(device, piece, fills) else { continue };
            match runs.last_mut() {
                // A clean block that cannot be read is read from the disk, so a read has no dirty one beside it.
                Some((run, _))
                    if run.end == index
                        && behind == sector
                        && !(is_read && dirty(piece) != dirty(&pieces[run.start])) =>
                {
                    run.end += 1;
                }
                _ => runs.push((index..index + 1, sector)),
            }
            behind = sector + piece.sectors;
        }
        runs
    }

    /// Sends the pieces of a command to where they go.
    fn send_data(&mut self, slot: u32) {
        let passes = self.passes_flushes();
        let cell = self.io.cell;
        let command = self.io.command(slot);
        let request = command.request;
        let pieces = std::mem::take(&mut command.state.pieces);
        let is_read = request.op == Op::Read;
        if is_read && cell > 0 {
            command.cells = vec![0; request.sectors as usize * cell];
        }
        let cells = std::mem::take(&mut command.cells);
        let mut sent = 0;
        for device in [CACHE, DISK] {
            for (run, sector) in self.runs_on(device, &pieces, is_read, false) {
                let of_run = &pieces[run.clone()];
                let sectors = of_run.iter().map(|piece| piece.sectors).sum();
                let becomes_dirty = |piece: &Piece| {
                    matches!(piece.at, At::Cache(slot) if !self.sets.is_dirty(slot)) && !seeded(LayerBug::DataUnforced)
                };
                let fua = !is_read && passes && (request.fua || of_run.iter().any(becomes_dirty));
                // A slot that is trimmed in place is written, so that it says what the disk does not.
                let op = if request.op == Op::Trim && device == CACHE { Op::WriteZeroes } else { request.op };
                let from = (of_run[0].sector - request.sector) as usize * cell;
                let brought = match op {
                    Op::Write if !cells.is_empty() => &cells[from..from + sectors as usize * cell],
                    _ => &[],
                };
                self.count_sent(device, is_read, sectors);
                let below = Request { op, fua, sector, sectors, ..request };
                self.io.array.send(device, below, brought, Purpose::Data { slot, first: run.start, end: run.end });
                sent += 1;
            }
        }
        let command = self.io.command(slot);
        (command.left, command.cells, command.state.pieces) = (sent, cells, pieces);
        assert!(sent > 0, "a command with sectors has pieces");
    }

    fn count_sent(&mut self, device: usize, is_read: bool, sectors: u64) {
        if device == DISK {
            let count = if is_read { &mut self.counts.disk_reads } else { &mut self.counts.disk_writes };
            *count += 1;
            let sectors_of =
                if is_read { &mut self.counts.disk_read_sectors } else { &mut self.counts.disk_written_sectors };
            *sectors_of += sectors;
        }
    }

    /// Pieces of a command have ended on a device.
    pub(super) fn data_ended(&mut self, part: Ended<Purpose>, slot: u32, run: Range<usize>) {
        let (device, status, cell) = (part.device, part.status, self.io.cell);
        let command = self.io.command(slot);
        let request = command.request;
        let is_read = request.op == Op::Read;
        command.note_path(part.path);
        if status == Status::Success {
            if let Some(brought) = part.cells
                && is_read
            {
                let from = (command.state.pieces[run.start].sector - request.sector) as usize * cell;
                command.cells[from..][..brought.len()].copy_from_slice(&brought);
            }
        } else {
            let of_run: Vec<Piece> = command.state.pieces[run.clone()].to_vec();
            let is_both = |piece: &Piece| matches!(piece.at, At::Both(_));
            let is_clean = |piece: &Piece| matches!(piece.at, At::Cache(slot) if !self.sets.is_dirty(slot));
            if device == CACHE && of_run.iter().all(is_both) {
                // The disk has it, too.
                self.counts.cache_errors += 1;
                of_run.iter().for_each(|piece| self.forget(piece.block()));
                self.are_on_disk(slot, run);
            } else if is_read && device == CACHE && status != Status::Aborted && of_run.iter().all(is_clean) {
                self.counts.cache_errors += 1;
                of_run.iter().for_each(|piece| self.forget(piece.block()));
                let (sector, sectors) = (of_run[0].sector, of_run.iter().map(|piece| piece.sectors).sum());
                self.count_sent(DISK, true, sectors);
                let again = Request { sector, sectors, ..request };
                let purpose = Purpose::Data { slot, first: run.start, end: run.end };
                self.are_on_disk(slot, run);
                return self.io.array.send(DISK, again, &[], purpose);
            } else {
                self.io.command(slot).status = status;
            }
        }
        if self.io.command(slot).ends() {
            self.data_is_done(slot);
        }
    }

    /// Pieces of a command are on the disk alone from now on.
    fn are_on_disk(&mut self, slot: u32, run: Range<usize>) {
        self.io.command(slot).state.pieces[run].iter_mut().for_each(|piece| piece.at = At::Disk);
    }

    /// What a command has put into the cache, or would have, counts for nothing, but for dirty blocks.
    fn forget_pieces(&mut self, slot: u32) {
        let pieces = self.io.command(slot).state.pieces.clone();
        pieces.iter().filter(|piece| piece.at != At::Disk).for_each(|piece| self.forget(piece.block()));
    }

    /// Whether a device has lost what it had buffered since a command began.
    fn is_void(&self, slot: u32) -> bool {
        self.io.commands.get(slot).state.epoch != self.epoch && !seeded(LayerBug::FillAfterLoss)
    }

    /// All pieces of a command have ended.
    fn data_is_done(&mut self, slot: u32) {
        let is_void = self.is_void(slot);
        let command = self.io.command(slot);
        let (request, status) = (command.request, command.status);
        if request.op == Op::Read {
            return match status {
                Status::Success if is_void => self.read_again(slot),
                Status::Success => self.fill(slot),
                _ => {
                    self.forget_pieces(slot);
                    self.finish(slot, status);
                }
            };
        }
        let status = if is_void && status == Status::Success { Status::Aborted } else { status };
        if status != Status::Success {
            self.forget_pieces(slot);
            return self.finish(slot, status);
        }
        let pieces = command.state.pieces.clone();
        let mut slots = Vec::new();
        for piece in pieces {
            let At::Cache(of_piece) = piece.at else { continue };
            if !self.sets.is_dirty(of_piece) {
                assert!(piece.is_whole(), "a part of a block is in a slot that is dirty");
                self.set_dirty(of_piece, true);
                slots.push(of_piece);
            } else if piece.is_whole() {
                self.stuck.remove(&of_piece);
            }
        }
        if slots.is_empty() {
            return self.finish(slot, status);
        }
        let left = self.write_metadata(&slots, Waiter::Command(slot));
        self.io.command(slot).left = left;
        if seeded(LayerBug::AnswerBeforeMetadata) {
            // The command is answered in the meantime: it does not wait for the metadata.
            self.waits_no_longer(slot);
            self.finish(slot, status);
        }
    }

    /// A device may have answered a read from what it lost, or repeated it where older data is.
    fn read_again(&mut self, slot: u32) {
        self.forget_pieces(slot);
        self.begin(slot);
    }

    /// What a read brought from the disk goes to the cache.
    fn fill(&mut self, slot: u32) {
        let cell = self.io.cell;
        let command = self.io.command(slot);
        let request = command.request;
        let (pieces, cells) = (std::mem::take(&mut command.state.pieces), std::mem::take(&mut command.cells));
        let runs = self.runs_on(CACHE, &pieces, true, true);
        for (run, sector) in &runs {
            let sectors = pieces[run.clone()].iter().map(|piece| piece.sectors).sum();
            let write = Request { op: Op::Write, fua: false, sector: *sector, sectors, ..request };
            let from = (pieces[run.start].sector - request.sector) as usize * cell;
            let brought = if cells.is_empty() { &[][..] } else { &cells[from..from + sectors as usize * cell] };
            self.io.array.send(CACHE, write, brought, Purpose::Fill { slot, first: run.start, end: run.end });
        }
        let command = self.io.command(slot);
        (command.left, command.cells, command.state.pieces) = (runs.len() as u32, cells, pieces);
        if runs.is_empty() {
            self.finish(slot, Status::Success);
        }
    }

    /// Blocks that were read from the disk are in the cache, or not.
    pub(super) fn fill_ended(&mut self, status: Status, slot: u32, run: Range<usize>) {
        if status != Status::Success {
            self.counts.cache_errors += 1;
            let pieces = self.io.command(slot).state.pieces[run].to_vec();
            pieces.iter().for_each(|piece| self.forget(piece.block()));
        }
        if !self.io.command(slot).ends() {
            return;
        }
        if self.is_void(slot) { self.read_again(slot) } else { self.finish(slot, Status::Success) }
    }

    /// A flush goes to both devices, or to none.
    fn flush(&mut self, slot: u32) {
        if let Some(status) = self.refuses {
            return self.finish(slot, status);
        }
        if !self.passes_flushes() {
            self.counts.flushes_refused += 1;
            return self.finish(slot, Status::Success);
        }
        let command = self.io.command(slot);
        (command.left, command.state.phase) = (2, Phase::Begun);
        let request = command.request;
        let devices = if seeded(LayerBug::FlushOfCacheAlone) { [CACHE, CACHE] } else { [CACHE, DISK] };
        for device in devices {
            self.io.array.send(device, request, &[], Purpose::Flush(slot));
        }
    }

    /// A device has flushed.
    pub(super) fn flush_ended(&mut self, part: Ended<Purpose>, slot: u32) {
        let command = self.io.command(slot);
        command.note(part.status, part.path);
        if command.ends() {
            let status = self.refuses.unwrap_or(self.io.command(slot).status);
            self.finish(slot, status);
        }
    }

    /// A command is answered, and gives its blocks to others.
    pub(super) fn finish(&mut self, slot: u32, status: Status) {
        let command = self.io.command(slot);
        let (request, number) = (command.request, command.state.number);
        self.busy.remove(number, &Request { op: Op::Write, ..widened(&request, BLOCK_SECTORS) });
        let state = self.io.answer(slot, status);
        for piece in state.pieces {
            if let At::Cache(slot) = piece.at {
                self.may_need_cleaning(self.sets.set_of_slot(slot));
            }
        }
    }
}

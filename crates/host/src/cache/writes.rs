//! Writes, trims and write zeroes, in parts: a part goes one way.

use std::ops::Range;

use ssdlab_base::command_sets::cache::{EVICT, EXISTS, MOST_BLOCKS, NO_ROOM, WRITE_CLEAN, WRITE_DIRTY};
use ssdlab_base::{Op, Request, SECTOR_BYTES};
use ssdlab_device::Status;

use super::{CacheManager, DISK, Mode, Purpose, SSC, of_block, of_set};
use crate::layer::{Ended, whole_units_of};
use crate::seeded::{LayerBug, seeded};

/// The way of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// To the cache alone: whole blocks, or a part of a dirty one.
    Dirty,
    /// To the disk; the cache evicts its blocks.
    Direct,
    /// To the disk, and whole blocks then to the cache.
    Through,
}

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Disk,
    Cache,
    Evict,
    Flush,
    /// A write of the cache has failed: it is asked what it has taken.
    Ask,
}

/// A part of a command: its sectors, and how far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    from: u64,
    to: u64,
    route: Route,
    step: Step,
    /// The disk is to have it on the medium: it is promised, or a dirty block is evicted for it.
    is_forced: bool,
}

impl Piece {
    const fn new(sectors: Range<u64>, route: Route) -> Piece {
        let Range { start, end } = sectors;
        Piece { from: start, to: end, route, step: Step::Disk, is_forced: false }
    }

    pub(super) const fn sectors(self) -> Range<u64> {
        self.from..self.to
    }
}

impl CacheManager {
    /// A write, a trim or write zeroes.
    pub(super) fn change(&mut self, slot: u32) {
        self.io.take_effect(slot);
        let request = self.io.command(slot).request;
        if let Some(status) = self.read_only {
            self.io.answer(slot, status);
            return;
        }
        if request.sectors == 0 {
            self.io.answer(slot, Status::Success);
            return;
        }
        let pieces = self.pieces_of(&request);
        self.io.command(slot).left = pieces.len() as u32;
        pieces.into_iter().for_each(|piece| self.begin_piece(slot, piece));
    }

    /// The parts of a command: the blocks that it covers as a whole, and a part of a block at each end.
    fn pieces_of(&mut self, request: &Request) -> Vec<Piece> {
        let per_block = self.layout.per_block;
        let whole = self.sectors_of(&whole_units_of(request, per_block));
        let all = request.sector..request.end();
        let edges = if whole.is_empty() {
            // One block, or two that meet within it.
            let middle = (request.sector / per_block + 1) * per_block;
            [all.start..middle.min(all.end), middle.min(all.end)..all.end]
        } else {
            [all.start..whole.start, whole.end..all.end]
        };
        let route = match (request.op, self.config.mode) {
            (Op::Write, Mode::WriteThrough) => Route::Through,
            (Op::Write, Mode::WriteBack) if self.is_cached(request) => Route::Dirty,
            _ => Route::Direct,
        };
        let of_edge = |edge: Range<u64>| {
            let is_dirty = self.table.has_any(self.blocks_of(&edge)) && !seeded(LayerBug::PartOverDirty);
            Piece::new(edge, if is_dirty { Route::Dirty } else { Route::Direct })
        };
        let [head, tail] = edges;
        let mut pieces: Vec<Piece> = Vec::with_capacity(3);
        for piece in [of_edge(head), Piece::new(whole, route), of_edge(tail)] {
            match pieces.last_mut() {
                _ if piece.sectors().is_empty() => {}
                Some(last) if last.route == Route::Direct && piece.route == Route::Direct => last.to = piece.to,
                _ => pieces.push(piece),
            }
        }
        pieces
    }

    /// Whether a write in mode `write-back` goes to the cache: if it is not sequential, or changes what is dirty there.
    fn is_cached(&mut self, request: &Request) -> bool {
        let threshold = self.config.sequential / SECTOR_BYTES;
        let random = self.sequential.random_sectors(request.sector, request.sectors, threshold);
        if random == request.sectors {
            return true;
        }
        let is_dirty = self.table.has_any(self.blocks_of(&(request.sector..request.end())));
        self.counts.sequential += u64::from(!is_dirty);
        self.counts.sequential_over_dirty += u64::from(is_dirty);
        is_dirty
    }

    fn begin_piece(&mut self, slot: u32, piece: Piece) {
        let (sectors, request) = (piece.sectors(), self.io.command(slot).request);
        let blocks = self.blocks_of(&sectors);
        // What was chosen or copied of them is older.
        self.table.not_copied(blocks.clone());
        if piece.route == Route::Dirty {
            let whole = self.sectors_of(&blocks) == sectors;
            let write = if whole { of_set(WRITE_DIRTY, &sectors) } else { of_block(Op::Write, &sectors) };
            let write = Request { fua: request.fua, queue: request.queue, stream: request.stream, ..write };
            let cells = self.cells_of_piece(slot, &sectors);
            let piece = Piece { step: Step::Cache, ..piece };
            self.io.array.send(SSC, write, &cells, Purpose::Piece(slot, piece));
            return;
        }
        let is_forced = request.fua || self.table.has_any(blocks) && !seeded(LayerBug::EvictBeforeDisk);
        let piece = Piece { step: Step::Disk, is_forced, ..piece };
        if self.begin_on_disk(&sectors) {
            self.send_to_disk(slot, piece);
        } else {
            self.for_bits.push((slot, piece));
        }
    }

    /// What a part brings, as the devices keep sectors.
    fn cells_of_piece(&mut self, slot: u32, sectors: &Range<u64>) -> Vec<u8> {
        let cell = self.io.cell;
        let command = self.io.command(slot);
        let length = (sectors.end - sectors.start) as usize * cell;
        if command.request.op != Op::Write {
            return vec![0; length];
        }
        let from = (sectors.start - command.request.sector) as usize * cell;
        command.cells.get(from..from + length).map_or(Vec::new(), <[u8]>::to_vec)
    }

    /// Sends the write, or the trim, of a part to the disk.
    pub(super) fn send_to_disk(&mut self, slot: u32, piece: Piece) {
        let Request { op, queue, stream, .. } = self.io.command(slot).request;
        let sectors = piece.sectors();
        let cells = if op == Op::Write { self.cells_of_piece(slot, &sectors) } else { Vec::new() };
        let request = Request { fua: piece.is_forced, queue, stream, ..of_block(op, &sectors) };
        self.counts.disk_writes += 1;
        self.io.array.send(DISK, request, &cells, Purpose::Piece(slot, piece));
    }

    pub(super) fn piece_ended(&mut self, mut part: Ended<Purpose>, slot: u32, piece: Piece) {
        let status = part.status;
        let command = self.io.command(slot);
        command.note_path(part.path.take());
        if command.state.is_void || status == Status::Aborted {
            command.status = Status::Aborted;
            return self.piece_done(slot, piece);
        }
        let blocks = self.blocks_of(&piece.sectors());
        match (piece.step, status) {
            (Step::Cache, Status::Success) if piece.route == Route::Dirty => {
                self.counts.written_dirty += blocks.len() as u64;
                self.unflushed[SSC].changes += u64::from(!self.io.command(slot).request.fua);
                self.table.written(blocks);
                self.piece_done(slot, piece);
            }
            (Step::Cache, Status::Success) => {
                self.counts.written_through += blocks.len() as u64;
                self.no_longer_dirty(blocks);
                self.piece_done(slot, piece);
            }
            (Step::Cache, Status::Refused(NO_ROOM)) => {
                self.counts.no_room += 1;
                self.wants_room = true;
                if piece.route == Route::Dirty {
                    self.begin_piece(slot, Piece { route: Route::Direct, ..piece });
                } else {
                    self.evict(slot, piece);
                }
            }
            (Step::Disk, Status::Success) => self.disk_has(slot, piece),
            (Step::Evict, Status::Success) => {
                self.counts.evicted += blocks.len() as u64;
                self.no_longer_dirty(blocks);
                // Until a flush an older dirty copy may come back.
                if self.io.command(slot).request.fua && self.unflushed[SSC].any() {
                    let piece = Piece { step: Step::Flush, ..piece };
                    self.io.array.send(SSC, Request::new(Op::Flush, 0, 0), &[], Purpose::Piece(slot, piece));
                } else {
                    self.piece_done(slot, piece);
                }
            }
            (Step::Flush, Status::Success) => self.piece_done(slot, piece),
            (Step::Ask, Status::Success) => self.has_taken(&part, slot, piece),
            (step, status) => {
                if step != Step::Disk {
                    self.ssc_failed(status);
                }
                self.io.command(slot).note(status, None);
                if step == Step::Cache && piece.route == Route::Dirty {
                    self.ask(slot, Piece { step: Step::Ask, ..piece }, piece.from);
                } else {
                    self.piece_done(slot, piece);
                }
            }
        }
    }

    /// Asks which blocks of a write that failed are dirty, from a sector on. They are read in the cache: after a power cut they may be
    /// dirty, too.
    fn ask(&mut self, slot: u32, piece: Piece, from: u64) {
        let blocks = self.blocks_of(&(from..piece.to));
        let asked = blocks.start..blocks.end.min(blocks.start.saturating_add(MOST_BLOCKS));
        self.io.array.send(SSC, of_set(EXISTS, &self.sectors_of(&asked)), &[], Purpose::Piece(slot, piece));
    }

    fn has_taken(&mut self, part: &Ended<Purpose>, slot: u32, piece: Piece) {
        self.note_dirty(part);
        let end = part.request.end();
        if end < piece.to {
            return self.ask(slot, piece, end);
        }
        self.piece_done(slot, piece);
    }

    /// The cache does not have blocks any more that were dirty, or has them clean.
    fn no_longer_dirty(&mut self, blocks: Range<u32>) {
        self.unflushed[SSC].changes += u64::from(self.table.has_any(blocks.clone()));
        self.table.remove(blocks);
    }

    /// The disk has a part.
    fn disk_has(&mut self, slot: u32, piece: Piece) {
        if piece.route == Route::Direct {
            let blocks = self.blocks_of(&piece.sectors());
            self.counts.written_direct += blocks.len() as u64;
            if seeded(LayerBug::OlderCopyKept) && !self.table.has_any(blocks) {
                return self.piece_done(slot, piece);
            }
            return self.evict(slot, piece);
        }
        let sectors = piece.sectors();
        let request = self.io.command(slot).request;
        let write = of_set(WRITE_CLEAN, &sectors);
        // Until this one is on flash an older dirty copy may come back.
        let blocks = self.blocks_of(&sectors);
        let is_forced = request.fua && (self.unflushed[SSC].any() || self.table.has_any(blocks));
        let write = Request { fua: is_forced, queue: request.queue, stream: request.stream, ..write };
        let cells = self.cells_of_piece(slot, &sectors);
        self.io.array.send(SSC, write, &cells, Purpose::Piece(slot, Piece { step: Step::Cache, ..piece }));
    }

    /// The cache keeps no older copy.
    fn evict(&mut self, slot: u32, piece: Piece) {
        let sectors = self.sectors_of(&self.blocks_of(&piece.sectors()));
        let piece = Piece { step: Step::Evict, ..piece };
        self.io.array.send(SSC, of_set(EVICT, &sectors), &[], Purpose::Piece(slot, piece));
    }

    /// A part is done, well or not.
    pub(super) fn piece_done(&mut self, slot: u32, piece: Piece) {
        if piece.route != Route::Dirty {
            self.unflushed[DISK].changes += 1;
            self.since_flush += piece.to - piece.from;
            self.end_on_disk(&piece.sectors());
        }
        self.one_less(slot);
    }
}

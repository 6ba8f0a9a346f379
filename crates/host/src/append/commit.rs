//! Commits and checkpoints: what the drive has of the map.
//!
//! A commit is the entries of all changes since the last one, in log blocks one behind the other; it counts when its last block
//! is there. A checkpoint is all pages of the map in the other area of the log, written beside the commits. A page is as the map is
//! when the page is sent. The commit that ends the checkpoint goes to the new area, and has all entries since the checkpoint began: with
//! them the pages are of one time. Then the old area is not needed.

use ssdlab_base::{Op, Request};
use ssdlab_device::Status;

use super::layout::{Layout, NOWHERE};
use super::log::{self, Entry, LAST, Position, WHOLE, entries_in, mapped_in};
use super::{Append, Purpose, is_void};
use crate::seeded::{LayerBug, seeded};

/// Log blocks of one write at most, and writes of a checkpoint in flight.
const MOST_BLOCKS: u32 = 32;
const MOST_WRITES: u32 = 8;

/// The log, as far as it is written.
pub(super) struct Log {
    /// The area with the newest checkpoint, and the next block there.
    area: u32,
    next: Position,
    /// The highest serial that was ever given: an area that was begun in vain does not share its own.
    newest: u32,
    /// Changes that no commit has taken.
    pending: Vec<Entry>,
    /// The memory of those that the last one took.
    taken: Vec<Entry>,
    commit: Option<Commit>,
    checkpoint: Option<Checkpoint>,
    /// The area must not be written any more: what is there may have a gap.
    must_switch: bool,
    /// Commands that wait for the next commit.
    pub(super) joining: Vec<u32>,
}

/// A commit on its way.
struct Commit {
    /// Writes that have not ended.
    writes: u32,
    failed: Option<Status>,
    /// Commands that wait for it.
    joined: Vec<u32>,
    /// Segments that are trimmed when it is there.
    cleaned: Vec<u32>,
    /// It ends a checkpoint.
    switches: bool,
}

/// A checkpoint on its way.
struct Checkpoint {
    area: u32,
    /// The next page of the map, and the next block.
    page: u32,
    next: Position,
    writes: u32,
    is_void: bool,
    /// What commits have taken since it began.
    since: Vec<Entry>,
}

impl Log {
    /// One whose newest checkpoint is in `area`, and which is not written any more; `newest` is the highest serial that was found.
    pub(super) fn found(area: u32, serial: u32, newest: u32) -> Log {
        let (pending, joining) = (Vec::new(), Vec::new());
        Log {
            area,
            next: Position::first(serial),
            newest,
            pending,
            taken: Vec::new(),
            commit: None,
            checkpoint: None,
            must_switch: true,
            joining,
        }
    }

    /// Something changed in the map.
    pub(super) fn add(&mut self, entry: Entry) {
        self.pending.push(entry);
    }

    /// Changes that no commit has taken.
    pub(super) const fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Cleaned segments that a commit on its way has.
    pub(super) fn being_committed(&self) -> usize {
        self.commit.as_ref().map_or(0, |commit| commit.cleaned.len())
    }

    /// Whether everything that changed is on the drive.
    pub(super) const fn is_clean(&self) -> bool {
        self.pending.is_empty() && self.commit.is_none() && !self.must_switch
    }

    /// Waits for the commit on its way if that has all changes, else for the next one.
    pub(super) fn join(&mut self, slot: u32) {
        match &mut self.commit {
            Some(commit) if self.pending.is_empty() => commit.joined.push(slot),
            _ => self.joining.push(slot),
        }
    }

    /// The power of the drive was lost.
    pub(super) fn power_was_lost(&mut self) {
        self.must_switch = true;
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.is_void = true;
        }
    }

    /// Blocks that are left in the area.
    const fn room(&self, layout: &Layout) -> u32 {
        layout.area_blocks() - self.next.block
    }
}

impl Append {
    /// Begins a commit if one is wanted and none is on its way.
    pub(super) fn commit_if_due(&mut self) {
        if let Some(status) = self.stuck {
            for slot in std::mem::take(&mut self.log.joining) {
                self.answer(slot, status);
            }
            return;
        }
        self.drop_void_checkpoint();
        let log = &self.log;
        let per_block = entries_in(self.layout.words());
        let is_due =
            !log.joining.is_empty() || log.pending.len() >= per_block || !self.cleaned.is_empty() || log.must_switch;
        if log.commit.is_some() || !is_due {
            return;
        }
        if log.pending.is_empty() && !log.must_switch {
            let (joined, cleaned) = (std::mem::take(&mut self.log.joining), std::mem::take(&mut self.cleaned));
            return self.finish_commit(joined, cleaned);
        }
        let blocks = |entries: usize| entries.div_ceil(per_block).max(1) as u32;
        let fits = !log.must_switch && blocks(log.pending.len()) <= log.room(&self.layout);
        if !fits {
            self.begin_checkpoint();
        }
        let ends = |checkpoint: &&Checkpoint| checkpoint.writes == 0 && checkpoint.page == self.layout.map_pages();
        if let Some(checkpoint) = self.log.checkpoint.as_ref().filter(ends) {
            let lost = self.lost.entries().len();
            let needed = blocks(checkpoint.since.len() + self.log.pending.len() + lost);
            if checkpoint.next.block + needed <= self.layout.area_blocks() {
                return self.switch();
            }
            // Too much has changed meanwhile.
            self.log.checkpoint = None;
            self.log.must_switch = true;
            self.begin_checkpoint();
        } else if fits {
            self.commit();
        }
    }

    /// A checkpoint that a power cut made void is forgotten when its last write has ended.
    fn drop_void_checkpoint(&mut self) {
        if self.log.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.is_void && checkpoint.writes == 0) {
            self.log.checkpoint = None;
        }
    }

    /// Writes what has changed to the area in use.
    fn commit(&mut self) {
        let mut entries = std::mem::replace(&mut self.log.pending, std::mem::take(&mut self.log.taken));
        if let Some(checkpoint) = &mut self.log.checkpoint
            && !seeded(LayerBug::CheckpointForgets)
        {
            checkpoint.since.extend(&entries);
        }
        self.log.next = self.send_commit(self.log.area, self.log.next, &entries, LAST, false);
        entries.clear();
        self.log.taken = entries;
        if self.log.room(&self.layout) < self.layout.journal / 4 {
            self.begin_checkpoint();
        }
    }

    /// Ends the checkpoint.
    fn switch(&mut self) {
        let checkpoint = self.log.checkpoint.as_mut().expect("it is written");
        let mut entries = std::mem::take(&mut checkpoint.since);
        entries.append(&mut self.log.pending);
        // No page of the map tells of these.
        entries.extend(self.lost.entries());
        let (area, at) = (checkpoint.area, checkpoint.next);
        let next = self.send_commit(area, at, &entries, LAST | WHOLE, true);
        self.log.checkpoint.as_mut().expect("it is written").next = next;
    }

    /// Sends the blocks of a commit, the first at a position; gives back the position behind them.
    fn send_commit(&mut self, area: u32, at: Position, entries: &[Entry], flags: u64, switches: bool) -> Position {
        let words = self.layout.words();
        let mut parts: Vec<&[Entry]> = entries.chunks(entries_in(words)).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let (last, keeps_contents) = (parts.len() - 1, self.io.cell > 0);
        let mut next = at;
        let block = |(index, part): (usize, &&[Entry])| {
            let flags = if index == last { flags } else { 0 };
            let block = if keeps_contents { log::entries_block(words, next, flags, part) } else { Vec::new() };
            next = next.behind(&block);
            block
        };
        let blocks: Vec<Vec<u64>> = parts.iter().enumerate().map(block).collect();
        let joined = std::mem::take(&mut self.log.joining);
        joined.iter().for_each(|slot| self.io.take_effect(*slot));
        let cleaned = std::mem::take(&mut self.cleaned);
        let writes = self.send_blocks(area, at.block, &blocks, Purpose::Commit);
        self.counts.commits += 1;
        self.counts.log_blocks += blocks.len() as u64;
        self.log.commit = Some(Commit { writes, failed: None, joined, cleaned, switches });
        next
    }

    /// Sends blocks one behind the other, without words where contents are not kept; gives back with how many writes.
    fn send_blocks(&mut self, area: u32, first: u32, blocks: &[Vec<u64>], purpose: Purpose) -> u32 {
        let (mut writes, mut sent) = (0, 0);
        while sent < blocks.len() as u32 {
            let place = self.layout.block_place(area, first + sent);
            let before_end = self.layout.segment_units - place % self.layout.segment_units;
            let count = MOST_BLOCKS.min(before_end).min(blocks.len() as u32 - sent);
            let sector = self.layout.sector_of(place);
            let mut cells = Vec::new();
            for (index, words) in (sent..).zip(&blocks[sent as usize..(sent + count) as usize]) {
                let sector = self.layout.sector_of(self.layout.block_place(area, first + index));
                self.put_cells(sector, words, &mut cells);
            }
            self.send(Request::new(Op::Write, sector, u64::from(count) * self.layout.per_unit), &cells, purpose);
            (writes, sent) = (writes + 1, sent + count);
        }
        writes
    }

    /// A block as the sectors of the drive. Where the drive keeps a stamp of a sector alone, it is told what the stamp means.
    fn put_cells(&mut self, sector: u64, words: &[u64], cells: &mut Vec<u8>) {
        match self.io.cell {
            0 => {}
            512 => cells.extend(words.iter().flat_map(|word| word.to_le_bytes())),
            cell => {
                let stamp = log::hash(words);
                for _ in 0..self.layout.per_unit {
                    cells.extend_from_slice(&stamp.to_le_bytes());
                    cells.resize(cells.len() + cell - 8, 0);
                }
                self.io.array.device_mut(0).keep_meaning(sector, stamp, words);
            }
        }
    }

    /// A write of a commit has ended.
    pub(super) fn commit_write_ended(&mut self, status: Status) {
        let commit = self.log.commit.as_mut().expect("a commit is on its way");
        commit.writes -= 1;
        if status != Status::Success {
            commit.failed = Some(status);
        }
        if commit.writes > 0 {
            return;
        }
        let Commit { failed, joined, cleaned, switches, .. } = self.log.commit.take().expect("it was there");
        match failed {
            None => {
                if switches {
                    let Checkpoint { area, next, is_void, .. } = self.log.checkpoint.take().expect("a commit ended it");
                    (self.log.area, self.log.next) = (area, next);
                    // Behind a power cut a block may be missing that was sent later: nothing was.
                    self.log.must_switch = is_void;
                    self.counts.checkpoints += 1;
                }
                self.finish_commit(joined, cleaned);
            }
            Some(status) if is_void(status) => {
                self.log.must_switch = true;
                if switches {
                    self.log.checkpoint = None;
                }
                self.log.joining.splice(0..0, joined);
                self.cleaned.splice(0..0, cleaned);
            }
            Some(status) => {
                // What it had is not on the drive, and no other commit has it.
                self.log.must_switch = true;
                self.stop_writing(status);
                joined.into_iter().for_each(|slot| self.answer(slot, status));
            }
        }
    }

    /// What these commands changed is on the drive, and that these segments hold nothing.
    fn finish_commit(&mut self, joined: Vec<u32>, cleaned: Vec<u32>) {
        self.to_trim.extend(cleaned);
        joined.into_iter().for_each(|slot| self.answer(slot, Status::Success));
    }

    /// Begins a checkpoint in the other area, if none is on its way.
    fn begin_checkpoint(&mut self) {
        if self.log.checkpoint.is_some() {
            return;
        }
        let area = 1 - self.log.area;
        self.trim(area * self.layout.area_segments, self.layout.area_segments);
        self.log.newest += 1;
        let next = Position::first(self.log.newest);
        self.log.checkpoint = Some(Checkpoint { area, page: 0, next, writes: 0, is_void: false, since: Vec::new() });
        self.write_map();
    }

    /// Writes pages of the map, as many as may be in flight. A page that names no place is left out.
    pub(super) fn write_map(&mut self) {
        let (words, pages, keeps_contents) = (self.layout.words(), self.layout.map_pages(), self.io.cell > 0);
        let per_page = mapped_in(words) as u32;
        while let Some(checkpoint) = &mut self.log.checkpoint {
            if checkpoint.is_void || checkpoint.writes >= MOST_WRITES || checkpoint.page == pages {
                return;
            }
            let at = checkpoint.next.block;
            let mut blocks = Vec::new();
            while checkpoint.page < pages && (blocks.len() as u32) < MOST_BLOCKS {
                let first = checkpoint.page * per_page;
                let places = self.map.places(first..(first + per_page).min(self.map.len()));
                if places.iter().any(|place| *place != NOWHERE) {
                    let block = || log::map_block(words, checkpoint.next, checkpoint.page, places);
                    let block = if keeps_contents { block() } else { Vec::new() };
                    checkpoint.next = checkpoint.next.behind(&block);
                    blocks.push(block);
                }
                checkpoint.page += 1;
            }
            let area = checkpoint.area;
            self.counts.map_blocks += blocks.len() as u64;
            let writes = self.send_blocks(area, at, &blocks, Purpose::Map);
            self.log.checkpoint.as_mut().expect("it is on its way").writes += writes;
        }
    }

    /// A write of the checkpoint has ended.
    pub(super) fn map_write_ended(&mut self, status: Status) {
        let checkpoint = self.log.checkpoint.as_mut().expect("a checkpoint is on its way");
        checkpoint.writes -= 1;
        match status {
            Status::Success => {}
            status if is_void(status) => checkpoint.is_void = true,
            status => self.stop_writing(status),
        }
    }
}

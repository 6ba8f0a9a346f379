//! Check-points (AMF, section 3.2): when one is made, and its way to the drive.
//!
//! ```text
//!   wanted -> ready   what is cleaned of the inode map is in memory
//!          -> encode  one instant: all dirty metadata is sent
//!          -> settle  everything that was sent up to then has completed; flush where the drive has a cache
//!          -> commit  the check-point itself
//!          -> durable calls that wait are answered, and segments without contents are trimmed
//! ```

use ssdlab_base::{Op, Request};

use crate::core::view::Looks;
use crate::core::{Stop, View};
use crate::format::checkpoint::LOGS;
use crate::format::{BLOCK_SECTORS, Bytes};
use crate::log_structured::{LogStructured, Purpose};
use crate::seeded::{FsBug, seeded};
use crate::tasks::Work;

/// Most blocks of a write command.
const MOST_BLOCKS: usize = 128;

/// Where the check-point on its way is.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    /// A task gets ready what it needs.
    Ready,
    /// Writes up to this number are to end.
    Settle(u64),
    Flush,
    /// So many commands of the check-point itself are to end.
    Commit(u32),
}

/// Check-points, and where they go.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    step: Step,
    /// Another one is to be made.
    pub(crate) is_wanted: bool,
    /// The next is the last before an unmount.
    pub(crate) is_last: bool,
    /// Tasks that wait for the next one, and for that on its way.
    pub(crate) next: Vec<u32>,
    joined: Vec<u32>,
    /// Segments that the one on its way calls free.
    leaving: Vec<u32>,
    /// Metadata blocks that it does not need and the one before did.
    stale: Vec<u32>,
    blocks: Vec<Box<Bytes>>,
    /// The check-point segment in use, the next block of it, and the newest version of all.
    pub(crate) segment: u32,
    pub(crate) block: u32,
    pub(crate) version: u64,
    /// The next goes to the other segment, whatever room is left.
    pub(crate) must_switch: bool,
    /// The one on its way is the first of its segment, and cleans segments of the inode map.
    pub(crate) is_switching: bool,
    pub(crate) is_cleaning_map: bool,
    /// Segments to trim, and trims on their way.
    pub(crate) to_trim: Vec<u32>,
    pub(crate) trims: u32,
    /// What completes may be lost until it is flushed.
    pub(crate) has_write_cache: bool,
}

impl Checkpoints {
    pub(crate) fn new(segment: u32, block: u32, version: u64) -> Checkpoints {
        Checkpoints {
            step: Step::Idle,
            is_wanted: false,
            is_last: false,
            next: Vec::new(),
            joined: Vec::new(),
            leaving: Vec::new(),
            stale: Vec::new(),
            blocks: Vec::new(),
            segment,
            block,
            version,
            must_switch: false,
            is_switching: false,
            is_cleaning_map: false,
            to_trim: Vec::new(),
            trims: 0,
            has_write_cache: false,
        }
    }

    /// Whether one is on its way that no later call is part of.
    pub(crate) const fn is_encoded(&self) -> bool {
        matches!(self.step, Step::Settle(_) | Step::Flush | Step::Commit(_))
    }

    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.step, Step::Idle)
    }

    /// A call waits for the one on its way.
    pub(crate) fn join(&mut self, task: u32) {
        self.joined.push(task);
    }

    /// Tasks that will never see the end.
    pub(crate) fn give_up(&mut self) -> Vec<u32> {
        let mut tasks = std::mem::take(&mut self.next);
        tasks.append(&mut self.joined);
        tasks
    }
}

impl LogStructured {
    /// Takes the check-point as far as it goes; true if it went on.
    pub(crate) fn run_checkpoint(&mut self) -> bool {
        if self.core.read_only.is_some() {
            let tasks = self.checkpoints.give_up();
            self.checkpoints.is_wanted = false;
            let any = !tasks.is_empty();
            self.runnable.extend(tasks);
            return any;
        }
        match self.checkpoints.step {
            Step::Idle if self.checkpoints.is_wanted => {
                self.checkpoints.is_wanted = false;
                self.checkpoints.step = Step::Ready;
                self.start(Work::Checkpoint);
                true
            }
            Step::Settle(last) if !self.writes_are_open(last) || seeded(FsBug::CheckpointBeforeData) => {
                self.core.cache.sent_is_written();
                if self.checkpoints.has_write_cache {
                    self.checkpoints.step = Step::Flush;
                    self.below.send(Request::new(Op::Flush, 0, 0), &[], Purpose::Flush(self.in_place.ended()));
                } else {
                    self.commit();
                }
                true
            }
            _ => false,
        }
    }

    /// Gets ready what a check-point needs, and encodes it at once when it is there.
    pub(crate) fn make_checkpoint(&mut self) -> Result<(), Stop> {
        let victims = self.core.layout.victims(&self.core);
        let view = View::of(&self.core);
        let mut looks = Looks::default();
        for part in self.core.layout.needs(&self.core, &victims) {
            looks.at(view.map(part))?;
        }
        looks.end()?;
        self.core.metrics.checkpoints += 1;
        self.checkpoints.is_cleaning_map = !victims.is_empty();
        match self.core.encode_metadata(&victims) {
            Ok(leaving) => {
                self.end_cleaning_of(&leaving);
                self.checkpoints.leaving = leaving;
                self.checkpoints.stale = self.core.space.take_stale();
            }
            Err(_) => {
                self.core.set_read_only("no free segment is left for a check-point".to_string());
                self.checkpoints.step = Step::Idle;
                return Ok(());
            }
        }
        let version = self.checkpoints.version + 1;
        let is_clean = std::mem::take(&mut self.checkpoints.is_last);
        let (segment_blocks, unit) = (self.core.superblock.segment_blocks, self.core.superblock.unit_blocks);
        let volume = self.core.superblock.volume;
        let padded = |blocks: usize| (blocks as u32).next_multiple_of(unit);
        let mut blocks = self.core.checkpoint(version, false, is_clean).encode(volume);
        let overwrites = !self.core.layout.appends_checkpoints();
        if overwrites || self.checkpoints.must_switch || self.checkpoints.block + padded(blocks.len()) > segment_blocks
        {
            self.checkpoints.must_switch = false;
            blocks = self.core.checkpoint(version, true, is_clean).encode(volume);
            if padded(blocks.len()) > segment_blocks {
                self.core.set_read_only(format!("a check-point of {} blocks needs more than a segment", blocks.len()));
                self.checkpoints.step = Step::Idle;
                return Ok(());
            }
            // The newest check-point is durable in the segment in use: the other has old versions alone.
            let other = 3 - self.checkpoints.segment;
            (self.checkpoints.segment, self.checkpoints.block) = (other, 0);
            if self.core.layout.appends_checkpoints() {
                self.checkpoints.is_switching = true;
                self.core.metrics.checkpoint_switches += 1;
                let sectors = u64::from(segment_blocks) * BLOCK_SECTORS;
                let trim = Request::new(Op::Trim, u64::from(other) * sectors, sectors);
                self.below.send(trim, &[], Purpose::TrimCheckpoints);
            }
        }
        self.core.logs.all_saved();
        self.core.logs.version = version;
        self.checkpoints.version = version;
        self.checkpoints.blocks = blocks;
        let joined = std::mem::take(&mut self.checkpoints.next);
        self.checkpoints.joined.extend(joined);
        self.send_outbox();
        self.checkpoints.step = Step::Settle(self.last_write);
        if seeded(FsBug::TrimBeforeCheckpoint) {
            let leaving = std::mem::take(&mut self.checkpoints.leaving);
            self.checkpoints.to_trim.extend(leaving);
        }
        Ok(())
    }

    /// Sends the check-point itself.
    pub(crate) fn commit(&mut self) {
        let blocks = std::mem::take(&mut self.checkpoints.blocks);
        let (unit, cell) = (self.core.superblock.unit_blocks, self.core.cell);
        self.core.metrics.checkpoint_blocks += blocks.len() as u64;
        let count = (blocks.len() as u32).next_multiple_of(unit);
        self.core.metrics.padding_blocks += u64::from(count) - blocks.len() as u64;
        let first = self.checkpoints.segment * self.core.superblock.segment_blocks + self.checkpoints.block;
        self.checkpoints.block += count;
        let mut sent = 0;
        let step = (MOST_BLOCKS as u32).next_multiple_of(unit);
        let mut commands = 0;
        while sent < count {
            let part = step.min(count - sent);
            let mut cells = Vec::new();
            for block in sent..sent + part {
                match blocks.get(block as usize) {
                    Some(bytes) if cell == 512 => cells.extend_from_slice(&bytes[..]),
                    _ => cells.resize(cells.len() + BLOCK_SECTORS as usize * cell, 0),
                }
            }
            let at = u64::from(first + sent) * BLOCK_SECTORS;
            let request = Request::new(Op::Write, at, u64::from(part) * BLOCK_SECTORS);
            let request = Request { fua: self.checkpoints.has_write_cache, ..request };
            self.below.send(request, &cells, Purpose::Checkpoint);
            if cell != 512 {
                for block in (sent..sent + part).filter(|block| (*block as usize) < blocks.len()) {
                    let at = u64::from(first + block) * BLOCK_SECTORS;
                    self.below.device_mut().keep_record(at, &blocks[block as usize][..]);
                }
            }
            (sent, commands) = (sent + part, commands + 1);
        }
        self.checkpoints.step = Step::Commit(commands);
    }

    /// A command of the check-point itself has ended well.
    pub(crate) fn commit_ended(&mut self) {
        let Step::Commit(commands) = &mut self.checkpoints.step else { return };
        *commands -= 1;
        if *commands > 0 {
            return;
        }
        self.checkpoints.step = Step::Idle;
        (self.checkpoints.is_switching, self.checkpoints.is_cleaning_map) = (false, false);
        let joined = std::mem::take(&mut self.checkpoints.joined);
        self.runnable.extend(joined);
        if let Some(bits) = &mut self.core.space.bits {
            bits.is_told();
        }
        (self.core.without_thread, self.has_no_victim) = ([false; LOGS], false);
        let leaving = std::mem::take(&mut self.checkpoints.leaving);
        self.checkpoints.to_trim.extend(leaving);
        for address in std::mem::take(&mut self.checkpoints.stale) {
            self.below.device_mut().drop_record(u64::from(address) * BLOCK_SECTORS);
        }
        self.checkpoint_at = self.after(self.core.options.checkpoint_period);
        self.core.cleaned.clear();
        self.room_may_have_come();
    }

    /// A check-point is not made, since a write failed.
    pub(crate) fn abandon_checkpoint(&mut self) {
        self.checkpoints.step = Step::Idle;
    }

    /// Trims what check-points have made free, when nothing reads it.
    pub(crate) fn trim(&mut self) -> bool {
        if self.checkpoints.to_trim.is_empty() || self.core.read_only.is_some() {
            return false;
        }
        let mut segments = std::mem::take(&mut self.checkpoints.to_trim);
        segments.sort_unstable();
        let (ready, read): (Vec<u32>, Vec<u32>) =
            segments.into_iter().partition(|segment| self.core.space.get(*segment).reading == 0);
        self.checkpoints.to_trim = read;
        if !self.below.device().trims() {
            // A disk takes none: what a check-point freed is free.
            ready.iter().for_each(|segment| self.is_free(*segment));
            self.room_may_have_come();
            return !ready.is_empty();
        }
        for run in ready.chunk_by(|a, b| a + 1 == *b) {
            self.send_trim(run[0], run.len() as u32);
        }
        !ready.is_empty()
    }

    pub(crate) fn send_trim(&mut self, first: u32, count: u32) {
        let sectors = u64::from(self.core.superblock.segment_blocks) * BLOCK_SECTORS;
        let request = Request::new(Op::Trim, u64::from(first) * sectors, u64::from(count) * sectors);
        self.checkpoints.trims += 1;
        self.core.metrics.trimmed_segments += u64::from(count);
        self.below.send(request, &[], Purpose::Trim(first, count));
    }

    /// A TRIM of segments has ended.
    pub(crate) fn trim_ended(&mut self, first: u32, count: u32) {
        self.checkpoints.trims -= 1;
        (first..first + count).for_each(|segment| self.is_free(segment));
        self.room_may_have_come();
    }

    fn is_free(&mut self, segment: u32) {
        self.core.forget_summary(segment);
        self.core.space.set_free(segment);
    }
}

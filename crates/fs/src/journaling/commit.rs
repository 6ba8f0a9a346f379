//! A commit: what a transaction has becomes durable at once.
//!
//! ```text
//!   (ext3: dirty pages are sent) -> the instant -> ordered data has ended -> blocks to the journal -> flush -> commit block (FUA)
//! ```
//!
//! Calls go on with the next transaction from the instant on. Fsyncs that come while a commit is at work share the next one.

use ssdlab_base::{Op, Request};

use super::format::log::{Of, REVOKES, Record, Sum, TAGS, Tail, blocks_of};
use super::system::{Journaling, Purpose};
use super::write_out::MOST_BLOCKS;
use crate::format::Bytes;
use crate::seeded::{FsBug, seeded};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// Dirty pages are sent first, by the rules of ext3.
    Data,
    /// Data that goes before is on its way.
    Ordered,
    /// So many commands to the journal are on their way.
    Log(usize),
    Flush,
    Block,
}

/// The commit at work, and who waits for the next one.
#[derive(Debug, Default)]
pub(crate) struct Commit {
    step: Step,
    pub(crate) is_wanted: bool,
    /// Tasks that wait for the one at work, and for the next one.
    pub(crate) joined: Vec<u32>,
    pub(crate) next: Vec<u32>,
    /// Number of the transaction.
    sequence: Option<u64>,
    /// The commit block and its place.
    block: Option<(u32, Box<Bytes>)>,
    /// The log was empty, and its superblock is written as well.
    has_superblock: bool,
}

impl Commit {
    pub(crate) fn is_idle(&self) -> bool {
        self.step == Step::Idle
    }

    /// Whether it writes the superblock of the journal.
    pub(crate) const fn writes_superblock(&self) -> bool {
        self.has_superblock
    }

    /// Number of the transaction that is in the log and not committed yet.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.unwrap_or(u64::MAX)
    }
}

/// Blocks that are freed when nothing writes them any more.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) runs: Vec<(u32, u32)>,
    /// The last write that may be one to them.
    pub(crate) last: u64,
}

impl Journaling {
    /// Goes on with the commit; true if anything happened.
    pub(super) fn run_commit(&mut self) -> bool {
        if self.core.read_only.is_some() {
            return false;
        }
        match self.commit.step {
            Step::Idle if self.commit.is_wanted => {
                if !self.core.is_changed() {
                    self.commit.is_wanted = false;
                    let next = std::mem::take(&mut self.commit.next);
                    self.runnable.extend(next);
                    self.commit_ended();
                    return true;
                }
                if self.core.delays() {
                    return self.close();
                }
                // Calls that write wait until the instant, which comes at once unless a page was changed on its way.
                self.core.is_closing = true;
                self.commit.step = Step::Data;
                true
            }
            Step::Data => self.close_after_data(),
            Step::Ordered => self.write_log(),
            Step::Idle | Step::Log(_) | Step::Flush | Step::Block => false,
        }
    }

    /// By the rules of ext3, all dirty pages are sent before the instant.
    fn close_after_data(&mut self) -> bool {
        let any = match self.send_all(true) {
            Ok(any) => any,
            Err(()) => return false,
        };
        // A page that was changed on its way is sent again before.
        let is_late = self.core.files.values().any(|file| !file.growing.is_empty());
        any | (!is_late && self.close())
    }

    /// The instant, where there is room in the log.
    fn close(&mut self) -> bool {
        let running = &self.core.running;
        let needed = blocks_of(running.blocks.len(), running.revoked.len());
        if needed > self.log.capacity() {
            let most = self.log.capacity();
            self.core
                .set_read_only(format!("a transaction of {needed} blocks needs more than the {most} of the journal"));
            return true;
        }
        if needed > self.log.free() {
            return std::mem::replace(&mut self.wants_log, needed) == 0;
        }
        self.core.close_transaction();
        self.commit.is_wanted = false;
        self.commit.joined = std::mem::take(&mut self.commit.next);
        self.commit.step = Step::Ordered;
        self.commit_at = ssdlab_base::Nanos::MAX;
        self.core.is_closing = false;
        self.core.metrics.checkpoints += 1;
        if seeded(FsBug::DiscardBeforeCommit) {
            self.release_freed();
        }
        self.transaction_began();
        true
    }

    /// Writes the blocks to the journal, when the data before them has ended.
    fn write_log(&mut self) -> bool {
        let Some(closing) = &mut self.core.committing else { return false };
        while let Some(write) = closing.ordered.first()
            && !self.core.open_writes.contains(write)
        {
            closing.ordered.pop_first();
        }
        if (!closing.ordered.is_empty() && !seeded(FsBug::OrderedDataNotAwaited))
            || matches!(self.home, super::home::Step::Tail(_))
        {
            return false;
        }
        let volume = self.core.superblock.volume;
        let (images, revoked) = (&closing.images, &closing.revoked);
        let was_empty = self.log.is_empty;
        let (sequence, places) = self.log.take(blocks_of(images.len(), revoked.len()));
        let of = Of { volume, epoch: self.log.epoch, sequence };
        let mut blocks: Vec<Box<Bytes>> = Vec::with_capacity(places.len());
        let all: Vec<(u32, &Box<Bytes>)> = images.iter().map(|(address, image)| (*address, image)).collect();
        for part in all.chunks(TAGS) {
            blocks.push(Record::Descriptor(part.iter().map(|(address, _)| *address).collect()).encode(of));
            blocks.extend(part.iter().map(|(_, image)| (*image).clone()));
        }
        let revoked: Vec<u32> = revoked.iter().copied().collect();
        blocks.extend(revoked.chunks(REVOKES).map(|part| Record::Revoke(part.to_vec()).encode(of)));
        let mut sum = Sum::new(volume);
        blocks.iter().for_each(|block| sum.add(block));
        let last = self.log.address(places[places.len() - 1]);
        self.commit.block = Some((last, Record::Commit(sum.end()).encode(of)));
        self.commit.sequence = Some(sequence);
        self.core.metrics.journal_blocks += blocks.len() as u64;
        let placed: Vec<(u32, Box<Bytes>)> = places.iter().map(|place| self.log.address(*place)).zip(blocks).collect();
        let mut commands = 0;
        for run in placed.chunk_by(|a, b| a.0 + 1 == b.0) {
            for part in run.chunks(MOST_BLOCKS as usize) {
                self.send_metadata(part, false, Purpose::Log);
                commands += 1;
            }
        }
        if was_empty {
            self.log.is_empty = false;
            self.commit.has_superblock = true;
            let tail = Tail { start: places[0], sequence, epoch: self.log.epoch };
            self.core.metrics.journal_blocks += 1;
            self.send_metadata(&[(self.log.address(0), tail.encode(volume))], false, Purpose::Log);
            commands += 1;
        }
        self.commit.step = Step::Log(commands);
        true
    }

    /// A command to the journal has ended.
    pub(super) fn log_written(&mut self) {
        let Step::Log(commands) = &mut self.commit.step else { return };
        *commands -= 1;
        if *commands > 0 {
            return;
        }
        if !self.has_write_cache || seeded(FsBug::CommitBeforeFlush) {
            return self.send_commit_block();
        }
        self.commit.step = Step::Flush;
        self.core.homes.flushes += 1;
        self.below.send(Request::new(Op::Flush, 0, 0), &[], Purpose::FlushLog(self.core.homes.flushes));
    }

    /// The device has flushed what the commit block stands for.
    pub(super) fn log_flushed(&mut self, flush: u64) {
        self.core.homes.is_flushed(flush);
        if self.commit.step == Step::Flush {
            self.send_commit_block();
        }
    }

    fn send_commit_block(&mut self) {
        let Some(block) = self.commit.block.take() else { return };
        self.commit.step = Step::Block;
        self.core.metrics.journal_blocks += 1;
        let fua = self.has_write_cache;
        self.send_metadata(&[block], fua, Purpose::Commit);
    }

    /// The transaction is durable.
    pub(super) fn committed(&mut self) {
        if self.commit.step != Step::Block {
            return;
        }
        self.commit.step = Step::Idle;
        self.commit.has_superblock = false;
        self.release_freed();
        let (Some(closed), Some(sequence)) = (self.core.committing.take(), self.commit.sequence.take()) else { return };
        for address in &closed.revoked {
            self.core.homes.forget(*address);
        }
        let mut images = closed.images;
        closed.revoked.iter().for_each(|address| drop(images.remove(address)));
        self.core.homes.commit(sequence, self.core.now, images);
        let joined = std::mem::take(&mut self.commit.joined);
        self.runnable.extend(joined);
        self.commit_ended();
    }

    /// Blocks that the transaction freed can be trimmed and used again, when no write to them is on its way.
    fn release_freed(&mut self) {
        let last = self.core.last_write;
        if let Some(closed) = &mut self.core.committing {
            let runs = std::mem::take(&mut closed.freed);
            if !runs.is_empty() {
                self.releases.push(Release { runs, last });
            }
        }
    }

    /// The commit does not come to its end: a command failed.
    pub(super) fn abandon_commit(&mut self) {
        let waiting = std::mem::take(&mut self.commit.joined).into_iter().chain(std::mem::take(&mut self.commit.next));
        self.runnable.extend(waiting);
        self.commit.step = Step::Idle;
        self.commit.is_wanted = false;
    }

    /// Trims what commits have freed, and lets it be used again.
    pub(super) fn release(&mut self) -> bool {
        if self.releases.is_empty() || self.core.read_only.is_some() {
            return false;
        }
        let releases = std::mem::take(&mut self.releases);
        let (ready, waiting): (Vec<Release>, Vec<Release>) =
            releases.into_iter().partition(|release| !self.core.writes_are_open(release.last));
        self.releases = waiting;
        let trims = self.core.options.discard && self.below.device().trims();
        let any = !ready.is_empty();
        for release in ready {
            let mut runs = release.runs;
            runs.sort_unstable();
            let mut joined: Vec<(u32, u32)> = Vec::new();
            for (first, count) in runs {
                match joined.last_mut() {
                    Some((begin, length)) if *begin + *length == first => *length += count,
                    _ => joined.push((first, count)),
                }
            }
            for (first, count) in joined {
                if trims {
                    self.send_trim(first, count);
                } else {
                    self.core.release_blocks(first, count);
                    self.room_came();
                }
            }
        }
        any
    }
}

//! Cleaning: dirty blocks go from the cache to the disk, in the disk's order, and count as clean when the disk has them on its
//! medium and the metadata says so.

use std::collections::BTreeMap;
use std::ops::Range;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Status;

use super::layout::BLOCK_SECTORS;
use super::metadata_writes::Waiter;
use super::{CACHE, DISK, FlashCache, Purpose};
use crate::layer::Ended;
use crate::seeded::{LayerBug, seeded};

/// Why blocks are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// More of their set is dirty than should be.
    Threshold,
    /// They were not used for long.
    Fallow,
    /// A command goes past the cache.
    Invalidation,
    /// The host stops.
    Close,
}

impl Cause {
    pub(super) const ALL: [Cause; 4] = [Cause::Threshold, Cause::Fallow, Cause::Invalidation, Cause::Close];

    /// Its name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Cause::Threshold => "threshold",
            Cause::Fallow => "fallow",
            Cause::Invalidation => "invalidation",
            Cause::Close => "close",
        }
    }
}

/// Blocks that are cleaned together.
pub(super) struct Job {
    /// Each with its slot, in the order of the disk.
    blocks: Vec<(u32, u32)>,
    /// The command that waits for it; without one the blocks are the job's own.
    owner: Option<u32>,
    numbers: Vec<u64>,
    /// The layer's epoch in which it began.
    epoch: u64,
    left: u32,
    has_failed: bool,
    cells: Vec<u8>,
    writes: u32,
}

impl Job {
    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|(block, _)| *block)
    }

    /// Blocks that follow one another on the disk.
    fn runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for index in 0..self.blocks.len() {
            match runs.last_mut() {
                Some(run) if self.blocks[run.end - 1].0 + 1 == self.blocks[index].0 => run.end += 1,
                _ => runs.push(index..index + 1),
            }
        }
        runs
    }
}

impl FlashCache {
    /// Whether the devices take what makes a block clean.
    pub(super) fn may_clean(&self) -> bool {
        self.refuses.is_none() && self.disk_refuses.is_none()
    }

    /// Blocks of a set may have to be cleaned.
    pub(super) fn may_need_cleaning(&mut self, set: u32) {
        if self.sets.dirty_of(set) > 0 && self.is_eligible.insert(set) {
            self.eligible.push_back(set);
        }
    }

    /// Dirty blocks that a set may have.
    fn most_dirty(&self) -> u32 {
        if self.closes {
            return 0;
        }
        (u64::from(self.sets.set_blocks()) * u64::from(self.config.dirty_threshold) / 100) as u32
    }

    /// Cleans sets with too many dirty blocks, within the limits on writes in flight.
    pub(super) fn clean_eligible(&mut self) {
        while self.may_clean()
            && self.cleaning_writes < self.config.clean_writes_total
            && let Some(set) = self.eligible.pop_front()
        {
            self.is_eligible.remove(&set);
            if self.is_cleaned.contains(&set) {
                // It is looked at again when that has ended.
                continue;
            }
            let Some((blocks, cause)) = self.choose(set) else { continue };
            self.is_cleaned.insert(set);
            self.clean(blocks, None, cause);
        }
    }

    /// Dirty blocks of a set to clean: those that would be replaced first, and dirty neighbours on the disk.
    fn choose(&self, set: u32) -> Option<(Vec<(u32, u32)>, Cause)> {
        let over = self.sets.dirty_of(set).saturating_sub(self.most_dirty()) as usize;
        if over == 0 && self.fallow.is_empty() {
            return None;
        }
        let most = self.config.clean_writes_set.min(self.config.clean_writes_total - self.cleaning_writes) as usize;
        let may_go = |slot: u32| {
            let block = self.sets.block_in(slot)?;
            let is_free = !self.busy.has_change(&FlashCache::block_as_change(block));
            (self.sets.is_dirty(slot) && !self.stuck.contains(&slot) && is_free).then_some(block)
        };
        let mut chosen = BTreeMap::new();
        let (mut runs, mut any_over) = (0, false);
        for slot in self.sets.dirty_in_order(set) {
            let is_over = chosen.len() < over;
            let Some(block) = may_go(slot).filter(|_| is_over || self.fallow.contains(&slot)) else { continue };
            if chosen.contains_key(&block) {
                continue;
            }
            if runs == most {
                break;
            }
            (runs, any_over) = (runs + 1, any_over | is_over);
            chosen.insert(block, slot);
            let dirty = |block: u32| {
                let slot = self.sets.find(block).filter(|_| self.sets.set_of(block) == set)?;
                may_go(slot).map(|_| slot)
            };
            let before = (0..block).rev().map_while(|block| Some((block, dirty(block)?)));
            let behind = (block + 1..).map_while(|block| Some((block, dirty(block)?)));
            chosen.extend(before.chain(behind));
        }
        let cause = match (self.closes, any_over) {
            (true, _) => Cause::Close,
            (false, true) => Cause::Threshold,
            (false, false) => Cause::Fallow,
        };
        (!chosen.is_empty()).then(|| (chosen.into_iter().collect(), cause))
    }

    /// Dirty blocks, each with its slot and in the order of the disk, begin to be cleaned.
    pub(super) fn clean(&mut self, blocks: Vec<(u32, u32)>, owner: Option<u32>, cause: Cause) {
        assert!(blocks.iter().is_sorted() && !blocks.is_empty(), "blocks are cleaned in the order of the disk");
        self.counts.cleaned[cause as usize] += blocks.len() as u64;
        let cell = self.io.cell;
        let cells = vec![0; blocks.len() * BLOCK_SECTORS as usize * cell];
        let epoch = self.epoch;
        let mut job = Job { blocks, owner, numbers: Vec::new(), epoch, left: 0, has_failed: false, cells, writes: 0 };
        if owner.is_none() {
            job.writes = job.runs().len() as u32;
            self.cleaning_writes += job.writes;
            for (block, _) in job.blocks.clone() {
                let number = self.io.next_number();
                // The blocks were free, so the job waits for nothing; no command has this number.
                self.busy.add(number, u32::MAX, &FlashCache::block_as_change(block));
                job.numbers.push(number);
            }
        }
        let mut reads: Vec<(Range<usize>, u32)> = Vec::new();
        for (index, (_, slot)) in job.blocks.iter().enumerate() {
            match reads.last_mut() {
                Some((run, first)) if *first + run.len() as u32 == *slot => run.end += 1,
                _ => reads.push((index..index + 1, *slot)),
            }
        }
        job.left = reads.len() as u32;
        let job = self.jobs.put(job);
        for (run, slot) in reads {
            let sectors = run.len() as u64 * BLOCK_SECTORS;
            let read = Request::new(Op::Read, self.layout.slot_sector(slot), sectors);
            self.io.array.send(CACHE, read, &[], Purpose::Fetch { job, first: run.start, end: run.end });
        }
    }

    /// Blocks have been read from the cache.
    pub(super) fn fetch_ended(&mut self, part: Ended<Purpose>, number: u32, run: Range<usize>) {
        let cell = self.io.cell;
        let job = self.jobs.get_mut(number);
        if part.status == Status::Success {
            if let Some(brought) = part.cells {
                let from = run.start * BLOCK_SECTORS as usize * cell;
                job.cells[from..][..brought.len()].copy_from_slice(&brought);
            }
        } else {
            job.has_failed = true;
            if part.status != Status::Aborted {
                self.counts.cache_errors += 1;
                self.stuck.extend(job.blocks[run].iter().map(|(_, slot)| *slot));
            }
        }
        job.left -= 1;
        if job.left > 0 {
            return;
        }
        if job.has_failed || self.is_job_void(number) {
            return self.end_job(number);
        }
        let fua = self.passes_flushes() && !seeded(LayerBug::CleanUnforced);
        let job = self.jobs.get_mut(number);
        let (runs, cells) = (job.runs(), std::mem::take(&mut job.cells));
        job.left = runs.len() as u32;
        let writes: Vec<_> = runs.into_iter().map(|run| (job.blocks[run.start].0, run)).collect();
        for (block, run) in writes {
            let per_block = BLOCK_SECTORS as usize * cell;
            let brought = if cell == 0 { &[][..] } else { &cells[run.start * per_block..run.end * per_block] };
            let (sector, sectors) = (u64::from(block) * BLOCK_SECTORS, run.len() as u64 * BLOCK_SECTORS);
            self.counts.disk_writes += 1;
            self.counts.disk_written_sectors += sectors;
            let write = Request { fua, ..Request::new(Op::Write, sector, sectors) };
            self.io.array.send(DISK, write, brought, Purpose::Clean(number));
        }
    }

    /// The disk has some of the blocks.
    pub(super) fn clean_ended(&mut self, status: Status, number: u32) {
        let job = self.jobs.get_mut(number);
        job.has_failed |= status != Status::Success;
        job.left -= 1;
        if status.is_error() && status != Status::Aborted {
            self.disk_refuses.get_or_insert(status);
        }
        if job.left > 0 {
            return;
        }
        if job.has_failed || job.epoch != self.epoch {
            return self.end_job(number);
        }
        let slots: Vec<u32> = job.blocks.iter().map(|(_, slot)| *slot).collect();
        slots.iter().for_each(|slot| self.set_dirty(*slot, false));
        if seeded(LayerBug::CleanNotWritten) {
            return self.end_job(number);
        }
        let left = self.write_metadata(&slots, Waiter::Job(number));
        self.jobs.get_mut(number).left = left;
    }

    /// A metadata block says that blocks of a job are clean, or the cache refused it.
    pub(super) fn marked(&mut self, number: u32) {
        let job = self.jobs.get_mut(number);
        job.left -= 1;
        if job.left > 0 {
            return;
        }
        let blocks = job.blocks.clone();
        if self.refuses.is_some() {
            // The metadata may say that they are dirty: the slots take nothing else.
            blocks.iter().for_each(|(_, slot)| self.set_dirty(*slot, true));
        } else if self.is_job_void(number) {
            // The cache may have lost what the disk got of them.
            blocks.iter().for_each(|(block, _)| self.forget(*block));
        }
        self.end_job(number);
    }

    /// Whether a device has lost what it had buffered since a job began.
    fn is_job_void(&mut self, number: u32) -> bool {
        self.jobs.get_mut(number).epoch != self.epoch
    }

    /// A job is over: its blocks go to others, and the command that waited goes on.
    fn end_job(&mut self, number: u32) {
        let job = self.jobs.take(number);
        for (block, number) in job.blocks().zip(&job.numbers) {
            self.busy.remove(*number, &FlashCache::block_as_change(block));
        }
        self.cleaning_writes -= job.writes;
        match job.owner {
            Some(slot) => self.begin(slot),
            None => {
                let set = self.sets.set_of(job.blocks[0].0);
                self.is_cleaned.remove(&set);
                self.may_need_cleaning(set);
            }
        }
    }

    /// Blocks that were not used for long are cleaned.
    pub(super) fn look_for_fallow(&mut self) {
        let now = self.io.array.now();
        let delay = self.config.fallow_delay.0;
        while let Some((used, slot)) = self.by_use.first().copied()
            && Nanos(used.0.saturating_add(delay)) <= now
        {
            self.by_use.remove(&(used, slot));
            self.used.remove(&slot);
            self.fallow.insert(slot);
            self.may_need_cleaning(self.sets.set_of_slot(slot));
        }
    }
}

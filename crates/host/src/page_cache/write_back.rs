//! Write-back: dirty blocks go down in the order of addresses, those that follow one another in one request.

use std::ops::Range;

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::Status;

use super::{PageCache, Purpose};
use crate::seeded::{LayerBug, seeded};

/// Why blocks are written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// More than the background limit is dirty.
    Background,
    /// Writers wait.
    Limit,
    /// They have been dirty for long.
    Expiry,
    /// A flush waits for them.
    Flush,
}

impl Cause {
    pub(super) const ALL: [Cause; 4] = [Cause::Background, Cause::Limit, Cause::Expiry, Cause::Flush];

    /// Its name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Cause::Background => "background",
            Cause::Limit => "limit",
            Cause::Expiry => "expiry",
            Cause::Flush => "flush",
        }
    }
}

/// Blocks on their way down.
pub(super) struct Job {
    number: u64,
    blocks: Range<u32>,
    /// Since when the oldest of them was dirty.
    oldest: Nanos,
    /// Commands that wait for their end.
    waiters: Vec<u32>,
}

impl PageCache {
    /// Sends what has to be written, as much as may be in flight.
    pub(super) fn write_back(&mut self) {
        if self.refuses.is_some() {
            return;
        }
        while self.jobs.len() < self.config.writes as usize
            && let Some(cause) = self.cause()
        {
            let Some(run) = self.next_run(cause) else { return };
            self.send_run(run, cause);
        }
    }

    /// Why something has to be written now.
    fn cause(&self) -> Option<Cause> {
        if self.a_flush_waits_for_dirty() {
            Some(Cause::Flush)
        } else if self.any_writer_waits() {
            Some(Cause::Limit)
        } else if self.pages.dirty() > self.background_limit {
            Some(Cause::Background)
        } else {
            (!self.expired.is_empty()).then_some(Cause::Expiry)
        }
    }

    /// The next blocks in the order of addresses.
    fn next_run(&mut self, cause: Cause) -> Option<Range<u32>> {
        let most = (self.config.write_size / super::config::BLOCK_BYTES) as u32;
        if cause == Cause::Expiry {
            while let Some(first) = self.expired.pop_front() {
                if !self.pages.is_to_write(first) {
                    continue;
                }
                let mut end = first + 1;
                while end - first < most && self.expired.front() == Some(&end) && self.pages.is_to_write(end) {
                    self.expired.pop_front();
                    end += 1;
                }
                return Some(first..end);
            }
            return None;
        }
        let first = self.pages.next_to_write(self.cursor)?;
        let end = first + self.pages.run_to_write(first, most);
        self.cursor = end;
        Some(first..end)
    }

    fn send_run(&mut self, blocks: Range<u32>, cause: Cause) {
        let cell = self.io.cell;
        let sectors = self.sectors_of(&blocks);
        let mut cells = Vec::with_capacity((sectors.end - sectors.start) as usize * cell);
        let mut oldest = Nanos::MAX;
        for block in blocks.clone() {
            let page = self.pages.find(block).expect("a dirty block is cached");
            oldest = oldest.min(Nanos(self.pages.since(page)));
            cells.extend_from_slice(self.pages.contents(page));
            self.pages.begin_writing(page);
        }
        cells.truncate((sectors.end - sectors.start) as usize * cell);
        self.counts.written_back[cause as usize] += blocks.len() as u64;
        self.counts.writes += 1;
        self.newest_job += 1;
        let number = self.newest_job;
        self.in_flight.insert(number);
        let job = self.jobs.put(Job { number, blocks, oldest, waiters: Vec::new() });
        let request = Request::new(Op::Write, sectors.start, sectors.end - sectors.start);
        self.io.array.send(0, request, &cells, Purpose::Write(job));
    }

    /// Write-back of some blocks has ended.
    pub(super) fn written(&mut self, job: u32, status: Status) {
        let Job { number, blocks, oldest, waiters } = self.jobs.take(job);
        self.in_flight.remove(&number);
        for block in blocks {
            let page = self.pages.find(block).expect("a block stays while it is written");
            if status != Status::Success {
                self.pages.undo_writing(page, oldest);
                continue;
            }
            self.pages.end_writing(page);
            if seeded(LayerBug::WriteBackCleansNewer) {
                self.pages.clean(page);
            }
        }
        if !matches!(status, Status::Success | Status::Aborted) {
            self.refuses = Some(status);
        }
        for slot in waiters {
            if self.io.command(slot).ends() {
                self.go_through(slot);
            }
        }
    }

    /// Whether copies of some blocks are on their way down: the command goes on when they are there. A task that sleeps on a page
    /// unplugs the queue (Linux 2.6.33, `sync_page` in mm/filemap.c).
    pub(super) fn wait_for_write_back(&mut self, slot: u32, blocks: &Range<u32>) -> bool {
        let overlaps = |job: &Job| job.blocks.start < blocks.end && blocks.start < job.blocks.end;
        let mut waits = 0;
        for (_, job) in self.jobs.all_mut().filter(|(_, job)| overlaps(job)) {
            job.waiters.push(slot);
            waits += 1;
        }
        self.io.command(slot).left += waits;
        if waits > 0 {
            self.io.array.unplug();
        }
        waits > 0
    }

    /// When the next look for old blocks is due that will find one; looks are at multiples of `period`.
    pub(super) fn next_look(&self) -> Option<Nanos> {
        if !self.io.is_timed || self.refuses.is_some() || !self.expired.is_empty() {
            return None;
        }
        let (period, now) = (self.config.period.0, self.io.array.now().0);
        let expires = |since: u64| since.saturating_add(self.config.expire.0);
        let mut old = expires(self.pages.oldest()?);
        if old <= now {
            // It may be one that a command going through holds back.
            old = expires(self.pages.oldest_to_write()?);
        }
        let tick = old.max(now).div_ceil(period).saturating_mul(period);
        let is_over = self.looked_at.is_some_and(|looked| tick <= looked.0);
        Some(Nanos(if is_over { tick.saturating_add(period) } else { tick }))
    }

    /// Blocks that have been dirty for long enough are written back.
    pub(super) fn look_for_expired(&mut self, now: Nanos) {
        if self.expired.is_empty()
            && let Some(until) = now.0.checked_sub(self.config.expire.0)
        {
            self.expired = self.pages.dirty_since(Nanos(until)).into();
        }
    }
}

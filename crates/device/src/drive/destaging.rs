//! Destaging: dirty units leave the write buffer before a write wants their room (`buffer.destage = "watermark"`).
//!
//! From the high watermark on, and while a write waits for room, the chips are kept at work until dirty data is down at the
//! low watermark. Dirty data is what is in the buffer and not on its way to flash. Who leaves is the policy's choice, page
//! after page; how much leaves at a time is decided here:
//!
//! ```text
//! programs in flight    0 ... stripe - 1 ... 2 stripes - 1
//!                       |---- send a stripe ----|- wait -|
//! ```
//!
//! A stripe is a page of every plane, sent at one instant: the planes of a die program together, and all dies have work.
//! The next one is sent when fewer programs than a stripe's are in flight. Dies that are in step have run out of work just
//! then, so a read finds no more than one program and the next before it; a die that garbage collection holds up is given
//! less than two stripes of programs over all. A batch ends where the FTL's stripe ends, so that planes stay in step when a
//! flush has sent single pages.

use arrayvec::ArrayVec;
use ssdlab_flash::Lpn;

use super::Drive;
use super::buffering::DriveChips;
use super::dispatch::Stall;
use crate::ftl::PREFETCHED;
use crate::{Destage, DriveConfig};

/// A batch takes at most this part of the buffer: small buffers keep something to overwrite.
const BATCHES_IN_BUFFER: u64 = 4;

/// When a drive destages, and how much at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destager {
    /// Dirty sectors from which on it begins, and down to which it goes.
    high: u64,
    low: u64,
    /// Programs in flight below which a batch is sent: a page of every plane.
    stripe_pages: u64,
    /// Pages of a batch at most.
    batch_pages: u64,
    /// It has begun and is not down yet.
    on: bool,
}

impl Destager {
    /// `None` where nothing leaves before its room is wanted.
    pub(super) fn new(config: &DriveConfig) -> Option<Destager> {
        let (buffer, geometry) = (&config.buffer, &config.flash.geometry);
        if buffer.policy == "none" || buffer.destage.when == Destage::OnDemand {
            return None;
        }
        let sectors = buffer.bytes / 512;
        // A percentage of no more than 2^27 sectors.
        let mark = |percent: u32| sectors * u64::from(percent) / 100;
        let stripe_pages = u64::from(geometry.planes());
        let quarter = buffer.bytes / BATCHES_IN_BUFFER / u64::from(geometry.page_bytes);
        Some(Destager {
            high: mark(buffer.destage.high_percent).max(1),
            low: mark(buffer.destage.low_percent),
            stripe_pages,
            batch_pages: stripe_pages.min(quarter).max(1),
            on: false,
        })
    }

    /// Whether it has begun and is not down yet, for checkpoints.
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// Sets whether it has begun and is not down yet, to resume from a checkpoint.
    pub(super) const fn set_on(&mut self, on: bool) {
        self.on = on;
    }
}

impl Drive {
    /// Sends batches of units to flash for as long as there is reason to and the chips have little to do.
    #[inline]
    pub(super) fn destage(&mut self) {
        if self.stage.destager.is_some() {
            self.destage_batches();
        }
    }

    fn destage_batches(&mut self) {
        if self.stage.destage_waits || self.failures.read_only {
            return;
        }
        let current = self.waiting.current.take();
        self.destage_while_due();
        self.waiting.current = current;
    }

    fn destage_while_due(&mut self) {
        while let Some(pages) = self.next_batch() {
            let end = self.stage.programs_sent + pages;
            let before = self.counters.buffer.evictions;
            debug_assert!(pages > 0, "a batch of no pages is destaged");
            let sent = self.destage_until(end);
            self.counters.buffer.destaged_pages += self.counters.buffer.evictions - before;
            if let Err(why) = sent {
                self.stage.destage_waits = self.media.flash.timed();
                // While map pages are loaded, they wait for the buffer as before.
                if why == Stall::NoSpace {
                    self.writes_wait_for_space();
                }
                return;
            }
        }
    }

    /// Pages that are to leave now.
    fn next_batch(&mut self) -> Option<u64> {
        let (destager, buffer) = (self.stage.destager.as_mut()?, self.stage.buffer.as_ref()?);
        let dirty = buffer.dirty_sectors();
        destager.on = dirty >= destager.high || destager.on && dirty > destager.low;
        if !destager.on && self.stage.wanted_sectors == 0 {
            return None;
        }
        let in_flight = self.stage.evictions.len() as u64;
        if in_flight >= destager.stripe_pages {
            return None;
        }
        let whole_pages = u64::from(buffer.units() / self.media.units_per_page);
        let pages = whole_pages.min(destager.batch_pages).min(u64::from(self.ftl.pages_left_in_stripe(&self.media)));
        // A page that units do not fill leaves only for a write that nothing else makes room for.
        let alone = self.stage.wanted_sectors > 0 && in_flight == 0 && buffer.units() > 0;
        Some(if alone { pages.max(1) } else { pages }).filter(|pages| *pages > 0)
    }

    /// Sends what the policy chooses until so many programs have been sent in all.
    fn destage_until(&mut self, end: u64) -> Result<(), Stall> {
        let per_page = self.media.units_per_page as usize;
        let ahead = PREFETCHED / per_page.min(PREFETCHED);
        for page in 0.. {
            let Some(buffer) = self.stage.buffer.as_mut().filter(|buffer| buffer.units() > 0) else { break };
            if self.stage.programs_sent >= end {
                break;
            }
            let mut slots = std::mem::take(&mut self.stage.slots);
            if page % ahead == 0 {
                buffer.coming(PREFETCHED, &mut slots);
                let lpns: ArrayVec<Lpn, PREFETCHED> =
                    slots.iter().take(PREFETCHED).map(|slot| buffer.entry(*slot).lpn).collect();
                self.ftl.prefetch(&self.media, &lpns);
                self.load_map_ahead(&lpns);
            }
            let Some(buffer) = self.stage.buffer.as_mut() else { break };
            let chips = DriveChips { media: &self.media, ftl: &*self.ftl };
            buffer.destaged(per_page, &chips, &mut self.counters.buffer, &mut slots);
            self.prefer_awaiting(&mut slots);
            let left = match self.stage.pads {
                Some(block_units) => self.evict_padded(&slots, block_units),
                None => self.evict(&slots, None),
            };
            self.stage.slots = slots;
            left?;
        }
        Ok(())
    }

    /// Clean units that would leave next are dropped; whether any was.
    pub(super) fn drop_clean_victims(&mut self) -> bool {
        let buffer = self.stage.buffer.as_mut().expect("reads are kept in a buffer");
        let mut slots = std::mem::take(&mut self.stage.slots);
        let chips = DriveChips { media: &self.media, ftl: &*self.ftl };
        buffer.victims(self.media.units_per_page as usize, &chips, &mut self.counters.buffer, &mut slots);
        let mut dropped = false;
        for slot in &slots {
            dropped |= self.drop_if_clean(*slot);
        }
        self.stage.slots = slots;
        dropped
    }

    /// Flash has no space: writes that wait for room in the buffer wait for garbage collection.
    fn writes_wait_for_space(&mut self) {
        let wants_more = |command: &u32| self.commands[*command].wanted_sectors > 0;
        let writes: Vec<u32> = self.waiting.stalled.for_space().filter(wants_more).collect();
        for command in writes {
            self.stall(command, Stall::NoSpace);
        }
    }
}

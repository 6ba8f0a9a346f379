//! Writes through the buffer: coming in, leaving, and being on flash.

use arrayvec::ArrayVec;
use ssdlab_base::Nanos;
use ssdlab_flash::{Cause, DieId, Lpn};

use super::buffer_stage::Eviction;
use super::dispatch::{Stall, mask_of};
use super::{Drive, DriveError, Timer};
use crate::DriveConfig;
use crate::buffer::{Chips, Entry, Met, POLICIES, Slot, WriteBuffer};
use crate::ftl::{Compaction, Found, Ftl, MAX_UNITS, UnitWrite, full_mask};
use crate::media::Media;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// An empty write buffer, if the drive has one.
pub(super) fn make_buffer(
    config: &DriveConfig,
    media: &Media,
    compaction: Option<Compaction>,
) -> Result<Option<WriteBuffer>, DriveError> {
    let policy = POLICIES.pick(&config.buffer.policy)?;
    let full = full_mask(config.ftl.mapping_unit);
    let sector_data_bytes = media.flash.store.sector_data_bytes();
    Ok(policy.map(|policy| WriteBuffer::new(policy(config), config.buffer.bytes, sector_data_bytes, full, compaction)))
}

/// The chips as a buffer policy sees them.
pub(super) struct DriveChips<'a> {
    pub(super) media: &'a Media,
    pub(super) ftl: &'a dyn Ftl,
}

impl Chips for DriveChips<'_> {
    /// Busy is a die with any operation in flight or queued. Without time no chip ever is.
    fn is_busy(&self, lpn: Lpn, mask: u64) -> bool {
        if !self.media.flash.timed() {
            return false;
        }
        match self.ftl.first_die(self.media, lpn, mask) {
            Some(die) => self.media.flash.load(die) > 0,
            None => (0..self.media.flash.geometry().dies()).all(|die| self.media.flash.load(DieId(die)) > 0),
        }
    }
}

impl Drive {
    pub(super) fn write_buffered(&mut self, command: u32) -> Result<(), Stall> {
        let request = self.commands[command].request;
        if request.sectors == 0 {
            return Ok(());
        }
        let per_unit = self.sectors_per_unit;
        let first = request.sector / per_unit;
        let units = (request.end() - 1) / per_unit - first + 1;
        let per_sector = self.media.flash.store.sector_data_bytes();
        let mut sector_data = vec![0; per_unit as usize * per_sector];
        while u64::from(self.commands[command].cursor) < units {
            let lpn = first + u64::from(self.commands[command].cursor);
            let from = request.sector.max(lpn * per_unit);
            let to = request.end().min((lpn + 1) * per_unit);
            if per_sector > 0 {
                let source = (from - request.sector) as usize * per_sector..(to - request.sector) as usize * per_sector;
                let target = (from % per_unit) as usize * per_sector;
                let length = source.len();
                sector_data[target..target + length].copy_from_slice(&self.commands[command].sector_data[source]);
            }
            let mask = mask_of(from % per_unit, to - from);
            let still = request.end() - from;
            self.buffer_unit(command, Lpn(lpn as u32), mask, &sector_data, request.stream, still)?;
            self.commands[command].cursor += 1;
        }
        if request.fua && !seeded(Bug::FuaIsPlain) {
            self.force_out(command, Lpn(first as u32), Lpn((first + units) as u32))?;
        }
        if self.commands[command].covers.is_none() {
            // Counted once, when the whole command is in.
            self.commands[command].covers = Some(self.commands.writes_dispatched);
            self.commands.writes_dispatched += 1;
        }
        let latency = self.config.buffer.latency;
        if latency.0 > 0 && self.media.flash.timed() {
            self.commands[command].remaining += 1;
            self.timers.set(self.media.now + latency, Timer::Finish(command));
        }
        Ok(())
    }

    /// The stream that takes a unit which the host writes, where its command names `hint`.
    #[inline(always)]
    pub(super) fn stream_of(&self, lpn: Lpn, hint: u16) -> u16 {
        match &self.placement {
            None => hint,
            Some(placement) => placement.stream(lpn, hint),
        }
    }

    /// The host wrote units from `first` on: their ages begin.
    #[inline(always)]
    pub(super) fn note_written(&mut self, first: Lpn, units: u32) {
        if let Some(placement) = &mut self.placement {
            placement.note_written(first, units);
        }
    }

    /// Brings one unit's sectors into the buffer, making room first: for all that the command still brings (`still`
    /// sectors) and for what stalled commands wait to bring, so that pages leave side by side and not one by one.
    pub(super) fn buffer_unit(
        &mut self,
        command: u32,
        lpn: Lpn,
        mask: u64,
        sector_data: &[u8],
        stream: u16,
        still: u64,
    ) -> Result<(), Stall> {
        let stream = self.stream_of(lpn, stream);
        loop {
            self.forget_padding_place(lpn);
            let number = self.commands.writes_dispatched;
            let buffer = self.stage.buffer.as_mut().expect("a buffered write has a buffer");
            let cost = match buffer.write(lpn, mask, sector_data, number, stream) {
                Ok(met) => {
                    if self.commands[command].expendable {
                        buffer.mark_expendable(lpn);
                    }
                    self.note_written(lpn, 1);
                    self.counters.buffer.write_hits += u64::from(met != Met::Nothing);
                    self.counters.buffer.write_misses += u64::from(met == Met::Nothing);
                    self.counters.buffer.converted_pages += u64::from(met == Met::Completed);
                    return Ok(());
                }
                Err(cost) => cost,
            };
            if self.stage.destager.is_some() && self.media.flash.timed() {
                // Destaging makes room, as fast as the chips take it.
                if self.stage.caches_reads && self.drop_clean_victims() {
                    continue;
                }
                self.reserve_in_buffer(command, still);
                return Err(Stall::BufferFull);
            }
            // What is already on its way out counts: nothing leaves that need not.
            let wanted = self.stage.wanted_sectors + still.max(cost);
            if buffer.room() + self.stage.leaving_sectors >= wanted || buffer.is_empty() {
                self.reserve_in_buffer(command, still);
                return Err(Stall::BufferFull);
            }
            let mut slots = std::mem::take(&mut self.stage.slots);
            self.choose_victims(&mut slots);
            let left = match self.stage.pads {
                Some(block_units) => self.evict_padded(&slots, block_units),
                None => self.evict(&slots, None),
            };
            if left.is_ok() && self.stage.pads.is_none() {
                self.fill_row(&mut slots);
            }
            self.stage.slots = slots;
            if let Err(stall) = left {
                self.reserve_in_buffer(command, still);
                return Err(stall);
            }
        }
    }

    /// Pages leave with the one that has just left, as many as its die can program at once where superblocks tie the
    /// planes: one by one the die would begin each alone.
    fn fill_row(&mut self, slots: &mut Vec<Slot>) {
        for _ in 1..self.media.pool.superblocks.together() {
            let is_empty = self.stage.buffer.as_ref().is_none_or(|buffer| buffer.is_empty());
            if is_empty || !self.media.host_row_open {
                return;
            }
            self.choose_victims(slots);
            if self.evict(slots, None).is_err() {
                return;
            }
        }
    }

    /// Units that leave the buffer next, to make room.
    #[inline]
    pub(super) fn choose_victims(&mut self, slots: &mut Vec<Slot>) {
        let buffer = self.stage.buffer.as_mut().expect("what leaves was in a buffer");
        let chips = DriveChips { media: &self.media, ftl: &*self.ftl };
        buffer.victims(self.media.units_per_page as usize, &chips, &mut self.counters.buffer, slots);
        self.prefer_awaiting(slots);
    }

    /// Units whose map pages were asked for leave before others: a policy that looks at the chips would choose others by then, and a
    /// small cache would load the pages of both in turns for ever.
    #[inline]
    pub(super) fn prefer_awaiting(&mut self, slots: &mut Vec<Slot>) {
        if self.stage.awaiting_map.is_empty() {
            return;
        }
        let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
        let awaiting = self.stage.awaiting_map.drain(..).filter_map(|lpn| buffer.find(lpn));
        let dirty: Vec<Slot> = awaiting.filter(|slot| buffer.entry(*slot).dirty() != 0).collect();
        if !dirty.is_empty() {
            *slots = dirty;
        }
    }

    /// A stalled command waits to bring so many sectors.
    fn reserve_in_buffer(&mut self, command: u32, sectors: u64) {
        debug_assert_eq!(self.commands[command].wanted_sectors, 0, "command {command} wants room twice");
        self.commands[command].wanted_sectors = sectors;
        self.stage.wanted_sectors += sectors;
        if sectors > 0 {
            self.stage.full_since.get_or_insert(self.media.now);
        }
    }

    /// A stalled command is tried again, or given up.
    #[inline]
    pub(super) fn release_buffer_reservation(&mut self, command: u32) {
        if self.stage.wanted_sectors > 0 {
            self.shrink_buffer_reservation(command);
        }
    }

    // Every command asks: what few of them come to must not be a part of it.
    #[inline(never)]
    fn shrink_buffer_reservation(&mut self, command: u32) {
        let sectors = std::mem::take(&mut self.commands[command].wanted_sectors);
        if sectors == 0 {
            return;
        }
        let all = self.stage.wanted_sectors;
        assert!(all >= sectors, "command {command} wanted {sectors} sectors, of {all} that all want");
        assert!(
            self.stage.full_since.is_some(),
            "command {command} wanted {sectors} sectors of a buffer that is not full"
        );
        self.stage.wanted_sectors -= sectors;
        if self.stage.wanted_sectors == 0 {
            self.counters.buffer.full += self.full_for();
            self.stage.full_since = None;
        }
    }

    /// How long a write has been waiting for room by now.
    pub(super) fn full_for(&self) -> Nanos {
        self.stage.full_since.map_or(Nanos::ZERO, |since| self.media.now.since(since))
    }

    /// Sends units to flash, as many to a page as may share one. On `Err` those not sent stay in the buffer.
    pub(super) fn evict(&mut self, slots: &[Slot], waiter: Option<u32>) -> Result<(), Stall> {
        let mut at = 0;
        while at < slots.len() {
            if self.stage.caches_reads && self.drop_if_clean(slots[at]) {
                at += 1;
                continue;
            }
            at += if self.stage.compacts {
                self.evict_small(slots, at, waiter)?
            } else {
                self.evict_page(&slots[at..], waiter)?
            };
        }
        Ok(())
    }

    /// Sends the unit at `at` of `slots`, for an FTL that compacts, and returns how many of `slots` are done with. A
    /// small partial unit takes those of its region along, which may be later ones of `slots`; others go as in
    /// [`Drive::evict_page`].
    fn evict_small(&mut self, slots: &[Slot], at: usize, waiter: Option<u32>) -> Result<usize, Stall> {
        let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
        if buffer.has_left(slots[at]) {
            return Ok(1);
        }
        let mut together = std::mem::take(&mut self.stage.companions);
        let compaction = self.ftl.compacts().expect("the design compacts");
        buffer.compacted_with(slots[at], |lpn| compaction.may_compact(&self.media, lpn), &mut together);
        let sent = if together.len() > 1 {
            together.sort_unstable_by_key(|slot| buffer.entry(*slot).lpn);
            self.send(&together, &[], true, waiter).map(|()| 1)
        } else {
            let still = slots[at..].iter().position(|slot| buffer.has_left(*slot)).unwrap_or(slots.len() - at);
            self.evict_page(&slots[at..at + still], waiter)
        };
        self.stage.companions = together;
        sent
    }

    /// Sends the first of `slots`, as many as may share a page; returns how many.
    fn evict_page(&mut self, slots: &[Slot], waiter: Option<u32>) -> Result<usize, Stall> {
        let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
        let Entry { lpn: lead, stream, .. } = *buffer.entry(slots[0]);
        let others = slots.iter().skip(1).take(self.media.units_per_page as usize - 1);
        let count = 1 + others
            .take_while(|slot| {
                let entry = buffer.entry(**slot);
                entry.stream == stream && entry.dirty() != 0 && self.ftl.share_page(lead, entry.lpn)
            })
            .count();
        self.send(&slots[..count], &[], false, waiter)?;
        Ok(count)
    }

    /// Sends the block of the first unit as a whole: what it lacks and flash has is written anew with it, in order. On
    /// `Err` the next call for the block goes on where this one stopped.
    pub(super) fn evict_padded(&mut self, slots: &[Slot], block_units: u32) -> Result<(), Stall> {
        let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
        let lpn = buffer.entry(slots[0]).lpn;
        assert!(block_units > 0, "a block of no units leaves padded");
        let logical_units = self.logical_units();
        if lpn.0 >= logical_units {
            // What the design keeps behind the user's units is in blocks of its own, in whatever order.
            return self.evict(slots, None);
        }
        let first = lpn.begin(block_units);
        let end = Lpn(first.0.saturating_add(block_units).min(logical_units));
        let place = self.stage.padded_to.remove(&first).filter(|place| buffer.holds_any(*place..end));
        let mut at = place.unwrap_or(first);
        assert!((first..end).contains(&at), "the padding of {first} to {end} goes on at {at}");
        let per_page = self.media.units_per_page;
        while at < end {
            let page_end = end.min(at.begin(per_page) + per_page);
            let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
            let (mut here, mut pads) = (Vec::new(), Vec::new());
            for lpn in Lpn::each(at..page_end) {
                match (buffer.find(lpn), self.ftl.find(lpn)) {
                    (Some(slot), _) => here.push(slot),
                    (None, Found::At { unit }) if !self.media.flash.oob.is_poisoned(unit) => pads.push(lpn),
                    (None, _) => {}
                }
            }
            if let Err(stall) = self.send(&here, &pads, false, None) {
                self.stage.padded_to.insert(first, at);
                if stall == Stall::Map {
                    let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
                    let rest = Lpn::each(at..end).filter(|lpn| buffer.find(*lpn).is_some());
                    self.stage.awaiting_map = rest.collect();
                }
                return Err(stall);
            }
            self.counters.buffer.padded_pages += pads.len() as u64;
            at = page_end;
        }
        Ok(())
    }

    /// A unit is written to a block whose padding stopped. If nothing of the block is left to leave, that padding is over, and the next
    /// begins with the block.
    fn forget_padding_place(&mut self, lpn: Lpn) {
        let Some(block_units) = self.stage.pads.filter(|_| !self.stage.padded_to.is_empty()) else { return };
        let first = lpn.begin(block_units);
        let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
        let end = Lpn(first.0.saturating_add(block_units).min(self.logical_units()));
        if self.stage.padded_to.get(&first).is_some_and(|place| !buffer.holds_any(*place..end)) {
            self.stage.padded_to.remove(&first);
        }
    }

    /// Sends units in one page, as whole units or compacted; `pads` are units on flash that are written anew with them.
    fn send(&mut self, slots: &[Slot], pads: &[Lpn], compacted: bool, waiter: Option<u32>) -> Result<(), Stall> {
        if slots.is_empty() && pads.is_empty() {
            return Ok(());
        }
        if self.caches_map {
            let buffer = self.stage.buffer.as_ref().expect("what leaves was in a buffer");
            let leaving = slots.iter().map(|slot| buffer.entry(*slot).lpn);
            let stream = slots.first().map_or(0, |slot| buffer.entry(*slot).stream);
            let lpns: ArrayVec<Lpn, MAX_UNITS> = leaving.chain(pads.iter().copied()).collect();
            let waiter = self.waiting.current.map_or(Waiter::Buffer, Waiter::Command);
            let asked = self.ask_for_map_to_write(waiter, &lpns, stream);
            self.stage.awaiting_map.clear();
            if asked == Err(Stall::Map) {
                self.stage.awaiting_map.extend(&lpns[..slots.len()]);
            }
            asked?;
        }
        let buffer = self.stage.buffer.as_mut().expect("what leaves was in a buffer");
        let stream = slots.first().map_or(0, |slot| buffer.entry(*slot).stream);
        let mut units: ArrayVec<UnitWrite<'_>, MAX_UNITS> = ArrayVec::new();
        for slot in slots {
            let entry = buffer.entry(*slot);
            let (mask, sector_data, expendable) = (entry.mask, &entry.sector_data[..], entry.expendable);
            units.push(UnitWrite { lpn: entry.lpn, mask, sector_data, expendable });
        }
        units.extend(pads.iter().map(|lpn| UnitWrite { lpn: *lpn, mask: 0, sector_data: &[], expendable: false }));
        let slot = self.stage.evictions.insert(Eviction { sectors: 0, serial: 0, command: None });
        let owner = Waiter::Eviction(slot);
        let written = if compacted {
            let compaction = self.ftl.compacts().expect("the design compacts");
            compaction.write_compacted(&mut self.media, &units, stream, Cause::Host, owner)
        } else {
            self.ftl.write(&mut self.media, &units, stream, Cause::Host, owner)
        };
        drop(units);
        if let Err(error) = written {
            self.stage.evictions.release(slot);
            return Err(error.into());
        }
        let mut sectors = 0;
        for slot in slots {
            let entry = buffer.take(*slot);
            let held = u64::from(entry.mask.count_ones());
            sectors += held;
            self.counters.buffer.evictions += 1;
            if held == self.sectors_per_unit {
                self.counters.buffer.full_pages += 1;
            } else {
                self.counters.buffer.partial_pages += 1;
            }
        }
        debug_assert!(sectors > 0 || !pads.is_empty(), "a page left the buffer, and took nothing");
        self.stage.programs_sent += 1;
        self.counters.buffer.compacted_pages += if compacted { slots.len() as u64 } else { 0 };
        let timed = self.media.flash.timed();
        if !timed && self.media.wakes.failed.is_empty() {
            buffer.release(sectors);
            self.stage.evictions.release(slot);
            self.work_untimed();
            return Ok(());
        }
        let serial = self.stage.evictions_base + self.stage.evicting.len() as u64;
        self.stage.evictions[slot] = Eviction { sectors, serial, command: waiter };
        self.stage.evicting.push_back(false);
        debug_assert!(
            self.stage.leaving_sectors + sectors <= buffer.used_sectors(),
            "{} sectors leave a buffer of {}",
            self.stage.leaving_sectors + sectors,
            buffer.used_sectors()
        );
        self.stage.leaving_sectors += sectors;
        if let Some(command) = waiter {
            self.commands[command].remaining += 1;
        }
        if !timed {
            if !self.media.wakes.failed.iter().any(|failed| failed.owner == owner) {
                self.evicted(slot);
            }
            self.work_untimed();
        }
        Ok(())
    }

    /// A unit that is on flash as it is here needs only be forgotten.
    pub(super) fn drop_if_clean(&mut self, slot: Slot) -> bool {
        let buffer = self.stage.buffer.as_mut().expect("what leaves was in a buffer");
        if buffer.has_left(slot) || buffer.entry(slot).dirty() != 0 {
            return false;
        }
        let entry = buffer.take(slot);
        buffer.release(u64::from(entry.mask.count_ones()));
        self.media.wakes.space_freed = true;
        true
    }

    /// An eviction is on flash: its space is free, and a flush may be complete.
    pub(super) fn evicted(&mut self, slot: u32) {
        let Eviction { sectors, serial, command } = self.stage.evictions[slot];
        self.stage.evictions.release(slot);
        assert!(self.stage.leaving_sectors >= sectors, "{sectors} sectors left, of {}", self.stage.leaving_sectors);
        let base = self.stage.evictions_base;
        assert!(serial >= base, "eviction {serial} is on flash, and so were all before {base}");
        let known = self.stage.evicting.get((serial - base) as usize);
        assert_eq!(known, Some(&false), "eviction {serial} is on flash once");
        self.stage.leaving_sectors -= sectors;
        self.stage.buffer.as_mut().expect("what left was in a buffer").release(sectors);
        self.media.wakes.space_freed = true;
        self.stage.evicting[(serial - self.stage.evictions_base) as usize] = true;
        while self.stage.evicting.front() == Some(&true) {
            self.stage.evicting.pop_front();
            self.stage.evictions_base += 1;
        }
        debug_assert_eq!(
            self.stage.evictions.len(),
            self.stage.evicting.iter().filter(|ended| !**ended).count(),
            "each eviction in flight has a serial number"
        );
        if let Some(command) = command {
            self.release_command(command);
        }
        let base = self.stage.evictions_base;
        while self.waiting.for_evictions.front().is_some_and(|(until, _)| *until <= base) {
            let (_, command) = self.waiting.for_evictions.pop_front().expect("just seen");
            self.release_command(command);
        }
    }

    /// FUA: the units of a command leave at once, and it waits for them.
    pub(super) fn force_out(&mut self, command: u32, first: Lpn, end: Lpn) -> Result<(), Stall> {
        let request = self.commands[command].request;
        let mut slots = std::mem::take(&mut self.stage.slots);
        let buffer = self.stage.buffer.as_ref().expect("a buffered write has a buffer");
        buffer.in_range(first, end, &mut slots);
        // A unit that is there need not be the one that the command wrote: that may have left while the command waited for
        // room, and another write have brought other sectors of it.
        let some_left_before = Lpn::each(first..end).any(|lpn| {
            let begins = u64::from(lpn.0) * self.sectors_per_unit;
            let from = request.sector.max(begins);
            let to = request.end().min(begins + self.sectors_per_unit);
            let wrote = mask_of(from - begins, to - from);
            buffer.find(lpn).is_none_or(|slot| wrote & !buffer.entry(slot).mask != 0)
        });
        let result = self.evict(&slots, Some(command));
        self.stage.slots = slots;
        result?;
        // What made room for the rest of this very command, or left before it, is still on its way.
        if some_left_before && !self.stage.evicting.is_empty() {
            self.commands[command].remaining += 1;
            let until = self.stage.evictions_base + self.stage.evicting.len() as u64;
            self.waiting.for_evictions.push_back((until, command));
        }
        Ok(())
    }

    /// Everything that came in before write number `before` leaves.
    pub(super) fn evict_older_than(&mut self, before: u64) -> Result<(), Stall> {
        let Some(buffer) = &self.stage.buffer else { return Ok(()) };
        if buffer.units() == 0 {
            return Ok(());
        }
        let mut slots = std::mem::take(&mut self.stage.slots);
        let mut result = Ok(());
        while let Some(buffer) = &self.stage.buffer
            && result.is_ok()
        {
            buffer.older_than(before, self.media.units_per_page as usize, &mut slots);
            if slots.is_empty() {
                break;
            }
            result = self.evict(&slots, None);
        }
        self.stage.slots = slots;
        result
    }

    /// Trimmed units leave the buffer without going to flash.
    pub(super) fn drop_buffered(&mut self, first: Lpn, end: Lpn) {
        let Some(buffer) = &mut self.stage.buffer else { return };
        if buffer.is_empty() {
            return;
        }
        let mut slots = std::mem::take(&mut self.stage.slots);
        buffer.in_range(first, end, &mut slots);
        for slot in &slots {
            let entry = buffer.drop_unit(*slot);
            buffer.release(u64::from(entry.mask.count_ones()));
            self.counters.trimmed_buffered_sectors += u64::from(entry.dirty().count_ones());
            self.media.wakes.space_freed = true;
        }
        self.stage.slots = slots;
    }
}

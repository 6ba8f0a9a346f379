//! Dispatch: what each command decides, in one place a command.

use std::ops::Range;

use arrayvec::ArrayVec;
use ssdlab_base::command_set::AddressSpace;
use ssdlab_base::{Op, Request};
use ssdlab_flash::{Cause, Lpn};

use super::Drive;
use super::stalled::{Extent, Turn, WaitsFor};
use crate::Status;
use crate::critical_path::Stage;
use crate::ftl::{CannotYet, Found, MAX_UNITS, NoSpace, TrimTarget, UnitWrite};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// Why a command could not take full effect yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    /// The FTL has no page to give before a block is erased.
    NoSpace,
    /// The buffer is full of pages on their way to flash.
    BufferFull,
    /// Map pages have to be loaded first.
    Map,
}

impl Stall {
    /// What the command's path calls it.
    const fn stage(self) -> Stage {
        match self {
            Stall::NoSpace => Stage::NoFreeBlock,
            Stall::BufferFull => Stage::BufferFull,
            Stall::Map => Stage::Map,
        }
    }
}

impl From<NoSpace> for Stall {
    fn from(_: NoSpace) -> Stall {
        Stall::NoSpace
    }
}

impl From<CannotYet> for Stall {
    fn from(why: CannotYet) -> Stall {
        match why {
            CannotYet::Space => Stall::NoSpace,
            CannotYet::Map => Stall::Map,
        }
    }
}

impl Drive {
    /// Runs a command that has arrived inside the drive.
    #[inline]
    pub(super) fn dispatch(&mut self, command: u32) {
        debug_assert!(!self.waiting.stalled.contains(command), "command {command} is dispatched, and is stalled");
        if self.admission.is_some() && self.must_wait_for_order(command) {
            return self.wait_begins(command, Stage::Overlap);
        }
        if !self.waiting.stalled.is_empty()
            && let Some(earlier) = self.waiting.stalled.any(&self.extent(command))
        {
            self.begin_stall(command, Err(earlier));
            return;
        }
        if let Err(stall) = self.take_effect(command) {
            self.begin_stall(command, Ok(stall));
        }
        self.settle();
    }

    /// What the effect of a command has left to others is done.
    #[inline]
    fn settle(&mut self) {
        let nothing_waits = || self.waiting.stalled.is_empty() && self.failures.retirements.is_empty();
        if !self.media.flash.timed() && !nothing_waits() {
            self.break_deadlocks();
        }
        self.destage();
        self.collect_garbage();
        let wakes = &self.media.wakes;
        let is_for_map = self.caches_map && (wakes.is_for_map() || !wakes.erasable.is_empty());
        if wakes.pace_released || is_for_map || !wakes.failed.is_empty() || self.admission.is_some() {
            self.settle_rest();
        }
    }

    /// Without time no event will come to the help of what is stalled.
    #[cold]
    #[inline(never)]
    fn break_deadlocks(&mut self) {
        while self.break_deadlock() {}
    }

    /// What few commands leave to others: apart, so that those of most commands stay together in the processor's cache.
    #[inline(never)]
    fn settle_rest(&mut self) {
        if self.media.wakes.pace_released && !self.waiting.stalled.is_empty() && !self.waiting.retrying {
            // A command took all pages that its group allowed, and collection, which looked at it just now, allows more.
            self.work();
        }
        let has_work = || self.media.wakes.is_for_map() || !self.media.wakes.erasable.is_empty();
        if self.caches_map && has_work() && !self.waiting.retrying {
            // A map page that was never programmed comes at once; what waits for a map block waits for an erase to begin.
            self.work();
        }
        if !self.media.wakes.failed.is_empty() {
            self.work_untimed();
        }
        if self.admission.is_some() {
            self.dispatch_unblocked();
        }
    }

    /// Lets the command take effect; on `Err` it keeps its place and is tried again.
    #[inline]
    fn take_effect(&mut self, command: u32) -> Result<(), Stall> {
        if !self.caches_map {
            return self.take_effect_now(command);
        }
        let before = self.waiting.current.replace(command);
        let result = self.take_effect_now(command);
        self.waiting.current = before;
        result
    }

    #[inline]
    fn take_effect_now(&mut self, command: u32) -> Result<(), Stall> {
        self.release_buffer_reservation(command);
        let Request { op, opcode, .. } = self.commands[command].request;
        if !opcode.is_block() {
            return self.command_of_set(command);
        }
        if self.failures.read_only && op != Op::Read {
            return self.refuse(command);
        }
        if self.admission.is_some() && self.follows_a_gap(command) {
            self.commit_effect(command);
            return Ok(());
        }
        let is_limited = self.admitted.is_some() && matches!(op, Op::Write | Op::Trim | Op::WriteZeroes);
        if is_limited && !self.enters_room(command)? {
            return Ok(());
        }
        match op {
            Op::Read => self.read(command)?,
            Op::Write => self.write(command)?,
            Op::Trim | Op::WriteZeroes => self.trim(command)?,
            Op::Flush => self.flush(command)?,
        }
        if is_limited {
            self.leaves_room(command);
        }
        self.commit_effect(command);
        Ok(())
    }

    /// A command has taken effect: it has its place in the order, and waits for what it started.
    #[inline]
    pub(super) fn commit_effect(&mut self, command: u32) {
        self.wait_ended(command);
        self.commands.number(command);
        let since = self.commands[command].stalled_since;
        // Who was let go on at the same instant waited for nothing.
        if since < self.media.now {
            self.counters.gc_stall += self.media.now.since(since);
            self.counters.gc_stalled_commands += 1;
        }
        self.map_wait_ends(command);
        self.leave_order(command);
        self.release_command(command);
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, command: u32) -> Result<(), Stall> {
        let flush = self.commands[command].request.op == Op::Flush;
        let buffered = self.stage.buffer.as_ref().map_or(0, |buffer| buffer.units());
        let nothing_to_lose =
            flush && buffered == 0 && self.ftl.trims_pending() == 0 && self.failures.pending_rewrites.is_empty();
        if nothing_to_lose {
            // What is on its way still gets there.
            self.flush(command)?;
        } else {
            self.commands[command].status = Status::ReadOnly;
        }
        self.map_wait_ends(command);
        self.commands.number(command);
        self.leave_order(command);
        self.release_command(command);
        Ok(())
    }

    /// A command waits for space, or (`Err`) behind an earlier one that does.
    #[cold]
    #[inline(never)]
    fn begin_stall(&mut self, command: u32, why: Result<Stall, Turn>) {
        match why {
            Ok(why) => self.stall(command, why),
            Err(_) => self.wait_begins(command, Stage::Overlap),
        }
        debug_assert!(!self.waiting.stalled.contains(command), "command {command} stalls, and is stalled");
        let extent = self.extent(command);
        let why = match why {
            Ok(Stall::Map) => WaitsFor::Map,
            Ok(Stall::NoSpace | Stall::BufferFull) => WaitsFor::Space,
            Err(earlier) => WaitsFor::Command(earlier),
        };
        self.waiting.stalled.push(command, extent, why);
        if self.media.flash.timed() {
            self.list_for_space();
        }
    }

    pub(super) fn stall(&mut self, command: u32, why: Stall) {
        if why == Stall::NoSpace {
            let since = &mut self.commands[command].stalled_since;
            *since = (*since).min(self.media.now);
        }
        if self.caches_map {
            self.map_wait_begins(command, why);
        }
        let is_paced = || why == Stall::NoSpace && self.media.only_pace_holds_back();
        let stage = if self.records_paths() && is_paced() { Stage::Pace } else { why.stage() };
        self.wait_begins(command, stage);
    }

    /// What a command touches. A flush covers completed writes only: it touches nothing.
    pub(super) fn extent(&self, command: u32) -> Extent {
        let command = &self.commands[command];
        let space = command.set_state.as_ref().map_or(AddressSpace::Logical, |set_state| set_state.space());
        Extent::of(&command.request, space)
    }

    /// Tries the commands that wait for space again, in order, and those behind one that took effect.
    pub(super) fn retry_stalled(&mut self) {
        let mut from = 0;
        let nested = std::mem::replace(&mut self.waiting.retrying, true);
        while let Some((turn, command)) = self.waiting.stalled.next_for_space(from) {
            from = turn + 1;
            match self.take_effect(command) {
                Ok(()) => {
                    self.forget_command(command);
                    self.waiting.stalled.remove(turn);
                }
                Err(stall) => {
                    if stall == Stall::Map {
                        self.waiting.stalled.now_for_map(turn, command);
                    }
                    self.stall(command, stall);
                }
            }
        }
        self.waiting.retrying = nested;
        if self.paths.is_some() {
            let behind: Vec<u32> = self.waiting.stalled.behind().collect();
            behind.into_iter().for_each(|command| self.wait_begins(command, Stage::Overlap));
        }
        self.collect_garbage();
        if self.admission.is_some() && !nested {
            self.dispatch_unblocked();
        }
    }

    /// The map pages that a command waited for are cached: it is tried again, and then what waited behind it.
    pub(super) fn retry_for_map(&mut self, command: u32, waiter: Waiter) {
        let Some(turn) = self.waiting.stalled.turn_for_map(command) else {
            return self.forget_waiter(waiter);
        };
        let nested = std::mem::replace(&mut self.waiting.retrying, true);
        let mut turns = vec![(turn, command)];
        while let Some((turn, retried)) = turns.pop() {
            match self.take_effect(retried) {
                Ok(()) => {
                    self.forget_command(retried);
                    turns.extend(self.waiting.stalled.remove(turn).into_iter().rev());
                }
                Err(stall) => {
                    // One that came to be tried behind another waits for space.
                    match stall {
                        Stall::Map => self.waiting.stalled.now_for_map(turn, retried),
                        Stall::NoSpace | Stall::BufferFull => self.waiting.stalled.now_for_space(turn, retried),
                    }
                    self.stall(retried, stall);
                }
            }
        }
        self.waiting.retrying = nested;
        // What it waits for now is not cached yet: what it was served with and did not use is others'.
        self.forget_waiter_served(waiter);
        self.collect_garbage();
    }

    // ---- write ----

    pub(super) fn write(&mut self, command: u32) -> Result<(), Stall> {
        if self.stage.buffer.is_some() {
            return self.write_buffered(command);
        }
        self.write_to_flash(command)
    }

    /// Writes what a command brings to flash, page by page.
    #[inline]
    pub(super) fn write_to_flash(&mut self, command: u32) -> Result<(), Stall> {
        let request = self.commands[command].request;
        if request.sectors == 0 {
            return Ok(());
        }
        let first = request.sector / self.sectors_per_unit;
        let sectors = self.user_sectors() + self.reserved_sectors();
        debug_assert!(request.end() <= sectors, "sector {} is behind the drive's end", request.end());
        let units = (request.end() - 1) / self.sectors_per_unit - first + 1;
        while u64::from(self.commands[command].cursor) < units {
            let cursor = self.commands[command].cursor;
            let taken = self.write_page(command, Lpn(first as u32 + cursor), units as u32 - cursor)?;
            debug_assert!(u64::from(cursor + taken) <= units, "command {command} wrote {taken} units from {cursor}");
            self.commands[command].cursor += taken;
        }
        Ok(())
    }

    /// Writes the next page of a write command: up to a page's units from `lpn` on. Returns how many.
    #[inline]
    fn write_page(&mut self, command: u32, lpn: Lpn, left: u32) -> Result<u32, Stall> {
        let request = self.commands[command].request;
        let per_sector = self.media.flash.store.sector_data_bytes();
        let per_unit = self.sectors_per_unit;
        let owner = Waiter::Command(command);
        if per_sector == 0 && self.media.units_per_page == 1 {
            // A page a unit and nothing kept: the whole of most replays.
            let base = u64::from(lpn.0) * per_unit;
            let from = request.sector.max(base);
            let to = request.end().min(base + per_unit);
            let (mask, expendable) = (mask_of(from - base, to - from), self.commands[command].expendable);
            let unit = UnitWrite { lpn, mask, sector_data: &[], expendable };
            let stream = self.stream_of(lpn, request.stream);
            self.ask_for_map_to_write(Waiter::Command(command), &[lpn], stream)?;
            self.ftl.write(&mut self.media, &[unit], stream, Cause::Host, owner)?;
            self.note_written(lpn, 1);
            self.page_started(command);
            return Ok(1);
        }
        self.write_units(command, lpn, left)
    }

    /// Writes the next page of a write command where contents are kept, or units share a page. Returns how many units.
    #[inline(never)]
    fn write_units(&mut self, command: u32, lpn: Lpn, left: u32) -> Result<u32, Stall> {
        let request = self.commands[command].request;
        let per_sector = self.media.flash.store.sector_data_bytes();
        let per_unit = self.sectors_per_unit;
        let owner = Waiter::Command(command);
        let wanted = left.min(self.media.units_per_page);
        let stream = self.stream_of(lpn, request.stream);
        let parts = |unit: Lpn| !self.ftl.share_page(lpn, unit) || self.stream_of(unit, request.stream) != stream;
        let count = (1..wanted).find(|index| parts(lpn + *index)).unwrap_or(wanted);
        if self.caches_map {
            let lpns: ArrayVec<Lpn, MAX_UNITS> = (0..count).map(|index| lpn + index).collect();
            self.ask_for_map_to_write(Waiter::Command(command), &lpns, stream)?;
        }
        let mut scratch = std::mem::take(&mut self.stage.scratch);
        let unit_data_bytes = per_unit as usize * per_sector;
        scratch.clear();
        scratch.resize(count as usize * unit_data_bytes, 0);
        let mut units: ArrayVec<UnitWrite<'_>, MAX_UNITS> = ArrayVec::new();
        if per_sector > 0 {
            let base = u64::from(lpn.0) * per_unit;
            let from = request.sector.max(base);
            let to = request.end().min(base + u64::from(count) * per_unit);
            let source = &self.commands[command].sector_data
                [(from - request.sector) as usize * per_sector..(to - request.sector) as usize * per_sector];
            scratch[(from - base) as usize * per_sector..(to - base) as usize * per_sector].copy_from_slice(source);
        }
        for index in 0..count {
            let base = u64::from((lpn + index).0) * per_unit;
            let from = request.sector.max(base);
            let to = request.end().min(base + per_unit);
            let sector_data = &scratch[index as usize * unit_data_bytes..(index as usize + 1) * unit_data_bytes];
            let (mask, expendable) = (mask_of(from - base, to - from), self.commands[command].expendable);
            units.push(UnitWrite { lpn: lpn + index, mask, sector_data, expendable });
        }
        let written = self.ftl.write(&mut self.media, &units, stream, Cause::Host, owner);
        drop(units);
        self.stage.scratch = scratch;
        written?;
        self.note_written(lpn, count);
        self.page_started(command);
        Ok(count)
    }

    /// A page of a command is on its way: the command waits for it, or, without time, what follows from it happens now.
    #[inline]
    fn page_started(&mut self, command: u32) {
        if self.media.flash.timed() {
            self.commands[command].remaining += 1;
        } else {
            self.work_untimed();
        }
    }

    /// Fills sectors with zeroes, whole units, for a command that brings no data; its cursor counts units.
    pub(super) fn fill_with_zeroes(&mut self, command: u32, ranges: &[Range<u64>]) -> Result<(), Stall> {
        let per_unit = self.sectors_per_unit;
        let sector_data = vec![0; per_unit as usize * self.media.flash.store.sector_data_bytes()];
        let (mut index, stream) = (0, self.commands[command].request.stream);
        for range in ranges {
            for lpn in Lpn::each(Lpn((range.start / per_unit) as u32)..Lpn((range.end / per_unit) as u32)) {
                if index == self.commands[command].cursor {
                    let mask = mask_of(0, per_unit);
                    let unit = UnitWrite { lpn, mask, sector_data: &sector_data, expendable: false };
                    self.ftl.write(&mut self.media, &[unit], stream, Cause::Metadata, Waiter::Command(command))?;
                    self.page_started(command);
                    self.commands[command].cursor += 1;
                }
                index += 1;
            }
        }
        Ok(())
    }

    // ---- trim ----

    pub(super) fn trim(&mut self, command: u32) -> Result<(), Stall> {
        self.trim_stages(command)?;
        // Zeroes that went to the buffer came in under this number; a flush from now on covers them.
        self.commands.writes_dispatched += 1;
        let request = self.commands[command].request;
        if request.fua && request.sectors > 0 {
            self.force_trim(command, &request)?;
        }
        Ok(())
    }

    /// FUA: what the trim did is on flash before it completes.
    fn force_trim(&mut self, command: u32, request: &Request) -> Result<(), Stall> {
        if self.stage.buffer.is_some() {
            let first = request.sector / self.sectors_per_unit;
            let end = request.end().div_ceil(self.sectors_per_unit);
            self.force_out(command, Lpn(first as u32), Lpn(end as u32))?;
        }
        self.ftl.save_trims(&mut self.media, TrimTarget::Host, Waiter::None)?;
        self.await_metadata(command);
        Ok(())
    }

    /// A command waits for the records of trims that are not on flash.
    pub(super) fn await_metadata(&mut self, command: u32) {
        if !self.media.flash.timed() {
            self.work_untimed();
        }
        if !self.media.metadata.is_empty() {
            self.commands[command].remaining += 1;
            self.waiting.for_records.push(command);
        }
    }

    /// Whole units are unmapped; a unit that is covered in part is written with zeroes there if it holds data.
    fn trim_stages(&mut self, command: u32) -> Result<(), Stall> {
        let request = self.commands[command].request;
        if request.sectors == 0 {
            return Ok(());
        }
        let per_unit = self.sectors_per_unit;
        let first = request.sector.div_ceil(per_unit) as u32;
        let end = (request.end() / per_unit) as u32;
        // Stages: the head's part of a unit, the tail's, then segments of whole units.
        if self.commands[command].cursor == 0 {
            let head_end = request.end().min(u64::from(first) * per_unit);
            self.zero_part(command, request.sector, head_end)?;
            self.commands[command].cursor = 1;
            self.commands[command].holds_data = false;
        }
        if self.commands[command].cursor == 1 {
            // A request inside one unit was dealt with as its head.
            if u64::from(first) * per_unit <= request.end() {
                self.zero_part(command, request.sector.max(u64::from(end) * per_unit), request.end())?;
            }
            self.commands[command].cursor = 2;
        }
        if first >= end {
            return Ok(());
        }
        let segment = self.ftl.trim_segment_units();
        let backlog = self.ftl.trim_backlog(self.config.trim_backlog());
        loop {
            // Tried again after a stall, this comes first: the segment before is unmapped but not saved.
            if self.ftl.trims_pending() > backlog {
                self.ftl.save_trims(&mut self.media, TrimTarget::Host, Waiter::None)?;
                if !self.media.flash.timed() {
                    self.work_untimed();
                }
            }
            let from = first + (self.commands[command].cursor - 2);
            if from >= end {
                return Ok(());
            }
            let to = end.min((from / segment + 1) * segment);
            debug_assert!(from < to, "units {from} to {to} are trimmed");
            if !self.ftl.may_trim(&mut self.media) {
                return Err(Stall::NoSpace);
            }
            self.ask_for_map_to_trim(Waiter::Command(command), Lpn(from)..Lpn(to))?;
            self.drop_buffered(Lpn(from), Lpn(to));
            self.media.look_up(to - from);
            let trimmed = self.ftl.trim(&mut self.media, Lpn(from), Lpn(to));
            self.counters.trimmed_mapped_sectors += trimmed * per_unit;
            self.commands[command].cursor += to - from;
        }
    }

    /// Zeroes sectors `from..to` of one unit, if it holds anything.
    fn zero_part(&mut self, command: u32, from: u64, to: u64) -> Result<(), Stall> {
        if from >= to {
            return Ok(());
        }
        let lpn = Lpn((from / self.sectors_per_unit) as u32);
        let mask = mask_of(from % self.sectors_per_unit, to - from);
        let holds_data = self.buffered_mask(lpn) != 0 || self.commands[command].holds_data;
        let stream = self.stream_of(lpn, 0);
        if self.stage.buffer.is_none() {
            self.ask_for_map_to_write(Waiter::Command(command), &[lpn], stream)?;
        } else if !holds_data {
            self.ask_for_map(Waiter::Read(command), &[lpn])?;
        }
        if !holds_data && self.ftl.find(lpn) == Found::Unmapped {
            return Ok(());
        }
        // What leaves the buffer for it may take the map page's place: a retry need not look the unit up again.
        self.commands[command].holds_data = true;
        let sector_data = vec![0; self.sectors_per_unit as usize * self.media.flash.store.sector_data_bytes()];
        if self.stage.buffer.is_some() {
            return self.buffer_unit(command, lpn, mask, &sector_data, 0, to - from);
        }
        let unit = UnitWrite { lpn, mask, sector_data: &sector_data, expendable: false };
        self.ftl.write(&mut self.media, &[unit], stream, Cause::Host, Waiter::Command(command))?;
        self.note_written(lpn, 1);
        self.page_started(command);
        Ok(())
    }

    // ---- flush ----

    fn flush(&mut self, command: u32) -> Result<(), Stall> {
        let dispatched = self.commands.writes_dispatched;
        let covers = *self.commands[command].covers.get_or_insert(dispatched);
        debug_assert!(covers <= dispatched, "flush {command} covers {covers} writes of {dispatched}");
        self.evict_older_than(covers - u64::from(seeded(Bug::FlushMissesTheLast) && covers > 0))?;
        if !seeded(Bug::TrimForgotten) {
            self.ftl.save_trims(&mut self.media, TrimTarget::Host, Waiter::None)?;
        }
        self.save_map();
        self.await_metadata(command);
        if !self.stage.evicting.is_empty() && !seeded(Bug::FlushReturnsEarly) {
            self.commands[command].remaining += 1;
            let until = self.stage.evictions_base + self.stage.evicting.len() as u64;
            debug_assert_eq!(
                self.stage.evicting.front(),
                Some(&false),
                "an eviction that is on flash is not waited for"
            );
            self.waiting.for_evictions.push_back((until, command));
        }
        Ok(())
    }
}

/// The bits of `count` sectors from `first` on.
#[inline]
pub(super) const fn mask_of(first: u64, count: u64) -> u64 {
    debug_assert!(count > 0 && first + count <= 64, "a unit has at most 64 sectors, and a part of it at least one");
    (u64::MAX >> (64 - count)) << first
}

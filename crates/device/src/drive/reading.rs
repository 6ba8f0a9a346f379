//! Reads: what the buffer holds, and the pages on flash that have the rest.

use ssdlab_base::{Nanos, Request, SECTOR_BYTES};
use ssdlab_flash::{Cause, Lpn, Ppn};

use super::dispatch::{Stall, mask_of};
use super::gathering::Gathered;
use super::multi_version_read::VersionRead;
use super::stripe_read::Rebuild;
use super::{Drive, Timer};
use crate::ftl::Found;
use crate::media::{Location, Place};
use crate::seeded::{Bug, seeded};
use crate::slots::Slots;
use crate::waiter::Waiter;
use crate::{Reads, Status};

/// Reads that take more than one step.
#[derive(Default)]
pub(super) struct SteppedReads {
    /// From version to version.
    pub(super) versions: Slots<VersionRead>,
    /// Reads of pages whose data is copied from the read buffer.
    pub(super) gathered: Slots<Gathered>,
    /// Pages that are being had from the rest of their stripes.
    pub(super) rebuilds: Slots<Rebuild>,
}

impl Drive {
    pub(super) fn read(&mut self, command: u32) -> Result<(), Stall> {
        if self.config.controller.reads == Reads::Gather {
            return self.read_gathered(command);
        }
        self.read_pages(command, Drive::read_page)
    }

    /// Reads what the buffer does not hold, a page at a time: `read` starts the read of so many sectors of a page.
    #[inline]
    pub(super) fn read_pages(
        &mut self,
        command: u32,
        mut read: impl FnMut(&mut Drive, u32, Ppn, u32),
    ) -> Result<(), Stall> {
        let request = self.commands[command].request;
        if request.sectors == 0 {
            return Ok(());
        }
        let per_sector = self.media.flash.store.sector_data_bytes();
        if per_sector > 0 && self.commands[command].cursor == 0 {
            self.commands[command].sector_data = vec![0; request.sectors as usize * per_sector];
        }
        let per_unit = self.sectors_per_unit;
        // Sectors before the cursor were looked up before the command waited for map pages.
        let mut sector = request.sector + u64::from(self.commands[command].cursor);
        let mut mapped_to = if self.caches_map { sector } else { request.end() };
        let mut from_buffer = 0;
        // Neighbours on one page share its read.
        let (mut page, mut page_sectors) = (Ppn::NONE, 0);
        while sector < request.end() {
            let lpn = Lpn((sector / per_unit) as u32);
            if sector >= mapped_to {
                match self.map_for_read(command, sector) {
                    Ok(to) => mapped_to = to,
                    Err(stall) => {
                        read(self, command, page, page_sectors);
                        self.commands[command].cursor = (sector - request.sector) as u32;
                        self.served_from_buffer(command, from_buffer);
                        return Err(stall);
                    }
                }
            }
            self.media.look_up(1);
            let end = request.end().min((u64::from(lpn.0) + 1) * per_unit);
            let mask = mask_of(sector % per_unit, end - sector);
            let held = self.buffered_mask(lpn) & mask;
            from_buffer += held.count_ones();
            if per_sector > 0 {
                self.read_sector_data(command, lpn, sector, end, held);
            }
            if held == mask {
                self.counters.buffer.read_hits += 1;
                if self.stage.caches_reads {
                    self.hit_buffer(lpn);
                }
            } else {
                let missing = (mask & !held).count_ones();
                let found = self.ftl.find(lpn);
                if self.media.processor.is_some() {
                    let owed = self.ftl.take_owed_probes();
                    self.media.look_up(owed);
                }
                match found {
                    Found::Unmapped => self.counters.unmapped_sectors_read += u64::from(missing),
                    Found::Versions => {
                        self.counters.buffer.read_misses += u64::from(self.stage.buffer.is_some());
                        self.read_versions(command, lpn, mask & !held);
                    }
                    Found::At { unit } => {
                        if self.stage.buffer.is_some() {
                            self.counters.buffer.read_misses += 1;
                        }
                        if self.media.flash.oob.is_poisoned(unit) && !seeded(Bug::LostDataReadsGood) {
                            self.commands[command].status = Status::UncorrectableRead;
                        }
                        if self.stage.caches_reads {
                            self.will_keep(command, lpn, mask & !held, unit);
                        }
                        let this = self.media.page_of(unit);
                        if this != page {
                            read(self, command, page, page_sectors);
                            (page, page_sectors) = (this, 0);
                        }
                        page_sectors += missing;
                    }
                }
            }
            sector = end;
        }
        read(self, command, page, page_sectors);
        self.served_from_buffer(command, from_buffer);
        Ok(())
    }

    /// Asks for the map pages of what a read has still to look up from `sector` on; returns the sector up to which it can.
    fn map_for_read(&mut self, command: u32, sector: u64) -> Result<u64, Stall> {
        let per_unit = self.sectors_per_unit;
        let request = self.commands[command].request;
        let first = Lpn((sector / per_unit) as u32);
        let end = Lpn(request.end().div_ceil(per_unit) as u32).min(self.map_reach(first));
        if end.0 == first.0 + 1 && self.stage.buffer.is_none() {
            // Most reads are of one unit: no list is made for it.
            self.ask_for_map(Waiter::Read(command), &[first])?;
        } else {
            let lpns: Vec<Lpn> = Lpn::each(first..end).filter(|lpn| !self.holds_read(&request, *lpn)).collect();
            self.ask_for_map(Waiter::Read(command), &lpns)?;
        }
        Ok(request.end().min(u64::from(end.0) * per_unit))
    }

    /// Whether the buffer holds all that a read wants of a unit.
    fn holds_read(&self, request: &Request, lpn: Lpn) -> bool {
        let base = u64::from(lpn.0) * self.sectors_per_unit;
        let (from, to) = (request.sector.max(base), request.end().min(base + self.sectors_per_unit));
        let mask = mask_of(from - base, to - from);
        self.buffered_mask(lpn) & mask == mask
    }

    /// A read that took so many sectors from the buffer waits for its RAM, and until they are copied.
    #[inline]
    fn served_from_buffer(&mut self, command: u32, sectors: u32) {
        if sectors > 0 && self.media.processor.is_some() && self.media.flash.timed() {
            self.wait_for_copy(command, sectors);
        }
        let latency = self.config.buffer.latency;
        if sectors > 0 && latency > Nanos::ZERO && self.media.flash.timed() {
            self.commands[command].remaining += 1;
            self.timers.set(self.media.now + latency, Timer::Finish(command));
        }
    }

    /// A read waits until `sectors` sectors of it that are in DRAM are copied.
    #[cold]
    pub(super) fn wait_for_copy(&mut self, command: u32, sectors: u32) {
        let copied = self.copied_at(u64::from(sectors));
        if copied > self.media.now {
            self.commands[command].remaining += 1;
            self.timers.set(copied, Timer::Copied(command));
        }
    }

    /// Starts the read of `sectors` sectors of a physical page, unless the controller still holds it.
    #[inline]
    pub(super) fn read_page(&mut self, command: u32, page: Ppn, sectors: u32) {
        if page == Ppn::NONE {
            return;
        }
        debug_assert!(sectors > 0, "page {page} is read for no sector");
        let place = self.media.place_of_page(page);
        if !self.media.flash.is_written(place.block, place.page) {
            self.read_in_flight(command, place, sectors);
            return;
        }
        if self.failures.pending_rewrites.iter().any(|pending| pending.place == place) {
            // Its program failed and it is still in RAM.
            return;
        }
        if !self.media.flash.timed() {
            if self.media.read_now(place, Cause::Host) {
                self.commands[command].status = Status::UncorrectableRead;
            }
            return;
        }
        self.commands[command].remaining += 1;
        let bytes = match self.config.controller.reads {
            Reads::Page => self.config.flash.geometry.page_bytes,
            Reads::Sectors | Reads::Gather => sectors * SECTOR_BYTES as u32,
        };
        let owner = self.read_owner(command, sectors);
        self.media.read(place, bytes, Cause::Host, owner);
    }

    /// A page on its way to flash is in RAM; only if it is still being completed from its old version does a read wait.
    /// What a copyback moves is in the chips alone, and is read where it comes from.
    #[inline(never)]
    fn read_in_flight(&mut self, command: u32, place: Place, sectors: u32) {
        match self.media.locate_in_flight(place) {
            Location::InRam => {}
            Location::OnFlash(source) => {
                let from = self.media.place_of_page(source);
                self.commands[command].remaining += 1;
                let owner = self.read_owner(command, sectors);
                self.media.read(from, sectors * SECTOR_BYTES as u32, Cause::Host, owner);
            }
            Location::Building(program) => {
                let units = self.units_read_of(command, place);
                self.commands[command].remaining += 1;
                self.waiting.for_programs.entry(program).or_default().push((command, units));
            }
        }
    }

    /// Which units of a page a read takes from there, and not from the buffer.
    fn units_read_of(&self, command: u32, place: Place) -> u64 {
        let request = &self.commands[command].request;
        let first = self.media.unit_at(place);
        let lpns = request.sector / self.sectors_per_unit..request.end().div_ceil(self.sectors_per_unit);
        let mut units = 0;
        for lpn in lpns {
            let Found::At { unit } = self.ftl.find(Lpn(lpn as u32)) else { continue };
            let base = lpn * self.sectors_per_unit;
            let (from, to) = (request.sector.max(base), request.end().min(base + self.sectors_per_unit));
            let in_page = (first..first + self.media.units_per_page).contains(&unit);
            if in_page && mask_of(from - base, to - from) & !self.buffered_mask(Lpn(lpn as u32)) != 0 {
                units |= 1 << (unit - first);
            }
        }
        units
    }

    pub(super) fn buffered_mask(&self, lpn: Lpn) -> u64 {
        let Some(buffer) = &self.stage.buffer else { return 0 };
        buffer.find(lpn).map_or(0, |slot| buffer.entry(slot).mask)
    }

    /// What the sectors of one unit hold: the buffer's version where it has one, else flash's.
    #[inline(never)]
    fn read_sector_data(&mut self, command: u32, lpn: Lpn, sector: u64, end: u64, held: u64) {
        let per_sector = self.media.flash.store.sector_data_bytes();
        let per_unit = self.sectors_per_unit;
        let command = &mut self.commands[command];
        let start = ((sector - command.request.sector) as usize) * per_sector;
        let count = end - sector;
        let out = &mut command.sector_data[start..start + count as usize * per_sector];
        let all_held = held == mask_of(sector % per_unit, count);
        if !all_held {
            let whole = match self.ftl.find(lpn) {
                Found::Unmapped => true,
                Found::At { unit } => self.media.flash.store.read(unit, sector % per_unit, out),
                Found::Versions => {
                    let reads = self.ftl.stepped_reads().expect("the design found versions");
                    reads.read_versions(&self.media, lpn, sector % per_unit, out)
                }
            };
            if !whole {
                command.status = Status::UncorrectableRead;
            }
        }
        let Some(buffer) = &self.stage.buffer else { return };
        let Some(slot) = buffer.find(lpn) else { return };
        for index in 0..count {
            let at = (sector + index) % per_unit;
            if held >> at & 1 != 0 {
                let range = at as usize * per_sector..(at as usize + 1) * per_sector;
                out[index as usize * per_sector..(index as usize + 1) * per_sector]
                    .copy_from_slice(&buffer.entry(slot).sector_data[range]);
            }
        }
    }
}

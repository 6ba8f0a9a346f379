//! Parity of stripes: when it is programmed, what it holds, and what it gives back.
//!
//! A stripe is the pages at one offset of a superblock's members. Its last page, or its last die's pages, hold the XOR of
//! the others. Stripes begin a die further on each time, so that every die has its share of reads and of parity.
//!
//! ```text
//!              die 0          die 1          die 2
//!   stripe 0   d0 d1          d2 d3          P0 P1       ftl.parity = "die", two planes a die: P0 is d0 ^ d2
//!   stripe 1   P0 P1          d0 d1          d2 d3
//!   stripe 2   d2 d3          P0 P1          d0 d1
//! ```
//!
//! The controller keeps the XOR of an open stripe in RAM. As soon as the last page of data is given out parity follows it;
//! its program begins when all data of the stripe is in RAM. A page is protected from the moment on in which it is on flash:
//! by what is there of its stripe, and by what is in RAM.
//!
//! A power cut takes the XOR of open stripes away. Where no parity page of such a stripe was programmed the stripe goes on:
//! what it has is read again. Where one was it was made for pages that the cut may have kept from flash: what is missing
//! is filled with pages that say so, and the stripe stays unprotected until its data is moved.

use std::collections::VecDeque;
use std::ops::Range;

use ssdlab_flash::{BlockId, Cause, Class, Lpn, NONE, OpId, OpKind, Ppn, Submit, UnitId};

use super::frontier::{CLOSED, Frontier};
use super::{Media, Place};
use crate::ftl::MAX_UNITS;
use crate::seeded::{Bug, seeded};
use crate::superblocks::Role;
use crate::waiter::Waiter;

/// Where the controller has a page of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StripePage {
    /// It can be read.
    OnFlash,
    /// Its program has not ended.
    InRam,
    /// It was not given out yet, and the parity of the stripe was not either.
    ToCome,
    /// It is lost, or the parity of the stripe is not of these pages.
    Nowhere,
}

impl Media {
    /// The number that a frontier comes to from `next` with so many more pages of data.
    pub(super) fn number_after(&self, next: u32, data: u32) -> u32 {
        let (width, stripe) = (self.pool.superblocks.width(), self.stripe_width());
        if width == stripe {
            return next + data;
        }
        let given = next / width * stripe + (next % width).min(stripe) + data;
        given / stripe * width + given % stripe
    }

    /// Pages of data that the superblock of a frontier has still to give; 0 where none is open.
    pub(super) fn data_pages_left(&self, slot: usize) -> u32 {
        let open = self.frontiers[slot];
        if open.block == NONE {
            return 0;
        }
        let (width, stripe) = (self.pool.superblocks.width(), self.stripe_width());
        if width == stripe {
            return self.data_pages_per_superblock.saturating_sub(open.next_page);
        }
        let gaps = &self.skipped_pages[slot];
        let next = open.next_page + gaps.len() as u32;
        let in_gaps = gaps.iter().filter(|(_, role)| *role == Role::Data).count() as u32;
        assert!(
            next <= self.pages_per_superblock,
            "frontier {slot} comes to page {next} of {}",
            self.pages_per_superblock
        );
        in_gaps + self.data_pages_per_superblock - (next / width * stripe + (next % width).min(stripe))
    }

    /// A page of data was programmed: its stripe's parity follows if it was the last.
    #[inline]
    pub(super) fn stripe_goes_on(&mut self, place: Place, frontier: Frontier, op: OpId) {
        if self.pool.superblocks.parity() == 0 {
            return;
        }
        let slot = self.slot(self.group_of(place.block), frontier);
        if op != NONE && self.flash.waits(op) {
            self.deferred_programs[slot].push((op, place));
        }
        self.fill_stripe(slot, frontier);
    }

    /// Programs the pages that each frontier has before its next page of data, after recovery.
    pub(crate) fn fill_stripes(&mut self) {
        for slot in 0..self.frontiers.len() {
            self.fill_stripe(slot, self.frontier_of(slot));
        }
    }

    /// Whose frontier it is: relocation's, or a host's.
    fn frontier_of(&self, slot: usize) -> Frontier {
        let relocates = self.separate_gc && slot as u32 % self.row == self.streams;
        if relocates { Frontier::Gc } else { Frontier::Host(0) }
    }

    /// Programs the pages that a frontier has before its next page of data.
    fn fill_stripe(&mut self, slot: usize, frontier: Frontier) {
        if self.pool.superblocks.parity() == 0 {
            return;
        }
        while let Some((place, role)) = self.stripe_page_due(slot) {
            assert_ne!(role, Role::Data, "{place:?} is for data");
            assert!(!self.flash.is_written(place.block, place.page), "{place:?} of frontier {slot} is written already");
            let mut open = self.frontiers[slot];
            self.skipped_pages[slot].pop_front();
            open.next_page += 1;
            if open.next_page == self.pages_per_superblock || !self.row_fits(slot, open) {
                self.pool.fill_up(open.block, open.next_page);
                self.skipped_pages[slot].clear();
                open = CLOSED;
            }
            self.frontiers[slot] = open;
            self.program_of_stripe(slot, frontier, place, role);
            if self.stripe_page_due(slot).is_none() {
                self.deferred_programs[slot].clear();
            }
        }
    }

    /// Ends the stripe that a frontier has begun, without more data.
    pub(super) fn close_stripe(&mut self, slot: usize) {
        let superblocks = &self.pool.superblocks;
        let (width, superblock) = (superblocks.width(), self.frontiers[slot].block);
        if superblocks.parity() == 0 || !self.skipped_pages[slot].is_empty() {
            return;
        }
        while !self.frontiers[slot].next_page.is_multiple_of(width) {
            let number = self.frontiers[slot].next_page;
            let place = self.pool.superblocks.place(superblock, number);
            let role = if self.pool.superblocks.role(number) == Role::Data { Role::Pad } else { Role::Parity };
            assert!(number < self.pages_per_superblock, "page {number} closes a stripe of superblock {superblock}");
            self.frontiers[slot].next_page += 1;
            self.program_of_stripe(slot, self.frontier_of(slot), place, role);
        }
    }

    /// The page that comes next in a frontier, unless that holds data.
    pub(super) fn stripe_page_due(&self, slot: usize) -> Option<(Place, Role)> {
        let open = self.frontiers[slot];
        if open.block == NONE {
            return None;
        }
        let superblocks = &self.pool.superblocks;
        let by_number = || (superblocks.place(open.block, open.next_page), superblocks.role(open.next_page));
        let next = self.skipped_pages[slot].front().copied().unwrap_or_else(by_number);
        (next.1 != Role::Data).then_some(next)
    }

    fn program_of_stripe(&mut self, slot: usize, frontier: Frontier, place: Place, role: Role) {
        assert_eq!(self.group_of(place.block), slot as u32 / self.row, "{place:?} is of frontier {slot}");
        let owner = if role == Role::Filler { Lpn::FILLER } else { Lpn::PARITY };
        let sequence = self.take_sequence(1);
        self.flash.oob.write(place.block, place.page, &[owner; MAX_UNITS][..self.units_per_page as usize], sequence);
        self.bind_stripe_page(place, role);
        if !self.flash.timed() {
            if self.flash.execute(OpKind::Program, Cause::Parity, place.block, place.page) {
                self.program_failed_now(place, Cause::Parity, Waiter::None, &[]);
            }
            self.close_if_written(place.block);
            return;
        }
        let of_it: Vec<Place> = self.pool.superblocks.bound_to(place).collect();
        let mut unready = self.deferred_programs[slot].clone();
        unready.retain(|(op, data)| {
            of_it.contains(data) && self.flash.awaits_reads(*op, data.block, data.page) && role == Role::Parity
        });
        if seeded(Bug::ParityDoesNotWait) {
            unready.clear();
        }
        let shared = !self.separate_gc;
        let class = if frontier == Frontier::Gc && !shared { Class::GcWrite } else { Class::HostWrite };
        let op = self.issue(Submit {
            kind: OpKind::Program,
            cause: Cause::Parity,
            class,
            block: place.block,
            page: place.page,
            source: Ppn::NONE,
            bytes: self.unit_bytes * self.units_per_page,
            token: Waiter::None.pack(),
            pin: BlockId::NONE,
            waits_for: unready.len() as u16,
        });
        if self.units_per_page > 1 {
            self.remember_pins(op, &[]);
        }
        for (data, _) in unready {
            self.flash.link_ready(data, op);
        }
    }

    /// What a page of parity or a filler holds, where contents are kept.
    fn bind_stripe_page(&mut self, place: Place, role: Role) {
        if self.flash.store.sector_data_bytes() == 0 {
            return;
        }
        let first = self.unit_at(place);
        for index in 0..self.units_per_page {
            let mut others: Vec<Place> = self.pool.superblocks.bound_to(place).collect();
            if role != Role::Parity {
                others.clear();
            }
            if seeded(Bug::ParityMissesPage) {
                others.pop();
            }
            let sector_data = self.xor_of(&others, index);
            self.flash.store.write(first + index, &sector_data);
        }
    }

    /// The XOR of a unit of several pages; units that hold nothing count as zeroes.
    fn xor_of(&self, pages: &[Place], index: u32) -> Vec<u8> {
        let length = self.flash.store.unit_data_bytes();
        let (mut sum, mut sector_data) = (vec![0; length], vec![0; length]);
        for place in pages {
            let unit = self.unit_at(*place) + index;
            if self.units_per_page > 1 && self.flash.oob.lpn(unit) == Lpn::NONE {
                continue;
            }
            // Damage shows: what is built from it does not agree with what was there.
            _ = self.flash.store.read(unit, 0, &mut sector_data);
            sum.iter_mut().zip(&sector_data).for_each(|(sum, byte)| *sum ^= byte);
        }
        sum
    }

    /// What a unit in flight was to hold is lost; the parity that waits for it takes up what is there instead.
    pub(crate) fn lose(&mut self, unit: UnitId) {
        self.flash.lose(unit);
        let place = self.place_of(unit);
        self.relist(place);
        self.rebind_parity(place);
    }

    fn rebind_parity(&mut self, place: Place) {
        if self.pool.superblocks.parity() == 0 || self.flash.store.sector_data_bytes() == 0 {
            return;
        }
        let superblock = self.pool.superblocks.of(place.block);
        if superblock == NONE {
            return;
        }
        let width = self.pool.superblocks.width();
        let bound: Vec<Place> = self.pool.superblocks.bound_to(place).collect();
        let numbers = place.page * width + self.stripe_width()..(place.page + 1) * width;
        let parity = numbers.map(|number| self.pool.superblocks.place(superblock, number));
        let in_flight = |at: &Place| self.flash.find_program(at.block, at.page).is_some();
        if let Some(at) = parity.into_iter().filter(|at| bound.contains(at)).find(in_flight) {
            self.bind_stripe_page(at, Role::Parity);
        }
    }

    /// The pages of a superblock's stripes `rows` that are not written, in the order in which they are to be; notes what has
    /// to be read again for the parity of stripes that go on.
    pub(super) fn stripe_gaps(&mut self, superblock: u32, rows: Range<u32>) -> VecDeque<(Place, Role)> {
        let width = self.pool.superblocks.width();
        assert!(rows.end <= self.pages_per_block, "stripes {rows:?} of superblock {superblock}");
        let mut gaps = VecDeque::new();
        for row in rows {
            let numbers = row * width..(row + 1) * width;
            let pages: Vec<(Place, Role)> = numbers
                .map(|number| (self.pool.superblocks.place(superblock, number), self.pool.superblocks.role(number)))
                .collect();
            let written = |place: &Place| self.flash.blocks.get(place.block).programmed > row;
            let stale = pages.iter().any(|(place, role)| *role == Role::Parity && written(place))
                && !seeded(Bug::StaleParityTrusted);
            for (place, role) in pages {
                match (written(&place), stale) {
                    (true, false) => self.reread.push(place),
                    (true, true) => {}
                    (false, false) => gaps.push_back((place, role)),
                    (false, true) => gaps.push_back((place, Role::Filler)),
                }
            }
        }
        gaps
    }

    /// Whether a page that cannot be read can be had from the rest of its stripe: all of that is in RAM or can be read from
    /// flash, and the parity among it is of these pages.
    pub(crate) fn can_rebuild(&self, place: Place) -> bool {
        if self.pool.superblocks.parity() == 0 || self.flash.oob.lpn(self.unit_at(place)) == Lpn::FILLER {
            return false;
        }
        let superblock = self.pool.superblocks.of(place.block);
        superblock != NONE
            && self.pool.superblocks.is_whole(superblock)
            && self.flash.is_written(place.block, place.page)
            && self
                .pool
                .superblocks
                .bound_to(place)
                .all(|other| self.stripe_page(superblock, other) != StripePage::Nowhere)
    }

    /// Where the controller has a page of a stripe.
    fn stripe_page(&self, superblock: u32, place: Place) -> StripePage {
        let filler = || self.flash.oob.lpn(self.unit_at(place)) == Lpn::FILLER;
        if self.flash.is_written(place.block, place.page) {
            let kept = self.flash.blocks.readable(self.ppn_at(place)) && !filler();
            return if kept { StripePage::OnFlash } else { StripePage::Nowhere };
        }
        if self.flash.find_program(place.block, place.page).is_some() {
            return if filler() { StripePage::Nowhere } else { StripePage::InRam };
        }
        // It is still to come, and so is the parity, which is in RAM as far as it goes.
        let Some(slot) = self.frontiers.iter().position(|open| open.block == superblock) else {
            return StripePage::Nowhere;
        };
        let fills = self.skipped_pages[slot].contains(&(place, Role::Filler));
        if fills { StripePage::Nowhere } else { StripePage::ToCome }
    }

    /// What is on flash of the rest of a page's stripe.
    fn on_flash(&self, place: Place) -> Vec<Place> {
        let superblock = self.pool.superblocks.of(place.block);
        let others = self.pool.superblocks.bound_to(place);
        others.filter(|other| self.stripe_page(superblock, *other) == StripePage::OnFlash).collect()
    }

    /// Starts the reads of the rest of a stripe, as far as that is not in RAM, for `owner`; returns how many.
    pub(crate) fn read_stripe(&mut self, place: Place, cause: Cause, owner: Waiter) -> u32 {
        assert!(self.pool.superblocks.parity() > 0, "{place:?} has no stripe to be read");
        assert!(self.flash.timed(), "the stripe of {place:?} is read in time");
        let waited_for = matches!(cause, Cause::Host | Cause::ReadModifyWrite);
        let class = if waited_for { Class::HostRead } else { Class::GcRead };
        let others = self.on_flash(place);
        let bytes = self.unit_bytes * self.units_per_page;
        for other in &others {
            self.read_as(class, *other, bytes, Cause::Rebuild, owner);
        }
        others.len() as u32
    }

    /// Reads a page without time, from the rest of its stripe if need be; true if it is lost.
    pub(crate) fn read_now(&mut self, place: Place, cause: Cause) -> bool {
        assert!(!self.flash.timed(), "{place:?} is read without time while others take it");
        if !self.flash.execute(OpKind::Read, cause, place.block, place.page) {
            return false;
        }
        if !self.can_rebuild(place) {
            return true;
        }
        let mut failed = false;
        for other in self.on_flash(place) {
            failed |= self.flash.execute(OpKind::Read, Cause::Rebuild, other.block, other.page);
        }
        if !failed {
            let from_ram = self.has_parity_in_ram(place);
            self.rebuilt(place, NONE, from_ram);
            self.wakes.rebuilt.push(place);
        }
        failed
    }

    /// Whether the XOR of a page's stripe is in RAM: its parity was not given out yet.
    pub(crate) fn has_parity_in_ram(&self, place: Place) -> bool {
        let superblock = self.pool.superblocks.of(place.block);
        self.pool.superblocks.bound_to(place).any(|other| self.stripe_page(superblock, other) == StripePage::ToCome)
    }

    /// The rest of a page's stripe was read: what it gives is what the page holds, and what `waiting` and the programs behind
    /// it take from there. `from_ram` says that the XOR of the stripe was in RAM when the reads began, from which it was
    /// taken: the stripe may have got its parity since, or was given up without. Returns the units, with their data before
    /// and now, that are not what was programmed: none, unless parity is wrong.
    pub(crate) fn rebuilt(&mut self, place: Place, waiting: OpId, from_ram: bool) -> Vec<(UnitId, Vec<u8>, Vec<u8>)> {
        self.rebuilt_pages += 1;
        if self.flash.store.sector_data_bytes() == 0 {
            return Vec::new();
        }
        let mut others: Vec<Place> = self.pool.superblocks.bound_to(place).collect();
        assert!(!others.is_empty(), "{place:?} was rebuilt from nothing");
        if from_ram {
            // The XOR of what is there has what the page holds.
            return Vec::new();
        }
        debug_assert!(
            !self.has_parity_in_ram(place),
            "{place:?} was rebuilt from its stripe's parity, which is still to come"
        );
        if seeded(Bug::RebuiltFromNextStripe) {
            others[0].page = (others[0].page + 1) % self.pages_per_block;
        }
        let first = self.unit_at(place);
        let mut wrong = Vec::new();
        for index in 0..self.units_per_page {
            let unit = first + index;
            if self.units_per_page > 1 && self.flash.oob.lpn(unit) == Lpn::NONE {
                continue;
            }
            let mut before = vec![0; self.flash.store.unit_data_bytes()];
            _ = self.flash.store.read(unit, 0, &mut before);
            let now = self.xor_of(&others, index);
            if before != now {
                self.flash.store.write(unit, &now);
                wrong.push((unit, before, now));
            }
        }
        if !wrong.is_empty() && waiting != NONE {
            self.taken_from(place, waiting, |media, unit| media.take_over(unit, &wrong));
        }
        wrong
    }

    /// What a unit in flight took from a page is what was rebuilt of it.
    fn take_over(&mut self, unit: UnitId, wrong: &[(UnitId, Vec<u8>, Vec<u8>)]) {
        let per_sector = self.flash.store.sector_data_bytes();
        let mut sector_data = vec![0; self.flash.store.unit_data_bytes()];
        _ = self.flash.store.read(unit, 0, &mut sector_data);
        for (_, before, now) in wrong {
            replace_sector_data(&mut sector_data, per_sector, before, now);
        }
        self.flash.store.write(unit, &sector_data);
        self.rebind_parity(self.place_of(unit));
    }
}

/// Sectors whose data is that of `before` get that of `now`.
pub(crate) fn replace_sector_data(sector_data: &mut [u8], per_sector: usize, before: &[u8], now: &[u8]) {
    assert_eq!(sector_data.len(), before.len(), "data is replaced by as much");
    assert_eq!(before.len(), now.len(), "data is replaced by as much");
    assert!(per_sector > 0, "sectors of no bytes are replaced");
    for ((sector_data, before), now) in
        sector_data.chunks_mut(per_sector).zip(before.chunks(per_sector)).zip(now.chunks(per_sector))
    {
        if sector_data == before {
            sector_data.copy_from_slice(now);
        }
    }
}

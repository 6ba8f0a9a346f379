//! Where the data of a page is: in the controller's RAM, on flash, or on its way there.
//!
//! A host read, a page that is completed from its old version and a page that is moved all ask the same question.

use ssdlab_flash::{Cause, OpId, Ppn, UnitId};

use super::{Media, Place};
use crate::waiter::Waiter;

/// Where the data of a page can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// In the controller's RAM: its program is in flight or failed.
    InRam,
    /// On flash, in this page: another one while a copyback moves it inside the chips.
    OnFlash(Ppn),
    /// In the controller's RAM when the reads have ended that this program in flight waits for.
    Building(OpId),
}

/// What a program does for the data of a page that goes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The data is in the controller's RAM.
    Here,
    /// The program waits for `op`, which takes the data from page `from`: a read that was started for it, or the last operation
    /// that a program in flight waits for.
    After { op: OpId, from: Ppn, is_read: bool },
    /// The data was read without time.
    Read { failed: bool },
}

impl Media {
    /// Where the data of a page is that was given out and programmed.
    #[inline]
    pub(crate) fn locate(&self, page: Ppn) -> Location {
        let place = self.place_of_page(page);
        if !self.flash.blocks.readable(page) {
            return Location::InRam;
        }
        if self.flash.is_written(place.block, place.page) {
            return Location::OnFlash(page);
        }
        self.locate_in_flight(place)
    }

    /// Where the data of a page is whose program has not ended.
    #[inline(never)]
    pub(crate) fn locate_in_flight(&self, place: Place) -> Location {
        debug_assert!(!self.flash.is_written(place.block, place.page), "the program of {place:?} has ended");
        let Some(program) = self.flash.find_program(place.block, place.page) else { return Location::InRam };
        match self.flash.copyback_source(program) {
            Some(source) => Location::OnFlash(source),
            None if self.flash.waits(program) => Location::Building(program),
            None => Location::InRam,
        }
    }

    /// Stores the data of a unit that is programmed: the sectors in `mask` as `given`, the others as the unit `old` has them, or
    /// zeroes with [`UnitId::NONE`]. Where what is kept of `old` is damaged the unit is lost.
    pub(crate) fn store_over(&mut self, unit: UnitId, old: UnitId, mask: u64, given: &[u8]) {
        let per_sector = self.flash.store.sector_data_bytes();
        if per_sector == 0 {
            return;
        }
        let unit_data_bytes = self.flash.store.unit_data_bytes();
        let sectors = unit_data_bytes / per_sector;
        if mask.count_ones() as usize == sectors {
            return self.flash.store.write(unit, given);
        }
        let mut data = vec![0; unit_data_bytes];
        debug_assert!(mask == 0 || given.len() == data.len(), "{} bytes for sectors {mask:#x} of {unit}", given.len());
        if old != UnitId::NONE && !self.flash.store.read(old, 0, &mut data) {
            self.flash.oob.poison(unit);
        }
        for sector in (0..sectors).filter(|sector| mask >> sector & 1 != 0) {
            let range = sector * per_sector..(sector + 1) * per_sector;
            data[range.clone()].copy_from_slice(&given[range]);
        }
        self.flash.store.write(unit, &data);
    }

    /// Starts what brings the data of a page to a program that takes `bytes` bytes of it.
    pub(crate) fn fetch(&mut self, page: Ppn, bytes: u32, cause: Cause) -> Source {
        match self.locate(page) {
            Location::InRam => Source::Here,
            Location::Building(program) => {
                Source::After { op: self.flash.last_waiter(program), from: page, is_read: false }
            }
            Location::OnFlash(from) if self.flash.timed() => {
                let op = self.read(self.place_of_page(from), bytes, cause, Waiter::None);
                Source::After { op, from, is_read: true }
            }
            Location::OnFlash(from) => Source::Read { failed: self.read_now(self.place_of_page(from), cause) },
        }
    }
}

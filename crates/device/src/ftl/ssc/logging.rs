//! Which notes are needed, and how they get to flash.

use arrayvec::ArrayVec;
use ssdlab_flash::{BlockId, Cause, Lpn, OpKind, Ppn, UnitId};

use super::Ssc;
use super::log::{IN_SRAM, Note};
use crate::ftl::{MAX_UNITS, NoSpace, TrimTarget};
use crate::media::{Frontier, Media, Programming};
use crate::waiter::Waiter;

impl Ssc {
    /// The note that a power cut must find of a block; `None` if flash tells the same without it.
    fn note_of(&self, media: &Media, lpn: u32) -> Option<Note> {
        let fact = self.log.facts.get(&lpn)?;
        let slot = self.table.slot(Lpn(lpn))?;
        if slot.unit == UnitId::NONE {
            return Some(Note { lpn, floor: media.sequence(), clean: false });
        }
        let floor = fact.floor.expect("what is remembered of a block that is there has a number");
        let place = media.place_of(slot.unit);
        let is_cleaned = fact.clean && media.flash.oob.sequence(place.block, place.page) == floor;
        let is_hidden = media.is_durable(media.page_of(slot.unit));
        (is_cleaned || !is_hidden).then_some(Note { lpn, floor, clean: fact.clean })
    }

    /// Starts the programs that put all notes in SRAM on flash; returns how many.
    pub(super) fn save_notes(&mut self, media: &mut Media, to: TrimTarget, owner: Waiter) -> Result<u32, NoSpace> {
        let mut started = 0;
        self.forget_told(media);
        while !self.log.in_sram.is_empty() {
            let name = Lpn(self.logical_units + self.log.unused());
            let (group, frontier) = match to {
                TrimTarget::Host => {
                    let frontier = Frontier::Host(0);
                    (self.allocator.choose(media, name, frontier).ok_or(NoSpace)?, frontier)
                }
                TrimTarget::Gc(group) => (group, Frontier::Gc),
            };
            if !media.has_page(group, frontier) {
                return Err(NoSpace);
            }
            let place = media.take_page(group, frontier).expect("a page was seen to be there");
            let first = media.unit_at(place);
            let mut owners: ArrayVec<Lpn, MAX_UNITS> = ArrayVec::new();
            let mut pins: ArrayVec<BlockId, MAX_UNITS> = ArrayVec::new();
            while owners.len() < self.units_per_page as usize
                && !self.log.in_sram.is_empty()
                && self.allocator.share_page(name, Lpn(self.logical_units + self.log.unused()))
            {
                let unit = first + owners.len() as u32;
                let (number, superseded) = self.write_log_unit(media, unit);
                owners.push(Lpn(self.logical_units + number));
                pins.extend(superseded);
                self.counters.log_units += 1;
            }
            assert!(!owners.is_empty(), "a page of the log at {place:?} has no unit");
            assert!(pins.len() <= owners.len(), "{} log units took the place of {}", owners.len(), pins.len());
            let (kind, cause, source) = (OpKind::Program, Cause::Metadata, Ppn::NONE);
            let how = Programming { kind, cause, frontier, owner, pins: &pins, after: &[], taken: &[], source };
            media.program(place, &owners, how);
            let empty = self.units_per_page as usize - owners.len();
            media.padding_bytes += empty as u64 * u64::from(media.unit_bytes);
            started += 1;
            self.forget_told(media);
        }
        Ok(started)
    }

    /// Notes that recovery does not need any more leave SRAM, and log units that have no others are given up.
    fn forget_told(&mut self, media: &mut Media) {
        let of_sram = self.log.in_sram.iter().copied();
        self.forget_all(media, &of_sram.collect::<Vec<u32>>());
        for number in self.log.hardly_needed() {
            let lpns = self.log.units[number as usize].lpns.clone();
            let at_home = |lpn: &u32| self.log.facts.get(lpn).is_some_and(|fact| fact.home == number);
            self.forget_all(media, &lpns.into_iter().filter(at_home).collect::<Vec<u32>>());
            if self.still_told_by(media, number).is_empty() {
                let unit = self.log.end(number);
                self.invalidate(media, unit, false);
            }
        }
    }

    /// Blocks with a note in a log unit that a power cut may have to find there: it is needed, and what took its place, if anything did, is
    /// not on flash.
    fn still_told_by(&self, media: &Media, number: u32) -> Vec<u32> {
        let is_told = |home: u32| {
            let at = self.log.units[home as usize].unit;
            at != UnitId::NONE && media.is_durable(media.page_of(at))
        };
        let is_needed = |lpn: &u32| {
            let home = self.log.facts.get(lpn).map(|fact| fact.home);
            home.is_some_and(|home| home == number || home == IN_SRAM || !is_told(home))
        };
        self.log.units[number as usize].lpns.iter().copied().filter(is_needed).collect()
    }

    /// Forgets notes that flash tells without.
    fn forget_all(&mut self, media: &Media, lpns: &[u32]) {
        for lpn in lpns.iter().filter(|lpn| self.note_of(media, **lpn).is_none()).copied().collect::<Vec<u32>>() {
            self.log.forget(lpn);
        }
    }

    /// The log unit with the fewest needed notes, if those of SRAM go to one unit with its own: so there are never more log units than notes
    /// fill. Collection writes them where it collects, and a single plane has no room for many.
    fn joins(&self, media: &Media) -> Option<u32> {
        let fits =
            |number: &u32| self.still_told_by(media, *number).len() + self.log.in_sram.len() <= self.log.per_unit();
        self.log.least().filter(fits)
    }

    /// Binds notes to a unit of flash: those in SRAM, and those of a log unit that is given up for it. Returns the number of the log
    /// unit, and the block of the one that was given up.
    fn write_log_unit(&mut self, media: &mut Media, unit: UnitId) -> (u32, Option<BlockId>) {
        let number = self.log.unused();
        let mut notes = Vec::new();
        let emptied = self.log.to_empty().or_else(|| self.joins(media));
        if let Some(emptied) = emptied {
            for lpn in self.still_told_by(media, emptied) {
                match self.note_of(media, lpn) {
                    Some(note) => {
                        notes.push(note);
                        self.log.settle(lpn, number);
                        self.table.note_changed(Lpn(lpn));
                        self.counters.notes_again += 1;
                    }
                    None => self.log.forget(lpn),
                }
            }
        }
        assert!(notes.len() <= self.log.per_unit(), "a log unit had {} notes", notes.len());
        while notes.len() < self.log.per_unit()
            && let Some(lpn) = self.log.in_sram.first().copied()
        {
            match self.note_of(media, lpn) {
                Some(note) => {
                    notes.push(note);
                    self.log.settle(lpn, number);
                    self.table.note_changed(Lpn(lpn));
                }
                None => self.log.forget(lpn),
            }
        }
        let superseded = emptied.map(|emptied| {
            let old = self.log.end(emptied);
            self.invalidate(media, old, false)
        });
        assert!(!self.is_valid(unit), "log unit {number} goes to unit {unit}, which holds current data");
        media.put_record(unit, Note::encode(&notes));
        self.log.begin(number, unit, notes.iter().map(|note| note.lpn).collect());
        self.set_valid(media, unit, false);
        (number, superseded)
    }
}

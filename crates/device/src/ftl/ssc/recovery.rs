//! The map after a power cut, from owners and notes; and the one of a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use ssdlab_base::damaged;
use ssdlab_flash::{BlockId, Lpn, NONE, UnitId};

use super::checkpoints::Loaded;
use super::log::{Fact, IN_SRAM, Note, Remembered};
use super::room::Room;
use super::table::{Present, Slot};
use super::{CLEAN, Ssc, is_owned, unmarked};
use crate::ftl::oob_recovery::scan_pages_but;
use crate::ftl::{LimitedRoom, MAX_UNITS};
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// A note, the log unit in which it was found, and whether that is the newest of its number.
type Found = (Note, u32, UnitId, bool);

impl Ssc {
    pub(super) fn rebuild(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.table.clear();
        self.log.clear();
        self.room.iter_mut().for_each(Room::clear);
        self.valid.as_mut_slice().fill(0);
        (self.kept_units, self.loose_units) = (0, 0);
        assert!(self.emptied.is_empty(), "recovery begins with blocks that wait for their erase");
        let (loaded, since) = self.load_checkpoint(media, reads);
        let is_settled = |block: BlockId| loaded.settles(block);
        let pages: Vec<Place> = if media.lists_owners() {
            media.read_lists_but(reads, is_settled, since);
            media.listed_pages().filter(|place| !is_settled(place.block)).collect()
        } else {
            readable_pages(media, reads, is_settled, since)
        };
        self.check_loaded(media, &loaded);
        let log_units = self.find_copies(media, &pages, &loaded);
        let notes = self.read_notes(media, reads, &log_units, &loaded);
        let dropped = self.drop_hidden(media, &loaded);
        self.decide(media, reads, &notes, &loaded, &dropped);
        self.forget_told_units(media);
        self.count_found(media);
        let (room, kept) = (self.room(), self.kept());
        assert!(kept <= room, "after the power cut {kept} blocks have to be kept, and there is room for {room}");
    }

    /// The place of a copy among those of its block: that of a checkpoint is newer than all that were written before it.
    fn rank(media: &Media, loaded: &Loaded, unit: UnitId) -> u64 {
        debug_assert!(loaded.since > 0 || loaded.settled.is_empty(), "a checkpoint knows no program");
        if loaded.settles(media.block_of(unit)) { 2 * loaded.since - 1 } else { 2 * media.sequence_of(unit) }
    }

    /// Finds the newest copy of each block and of each log unit; returns all copies of log units that there are.
    fn find_copies(&mut self, media: &Media, pages: &[Place], loaded: &Loaded) -> Vec<(u32, UnitId)> {
        let mut log_units = loaded.log_units.clone();
        let all = self.log.units.len() as u32;
        for place in pages {
            let first = media.unit_at(*place);
            for unit in UnitId::each(first..first + self.units_per_page) {
                let owner = media.flash.oob.lpn(unit);
                if !is_owned(owner) {
                    continue;
                }
                let lpn = unmarked(owner);
                if let Some(number) = self.log_number(lpn) {
                    assert!(number < all, "unit {unit} is log unit {number} of {all}");
                    log_units.push((number, unit));
                    continue;
                }
                let newest = self.table.get(lpn).map_or(0, |present| Ssc::rank(media, loaded, present.unit));
                if Ssc::rank(media, loaded, unit) >= newest || seeded(Bug::OlderCopyFound) {
                    self.table.set(lpn, unit, owner.0 & CLEAN != 0);
                }
                self.table.add_copy(lpn);
            }
        }
        log_units
    }

    /// Reads log units; the newest of each number is in use.
    fn read_notes(
        &mut self,
        media: &Media,
        reads: &mut RecoveryReads,
        all: &[(u32, UnitId)],
        loaded: &Loaded,
    ) -> Vec<Found> {
        let rank = |unit: UnitId| Ssc::rank(media, loaded, unit);
        let mut newest: BTreeMap<u32, UnitId> = BTreeMap::new();
        for (number, unit) in all {
            let known = newest.entry(*number).or_insert(*unit);
            if rank(*unit) > rank(*known) {
                *known = *unit;
            }
        }
        let mut found = Vec::new();
        for (number, unit) in all {
            reads.page(media.place_of(*unit));
            let notes = self.notes_in(media, *unit).unwrap_or_default();
            let in_use = newest[number] == *unit;
            if in_use {
                self.log.begin(*number, *unit, notes.iter().map(|note| note.lpn).collect());
            }
            found.extend(notes.into_iter().map(|note| (note, *number, *unit, in_use)));
        }
        found
    }

    /// The notes in a log unit.
    fn notes_in(&self, media: &Media, unit: UnitId) -> Option<Vec<Note>> {
        let notes = media.flash.oob.record(unit).and_then(Note::decode)?;
        (notes.len() <= self.log.per_unit()).then_some(notes)
    }

    /// Copies count for nothing that are older than what a checkpoint knew of their block. Returns the numbers of the newest.
    fn drop_hidden(&mut self, media: &Media, loaded: &Loaded) -> BTreeMap<u32, u64> {
        let mut dropped = BTreeMap::new();
        let absent = loaded.known.iter().filter(|(_, known)| known.absent).map(|(lpn, _)| (*lpn, loaded.since));
        for (lpn, floor) in absent.chain(loaded.hidden.iter().copied()) {
            let Some(Present { unit, .. }) = self.table.get(Lpn(lpn)) else { continue };
            let sequence = media.sequence_of(unit);
            if !loaded.settles(media.block_of(unit)) && sequence < floor {
                self.table.forget(Lpn(lpn));
                dropped.insert(lpn, sequence);
            }
        }
        dropped
    }

    /// Decides which blocks are absent and which are clean.
    fn decide(
        &mut self,
        media: &Media,
        reads: &mut RecoveryReads,
        notes: &[Found],
        loaded: &Loaded,
        dropped: &BTreeMap<u32, u64>,
    ) {
        let mut last: BTreeMap<u32, Found> = BTreeMap::new();
        for found in notes {
            let rank =
                |(note, _, unit, in_use): &Found| (note.floor, note.clean, *in_use, Ssc::rank(media, loaded, *unit));
            let known = last.entry(found.0.lpn).or_insert(*found);
            if (rank(found) > rank(known)) != seeded(Bug::OlderNoteWins) {
                *known = *found;
            }
        }
        for (lpn, (note, number, unit, in_use)) in last {
            let Some(slot) = self.table.slot(Lpn(lpn)).copied() else { continue };
            let has_newest = slot.unit != UnitId::NONE || !loaded.settled.is_empty();
            assert!(has_newest, "block {lpn} has copies, and none of them is the newest");
            let known = loaded.known.get(&lpn).copied().unwrap_or_default();
            let knows_all = self.table.settled_copies(Lpn(lpn)) == 0;
            let is_settled = slot.unit != UnitId::NONE && loaded.settles(media.block_of(slot.unit));
            // What a checkpoint has of a block is newer than all notes that are not newer than it.
            let is_older =
                || if is_settled { note.floor >= loaded.since } else { media.sequence_of(slot.unit) < note.floor };
            let mut home = if in_use { number } else { IN_SRAM };
            let fact = if slot.unit == UnitId::NONE || is_older() {
                self.table.forget(Lpn(lpn));
                // Of copies that were not read no more is known than what a checkpoint said of the note.
                let covers_read = knows_all && dropped.get(&lpn).is_none_or(|sequence| *sequence < note.floor);
                if !covers_read && note.floor < loaded.since && !known.told {
                    home = IN_SRAM;
                }
                Fact { home, floor: None, clean: false }
            } else if note.clean && self.is_of_note(media, reads, &slot, note, is_settled.then_some(known.cleaned)) {
                if !slot.clean {
                    self.table.set_clean(Lpn(lpn));
                }
                Fact { home, floor: Some(note.floor), clean: true }
            } else {
                continue;
            };
            if home == IN_SRAM {
                self.stale_logs.push(media.block_of(unit));
            }
            self.log.decided(lpn, fact);
        }
        self.decide_without_notes(media, loaded);
    }

    /// Whether a note that a copy is clean is of the current one; of one that a checkpoint knew, whether that said so.
    fn is_of_note(
        &self,
        media: &Media,
        reads: &mut RecoveryReads,
        slot: &Slot,
        note: Note,
        is_known: Option<bool>,
    ) -> bool {
        if seeded(Bug::TrimForgotten) {
            return false;
        }
        let place = media.place_of(slot.unit);
        let is_current = media.flash.oob.sequence(place.block, place.page) == note.floor;
        match is_known {
            Some(true) => assert!(is_current, "the note that block {} is clean is of another copy", slot.lpn),
            // A checkpoint does not say its number: its list does, or its OOB area.
            Some(false) => {
                let page = if media.lists_owners() { media.pages_per_block() - 1 } else { place.page };
                reads.page(Place { page, ..place });
            }
            None => {}
        }
        is_current
    }

    /// What a checkpoint knew, and no note in the log says, is said again: that a block with copies is absent. One that
    /// was cleaned is dirty where that note is gone.
    fn decide_without_notes(&mut self, media: &Media, loaded: &Loaded) {
        let is_absent = |slot: &&Slot| slot.unit == UnitId::NONE;
        let absent: Vec<u32> = self.table.all().filter(is_absent).map(|slot| slot.lpn.0).collect();
        for lpn in absent {
            if !self.log.facts.contains_key(&lpn) {
                self.log.decided(lpn, Fact { home: IN_SRAM, floor: None, clean: false });
            }
        }
        let cleaned = loaded.known.iter().filter(|(_, known)| known.cleaned);
        for lpn in cleaned.map(|(lpn, _)| *lpn) {
            let present = self.table.get(Lpn(lpn));
            let is_settled = present.is_some_and(|present| loaded.settles(media.block_of(present.unit)));
            if is_settled && !self.log.facts.contains_key(&lpn) {
                self.table.set_dirty(Lpn(lpn));
            }
        }
    }

    /// Log units without a note that is needed are not in use: one that was given up, and whose number is free since then, is found
    /// like any other. One number is free in the end.
    fn forget_told_units(&mut self, media: &Media) {
        while let Some(number) = self.log.first_told() {
            self.log.end(number);
        }
        if !self.log.all_in_use() {
            return;
        }
        let number = self.log.to_empty().expect("all log units are in use");
        self.stale_logs.push(media.block_of(self.log.units[number as usize].unit));
        for lpn in self.log.units[number as usize].lpns.clone() {
            if self.log.facts.get(&lpn).is_some_and(|fact| fact.home == number) {
                self.log.back_to_sram(lpn);
            }
        }
        self.log.end(number);
    }

    /// Counts what is current.
    fn count_found(&mut self, media: &mut Media) {
        assert_eq!((self.kept_units, self.loose_units), (0, 0), "what is current was counted before");
        let current: Vec<(UnitId, bool)> = self
            .table
            .all()
            .filter(|slot| slot.unit != UnitId::NONE)
            .map(|slot| (slot.unit, self.is_loose(slot.clean)))
            .chain(self.log.units.iter().filter(|unit| unit.unit != UnitId::NONE).map(|unit| (unit.unit, false)))
            .collect();
        for (unit, loose) in current {
            let place = media.place_of(unit);
            assert!(media.flash.is_written(place.block, place.page), "unit {unit} is current, and {place:?} is erased");
            self.set_valid(media, unit, loose);
        }
    }

    /// Counts what is current in a restored map, and refuses what would index outside a table or mislead recovery.
    pub(super) fn accept(&mut self, media: &mut Media, units: &[UnitId], facts: &[Remembered]) -> io::Result<()> {
        self.allocator.accept()?;
        if !self.table.recount() {
            return Err(damaged("probing does not find a block of the map"));
        }
        let all = media.flash.geometry().pages() * u64::from(self.units_per_page);
        if units.len() != self.log.units.len() {
            return Err(damaged("the log has another number of units"));
        }
        let in_use = (0..).zip(units.iter().copied()).filter(|(_, unit)| *unit != UnitId::NONE);
        let in_use: Vec<(u32, UnitId)> = in_use.collect();
        let mapped = self.table.all().filter(|slot| slot.unit != UnitId::NONE).map(|slot| (slot.lpn, slot.unit));
        let log_units = in_use.iter().map(|(number, unit)| (Lpn(self.logical_units + number), *unit));
        let mut seen = BTreeSet::new();
        for (lpn, unit) in mapped.chain(log_units) {
            if u64::from(unit.0) >= all {
                return Err(damaged("a map entry points behind the flash"));
            }
            let place = media.place_of(unit);
            if !seen.insert(unit)
                || !media.flash.is_written(place.block, place.page)
                || media.pool.superblocks.of(place.block) == NONE
                || unmarked(media.flash.oob.lpn(unit)) != lpn
            {
                return Err(damaged("a map entry points to a unit that was never written, or that another one has"));
            }
        }
        let mut notes = BTreeSet::new();
        for (number, unit) in in_use {
            let Some(of_unit) = self.notes_in(media, unit) else {
                return Err(damaged("a log unit has no notes"));
            };
            self.log.begin(number, unit, of_unit.iter().map(|note| note.lpn).collect());
            notes.extend(of_unit.into_iter().map(|note| (note.lpn, number)));
        }
        self.accept_facts(media, facts, &notes)?;
        self.recount_copies(media)?;
        self.count_found(media);
        self.recount_returning();
        Ok(())
    }

    /// Takes what a snapshot remembers of blocks.
    fn accept_facts(&mut self, media: &Media, facts: &[Remembered], notes: &BTreeSet<(u32, u32)>) -> io::Result<()> {
        for Remembered { lpn, home, floor, clean } in facts.iter().copied() {
            let Some(slot) = self.table.slot(Lpn(lpn)) else {
                return Err(damaged("a block is remembered that flash has no copy of"));
            };
            let is_told = home == IN_SRAM || notes.contains(&(lpn, home));
            let has_floor = slot.unit == UnitId::NONE || floor.is_some();
            if !is_told || !has_floor || floor > Some(media.sequence()) || self.log.facts.contains_key(&lpn) {
                return Err(damaged("what is remembered of a block is in no log unit, or of a program to come"));
            }
            self.log.decided(lpn, Fact { home, floor, clean });
        }
        Ok(())
    }

    /// Copies are those that owners on flash name.
    fn recount_copies(&mut self, media: &Media) -> io::Result<()> {
        let mut counted: BTreeMap<Lpn, u32> = BTreeMap::new();
        for block in (0..media.flash.geometry().blocks()).map(BlockId) {
            if !media.flash.blocks.get(block).bad {
                self.owners_in(media, block).into_iter().for_each(|lpn| *counted.entry(lpn).or_default() += 1);
            }
        }
        let Some(gone) = self.table.set_copies(&counted) else {
            return Err(damaged("the map lacks a block that flash has a copy of, or has one that flash lacks"));
        };
        gone.into_iter().for_each(|lpn| self.log.forget(lpn.0));
        self.accept_checkpoint(media);
        Ok(())
    }
}

/// All pages that can be read, where OOB areas have the owners: each is looked at, but those of settled blocks.
fn readable_pages(
    media: &mut Media,
    reads: &mut RecoveryReads,
    is_settled: impl Fn(BlockId) -> bool,
    since: u64,
) -> Vec<Place> {
    let mut pages = Vec::new();
    scan_pages_but(media, reads, is_settled, since, |media, place, is_readable| {
        let Place { block, page } = place;
        if media.flash.blocks.get(block).bad {
            return;
        }
        if is_readable {
            pages.push(place);
        } else {
            // No owner can be read there.
            let none = [Lpn::NONE; MAX_UNITS];
            let sequence = media.flash.oob.sequence(block, page);
            media.flash.oob.restore_page(block, page, &none[..media.units_per_page as usize], sequence);
        }
    });
    pages
}

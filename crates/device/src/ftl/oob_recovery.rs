//! Recovery of a map with one place a unit, from OOB areas alone.
//!
//! Every written page is read once. Of several copies of a unit the one with the highest sequence number is current; a
//! torn page counts for nothing. A unit that the newest bitmap of its segment calls unmapped, and that was written
//! before that bitmap, was trimmed.

use ssdlab_flash::{BlockId, Lpn, UnitId};

use super::durable_trims::DurableTrims;
use super::trims::TrimRecord;
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

/// A map that names one place for each unit, those of the records of trims behind the user's among them.
pub(super) trait OnePlace: DurableTrims {
    /// Where a unit is; [`UnitId::NONE`] where it holds nothing.
    fn place_of(&self, lpn: Lpn) -> UnitId;

    /// Recovery found where a unit is: its entry changes, and nothing is counted.
    fn found(&mut self, lpn: Lpn, unit: UnitId);

    /// Finds the newest copy of every unit that was not trimmed since it was written. The map is empty when it begins.
    fn find_units(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.newest_copies(media, reads);
        self.drop_trimmed(media);
    }

    /// Finds the newest copy of every unit that was not trimmed since it was written, from lists of owners. The map is empty when
    /// it begins.
    fn find_listed_units(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        media.read_lists(reads);
        for place in media.listed_pages() {
            self.look_at_page(media, place);
        }
        let first_record = self.user_units();
        let records = (first_record..first_record + self.trims().segments()).map(|lpn| self.place_of(Lpn(lpn)));
        records.filter(|unit| *unit != UnitId::NONE).for_each(|unit| reads.page(media.place_of(unit)));
        self.drop_trimmed(media);
    }

    /// Takes the units of a page whose copies are the newest so far.
    fn look_at_page(&mut self, media: &Media, place: Place) {
        let units = self.user_units() + self.trims().segments();
        let sequence = media.flash.oob.sequence(place.block, place.page);
        let first = media.unit_at(place);
        for unit in UnitId::each(first..first + media.units_per_page) {
            let lpn = media.flash.oob.lpn(unit);
            if lpn == Lpn::NONE || lpn.is_of_stripe() {
                continue;
            }
            assert!(lpn.0 < units, "unit {unit} names LPN {lpn}, behind the map");
            let current = self.place_of(lpn);
            if current == UnitId::NONE || sequence > media.sequence_of(current) {
                self.found(lpn, unit);
            }
        }
    }

    /// Finds the newest copy of every unit, trimmed or not.
    fn newest_copies(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        scan_pages(media, reads, |media, place, is_readable| {
            if is_readable {
                self.look_at_page(media, place);
            }
        });
    }

    /// Unmaps what the newest records of trims say was trimmed.
    fn drop_trimmed(&mut self, media: &Media) {
        let (user_units, segment_units) = (self.user_units(), self.trims().segment_units());
        for segment in 0..self.trims().segments() {
            let bitmap = self.place_of(Lpn(user_units + segment));
            if bitmap == UnitId::NONE {
                continue;
            }
            self.trims_mut().set_in_use();
            let words = media.flash.oob.record(bitmap).expect("a bitmap unit has its bits");
            let first = Lpn(segment * segment_units);
            assert!(self.trims().is_record(words, segment, user_units), "the record of segment {segment} is not whole");
            let record = TrimRecord::new(words, first);
            let end = (first + segment_units).min(Lpn(user_units));
            for lpn in Lpn::each(first..end) {
                let unit = self.place_of(lpn);
                if unit != UnitId::NONE && record.trimmed(lpn, media.sequence_of(unit)) {
                    self.found(lpn, UnitId::NONE);
                }
            }
        }
    }
}

/// Reads the OOB areas of all pages, and says of each whether its owners can be read. Later programs have higher numbers than all that
/// were begun.
pub(super) fn scan_pages(media: &mut Media, reads: &mut RecoveryReads, look: impl FnMut(&mut Media, Place, bool)) {
    scan_pages_but(media, reads, |_| false, 0, look);
}

/// Does so, but reads nothing of blocks that are known, nor of those with checkpoints. Programs from before number `since` are known, too.
pub(super) fn scan_pages_but(
    media: &mut Media,
    reads: &mut RecoveryReads,
    is_known: impl Fn(BlockId) -> bool,
    since: u64,
    mut look: impl FnMut(&mut Media, Place, bool),
) {
    let mut newest = since;
    for block in (0..media.flash.geometry().blocks()).map(BlockId) {
        let state = *media.flash.blocks.get(block);
        if state.torn || media.pool.is_kept_apart(block.0) || is_known(block) {
            continue;
        }
        for page in 0..state.programmed {
            let place = Place { block, page };
            reads.oob(place);
            // Torn pages count here: numbers in a block must rise from its first page on, whatever became of that.
            newest = newest.max(media.flash.oob.sequence(block, page));
            let is_readable = media.flash.blocks.readable(media.ppn_at(place)) || seeded(Bug::TornPageTrusted);
            look(media, place, is_readable);
        }
    }
    assert!(newest < 1 << 62, "a page has number {newest}");
    // Pages that were never begun may have been given higher numbers: skip well past what could be in flight.
    media.set_sequence(newest + if seeded(Bug::SequenceReused) { 0 } else { 1 << 20 });
}

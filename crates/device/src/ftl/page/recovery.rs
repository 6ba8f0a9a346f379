//! Recovery after power loss, from OOB areas alone.
//!
//! Every written page is read once. Of several copies of a unit the one with the highest sequence number is current; a
//! torn page counts for nothing. A unit that the newest bitmap of its segment calls unmapped, and that was written
//! before that bitmap, was trimmed.

use ssdlab_flash::{BlockId, Lpn, UnitId};

use super::{PageFtl, UNMAPPED};
use crate::ftl::trims::TrimRecord;
use crate::media::{Media, Place};
use crate::recovery_reads::RecoveryReads;
use crate::seeded::{Bug, seeded};

impl PageFtl {
    pub(super) fn rebuild(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        self.map.as_mut_slice().fill(UNMAPPED);
        self.valid.as_mut_slice().fill(0);
        self.trims.clear();
        self.mapped_units = 0;
        self.newest_copies(media, reads);
        self.drop_trimmed(media);
        for lpn in Lpn::each(Lpn(0)..Lpn(self.map.len() as u32)) {
            let unit = self.map.get(lpn.index());
            if unit != UNMAPPED {
                self.mapped_units += 1;
                self.trims.mapped(lpn);
                let owner = media.flash.oob.lpn(unit);
                assert_eq!(owner, lpn, "unit {unit} is mapped, and its page is of another LPN");
                let place = media.place_of(unit);
                assert!(
                    media.flash.is_written(place.block, place.page),
                    "LPN {lpn} is mapped to {place:?}, not written"
                );
                self.set_valid(media, unit, media.block_of(unit));
            }
        }
    }

    fn newest_copies(&mut self, media: &mut Media, reads: &mut RecoveryReads) {
        let entries = self.map.len() as u32;
        let mut newest = 0;
        for block in (0..media.flash.geometry().blocks()).map(BlockId) {
            let state = *media.flash.blocks.get(block);
            if state.torn {
                continue;
            }
            for page in 0..state.programmed {
                let place = Place { block, page };
                let first = media.unit_at(place);
                reads.oob(place);
                let sequence = media.flash.oob.sequence(block, page);
                // Torn pages count here: numbers in a block must rise from its first page on, whatever became of that.
                newest = newest.max(sequence);
                if !media.flash.blocks.readable(media.page_of(first)) && !seeded(Bug::TornPageTrusted) {
                    continue;
                }
                for unit in UnitId::each(first..first + self.units_per_page) {
                    let lpn = media.flash.oob.lpn(unit);
                    if lpn == Lpn::NONE || lpn.is_of_stripe() {
                        continue;
                    }
                    assert!(lpn.0 < entries, "unit {unit} names LPN {lpn}, behind the map");
                    let current = self.map.get(lpn.index());
                    if current == UNMAPPED || sequence > self.sequence_of(media, current) {
                        self.map.set(lpn.index(), unit);
                    }
                }
            }
        }
        assert!(newest < 1 << 62, "a page has number {newest}");
        // Pages that were never begun may have been given higher numbers: skip well past what could be in flight.
        media.set_sequence(newest + if seeded(Bug::SequenceReused) { 0 } else { 1 << 20 });
    }

    fn sequence_of(&self, media: &Media, unit: UnitId) -> u64 {
        let place = media.place_of(unit);
        media.flash.oob.sequence(place.block, place.page)
    }

    fn drop_trimmed(&mut self, media: &Media) {
        for segment in 0..self.trims.segments() {
            let bitmap = self.map.get((self.user_units + segment) as usize);
            if bitmap == UNMAPPED {
                continue;
            }
            self.trims.set_in_use();
            let words = media.flash.oob.record(bitmap).expect("a bitmap unit has its bits");
            let first = Lpn(segment * self.trims.segment_units());
            assert!(
                self.trims.is_record(words, segment, self.user_units),
                "the record of segment {segment} is not whole"
            );
            let record = TrimRecord::new(words, first);
            let end = (first + self.trims.segment_units()).min(Lpn(self.user_units));
            for lpn in Lpn::each(first..end) {
                let unit = self.map.get(lpn.index());
                if unit != UNMAPPED && record.trimmed(lpn, self.sequence_of(media, unit)) {
                    self.map.set(lpn.index(), UNMAPPED);
                }
            }
        }
    }
}

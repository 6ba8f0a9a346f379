//! Trims of the page design: units are unmapped at once, and bitmap pages make that durable.

use ssdlab_flash::{Cause, HugeArray};

use super::{PageFtl, UNMAPPED};
use crate::ftl::{NoSpace, TrimTarget, UnitWrite};
use crate::media::{Frontier, Media};
use crate::planted::{Bug, planted};
use crate::token::Owner;

/// Whether a unit holds nothing, or what it holds is on flash.
fn is_settled(map: &HugeArray<u32>, media: &Media, lpn: u32) -> bool {
    let unit = map.get(lpn as usize);
    unit == UNMAPPED || {
        let place = media.place_of(unit);
        media.flash.is_written(place.block, place.page) && media.flash.blocks.readable(unit / media.units_per_page)
    }
}

impl PageFtl {
    pub(super) fn trim_units(&mut self, media: &mut Media, first: u32, end: u32) -> u64 {
        let mut at = first;
        let mut trimmed = 0;
        while let Some(lpn) = self.trims.next_mapped(at, end) {
            self.unmap(media, lpn);
            trimmed += 1;
            at = lpn + 1;
        }
        trimmed
    }

    fn unmap(&mut self, media: &mut Media, lpn: u32) {
        let unit = std::mem::replace(&mut self.map.as_mut_slice()[lpn as usize], UNMAPPED);
        assert_ne!(unit, UNMAPPED, "the bitmap and the map agree about unit {lpn}");
        let block = self.invalidate(media, unit);
        // Erased before the trim is on flash, an older copy elsewhere would come back.
        media.pool.set_trimmed(block);
        self.mapped_units -= 1;
        self.trims.unmapped(lpn);
        self.trims.soil(lpn);
    }

    /// `lpn` held nothing and the next program writes it.
    pub(super) fn note_revival(&mut self, media: &Media, lpn: u32) {
        if lpn >= self.user_units || planted(Bug::MapBeforeData) {
            return;
        }
        let map = &self.map;
        self.trims.note_revival(lpn, media.sequence(), |lpn| is_settled(map, media, lpn));
    }

    pub(super) fn write_trim_bitmaps(
        &mut self,
        media: &mut Media,
        to: TrimTarget,
        owner: Owner,
    ) -> Result<u32, NoSpace> {
        let mut started = 0;
        let map = &self.map;
        self.trims.forget_ended_revivals(|lpn| is_settled(map, media, lpn));
        while let Some(segment) = self.trims.next_unsaved() {
            let words = self.trims.record(media.sequence(), segment, self.user_units);
            let cells = vec![0; (media.unit_bytes / 512) as usize * media.flash.store.cell_bytes()];
            let lpn = self.user_units + segment;
            let unit = UnitWrite { lpn, mask: self.full_mask, cells: &cells };
            let (group, frontier) = match to {
                TrimTarget::Host => {
                    let frontier = Frontier::Host(0);
                    (self.placement.choose(media, lpn, frontier).ok_or(NoSpace)?, frontier)
                }
                TrimTarget::Gc(group) => (group, Frontier::Gc),
            };
            let place = media.take_page(group, frontier).ok_or(NoSpace)?;
            media.flash.oob.put_record(media.unit_at(place), words);
            self.write_at(media, place, &[unit], frontier, Cause::Metadata, owner);
            self.trims.saved();
            started += 1;
        }
        Ok(started)
    }
}

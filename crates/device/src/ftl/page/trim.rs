//! Trims of the page design.

use ssdlab_flash::{Cause, Lpn};

use super::{PageFtl, UNMAPPED};
use crate::ftl::durable_trims::DurableTrims;
use crate::ftl::trims::TrimState;
use crate::ftl::{NoSpace, TrimTarget, UnitWrite};
use crate::media::{Frontier, Media};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

impl DurableTrims for PageFtl {
    fn trims(&self) -> &TrimState {
        &self.trims
    }

    fn trims_mut(&mut self) -> &mut TrimState {
        &mut self.trims
    }

    fn user_units(&self) -> u32 {
        self.user_units
    }

    fn is_settled(&self, media: &Media, lpn: Lpn) -> bool {
        let unit = self.map.get(lpn.index());
        let page = || media.page_of(unit);
        unit == UNMAPPED || media.is_durable(page()) || seeded(Bug::RevivalBeforeList) && media.is_on_flash(page())
    }

    fn unmap(&mut self, media: &mut Media, lpn: Lpn) {
        let unit = std::mem::replace(&mut self.map.as_mut_slice()[lpn.index()], UNMAPPED);
        assert_ne!(unit, UNMAPPED, "the bitmap and the map agree about unit {lpn}");
        let block = self.invalidate(media, unit);
        media.pool.set_trimmed(block);
        assert!(self.mapped_units > 0, "unit {lpn} is trimmed, and none is mapped");
        self.mapped_units -= 1;
    }

    fn write_record(
        &mut self,
        media: &mut Media,
        lpn: Lpn,
        words: Box<[u64]>,
        to: TrimTarget,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let sector_data = vec![0; (media.unit_bytes / 512) as usize * media.flash.store.sector_data_bytes()];
        let unit = UnitWrite { lpn, mask: self.full_mask, sector_data: &sector_data, expendable: false };
        let (group, frontier) = match to {
            TrimTarget::Host => {
                let frontier = Frontier::Host(0);
                (self.allocator.choose(media, lpn, frontier).ok_or(NoSpace)?, frontier)
            }
            TrimTarget::Gc(group) => (group, Frontier::Gc),
        };
        let place = media.take_page(group, frontier).ok_or(NoSpace)?;
        media.flash.oob.put_record(media.unit_at(place), words);
        self.write_at(media, place, &[unit], frontier, Cause::Metadata, owner);
        Ok(())
    }
}

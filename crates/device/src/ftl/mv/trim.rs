//! Trims: all versions of a page are unmapped at once.

use ssdlab_flash::{Cause, Lpn};

use super::MvFtl;
use super::gather::Sources;
use super::layout;
use super::write::Writing;
use crate::ftl::durable_trims::DurableTrims;
use crate::ftl::trims::TrimState;
use crate::ftl::{NoSpace, TrimTarget};
use crate::media::{Frontier, Media};
use crate::waiter::Waiter;

impl DurableTrims for MvFtl {
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
        let chain = self.map.chain(lpn);
        chain.last().is_none_or(|oldest| {
            let place = media.place_of_page(*oldest);
            let on_flash = media.flash.is_written(place.block, place.page) && media.flash.blocks.readable(*oldest);
            let version = || layout::version_of(media, *oldest, lpn, self.patterns, self.full_mask);
            on_flash && version().is_some_and(|version| version.floor)
        })
    }

    fn unmap(&mut self, media: &mut Media, lpn: Lpn) {
        for ppn in self.map.chain(lpn) {
            media.pool.set_trimmed(media.block_of_page(ppn));
            self.release(media, ppn, None);
        }
        self.map.unmap(lpn);
    }

    fn write_record(
        &mut self,
        media: &mut Media,
        lpn: Lpn,
        words: Box<[u64]>,
        to: TrimTarget,
        owner: Waiter,
    ) -> Result<(), NoSpace> {
        let (place, frontier) = match to {
            TrimTarget::Host => {
                let frontier = Frontier::Host(0);
                (self.take_page(media, lpn, frontier)?, frontier)
            }
            TrimTarget::Gc(group) => (media.take_page(group, Frontier::Gc).ok_or(NoSpace)?, Frontier::Gc),
        };
        media.flash.oob.put_record(media.unit_at(place), words);
        let sector_data = vec![0; media.flash.store.unit_data_bytes()];
        let write = Writing { place, frontier, cause: Cause::Metadata, owner };
        self.put_full(media, lpn, &sector_data, Sources::default(), write);
        Ok(())
    }
}

//! Trims: all versions of a page are unmapped at once, and bitmap pages make that durable, as in the page design.

use ssdlab_flash::Cause;

use super::MvFtl;
use super::gather::Sources;
use super::layout;
use super::map::VersionMap;
use super::pattern::Patterns;
use super::write::Writing;
use crate::ftl::{NoSpace, TrimTarget};
use crate::media::{Frontier, Media};
use crate::planted::{Bug, planted};
use crate::token::Owner;

/// Whether a page holds nothing, or something on flash hides whatever was there before it was trimmed.
fn is_settled(map: &VersionMap, media: &Media, lpn: u32, patterns: Patterns, full: u64) -> bool {
    let chain = map.chain(lpn);
    chain.last().is_none_or(|oldest| {
        let place = media.place_of_page(*oldest);
        let on_flash = media.flash.is_written(place.block, place.page) && media.flash.blocks.readable(*oldest);
        on_flash && layout::version_of(media, *oldest, lpn, patterns, full).is_some_and(|version| version.floor)
    })
}

impl MvFtl {
    pub(super) fn trim_pages(&mut self, media: &mut Media, first: u32, end: u32) -> u64 {
        let mut at = first;
        let mut trimmed = 0;
        while let Some(lpn) = self.trims.next_mapped(at, end) {
            for ppn in self.map.chain(lpn) {
                // Erased before the trim is on flash, older versions elsewhere would come back.
                media.pool.set_trimmed(media.block_of(ppn));
                self.release(media, ppn, None);
            }
            self.map.unmap(lpn);
            self.trims.unmapped(lpn);
            self.trims.soil(lpn);
            trimmed += 1;
            at = lpn + 1;
        }
        trimmed
    }

    /// `lpn` holds nothing that is on flash, and the next program writes it.
    pub(super) fn note_revival(&mut self, media: &Media, lpn: u32) {
        if self.trims.in_use() && lpn < self.user_units && !planted(Bug::MapBeforeData) {
            self.note_revival_since(media, lpn, media.sequence());
        }
    }

    /// The same, and the program was number `since`.
    pub(super) fn note_revival_since(&mut self, media: &Media, lpn: u32, since: u64) {
        let (map, patterns, full) = (&self.map, self.patterns, self.full_mask);
        self.trims.note_revival(lpn, since, |lpn| is_settled(map, media, lpn, patterns, full));
    }

    pub(super) fn write_trim_bitmaps(
        &mut self,
        media: &mut Media,
        to: TrimTarget,
        owner: Owner,
    ) -> Result<u32, NoSpace> {
        let mut started = 0;
        let (map, patterns, full) = (&self.map, self.patterns, self.full_mask);
        self.trims.forget_ended_revivals(|lpn| is_settled(map, media, lpn, patterns, full));
        while let Some(segment) = self.trims.next_unsaved() {
            let words = self.trims.record(media.sequence(), segment, self.user_units);
            let lpn = self.user_units + segment;
            let (place, frontier) = match to {
                TrimTarget::Host => {
                    let frontier = Frontier::Host(0);
                    (self.take_page(media, lpn, frontier)?, frontier)
                }
                TrimTarget::Gc(group) => (media.take_page(group, Frontier::Gc).ok_or(NoSpace)?, Frontier::Gc),
            };
            media.flash.oob.put_record(media.unit_at(place), words);
            let cells = vec![0; media.flash.store.unit_cells()];
            let write = Writing { place, frontier, cause: Cause::Metadata, owner };
            self.put_full(media, lpn, &cells, Sources::default(), write);
            self.trims.saved();
            started += 1;
        }
        Ok(started)
    }
}

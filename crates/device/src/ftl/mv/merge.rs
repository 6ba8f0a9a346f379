//! Merging the versions of a page into a full one (section 3.2, "Page merging and garbage collection").

use ssdlab_flash::{Cause, Lpn};

use super::MvFtl;
use super::write::Writing;
use crate::media::{Frontier, Media};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

impl MvFtl {
    /// Reads all versions of a logical page and programs a full page. `own` is a block whose pages are read for a cause of
    /// their own: the victim that is collected.
    pub(super) fn merge(&mut self, media: &mut Media, lpn: Lpn, write: Writing, own: Option<(u32, Cause)>) {
        let chain = self.map.chain(lpn);
        debug_assert!(!chain.is_empty(), "LPN {lpn} is merged, and holds nothing");
        let mut parts = self.parts(media, lpn, &chain, self.full_mask);
        if seeded(Bug::MergeForgetsVersion) && parts.len() > 2 {
            parts.remove(1);
        }
        let (sector_data, whole) = self.merged_sector_data(media, &parts, None);
        let mut sources = self.collect(media, &parts, Cause::Merge, own);
        sources.lost |= !whole;
        let sector_data = if media.flash.store.sector_data_bytes() > 0 { &sector_data[..] } else { &[] };
        self.put_full(media, lpn, sector_data, sources, write);
    }

    /// Merges a few chains in the background, as many as `limit`, while there are pages for it.
    pub(super) fn merge_some(&mut self, media: &mut Media, limit: u32, owner: Waiter) -> u32 {
        let frontier = Frontier::Host(0);
        let mut started = 0;
        while started < limit {
            let next = self.map.next_chain(self.merge_at).or_else(|| self.map.next_chain(Lpn(0)));
            let Some(lpn) = next else { break };
            let Ok(place) = self.take_page(media, lpn, frontier) else { break };
            self.merge(media, lpn, Writing { place, frontier, cause: Cause::Merge, owner }, None);
            self.counters.merges_idle += 1;
            self.merge_at = lpn;
            started += 1;
        }
        started
    }
}

//! The design's state in a snapshot, and what is counted anew when it is read.

use std::io;

use ssdlab_base::{damaged, saved};
use ssdlab_flash::{Lpn, NONE, Ppn};

use super::MvFtl;
use super::layout;
use crate::ftl::durable_trims::DurableTrims;
use crate::media::Media;

saved!(MvFtl: map, merge_at, allocator, trims);

impl MvFtl {
    /// Counts what is valid anew, and refuses what would index outside a table or mislead recovery. Whether pages hold the versions
    /// that the map says, in their order, is for [`MvFtl::check_all`] to say.
    pub(super) fn accept(&mut self, media: &mut Media) -> io::Result<()> {
        self.allocator.accept()?;
        self.trims.accept()?;
        self.map.accept()?;
        if self.merge_at.0 >= self.map.len() {
            return Err(damaged("merging goes on behind the map"));
        }
        assert!(self.compacted.is_empty(), "a state is restored into an empty map");
        self.space.clear();
        for lpn in self.map.lpns() {
            if self.trims.is_mapped(lpn) != self.map.is_mapped(lpn) {
                return Err(damaged("the map and its bitmap do not agree"));
            }
            if let Some(page) = self.map.full_page(lpn) {
                if !is_written(media, page) || self.is_valid(page) {
                    return Err(damaged(
                        "a map entry points to a page that was never written, or that another one has",
                    ));
                }
                self.set_valid(media, page, false);
            } else if self.map.is_mapped(lpn) {
                self.accept_chain(media, lpn)?;
            }
            if lpn.0 >= self.user_units && self.map.is_mapped(lpn) {
                let words = self.map.full_page(lpn).and_then(|page| media.flash.oob.record(page.sole_unit()));
                self.trims.accept_record(words, lpn.0 - self.user_units, self.user_units)?;
            }
        }
        Ok(())
    }

    /// Takes a page that is not one full page alone.
    fn accept_chain(&mut self, media: &mut Media, lpn: Lpn) -> io::Result<()> {
        let chain = self.map.chain(lpn);
        assert!(!chain.is_empty(), "LPN {lpn} is mapped to no page");
        for page in &chain {
            if !is_written(media, *page) {
                return Err(damaged("a version is in a page that was never written"));
            }
            self.adopt_page(media, *page);
        }
        if !self.map.is_odd(lpn) && self.map.newest_is_compacted(lpn) != layout::is_compacted(media, chain[0]) {
            return Err(damaged("an entry's flag of a compacted page does not agree with the page"));
        }
        let oldest = chain[chain.len() - 1];
        if lpn.0 < self.user_units
            && let Some(version) = layout::version_of(media, oldest, lpn, self.patterns, self.full_mask)
            && !version.floor
        {
            // As recovery left it.
            self.add_revival(media, lpn, version.number);
        }
        Ok(())
    }
}

/// Whether a page is one of the flash, written, and in a superblock.
fn is_written(media: &Media, page: Ppn) -> bool {
    u64::from(page.0) < media.flash.geometry().pages() && {
        let place = media.place_of_page(page);
        media.flash.is_written(place.block, place.page) && media.pool.superblocks.of(place.block) != NONE
    }
}

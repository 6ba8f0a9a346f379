//! The design's state in a snapshot, checked against the chips when it is read.

use std::io::{self, Read, Write};

use ssdlab_flash::{Lpn, NONE, Ppn};

use super::MvFtl;
use super::layout;
use crate::ftl::durable_trims::DurableTrims;
use crate::media::Media;

impl MvFtl {
    pub(super) fn save_state(&self, to: &mut dyn Write) -> io::Result<()> {
        self.map.save(to)?;
        to.write_all(&self.merge_at.0.to_le_bytes())?;
        self.placement.save(to)?;
        self.trims.save(to)
    }

    pub(super) fn restore_state(&mut self, media: &mut Media, from: &mut dyn Read) -> io::Result<()> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
        self.map.restore(from)?;
        let mut merge_at = [0; 4];
        from.read_exact(&mut merge_at)?;
        self.merge_at = Lpn(u32::from_le_bytes(merge_at));
        if self.merge_at.0 >= self.map.len() {
            return Err(bad("merging goes on behind the map"));
        }
        self.placement.restore(from)?;
        self.trims.restore(from)?;
        self.space.clear();
        let pages = media.flash.geometry().pages();
        for lpn in self.map.lpns() {
            if self.trims.is_mapped(lpn) != self.map.is_mapped(lpn) {
                return Err(bad("the map and its bitmap do not agree"));
            }
            let chain = self.map.checked_chain(lpn).ok_or_else(|| bad("a map entry leads nowhere"))?;
            if lpn.0 >= self.user_units && chain.len() > 1 {
                return Err(bad("a record of trims has several versions"));
            }
            for (index, ppn) in chain.iter().enumerate() {
                let there = u64::from(ppn.0) < pages && {
                    let place = media.place_of_page(*ppn);
                    media.flash.is_written(place.block, place.page) && media.pool.superblocks.of(place.block) != NONE
                };
                if !there || chain[..index].contains(ppn) || !self.holds(media, *ppn, lpn) {
                    return Err(bad("a map entry points to a page that holds something else"));
                }
                if self.is_valid(*ppn) && !layout::is_compacted(media, *ppn) {
                    return Err(bad("two map entries point to one page"));
                }
                self.adopt_page(media, *ppn);
            }
            if let Some(oldest) = chain.last().filter(|_| lpn.0 < self.user_units)
                && let Some(version) = layout::version_of(media, *oldest, lpn, self.patterns, self.full_mask)
                && !version.floor
            {
                // As recovery left it.
                self.add_revival(media, lpn, version.number);
            }
            let newest = chain.first().is_some_and(|ppn| layout::is_compacted(media, *ppn));
            if !self.map.is_odd(lpn) && self.map.newest_is_compacted(lpn) != newest {
                return Err(bad("an entry's flag of a compacted page does not agree with the page"));
            }
            if self.map.full_page(lpn).is_some_and(|ppn| layout::is_partial(media, ppn, self.user_units)) {
                return Err(bad("the entry of a full page points to a part of one"));
            }
            if let Some(page) = chain.first().filter(|_| lpn.0 >= self.user_units) {
                self.trims.set_in_use();
                let words = media.flash.oob.record(page.sole_unit());
                if !words.is_some_and(|words| self.trims.is_record(words, lpn.0 - self.user_units, self.user_units)) {
                    return Err(bad("a record of trims is not whole"));
                }
            }
        }
        if !self.map.memory_law().0 {
            return Err(bad("a table of versions has slots that belong to no page"));
        }
        Ok(())
    }

    /// Whether a page holds a version of a logical page, and all that it says of itself makes sense.
    fn holds(&self, media: &Media, ppn: Ppn, lpn: Lpn) -> bool {
        if lpn.0 >= self.user_units {
            return media.flash.oob.lpn(ppn.sole_unit()) == lpn;
        }
        let version = layout::version_of(media, ppn, lpn, self.patterns, self.full_mask);
        version.is_some_and(|version| {
            let room = u64::from(self.sectors);
            let end = u64::from(version.offset.unwrap_or(0)) + u64::from(version.mask.count_ones());
            version.mask != 0 && version.mask & !self.full_mask == 0 && end <= room && version.number < media.sequence()
        })
    }
}

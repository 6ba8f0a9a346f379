//! Snapshots: what is cached, in its order, and since when blocks are active.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use ssdlab_base::{Saved, damaged, load, saved};
use ssdlab_flash::Lpn;

use super::MapCache;
use super::contents::TRIMMED;
use crate::ftl::page::PageFtl;
use crate::media::Media;

/// What a snapshot holds of a cached map. The rest is found again from the map in RAM and from flash.
#[derive(Default)]
struct Kept {
    /// Superblocks opened for data since dirty pages were flushed.
    active: u64,
    next_group: u32,
    /// Cached lines and whether they are dirty, the oldest first.
    cached: Vec<(u32, bool)>,
    /// Map pages with trims, in the order in which they will be programmed.
    trimmed: Vec<u32>,
    trimmed_since: BTreeMap<Lpn, u32>,
    /// Units in the map log.
    logged: BTreeSet<Lpn>,
}
saved!(Kept: active, next_group, cached, trimmed, trimmed_since, logged);

impl MapCache {
    pub(in crate::ftl) fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        let at_rest = self.in_flight == 0
            && self.jobs.is_empty()
            && self.flush.is_empty()
            && self.log.is_at_rest()
            && self.change.is_none();
        assert!(at_rest, "a map is saved while nothing of it is in flight");
        let kept = Kept {
            active: self.opened.wrapping_sub(self.changed_at),
            next_group: self.next_group,
            cached: self.lru.oldest_first().map(|line| (line, self.is_dirty(line))).collect(),
            trimmed: self.flush.trimmed.clone(),
            trimmed_since: self.trimmed_since.clone(),
            logged: self.log.entries.keys().copied().collect(),
        };
        kept.save_to(to)
    }

    /// Reads what [`MapCache::save`] wrote, and refuses what the map cannot have. Whether the cache and the log are within their
    /// sizes, and clean map pages equal flash, is for [`MapCache::check`] to say.
    pub(in crate::ftl) fn restore(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        from: &mut dyn Read,
    ) -> io::Result<()> {
        let kept: Kept = load(from)?;
        self.opened = media.pool.data_opened();
        self.changed_at = self.opened.wrapping_sub(kept.active);
        self.next_group = kept.next_group;
        if self.next_group >= self.collections.len() as u32 {
            return Err(damaged("the next group to take a map page is not one of the drive's"));
        }
        // A map page on flash without words is found below.
        let free =
            self.find_shared(data, media).ok_or_else(|| damaged("a unit of map pages names none of the drive's"))?;
        for number in free {
            data.unmap_metadata(media, self.shape.shared_lpn(number));
        }
        self.lru.clear();
        for (line, dirty) in kept.cached {
            if line >= self.shape.lines() || self.lru.contains(line) {
                return Err(damaged("a cached line of the map is unknown, or named twice"));
            }
            self.lru.insert(line);
            let page = self.shape.page_of_line(line);
            self.lines[line as usize].dirty = dirty;
            self.pages[page as usize].dirty |= dirty;
            self.changes[page as usize].are_many();
        }
        for page in kept.trimmed {
            if page >= self.shape.pages || !self.pages[page as usize].dirty || self.pages[page as usize].trimmed {
                return Err(damaged("a map page with a trim is not dirty, or named twice"));
            }
            self.has_trims(page);
        }
        let is_reserved = self.shape.reserved_from < self.shape.mapped_units;
        for (lpn, number) in &kept.trimmed_since {
            let known = is_reserved && lpn.0 < self.shape.mapped_units && *number < TRIMMED - 1;
            if !known || data.unit_of(*lpn).is_some() {
                return Err(damaged("a unit that is not mapped was trimmed, and it is mapped, or unknown"));
            }
        }
        self.trimmed_since = kept.trimmed_since;
        for lpn in kept.logged {
            let known = self.has_log() && lpn.0 < self.shape.mapped_units;
            let unit = if known { data.unit_of(lpn) } else { None };
            let unit = unit.ok_or_else(|| damaged("the map log has an entry of a unit that is not mapped"))?;
            self.log.entries.insert(lpn, unit);
        }
        for page in 0..self.shape.pages {
            let Some(unit) = self.unit_of_page(data, page) else { continue };
            let is_whole = match media.flash.oob.record(unit) {
                Some(words) => words.len() == self.shape.unit_words(),
                // Its words on flash are not asked for before it is programmed.
                None => self.pages[page as usize].dirty && !self.shape.by_entry,
            };
            if !is_whole {
                return Err(damaged("a map page on flash has no words there, or too few"));
            }
        }
        Ok(())
    }
}

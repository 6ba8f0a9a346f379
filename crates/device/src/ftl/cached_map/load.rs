//! Misses: the page that was used longest ago leaves, and is programmed first if it is dirty; then the other one is read.

use ssdlab_flash::Lpn;

use crate::ftl::Asker;
use crate::ftl::page::PageFtl;
use crate::media::Media;
use crate::token::Owner;

use super::{MapCache, MapOp};

/// A place in the cache for a page that is to be loaded.
enum Room {
    /// There is one.
    Now,
    /// When the program of the page that leaves has ended.
    Later,
    /// Not before something else has ended.
    None,
}

/// Pages that are looked at for companions of one that leaves.
const COMPANIONS_SOUGHT: usize = 64;

impl MapCache {
    /// Loads pages that wait for it, in order, until one finds no place.
    pub(super) fn load_waiting(&mut self, data: &mut PageFtl, media: &mut Media) {
        for page in std::mem::take(&mut self.placed) {
            self.read(data, media, page);
        }
        let mut behind_programs = Vec::new();
        while let Some(page) = self.waiting.pop_front() {
            assert!(self.pages[page as usize].loading, "map page {page} waits, and nobody wants it");
            if self.is_in_flight(data, media, page) {
                behind_programs.push(page);
                continue;
            }
            match self.make_room(data, media, page) {
                Room::Now => self.read(data, media, page),
                Room::Later => {}
                Room::None => {
                    self.waiting.push_front(page);
                    break;
                }
            }
        }
        self.waiting.extend(behind_programs);
        while self.waiting.is_empty()
            && let Some(page) = self.ahead.pop_front()
        {
            if self.lru.contains(page) || self.pages[page as usize].loading || self.pages[page as usize].in_program > 0
            {
                continue;
            }
            self.pages[page as usize].loading = true;
            match self.make_room(data, media, page) {
                Room::None => {
                    self.pages[page as usize].loading = false;
                    self.ahead.clear();
                }
                room => {
                    self.counters.misses[1] += 1;
                    self.pages[page as usize].ahead = true;
                    if matches!(room, Room::Now) {
                        self.read(data, media, page);
                    }
                }
            }
        }
    }

    /// Loads the map pages of units that leave the write buffer soon, until half of the cache is taken by such.
    pub(in crate::ftl) fn load_ahead(&mut self, data: &mut PageFtl, media: &mut Media, lpns: &[Lpn]) {
        self.ahead.clear();
        let most = (self.shape.capacity / 2) as usize;
        let mut ahead: Vec<u32> = Vec::new();
        for page in lpns.iter().map(|lpn| self.shape.page_of(*lpn)) {
            if ahead.len() < most && !ahead.contains(&page) {
                ahead.push(page);
            }
        }
        // What is cached already is used soon.
        for page in &ahead {
            if self.lru.contains(*page) {
                self.lru.touch(*page);
            }
        }
        self.ahead.extend(ahead);
        self.load_waiting(data, media);
    }

    fn make_room(&mut self, data: &mut PageFtl, media: &mut Media, page: u32) -> Room {
        if self.lru.len() + self.in_transit < self.shape.capacity + self.beside {
            self.in_transit += 1;
            return Room::Now;
        }
        let Some(victim) = self.lru.oldest_first().find(|page| self.may_leave(*page)) else {
            return self.make_room_beside();
        };
        if self.pages[victim as usize].dirty {
            let mut pages = vec![victim];
            let oldest = self.lru.oldest_first().take(COMPANIONS_SOUGHT);
            let dirty = |page: &u32| *page != victim && self.pages[*page as usize].dirty && self.is_quiet(*page);
            pages.extend(oldest.filter(dirty).take(self.shape.in_page as usize - 1));
            let companions = pages.len() as u64 - 1;
            // Its place is the other page's as soon as it is on flash.
            self.lru.remove(victim);
            self.in_transit += 1;
            if self.program(data, media, &pages, Some(page)).is_none() {
                self.in_transit -= 1;
                self.lru.insert_oldest(victim);
                return self.make_room_without_program(data, media);
            }
            self.counters.companions += companions;
            self.counters.dirty_evictions += 1;
            self.counters.evictions += 1;
            return Room::Later;
        }
        self.drop_clean(data, media, victim)
    }

    fn drop_clean(&mut self, data: &PageFtl, media: &Media, victim: u32) -> Room {
        assert!(
            self.seems_equal_to_flash(data, media, victim),
            "map page {victim} leaves, and is not what is on flash"
        );
        self.lru.remove(victim);
        self.in_transit += 1;
        self.counters.evictions += 1;
        Room::Now
    }

    /// There is no page of flash for a dirty page: a clean one leaves, if there is one.
    #[cold]
    fn make_room_without_program(&mut self, data: &PageFtl, media: &Media) -> Room {
        let clean = |page: &u32| self.may_leave(*page) && !self.pages[*page as usize].dirty;
        let victim = self.lru.oldest_first().find(clean);
        match victim {
            Some(victim) => self.drop_clean(data, media, victim),
            None => self.make_room_beside(),
        }
    }

    /// A drive that takes no more writes keeps what cannot be programmed beside the cache.
    #[cold]
    fn make_room_beside(&mut self) -> Room {
        if !self.read_only {
            return Room::None;
        }
        self.beside += 1;
        self.in_transit += 1;
        Room::Now
    }

    /// Whether the newest copy of a page is on its way to flash. One whose program failed is in RAM.
    fn is_in_flight(&self, data: &PageFtl, media: &Media, page: u32) -> bool {
        self.pages[page as usize].in_program > 0
            && data.unit_of(self.shape.lpn_of(page)).is_some_and(|unit| {
                let place = media.place_of(unit);
                !media.flash.is_written(place.block, place.page)
            })
    }

    /// Whether a cached page may leave.
    fn may_leave(&self, page: u32) -> bool {
        self.pages[page as usize].pins == 0 && self.is_quiet(page)
    }

    /// Whether a page could be programmed now, and is not to be anyway.
    fn is_quiet(&self, page: u32) -> bool {
        let state = &self.pages[page as usize];
        state.unsettled == 0 && state.in_program == 0 && !state.flush
    }

    /// Reads a page that has a place.
    pub(super) fn read(&mut self, data: &mut PageFtl, media: &mut Media, page: u32) {
        if self.is_in_flight(data, media, page) {
            // Collection moves it.
            self.placed.push(page);
            return;
        }
        let Some(unit) = data.unit_of(self.shape.lpn_of(page)) else {
            return self.loaded(data, media, page);
        };
        self.counters.loads += 1;
        let place = media.place_of(unit);
        if !media.flash.blocks.readable(media.page_of(unit)) {
            // Its program failed, and it is still in RAM.
            return self.loaded(data, media, page);
        }
        if !media.flash.timed() {
            // A page of the map is read again until it is right, as records of trims are.
            media.read_now(place, ssdlab_flash::Cause::Mapping);
            return self.loaded(data, media, page);
        }
        assert!(media.flash.is_written(place.block, place.page), "map page {page} is read at {place:?}, not written");
        let op = self.ops.insert(MapOp::Load { page });
        self.in_flight += 1;
        let waited_for = self.jobs.waits_for(page, |asker| !matches!(asker, Asker::Gc(_) | Asker::Log));
        media.read_map(place, self.shape.page_bytes, waited_for, Owner::Map(op));
    }

    /// A page is in the cache now.
    pub(super) fn loaded(&mut self, data: &mut PageFtl, media: &mut Media, page: u32) {
        assert!(self.seems_equal_to_flash(data, media, page), "map page {page} is loaded, and the map says otherwise");
        assert!(self.in_transit > 0, "map page {page} was loaded, and no place was kept for it");
        self.in_transit -= 1;
        self.pages[page as usize].loading = false;
        if self.apply_log(data, page) {
            self.pages[page as usize].dirty = true;
            self.changes[page as usize].are_many();
        }
        self.lru.insert(page);
        let held = self.lru.len() + self.in_transit;
        let fits = self.shape.capacity + self.beside;
        assert!(held <= fits, "{held} map pages are in a cache for {fits}");
        self.jobs.cached(page, |asker| media.map_is_cached.push(asker));
    }
}

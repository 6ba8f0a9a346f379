//! Misses: the line that was used longest ago leaves, and is programmed first if it is dirty; then the other one is read.
//!
//! A map page leaves with its own program. An entry leaves when it is clean: a dirty one has its page programmed first, with all
//! dirty entries of it, and these stay in the cache (the batch updates of DFTL).
//!
//! Both are the load of a miss: at most so many are in flight as `ftl.map_loads` says, and others wait in the order in which
//! they came, relocation's among those of commands. A load that is in flight waits for nothing but chips. One whose page
//! cannot leave before a block is free, since the program failed, holds no other back: relocation, which frees blocks, may need
//! a load for that. Nor does one whose map page is on its way to flash, nor another line of a page that is being read.

use ssdlab_flash::{Lpn, UnitId};

use crate::MapUser;
use crate::ftl::page::PageFtl;
use crate::media::Media;
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

use super::{MapCache, MapOp};

/// A place in the cache for a line that is to be loaded.
enum Room {
    /// There is one.
    Now,
    /// When the program of the page that leaves has ended.
    Later,
    /// Not before something else has ended.
    None,
}

/// Most lines that are loaded before they are asked for.
const AHEAD: u32 = 512;

/// Pages that are looked at for companions of one that leaves.
const COMPANIONS_SOUGHT: usize = 64;

impl MapCache {
    /// Loads lines that wait for it, in order, until one finds no place.
    pub(super) fn load_waiting(&mut self, data: &mut PageFtl, media: &mut Media) {
        for _ in 0..self.placed.len() {
            if !self.may_load() {
                break;
            }
            let line = self.placed.pop_front().expect("a line that has a place");
            self.read(data, media, line);
        }
        let mut behind_programs = Vec::new();
        while self.waiting.front().is_some_and(|line| self.may_begin(*line)) {
            let line = self.waiting.pop_front().expect("a line waits");
            assert!(self.lines[line as usize].loading, "line {line} of the map waits, and is not asked for");
            if self.is_in_flight(data, media, self.shape.page_of_line(line)) {
                behind_programs.push(line);
                continue;
            }
            match self.make_room(data, media, line) {
                Room::Now => self.read(data, media, line),
                Room::Later => {}
                Room::None => {
                    self.waiting.push_front(line);
                    break;
                }
            }
        }
        self.waiting.extend(behind_programs);
        self.load_next_ahead(data, media);
    }

    /// Whether fewer loads are in flight than may be.
    #[inline]
    fn may_load(&self) -> bool {
        self.shape.loads == u32::MAX || self.loads() < self.shape.loads
    }

    /// Whether a line of a map page may be loaded now: alone, or with the load of its page that is in flight.
    #[inline]
    fn may_begin(&self, line: u32) -> bool {
        self.may_load() || self.pages[self.shape.page_of_line(line) as usize].reading
    }

    /// Loads in flight.
    fn loads(&self) -> u32 {
        let joined: usize = self.joined.values().map(Vec::len).sum();
        let waiting = (self.placed.len() + joined) as u32 + self.stuck;
        assert!(waiting <= self.in_transit, "{waiting} loads of {} wait for others", self.in_transit);
        self.in_transit - waiting
    }

    /// While no line waits, those are loaded that will be asked for.
    fn load_next_ahead(&mut self, data: &mut PageFtl, media: &mut Media) {
        while self.waiting.is_empty()
            && self.may_load()
            && let Some(line) = self.ahead.pop_front()
        {
            let in_program = self.pages[self.shape.page_of_line(line) as usize].in_program > 0;
            if self.lru.contains(line) || self.lines[line as usize].loading || in_program {
                continue;
            }
            self.lines[line as usize].loading = true;
            self.lines[line as usize].loaded_for = self.ahead_for;
            match self.make_room(data, media, line) {
                Room::None => {
                    self.lines[line as usize].loading = false;
                    self.ahead.clear();
                }
                room => {
                    self.counters.of(self.ahead_for).misses += 1;
                    self.lines[line as usize].ahead = true;
                    if matches!(room, Room::Now) {
                        self.read(data, media, line);
                    }
                }
            }
        }
    }

    /// Loads the lines of units that a user needs soon, until half of the cache is taken by such.
    pub(in crate::ftl) fn load_ahead(&mut self, data: &mut PageFtl, media: &mut Media, lpns: &[Lpn], user: MapUser) {
        self.ahead.clear();
        self.ahead_for = user;
        let most = (self.shape.capacity / 2).min(AHEAD) as usize;
        let mut ahead: Vec<u32> = Vec::new();
        for line in lpns.iter().map(|lpn| self.shape.line_of(*lpn)) {
            if ahead.len() < most && !ahead.contains(&line) {
                ahead.push(line);
            }
        }
        // What is cached already is used soon.
        for line in &ahead {
            if self.lru.contains(*line) {
                self.lru.touch(*line);
            }
        }
        self.ahead.extend(ahead);
        self.load_waiting(data, media);
    }

    /// A place for a line.
    fn make_room(&mut self, data: &mut PageFtl, media: &mut Media, line: u32) -> Room {
        debug_assert!(!self.lru.contains(line), "line {line} of the map is to be loaded, and is cached");
        if self.lru.len() + self.in_transit < self.shape.capacity + self.beside {
            self.in_transit += 1;
            return Room::Now;
        }
        if self.shape.by_entry {
            return self.make_room_for_entry(data, media, line);
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
            if self.program(data, media, &pages, Some(line)).is_none() {
                self.in_transit -= 1;
                self.lru.insert_oldest(victim);
                return self.make_room_without_program(data, media);
            }
            self.counters.flushed_with_others += companions;
            self.counters.of(self.lines[line as usize].loaded_for).flushes += 1;
            self.counters.evictions += 1;
            self.lines[victim as usize].ahead = false;
            return Room::Later;
        }
        self.drop_clean(data, media, victim)
    }

    /// The entry that was used longest ago leaves, if it is clean; a dirty one has its page programmed first.
    fn make_room_for_entry(&mut self, data: &mut PageFtl, media: &mut Media, line: u32) -> Room {
        let mut due = Vec::new();
        let mut victim = self.oldest_entry(&mut due);
        if !due.is_empty() {
            let user = self.lines[line as usize].loaded_for;
            for page in due.drain(..) {
                self.enqueue(page);
                self.pages[page as usize].flushed_for = Some(user);
            }
            self.flush_pages(data, media);
            // Without time they are clean by now.
            victim = self.oldest_entry(&mut due);
        }
        match victim {
            Some(line) => self.drop_clean(data, media, line),
            None => self.make_room_beside(),
        }
    }

    /// The clean entry that was used longest ago, unless as many dirty ones as there are lines that want a place were used
    /// longer ago, and will be clean. `due`: pages of these, to be programmed.
    fn oldest_entry(&self, due: &mut Vec<u32>) -> Option<u32> {
        debug_assert!(due.is_empty(), "{} map pages are due already", due.len());
        let wanted = self.waiting.len() + 1;
        let mut coming = 0;
        for line in self.lru.oldest_first().filter(|line| self.lines[*line as usize].pins == 0) {
            if !self.lines[line as usize].dirty {
                return Some(line);
            }
            let page = self.shape.page_of_line(line);
            let state = &self.pages[page as usize];
            if state.unsettled > 0 {
                continue;
            }
            if !state.flush && state.in_program == 0 && !due.contains(&page) {
                due.push(page);
            }
            coming += 1;
            if coming == wanted && !self.read_only {
                return None;
            }
        }
        None
    }

    fn drop_clean(&mut self, data: &PageFtl, media: &Media, victim: u32) -> Room {
        assert!(
            self.seems_equal_to_flash(data, media, victim),
            "line {victim} of the map leaves, and is not what is on flash"
        );
        self.lru.remove(victim);
        self.lines[victim as usize].ahead = false;
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
    pub(super) fn is_in_flight(&self, data: &PageFtl, media: &Media, page: u32) -> bool {
        self.pages[page as usize].in_program > 0
            && self.unit_of_page(data, page).is_some_and(|unit| {
                let place = media.place_of(unit);
                !media.flash.is_written(place.block, place.page)
            })
    }

    /// Whether a cached page may leave.
    fn may_leave(&self, page: u32) -> bool {
        self.lines[page as usize].pins == 0 && self.is_quiet(page)
    }

    /// Whether a page could be programmed now, and is not to be anyway.
    fn is_quiet(&self, page: u32) -> bool {
        let state = &self.pages[page as usize];
        let is_settled = state.unsettled == 0 || seeded(Bug::MapPageNamesUnwritten);
        is_settled && state.in_program == 0 && !state.flush
    }

    /// Reads the page of a line that has a place.
    pub(super) fn read(&mut self, data: &mut PageFtl, media: &mut Media, line: u32) {
        let page = self.shape.page_of_line(line);
        assert!(self.lines[line as usize].loading, "line {line} of the map is read, and is not asked for");
        if self.is_in_flight(data, media, page) {
            // Collection moves it.
            self.placed.push_back(line);
            return;
        }
        if self.pages[page as usize].reading {
            self.joined.entry(page).or_default().push(line);
            return;
        }
        let Some(unit) = self.unit_of_page(data, page) else {
            return self.loaded(data, media, line);
        };
        assert!(self.lines[line as usize].loading, "line {line} of the map is read, and was not asked for");
        self.counters.of(self.lines[line as usize].loaded_for).loads += 1;
        let waited_for = self.jobs.waits_for(line, |waiter| !matches!(waiter, Waiter::Gc(_) | Waiter::Log));
        if self.read_page(media, unit, waited_for, MapOp::Load { line }) {
            self.pages[page as usize].reading = true;
        } else {
            self.loaded(data, media, line);
        }
    }

    /// Starts the read of a map page; false if it is at hand at once.
    pub(super) fn read_page(&mut self, media: &mut Media, unit: UnitId, waited_for: bool, op: MapOp) -> bool {
        let place = media.place_of(unit);
        if !media.flash.blocks.readable(media.page_of(unit)) {
            // Its program failed, and it is still in RAM.
            return false;
        }
        if !media.flash.timed() {
            // A page of the map is read again until it is right, as records of trims are.
            media.read_now(place, ssdlab_flash::Cause::Mapping);
            return false;
        }
        assert!(media.flash.is_written(place.block, place.page), "a map page is read at {place:?}, not written");
        let op = self.ops.insert(op);
        self.in_flight += 1;
        media.read_map(place, self.shape.page_bytes, waited_for, Waiter::Map(op));
        true
    }

    /// The page of a line was read, for it and for those that joined.
    pub(super) fn page_is_read(&mut self, data: &mut PageFtl, media: &mut Media, line: u32) {
        let page = self.shape.page_of_line(line);
        let was_reading = std::mem::take(&mut self.pages[page as usize].reading);
        assert!(was_reading, "map page {page} was read, and no load of it was in flight");
        self.loaded(data, media, line);
        for line in self.joined.remove(&page).unwrap_or_default() {
            self.loaded(data, media, line);
        }
    }

    /// A line is in the cache now.
    fn loaded(&mut self, data: &mut PageFtl, media: &mut Media, line: u32) {
        let page = self.shape.page_of_line(line);
        assert!(self.seems_equal_to_flash(data, media, line), "map page {page} is loaded, and the map says otherwise");
        assert!(self.in_transit > 0, "map page {page} was loaded, and no place was kept for it");
        self.in_transit -= 1;
        self.lines[line as usize].loading = false;
        if self.apply_log(data, page) {
            self.pages[page as usize].dirty = true;
            self.changes[page as usize].are_many();
        }
        self.lru.insert(line);
        let held = self.lru.len() + self.in_transit;
        let fits = self.shape.capacity + self.beside;
        assert!(held <= fits, "{held} lines are in a map cache for {fits}");
        self.jobs.cached(line, |waiter| media.wakes.map_waiters.push(waiter));
    }
}

//! Map blocks: programs of map pages, and the collection of what they leave behind.
//!
//! Each group sets blocks aside for map pages: twice what the map takes, and three more. Map pages go to the group whose turn
//! it is. Collection takes the closed map block of a group with the fewest valid units and needs no map page for it, only the
//! directory: so it never waits for anything but chips, and whatever waits for a map page goes on at last. One block of each
//! group is collection's alone. Where programs fail, that block may be gone before its victim is empty: collection
//! waits for a block then, which its group owes it.

use arrayvec::ArrayVec;
use ssdlab_flash::{Cause, DieId, Lpn, UnitId};

use super::geometry::Shape;
use super::shared::Superseded;
use super::state::Base;
use super::{MapCache, MapOp};
use crate::DriveConfig;
use crate::block_pool::BlockState;
use crate::ftl::MAX_UNITS;
use crate::ftl::page::PageFtl;
use crate::ftl::page::metadata::{Content, Words};
use crate::media::{Frontier, Media, Place};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// Map pages of which the words are kept to be used again.
const SPARE_WORDS: usize = 64;

/// Pages that a collection has in flight.
const MOVES_IN_FLIGHT: u32 = 4;

/// Map pages that are programmed into one page.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pages: Vec<u32>,
    /// The units that they were in.
    before: Vec<UnitId>,
    /// Copies of them in shared units that are needed until the program is on flash.
    pub(super) superseded: Vec<Superseded>,
    /// The line whose place in the cache one of them leaves free.
    then: Option<u32>,
    /// How many of them the end of active blocks waits for.
    pub(super) of_change: u32,
    /// The group whose collection it is of.
    moved_in: Option<u32>,
    /// It failed, and its pages wait for another place.
    failed: bool,
}

impl Program {
    /// Why pages are programmed, by name.
    pub(super) fn kind(&self) -> &'static str {
        match (self.then, self.moved_in) {
            (Some(_), _) => "dirty eviction",
            (None, Some(_)) => "move of map pages",
            (None, None) => "flush of map pages",
        }
    }
}

/// The collection of a group's map blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Collection {
    victim: Option<u32>,
    cursor: u32,
    in_flight: u32,
}

/// Superblocks that each group sets aside for a map.
pub(in crate::ftl) fn quota(config: &DriveConfig, shape: &Shape) -> u32 {
    let geometry = &config.flash.geometry;
    let width = config.ftl.superblock.planes(geometry);
    let pages_per_superblock = u64::from(geometry.pages_per_block) * u64::from(width);
    let per_page = u64::from(geometry.page_bytes / config.ftl.mapping_unit);
    let pages = u64::from(shape.units_on_flash()).div_ceil(per_page);
    let groups = u64::from(geometry.planes() / width);
    3 + (2 * pages).div_ceil(groups * pages_per_superblock) as u32
}

impl MapCache {
    /// The group that takes the next map page: the one with the least loaded die of those that have room.
    fn choose_group(&mut self, media: &Media) -> Option<u32> {
        let groups = self.collections.len() as u32;
        let kept = media.data_pages_per_superblock();
        let turns = (0..groups).map(|step| (self.next_group + step) % groups);
        let with_room =
            turns.filter(|group| media.map_pages_left(*group) > kept && media.has_page(*group, Frontier::Map));
        let mut best: Option<(u32, u32)> = None;
        for group in with_room {
            let die = media.next_page(group, Frontier::Map).map_or(DieId(0), |place| media.flash.die_of(place.block));
            let load = if media.flash.timed() { media.flash.load(die) } else { 0 };
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, group));
            }
            if load == 0 {
                break;
            }
        }
        let (_, group) = best?;
        self.next_group = (group + 1) % groups;
        Some(group)
    }

    /// A page of flash for map pages, collecting where that leaves few; `None` if there is none before a block is erased.
    fn take_place(&mut self, data: &mut PageFtl, media: &mut Media) -> Option<Place> {
        let group = self.choose_group(media).or_else(|| {
            for group in 0..self.collections.len() as u32 {
                self.collect(data, media, group);
            }
            self.choose_group(media)
        })?;
        Some(media.take_seen_page(group, Frontier::Map))
    }

    /// Programs cached, settled pages into one page of flash; the place that one of them leaves in the cache is for `then`.
    /// `None` if there is no page for it before a block is erased.
    pub(super) fn program(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        pages: &[u32],
        then: Option<u32>,
    ) -> Option<Place> {
        debug_assert!(pages.len() <= self.shape.in_page as usize, "{} map pages go to one page", pages.len());
        self.failed_are_written(data, media);
        if !self.shared.has_numbers(&self.shape, pages.len()) {
            return None;
        }
        let place = self.take_place(data, media)?;
        let mut program = Program { then, ..Program::default() };
        let (mut all, mut promised, mut has_trims) = (Vec::new(), 0, false);
        if self.shape.shares_units() {
            for pages in pages.chunks(self.shape.slots as usize) {
                let words = Content::Whole(self.shared_words(data, media.sequence(), pages));
                let number = self.shared.place(pages, &mut program.superseded);
                all.push(Words { lpn: self.shape.shared_lpn(number), units: 1, words });
            }
        }
        for page in pages {
            if !self.shape.shares_units() {
                let lpn = self.shape.lpn_of(*page);
                let words = self.content(data, media, *page);
                all.push(Words { lpn, units: self.shape.units, words });
                program.before.extend(data.unit_of(lpn));
            }
            program.pages.push(*page);
            let state = &mut self.pages[*page as usize];
            let is_settled = state.unsettled == 0 || seeded(Bug::MapPageNamesUnwritten);
            assert!(is_settled, "map page {page} is programmed, and names what is not on flash");
            assert!(
                !self.log.has_entries_of(self.shape.mapped_by(*page)),
                "map page {page} is programmed without the log"
            );
            state.dirty = false;
            state.base = Base::OnFlash;
            state.in_program += 1;
            has_trims |= state.trimmed;
            if state.trimmed && !state.promised {
                self.flush.unsaved -= 1;
                self.flush.trimmed.retain(|other| other != page);
            }
            promised += u32::from(std::mem::take(&mut state.promised));
            state.trimmed = false;
            program.of_change += u32::from(std::mem::take(&mut state.in_change));
            let lines = self.shape.lines_of(*page);
            self.lines[lines.start as usize..lines.end as usize].iter_mut().for_each(|line| line.dirty = false);
        }
        if seeded(Bug::SharedUnitFreedEarly) {
            let superseded = std::mem::take(&mut program.superseded);
            self.superseded(data, media, superseded, true);
        }
        let cause = if has_trims { Cause::Metadata } else { Cause::Mapping };
        self.start(data, media, program, |data, media, owner| data.program_metadata(media, place, all, cause, owner));
        // Its own program counts now.
        for _ in 0..promised {
            let token = self.flush.promised.pop().expect("a page of trims that was promised has a token");
            media.metadata.end(token);
        }
        let group = media.group_of(place.block);
        self.collect(data, media, group);
        Some(place)
    }

    /// Programs the words of the record of what is active; false if there is no page for it before a block is erased.
    pub(super) fn program_record(&mut self, data: &mut PageFtl, media: &mut Media, words: Box<[u64]>) -> bool {
        let Some(place) = self.take_place(data, media) else { return false };
        let lpn = self.shape.record_lpn();
        let op = MapOp::Record { before: data.unit_of(lpn) };
        let all = vec![Words { lpn, units: 1, words: Content::Whole(words) }];
        self.submit(data, media, op, |data, media, owner| {
            data.program_metadata(media, place, all, Cause::Mapping, owner);
        });
        true
    }

    fn start(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        program: Program,
        submit: impl FnOnce(&mut PageFtl, &mut Media, Waiter),
    ) {
        self.submit(data, media, MapOp::Program(program), submit);
    }

    /// Starts a program; without time it ends at once.
    fn submit(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        op: MapOp,
        submit: impl FnOnce(&mut PageFtl, &mut Media, Waiter),
    ) {
        if media.flash.timed() {
            let op = self.ops.insert(op);
            self.in_flight += 1;
            return submit(data, media, Waiter::Map(op));
        }
        let failed = media.wakes.failed.len();
        submit(data, media, Waiter::None);
        let whole = media.wakes.failed.len() == failed;
        self.ended(data, media, op, whole);
    }

    /// A program failed, and its pages are to be written elsewhere, for which a block may have to become free.
    pub(in crate::ftl) fn program_failed(&mut self, media: &mut Media, op: u32) {
        if let MapOp::Program(program) = &mut self.ops[op]
            && !std::mem::replace(&mut program.failed, true)
            && program.then.is_some()
        {
            self.stuck += 1;
            media.wakes.map_slot_free = true;
        }
    }

    /// A program failed, and its pages stay in RAM.
    pub(in crate::ftl) fn given_up(&mut self, data: &mut PageFtl, media: &mut Media, op: u32) {
        let ended = self.take_op(op);
        self.ended(data, media, ended, false);
        // What waits for a load has its turn.
        media.wakes.map_slot_free = true;
    }

    fn take_op(&mut self, op: u32) -> MapOp {
        let ended = self.ops[op].clone();
        self.ops.release(op);
        assert!(self.in_flight > 0, "operation {op} of the map ended, and none was in flight");
        self.in_flight -= 1;
        ended
    }

    /// An operation has ended.
    pub(in crate::ftl) fn served(&mut self, data: &mut PageFtl, media: &mut Media, op: u32) {
        let ended = self.take_op(op);
        let group = if let MapOp::Program(program) = &ended { program.moved_in } else { None };
        self.ended(data, media, ended, true);
        if let Some(group) = group {
            self.collect(data, media, group);
        }
        self.flush_pages(data, media);
        self.load_waiting(data, media);
    }

    /// An operation has ended; `on_flash` unless its program failed, and its data is in RAM until it is programmed elsewhere.
    fn ended(&mut self, data: &mut PageFtl, media: &mut Media, op: MapOp, on_flash: bool) {
        match op {
            MapOp::Load { line } => self.page_is_read(data, media, line),
            MapOp::Base { page } => self.base_is_read(page),
            MapOp::Record { .. } if !on_flash => self.give_up_change(),
            MapOp::Record { before } => {
                self.drop_words(data, media, before.into_iter());
                self.change_is_recorded();
            }
            MapOp::Program(program) => {
                for page in &program.pages {
                    let in_program = &mut self.pages[*page as usize].in_program;
                    assert!(*in_program > 0, "map page {page} is on flash, and was not on its way there");
                    *in_program -= 1;
                }
                self.drop_words(data, media, program.before.into_iter().filter(|_| on_flash));
                self.superseded(data, media, program.superseded, on_flash);
                if on_flash {
                    self.change_goes_on(program.of_change);
                } else {
                    self.give_up_change();
                }
                if let Some(group) = program.moved_in {
                    let in_flight = &mut self.collections[group as usize].in_flight;
                    assert!(*in_flight > 0, "map pages of group {group} were moved, and none were on their way");
                    *in_flight -= 1;
                }
                match program.then {
                    Some(line) if program.failed => {
                        self.stuck -= 1;
                        self.placed.push_back(line);
                    }
                    Some(line) => self.read(data, media, line),
                    None => {}
                }
            }
        }
    }

    /// What superseded units say is not needed any more: newer copies are on flash.
    pub(super) fn drop_words(&mut self, data: &PageFtl, media: &mut Media, units: impl Iterator<Item = UnitId>) {
        for unit in units {
            if !data.is_current(unit) && media.flash.store.image().is_none() {
                let words = media.flash.oob.drop_record(unit);
                let length = self.shape.unit_words();
                if self.spare_words.len() < SPARE_WORDS {
                    self.spare_words.extend(words.filter(|words| words.len() == length));
                }
            }
        }
    }

    /// Runs the collection of a group's map blocks as far as it goes now.
    pub(super) fn collect(&mut self, data: &mut PageFtl, media: &mut Media, group: u32) {
        self.failed_are_written(data, media);
        let mut job = self.collections[group as usize];
        if job.victim.is_none() {
            let pages = media.data_pages_per_superblock();
            if media.map_pages_coming(group) > 2 * pages {
                return;
            }
            let needed = |block: u32| media.pool.valid(block).div_ceil(media.units_per_page);
            let Some(victim) = media.pool.emptiest_map_block(group) else { return };
            if needed(victim) >= pages || needed(victim) > media.map_pages_left(group) {
                return;
            }
            media.pool.collect_map_block(victim);
            job = Collection { victim: Some(victim), cursor: 0, in_flight: job.in_flight };
        }
        self.collections[group as usize] = job;
        let Some(victim) = job.victim else { return };
        loop {
            let job = self.collections[group as usize];
            if media.flash.timed() && job.in_flight >= MOVES_IN_FLIGHT {
                return;
            }
            let next: ArrayVec<(u32, UnitId), MAX_UNITS> =
                data.current_units(media, victim, job.cursor).take(media.units_per_page as usize).collect();
            let Some((last, _)) = next.last() else { break };
            if !media.has_page(group, Frontier::Map) {
                // Programs failed since the victim was chosen, and took the rest of their blocks.
                return;
            }
            self.collections[group as usize].cursor = last + 1;
            self.move_units(data, media, group, next.iter().map(|(_, unit)| *unit).collect());
        }
        // All that was valid is on its way, and pins the victim until it is there.
        self.collections[group as usize].victim = None;
        assert_eq!(media.pool.state(victim), BlockState::Collecting, "map block {victim} was being emptied");
        media.pool.await_erase(victim);
        if media.pool.pins(victim) == 0 {
            media.wakes.erasable.push(victim);
        }
    }

    /// Moves current units of map blocks into one page.
    fn move_units(&mut self, data: &mut PageFtl, media: &mut Media, group: u32, units: ArrayVec<UnitId, MAX_UNITS>) {
        assert!(media.has_page(group, Frontier::Map), "collection of map blocks of group {group} has no page");
        let place = media.take_seen_page(group, Frontier::Map);
        let mut program = Program { before: units.to_vec(), moved_in: Some(group), ..Program::default() };
        for unit in &units {
            for page in self.pages_in(media, *unit) {
                self.pages[page as usize].in_program += 1;
                program.pages.push(page);
            }
        }
        self.counters.moved_pages += program.pages.len() as u64;
        self.collections[group as usize].in_flight += 1;
        self.start(data, media, program, |data, media, owner| {
            data.move_metadata(media, &units, place, owner, false);
        });
    }

    /// Moves what is current in a map block that goes bad; returns where to go on, how many programs were started, and whether
    /// there was no page for more.
    pub(in crate::ftl) fn retire(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
    ) -> (u32, bool) {
        let group = media.pool.group_of(victim);
        let mut cursor = cursor;
        for _ in 0..limit {
            let next: ArrayVec<(u32, UnitId), MAX_UNITS> =
                data.current_units(media, victim, cursor).take(media.units_per_page as usize).collect();
            let Some((last, _)) = next.last() else { return (media.units_per_superblock(), false) };
            if !media.has_page(group, Frontier::Map) {
                return (cursor, true);
            }
            cursor = last + 1;
            self.move_units(data, media, group, next.iter().map(|(_, unit)| *unit).collect());
        }
        (cursor, false)
    }

    /// The current units of a page whose program failed go to another page, from RAM. `None` if none is current, `Some(false)` if
    /// there is no page for them.
    pub(in crate::ftl) fn rewrite(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        place: Place,
        owner: Waiter,
    ) -> Option<bool> {
        let first = media.unit_at(place);
        let current = UnitId::each(first..first + media.units_per_page).filter(|unit| data.is_current(*unit));
        let units: ArrayVec<UnitId, MAX_UNITS> = current.collect();
        if units.is_empty() {
            return None;
        }
        let groups = self.collections.len() as u32;
        let own = media.group_of(place.block);
        let mut turns = (0..groups).map(|step| (own + step) % groups);
        let Some(group) = turns.find(|group| media.has_page(*group, Frontier::Map)) else { return Some(false) };
        let target = media.take_seen_page(group, Frontier::Map);
        data.move_metadata(media, &units, target, owner, true);
        Some(true)
    }

    /// Whether a page is one of map pages, by what its first unit says.
    pub(in crate::ftl) fn is_map(&self, media: &Media, place: Place) -> bool {
        let lpn = media.flash.oob.lpn(media.unit_at(place));
        lpn != Lpn::NONE && !lpn.is_of_stripe() && lpn.0 >= self.shape.mapped_units
    }
}

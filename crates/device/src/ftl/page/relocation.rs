//! Moving what is valid out of a block: for garbage collection, wear levelling and retirement.

use arrayvec::ArrayVec;
use ssdlab_flash::{BlockId, Cause, Lpn, UnitId};

use super::{PageFtl, UNMAPPED};
use crate::ftl::bit_fields::next_set;
use crate::ftl::page_of_units::{Moving, Purpose, rewritten_to};
use crate::ftl::{MAX_UNITS, NoSpace, Relocated};
use crate::media::{Frontier, Media, Place};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;

/// How units are moved.
#[derive(Clone, Copy)]
pub(super) struct Move {
    pub(super) purpose: Purpose,
    /// The controller still holds the data: nothing is read.
    pub(super) from_ram: bool,
}

impl PageFtl {
    /// The next valid unit of a block at or after `from` (both numbered over the drive), before `end`.
    #[inline]
    pub(super) fn next_valid(&self, from: UnitId, end: UnitId) -> Option<UnitId> {
        next_set(self.valid.as_slice(), from.0, end.0).map(UnitId)
    }

    pub(super) fn relocate_units(
        &mut self,
        media: &mut Media,
        victim: u32,
        cursor: u32,
        limit: u32,
        cause: Cause,
        owner: Waiter,
    ) -> Relocated {
        debug_assert!(cursor <= media.units_per_superblock(), "relocation of {victim} begins at unit {cursor}");
        debug_assert!(
            media.pool.state(victim) == crate::block_pool::BlockState::Collecting,
            "block {victim} is relocated, and no job collects it"
        );
        // In time the order of operations is that of runs whether contents are kept or not: a verified or served drive
        // takes as long as a plain one.
        let as_runs = if media.flash.timed() { media.flash.moves_alike() } else { media.flash.is_plain() };
        let as_runs = as_runs && !media.lists_owners();
        let alone = media.pool.superblocks.width() == 1;
        if self.units_per_page == 1 && !self.copyback && as_runs && alone {
            return self.relocate_pages(media, victim, cursor, limit, cause, owner);
        }
        let stripes = media.pool.superblocks.parity() > 0;
        if !media.flash.timed() && as_runs && !self.copyback && !stripes && !seeded(Bug::SupersededMoved) {
            return match alone {
                true => self.relocate_pages_of_units(media, victim, cursor, limit, cause),
                false => self.relocate_rows(media, victim, cursor, limit, cause),
            };
        }
        let group = media.pool.group_of(victim);
        let frontier = Frontier::of_relocation(media.pool.kind(victim));
        let mut cursor = cursor;
        let mut started = 0;
        while started < limit {
            let Some((next, _)) = self.next_valid_of(media, victim, cursor) else {
                return Relocated { cursor: media.units_per_superblock(), started, stuck: false };
            };
            if !media.has_page(group, frontier) {
                return Relocated { cursor: next, started, stuck: true };
            }
            cursor = self.move_page_of_units(media, victim, next, cause, owner);
            started += 1;
        }
        Relocated { cursor, started, stuck: false }
    }

    /// The next valid unit of a superblock from `cursor` on, by the order in which its pages were given out: its place in
    /// that order, and the unit.
    #[inline]
    pub(super) fn next_valid_of(&self, media: &Media, superblock: u32, cursor: u32) -> Option<(u32, UnitId)> {
        let end = media.units_per_superblock();
        if media.pool.superblocks.width() == 1 {
            let first = media.unit_at(Place { block: BlockId(superblock), page: 0 });
            return self.next_valid(first + cursor, first + end).map(|unit| (unit - first, unit));
        }
        if media.pool.valid(superblock) == 0 {
            return None;
        }
        (cursor..end).map(|at| (at, media.unit_in(superblock, at))).find(|(_, unit)| self.is_valid(*unit))
    }

    /// Fills one page of the relocation frontier with valid units of `victim` from `cursor` on; returns where to go on.
    #[inline]
    fn move_page_of_units(&mut self, media: &mut Media, victim: u32, cursor: u32, cause: Cause, owner: Waiter) -> u32 {
        let mut sources: ArrayVec<UnitId, MAX_UNITS> = ArrayVec::new();
        let mut at = cursor;
        if seeded(Bug::SupersededMoved) {
            sources.extend(self.superseded_before(media, media.unit_in(victim, cursor)));
        }
        while sources.len() < self.units_per_page as usize {
            let Some((next, unit)) = self.next_valid_of(media, victim, at) else {
                at = media.units_per_superblock();
                break;
            };
            sources.push(unit);
            at = next + 1;
        }
        debug_assert!(!sources.is_empty(), "a page of nothing is moved out of {victim}");
        debug_assert!(at > cursor, "relocation of {victim} stays at unit {cursor}");
        let group = media.pool.group_of(victim);
        let frontier = Frontier::of_relocation(media.pool.kind(victim));
        let place = media.take_page(group, frontier).expect("a page was seen to be there");
        self.move_units(media, &sources, place, Move { purpose: Purpose { cause, frontier, owner }, from_ram: false });
        self.count_relocation_padding(media, 1, sources.len() as u32);
        at
    }

    /// Counts what `moved` units leave empty of the pages that relocation took for them.
    #[inline]
    pub(super) fn count_relocation_padding(&self, media: &mut Media, pages: u32, moved: u32) {
        let units = pages * self.units_per_page;
        debug_assert!(moved <= units, "{moved} units were moved into {pages} pages of {}", self.units_per_page);
        media.relocation_padding_bytes += u64::from(units - moved) * u64::from(media.unit_bytes);
    }

    /// The seeded bug [`Bug::SupersededMoved`]: the unit before `unit` in its block, if a newer copy is mapped.
    fn superseded_before(&self, media: &Media, unit: UnitId) -> Option<UnitId> {
        let before =
            unit.0.checked_sub(1).map(UnitId).filter(|before| media.block_of(*before) == media.block_of(unit))?;
        let lpn = media.flash.oob.lpn(before);
        let mapped = lpn != Lpn::NONE && self.map.get(lpn.index()) != UNMAPPED;
        (mapped && !self.is_valid(before)).then_some(before)
    }

    /// Reads the pages of `sources` and programs their units into `place`.
    #[inline]
    pub(super) fn move_units(&mut self, media: &mut Media, sources: &[UnitId], place: Place, how: Move) {
        let Move { purpose, from_ram } = how;
        let first = media.unit_at(place);
        let mut lpns: ArrayVec<Lpn, MAX_UNITS> = ArrayVec::new();
        // Records of trims.
        let is_record = |lpn: Lpn| lpn.0 >= self.user_units;
        let mut moving = Moving::new(media, sources, purpose, from_ram, self.copyback, is_record);
        for (index, source) in sources.iter().enumerate() {
            let lpn = media.flash.oob.lpn(*source);
            debug_assert!(
                (lpn.index()) < self.map.len(),
                "unit {source} is moved, and is of LPN {lpn}, behind the map"
            );
            let unit = first + index as u32;
            lpns.push(lpn);
            moving.bring(media, index, unit, lpn.0 >= self.user_units);
            let old = self.remap(media, lpn, unit, place.block);
            debug_assert!(
                old == *source || seeded(Bug::SupersededMoved),
                "unit {source} is moved, and {old} is the one that is mapped"
            );
        }
        moving.program(media, place, &lpns);
    }

    /// The units of a page whose program failed go to another page, straight from RAM. False when none is current.
    pub(super) fn rewrite_page(
        &mut self,
        media: &mut Media,
        place: Place,
        frontier: Frontier,
        cause: Cause,
        owner: Waiter,
    ) -> Result<bool, NoSpace> {
        let first = media.unit_at(place);
        let mut sources: ArrayVec<UnitId, MAX_UNITS> = ArrayVec::new();
        let mut at = first;
        while let Some(unit) = self.next_valid(at, first + self.units_per_page) {
            sources.push(unit);
            at = unit + 1;
        }
        if sources.is_empty() {
            return Ok(false);
        }
        let choose = |media: &Media, to| self.allocator.choose(media, media.flash.oob.lpn(sources[0]), to);
        let (group, frontier) = rewritten_to(media, media.group_of(place.block), frontier, choose)?;
        let target = media.take_page(group, frontier).ok_or(NoSpace)?;
        self.move_units(media, &sources, target, Move { purpose: Purpose { cause, frontier, owner }, from_ram: true });
        Ok(true)
    }
}
